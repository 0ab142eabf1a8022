"""Small surveys to break: n users with one item each, noise off: a count above 1 is a user counted twice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.sampling import DPDS
from faircount.protocol import explicit, servers, user
from faircount.protocol.codec import Message, Party
from faircount.protocol.messages import Inquiry, Published
from faircount.protocol.params import Topology
from faircount.protocol.roles import aggregate, coordinate, end_phase
from faircount.protocol.sealing import Sealing
from faircount.protocol.signing import unwrap
from faircount.protocol.survey import Cast, converse, set_up


@dataclass
class Stage:
    """The parties of one survey, changed in place as the test goes on."""

    cast: Cast
    entropy: SeededStream
    people: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.s1, self.s2 = self.cast.s1, self.cast.s2

    def tell_s1(self, message: Message) -> tuple[Message, ...]:
        self.s1, out = coordinate(self.s1, message)
        return out

    def tell_s2(self, message: Message) -> tuple[Message, ...]:
        self.s2, out = aggregate(self.s2, message)
        return out

    def deadline(self) -> tuple[Message, ...]:
        self.s1, out = end_phase(self.s1)
        return out

    def settle(self, out: tuple[Message, ...]) -> None:
        self.s1, self.s2 = converse(self.s1, self.s2, out)

    def said_by_s2(self, signed: Any) -> Any:
        return unwrap(self.cast.params.keys.s2, Party.S2, signed)

    def counts(self) -> list[int]:
        final = self.said_by_s2(self.s1.final)
        assert isinstance(final, Published), final
        return list(final.counts)

    # servers

    def answer_all(self, skip: tuple[int, ...] = ()) -> None:
        self.s1 = servers.open_survey(self.s1)
        for i, invitation in enumerate(self.cast.invitations):
            self.people.append(servers.respond(self.cast.params, invitation, i, self.entropy, self.s2.sealing))
            if i not in skip:
                self.tell_s1(self.people[-1].body)

    # explicit

    def enrol_all(self) -> None:
        join = [user.join(self.cast.params, each, self.entropy, self.s2.sealing) for each in self.cast.invitations]
        for each in join:
            self.tell_s1(each.enrolment)
        self.settle(self.deadline())
        (roster,) = self.tell_s1(Inquiry(self.cast.params.survey, self.cast.invitations[0].access))
        placed = sorted((user.believe(each, roster) for each in join), key=lambda member: member.index)
        self.people = [explicit.share(member, member.index, self.entropy) for member in placed]

    def share_all(self, skip: tuple[int, ...] = ()) -> None:
        for i, sharer in enumerate(self.people):
            if i not in skip:
                self.tell_s1(sharer.bundle)
        self.settle(self.deadline())

    def visit(self, i: int) -> Any:
        (answer,) = self.tell_s1(user.visit(self.people[i].member))
        return answer

    def sum_all(self, skip: tuple[int, ...] = ()) -> tuple[Message, ...]:
        for i in self.s1.members:
            if i not in skip:
                self.people[i], body = explicit.answer_call(self.people[i], self.visit(i), self.entropy)
                self.tell_s1(body)
        return self.deadline()


@pytest.fixture
def stage() -> Callable[..., Stage]:
    """A survey of n users, noise off: user i holds item i."""

    def make(topology: Topology, n: int = 6, sealing: Sealing | None = None, seed: int = 1, **terms: Any) -> Stage:
        entropy = SeededStream(seed)
        mechanism = DPDS(items=n, users=n, p=1.0)
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 3, "attempts": 3, **terms}
        return Stage(set_up(mechanism, topology, entropy, sealing, **agreed), entropy)

    return make

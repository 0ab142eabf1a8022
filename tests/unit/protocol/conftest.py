"""Small surveys to break: n users with one item each, noise off: a count above 1 is a user counted twice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.protocol.play import Cast, converse, set_up
from faircount.protocol.roles.entrances import aggregate, coordinate, end_phase
from faircount.protocol.survey.parameters import Topology
from faircount.protocol.topologies.explicit import explicit
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import HelpCall, MaskedSum
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import SumUpload
from faircount.protocol.topologies.two_servers import servers
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import Assignment, SlotSums, SumCall
from faircount.protocol.topologies.two_stage.relay import slots_of
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.decoding import decode
from faircount.protocol.wire.messages import Inquiry, Published
from faircount.protocol.wire.sealing import OVERHEAD, IdealSealing, Sealing
from faircount.protocol.wire.signing import sign, unwrap
from faircount.sharing.packing import packed_size


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

    def spoil(self, i: int) -> None:
        """User i sends a sum that nobody can open."""
        wanted, member = explicit.current_set(self.s1), self.people[i].member
        blob = bytes(packed_size(self.cast.params.q, self.cast.params.N) + OVERHEAD)
        made_for = wanted.attempt, wanted.set_digest
        self.tell_s1(SumUpload(member.params.survey, i, member.credential, *made_for, blob))

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


class MaskedStage(Stage):
    """The parties of a masked survey: `people` stand in roster order, user i holds item i. Messages travel as bytes."""

    def tell_s1(self, message: Message) -> tuple[Message, ...]:
        return tuple(decode(encode(each)) for each in super().tell_s1(decode(encode(message))))

    def tell_s2(self, message: Message) -> tuple[Message, ...]:
        return tuple(decode(encode(each)) for each in super().tell_s2(decode(encode(message))))

    def enrol(self, skip: Any = ()) -> None:
        """Everybody who is not skipped enrols, the roster is sealed, and everybody finds its place."""
        params = self.cast.params
        joined = [user.join(params, each, self.entropy, self.s2.sealing) for each in self.cast.invitations]
        here = [each for i, each in enumerate(joined) if i not in skip]
        for each in here:
            self.tell_s1(each.enrolment)
        self.settle(self.deadline())
        placed = [masked_user.believe(each, self.inquire(each)) for each in here]
        placed.sort(key=lambda each: each.member.index)
        self.people = [masked_user.share(each, each.member.index % params.N, self.entropy) for each in placed]

    def inquire(self, member: user.Member) -> Any:
        (near,) = self.tell_s1(Inquiry(member.params.survey, member.enrolment.access))
        return near

    def share_keys(self, skip: Any = ()) -> None:
        for i, masker in enumerate(self.people):
            if i not in skip:
                self.tell_s1(masker.bundle)
        self.settle(self.deadline())

    def look(self, i: int) -> Any:
        (answer,) = self.tell_s1(masked_user.visit(self.people[i]))
        return answer

    def send(self, i: int) -> tuple[Message, ...]:
        self.people[i], body = masked_user.answer_call(self.people[i], self.look(i), self.entropy)
        return self.tell_s1(body)

    def spoil(self, i: int) -> None:
        """User i sends a blob that nobody can open."""
        size, member = packed_size(self.cast.params.q, self.cast.params.N) + OVERHEAD, self.people[i].member
        near = [j for j in self.s1.extra.graph.of(i) if j in self.s1.extra.members]
        keys = keys_digest(self.people[j].mask.public for j in near)
        made_for = self.s1.attempt, self.s1.extra.set_digest, keys
        self.tell_s1(MaskedSum(member.params.survey, i, member.credential, *made_for, bytes(size), ()))

    def submit(self, skip: Any = ()) -> tuple[Message, ...]:
        """Everybody of the set who is not skipped sends its masked vector; the deadline passes."""
        for i in self.s1.members:
            if i not in skip:
                self.send(i)
        return self.deadline()

    def recover(self, skip: Any = ()) -> tuple[Message, ...]:
        """Those asked for key shares send them, unless skipped; the deadline passes."""
        for i in range(self.s1.n):
            call = self.look(i)
            if isinstance(call, HelpCall) and i not in skip:
                self.people[i], body = masked_user.answer_help(self.people[i], call, self.entropy)
                self.tell_s1(body)
        return self.deadline()

    def by_s1(self, what: Message) -> Message:
        return sign(self.s1.key, Party.S1, what)


@pytest.fixture
def masked() -> Callable[..., MaskedStage]:
    """A masked survey, noise off, played until the roster is sealed, keys are shared, or key shares are asked for."""

    def make(until: str, n: int = 20, skip: Any = (), gone: Any = (3, 7), **terms: Any) -> MaskedStage:
        entropy, sealing = SeededStream(terms.pop("seed", 1)), terms.pop("sealing", None)
        mechanism = terms.pop("mechanism", None)
        if mechanism is None:
            mechanism = DPDS(items=n, users=n, p=1.0)
            terms = {"epsilon": 1.0, "delta": 1.0, "minimum": 3, "attempts": 3, "k": 8, "t": 3, **terms}
        play = MaskedStage(set_up(mechanism, Topology.MASKED, entropy, sealing, **terms), entropy)
        if until != "open":
            play.enrol(skip)
        if until in ("shared", "recovering"):
            play.share_keys()
        if until == "recovering":
            play.settle(play.submit(gone))
        return play

    return make


@dataclass
class TwoStageStage(Stage):
    """A two-stage survey, noise off: user i holds item i, is active and reports it. Messages travel as bytes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.params, self.people = self.cast.params, {}  # by place: some may be taken out

    def tell_s1(self, message: Message) -> tuple[Message, ...]:
        return super().tell_s1(decode(encode(message)))

    def tell_s2(self, message: Message) -> tuple[Message, ...]:
        return super().tell_s2(decode(encode(message)))

    def by_s1(self, what: Message) -> Message:
        return sign(self.s1.key, Party.S1, what)

    def enrol(self) -> list[user.Member]:
        joined = [user.join(self.params, each, self.entropy, self.s2.sealing) for each in self.cast.invitations]
        for each in joined:
            self.tell_s1(each.enrolment)
        self.settle(self.deadline())
        (roster,) = self.tell_s1(Inquiry(self.params.survey, self.cast.invitations[0].access))
        return sorted((user.believe(each, roster) for each in joined), key=lambda member: member.index)

    def draw(self, members: list[user.Member], sets: Any = None) -> None:
        """Everybody draws its response; with `sets`, these and the true bits."""
        for each in members:
            i = each.index
            if sets is None:
                self.people[i] = two_stage_user.indicate(each, i % self.params.N, self.entropy)
            else:
                bits = np.array([item == i for item in sets[i]], dtype=np.uint8)
                self.people[i] = two_stage_user.prepare(each, sets[i], bits, self.entropy)

    def indicate(self, skip: Any = ()) -> None:
        for i, person in self.people.items():
            if i not in skip:
                self.tell_s1(person.indicator)
        self.settle(self.deadline())

    def visit(self, i: int) -> Any:
        return decode(encode(super().visit(i)))

    def act(self, i: int) -> Any:
        """What user i does when it comes by; what S1 says to that."""
        call = self.visit(i)
        if isinstance(call, Assignment):
            self.people[i], body = two_stage_user.report(self.people[i], call, self.entropy)
        elif isinstance(call, SumCall):
            self.people[i], body = two_stage_user.add_up(self.people[i], call, self.entropy)
        else:
            return call
        return self.tell_s1(body)[0]

    def phase(self, skip: Any = ()) -> tuple[Message, ...]:
        """Everybody who is not skipped comes by; the deadline passes."""
        for i in list(self.people):
            if i not in skip:
                self.act(i)
        return self.deadline()

    def finish(self) -> None:
        """Phases in which everybody comes by, until S2 has spoken."""
        while self.s1.final is None:
            self.settle(self.phase())

    def holders(self) -> list[int]:
        return sorted(set(slots_of(self.s1, self.s1.attempt).holder.tolist()))

    def waiting_for(self, kind: type[Message]) -> list[int]:
        """Who would be given this to do."""
        return [i for i in self.people if isinstance(self.visit(i), kind)]

    def bad_sums(self) -> int:
        """An elected user sends sums that nobody can open, everybody else is honest; then claim and batch."""
        i = self.waiting_for(SumCall)[0]
        size, call = packed_size(self.params.q, 1) + OVERHEAD, self.visit(i)
        blobs = (bytes(size),) * len(call.tasks)
        made_for = call.attempt, two_stage_user.call_digest(call)
        self.tell_s1(SlotSums(self.params.survey, i, self.people[i].member.credential, *made_for, blobs))
        self.settle(self.phase())
        return i


@pytest.fixture
def two_stage() -> Callable[..., TwoStageStage]:
    """A two-stage survey played until it is `open`, responses are `drawn`, helpers `elected`, or bundles `shared`."""

    def make(until: str, mechanism: TSS | None = None, skip: Any = (), **terms: Any) -> TwoStageStage:
        entropy, sets = SeededStream(terms.pop("seed", 1)), terms.pop("sets", None)
        runs = mechanism or TSSPrime(items=8, users=8, p=1.0, alpha=3 / 8, gamma=1e12, phi=1)
        sealing = terms.pop("sealing", None) or IdealSealing()
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 3, "attempts": 4, **terms}
        play = TwoStageStage(set_up(runs, Topology.TWO_STAGE, entropy, sealing, **agreed), entropy)
        if until != "open":
            play.draw(play.enrol(), sets)
        if until in ("elected", "shared"):
            play.indicate(skip if until == "elected" else ())
        if until == "shared":
            play.phase(skip)
        return play

    return make

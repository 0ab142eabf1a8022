"""Surveys played in a world of ideal cryptography, and who sees what of them.

`ViewEnumerator.law` enumerates all runs of one story for given answers and gives the law of every party's view.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import as_field_mechanism
from faircount.mechanisms.two_stage import TSS, as_two_stage
from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    Topology,
    aggregate,
    coordinate,
    end_phase,
)
from faircount.protocol.roles.client import Client, ClientState, has_progressed
from faircount.protocol.simulator import set_up
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.user import ExplicitClient
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.user import MaskedClient
from faircount.protocol.topologies.two_servers import user as two_servers_user
from faircount.protocol.topologies.two_servers.user import TwoServersClient
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.user import TwoStageClient
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair
from faircount.protocol.wire.messages import Rejection, addressee
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import SEED_BYTES
from simulation.views import Chance, Eyes, Ideal, Law, Node, Scripted, every_run

Outcomes = list[tuple[tuple[int, ...], int]]
"""What a user may draw, and in which proportions."""


def responses(mechanism: FrequencyMechanism, answer: int) -> Outcomes:
    """The law of one user's vector; of TSS, its bits and then the items of its set."""
    hot = tuple(int(j == answer) for j in range(mechanism.N))
    if mechanism.collected is Collected.SETS:
        return _two_stage(as_two_stage(mechanism), answer)
    derived = as_field_mechanism(mechanism).derived_parameters
    if derived.D is not None:
        coins = list(product(range(2), repeat=mechanism.N * (derived.D // mechanism.n)))
        heads = [np.array(each).reshape(mechanism.N, -1).sum(axis=1) for each in coins]
        return [(tuple((hot + each).tolist()), 1) for each in heads]
    p = Fraction(1 if derived.p is None else derived.p)
    return [(hot, p.numerator), ((0,) * mechanism.N, p.denominator - p.numerator)]


def _two_stage(mechanism: TSS, answer: int) -> Outcomes:
    """Coin, then a set of M items: gamma times likelier if it contains the item of an active user."""
    p, gamma, found = (
        Fraction(mechanism.rate),
        Fraction(mechanism.gamma),
        list[tuple[tuple[int, ...], Fraction]](),
    )
    sets = list(combinations(range(mechanism.N), mechanism.reported_items))
    whole = sum(gamma if answer in each else Fraction(1) for each in sets)
    for each in sets:
        bits = tuple(int(j == answer) for j in each)
        found.append((bits + each, p * (gamma if answer in each else 1) / whole))
        found.append(((0,) * len(each) + each, (1 - p) / len(sets)))
    common = math.lcm(*(weight.denominator for _, weight in found))
    merged = Counter[
        tuple[int, ...]
    ]()  # without its own item in the set an active user does as an idle one
    for drawn, weight in found:
        merged[drawn] += int(weight * common)
    return list(merged.items())


def _pick(entropy: Entropy, outcomes: Outcomes) -> tuple[int, ...]:
    assert isinstance(entropy, Scripted)
    possible = [(drawn, weight) for drawn, weight in outcomes if weight]
    return possible[entropy.choose([weight for _, weight in possible])][0]


def _vector(params: SurveyParameters, answer: int, entropy: Entropy) -> Residues:
    drawn = np.array(_pick(entropy, responses(params.mechanism, answer)))
    return (drawn % params.q).astype(dtype_for(params.q))


class _Servers(TwoServersClient):
    def start(
        self, params: SurveyParameters, blank: ClientState, crypto: CryptoSuite, entropy: Entropy
    ) -> ClientState:
        vector = _vector(params, blank.answer, entropy)
        keys, seed = crypto.keypair(entropy), entropy.bytes(SEED_BYTES)
        made = two_servers_user.prepare(
            params, blank.invitation, vector, seed, keys, entropy, crypto
        )
        return ClientState(blank.invitation, blank.answer, made, (made.report,))


class _Explicit(ExplicitClient):
    def draw_response(
        self, device: ClientState, placed: Any, entropy: Entropy
    ) -> explicit_user.Sharer:
        params, vector = placed.params, _vector(placed.params, device.answer, entropy)
        shares = np.zeros((placed.n, params.N), dtype=dtype_for(params.q))
        for j in range(placed.n):
            if j != placed.index:
                shares[j] = [_pick(entropy, _elements(params.q))[0] for _ in range(params.N)]
        return explicit_user.prepare(placed, vector, shares, entropy)


class _Masked(MaskedClient):
    def draw_response(
        self, device: ClientState, placed: Any, entropy: Entropy
    ) -> masked_user.Masker:
        member = placed.member
        vector = _vector(member.params, device.answer, entropy)
        return masked_user.prepare(placed, vector, member.crypto.keypair(entropy), entropy)


class _TwoStage(TwoStageClient):
    def draw_response(
        self, device: ClientState, placed: Any, entropy: Entropy
    ) -> two_stage_user.Participant:
        mechanism = placed.params.mechanism
        drawn = _pick(entropy, responses(mechanism, device.answer))
        bits = np.array(drawn[: mechanism.reported_items], dtype=dtype_for(placed.params.q))
        return two_stage_user.prepare(
            placed, device.invitation, drawn[mechanism.reported_items :], bits, entropy
        )


def _elements(q: int) -> Outcomes:
    return [((value,), 1) for value in range(q)]


PLAYERS: Mapping[Topology, type[Client]] = {
    SERVERS: _Servers,
    EXPLICIT: _Explicit,
    MASKED: _Masked,
    TWO_STAGE: _TwoStage,
}

Story = Callable[["ViewEnumerator"], None]
"""What happens in a survey once it is open: who comes when, and what is leaked."""


@dataclass(frozen=True)
class Parties:
    """Whose views are looked at; users by number. A reader sees the result and nothing else."""

    reader: Law
    s1: Law
    s2: Law
    coalitions: Mapping[tuple[int, ...], Law]


class ViewEnumerator:
    """One survey of n users, to be played for every outcome of its randomness."""

    def __init__(self, mechanism: FrequencyMechanism, topology: Topology, **terms: Any) -> None:
        self.world = Ideal()
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 2, **terms}
        self.setup = set_up(mechanism, topology, SeededStream(1), self.world, **agreed)
        self.params, self.client = self.setup.params, PLAYERS[topology]()
        self.first = Node(self.setup.s1), Node(self.setup.s2)
        self.blank = {
            (i, answer): Node(ClientState(each, answer))
            for i, each in enumerate(self.setup.invitations)
            for answer in range(mechanism.N)
        }
        if Phase.ENROLLING in topology.phases:
            self._enrol()

    def _enrol(self) -> None:
        """Everybody is on the sealed roster: nothing was drawn yet that depends on an answer."""
        for answer in range(self.params.N):
            self.start(Chance([]), [answer] * self.params.n_max)
            for i in range(self.params.n_max):
                self.begin(i)
                self.exchange(i)
                self.blank[i, answer] = self.devices[i]
            self.deadline()
        self.first = self.s1, self.s2

    def law(
        self, answers: Sequence[int], story: Story, coalitions: Iterable[tuple[int, ...]] = ()
    ) -> Parties:
        """The exact law of every view for these answers."""
        wanted: list[Any] = [Party.CLIENT, Party.COORDINATOR, Party.AGGREGATOR, *coalitions]
        laws: list[Law] = [{} for _ in wanted]

        def run(chance: Chance) -> Hashable:
            self.start(chance, answers)
            story(self)
            return tuple(self.eyes(each).view(self.world) for each in wanted)

        for views, weight in every_run(run).items():
            for law, view in zip(laws, views, strict=True):  # type: ignore[call-overload]  # a tuple of views
                law[view] = law.get(view, Fraction(0)) + weight
        return Parties(laws[0], laws[1], laws[2], dict(zip(wanted[3:], laws[3:], strict=True)))

    def result(self) -> Message | None:
        """What was published, if anything was."""
        final = self.s1.state.final
        return None if final is None else final.signed

    def start(self, chance: Chance, answers: Sequence[int]) -> None:
        """A new run, from the sealed roster on."""
        self.world.begin(chance)
        self.s1, self.s2 = self.first
        self.devices = [self.blank[i, answer] for i, answer in enumerate(answers)]
        self.to_s1: list[
            Message
        ] = []  # of the opening nothing is noted: it is the same in every run
        self.to_s2: list[Message] = []
        self.to_users: list[list[Message]] = [[] for _ in answers]
        self.wire: list[Message] = []

    def eyes(self, who: Any) -> Eyes:
        """Everybody reads the result."""
        final = [each for each in (self.result(),) if each is not None]
        if isinstance(who, Party):
            keys = frozenset(
                (self.setup.s2.encryption_keys.public,) if who is Party.AGGREGATOR else ()
            )
            return Eyes(
                keys,
                [
                    *{Party.COORDINATOR: self.to_s1, Party.AGGREGATOR: self.to_s2}.get(who, []),
                    *final,
                ],
            )
        keys = frozenset(key for i in who for key in self.devices[i].fact("keys", _keys_in))
        received = [message for i in who for message in self.to_users[i]]
        return Eyes(keys, [*received, *final], frozenset(who))

    # --- what happens

    def begin(self, i: int) -> None:
        """User i draws what it draws at its first visit."""
        if self.devices[i].state.state is None:
            self.devices[i], _ = self.world.call(self._begin, self.devices[i], i)

    def _begin(self, device: ClientState, i: int) -> tuple[ClientState, None]:
        entropy = Scripted(self.world, self.params.q, i, "begin")
        return self.client.start(self.params, device, self.world, entropy), None

    def _hear(
        self, device: ClientState, i: int, asked: Message, answer: Message
    ) -> tuple[ClientState, None]:
        when = type(asked).__name__, type(answer).__name__, getattr(answer, "attempt", 0)
        entropy = Scripted(self.world, self.params.q, i, *when)
        return self.client.handle_response(device, asked, answer, entropy), None

    def exchange(self, i: int) -> bool:
        """User i says one thing; whether it may have more to say."""
        before = self.devices[i].state
        asked = self.devices[i].fact("asked", self.client.next_message)
        if asked is None:
            return False
        answer = self.tell_s1(asked)[0]
        self.to_users[i].append(answer)
        self.devices[i], _ = self.world.call(self._hear, self.devices[i], i, asked, answer)
        return has_progressed(before, self.devices[i].state)

    def visit(self, *users: int) -> None:
        """Users come and do all that there is to do."""
        for i in users:
            self.begin(i)
            while self.exchange(i):
                pass

    def prepare(self, i: int) -> Message:
        """User i does everything but send the body that it has made."""
        self.begin(i)
        while not self.devices[i].state.waiting:
            self.exchange(i)
        return self.devices[i].state.waiting[0]  # type: ignore[no-any-return]

    def tell_s1(self, message: Message) -> tuple[Message, ...]:
        """The coordinator receives a message."""
        self.to_s1.append(message)
        self.s1, out = self.world.call(coordinate, self.s1, message)
        self._post(out)
        return out  # type: ignore[no-any-return]

    def tell_s2(self, message: Message) -> None:
        """The aggregator receives a message."""
        self.to_s2.append(message)
        self.s2, out = self.world.call(aggregate, self.s2, message)
        self._post(out)

    def _post(self, out: Iterable[Message]) -> None:
        self.wire += [
            each
            for each in out
            if addressee(each) is not Party.CLIENT and not isinstance(each, Rejection)
        ]

    def deadline(self) -> None:
        """The coordinator ends the phase, and the servers talk until they have nothing to say."""
        self.s1, out = self.world.call(end_phase, self.s1)
        self._post(out)
        while self.wire:
            message = self.wire.pop(0)
            if addressee(message) is Party.AGGREGATOR:
                self.tell_s2(message)
            else:
                self.tell_s1(message)


def _keys_in(value: Any) -> list[bytes]:
    """Public halves of all keys inside a device."""
    if isinstance(value, KeyPair):
        return [value.public]
    if is_dataclass(value) and not isinstance(value, (type, SurveyParameters)):
        return [key for each in fields(value) for key in _keys_in(getattr(value, each.name))]
    return []

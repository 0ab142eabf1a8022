"""Surveys with ideal cryptography, and the exact distribution of what every party sees of them.

`ViewEnumerator.distribution` runs one scenario for all outcomes of its randomness, and returns the distribution of
the views for given answers. The clients are the real ones, except that they draw from a `Scripted`
source (`views`), which goes through all outcomes one after the other.
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
from faircount.core.questions import Sheet
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import as_field_mechanism, as_one_question
from faircount.mechanisms.two_stage import TSS, as_two_stage
from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    Topology,
    aggregator_step,
    coordinator_step,
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
from simulation.views import (
    Chance,
    Distribution,
    IdealFunctionality,
    Node,
    Observer,
    Scripted,
    every_run,
)

Outcomes = list[tuple[tuple[int, ...], int]]
"""What a client may draw, and in which proportions."""


# --- what a client draws --------------------------------------------------------------------------


def responses(mechanism: FrequencyMechanism, answer: int) -> Outcomes:
    """The distribution of one client's vector; for TSS, its bits and then the items of its set."""
    if mechanism.collected is Collected.SETS:
        return _two_stage_responses(as_two_stage(mechanism), answer)
    one_hot = tuple(int(j == answer) for j in range(mechanism.N))
    derived = as_field_mechanism(mechanism).derived_parameters
    if derived.D is not None:
        outcomes: Outcomes = []
        for coins in product(range(2), repeat=mechanism.N * (derived.D // mechanism.n)):
            heads = np.array(coins).reshape(mechanism.N, -1).sum(axis=1)
            outcomes.append((tuple((one_hot + heads).tolist()), 1))
        return outcomes
    p = Fraction(1 if derived.p is None else derived.p)
    return [(one_hot, p.numerator), ((0,) * mechanism.N, p.denominator - p.numerator)]


def _two_stage_responses(mechanism: TSS, answer: int) -> Outcomes:
    """A coin, then a set of M items.

    For an active client a set with its own item is gamma times as likely as one without it.
    """
    p = Fraction(mechanism.rate)
    gamma = Fraction(mechanism.gamma)
    sets = list(combinations(range(mechanism.N), mechanism.reported_items))
    total = sum(gamma if answer in items else Fraction(1) for items in sets)
    found = list[tuple[tuple[int, ...], Fraction]]()
    for items in sets:
        bits = tuple(int(j == answer) for j in items)
        found.append((bits + items, p * (gamma if answer in items else 1) / total))
        found.append(((0,) * len(items) + items, (1 - p) / len(sets)))
    common = math.lcm(*(weight.denominator for _, weight in found))
    # Without its own item in the set, an active client sends the same as an idle one.
    merged = Counter[tuple[int, ...]]()
    for outcome, weight in found:
        merged[outcome] += int(weight * common)
    return list(merged.items())


def _draw(entropy: Entropy, outcomes: Outcomes) -> tuple[int, ...]:
    assert isinstance(entropy, Scripted)
    possible = [(outcome, weight) for outcome, weight in outcomes if weight]
    chosen = entropy.choose([weight for _, weight in possible])
    return possible[chosen][0]


def _draw_vector(params: SurveyParameters, sheet: Sheet, entropy: Entropy) -> Residues:
    mechanism = as_one_question(params.mechanism)
    outcome = np.array(_draw(entropy, responses(mechanism, int(str(sheet[0])))))
    return (outcome % params.q).astype(dtype_for(params.q))


def _field_elements(q: int) -> Outcomes:
    return [((value,), 1) for value in range(q)]


# The methods below replace methods of the real clients. If one of these is renamed, the replacement
# would never be called: the client would draw from its real tables, and an enumeration would not
# end. `test_enumerated_clients_replace_methods_of_the_real_ones` notices that.


class _EnumeratedServersClient(TwoServersClient):
    def start(
        self, params: SurveyParameters, blank: ClientState, crypto: CryptoSuite, entropy: Entropy
    ) -> ClientState:
        vector = _draw_vector(params, blank.sheet, entropy)
        keys = crypto.keypair(entropy)
        seed = entropy.bytes(SEED_BYTES)
        state = two_servers_user.make_report(
            params, blank.invitation, vector, seed, keys, entropy, crypto
        )
        return ClientState(blank.invitation, blank.sheet, state, (state.report,))


class _EnumeratedExplicitClient(ExplicitClient):
    def draw_response(
        self, client: ClientState, placed: Any, entropy: Entropy
    ) -> explicit_user.Sharer:
        params = placed.params
        vector = _draw_vector(params, client.sheet, entropy)
        elements = _field_elements(params.q)
        shares = np.zeros((placed.n, params.N), dtype=dtype_for(params.q))
        for j in range(placed.n):
            if j != placed.index:
                shares[j] = [_draw(entropy, elements)[0] for _ in range(params.N)]
        return explicit_user.make_report(placed, vector, shares, entropy)


class _EnumeratedMaskedClient(MaskedClient):
    def draw_response(
        self, client: ClientState, placed: Any, entropy: Entropy
    ) -> masked_user.Masker:
        member = placed.member
        vector = _draw_vector(member.params, client.sheet, entropy)
        return masked_user.make_report(placed, vector, member.crypto.keypair(entropy), entropy)


class _EnumeratedTwoStageClient(TwoStageClient):
    def draw_response(
        self, client: ClientState, placed: Any, entropy: Entropy
    ) -> two_stage_user.Participant:
        mechanism = placed.params.mechanism
        outcome = _draw(entropy, responses(mechanism, int(str(client.sheet[0]))))
        size = mechanism.reported_items
        bits = np.array(outcome[:size], dtype=dtype_for(placed.params.q))
        return two_stage_user.make_report(placed, client.invitation, outcome[size:], bits, entropy)


CLIENTS: Mapping[Topology, type[Client]] = {
    SERVERS: _EnumeratedServersClient,
    EXPLICIT: _EnumeratedExplicitClient,
    MASKED: _EnumeratedMaskedClient,
    TWO_STAGE: _EnumeratedTwoStageClient,
}
"""For every topology the client that goes through everything it may draw."""


# --- the enumeration ------------------------------------------------------------------------------

Scenario = Callable[["ViewEnumerator"], None]
"""What happens in a survey once it is open: who comes when, and what is leaked."""


@dataclass(frozen=True)
class Views:
    """The distribution of each party's view; clients by number. A reader sees the result only."""

    reader: Distribution
    s1: Distribution
    s2: Distribution
    coalitions: Mapping[tuple[int, ...], Distribution]


class ViewEnumerator:
    """One survey of n participants, to be run for every outcome of its randomness."""

    def __init__(self, mechanism: FrequencyMechanism, topology: Topology, **terms: Any) -> None:
        self.ideal = IdealFunctionality()
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 2, **terms}
        self.setup = set_up(mechanism, topology, SeededStream(1), self.ideal, **agreed)
        self.params = self.setup.params
        self.client = CLIENTS[topology]()
        self.first_servers = Node(self.setup.s1), Node(self.setup.s2)
        self.first_devices = dict[tuple[int, int], Node]()
        for i, invitation in enumerate(self.setup.invitations):
            for answer in range(mechanism.N):
                self.first_devices[i, answer] = Node(ClientState(invitation, (answer,)))
        if Phase.ENROLLING in topology.phases:
            self._enrol()

    def _enrol(self) -> None:
        """Confirm a roster of everybody: so far nothing was drawn that depends on an answer."""
        for answer in range(self.params.N):
            self.start(Chance([]), [answer] * self.params.n_max)
            for i in range(self.params.n_max):
                self.begin(i)
                self.exchange(i)
                self.first_devices[i, answer] = self.devices[i]
            self.deadline()
        self.first_servers = self.s1, self.s2

    def distribution(
        self, answers: Sequence[int], scenario: Scenario, coalitions: Iterable[tuple[int, ...]] = ()
    ) -> Views:
        """The exact distribution of every view for these answers."""
        parties: list[Any] = [Party.CLIENT, Party.COORDINATOR, Party.AGGREGATOR, *coalitions]
        # Views are long tuples: each is hashed once here, and counted by its number.
        numbers: list[dict[Hashable, int]] = [{} for _ in parties]

        def run(chance: Chance) -> Hashable:
            self.start(chance, answers)
            scenario(self)
            found = list[int]()
            for party, known in zip(parties, numbers, strict=True):
                view = self.observer(party).view(self.ideal)
                found.append(known.setdefault(view, len(known)))
            return tuple(found)

        joint = every_run(run)
        scale = math.lcm(*(weight.denominator for weight in joint.values()))
        weights = [[0] * len(known) for known in numbers]
        for found, weight in joint.items():
            assert isinstance(found, tuple)
            scaled = weight.numerator * (scale // weight.denominator)
            for sums, number in zip(weights, found, strict=True):
                sums[number] += scaled
        # A dictionary has its keys in the order in which they were numbered.
        distributions: list[Distribution] = []
        for known, sums in zip(numbers, weights, strict=True):
            probabilities = (Fraction(number, scale) for number in sums)
            distributions.append(dict(zip(known, probabilities, strict=True)))
        return Views(
            distributions[0],
            distributions[1],
            distributions[2],
            dict(zip(parties[3:], distributions[3:], strict=True)),
        )

    def result(self) -> Message | None:
        """What was published, if anything was."""
        final = self.s1.state.final
        return None if final is None else final.signed

    def start(self, chance: Chance, answers: Sequence[int]) -> None:
        """A new run, from the confirmed roster on.

        Earlier messages are not recorded: they are the same in every run.
        """
        self.ideal.begin(chance)
        self.s1, self.s2 = self.first_servers
        self.devices = [self.first_devices[i, answer] for i, answer in enumerate(answers)]
        self.to_s1: list[Message] = []
        self.to_s2: list[Message] = []
        self.to_users: list[list[Message]] = [[] for _ in answers]
        self.in_transit: list[Message] = []

    def observer(self, who: Any) -> Observer:
        """What a party, or a coalition of clients, has; everybody reads the result."""
        result = self.result()
        published = [] if result is None else [result]
        if who is Party.COORDINATOR:
            return Observer(frozenset(), [*self.to_s1, *published])
        if who is Party.AGGREGATOR:
            keys = frozenset((self.setup.s2.encryption_keys.public,))
            return Observer(keys, [*self.to_s2, *published])
        if who is Party.CLIENT:
            return Observer(frozenset(), published)
        own_keys = set[bytes]()
        received = list[Message]()
        for i in who:
            own_keys.update(self.devices[i].fact("keys", _keys_in))
            received.extend(self.to_users[i])
        return Observer(frozenset(own_keys), [*received, *published], frozenset(who))

    # --- what happens

    def begin(self, i: int) -> None:
        """Client i draws what it draws at its first visit."""
        if self.devices[i].state.state is None:
            self.devices[i], _ = self.ideal.call(self._begin, self.devices[i], i)

    def _begin(self, device: ClientState, i: int) -> tuple[ClientState, None]:
        entropy = Scripted(self.ideal, self.params.q, i, "begin")
        return self.client.start(self.params, device, self.ideal, entropy), None

    def _handle_response(
        self, device: ClientState, i: int, request: Message, response: Message
    ) -> tuple[ClientState, None]:
        when = type(request).__name__, type(response).__name__, getattr(response, "attempt", 0)
        entropy = Scripted(self.ideal, self.params.q, i, *when)
        return self.client.handle_response(device, request, response, entropy), None

    def exchange(self, i: int) -> bool:
        """Client i sends one message; whether it may have more to send."""
        before = self.devices[i].state
        request = self.devices[i].fact("request", self.client.next_message)
        if request is None:
            return False
        response = self.send_to_s1(request)[0]
        self.to_users[i].append(response)
        self.devices[i], _ = self.ideal.call(
            self._handle_response, self.devices[i], i, request, response
        )
        return has_progressed(before, self.devices[i].state)

    def visit(self, *users: int) -> None:
        """Clients come and do all that there is to do."""
        for i in users:
            self.begin(i)
            while self.exchange(i):
                pass

    def advance_to_message(self, i: int) -> Message:
        """Client i does everything except to send the message that it has made."""
        self.begin(i)
        while not self.devices[i].state.waiting:
            self.exchange(i)
        return self.devices[i].state.waiting[0]  # type: ignore[no-any-return]

    def send_to_s1(self, message: Message) -> tuple[Message, ...]:
        """The coordinator receives a message."""
        self.to_s1.append(message)
        self.s1, out = self.ideal.call(coordinator_step, self.s1, message)
        self._post(out)
        return out  # type: ignore[no-any-return]

    def send_to_s2(self, message: Message) -> None:
        """The aggregator receives a message."""
        self.to_s2.append(message)
        self.s2, out = self.ideal.call(aggregator_step, self.s2, message)
        self._post(out)

    def _post(self, out: Iterable[Message]) -> None:
        """Put messages for the other server in transit."""
        for message in out:
            if addressee(message) is not Party.CLIENT and not isinstance(message, Rejection):
                self.in_transit.append(message)

    def deadline(self) -> None:
        """The coordinator ends the phase, and the servers exchange messages until none is left."""
        self.s1, out = self.ideal.call(end_phase, self.s1)
        self._post(out)
        while self.in_transit:
            message = self.in_transit.pop(0)
            if addressee(message) is Party.AGGREGATOR:
                self.send_to_s2(message)
            else:
                self.send_to_s1(message)


def _keys_in(value: Any) -> list[bytes]:
    """Public halves of all keys inside a device."""
    if isinstance(value, KeyPair):
        return [value.public]
    found = list[bytes]()
    if is_dataclass(value) and not isinstance(value, (type, SurveyParameters)):
        for part in fields(value):
            found += _keys_in(getattr(value, part.name))
    return found

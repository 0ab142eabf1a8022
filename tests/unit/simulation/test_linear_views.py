"""What honest and dishonest servers, and colluding clients, learn in `masked` and `explicit`: exactly.

Noise is off and cryptography is ideal. A party may learn one sum over one set of at least the
minimum, and nothing else.
"""

from dataclasses import dataclass
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from faircount.mechanisms.sampling import DPDS
from faircount.protocol import EXPLICIT, MASKED, Topology, end_phase
from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.peers.one_sum import PeersCoordinator
from faircount.protocol.roles.coordinator import unanswered_messages
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.topologies.masked.messages import MaskedSum, ReadyForTotal
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import bitmap, entry_leaves, merkle_root
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import ChainLink, sign
from faircount.sharing.packing import pack
from simulation.linear_views import eliminate_randomness, find_learned_sums, reduce_rows
from simulation.view_enumeration import ViewEnumerator

pytestmark = pytest.mark.usefixtures("ideal_signatures")

USERS = 4
MINIMUM = 3
PEERS = (MASKED, EXPLICIT)


@dataclass(frozen=True, kw_only=True)
class Tiny(DPDS):
    """Everybody is counted, in a field of five elements, in which no sum of four wraps."""

    @property
    def modulus(self) -> int:
        return 5

    def decode(self, total, included):
        """Any total: that one out of range ends a survey reveals less than the total itself."""
        return np.asarray(total, dtype=np.int64)


def make_enumerator(topology: Topology) -> ViewEnumerator:
    terms = {"k": USERS - 1, "t": 2} if topology is MASKED else {}
    mechanism = Tiny(items=2, users=USERS, p=1.0, insiders=0)
    return ViewEnumerator(mechanism, topology, minimum=MINIMUM, attempts=3, **terms)


def run_until_shared(enumerator: ViewEnumerator) -> None:
    enumerator.visit(*range(USERS))
    enumerator.deadline()


def run_all(enumerator: ViewEnumerator) -> None:
    run_until_shared(enumerator)
    enumerator.visit(*range(USERS))
    enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.PUBLISHED


def run_with_late_vector(enumerator: ViewEnumerator):
    """The last client's vector arrives after the deadline, so it is dropped. Returns the vector."""
    *others, late = range(USERS)
    run_until_shared(enumerator)
    enumerator.visit(*others)
    message = enumerator.advance_to_message(late)
    enumerator.deadline()
    enumerator.send_to_s1(message)
    # `explicit` adds up once more, `masked` recovers the key.
    for _ in range(2):
        enumerator.visit(*others)
        enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.PUBLISHED
    return message


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_honest_servers_and_clients_learn_the_sum_alone(topology) -> None:
    enumerator = make_enumerator(topology)
    everyone = [[1] * USERS]
    both_records = [Party.COORDINATOR, Party.AGGREGATOR]  # one operator gets them later
    for who in ([Party.COORDINATOR], [Party.AGGREGATOR], both_records):
        assert find_learned_sums(enumerator, run_all, who) == everyone
    # A client knows its own answer besides.
    for who in ([(1,)], [*both_records, (1,)]):
        assert find_learned_sums(enumerator, run_all, who) == [[1, 0, 1, 1], [0, 1, 0, 0]]


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_a_dropped_participant_leaves_no_trace(topology) -> None:
    enumerator = make_enumerator(topology)
    for who in ([Party.COORDINATOR], [Party.AGGREGATOR], [(0,), (1,)]):
        assert all(
            row[USERS - 1] == 0 for row in find_learned_sums(enumerator, run_with_late_vector, who)
        )
    assert find_learned_sums(enumerator, run_with_late_vector, [Party.AGGREGATOR]) == [[1, 1, 1, 0]]


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_a_late_vector_that_is_forwarded_is_found(topology) -> None:
    """A planted hole: the coordinator sends the aggregator a vector that is in no sum.

    The aggregator has its seed, and the masks around it.
    """

    def forward_late_vector(enumerator: ViewEnumerator) -> None:
        late = run_with_late_vector(enumerator)
        key = enumerator.s1.state.key
        sums = [message for message in enumerator.to_s1 if isinstance(message, PeerSum)]
        others = [message for message in sums if message.set_digest == late.set_digest]
        for message in (late, *others):
            total = AggregateTotal(enumerator.params.survey, bytes(32), message.vector)
            enumerator.send_to_s2(sign(key, Party.COORDINATOR, total))
            # The message itself has the encrypted seed.
            enumerator.send_to_s2(message)

    enumerator = make_enumerator(topology)
    assert len(find_learned_sums(enumerator, forward_late_vector, [Party.AGGREGATOR])) > 1


# --- dishonest servers ----------------------------------------------------------------------------


def accepted_members(enumerator: ViewEnumerator, bits: int) -> AcceptedMembers:
    """A set as the aggregator would state it, for the coordinator's manifest."""
    s1 = enumerator.s1.state
    chosen = [i for i in range(USERS) if bits >> i & 1]
    entries = [s1.roster[i] for i in chosen]
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    return AcceptedMembers(
        s1.params.survey, s1.manifest_hash, s1.manifest.set_digest, bitmap(chosen, USERS), root
    )


def sign_for_s2(enumerator: ViewEnumerator, message):
    return sign(enumerator.s2.state.key, Party.AGGREGATOR, message, ChainLink(0, bytes(32)))


def dishonest_s2(first: int, second: int):
    """The aggregator signs true reservations, but two false sets in every attempt.

    It reads all that the coordinator answers, has dropped members' neighbours asked for unmask
    shares, and always states that it is ready for the total.
    """

    def scenario(enumerator: ViewEnumerator) -> None:
        run_until_shared(enumerator)
        for _ in range(3):
            enumerator.visit(*range(USERS))
            enumerator.s1, out = enumerator.ideal.call(end_phase, enumerator.s1)
            for message in out:
                enumerator.send_to_s2(message)
            answers = enumerator.in_transit
            enumerator.in_transit = []
            # The reservation is delivered, and the true set kept back.
            for message in answers[:1]:
                enumerator.send_to_s1(message)
            for bits in (first, second):
                if enumerator.s1.state.manifest is not None:
                    enumerator.send_to_s1(
                        sign_for_s2(enumerator, accepted_members(enumerator, bits))
                    )
            enumerator.to_s2 += enumerator.in_transit
            enumerator.in_transit = []
            ask_for_unmask_shares(enumerator)

    return scenario


def ask_for_unmask_shares(enumerator: ViewEnumerator) -> None:
    """Clients send unmask shares; the aggregator states that it is ready, whatever it got."""
    if enumerator.s1.state.phase is not Phase.UNMASKING:
        return
    enumerator.visit(*range(USERS))
    enumerator.s1, out = enumerator.ideal.call(end_phase, enumerator.s1)
    enumerator.to_s2 += out
    ready = ReadyForTotal(enumerator.params.survey, enumerator.s1.state.manifest_hash)
    enumerator.send_to_s1(sign_for_s2(enumerator, ready))
    enumerator.to_s2 += enumerator.in_transit
    enumerator.in_transit = []


SETS = (0b0001, 0b0011, 0b0111, 0b1011, 0b1101, 0b1110, 0b1111)


@pytest.mark.parametrize("topology", PEERS, ids=str)
@pytest.mark.parametrize(
    ("first", "second"), [*((bits, 15) for bits in SETS), (7, 11), (7, 1), (15, 7), (14, 7)]
)
def test_a_dishonest_s2_learns_one_sum_over_at_least_the_minimum(topology, first, second) -> None:
    """Whom it calls dropped, and whether it states one set or two: it learns one sum or nothing."""
    enumerator = make_enumerator(topology)
    found = find_learned_sums(enumerator, dishonest_s2(first, second), [Party.AGGREGATOR])
    assert len(found) <= 1
    assert all(sum(row) >= MINIMUM and set(row) <= {0, 1} for row in found)


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_without_its_checks_s1_lets_a_dishonest_s2_read_an_answer(topology, monkeypatch) -> None:
    """A planted hole: whatever set the aggregator names, it also gets the sum of the manifest."""
    on_accepted = PeersCoordinator.on_accepted
    kind = MaskedSum if topology is MASKED else PeerSum

    def send_total_too(rules, s, rows, stated, statement):
        vectors = []
        if s.accepted is None:
            places = rules.manifest_places(s)
            vectors = [rows.uploads[kind.tag, stated.set_digest, i].vector for i in places]
        packed = pack(sum_packed(vectors, s.params.q, s.params.N), s.params.q)
        total = AggregateTotal(s.params.survey, bytes(32), packed)
        after, out = on_accepted(rules, s, rows, stated, statement)
        return after, (
            sign(s.key, Party.COORDINATOR, total),
            *out,
            *unanswered_messages(after, rows),
        )

    monkeypatch.setattr(PeersCoordinator, "on_accepted", send_total_too)
    assert (
        len(
            find_learned_sums(
                make_enumerator(topology), dishonest_s2(0b0111, 0b0111), [Party.AGGREGATOR]
            )
        )
        > 1
    )


def dishonest_s1(manifests):
    """The coordinator fixes one manifest after the other, with true seeds, and sends any total."""

    def scenario(enumerator: ViewEnumerator) -> None:
        run_until_shared(enumerator)
        for bits in manifests:
            enumerator.visit(*(i for i in range(USERS) if bits >> i & 1))
            before = enumerator.s1
            enumerator.s1, out = enumerator.ideal.call(end_phase, enumerator.s1)
            for message in out:
                enumerator.send_to_s2(message)
            for _ in range(2):
                stated = enumerator.s2.state.last(AcceptedMembers)
                if stated is not None:
                    accepted_hash = sha256(stated.signed.payload).digest()
                    zeros = pack(sum_packed((), 5, 2), 5)
                    total = AggregateTotal(enumerator.params.survey, accepted_hash, zeros)
                    enumerator.send_to_s2(sign(before.state.key, Party.COORDINATOR, total))
            while enumerator.in_transit:
                enumerator.send_to_s1(enumerator.in_transit.pop(0))

    return scenario


@pytest.mark.parametrize("topology", PEERS, ids=str)
@pytest.mark.parametrize("manifests", [*product((7, 15), repeat=2), (15, 7, 7)])
def test_a_dishonest_s1_learns_one_sum_over_at_least_the_minimum(topology, manifests) -> None:
    enumerator = make_enumerator(topology)
    found = find_learned_sums(enumerator, dishonest_s1(manifests), [Party.COORDINATOR])
    assert len(found) <= 1
    assert all(len({*row} - {0}) == 1 and sum(map(bool, row)) >= MINIMUM for row in found)


def test_the_algebra_finds_what_follows_and_no_more() -> None:
    """Two vectors under one mask reveal their difference, a third under its own mask nothing."""
    a = np.eye(3, dtype=np.int64)
    b = np.array([[1, 0], [1, 0], [0, 1]])
    assert reduce_rows(eliminate_randomness(b, a, 7), 7) == [[1, 6, 0]]

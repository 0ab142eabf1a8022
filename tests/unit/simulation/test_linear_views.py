"""What honest and lying servers, and colluding users, learn in surveys of users who mask for each other: exactly.

Noise is off and cryptography ideal: a party may learn one sum over one set of at least the minimum, and nothing else.
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
from faircount.protocol.roles.coordinator import messages_now
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.topologies.masked.messages import MaskedSum, ReadyForTotal
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import Link, sign
from faircount.sharing.packing import pack
from simulation.linear_views import _reduced, _without_randomness, learned
from simulation.views_play import ViewEnumerator

pytestmark = pytest.mark.usefixtures("ideal_signatures")

USERS, MINIMUM = 4, 3
PEERS = (MASKED, EXPLICIT)


@dataclass(frozen=True, kw_only=True)
class Tiny(DPDS):
    """Everybody is counted, in a field of five elements: no sum of four wraps, and every element is one."""

    @property
    def modulus(self) -> int:
        return 5

    def decode(self, total, included):
        """Whatever it is: that a sum out of its range ends a survey says less than the sum."""
        return np.asarray(total, dtype=np.int64)


def theatre(topology: Topology) -> ViewEnumerator:
    terms = {"k": USERS - 1, "t": 2} if topology is MASKED else {}
    mechanism = Tiny(items=2, users=USERS, p=1.0, insiders=0)
    return ViewEnumerator(mechanism, topology, minimum=MINIMUM, attempts=3, **terms)


def places(play: ViewEnumerator) -> list[int]:
    """Users by their place in the roster."""
    return sorted(range(USERS), key=lambda i: play.setup.invitations[i].user)


def over(play: ViewEnumerator, chosen) -> list[int]:
    """The sum over the users at these places, as a row."""
    users = {places(play)[at] for at in chosen}
    return [int(i in users) for i in range(USERS)]


def shared(play: ViewEnumerator) -> None:
    play.visit(*range(USERS))
    play.deadline()


def everybody(play: ViewEnumerator) -> None:
    shared(play)
    play.visit(*range(USERS))
    play.deadline()
    assert play.s1.state.phase is Phase.PUBLISHED


def comes_late(play: ViewEnumerator):
    """The last user's vector arrives after the deadline: it is dropped. Returns the body."""
    *others, late = range(USERS)
    shared(play)
    play.visit(*others)
    body = play.prepare(late)
    play.deadline()
    play.tell_s1(body)
    for _ in range(2):  # `explicit` adds up once more, `masked` recovers the key
        play.visit(*others)
        play.deadline()
    assert play.s1.state.phase is Phase.PUBLISHED
    return body


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_honest_servers_and_users_learn_the_sum_alone(topology) -> None:
    play = theatre(topology)
    everyone = [[1] * USERS]
    for who in (
        [Party.COORDINATOR],
        [Party.AGGREGATOR],
        [Party.COORDINATOR, Party.AGGREGATOR],
    ):  # the last: their records in one hand, later
        assert learned(play, everybody, who) == everyone
    assert learned(play, everybody, [(1,)]) == [[1, 0, 1, 1], [0, 1, 0, 0]]
    assert learned(play, everybody, [Party.COORDINATOR, Party.AGGREGATOR, (1,)]) == [
        [1, 0, 1, 1],
        [0, 1, 0, 0],
    ]


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_a_dropped_user_leaves_no_trace(topology) -> None:
    play = theatre(topology)
    for who in ([Party.COORDINATOR], [Party.AGGREGATOR], [(0,), (1,)]):
        assert all(row[USERS - 1] == 0 for row in learned(play, comes_late, who))
    assert learned(play, comes_late, [Party.AGGREGATOR]) == [[1, 1, 1, 0]]


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_a_late_vector_that_is_forwarded_is_found(topology) -> None:
    """The planted hole: the coordinator hands the aggregator a vector that is in no sum; the aggregator has its seed, and the masks around it."""

    def forwarded(play: ViewEnumerator) -> None:
        late, s1 = comes_late(play), play.s1.state
        others = [
            each
            for each in play.to_s1
            if isinstance(each, PeerSum) and each.set_digest == late.set_digest
        ]
        for body in (late, *others):
            play.tell_s2(
                sign(
                    s1.key,
                    Party.COORDINATOR,
                    AggregateTotal(play.params.survey, bytes(32), body.vector),
                )
            )
            play.tell_s2(body)  # with its sealed seed

    assert len(learned(theatre(topology), forwarded, [Party.AGGREGATOR])) > 1


# --- lying servers ------------------------------------------------------------------------------------------------


def named(play: ViewEnumerator, bits: int) -> AcceptedMembers:
    """A set as the aggregator would name it, for the claim that the coordinator has made."""
    chosen, s1 = [i for i in range(USERS) if bits >> i & 1], play.s1.state
    root = merkle_root(roster_leaves((s1.roster[i].user, s1.roster[i].public_key) for i in chosen))
    return AcceptedMembers(
        s1.params.survey, s1.manifest_hash, s1.manifest.set_digest, bitmap(chosen, USERS), root
    )


def said_by_s2(play: ViewEnumerator, says):
    return sign(play.s2.state.key, Party.AGGREGATOR, says, Link(0, bytes(32)))


def lying_s2(first: int, second: int):
    """The aggregator gives true receipts, but says that the seeds of these users open, and then of others, in every attempt.

    It reads all that the coordinator answers; it asks helpers itself, which the coordinator does for it, and says that it is ready.
    """

    def story(play: ViewEnumerator) -> None:
        shared(play)
        for _ in range(3):
            play.visit(*range(USERS))
            play.s1, out = play.world.call(end_phase, play.s1)
            for message in out:
                play.tell_s2(message)
            heard, play.wire = play.wire, []
            for message in heard[:1]:  # the receipt; the truth about the seeds is kept back
                play.tell_s1(message)
            for bits in (first, second):
                if play.s1.state.manifest is not None:
                    play.tell_s1(said_by_s2(play, named(play, bits)))
            play.to_s2 += play.wire
            play.wire = []
            _helped(play)

    return story


def _helped(play: ViewEnumerator) -> None:
    """Users are asked for help; the aggregator says that it is ready, whatever it got."""
    if play.s1.state.phase is not Phase.UNMASKING:
        return
    play.visit(*range(USERS))
    play.s1, out = play.world.call(end_phase, play.s1)
    play.to_s2 += out
    play.tell_s1(said_by_s2(play, ReadyForTotal(play.params.survey, play.s1.state.manifest_hash)))
    play.to_s2 += play.wire
    play.wire = []


SETS = (0b0001, 0b0011, 0b0111, 0b1011, 0b1101, 0b1110, 0b1111)


@pytest.mark.parametrize("topology", PEERS, ids=str)
@pytest.mark.parametrize(
    ("first", "second"), [*((each, 15) for each in SETS), (7, 11), (7, 1), (15, 7), (14, 7)]
)
def test_a_lying_s2_learns_one_sum_over_at_least_the_minimum(topology, first, second) -> None:
    """False bad seeds, a false set, two sets, and the keys of users whom it calls dropped: one sum, or nothing."""
    play = theatre(topology)
    found = learned(play, lying_s2(first, second), [Party.AGGREGATOR])
    assert len(found) <= 1
    assert all(sum(row) >= MINIMUM and set(row) <= {0, 1} for row in found)


@pytest.mark.parametrize("topology", PEERS, ids=str)
def test_without_its_checks_s1_lets_a_lying_s2_read_an_answer(topology, monkeypatch) -> None:
    """The planted hole: the coordinator adds up all that it has claimed once the aggregator names any set, and then goes on as it should."""
    told, kind = PeersCoordinator.on_included, MaskedSum if topology is MASKED else PeerSum

    def obliging(own, s, rows, stated, statement):
        claimed = own.claimed_places(s)
        vectors = (
            [rows.uploads[kind.tag, stated.set_digest, i].vector for i in claimed]
            if s.accepted is None
            else []
        )
        total = pack(sum_packed(vectors, s.params.q, s.params.N), s.params.q)
        after, out = told(own, s, rows, stated, statement)
        return after, (
            sign(s.key, Party.COORDINATOR, AggregateTotal(s.params.survey, bytes(32), total)),
            *out,
            *messages_now(after, rows),
        )

    monkeypatch.setattr(PeersCoordinator, "on_included", obliging)
    assert len(learned(theatre(topology), lying_s2(0b0111, 0b0111), [Party.AGGREGATOR])) > 1


def lying_s1(manifests):
    """The coordinator claims one set after the other, each with true seeds, and sends the aggregator what it likes as its sum."""

    def story(play: ViewEnumerator) -> None:
        shared(play)
        for bits in manifests:
            play.visit(*(i for i in range(USERS) if bits >> i & 1))
            before = play.s1
            play.s1, out = play.world.call(end_phase, play.s1)
            for message in out:
                play.tell_s2(message)
            for _ in range(2):
                stated = play.s2.state.last(AcceptedMembers)
                if stated is not None:
                    zeros = AggregateTotal(
                        play.params.survey, _hash(stated), pack(sum_packed((), 5, 2), 5)
                    )
                    play.tell_s2(sign(before.state.key, Party.COORDINATOR, zeros))
            while play.wire:
                play.tell_s1(play.wire.pop(0))

    return story


def _hash(stated) -> bytes:
    return sha256(stated.signed.payload).digest()


@pytest.mark.parametrize("topology", PEERS, ids=str)
@pytest.mark.parametrize("manifests", [*product((7, 15), repeat=2), (15, 7, 7)])
def test_a_lying_s1_learns_one_sum_over_at_least_the_minimum(topology, manifests) -> None:
    play = theatre(topology)
    found = learned(play, lying_s1(manifests), [Party.COORDINATOR])
    assert len(found) <= 1
    assert all(len({*row} - {0}) == 1 and sum(map(bool, row)) >= MINIMUM for row in found)


def test_the_algebra_finds_what_follows_and_no_more() -> None:
    """Two users under one common mask show their difference; a third under a mask of its own shows nothing."""
    a, b = np.eye(3, dtype=np.int64), np.array([[1, 0], [1, 0], [0, 1]])
    assert _reduced(_without_randomness(b, a, 7), 7) == [[1, 6, 0]]

"""What the coordinator, the aggregator and colluding users see, exactly: all runs of tiny surveys, through the real roles.

Cryptography and masks are ideal. The law of a view may depend on the answers only as the stated guarantee allows; a
user who was dropped must leave no trace at all. Signatures are replaced by hashes: they hide nothing.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import permutations, product

import numpy as np
import pytest

from faircount.accounting.guarantee import S1, S2, insiders
from faircount.accounting.two_stage import sets_delta
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import SERVERS, TWO_STAGE, Topology, end_phase
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import coordinator as servers_coordinator
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.topologies.two_stage import announcing, relay
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import ListProof
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.messages import ShareBatch
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import Link, sign
from faircount.sharing.packing import pack
from simulation.views import Ideal, every_run, excess, uniform
from simulation.views_play import ViewEnumerator, responses

pytestmark = pytest.mark.usefixtures("ideal_signatures")

EPSILONS = (0.0, 0.3, 1.0)
SAME = 1e-12


@dataclass(frozen=True, kw_only=True)
class Tiny(DPDS):
    """DPDS in a field so small that everything can be enumerated; a sum that wraps only says less."""

    q: int = 2

    @property
    def modulus(self) -> int:
        return self.q


# --- stories ------------------------------------------------------------------------------------------------------


def everybody(play: ViewEnumerator) -> None:
    """Nobody fails."""
    phases = 1 if play.params.topology is SERVERS else 3
    for _ in range(phases):
        play.visit(*range(play.params.n_max))
        play.deadline()
    assert play.s1.state.phase is Phase.PUBLISHED


def comes_late(play: ViewEnumerator):
    """The last user's body arrives after the deadline: it is dropped. Returns the body."""
    *others, late = range(play.params.n_max)
    if play.params.topology is not SERVERS:
        play.visit(*others, late)
        play.deadline()
    play.visit(*others)
    body = play.prepare(late)
    play.deadline()
    play.tell_s1(body)
    helpers = (late,) if play.params.topology is TWO_STAGE else ()  # no reporter, but elected
    for _ in range(2):  # two-stage adds up once more
        play.visit(*others, *helpers)
        play.deadline()
    assert play.s1.state.phase is Phase.PUBLISHED
    return body


def is_forwarded(play: ViewEnumerator) -> None:
    """The planted hole: the coordinator sends the aggregator what came too late, and what belongs to it."""
    late, s1, params = comes_late(play), play.s1.state, play.params
    play.tell_s2(
        sign(
            s1.key,
            Party.COORDINATOR,
            ShareBatch(params.survey, s1.manifest_hash, (late.encrypted_share,)),
        )
    )
    # The survey is over, so only hashes of the others are left.
    left = [s1.view.first_messages.get(user) for user in s1.view.first_messages]
    shares = [body.share for body in left if body is not None] + [late.share]
    total = pack(sum_packed(shares, params.q, params.N), params.q)
    play.tell_s2(sign(s1.key, Party.COORDINATOR, AggregateShare(params.survey, bytes(32), total)))


def theatre(topology: Topology, mechanism, **terms) -> ViewEnumerator:
    return ViewEnumerator(mechanism, topology, **{"attempts": 2, **terms})


# --- everybody comes ----------------------------------------------------------------------------------------------

SIZES = [(SERVERS, 3)]
"""Topologies and moduli. Where users mask for each other there is too much to enumerate: see test_linear_views.py."""


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_views_depend_on_the_answers_only_as_the_guarantee_allows(topology, q) -> None:
    """Sampling, every item with another holder: users 1 and 2 hold one item each, user 0 either. phi = 1."""
    mechanism = Tiny(items=2, users=3, p=0.25, floor=1, q=q)
    play = theatre(topology, mechanism)
    one, other = (play.law((item, 0, 1), everybody, [(1,), (2,)]) for item in (0, 1))
    for epsilon in EPSILONS:
        allowed = {
            who: mechanism.guarantee(epsilon=epsilon, adversary=who).delta
            for who in (S1, S2, insiders(1))
        }
        assert excess(one.s1, other.s1, epsilon) <= allowed[S1] + SAME
        assert excess(one.s2, other.s2, epsilon) <= allowed[S2] + SAME
        for who, law in one.coalitions.items():
            assert excess(law, other.coalitions[who], epsilon) <= allowed[insiders(1)] + SAME
        # the servers see no more than any reader of the result, and the bound is not idle
        seen = excess(one.reader, other.reader, epsilon)
        assert seen > 0 or epsilon > 0
        assert excess(one.s1, other.s1, epsilon) == pytest.approx(seen, abs=SAME)
        assert excess(one.s2, other.s2, epsilon) == pytest.approx(seen, abs=SAME)


@pytest.mark.slow
def test_decoys_hide_all_neighbours_from_everybody() -> None:
    """No floor: first one of two users changes its answer, then the other, who collude against each other.

    The field is the real one.
    """
    mechanism = Decoys(items=2, users=2, coins=2, insiders=1)
    play = theatre(SERVERS, mechanism)
    laws = {
        answers: play.law(answers, everybody, [(0,), (1,)]) for answers in ((0, 0), (0, 1), (1, 1))
    }
    for answers, changed in product(laws, repeat=2):
        differ = [i for i in range(2) if answers[i] != changed[i]]
        if len(differ) == 1:
            (user,), one, other = differ, laws[answers], laws[changed]
            for epsilon in EPSILONS:
                inside, outside = (
                    mechanism.guarantee(epsilon=epsilon, adversary=insiders(t)).delta
                    for t in (1, 0)
                )
                assert excess(one.s1, other.s1, epsilon) <= outside + SAME
                assert excess(one.s2, other.s2, epsilon) <= outside + SAME
                peer = (1 - user,)
                assert (
                    excess(one.coalitions[peer], other.coalitions[peer], epsilon) <= inside + SAME
                )


# --- somebody is dropped ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_a_dropped_user_leaves_no_trace(topology, q) -> None:
    """Noise off: even so, nobody's view depends on the answer of a user whose body came too late."""
    play = theatre(topology, Tiny(items=2, users=3, p=1.0, insiders=0, q=q))
    one, other = (play.law((0, 1, item), comes_late, [(0,), (1,)]) for item in (0, 1))
    assert one.s1 == other.s1
    assert one.s2 == other.s2
    assert one.coalitions == other.coalitions
    assert len(one.reader) == 1  # noise is off: the others' sum is what it is


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_a_late_body_that_is_forwarded_is_found(topology, q) -> None:
    """The planted hole: the same run, but the coordinator forwards the late body. The aggregator then knows the dropped user's answer."""
    play = theatre(topology, Tiny(items=2, users=3, p=1.0, insiders=0, q=q))
    one, other = (play.law((0, 1, item), is_forwarded) for item in (0, 1))
    assert excess(one.s2, other.s2, 10.0) == pytest.approx(1, abs=SAME)
    assert one.reader == other.reader


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_those_who_stay_keep_what_is_left_of_the_guarantee(topology, q) -> None:
    mechanism = Tiny(items=2, users=3, p=0.25, floor=1, insiders=0, q=q)
    play = theatre(topology, mechanism)
    one, other = (play.law((item, 0, 1), comes_late) for item in (0, 1))
    for epsilon in EPSILONS:
        left = replace(mechanism, dropouts=1).guarantee(epsilon=epsilon).delta
        assert excess(one.s1, other.s1, epsilon) <= left + SAME
        assert excess(one.s2, other.s2, epsilon) <= left + SAME


# --- lying servers ------------------------------------------------------------------------------------------------


def said_by_s2(play: ViewEnumerator, says, number: int = 0):
    return sign(play.s2.state.key, Party.AGGREGATOR, says, Link(number, bytes(32)))


def claimed_set(play: ViewEnumerator, bits: int) -> AcceptedReports:
    """A set as the aggregator would name it, of the coordinator's claim."""
    manifest = play.s1.state.manifest
    places = [i for i in range(len(manifest.entries)) if bits >> i & 1]
    lines = [(manifest.entries[i].user, manifest.entries[i].public_key) for i in places]
    return AcceptedReports(
        manifest.survey,
        play.s1.state.manifest_hash,
        bytes((bits,)),
        merkle_root(roster_leaves(lines)),
    )


def lying_s2(first: int, second: int):
    """The aggregator gives a receipt, and names one set and then another; what the coordinator answers is on the wire, and the aggregator reads it."""

    def story(play: ViewEnumerator) -> None:
        play.visit(*range(play.params.n_max))
        play.s1, out = play.world.call(end_phase, play.s1)
        play.tell_s2(out[0])
        play.tell_s1(play.wire.pop())  # the receipt; the coordinator sends the blobs
        for bits in (first, second):
            play.tell_s1(said_by_s2(play, claimed_set(play, bits)))
        play.to_s2 += play.wire

    return story


def in_set(bits: int, answers) -> tuple[int, ...]:
    return tuple(sorted(answer for i, answer in enumerate(answers) if bits >> i & 1))


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("second", [1, 3, 7])
def test_a_lying_s2_learns_one_sum_over_at_least_the_minimum(first: int, second: int) -> None:
    """Noise off, minimum 2 of 3: whatever sets the aggregator names, its view depends on one sum over the first, or on nothing."""
    play = theatre(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=2))
    laws = {
        answers: play.law(answers, lying_s2(first, second)).s2
        for answers in ((0, 0, 1), (0, 1, 0), (1, 1, 1))
    }
    order = _claim_order(play)
    counted = first if first.bit_count() >= 2 and first == second else 0
    counted = first if first.bit_count() >= 2 else counted
    for one, other in product(laws, repeat=2):
        same = in_set(counted, [one[i] for i in order]) == in_set(
            counted, [other[i] for i in order]
        )
        parity = [in_set(counted, [each[i] for i in order]).count(1) % 2 for each in (one, other)]
        if same or parity[0] == parity[1]:
            assert laws[one] == laws[other]
        else:
            assert excess(laws[one], laws[other], 10.0) == pytest.approx(1, abs=SAME)


def _claim_order(play: ViewEnumerator) -> list[int]:
    """Users by their place in a claim, which is ascending by user id."""
    return sorted(range(play.params.n_max), key=lambda i: play.setup.invitations[i].user)


def test_without_the_check_a_lying_s2_reads_one_answer(monkeypatch) -> None:
    """The planted hole: the coordinator adds up whatever the aggregator names."""
    monkeypatch.setattr(servers_coordinator, "_set_problem", lambda s, rows, stated: None)
    play = theatre(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=2))
    victim = _claim_order(play)[0]
    answers = [[0, 0, 0], [0, 0, 0]]
    answers[1][victim] = 1
    one, other = (play.law(tuple(each), lying_s2(1, 1)).s2 for each in answers)
    assert excess(one, other, 10.0) == pytest.approx(1, abs=SAME)


def lying_s1(play: ViewEnumerator) -> None:
    """The coordinator claims two users of three, then all, sends one sum, and asks for another one over what it likes."""
    play.visit(*range(play.params.n_max))
    play.s1, _ = play.world.call(end_phase, play.s1)
    key, manifest = play.s1.state.key, play.s1.state.manifest
    fewer = replace(manifest, entries=manifest.entries[:2])
    encrypted_shares = tuple(
        play.s1.state.view.first_messages[each.user].encrypted_share for each in fewer.entries
    )
    shares = [play.s1.state.view.first_messages[each.user].share for each in fewer.entries]
    digest = sha256(encode(fewer)).digest()
    for message in (
        fewer,
        manifest,
        ShareBatch(manifest.survey, digest, encrypted_shares),
        ShareBatch(manifest.survey, digest, encrypted_shares[:1]),
    ):
        play.tell_s2(sign(key, Party.COORDINATOR, message))
    stated = next(
        each for each in play.s2.state.statements if isinstance(each.message, AcceptedReports)
    )
    for chosen in (shares, shares[:1], []):
        total = pack(sum_packed(chosen, play.params.q, play.params.N), play.params.q)
        named = sha256(stated.signed.payload).digest()
        play.tell_s2(sign(key, Party.COORDINATOR, AggregateShare(manifest.survey, named, total)))
    play.to_s1 += play.wire


def test_a_lying_s1_learns_one_sum_over_the_set_that_it_claimed_first() -> None:
    play = theatre(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=3))
    order = _claim_order(play)
    outside = order[2]
    answers = [[0, 1, 0], [0, 1, 0]]
    answers[1][outside] = 1 - answers[0][outside]
    one, other = (play.law(tuple(each), lying_s1).s1 for each in answers)
    assert one == other  # the user whom it left out leaves no trace
    swapped = list(answers[0])
    swapped[order[0]], swapped[order[1]] = swapped[order[1]], swapped[order[0]]
    assert play.law(tuple(swapped), lying_s1).s1 == one  # and of the others it knows the sum only


# --- two stages ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TinyTwoStage(TSSPrime):
    """TSS' in a small field."""

    q: int = 2

    @property
    def modulus(self) -> int:
        return self.q


def two_stages(monkeypatch, mechanism, **terms) -> ViewEnumerator:
    """The coordinator numbers the reporters in an order that nobody else knows: each is as likely as any other."""
    play = theatre(TWO_STAGE, mechanism, **terms)
    orders = list(permutations(range(mechanism.n)))

    def assign_numbers(_, eligible):
        drawn = play.world.ask("draw", ("order",), uniform(len(orders)))
        return tuple(eligible[i] for i in orders[drawn])

    monkeypatch.setattr(announcing, "assign_numbers", assign_numbers)
    for module in (relay, two_stage_user):  # without its salt the root of a list says nothing
        monkeypatch.setattr(module, "list_root", lambda salt, numbers: bytes(32))
    monkeypatch.setattr(
        relay, "prove_listed", lambda salt, numbers, number: ListProof(0, bytes(32), ())
    )
    monkeypatch.setattr(two_stage_user, "is_listed", lambda *_: True)
    # without the masks of helpers the coordinator sees more than it does, everybody else the same
    monkeypatch.setattr(play.world, "expand", lambda *_: np.zeros(_[-1], dtype=np.uint8))
    return play


@pytest.mark.parametrize(
    ("k", "q"), [(2, 3), pytest.param(0, 2, marks=pytest.mark.slow)], ids=["phi+1", "m'_j"]
)
def test_two_stage_views(monkeypatch, k, q) -> None:
    """One of two items is reported; the coordinator sees the sets and the result, helpers see shares under numbers."""
    mechanism = TinyTwoStage(items=2, users=3, p=0.5, alpha=0.5, floor=1, phi=1, insiders=1, q=q)
    play = two_stages(monkeypatch, mechanism, k=k)
    one, other = (play.law((item, 0, 1), everybody, [(1,), (2,)]) for item in (0, 1))
    for epsilon in EPSILONS:
        allowed = {
            who: mechanism.guarantee(epsilon=epsilon, adversary=who).delta
            for who in (S1, S2, insiders(1))
        }
        assert excess(one.s1, other.s1, epsilon) <= allowed[S1] + SAME
        assert excess(one.s2, other.s2, epsilon) <= allowed[S2] + SAME
        for who, law in one.coalitions.items():
            assert excess(law, other.coalitions[who], epsilon) <= allowed[insiders(1)] + SAME
        # The coordinator learns the sets, and what the coordinator can do with them is known exactly
        if q > 2:
            assert excess(one.s1, other.s1, epsilon) == pytest.approx(allowed[S1], abs=1e-9)


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_a_reporter_that_is_dropped_leaves_nothing_but_its_set(monkeypatch, gamma) -> None:
    """Noise off. The set says nothing about the answer if it is uniform, and as much as was stated if it is not."""
    mechanism = TinyTwoStage(
        items=2, users=3, p=1.0, alpha=0.5, gamma=gamma, phi=1, insiders=1, q=2
    )
    play = two_stages(monkeypatch, mechanism, k=2)
    one, other = (play.law((0, 1, item), comes_late, [(0,), (1,)]) for item in (0, 1))
    for epsilon in EPSILONS:
        stated = sets_delta(mechanism.N, mechanism.reported_items, mechanism.rate, gamma, epsilon)
        assert excess(one.s1, other.s1, epsilon) <= stated + SAME
        assert excess(one.s2, other.s2, epsilon) <= stated + SAME
        for who, law in one.coalitions.items():
            assert excess(law, other.coalitions[who], epsilon) <= stated + SAME


# --- the enumeration itself ---------------------------------------------------------------------------------------


def test_every_run_is_counted_with_its_probability() -> None:
    def play(chance):
        first = chance.draw("first", (1, 3))
        return (
            first
            + (chance.draw("second", uniform(3)) if first else 0)
            + 0 * chance.draw("first", (1, 3))
        )

    quarter = Fraction(1, 4)
    assert every_run(play) == {0: quarter, 1: quarter, 2: quarter, 3: quarter}
    assert excess({0: quarter, 1: 3 * quarter}, {0: 3 * quarter, 1: quarter}, 0.0) == pytest.approx(
        0.5
    )
    assert excess({0: Fraction(1)}, {1: Fraction(1)}, 20.0) == 1


def test_remembered_roles_see_what_real_ones_see(monkeypatch) -> None:
    laws = []
    for _ in range(2):
        play = theatre(SERVERS, Tiny(items=2, users=2, p=0.25, insiders=0))
        laws.append(play.law((0, 1), everybody, [(0,), (1,)]))
        monkeypatch.setattr(
            Ideal, "call", lambda world, role, node, *what: world._really(role, node, what)
        )
    assert laws[0] == laws[1]


def test_responses_are_those_of_the_mechanism() -> None:
    assert dict(responses(Tiny(items=2, p=0.25), 1)) == {(0, 1): 1, (0, 0): 3}
    noisy = responses(Decoys(items=2, users=2, coins=2), 0)
    assert sorted(drawn for drawn, _ in noisy) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    made = TSSPrime(items=3, p=0.5, alpha=1 / 3, gamma=2.0, phi=1)
    law = dict(responses(made, 0))
    whole = sum(law.values())
    assert Fraction(law[1, 0], whole) == Fraction(
        1, 4
    )  # active, and the set is its own item: 1/2 times 2/(2+1+1)
    assert Fraction(law[0, 2], whole) == Fraction(1, 8) + Fraction(1, 6)

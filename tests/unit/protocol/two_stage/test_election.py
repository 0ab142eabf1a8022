"""The election: the same for everybody, fair, independent of reports, safe under replacement."""

import itertools
import math
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from faircount.accounting.two_stage import coordinator_delta, coordinator_epsilon, sets_delta
from faircount.core.errors import ParameterError
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.protocol import TWO_STAGE
from faircount.protocol.survey.parameters import NO_COMMITMENT, Keys, SurveyParameters, propose
from faircount.protocol.topologies.two_stage.election import (
    Ballot,
    draw_ballot,
    draw_orders,
    helper_counts,
    tally_problem,
    verify_election,
)
from faircount.protocol.topologies.two_stage.messages import Election, VanishedHelper
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, SyncRequest
from faircount.protocol.wire.signing import SigningKey, sign

DIGEST = b"\1" * 32
VALUE = b"\2" * 32
SURVEY = bytes(range(16))

KEY = SigningKey(b"\3" * 32)
KEYS = Keys(b"\4" * 32, KEY.public, b"\5" * 32, bytes(32), sha256(VALUE).digest())
ALARM = 1e-6


def params(mechanism=None, **terms) -> SurveyParameters:
    runs = mechanism or TSSPrime(items=5, users=12, p=1.0, alpha=0.4, phi=2)
    agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 6, "attempts": 4, **terms}
    return propose(runs, KEYS, survey=SURVEY, topology=TWO_STAGE, **agreed)


def election(eligible=tuple(range(12)), reporters=(5, 5, 5, 5, 4), **change) -> Election:
    keys = tuple(bytes([i]) * 32 for i in range(len(eligible)))
    lists = (bytes(32),) * len(reporters)
    return replace(
        Election(SURVEY, DIGEST, bitmap(eligible, 12), keys, reporters, lists, VALUE), **change
    )


def ballot(n=7, items=3, slots=(3, 2, 4)) -> Ballot:
    eligible = tuple(range(n))
    return Ballot(
        b"h" * 32, eligible, (), slots, (), slots, draw_orders(VALUE, DIGEST, items, eligible)
    )


def test_orders_follow_their_definition() -> None:
    """Recomputed with nothing but AES and sorting, as in another language."""
    eligible = (0, 2, 3, 7, 11)
    for item, row in enumerate(draw_orders(VALUE, DIGEST, 4, eligible)):
        key = sha256(b"faircount/1/election\0" + VALUE + DIGEST + item.to_bytes(4, "big")).digest()
        stream = (
            Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(16 * 12))
        )
        assert row.tolist() == sorted(eligible, key=lambda i, s=stream: s[16 * i : 16 * i + 16])


def test_a_known_answer() -> None:
    """Computed independently of this code, with single AES blocks of a counter."""
    assert draw_orders(VALUE, DIGEST, 3, tuple(range(6))).tolist() == [
        [2, 0, 1, 5, 3, 4],
        [5, 0, 2, 3, 4, 1],
        [0, 3, 5, 2, 1, 4],
    ]


@given(st.sets(st.integers(0, 40), min_size=2), st.data())
def test_who_else_is_eligible_does_not_change_the_order(eligible, data) -> None:
    some = data.draw(st.sets(st.sampled_from(sorted(eligible)), min_size=1))
    every, fewer = (
        draw_orders(VALUE, DIGEST, 2, tuple(sorted(places))) for places in (eligible, some)
    )
    for row, part in zip(every, fewer, strict=True):
        assert sorted(row.tolist()) == sorted(eligible)
        assert [i for i in row.tolist() if i in some] == part.tolist()


def test_value_roster_and_item_each_give_another_order() -> None:
    everybody = tuple(range(30))
    found = [
        draw_orders(*inputs, 2, everybody)
        for inputs in ((VALUE, DIGEST), (DIGEST, DIGEST), (VALUE, VALUE))
    ]
    rows = itertools.chain.from_iterable(found)
    assert len({tuple(row.tolist()) for row in rows}) == 6


def _p_value(counts) -> float:
    mean = counts.sum() / counts.size
    return float(chi2.sf(((counts - mean) ** 2).sum() / mean, counts.size - 1))


def test_every_order_is_equally_likely() -> None:
    """24 orders of 4 users, 6,000 draws.

    One order that is drawn in one of 30 further draws is noticed (power 0.999).
    """
    ways = {way: i for i, way in enumerate(itertools.permutations(range(4)))}
    counts = np.zeros(24)
    for i in range(2000):
        for row in draw_orders(i.to_bytes(32, "big"), DIGEST, 3, (0, 1, 2, 3)).tolist():
            counts[ways[tuple(row)]] += 1
    assert _p_value(counts) > ALARM
    planted = counts.copy()
    planted[0] += 6000 / 30
    assert _p_value(planted) < ALARM


@pytest.mark.parametrize(
    ("reporters", "eligible", "wanted"),
    [(0, 12, 3), (2, 12, 3), (3, 12, 3), (7, 12, 7), (12, 12, 12), (12, 9, 9)],
)
def test_at_least_phi_plus_one_helpers_and_at_most_everybody(reporters, eligible, wanted) -> None:
    assert helper_counts(params(), eligible, [reporters]) == (wanted,)
    assert helper_counts(params(k=3), eligible, [reporters]) == (3,)


def test_algorithm_3_elects_as_many_as_report() -> None:
    plain = params(TSS(items=5, users=12, p=1.0, alpha=0.4))
    assert plain.phi == 0
    # The helper of an item that nobody reports sends 0.
    assert helper_counts(plain, 12, [0, 1, 5]) == (1, 1, 5)


def test_parameters_of_a_two_stage_survey() -> None:
    assert params().mechanism.insiders == params().phi == 2
    assert SurveyParameters.parse(params(k=3).published) == params(k=3)
    assert params(k=3).digest != params().digest
    for wrong in ({"k": 2}, {"minimum": 2}, {"mechanism": replace(params().mechanism, insiders=1)}):
        with pytest.raises(ParameterError):
            replace(params(), **wrong)
    with pytest.raises(ParameterError):
        replace(params(), keys=replace(KEYS, aggregator_commitment=NO_COMMITMENT))
    with pytest.raises(ParameterError):
        params(TSS(items=5, users=12, p=1.0, alpha=0.4), k=1)


def test_the_first_of_each_order_hold_the_slots() -> None:
    drawn = ballot()
    slots = drawn.after(())
    assert slots.item.tolist() == [0] * 3 + [1] * 2 + [2] * 4
    assert slots.slot.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert slots.holder.tolist() == [
        *drawn.orders[0, :3],
        *drawn.orders[1, :2],
        *drawn.orders[2, :4],
    ]
    assert set(slots.granted.tolist()) == {1}


def test_the_next_of_the_order_takes_over_that_slot_only() -> None:
    drawn = ballot()
    before = drawn.after(())
    leaving = int(drawn.orders[0, 1])
    after = drawn.after((VanishedHelper(2, leaving),))
    for at in range(len(before)):
        if before.holder[at] != leaving:
            assert (after.holder[at], after.granted[at]) == (before.holder[at], 1)
        else:
            standby = [
                i
                for i in drawn.orders[after.item[at], drawn.slots[after.item[at]] :]
                if i != leaving
            ]
            assert (after.holder[at], after.granted[at]) == (standby[0], 2)


vanishing = st.lists(
    st.tuples(st.integers(2, 5), st.integers(0, 11)), max_size=7, unique_by=lambda step: step[1]
)


@settings(max_examples=200)
@given(vanishing, st.lists(st.integers(1, 6), min_size=3, max_size=3))
def test_nobody_ever_holds_two_slots_of_one_item(steps, slots) -> None:
    """So phi participants hold shares of at most phi slots of an item, whoever vanishes when."""
    drawn = ballot(12, 3, tuple(slots))
    gone = tuple(VanishedHelper(*step) for step in sorted(steps))
    if drawn.after(gone) is None:
        return
    slots_by_holder: dict[tuple[int, int], set[int]] = {}
    for attempt in range(1, 6):
        now = drawn.upto(gone, attempt)
        vanished = {helper.index for helper in gone if helper.attempt <= attempt}
        assert vanished.isdisjoint(now.holder.tolist())
        for item, slot, holder in zip(now.item, now.slot, now.holder, strict=True):
            slots_by_holder.setdefault((int(item), int(holder)), set()).add(int(slot))
    assert all(len(held_slots) == 1 for held_slots in slots_by_holder.values())


def test_when_nobody_is_left_there_are_no_slots() -> None:
    drawn = ballot(4, 1, (3,))
    first = drawn.orders[0, 0]
    second = drawn.orders[0, 1]
    assert drawn.after((VanishedHelper(2, int(first)),)) is not None
    assert (
        drawn.after(tuple(VanishedHelper(2, i) for i in sorted((int(first), int(second))))) is None
    )


@pytest.mark.parametrize(
    "gone",
    [
        (VanishedHelper(1, 0),),
        (VanishedHelper(2, 99),),
        (VanishedHelper(2, 1), VanishedHelper(2, 0)),
        (VanishedHelper(3, 0), VanishedHelper(2, 1)),
        (VanishedHelper(2, 1), VanishedHelper(3, 1)),
        (VanishedHelper(2, 1), VanishedHelper(2, 1)),
    ],
)
def test_lists_of_vanished_helpers_have_one_form(gone) -> None:
    assert ballot().after(gone) is None


def test_shares_and_sums_are_due_once() -> None:
    drawn = ballot()
    leaving = int(drawn.orders[0, 0])
    after = drawn.after((VanishedHelper(2, leaving),))
    assert after.find_owed((0,), 1).size + after.find_owed((0,), 2).size == 3
    assert set(after.item[after.find_owed((0, 2), 2)].tolist()) <= {0, 2}
    for holder in drawn.eligible:
        mine = set(np.flatnonzero(after.holder == holder).tolist())
        by_attempt = [set(after.due(holder, 1, attempt).tolist()) for attempt in (1, 2, 3)]
        assert set().union(*by_attempt) == mine
        assert not by_attempt[0] & by_attempt[1]
        # A set that is formed later needs every sum again.
        assert set(after.due(holder, 3, 3).tolist()) == mine


@pytest.mark.parametrize(
    ("bits", "reporters", "reason"),
    [
        (b"\xff", (5, 5, 5, 5, 4), Reason.MALFORMED),
        (b"\xff\xff", (5, 5, 5, 5, 4), Reason.MALFORMED),
        (bitmap(range(12), 12), (5, 5, 5, 5), Reason.MALFORMED),
        (bitmap(range(12), 12), (5, 5, 5, 5, 5), Reason.MALFORMED),
        (bitmap(range(12), 12), (13, 5, 2, 2, 2), Reason.MALFORMED),
        (bitmap(range(5), 12), (2, 2, 2, 2, 2), Reason.TOO_FEW),
    ],
)
def test_impossible_tallies(bits, reporters, reason) -> None:
    eligible = members_of(bits, 12) or range(12)
    assert (
        tally_problem(params(), 12, replace(election(eligible, reporters), eligible=bits)).why
        is reason
    )


def test_everybody_draws_what_the_aggregator_signed() -> None:
    signed = sign(KEY, Party.AGGREGATOR, election())
    drawn = verify_election(params(), 12, DIGEST, signed)
    assert drawn == draw_ballot(params(), 12, election())
    assert drawn.hash == sha256(signed.payload).digest()
    assert drawn.slots == (5, 5, 5, 5, 4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"survey": bytes(16)}, Reason.UNSIGNED),
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"revealed": b"\7" * 32}, Reason.WRONG_DIGEST),
        ({"reporters": (5, 5, 5, 5, 5)}, Reason.MALFORMED),
        ({"lists": (bytes(32),) * 4}, Reason.MALFORMED),
        ({"keys": (bytes(32),) * 12}, Reason.MALFORMED),
        ({"keys": tuple(bytes([i]) * 32 for i in range(11))}, Reason.MALFORMED),
    ],
)
def test_elections_that_clients_refuse(change, reason) -> None:
    assert (
        verify_election(params(), 12, DIGEST, sign(KEY, Party.AGGREGATOR, election(**change))).why
        is reason
    )


def test_only_the_aggregator_holds_elections() -> None:
    by_s1 = sign(SigningKey(b"\4" * 32), Party.COORDINATOR, election())
    changed = replace(
        sign(KEY, Party.AGGREGATOR, election()),
        payload=sign(KEY, Party.AGGREGATOR, election(reporters=(4, 5, 5, 5, 5))).payload,
    )
    for message in (by_s1, changed, sign(KEY, Party.AGGREGATOR, SyncRequest(SURVEY))):
        assert verify_election(params(), 12, DIGEST, message).why is Reason.UNSIGNED


def _sets(mechanism: TSS, chosen: int) -> dict[frozenset[int], float]:
    """The distribution of A by the paper's definition: inactive uniform, active by gamma."""
    N = mechanism.N
    M = mechanism.reported_items
    gamma = mechanism.gamma
    p = mechanism.rate
    scale = gamma * math.comb(N - 1, M - 1) + math.comb(N - 1, M)
    ways = (frozenset(items) for items in itertools.combinations(range(N), M))
    return {
        items: (1 - p) / math.comb(N, M) + p * (gamma if chosen in items else 1) / scale
        for items in ways
    }


@pytest.mark.parametrize("gamma", [1.0, 2.0, 20.0])
@pytest.mark.parametrize("reported", [1, 2, 4])
@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0])
def test_the_delta_of_a_set_is_enumerated(gamma, reported, eps) -> None:
    mechanism = TSS(items=5, p=0.7, alpha=reported / 5, gamma=gamma)
    one = _sets(mechanism, 0)
    other = _sets(mechanism, 1)
    exact = sum(max(0.0, one[items] - math.exp(eps) * other[items]) for items in one)
    found = sets_delta(5, reported, 0.7, gamma, eps)
    assert found == pytest.approx(exact, abs=1e-12)
    assert found <= coordinator_delta(5, reported, 0.7, gamma, 10, eps)
    assert found == 0 or eps < coordinator_epsilon(0.7, reported / 5, gamma)

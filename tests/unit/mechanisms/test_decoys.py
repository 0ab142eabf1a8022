"""Decoys: coins are enumerated bit by bit; samples only compare `respond` with `draw`."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from scripted_entropy import ScriptedEntropy

from faircount.accounting.exact import decoys_needed
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError, RefusedError
from faircount.mechanisms.count_distribution import normal_errors
from faircount.mechanisms.decoys import SOME_COINS, Decoys, count_heads
from faircount.sharing.primes import is_prime


def fits(sample, pmf):
    """Chi-square test that raises a false alarm once in a million."""
    if sample.max() >= len(pmf):
        return False
    observed = np.bincount(sample, minlength=len(pmf))
    return chisquare(observed, pmf * sample.size)[1] > 1e-6


@given(st.integers(2, 40), st.integers(0, 39), st.integers(1, 500))
def test_coins_are_the_fewest_that_leave_enough(users, missing, needed):
    missing = min(missing, users - 1)
    with patch("faircount.mechanisms.decoys.decoys_needed", return_value=needed):
        mechanism = Decoys(
            items=2,
            epsilon=1,
            delta=0.1,
            users=users,
            insiders=missing // 2,
            dropouts=-(-missing // 2),
        )
        coins = mechanism.D

    def count_remaining(total):
        """Coins of those who have the fewest, when the users with the most are missing."""
        allocation = replace(mechanism, epsilon=None, delta=None, coins=total).allocation
        return sum(sorted(allocation)[: users - missing])

    assert count_remaining(coins) >= needed
    assert coins == 1 or count_remaining(coins - 1) < needed
    # The patched delta returns the number of coins that the guarantee relies on.
    with patch("faircount.mechanisms.decoys.decoys_delta", side_effect=lambda counted, *_: counted):
        against = insiders(mechanism.insiders)
        counted = mechanism.delta_at(1.0, against, Relation.REPLACE_ONE)
    assert counted == count_remaining(coins)


@pytest.mark.parametrize(("epsilon", "needed"), [(0.5, 399), (1.0, 115), (2.0, 36)])
def test_known_numbers_of_coins(epsilon, needed):
    alone = Decoys(items=30, epsilon=epsilon, delta=1e-5, users=1000, insiders=0)
    assert alone.D == decoys_needed(epsilon, 1e-5) == needed
    assert alone.variance(np.full(30, 1 / 30), raw=True)[0] * 1000**2 == pytest.approx(
        needed / 4, rel=1e-9
    )
    # No user has more than one coin, so every insider and every dropout costs one.
    some = Decoys(items=30, epsilon=epsilon, delta=1e-5, users=1000, insiders=40, dropouts=60)
    assert needed == some.D - 100
    assert some.guarantee().delta == alone.guarantee().delta <= 1e-5
    # Here users have many coins, and those who are missing may have had one more than the others.
    few = Decoys(items=30, epsilon=epsilon, delta=1e-5, users=7, insiders=2, dropouts=1)
    assert sum(sorted(few.allocation)[:4]) == needed or needed % 4
    assert few.guarantee().delta <= 1e-5
    assert few.allocation.sum() == few.D
    assert few.allocation.max() - few.allocation.min() <= 1


def test_dividing_by_the_honest_share_would_be_wrong():
    # 128 users have one coin, and all 100 insiders may be among them.
    divided = Decoys(items=30, coins=128, users=1000, insiders=100)
    assert math.ceil(115 / 0.9) == 128
    assert divided.guarantee(epsilon=1).delta == pytest.approx(1.1e-2, rel=0.02)
    assert Decoys(items=30, epsilon=1, delta=1e-5, users=1000, insiders=100).D == 215


@pytest.mark.parametrize(
    ("coins", "epsilon", "delta"),
    [(55, 1, 0.000970285635099), (148, 1, 9.44262890755e-7), (172, 0.5, 0.000983586803886)],
)
def test_delta_of_known_coins(coins, epsilon, delta):
    mechanism = Decoys(items=3, coins=coins, users=300)
    assert mechanism.guarantee(epsilon=epsilon, adversary=OUTSIDER).delta == pytest.approx(
        delta, rel=1e-9, abs=0
    )
    # One insider knows one coin.
    assert mechanism.guarantee(epsilon=epsilon).delta > delta
    assert mechanism.guarantee(epsilon=epsilon, adversary=COLLECTOR).delta == 1.0
    assert mechanism.guarantee(epsilon=epsilon, relation=Relation.ZERO_OUT).delta < delta


def test_every_outcome_of_two_users_and_three_coins_by_enumeration():
    """User 0 flips two coins per item and user 1 one coin: 64 equally likely outcomes.

    The unused bits of a byte must not matter.
    """
    mechanism = Decoys(items=2, coins=3, users=2)
    answers = np.array([0, 1])
    seen = Counter()
    # The unused bits of every byte are once 0 and once 1.
    for junk in (0x00, 0xFC):
        for bits in product(range(2), range(2), range(4), range(4)):
            entropy = ScriptedEntropy(bytes(byte | junk for byte in bits))
            total = mechanism.total(mechanism.respond(answers, entropy))
            seen[tuple(mechanism.decode(total, 2).tolist())] += 1
            assert entropy.data == b""
    for x, y in product(range(4), range(4)):
        assert seen[1 + x, 1 + y] == 2 * math.comb(3, x) * math.comb(3, y)
    assert sum(seen.values()) == 128


@pytest.mark.parametrize("coins", [1, 3, 8])
def test_heads_of_up_to_eight_coins_for_every_byte(coins):
    # All values of a byte once, so the counts are exact multiples of the probabilities.
    found = Counter(count_heads(coins, 256, ScriptedEntropy(bytes(range(256)))).tolist())
    assert found == {x: math.comb(coins, x) << (8 - coins) for x in range(coins + 1)}


def test_heads_of_nine_coins_for_every_pair_of_bytes():
    entropy = ScriptedEntropy(np.arange(1 << 16, dtype="<u2").tobytes())
    found = Counter(count_heads(9, 1 << 16, entropy).tolist())
    assert found == {x: math.comb(9, x) << 7 for x in range(10)}


@pytest.mark.parametrize("coins", [11, 3])
def test_both_levels_of_decoys_draw_the_binomial_distribution(coins):
    items = 20_000
    users = 3
    mechanism = Decoys(items=items, coins=coins, users=users)
    answers = np.arange(users)
    counts = np.bincount(answers, minlength=items)
    distribution = mechanism.channel(users).noise
    assert distribution.pmf == pytest.approx(
        [math.comb(coins, x) / 2**coins for x in range(coins + 1)], rel=1e-12
    )
    one_by_one = mechanism.decode(
        mechanism.total(mechanism.respond(answers, SeededStream(4))), users
    )
    assert fits(one_by_one - counts, distribution.pmf)
    assert fits(mechanism.draw(counts, np.random.default_rng(5)) - counts, distribution.pmf)
    # Planted: coins that are possible but not fair.
    other = counts + np.random.default_rng(6).binomial(coins, 0.5 * 1.3, items)
    assert not fits(other - counts, distribution.pmf)


def test_dropouts_take_their_own_coins_with_them():
    mechanism = Decoys(items=2, epsilon=1, delta=1e-3, users=40, insiders=1, dropouts=3)
    # D0 = 55 coins must remain of 36 users: one coin each, and 19 + 4 users have a second one.
    assert mechanism.D == mechanism.allocation.sum() == 63
    stayed = np.arange(3, 40)
    coins = mechanism.coins_of(stayed)
    assert coins == mechanism.D - 2 * 3
    with pytest.raises(ParameterError, match="for_included"):
        mechanism.channel(37)
    here = mechanism.for_included(stayed)
    assert here.channel(37).noise.mean == pytest.approx(coins / 2)
    sums = np.array([20, 17]) + coins / 2
    assert here.estimate(sums, 37) == pytest.approx([20 / 37, 17 / 37])
    assert here.variance(np.array([0.5, 0.5]), 37) * 37**2 == pytest.approx([coins / 8] * 2)
    assert here.draw(np.array([20, 17]), np.random.default_rng(1)).shape == (2,)


def test_with_equal_coins_it_does_not_matter_who_took_part():
    mechanism = Decoys(items=2, coins=80, users=40)
    assert mechanism.coin_count(37) == 74
    assert mechanism.estimate(np.array([20 + 37, 17 + 37]), 37) == pytest.approx([20 / 37, 17 / 37])


@pytest.mark.parametrize("users", [[0, 0], [40], [-1], [0.5], [True, False], [[1, 2]], ["a"]])
def test_users_outside_the_roster_have_no_coins(users):
    with pytest.raises(ParameterError):
        Decoys(items=2, coins=80, users=40).coins_of(np.array(users))


def test_the_remaining_guarantee_counts_the_coins_that_were_flipped():
    mechanism = Decoys(items=2, epsilon=1, delta=1e-5, users=1000, insiders=2, dropouts=3)
    assert mechanism.D == 120
    # The three expected dropouts had two coins each, as planned for.
    kept = mechanism.remaining_guarantee(997, places=range(3, 1000))
    assert kept.delta == mechanism.guarantee().delta <= 1e-5
    assert (kept.epsilon, kept.adversary) == (1.0, insiders(2))
    few = mechanism.remaining_guarantee(990, places=range(10, 1000)).delta
    assert few > 1e-5
    # Without insiders more coins are hidden; 500 insiders may know all of them.
    alone = replace(mechanism, insiders=0, delta=None, coins=120)
    assert alone.remaining_guarantee(990, places=range(10, 1000)).delta < few
    betrayed = replace(mechanism, insiders=500, delta=None, coins=120)
    assert betrayed.remaining_guarantee(800, places=range(800)).delta == 1.0
    # Two users took part, and both may be insiders.
    with pytest.raises(RefusedError):
        mechanism.remaining_guarantee(2)
    with pytest.raises(ParameterError, match="give epsilon="):
        Decoys(items=2, coins=120, users=1000).remaining_guarantee(1000)
    assert Decoys(items=2, coins=120, users=1000).remaining_guarantee(1000, epsilon=2).epsilon == 2


def test_decoys_cannot_wrap_and_impossible_sums_are_refused():
    mechanism = Decoys(items=3, coins=400, users=10)
    q = mechanism.modulus
    assert is_prime(q)
    assert q > 410

    def decode(*values):
        return mechanism.decode(np.array(values, dtype=np.uint16), 10)

    assert decode(200, 205, 195).tolist() == [200, 205, 195]
    # Sums below and above the range of an item, and totals that 1,200 coins do not reach.
    for corrupt in ((q - 1, 100, 100), (411, 100, 100), (10, 10, 10), (400, 400, 400), (9, 0, 0)):
        with pytest.raises(CorruptSumError):
            decode(*corrupt)
    # With few coins the limits are the certain ones: all tails and all heads.
    small = Decoys(items=2, coins=2, users=3)
    assert small.decode(np.array([5, 2], dtype=np.uint8), 3).tolist() == [5, 2]
    assert small.decode(np.array([0, 1], dtype=np.uint8), 1).tolist() == [0, 1]
    with pytest.raises(CorruptSumError):
        small.decode(np.array([1, 1], dtype=np.uint8), 3)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1},
        {"delta": 1e-5},
        {"epsilon": 1, "delta": 1e-5, "coins": 5},
        {"coins": 0},
        {"coins": 1.5},
        {"epsilon": float("nan"), "delta": 1e-5},
        {"epsilon": 0, "delta": 1e-5},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
    ],
)
def test_parameters_of_decoys_that_make_no_sense_are_refused(given):
    with pytest.raises(ParameterError):
        Decoys(items=2, **given)


def test_decoys_promise_what_they_were_given():
    assert Decoys(items=2, epsilon=1, delta=1e-5).promise == (1.0, 1e-5)
    assert Decoys(items=2, coins=100).promise == (None, None)
    with pytest.raises(ParameterError, match="give epsilon= or delta="):
        Decoys(items=2, coins=100, users=10).guarantee()


@pytest.mark.parametrize("items", [2, 3, 12, 100])
@pytest.mark.parametrize("coins", [SOME_COINS, SOME_COINS + 1, 150, 289, 1001, 4096, 20_000])
def test_the_bound_on_the_error_never_refuses_what_suffices(items, coins):
    users = 1000
    mechanism = Decoys(items=items, users=users, coins=coins)
    exact = mechanism.expected_errors(users)[1]
    assert abs(normal_errors(coins / 4, items, users)[1] - exact) < 1 / users
    for factor in (0.5, 0.95, 0.999, 1, 1.001, 1.05, 2):
        assert mechanism.reaches(factor * exact, users) is (factor >= 1)


class Exact(Decoys):
    """A mechanism of somebody else, whose errors are smaller than those of its base class."""

    def expected_errors(self, included):
        return 0.0, 0.0


def test_the_bound_on_the_error_is_not_that_of_a_subclass_with_other_errors():
    assert not Decoys(items=3, users=60, coins=1001).reaches(0.01, 60)
    assert Exact(items=3, users=60, coins=1001).reaches(0.01, 60)

"""Hockey-stick divergences against mpmath and brute force."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.accounting import exact
from faircount.accounting.divergence import (
    SMALLEST,
    LossPair,
    binomial_window,
    epsilon_for,
    hockey_stick,
    largest_within,
    log_binomial,
)
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import smallest_integer, smallest_within


def exact_log_pmf(n: int, p: float, x: int) -> mpmath.mpf:
    with mpmath.workdps(50):
        chance = mpmath.mpf(p)
        return (
            mpmath.log(mpmath.binomial(n, x))
            + x * mpmath.log(chance)
            + (n - x) * mpmath.log(1 - chance)
        )


def brute_force(pairs: list[LossPair], epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        factor, total = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(0)
        supports = [
            list(zip(pair.log_p.tolist(), pair.log_q.tolist(), strict=True)) for pair in pairs
        ]
        for outcome in itertools.product(*supports):
            p = mpmath.fprod(mpmath.exp(mpmath.mpf(log_p)) for log_p, _ in outcome)
            q = mpmath.fprod(mpmath.exp(mpmath.mpf(log_q)) for _, log_q in outcome)
            total += max(mpmath.mpf(0), p - factor * q)
        return total


def distribution(weights: list[float]) -> np.ndarray:
    array = np.array(weights, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.log(array / array.sum())


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (7, 0.5), (100, 0.01), (1000, 0.9), (50, 1e-9)])
def test_log_binomial_is_right_everywhere(n: int, p: float) -> None:
    ours = log_binomial(n, p)
    assert ours.size == n + 1
    for x in range(n + 1):
        assert ours[x] == pytest.approx(float(exact_log_pmf(n, p, x)), abs=1e-12, rel=1e-14)


def test_log_binomial_of_a_million_keeps_twelve_digits() -> None:
    n, p = 10**6, 0.37
    ours = log_binomial(n, p)
    for x in (370_000, 370_100, 367_000, 375_000, 380_000, 355_000):
        assert ours[x] == pytest.approx(float(exact_log_pmf(n, p, x)), abs=4e-12)


def test_log_binomial_at_the_edges() -> None:
    assert log_binomial(3, 1.0).tolist() == [-math.inf, -math.inf, -math.inf, 0.0]
    assert log_binomial(0, 0.5).tolist() == [0.0]
    with pytest.raises(ParameterError):
        log_binomial(3, 0.0)


@pytest.mark.parametrize(("n", "p"), [(100, 0.5), (10**4, 0.02), (10**5, 0.5)])
def test_a_window_is_the_part_of_the_distribution_that_doubles_can_hold(n: int, p: float) -> None:
    first, window = binomial_window(n, p)
    whole = log_binomial(n, p)
    np.testing.assert_allclose(window, whole[first : first + window.size], atol=1e-11, rtol=1e-13)
    outside = np.concatenate((whole[:first], whole[first + window.size :]))
    assert np.all(outside < -744)


weights = st.lists(
    st.sampled_from([0.0, 1e-12, 0.01, 0.3, 1.0, 2.5, 7.0]), min_size=4, max_size=4
).filter(any)


@given(weights, weights, weights, weights, st.floats(0, 4))
@settings(max_examples=150, deadline=None)
def test_hockey_stick_is_the_definition(
    a: list[float], b: list[float], c: list[float], d: list[float], eps: float
) -> None:
    pairs = [LossPair(distribution(a), distribution(b)), LossPair(distribution(c), distribution(d))]
    for chosen in (pairs[:1], pairs):
        truth = float(brute_force(chosen, eps))
        value = hockey_stick(chosen, eps)
        assert value >= truth * (1 - 1e-15)
        assert value == pytest.approx(truth, rel=1e-9, abs=1e-11)


def test_deep_tails_survive() -> None:
    pair = LossPair(
        log_binomial(40, 1e-7), distribution([1.0] + [0.0] * 40)
    )  # P(at least one) is all that is left
    assert hockey_stick([pair], 0.0) == pytest.approx(
        -math.expm1(40 * math.log1p(-1e-7)), rel=1e-10
    )
    steep = LossPair(log_binomial(100, 1e-3), log_binomial(100, 1e-6))
    at = 6.5 * 40
    assert hockey_stick([steep], at) == pytest.approx(float(brute_force([steep], at)), rel=1e-9)
    assert 1e-140 < hockey_stick([steep], at) < 1e-50


def test_what_is_too_small_for_a_double_is_not_called_zero() -> None:
    pair = LossPair(np.array([-2000.0, 0.0]), np.array([-math.inf, 0.0]))
    assert hockey_stick([pair], 1.0) == SMALLEST
    with pytest.raises(RefusedError, match="no epsilon"):
        epsilon_for(lambda eps: hockey_stick([pair], eps), 0.0)


def test_swapping_compares_the_other_way_round() -> None:
    pair = LossPair(distribution([1, 0]), distribution([1, 1]))
    assert hockey_stick([pair], 0.5) == pytest.approx(1 - math.exp(0.5) / 2)
    assert hockey_stick([pair.swap()], 0.5) == pytest.approx(0.5)
    assert pair.swap().swap() == pair
    assert hash(pair.swap().swap()) == hash(pair)


def test_a_pair_must_be_two_distributions() -> None:
    with pytest.raises(ParameterError, match="same"):
        LossPair(np.zeros(1), np.log(np.array([0.5, 0.5])))
    with pytest.raises(ParameterError, match="sum to 1"):
        LossPair(np.array([0.0, 0.0]), np.log(np.array([0.5, 0.5])))
    pair = LossPair(np.zeros(1), np.zeros(1))
    with pytest.raises(ParameterError, match="one or two"):
        hockey_stick([pair] * 3, 1.0)


def test_epsilon_for_finds_the_pure_value_and_rounds_up() -> None:
    epsilon = 0.7
    response = LossPair(distribution([math.exp(epsilon), 1]), distribution([1, math.exp(epsilon)]))
    pure = epsilon_for(lambda eps: hockey_stick([response], eps), 0.0)
    assert epsilon <= pure <= epsilon + 1e-10
    assert epsilon_for(lambda eps: hockey_stick([response], eps), 0.9) == 0.0


@given(st.floats(0.001, 400), st.floats(1e-12, 0.5))
@settings(deadline=None)
def test_epsilon_for_inverts(rate: float, delta: float) -> None:
    calls = []

    def delta_at(eps: float) -> float:
        calls.append(eps)
        return math.exp(-eps * rate / (1 + eps))  # tends to e^-rate

    if delta < math.exp(-rate * 500 / 501):
        with pytest.raises(RefusedError):
            epsilon_for(delta_at, delta)
        return
    found = epsilon_for(delta_at, delta)
    truth = -math.log(delta) / (rate + math.log(delta))
    assert delta_at(found) <= delta
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-11)
    assert len(calls) < 80


@pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan])
def test_epsilon_for_refuses_a_delta_that_is_none(delta: float) -> None:
    with pytest.raises(ParameterError):
        epsilon_for(lambda _: 0.0, delta)


def test_searches_end_on_the_safe_side() -> None:
    assert largest_within(lambda p: p**3, 1e-6) == pytest.approx(0.01, rel=1e-10)
    assert largest_within(lambda p: p**3, 1e-6) <= 0.01
    assert largest_within(lambda p: p, 2.0) == 1.0
    assert largest_within(lambda x: x, 7.5, top=30.0) == pytest.approx(7.5)
    with pytest.raises(RefusedError):
        largest_within(lambda p: 0.5 + p, 0.1)
    assert smallest_within(lambda x: 1.0 if x < math.pi else 0.0, 0.5, 0.0, 10.0) == pytest.approx(
        math.pi
    )
    assert smallest_integer(lambda k: k >= 37, 1000) == 37
    assert smallest_integer(lambda _: True, 1000) == 0
    assert smallest_integer(lambda k: k > 1000, 1000) is None


def test_the_search_survives_a_curve_that_is_flat_to_the_last_bit() -> None:
    above = math.nextafter(0.1, 1)
    assert smallest_within(lambda x: above if x < 0.5 else 0.1, 0.1, 0.0, 1.0) == pytest.approx(
        0.5, abs=1e-9
    )
    for coins, delta in ((50, exact.decoys_delta(50, 50.0)), (10, exact.decoys_delta(10, 50.0))):
        assert (
            exact.decoys_delta(
                coins, epsilon_for(lambda epsilon, of=coins: exact.decoys_delta(of, epsilon), delta)
            )
            <= delta
        )

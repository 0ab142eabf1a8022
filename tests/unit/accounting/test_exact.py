"""The deltas of sampling, decoys and Laplace against known answers, definitions and each other."""

import json
import math
import warnings
from pathlib import Path

import mpmath
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from faircount.accounting import exact
from faircount.accounting.divergence import LossPair, epsilon_for, hockey_stick, log_binomial
from faircount.accounting.guarantee import (
    Relation,
)
from faircount.core.errors import ParameterError, RefusedError

REPLACE, ZERO = Relation.REPLACE_ONE, Relation.ZERO_OUT
VECTORS = json.loads((Path(__file__).parents[3] / "test_vectors" / "exact_delta.json").read_text())[
    "cases"
]

floors, chances, losses = st.integers(0, 400), st.floats(0.001, 0.999), st.floats(0, 3)


@pytest.mark.parametrize("case", [case for case in VECTORS if case["mechanism"] == "dpds"])
def test_sampling_known_answers(case: dict[str, str]) -> None:
    floor, p, eps = int(case["floor"]), float(case["p"]), float(case["epsilon"])
    assert exact.sampling_delta(floor, p, eps) == pytest.approx(
        float(case["delta_replace"]), rel=1e-9
    )
    assert exact.sampling_delta(floor, p, eps, ZERO) == pytest.approx(
        float(case["delta_zero_out"]), rel=1e-9
    )


@pytest.mark.parametrize("case", [case for case in VECTORS if case["mechanism"] == "decoys"])
def test_decoys_known_answers(case: dict[str, str]) -> None:
    value = exact.decoys_delta(int(case["decoys"]), float(case["epsilon"]))
    assert value == pytest.approx(float(case["delta_replace"]), rel=1e-9)


def binomial(n: int, p: float) -> list[mpmath.mpf]:
    chance = mpmath.mpf(p)
    return [mpmath.binomial(n, x) * chance**x * (1 - chance) ** (n - x) for x in range(n + 1)] + [
        mpmath.mpf(0)
    ]


def defined(first: int, second: int, p: float, epsilon: float) -> mpmath.mpf:
    """The double sum of the definition for (a + 1, b) -> (a, b + 1)."""
    with mpmath.workdps(60):
        factor = mpmath.e ** mpmath.mpf(epsilon)
        up, down = binomial(first + 1, p), binomial(first, p)
        low, high = binomial(second, p), binomial(second + 1, p)
        return mpmath.fsum(
            max(mpmath.mpf(0), up[x] * low[y] - factor * down[x] * high[y])
            for x in range(first + 2)
            for y in range(second + 2)
        )


@pytest.mark.parametrize(
    ("k", "p", "eps"),
    [(1, 0.3, 0.0), (3, 0.99, 2.0), (40, 0.05, 1.5), (60, 0.5, 3.0), (30, 1e-6, 1.0)],
)
def test_sampling_is_the_definition_down_to_the_deepest_tails(k: int, p: float, eps: float) -> None:
    truth = defined(k, k, p, eps)
    value = exact.sampling_delta(k, p, eps)
    assert float(mpmath.mpf(value) / truth) == pytest.approx(1, rel=1e-10)
    assert value >= truth


def test_sampling_equals_the_general_divergence() -> None:
    for k, p, eps in [(20, 0.4, 0.7), (300, 0.6, 0.3)]:
        with np.errstate(divide="ignore"):
            fewer = np.append(log_binomial(k, p), -np.inf)
        pair = LossPair(log_binomial(k + 1, p), fewer)
        assert hockey_stick([pair, pair.swap()], eps) == pytest.approx(
            exact.sampling_delta(k, p, eps), rel=1e-9
        )
        both = max(hockey_stick([pair], eps), hockey_stick([pair.swap()], eps))
        assert both == pytest.approx(exact.sampling_delta(k, p, eps, ZERO), rel=1e-9)


def test_whoever_is_alone_is_exposed_whenever_sampled() -> None:
    for eps in (0.0, 1.0, 50.0):
        for relation in Relation:
            assert exact.sampling_delta(0, 0.2, eps, relation) == 0.2
            assert exact.sampling_delta(9, 1.0, eps, relation) == 1.0


def test_colluding_users_lower_the_floor() -> None:
    values = [exact.sampling_delta(100 - t, 0.5, 0.5) for t in (0, 10, 50, 100)]
    assert [float(f"{value:.2g}") for value in values] == [1.7e-5, 3.4e-5, 7.0e-4, 0.5]


def test_a_million_holders() -> None:
    k, p, eps = 10**6, 0.5, 0.005
    x = np.arange(490_000, 510_000)
    below = np.ceil(k + 1 - math.exp(eps) * (k + 1 - x)) - 1  # y up to here has P > e^eps Q
    direct = binom.pmf(x, k + 1, p) * binom.cdf(below, k, p)
    direct -= math.exp(eps) * binom.pmf(x, k, p) * binom.cdf(below, k + 1, p)
    assert exact.sampling_delta(k, p, eps) == pytest.approx(float(direct.sum()), rel=1e-8)
    assert exact.sampling_delta(k, p, 0.9) == 5e-324  # positive, though no double can say how small


@given(floors, chances, losses, st.sampled_from(list(Relation)))
@settings(max_examples=150, deadline=None)
def test_delta_falls_with_the_floor_and_epsilon_and_grows_with_p(
    k: int, p: float, eps: float, relation: Relation
) -> None:
    here = exact.sampling_delta(k, p, eps, relation) * (1 + 1e-10)
    assert exact.sampling_delta(k + 1, p, eps, relation) <= here
    assert exact.sampling_delta(k, p, eps + 0.1, relation) <= here
    assert exact.sampling_delta(k, p * 0.9, eps, relation) <= here


@given(st.integers(0, 60), chances, losses)
@settings(max_examples=60, deadline=None)
def test_zero_out_is_never_more_than_replace_one(k: int, p: float, eps: float) -> None:
    assert exact.sampling_delta(k, p, eps, ZERO) <= exact.sampling_delta(k, p, eps) * (1 + 1e-10)


@pytest.mark.parametrize(
    ("n", "k", "p", "eps"),
    [(9, 2, 0.4, 0.5), (12, 5, 0.7, 0.2), (8, 1, 0.2, 1.0), (5, 2, 0.5, 0.3)],
)
def test_two_items_are_enumerated(n: int, k: int, p: float, eps: float) -> None:
    truth = max(defined(a, n - 1 - a, p, eps) for a in range(k, n - k))
    value = exact.sampling_delta_two_items(n, k, p, eps)
    assert float(mpmath.mpf(value) / truth) == pytest.approx(1, rel=1e-10)
    assert value <= exact.sampling_delta(k, p, eps) * (1 + 1e-10)


def test_two_items_beyond_enumeration_use_the_bound() -> None:
    assert exact.sampling_delta_two_items(401, 30, 0.5, 0.5) == exact.sampling_delta(30, 0.5, 0.5)
    assert exact.sampling_delta_two_items(400, 30, 0.5, 0.5) < exact.sampling_delta(30, 0.5, 0.5)
    assert exact.sampling_delta_two_items(5, 0, 0.3, 1.0) == 0.3


def test_two_items_without_neighbours_are_refused() -> None:
    with pytest.raises(RefusedError, match="at most 4"):
        exact.sampling_delta_two_items(10, 5, 0.5, 1.0)


def test_calibrated_probability_of_the_mathematics_page() -> None:
    assert exact.sampling_probability(150, 0.5, 1e-5) == pytest.approx(0.585, abs=1e-3)


@given(st.integers(0, 500), st.floats(0.05, 2), st.sampled_from([1e-3, 1e-5, 1e-9]))
@settings(max_examples=60, deadline=None)
def test_calibrations_are_sound_and_tight(k: int, eps: float, delta: float) -> None:
    p = exact.sampling_probability(k, eps, delta)
    assert exact.sampling_delta(k, p, eps) <= delta
    assert exact.sampling_delta(k, p * (1 + 1e-6), eps) > delta
    floor = exact.sampling_floor(p, eps, delta)
    assert floor <= k
    assert floor == 0 or exact.sampling_delta(floor - 1, p, eps) > delta
    for relation in Relation:
        found = epsilon_for(
            lambda epsilon, of=relation: exact.sampling_delta(k, p, epsilon, of), delta
        )
        assert found <= eps * (1 + 1e-9)
        assert exact.sampling_delta(k, p, found, relation) <= delta


def test_impossible_calibrations_are_refused_with_a_way_out() -> None:
    with pytest.raises(RefusedError, match="smaller p"):
        exact.sampling_floor(1.0, 1.0, 1e-5)
    with pytest.raises(RefusedError, match="larger delta"):
        epsilon_for(
            lambda epsilon: exact.sampling_delta(3, 0.5, epsilon), 0.01
        )  # 0.5^4 of the time all holders are sampled
    with pytest.raises(ParameterError):
        exact.sampling_probability(10, 1.0, 0.0)
    with pytest.raises(ParameterError):
        exact.sampling_delta(-1, 0.5, 1.0)


def test_decoys_needed_of_the_mathematics_page() -> None:
    assert [exact.decoys_needed(eps, 1e-5) for eps in (0.5, 1, 2)] == [399, 115, 36]
    assert exact.decoys_delta(28, 1.0) == pytest.approx(1.1e-2, rel=0.05)


@given(st.integers(0, 600), losses, st.sampled_from(list(Relation)))
@settings(max_examples=80, deadline=None)
def test_more_decoys_never_hurt(coins: int, eps: float, relation: Relation) -> None:
    here = exact.decoys_delta(coins, eps, relation)
    assert exact.decoys_delta(coins + 1, eps, relation) <= here * (1 + 1e-9)
    assert exact.decoys_delta(coins, eps + 0.05, relation) <= here * (1 + 1e-9)


def test_every_number_of_decoys_up_to_the_needed_one_is_too_few() -> None:
    needed = exact.decoys_needed(1.0, 1e-5)
    assert all(exact.decoys_delta(coins, 1.0) > 1e-5 for coins in range(needed))
    assert exact.decoys_delta(needed, 1.0) <= 1e-5
    assert epsilon_for(lambda epsilon: exact.decoys_delta(needed, epsilon), 1e-5) == pytest.approx(
        1, abs=2e-3
    )
    with pytest.raises(RefusedError):
        exact.decoys_needed(0.0, 1e-12)


def test_a_wider_shift_and_zero_out() -> None:
    distribution = log_binomial(60, 0.5)
    one, two = (exact.shift_delta(distribution, 1.0, shift) for shift in (1, 2))
    assert one < two
    assert exact.shift_delta(distribution, 1.0, relation=ZERO) < one
    pair = exact.shift_pair(np.log(np.array([0.5, 0.5])), 1)
    np.testing.assert_array_equal(np.exp(pair.log_p), [0, 0.5, 0.5])
    np.testing.assert_array_equal(np.exp(pair.log_q), [0.5, 0.5, 0])


def negative_binomial(a: float, r: float, size: int) -> np.ndarray:
    steps = np.array([a * (x + r) / (x + 1) for x in range(size - 1)])
    return (1 - a) ** r * np.concatenate(([1.0], np.cumprod(steps)))


@pytest.mark.parametrize(
    ("a", "r"), [(0.6, 1.0), (0.6, 0.3), (0.9, 0.01), (0.3, 2.5), (0.8, 7.0), (0.05, 0.5)]
)
def test_laplace_distribution_is_the_convolution(a: float, r: float) -> None:
    ours = np.exp(exact.laplace_log_pmf(a, r))
    size = ours.size // 2 + 60
    direct = np.convolve(negative_binomial(a, r, size), negative_binomial(a, r, size)[::-1])
    middle, half = direct.size // 2, ours.size // 2
    np.testing.assert_allclose(
        ours, direct[middle - half : middle + half + 1], rtol=1e-11, atol=1e-90
    )


@pytest.mark.parametrize(
    ("a", "r", "z"), [(0.6, 0.3, 0), (0.6, 0.3, 100), (0.95, 0.5, 1000), (0.99, 3.0, 4000)]
)
def test_laplace_distribution_in_its_far_tail(a: float, r: float, z: int) -> None:
    with mpmath.workdps(50):
        ratio, shape = mpmath.mpf(a), mpmath.mpf(r)
        start = mpmath.rf(shape, z) / mpmath.factorial(z) * (1 - ratio) ** (2 * shape) * ratio**z
        truth = float(mpmath.log(start * mpmath.hyp2f1(shape, shape + z, z + 1, ratio**2)))
    distribution = exact.laplace_log_pmf(a, r)
    assert distribution[distribution.size // 2 + z] == pytest.approx(truth, abs=1e-10)
    assert distribution[distribution.size // 2 - z] == distribution[distribution.size // 2 + z]


def test_laplace_epsilon_of_the_mathematics_page() -> None:
    assert exact.laplace_epsilon(1.0, 0.9) == pytest.approx(1.172, abs=5e-4)
    assert exact.laplace_epsilon(1.0, 0.5) == pytest.approx(2.275, abs=5e-4)
    assert exact.laplace_epsilon(1.0, 1.0) == 1.0
    assert exact.laplace_epsilon(1.0, 3.0) == 1.0


@given(st.floats(0.05, 4), st.floats(0.02, 4))
@settings(max_examples=60, deadline=None)
def test_the_largest_laplace_loss_is_at_zero_or_at_infinity(eps: float, share: float) -> None:
    distribution = exact.laplace_log_pmf(math.exp(-eps / 2), share)
    worst = 2 * float(np.abs(np.diff(distribution)).max())
    assert worst <= exact.laplace_epsilon(eps, share) * (1 + 1e-9)
    if share < 1:
        assert worst == pytest.approx(exact.laplace_epsilon(eps, share), rel=1e-9)


def test_laplace_delta_of_a_full_share_is_two_randomized_responses() -> None:
    eps0 = 1.3
    keep = np.log(np.array([math.exp(eps0 / 2), 1]) / (1 + math.exp(eps0 / 2)))
    response = LossPair(keep, keep[::-1].copy())
    distribution = exact.laplace_log_pmf(math.exp(-eps0 / 2), 1.0)
    for eps in (0.0, 0.4, 1.0):
        value = exact.laplace_delta(eps0, 1.0, eps)
        assert value == pytest.approx(hockey_stick([response, response], eps), rel=1e-10)
        assert value == pytest.approx(exact.shift_delta(distribution, eps), rel=1e-9)
        assert exact.laplace_delta(eps0, 1.0, eps / 2, ZERO) == pytest.approx(
            hockey_stick([response], eps / 2), rel=1e-10
        )
    assert exact.laplace_delta(eps0, 1.0, eps0) == 0.0
    assert exact.laplace_delta(eps0, 1.0, eps0 / 2, ZERO) == 0.0


def test_laplace_delta_of_other_shares() -> None:
    values = [exact.laplace_delta(1.0, share, 0.6) for share in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert values == sorted(values, reverse=True)
    assert exact.laplace_delta(1.0, 0.5, 2.27) > 0
    assert exact.laplace_delta(1.0, 0.5, 2.28) == 0.0
    assert exact.laplace_delta(1.0, 2.0, 1.0) == 0.0


mp.mp.dps = 50


@pytest.mark.parametrize("epsilon", [1e-3, 2e-3, 1e-2, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.1, 0.5, 0.99, 0.999999])
def test_epsilon_of_a_part_of_the_noise_is_never_too_small(epsilon: float, share: float) -> None:
    a, r = mp.exp(-mp.mpf(epsilon) / 2), mp.mpf(share)
    true = 2 * mp.log(mp.hyp2f1(r, r, 1, a * a) / (a * r * mp.hyp2f1(r, r + 1, 2, a * a)))
    said = exact.laplace_epsilon(epsilon, share)
    assert true <= said <= true * (1 + 1e-6)


def test_huge_floors_and_coins_are_answered_at_once() -> None:
    assert exact.sampling_delta(10**400, 0.5, 1e-4) == exact.sampling_delta(10**9, 0.5, 1e-4)
    assert exact.decoys_delta(10**400, 1e-3) == exact.decoys_delta(10**8, 1e-3)


def test_the_smallest_probability_raises_no_warning() -> None:
    assert exact.sampling_delta(3, 5e-324, 1.0) >= 5e-324


def test_p_near_1_at_a_large_epsilon_raises_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for relation in Relation:
            assert 0.99 < exact.sampling_delta(5, 1 - 1e-9, 800.0, relation) <= 1
            assert 0.99 < exact.sampling_delta(10**6, 1 - 1e-9, 800.0, relation) <= 1

"""DPDG: the table is the mechanism, so the guarantee is compared with sums of its integers."""

import math
from fractions import Fraction
from functools import partial
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from faircount.accounting.gaussian import rounded_sum_delta
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError, RefusedError
from faircount.mechanisms.exact_draws import ONE
from faircount.mechanisms.gaussian import DPDG, gaussian_table, table_distance
from faircount.sharing.primes import is_prime

make = partial(DPDG, items=3, epsilon=1, delta=1e-5)


def convolve_table(table, terms):
    """The exact distribution of a sum of independent draws; only the result is rounded."""
    distribution = np.array(table.weights, dtype=object)
    total = distribution
    for _ in range(terms - 1):
        total = np.convolve(total, distribution)
    return np.array([float(Fraction(weight, ONE**terms)) for weight in total])


def fits(steps, distribution, alarm=1e-6):
    """Chi-square test over 50 cells of similar probability; one false alarm in a million."""
    upper = np.cumsum(distribution.pmf)
    edges = np.unique(np.searchsorted(upper, np.arange(1, 50) / 50))
    cells = np.diff(np.concatenate(([0], upper[edges], [1])))
    observed = np.bincount(np.searchsorted(edges, steps - distribution.low), minlength=cells.size)
    statistic = ((observed - cells * steps.size) ** 2 / (cells * steps.size)).sum()
    return statistic < chi2.isf(alarm, cells.size - 1)


# The distribution of the noise.


@pytest.mark.parametrize("deviation", [0.3, 1.0, 8.7, 30.0])
def test_the_table_is_a_rounded_gaussian_and_symmetric_to_the_bit(deviation):
    table = gaussian_table(deviation)
    assert table.weights == table.weights[::-1]
    assert min(table.weights) > 0
    assert table.values[-1] >= 11 * deviation
    with mpmath.workdps(50):
        for z, weight in zip(table.values, table.weights, strict=True):
            low, high = (mpmath.mpf(abs(z)) + side for side in (-0.5, 0.5))
            cell = (
                mpmath.erfc(low / deviation / mpmath.sqrt(2))
                - mpmath.erfc(high / deviation / mpmath.sqrt(2))
            ) / 2
            # 0 has the remaining probability, so that all of them add up to 1.
            if z:
                # The nearest integer, so the table is the same on every machine.
                assert weight == int(mpmath.nint(cell * ONE))


def test_count_level_distribution_is_the_sum_of_the_users_tables():
    mechanism = make(users=5, insiders=2)
    for included in (1, 5):
        distribution = mechanism.noise(included)
        exact = convolve_table(mechanism.table, included)
        reach = min(-distribution.low, len(exact) // 2)
        inner = exact[len(exact) // 2 - reach : len(exact) // 2 + reach + 1]
        found = distribution.pmf[-distribution.low - reach : -distribution.low + reach + 1]
        # The distribution is accurate down to about 1e-30; very rare outcomes are not compared.
        common = inner > 1e-28
        assert found[common] == pytest.approx(inner[common], rel=1e-8, abs=0)
        assert distribution.mean == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("wrong", "same"), [(1.0, True), (1.3, False)])
def test_both_levels_draw_the_same_distribution_and_another_scale_is_noticed(wrong, same):
    items = 20_000
    users = 4
    # The same scale for both, so that steps of one can be compared with the distribution of the other.
    promised = make(items=items, users=users, calibration="classical", scale=16)
    drawn = make(items=items, users=users, calibration="classical", scale=16, epsilon=1 / wrong)
    distribution = promised.noise(users)
    answers = np.arange(users)
    counts = np.bincount(answers, minlength=items)
    one_by_one = drawn.decode(drawn.total(drawn.respond(answers, SeededStream(1))), users)
    at_once = drawn.draw(counts, np.random.default_rng(2))
    for noisy in (one_by_one, at_once):
        steps = (noisy - counts) * 16
        assert np.array_equal(steps, np.round(steps))
        assert fits(steps.astype(np.int64), distribution) == same


# Calibration and guarantee.


@pytest.mark.parametrize(
    ("epsilon", "analytic", "classical"), [(0.5, 98.9, 187.8), (1, 27.8, 46.9), (2, 8.0, 11.7)]
)
def test_variances_of_the_mathematics(epsilon, analytic, classical):
    for calibration, counts in (("analytic", analytic), ("classical", classical)):
        mechanism = make(epsilon=epsilon, users=1000, insiders=0, calibration=calibration)
        assert mechanism.target_sigma**2 == pytest.approx(counts, abs=0.051)
        found = mechanism.variance(np.array([0.5, 0.3, 0.2]), raw=True) * 1000**2
        # The rounding of every user adds a twelfth of a squared step.
        rounding = 1000 / 12 / mechanism.steps_per_count**2
        # A deviation is rounded up to 24 binary digits.
        assert found == pytest.approx(np.full(3, mechanism.target_sigma**2 + rounding), rel=3e-7)
        assert found[0] == pytest.approx(mechanism.target_sigma**2, rel=2e-3)


def test_the_others_add_noise_for_missing_users():
    mechanism = make(users=1000, insiders=100, dropouts=200)
    assert mechanism.h == 700
    found = mechanism.variance(np.array([0.5, 0.3, 0.2]), 800, raw=True) * 800**2
    assert found == pytest.approx(np.full(3, mechanism.target_sigma**2 * 800 / 700), rel=2e-3)


@pytest.mark.parametrize("scale", [4, 9])
def test_delta_is_the_hockey_stick_of_the_tables_integers(scale):
    """Brute force over both counts that a replaced answer moves, from the exact three-fold sum."""
    mechanism = make(epsilon=1.5, delta=1e-3, users=4, scale=scale)
    # One count is `scale` steps.
    distribution = np.concatenate(
        (np.zeros(scale), convolve_table(mechanism.table, 3), np.zeros(scale))
    )
    up = np.roll(distribution, scale)
    down = np.roll(distribution, -scale)
    two = np.maximum(
        0, np.outer(up, distribution) - math.exp(1.5) * np.outer(distribution, up)
    ).sum()
    other_way = np.maximum(
        0, np.outer(distribution, up) - math.exp(1.5) * np.outer(up, distribution)
    ).sum()
    assert two == pytest.approx(other_way, rel=1e-9)
    assert mechanism.guarantee().delta == pytest.approx(two, rel=2e-6)
    assert mechanism.guarantee().delta >= two
    one = max(np.maximum(0, moved - math.exp(1.5) * distribution).sum() for moved in (up, down))
    assert mechanism.guarantee(relation=Relation.ZERO_OUT).delta == pytest.approx(one, rel=2e-6)


@pytest.mark.parametrize(
    ("users", "epsilon", "delta"), list(product((2, 50, 3000), (0.2, 3.0), (1e-3, 1e-9)))
)
def test_the_promise_holds_for_what_runs(users, epsilon, delta):
    mechanism = make(users=users, epsilon=epsilon, delta=delta)
    assert delta * 0.9 < mechanism.guarantee().delta <= delta
    assert mechanism.guarantee(adversary=OUTSIDER).delta <= mechanism.guarantee().delta
    assert mechanism.user_steps >= 8
    assert mechanism.user_steps < 16.1 or mechanism.steps_per_count == 1
    assert mechanism.promise == (epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(50, 1e-12), (300, 1e-3), (0.5, 1e-20)])
def test_the_promise_holds_at_the_edges(epsilon, delta):
    assert make(users=20, epsilon=epsilon, delta=delta).guarantee().delta <= delta


def test_noise_is_raised_where_a_coarse_grid_rounds_it_away():
    coarse = make(users=401, scale=1)
    planned = coarse.target_sigma / math.sqrt(400)
    # In grid steps: most of a user's noise is rounded to 0.
    assert 0.25 < planned < 0.27
    assert coarse.user_steps > planned
    assert coarse.guarantee().delta <= 1e-5
    # The epsilon at which the classical formula has the same deviation before rounding.
    as_planned = make(
        users=401, scale=1, epsilon=math.sqrt(2 * 2 * math.log(1.25e5)) / coarse.target_sigma
    )
    unraised = make(users=401, scale=1, calibration="classical", epsilon=as_planned.epsilon)
    assert unraised.user_steps == pytest.approx(planned)
    assert unraised.guarantee(epsilon=1).delta > 1e-5


def test_the_classical_calibration_wastes_noise():
    classical = make(users=1000, calibration="classical").guarantee()
    assert classical.delta == pytest.approx(4.1e-8, rel=0.02)
    assert classical.epsilon == 1


def test_the_printed_share_of_noise_protects_nobody():
    """Erratum 3: N(0, (G sigma / n)^2) per user leaves a variance n times too small."""
    printed = make(users=1000, insiders=0, share="printed", calibration="classical")
    corrected = make(users=1000, insiders=0, calibration="classical")
    truth = np.array([0.5, 0.3, 0.2])
    assert printed.variance(truth) * 1000 == pytest.approx(corrected.variance(truth), rel=5e-3)
    assert printed.promise == (1.0, 1e-5)
    assert printed.guarantee().delta > 0.998
    assert corrected.guarantee().delta < 1e-7


def test_guarantee_against_others_and_after_dropouts():
    mechanism = make(users=100, insiders=5, dropouts=5)
    assert mechanism.remaining_guarantee(95).delta == mechanism.guarantee().delta <= 1e-5
    assert mechanism.remaining_guarantee(80).delta > 1e-5
    assert mechanism.guarantee(adversary=insiders(0)).delta < mechanism.guarantee().delta
    assert mechanism.guarantee(adversary=insiders(95)).delta == 1.0
    assert mechanism.guarantee(adversary=COLLECTOR).delta > 0.5
    assert mechanism.guarantee(delta=1e-9).epsilon > 1
    with pytest.raises(RefusedError):
        mechanism.remaining_guarantee(5)


def test_machines_that_differ_in_the_last_digit_compute_the_same_table():
    mechanism = make(users=100)
    other = make(users=100)
    object.__setattr__(other, "target_sigma", math.nextafter(mechanism.target_sigma, math.inf))
    assert other.target_sigma != mechanism.target_sigma
    assert other.table == mechanism.table


# Very many users.


@pytest.mark.parametrize(("users", "epsilon"), list(product((1, 2, 7), (0.0, 0.5, 2.0))))
def test_the_gaussian_before_rounding_bounds_what_a_few_rounded_ones_add_up_to(users, epsilon):
    """Compared with sums of the table's integers: never below, and on a fine grid little above."""
    deviation = 8.5
    shift = 6
    distribution = np.concatenate(
        (np.zeros(shift), convolve_table(gaussian_table(deviation), users), np.zeros(shift))
    )
    # A shift of one count, on a support wide enough for both distributions.
    up = np.roll(distribution, shift)
    for coordinates, truth in (
        (1, np.maximum(0, up - math.exp(epsilon) * distribution).sum()),
        (
            2,
            np.maximum(
                0, np.outer(up, distribution) - math.exp(epsilon) * np.outer(distribution, up)
            ).sum(),
        ),
    ):
        bound = rounded_sum_delta(
            deviation, users, shift, epsilon, coordinates, table_distance(deviation)
        )
        assert truth <= bound <= truth * 1.05 + 1e-30
        planted = rounded_sum_delta(
            deviation * 1.01, users, shift, epsilon, coordinates, table_distance(deviation)
        )
        # Planted: one percent more noise than there is would be noticed.
        assert planted < truth or truth > 0.999


def test_the_bound_takes_over_without_a_jump():
    mechanism = make(users=100_000, delta=1e-6)
    assert mechanism.user_steps * math.sqrt(mechanism.h) < 4096
    summed = mechanism.guarantee().delta
    bound = rounded_sum_delta(
        mechanism.user_steps,
        mechanism.h,
        mechanism.steps_per_count,
        1.0,
        2,
        table_distance(mechanism.user_steps),
    )
    assert summed <= bound <= 1.02 * summed


@pytest.mark.parametrize("users", [10**6, 10**9, 10**10, 10**12])
def test_a_billion_users_are_accounted_for_at_once(users):
    """The exact distribution of such a sum has more than 10^7 points and is not computed."""
    mechanism = make(users=users, delta=1e-6)
    assert 0.999e-6 < mechanism.guarantee().delta <= 1e-6
    assert mechanism.guarantee(relation=Relation.ZERO_OUT).delta < 1e-6
    assert mechanism.remaining_guarantee(users // 2).delta > 1e-6
    assert mechanism.user_steps == pytest.approx(
        mechanism.target_sigma / math.sqrt(users - 1) * mechanism.steps_per_count
    )


def test_what_cannot_be_shown_for_very_many_users_is_refused():
    with pytest.raises(RefusedError, match="too many to compute its distribution"):
        make(users=10**10).channel(10**10)
    with pytest.raises(RefusedError, match="choose a larger scale"):
        make(users=10**9, scale=10**4, calibration="classical").guarantee()
    with pytest.raises(RefusedError, match="choose a larger delta or a smaller epsilon"):
        make(users=10**10, epsilon=40, delta=1e-9).guarantee()


# From responses to estimates.


def test_sums_are_fixed_point_counts_and_impossible_ones_are_refused():
    mechanism = make(users=10, scale=4, insiders=0)
    q = mechanism.modulus
    reach = mechanism.bound
    spread = mechanism.total_bound
    assert is_prime(q)
    assert q > 40 + 2 * reach

    def decode(*steps):
        return mechanism.decode((np.array(steps) % q).astype(np.uint16), 10)

    assert decode(-3, 30, 13).tolist() == [-0.75, 7.5, 3.25]
    # The ends of the range are still valid.
    assert decode(-reach, 40 + reach, 0).tolist() == [-reach / 4, 10 + reach / 4, 0]
    # Above the range of an item, above that of the total, and below that of the total.
    for corrupt in (
        (41 + reach, 0, 0),
        (reach, reach, 40 + spread - 2 * reach + 1),
        (-reach, -reach, -reach),
    ):
        with pytest.raises(CorruptSumError):
            decode(*corrupt)
    assert mechanism.estimate(np.array([-0.75, 7.5, 3.25]), 10) == pytest.approx(
        [-0.075, 0.75, 0.325]
    )


def test_a_response_is_the_answer_in_fixed_point_plus_a_draw_per_entry():
    mechanism = make(users=4, scale=8)
    responses = mechanism.respond(np.array([0, 2, 1, 2]), SeededStream(3)).astype(np.int64)
    noise = mechanism.table.draw(12, SeededStream(3)).reshape(4, 3)
    vectors = np.array([[8, 0, 0], [0, 0, 8], [0, 8, 0], [0, 0, 8]])
    assert np.array_equal(responses, (vectors + noise) % mechanism.modulus)


@pytest.mark.parametrize("users", [2, 300])
def test_noise_outgrows_its_bound_once_in_2_60(users):
    mechanism = make(items=30, users=users)
    distribution = mechanism.noise(users)
    reach = mechanism.bound
    assert (
        # The bound holds, and 85% of it would not.
        30 * 2 * distribution.pmf[: -distribution.low - reach].sum()
        < 2.0**-60
        < 30 * 2 * distribution.pmf[: -distribution.low - int(0.85 * reach)].sum()
    )
    assert mechanism.total_bound == pytest.approx(reach * math.sqrt(30), rel=0.1)


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"delta": 0},
        {"delta": 1},
        {"delta": 1e-25},
        {"delta": float("nan")},
        {"calibration": "exact"},
        {"share": "equal"},
        {"scale": 0},
        {"scale": 1.5},
        {"users": 3, "insiders": 3},
    ],
)
def test_parameters_that_make_no_sense_are_refused(given):
    with pytest.raises(ParameterError):
        make(**given)


@pytest.mark.parametrize("scale", [1, 10**6])
def test_a_grid_too_coarse_or_too_fine_is_refused(scale):
    with pytest.raises(ParameterError, match="scale must lie between 2 and"):
        assert make(users=1000, scale=scale).modulus


def test_a_mechanism_prints_its_parameters_and_no_table():
    mechanism = make(users=100)
    assert mechanism.modulus
    assert mechanism.channel(100).noise
    assert len(repr(mechanism)) < 200

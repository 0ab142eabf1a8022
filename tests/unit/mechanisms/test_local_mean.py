"""Duchi and PM on the lattice: exact distributions in rational arithmetic, then the sampling.

Statistical tests have a false-alarm rate of 1e-6.
"""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from faircount.accounting.guarantee import COLLECTOR, Relation
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.mechanisms.local import exp_rounded_down
from faircount.mechanisms.local_mean import PM, Duchi, LocalMean, ReportSums, round_at_random

ALARM = 1e-6
VALUES = [-1.0, -0.7, -0.25, 0.0, 0.1, 1 / 3, 0.875, 1.0]
# Few enough cells to enumerate all reports.
SMALL = [
    Duchi(epsilon=0.5),
    Duchi(epsilon=3.0),
    PM(epsilon=0.4, cells=8),
    PM(epsilon=1.0, cells=16),
    PM(epsilon=4.0, cells=33),
]


class Word(Entropy):
    """Returns the same 64-bit word for all users."""

    def __init__(self, word: int) -> None:
        self.word = word

    def fill(self, out: NDArray[np.uint8]) -> None:
        out[:] = np.full(out.size // 8, self.word, dtype=np.uint64).view(np.uint8)


def distribution_of(mechanism: LocalMean, x: float) -> list[Fraction]:
    """Probability of every cell given the value, rounding included, exactly."""
    window = mechanism.window
    steps = mechanism.steps
    position = (Fraction(x) + 1) / 2 * steps
    low = min(int(position), steps - 1)
    distribution = [Fraction(0)] * window.cells
    # The window starts at one of two neighbouring cells, by the random rounding.
    for start, share in ((low, low + 1 - position), (low + 1, position - low)):
        for cell in range(window.cells):
            in_window = start <= cell < start + window.width
            distribution[cell] += share * (window.own if in_window else window.other)
    return distribution


def hockey_stick(p: list[Fraction], q: list[Fraction], growth: Fraction) -> Fraction:
    """The exact hockey-stick divergence of two distributions at e^epsilon = growth."""
    return sum((max(Fraction(0), a - growth * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def report(mechanism: LocalMean, cell: int) -> Fraction:
    """The number that a cell stands for, exactly."""
    return (Fraction(cell) - Fraction(mechanism.window.cells - 1, 2)) / mechanism.scale


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
@pytest.mark.parametrize("x", VALUES)
def test_unbiased_exactly_and_variance_exactly(mechanism: LocalMean, x: float) -> None:
    distribution = distribution_of(mechanism, x)
    numbers = [report(mechanism, cell) for cell in range(len(distribution))]
    assert sum(distribution) == 1
    assert sum(p * y for p, y in zip(distribution, numbers, strict=True)) == Fraction(x)
    variance = sum(p * (y - Fraction(x)) ** 2 for p, y in zip(distribution, numbers, strict=True))
    assert mechanism.report_variance(np.array([x]))[0] == pytest.approx(float(variance), rel=1e-12)
    c0, c1 = mechanism.variance_coefficients
    assert float(variance) <= (c0 + c1 * x**2) * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_two_output_ratio_and_delta_exactly(mechanism: LocalMean) -> None:
    distributions = [distribution_of(mechanism, x) for x in VALUES]
    worst = Fraction(0)
    for p, q in product(distributions, repeat=2):
        worst = max(worst, *(a / b for a, b in zip(p, q, strict=True)))
    with mpmath.workdps(150):
        ratio = mpmath.mpf(worst.numerator) / worst.denominator
        limit = mpmath.exp(mpmath.mpf(mechanism.epsilon))
        assert limit * (1 - mpmath.mpf(2) ** -80) < ratio <= limit
    for growth in (
        Fraction(1),
        exp_rounded_down(mechanism.epsilon / 2),
        exp_rounded_down(mechanism.epsilon),
    ):
        # The maximum is reached at x = -1 against x = 1.
        divergences = [hockey_stick(p, q, growth) for p, q in product(distributions, repeat=2)]
        assert mechanism.divergence(growth) == max(divergences)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
@pytest.mark.parametrize("part", [0.0, 0.4, 0.9])
def test_two_reports_of_one_user_compose_to_the_enumerated_delta(
    mechanism: LocalMean, part: float
) -> None:
    asked = 2 * mechanism.epsilon * part
    growth = exp_rounded_down(asked)
    low = distribution_of(mechanism, -1.0)
    high = distribution_of(mechanism, 1.0)
    # The joint distributions of two independent reports.
    both_low = [a * b for a, b in product(low, repeat=2)]
    both_high = [a * b for a, b in product(high, repeat=2)]
    truth = hockey_stick(both_low, both_high, growth)
    stated = mechanism.compose_reports(2, epsilon=asked)
    assert truth <= Fraction(stated)
    assert stated == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_the_estimate_of_two_users_by_enumeration(mechanism: LocalMean) -> None:
    values = np.array([-0.7, 0.4])
    first = distribution_of(mechanism, values[0])
    second = distribution_of(mechanism, values[1])
    mean = 0.0
    spread = 0.0
    for (i, p), (j, q) in product(enumerate(first), enumerate(second)):
        sums = mechanism.decode(mechanism.total(np.array([i, j])), 2)
        estimate = mechanism.estimate(sums, 2)
        mean += float(p * q) * estimate
        spread += float(p * q) * (estimate - values.mean()) ** 2
    assert mean == pytest.approx(values.mean(), abs=1e-12)
    assert spread == pytest.approx(mechanism.variance(values), rel=1e-11)
    assert spread == pytest.approx(mechanism.bind(2).variance(values), rel=1e-11)
    assert spread / 5 == pytest.approx(mechanism.variance(values, 10), rel=1e-11)


@given(
    x=st.floats(-1, 1),
    steps=st.sampled_from([1, 2, 637, 1023, 65535]),
    word=st.integers(0, 2**64 - 1),
)
@example(x=1.0, steps=65535, word=0)
@example(x=-1.0, steps=65535, word=0)
@example(x=-5e-324, steps=3, word=2**64 - 1)
@example(x=1 - 2**-53, steps=65535, word=0)
def test_rounding_has_exactly_the_stated_probability(x: float, steps: int, word: int) -> None:
    # The exact position as an integer over 2^63.
    exact = (int(Fraction(x) * 2**62) + 2**62) * steps
    low, rest = divmod(exact, 2**63)
    assert round_at_random(np.array([x]), steps, Word(word))[0] == low + ((word >> 1) < rest)
    # The words on both sides of the threshold: the one at the threshold rounds down.
    if rest > 0:
        assert round_at_random(np.array([x]), steps, Word((rest - 1) << 1))[0] == low + 1
        assert round_at_random(np.array([x]), steps, Word(rest << 1))[0] == low


def test_duchi_is_the_textbook_method() -> None:
    duchi = Duchi(epsilon=1.0)
    e = np.e
    bound = (e + 1) / (e - 1)
    assert float(report(duchi, 1)) == pytest.approx(bound, rel=1e-15)
    assert report(duchi, 0) == -report(duchi, 1)
    for x in VALUES:
        assert float(distribution_of(duchi, x)[1]) == pytest.approx(
            0.5 + x * (e - 1) / (2 * (e + 1)), rel=1e-14
        )
    assert duchi.variance_coefficients == pytest.approx((bound**2, -1))
    np.testing.assert_allclose(
        duchi.report_variance(np.array(VALUES)), bound**2 - np.square(VALUES), rtol=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_pm_converges_to_the_papers_variance(epsilon: float) -> None:
    z = np.exp(epsilon / 2)
    x = np.array(VALUES)
    limit = x**2 / (z - 1) + (z + 3) / (3 * (z - 1) ** 2)
    gap = {}
    for cells in (64, 1024, 65536):
        pm = PM(epsilon=epsilon, cells=cells)
        gap[cells] = float(np.max(np.abs(pm.report_variance(x) / limit - 1)))
    assert gap[65536] < 3e-4
    assert gap[65536] < gap[64]
    # The default grid is within 2.5% up to epsilon = 8.
    assert gap[1024] < 0.025
    assert PM(epsilon=epsilon).variance_coefficients == pytest.approx(
        ((z + 3) / (3 * (z - 1) ** 2), 1 / (z - 1)), rel=0.025
    )


def test_pm_pieces_are_the_papers() -> None:
    """Length C - 1 on [-C, C], and reports that reach to C."""
    epsilon = 1.0
    z = np.exp(epsilon / 2)
    C = (z + 1) / (z - 1)
    pm = PM(epsilon=epsilon, cells=65536)
    assert pm.window.width / pm.window.cells == pytest.approx((C - 1) / (2 * C), rel=1e-4)
    assert float(report(pm, pm.window.cells - 1)) == pytest.approx(C, rel=1e-4)


def test_the_affine_variance_is_short_by_the_rounding_alone() -> None:
    pm = PM(epsilon=1.0)
    x = np.linspace(-1, 1, 2001)
    c0, c1 = pm.variance_coefficients
    slack = (c0 + c1 * x**2) / pm.report_variance(x) - 1
    assert slack.min() > -1e-13
    assert slack.max() < 1e-5


def alarm(observed: NDArray[np.int64], distribution: list[Fraction]) -> float:
    expected = np.array([float(p) for p in distribution]) * observed.sum()
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_reports_have_the_exact_distribution(mechanism: LocalMean) -> None:
    n = 100_000
    cells = mechanism.window.cells
    for x in (-1.0, 0.1, 0.875):
        reports = mechanism.respond(np.full(n, x), SeededStream(21))
        assert reports.min() >= 0
        assert alarm(np.bincount(reports, minlength=cells), distribution_of(mechanism, x)) > ALARM
    # Planted: a privacy loss that is 30% larger than promised.
    planted = type(mechanism)(epsilon=mechanism.epsilon * 1.3)
    if isinstance(mechanism, PM):
        planted = PM(epsilon=mechanism.epsilon * 1.3, cells=cells)
    if planted.window.width == mechanism.window.width:
        off = planted.respond(np.full(n, 0.875), SeededStream(22))
        assert alarm(np.bincount(off, minlength=cells), distribution_of(mechanism, 0.875)) < ALARM
    # Planted: another value.
    shifted = mechanism.respond(np.full(n, 0.875 - 0.1), SeededStream(23))
    assert alarm(np.bincount(shifted, minlength=cells), distribution_of(mechanism, 0.875)) < ALARM


@pytest.mark.parametrize(
    "mechanism", [Duchi(epsilon=1.0), PM(epsilon=1.0), PM(epsilon=3.0, cells=64)], ids=str
)
def test_draw_and_respond_have_the_same_mean_and_spread(mechanism: LocalMean) -> None:
    """A z-test for the mean and a chi-square test for the variance, both at 1e-6.

    Estimates from 400 users are close enough to normal for both.
    """
    values = np.linspace(-0.9, 0.6, 400)
    runs = 1000
    rng = np.random.default_rng(31)
    theory = mechanism.variance(values)
    reports = mechanism.respond(np.tile(values, runs), SeededStream(32)).reshape(runs, -1)
    drawn = np.array([mechanism.estimate(mechanism.draw(values, rng), 400) for _ in range(runs)])
    reported = np.array([mechanism.estimate(mechanism.total(row), 400) for row in reports])
    for estimates in (drawn, reported):
        assert spread_alarm(estimates, values.mean(), theory) > ALARM
        # Planted: a variance 40% off.
        assert spread_alarm(estimates, values.mean(), theory * 1.4) < ALARM
        # Planted: a bias of 0.05.
        assert spread_alarm(estimates, values.mean() + 0.05, theory) < ALARM


def spread_alarm(estimates: NDArray[np.float64], mean: float, variance: float) -> float:
    n = estimates.size
    z = (estimates.mean() - mean) / np.sqrt(variance / n)
    # Two-sided test of the variance, and a Bonferroni correction for both tests.
    quadratic = float(np.sum((estimates - estimates.mean()) ** 2) / variance)
    tail = 2 * min(stats.chi2.cdf(quadratic, n - 1), stats.chi2.sf(quadratic, n - 1))
    return float(min(2 * stats.norm.sf(abs(z)), tail)) * 2


def test_noise_variance_from_the_reports() -> None:
    values = np.random.default_rng(41).uniform(-1, 0.5, 50_000)
    rng = np.random.default_rng(42)
    pm = PM(epsilon=1.0)
    duchi = Duchi(epsilon=1.0)
    sums = pm.draw(values, rng)
    assert pm.mean_square(sums, values.size) == pytest.approx(np.mean(values**2), abs=0.1)
    assert pm.noise_variance(sums, values.size) == pytest.approx(pm.variance(values), rel=0.05)
    c0, c1 = pm.variance_coefficients
    assert (c0 + c1 * np.mean(values**2)) / values.size == pytest.approx(
        pm.variance(values), rel=1e-5
    )
    noise = duchi.noise_variance(duchi.draw(values, rng), values.size)
    # Duchi's reports do not show the spread of the values, so the estimate is an upper one.
    assert duchi.variance(values) < noise < duchi.variance(values) * 1.1
    same = np.full(50_000, 0.8)
    # Without any spread of the values the estimate is close.
    noise = duchi.noise_variance(duchi.draw(same, rng), same.size)
    assert noise == pytest.approx(duchi.variance(same), rel=0.02)


def test_mean_square_is_unbiased_before_clipping() -> None:
    """Exactly: E[y^2] = c0 + (1 + c1) x^2 up to the rounding term, by enumeration."""
    pm = PM(epsilon=1.0, cells=512)
    c0, c1 = pm.variance_coefficients
    for x in (0.0, 0.5, 1.0):
        second = sum(p * report(pm, cell) ** 2 for cell, p in enumerate(distribution_of(pm, x)))
        assert (float(second) - c0) / (1 + c1) == pytest.approx(x**2, abs=2e-5)


@pytest.mark.parametrize("mechanism", [Duchi(epsilon=1.0), PM(epsilon=1.0)], ids=str)
def test_mean_square_stays_within_zero_and_one(mechanism: LocalMean) -> None:
    last = mechanism.window.cells - 1
    for cells in ([0, 0, 0], [last, last, last], [0, last], [last // 2 + 1, last // 2], [last]):
        sums = mechanism.total(np.array(cells))
        assert 0 <= mechanism.mean_square(sums, len(cells)) <= 1
        assert mechanism.noise_variance(sums, len(cells)) > 0


def test_duchi_draw_has_the_exact_distribution() -> None:
    duchi = Duchi(epsilon=1.0)
    values = np.array([0.5, 0.5, -1.0])
    rng = np.random.default_rng(51)
    distribution = np.array([1.0])
    for x in values:
        distribution = np.convolve(distribution, [float(p) for p in distribution_of(duchi, x)])
    seen = np.bincount([duchi.draw(values, rng).total for _ in range(20_000)], minlength=4)
    assert stats.chisquare(seen, distribution * seen.sum() / distribution.sum()).pvalue > ALARM
    # Planted: the mirrored distribution.
    assert (
        stats.chisquare(seen, distribution[::-1] * seen.sum() / distribution.sum()).pvalue < ALARM
    )


def test_sums_are_whole_numbers_for_a_hundred_million_users() -> None:
    worst = np.full(1000, 65535)
    sums = PM(epsilon=1.0, cells=65536).total(worst)
    assert sums == ReportSums(65535 * 1000, 65535**2 * 1000)
    # The squares of 10^8 such reports fit into 63 bits.
    assert sums.squares * 10**5 < 2**63
    assert isinstance(sums.total, int)
    assert PM(epsilon=1.0, cells=256).total(np.full(10, 255, dtype=np.uint8)).squares == 10 * 255**2


@pytest.mark.parametrize("mechanism", [Duchi(epsilon=1.0), PM(epsilon=1.0)], ids=str)
def test_guarantee(mechanism: LocalMean) -> None:
    guarantee = mechanism.guarantee()
    assert (guarantee.epsilon, guarantee.delta, guarantee.adversary) == (1.0, 0.0, COLLECTOR)
    assert guarantee.condition is None
    assert 0 < mechanism.delta_at(0.9, COLLECTOR, Relation.REPLACE_ONE) < 0.2
    with pytest.raises(RefusedError):
        mechanism.guarantee(relation=Relation.ZERO_OUT)


@pytest.mark.parametrize("make", [Duchi, PM])
@pytest.mark.parametrize(
    "values", [[1.77], [-1.0000000000000002], [float("nan")], [float("inf")], [], [[0.1]], ["a"]]
)
def test_bad_values_are_refused_and_not_repeated(
    make: type[LocalMean], values: list[object]
) -> None:
    for use in (
        lambda mechanism: mechanism.respond(np.array(values), SeededStream(1)),
        lambda mechanism: mechanism.draw(np.array(values), np.random.default_rng(1)),
        lambda mechanism: mechanism.variance(np.array(values)),
    ):
        with pytest.raises(AnswerError) as error:
            use(make(epsilon=1.0))
        assert "1.77" not in str(error.value)


def test_bad_parameters_are_refused() -> None:
    for epsilon in (0, -1, float("nan"), float("inf"), 1e-8):
        for make in (Duchi, PM):
            with pytest.raises(ParameterError, match="epsilon"):
                make(epsilon=epsilon)
    for cells in (3, 65537, 10.5):
        with pytest.raises(ParameterError, match="cells"):
            PM(epsilon=1.0, cells=cells)  # type: ignore[arg-type]
    with pytest.raises(AnswerError, match="3 users"):
        Duchi(epsilon=1.0, users=3).respond(np.zeros(2), SeededStream(1))


def test_foreign_reports_and_sums_are_checked() -> None:
    pm = PM(epsilon=1.0, cells=8)
    for bad in ([8], [-1], [], [[1]], [0.5]):
        with pytest.raises(AnswerError, match="reports"):
            pm.total(np.array(bad))
    good = pm.total(np.array([1, 5, 7]))
    assert pm.decode(good, 3) is good
    # One violation each: the range of the sum, of the squares, the parity, and Cauchy-Schwarz.
    for total, squares in ((22, 60), (-1, 1), (4, 30), (4, 2), (5, 6), (13, 13), (13, 55)):
        with pytest.raises(CorruptSumError):
            pm.decode(ReportSums(total, squares), 3)
    with pytest.raises(CorruptSumError):
        Duchi(epsilon=1.0).decode(ReportSums(2, 4), 3)
    with pytest.raises(ParameterError, match="included"):
        pm.decode(good, 0)


@pytest.mark.parametrize("epsilon", [30.0, 95.0, 1e5])
def test_very_large_epsilons_still_work(epsilon: float) -> None:
    for mechanism in (Duchi(epsilon=epsilon), PM(epsilon=epsilon)):
        values = np.linspace(-1, 1, 101)
        sums = mechanism.total(mechanism.respond(values, SeededStream(61)))
        assert abs(mechanism.estimate(sums, 101)) < 6 * np.sqrt(mechanism.variance(values)) + 1e-12
        assert mechanism.guarantee().delta == 0

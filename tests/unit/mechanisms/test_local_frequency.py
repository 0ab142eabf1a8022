"""GRR and OUE: exact distributions by enumeration, then the sampling.

Statistical tests have a false-alarm rate of 1e-6.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from faircount.accounting.composition import compose_randomized_response
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.mechanisms.exact_draws import ONE
from faircount.mechanisms.local import exp_rounded_down
from faircount.mechanisms.local_frequency import GRR, OUE, LocalFrequency

ALARM = 1e-6
BOTH = [GRR, OUE]
EPSILONS = [0.01, 0.3, 1.0, 2.0, 5.0, 50.0]
Distribution = dict[tuple[int, ...], Fraction]


def distribution_of(mechanism: LocalFrequency, item: int) -> Distribution:
    """Exact probability of every report, given as one count per item."""
    N = mechanism.N
    distribution: Distribution = {}
    if isinstance(mechanism, GRR):
        for j in range(N):
            report = (0,) * j + (1,) + (0,) * (N - 1 - j)
            distribution[report] = mechanism.window.own if j == item else mechanism.window.other
        return distribution
    assert isinstance(mechanism, OUE)
    rates = [Fraction(mechanism.threshold, ONE)] * N
    rates[item] = Fraction(1, 2)
    for bits in product((0, 1), repeat=N):
        chances = (p if bit else 1 - p for bit, p in zip(bits, rates, strict=True))
        distribution[bits] = math.prod(chances)
    return distribution


def sum_distribution(mechanism: LocalFrequency, items: list[int]) -> Distribution:
    """Distribution of the report counts of users with these items: all combinations of their reports."""
    distribution: Distribution = {(0,) * mechanism.N: Fraction(1)}
    for item in items:
        # Convolve with the report of one more user.
        following: Distribution = {}
        for (sums, p), (report, r) in product(
            distribution.items(), distribution_of(mechanism, item).items()
        ):
            after = tuple(a + b for a, b in zip(sums, report, strict=True))
            following[after] = following.get(after, Fraction(0)) + p * r
        distribution = following
    return distribution


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_output_ratio_exactly(make: type[LocalFrequency], epsilon: float) -> None:
    mechanism = make(items=3, epsilon=epsilon)
    distributions = [distribution_of(mechanism, item) for item in range(3)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    worst = max(
        a[report] / b[report]
        for a, b, report in product(distributions, distributions, distributions[0])
    )
    with mpmath.workdps(150):
        ratio = mpmath.mpf(worst.numerator) / worst.denominator
        limit = mpmath.exp(mpmath.mpf(epsilon))
        assert ratio <= limit
        # Rounding to 2^-128 costs most where a report is rare.
        assert ratio > limit * (1 - mpmath.mpf(2) ** -50)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("asked", [0.0, 0.2, 0.9, 1.0, 3.0])
def test_delta_is_the_enumerated_hockey_stick(make: type[LocalFrequency], asked: float) -> None:
    mechanism = make(items=4, epsilon=1.0)
    distributions = [distribution_of(mechanism, item) for item in range(4)]
    growth = exp_rounded_down(asked)
    stick = Fraction(0)
    for a, b in product(distributions, repeat=2):
        stick = max(stick, sum(max(Fraction(0), a[x] - growth * b[x]) for x in a))
    assert mechanism.divergence(growth) == stick
    stated = mechanism.delta_at(asked, COLLECTOR, Relation.REPLACE_ONE)
    assert float(stick) <= stated
    # The stated delta is rounded up.
    assert Fraction(stated) >= stick
    assert stated == pytest.approx(float(stick), rel=1e-15)
    assert (stick == 0) == (asked >= 1.0)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(("per_report", "asked"), [(1.0, 0.4), (1.0, 2.7), (0.2, 0.0), (4.0, 5.0)])
def test_three_reports_of_one_user_compose_to_the_enumerated_delta(
    make: type[LocalFrequency], per_report: float, asked: float
) -> None:
    """The mechanism's own distribution; a randomized response of the same epsilon reveals more."""
    mechanism = make(items=4, epsilon=per_report)
    first = distribution_of(mechanism, 0)
    second = distribution_of(mechanism, 1)
    growth = exp_rounded_down(asked)
    truth = Fraction(0)
    # All triples of reports, with their exact probabilities under both answers.
    for reports in product(first, repeat=3):
        one, other = (
            math.prod(distribution[x] for x in reports) for distribution in (first, second)
        )
        truth += max(Fraction(0), one - growth * other)
    stated = mechanism.compose_reports(3, epsilon=asked)
    assert truth <= Fraction(stated)
    assert stated == pytest.approx(float(truth), rel=1e-9)
    assert stated < 0.995 * compose_randomized_response(per_report, 3, epsilon=asked)
    assert mechanism.compose_reports(3, delta=stated) == pytest.approx(asked, abs=1e-9)


@pytest.mark.parametrize("make", BOTH)
def test_the_estimate_is_unbiased_and_has_the_stated_variance(make: type[LocalFrequency]) -> None:
    # OUE has 8 reports per user and GRR only 3, so fewer users are enumerated.
    items = [0, 1, 1] if make is GRR else [0, 1]
    mechanism = make(items=3, epsilon=0.8)
    n = len(items)
    distribution = sum_distribution(mechanism, items)
    truth = np.bincount(items, minlength=3) / n
    outcomes = [
        (float(p), mechanism.estimate(mechanism.decode(np.array(s), n), n))
        for s, p in distribution.items()
    ]
    mean = sum(p * estimate for p, estimate in outcomes)
    spread = sum(p * (estimate - truth) ** 2 for p, estimate in outcomes)
    np.testing.assert_allclose(mean, truth, atol=1e-13)
    np.testing.assert_allclose(spread, mechanism.variance(truth, n), rtol=1e-12)
    np.testing.assert_allclose(mechanism.bind(n).variance(truth), mechanism.variance(truth, n))


def test_the_channel_inverts_exactly_in_rationals() -> None:
    for mechanism in (GRR(items=7, epsilon=1.3), OUE(items=7, epsilon=1.3)):
        channel = mechanism.channel(10)
        hit = channel.hit
        miss = channel.miss
        distribution = distribution_of(mechanism, 2)
        assert sum(p for report, p in distribution.items() if report[2]) == pytest.approx(
            hit, rel=1e-15
        )
        assert sum(p for report, p in distribution.items() if report[5]) == pytest.approx(
            miss, rel=1e-15
        )
    assert not GRR(items=7, epsilon=1).channel(10).independent
    # Every bit of a unary encoding is drawn on its own.
    assert OUE(items=7, epsilon=1).channel(10).independent


def test_textbook_numbers() -> None:
    e = np.e
    grr = GRR(items=30, epsilon=1.0, users=1000)
    oue = OUE(items=30, epsilon=1.0, users=1000)
    assert grr.channel(1).hit == pytest.approx(e / (e + 29), rel=1e-15)
    assert grr.channel(1).miss == pytest.approx(1 / (e + 29), rel=1e-15)
    assert oue.channel(1).miss == pytest.approx(1 / (e + 1), rel=1e-15)
    rare = np.array([1.0] + [0.0] * 29)
    # Equation of Wang et al. 2017 for the variance of a rare item.
    assert oue.variance(rare)[1] == pytest.approx(4 * e / (1000 * (e - 1) ** 2), rel=1e-13)
    # The same in squared counts.
    assert oue.variance(rare)[1] * 1000**2 == pytest.approx(3683, abs=1)
    assert grr.variance(rare)[1] == pytest.approx((e + 28) / (1000 * (e - 1) ** 2), rel=1e-13)


def alarm(observed: NDArray[np.int64], distribution: NDArray[np.float64]) -> float:
    """p-value of a chi-square test; rare outcomes are merged."""
    expected = distribution * observed.sum()
    # Outcomes that are expected less than ten times share a cell.
    common = expected >= 10
    seen = observed[common]
    wanted = expected[common]
    if not common.all():
        seen, wanted = (
            np.append(seen, observed[~common].sum()),
            np.append(wanted, expected[~common].sum()),
        )
    return float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)


def outcomes(mechanism: LocalFrequency, items: list[int], aggregates: NDArray[np.int64]) -> float:
    """p-value of many aggregates against their exact joint distribution."""
    distribution = sum_distribution(mechanism, items)
    seen = Counter(map(tuple, aggregates.tolist()))
    assert set(seen) <= set(distribution)
    return alarm(
        np.array([seen[report] for report in distribution]),
        np.array([float(p) for p in distribution.values()]),
    )


@pytest.mark.parametrize("make", BOTH)
def test_count_level_and_per_user_have_the_exact_joint_distribution(
    make: type[LocalFrequency],
) -> None:
    mechanism = make(items=3, epsilon=1.0)
    items = [0, 1, 1]
    runs = 12_000
    rng = np.random.default_rng(11)
    entropy = SeededStream(12)
    drawn = np.array([mechanism.draw(np.array([1, 2, 0]), rng) for _ in range(runs)])
    assert outcomes(mechanism, items, drawn) > ALARM
    reports = mechanism.respond(np.tile(items, runs), entropy)
    rows = reports.astype(np.int64)
    if make is GRR:
        rows = np.eye(3, dtype=np.int64)[reports]
    users = rows.reshape(runs, 3, 3).sum(axis=1)
    assert outcomes(mechanism, items, users) > ALARM
    # Planted: an epsilon 30% too large, and for GRR items drawn independently of each other.
    off = make(items=3, epsilon=1.3)
    planted = np.array([off.draw(np.array([1, 2, 0]), rng) for _ in range(runs)])
    assert outcomes(mechanism, items, planted) < ALARM
    if make is GRR:
        alone = np.stack([rng.permutation(drawn[:, j]) for j in range(3)], axis=1)
        fits = alone[alone.sum(axis=1) == 3]
        assert outcomes(mechanism, items, fits) < ALARM


@pytest.mark.parametrize("make", BOTH)
def test_both_ways_agree_for_many_users(make: type[LocalFrequency]) -> None:
    mechanism = make(items=6, epsilon=0.7)
    holders = np.array([5000, 3000, 1000, 500, 400, 100])
    n = int(holders.sum())
    answers = np.repeat(np.arange(6), holders)
    truth = holders / n
    rng = np.random.default_rng(5)
    entropy = SeededStream(6)
    for aggregate in (
        mechanism.draw(holders, rng),
        mechanism.total(mechanism.respond(answers, entropy)),
    ):
        error = mechanism.estimate(mechanism.decode(aggregate, n), n) - truth
        z = error / np.sqrt(mechanism.variance(truth, n))
        assert np.all(2 * stats.norm.sf(np.abs(z)) * 6 > ALARM)


def test_a_hundred_million_users_in_one_draw() -> None:
    holders = np.full(30, 10**8 // 30)
    for mechanism in (GRR(items=30, epsilon=1.0), OUE(items=30, epsilon=1.0)):
        n = int(holders.sum())
        estimate = mechanism.estimate(
            mechanism.decode(mechanism.draw(holders, np.random.default_rng(1)), n), n
        )
        assert np.abs(estimate - 1 / 30).max() < 2e-3


def test_reports_have_the_stated_shapes() -> None:
    answers = np.array([0, 3, 2, 1])
    reports = GRR(items=4, epsilon=1.0).respond(answers, SeededStream(1))
    assert reports.shape == (4,)
    assert reports.dtype == np.int64
    rows = OUE(items=4, epsilon=1.0).respond(answers, SeededStream(1))
    assert rows.shape == (4, 4)
    assert rows.dtype == np.uint8
    assert GRR(items=["a", "b"], epsilon=200.0).respond(
        np.array([0, 1, 1]), SeededStream(2)
    ).tolist() == [0, 1, 1]


def test_answers_are_not_changed() -> None:
    answers = np.array([0, 1, 2, 0])
    for mechanism in (GRR(items=3, epsilon=1.0), OUE(items=3, epsilon=1.0)):
        mechanism.respond(answers, SeededStream(1))
        assert answers.tolist() == [0, 1, 2, 0]


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 1300), columns=st.integers(2, 5), seed=st.integers(0, 99))
def test_column_sums_are_plain_sums(rows: int, columns: int, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (rows, columns), dtype=np.uint8)
    # A column of ones shows an overflow of 8 bits if a layer has more than 255 rows.
    bits[:, 0] = 1
    oue = OUE(items=columns, epsilon=1.0)
    assert np.array_equal(oue.total(bits), bits.sum(axis=0, dtype=np.int64))
    assert np.array_equal(oue.total(np.asfortranarray(bits)), bits.sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("make", BOTH)
def test_guarantee_is_pure_and_holds_for_any_data(make: type[LocalFrequency]) -> None:
    mechanism = make(items=5, epsilon=1.5)
    guarantee = mechanism.guarantee()
    assert (guarantee.epsilon, guarantee.delta, guarantee.condition) == (1.5, 0.0, None)
    assert guarantee.adversary == COLLECTOR
    assert mechanism.promise == (1.5, 0.0)
    assert mechanism.guarantee(adversary=OUTSIDER).delta == 0
    at_delta = mechanism.guarantee(delta=0.01)
    assert 0 < at_delta.epsilon < 1.5
    assert mechanism.delta_at(at_delta.epsilon, COLLECTOR, Relation.REPLACE_ONE) <= 0.01 * (
        1 + 1e-9
    )
    with pytest.raises(RefusedError, match="replace-one"):
        mechanism.guarantee(relation=Relation.ZERO_OUT)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e-9, "1", True])
def test_a_bad_epsilon_is_refused(make: type[LocalFrequency], epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        make(items=3, epsilon=epsilon)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    "answers", [[0, 1, 77], [-77, 1, 2], [0.5, 1.0, 0.0], [[0, 1, 2]], [], ["a", "b", "c"]]
)
def test_bad_answers_are_refused_and_not_repeated(
    make: type[LocalFrequency], answers: list[object]
) -> None:
    with pytest.raises(AnswerError) as error:
        make(items=3, epsilon=1.0).respond(np.array(answers), SeededStream(1))
    assert "77" not in str(error.value)


@pytest.mark.parametrize("make", BOTH)
def test_the_number_of_users_must_agree(make: type[LocalFrequency]) -> None:
    with pytest.raises(AnswerError, match="4 positions"):
        make(items=3, epsilon=1.0, users=4).respond(np.array([0, 1, 2]), SeededStream(1))


def test_foreign_reports_are_checked() -> None:
    grr = GRR(items=3, epsilon=1.0)
    oue = OUE(items=3, epsilon=1.0)
    for bad in ([0, 3], [-1, 0], [], [[0, 1]], [0.0, 1.0]):
        with pytest.raises(AnswerError, match="reports"):
            grr.total(np.array(bad))
    for bad_rows in (
        [[0, 1]],
        [[0, 1, 2]],
        [[0, -1, 1]],
        [0, 1, 1],
        np.zeros((0, 3), int),
        [[0.0, 1.0, 1.0]],
    ):
        with pytest.raises(AnswerError, match="reports"):
            oue.total(np.array(bad_rows))


def test_sums_that_honest_reports_cannot_make_are_refused() -> None:
    grr = GRR(items=3, epsilon=1.0)
    oue = OUE(items=3, epsilon=1.0)
    assert grr.decode(np.array([1, 1, 0]), 2).tolist() == [1, 1, 0]
    assert oue.decode(np.array([2, 2, 2]), 2).tolist() == [2, 2, 2]
    # Counts of GRR add up to the number of users; those of OUE are bounded one by one.
    for bad in ([1, 1, 1], [1, 0, 0], [3, -1, 0]):
        with pytest.raises(CorruptSumError):
            grr.decode(np.array(bad), 2)
    for bad in ([3, 0, 0], [-1, 0, 0]):
        with pytest.raises(CorruptSumError):
            oue.decode(np.array(bad), 2)
    for mechanism in (grr, oue):
        with pytest.raises(AnswerError, match="3 whole numbers"):
            mechanism.decode(np.array([1, 1]), 2)
        with pytest.raises(AnswerError, match="3 whole numbers"):
            mechanism.decode(np.array([1.0, 1.0, 0.0]), 2)
        with pytest.raises(ParameterError, match="included"):
            mechanism.decode(np.array([0, 0, 0]), 0)

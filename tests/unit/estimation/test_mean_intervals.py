"""Intervals of means: Duchi's and PM's exactly, by enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.arrays import Floats
from faircount.core.errors import AnswerError, ParameterError
from faircount.estimation.mean_intervals import (
    mean_interval,
    reports_interval,
    spread_at_most,
    two_point_interval,
)
from faircount.mechanisms.local_mean import PM, ReportSums


def duchi_coverage(epsilon, n, values):
    """Exact: the number of positive reports is a sum of Bernoullis, one per user."""
    size = (np.exp(epsilon) + 1) / (np.exp(epsilon) - 1)
    distribution = np.ones(1)
    for value in values(n):
        heads = (1 + value / size) / 2
        distribution = np.convolve(distribution, [1 - heads, heads])
    made = [two_point_interval((2 * k / n - 1) * size, size, n) for k in range(n + 1)]
    truth = values(n).mean()
    return sum(
        mass
        for mass, (low, high) in zip(distribution, made, strict=True)
        if low - 1e-12 <= truth <= high + 1e-12
    )


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize(
    "values",
    [
        lambda n: np.zeros(n),
        lambda n: np.ones(n),
        lambda n: np.full(n, -0.9),
        lambda n: np.linspace(-1, 1, n),
        lambda n: np.where(np.arange(n) % 5 == 0, 1.0, -1.0),
    ],
)
def test_duchi_coverage(epsilon, values):
    for n in (50, 300):
        assert duchi_coverage(epsilon, n, values) >= 0.95


def test_mean_interval_by_hand():
    low, high = mean_interval(0.2, 0.01, 10_000_000)
    assert (low, high) == pytest.approx((0.2 - 0.195996, 0.2 + 0.195996), abs=1e-5)
    wider = mean_interval(0.2, 0.01, 50)
    assert wider[1] - 0.2 == pytest.approx(
        2.00958 * 0.1, abs=1e-5
    )  # Student's t with 49 degrees of freedom
    known = mean_interval(0.0, 0.01, 100, covers="population", spread=1.0)
    worst = mean_interval(0.0, 0.01, 100, covers="population")
    assert known[1] == pytest.approx(1.98422 * np.sqrt(0.02), abs=1e-5)
    assert 0.9 * known[1] < worst[1] <= known[1]
    assert mean_interval(1.8, 0.01, 50) == (1.0, 1.0)
    assert mean_interval(-1.8, 0.01, 50, covers="population") == (-1.0, -1.0)


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(0.0001, 0.5), st.integers(2, 5000))
def test_worst_spread_is_where_the_quadratic_says(mean, noise, n):
    """Without a spread the interval ends t standard deviations away, as they are at that end."""
    from scipy.stats import t

    low, high = mean_interval(mean, noise, n, covers="population")
    for end in (low, high):
        if -1 < end < 1:
            distance = t.ppf(0.975, n - 1) * np.sqrt(noise + (1 - end**2) / n)
            assert abs(mean - end) == pytest.approx(distance, rel=1e-6)


def test_mean_intervals_refuse_nonsense():
    with pytest.raises(ParameterError):
        mean_interval(0.0, -1.0, 10)
    with pytest.raises(ParameterError):
        mean_interval(0.0, 1.0, 10, covers="population", spread=-1.0)
    with pytest.raises(AnswerError):
        two_point_interval(3.0, 1.5, 10)


def report_distribution(mechanism: PM, value: float) -> Floats:
    """Probability of every cell, from the definition."""
    place = (value + 1) / 2 * mechanism.steps
    start, distribution = (
        int(np.floor(place)),
        np.full(mechanism.window.cells, float(mechanism.window.other)),
    )
    for at, share in ((start, 1 - (place - start)), (start + 1, place - start)):
        distribution[at : at + mechanism.window.width] += share * float(mechanism.window.excess)
    return distribution


def sums_distribution(distributions: list[Floats]) -> dict[tuple[int, int], float]:
    """Joint distribution of the sum of the reports and of their squares."""
    found = {(0, 0): 1.0}
    for distribution in distributions:
        more: dict[tuple[int, int], float] = {}
        for (total, squares), chance in found.items():
            for cell, own in enumerate(distribution.tolist()):
                key = (total + cell, squares + cell**2)
                more[key] = more.get(key, 0.0) + chance * own
        found = more
    return found


@pytest.mark.parametrize("covers", ["users", "population"])
@pytest.mark.parametrize(
    "values", [(-1.0, 1.0), (-1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.3,)], ids=str
)
def test_pm_holds_for_very_few_users(values: tuple[float, ...], covers: str) -> None:
    """Exact coverage. It was 0.50 and 0.67 for a population when the spread was not bounded."""
    mechanism, n = PM(epsilon=8.0, cells=8), len(values)
    own_distributions = [report_distribution(mechanism, value) for value in values]
    distributions = (
        own_distributions if covers == "users" else [np.mean(own_distributions, axis=0)] * n
    )
    covered = 0.0
    for (total, squares), chance in sums_distribution(distributions).items():
        low, high = reports_interval(mechanism, ReportSums(total, squares), n, covers=covers)
        covered += chance * (low - 1e-12 <= np.mean(values) <= high + 1e-12)
    assert covered >= 0.95


def test_rare_reports_far_off_are_reckoned_with() -> None:
    """Ten users at both ends, epsilon 8: every fifth run has a report that is pure noise.

    No normal distribution shows that.
    """
    mechanism, n = PM(epsilon=8.0, cells=64), 10
    last = mechanism.window.cells - 1
    seen = ReportSums(n // 2 * last, n // 2 * last**2)  # half of the reports at each end
    low, high = reports_interval(mechanism, seen, n)
    distribution = np.ones(1)
    for value in (-1.0, 1.0) * (n // 2):
        distribution = np.convolve(distribution, report_distribution(mechanism, value))
    noise = (np.arange(distribution.size) - n * last / 2) / (n * float(mechanism.scale))
    assert low == pytest.approx(-high)
    assert distribution[np.abs(noise) <= high].sum() >= 0.95
    student = mean_interval(0.0, mechanism.noise_variance(seen, n), n)[1]
    assert distribution[np.abs(noise) <= student].sum() < 0.93  # planted: what was used before


def test_a_bound_of_the_spread() -> None:
    assert spread_at_most(0.2, 1, 0.01) == 1.0
    assert spread_at_most(0.0, 10_001, 0.01) == pytest.approx(8 * np.log(100) / 10_000)
    assert 0.25 < spread_at_most(0.25, 10_000, 0.01) < 0.32

"""The law of a summed squared error, against enumeration of everything that can happen."""

import itertools
import math

import numpy as np
import pytest

from faircount.experiments.studies.error_law import Cumulants, covariance, cumulants, expected_error, law
from faircount.experiments.studies.study import Expected
from faircount.mechanisms.count_law import Channel, NoiseLaw
from faircount.mechanisms.local_frequency import GRR
from faircount.mechanisms.sampling import DPDS


def of_law(values, chances):
    """Cumulants 2, 3, 4 and 6 from central moments."""
    m2, m3, m4, m6 = (chances @ (values - chances @ values) ** order for order in (2, 3, 4, 6))
    return m2, m3, m4 - 3 * m2**2, m6 - 15 * m4 * m2 - 10 * m3**2 + 30 * m2**3


def mean_deviation_skewness(values, chances):
    mean = chances @ values
    deviation = math.sqrt(chances @ (values - mean) ** 2)
    return mean, deviation, chances @ (values - mean) ** 3 / deviation**3


def test_cumulants_by_enumeration():
    noise = NoiseLaw(-1, np.array([0.3, 0.5, 0.2]))
    n, own = 4, [math.comb(3, x) * 0.6**x * 0.4 ** (3 - x) for x in range(4)]
    chances = np.convolve(np.convolve(own, [0.75, 0.25]), noise.pmf)
    wanted = of_law(np.arange(chances.size) / (n * 0.35), chances)
    found = cumulants(Channel(0.6, 0.25, noise), np.array([3.0]), n)
    assert (found.second[0], found.third[0], found.fourth[0], found.sixth[0]) == pytest.approx(wanted, rel=1e-11)


def test_mean_deviation_and_skewness_of_a_squared_error_by_enumeration():
    p, values, chances = 0.3, [], []
    for x in range(3):
        for y in range(2):
            chances.append(math.comb(2, x) * p**x * (1 - p) ** (2 - x) * p**y * (1 - p) ** (1 - y))
            values.append((x / (3 * p) - 2 / 3) ** 2 + (y / (3 * p) - 1 / 3) ** 2)
    found = expected_error(DPDS(items=2, p=p), (2, 1))
    wanted = mean_deviation_skewness(np.array(values), np.array(chances))
    assert (found.mean, found.deviation, found.skewness) == pytest.approx(wanted, rel=1e-12)


def test_errors_of_users_who_report_one_item_are_correlated_as_enumerated():
    made, answers = GRR(items=3, epsilon=1.0).bind(3), (0, 0, 1)
    channel, total, outer = made.channel(3), np.zeros(3), np.zeros((3, 3))
    for reports in itertools.product(range(3), repeat=3):
        chance = math.prod(channel.hit if r == a else channel.miss for r, a in zip(reports, answers, strict=True))
        found = channel.estimate(np.bincount(reports, minlength=3), 3)
        total += chance * found
        outer += chance * np.outer(found, found)
    assert covariance(channel, np.array([2.0, 1.0, 0.0]), 3) == pytest.approx(outer - np.outer(total, total), abs=1e-12)


def test_summed_normal_errors_have_the_skewness_of_chi_square():
    none = np.zeros(8)
    found = law(Cumulants(np.full(8, 0.5), none, none, none))
    assert found == Expected(4.0, pytest.approx(math.sqrt(16 * 0.25)), pytest.approx(1.0))


def test_correlated_normal_errors_that_are_one_error_count_as_one():
    """Eight errors that always agree: 4 times a chi square with one degree of freedom."""
    none = np.zeros(8)
    found = law(Cumulants(np.full(8, 0.5), none, none, none), np.full((8, 8), 0.5))
    assert found == Expected(4.0, pytest.approx(4 * math.sqrt(2)), pytest.approx(math.sqrt(8)))

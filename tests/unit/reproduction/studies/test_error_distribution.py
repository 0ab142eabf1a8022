"""The distribution of a summed squared error, against enumeration of everything that can happen."""

import itertools
import math

import numpy as np
import pytest

from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.local_frequency import GRR
from faircount.mechanisms.sampling import DPDS
from faircount.reproduction.studies.error_distribution import (
    Cumulants,
    error_covariance,
    error_cumulants,
    expected_error,
    squared_error_distribution,
)
from faircount.reproduction.studies.study import Expected


def cumulants_of(values, probabilities):
    """Cumulants 2, 3, 4 and 6 from central moments."""
    deviations = values - probabilities @ values
    m2, m3, m4, m6 = (probabilities @ deviations**order for order in (2, 3, 4, 6))
    return m2, m3, m4 - 3 * m2**2, m6 - 15 * m4 * m2 - 10 * m3**2 + 30 * m2**3


def mean_deviation_skewness(values, probabilities):
    mean = probabilities @ values
    deviation = math.sqrt(probabilities @ (values - mean) ** 2)
    return mean, deviation, probabilities @ (values - mean) ** 3 / deviation**3


def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def test_cumulants_by_enumeration():
    # Three of four users choose the item and are counted with 0.6, the fourth with 0.25.
    noise = NoiseDistribution(-1, np.array([0.3, 0.5, 0.2]))
    # Estimates divide by n (0.6 - 0.25), hence the 0.35 below.
    own = [binomial(3, k, 0.6) for k in range(4)]
    probabilities = np.convolve(np.convolve(own, [0.75, 0.25]), noise.pmf)
    expected = cumulants_of(np.arange(probabilities.size) / (4 * 0.35), probabilities)
    found = error_cumulants(Channel(0.6, 0.25, noise), np.array([3.0]), 4)
    values = (found.second[0], found.third[0], found.fourth[0], found.sixth[0])
    assert values == pytest.approx(expected, rel=1e-11)


def test_mean_deviation_and_skewness_of_a_squared_error_by_enumeration():
    # Two users choose the first item, one the second; all are counted with probability p.
    p = 0.3
    errors = []
    probabilities = []
    for x, y in itertools.product(range(3), range(2)):
        probabilities.append(binomial(2, x, p) * binomial(1, y, p))
        errors.append((x / (3 * p) - 2 / 3) ** 2 + (y / (3 * p) - 1 / 3) ** 2)
    expected = mean_deviation_skewness(np.array(errors), np.array(probabilities))
    found = expected_error(DPDS(items=2, p=p), (2, 1))
    assert (found.mean, found.deviation, found.skewness) == pytest.approx(expected, rel=1e-12)


def test_errors_of_users_who_report_one_item_are_correlated_as_enumerated():
    answers = (0, 0, 1)
    channel = GRR(items=3, epsilon=1.0).bind(3).channel(3)
    mean = np.zeros(3)
    second_moment = np.zeros((3, 3))
    for reports in itertools.product(range(3), repeat=3):
        probability = 1.0
        for report, answer in zip(reports, answers, strict=True):
            probability *= channel.hit if report == answer else channel.miss
        estimate = channel.estimate(np.bincount(reports, minlength=3), 3)
        mean += probability * estimate
        second_moment += probability * np.outer(estimate, estimate)
    # Two users chose the first item, one the second, nobody the third.
    found = error_covariance(channel, np.array([2.0, 1.0, 0.0]), 3)
    assert found == pytest.approx(second_moment - np.outer(mean, mean), abs=1e-12)


def test_summed_normal_errors_have_the_skewness_of_chi_square():
    zeros = np.zeros(8)
    found = squared_error_distribution(Cumulants(np.full(8, 0.5), zeros, zeros, zeros))
    assert found == Expected(4.0, pytest.approx(math.sqrt(16 * 0.25)), pytest.approx(1.0))


def test_errors_that_always_agree_count_as_one():
    """Eight equal normal errors: 4 times a chi square with one degree of freedom."""
    zeros = np.zeros(8)
    errors = Cumulants(np.full(8, 0.5), zeros, zeros, zeros)
    found = squared_error_distribution(errors, np.full((8, 8), 0.5))
    assert found == Expected(4.0, pytest.approx(4 * math.sqrt(2)), pytest.approx(math.sqrt(8)))

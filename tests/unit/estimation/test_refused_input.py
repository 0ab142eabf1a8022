"""Input that means nothing is refused in words by every function of the package."""

import math

import pytest

import faircount as fc
from faircount.core.errors import AnswerError, FaircountError, ParameterError
from faircount.estimation import homogeneity, intervals, weighting
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.mean_intervals import two_point_interval
from faircount.mechanisms.count_distribution import Channel

SECRET = ["secret"]


RAGGED = [[1, 2], [3]]


@pytest.mark.parametrize("bad", [SECRET, RAGGED, {"a": 1}, [10**400], [1j]], ids=range(5))
def test_lists_that_are_no_numbers_are_refused_in_words(bad: object) -> None:
    channel = Channel(0.5)
    for use in (
        lambda: intervals.interval(bad, channel, 10),  # type: ignore[arg-type]
        lambda: project_to_simplex(bad),  # type: ignore[arg-type]
        lambda: weighting.vwa(bad, [1.0]),  # type: ignore[arg-type]
        lambda: weighting.combine(bad, [1.0]),  # type: ignore[arg-type]
        lambda: homogeneity.homogeneity(bad, [channel] * 2, [5, 5]),  # type: ignore[arg-type]
        lambda: homogeneity.homogeneity([[1, 2], [2, 3]], [channel] * 2, bad),  # type: ignore[arg-type]
    ):
        with pytest.raises(FaircountError) as caught:
            use()
        assert "secret" not in str(caught.value)


def test_numbers_that_mean_nothing_are_refused() -> None:
    for weights in ([math.nan, 1.0], [math.inf, -math.inf]):
        with pytest.raises(ParameterError):
            weighting.combine([0.5, 0.5], weights)
    with pytest.raises(ParameterError):
        weighting.combine([math.nan, 0.5], [0.5, 0.5])
    for weights in ([0.5], [[0.5, 0.5]], [math.nan, 0.5], 1.0):
        with pytest.raises(ParameterError):
            weighting.expected_error(weights, [1, 2], [1.0, 2.0])
    for magnitude in (0.0, -1.0, math.nan, 5e-324):
        with pytest.raises(FaircountError):
            two_point_interval(0.5, magnitude, 10)
    noisy = fc.Laplace(items=2, users=10, epsilon=1.0).channel(10)
    for sums in ([1e300, 0.0], [-1e30, 0.0]):
        with pytest.raises(AnswerError):
            intervals.interval(sums, noisy, 10)
    with pytest.raises(ParameterError):
        intervals.interval([1, 2], Channel(0.5), 10**400)
    for sizes in (5, [5, 0], [5, 2.5], [[5, 5]], [5, math.inf]):
        with pytest.raises(ParameterError):
            homogeneity.homogeneity([[1, 2], [2, 3]], [Channel(0.5)] * 2, sizes)

"""Results that once claimed or estimated something wrong, without a word."""

import math

import numpy as np
import pytest

import faircount as fc
from faircount.core.errors import AnswerError, FaircountError, ParameterError
from faircount.estimation import estimators, homogeneity, intervals, weighting
from faircount.estimation.consistency import consistent
from faircount.estimation.mean_intervals import two_point_interval
from faircount.estimation.result import Result
from faircount.mechanisms.count_law import Channel

COUNTS = np.array([60, 60, 60, 60, 60])


def test_a_result_states_what_is_left_after_dropouts() -> None:
    """300 of 1,000 users took part and none were expected to drop out: the planned guarantee would be false."""
    noise = fc.Laplace(items=5, users=1000, epsilon=1.0)
    assert Result(noise, COUNTS, 300).guarantee == noise.realized(300)
    assert Result(noise, COUNTS, 300).guarantee.epsilon > 3
    coins = fc.Decoys(items=5, users=1000, epsilon=1.0, delta=1e-5)
    assert Result(coins, COUNTS, 300).guarantee.delta == 1.0  # all 300 may have had no coin
    assert Result(fc.Decoys(items=5, users=1000, coins=2000), COUNTS, 900).guarantee.delta < 1e-5
    sampled = fc.DPDS(items=5, users=1000, p=0.5, floor=100, epsilon=1.0)
    assert Result(sampled, COUNTS, 300).guarantee.delta == 0.5
    assert Result(sampled, COUNTS, 950).guarantee == sampled.realized(950)


def test_a_result_within_the_plan_states_the_plan() -> None:
    planned = fc.Laplace(items=5, users=400, epsilon=1.0, dropouts=100)
    assert Result(planned, COUNTS, 300).guarantee == planned.guarantee()
    local = fc.GRR(items=5, users=400, epsilon=1.0)
    assert Result(local, COUNTS, 300).guarantee == local.guarantee()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_are_not_turned_inside_out(level: float) -> None:
    """Where the noise of a count is far below 1/2, there may be no whole number that explains a sum."""
    made = fc.DPDG(items=3, users=3, epsilon=30.0, delta=1e-3, share="printed")
    law = made.noise(3)
    for holders in (0, 1, 3):
        bounds = intervals.interval(law.values + holders, made.channel(3), 3, level=level)
        assert np.all(bounds.low <= bounds.high)
        assert law.pmf @ bounds.contains(holders / 3) >= level


@pytest.mark.parametrize("variances", [[1.0, 1e3, 1e6], [1e-6, 1e6, 1.0], [1.0, 1e10, 5.0], [9.5, 2.0, 0.6]])
def test_the_optimizer_finds_the_weights_for_any_ratio_of_variances(variances: list[float]) -> None:
    sizes = [1, 7, 1000]
    assert weighting.owa(sizes, variances) == pytest.approx(weighting.vwa(sizes, variances), abs=1e-6)


def test_groups_of_sampled_counts_that_cannot_be_are_refused() -> None:
    for sums in ([[-5, 6], [4, 3]], [[50, 6], [4, 3]], [[0.5, 6], [4, 3]]):
        with pytest.raises(AnswerError, match="without noise"):
            homogeneity.homogeneity(sums, [Channel(0.5)] * 2, [20, 20], rng=np.random.default_rng(1))


SECRET = ["secret"]
RAGGED = [[1, 2], [3]]


@pytest.mark.parametrize("bad", [SECRET, RAGGED, {"a": 1}, [10**400], [1j]], ids=range(5))
def test_lists_that_are_no_numbers_are_refused_in_words(bad: object) -> None:
    channel = Channel(0.5)
    for use in (
        lambda: intervals.interval(bad, channel, 10),  # type: ignore[arg-type]
        lambda: estimators.horvitz_thompson(bad, channel, 10),  # type: ignore[arg-type]
        lambda: estimators.ratio(bad),  # type: ignore[arg-type]
        lambda: estimators.mse_summed(bad, [0.5]),  # type: ignore[arg-type]
        lambda: estimators.ratio_variance(bad, 10, 0.5),  # type: ignore[arg-type]
        lambda: consistent(bad),  # type: ignore[arg-type]
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
    with pytest.raises(AnswerError):
        estimators.mse_summed([0.5, 0.5], [0.5, 0.2, 0.3])
    with pytest.raises(AnswerError):
        estimators.ratio_variance([1.5, -0.5], 10, 0.5)
    noisy = fc.Laplace(items=2, users=10, epsilon=1.0).channel(10)
    for sums in ([1e300, 0.0], [-1e30, 0.0]):
        with pytest.raises(AnswerError):
            intervals.interval(sums, noisy, 10)
    with pytest.raises(ParameterError):
        intervals.interval([1, 2], Channel(0.5), 10**400)
    for sizes in (5, [5, 0], [5, 2.5], [[5, 5]], [5, math.inf]):
        with pytest.raises(ParameterError):
            homogeneity.homogeneity([[1, 2], [2, 3]], [Channel(0.5)] * 2, sizes)

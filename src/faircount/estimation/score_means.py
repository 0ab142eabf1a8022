"""The mean score of a scale from the counts of all its scores.

With independent noise in all counts, the variance of a mean depends on where scores are counted
from: it is the sum of their squares. For scores 1 to 5 that is 55, and 10 from the middle of the
scale, where it is least. So scores are counted from there. Where the noise adds up to zero, or
counts are fitted to the number of people, the origin does not matter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faircount.estimation.mean_intervals import bound_drawn_mean
from faircount.estimation.released_cells import Released, bound_sum, divide_bounds
from faircount.mechanisms.count_distribution import NoiseDistribution

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ScoreMean:
    """The mean of the scores 0, 1, ..., K - 1 of those who answered.

    low, high: bounds of its interval
    deviation: standard error of the privacy noise
    """

    mean: float
    low: float
    high: float
    deviation: float


def estimate_score(released: Released, points: int, counts: Sequence[float]) -> ScoreMean:
    """Return the mean score; `counts` has those of the points, then of answers without a score."""
    middle = (points - 1) / 2
    from_middle = np.arange(points) - middle
    answered = max(released.included - sum(counts[points:]), 1)
    mean = float(from_middle @ np.array(counts[:points])) / answered
    # Who has no answer is at the mean, wherever that is.
    weights = np.append(from_middle, [mean] * (len(counts) - points))
    spread = _variance(released, weights)
    # Twice the score from the middle is a whole number.
    doubled = [2 * score - (points - 1) for score in range(points)]
    distribution = None
    if len(released.cells) > 1:
        silent = [0] * (len(counts) - points)
        distribution = released.noise.distribution_of_scores(released.number, [*doubled, *silent])
    if distribution is None:
        low, high = _bound_by_thresholds(released, points, counts)
    else:
        low, high = _bound_by_distribution(released, counts, doubled, distribution)
    return ScoreMean(
        middle + mean,
        min(max(low, 0.0), points - 1.0),
        min(max(high, 0.0), points - 1.0),
        math.sqrt(spread) / answered,
    )


def _variance(released: Released, weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    if len(released.cells) == 1:
        # Of two answers one is counted, and the other count is what is left.
        return released.distribution().variance * float(weights[1] - weights[0]) ** 2
    return released.noise.contrast_variance(released.number, weights)


def _bound_by_distribution(
    released: Released,
    counts: Sequence[float],
    doubled: Sequence[int],
    distribution: NoiseDistribution,
) -> Bounds:
    """Return bounds from the exact distribution of the sum of all scores from the middle.

    That sum, the number of those who answered (where answers may be missing) and the draw of these
    people from a population (where that is covered) have their shares of the error.
    """
    n = released.included
    points = len(doubled)
    largest = points - 1
    drawn = released.error / 2 if released.covers == "population" else 0.0
    error = released.error - drawn
    fewest = most = n
    if len(counts) > points:
        error /= 2
        gone = bound_sum(
            sum(counts[points:]), released.distribution_of_sum(len(counts) - points), error, n
        )
        fewest, most = (max(n - end, 1) for end in reversed(gone))
    published = sum(weight * count for weight, count in zip(doubled, counts, strict=False))
    ends = bound_sum(published, distribution, error, largest * n, -largest * n)
    # Few people make a sum weigh more, on either side of the middle.
    low = ends[0] / (2 * (most if ends[0] >= 0 else fewest))
    high = ends[1] / (2 * (fewest if ends[1] >= 0 else most))
    shares = [min(max((end + largest / 2) / largest, 0.0), 1.0) for end in (low, high)]
    if drawn:
        # The fewer people were drawn, the wider: so the fewest that are possible.
        shares[0] = bound_drawn_mean(shares[0], fewest, drawn)[0]
        shares[1] = bound_drawn_mean(shares[1], fewest, drawn)[1]
    return shares[0] * largest, shares[1] * largest


def _bound_by_thresholds(released: Released, points: int, counts: Sequence[float]) -> Bounds:
    """Return bounds from the numbers of people with at least so high a score.

    The sum of the scores 0, 1, ..., K - 1 is that of the numbers of people with a score of at least
    k, for k = 1 .. K - 1. The distribution of each of them is known, and each has its share of the
    error.
    """
    is_partial = len(counts) > points
    # If answers may be missing, half of the error is for the number of those who answered.
    error = released.error / 2 if is_partial else released.error
    low = 0.0
    high = 0.0
    for least in range(1, points):
        reached = sum(counts[least:points])
        distribution = released.distribution_of_sum(points - least)
        bounds = released.bound_share(reached, distribution, error / (points - 1))
        low += bounds[0]
        high += bounds[1]
    if not is_partial:
        return low, high
    distribution = released.distribution_of_sum(len(counts) - points)
    unknown = released.bound_share(sum(counts[points:]), distribution, error)
    return divide_bounds((low, high), unknown, points - 1)

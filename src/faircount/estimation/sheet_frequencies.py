"""The rows of a survey's only question, from the result of a mechanism that counts one vote each.

Estimates and intervals are those of `Result`. What is estimated besides (shares among those who
answered, the mean of a scale) follows from these intervals, whatever the mechanism is, and covers
at least as often as its confidence says.
"""

from collections.abc import Sequence

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.questions import ScaleCounts
from faircount.core.questions.choices import ChoiceQuestion
from faircount.estimation.intervals import Coverage
from faircount.estimation.presentation import Frequencies
from faircount.estimation.released_cells import divide_bounds
from faircount.estimation.result import Result
from faircount.estimation.sheet_estimates import (
    MEAN,
    OF_ANSWERED,
    SHARE,
    Estimate,
    EstimateNoise,
)
from faircount.mechanisms.count_distribution import NoiseDistribution

Rows = tuple[Estimate, ...]


def estimate_frequencies(
    result: Frequencies,
    question: ChoiceQuestion,
    confidence: float,
    covers: str,
    simultaneous: bool,
) -> tuple[Rows, Coverage]:
    """Return all estimates of the question, and what their intervals cover."""
    further = _count_further(question)
    if not simultaneous or not further:
        bounds = result.interval(confidence, covers=covers, simultaneous=simultaneous)
        coverage = bounds.coverage
        error = 1 - confidence
    else:
        # The mechanism's own simultaneous intervals cover its items only; those that are derived
        # from them have a share of the error as well.
        error = (1 - confidence) / (len(question.answers) + further)
        bounds = result.interval(1 - error, covers=covers)
        method = f"{bounds.method}; Bonferroni over {len(question.answers) + further} estimates"
        coverage = Coverage(confidence, covers, True, method)
    noise = None
    # Of several groups together the noise is that of their weighted sum, which has no such
    # distribution.
    distribution = find_noise(result) if isinstance(result, Result) else None
    if distribution is not None:
        noise = EstimateNoise(distribution, 1 / result.included)
    columns = (
        question.answers,
        result.estimates.tolist(),
        bounds.low.tolist(),
        bounds.high.tolist(),
        result.standard_errors.tolist(),
        result.consistent.tolist(),
    )
    rows = []
    for answer, estimate, low, high, deviation, nearest in zip(*columns, strict=True):
        rows.append(Estimate(answer, SHARE, estimate, low, high, deviation, nearest, noise))
    if question.may_be_missing:
        rows += _shares_of_answered(result, question, error, covers)
    if isinstance(question, ScaleCounts):
        rows.append(_mean_of_scores(result, question, error, covers))
    return tuple(rows), coverage


def _count_further(question: ChoiceQuestion) -> int:
    """Return how many estimates there are besides the shares of all answers."""
    of_answered = len(question.choices) if question.may_be_missing else 0
    return of_answered + isinstance(question, ScaleCounts)


def find_noise(result: Result) -> NoiseDistribution | None:
    """Return the noise of a count; None where something else is random, as in sampling."""
    # The estimates are fitted to the known total, so their errors have the distribution of fitted
    # noise.
    channel = result.channel.fitted_to_total(result.mechanism.N)
    return channel.noise if channel.hit == 1 and not channel.miss else None


def _shares_of_answered(
    result: Frequencies, question: ChoiceQuestion, error: float, covers: str
) -> list[Estimate]:
    """Return shares among those who answered, from intervals with half of the error each."""
    bounds = result.interval(1 - error / 2, covers=covers)
    low, high = _bound_answered(question, bounds.low, bounds.high)
    choices = len(question.choices)
    answered = float(result.estimates[:choices].sum())
    rows = []
    for place, label in enumerate(question.choices):
        # At least one person: noise may leave nobody, or less than nobody, who answered.
        share = float(result.estimates[place]) / max(answered, 1 / result.included)
        nearest = min(max(share, 0.0), 1.0)
        ends = (low[place], high[place])
        rows.append(Estimate(label, SHARE + OF_ANSWERED, share, *ends, None, nearest))
    return rows


def _bound_answered(
    question: ChoiceQuestion, low: Floats, high: Floats
) -> tuple[list[float], list[float]]:
    """Return bounds of the shares among those who answered, from bounds of all shares."""
    choices = len(question.choices)
    # One term: a survey of one question has no branch, so only "prefer not to say" is behind the
    # choices, and two halves of the error are enough.
    missing = (float(low[choices:].sum()), min(float(high[choices:].sum()), 1.0))
    least = []
    greatest = []
    for place in range(choices):
        ends = divide_bounds((float(low[place]), float(high[place])), missing, 1.0)
        least.append(ends[0])
        greatest.append(ends[1])
    return least, greatest


def _mean_of_scores(
    result: Frequencies, question: ScaleCounts, error: float, covers: str
) -> Estimate:
    """Return the mean score, and the means of all shares that lie within simultaneous intervals."""
    points = len(question.items)
    # All at once: the mean is made of all shares, so all of their intervals must cover.
    bounds = result.interval(1 - error, covers=covers, simultaneous=True)
    low = bounds.low.tolist()
    high = bounds.high.tolist()
    if question.may_be_missing:
        low, high = _bound_answered(question, bounds.low, bounds.high)
    scores = np.arange(1, points + 1)
    answered = result.estimates[:points]
    kept = result.consistent[:points]
    nearest = float(scores @ kept / kept.sum()) if kept.sum() > 0 else (points + 1) / 2
    # Noise may leave nobody who answered; then the mean is not known at all.
    total = float(answered.sum())
    mean = float(scores @ answered) / total if total > 0 else nearest
    least = _extreme_mean(low, high)
    greatest = points + 1 - _extreme_mean(low[::-1], high[::-1])
    measure = MEAN + OF_ANSWERED if question.may_be_missing else MEAN
    return Estimate("", measure, mean, least, greatest, None, nearest)


def _extreme_mean(low: Sequence[float], high: Sequence[float]) -> float:
    """Return the lowest mean score of shares within these bounds that sum to 1."""
    left = max(1 - sum(low), 0.0)
    shares = []
    for least, greatest in zip(low, high, strict=True):
        # What is not fixed goes to the lowest scores, as far as their bounds allow.
        more = min(left, max(greatest - least, 0.0))
        left -= more
        shares.append(least + more)
    # Nothing is left unless unlikely noise made the bounds contradict each other.
    shares[-1] += left
    total = sum(shares)
    return sum(score * share for score, share in enumerate(shares, 1)) / total

"""Estimates and intervals of the questions of a questionnaire, kind by kind.

All noise is added to counts or sums whose law is known exactly, so an interval is the set of whole
numbers that the noise could have led from to what was published. Where an estimate is made of
several sums, each of them has its share of the error, and the interval covers at least as often as
its level says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.questions import (
    Bands,
    Question,
    ScaleCounts,
    Table,
)
from faircount.core.questions.kinds import (
    SKIP_LABEL,
    ChoiceQuestion,
    SeveralItems,
    SumQuestion,
)
from faircount.estimation.consistency import project_to_simplex
from faircount.mechanisms.count_law import NoiseLaw
from faircount.mechanisms.joint_noise.mechanism import JointNoise

SHARE = "share"
MEAN = "mean"
MEDIAN = "median"
OF_ANSWERED = " of those who answered"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimated number of a question.

    answer:         the answer, item or margin; empty for a mean or a median
    measure:        "share", "mean" or "median", and whether it is of those who answered
    estimate:       the share, mean or median
    low, high:      bounds of its interval
    standard_error: of the privacy noise; None where it has no simple one
    consistent:     the nearest estimate that can be true: shares from 0 to 1 that sum to 1 where
                    exactly one answer is given, means within their range
    """

    answer: str
    measure: str
    estimate: float
    low: float
    high: float
    standard_error: float | None
    consistent: float


@dataclass(frozen=True)
class _Released:
    """The published cells of one question, and what is known about their noise."""

    number: int
    question: Question
    cells: tuple[int, ...]
    mechanism: JointNoise
    included: int
    error: float

    def law(self, block: int = 0) -> NoiseLaw:
        return self.mechanism.law(self.number, block)

    def bounds(self, value: int, law: NoiseLaw, error: float, top: int) -> tuple[int, int]:
        """Return the least and greatest true sum in [0, top] for a published value."""
        least, most = law.quantiles(error / 2)
        low = min(max(value - round(most), 0), top)
        return low, max(min(value - round(least), top), low)


def estimate_question(
    question: Question,
    number: int,
    cells: Ints,
    mechanism: JointNoise,
    included: int,
    error: float,
) -> tuple[Estimate, ...]:
    """Return all estimates of one question; each interval misses with at most this probability."""
    values = tuple(int(value) for value in cells)
    released = _Released(number, question, values, mechanism, included, error)
    if isinstance(question, ChoiceQuestion):
        return tuple(_estimate_choice(released, question))
    if isinstance(question, SeveralItems):
        return tuple(_estimate_items(released, question))
    assert isinstance(question, SumQuestion)  # noqa: S101 - the third and last kind
    return tuple(_estimate_sum(released, question))


def _estimate_choice(released: _Released, question: ChoiceQuestion) -> list[Estimate]:
    n = released.included
    counts = list(released.cells)
    if question.is_binary:
        counts = [n - counts[0], counts[0]]
    consistent = project_to_simplex(np.array(counts) / n)
    rows = _estimate_shares(released, question.answers, counts, consistent)
    if question.skip:
        rows += _shares_of_answered(released, question.choices, counts[:-1], counts[-1])
    if isinstance(question, ScaleCounts):
        rows.append(_mean_of_scores(released, question, counts, consistent))
    if isinstance(question, Bands) and not question.skip:
        rows.append(_median_of_bands(released, question, counts, consistent))
    if isinstance(question, Table):
        rows += _estimate_margins(released, question, consistent)
    return rows


def _estimate_shares(
    released: _Released,
    labels: Sequence[str],
    counts: Sequence[int],
    consistent: Floats,
    block: int = 0,
) -> list[Estimate]:
    """Return the share of every answer among all counted people."""
    n = released.included
    law = released.law(block)
    deviation = math.sqrt(law.variance) / n
    rows = []
    for label, count, nearest in zip(labels, counts, consistent.tolist(), strict=True):
        low, high = released.bounds(count, law, released.error, n)
        rows.append(Estimate(label, SHARE, count / n, low / n, high / n, deviation, nearest))
    return rows


def _shares_of_answered(
    released: _Released,
    labels: Sequence[str],
    counts: Sequence[int],
    skipped: int,
    skip_block: int = 0,
) -> list[Estimate]:
    """Return shares among those who answered: both intervals have half of the error."""
    n = released.included
    half = released.error / 2
    fewest, most = released.bounds(skipped, released.law(skip_block), half, n)
    answered = max(n - skipped, 1)
    rows = []
    for label, count in zip(labels, counts, strict=True):
        low, high = released.bounds(count, released.law(), half, n)
        share = count / answered
        least = low / max(n - fewest, 1)
        greatest = min(high / (n - most), 1.0) if most < n else 1.0
        nearest = min(max(share, 0.0), 1.0)
        rows.append(
            Estimate(label, SHARE + OF_ANSWERED, share, min(least, 1.0), greatest, None, nearest)
        )
    return rows


def _mean_of_scores(
    released: _Released, question: ScaleCounts, counts: Sequence[int], consistent: Floats
) -> Estimate:
    """Return the mean score from the counts of all scores.

    The sum of the scores 0, 1, ..., K - 1 is that of the numbers of people with a score of at least
    k, for k = 1 .. K - 1. The law of each of them is known, and each has its share of the error.
    """
    n = released.included
    points = len(question.items)
    scores = np.arange(points)
    total = int(scores @ np.array(counts[:points]))
    # With skip, half of the error is for the number of those who answered.
    error = released.error / 2 if question.skip else released.error
    low = 0
    high = 0
    for least in range(1, points):
        reached = sum(counts[least:points])
        law = released.law()
        if not question.is_binary:
            law = released.mechanism.law_of_sum(released.number, points - least)
        bounds = released.bounds(reached, law, error / (points - 1), n)
        low += bounds[0]
        high += bounds[1]
    answered = (n, n, n)
    if question.skip:
        fewest, most = released.bounds(counts[-1], released.law(), error, n)
        answered = (max(n - counts[-1], 1), max(n - fewest, 1), max(n - most, 1))
    mean = total / answered[0]
    weights = np.append(scores, mean) if question.skip else scores
    spread = _contrast_variance(weights.astype(np.float64), released.law(), len(counts))
    kept = consistent[:points]
    nearest = float(scores @ kept / kept.sum()) if kept.sum() > 0 else (points - 1) / 2
    return Estimate(
        "",
        MEAN + OF_ANSWERED if question.skip else MEAN,
        1 + mean,
        1 + min(low / answered[1], points - 1),
        1 + min(high / answered[2], points - 1),
        math.sqrt(spread) / answered[0],
        1 + nearest,
    )


def _contrast_variance(weights: Floats, law: NoiseLaw, cells: int) -> float:
    """Return the variance of a weighted sum of cells whose noise adds up to 0.

    Any two cells have the covariance -V / (N - 1), so that only differences of weights count.
    """
    centred = weights - weights.mean()
    return law.variance * cells / (cells - 1) * float(centred @ centred)


def _median_of_bands(
    released: _Released, question: Bands, counts: Sequence[int], consistent: Floats
) -> Estimate:
    """Return the median, and the edges of the bands that may hold it.

    If exactly half of the people are up to some edge, all numbers between the two in the middle are
    medians, and the interval covers them all. The lowest median lies in the first band up to which
    at least half of the people are, the greatest in the last band below which at most half are.
    Both ends may be wrong with half of the error.
    """
    half = released.included / 2
    inner = range(1, len(counts))
    bounds = {bands: _bound_up_to(released, counts, bands) for bands in inner}
    # first <= last: below band `first` at most half can be, since fewer than half were possible.
    first = min((bands - 1 for bands in inner if bounds[bands][1] >= half), default=len(inner))
    last = max((bands for bands in inner if bounds[bands][0] <= half), default=0)
    edges = [float(edge) for edge in question.edges]
    # From the consistent shares: raw ones may be negative, and sums of them need not ascend.
    cumulative = np.concatenate([[0.0], np.cumsum(consistent)])
    median = float(np.interp(0.5, cumulative, edges))
    return Estimate("", MEDIAN, median, edges[first], edges[last + 1], None, median)


def _bound_up_to(released: _Released, counts: Sequence[int], bands: int) -> tuple[int, int]:
    law = released.law()
    if len(counts) > 2:
        law = released.mechanism.law_of_sum(released.number, bands)
    # One-sided statements: `bounds` halves the error once more, so it gets all of it.
    return released.bounds(sum(counts[:bands]), law, released.error, released.included)


def _estimate_margins(released: _Released, question: Table, consistent: Floats) -> list[Estimate]:
    """Return the shares of the rows and the columns of a table: sums of its cells."""
    n = released.included
    shape = (len(question.rows), len(question.columns))
    counts = np.array(released.cells).reshape(shape)
    nearest = consistent.reshape(shape)
    rows = []
    for axis, labels in ((1, question.rows), (0, question.columns)):
        law = released.mechanism.law_of_sum(released.number, shape[axis])
        deviation = math.sqrt(law.variance) / n
        sums = counts.sum(axis=axis).tolist()
        # From the cells, which were made consistent once: all margins agree with them.
        agreed = nearest.sum(axis=axis).tolist()
        for label, count, share in zip(labels, sums, agreed, strict=True):
            low, high = released.bounds(count, law, released.error, n)
            name = f"{label} / all" if axis else f"all / {label}"
            rows.append(Estimate(name, SHARE, count / n, low / n, high / n, deviation, share))
    return rows


def _estimate_items(released: _Released, question: SeveralItems) -> list[Estimate]:
    n = released.included
    items = len(question.items)
    counts = list(released.cells)
    nearest = np.clip(np.array(counts) / n, 0.0, 1.0)
    rows = _estimate_shares(released, question.items, counts[:items], nearest[:items])
    if question.skip:
        rows += _estimate_shares(released, [SKIP_LABEL], counts[items:], nearest[items:], 1)
        rows += _shares_of_answered(released, question.items, counts[:items], counts[items], 1)
    return rows


def _estimate_sum(released: _Released, question: SumQuestion) -> list[Estimate]:
    """Return the mean; with skip, that of those who answered, and how many they are."""
    n = released.included
    largest = question.largest
    origin = float(question.origin)
    unit = float(question.unit)
    error = released.error / 2 if question.skip else released.error
    total = released.cells[0]
    low, high = released.bounds(total, released.law(), error, largest * n)
    rows = []
    people = (n, n, n)
    variance = released.law().variance
    if question.skip:
        answered = released.cells[1]
        counted = released.law(1)
        fewest, most = released.bounds(answered, counted, error, n)
        # Noise may leave nobody who answered. The mean of at least one person is what is asked for.
        people = (max(answered, 1), max(most, 1), max(fewest, 1))
        # The noise of both sums has mean 0 and no correlation: either may change its sign.
        variance += (total / people[0]) ** 2 * counted.variance
        lower, upper = released.bounds(answered, counted, released.error, n)
        share = answered / n
        nearest = min(max(share, 0.0), 1.0)
        deviation = math.sqrt(counted.variance) / n
        rows.append(Estimate("answered", SHARE, share, lower / n, upper / n, deviation, nearest))
    mean = total / people[0]
    # The least total among the most people, and the greatest among the fewest. Both sums have half
    # of the error, so that their bounds hold together with all of it.
    ends = (mean, min(low / people[1], largest), min(high / people[2], largest))
    estimate, least, greatest = (origin + unit * steps for steps in ends)
    nearest = origin + unit * min(max(mean, 0.0), largest)
    measure = MEAN + OF_ANSWERED if question.skip else MEAN
    deviation = unit * math.sqrt(variance) / people[0]
    return [Estimate("", measure, estimate, least, greatest, deviation, nearest), *rows]

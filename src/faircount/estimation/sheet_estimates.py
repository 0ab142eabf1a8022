"""Estimates and intervals of the questions of a questionnaire, kind by kind.

All noise is added to counts or sums whose distribution is known exactly, so an interval of what
these people answered is the set of whole numbers that the noise could have led from to what was
published. An interval of a population also covers that these people were drawn from it: a count is
then binomial, and of a sum of numbers only their range is known. Where an estimate is made of
several sums, each of them has its share of the error, and the interval covers at least as often as
its level says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.questions import Bands, Question, ScaleCounts, Table
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.intervals import bound_shares
from faircount.estimation.mean_intervals import bound_drawn_mean
from faircount.estimation.released_cells import Released, bound_sum, divide_bounds
from faircount.estimation.score_means import estimate_score
from faircount.mechanisms.count_distribution import NoiseDistribution
from faircount.mechanisms.sheets import SheetNoise

SHARE = "share"
MEAN = "mean"
MEDIAN = "median"
OF_ANSWERED = " of those who answered"

ANSWERED_LABEL = "answered"
ALL_LABEL = "all"


ALIKE_CONDITION = "if people who chose weaker protection answer like everybody"
"""The condition of the weighted estimates, in the words in which it is always stated."""

IF_ALIKE = f"{SHARE} {ALIKE_CONDITION}"
"""What the weighted estimates measure: the condition is a part of it wherever they are written."""


@dataclass(frozen=True, eq=False, slots=True)
class EstimateNoise:
    """The noise of an estimate: the noise of one sum, times `unit`."""

    distribution: NoiseDistribution
    unit: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the estimate."""
        return math.sqrt(self.distribution.variance) * self.unit


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
    noise:          where nothing else is random than the noise of one sum
    """

    answer: str
    measure: str
    estimate: float
    low: float
    high: float
    standard_error: float | None
    consistent: float
    noise: EstimateNoise | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("answer", "measure", "estimate", "low", "high", "standard_error", "consistent")
        return {name: getattr(self, name) for name in names}


def is_share(row: Estimate) -> bool:
    """Whether an estimate is a share, which is written in percent."""
    return row.measure.startswith(SHARE)


def is_outside(row: Estimate) -> bool:
    """Whether an estimate lies outside its interval, because noise put it out of its range."""
    # Bounds and estimate are quotients by n that are rounded apart; 1e-12 is far below one person.
    return not row.low - 1e-12 <= row.estimate <= row.high + 1e-12


def estimate_question(
    question: Question,
    number: int,
    cells: Ints,
    noise: SheetNoise,
    included: int,
    error: float,
    covers: str = "users",
) -> tuple[Estimate, ...]:
    """Return all estimates of one question; each interval misses with at most this probability."""
    values = noise.fit(number, [int(value) for value in cells], included)
    released = Released(number, values, noise, included, error, covers)
    if isinstance(question, ChoiceQuestion):
        return tuple(_estimate_choice(released, question))
    if isinstance(question, SeveralItems):
        return tuple(_estimate_items(released, question))
    assert isinstance(question, SumQuestion)  # noqa: S101 - the third and last kind
    return tuple(_estimate_sum(released, question))


def _estimate_choice(released: Released, question: ChoiceQuestion) -> list[Estimate]:
    n = released.included
    counts = list(released.cells)
    if question.is_binary:
        # Only the second answer was published; n is public, so the first one follows from it.
        counts = [n - counts[0], counts[0]]
    consistent = project_to_simplex(np.array(counts) / n)
    rows = _estimate_shares(released, question.answers, counts, consistent)
    if question.may_be_missing:
        choices = len(question.choices)
        # Behind the choices come the answers "prefer not to say" and "does not apply".
        missing = sum(counts[choices:])
        distribution = released.distribution_of_sum(len(counts) - choices)
        rows += _shares_of_answered(
            released, question.choices, counts[:choices], (missing, distribution)
        )
    if isinstance(question, ScaleCounts):
        rows.append(_mean_of_scores(released, question, counts, consistent))
    # The median of those who answered would be one of a share of people that is only estimated.
    if isinstance(question, Bands) and not question.may_be_missing:
        rows.append(_median_of_bands(released, question, counts, consistent))
    if isinstance(question, Table):
        rows += _estimate_margins(released, question, consistent)
    return rows


def _estimate_shares(
    released: Released,
    labels: Sequence[str],
    counts: Sequence[float],
    consistent: Floats,
    block: int = 0,
) -> list[Estimate]:
    """Return the share of every answer among all counted people."""
    return _rows_of_shares(released, labels, counts, consistent, released.distribution(block))


def _rows_of_shares(
    released: Released,
    labels: Sequence[str],
    counts: Sequence[float],
    consistent: Floats,
    distribution: NoiseDistribution,
) -> list[Estimate]:
    n = released.included
    noise = EstimateNoise(distribution, 1 / n)
    low, high = bound_shares(counts, distribution, n, released.error, released.covers)
    columns = (labels, counts, low.tolist(), high.tolist(), consistent.tolist())
    return [
        Estimate(label, SHARE, count / n, least, most, noise.deviation, nearest, noise)
        for label, count, least, most, nearest in zip(*columns, strict=True)
    ]


def _shares_of_answered(
    released: Released,
    labels: Sequence[str],
    counts: Sequence[float],
    missing: tuple[float, NoiseDistribution],
) -> list[Estimate]:
    """Return shares among those who answered: both intervals have half of the error.

    missing: the published number of people without an answer, and the distribution of its noise
    """
    n = released.included
    half = released.error / 2
    fewest, most = released.bound_share(*missing, half)
    low, high = bound_shares(counts, released.distribution(), n, half, released.covers)
    # Noise may leave nobody who answered; the interval then says that nothing is known.
    answered = max(n - missing[0], 1)
    rows = []
    for label, count, bottom, top in zip(labels, counts, low.tolist(), high.tolist(), strict=True):
        share = count / answered
        least, greatest = divide_bounds((bottom, top), (fewest, most), 1.0)
        nearest = min(max(share, 0.0), 1.0)
        rows.append(Estimate(label, SHARE + OF_ANSWERED, share, least, greatest, None, nearest))
    return rows


def _mean_of_scores(
    released: Released, question: ScaleCounts, counts: Sequence[float], consistent: Floats
) -> Estimate:
    """Return the mean score from the counts of all scores."""
    points = len(question.items)
    found = estimate_score(released, points, counts)
    kept = consistent[:points]
    nearest = (points - 1) / 2
    if kept.sum() > 0:
        nearest = float(np.arange(points) @ kept / kept.sum())
    measure = MEAN + OF_ANSWERED if question.may_be_missing else MEAN
    values = (1 + found.mean, 1 + found.low, 1 + found.high, found.deviation, 1 + nearest)
    return Estimate("", measure, *values)


def _median_of_bands(
    released: Released, question: Bands, counts: Sequence[float], consistent: Floats
) -> Estimate:
    """Return the median, and the edges of the bands that may hold it.

    If exactly half of the people are up to some edge, all numbers between the two in the middle are
    medians, and the interval covers them all. The lowest median lies in the first band up to which
    at least half of the people are, the greatest in the last band below which at most half are.
    Both ends may be wrong with half of the error.
    """
    inner = range(1, len(counts))
    bounds = {}
    for bands in inner:
        distribution = released.distribution_of_sum(bands)
        # One-sided statements: `bound_share` halves the error once more, so it gets all of it.
        bounds[bands] = released.bound_share(sum(counts[:bands]), distribution, released.error)
    # first <= last: below band `first` at most half can be, since fewer than half were possible.
    first = min((bands - 1 for bands in inner if bounds[bands][1] >= 0.5), default=len(inner))
    last = max((bands for bands in inner if bounds[bands][0] <= 0.5), default=0)
    edges = [float(edge) for edge in question.edges]
    # From the consistent shares: raw ones may be negative, and sums of them need not ascend.
    cumulative = np.concatenate([[0.0], np.cumsum(consistent)])
    median = float(np.interp(0.5, cumulative, edges))
    return Estimate("", MEDIAN, median, edges[first], edges[last + 1], None, median)


def _estimate_margins(released: Released, question: Table, consistent: Floats) -> list[Estimate]:
    """Return the shares of the rows and the columns of a table: sums of its cells."""
    shape = (len(question.rows), len(question.columns))
    counts = np.array(released.cells).reshape(shape)
    nearest = consistent.reshape(shape)
    rows = []
    for axis, labels in ((1, question.rows), (0, question.columns)):
        names = [f"{name} / {ALL_LABEL}" if axis else f"{ALL_LABEL} / {name}" for name in labels]
        distribution = released.distribution_of_sum(shape[axis])
        # From the cells, which were made consistent once: all margins agree with them.
        agreed = nearest.sum(axis=axis)
        rows += _rows_of_shares(
            released, names, counts.sum(axis=axis).tolist(), agreed, distribution
        )
    return rows


def _estimate_items(released: Released, question: SeveralItems) -> list[Estimate]:
    n = released.included
    items = len(question.items)
    counts = list(released.cells)
    # Any number of items may be chosen, so the shares have no sum to be fitted to.
    nearest = np.clip(np.array(counts) / n, 0.0, 1.0)
    rows = _estimate_shares(released, question.items, counts[:items], nearest[:items])
    if question.may_be_missing:
        label = question.missing_label
        rows += _estimate_shares(released, [label], counts[items:], nearest[items:], 1)
        missing = (counts[items], released.distribution(1))
        rows += _shares_of_answered(released, question.items, counts[:items], missing)
    return rows


def _estimate_sum(released: Released, question: SumQuestion) -> list[Estimate]:
    """Return the mean; where answers may be missing, of those who answered, and their share."""
    origin = float(question.origin)
    unit = float(question.unit)
    ends = _bound_mean(released, question)
    total = released.cells[0]
    rows = []
    people: float = released.included
    variance = released.distribution().variance
    noise = None
    if question.may_be_missing:
        answered = released.cells[1]
        counted = released.distribution(1)
        people = max(answered, 1)
        # The noise of both sums has mean 0 and no correlation: either may change its sign.
        variance += (total / people) ** 2 * counted.variance
        nearest = np.clip(np.array([answered / released.included]), 0.0, 1.0)
        rows = _estimate_shares(released, [ANSWERED_LABEL], [answered], nearest, 1)
    else:
        noise = EstimateNoise(released.distribution(), unit / people)
    mean = total / people
    measure = MEAN + OF_ANSWERED if question.may_be_missing else MEAN
    deviation = unit * math.sqrt(variance) / people
    estimate, low, high, nearest_mean = (
        origin + unit * steps for steps in (mean, *ends, min(max(mean, 0.0), question.largest))
    )
    return [Estimate("", measure, estimate, low, high, deviation, nearest_mean, noise), *rows]


def _bound_mean(released: Released, question: SumQuestion) -> tuple[float, float]:
    """Return the bounds of a mean, in steps.

    Each of the sum, the number of those who answered (where answers may be missing) and the draw of
    these people from a population (where that is covered) has its share of the error.
    """
    n = released.included
    largest = question.largest
    drawn = released.error / 2 if released.covers == "population" else 0.0
    error = released.error - drawn
    fewest = most = n
    if question.may_be_missing:
        error /= 2
        ends = bound_sum(released.cells[1], released.distribution(1), error, n)
        # At least one: the bounds are divisors below.
        fewest, most = (max(end, 1) for end in ends)
    low, high = bound_sum(released.cells[0], released.distribution(), error, largest * n)
    # Few people make a mean of a given sum large, many make it small.
    least = min(low / most, largest)
    greatest = min(high / fewest, largest)
    if not drawn:
        return least, greatest
    bottom = bound_drawn_mean(least / largest, most, drawn)[0]
    top = bound_drawn_mean(greatest / largest, fewest, drawn)[1]
    return bottom * largest, top * largest

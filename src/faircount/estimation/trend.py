"""Results of the same questions at several times: what changed, with intervals of the changes.

Two surveys have independent noise. Where an estimate is one sum with added noise and nothing else
is random, the interval of a difference comes from the exact distribution of the difference of both
noises. Elsewhere it is combined from the two intervals (MOVER: distances to the bounds are added
like squares of independent errors), which is approximate, and `method` says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from faircount.core import plain
from faircount.core.arrays import Floats
from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.questions import Question, Questionnaire
from faircount.core.validation import check_fraction
from faircount.estimation.intervals import COVERS, NOISE_ONLY, check_choice
from faircount.estimation.question_estimates import QuestionEstimates, row_label
from faircount.estimation.record import format_time
from faircount.estimation.sheet_estimates import Estimate, EstimateNoise, is_share
from faircount.estimation.sheet_result import QuestionnaireResult

EXACT = f"exact, from the distribution of the difference of both noises; {NOISE_ONLY}"
COMBINED = "approximate, combined from the intervals of both surveys (MOVER)"
DRAWN = "as if other people had answered each time"
_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class RowChange:
    """The difference between two estimates of the same number.

    estimate:  the later one minus the earlier one
    low, high: its interval
    is_exact:  whether that comes from the distribution of the difference of both noises
    """

    estimate: float
    low: float
    high: float
    is_exact: bool

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        # Strict: an interval that ends in 0 does not exclude that nothing changed.
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Change:
    """The differences between two results of one question, one per estimate.

    before, after: positions of the results
    rows:          in the order of the estimates
    method:        how the intervals were computed, in words
    """

    before: int
    after: int
    rows: tuple[RowChange, ...]
    method: str

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return plain values for JSON; `names` are those of all results."""
        return {
            "from": names[self.before],
            "to": names[self.after],
            "estimates": [row.estimate for row in self.rows],
            "low": [row.low for row in self.rows],
            "high": [row.high for row in self.rows],
            "clear": [row.is_clear for row in self.rows],
            "method": self.method,
        }


@dataclass(frozen=True)
class QuestionTrend:
    """One question at several times.

    series:  its estimates, one entry per result
    changes: from each result to the next and, of more than two, from the first to the last
    """

    series: tuple[QuestionEstimates, ...]
    changes: tuple[Change, ...]

    @property
    def labels(self) -> list[str]:
        """What is estimated, in the order of the estimates."""
        return [row_label(row) for row in self.series[0].estimates]

    @property
    def title(self) -> str:
        """The number and the text of the question in the first survey."""
        return self.series[0].title

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "number": self.series[0].number,
            "text": self.series[0].text,
            "rows": [
                {"answer": row.answer, "measure": row.measure} for row in self.series[0].estimates
            ],
            "changes": [change.to_dict(names) for change in self.changes],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """Several results with the same questions, in the order of time.

    results: at least two
    names: of the surveys, in the same order
    confidence: confidence of the intervals
    covers: "users", or "population" to include the draw of those who responded
    """

    results: tuple[QuestionnaireResult, ...]
    names: tuple[str, ...]
    confidence: float = 0.95
    covers: str = "users"

    def __post_init__(self) -> None:
        check_fraction("confidence", self.confidence)
        check_choice("covers", self.covers, COVERS)
        if len(self.results) < 2:
            raise ParameterError("a trend compares at least two results")
        # Rows and columns of exports are found by these names.
        if len(set(self.names)) < len(self.names):
            raise ParameterError("two of the results have the same name: name each differently")
        for name, result in zip(self.names, self.results, strict=True):
            # One by one first, so that the message can name the survey that does not fit.
            if not match_questions(self.results[0].questionnaire, result.questionnaire):
                raise ParameterError(
                    f"{name} has other answers to choose from than {self.names[0]}: only surveys "
                    "with the same answers can be compared"
                )
        if not self._matches:
            raise ParameterError("no question is in all of these surveys: compare fewer of them")

    @property
    def _matches(self) -> list[tuple[int, ...]]:
        return match_questions(*(result.questionnaire for result in self.results))

    @cached_property
    def questions(self) -> tuple[QuestionTrend, ...]:
        """The questions that all results have."""
        found = [result.estimates(self.confidence, covers=self.covers) for result in self.results]
        trends = []
        for numbers in self._matches:
            series = tuple(rows[number] for rows, number in zip(found, numbers, strict=True))
            trends.append(QuestionTrend(series, self._changes(series)))
        return tuple(trends)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Questions of the first result that another one does not have."""
        kept = {trend.series[0].number for trend in self.questions}
        first = self.results[0].questions
        return tuple(question.title for question in first if question.number not in kept)

    def _changes(self, series: Sequence[QuestionEstimates]) -> tuple[Change, ...]:
        last = len(series) - 1
        pairs = [(place, place + 1) for place in range(last)]
        if last > 1:
            # Small steps may each be within noise and still add up to a clear change.
            pairs.append((0, last))
        changes = []
        for before, after in pairs:
            both = zip(series[before].estimates, series[after].estimates, strict=True)
            rows = tuple(self._compare(first, second) for first, second in both)
            changes.append(Change(before, after, rows, self._method(rows)))
        return tuple(changes)

    def _compare(self, first: Estimate, second: Estimate) -> RowChange:
        difference = second.estimate - first.estimate
        bounds = _combined_bounds(first, second)
        is_exact = False
        if self.covers == "users" and first.noise is not None and second.noise is not None:
            low, high = bound_difference(first.noise, second.noise, 1 - self.confidence)
            # The draw of people is not part of the noise's distribution, so this is for the people
            # who answered only.
            bounds = (difference + low, difference + high)
            is_exact = True
        if is_share(first):
            # No share changes by more than all people.
            bounds = (max(bounds[0], -1.0), min(bounds[1], 1.0))
        return RowChange(difference, *bounds, is_exact)

    def _method(self, rows: Sequence[RowChange]) -> str:
        combined = f"{COMBINED}; {NOISE_ONLY}"
        if self.covers == "population":
            combined = f"{COMBINED}, {DRAWN}"
        if all(row.is_exact for row in rows):
            return EXACT
        if any(row.is_exact for row in rows):
            return f"{EXACT}; means and shares of those who answered: {combined}"
        return combined

    @property
    def titles(self) -> list[str]:
        """Every result as the head of a column: its name, and when it ended."""
        titles = []
        for name, result in zip(self.names, self.results, strict=True):
            ended = None if result.record is None else result.record.ended
            titles.append(f"{name}, {format_time(ended).partition(',')[0]}" if ended else name)
        return titles

    def rows(self) -> list[dict[str, Any]]:
        """One row per result and estimate, with the change since the result before."""
        rows = []
        for trend in self.questions:
            # Reversed: the change from the first to the last result comes last and has the same
            # `after` as the last step, which must win.
            since = {change.after: change for change in reversed(trend.changes)}
            for place, question in enumerate(trend.series):
                changes = since[place].rows if place in since else None
                rows += self._rows_of(place, question, changes)
        return rows

    def _rows_of(
        self, place: int, question: QuestionEstimates, changes: Sequence[RowChange] | None
    ) -> list[dict[str, Any]]:
        result = self.results[place]
        rows = []
        for number, row in enumerate(question.estimates):
            change = None if changes is None else changes[number]
            rows.append(
                {
                    "survey": self.names[place],
                    "ended": None if result.record is None else result.record.ended,
                    "number": question.number,
                    "question": question.text,
                    "answer": row.answer,
                    "measure": row.measure,
                    "estimate": row.estimate,
                    "low": row.low,
                    "high": row.high,
                    "change": None if change is None else change.estimate,
                    "change_low": None if change is None else change.low,
                    "change_high": None if change is None else change.high,
                    "counted": result.included,
                    "guarantee": str(result.guarantee),
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        document = {
            **plain.JSON_VERSION,
            "confidence": self.confidence,
            "covers": self.covers,
            "results": [
                result.to_dict(self.confidence, covers=self.covers) for result in self.results
            ],
            "names": list(self.names),
            "questions": [trend.to_dict(self.names) for trend in self.questions],
            "left_out": list(self.left_out),
        }
        # Programs that compare a single question find its changes at the top as well.
        if len(self.questions) == 1:
            (only,) = self.questions
            document["items"] = only.labels
            document["changes"] = [change.to_dict(self.names) for change in only.changes]
        return document

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per survey and estimate."""
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return plain.data_frame(
            columns, list(range(len(rows))), "row", {"confidence": self.confidence}
        )

    def plot(self) -> Any:
        """Draw a chart per question over time, with intervals, and return the figure."""
        # Matplotlib is optional, so it is loaded by those who draw.
        from faircount.estimation.trend_drawing import draw_trend

        return draw_trend(self)

    def __str__(self) -> str:
        lines = []
        for trend in self.questions:
            if len(self.questions) > 1:
                lines.append(escape_controls(trend.title))
            for change in trend.changes:
                lines.append(f"{self.names[change.before]} to {self.names[change.after]}:")
                for label, row, estimate in trend_rows(trend, change):
                    words = describe_change(row, estimate)
                    lines.append(f"  {escape_controls(label)}: {words}")
        lines.append(f"intervals: {plain.format_confidence(self.confidence)} each, {self.methods}")
        return "\n".join(lines)

    @property
    def methods(self) -> str:
        """How the intervals of all changes were computed, in words."""
        methods: dict[str, None] = {}
        for trend in self.questions:
            methods |= dict.fromkeys(change.method for change in trend.changes)
        return "; ".join(methods)

    def __repr__(self) -> str:
        if len(self.questions) > 1:
            return f"<Trend of {len(self.results)} results, {len(self.questions)} questions>"
        return f"<Trend of {len(self.results)} results, {len(self.questions[0].labels)} items>"


def trend_rows(trend: QuestionTrend, change: Change) -> list[tuple[str, RowChange, Estimate]]:
    """Every estimate of a question with its label, its change and its first value."""
    return list(zip(trend.labels, change.rows, trend.series[0].estimates, strict=True))


def describe_change(change: RowChange, estimate: Estimate) -> str:
    """A difference with its interval: of shares in percentage points, of means as a number."""
    numbers = (change.estimate, change.low, change.high)
    if is_share(estimate):
        difference, low, high = (f"{100 * number:+z.1f}" for number in numbers)
        words = f"{difference} points ({low} to {high})"
    else:
        difference, low, high = (f"{number:+z.3g}" for number in numbers)
        words = f"{difference} ({low} to {high})"
    return words if change.is_clear else f"{words}, may be noise"


def trend_of(
    results: Sequence[QuestionnaireResult],
    names: Sequence[str],
    confidence: float = 0.95,
    covers: str = "users",
) -> Trend:
    """Compare results with the same questions over time."""
    return Trend(tuple(results), tuple(names), confidence, covers)


def match_questions(*questionnaires: Questionnaire) -> list[tuple[int, ...]]:
    """Return for every question that all questionnaires have its places in them, from 0.

    It is the one with the same text and answers; or else, in the same place, one with the same
    answers, because an owner may have worded the question anew.
    """
    first, *others = (questionnaire.questions for questionnaire in questionnaires)
    matches = []
    for place in range(len(first)):
        found = [_find_question(first, place, questions) for questions in others]
        if None not in found:
            matches.append((place, *(number for number in found if number is not None)))
    return matches


def _find_question(first: Sequence[Question], place: int, others: Sequence[Question]) -> int | None:
    question = first[place]
    # On which answers it depended whether it was asked is part of an earlier question.
    same = [number for number, other in enumerate(others) if _is_same(question, other)]
    if same:
        return same[0]
    if place >= len(others) or not _is_same(question, _reword(others[place], question)):
        return None
    # A question that the first survey asked elsewhere, under the same text, has only moved: it is
    # not this one in other words, and must not be compared with two questions.
    has_moved = any(_is_same(earlier, others[place]) for earlier in first)
    return None if has_moved else place


def _is_same(question: Question, other: Question) -> bool:
    return replace(question, only_if=None) == replace(other, only_if=None) and (
        (question.only_if is None) == (other.only_if is None)
    )


def _reword(question: Question, like: Question) -> Question:
    """Return the question with the texts of another one of its kind."""
    if type(question) is not type(like):
        return question
    texts = {name: getattr(like, name) for name in ("text", "columns_text") if hasattr(like, name)}
    return replace(question, **texts)


def bound_difference(
    before: EstimateNoise, after: EstimateNoise, error: float
) -> tuple[float, float]:
    """Bounds of a true difference minus the observed one: the quantiles of its error."""
    first = _error_distribution(before)
    second = _error_distribution(after)
    most = _upper_quantile(first, second, error / 2)
    # The error of the opposite difference has the other quantile, with its sign changed.
    least = -_upper_quantile(second, first, error / 2)
    return -most, -least


def _error_distribution(noise: EstimateNoise) -> tuple[Floats, Floats]:
    """Errors of an estimate, ascending, and their probabilities."""
    # Estimates are unbiased: the mean of the noise was subtracted from the published count.
    errors = (noise.distribution.values - noise.distribution.mean) * noise.unit
    return errors, np.asarray(noise.distribution.pmf, dtype=np.float64)


def _upper_quantile(
    before: tuple[Floats, Floats], after: tuple[Floats, Floats], tail: float
) -> float:
    """The least x with P(after - before > x) <= tail, rounded up by bisection."""
    errors, pmf = before
    later, later_pmf = after
    # above[k]: the probability that the later error is at least its k-th value.
    above = np.append(np.cumsum(later_pmf[::-1])[::-1], 0.0)

    def exceeds(x: float) -> float:
        places = np.searchsorted(later, errors + x, side="right")
        return float((pmf * above[places]).sum())

    # Below the smallest possible difference, where the tail is certain to exceed; at the largest
    # one it is 0. `high` stays on the safe side in every step.
    low = float(later[0] - errors[-1]) - 1e-9
    high = float(later[-1] - errors[0])
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if exceeds(middle) <= tail:
            high = middle
        else:
            low = middle
    return high


def _combined_bounds(first: Estimate, second: Estimate) -> tuple[float, float]:
    """Bounds of a difference from the intervals of both estimates."""
    # Noise can put an estimate outside its interval, where distances would be negative.
    start = min(max(first.estimate, first.low), first.high)
    end = min(max(second.estimate, second.low), second.high)
    down = math.hypot(end - second.low, first.high - start)
    up = math.hypot(second.high - end, start - first.low)
    return end - start - down, end - start + up

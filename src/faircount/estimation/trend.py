"""Results of the same question at several times: what changed, with intervals of the changes.

Two surveys have independent noise. Where the counts have added noise and nothing else is random,
the interval of a difference comes from the exact law of the difference of both noises. Elsewhere it
is combined from the two intervals (MOVER: distances to the bounds are added like squares of
independent errors), which is approximate, and `method` says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from faircount.core import plain
from faircount.core.arrays import Floats
from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.validation import check_fraction
from faircount.estimation.intervals import COVERS, NOISE_ONLY, check_choice
from faircount.estimation.record import format_time
from faircount.estimation.result import Result
from faircount.mechanisms.count_law import NoiseLaw

EXACT = f"exact, from the law of the difference of both noises; {NOISE_ONLY}"
COMBINED = "approximate, combined from the intervals of both surveys (MOVER)"
DRAWN = "as if other people had answered each time"
_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Change:
    """The differences between two results, one number per item.

    before, after: positions of the results
    estimates: differences of the estimated frequencies
    low, high: their interval
    method: how it was computed, in words
    """

    before: int
    after: int
    estimates: Floats
    low: Floats
    high: Floats
    method: str

    @property
    def is_clear(self) -> list[bool]:
        """For every item, whether the interval leaves out 0."""
        return [bool(low > 0 or high < 0) for low, high in zip(self.low, self.high, strict=True)]

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return plain values for JSON; `names` are those of all results."""
        return {
            "from": names[self.before],
            "to": names[self.after],
            "estimates": self.estimates.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "clear": self.is_clear,
            "method": self.method,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """Several results of the same items, in the order of time.

    results: at least two
    names: of the surveys, in the same order
    level: confidence of the intervals
    covers: "users", or "population" to include the draw of those who responded
    """

    results: tuple[Result, ...]
    names: tuple[str, ...]
    level: float = 0.95
    covers: str = "users"

    def __post_init__(self) -> None:
        check_fraction("level", self.level)
        check_choice("covers", self.covers, COVERS)
        if len(self.results) < 2:
            raise ParameterError("a trend compares at least two results")
        if len(set(self.names)) < len(self.names):
            raise ParameterError("two of the results have the same name: name each differently")
        for name, result in zip(self.names, self.results, strict=True):
            if result.items != self.items:
                raise ParameterError(
                    f"{name} has other answers to choose from than {self.names[0]}: only surveys "
                    "with the same answers can be compared"
                )

    @property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return self.results[0].items

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """From each result to the next and, of more than two, from the first to the last."""
        last = len(self.results) - 1
        pairs = [(place, place + 1) for place in range(last)]
        if last > 1:
            # Small steps may each be within noise and still add up to a clear change.
            pairs.append((0, last))
        return tuple(self._change(before, after) for before, after in pairs)

    def _change(self, before: int, after: int) -> Change:
        first = self.results[before]
        second = self.results[after]
        difference = second.estimates - first.estimates
        laws = (_noise_alone(first), _noise_alone(second))
        if self.covers == "users" and laws[0] is not None and laws[1] is not None:
            errors = ((laws[0], first.included), (laws[1], second.included))
            low, high = _exact_bounds(difference, *errors, 1 - self.level)
            method = EXACT
        else:
            low, high = _combined_bounds(first, second, self.level, self.covers)
            method = f"{COMBINED}; {NOISE_ONLY}"
            if self.covers == "population":
                method = f"{COMBINED}, {DRAWN}"
        # No share changes by more than everything. Cutting an interval there leaves its coverage.
        return Change(before, after, difference, np.maximum(low, -1), np.minimum(high, 1), method)

    @property
    def titles(self) -> list[str]:
        """Every result as the head of a column: its name, and when it ended."""
        titles = []
        for name, result in zip(self.names, self.results, strict=True):
            ended = None if result.record is None else result.record.ended
            titles.append(f"{name}, {format_time(ended).partition(',')[0]}" if ended else name)
        return titles

    def rows(self) -> list[dict[str, Any]]:
        """One row per item and result, with the change since the result before."""
        # The last result ends two changes, that from the one before and that from the first. Read
        # backwards, so that the one from its neighbour is kept.
        since = {change.after: change for change in reversed(self.changes)}
        rows = []
        for place, result in enumerate(self.results):
            bounds = result.interval(self.level, covers=self.covers)
            change = since.get(place)
            for item, label in enumerate(self.items):
                row = {
                    "survey": self.names[place],
                    "ended": None if result.record is None else result.record.ended,
                    "item": plain.json_value(label),
                    "estimate": float(result.estimates[item]),
                    "low": float(bounds.low[item]),
                    "high": float(bounds.high[item]),
                    "change": None,
                    "change_low": None,
                    "change_high": None,
                    "counted": result.included,
                    "guarantee": str(result.guarantee),
                }
                if change is not None:
                    row["change"] = float(change.estimates[item])
                    row["change_low"] = float(change.low[item])
                    row["change_high"] = float(change.high[item])
                rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **plain.JSON_VERSION,
            "level": self.level,
            "covers": self.covers,
            "results": [result.to_dict(self.level, covers=self.covers) for result in self.results],
            "names": list(self.names),
            "items": [plain.json_value(item) for item in self.items],
            "changes": [change.to_dict(self.names) for change in self.changes],
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per survey and item."""
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return plain.data_frame(columns, list(range(len(rows))), "row", {"level": self.level})

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the shares over time with their intervals, and return the matplotlib axes."""
        from faircount.estimation.drawing import draw_trend

        return draw_trend(self, ax)

    def __str__(self) -> str:
        lines = []
        for change in self.changes:
            lines.append(f"{self.names[change.before]} to {self.names[change.after]}:")
            for place, item in enumerate(self.items):
                lines.append(f"  {escape_controls(item)}: {describe_change(change, place)}")
        lines.append(f"intervals: {plain.format_level(self.level)} each, {self.changes[0].method}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Trend of {len(self.results)} results, {len(self.items)} items>"


def describe_change(change: Change, item: int) -> str:
    """A difference in percentage points with its interval."""
    low = 100 * change.low[item]
    high = 100 * change.high[item]
    words = f"{100 * change.estimates[item]:+z.1f} points ({low:+z.1f} to {high:+z.1f})"
    return words if change.is_clear[item] else f"{words}, may be noise"


def trend_of(
    results: Sequence[Result], names: Sequence[str], level: float = 0.95, covers: str = "users"
) -> Trend:
    """Compare results of the same question over time."""
    return Trend(tuple(results), tuple(names), level, covers)


def _noise_alone(result: Result) -> NoiseLaw | None:
    """The noise of a count where nothing else is random; None for sampling and local reports."""
    # The estimates are fitted to the known total, so their errors have the law of fitted noise.
    channel = result.mechanism.channel(result.included).on_total(result.mechanism.N)
    return channel.noise if channel.hit == 1 and not channel.miss else None


def _exact_bounds(
    difference: Floats,
    before: tuple[NoiseLaw, int],
    after: tuple[NoiseLaw, int],
    error: float,
) -> tuple[Floats, Floats]:
    """Bounds of the true differences: the observed ones minus the quantiles of their error."""
    first = _centred(*before)
    second = _centred(*after)
    # Half of the error on each side: noise that is not symmetric then misses on neither side more
    # often than it may.
    most = _upper_quantile(first, second, error / 2)
    # The error of the opposite difference has the other quantile, with its sign changed.
    least = -_upper_quantile(second, first, error / 2)
    return difference - most, difference - least


def _centred(law: NoiseLaw, users: int) -> tuple[Floats, Floats]:
    """Errors of an estimate, ascending, and their probabilities."""
    # Around the mean: estimates are corrected for it, so it is no error.
    errors = (law.values - law.mean) / users
    return errors, np.asarray(law.pmf, dtype=np.float64)


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


def _combined_bounds(
    first: Result, second: Result, level: float, covers: str
) -> tuple[Floats, Floats]:
    """Bounds of the differences from the intervals of both results."""
    before = first.interval(level, covers=covers)
    after = second.interval(level, covers=covers)
    # Noise can put an estimate outside its interval, where distances would be negative.
    start = np.clip(first.estimates, before.low, before.high)
    end = np.clip(second.estimates, after.low, after.high)
    down = np.hypot(end - after.low, before.high - start)
    up = np.hypot(after.high - end, start - before.low)
    return end - start - down, end - start + up

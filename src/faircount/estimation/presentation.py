"""What every table of frequencies can do: print, compare, become JSON, pandas or a figure.

It serves results of one survey and of several groups. An estimate may lie outside its interval:
noise can push it out of the possible range, below 0% or above 100%, and the interval ends at the
edge of that range. Such rows are marked and the mark is explained.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from faircount.accounting.guarantee import Guarantee
from faircount.core import plain
from faircount.core.arrays import ArrayValue, Bools, Floats, read_only
from faircount.core.domain import escape_controls
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.intervals import Intervals
from faircount.estimation.record import SurveyRecord
from faircount.estimation.validity import Validity, describe_assumption

SIMULATION = (
    "SIMULATION, not a release: seeded randomness can be repeated by anybody and protects nobody."
)
"""Stands above every result whose facts say `simulation`."""

REPETITION = (
    "every further run on the same people spends privacy again: "
    "the privacy losses of all runs add up"
)
"""Stands below every guarantee: a reader who averages many runs learns what each of them hides."""

CONSISTENT_IS_BIASED = (
    "not negative and summing to 1, but biased: "
    "small frequencies are pulled up and large ones down; estimates are not"
)
"""What to know about the consistent frequencies wherever they are exported."""

OUTSIDE_MARK = "*"
OUTSIDE_NOTE = (
    f"{OUTSIDE_MARK} because of the noise, this estimate is outside the possible range: "
    "use the interval, which is not"
)
"""Explains an estimate outside its interval."""

SMALLEST_SHOWN = 0.0005
"""A sum that is closer to 1 is written as 100.0%."""

MAX_DECIMALS = 6

REPR_ITEMS = 4  # items that a short form names


class Summed(Protocol):
    """Shares of all answers to a question, which should sum to 100%."""

    @property
    def unusual_sum(self) -> float | None:
        """Their sum, if it is not 100%."""


class Described(Protocol):
    """What every result of people has, of one question or of several."""

    @property
    def included(self) -> int:
        """Number of users in the sums."""

    @property
    def record(self) -> SurveyRecord | None:
        """The survey that the result is about; None where there was none."""

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports."""

    @property
    def assumption(self) -> str:
        """What the result assumes about the clients, in words."""

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's."""

    @property
    def guarantee(self) -> Guarantee:
        """What may be claimed without naming the adversary."""


class Frequencies(ArrayValue, ABC):
    """Estimated frequencies with their intervals and guarantee."""

    notes: tuple[str, ...] = ()

    if TYPE_CHECKING:  # a field in one kind of result, computed in the other

        @property
        def included(self) -> int:
            """Number of users in the sums."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the mechanism, or of several."""

    @property
    @abstractmethod
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""

    @property
    @abstractmethod
    def topology(self) -> str | None:
        """How the shares travelled."""

    @property
    @abstractmethod
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's.

        Then nobody is protected, whatever is guaranteed.
        """

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports.

        None where they did not travel, or came from several surveys.
        """
        return None

    @property
    def record(self) -> SurveyRecord | None:
        """The survey that the result is about; None where there was none."""
        return None

    @property
    def assumption(self) -> str:
        """What the result assumes about clients, or about the table, in words."""
        return describe_assumption(self.validity, is_survey=self.record is not None)

    @property
    @abstractmethod
    def estimates(self) -> Floats:
        """Unbiased frequencies; single ones may be negative."""

    @property
    @abstractmethod
    def raw(self) -> Floats:
        """Unbiased frequencies of every item by itself, which need not sum to one."""

    @property
    def unusual_sum(self) -> float | None:
        """The sum of the estimates, if it is not 100%."""
        total = float(self.estimates.sum())
        return None if abs(total - 1) < SMALLEST_SHOWN else total

    @cached_property
    def consistent(self) -> Floats:
        """The nearest frequencies that are not negative and sum to one.

        They are biased: small ones are pulled up, large ones down.
        """
        # Made from the estimates and not from the raw ones, so that exports of both agree about
        # which item is ahead.
        return read_only(project_to_simplex(self.estimates))

    @property
    @abstractmethod
    def standard_errors(self) -> Floats:
        """Standard errors of the estimates, which are those of the privacy noise alone."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What may be claimed without naming the adversary."""

    @property
    @abstractmethod
    def requested(self) -> dict[str, float | None]:
        """The budget that was asked for; the guarantee says what is really spent."""

    @abstractmethod
    def interval(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> Intervals:
        """Return confidence intervals of the frequencies."""

    def to_dict(self, confidence: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Return plain values for JSON."""
        bounds = self.interval(confidence, covers=covers)
        rows = zip(self.items, self.estimates, bounds.low, bounds.high, strict=True)
        estimates = []
        for item, estimate, low, high in rows:
            estimates.append(
                {
                    "item": plain.json_value(item),
                    "estimate": float(estimate),
                    "low": float(low),
                    "high": float(high),
                }
            )
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "mechanism": self.name,
            "topology": self.topology,
            "n": self.included,
            "users": self.included,
            "requested": self.requested,
            "confidence": confidence,
            "covers": bounds.covers,
            "estimates": estimates,
            "about_estimates": describe_sum(self),
            "consistent": self.consistent.tolist(),
            "about_consistent": CONSISTENT_IS_BIASED,
            "raw": self.raw.tolist(),
            "guarantee": self.guarantee.to_dict(),
            "again": REPETITION,
            "assumption": self.assumption,
            "validity": None if self.validity is None else self.validity.to_dict(),
            **({} if self.record is None else {"record": self.record.to_dict()}),
        }

    def to_frame(self, confidence: float = 0.95, *, covers: str = "users") -> Any:
        """Return a pandas DataFrame, one row per item; its `attrs` hold the guarantee.

        Its standard errors are those of the privacy noise alone, whatever its intervals cover.
        """
        bounds = self.interval(confidence, covers=covers)
        columns = {
            "estimate": self.estimates,
            "low": bounds.low,
            "high": bounds.high,
            "standard_error": self.standard_errors,
            "consistent": self.consistent,
            "raw": self.raw,
        }
        attrs = {
            "guarantee": self.guarantee.to_dict(),
            "simulation": self.simulation,
            "about_estimates": describe_sum(self),
            "about_consistent": CONSISTENT_IS_BIASED,
            **({} if self.record is None else {"record": self.record.to_dict()}),
        }
        return plain.data_frame(columns, self.items, "item", attrs)

    def plot(
        self,
        confidence: float = 0.95,
        *,
        covers: str = "users",
        consistent: bool = False,
        ax: Any = None,
    ) -> Any:
        """Draw bars with intervals on matplotlib axes, new ones unless given, and return them.

        `consistent`: the bars are the consistent frequencies, which sum to 100%
        """
        # Matplotlib is optional, so it is loaded by those who draw.
        from faircount.estimation.drawing import draw_frequencies

        return draw_frequencies(self, confidence, covers, ax, consistent=consistent)

    def __str__(self) -> str:
        # Items come from a file or from an owner: an escape sequence would reach the terminal.
        labels = [escape_controls(item) for item in self.items]
        width = max(map(len, labels))
        bounds = self.interval()
        outside = is_outside(self, bounds)
        lines = []
        if self.simulation:
            lines.append(SIMULATION)
        if self.record is not None:
            lines += [f"{label}: {escape_controls(text)}" for label, text in self.record.lines]
        size = f"{self.included} users, {len(labels)} items"
        lines.append(f"{self.name}: {size}{self._describe_route()}")
        rows = zip(labels, self.estimates, bounds.low, bounds.high, outside, strict=True)
        for label, estimate, low, high, marked in rows:
            line = f"  {label:<{width}}  {estimate:z7.4f}  [{low:.4f}, {high:.4f}]"
            lines.append(f"{line} {OUTSIDE_MARK}" if marked else line)
        if outside.any():
            lines.append(OUTSIDE_NOTE)
        sum_note = describe_sum(self)
        if sum_note is not None:
            lines.append(sum_note)
        lines += [f"note: {escape_controls(note)}" for note in self.notes]
        lines.append(f"intervals: 95% each, {bounds.method}")
        lines.append(f"assumes: {self.assumption}")
        if self.validity is not None and self.validity.proven:
            lines.append(f"reports: {self.validity}")
        lines.append(f"privacy: {self.guarantee}")
        lines.append(f"running again: {REPETITION}")
        return "\n".join(lines)

    def _describe_route(self) -> str:
        """How shares travelled, for the first line; empty where that means nothing to a reader."""
        return f", topology {self.topology}" if self.topology else ""

    def __repr__(self) -> str:
        pairs = zip(self.items[:REPR_ITEMS], self.estimates, strict=False)
        shares = ", ".join(f"{escape_controls(item)} {estimate:z.1%}" for item, estimate in pairs)
        if len(self.items) > REPR_ITEMS:
            shares += f", {len(self.items) - REPR_ITEMS} more"
        facts = f"{self.name}, {self.included:,} users, epsilon {self.guarantee.epsilon:.4g}"
        if self.simulation:
            facts += ", SIMULATION"
        return f"<{type(self).__name__}: {facts}: {shares}>"

    def _repr_html_(self) -> str:
        # A notebook shows this: a table with bars, then notes and the guarantee.
        bounds = self.interval()
        page = plain.html_paragraph(SIMULATION, strong=True) if self.simulation else ""
        if self.record is not None:
            page += "".join(
                plain.html_paragraph(f"{label}: {text}") for label, text in self.record.lines
            )
        page += plain.html_paragraph(
            f"{self.name}, {self.included:,} users, {len(self.items)} items"
        )
        page += self._html_table(bounds)
        lines = []
        if is_outside(self, bounds).any():
            lines.append(OUTSIDE_NOTE)
        sum_note = describe_sum(self)
        if sum_note is not None:
            lines.append(sum_note)
        lines += [f"Note: {note}" for note in self.notes]
        lines.append(f"Intervals: 95% each; {bounds.method}.")
        lines.append(f"Assumes: {self.assumption}.")
        if self.validity is not None and self.validity.proven:
            lines.append(f"Reports: {self.validity}")
        lines.append(f"Privacy: {self.guarantee}.")
        lines.append(f"Running again: {REPETITION}.")
        return page + "".join(map(plain.html_paragraph, lines))

    def _html_table(self, bounds: Intervals) -> str:
        outside = is_outside(self, bounds)
        # Where the estimates sum to 100% a second column would only repeat them.
        has_other_sum = describe_sum(self) is not None
        # The longest bar fills its cell. Estimates may all be 0 or negative.
        longest = max(float(self.estimates.max()), 1e-9)
        headings = ["item", "estimate", "95% interval", ""]
        if has_other_sum:
            headings.insert(3, "consistent")
        table = []
        digits = decimals_for(bounds)
        for place, item in enumerate(self.items):
            estimate = float(self.estimates[place])
            span = f"{bounds.low[place]:.{digits}%} to {bounds.high[place]:.{digits}%}"
            if outside[place]:
                span += f" {OUTSIDE_MARK}"
            row = [plain.escape_html(item), f"{estimate:z.{digits}%}", span]
            if has_other_sum:
                row.append(f"{self.consistent[place]:.{digits}%}")
            table.append([*row, plain.html_bar(estimate / longest)])
        return plain.html_table(headings, table)


def describe_sum(result: Summed) -> str | None:
    """Why the estimates do not sum to 100%, in a sentence; None where they do."""
    total = result.unusual_sum
    if total is None:
        return None
    return (
        f"The estimates sum to {total:.1%}, because each of them is randomized by itself; all are "
        "unbiased. The consistent ones are the nearest that sum to 100%, but they are biased."
    )


def decimals_for(bounds: Intervals) -> int:
    """Decimal places of all percentages beside these intervals, at least one.

    One number for a whole table: shares with different numbers of digits are hard to compare, and
    more digits than the noise allows would suggest an accuracy that is not there.
    """
    # Times 100, since the shares are written in percent.
    return count_decimals(100 * float(bounds.width.max()) / 2, least=1)


def count_decimals(half_width: float, least: int = 0) -> int:
    """Decimal places of a number that is accurate to plus or minus `half_width`."""
    if half_width <= 0:
        return least
    # The place of the first digit of the half-width: later digits of an estimate are noise.
    return min(max(least, -math.floor(math.log10(half_width))), MAX_DECIMALS)


def is_outside(result: Frequencies, bounds: Intervals) -> Bools:
    """Return which estimates lie outside their interval."""
    # Exact intervals may end in the estimate itself, which rounding moves by a digit.
    below = result.estimates < bounds.low - 1e-12
    above = result.estimates > bounds.high + 1e-12
    return np.asarray(below | above)

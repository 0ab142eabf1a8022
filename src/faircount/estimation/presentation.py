"""What every table of frequencies can do, of one survey or of several: print, compare, become JSON, pandas or a figure.

An estimate may lie outside its interval: noise can push it below 0 or above 1, where no share is, and the interval ends
there. Such rows are marked and the mark is explained.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.accounting.guarantee import Guarantee
from faircount.core import plain
from faircount.core.arrays import Floats, Marks, read_only
from faircount.core.domain import shown
from faircount.core.values import ArrayValue
from faircount.estimation.consistency import consistent
from faircount.estimation.intervals import Intervals
from faircount.estimation.validity import SUPPOSED, Validity

SIMULATION = "SIMULATION, not a release: seeded randomness can be repeated by anybody and protects nobody."
"""Stands above every result whose facts say `simulation`."""

AGAIN = "running it again on the same people spends that much again: the privacy losses of all runs add up"
"""Stands below every guarantee: a reader who averages many runs learns what each of them hides."""

BIASED = "not negative and summing to 1, but biased: small shares are pulled up and large ones down; estimates are not"
"""What to know of the consistent frequencies wherever they are given away."""

MARK = "*"
OUTSIDE = f"{MARK} noise put this estimate below 0% or above 100%, where the interval ends: read the interval"
"""Explains an estimate outside its interval."""

SHORT = 4  # items that a short form names


class Frequencies(ArrayValue, ABC):
    """Estimated frequencies with their intervals and guarantee; a value: equal contents are equal."""

    notes: tuple[str, ...] = ()

    if TYPE_CHECKING:  # a field in one kind of result, computed in the other

        @property
        def included(self) -> int:
            """Number of users in the sums."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the mechanism, or of several."""

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
        """Whether the randomness was not the operating system's: then nobody is protected, whatever is guaranteed."""

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports; None where they did not travel, or came from several surveys."""
        return None

    @property
    def supposed(self) -> str:
        """What the result supposes of the clients, in words."""
        return SUPPOSED[self.validity is not None and self.validity.proven]

    @property
    @abstractmethod
    def estimates(self) -> Floats:
        """Unbiased frequencies; single ones may be negative."""

    @cached_property
    def consistent(self) -> Floats:
        """The nearest frequencies that are not negative and sum to one; biased: small ones up, large ones down."""
        return read_only(consistent(self.estimates))

    @property
    @abstractmethod
    def standard_errors(self) -> Floats:
        """Of the estimates."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What may be claimed without naming the adversary."""

    @property
    @abstractmethod
    def requested(self) -> dict[str, float | None]:
        """The budget that was asked for; the guarantee says what is really spent."""

    @abstractmethod
    def interval(self, level: float = 0.95, *, covers: str = "users", simultaneous: bool = False) -> Intervals:
        """Confidence intervals of the frequencies."""

    def to_dict(self, level: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        bounds = self.interval(level, covers=covers)
        rows = zip(self.items, self.estimates, bounds.low, bounds.high, strict=True)
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "mechanism": self.name,
            "topology": self.topology,
            "n": self.included,
            "users": self.included,
            "requested": self.requested,
            "level": level,
            "covers": bounds.covers,
            "estimates": [
                {"item": plain.plain(item), "estimate": float(e), "low": float(lo), "high": float(hi)}
                for item, e, lo, hi in rows
            ],
            "consistent": self.consistent.tolist(),
            "about_consistent": BIASED,
            "guarantee": self.guarantee.to_dict(),
            "again": AGAIN,
            "supposed": self.supposed,
            "validity": None if self.validity is None else self.validity.to_dict(),
        }

    def to_frame(self, level: float = 0.95, *, covers: str = "users") -> Any:
        """A pandas DataFrame, one row per item; its `attrs` hold the guarantee."""
        bounds = self.interval(level, covers=covers)
        columns = {"estimate": self.estimates, "low": bounds.low, "high": bounds.high}
        columns |= {"standard_error": self.standard_errors, "consistent": self.consistent}
        about = {"guarantee": self.guarantee.to_dict(), "simulation": self.simulation, "about_consistent": BIASED}
        return plain.frame(columns, self.items, "item", about)

    def plot(self, level: float = 0.95, *, covers: str = "users", ax: Any = None) -> Any:
        """Bars with intervals on matplotlib axes: those given, or new ones, which are returned."""
        from faircount.estimation.drawing import result_axes

        return result_axes(self, level, covers, ax)

    def __str__(self) -> str:
        return in_words(self)

    def __repr__(self) -> str:
        pairs = zip(self.items[:SHORT], self.estimates, strict=False)
        named = ", ".join(f"{shown(item)} {estimate:z.1%}" for item, estimate in pairs)
        more = f", {len(self.items) - SHORT} more" if len(self.items) > SHORT else ""
        simulated = ", SIMULATION" if self.simulation else ""
        promised = f"epsilon {self.guarantee.epsilon:.4g}"
        return f"<{type(self).__name__}: {self.name}, {self.included:,} users, {promised}{simulated}: {named}{more}>"

    def _repr_html_(self) -> str:
        return as_html(self)


def outside(result: Frequencies, bounds: Intervals) -> Marks:
    """Which estimates lie outside their interval."""
    return np.asarray((result.estimates < bounds.low - 1e-12) | (result.estimates > bounds.high + 1e-12))


def in_words(made: Frequencies) -> str:
    """A result in plain text."""
    labels, bounds = [shown(item) for item in made.items], made.interval()
    width, marks = max(map(len, labels)), outside(made, bounds)
    lines = [SIMULATION] if made.simulation else []
    through = f", topology {made.topology}" if made.topology else ""
    lines.append(f"{made.name}: {made.included} users, {len(labels)} items{through}")
    for label, estimate, low, high, mark in zip(labels, made.estimates, bounds.low, bounds.high, marks, strict=True):
        lines.append(f"  {label:<{width}}  {estimate:z7.4f}  [{low:.4f}, {high:.4f}]{' ' + MARK if mark else ''}")
    lines += [OUTSIDE] if marks.any() else []
    lines += [f"note: {shown(each)}" for each in made.notes]
    lines.append(f"intervals: 95% each, {bounds.method}")
    lines.append(f"supposed: {made.supposed}")
    lines += [f"reports: {made.validity}"] if made.validity is not None and made.validity.proven else []
    return "\n".join([*lines, f"privacy: {made.guarantee}", f"again: {AGAIN}"])


def as_html(made: Frequencies) -> str:
    """A result as a notebook shows it: a table with bars, notes and the guarantee."""
    bounds, longest = made.interval(), max(float(made.estimates.max()), 1e-9)
    rows = []
    for item, e, low, high, mark in zip(
        made.items, made.estimates, bounds.low, bounds.high, outside(made, bounds), strict=True
    ):
        span = f"{low:.1%} to {high:.1%}{' ' + MARK if mark else ''}"
        rows.append([plain.text(item), f"{e:z.1%}", span, plain.bar(e / longest)])
    below = [OUTSIDE] if outside(made, bounds).any() else []
    words = [*below, *(f"Note: {each}" for each in made.notes), f"Intervals: 95% each; {bounds.method}."]
    above = plain.paragraph(SIMULATION, strong=True) if made.simulation else ""
    head = plain.paragraph(f"{made.name}, {made.included:,} users, {len(made.items)} items")
    shown_table = plain.table(["item", "estimate", "95% interval", ""], rows)
    words.append(f"Supposed: {made.supposed}.")
    words += [f"Reports: {made.validity}"] if made.validity is not None and made.validity.proven else []
    words += [f"Privacy: {made.guarantee}.", f"Again: {AGAIN}."]
    return above + head + shown_table + "".join(map(plain.paragraph, words))

"""What an analyst gets: estimates with intervals and the guarantee they were bought with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import Guarantee
from faircount.core.arrays import Floats
from faircount.core.domain import shown
from faircount.estimation.consistency import consistent
from faircount.estimation.intervals import Intervals, interval, mean_interval, two_point_interval
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.local_mean import Duchi, LocalMean

SIMULATION = "SIMULATION, not a release: seeded randomness can be repeated by anybody and protects nobody."
"""Stands above every result whose facts say `simulation`."""

AGAIN = "running it again on the same people spends that much again: the privacy losses of all runs add up"
"""Stands below every guarantee: a reader who averages many runs learns what each of them hides."""


@dataclass(frozen=True)
class Result:
    """Estimated frequencies of the items among the `included` users."""

    mechanism: FrequencyMechanism
    aggregate: NDArray[Any] = field(repr=False)
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)  # what the run wants remembered: shares, bytes, ...

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's: then nobody is protected, whatever is guaranteed."""
        return bool(self.facts.get("simulation"))

    @cached_property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return self.mechanism.domain.labels

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased frequencies; single ones may be negative and they need not sum to one: see `consistent`."""
        return self.mechanism.estimate(self.aggregate, self.included)

    @cached_property
    def consistent(self) -> Floats:
        """The nearest frequencies that are non-negative and sum to one; slightly biased near zero."""
        return consistent(self.estimates)

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard deviation of the privacy noise, at the consistent estimates."""
        return np.sqrt(self.mechanism.variance(self.consistent, self.included))

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first; users who are missing are accounted for."""
        return self.mechanism.stated(self.included)

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees: what may be claimed without naming the adversary."""
        return self.guarantees[0]

    def interval(self, level: float = 0.95, *, covers: str = "users", simultaneous: bool = False) -> Intervals:
        """Confidence intervals of the frequencies.

        `covers="users"`: privacy noise alone, the truth being what these users hold. `covers="population"`: also the
        luck of drawing these users from a larger population. `simultaneous`: all items at once hold with `level`.
        """
        channel = self.mechanism.channel(self.included)
        return interval(self.aggregate, channel, self.included, level=level, covers=covers, simultaneous=simultaneous)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, for JSON."""
        bounds = self.interval(level)
        rows = zip(self.items, self.estimates, bounds.low, bounds.high, strict=True)
        return {
            **({"simulation": True} if self.simulation else {}),
            "mechanism": self.mechanism.name,
            "topology": self.facts.get("topology"),
            "n": self.included,
            "level": level,
            "covers": bounds.covers,
            "estimates": [
                {"item": item, "estimate": float(e), "low": float(lo), "high": float(hi)} for item, e, lo, hi in rows
            ],
            "consistent": [float(each) for each in self.consistent],
            "guarantee": self.guarantee.to_dict(),
            "again": AGAIN,
        }

    def __str__(self) -> str:
        return in_words(self, self.mechanism.name)


def in_words(made: Any, name: str) -> str:
    """A result, of one survey or of several, in plain text."""
    labels, bounds = [shown(item) for item in made.items], made.interval()
    width = max(map(len, labels))
    lines = [SIMULATION] if made.simulation else []
    topology = getattr(made, "facts", {}).get("topology")
    through = f", topology {topology}" if topology else ""
    lines.append(f"{name}: {made.included} users, {len(labels)} items{through}")
    for label, estimate, low, high in zip(labels, made.estimates, bounds.low, bounds.high, strict=True):
        lines.append(f"  {label:<{width}}  {estimate:z7.4f}  [{low:.4f}, {high:.4f}]")
    lines += [f"note: {shown(each)}" for each in getattr(made, "notes", ())]
    return "\n".join([*lines, f"intervals: 95% each, {bounds.method}", f"privacy: {made.guarantee}", f"again: {AGAIN}"])


@dataclass(frozen=True)
class MeanResult:
    """An estimated mean of values in [-1, 1]."""

    mechanism: LocalMean
    aggregate: Any = field(repr=False)
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's: then nobody is protected, whatever is guaranteed."""
        return bool(self.facts.get("simulation"))

    @cached_property
    def estimate(self) -> float:
        """Unbiased estimate of the mean of these users' values."""
        return float(self.mechanism.estimate(self.aggregate, self.included))

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy of each report."""
        return self.mechanism.stated()[0]

    def interval(self, level: float = 0.95, *, covers: str = "users") -> tuple[float, float]:
        """Confidence interval of the mean: privacy noise alone, or (`covers="population"`) also the draw of users.

        Two-valued reports (Duchi) cannot tell the two apart; their exact interval serves for both.
        """
        if isinstance(self.mechanism, Duchi):
            magnitude = float(1 / self.mechanism.window.excess)
            return two_point_interval(self.estimate, magnitude, self.included, level=level)
        noise = self.mechanism.noise_variance(self.aggregate, self.included)
        square = max(0.0, self.estimate**2 - noise)  # the square of an estimate is too large by its variance
        spread = max(0.0, self.mechanism.mean_square(self.aggregate, self.included) - square)
        return mean_interval(self.estimate, noise, self.included, level=level, covers=covers, spread=spread)

    def __str__(self) -> str:
        low, high = self.interval()
        head = f"{self.mechanism.name}: mean {self.estimate:.4f} [{low:.4f}, {high:.4f}] of {self.included} users"
        return "\n".join(
            [*([SIMULATION] if self.simulation else []), head, f"privacy: {self.guarantee}", f"again: {AGAIN}"]
        )

"""The published cells of a question and what is known about their noise, and bounds that follow."""

import math
from dataclasses import dataclass

from faircount.estimation.intervals import bound_shares
from faircount.mechanisms.count_distribution import NoiseDistribution
from faircount.mechanisms.sheets import SheetNoise

_ROUNDING = 1e-6


@dataclass(frozen=True)
class Released:
    """The published cells of one question, fitted, and what is known about their noise."""

    number: int
    cells: tuple[float, ...]
    noise: SheetNoise
    included: int
    error: float
    covers: str

    def distribution(self, block: int = 0) -> NoiseDistribution:
        """The distribution of a cell of a block."""
        return self.noise.distribution(self.number, block)

    def distribution_of_sum(self, terms: int) -> NoiseDistribution:
        """The distribution of the sum of so many cells of a choice; two answers have one cell."""
        # Its complement has the same noise with the sign changed, which is the same distribution.
        if len(self.cells) == 1:
            return self.distribution()
        return self.noise.distribution_of_sum(self.number, terms)

    def bound_share(
        self, count: float, distribution: NoiseDistribution, error: float
    ) -> tuple[float, float]:
        """Return the bounds of a share whose count was published."""
        low, high = bound_shares([count], distribution, self.included, error, self.covers)
        return float(low[0]), float(high[0])


def divide_bounds(
    parts: tuple[float, float], missing: tuple[float, float], largest: float
) -> tuple[float, float]:
    """Return the bounds of a ratio among those who answered.

    parts:   bounds of its numerator, per counted person
    missing: bounds of the share of people without an answer; if they may be all, any ratio up to
             the largest is possible
    """
    # The fewer people are missing, the smaller is a share among the others.
    low = parts[0] / (1 - missing[0]) if missing[0] < 1 else 0.0
    high = parts[1] / (1 - missing[1]) if missing[1] < 1 else largest
    return min(low, largest), min(high, largest)


def bound_sum(
    value: float, distribution: NoiseDistribution, error: float, top: int, bottom: int = 0
) -> tuple[int, int]:
    """Return the least and greatest true sum in [bottom, top] for a published value."""
    least, most = distribution.quantiles(error / 2)
    # Sums are whole numbers; fitted ones and their noise are fractions with rounding errors.
    low = min(max(math.ceil(value - most - _ROUNDING), bottom), top)
    return low, max(min(math.floor(value - least + _ROUNDING), top), low)

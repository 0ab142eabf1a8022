"""Distributions of privacy losses on a grid, and of sums of independent losses.

Sums are convolutions, by fast Fourier transforms. Everything that is cut off is added to the mass
of infinite losses, so that a delta never comes out too small.
"""

import math
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError

# Tails that a power cuts off have at most this mass in total.
TRUNCATED = 1e-15

# Chernoff's bound is tried at these multiples of 1/size; larger ones would overflow.
_ORDERS = 20


@dataclass(frozen=True, eq=False)
class GriddedLosses:
    """The distribution of a privacy loss that is a multiple of a step, or infinite.

    step:     distance of the grid points
    first:    the smallest loss, in steps
    mass:     probability of the losses first, first + 1, ...
    infinite: probability of an infinite loss
    """

    step: float
    first: int
    mass: Floats
    infinite: float

    def compose(self, other: "GriddedLosses") -> "GriddedLosses":
        """Return the distribution of the sum of two independent losses."""
        if self.step != other.step:
            raise ParameterError("losses on different grids cannot be added")
        size = self.mass.size + other.mass.size - 1
        length = fast_length(size)
        product = np.fft.rfft(self.mass, length) * np.fft.rfft(other.mass, length)
        mass = np.fft.irfft(product, length)[:size]
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        return GriddedLosses(self.step, self.first + other.first, mass, infinite)

    def power(self, count: int) -> "GriddedLosses":
        """Return the distribution of the sum of `count` independent losses of this distribution."""
        low, high = self._likely_range(count)
        size = high - low + 1
        # The transform wraps around, so the tails that are cut off fall into the range, too. They
        # count twice then, here and below, which only raises delta.
        length = fast_length(max(size, self.mass.size))
        sums = np.fft.irfft(np.fft.rfft(self.mass, length) ** count, length)
        mass = np.roll(sums, -low)[:size]
        # 1 - (1 - infinite)^count, without losing the digits of small numbers.
        infinite = TRUNCATED - math.expm1(count * math.log1p(-self.infinite))
        return GriddedLosses(self.step, self.first * count + low, mass, infinite)

    def _likely_range(self, count: int) -> tuple[int, int]:
        """Return the range of the sum of `count` indices, but for a mass of TRUNCATED.

        By Chernoff's bound, half of it for each side.
        """
        size = self.mass.size
        low = 0
        high = (size - 1) * count
        surprise = math.log(2 / TRUNCATED)
        unit = np.exp(np.arange(size) / size)
        for sign in (1, -1):
            growth = unit if sign > 0 else 1 / unit
            weights = self.mass
            # Each order's moment follows from the one before by one product.
            for number in range(1, _ORDERS + 1):
                weights = weights * growth
                moment = float(weights.sum())
                if moment <= 0:
                    continue
                bound = (count * math.log(moment) + surprise) * size / (sign * number)
                # One index more than the bound covers its rounding error.
                if sign > 0:
                    high = min(high, math.ceil(bound) + 1)
                else:
                    low = max(low, math.floor(bound) - 1)
        return low, high

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon: the mean of max(0, 1 - e^(epsilon - loss))."""
        losses = (np.arange(self.mass.size) + self.first) * self.step
        above = int(np.searchsorted(losses, epsilon, side="right"))
        gains = -np.expm1(epsilon - losses[above:])
        return self.infinite + float(np.dot(gains, self.mass[above:]))


def fast_length(least: int) -> int:
    """Return the smallest number from `least` on with no prime factor above 5."""
    best = 1 << max(0, least - 1).bit_length()
    fives = 1
    while fives < best:
        threes = fives
        while threes < best:
            # The smallest power of two that makes this product large enough.
            missing = -(-least // threes)
            best = min(best, threes << max(0, missing - 1).bit_length())
            threes *= 3
        fives *= 5
    return best

"""The data sets on which a mechanism hides least, as it says of itself: what an audit runs.

Two data sets differ in the answer of the last user. The adversary knows everything else, and, where users collude, what
the first users sent. What it looks at is a row of one or two whole numbers, whose exact laws on both data sets are
known; how much likelier a row is on the first one is the best thing to look at.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair
from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.count_law import Channel

if TYPE_CHECKING:
    from faircount.mechanisms.base import Mechanism


@dataclass(frozen=True, eq=False)
class Part:
    """The laws of one number on both data sets: `pair` gives them at low, low + 1, ..."""

    low: int
    pair: LossPair

    @classmethod
    def noisy(cls, channel: Channel, first: int, second: int) -> "Part":
        """Of a sum in which every holder counts and noise is added, in grid steps; so many holders in each world."""
        assert channel.noise is not None and channel.hit == 1  # noqa: S101, PT018 - what every noise mechanism has
        law, start = channel.noise, min(first, second) * channel.noise.scale
        moved = np.full((2, law.pmf.size + abs(first - second) * law.scale), -np.inf)
        with np.errstate(divide="ignore"):
            for row, holders in zip(moved, (first, second), strict=True):
                np.log(law.pmf, out=row[holders * law.scale - start :][: law.pmf.size])
        return cls(law.low + start, LossPair(*moved))

    @property
    def centre(self) -> float:
        """Where the number lies on average on the first data set."""
        chances = np.exp(self.pair.log_p)
        return self.low + float((chances * np.arange(chances.size)).sum() / chances.sum())

    def log_ratio(self, seen: NDArray[np.int64]) -> Floats:
        """By how much each number speaks for the first data set; what neither can make says nothing."""
        inside = (seen >= self.low) & (seen < self.low + self.pair.log_p.size)
        at = np.where(inside, seen - self.low, 0)
        return np.where(inside, self._ratios[at], 0.0)

    @property
    def _ratios(self) -> Floats:
        p, q = self.pair.log_p, self.pair.log_q
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(p) & np.isneginf(q), 0.0, p - q)

    def chances(self) -> tuple[Floats, Floats, Floats]:
        """Log ratios, and the probabilities of each on the first and on the second data set."""
        return self._ratios, np.exp(self.pair.log_p), np.exp(self.pair.log_q)


@dataclass(frozen=True, eq=False)
class WorstPair:
    """A mechanism bound to the fewest users that show it, and two vectors of answers that differ in the last one."""

    mechanism: "Mechanism"
    first: NDArray[Any]
    second: NDArray[Any]
    law: tuple[Part, ...]  # of what `seen` gives: one part per column, two at most, independent of each other
    stated_by: "Mechanism"  # whose guarantee is tested: the mechanism as it was given, or bound to so few users
    insiders: int = 0  # the first users collude: what they sent is known

    @classmethod
    def noisy(cls, small: "Mechanism", users: int, channel: Channel, insiders: int = 0) -> "WorstPair":
        """Where noise hides any data alike: all others hold item 0. `channel` is what the adversary does not know."""
        others, holders = np.zeros(users - 1, dtype=np.int64), users - insiders
        law = Part.noisy(channel, holders, holders - 1), Part.noisy(channel, 0, 1)
        return cls(small, np.append(others, 0), np.append(others, 1), law, small, insiders)

    def log_ratio(self, seen: Ints) -> Floats:
        """How much likelier each row is on the first data set, as a logarithm."""
        with np.errstate(invalid="ignore"):  # two certainties that contradict each other say nothing
            return np.nan_to_num(sum((part.log_ratio(seen[:, j]) for j, part in enumerate(self.law)), np.zeros(1)))

    def chances(self, threshold: float) -> tuple[float, float]:
        """Exact probabilities, on both data sets, that the log ratio reaches a threshold."""
        ratios, p, q = self.law[0].chances()
        if len(self.law) == 1:
            return float(p[ratios >= threshold].sum()), float(q[ratios >= threshold].sum())
        more, *laws = self.law[1].chances()
        order = np.argsort(more)
        tails = [np.append(np.cumsum(law[order][::-1])[::-1], 0.0) for law in laws]
        at = np.searchsorted(more[order], threshold - ratios, side="left")
        return float((p * tails[0][at]).sum()), float((q * tails[1][at]).sum())

"""How often intervals of groups put together hold, and how wide they are, by enumerating every sum
of every group.

As exact_coverage.py does it for one survey: by plain convolution, independently of the distributions that it
checks. For small groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import product
from math import comb, prod

import numpy as np
from exact_coverage import Performance, measured, sum_distribution

from faircount.core.arrays import Floats
from faircount.estimation.intervals import normal_quantile
from faircount.estimation.weighted_distribution import WeightedGroup
from faircount.estimation.weighted_intervals import weighted_interval
from faircount.estimation.weighting import combine

Split = tuple[int, ...]
"""Holders in every group."""

_RARE = 1e-8  # combinations of sums that are never likelier count as missed


def splits_of(parts: Sequence[WeightedGroup], holders: Iterable[int] | None = None) -> list[Split]:
    """Every way to divide these numbers of holders (by default all) among the groups."""
    wanted = None if holders is None else set(holders)
    every = product(*(range(part.users + 1) for part in parts))
    return [split for split in every if wanted is None or sum(split) in wanted]


def is_even(parts: Sequence[WeightedGroup], split: Split) -> bool:
    """Whether every group has its share of the holders, up to less than one of them."""
    users = sum(part.users for part in parts)
    return all(
        abs(held * users - sum(split) * part.users) < users
        for held, part in zip(split, parts, strict=True)
    )


class GroupCoverage:
    """Intervals from all sums that groups can open when their holders are divided in one of the
    given ways.
    """

    def __init__(
        self,
        parts: Sequence[WeightedGroup],
        splits: Sequence[Split],
        *,
        confidence: float = 0.95,
        covers: str = "users",
    ) -> None:
        self.parts, self.splits, self.confidence = parts, splits, confidence
        self.users = sum(part.users for part in parts)
        self._distributions = [
            _distributions(part, {split[g] for split in splits}) for g, part in enumerate(parts)
        ]
        self._seen = np.max([self._chance(split) for split in splits], axis=0) > _RARE
        grids = np.meshgrid(*(support for support, _ in self._distributions), indexing="ij")
        sums = np.stack([grid[self._seen] for grid in grids])
        self.made = weighted_interval(sums, parts, confidence=confidence, covers=covers)
        groups = [
            part.channel.estimate(row, part.users) for part, row in zip(parts, sums, strict=True)
        ]
        self.estimates = combine(groups, [part.weight for part in parts])

    def given(self, split: Split) -> Performance:
        """When the holders are divided in this way."""
        return self.over({split: 1.0}, sum(split) / self.users)

    def random(self, holders: int) -> Performance:
        """When the holders are a random set of all users."""
        ways = {
            split: self._ways(split) / comb(self.users, holders)
            for split in self.splits
            if sum(split) == holders
        }
        return self.over(ways, holders / self.users)

    def over(self, chances: Mapping[Split, float], truth: float) -> Performance:
        """When the holders are divided in each way with this chance; the oracle knows the variance
        of the estimate.
        """
        pmf = sum(chance * self._chance(split)[self._seen] for split, chance in chances.items())
        weight = np.asarray(pmf)
        spread = np.sqrt((weight * (self.estimates - truth) ** 2).sum())
        half = normal_quantile(0.5 + self.confidence / 2) * float(spread)
        return measured(truth, weight, self.made.low, self.made.high, self.estimates, half)

    def _chance(self, split: Split) -> Floats:
        """Probability of every combination of sums."""
        distributions = [
            chances[held] for (_, chances), held in zip(self._distributions, split, strict=True)
        ]
        return np.asarray(reduce(np.multiply.outer, distributions))

    def _ways(self, split: Split) -> int:
        return prod(comb(part.users, held) for part, held in zip(self.parts, split, strict=True))


def _distributions(part: WeightedGroup, counts: set[int]) -> tuple[Floats, dict[int, Floats]]:
    """Sums that the group can open, and their probabilities for each number of holders."""
    distributions = {
        held: sum_distribution(part.channel, part.users, held / part.users) for held in counts
    }
    scale = next(iter(distributions.values())).scale
    low = min(distribution.low for distribution in distributions.values())
    size = (
        max(distribution.low + distribution.pmf.size for distribution in distributions.values())
        - low
    )
    padded = {
        k: np.pad(
            distribution.pmf,
            (distribution.low - low, size - distribution.pmf.size - (distribution.low - low)),
        )
        for k, distribution in distributions.items()
    }
    return (low + np.arange(size, dtype=np.float64)) / scale, padded

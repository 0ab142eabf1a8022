"""The neighbouring data sets on which a mechanism protects least: what an audit runs.

The two data sets differ in the answer of the last user. The adversary knows all other answers and,
if users collude, what the first users sent. Its view is a row of one or two integers whose exact
distributions on both data sets are known, followed by whatever else it knows, such as its own
noise. By the Neyman-Pearson lemma the likelihood ratio of the row is the best statistic to tell the
data sets apart, as long as the mechanism follows these distributions.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair
from faircount.accounting.guarantee import OUTSIDER, Adversary
from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.count_distribution import Channel

if TYPE_CHECKING:
    from faircount.mechanisms.base import Mechanism


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distributions of one integer of the view on both data sets.

    low: smallest value of the integer
    pair: log probabilities of low, low + 1, ... on the first and on the second data set
    """

    low: int
    pair: LossPair

    @classmethod
    def for_added_noise(cls, channel: Channel, first: int, second: int) -> "Marginal":
        """Return the marginal of a noisy sum, in grid steps.

        The item has `first` holders in the first data set and `second` in the second one. All
        holders are counted, as in every mechanism that adds noise.
        """
        assert channel.noise is not None and channel.hit == 1  # noqa: S101, PT018
        distribution = channel.noise
        start = min(first, second) * distribution.scale
        # On both data sets the distribution is that of the noise, shifted by the number of holders.
        moved = np.full(
            (2, distribution.pmf.size + abs(first - second) * distribution.scale), -np.inf
        )
        with np.errstate(divide="ignore"):
            for row, holders in zip(moved, (first, second), strict=True):
                np.log(
                    distribution.pmf,
                    out=row[holders * distribution.scale - start :][: distribution.pmf.size],
                )
        return cls(distribution.low + start, LossPair(*moved))

    @property
    def centre(self) -> float:
        """The expected value on the first data set."""
        pmf = np.exp(self.pair.log_p)
        return self.low + float((pmf * np.arange(pmf.size)).sum() / pmf.sum())

    def log_ratio(self, values: NDArray[np.int64]) -> Floats:
        """Return the log likelihood ratio of every value, first against second data set."""
        # A value that neither data set can produce is no evidence for either of them.
        inside = (values >= self.low) & (values < self.low + self.pair.log_p.size)
        index = np.where(inside, values - self.low, 0)
        return np.where(inside, self._log_ratios[index], 0.0)

    @property
    def _log_ratios(self) -> Floats:
        log_p = self.pair.log_p
        log_q = self.pair.log_q
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(log_p) & np.isneginf(log_q), 0.0, log_p - log_q)

    def distributions(self) -> tuple[Floats, Floats, Floats]:
        """Return the log ratios of all values and their probabilities on both data sets."""
        return self._log_ratios, np.exp(self.pair.log_p), np.exp(self.pair.log_q)


@dataclass(frozen=True, eq=False)
class WorstPair:
    """Two neighbouring data sets and a mechanism bound to as few users as possible.

    mechanism: what the audit runs
    first, second: answers of all users; they differ in the last one
    marginals: distributions of the columns of `adversary_view`, at most two, independent
    stated_by: the mechanism whose guarantee is tested, as given or bound to these few users
    adversary: whose view it is; insiders come first, and what they sent is known
    """

    mechanism: "Mechanism"
    first: NDArray[Any]
    second: NDArray[Any]
    marginals: tuple[Marginal, ...]
    stated_by: "Mechanism"
    adversary: Adversary = OUTSIDER

    @classmethod
    def for_added_noise(
        cls, small: "Mechanism", users: int, channel: Channel, adversary: Adversary = OUTSIDER
    ) -> "WorstPair":
        """Return the pair for a mechanism whose noise protects all data equally.

        All other users hold item 0, and the last one holds item 0 or 1. `channel` contains the
        noise that the adversary does not know.
        """
        others = np.zeros(users - 1, dtype=np.int64)
        holders = users - adversary.insiders
        marginals: tuple[Marginal, ...] = (
            Marginal.for_added_noise(channel, holders, holders - 1),
            Marginal.for_added_noise(channel, 0, 1),
        )
        # Two items with one draw: the second count follows from the first.
        if not channel.independent:
            marginals = marginals[:1]
        first = np.append(others, 0)
        second = np.append(others, 1)
        return cls(small, first, second, marginals, small, adversary)

    def columns(self, views: Ints) -> Ints:
        """Return the columns of the views that are counts, of which sums are meaningful."""
        return views

    def is_played_with(self, other: "WorstPair") -> bool:
        """Whether both pairs are the same surveys, seen by different adversaries."""
        return self.mechanism == other.mechanism and np.array_equal(self.first, other.first)

    def log_ratio(self, views: Ints) -> Floats:
        """Return the log likelihood ratio of every view, first against second data set."""
        return _sum_log_ratios(self.marginals, views)

    def tail_probabilities(self, threshold: float) -> tuple[float, float]:
        """Return the exact probabilities on both data sets of a log ratio >= threshold."""
        return _tail_probabilities(self.marginals, threshold)


@dataclass(frozen=True, eq=False)
class MixedPair(WorstPair):
    """A worst pair whose adversary sees one of several cases, each with distributions of its own.

    The first column of a view is the case. The next two are as in a `WorstPair`, with the marginals
    of that case. Counts follow them.

    cases: for every case, its probabilities on both data sets and its marginals
    """

    cases: tuple[tuple[float, float, tuple[Marginal, ...]], ...] = ()

    def columns(self, views: Ints) -> Ints:
        """Return the counts behind the case and the two numbers with known distributions."""
        return views[:, 3:]

    def log_ratio(self, views: Ints) -> Floats:
        """Return the log likelihood ratio of every view, first against second data set."""
        ratios = np.zeros(len(views))
        for number, (in_first, in_second, marginals) in enumerate(self.cases):
            rows = np.flatnonzero(views[:, 0] == number)
            # A case that cannot happen on one of the data sets happens on neither here.
            if in_first and in_second:
                shift = np.log(in_first / in_second)
                ratios[rows] = shift + _sum_log_ratios(marginals, views[rows, 1:])
        return ratios

    def tail_probabilities(self, threshold: float) -> tuple[float, float]:
        """Return the exact probabilities on both data sets of a log ratio >= threshold."""
        p = 0.0
        q = 0.0
        for in_first, in_second, marginals in self.cases:
            if in_first and in_second:
                left = threshold - np.log(in_first / in_second)
                case_p, case_q = _tail_probabilities(marginals, left)
                p += in_first * case_p
                q += in_second * case_q
        return p, q


def _sum_log_ratios(marginals: tuple[Marginal, ...], views: Ints) -> Floats:
    """Return the log ratio of every row of independent integers, the sum of those of its columns.

    Two certainties that contradict each other, inf - inf, count as no evidence.
    """
    ratio = np.zeros(1)
    with np.errstate(invalid="ignore"):
        for column, marginal in enumerate(marginals):
            ratio = ratio + marginal.log_ratio(views[:, column])
        return np.nan_to_num(ratio)


def _tail_probabilities(marginals: tuple[Marginal, ...], threshold: float) -> tuple[float, float]:
    """Return the probabilities on both data sets that the log ratios add up to the threshold."""
    ratios, p, q = marginals[0].distributions()
    if len(marginals) == 1:
        reached = ratios >= threshold
        return float(p[reached].sum()), float(q[reached].sum())

    # For every value of the first integer, add the tail of the second one beyond what is left
    # of the threshold: sorting by ratio makes that one cumulative sum per data set.
    other_ratios, other_p, other_q = marginals[1].distributions()
    order = np.argsort(other_ratios)
    start = np.searchsorted(other_ratios[order], threshold - ratios, side="left")
    p_tail = np.append(np.cumsum(other_p[order][::-1])[::-1], 0.0)
    q_tail = np.append(np.cumsum(other_q[order][::-1])[::-1], 0.0)
    return float((p * p_tail[start]).sum()), float((q * q_tail[start]).sum())

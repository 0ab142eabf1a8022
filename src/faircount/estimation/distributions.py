"""Distributions of an item's decoded sum, computed for many parameters at a time.

A distribution is kept as a row of `Rows`: a probability vector over a window of about nine standard
deviations around its mean. What lies outside weighs less than 1e-15, so sums over a window are
exact to floating point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.count_distribution import NoiseDistribution

# Half a window: 9 standard deviations, and 25 more for the long tail of small counts.
_SPREAD = 9.0
_MARGIN = 25.0

_TINY = 2.0**-53


@dataclass(frozen=True, eq=False)
class Rows:
    """One distribution per row: row i gives probability pmf[i, k] to start[i] + k."""

    start: Ints
    pmf: Floats

    def below(self, points: Ints) -> Floats:
        """Return P(X <= point), one point per row."""
        return self.lookup(points[:, None])[:, 0]

    def lookup(self, points: Ints) -> Floats:
        """Return P(X <= point) for a matrix of points, row by row."""
        padded = np.pad(np.cumsum(self.pmf, axis=1), ((0, 0), (1, 0)))
        index = np.clip(points - self.start[:, None] + 1, 0, padded.shape[1] - 1)
        return np.take_along_axis(padded, index, axis=1)

    def acceptability(self, points: Ints) -> Floats:
        """Return Blaker's p-value of one point per row.

        It is the probability of all outcomes whose smaller tail is at most that of the point.
        """
        cumulative = np.cumsum(self.pmf, axis=1)
        tail = np.minimum(cumulative, 1 - cumulative + self.pmf)
        index = np.clip(points - self.start, 0, self.pmf.shape[1] - 1)
        own = np.take_along_axis(tail, index[:, None], axis=1)
        # Tails that are equal in theory differ in their last bits. The margin counts them as equal,
        # which makes the interval wider, never narrower.
        return np.asarray((self.pmf * (tail <= own * (1 + 1e-9) + 1e-14)).sum(axis=1))


def binomial_rows(trials: Ints, p: Floats) -> Rows:
    """Return the distributions Bin(trials[i], p[i])."""
    # With p moved away from 0 and 1 by 2^-53, the certain cases need no branch of their own.
    p = np.clip(p, _TINY, 1 - _TINY)
    start, x = _windows(trials * p, trials * p * (1 - p), np.zeros_like(trials), trials)
    odds = (p / (1 - p))[:, None]
    ratios = np.maximum(trials[:, None] - x, 0) * odds
    ratios /= x + 1
    return Rows(start, _pmf_from_ratios(ratios))


def hypergeometric_rows(users: int, holders: Ints, drawn: Ints) -> Rows:
    """Return the distributions of the holders among `drawn[i]` users taken at random from `users`.

    `holders[i]` of all users hold the item.
    """
    mean = drawn * (holders / users)
    variance = mean * (1 - holders / users) * (users - drawn) / max(users - 1, 1)
    least = np.maximum(0, holders + drawn - users)
    most = np.minimum(holders, drawn)
    start, x = _windows(mean, variance, least, most)
    # As doubles: the product of two numbers of users may not fit into 64 bits.
    up = np.maximum(holders[:, None] - x, 0).astype(np.float64) * np.maximum(drawn[:, None] - x, 0)
    down = (x + 1.0) * ((users - holders - drawn)[:, None] + x + 1.0)
    return Rows(start, _pmf_from_ratios(up / down))


def _windows(mean: Floats, variance: Floats, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Return the start of every row's window and the matrix of its points."""
    half = _SPREAD * np.sqrt(variance) + _MARGIN
    start = np.clip(np.floor(mean - half).astype(np.int64), least, most)
    # All rows have the width of the widest one, so that they form a matrix.
    width = int((np.minimum(np.ceil(mean + half), most) - start).max(initial=0)) + 1
    return start, start[:, None] + np.arange(width)


def _pmf_from_ratios(ratios: Floats) -> Floats:
    """Return probabilities from the ratios pmf(x + 1) / pmf(x)."""
    # Products of many ratios overflow, so their logarithms are added. A ratio of 0 ends the
    # support: its logarithm, -inf, is right.
    with np.errstate(divide="ignore"):
        steps = np.log(ratios[:, :-1])
    # One matrix from here on: it may have millions of entries, and copies take most of the time.
    pmf = np.zeros_like(ratios)
    np.cumsum(steps, axis=1, out=pmf[:, 1:])
    pmf -= pmf.max(axis=1, keepdims=True)
    np.exp(pmf, out=pmf)
    pmf /= pmf.sum(axis=1, keepdims=True)
    return pmf


def binomial_below(points: Ints, trials: Ints, p: float) -> Floats:
    """Return P(Bin(trials, p) <= point) from the incomplete beta function."""
    from scipy.special import betainc

    inside = (points >= 0) & (points < trials)
    # Outside the support the arguments are replaced by 1, and the result below by 0 or 1.
    upper = betainc(np.where(inside, trials - points, 1), np.where(inside, points + 1, 1), 1 - p)
    return np.where(inside, upper, (points >= trials).astype(np.float64))


def two_coins_below(points: Ints, holders: Ints, users: int, hit: float, miss: float) -> Floats:
    """Return P(Bin(holders, hit) + Bin(users - holders, miss) <= point).

    This is the distribution of a sum of a local mechanism.
    """
    first = binomial_rows(holders, np.full(holders.size, hit))
    second = binomial_rows(users - holders, np.full(holders.size, miss))
    x = first.start[:, None] + np.arange(first.pmf.shape[1])
    return np.asarray((first.pmf * second.lookup(points[:, None] - x)).sum(axis=1))


def noisy_below(points: Ints, trials: Ints, p: Floats, noise: NoiseDistribution) -> Floats:
    """Return P(Bin(trials, p) + noise <= point), with points in units of 1 / noise.scale."""
    counts = binomial_rows(trials, p)
    x = counts.start[:, None] + np.arange(counts.pmf.shape[1])
    padded = np.concatenate(([0.0], np.cumsum(noise.pmf)))
    index = (points - noise.low + 1)[:, None] - x * noise.scale
    np.clip(index, 0, noise.pmf.size, out=index)
    return np.asarray((counts.pmf * padded[index]).sum(axis=1))


def first_integers(true_at: Callable[[Ints], NDArray[np.bool_]], rows: int, most: int) -> Ints:
    """Return for every row the smallest integer in [0, most] where a predicate holds.

    Once true, the predicate stays true; where it never is, the result is most + 1.
    """
    low = np.zeros(rows, dtype=np.int64)
    high = np.full(rows, most + 1, dtype=np.int64)
    while np.any(low < high):
        # At most `most` while a row is open. Rows that are done stay as they are: for them the
        # middle is low and high, and most + 1 counts as true.
        middle = (low + high) // 2
        is_true = true_at(np.minimum(middle, most)) | (middle > most)
        low = np.where(is_true, low, np.minimum(middle + 1, high))
        high = np.where(is_true, middle, high)
    return low


def bracket_fractions(
    true_at: Callable[[Floats], NDArray[np.bool_]], rows: int
) -> tuple[Floats, Floats]:
    """Return for every row where in [0, 1] a predicate turns true for good.

    The first array has the last points at which it was seen false, the second the first at which
    it was seen true.
    """
    low = np.zeros(rows)
    high = np.ones(rows)
    for _ in range(30):  # to 1e-9, far below the width of any interval
        middle = (low + high) / 2
        is_true = true_at(middle)
        low = np.where(is_true, low, middle)
        high = np.where(is_true, middle, high)
    return low, high

"""Probabilities of an item's opened sum, many parameters at a time.

A law is kept as `Rows`: one probability vector per row over a window of about nine standard deviations around its
mean. What lies outside weighs less than 1e-15, so sums over a window are exact to floating point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.count_law import NoiseLaw

_SPREAD, _MARGIN = 9.0, 25.0  # half a window: 9 standard deviations, and 25 more for the long tail of small counts
_TINY = 2.0**-53


@dataclass(frozen=True, eq=False)
class Rows:
    """One law per row: row i gives probability pmf[i, k] to start[i] + k."""

    start: Ints
    pmf: Floats

    def below(self, points: Ints) -> Floats:
        """P(X <= point), one point per row."""
        return self.lookup(points[:, None])[:, 0]

    def lookup(self, points: Ints) -> Floats:
        """P(X <= point) for a matrix of points, row by row."""
        padded = np.pad(np.cumsum(self.pmf, axis=1), ((0, 0), (1, 0)))
        at = np.clip(points - self.start[:, None] + 1, 0, padded.shape[1] - 1)
        return np.take_along_axis(padded, at, axis=1)

    def acceptability(self, points: Ints) -> Floats:
        """Blaker's p-value: probability of all outcomes whose smaller tail is at most that of the point."""
        upto = np.cumsum(self.pmf, axis=1)
        tail = np.minimum(upto, 1 - upto + self.pmf)
        at = np.clip(points - self.start, 0, self.pmf.shape[1] - 1)
        own = np.take_along_axis(tail, at[:, None], axis=1)
        return np.asarray((self.pmf * (tail <= own * (1 + 1e-9) + 1e-14)).sum(axis=1))


def binomial_rows(trials: Ints, p: Floats) -> Rows:
    """Bin(trials[i], p[i])."""
    p = np.clip(p, _TINY, 1 - _TINY)  # the certain cases need no branch of their own
    start, x = _windows(trials * p, trials * p * (1 - p), np.zeros_like(trials), trials)
    odds = (p / (1 - p))[:, None]
    return Rows(start, _normalized(np.maximum(trials[:, None] - x, 0) * odds / (x + 1)))


def hypergeometric_rows(users: int, holders: Ints, drawn: Ints) -> Rows:
    """Holders among `drawn[i]` users taken at random from `users`, `holders[i]` of them holding the item."""
    mean = drawn * (holders / users)
    variance = mean * (1 - holders / users) * (users - drawn) / max(users - 1, 1)
    least, most = np.maximum(0, holders + drawn - users), np.minimum(holders, drawn)
    start, x = _windows(mean, variance, least, most)
    up = np.maximum(holders[:, None] - x, 0).astype(np.float64) * np.maximum(drawn[:, None] - x, 0)
    down = (x + 1.0) * ((users - holders - drawn)[:, None] + x + 1.0)
    return Rows(start, _normalized(up / down))


def _windows(mean: Floats, variance: Floats, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Start of each row's window and the matrix of its points."""
    half = _SPREAD * np.sqrt(variance) + _MARGIN
    start = np.clip(np.floor(mean - half).astype(np.int64), least, most)
    width = int((np.minimum(np.ceil(mean + half), most) - start).max(initial=0)) + 1
    return start, start[:, None] + np.arange(width)


def _normalized(ratios: Floats) -> Floats:
    """Probabilities from the ratios pmf(x + 1) / pmf(x), in logs so that nothing overflows."""
    with np.errstate(divide="ignore"):  # a ratio of 0 ends the support: its logarithm, -inf, is right
        steps = np.log(ratios[:, :-1])
    logs = np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0)))
    pmf = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(pmf / pmf.sum(axis=1, keepdims=True))


def binomial_below(points: Ints, trials: Ints, p: float) -> Floats:
    """P(Bin(trials, p) <= point), in closed form."""
    from scipy.special import betainc

    inside = (points >= 0) & (points < trials)
    upper = betainc(np.where(inside, trials - points, 1), np.where(inside, points + 1, 1), 1 - p)
    return np.where(inside, upper, (points >= trials).astype(np.float64))


def two_coins_below(points: Ints, holders: Ints, users: int, hit: float, miss: float) -> Floats:
    """P(Bin(holders, hit) + Bin(users - holders, miss) <= point): the sum of a local mechanism."""
    first = binomial_rows(holders, np.full(holders.size, hit))
    second = binomial_rows(users - holders, np.full(holders.size, miss))
    x = first.start[:, None] + np.arange(first.pmf.shape[1])
    return np.asarray((first.pmf * second.lookup(points[:, None] - x)).sum(axis=1))


def noisy_below(points: Ints, trials: Ints, p: Floats, noise: NoiseLaw) -> Floats:
    """P(Bin(trials, p) + noise <= point), points in units of 1 / noise.scale."""
    counted = binomial_rows(trials, p)
    x = counted.start[:, None] + np.arange(counted.pmf.shape[1])
    padded = np.concatenate(([0.0], np.cumsum(noise.pmf)))
    at = np.clip(points[:, None] - x * noise.scale - noise.low + 1, 0, noise.pmf.size)
    return np.asarray((counted.pmf * padded[at]).sum(axis=1))


def first_integer(true_at: Callable[[Ints], NDArray[np.bool_]], rows: int, most: int) -> Ints:
    """Per row the smallest integer in [0, most] where a predicate that never turns false again holds, else most + 1."""
    low, high = np.zeros(rows, dtype=np.int64), np.full(rows, most + 1, dtype=np.int64)
    while np.any(low < high):
        middle = (low + high) // 2  # at most `most` while a row is open; closed rows stay as they are
        holds = true_at(np.minimum(middle, most)) | (middle > most)
        low, high = np.where(holds, low, np.minimum(middle + 1, high)), np.where(holds, middle, high)
    return low


def bracket_fraction(true_at: Callable[[Floats], NDArray[np.bool_]], rows: int) -> tuple[Floats, Floats]:
    """Per row where in [0, 1] a predicate turns true for good: the last point without and the first with it."""
    low, high = np.zeros(rows), np.ones(rows)
    for _ in range(30):  # to 1e-9, far below the width of any interval
        middle = (low + high) / 2
        holds = true_at(middle)
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return low, high

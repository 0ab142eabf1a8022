"""Distributions of cells, and of sums of cells, under joint noise: for estimates and planning.

Given the radius, the noise of a block is uniform in its ball; the distribution of a cell is the
mixture over the radius. These distributions are doubles that are exact up to rounding. Nothing that
is drawn depends on them.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.special import log_factorial
from faircount.mechanisms.count_distribution import NoiseDistribution, sum_of_draws
from faircount.mechanisms.exact_draws import ONE
from faircount.mechanisms.joint_noise.balls import Ball, CubeBall, LimitedBall, ZeroSumBall
from faircount.mechanisms.joint_noise.radius import RadiusTable, radius_table

# Whole numbers of any width, as NumPy makes them.
Whole = NDArray[np.signedinteger[Any]]

# Radii with a smaller probability are left out of the distributions of cells.
_NEGLIGIBLE = 1e-20

# Entries of a matrix that is worked on at a time: some 16 MB of doubles.
_ENTRIES = 2_000_000

# Longest distribution of a number, in support points.
_LONGEST = 1 << 23


@lru_cache(maxsize=256)
def cell_distribution(
    balls: tuple[Ball, ...], place: int, scaled: int, draws: int = 1
) -> NoiseDistribution:
    """Return the distribution of one cell of the ball at `place`, in a group of balls.

    scaled: epsilon of the group in units of 2^-128
    draws:  how many independent noises are added: one, or those of both servers
    """
    return _distribution(balls, place, scaled, draws, 1)


@lru_cache(maxsize=256)
def sum_distribution(
    balls: tuple[Ball, ...], place: int, terms: int, scaled: int, draws: int = 1
) -> NoiseDistribution:
    """Return the distribution of a sum of cells of a zero-sum ball, such as a row of a table."""
    return _distribution(balls, place, scaled, draws, terms)


def _distribution(
    balls: tuple[Ball, ...], place: int, scaled: int, draws: int, terms: int
) -> NoiseDistribution:
    table = radius_table(balls, scaled)
    radii = np.array([weight / ONE for weight in table.weights])
    ball = balls[place]
    if isinstance(ball, ZeroSumBall):
        half = _zero_sum_half(ball, table, radii, min(terms, ball.cells - terms))
    elif terms != 1:
        raise ParameterError("only the cells of one-of questions are added up")
    elif isinstance(ball, CubeBall):
        half = _cube_half(ball, radii)
    elif isinstance(ball, LimitedBall):
        half = _limited_half(ball, radii)
    else:
        raise ParameterError(f"there is no distribution of the cells of {type(ball).__name__}")
    distribution = _mirror(half)
    return distribution if draws == 1 else sum_of_draws(distribution, draws)


def _mirror(half: Floats) -> NoiseDistribution:
    """Return the symmetric distribution with these probabilities of 0, 1, 2, ..., normalized."""
    last = int(np.flatnonzero(half)[-1])
    kept = half[: last + 1]
    pmf = np.concatenate([kept[:0:-1], kept])
    return NoiseDistribution(-last, pmf / pmf.sum())


def _cube_half(ball: CubeBall, radii: Floats) -> Floats:
    """Return P(0), P(1), ...: a sum of uniform distributions on [-step r, step r]."""
    largest = int(np.flatnonzero(radii > _NEGLIGIBLE)[-1])
    if ball.step * largest > _LONGEST:
        raise ParameterError(
            "the distribution of a number's noise would not fit into memory: choose a larger step, "
            "or a larger epsilon"
        )
    steps = np.arange(largest + 1)
    heights = np.cumsum((radii[: largest + 1] / (2 * ball.step * steps + 1))[::-1])[::-1]
    # |z| in (step (r - 1), step r] is reached from radius r on.
    return np.concatenate([heights[:1], np.repeat(heights[1:], ball.step)])


def _limited_half(ball: LimitedBall, radii: Floats) -> Floats:
    """Return P(0), P(1), ... of a cell, from counts of the other cells by their signs.

    The counts are divided by r^i for i cells of one sign, which makes them probabilities.
    """
    kept = np.flatnonzero(radii > _NEGLIGIBLE).tolist()
    sizes = ball.sizes(kept[-1])
    half = np.zeros(kept[-1] + 1)
    others = ball.cells - 1
    for radius in kept:
        if radius == 0:
            half[0] += radii[0]
            continue
        budget = ball.limit * radius
        shares = _bounded_shares(others, radius, budget)
        places = np.arange(others + 1)
        logs = places * math.log(radius)
        # Ways for the negative cells, given the number of positive ones among the others.
        negative = np.zeros(others + 1)
        for up in range(others + 1):
            down = np.arange(others - up + 1)
            ways = [_log_comb(others - up, int(count)) for count in down]
            terms = np.array(ways) + logs[down]
            # The whole budget is open to them, so the last entry of every row counts.
            with np.errstate(divide="ignore"):
                negative[up] = np.logaddexp.reduce(terms + np.log(shares[down, -1]))
        first = np.array([_log_comb(others, int(count)) for count in places])
        factors = np.exp(first + logs + negative - math.log(sizes[radius]))
        # A cell of value x leaves budget - x to the positive ones; by symmetry x >= 0 suffices.
        values = np.arange(radius + 1)
        half[: radius + 1] += radii[radius] * (factors @ shares[:, budget - values])
    return half


def _bounded_shares(parts: int, top: int, most: int) -> Floats:
    """Return P(sum <= b) of i uniform values in [1, top], for i <= parts and b <= most."""
    shares = np.ones((parts + 1, most + 1))
    for part in range(1, parts + 1):
        sums = np.concatenate([[0.0], np.cumsum(shares[part - 1])])
        # Row b is the mean of the row before over b - top .. b - 1.
        ends = np.arange(most + 1)
        starts = np.maximum(ends - top, 0)
        shares[part] = (sums[ends] - sums[starts]) / top
    return shares


def _log_comb(n: int, k: int) -> float:
    return math.log(math.comb(n, k))


def _zero_sum_half(ball: ZeroSumBall, table: RadiusTable, radii: Floats, terms: int) -> Floats:
    """Return P(0), P(1), ... of the sum of `terms` cells of a zero-sum ball.

    A point with positive part t has the probability g(t) = sum of P(rho) / |Ball(rho)| over
    rho >= t. If the chosen cells have the positive part a and the negative part a - v, the others
    have t - a and t - a + v.
    """
    largest = int(np.flatnonzero(radii > _NEGLIGIBLE)[-1])
    sizes = ball.sizes(largest)
    with np.errstate(divide="ignore"):
        logs = np.log(radii[: largest + 1])
    logs -= np.array([math.log(size) for size in sizes])
    heights = np.logaddexp.accumulate(logs[::-1])[::-1]
    if terms == 1:
        return _single_cell(ball.cells - 1, heights)
    return _several_cells(terms, ball.cells - terms, heights)


def _single_cell(others: int, heights: Floats) -> Floats:
    """Return P(0), P(1), ...: one cell is x, and the others have parts t - x and t."""
    largest = heights.size - 1
    half = np.zeros(largest + 1)
    up = np.arange(largest + 1)
    step = max(1, _ENTRIES // (largest + 1))
    for start in range(0, largest + 1, step):
        down = np.arange(start, min(start + step, largest + 1))
        logs = _log_parts(others, up, down) + heights[down]
        values = down[None, :] - up[:, None]
        inside = values >= 0
        half += np.bincount(values[inside], np.exp(logs[inside]), minlength=largest + 1)
    return half


def _several_cells(chosen: int, others: int, heights: Floats) -> Floats:
    """Return P(0), P(1), ... of the sum v of the chosen cells."""
    largest = heights.size - 1
    half = np.zeros(largest + 1)
    places = np.arange(largest + 1)
    own = _log_parts(chosen, places, places)
    rest = _log_parts(others, places, places)
    for value in range(largest + 1):
        # Chosen cells: positive part a, negative part a - value, for a = value .. largest.
        first = np.diagonal(own, -value)
        second = np.diagonal(rest, value)
        # a + b <= largest for the positive part b of the others.
        total = places[value:, None] + places[None, : second.size]
        inside = total <= largest
        logs = first[:, None] + second[None, :] + heights[np.minimum(total, largest)]
        half[value] = np.exp(logs[inside]).sum()
    return half


def _log_parts(cells: int, up: Whole, down: Whole) -> Floats:
    """Return the logarithms of numbers of vectors with these positive and negative parts.

    i positive cells: C(M, i) C(a-1, i-1) C(M-i+b-1, b) ways. The sum over i is a product of
    matrices, with rows and columns scaled so that nothing overflows.
    """
    positive = np.arange(cells + 1)
    a = up[:, None]
    b = down[None, :]
    left = _log_binomials(cells, positive)[None, :] + _log_compositions(a, positive[None, :])
    right = _log_weak_compositions(b, (cells - positive)[:, None])
    top_left = left.max(axis=1, keepdims=True)
    top_right = right.max(axis=0, keepdims=True)
    product = np.exp(left - top_left) @ np.exp(right - top_right)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(product) + top_left + top_right)


def _log_binomials(n: int, k: Whole) -> Floats:
    return np.asarray(log_factorial(n) - log_factorial(k) - log_factorial(n - k))


def _log_compositions(total: Whole, parts: Whole) -> Floats:
    """Return the logarithm of C(total - 1, parts - 1): sums of positive numbers."""
    possible = (parts >= 1) & (total >= parts)
    n = np.where(possible, total - 1, 1)
    k = np.where(possible, parts - 1, 0)
    logs = log_factorial(n) - log_factorial(k) - log_factorial(n - k)
    none = (parts == 0) & (total == 0)
    return np.where(possible, logs, np.where(none, 0.0, -np.inf))


def _log_weak_compositions(total: Whole, parts: Whole) -> Floats:
    """Return the logarithm of C(total + parts - 1, total): sums of numbers from 0 on."""
    possible = parts >= 1
    k = np.where(possible, parts, 1) - 1
    logs = log_factorial(total + k) - log_factorial(total) - log_factorial(k)
    return np.where(possible, logs, np.where(total == 0, 0.0, -np.inf))

"""Gaussian noise: the paper's classical calibration, the exact one, and the exact law of a sum of discrete pieces.

Sensitivities are L2, in counts: sqrt(2) for replace-one (one count up, another one down), 1 for zero-out.
"""

import math
from collections.abc import Callable

import numpy as np

from faircount.accounting.divergence import delta_bound
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.search import smallest_within
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import fraction, integer, positive

_MILLS_ERROR = 2e-15  # relative error of a scaled complementary error function and its argument, at most

SUM_TAIL = 1e-30
"""Probability outside the support that `discrete_sum_log_pmf` returns, at most."""


def classical_sigma(epsilon: float, delta: float) -> float:
    """The paper's sigma_G = sqrt(2 ln(1.25/delta)) / epsilon, per unit of sensitivity. Proven for epsilon < 1 only."""
    return math.sqrt(2 * math.log(1.25 / fraction("delta", delta))) / positive("epsilon", epsilon)


def analytic_delta(sigma: float, epsilon: float, sensitivity: float = math.sqrt(2)) -> float:
    """Exact delta of Gaussian noise with standard deviation sigma (Balle & Wang 2018, Theorem 8).

    Phi(-l) - e^epsilon Phi(-r), l, r = epsilon sigma/s -+ s/(2 sigma). As phi(l) = e^epsilon phi(r), it is phi(l) times
    a difference of Mills ratios, which neither overflows nor underflows.
    """
    from scipy.special import erfcx, ndtr

    eps, ratio = checked_epsilon(epsilon), positive("sigma", sigma) / positive("sensitivity", sensitivity)
    left, right = eps * ratio - 0.5 / ratio, eps * ratio + 0.5 / ratio
    if left < -5:
        return delta_bound(float(ndtr(-left) - math.exp(min(eps, 700.0)) * ndtr(-right)))
    near, far = float(erfcx(left / math.sqrt(2))), float(erfcx(right / math.sqrt(2)))
    mills = near - far + _MILLS_ERROR * near  # two nearly equal numbers where sigma is large: rounded up
    return delta_bound(0.5 * math.exp(-left * left / 2) * mills)


def analytic_sigma(epsilon: float, delta: float, sensitivity: float = math.sqrt(2)) -> float:
    """The smallest standard deviation that is (epsilon, delta)-private, rounded up."""
    limit, scale = fraction("delta", delta), positive("sensitivity", sensitivity)
    eps, high = checked_epsilon(epsilon), scale
    while analytic_delta(high, eps, scale) > limit:
        high *= 2
    low = high / 2
    while analytic_delta(low, eps, scale) <= limit:
        low, high = low / 2, low
    return smallest_within(lambda sigma: analytic_delta(sigma, eps, scale), limit, low, high)


LEAST_DEVIATION = 8.0
"""Steps that the standard deviation of a summand has at least where `rounded_sum_delta` speaks."""


def rounded_sum_delta(
    deviation: float, terms: int, shift: int, epsilon: float, coordinates: int = 2, distance: float = 0.0
) -> float:
    """An upper bound on delta when sums of `terms` Gaussians, each rounded to whole steps, move by `shift` steps.

    A rounded Gaussian has the density of G + U, U uniform on +-1/2, read off at whole numbers; so has the sum of h of
    them, with h times the variance and h such U, up to aliasing: per point below h e^(-deviation^2 pi^2 / 2), less than
    1e-90 in all for deviation >= 8. Reading off the density of G + U_1 + ... + U_h is rounding G + U_1 + ... + U_(h-1),
    and rounding commutes with whole shifts: all of it is post-processing of the Gaussian G. `distance` is the total
    variation between a summand's law and the rounded Gaussian; it counts for every summand and coordinate.
    """
    if positive("deviation", deviation) < LEAST_DEVIATION:
        raise ParameterError(f"a summand's standard deviation must be at least {LEAST_DEVIATION:g} steps")
    count, eps = integer("terms", terms, least=1), checked_epsilon(epsilon)
    ideal = analytic_delta(math.sqrt(count) * deviation / shift, eps, math.sqrt(coordinates))
    lost = coordinates * (1 + math.exp(min(eps, 700.0))) * (count * distance + SUM_TAIL)
    return delta_bound(ideal + lost)


def discrete_sum_log_pmf(log_pmf: Floats, terms: int) -> Floats:
    """Log probabilities on -R..R of the sum of `terms` independent draws from a symmetric law on -L..L.

    Right to about 1e-9 relative down to probabilities of 1e-30, where R ends; at most SUM_TAIL lies outside, so a
    caller adds 2 (1 + e^epsilon) SUM_TAIL to a replace-one delta. One FFT is right to 1e-16 of the largest
    probability only; so the law is tilted by e^(t x), which moves its bulk outwards, for t = 0, t_1, ... two standard
    deviations apart, and each probability is read where the tilted law is large.
    """
    x = _support(log_pmf)
    count = integer("terms", terms, least=1)
    if x.size == 1:
        return np.zeros(1)
    reach = _reach(log_pmf, x, count, 0.0, math.log(SUM_TAIL / 2))
    tilts, means = _tilts(log_pmf, x, count, reach)
    size = max(2 * reach + 1, _reach(log_pmf, x, count, tilts[-1], -46.0) + 1)
    points = np.arange(reach + 1)
    nearest = np.searchsorted((means[1:] + means[:-1]) / 2, points)
    half = np.empty(reach + 1)
    for index, t in enumerate(tilts):
        mine = nearest == index
        half[mine] = _tilted_sum(log_pmf, x, count, t, 1 << size.bit_length())(points[mine])
    return np.concatenate((half[:0:-1], half))


def _support(log_pmf: Floats) -> Floats:
    L = log_pmf.size // 2  # a table rounds to 2^-128, so its two sides may differ by that much
    symmetric = log_pmf.size % 2 == 1 and np.allclose(np.exp(log_pmf), np.exp(log_pmf[::-1]), rtol=1e-9, atol=1e-36)
    if not symmetric or not np.all(np.isfinite(log_pmf[L : L + 2])):
        raise ParameterError("the noise of one user must be symmetric about 0 and able to be 0 and 1")
    return np.arange(-L, L + 1, dtype=np.float64)


def _cumulant(log_pmf: Floats, x: Floats, t: float) -> tuple[float, float, float]:
    """(ln E[e^(tX)], mean and variance of the law tilted by e^(tx))."""
    exponent = log_pmf + t * x
    top = float(exponent.max())
    weights = np.exp(exponent - top)
    total = float(weights.sum())
    mean = float((weights * x).sum()) / total  # not a matrix product: those round by the number of threads
    return top + math.log(total), mean, float((weights * (x - mean) ** 2).sum()) / total


def _reach(log_pmf: Floats, x: Floats, count: int, t: float, log_tail: float) -> int:
    """y with P(sum > y) <= e^log_tail under the tilt t: Chernoff's bound at the best of a grid of exponents."""
    base, _, variance = _cumulant(log_pmf, x, t)
    grid = np.geomspace(0.05, 50, 60) / math.sqrt(count * variance)
    bounds = [(count * (_cumulant(log_pmf, x, t + u)[0] - base) - log_tail) / u for u in grid.tolist()]
    return int(min(count * x[-1], math.ceil(min(bounds))))


def _tilts(log_pmf: Floats, x: Floats, count: int, reach: int) -> tuple[list[float], Floats]:
    """Tilts whose means are about two standard deviations apart, from 0 until the last is near `reach`."""
    tilts, means = [0.0], [0.0]
    spread, step = math.sqrt(count * _cumulant(log_pmf, x, 0.0)[2]), math.inf
    while means[-1] + spread < reach:
        step = min(2 * step, 2 / spread)
        _, mean, variance = _cumulant(log_pmf, x, tilts[-1] + step)
        while count * mean - means[-1] > 2.5 * spread:  # heavy tails leap where light ones walk
            step /= 2
            _, mean, variance = _cumulant(log_pmf, x, tilts[-1] + step)
        tilts.append(tilts[-1] + step)
        means.append(count * mean)
        spread = math.sqrt(count * variance)
    return tilts, np.array(means)


def _tilted_sum(log_pmf: Floats, x: Floats, count: int, t: float, size: int) -> Callable[[Floats], Floats]:
    """Log probabilities of the sum at given points, good where the law tilted by t is large."""
    cumulant = _cumulant(log_pmf, x, t)[0]
    folded = np.bincount(x.astype(np.int64) % size, weights=np.exp(log_pmf + t * x - cumulant), minlength=size)
    summed = np.fft.irfft(np.fft.rfft(folded) ** count, size)

    def at(points: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(summed[points % size], 0.0)) - t * points + count * cumulant)

    return at

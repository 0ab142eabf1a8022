"""Gaussian noise: the paper's classical calibration, the exact one, and sums of discrete noise.

Sensitivities are L2, in counts: sqrt(2) for replace-one (one count up, another one down), 1 for
zero-out.
"""

import math
from collections.abc import Callable

import numpy as np

from faircount.accounting.divergence import delta_bound
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.search import smallest_within
from faircount.core.special import erfcx
from faircount.core.validation import check_epsilon, check_fraction, check_integer, check_positive

# Relative error of a scaled complementary error function and its argument, at most.
_MILLS_ERROR = 2e-15

SUM_TAIL = 1e-30
"""Probability outside the support that `discrete_sum_log_pmf` returns, at most."""

LEAST_DEVIATION = 8.0
"""Smallest standard deviation of a summand, in steps, for which `rounded_sum_delta` is proven."""


def classical_sigma(epsilon: float, delta: float) -> float:
    """Return the paper's sigma_G = sqrt(2 ln(1.25/delta)) / epsilon, per unit of sensitivity.

    It is proven for epsilon < 1 only.
    """
    limit = check_fraction("delta", delta)
    return math.sqrt(2 * math.log(1.25 / limit)) / check_positive("epsilon", epsilon)


def analytic_delta(sigma: float, epsilon: float, sensitivity: float = math.sqrt(2)) -> float:
    """Return the exact delta of Gaussian noise (Balle and Wang 2018, Theorem 8).

    It is Phi(-l) - e^epsilon Phi(-r), with l, r = epsilon sigma/s -+ s/(2 sigma).
    """
    eps = check_epsilon(epsilon)
    ratio = check_positive("sigma", sigma) / check_positive("sensitivity", sensitivity)
    left = eps * ratio - 0.5 / ratio
    right = eps * ratio + 0.5 / ratio
    if left < -5:
        # Phi(-l) is near 1, so the difference loses no digits; the scaled functions would overflow.
        return delta_bound(_normal_tail(left) - math.exp(min(eps, 700.0)) * _normal_tail(right))
    # As phi(l) = e^epsilon phi(r), delta is phi(l) times a difference of Mills ratios, which
    # neither overflows nor underflows. Where sigma is large the two are nearly equal, and their
    # error is added.
    near = erfcx(left / math.sqrt(2))
    far = erfcx(right / math.sqrt(2))
    mills = near - far + _MILLS_ERROR * near
    return delta_bound(0.5 * math.exp(-left * left / 2) * mills)


def _normal_tail(x: float) -> float:
    """Return the probability that a standard normal number exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def analytic_sigma(epsilon: float, delta: float, sensitivity: float = math.sqrt(2)) -> float:
    """Return the smallest standard deviation that is (epsilon, delta)-private, rounded up."""
    limit = check_fraction("delta", delta)
    scale = check_positive("sensitivity", sensitivity)
    eps = check_epsilon(epsilon)
    high = scale
    while analytic_delta(high, eps, scale) > limit:
        high *= 2
    low = high / 2
    while analytic_delta(low, eps, scale) <= limit:
        high = low
        low = low / 2
    return smallest_within(lambda sigma: analytic_delta(sigma, eps, scale), limit, low, high)


def rounded_sum_delta(
    deviation: float,
    terms: int,
    shift: int,
    epsilon: float,
    coordinates: int = 2,
    distance: float = 0.0,
) -> float:
    """Return an upper bound on delta when sums of rounded Gaussians move by `shift` steps.

    There are `terms` summands of this standard deviation, rounded to whole steps. `distance` is the
    total variation between a summand's distribution and the rounded Gaussian; it counts for every
    summand and coordinate.

    Why the sum is as private as a Gaussian: a rounded Gaussian has the density of G + U, U uniform
    on +-1/2, read off at whole numbers. So has the sum of h of them, with h times the variance and
    h such U, up to aliasing: per point below h e^(-deviation^2 pi^2 / 2), less than 1e-90 in all
    for deviation >= 8. Reading off the density of G + U_1 + ... + U_h is rounding
    G + U_1 + ... + U_(h-1), and rounding commutes with whole shifts: all of it is post-processing
    of the Gaussian G.
    """
    if check_positive("deviation", deviation) < LEAST_DEVIATION:
        raise ParameterError(
            f"a summand's standard deviation must be at least {LEAST_DEVIATION:g} steps"
        )
    count = check_integer("terms", terms, least=1)
    eps = check_epsilon(epsilon)
    ideal = analytic_delta(math.sqrt(count) * deviation / shift, eps, math.sqrt(coordinates))
    # A distribution that is off by a distance d costs d for P and e^epsilon d for Q.
    lost = coordinates * (1 + math.exp(min(eps, 700.0))) * (count * distance + SUM_TAIL)
    return delta_bound(ideal + lost)


def discrete_sum_log_pmf(log_pmf: Floats, terms: int) -> Floats:
    """Return log probabilities on -R..R of the sum of draws from a symmetric distribution on -L..L.

    There are `terms` independent draws. The result is right to about 1e-9 relative down to
    probabilities of 1e-30, where R ends; at most SUM_TAIL lies outside, so a caller adds
    2 (1 + e^epsilon) SUM_TAIL to a replace-one delta.
    """
    # A single FFT is right to 1e-16 of the largest probability only. So the distribution is tilted
    # by e^(t x), which moves its bulk outwards, for t = 0, t_1, ... two standard deviations apart,
    # and every probability is read where the tilted distribution is large.
    x = _support(log_pmf)
    count = check_integer("terms", terms, least=1)
    if x.size == 1:
        return np.zeros(1)
    reach = _reach(log_pmf, x, count, 0.0, math.log(SUM_TAIL / 2))
    tilts, means = _tilts(log_pmf, x, count, reach)
    # An FFT wraps around: it must hold both ends of the sum, and what the last tilt moves beyond
    # them, up to a tail of e^-46 = 1e-20.
    size = max(2 * reach + 1, _reach(log_pmf, x, count, tilts[-1], -46.0) + 1)
    points = np.arange(reach + 1)
    nearest = np.searchsorted((means[1:] + means[:-1]) / 2, points)
    half = np.empty(reach + 1)
    for index, t in enumerate(tilts):
        is_nearest = nearest == index
        log_pmf_at = _tilted_sum(log_pmf, x, count, t, 1 << size.bit_length())
        half[is_nearest] = log_pmf_at(points[is_nearest])
    return np.concatenate((half[:0:-1], half))


def _support(log_pmf: Floats) -> Floats:
    """Return the points -L..L of a distribution, which must be symmetric and able to be 0 and 1."""
    L = log_pmf.size // 2
    # Tables of probabilities are rounded to 2^-128, so both sides may differ by that much.
    symmetric = log_pmf.size % 2 == 1 and np.allclose(
        np.exp(log_pmf), np.exp(log_pmf[::-1]), rtol=1e-9, atol=1e-36
    )
    if not symmetric or not np.all(np.isfinite(log_pmf[L : L + 2])):
        raise ParameterError(
            "the noise of one user must be symmetric about 0 and able to be 0 and 1"
        )
    return np.arange(-L, L + 1, dtype=np.float64)


def _cumulant(log_pmf: Floats, x: Floats, t: float) -> tuple[float, float, float]:
    """Return (ln E[e^(tX)], mean and variance of the distribution tilted by e^(tx))."""
    exponent = log_pmf + t * x
    top = float(exponent.max())
    weights = np.exp(exponent - top)
    total = float(weights.sum())
    # Not a matrix product: its rounding depends on the number of threads, and every party of a
    # survey must compute the same parameters.
    mean = float((weights * x).sum()) / total
    variance = float((weights * (x - mean) ** 2).sum()) / total
    return top + math.log(total), mean, variance


def _reach(log_pmf: Floats, x: Floats, count: int, t: float, log_tail: float) -> int:
    """Return a y with P(sum > y) <= e^log_tail under the tilt t."""
    base, _, variance = _cumulant(log_pmf, x, t)
    # Chernoff's bound at the best of a grid of exponents.
    bounds = []
    for u in (np.geomspace(0.05, 50, 60) / math.sqrt(count * variance)).tolist():
        log_moment = count * (_cumulant(log_pmf, x, t + u)[0] - base)
        bounds.append((log_moment - log_tail) / u)
    return int(min(count * x[-1], math.ceil(min(bounds))))


def _tilts(log_pmf: Floats, x: Floats, count: int, reach: int) -> tuple[list[float], Floats]:
    """Return tilts, from 0 until the mean of the last is near `reach`, and those means."""
    tilts = [0.0]
    means = [0.0]
    spread = math.sqrt(count * _cumulant(log_pmf, x, 0.0)[2])
    step = math.inf
    while means[-1] + spread < reach:
        step = min(2 * step, 2 / spread)
        _, mean, variance = _cumulant(log_pmf, x, tilts[-1] + step)
        # A small step may move the mean of a heavy-tailed distribution far: the step is halved
        # until the means are about two standard deviations apart.
        while count * mean - means[-1] > 2.5 * spread:
            step /= 2
            _, mean, variance = _cumulant(log_pmf, x, tilts[-1] + step)
        tilts.append(tilts[-1] + step)
        means.append(count * mean)
        spread = math.sqrt(count * variance)
    return tilts, np.array(means)


def _tilted_sum(
    log_pmf: Floats, x: Floats, count: int, t: float, size: int
) -> Callable[[Floats], Floats]:
    """Return the function of the sum's log probabilities, good where the tilted one is large."""
    cumulant = _cumulant(log_pmf, x, t)[0]
    tilted = np.exp(log_pmf + t * x - cumulant)
    wrapped = np.bincount(x.astype(np.int64) % size, weights=tilted, minlength=size)
    summed = np.fft.irfft(np.fft.rfft(wrapped) ** count, size)

    def log_pmf_at(points: Floats) -> Floats:
        # Rounding may leave a tiny negative number where the true probability is about 0.
        with np.errstate(divide="ignore"):
            log_tilted = np.log(np.maximum(summed[points % size], 0.0))
        return np.asarray(log_tilted - t * points + count * cumulant)

    return log_pmf_at

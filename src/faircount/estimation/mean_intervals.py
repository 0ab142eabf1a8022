"""Confidence intervals of a mean of values in [-1, 1].

Reports of two values (Duchi) have an exact interval. Others (PM) have Student's, with a variance
estimated from the reports. It is widened in two cases in which it would cover too rarely: where so
few reports are pure noise that their sum is not nearly normal (large epsilon, few users), by the
distribution of that sum; and for a population, where users who were not drawn may differ more than
those who were, by an upper bound on the spread (Maurer and Pontil 2009).
"""

import math

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.search import last_float
from faircount.core.validation import check_fraction, check_integer, check_positive, check_real
from faircount.estimation.intervals import COVERS, check_choice, normal_quantile
from faircount.estimation.weighted_distribution import Complex, Distributions, frequencies_of, power
from faircount.mechanisms.local_mean import LocalMean, ReportSums

FEW = 5.0
"""Expected number of uninformed reports, those that say nothing of their user's value.

With fewer of them their distribution is used instead of a normal one, at a confidence of 95% or
less. The skewness of the distribution matters more in far tails, so at a higher confidence the
number grows with the fourth power of the normal quantile: 40 at 99.9%.
"""

SPREAD_ERROR = 0.1
"""Share of the error that is spent on bounding the spread of a population."""


def reports_interval(
    mechanism: LocalMean,
    aggregate: ReportSums,
    included: int,
    *,
    confidence: float = 0.95,
    covers: str = "users",
) -> tuple[float, float]:
    """Return the interval of a mean from the sums of reports.

    The noise and the spread of the values are estimated from the same sums.
    """
    check_choice("covers", covers, COVERS)
    n = check_integer("included", included, least=1)
    error = 1 - check_fraction("confidence", confidence)
    estimate = mechanism.estimate(aggregate, n)
    noise = mechanism.noise_variance(aggregate, n)
    square = mechanism.mean_square(aggregate, n)
    spread = 0.0
    if covers == "population":
        # The square of an estimate is too large by its variance, on average.
        own = square - max(0.0, estimate**2 - noise)
        spread = spread_at_most(max(0.0, own), n, SPREAD_ERROR * error)
        error = (1 - SPREAD_ERROR) * error
    # A bound of 1 says nothing: values in [-1, 1] never spread more.
    known_spread = None if spread >= 1 else spread
    low, high = mean_interval(
        estimate, noise, n, confidence=1 - error, covers=covers, spread=known_spread
    )
    if mechanism.uniform_probability * n < _few(error):
        half = _half_width(mechanism, estimate, square, spread, n, error)
        low = min(low, estimate - half)
        high = max(high, estimate + half)
    return _clip(low, high)


def _few(error: float) -> float:
    """Return the expected number of uninformed reports from which their sum is nearly normal."""
    return FEW * max(1.0, normal_quantile(1 - error / 2) / normal_quantile(0.975)) ** 4


def spread_at_most(spread: float, n: int, error: float) -> float:
    """Return a bound on the variance of a population of values in [-1, 1].

    n values drawn from it have the variance `spread`; the bound is wrong with probability `error`.
    """
    # Maurer and Pontil (2009), Theorem 10, for values in an interval of length 2.
    more = 2 * math.sqrt(2 * math.log(1 / error) / (n - 1)) if n > 1 else math.inf
    return min(1.0, (math.sqrt(spread) + more) ** 2)


def _half_width(
    mechanism: LocalMean, estimate: float, square: float, spread: float, n: int, error: float
) -> float:
    """Return half the width of an interval from the distribution of the noise.

    Users are taken to be at +x or -x, where x^2 is the mean square, so many at each that their mean
    is the estimate: the noise is skewed where most are on one side. The users' own values differ
    from the population's mean by +-sqrt(spread).
    """
    x = math.sqrt(square)
    above = round(n * (1 + min(1.0, max(-1.0, estimate / x))) / 2) if x > 0 else n // 2
    tail = error / 2
    reach = (mechanism.window.cells - 1) / (2 * float(mechanism.scale)) + 1
    deviation = math.sqrt((float(mechanism.report_variance(np.array([x]))[0]) + spread) / n)
    length = 20 * deviation + 6 * reach / n
    u = frequencies_of(length) / n
    # Characteristic functions of independent summands multiply.
    positive = power(_noise_spectrum(mechanism, x, u), above)
    negative = power(_noise_spectrum(mechanism, -x, u), n - above)
    own_values = power(np.cos(u * math.sqrt(spread)) + 0j, n)
    distribution = Distributions((positive * negative * own_values)[None, :], length, 0.0)
    precision = length * 1e-9

    def is_too_narrow(half: float) -> bool:
        return bool(max(distribution.above(half)[0], distribution.below(-half)[0]) > tail)

    too_narrow = last_float(is_too_narrow, 0.0, length / 2, precision)
    # Wider by as much as Student's quantile exceeds the normal one, because x is estimated.
    student = _student_quantile(max(n - 1, 1), 1 - tail)
    return (too_narrow + precision) * student / normal_quantile(1 - tail)


def _noise_spectrum(mechanism: LocalMean, x: float, frequencies: Floats) -> Complex:
    """Return the characteristic function of the noise y - x of a report.

    The report is any cell, or one of the window around the value (see local_mean.py).
    """
    window = mechanism.window
    turn = frequencies / float(mechanism.scale)
    # A value between two grid points is rounded at random to one of them.
    place = (x + 1) / 2 * mechanism.steps
    start = math.floor(place)
    rest = place - start
    begin = (1 - rest) * np.exp(1j * turn * start) + rest * np.exp(1j * turn * (start + 1))
    anywhere = float(window.other) * _geometric_sum(window.cells, turn)
    nearby = float(window.excess) * begin * _geometric_sum(window.width, turn)
    shift = turn * (window.cells - 1) / 2 + frequencies * x
    return np.asarray((anywhere + nearby) * np.exp(-1j * shift))


def _geometric_sum(count: int, turn: Floats) -> Complex:
    """Return the sum of e^(i k turn) over k < count."""
    sine = np.sin(turn / 2)
    # At multiples of 2 pi the closed form is 0 / 0, and all terms are 1.
    is_flat = np.abs(sine) < 1e-9
    sums = (
        np.sin(count * turn / 2)
        / np.where(is_flat, 1.0, sine)
        * np.exp(1j * turn * (count - 1) / 2)
    )
    return np.where(is_flat, count + 0j, sums)


def mean_interval(
    estimate: float,
    noise_variance: float,
    included: int,
    *,
    confidence: float = 0.95,
    covers: str = "users",
    spread: float | None = None,
) -> tuple[float, float]:
    """Return Student's interval of a mean of values in [-1, 1], with n - 1 degrees of freedom.

    `estimate` is unbiased, by `included` users, and `noise_variance` the variance that the
    mechanism adds to it, known or estimated from the reports; t instead of the normal distribution
    pays for the latter, and for tails that are not yet normal at n = 50. Approximate. For
    `covers="population"` the variance of one user's value is `spread`; without it the largest
    possible one, 1 - mean^2, is assumed. For reports of two values use `two_point_interval`.
    """
    n = check_integer("included", included, least=1)
    tail = (1 - check_fraction("confidence", confidence)) / 2
    z2 = _student_quantile(max(n - 1, 1), 1 - tail) ** 2
    check_choice("covers", covers, COVERS)
    center = check_real("estimate", estimate)
    noise = check_real("noise_variance", noise_variance)
    if noise < 0 or (spread is not None and check_real("spread", spread) < 0):
        raise ParameterError("noise_variance and spread are variances and must not be negative")
    if covers == "users":
        spread = 0.0
    if spread is not None:
        half = math.sqrt(z2 * (noise + spread / n))
        return _clip(center - half, center + half)
    # (estimate - m)^2 <= z^2 (noise + (1 - m^2) / n), solved for m.
    lead = 1 + z2 / n
    half = math.sqrt(max(center**2 - lead * (center**2 - z2 * (noise + 1 / n)), 0.0))
    return _clip((center - half) / lead, (center + half) / lead)


def two_point_interval(
    estimate: float, magnitude: float, included: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the interval of a mean from reports that are all +magnitude or -magnitude (Duchi).

    Clopper-Pearson on the number of positive reports: exact for a population. For given users it is
    the worst case, and two-valued reports cannot tell which case it is, so it serves for both.
    """
    n = check_integer("included", included, least=1)
    error = 1 - check_fraction("confidence", confidence)
    average = check_real("estimate", estimate)
    if abs(average) > check_positive("magnitude", magnitude) * (1 + 1e-9):
        raise AnswerError(
            "the estimate is larger than any report: give the average of reports of this magnitude"
        )
    positive = np.clip(np.array([round((estimate / magnitude + 1) / 2 * n)]), 0, n)
    low, high = clopper_pearson(positive, n, error / 2)
    return _clip(float(2 * low[0] - 1) * magnitude, float(2 * high[0] - 1) * magnitude)


def bound_drawn_mean(mean: float, people: int, error: float) -> tuple[float, float]:
    """Return bounds of a population's mean, where people drawn from it have this mean.

    Of their values only the range [0, 1] is known. A mean m of a population leads to one of at
    least x > m with a probability of at most exp(-n KL(x, m)), KL being the divergence of two coins
    (Hoeffding 1963). Both ends may be wrong with half of the error. The lower end falls with n for
    a given sum, and the upper end rises as n falls: whoever knows n only between bounds uses these.
    """
    limit = math.log(2 / error) / people

    def is_far(center: float) -> bool:
        return _coin_divergence(mean, center) > limit

    # From `mean` outwards the divergence grows. The outer end of the last bracket is returned, so
    # that the interval may be 1e-9 too wide, but not too narrow.
    low = 0.0
    if mean > 0 and is_far(0.0):
        low = last_float(is_far, 0.0, mean, 1e-9)
    high = 1.0
    if mean < 1 and is_far(1.0):
        high = 1 - last_float(lambda gap: is_far(1 - gap), 0.0, 1 - mean, 1e-9)
    return low, high


def _coin_divergence(mean: float, center: float) -> float:
    """Return KL(mean, center), the divergence of a coin of `mean` from one of `center`."""
    total = 0.0
    for share, other in ((mean, center), (1 - mean, 1 - center)):
        if share > 0:
            total += share * math.log(share / other) if other > 0 else math.inf
    return total


def _clip(low: float, high: float) -> tuple[float, float]:
    """Cut an interval off at -1 and 1, where all means lie."""
    return min(max(low, -1.0), 1.0), min(max(high, -1.0), 1.0)


def _student_quantile(freedom: int, probability: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))

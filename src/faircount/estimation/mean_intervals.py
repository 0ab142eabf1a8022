"""Confidence intervals of a mean of values in [-1, 1].

Reports of two values (Duchi) have an exact interval. Others (PM) have Student's, with a variance that the reports tell.
It is widened in two cases in which it would not hold: where so few reports are pure noise that their sum is not nearly
normal (large epsilon, few users), by the law of that sum; and for a population, where users who were not drawn may
differ more than those who were, by an upper bound of the spread (Maurer and Pontil 2009).
"""

import math

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.search import last_real
from faircount.core.validation import fraction, integer, positive, real
from faircount.estimation.intervals import COVERS, normal_quantile, one_of
from faircount.estimation.weighted_law import Complex, Laws, frequencies_of, power
from faircount.mechanisms.local_mean import LocalMean, ReportSums

FEW = 5.0
"""With fewer expected reports that say nothing of their user's value, their law is used instead of a normal one."""

SPREAD_ERROR = 0.1
"""Share of the error that is spent on bounding the spread of a population."""


def reports_interval(
    mechanism: LocalMean, aggregate: ReportSums, included: int, *, level: float = 0.95, covers: str = "users"
) -> tuple[float, float]:
    """Interval of a mean from the sums of reports; noise and spread of the values are estimated from them."""
    one_of("covers", covers, COVERS)
    n, error = integer("included", included, least=1), 1 - fraction("level", level)
    estimate, noise = mechanism.estimate(aggregate, n), mechanism.noise_variance(aggregate, n)
    square = mechanism.mean_square(aggregate, n)
    spread = 0.0
    if covers == "population":
        own = square - max(0.0, estimate**2 - noise)  # the square of an estimate is too large by its variance
        spread, error = spread_at_most(max(0.0, own), n, SPREAD_ERROR * error), (1 - SPREAD_ERROR) * error
    known = None if spread >= 1 else spread
    low, high = mean_interval(estimate, noise, n, level=1 - error, covers=covers, spread=known)
    if mechanism.uninformed * n < FEW:
        half = _half_width(mechanism, square, spread, n, error)
        low, high = min(low, estimate - half), max(high, estimate + half)
    return _into_range(low, high)


def spread_at_most(spread: float, n: int, error: float) -> float:
    """A bound on the variance of values in [-1, 1] of which n have this variance, wrong with probability `error`."""
    more = 2 * math.sqrt(2 * math.log(1 / error) / (n - 1)) if n > 1 else math.inf
    return min(1.0, (math.sqrt(spread) + more) ** 2)


def _half_width(mechanism: LocalMean, square: float, spread: float, n: int, error: float) -> float:
    """Half the width of an interval from the law of the noise: one half of the users at +x, one at -x, x^2 the square.

    As much wider as Student's quantile is than the normal one, because x is estimated. The users' own values differ
    from the population's mean by +-sqrt(spread).
    """
    x, tail, reach = math.sqrt(square), error / 2, (mechanism.window.cells - 1) / (2 * float(mechanism.scale)) + 1
    deviation = math.sqrt((float(mechanism.report_variance(np.array([x]))[0]) + spread) / n)
    length = 20 * deviation + 6 * reach / n
    u = frequencies_of(length) / n
    noise = power(_noise_spectrum(mechanism, x, u), (n + 1) // 2) * power(_noise_spectrum(mechanism, -x, u), n // 2)
    law = Laws((noise * power(np.cos(u * math.sqrt(spread)) + 0j, n))[None, :], length, 0.0)
    fine = length * 1e-9
    too_near = last_real(lambda at: max(law.above(at)[0], law.below(-at)[0]) > tail, 0.0, length / 2, fine)
    return (too_near + fine) * _student_quantile(max(n - 1, 1), 1 - tail) / normal_quantile(1 - tail)


def _noise_spectrum(mechanism: LocalMean, x: float, frequencies: Floats) -> Complex:
    """Characteristic function of a report's noise y - x: any cell, or one of the own window (see local_mean.py)."""
    window, turn = mechanism.window, frequencies / float(mechanism.scale)
    place = (x + 1) / 2 * mechanism.steps
    start = math.floor(place)
    begin = (1 - (place - start)) * np.exp(1j * turn * start) + (place - start) * np.exp(1j * turn * (start + 1))
    cells = float(window.other) * _cells(window.cells, turn) + float(window.excess) * begin * _cells(window.width, turn)
    return np.asarray(cells * np.exp(-1j * (turn * (window.cells - 1) / 2 + frequencies * x)))


def _cells(count: int, turn: Floats) -> Complex:
    """sum of e^(i k turn) over k < count."""
    sine = np.sin(turn / 2)
    flat = np.abs(sine) < 1e-9
    sums = np.sin(count * turn / 2) / np.where(flat, 1.0, sine) * np.exp(1j * turn * (count - 1) / 2)
    return np.where(flat, count + 0j, sums)


def mean_interval(
    estimate: float,
    noise_variance: float,
    included: int,
    *,
    level: float = 0.95,
    covers: str = "users",
    spread: float | None = None,
) -> tuple[float, float]:
    """Interval of a mean of values in [-1, 1] from an unbiased estimate by `included` users (Student's t, n - 1).

    `noise_variance` is the variance of the estimate that the mechanism causes, or what the reports say it is; t instead
    of the normal law pays for the latter, and for tails that are not yet normal at n = 50. Approximate. For
    `covers="population"` the variance of one user's value is `spread`; without it the largest possible one,
    1 - mean^2, is assumed. For reports of two values use `two_point_interval`.
    """
    n, tail = integer("included", included, least=1), (1 - fraction("level", level)) / 2
    z2 = _student_quantile(max(n - 1, 1), 1 - tail) ** 2
    one_of("covers", covers, COVERS)
    center, noise, own = real("estimate", estimate), real("noise_variance", noise_variance), spread
    if noise < 0 or (own is not None and real("spread", own) < 0):
        raise ParameterError("noise_variance and spread are variances and must not be negative")
    if covers == "users":
        own = 0.0
    if own is not None:
        half = math.sqrt(z2 * (noise + own / n))
        return _into_range(center - half, center + half)
    # (estimate - m)^2 <= z^2 (noise + (1 - m^2) / n), solved for m
    lead = 1 + z2 / n
    half = math.sqrt(max(center**2 - lead * (center**2 - z2 * (noise + 1 / n)), 0.0))
    return _into_range((center - half) / lead, (center + half) / lead)


def two_point_interval(estimate: float, magnitude: float, included: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of a mean from reports that are all +magnitude or -magnitude (Duchi), for users and population alike.

    Clopper-Pearson on the number of positive reports: exact for a population; for given users it is the worst case,
    and two-valued reports cannot tell which case it is.
    """
    n, error = integer("included", included, least=1), 1 - fraction("level", level)
    if not abs(real("estimate", estimate)) <= positive("magnitude", magnitude) * (1 + 1e-9):
        raise AnswerError("the estimate is larger than any report: give the average of reports of this magnitude")
    up = np.clip(np.array([round((estimate / magnitude + 1) / 2 * n)]), 0, n)
    low, high = clopper_pearson(up, n, error / 2)
    return _into_range(float(2 * low[0] - 1) * magnitude, float(2 * high[0] - 1) * magnitude)


def _into_range(low: float, high: float) -> tuple[float, float]:
    return min(max(low, -1.0), 1.0), min(max(high, -1.0), 1.0)


def _student_quantile(freedom: int, probability: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))

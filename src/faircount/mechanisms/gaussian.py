"""DPDG: distributed Gaussian noise in fixed point, the paper's baseline (Section III).

Every user rounds its own noise to a grid before the noise is added up, so a theorem about the
continuous Gaussian does not cover what runs. Here the table that a user draws from DEFINES the
mechanism: delta is computed from the exact distribution of the sum of h draws, and for crowds of
more than about 100,000 users from an upper bound on it.

The standard deviation of a count is the smallest one with which the Gaussian mechanism is
(epsilon, delta)-differentially private (Balle and Wang, ICML 2018), raised where rounding to the
grid requires it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses
from faircount.accounting.divergence import epsilon_for
from faircount.accounting.exact import shift_delta, shift_pair
from faircount.accounting.gaussian import (
    LEAST_DEVIATION,
    SUM_TAIL,
    analytic_delta,
    analytic_sigma,
    classical_sigma,
    discrete_sum_log_pmf,
    rounded_sum_delta,
)
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Floats, Residues
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import check_fraction, check_integer, check_positive
from faircount.mechanisms.base import set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution, normal_errors
from faircount.mechanisms.exact_draws import BITS, ONE, PRECISE, DrawTable
from faircount.mechanisms.secret_shared import TableNoise, chernoff_bound

Calibration = Literal["analytic", "classical"]
Share = Literal["corrected", "printed"]

# Grid steps that a user's standard deviation has at least, unless a scale is given.
STEPS = 8

# The distribution of the sum is accurate down to probabilities of 1e-30, which proves no smaller
# delta.
SMALLEST_DELTA = 1e-20

# Largest number of grid steps per count: n times as many must fit into the field.
MAX_STEPS = 1 << 40

# Range of a user's standard deviation in grid steps when a scale is given: below it most noise is
# rounded away, above it bits are wasted.
_COARSEST = 0.25
_FINEST = 1024.0

# Largest standard deviation of one user, in counts; a table has 24 entries per step of deviation.
_WIDEST = 1024.0

# A table covers this many standard deviations; what is cut off is accounted for in delta.
_REACH = 12

# Largest standard deviation of a sum, in grid steps, for which delta is computed from the exact
# distribution, and for which the distribution is computed at all.
_MAX_SUMMED = 4096.0
_MAX_WRITTEN = 65536.0

# How much rounding may raise the noise; only the finite tables of very many users need more.
_MAX_RAISED = 64.0

# Relative size of a term of the series below which it does not change the 39 digits of a cell.
_NEGLIGIBLE = Decimal("1e-50")
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510"
    "58209749445923078164062862089986280348253421170680"
)

# Exceeds what the relative errors (1e-9) of the sum's probabilities can change in delta.
_ROUND_UP = 1 + 1e-6


def _round_deviation(deviation: float) -> float:
    """Round a standard deviation up to 24 binary digits.

    Machines whose math functions differ in the last digit then compute the same table.
    """
    digits, exponent = math.frexp(deviation)
    return math.ldexp(math.ceil(math.ldexp(digits, 24)), exponent - 24)


@lru_cache(maxsize=64)
def gaussian_table(deviation: float) -> DrawTable:
    """Return the table of a Gaussian with this standard deviation rounded to whole steps.

    Computed with 80 decimal digits, so that the table is the same on all machines.
    """
    last = math.floor(_REACH * deviation + 0.5)
    with localcontext(PRECISE):
        variance = Decimal(deviation) ** 2
        height = ONE / (2 * _PI * variance).sqrt()
        # e^(-z^2 / (2 variance)) for successive z without further exponentials: the ratio of two
        # neighbours (`fall`) changes by a constant factor (`bend`).
        fall = (-1 / (2 * variance)).exp()
        bend = (-1 / variance).exp()
        sides = []
        for z in range(1, last + 1):
            height = height * fall
            fall = fall * bend
            sides.append(int((height * _cell_integral(z, variance)).to_integral_value()))
    return DrawTable.symmetric(sides)


def _cell_integral(z: int, variance: Decimal) -> Decimal:
    """Integrate f(t) = e^(-(z t + t^2/2) / variance) over |t| <= 1/2 by its Taylor series.

    From variance f' = -(z + t) f, the coefficients satisfy variance m f[m] = -(z f[m-1] + f[m-2]).
    """
    previous = Decimal(0)
    coefficient = Decimal(1)
    power = Decimal(1)
    total = Decimal(0)
    order = 0
    small = 0
    # Odd orders cancel. Two negligible terms in a row end the series: a single one may be small
    # because its coefficient happens to be close to zero.
    while small < 2:
        term = coefficient * power
        total += term / (order + 1)
        small = small + 1 if abs(term) < total * _NEGLIGIBLE else 0
        for _ in range(2):
            order += 1
            following = -(z * coefficient + previous) / (variance * order)
            previous = coefficient
            coefficient = following
            power = power / 2
    return total


def table_distance(deviation: float) -> float:
    """Return a bound on the total variation distance of the table from the rounded Gaussian."""
    # The tails that are cut off, and at most 2^-128 of rounding per entry.
    entries = 2 * math.floor(_REACH * deviation + 0.5)
    return math.erfc(_REACH / math.sqrt(2)) + math.ldexp(entries, -BITS)


@lru_cache(maxsize=64)
def sum_distribution(deviation: float, terms: int) -> Floats:
    """Return the log probabilities on -R..R steps of the sum of `terms` draws from the table."""
    spread = deviation * math.sqrt(terms)
    if spread > _MAX_WRITTEN:
        raise RefusedError(
            f"dpdg: the noise of {terms:,} users has a standard deviation of {spread:,.0f} grid "
            "steps, too many to compute its distribution: choose laplace or decoys for so many "
            "users"
        )
    distribution = discrete_sum_log_pmf(np.log(gaussian_table(deviation).probabilities), terms)
    # The array is cached and shared by all callers.
    distribution.setflags(write=False)
    return distribution


@lru_cache(maxsize=16)
def _sum_noise(deviation: float, terms: int, scale: int) -> NoiseDistribution:
    pmf = np.exp(sum_distribution(deviation, terms))
    return NoiseDistribution(-(pmf.size // 2), pmf / pmf.sum(), scale)


@dataclass(frozen=True, kw_only=True)
class DPDG(TableNoise):
    """Distributed discretized Gaussian noise, (epsilon, delta)-private by exact accounting.

    `calibration`: "analytic" takes the smallest standard deviation for (epsilon, delta), raised
    where rounding requires it, so that the promise holds for what runs; "classical" is the paper's
    sigma_G, which is proven for epsilon < 1 only.

    `share`: "corrected" gives every user the variance G^2 sigma^2 / h (G = sqrt(2) in counts), so
    that the noise of h users adds up to the calibrated one; "printed" is the paper's
    N(0, (G sigma / n)^2) per user, whose sum has a variance n times too small and protects next to
    nothing (erratum 3).

    `scale` is the number of grid steps per count.

    >>> fc.DPDG(items=3, users=100, epsilon=1.0, delta=1e-6).guarantee().delta <= 1e-6
    True
    """

    name: ClassVar[str] = "dpdg"
    required_parameters: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    parameter_docs: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss that the noise is calibrated for",
        "delta": "probability with which more than epsilon may be lost",
        "calibration": '"analytic", or "classical" for the paper\'s standard deviation',
        "share": '"corrected", or "printed" for the paper\'s noise per user',
        "scale": "grid steps per count; chosen automatically if not given",
    }
    parameter_attributes: ClassVar[dict[str, str]] = {
        "epsilon": "epsilon",
        "delta": "delta",
        "sigma": "target_sigma",
    }
    epsilon: float
    delta: float
    calibration: Calibration = "analytic"
    share: Share = "corrected"
    scale: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, epsilon=check_positive("epsilon", self.epsilon))
        set_fields(self, delta=check_fraction("delta", self.delta))
        if self.delta < SMALLEST_DELTA:
            raise ParameterError(
                f"delta must be at least {SMALLEST_DELTA:g} to be accounted for, not {self.delta:g}"
            )
        # The types are checked first: comparing an array with a string would not give a bool.
        are_strings = isinstance(self.calibration, str) and isinstance(self.share, str)
        if (
            not are_strings
            or self.calibration not in get_args(Calibration)
            or self.share not in get_args(Share)
        ):
            raise ParameterError(
                'calibration is "analytic" or "classical", share is "corrected" or "printed"'
            )
        if self.scale is not None:
            set_fields(self, scale=check_integer("scale", self.scale, least=1, most=MAX_STEPS))

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism whose releases compose to the budget.

        Several releases are accounted by the privacy loss distribution of the noise as drawn.
        """
        epsilon = wanted.epsilon
        delta = wanted.delta
        if wanted.releases > 1:
            # R Gaussian releases compose like one of sqrt(R) times the sensitivity. Its noise is
            # expressed as the epsilon of a single release; 0.1% of delta is kept for rounding.
            sensitivity = math.sqrt(2 * wanted.releases)
            sigma = analytic_sigma(wanted.epsilon, wanted.delta * 0.999, sensitivity)
            delta = wanted.delta / wanted.releases
            epsilon = epsilon_for(lambda value: analytic_delta(sigma, value), delta)
        mechanism = cls(**wanted.population, epsilon=epsilon, delta=delta)

        def total_delta() -> float:
            if wanted.releases == 1:
                return mechanism.guarantee().delta
            distribution = sum_distribution(mechanism.user_steps, mechanism.h)
            return wanted.compose_shifts(shift_pair(distribution, mechanism.steps_per_count))

        return CalibrationResult(mechanism, total_delta)

    def expected_errors(self, included: int) -> tuple[float, float]:
        """Return the errors of a normal sum; planning needs no exact distribution."""
        # Rounding adds the variance of a uniform distribution one grid step wide, per user.
        rounding = included / 12 / self.steps_per_count**2
        variance = self.target_sigma**2 * included / self.h + rounding
        return normal_errors(variance, self.N, included, self.steps_per_count)

    @cached_property
    def target_sigma(self) -> float:
        """Calibrated standard deviation of a count, before rounding to the grid."""
        if self.calibration == "classical":
            return math.sqrt(2) * classical_sigma(self.epsilon, self.delta)
        return analytic_sigma(self.epsilon, self.delta)

    @property
    def _share_divisor(self) -> float:
        """What the standard deviation of a count is divided by to give that of a user."""
        return math.sqrt(self.h) if self.share == "corrected" else float(self.n)

    @cached_property
    def steps_per_count(self) -> int:
        """The scale as given, or the power of two that gives a user 8 to 16 steps of deviation."""
        user = self.target_sigma / self._share_divisor
        if user > _WIDEST:
            raise ParameterError(
                f"dpdg: epsilon = {self.epsilon:g} and delta = {self.delta:g} need noise of "
                f"{user:.3g} counts per user, which takes too large a table: "
                "choose a larger epsilon or delta, or ask more users"
            )
        scale = self.scale or 2 ** max(0, math.ceil(math.log2(STEPS / user)))
        if self.scale and not _COARSEST <= user * scale <= _FINEST:
            least = math.ceil(_COARSEST / user)
            most = math.floor(_FINEST / user)
            raise ParameterError(
                f"scale must lie between {least} and {most} for this noise, not {scale}"
            )
        return scale

    @cached_property
    def user_steps(self) -> float:
        """Standard deviation of one user's noise before rounding, in grid steps."""
        calibrated = self.target_sigma / self._share_divisor * self.steps_per_count
        least = _round_deviation(calibrated)
        # Only this variant promises (epsilon, delta) for what runs; the others reproduce the paper.
        if (self.calibration, self.share) != ("analytic", "corrected"):
            return least
        # Raise the noise by 0.01%, 0.02%, 0.04%, ... until the discretized sum meets delta.
        raised = 0.0
        found = least
        while self._delta(self.epsilon, found, self.h, Relation.REPLACE_ONE) > self.delta:
            if raised > _MAX_RAISED:
                raise RefusedError(
                    f"dpdg: ({self.epsilon:g}, {self.delta:g}) cannot be shown for the tables of "
                    f"{self.h:,} users: choose a larger delta or a smaller epsilon, or laplace"
                )
            raised = 2 * raised or 1e-4
            found = _round_deviation(least * (1 + raised))
        return found

    @property
    def table(self) -> DrawTable:
        """Distribution of one user's noise in one entry, in grid steps; the same for all users."""
        return gaussian_table(self.user_steps)

    def bound_noise(self, entries: int, tail: float) -> int:
        """Return the bound for the noise of all n users."""
        values = np.array(self.table.values, dtype=np.float64)
        pmf = self.table.probabilities
        terms = entries * self.n

        def log_mgf(t: Floats) -> Floats:
            moments = [math.log((np.exp(point * values) * pmf).sum()) for point in t]
            return np.array([terms * moment for moment in moments])

        # For a Gaussian the best t is sqrt(2 log(2 / tail)) / sigma, far below 40 / sigma.
        sigma = math.sqrt(terms * float((pmf * values**2).sum()))
        return chernoff_bound(log_mgf, 40 / sigma, tail)

    def for_batch(self, copies: int) -> Self | None:
        """Return the mechanism for more users; the printed share depends on n, so it has none."""
        return self._with_same_noise(copies) if self.share == "corrected" else None

    def decode(self, total: Residues, included: int) -> Floats:
        """Return noisy counts, converted from grid steps."""
        return super().decode(total, included) / self.steps_per_count

    def noise(self, included: int) -> NoiseDistribution:
        """Return the exact distribution of the noise of this many users."""
        return _sum_noise(self.user_steps, self.check_included(included), self.steps_per_count)

    def channel(self, included: int) -> Channel:
        """Return the channel that counts all holders and adds the noise of all included users."""
        return Channel(1.0, noise=self.noise(included))

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Floats:
        """Sample noisy counts for the counts of those who take part, by inversion."""
        counts = self.check_population(population)
        distribution = self.noise(int(counts.sum()))
        return counts + distribution.draw((self.N,), rng)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return the delta of the discretized noise that the adversary does not know.

        Exact up to a factor 1 + 1e-6, always on the safe side. From about 100,000 users on it is an
        upper bound, one or two percent above: the delta of the Gaussian before rounding.
        """
        return self._delta(epsilon, self.user_steps, self.unknown_users(adversary), relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of two counts that move in opposite directions.

        None for crowds whose distribution is not computed; then only the guarantee composes.
        """
        unknown = self.unknown_users(adversary)
        if unknown < 1 or self.user_steps * math.sqrt(unknown) > _MAX_SUMMED:
            return None
        pair = shift_pair(sum_distribution(self.user_steps, unknown), self.steps_per_count)
        # Tails that Q lacks can only raise delta; those that P lacks are added, one per count.
        return Losses((pair, pair.swap()), 2 * SUM_TAIL)

    def _delta(self, epsilon: float, user_steps: float, unknown: int, relation: Relation) -> float:
        """Return delta when `unknown` draws of this deviation are unknown to the adversary."""
        if unknown < 1:
            return 1.0
        if user_steps * math.sqrt(unknown) > _MAX_SUMMED:
            return self._delta_of_many(epsilon, user_steps, unknown, relation)
        exact = shift_delta(
            sum_distribution(user_steps, unknown), epsilon, self.steps_per_count, relation
        )
        # Truncating the tails of the second data set's distribution can only have raised `exact`;
        # those of the first one are added.
        return min(1.0, exact * _ROUND_UP + 2 * SUM_TAIL)

    def _delta_of_many(
        self, epsilon: float, user_steps: float, unknown: int, relation: Relation
    ) -> float:
        """Return an upper bound in constant time for any number of users; needs a fine grid."""
        if user_steps < LEAST_DEVIATION:
            raise RefusedError(
                f"dpdg: noise of {user_steps:.3g} grid steps per user is too coarse to account for "
                f"that of {unknown:,} users: choose a larger scale, or leave it out"
            )
        coordinates = 2 if relation is Relation.REPLACE_ONE else 1
        distance = table_distance(user_steps)
        return rounded_sum_delta(
            user_steps, unknown, self.steps_per_count, epsilon, coordinates, distance
        )

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the guarantee of the noise that was contributed, at the promised epsilon."""
        if epsilon is None:
            epsilon = self.epsilon
        unknown = self.count_honest(included)
        delta = self._delta(epsilon, self.user_steps, unknown, Relation.REPLACE_ONE)
        return Guarantee(epsilon, delta, Relation.REPLACE_ONE, self.default_adversary)

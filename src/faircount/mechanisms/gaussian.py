"""DPDG: distributed Gaussian noise in fixed point, the paper's point of comparison (Section III).

Each user rounds its own piece of noise to a grid before the sum, so a theorem about the continuous Gaussian does not
cover what runs. Here the table that a user draws from DEFINES the mechanism, and delta is that of its exact h-fold sum.
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
from faircount.core.validation import fraction, integer, positive
from faircount.mechanisms.base import keep
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel, NoiseLaw, normal_errors
from faircount.mechanisms.exact_draws import BITS, ONE, PRECISE, DrawTable
from faircount.mechanisms.secret_shared import TableNoise, noise_bound

Calibration = Literal["analytic", "classical"]
Share = Literal["corrected", "printed"]

STEPS = 8
"""Grid steps that a user's standard deviation has at least, unless a scale is given."""

SMALLEST_DELTA = 1e-20
"""Below this the law of the sum, good down to probabilities of 1e-30, could not vouch for a promise."""

MOST_STEPS = 1 << 40
"""Grid steps per count, at most: n times as many must fit into the field."""

_COARSEST, _FINEST = 0.25, 1024.0  # steps per standard deviation: below noise is rounded away, above bits are wasted
_WIDEST = 1024.0  # counts that one user's standard deviation has at most: its table has 24 times as many entries
_REACH = 12  # standard deviations that a table covers; what is cut off counts in delta like everything else
_MOST_SUMMED = 4096.0  # steps that the deviation of a sum has at most where delta is that of the exact sum
_MOST_WRITTEN = 65536.0  # and where its law is written out at all
_MOST_RAISED = 64.0  # times that rounding may raise the noise: only the finite tables of very many users ask for more
_NEGLIGIBLE = Decimal("1e-50")  # beside a cell, of which 39 digits are kept
_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170680")
_ROUND_UP = 1 + 1e-6  # more than the relative errors (1e-9) of the sum's probabilities can make of delta


def _short(deviation: float) -> float:
    """Rounded up to 24 binary digits: machines whose functions differ in the last digit come to the same table."""
    digits, exponent = math.frexp(deviation)
    return math.ldexp(math.ceil(math.ldexp(digits, 24)), exponent - 24)


@lru_cache(maxsize=64)
def gaussian_table(deviation: float) -> DrawTable:
    """A Gaussian with this standard deviation rounded to whole steps, in 80-digit decimals: the same everywhere."""
    last = math.floor(_REACH * deviation + 0.5)
    with localcontext(PRECISE):
        variance = Decimal(deviation) ** 2
        height = ONE / (2 * _PI * variance).sqrt()
        fall, bend = (-1 / (2 * variance)).exp(), (-1 / variance).exp()  # e^(-z^2/(2 variance)) from ratios of ratios
        sides = []
        for z in range(1, last + 1):
            height, fall = height * fall, fall * bend
            sides.append(int((height * _cell(z, variance)).to_integral_value()))
    return DrawTable.symmetric(sides)


def _cell(z: int, variance: Decimal) -> Decimal:
    """Integral of f(t) = e^(-(z t + t^2/2) / variance) over |t| <= 1/2, by its series: variance f' = -(z + t) f."""
    before, now, power, total, m = Decimal(0), Decimal(1), Decimal(1), Decimal(0), 0
    small = 0  # terms in a row that do not count any more; those of odd order cancel
    while small < 2:
        total += now * power / (m + 1)
        small = small + 1 if abs(now * power) < total * _NEGLIGIBLE else 0
        for _ in range(2):
            m += 1
            before, now, power = now, -(z * now + before) / (variance * m), power / 2
    return total


def table_distance(deviation: float) -> float:
    """Total variation distance of the table from the rounded Gaussian, at most: what is cut off, and its rounding."""
    entries = 2 * math.floor(_REACH * deviation + 0.5)
    return math.erfc(_REACH / math.sqrt(2)) + math.ldexp(entries, -BITS)


@lru_cache(maxsize=64)
def sum_law(deviation: float, terms: int) -> Floats:
    """Log probabilities on -R..R steps of the sum of `terms` draws from the table."""
    if deviation * math.sqrt(terms) > _MOST_WRITTEN:
        raise RefusedError(
            f"dpdg: the noise of {terms:,} users takes {deviation * math.sqrt(terms):,.0f} steps of a grid as its "
            "standard deviation, too many to write out its law: choose laplace or decoys for so many users"
        )
    law = discrete_sum_log_pmf(np.log(gaussian_table(deviation).probabilities), terms)
    law.setflags(write=False)
    return law


@lru_cache(maxsize=16)
def _noise(deviation: float, terms: int, scale: int) -> NoiseLaw:
    pmf = np.exp(sum_law(deviation, terms))
    return NoiseLaw(-(pmf.size // 2), pmf / pmf.sum(), scale)


@dataclass(frozen=True, kw_only=True)
class DPDG(TableNoise):
    """Distributed discretized Gaussian noise, (epsilon, delta)-differentially private by exact accounting.

    `calibration`: "analytic" takes the smallest standard deviation for (epsilon, delta), raised where rounding asks for
    it, so that the promise holds for what runs; "classical" is the paper's sigma_G, proven for epsilon < 1 only.
    `share`: "corrected" gives each user the variance G^2 sigma^2 / h (G = sqrt(2) in counts), so that h of them add up
    to what was calibrated; "printed" is the paper's N(0, (G sigma / n)^2) per user, whose sum has a variance n times
    too small and protects next to nothing (erratum 3). `scale` is the number of grid steps per count.
    """

    name: ClassVar[str] = "dpdg"
    needs: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    means: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss it is made for",
        "delta": "probability with which more than epsilon may be lost",
        "calibration": '"analytic", or "classical" for the paper\'s standard deviation',
        "share": '"corrected", or "printed" for the paper\'s noise per user',
        "scale": "grid steps per count; chosen if not given",
    }
    run_with: ClassVar[dict[str, str]] = {"epsilon": "epsilon", "delta": "delta", "sigma": "planned"}
    epsilon: float
    delta: float
    calibration: Calibration = "analytic"
    share: Share = "corrected"
    scale: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, epsilon=positive("epsilon", self.epsilon), delta=fraction("delta", self.delta))
        if self.delta < SMALLEST_DELTA:
            raise ParameterError(f"delta must be at least {SMALLEST_DELTA:g} to be accounted for, not {self.delta:g}")
        named = isinstance(self.calibration, str) and isinstance(self.share, str)
        if not named or self.calibration not in get_args(Calibration) or self.share not in get_args(Share):
            raise ParameterError('calibration is "analytic" or "classical", share is "corrected" or "printed"')
        if self.scale is not None:
            keep(self, scale=integer("scale", self.scale, least=1, most=MOST_STEPS))

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """R releases are accounted by the privacy loss distribution of what is drawn."""
        each, delta = wanted.epsilon, wanted.delta
        if wanted.releases > 1:  # the epsilon of one release whose noise is the composed one's
            sigma = analytic_sigma(wanted.epsilon, wanted.delta * 0.999, math.sqrt(2 * wanted.releases))
            delta = wanted.delta / wanted.releases
            each = epsilon_for(lambda eps: analytic_delta(sigma, eps), delta)
        made = cls(**wanted.crowd, epsilon=each, delta=delta)

        def total_delta() -> float:
            if wanted.releases == 1:
                return made.guarantee().delta
            return wanted.composed(shift_pair(sum_law(made.user_steps, made.h), made.steps_per_count))

        return Calibrated(made, total_delta)

    def expected_errors(self, included: int) -> tuple[float, float]:
        """A sum of many rounded Gaussians is normal: its law is not needed to know its quantiles."""
        rounding = included / 12 / self.steps_per_count**2  # that of a uniform law, one grid step wide, per user
        return normal_errors(self.planned**2 * included / self.h + rounding, included)

    @cached_property
    def planned(self) -> float:
        """Standard deviation of a count that the calibration asks for, before rounding to the grid."""
        if self.calibration == "classical":
            return math.sqrt(2) * classical_sigma(self.epsilon, self.delta)
        return analytic_sigma(self.epsilon, self.delta)

    @property
    def _pieces(self) -> float:
        """What the standard deviation of a count is divided by to give a user's."""
        return math.sqrt(self.h) if self.share == "corrected" else float(self.n)

    @cached_property
    def steps_per_count(self) -> int:
        """The scale: as given, or the power of two that makes a user's standard deviation 8 to 16 steps."""
        user = self.planned / self._pieces
        if user > _WIDEST:
            raise ParameterError(
                f"dpdg: epsilon = {self.epsilon:g} and delta = {self.delta:g} ask each user for noise of {user:.3g} "
                "counts, which takes too large a table: choose a larger epsilon or delta, or ask more users"
            )
        scale = self.scale or 2 ** max(0, math.ceil(math.log2(STEPS / user)))
        if self.scale and not _COARSEST <= user * scale <= _FINEST:
            least, most = math.ceil(_COARSEST / user), math.floor(_FINEST / user)
            raise ParameterError(f"scale must lie between {least} and {most} for this noise, not {scale}")
        return scale

    @cached_property
    def user_steps(self) -> float:
        """Standard deviation of one user's noise before rounding, in grid steps."""
        least, raised = _short(self.planned / self._pieces * self.steps_per_count), 0.0
        if (self.calibration, self.share) != ("analytic", "corrected"):
            return least
        while self._delta(self.epsilon, _short(least * (1 + raised)), self.h, Relation.REPLACE_ONE) > self.delta:
            if raised > _MOST_RAISED:
                raise RefusedError(
                    f"dpdg: ({self.epsilon:g}, {self.delta:g}) cannot be shown for the tables of {self.h:,} users: "
                    "choose a larger delta or a smaller epsilon, or laplace"
                )
            raised = 2 * raised or 1e-4
        return _short(least * (1 + raised))

    @property
    def table(self) -> DrawTable:
        """The law, in grid steps, that a user draws from for each entry; public, the same for all."""
        return gaussian_table(self.user_steps)

    def noise_reach(self, entries: int, tail: float) -> int:
        """Of the noise of all n users."""
        values, pmf = np.array(self.table.values, dtype=np.float64), self.table.probabilities
        terms = entries * self.n

        def log_mgf(t: Floats) -> Floats:
            return np.array([terms * math.log((np.exp(each * values) * pmf).sum()) for each in t])

        return noise_bound(log_mgf, 40 / math.sqrt(terms * float((pmf * values**2).sum())), tail)

    def side_by_side(self, copies: int) -> Self | None:
        """A user's noise depends on epsilon, delta and h alone, but for the paper's printed share."""
        return self._same_noise_of_each(copies) if self.share == "corrected" else None

    def decode(self, total: Residues, included: int) -> Floats:
        """Noisy counts, from grid steps."""
        return super().decode(total, included) / self.steps_per_count

    def noise(self, included: int) -> NoiseLaw:
        """The exact law of the sum of this many users' pieces."""
        return _noise(self.user_steps, self.takes_part(included), self.steps_per_count)

    def channel(self, included: int) -> Channel:
        """Every holder counts, and every included user's piece of noise."""
        return Channel(1.0, noise=self.noise(included))

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Floats:
        """Noisy counts for the counts of those who took part, by inversion of the sum's own law."""
        held = self.present(population)
        law = self.noise(int(held.sum()))
        return held + law.draw((self.N,), rng)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Delta of the discretized sum of the noise that the adversary does not know, rounded up by 1e-6 of itself.

        From about 100,000 users on an upper bound, one or two percent above: that of the Gaussian before rounding.
        """
        return self._delta(epsilon, self.user_steps, self.unknown(adversary), relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """A count up and another one down, both hidden by the discretized sum; of huge crowds only the guarantee."""
        unknown = self.unknown(adversary)
        if unknown < 1 or self.user_steps * math.sqrt(unknown) > _MOST_SUMMED:
            return None
        pair = shift_pair(sum_law(self.user_steps, unknown), self.steps_per_count)
        return Losses((pair, pair.swapped()), 2 * SUM_TAIL)

    def _delta(self, epsilon: float, user_steps: float, unknown: int, relation: Relation) -> float:
        if unknown < 1:
            return 1.0
        if user_steps * math.sqrt(unknown) > _MOST_SUMMED:
            return self._delta_of_many(epsilon, user_steps, unknown, relation)
        exact = shift_delta(sum_law(user_steps, unknown), epsilon, self.steps_per_count, relation)
        return min(1.0, exact * _ROUND_UP + 2 * SUM_TAIL)  # what the second law lost to its tails only raised `exact`

    def _delta_of_many(self, epsilon: float, user_steps: float, unknown: int, relation: Relation) -> float:
        """An upper bound that takes no time, however many users; it needs a fine grid."""
        if user_steps < LEAST_DEVIATION:
            raise RefusedError(
                f"dpdg: noise of {user_steps:.3g} grid steps per user is too coarse to account for that of {unknown:,} "
                "users: choose a larger scale, or leave it out"
            )
        coordinates = 2 if relation is Relation.REPLACE_ONE else 1
        distance = table_distance(user_steps)
        return rounded_sum_delta(user_steps, unknown, self.steps_per_count, epsilon, coordinates, distance)

    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """From the pieces of noise that went in, whoever made them; at the epsilon promised unless told."""
        at = self.epsilon if epsilon is None else epsilon
        delta = self._delta(at, self.user_steps, self.left(included), Relation.REPLACE_ONE)
        return Guarantee(at, delta, Relation.REPLACE_ONE, self.default_adversary)

"""Laplace: integer noise of which no single user knows the sum; unconditional, no floor on the data.

The noise of h users adds up to a two-sided geometric law, which is epsilon-differentially private. Every user counts
(p = 1), and sums stay small integers in a small field, as the paper wants from sampling.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import (
    Losses,
    compose_randomized_response,
    laplace_epsilon_for_releases,
    randomized_response,
)
from faircount.accounting.exact import laplace_delta, laplace_epsilon, laplace_log_pmf
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.core.validation import positive
from faircount.mechanisms.base import keep
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel, NoiseLaw
from faircount.mechanisms.exact_draws import BITS, PRECISE, DrawTable
from faircount.mechanisms.secret_shared import BoundedNoise, TableNoise, noise_bound

SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 50.0
"""What the table can serve: below it would have more than 377,000 entries, above it nobody would be protected."""

_TABLE_BITS = 136  # the table ends where the ratio's power falls below 2^-136, beyond the 128 bits of a draw
_FIXED = 256  # fractional bits of the integers that stand for probabilities while a table is made


def half_law(epsilon: float, h: int, length: int) -> list[Decimal]:
    """P(X - X' = z) for z = 0..length, X and X' NegativeBinomial(1/h) with ratio a = e^(-epsilon/2), in 80 digits.

    From a(z+1-r) g[z+1] = (1+a^2) z g[z] - a(z-1+r) g[z-1], r = 1/h. The law is the recurrence's vanishing solution,
    so it is run downward (upward it would be swamped), from twice the length, where an arbitrary start is forgotten.
    """
    with localcontext(PRECISE):
        a, r = (-Decimal(epsilon) / 2).exp(), 1 / Decimal(h)
        middle = 1 + a * a
        law = [Decimal(0), Decimal(1)]  # g[z+1], g[z] from the far end on
        for z in range(2 * length, 0, -1):
            law.append((middle * z * law[-1] - a * (z + 1 - r) * law[-2]) / (a * (z - 1 + r)))
        law.reverse()
        whole = law[0] + 2 * sum(law[1:])
        return [each / whole for each in law[: length + 1]]


@lru_cache(maxsize=64)
def laplace_table(epsilon: float, h: int) -> tuple[DrawTable, float]:
    """The table of one user's noise per entry, and its total variation distance from the ideal law."""
    length = math.ceil(_TABLE_BITS * math.log(2) / (epsilon / 2))
    with localcontext(PRECISE):
        ideal = [int(each * (1 << _FIXED)) for each in half_law(epsilon, h, length)]
    half, step = 1 << (_FIXED - BITS - 1), 1 << (_FIXED - BITS)
    table = DrawTable.symmetric([(each + half) // step for each in ideal[1:]])
    drawn = [weight * step for weight in table.weights[length:]]
    moved = [abs(one - other) for one, other in zip(drawn, ideal, strict=True)]
    cut = (1 << _FIXED) - ideal[0] - 2 * sum(ideal[1:])  # the tails outside, and what rounding down lost
    return table, math.ldexp(float(moved[0] + 2 * sum(moved[1:]) + cut), -_FIXED - 1)


@lru_cache(maxsize=64)
def laplace_noise(epsilon: float, share: float) -> NoiseLaw:
    """The law of a fraction `share` of the noise that is made for epsilon; 2 is the sum of two whole ones."""
    pmf = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), share))
    return NoiseLaw(-(pmf.size // 2), pmf / pmf.sum())


def laplace_bound(epsilon: float, share: float, tail: float) -> int:
    """B with P(|a fraction `share` of the noise made for epsilon| > B) <= tail."""
    a, top = math.exp(-epsilon / 2), 2 * math.log(-math.expm1(-epsilon / 2))

    def log_mgf(t: Floats) -> Floats:
        return np.asarray(share * (top - np.log1p(-a * np.exp(t)) - np.log1p(-a * np.exp(-t))))

    return noise_bound(log_mgf, epsilon / 2, tail)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(BoundedNoise):
    """What all mechanisms with this noise have in common, whoever adds it: its law, and its exact privacy."""

    means: ClassVar[dict[str, str]] = {"epsilon": "privacy loss it is made for"}
    run_with: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}
    epsilon: float

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            served = f"between {SMALLEST_EPSILON} and {LARGEST_EPSILON:g}"
            raise ParameterError(f"epsilon must lie {served}, not {self.epsilon:g}")
        super().__post_init__()

    @property
    @abstractmethod
    def draws(self) -> int:
        """How many draws from the table add up to the whole noise of an entry."""

    @abstractmethod
    def hidden(self, adversary: Adversary) -> int:
        """How many of an entry's draws the adversary does not know; 0 or less for none."""

    @abstractmethod
    def share(self, included: int) -> float:
        """How many times the whole noise is in an opened sum of so many users."""

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """Over R releases exactly a 2R-fold randomized response, and what the finite tables cost."""
        total, releases = wanted.epsilon, wanted.releases
        each = total if releases == 1 else laplace_epsilon_for_releases(total, wanted.delta * (1 - 1e-9), releases)
        made = cls(**wanted.crowd, epsilon=each)

        def total_delta() -> float:
            ideal = compose_randomized_response(each / 2, 2 * releases, epsilon=total)
            return ideal + made.table_delta(total, releases)

        return Calibrated(made, total_delta)

    @property
    def table(self) -> DrawTable:
        """The law of one draw; public, the same for all."""
        return laplace_table(self.epsilon, self.draws)[0]

    def table_delta(self, epsilon: float, releases: int = 1) -> float:
        """What the finite tables of all releases cost at the total epsilon."""
        return releases * self._table_delta(epsilon, self.draws)

    def _table_delta(self, epsilon: float, unknown: int, relation: Relation = Relation.REPLACE_ONE) -> float:
        """(1 + e^epsilon) times the total variation distance of the draws that hide a user from ideal ones."""
        entries = 2 if relation is Relation.REPLACE_ONE else 1
        return (1 + math.exp(min(epsilon, 700.0))) * entries * unknown * laplace_table(self.epsilon, self.draws)[1]

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Noisy counts for the counts of those who took part."""
        held = self.present(population)
        size, stop = self.share(int(held.sum())), -math.expm1(-self.epsilon / 2)
        noise = rng.negative_binomial(size, stop, self.N) - rng.negative_binomial(size, stop, self.N)
        return np.asarray(held + noise)

    def channel(self, included: int) -> Channel:
        """Every holder counts; the noise is all that went in."""
        return Channel(1.0, noise=laplace_noise(self.epsilon, self.share(self.takes_part(included))))

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact delta of the ideal law plus what the table may add."""
        return self.delta_left(epsilon, self.hidden(adversary), relation)

    def delta_left(self, epsilon: float, unknown: int, relation: Relation = Relation.REPLACE_ONE) -> float:
        """The same where so many draws are unknown."""
        if unknown < 1:
            return 1.0
        share = unknown / self.draws
        pure = laplace_epsilon(self.epsilon, share) * (1 if relation is Relation.REPLACE_ONE else 0.5)
        ideal = laplace_delta(self.epsilon, share, epsilon, relation)
        return min(1.0, ideal + self._table_delta(min(epsilon, pure), unknown, relation))

    def losses(self, adversary: Adversary) -> Losses | None:
        """A count up and another one down, each a randomized response of epsilon / 2; more noise only hides more."""
        hidden = self.hidden(adversary)
        if hidden < self.draws:
            return None
        distance = 2 * hidden * laplace_table(self.epsilon, self.draws)[1]
        return Losses((randomized_response(self.epsilon / 2),) * 2, distance)


@dataclass(frozen=True, kw_only=True)
class Laplace(LaplaceNoise, TableNoise):
    """Distributed discrete Laplace noise: pure epsilon, up to the 2^-107 or so of a finite table.

    Each user adds to every entry a draw of X - X', X and X' NegativeBinomial(1/h) with ratio a = e^(-epsilon/2). Any h
    of them add up to noise of law (1-a)/(1+a) a^|z|, which hides a change by one in two entries up to e^epsilon; more
    only help. Variance of a count (n'/h) 2a/(1-a)^2.
    """

    name: ClassVar[str] = "laplace"

    @property
    def draws(self) -> int:
        """One of each user counted on."""
        return self.h

    def hidden(self, adversary: Adversary) -> int:
        """One of each user whom it does not know."""
        return self.unknown(adversary)

    def share(self, included: int) -> float:
        """Every h users make it once."""
        return included / self.h

    def noise_reach(self, entries: int, tail: float) -> int:
        """Of the noise of all n users."""
        return laplace_bound(self.epsilon, entries * self.n / self.h, tail)

    def side_by_side(self, copies: int) -> Self:
        """A user's noise depends on epsilon and h alone."""
        return self._same_noise_of_each(copies)

    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """From the noise that went in, whoever made it: with a share of h below 1, 2 ln(P(0)/P(1)) as epsilon."""
        unknown = self.left(included)
        left = laplace_epsilon(self.epsilon, unknown / self.h)
        return Guarantee(left, self.delta_left(left, unknown), Relation.REPLACE_ONE, self.default_adversary)

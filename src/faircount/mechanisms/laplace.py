"""Distributed discrete Laplace noise: pure epsilon for any data, without a floor.

The discrete Laplace distribution with ratio a = e^(-epsilon/2),

    P(Z = z) = (1 - a) / (1 + a) * a^|z|,

hides a change of one in two counts up to a factor e^epsilon. It is infinitely divisible: Z is the
sum of h independent differences X - X' with X and X' NegativeBinomial(1/h) of the same ratio. Every
user adds one such difference, so that the noise of any h users is enough and no single user knows
the sum. All users are counted (p = 1), and sums stay small integers in a small field, which is what
the paper chooses sampling for.

With two items the counts add up to the number of users, which is public, so they are one number. In
`Laplace` a user then draws once, x, and adds (x, -x). A replaced answer moves x by one, which a
ratio a = e^(-epsilon) hides: a quarter of the variance. The total of both counts stays exact.
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
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.validation import check_positive
from faircount.mechanisms.base import set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.exact_draws import BITS, PRECISE, DrawTable
from faircount.mechanisms.secret_shared import BoundedNoise, TableNoise, chernoff_bound, one_hot

# Range of epsilon: below it a table would have more than 377,000 entries, and above it there would
# be next to no noise.
SMALLEST_EPSILON = 0.001
LARGEST_EPSILON = 50.0

# A table ends where a^z falls below 2^-136, beyond the 128 bits of a draw.
_TABLE_BITS = 136

# Fractional bits of the integers that represent probabilities while a table is computed.
_FIXED = 256


def one_sided_distribution(epsilon: float, h: int, length: int) -> list[Decimal]:
    """Return g[z] = P(X - X' = z) for z = 0..length with 80 digits, for one of h users.

    The probabilities satisfy, with r = 1/h,

        a (z + 1 - r) g[z+1] = (1 + a^2) z g[z] - a (z - 1 + r) g[z-1].
    """
    with localcontext(PRECISE):
        a = (-Decimal(epsilon) / 2).exp()
        r = 1 / Decimal(h)
        middle = 1 + a * a
        # Miller's algorithm: g is the decaying solution, so the recurrence is stable downward only.
        # It starts at twice the length, from where the arbitrary start values no longer matter.
        distribution = [Decimal(0), Decimal(1)]
        for z in range(2 * length, 0, -1):
            distribution.append(
                (middle * z * distribution[-1] - a * (z + 1 - r) * distribution[-2])
                / (a * (z - 1 + r))
            )
        distribution.reverse()
        whole = distribution[0] + 2 * sum(distribution[1:])
        return [probability / whole for probability in distribution[: length + 1]]


@lru_cache(maxsize=64)
def laplace_table(epsilon: float, h: int) -> tuple[DrawTable, float]:
    """Return the table of one user's noise and its total variation distance from the ideal."""
    length = math.ceil(_TABLE_BITS * math.log(2) / (epsilon / 2))
    with localcontext(PRECISE):
        distribution = one_sided_distribution(epsilon, h, length)
        ideal = [int(probability * (1 << _FIXED)) for probability in distribution]
    # Round every probability to the nearest multiple of 2^-128.
    half = 1 << (_FIXED - BITS - 1)
    step = 1 << (_FIXED - BITS)
    table = DrawTable.symmetric([(weight + half) // step for weight in ideal[1:]])
    # The distance is half the sum of all differences, both signs of z counted.
    drawn = [weight * step for weight in table.weights[length:]]
    moved = [abs(one - other) for one, other in zip(drawn, ideal, strict=True)]
    # The tails beyond the table, and what truncation to 256 bits lost.
    cut = (1 << _FIXED) - ideal[0] - 2 * sum(ideal[1:])
    return table, math.ldexp(float(moved[0] + 2 * sum(moved[1:]) + cut), -_FIXED - 1)


@lru_cache(maxsize=64)
def laplace_noise(epsilon: float, multiple: float) -> NoiseDistribution:
    """Return the distribution of `multiple` draws of the noise for epsilon; may be a fraction."""
    # The computed distribution ends where probabilities are negligible, and is normalized again.
    pmf = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), multiple))
    return NoiseDistribution(-(pmf.size // 2), pmf / pmf.sum())


def laplace_bound(epsilon: float, multiple: float, tail: float) -> int:
    """Return B with P(|Z| > B) <= tail, where Z is `multiple` times the noise for epsilon."""
    a = math.exp(-epsilon / 2)
    top = 2 * math.log(-math.expm1(-epsilon / 2))

    def log_mgf(t: Floats) -> Floats:
        # E[e^(tZ)] = ((1 - a)^2 / ((1 - a e^t) (1 - a e^-t)))^multiple, finite for t < epsilon / 2.
        return np.asarray(multiple * (top - np.log1p(-a * np.exp(t)) - np.log1p(-a * np.exp(-t))))

    return chernoff_bound(log_mgf, epsilon / 2, tail)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(BoundedNoise):
    """Base of all mechanisms with this noise, whoever adds it: its distribution and privacy."""

    parameter_docs: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss that the noise is calibrated for"
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}
    epsilon: float

    def __post_init__(self) -> None:
        set_fields(self, epsilon=check_positive("epsilon", self.epsilon))
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise ParameterError(
                f"epsilon must lie between {SMALLEST_EPSILON} and {LARGEST_EPSILON:g}, "
                f"not {self.epsilon:g}"
            )
        super().__post_init__()

    @classmethod
    def is_paired(cls, items: int) -> bool:
        """Whether one draw x serves both of two items, as (x, -x)."""
        return False

    @property
    def moved_draws(self) -> int:
        """How many independent draws hide a replaced answer: of both items, or of the pair."""
        return 1 if self.is_paired(self.N) else 2

    @property
    def table_epsilon(self) -> float:
        """The epsilon of two items whose independent noise has the ratio of a draw."""
        return self.epsilon * 2 / self.moved_draws

    @property
    @abstractmethod
    def draws_per_entry(self) -> int:
        """Number of draws from the table that add up to the whole noise of an entry."""

    @abstractmethod
    def hidden_draws(self, adversary: Adversary) -> int:
        """Return how many draws of an entry the adversary does not know; possibly below 1."""

    @abstractmethod
    def noise_multiple(self, included: int) -> float:
        """Return how many times the whole noise is in the sum of this many users."""

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism whose releases compose to the budget.

        R releases are exactly a 2R-fold randomized response of epsilon / 2 each (for a pair, R-fold
        of epsilon), plus the distance of the finite tables from the ideal distribution.
        """
        total = wanted.epsilon
        releases = wanted.releases
        epsilon = total
        draws = 1 if cls.is_paired(wanted.items) else 2
        if releases > 1:
            # A billionth of delta is kept for the tables, which need less.
            ideal_delta = wanted.delta * (1 - 1e-9)
            epsilon = laplace_epsilon_for_releases(total, ideal_delta, releases, draws)
        mechanism = cls(**wanted.population, epsilon=epsilon)

        def total_delta() -> float:
            count = draws * releases
            ideal = compose_randomized_response(epsilon / draws, count, epsilon=total)
            return ideal + mechanism.table_delta(releases)

        return CalibrationResult(mechanism, total_delta)

    @property
    def table(self) -> DrawTable:
        """Distribution of one draw; public and the same for all."""
        return laplace_table(self.table_epsilon, self.draws_per_entry)[0]

    def table_delta(self, releases: int = 1) -> float:
        """Return what the finite tables of all releases add to delta, at any total epsilon."""
        return releases * self._table_delta(self.draws_per_entry, self.moved_draws)

    def _table_delta(self, unknown: int, counts: int) -> float:
        """Return what finite tables add to delta if as many draws as `unknown` hide each count.

        The ideal distributions P and Q of a moved count differ by a factor e^c at most, and each is
        within a distance d of the distribution that is drawn. Where the drawn Q has only a part of
        Q, only the same part of P is kept: what P loses is at most e^c d, and what is left of P and
        Q has the ratio that it had. Another d is what the drawn P has beyond P. So every moved
        count adds (1 + e^c) d to the delta of the ideal distributions, whatever the epsilon and
        however many releases there are.
        """
        distance = laplace_table(self.table_epsilon, self.draws_per_entry)[1]
        pure = laplace_epsilon(self.table_epsilon, unknown / self.draws_per_entry) / 2
        # The exponent is capped where exp would overflow; the caller caps delta at 1.
        return counts * (1 + math.exp(min(pure, 700.0))) * unknown * distance

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample noisy counts for the counts of those who take part."""
        counts = self.check_population(population)
        size = self.noise_multiple(int(counts.sum()))
        stop = -math.expm1(-self.table_epsilon / 2)
        draws = 1 if self.is_paired(self.N) else self.N
        # The difference of two negative binomials, whose size may be a fraction.
        noise = rng.negative_binomial(size, stop, draws)
        noise = noise - rng.negative_binomial(size, stop, draws)
        return np.asarray(counts + (pair_up(noise) if self.is_paired(self.N) else noise))

    def channel(self, included: int) -> Channel:
        """Return the channel that counts all holders and adds all noise that was contributed."""
        multiple = self.noise_multiple(self.check_included(included))
        noise = laplace_noise(self.table_epsilon, multiple)
        return Channel(1.0, noise=noise, independent=not self.is_paired(self.N))

    def reaches(self, half_width: float, included: int) -> bool:
        """Return whether the 95% half-width is at most this, by narrower noise if that decides."""
        multiple = self.noise_multiple(self.check_included(included))
        kind = type(self)
        # A subclass may bring a distribution or errors of its own.
        has_this_distribution = (
            kind.channel is LaplaceNoise.channel
            and kind.expected_errors is LaplaceNoise.expected_errors
        )
        # Plans compare many numbers of users, whose multiples have the same whole part.
        if has_this_distribution and multiple > 1:
            noise = laplace_noise(self.table_epsilon, float(math.floor(multiple)))
            narrower = Channel(1.0, noise=noise, independent=not self.is_paired(self.N))
            fitted = narrower.fitted_to_total(self.N)
            # A symmetric distribution with one peak only becomes wider by the symmetric noise that
            # is missing here: no other interval of its length has more probability than the middle.
            has_one_peak = fitted.noise is not None and fitted.noise.has_one_peak
            if has_one_peak and fitted.expected_errors(self.N, included)[1] > half_width:
                return False
        return super().reaches(half_width, included)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return the exact delta of the ideal distribution plus what the finite table may add."""
        return self.delta_with_draws(epsilon, self.hidden_draws(adversary), relation)

    def delta_with_draws(
        self, epsilon: float, unknown: int, relation: Relation = Relation.REPLACE_ONE
    ) -> float:
        """Return the delta when `unknown` draws are unknown to the adversary."""
        if unknown < 1:
            return 1.0
        hiding = self.moved_draws
        if relation is not Relation.REPLACE_ONE:
            # The exact total of a pair betrays whether a response is the zero vector.
            if self.is_paired(self.N):
                return 1.0
            hiding = 1
        multiple = unknown / self.draws_per_entry
        moved = Relation.REPLACE_ONE if hiding == 2 else Relation.ZERO_OUT
        ideal = laplace_delta(self.table_epsilon, multiple, epsilon, moved)
        return min(1.0, ideal + self._table_delta(unknown, hiding))

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of the draws, each a randomized response of its share of epsilon."""
        hidden = self.hidden_draws(adversary)
        # With more draws than needed the loss is smaller, so it is bounded by this one; with fewer
        # it is another distribution, which is not composed.
        if hidden < self.draws_per_entry:
            return None
        moved = self.moved_draws
        response = randomized_response(self.epsilon / moved)
        return Losses((response,) * moved, self._table_delta(hidden, moved))


def pair_up(draws: Ints) -> Ints:
    """Return (x, -x) for every draw x, which has the last axis to itself."""
    return np.concatenate([draws, -draws], axis=-1)


@dataclass(frozen=True, kw_only=True)
class Laplace(LaplaceNoise, TableNoise):
    """Distributed discrete Laplace noise: pure epsilon, up to about 2^-107 for the finite table.

    Every user adds to every entry a draw of X - X' with X and X' NegativeBinomial(1/h) of ratio
    a = e^(-epsilon/2). The noise of any h users has the distribution (1-a)/(1+a) a^|z|: it hides a
    change of one in two entries up to e^epsilon; further noise only helps. With n' users in the sum
    the variance of a count is (n'/h) 2a/(1-a)^2.

    With two items a user draws x once, with a = e^(-epsilon), and adds (x, -x): the counts add up
    to the number of users anyway, which is public. In the zero-out relation there is then no
    guarantee, because the total is exact.

    >>> fc.Laplace(items=3, users=100, epsilon=1.0).guarantee().epsilon
    1.0
    """

    name: ClassVar[str] = "laplace"

    @classmethod
    def is_paired(cls, items: int) -> bool:
        """Two items share one draw."""
        return items == 2

    @property
    def draws_per_entry(self) -> int:
        """One draw of every user whose noise is counted on."""
        return self.h

    def hidden_draws(self, adversary: Adversary) -> int:
        """Return one draw of every user whose noise the adversary does not know."""
        return self.unknown_users(adversary)

    def noise_multiple(self, included: int) -> float:
        """Return n' / h: every h users contribute the whole noise once."""
        return included / self.h

    def bound_noise(self, entries: int, tail: float) -> int:
        """Return the bound for the noise of all n users; in a pair it adds up to 0."""
        if entries > 1 and self.is_paired(self.N):
            return 0
        return laplace_bound(self.table_epsilon, entries * self.n / self.h, tail)

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return one-hot vectors plus a draw in every entry, or x and -x in two."""
        if not self.is_paired(self.N):
            return super().contribute(answers, users, entropy)
        return one_hot(answers, self.N) + pair_up(self.table.draw(users.size, entropy)[:, None])

    @property
    def audited_items(self) -> int:
        """A third item where there are more than two: two alone would share a draw."""
        return min(3, self.N)

    def for_batch(self, copies: int) -> Self:
        """Return the mechanism for more users: the noise of a user depends on epsilon and h."""
        return self._with_same_noise(copies)

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the guarantee of the noise that was contributed, at an epsilon of its own.

        A fraction of the noise is still pure: its epsilon is ln(P(0) / P(1)) for every draw that
        hides a replaced answer.
        """
        unknown = self.count_honest(included)
        whole = laplace_epsilon(self.table_epsilon, unknown / self.h)
        remaining = whole * self.moved_draws / 2
        delta = self.delta_with_draws(remaining, unknown)
        return Guarantee(remaining, delta, Relation.REPLACE_ONE, self.default_adversary)

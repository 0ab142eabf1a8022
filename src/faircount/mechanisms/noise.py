"""Two mechanisms with an unconditional guarantee: integer noise that no single user knows, no floor on the data.

Laplace: the noise of h users adds up to a two-sided geometric law, which is epsilon-differentially private.
Decoys: all users together flip D fair coins per item, which is (epsilon, delta)-differentially private.

Every user counts (p = 1), and sums stay small integers in a small field, as the paper wants from sampling.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.exact import (
    decoys_delta,
    decoys_needed,
    laplace_delta,
    laplace_epsilon,
    laplace_log_pmf,
    log_binomial,
)
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.validation import fraction, frequencies, integer, positive
from faircount.mechanisms.base import check_range, keep
from faircount.mechanisms.count_law import Channel, NoiseLaw
from faircount.mechanisms.exact_draws import BITS, PRECISE, DrawTable
from faircount.mechanisms.secret_shared import WRAP, NoiseMechanism, noise_bound, one_hot
from faircount.sharing.field import to_signed

SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 50.0
"""What the table can serve: below it would have more than 377,000 entries, above it nobody would be protected."""

MOST_COINS = 10**8
"""Fair coins per item, at most: as many as the smallest epsilon and delta ask for."""

_TABLE_BITS = 136  # the table ends where the ratio's power falls below 2^-136, beyond the 128 bits of a draw
_FIXED = 256  # fractional bits of the integers that stand for probabilities while a table is made


def half_law(epsilon: float, h: int, length: int) -> list[Decimal]:
    """P(X - X' = z) for z = 0..length, X and X' NegativeBinomial(1/h) with ratio a = e^(-epsilon/2), in 80 digits.

    From a(z+1-r) g[z+1] = (1+a^2) z g[z] - a(z-1+r) g[z-1], r = 1/h. The law is the recurrence's vanishing solution,
    so it is run downward (upward it would be swamped), from twice the length, where an arbitrary start is forgotten.
    """
    with localcontext(PRECISE):
        a, r = (-Decimal(epsilon) / 2).exp(), 1 / Decimal(h)
        law = [Decimal(0), Decimal(1)]  # g[z+1], g[z] from the far end on
        for z in range(2 * length, 0, -1):
            law.append(((1 + a * a) * z * law[-1] - a * (z + 1 - r) * law[-2]) / (a * (z - 1 + r)))
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
def _laplace_noise(epsilon: float, share: float) -> NoiseLaw:
    pmf = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), share))
    return NoiseLaw(-(pmf.size // 2), pmf / pmf.sum())


@lru_cache(maxsize=64)
def _decoys_noise(coins: int) -> NoiseLaw:
    pmf = np.exp(log_binomial(coins, 0.5))
    return NoiseLaw(0, pmf / pmf.sum())


@dataclass(frozen=True, kw_only=True)
class Laplace(NoiseMechanism):
    """Distributed discrete Laplace noise: pure epsilon, up to the 2^-107 or so of a finite table.

    Each user adds to every entry a draw of X - X', X and X' NegativeBinomial(1/h) with ratio a = e^(-epsilon/2). Any h
    of them add up to noise of law (1-a)/(1+a) a^|z|, which hides a change by one in two entries up to e^epsilon; more
    only help. Variance of a count (n'/h) 2a/(1-a)^2.
    """

    name: ClassVar[str] = "laplace"
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        epsilon = positive("epsilon", self.epsilon)
        if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
            raise ParameterError(
                f"epsilon must lie between {SMALLEST_EPSILON} and {LARGEST_EPSILON:g}, not {epsilon:g}"
            )
        keep(self, epsilon=epsilon)

    @property
    def promise(self) -> tuple[float | None, float | None]:
        """(epsilon, None): what delta there is comes from the table alone."""
        return self.epsilon, None

    @property
    def table(self) -> DrawTable:
        """The law that a user draws from for each entry; public, the same for all."""
        return laplace_table(self.epsilon, self.h)[0]

    @property
    def delta_r(self) -> float:
        """What the finite table costs: (1 + e^epsilon) 2 h eta, eta the total variation distance of one draw."""
        return self._table_delta(self.epsilon, self.h, Relation.REPLACE_ONE)

    def _table_delta(self, epsilon: float, unknown: int, relation: Relation) -> float:
        entries = 2 if relation is Relation.REPLACE_ONE else 1
        return (1 + math.exp(epsilon)) * entries * unknown * laplace_table(self.epsilon, self.h)[1]

    def _bound(self, entries: int, tail: float) -> int:
        """B with P(|noise of all n users in `entries` entries together| > B) <= tail."""
        a, share = math.exp(-self.epsilon / 2), entries * self.n / self.h
        top = 2 * math.log(-math.expm1(-self.epsilon / 2))

        def log_mgf(t: Floats) -> Floats:
            return np.asarray(share * (top - np.log1p(-a * np.exp(t)) - np.log1p(-a * np.exp(-t))))

        return noise_bound(log_mgf, self.epsilon / 2, tail)

    @cached_property
    def bound(self) -> int:
        """B: a count's noise stays within +-B, for all items together but with probability 2^-60."""
        return self._bound(1, WRAP / self.N)

    @cached_property
    def total_bound(self) -> int:
        """The same for the noise of all items added up."""
        return self._bound(self.N, WRAP)

    @property
    def reach(self) -> int:
        """-B..n+B; a sum that wraps would cost accuracy, never privacy."""
        return self.n + 2 * self.bound

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """One-hot vectors plus a draw from the table in every entry."""
        noise = self.table.draw(users.size * self.N, entropy).reshape(users.size, self.N)
        return one_hot(answers, self.N) + noise

    def decode(self, total: Residues, included: int) -> Ints:
        """Noisy counts; refused outside what noise reaches but with probability 2^-60, per item and in total."""
        present, spread = self.takes_part(included), self.total_bound
        values = to_signed(self.opened(total), self.modulus, -self.bound)
        return check_range(values, -self.bound, present + self.bound, present - spread, present + spread)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Noisy counts for the counts of those who took part."""
        held = self.present(population)
        size, stop = held.sum() / self.h, -math.expm1(-self.epsilon / 2)
        noise = rng.negative_binomial(size, stop, self.N) - rng.negative_binomial(size, stop, self.N)
        return np.asarray(held + noise)

    def channel(self, included: int) -> Channel:
        """Every holder counts; the noise is that of all included users."""
        return Channel(1.0, noise=_laplace_noise(self.epsilon, self.takes_part(included) / self.h))

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact delta of the ideal law plus what the table may add."""
        return self._delta(epsilon, self.unknown(adversary), relation)

    def _delta(self, epsilon: float, unknown: int, relation: Relation) -> float:
        if unknown < 1:
            return 1.0
        share = unknown / self.h
        pure = laplace_epsilon(self.epsilon, share) * (1 if relation is Relation.REPLACE_ONE else 0.5)
        ideal = laplace_delta(self.epsilon, share, epsilon, relation)
        return min(1.0, ideal + self._table_delta(min(epsilon, pure), unknown, relation))

    def realized(self, included: int, insiders: int | None = None) -> Guarantee:
        """The guarantee from the noise that went in: with a share of h below 1, 2 ln(P(0)/P(1)) instead of epsilon."""
        adversary, unknown = self.left(included, insiders)
        epsilon = laplace_epsilon(self.epsilon, unknown / self.h)
        delta = self._delta(epsilon, unknown, Relation.REPLACE_ONE)
        return Guarantee(epsilon, delta, Relation.REPLACE_ONE, adversary)


@dataclass(frozen=True, kw_only=True)
class Decoys(NoiseMechanism):
    """Distributed binomial noise: fair coins per item, flipped by the users together.

    User i flips c_i coins for every item and adds the heads; the c_i differ by at most one, the first users of the
    roster have the larger ones, and their sum is D. Give epsilon and delta (D is then the smallest number whose coins
    protect enough without those of the insiders and dropouts), or D itself as `coins` (with an epsilon, if the
    guarantee is to be stated there). Variance of a count D'/4 with the D' coins that went in. Fair coins are exact, so
    nothing is lost to a table.
    """

    name: ClassVar[str] = "decoys"
    epsilon: float | None = None
    delta: float | None = None
    coins: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.delta is None) == (self.coins is None) or (self.delta is not None and self.epsilon is None):
            raise ParameterError("decoys: give epsilon and delta, or else coins, the number of fair coins per item")
        if self.coins is not None:
            keep(self, coins=integer("coins", self.coins, least=1, most=MOST_COINS))
        if self.epsilon is not None:
            keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.delta is not None:
            keep(self, delta=fraction("delta", self.delta))

    @property
    def promise(self) -> tuple[float | None, float | None]:
        """(epsilon, delta) as given; coins leave delta open."""
        return self.epsilon, self.delta

    @cached_property
    def D(self) -> int:  # noqa: N802 - the name used on paper
        """Fair coins per item of all users together."""
        if self.epsilon is None or self.delta is None:
            return self.coins or 0  # never 0: __post_init__ saw to it
        return total_coins(decoys_needed(self.epsilon, self.delta), self.n, self.h)

    @cached_property
    def allocation(self) -> Ints:
        """c_i, the coins of the user at place i of the roster; public."""
        each, more = divmod(self.D, self.n)
        return each + (np.arange(self.n) < more).astype(np.int64)

    def coins_of(self, users: NDArray[Any]) -> int:
        """D', the coins per item of these users: distinct places in the roster, or a mask over it."""
        chosen = np.asarray(users)
        mask = np.zeros(self.n, dtype=np.bool_)
        if chosen.dtype == np.bool_ and chosen.shape == mask.shape:
            mask = chosen
        elif chosen.dtype.kind in "iu" and chosen.ndim == 1 and np.all((chosen >= 0) & (chosen < self.n)):
            mask[chosen] = True
        if mask.sum() != (chosen.sum() if chosen.dtype == np.bool_ else chosen.size):
            raise ParameterError(f"users must be distinct places in the roster of {self.n}, or a mask over it")
        return int(self.allocation[mask].sum())

    def coins_between(self, included: int) -> tuple[int, int]:
        """The fewest and the most coins that this many users can have."""
        present, (each, more) = self.takes_part(included), divmod(self.D, self.n)
        return each * present + max(0, present + more - self.n), each * present + min(more, present)

    def coins_in(self, included: int, coins: int | None = None) -> int:
        """D' for this many included users; who they are matters unless all are or all have equally many coins."""
        fewest, most = self.coins_between(included)
        if coins is not None:
            return integer("coins", coins, least=fewest, most=most)
        if fewest != most:
            raise ParameterError(f"{included} of {self.n} users took part: give coins=, from coins_of(who they are)")
        return fewest

    def _without(self, missing: int, included: int, coins: int) -> int:
        """Coins left of `coins` when those of the `missing` included users who have most do not count."""
        each = self.D // self.n
        more = coins - each * included
        return max(0, included - missing) * each + max(0, more - missing)

    @property
    def reach(self) -> int:
        """n users and D heads at most."""
        return self.n + self.D

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """One-hot vectors plus the heads of c_i fresh coins in every entry."""
        vectors, flips = one_hot(answers, self.N), self.allocation[users]
        for each in np.unique(flips[flips > 0]):
            rows = np.flatnonzero(flips == each)
            vectors[rows] += heads(int(each), rows.size * self.N, entropy).reshape(rows.size, self.N)
        return vectors

    def decode(self, total: Residues, included: int) -> Ints:
        """Counts with their decoys; refused where impossible, or where the total happens but once in 2^60."""
        fewest, most = self.coins_between(included)
        spread = math.sqrt(self.N * most / 2 * math.log(2 / WRAP))  # Hoeffding's inequality for N D' fair coins
        low = max(0, math.floor(self.N * fewest / 2 - spread))
        high = min(self.N * most, math.ceil(self.N * most / 2 + spread))
        values = to_signed(self.opened(total), self.modulus, 0)
        return check_range(values, 0, included + most, included + low, included + high)

    def draw(self, population: NDArray[Any], rng: np.random.Generator, coins: int | None = None) -> Ints:
        """Counts with decoys for the counts of those who took part."""
        held = self.present(population)
        return np.asarray(held + rng.binomial(self.coins_in(int(held.sum()), coins), 0.5, self.N))

    def channel(self, included: int, coins: int | None = None) -> Channel:
        """Every holder counts; the noise is Bin(D', 1/2) for the D' coins that went in."""
        return Channel(1.0, noise=_decoys_noise(self.coins_in(included, coins)))

    def estimate(self, aggregate: NDArray[Any], included: int, coins: int | None = None) -> Floats:
        """(s_j - D'/2) / n'."""
        return self.channel(included, coins).estimate(aggregate, included)

    def variance(self, truth: Floats, included: int | None = None, coins: int | None = None) -> Floats:
        """D' / (4 n'^2) for every item."""
        present = self.n if included is None else included
        return self.channel(present, coins).variance(frequencies(truth, items=self.N), present)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact delta of the coins left when all expected dropouts had the most, and the insiders the next most."""
        return decoys_delta(self._without(self.n - self.unknown(adversary), self.n, self.D), epsilon, relation)

    def realized(
        self, included: int, insiders: int | None = None, coins: int | None = None, epsilon: float | None = None
    ) -> Guarantee:
        """The guarantee from the coins that went in, without those of the insiders; at the epsilon promised."""
        adversary, unknown = self.left(included, insiders)
        at = self.epsilon if epsilon is None else epsilon
        if at is None:
            raise ParameterError("decoys: made from coins, so give epsilon=; delta is computed")
        left = self._without(included - unknown, included, self.coins_in(included, coins))
        return Guarantee(at, decoys_delta(left, at), Relation.REPLACE_ONE, adversary)


def total_coins(needed: int, users: int, counted_on: int) -> int:
    """The smallest D that leaves `needed` coins when all but `counted_on` of the users are gone, with the most coins.

    Of `counted_on` = h users, b coins each and r more make `needed` = b h + r; the n - h missing ones had b + 1 each.
    """
    each, more = divmod(needed, counted_on)
    return each * users + (more + users - counted_on if more else 0)


def heads(coins: int, size: int, entropy: Entropy) -> Ints:
    """`size` draws of Bin(coins, 1/2), each by counting the ones among exactly `coins` fresh random bits."""
    row = -(-coins // 8)
    bits = entropy.words(size * row, np.uint8).reshape(size, row)
    bits[:, -1] &= np.uint8(0xFF >> (8 * row - coins))
    return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))

"""Decoys: fair coins that all users flip together, D per item; unconditional, no floor on the data.

The heads are (epsilon, delta)-differentially private. Every user counts (p = 1), and sums stay small integers in a
small field, as the paper wants from sampling.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses, compose, decoys_for_releases
from faircount.accounting.divergence import binomial_window, log_binomial
from faircount.accounting.exact import decoys_delta, decoys_needed, shift_pair
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.validation import fraction, integer, positive
from faircount.mechanisms.base import check_range, keep
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel, NoiseLaw, normal_errors
from faircount.mechanisms.secret_shared import OVERFLOW_PROBABILITY, NoiseMechanism, SharedMechanism, one_hot
from faircount.sharing.field import to_signed

MOST_COINS = 10**8
"""Fair coins per item, at most: as many as the smallest epsilon and delta ask for."""

MANY_COINS = 10**5
"""More coins than this are normal to four digits, and their law is not written out to plan a survey."""


@lru_cache(64)
def coins_delta(coins: int, epsilon: float, releases: int) -> float:
    """Delta of all releases together when the adversary knows nothing of so many coins in each."""
    if releases == 1:
        return decoys_delta(coins, epsilon)
    pair = shift_pair(binomial_window(coins, 0.5)[1])
    return compose([[pair, pair.swapped()]] * releases, epsilon=epsilon)


@lru_cache(maxsize=64)
def coin_noise(coins: int) -> NoiseLaw:
    """The law of the heads among so many fair coins."""
    pmf = np.exp(log_binomial(coins, 0.5))
    return NoiseLaw(0, pmf / pmf.sum())


@dataclass(frozen=True, kw_only=True)
class CoinNoise(SharedMechanism):
    """Noise of fair coins, given as epsilon and delta or as their number, whoever flips them."""

    needs: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    means: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss it is made for",
        "delta": "probability with which more than epsilon may be lost",
        "coins": "D, fair coins per item in all, instead of delta",
    }
    run_with: ClassVar[dict[str, str]] = {"D": "D"}
    epsilon: float | None = None
    delta: float | None = None
    coins: int | None = None

    def __post_init__(self) -> None:
        if (self.delta is None) == (self.coins is None) or (self.delta is not None and self.epsilon is None):
            raise ParameterError(
                f"{self.name}: give epsilon and delta, or else coins, the number of fair coins per item"
            )
        if self.epsilon is not None:
            keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.delta is not None:
            keep(self, delta=fraction("delta", self.delta))
        if self.coins is not None:
            keep(self, coins=integer("coins", self.coins, least=1, most=MOST_COINS))
        super().__post_init__()

    @abstractmethod
    def made_of(self, needed: int) -> int:
        """D, so that `needed` coins are unknown to whomever the guarantee is stated against."""

    @abstractmethod
    def hidden(self, adversary: Adversary) -> int:
        """Coins per item that the adversary does not know; 0 or less for none."""

    @abstractmethod
    def coins_between(self, included: int) -> tuple[int, int]:
        """The fewest and the most coins per item in the opened sum of this many users."""

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """As many fair coins as the composed privacy loss asks for."""
        needed = decoys_for_releases(wanted.epsilon, wanted.delta, wanted.releases)
        made = cls(**wanted.crowd, **(wanted.promise or {"coins": 1}))
        if not wanted.promise:
            made = replace(made, coins=made.made_of(needed))
        return Calibrated(made, lambda: coins_delta(needed, wanted.epsilon, wanted.releases))

    @cached_property
    def D(self) -> int:  # noqa: N802 - the name used on paper
        """Fair coins per item: of all users together, or of each server."""
        if self.epsilon is None or self.delta is None:
            return self.coins or 0  # never 0: __post_init__ saw to it
        return self.made_of(decoys_needed(self.epsilon, self.delta))

    def coins_in(self, included: int) -> int:
        """D' for this many included users; who they are matters unless all are or all have equally many coins."""
        fewest, most = self.coins_between(included)
        if fewest != most:
            raise ParameterError(f"{included} of {self.n} users took part: as_included(their places) has their coins")
        return fewest

    @property
    def reach(self) -> int:
        """n users and every coin a head at most."""
        return self.n + self.coins_in(self.n)

    def decode(self, total: Residues, included: int) -> Ints:
        """Counts with their coins; refused where impossible, or where the total happens but once in 2^60."""
        return check_coins(to_signed(self.opened(total), self.modulus, 0), included, *self.coins_between(included))

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Counts with coins for the counts of those who took part."""
        held = self.present(population)
        return np.asarray(held + rng.binomial(self.coins_in(int(held.sum())), 0.5, self.N))

    def channel(self, included: int) -> Channel:
        """Every holder counts; the noise is Bin(D', 1/2) for the D' coins that went in."""
        return Channel(1.0, noise=coin_noise(self.coins_in(included)))

    def expected_errors(self, included: int) -> tuple[float, float]:
        """With the coins of an average crowd of this size; the law of very many is not written out."""
        fewest, most = self.coins_between(included)
        coins = min(max(round(self.D * included / self.n), fewest), most)
        if coins > MANY_COINS:
            return normal_errors(coins / 4, included)
        return Channel(1.0, noise=coin_noise(coins)).expected_errors(self.N, included)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact delta of the coins that the adversary does not know."""
        return decoys_delta(max(0, self.hidden(adversary)), epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """A count up and another one down, each hidden by so many coins; None where there are none."""
        coins = self.hidden(adversary)
        if coins < 1:
            return None
        written = min(coins, MOST_COINS)  # fewer than there are hide less
        pair = shift_pair(binomial_window(written, 0.5)[1])
        return Losses((pair, pair.swapped()))


@dataclass(frozen=True, kw_only=True)
class Decoys(CoinNoise, NoiseMechanism):
    """Distributed binomial noise: fair coins per item, flipped by the users together.

    User i flips c_i coins for every item and adds the heads; the c_i differ by at most one, the first users of the
    roster have the larger ones, and their sum is D. Give epsilon and delta (D is then the smallest number whose coins
    protect enough without those of the insiders and dropouts), or D itself as `coins` (with an epsilon, if the
    guarantee is to be stated there). Variance of a count D'/4 with the D' coins that went in. Fair coins are exact, so
    nothing is lost to a table.
    """

    name: ClassVar[str] = "decoys"

    def made_of(self, needed: int) -> int:
        """So many that `needed` are left without those of insiders and dropouts, who may have had the most."""
        return total_coins(needed, self.n, self.h)

    @property
    def every_user_alike(self) -> bool:
        """Whether all users flip equally many coins."""
        return self.D % self.n == 0

    def made_alike(self) -> Self:
        """With as many coins for every user as the first ones have: nobody protects less, and no place is needed."""
        if self.every_user_alike:
            return self
        return replace(self, delta=None, coins=-(-self.D // self.n) * self.n)

    def as_included(self, places: Sequence[int]) -> Self:
        """With the coins of these users alone, where users have unequal numbers of them."""
        if self.every_user_alike or not len(places):
            return self
        coins = self.coins_of(np.asarray(places))
        return replace(self, users=len(places), dropouts=0, delta=None, coins=coins)

    @cached_property
    def allocation(self) -> Ints:
        """c_i, the coins of the user at place i of the roster; public."""
        each, more = divmod(self.D, self.n)
        return each + (np.arange(self.n) < more).astype(np.int64)

    def coins_of(self, users: NDArray[Any]) -> int:
        """D', the coins per item of these users: distinct places in the roster."""
        chosen = np.asarray(users)
        there = chosen.dtype.kind in "iu" and chosen.ndim == 1 and np.all((chosen >= 0) & (chosen < self.n))
        if not there or np.unique(chosen).size < chosen.size:
            raise ParameterError(f"users must be distinct places in the roster of {self.n}")
        return int(self.allocation[chosen].sum())

    def coins_between(self, included: int) -> tuple[int, int]:
        """The fewest and the most coins that this many users can have."""
        present, (each, more) = self.takes_part(included), divmod(self.D, self.n)
        return each * present + max(0, present + more - self.n), each * present + min(more, present)

    def _without(self, missing: int, included: int, coins: int) -> int:
        """Coins left of `coins` when those of the `missing` included users who have most do not count."""
        each = self.D // self.n
        more = coins - each * included
        return max(0, included - missing) * each + max(0, more - missing)

    def side_by_side(self, copies: int) -> Self | None:
        """As many times the coins: in the order of the places, the first users have the larger numbers again."""
        if self.D * copies > MOST_COINS:
            return None
        return replace(self._same_noise_of_each(copies), delta=None, coins=self.D * copies)

    def honest_channel(self, insiders: int) -> Channel:
        """The first users of the roster have the larger numbers of coins."""
        return Channel(1.0, noise=coin_noise(self.coins_between(self.n - insiders)[0]))

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """One-hot vectors plus the heads of c_i fresh coins in every entry."""
        vectors, flips = one_hot(answers, self.N), self.allocation[users]
        for each in np.unique(flips[flips > 0]):
            rows = np.flatnonzero(flips == each)
            vectors[rows] += heads(int(each), rows.size * self.N, entropy).reshape(rows.size, self.N)
        return vectors

    def hidden(self, adversary: Adversary) -> int:
        """Those left when all expected dropouts had the most, and the insiders the next most."""
        return self._without(self.n - self.unknown(adversary), self.n, self.D)

    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """From the coins that went in (else the fewest possible), without those of the insiders; at this epsilon."""
        unknown = self.left(included)
        coins = self.coins_between(included)[0] if places is None else self.coins_of(np.asarray(places))
        at = self.epsilon if epsilon is None else epsilon
        if at is None:
            raise ParameterError("decoys: made from coins, so give epsilon=; delta is computed")
        left = self._without(included - unknown, included, coins)
        return Guarantee(at, decoys_delta(left, at), Relation.REPLACE_ONE, self.default_adversary)


def check_coins(values: Ints, included: int, fewest: int, most: int) -> Ints:
    """Counts with this many coins per item; refused where impossible, or where the total happens but once in 2^60."""
    items = values.size
    spread = math.sqrt(items * most / 2 * math.log(2 / OVERFLOW_PROBABILITY))  # Hoeffding's inequality
    low = max(0, math.floor(items * fewest / 2 - spread))
    high = min(items * most, math.ceil(items * most / 2 + spread))
    return check_range(values, 0, included + most, included + low, included + high)


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

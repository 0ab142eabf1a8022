"""Binomial noise from fair coins: (epsilon, delta)-private for any data, without a floor.

Every item gets D fair coins, and the number of heads is added to its count: noise of distribution
Bin(D, 1/2). A coin that shows heads is a decoy, a vote that nobody cast. Fair coins are random
bits, so they are sampled exactly and nothing is lost to a table. All users are counted (p = 1), and
sums stay small integers in a small field, which is what the paper chooses sampling for.

`CoinNoise` is the noise itself, whoever flips the coins. In `Decoys` the users flip them together.
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
from faircount.core.validation import check_fraction, check_integer, check_positive
from faircount.mechanisms.base import check_range, set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution, normal_errors
from faircount.mechanisms.secret_shared import (
    OVERFLOW_PROBABILITY,
    NoiseMechanism,
    SharedMechanism,
    one_hot,
)
from faircount.sharing.field import to_signed

# Most fair coins per item: as many as the smallest epsilon and delta need.
MAX_COINS = 10**8

# Heads of more coins than this are normal to four digits, so planning does not compute their
# distribution.
MANY_COINS = 10**5

# The 95% half-width of the heads of at least so many coins is that of a normal distribution, but
# for less than one head: the distribution is discrete.
SOME_COINS = 100


@lru_cache(64)
def coins_delta(coins: int, epsilon: float, releases: int) -> float:
    """Return the delta of all releases when the adversary knows none of these coins."""
    if releases == 1:
        return decoys_delta(coins, epsilon)
    pair = shift_pair(binomial_window(coins, 0.5)[1])
    return compose([[pair, pair.swap()]] * releases, epsilon=epsilon)


@lru_cache(maxsize=64)
def coin_noise(coins: int) -> NoiseDistribution:
    """Return the distribution of the number of heads among this many fair coins."""
    pmf = np.exp(log_binomial(coins, 0.5))
    return NoiseDistribution(0, pmf / pmf.sum())


@dataclass(frozen=True, kw_only=True)
class CoinNoise(SharedMechanism):
    """Noise of fair coins, whoever flips them; given by epsilon and delta or by their number."""

    required_parameters: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    parameter_docs: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss that the number of coins is calibrated for",
        "delta": "probability with which more than epsilon may be lost",
        "coins": "D, the total number of fair coins per item, instead of delta",
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"D": "D"}
    epsilon: float | None = None
    delta: float | None = None
    coins: int | None = None

    def __post_init__(self) -> None:
        is_ambiguous = (self.delta is None) == (self.coins is None)
        if is_ambiguous or (self.delta is not None and self.epsilon is None):
            raise ParameterError(
                f"{self.name}: give epsilon and delta, or else coins, the number of fair coins "
                "per item"
            )
        if self.epsilon is not None:
            set_fields(self, epsilon=check_positive("epsilon", self.epsilon))
        if self.delta is not None:
            set_fields(self, delta=check_fraction("delta", self.delta))
        if self.coins is not None:
            set_fields(self, coins=check_integer("coins", self.coins, least=1, most=MAX_COINS))
        super().__post_init__()

    @abstractmethod
    def total_coins_for(self, needed: int) -> int:
        """Return D such that the default adversary does not know `needed` of the coins."""

    @abstractmethod
    def hidden_coins(self, adversary: Adversary) -> int:
        """Return how many coins per item the adversary does not know; possibly below 1."""

    @abstractmethod
    def coin_range(self, included: int) -> tuple[int, int]:
        """Return the fewest and the most coins per item in a sum of this many users."""

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism with as many coins as the composed releases need."""
        needed = decoys_for_releases(wanted.epsilon, wanted.delta, wanted.releases)
        # With several releases no budget of one release is promised, and D follows from `needed`.
        mechanism = cls(**wanted.population, **(wanted.promised_budget or {"coins": 1}))
        if not wanted.promised_budget:
            mechanism = replace(mechanism, coins=mechanism.total_coins_for(needed))

        def total_delta() -> float:
            return coins_delta(needed, wanted.epsilon, wanted.releases)

        return CalibrationResult(mechanism, total_delta)

    @cached_property
    def D(self) -> int:  # noqa: N802 - the name in the formulas
        """Fair coins per item: of all users together, or of each server."""
        if self.epsilon is None or self.delta is None:
            # `coins` is set in this case, as `__post_init__` has checked.
            return self.coins or 0
        return self.total_coins_for(decoys_needed(self.epsilon, self.delta))

    def coin_count(self, included: int) -> int:
        """Return D', the coins per item in a sum of this many users.

        If users have unequal numbers of coins, D' depends on who they are, which is an error here.
        """
        fewest, most = self.coin_range(included)
        if fewest != most:
            raise ParameterError(
                f"{included} of {self.n} users took part, who have unequal numbers of coins: "
                "use for_included(their places)"
            )
        return fewest

    @property
    def sum_span(self) -> int:
        """Sums from 0 to all users plus all coins."""
        return self.n + self.coin_count(self.n)

    def decode(self, total: Residues, included: int) -> Ints:
        """Return counts plus heads, checked against their possible range."""
        counts = to_signed(self.check_sum(total), self.modulus, 0)
        fewest, most = self.coin_range(included)
        return check_coin_sums(counts, included, fewest, most)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample counts plus heads for the counts of those who take part."""
        counts = self.check_population(population)
        coins = self.coin_count(int(counts.sum()))
        return np.asarray(counts + rng.binomial(coins, 0.5, self.N))

    def channel(self, included: int) -> Channel:
        """Return the channel that counts all holders and adds Bin(D', 1/2)."""
        return Channel(1.0, noise=coin_noise(self.coin_count(included)))

    def expected_errors(self, included: int) -> tuple[float, float]:
        """Return the errors with the average number of coins of this many users."""
        coins = self._average_coins(included)
        if coins > MANY_COINS:
            return normal_errors(coins / 4, self.N, included)
        channel = Channel(1.0, noise=coin_noise(coins)).fitted_to_total(self.N)
        return channel.expected_errors(self.N, included)

    def reaches(self, half_width: float, included: int) -> bool:
        """Return whether the 95% half-width is at most this, quickly where it is far from it."""
        coins = self._average_coins(included)
        # A subclass may bring errors of its own.
        has_these_errors = type(self).expected_errors is CoinNoise.expected_errors
        if has_these_errors and coins >= SOME_COINS:
            normal = normal_errors(coins / 4, self.N, included)[1]
            if normal - 1 / included > half_width:
                return False
        return super().reaches(half_width, included)

    def _average_coins(self, included: int) -> int:
        """Return the average number of coins per item of this many users."""
        fewest, most = self.coin_range(included)
        return min(max(round(self.D * included / self.n), fewest), most)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return the exact delta of the coins that the adversary does not know."""
        return decoys_delta(max(0, self.hidden_coins(adversary)), epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of two counts that move in opposite directions; None without coins."""
        coins = self.hidden_coins(adversary)
        if coins < 1:
            return None
        # More coins than this are not needed; fewer than there are only overstate the loss.
        counted = min(coins, MAX_COINS)
        pair = shift_pair(binomial_window(counted, 0.5)[1])
        return Losses((pair, pair.swap()))


@dataclass(frozen=True, kw_only=True)
class Decoys(CoinNoise, NoiseMechanism):
    """Distributed binomial noise: fair coins per item, flipped by the users together.

    User i flips c_i coins for every item and adds the heads. The c_i sum to D and differ by at most
    one; the first users of the roster have the larger numbers. Give epsilon and delta (D is then
    the smallest number whose coins protect enough without those of the insiders and dropouts), or D
    itself as `coins` (with an epsilon, if the guarantee is to be stated there). With D' coins in
    the sum the variance of a count is D'/4. Fair coins are sampled exactly.

    >>> fc.Decoys(items=3, users=100, epsilon=1.0, delta=1e-6).guarantee().delta <= 1e-6
    True
    """

    name: ClassVar[str] = "decoys"

    def total_coins_for(self, needed: int) -> int:
        """Return D such that `needed` coins remain without those of insiders and dropouts."""
        return coins_to_allocate(needed, self.n, self.h)

    @property
    def identical_for_all_users(self) -> bool:
        """Whether all users flip the same number of coins."""
        return self.D % self.n == 0

    def with_equal_noise(self) -> Self:
        """Return the mechanism that gives all users as many coins as the first ones have."""
        if self.identical_for_all_users:
            return self
        return replace(self, delta=None, coins=-(-self.D // self.n) * self.n)

    def for_included(self, places: Sequence[int]) -> Self:
        """Return the mechanism with the coins of the users at these places only."""
        if self.identical_for_all_users or not len(places):
            return self
        coins = self.coins_of(np.asarray(places))
        return replace(self, users=len(places), dropouts=0, delta=None, coins=coins)

    @cached_property
    def allocation(self) -> Ints:
        """c_i, the public number of coins of the user at place i of the roster."""
        base, extra = divmod(self.D, self.n)
        return base + (np.arange(self.n) < extra).astype(np.int64)

    def coins_of(self, users: NDArray[Any]) -> int:
        """Return D', the coins per item of the users at these distinct places of the roster."""
        places = np.asarray(users)
        is_vector = places.dtype.kind in "iu" and places.ndim == 1
        in_roster = is_vector and np.all((places >= 0) & (places < self.n))
        if not in_roster or np.unique(places).size < places.size:
            raise ParameterError(f"users must be distinct places in the roster of {self.n}")
        return int(self.allocation[places].sum())

    def coin_range(self, included: int) -> tuple[int, int]:
        """Return the fewest and the most coins that this many users can have."""
        users = self.check_included(included)
        base, extra = divmod(self.D, self.n)
        # `extra` users have one coin more than the others: at least users + extra - n of the
        # included ones are among them, and at most all of them.
        fewest = base * users + max(0, users + extra - self.n)
        most = base * users + min(extra, users)
        return fewest, most

    def _coins_without(self, missing: int, included: int, coins: int) -> int:
        """Return what remains of `coins` without the `missing` users who have the most."""
        base = self.D // self.n
        extra = coins - base * included
        return max(0, included - missing) * base + max(0, extra - missing)

    def for_batch(self, copies: int) -> Self | None:
        """Return the mechanism with `copies` times the users and coins.

        The order of places keeps the larger numbers of coins with the first users.
        """
        if self.D * copies > MAX_COINS:
            return None
        return replace(self._with_same_noise(copies), delta=None, coins=self.D * copies)

    def honest_channel(self, insiders: int) -> Channel:
        """Return the channel without the first users, who have the larger numbers of coins."""
        return Channel(1.0, noise=coin_noise(self.coin_range(self.n - insiders)[0]))

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return one-hot vectors plus the heads of c_i fresh coins in every entry."""
        vectors = one_hot(answers, self.N)
        allocation = self.allocation[users]
        # Users with equally many coins share one draw, in ascending order of their number of coins.
        for coins in np.unique(allocation[allocation > 0]):
            rows = np.flatnonzero(allocation == coins)
            drawn = count_heads(int(coins), rows.size * self.N, entropy)
            vectors[rows] += drawn.reshape(rows.size, self.N)
        return vectors

    def hidden_coins(self, adversary: Adversary) -> int:
        """Return the coins of all users but the dropouts and insiders, who have the most."""
        return self._coins_without(self.n - self.unknown_users(adversary), self.n, self.D)

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the guarantee of the coins that were flipped, without those of the insiders.

        Without `places` the included users are assumed to have the fewest possible coins.
        """
        unknown = self.count_honest(included)
        if epsilon is None:
            epsilon = self.epsilon
        if epsilon is None:
            raise ParameterError("decoys: made from coins, so give epsilon=; delta is computed")
        coins = self.coin_range(included)[0]
        if places is not None:
            coins = self.coins_of(np.asarray(places))
        hidden = self._coins_without(included - unknown, included, coins)
        delta = decoys_delta(hidden, epsilon)
        return Guarantee(epsilon, delta, Relation.REPLACE_ONE, self.default_adversary)


def check_coin_sums(values: Ints, included: int, fewest: int, most: int) -> Ints:
    """Return counts with this many coins per item, or raise if the users cannot produce them.

    An honest total is refused with probability at most 2^-60.
    """
    items = values.size
    # Hoeffding's inequality for the heads among all coins of all items.
    spread = math.sqrt(items * most / 2 * math.log(2 / OVERFLOW_PROBABILITY))
    low = max(0, math.floor(items * fewest / 2 - spread))
    high = min(items * most, math.ceil(items * most / 2 + spread))
    return check_range(values, 0, included + most, included + low, included + high)


def coins_to_allocate(needed: int, users: int, counted_on: int) -> int:
    """Return the smallest D that leaves `needed` coins when only `counted_on` users remain.

    The users who are gone are those with the most coins.
    """
    # With h = counted_on and needed = b h + r: h users keep b coins each and r of them one more, so
    # if r > 0 all n - h missing users had b + 1.
    base, extra = divmod(needed, counted_on)
    return base * users + (extra + users - counted_on if extra else 0)


def count_heads(coins: int, size: int, entropy: Entropy) -> Ints:
    """Draw `size` times from Bin(coins, 1/2) by counting the ones among `coins` random bits."""
    row = -(-coins // 8)
    bits = entropy.words(size * row, np.uint8).reshape(size, row)
    # The last byte of a row has more bits than are needed; the upper ones are discarded.
    bits[:, -1] &= np.uint8(0xFF >> (8 * row - coins))
    return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))

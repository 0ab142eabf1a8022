"""Sampling mechanisms: DPCS (the paper's Algorithm 1) and DPDS (Algorithm 2).

Every record is counted with probability p and nothing is added. A user is hidden among the other
holders of the same item, so the guarantee needs a *floor*: a number k of other holders that every
item is known to have, without looking at the answers. Of these, t insiders and d dropouts may not
protect anybody, and delta follows from the k - t - d others. That is exact without insiders and
dropouts, and otherwise an upper bound, because each of them is taken from both items that a
neighbouring data set changes, although nobody holds two. Without a floor (k = 0) delta is p at
every epsilon.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting import exact
from faircount.accounting.composition import (
    Losses,
    compose,
    sampling_pair,
    sampling_probability_for_releases,
)
from faircount.accounting.conditions import Condition, floor_condition
from faircount.accounting.divergence import LossPair, log_binomial
from faircount.accounting.guarantee import COLLECTOR, Adversary, Guarantee, Relation, insiders
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import check_counts, check_epsilon, check_integer, check_probability
from faircount.mechanisms.base import Collected, FrequencyMechanism, check_range, set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.secret_shared import SharedMechanism, one_hot
from faircount.mechanisms.worst_pair import Marginal, WorstPair


@lru_cache(64)
def _total_delta(hidden: int, p: float, epsilon: float, releases: int) -> float:
    """Return the delta of all releases when `hidden` other holders protect in each of them."""
    if releases == 1:
        return exact.sampling_delta(hidden, p, epsilon)
    pair = sampling_pair(hidden, p)
    return compose([[pair, pair.swap()]] * releases, epsilon=epsilon)


def count_hidden_holders(wanted: Requirements) -> int:
    """Return k - t - d, the other holders who neither collude nor drop out; at least one."""
    largest = largest_floor(wanted.users, wanted.items)
    if wanted.floor > largest:
        raise RefusedError(
            f"{wanted.users} users cannot give each of {wanted.items} items {wanted.floor} other "
            f"holders: {largest} at most"
        )
    lost = wanted.insiders + wanted.dropouts
    if wanted.floor - lost < 1:
        # The floor in the message is for one release, whose budget is an equal part of the total.
        raise floor_error(
            wanted.epsilon / wanted.releases, wanted.delta / wanted.releases, lost, largest
        )
    return wanted.floor - lost


def largest_floor(users: int, items: int) -> int:
    """Return the largest floor that so many users can give: all but one, dealt out evenly."""
    return (users - 1) // items


def required_floor(epsilon: float, delta: float, lost: int) -> int:
    """Return the smallest floor at which the paper's p = 1 - e^-epsilon meets the budget.

    `lost` of the other holders may collude or drop out.
    """
    return exact.sampling_floor(-math.expm1(-epsilon), epsilon, delta) + lost


def floor_error(
    epsilon: float, delta: float, lost: int, largest: int | None = None
) -> RefusedError:
    """Return the error for a floor that leaves nobody to hide among.

    With no other holder, p would have to be delta: a survey that counts one user in a million.
    `largest` is the largest floor that the users can give, where their number is known; the error
    recommends none beyond it.
    """
    needed = required_floor(epsilon, delta, lost)
    needs = f"needs a floor of {needed} holders per item"
    if largest is None or needed <= largest:
        return RefusedError(
            f"{needs} (--floor {needed} for the paper's p, less for a smaller p), known without "
            "looking at the answers"
        )
    if lost < largest:
        return RefusedError(
            f"{needs} for the paper's p, and these users can give each item at most {largest} "
            f"(--floor {largest} takes a smaller p, if that floor is known without looking at the "
            "answers)"
        )
    return RefusedError(
        f"{needs}, and these users can give each item at most {largest}: ask more users, offer "
        "fewer items, or allow fewer to drop out or collude"
    )


@dataclass(frozen=True, kw_only=True)
class Sampling(FrequencyMechanism):
    """Common base of DPCS and DPDS: the coin, the distribution of the sum, and its exact privacy.

    Give `p`, or give `epsilon` and `delta`, from which the largest p that meets them at the floor
    is computed. `floor` counts the holders that every item is known to have BESIDES the user in
    question. `insiders` and `dropouts` are subtracted from it when p is calibrated and in every
    guarantee against insiders, which is the weakest one.
    """

    required_parameters: ClassVar[tuple[str, ...]] = ("p", "epsilon")
    parameter_docs: ClassVar[dict[str, str]] = {
        "p": "probability with which a user is counted; found from epsilon and delta if not given",
        "epsilon": "privacy loss of the promise, or from which p is computed",
        "delta": "probability with which more than epsilon may be lost",
        "floor": "other holders that every item is known to have, without looking at the answers",
        "insiders": "colluding participants, subtracted from the floor",
        "dropouts": "dropout allowance: users who may be missing, subtracted from the floor",
    }
    parameter_attributes: ClassVar[dict[str, str]] = {
        "p": "p",
        "floor": "floor",
        "insiders": "insiders",
        "dropouts": "dropouts",
    }

    p: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    floor: int = 0
    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            floor=check_integer("floor", self.floor),
            insiders=check_integer("insiders", self.insiders),
            dropouts=check_integer("dropouts", self.dropouts),
        )
        if self.epsilon is not None:
            set_fields(self, epsilon=check_epsilon(self.epsilon))
        if self.delta is not None:
            set_fields(self, delta=check_probability("delta", self.delta))
        # A floor that cannot be true would make every guarantee below an empty one.
        if self.users is not None and self.floor and self.users <= self.N * self.floor:
            raise RefusedError(
                f"{self.users} users cannot give each of {self.N} items {self.floor} holders "
                f"besides any one user: the floor must be below {self.users / self.N:.4g}"
            )
        set_fields(self, p=self._find_p() if self.p is None else check_probability("p", self.p))

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism with the largest p that the floor allows."""
        # p for all releases together: the coins of one are independent of those of the others.
        hidden = count_hidden_holders(wanted)
        p = sampling_probability_for_releases(hidden, wanted.epsilon, wanted.delta, wanted.releases)
        mechanism = cls(**wanted.population, **wanted.promised_budget, p=p, floor=wanted.floor)

        def total_delta() -> float:
            return _total_delta(hidden, p, wanted.epsilon, wanted.releases)

        return CalibrationResult(mechanism, total_delta)

    def _find_p(self) -> float:
        """Return the largest p that meets epsilon and delta at the floor."""
        if self.epsilon is None or self.delta is None:
            raise ParameterError(
                f"{self.name}: give p, or epsilon and delta together with a floor to find p"
            )
        hidden = self.hidden_holders(insiders(self.insiders))
        if hidden < 1:
            largest = None if self.users is None else largest_floor(self.users, self.N)
            raise floor_error(self.epsilon, self.delta, self.insiders + self.dropouts, largest)
        return exact.sampling_probability(hidden, self.epsilon, self.delta)

    @property
    def rate(self) -> float:
        """Probability that a record is counted."""
        # `p` is None only until `__post_init__` has run; the 0.0 is for the type checker.
        return self.p or 0.0

    @property
    def participants(self) -> Adversary:
        """The insiders that p was calibrated for."""
        return insiders(self.insiders)

    @property
    def sum_span(self) -> int:
        """The sum of an item is a sum of n bits."""
        return self.n

    @cached_property
    def coin(self) -> DrawTable:
        """The user's Bernoulli(p) coin, exact to 128 bits."""
        # From integers, so that the coin has exactly the probability that the guarantee assumes.
        return DrawTable.coin(self.rate)

    def channel(self, included: int) -> Channel:
        """Return the channel of s_j = Bin(Pi_j, p)."""
        return Channel(self.rate)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample the revealed sums for a population given as counts, in O(N)."""
        holders = check_counts(population, items=self.N)
        hit = self.channel(int(holders.sum())).hit
        # For simulations only: a survey draws every user's own coin (`respond`).
        return np.asarray(rng.binomial(holders, hit), dtype=np.int64)

    def hidden_holders(self, adversary: Adversary) -> int:
        """Return k - t - d: other holders whose coins the adversary does not know.

        Nobody hides a user from a collector, who sees the user's own report.
        """
        if adversary == COLLECTOR:
            return 0
        # The worst case: all of them hold the same item as the user in question.
        return max(0, self.floor - adversary.insiders - self.dropouts)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return the exact delta, or an upper bound: with insiders or dropouts, and for two items.

        Each insider and each dropout holds one item, but is counted as lost to both compared items.
        One insider raises delta by a tenth at most, half of a large floor several times. Two items
        are enumerated up to 400 users.
        """
        hidden = self.hidden_holders(adversary)
        users = self._enumerated_users(adversary)
        if users and relation is Relation.REPLACE_ONE:
            return exact.sampling_delta_two_items(users, hidden, self.rate, epsilon)
        return exact.sampling_delta(hidden, self.rate, epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of two sampled counts, of which one rises and one falls."""
        if adversary == COLLECTOR:
            return None
        pair = sampling_pair(self.hidden_holders(adversary), self.rate)
        return Losses((pair, pair.swap()))

    def _enumerated_users(self, adversary: Adversary) -> int:
        """Return the honest users whose splits over two items are enumerated; 0 for none.

        With exactly two items a user who does not hold one holds the other, so that not both items
        can be at the floor at once: enumerating all splits gives a smaller exact delta.
        """
        hidden = self.hidden_holders(adversary)
        honest = (self.users or 0) - adversary.insiders - self.dropouts
        if self.N != 2 or not hidden:
            return 0
        # Beyond the limit the enumeration would take too long, and the bound is nearly as good.
        return honest if 2 * hidden < honest <= exact.ENUMERATED_USERS else 0

    def worst_holders(self, adversary: Adversary, epsilon: float) -> tuple[int, int]:
        """Return the numbers of other holders of two items at which delta is largest."""
        hidden = self.hidden_holders(adversary)
        users = self._enumerated_users(adversary)
        if users:
            return exact.worst_two_items(users, hidden, self.rate, epsilon)
        return hidden, hidden

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return (k+1, k) against (k, k+1) holders of the first two items.

        Holders of further items would not change these two sums. With two items in all, the
        guarantee covers data sets of all users, so the pair is the worst split of them. Insiders,
        whose coins the adversary knows, are not among the k.
        """
        against = adversary or self.default_adversary
        holders = self.worst_holders(against, epsilon)
        small = self._with_two_items()
        known = np.zeros(against.insiders, dtype=np.int64)
        bystanders = small._bystanders(known.size + sum(holders))
        others = np.concatenate([known, np.repeat([0, 1], holders), bystanders])
        hit = small.channel(1).hit

        # Without the last user's answer the two sums are independent binomials; the answer adds one
        # trial to the first sum in one data set and to the second sum in the other.
        marginals = []
        for count, added in zip(holders, ((1, 0), (0, 1)), strict=True):
            logs = np.full((2, count + 2), -np.inf)
            for row, more in zip(logs, added, strict=True):
                row[: count + more + 1] = log_binomial(count + more, hit)
            marginals.append(Marginal(0, LossPair(*logs)))
        mechanism = replace(small, users=others.size + 1)
        first = np.append(others, 0)
        second = np.append(others, 1)
        return WorstPair(mechanism, first, second, tuple(marginals), self, against)

    def _with_two_items(self) -> Self:
        """Return the mechanism with the same coins for the first two items and any data."""
        return replace(self, users=None, floor=0, items=self.domain.labels[:2])

    def _bystanders(self, others: int) -> Ints:
        """Return answers outside the two compared items, where a survey needs more users."""
        return np.empty(0, dtype=np.int64)

    def for_batch(self, copies: int) -> Self:
        """Return the mechanism for more users: a user's coin depends on p only."""
        return replace(self, users=self.n * copies)

    def condition(self, adversary: Adversary) -> Condition | None:
        """Return the floor as an assumption; with floor 0 nothing is assumed."""
        if not self.floor or adversary == COLLECTOR:
            return None
        left_out = self._chooses_dropouts(adversary)
        return floor_condition(self.floor, adversary.insiders, self.dropouts, left_out=left_out)

    def _chooses_dropouts(self, adversary: Adversary) -> bool:
        """Whether this adversary may choose which users are missing from the sum."""
        return False

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """The insiders, who also read the result, then the reader."""
        return (insiders(self.insiders), *super().adversaries)

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the weakest guarantee when only `included` users are in the sum.

        All missing users might have been holders of the same item, so the floor loses them all.
        """
        missing = self.n - check_integer("included", included, least=1, most=self.n)
        if epsilon is None:
            epsilon = 1.0 if self.epsilon is None else self.epsilon
        return replace(self, dropouts=missing).guarantees(epsilon=epsilon)[0]

    def stated_guarantees(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """Return the guarantees; users missing beyond the allowance lower the floor."""
        if included is None or self.users is None or self.users - included <= self.dropouts:
            return super().stated_guarantees()
        return replace(self, dropouts=self.users - included).stated_guarantees()


@dataclass(frozen=True, kw_only=True)
class DPCS(Sampling):
    """Centralized sampling, Algorithm 1: a TRUSTED server sees all answers and samples them.

    >>> fc.DPCS(items=30, users=1000, p=0.3934, floor=23).guarantee(epsilon=0.5).delta < 0.003
    True
    """

    name: ClassVar[str] = "dpcs"
    collected: ClassVar[Collected] = Collected.ANSWERS

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """Return the server's sample: the item of every record, or -1 if it is not sampled."""
        positions = self.positions(answers)
        return np.where(self.coin.draw(positions.size, entropy) == 1, positions, -1)

    def total(self, responses: NDArray[np.int64]) -> Ints:
        """Count the sampled records of every item."""
        sampled = np.asarray(responses)
        is_vector = sampled.ndim == 1 and sampled.dtype.kind in "iu"
        if not is_vector or np.any((sampled < -1) | (sampled >= self.N)):
            raise AnswerError(
                f"responses must be positions from 0 to {self.N - 1}, or -1, one per record"
            )
        return np.bincount(sampled[sampled >= 0], minlength=self.N).astype(np.int64)

    def adversary_view(
        self, responses: Ints, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the sampled counts of the first two items, without those of insiders."""
        sampled = responses.reshape(-1, copies)[adversary.insiders :]
        return np.stack([(sampled == item).sum(axis=0) for item in (0, 1)], axis=1)

    def decode(self, total: NDArray[np.int64], included: int) -> Ints:
        """Return the counts; no item and no total may exceed the number of users."""
        users = check_integer("included", included, least=1)
        counted = np.asarray(total)
        if counted.shape != (self.N,) or counted.dtype.kind not in "iu":
            raise AnswerError(f"sampled counts must be {self.N} whole numbers, one per item")
        return check_range(counted.astype(np.int64), 0, users, 0, users)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return delta as for all sampling, but 1 against the collector: the server itself."""
        if adversary == COLLECTOR:
            return 1.0
        return super().delta_at(epsilon, adversary, relation)


@dataclass(frozen=True, kw_only=True)
class DPDS(Sampling, SharedMechanism):
    """Distributed sampling, Algorithm 2: users flip a coin and share their item, or nothing.

    >>> fc.DPDS(items=30, users=1000, p=0.3934, floor=23).guarantee(epsilon=0.5).delta < 0.003
    True
    """

    name: ClassVar[str] = "dpds"

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return one-hot vectors with probability p, else zero vectors (lines 2 to 7)."""
        return one_hot(answers, self.N) * self.coin.draw(users.size, entropy)[:, None]

    def decode(self, total: Residues, included: int) -> Ints:
        """Return the residues as counts, each and in total at most the number of users."""
        users = self.check_included(included)
        return check_range(self.check_sum(total).astype(np.int64), 0, users, 0, users)

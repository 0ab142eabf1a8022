"""Sampling: DPCS (Algorithm 1) and DPDS (Algorithm 2).

Every record is counted with probability p. Nothing is added, so the privacy comes from the crowd: it needs a *floor*, a
number k of other holders that every item is known to have. Without a floor (k = 0) delta is p at any epsilon.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting import exact
from faircount.accounting.composition import Losses, compose, sampling_pair, sampling_probability_for_releases
from faircount.accounting.divergence import LossPair, log_binomial
from faircount.accounting.guarantee import COLLECTOR, Adversary, Guarantee, Relation, insiders
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import counts as checked_counts
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import integer, probability
from faircount.mechanisms.base import Collected, FrequencyMechanism, check_range, keep
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.secret_shared import SharedMechanism, one_hot
from faircount.mechanisms.worst_pair import Part, WorstPair


@lru_cache(64)
def _total_delta(crowd: int, p: float, epsilon: float, releases: int) -> float:
    """Delta of all releases together with so many other holders in each."""
    if releases == 1:
        return exact.sampling_delta(crowd, p, epsilon)
    pair = sampling_pair(crowd, p)
    return compose([[pair, pair.swapped()]] * releases, epsilon=epsilon)


def hidden_by_floor(wanted: Requirements) -> int:
    """k - t - d: other holders of every item who neither collude nor drop out; refused where none are left."""
    crowd, room = wanted.floor - wanted.insiders - wanted.dropouts, (wanted.users - 1) // wanted.items
    if wanted.floor > room:
        each = f"each of {wanted.items} items {wanted.floor} other holders"
        raise RefusedError(f"{wanted.users} users cannot give {each}: {room} at most")
    if crowd < 1:
        lost = wanted.insiders + wanted.dropouts
        raise no_crowd(wanted.epsilon / wanted.releases, wanted.delta / wanted.releases, lost)
    return crowd


def floor_needed(epsilon: float, delta: float, lost: int) -> int:
    """The floor at which the paper's own p = 1 - e^-epsilon meets the budget, `lost` holders of an item aside."""
    return exact.sampling_floor(-math.expm1(-epsilon), epsilon, delta) + lost


def no_crowd(epsilon: float, delta: float, lost: int) -> RefusedError:
    """Why nothing can be calibrated without a crowd, where `lost` holders of an item may collude or drop out.

    Without one, p would be delta: a survey that counts one user in a million.
    """
    needed = floor_needed(epsilon, delta, lost)
    return RefusedError(
        f"needs a floor of {needed} holders per item (--floor {needed} for the paper's p, less for a smaller p), "
        "known without looking at the answers"
    )


@dataclass(frozen=True, kw_only=True)
class Sampling(FrequencyMechanism):
    """What DPCS and DPDS share: the coin, the law of the sum, and its exact privacy.

    Give `p`, or give `epsilon` and `delta` and the largest p that meets them at the floor is found. `floor` counts the
    holders that every item is known to have BESIDES the user in question. `insiders` and `dropouts` are subtracted from
    it when p is calibrated and in every guarantee against insiders, which is the weakest.
    """

    needs: ClassVar[tuple[str, ...]] = ("p", "epsilon")
    means: ClassVar[dict[str, str]] = {
        "p": "probability with which a user is counted; found from epsilon and delta if not given",
        "epsilon": "privacy loss of the promise, or that p is found from",
        "delta": "probability with which more than epsilon may be lost",
        "floor": "other holders that every item has for sure, known without looking at the answers",
        "insiders": "colluding participants, taken off the floor",
        "dropouts": "users who may vanish, taken off the floor",
    }
    run_with: ClassVar[dict[str, str]] = {name: name for name in ("p", "floor", "insiders", "dropouts")}

    p: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    floor: int = 0
    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, **{name: integer(name, getattr(self, name)) for name in ("floor", "insiders", "dropouts")})
        if self.epsilon is not None:
            keep(self, epsilon=checked_epsilon(self.epsilon))
        if self.delta is not None:
            keep(self, delta=probability("delta", self.delta))
        if self.users is not None and self.floor and self.users <= self.N * self.floor:
            raise RefusedError(
                f"{self.users} users cannot give each of {self.N} items {self.floor} holders besides any one user: "
                f"the floor must be below {self.users / self.N:.4g}"
            )
        keep(self, p=self._calibrated() if self.p is None else probability("p", self.p))

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """The largest p that the floor allows."""
        crowd = hidden_by_floor(wanted)
        p = sampling_probability_for_releases(crowd, wanted.epsilon, wanted.delta, wanted.releases)
        made = cls(**wanted.crowd, **wanted.promise, p=p, floor=wanted.floor)
        return Calibrated(made, lambda: _total_delta(crowd, p, wanted.epsilon, wanted.releases))

    def _calibrated(self) -> float:
        if self.epsilon is None or self.delta is None:
            raise ParameterError(f"{self.name}: give p, or epsilon and delta together with a floor to find p")
        crowd = self.crowd(insiders(self.insiders))
        if crowd < 1:
            raise no_crowd(self.epsilon, self.delta, self.insiders + self.dropouts)
        return exact.sampling_probability(crowd, self.epsilon, self.delta)

    @property
    def rate(self) -> float:
        """Probability that a record is counted."""
        return self.p or 0.0  # never zero: __post_init__ saw to it

    @property
    def participants(self) -> Adversary:
        """The insiders that p was calibrated for."""
        return insiders(self.insiders)

    @property
    def reach(self) -> int:
        """A sum of n bits."""
        return self.n

    @cached_property
    def coin(self) -> DrawTable:
        """The user's Bernoulli(p), exact to 128 bits."""
        return DrawTable.coin(self.rate)

    def channel(self, included: int) -> Channel:
        """s_j = Bin(Pi_j, p)."""
        return Channel(self.rate)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """The opened sum for a population of counts, O(N)."""
        holders = checked_counts(population, items=self.N)
        return np.asarray(rng.binomial(holders, self.channel(int(holders.sum())).hit), dtype=np.int64)

    def crowd(self, adversary: Adversary) -> int:
        """Holders of an item that the adversary knows nothing about and that stay to the end: k - t - d.

        Nobody hides the user from whoever sees its own report.
        """
        return 0 if adversary == COLLECTOR else max(0, self.floor - adversary.insiders - self.dropouts)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact for three or more items; for two, exact up to 400 users and an upper bound above."""
        k, users = self.crowd(adversary), self._enumerated(adversary)
        if users and relation is Relation.REPLACE_ONE:
            return exact.sampling_delta_two_items(users, k, self.rate, epsilon)
        return exact.sampling_delta(k, self.rate, epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """One sampled count up and another one down."""
        if adversary == COLLECTOR:
            return None
        pair = sampling_pair(self.crowd(adversary), self.rate)
        return Losses((pair, pair.swapped()))

    def _enumerated(self, adversary: Adversary) -> int:
        """With two items: users (neither insiders nor dropouts) whose every split is compared; 0 where none is."""
        k, left = self.crowd(adversary), (self.users or 0) - adversary.insiders - self.dropouts
        return left if self.N == 2 and k and 2 * k < left <= exact.ENUMERATED_USERS else 0

    def worst_crowds(self, adversary: Adversary, epsilon: float) -> tuple[int, int]:
        """Numbers of other holders of two items at which a user who changes between them is hidden least."""
        k, users = self.crowd(adversary), self._enumerated(adversary)
        return exact.worst_two_items(users, k, self.rate, epsilon) if users else (k, k)

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """(k+1, k) against (k, k+1) holders; users of other items would change nothing in these two sums.

        With two items alone all users hold one or the other, and the claim may speak of such data sets only.
        """
        crowds = self.worst_crowds(self.default_adversary, epsilon)
        small = self._with_two_items()
        others = np.concatenate([np.repeat([0, 1], crowds), small._bystanders(sum(crowds))])
        hit = small.channel(1).hit
        law = [
            Part(0, LossPair(*(_padded(log_binomial(crowd + more, hit), crowd + 2) for more in worlds)))
            for crowd, worlds in zip(crowds, ((1, 0), (0, 1)), strict=True)
        ]
        made = replace(small, users=others.size + 1)
        return WorstPair(made, np.append(others, 0), np.append(others, 1), tuple(law), self)

    def _with_two_items(self) -> Self:
        """The same coins, for any data and the first two items only."""
        return replace(self, users=None, floor=0, items=self.domain.labels[:2])

    def _bystanders(self, others: int) -> Ints:
        """Holders of another item than the two that are compared, where a survey needs more users."""
        return np.empty(0, dtype=np.int64)

    def side_by_side(self, copies: int) -> Self:
        """A user's coin depends on p alone."""
        return replace(self, users=self.n * copies)

    def condition(self, adversary: Adversary) -> str | None:
        """The floor, in words; with floor 0 nothing is assumed."""
        if not self.floor or adversary == COLLECTOR:
            return None
        lost = [f"{adversary.insiders} may collude"] * (adversary.insiders > 0)
        lost += [f"{self.dropouts} {self._leaving(adversary)}"] * (self.dropouts > 0)
        aside = f" (of whom {' and '.join(lost)})" if lost else ""
        return f"every item has at least {self.floor} holders besides the user in question{aside}"

    def _leaving(self, adversary: Adversary) -> str:
        """How `dropouts` users can come to be missing from the sum."""
        return "may drop out"

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Whoever takes part also reads the result, so insiders come first."""
        return (insiders(self.insiders), *super().adversaries)

    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """The weakest guarantee left when only `included` users are in the sum: the floor loses all the others."""
        gone = self.n - integer("included", included, least=1, most=self.n)
        promised = 1.0 if self.epsilon is None else self.epsilon
        return replace(self, dropouts=gone).guarantees(epsilon=promised if epsilon is None else epsilon)[0]

    def stated(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """As for all; if more users are missing than allowed for, the floor loses them."""
        if included is None or self.users is None or self.users - included <= self.dropouts:
            return super().stated()
        return replace(self, dropouts=self.users - included).stated()


def _padded(log_pmf: Floats, size: int) -> Floats:
    return np.append(log_pmf, np.full(size - log_pmf.size, -np.inf))


@dataclass(frozen=True, kw_only=True)
class DPCS(Sampling):
    """Centralized sampling, Algorithm 1: a TRUSTED server sees all answers and samples among them."""

    name: ClassVar[str] = "dpcs"
    collected: ClassVar[Collected] = Collected.ANSWERS

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """The server's sample: position of each record's item, -1 for a record not sampled."""
        positions = self.positions(answers)
        return np.where(self.coin.draw(positions.size, entropy) == 1, positions, -1)

    def total(self, responses: NDArray[np.int64]) -> Ints:
        """Sampled count of every item."""
        sampled = np.asarray(responses)
        if sampled.ndim != 1 or sampled.dtype.kind not in "iu" or np.any((sampled < -1) | (sampled >= self.N)):
            raise AnswerError(f"responses must be positions from 0 to {self.N - 1}, or -1, one per record")
        return np.bincount(sampled[sampled >= 0], minlength=self.N).astype(np.int64)

    def seen(self, responses: Ints, copies: int, insiders: int) -> Ints:
        """How often the first two items were sampled."""
        sampled = responses.reshape(-1, copies)
        return np.stack([(sampled == item).sum(axis=0) for item in (0, 1)], axis=1)

    def decode(self, total: NDArray[np.int64], included: int) -> Ints:
        """The counts, checked: no item and no total above the number of users."""
        present, counted = integer("included", included, least=1), np.asarray(total)
        if counted.shape != (self.N,) or counted.dtype.kind not in "iu":
            raise AnswerError(f"sampled counts must be {self.N} whole numbers, one per item")
        return check_range(counted.astype(np.int64), 0, present, 0, present)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """As for all sampling; whoever sees a record itself, as the trusted server does, knows the answer."""
        return 1.0 if adversary == COLLECTOR else super().delta_at(epsilon, adversary, relation)


@dataclass(frozen=True, kw_only=True)
class DPDS(Sampling, SharedMechanism):
    """Distributed sampling, Algorithm 2: every user flips its own coin and shares its item, or nothing, over F_q."""

    name: ClassVar[str] = "dpds"

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Each user's one-hot vector with probability p, the zero vector otherwise (Algorithm 2, lines 2 to 7)."""
        return one_hot(answers, self.N) * self.coin.draw(users.size, entropy)[:, None]

    def decode(self, total: Residues, included: int) -> Ints:
        """The residues as counts: each at most n', and together at most n' (every user holds one item)."""
        present = self.takes_part(included)
        return check_range(self.opened(total).astype(np.int64), 0, present, 0, present)

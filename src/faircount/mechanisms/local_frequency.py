"""Local randomizers for frequencies: GRR (Kairouz et al. 2016) and OUE (Wang et al. 2017), as in Fig. 5.

No shares and no helpers: each user sends one noisy report, which anybody may see. That costs accuracy; the product
keeps them to compare with, and for the weighted aggregation of Section III-B.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair, largest_within
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError
from faircount.core.validation import counts as checked_counts
from faircount.core.validation import integer
from faircount.mechanisms.base import FrequencyMechanism, check_range
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.exact_draws import ONE, flips
from faircount.mechanisms.local import LocalMechanism, Window, WindowMechanism, exp_below, logs
from faircount.mechanisms.worst_pair import Part, WorstPair

Bits = NDArray[np.uint8]
_HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class LocalFrequency(LocalMechanism, FrequencyMechanism):
    """What both have in common: an answer is a position in the item list, an aggregate one count per item."""

    run_with: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    def positions(self, answers: NDArray[Any], size: int | None = None) -> Ints:
        """Encoded answers, checked; reports do not depend on how many users there are, so `users` may be left out."""
        return super().positions(answers, size or self.users or max(1, np.size(answers)))

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """Reports of the mechanism's own law compose exactly; one report needs no delta."""
        each = wanted.epsilon
        if wanted.releases > 1:
            each = _epsilon_each(cls, wanted.items, wanted.epsilon, wanted.delta, wanted.releases)
        made = cls(items=wanted.items, users=wanted.users, epsilon=each)
        return Calibrated(made, lambda: made.composed(wanted.releases, epsilon=wanted.epsilon))

    def opened(self, total: NDArray[Any], included: int, low: int, high: int) -> Ints:
        """One count per item within [0, included], adding up to a number in [low, high]."""
        if np.shape(total) != (self.N,) or np.asarray(total).dtype.kind not in "iu":
            raise AnswerError(f"report counts must be {self.N} whole numbers, one per item")
        return check_range(np.asarray(total, dtype=np.int64), 0, integer("included", included, least=1), low, high)


@lru_cache(64)
def _epsilon_each(kind: type[LocalFrequency], items: int, epsilon: float, delta: float, releases: int) -> float:
    """The largest epsilon of each report; a report for a smaller one could be made of it, so delta rises with it."""

    def composed(each: float) -> float:
        return kind(items=items, epsilon=each).composed(releases, epsilon=epsilon)

    return largest_within(composed, delta, 2 * epsilon + 8 + log(items))


@dataclass(frozen=True, kw_only=True)
class GRR(WindowMechanism, LocalFrequency):
    """Generalized randomized response: the true item with e^epsilon / (e^epsilon + N - 1), else another one."""

    name: ClassVar[str] = "grr"

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """One user with the first item, or with the second; all other items' reports say nothing."""
        own, other = float(self.window.own), float(self.window.other)
        rest = max(0.0, 1 - own - other)
        law = Part(0, LossPair(logs(own, other, rest), logs(other, own, rest)))
        return WorstPair(replace(self, users=1), np.array([0]), np.array([1]), (law,), self)

    def seen(self, responses: Ints, copies: int, insiders: int) -> Ints:
        """The reported item: the first, the second, or another one."""
        return np.minimum(responses, 2).reshape(copies, 1)

    @cached_property
    def window(self) -> Window:
        """The exact law of a report: the user's own item out of N."""
        return Window(self.N, 1, self.epsilon)

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """Reported position of each user."""
        return self.window.draw(self.positions(answers), entropy)

    def total(self, responses: NDArray[Any]) -> Ints:
        """How often each item was reported."""
        return np.bincount(self.reported_cells(responses), minlength=self.N).astype(np.int64)

    def decode(self, total: NDArray[Any], included: int) -> Ints:
        """The counts, checked: every user reported exactly one item."""
        return self.opened(total, included, included, included)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Report counts for a population of counts, O(N): a report is the true item, or uniform over ALL items."""
        holders = checked_counts(population, items=self.N)
        informed = rng.binomial(holders, float(self.window.excess))
        uniform = rng.multinomial(int(holders.sum() - informed.sum()), np.full(self.N, 1 / self.N))
        return np.asarray(informed + uniform, dtype=np.int64)

    def channel(self, included: int) -> Channel:
        """s_j = Bin(Pi_j, e^epsilon / (e^epsilon + N - 1)) + Bin(n - Pi_j, 1 / (e^epsilon + N - 1)), dependent."""
        return Channel(float(self.window.own), float(self.window.other), independent=False)


@dataclass(frozen=True, kw_only=True)
class OUE(LocalFrequency):
    """Optimized unary encoding: one bit per item; the own one is a fair coin, any other 1 / (e^epsilon + 1)."""

    name: ClassVar[str] = "oue"

    @property
    def response_bits(self) -> int:
        """One bit per item."""
        return self.N

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """One user with the first item, or with the second; all other items' bits say nothing."""
        own, other = logs(0.5, 0.5), logs(1 - float(self.miss), float(self.miss))
        law = Part(0, LossPair(own, other)), Part(0, LossPair(other, own))
        return WorstPair(replace(self, users=1), np.array([0]), np.array([1]), law, self)

    def seen(self, responses: Bits, copies: int, insiders: int) -> Ints:
        """The bits of the first two items."""
        return responses[:, :2].astype(np.int64)

    @cached_property
    def heads(self) -> int:
        """Probability over 2^128 that another item's bit is set; rounded UP, so (1-q)/q is at most e^epsilon."""
        return ceil(ONE / (exp_below(self.epsilon) + 1))

    @cached_property
    def miss(self) -> Fraction:
        """The same as a number, exactly."""
        return Fraction(self.heads, ONE)

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Bits:
        """One row of N bits for each user."""
        positions = self.positions(answers)
        bits = flips(self.heads, positions.size * self.N, entropy).view(np.uint8).reshape(-1, self.N)
        bits[np.arange(positions.size), positions] = entropy.words(positions.size, np.uint8) & 1
        return bits

    def total(self, responses: NDArray[Any]) -> Ints:
        """How often each item's bit was set."""
        bits = np.asarray(responses)
        if bits.ndim != 2 or bits.shape[0] == 0 or bits.shape[1] != self.N or bits.dtype.kind not in "biu":
            raise AnswerError(f"reports must be rows of {self.N} bits, one row per user")
        if int(bits.min()) < 0 or int(bits.max()) > 1:
            raise AnswerError("reports must consist of zeros and ones")
        return _column_sums(np.ascontiguousarray(bits, dtype=np.uint8))

    def decode(self, total: NDArray[Any], included: int) -> Ints:
        """The counts, checked: no item above the number of users."""
        return self.opened(total, included, 0, included * self.N)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Report counts for a population of counts, O(N)."""
        holders = checked_counts(population, items=self.N)
        return np.asarray(
            rng.binomial(holders, 0.5) + rng.binomial(holders.sum() - holders, float(self.miss)), dtype=np.int64
        )

    def channel(self, included: int) -> Channel:
        """s_j = Bin(Pi_j, 1/2) + Bin(n - Pi_j, 1 / (e^epsilon + 1)), independent."""
        return Channel(0.5, float(self.miss))

    @property
    def informed(self) -> Fraction:
        """Exactly one of the two bits in question is set: 1/2 (1-q) + 1/2 q."""
        return _HALF

    def divergence(self, growth: Fraction) -> Fraction:
        """Own bit set and the other's not is the only pair of bits that can be likelier: 1/2 (1-q) against q 1/2."""
        return _HALF * max(Fraction(0), 1 - self.miss - growth * self.miss)


def _column_sums(bits: Bits) -> Ints:
    """Sums of the columns of zeros and ones: 255 wide rows at a time fit in 8 bits, the fastest way to add them."""
    wide = -(-bits.shape[0] // 255)
    layers = bits.shape[0] // wide
    stacked = bits[: layers * wide].reshape(layers, -1).sum(axis=0, dtype=np.uint8).reshape(wide, -1)
    rest = bits[layers * wide :]
    return np.asarray(stacked.sum(axis=0, dtype=np.int64) + rest.sum(axis=0, dtype=np.int64))

"""Local randomizers for frequencies: GRR and OUE, as compared in the paper's Figure 5.

    GRR   generalized randomized response (Kairouz, Bonawitz and Ramage, ICML 2016)
    OUE   optimized unary encoding (Wang, Blocki, Li and Jha, USENIX Security 2017)

There are no shares and no trusted parties: every user sends one noisy report that anybody may see.
That costs accuracy. The package includes them for comparison and for the weighted aggregation of
Section III-B.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair, largest_within
from faircount.accounting.guarantee import COLLECTOR, Adversary
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError
from faircount.core.validation import check_counts, check_integer
from faircount.mechanisms.base import FrequencyMechanism, check_range
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.exact_draws import ONE, flip_coins
from faircount.mechanisms.local import (
    LocalMechanism,
    Window,
    WindowMechanism,
    exp_rounded_down,
    log_probabilities,
)
from faircount.mechanisms.worst_pair import Marginal, WorstPair

Bits = NDArray[np.uint8]
_HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class LocalFrequency(LocalMechanism, FrequencyMechanism):
    """Common base of GRR and OUE: answers are item positions, aggregates are counts per item."""

    parameter_attributes: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    def positions(self, answers: NDArray[Any], size: int | None = None) -> Ints:
        """Validate encoded answers.

        Reports do not depend on the number of users, so `users` may be left out.
        """
        return super().positions(answers, size or self.users or max(1, np.size(answers)))

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism whose reports compose exactly to the budget.

        A single report is pure and does not use delta.
        """
        epsilon = wanted.epsilon
        if wanted.releases > 1:
            epsilon = _epsilon_per_report(
                cls, wanted.items, wanted.epsilon, wanted.delta, wanted.releases
            )
        mechanism = cls(items=wanted.items, users=wanted.users, epsilon=epsilon)

        def total_delta() -> float:
            return mechanism.compose_reports(wanted.releases, epsilon=wanted.epsilon)

        return CalibrationResult(mechanism, total_delta)

    def check_report_counts(self, total: NDArray[Any], included: int, low: int, high: int) -> Ints:
        """Return one count per item, or raise if honest reports cannot produce them.

        Every count lies within [0, included], and their sum within [low, high].
        """
        if np.shape(total) != (self.N,) or np.asarray(total).dtype.kind not in "iu":
            raise AnswerError(f"report counts must be {self.N} whole numbers, one per item")
        reports = np.asarray(total, dtype=np.int64)
        return check_range(reports, 0, check_integer("included", included, least=1), low, high)


@lru_cache(64)
def _epsilon_per_report(
    kind: type[LocalFrequency], items: int, epsilon: float, delta: float, releases: int
) -> float:
    """Return the largest epsilon of a report with which all reports meet the budget."""

    # A report of a smaller epsilon can be computed from one of a larger epsilon, so delta rises
    # with epsilon and the search is valid.
    def total_delta(per_report: float) -> float:
        return kind(items=items, epsilon=per_report).compose_reports(releases, epsilon=epsilon)

    return largest_within(total_delta, delta, 2 * epsilon + 8 + log(items))


@dataclass(frozen=True, kw_only=True)
class GRR(WindowMechanism, LocalFrequency):
    """Generalized randomized response.

    A report is the user's item with probability e^epsilon / (e^epsilon + N - 1), and otherwise one
    of the others, all equally likely.

    >>> fc.GRR(items=3, epsilon=1.0).guarantee().delta
    0.0
    """

    name: ClassVar[str] = "grr"

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return one user with the first item, or with the second one."""
        own = float(self.window.own)
        other = float(self.window.other)
        # Reports of all other items are equally likely for both answers: one cell stands for them.
        rest = max(0.0, 1 - own - other)
        first = log_probabilities(own, other, rest)
        second = log_probabilities(other, own, rest)
        marginal = Marginal(0, LossPair(first, second))
        single = replace(self, users=1)
        return WorstPair(single, np.array([0]), np.array([1]), (marginal,), self, COLLECTOR)

    def adversary_view(
        self, responses: Ints, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the reported item: the first, the second, or 2 for any other."""
        return np.minimum(responses, 2).reshape(copies, 1)

    @cached_property
    def window(self) -> Window:
        """One cell per item, of which one is the user's own."""
        return Window(self.N, 1, self.epsilon)

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """Return the reported position of every user."""
        return self.window.draw(self.positions(answers), entropy)

    def total(self, responses: NDArray[Any]) -> Ints:
        """Count how often every item was reported."""
        return np.bincount(self.check_reports(responses), minlength=self.N).astype(np.int64)

    def decode(self, total: NDArray[Any], included: int) -> Ints:
        """Return the counts, which add up to the number of users: one report each."""
        return self.check_report_counts(total, included, included, included)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample report counts for a population given as counts, in O(N)."""
        # A report is a mixture: the true item, or uniform over ALL items including the true one.
        holders = check_counts(population, items=self.N)
        truthful = rng.binomial(holders, float(self.window.excess))
        others = int(holders.sum() - truthful.sum())
        uniform = rng.multinomial(others, np.full(self.N, 1 / self.N))
        return np.asarray(truthful + uniform, dtype=np.int64)

    def channel(self, included: int) -> Channel:
        """Return the channel of a count: hit e^epsilon / (e^epsilon + N - 1), miss 1 / (same).

        The counts of different items are dependent, because they add up to n.
        """
        return Channel(float(self.window.own), float(self.window.other), independent=False)


@dataclass(frozen=True, kw_only=True)
class OUE(LocalFrequency):
    """Optimized unary encoding: one bit per item.

    The bit of the user's own item is a fair coin, and any other bit is set with probability
    1 / (e^epsilon + 1).

    >>> fc.OUE(items=3, epsilon=1.0).guarantee().delta
    0.0
    """

    name: ClassVar[str] = "oue"

    @property
    def response_bits(self) -> int:
        """One bit per item."""
        return self.N

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return one user with the first item, or with the second one.

        The bits of all other items have the same distribution for both answers.
        """
        own = log_probabilities(0.5, 0.5)
        other = log_probabilities(1 - float(self.miss), float(self.miss))
        marginals = Marginal(0, LossPair(own, other)), Marginal(0, LossPair(other, own))
        single = replace(self, users=1)
        return WorstPair(single, np.array([0]), np.array([1]), marginals, self, COLLECTOR)

    def adversary_view(
        self, responses: Bits, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the bits of the first two items."""
        return responses[:, :2].astype(np.int64)

    @cached_property
    def threshold(self) -> int:
        """Probability that another item's bit is set, as an integer over 2^128."""
        # Rounded UP, on the safe side: the ratio (1-q)/q is then at most e^epsilon.
        return ceil(ONE / (exp_rounded_down(self.epsilon) + 1))

    @cached_property
    def miss(self) -> Fraction:
        """The same probability q as an exact number."""
        return Fraction(self.threshold, ONE)

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Bits:
        """Return one row of N bits per user."""
        positions = self.positions(answers)
        # All bits are drawn as those of other items first, then the own ones are replaced.
        coins = flip_coins(self.threshold, positions.size * self.N, entropy)
        bits = coins.view(np.uint8).reshape(-1, self.N)
        bits[np.arange(positions.size), positions] = entropy.words(positions.size, np.uint8) & 1
        return bits

    def total(self, responses: NDArray[Any]) -> Ints:
        """Count how often the bit of every item was set."""
        bits = np.asarray(responses)
        has_rows = bits.ndim == 2 and bits.shape[0] > 0 and bits.shape[1] == self.N
        if not has_rows or bits.dtype.kind not in "biu":
            raise AnswerError(f"reports must be rows of {self.N} bits, one row per user")
        if int(bits.min()) < 0 or int(bits.max()) > 1:
            raise AnswerError("reports must consist of zeros and ones")
        return _column_sums(np.ascontiguousarray(bits, dtype=np.uint8))

    def decode(self, total: NDArray[Any], included: int) -> Ints:
        """Return the counts, none of which exceeds the number of users."""
        return self.check_report_counts(total, included, 0, included * self.N)

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample report counts for a population given as counts, in O(N)."""
        holders = check_counts(population, items=self.N)
        own = rng.binomial(holders, 0.5)
        others = rng.binomial(holders.sum() - holders, float(self.miss))
        return np.asarray(own + others, dtype=np.int64)

    def channel(self, included: int) -> Channel:
        """Return the channel s_j = Bin(Pi_j, 1/2) + Bin(n - Pi_j, q), independent over items."""
        return Channel(0.5, float(self.miss))

    @property
    def informative_probability(self) -> Fraction:
        """Probability that exactly one of the two bits is set: 1/2 (1-q) + 1/2 q."""
        return _HALF

    def divergence(self, growth: Fraction) -> Fraction:
        """Return the divergence: 1/2 (1-q) against q 1/2.

        The own bit set and the other one not set is the only pair of bits that can be more likely.
        """
        return _HALF * max(Fraction(0), 1 - self.miss - growth * self.miss)


def _column_sums(bits: Bits) -> Ints:
    """Add up the columns of a table of zeros and ones."""
    # The rows are stacked into at most 255 layers, whose sum fits into 8 bits. Adding bytes is
    # several times faster than adding 64-bit integers.
    depth = -(-bits.shape[0] // 255)
    layers = bits.shape[0] // depth
    whole = bits[: layers * depth].reshape(layers, -1)
    stacked = whole.sum(axis=0, dtype=np.uint8).reshape(depth, -1)
    rest = bits[layers * depth :]
    return np.asarray(stacked.sum(axis=0, dtype=np.int64) + rest.sum(axis=0, dtype=np.int64))

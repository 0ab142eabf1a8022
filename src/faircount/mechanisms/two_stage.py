"""Two-stage sampling: TSS (the paper's Algorithm 3) and TSS' (Algorithm 4).

First stage: the coin of DPDS, after which a user is active with probability p. Second stage: the
user reports only M of the N items. The set of reported items is uniform (chi_U), or, for an active
user, sets that contain the user's own item are gamma times more likely (chi_A). The bit of a
reported item is 1 if the user is active and holds it.

The coordinator (S1) sees the sets and elects helpers for every item, the helpers hold the shares of
the bits, and the aggregator (S2) reveals the sums. These are three parties with three views, so a
guarantee is always stated against one of them.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting import exact, two_stage
from faircount.accounting.composition import Losses
from faircount.accounting.conditions import (
    NO_HELPER_LOOKS,
    NOBODY_LEFT_OUT,
    Condition,
    joint_condition,
)
from faircount.accounting.divergence import LossPair, log_binomial
from faircount.accounting.guarantee import (
    COLLECTOR,
    OUTSIDER,
    S1,
    S2,
    Adversary,
    Guarantee,
    Relation,
    insiders,
)
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.questions import Sheet
from faircount.core.validation import check_fraction, check_integer, check_real
from faircount.mechanisms.base import Collected, Mechanism, Progress, check_range, set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.exact_draws import ONE, DrawTable, draw_distinct_keys
from faircount.mechanisms.sampling import Sampling, count_hidden_holders
from faircount.mechanisms.secret_shared import EVERY_USER_UP_TO, OneQuestion
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import Marginal, MixedPair, WorstPair
from faircount.sharing.additive import combine, exchange
from faircount.sharing.field import dtype_for, sum_rows

# Default fraction of the items that a user reports, the paper's choice.
ALPHA = 0.4

# An alpha that was copied with four printed digits is off by at most half of the last digit; it is
# accepted and replaced by the M/N that was meant.
_PRINTED_DIGITS = 0.51e-4

# Logarithm of a probability that no audit has enough runs to notice.
_NEVER = -50.0

# Users whose sets are drawn at a time, which bounds the memory for the random keys.
CHUNK = 1 << 16


def default_alpha(items: int) -> float:
    """Return the M/N closest to 0.4 with at least one item reported and one not reported."""
    count = check_integer("items", items, least=2)
    return min(max(1, round(ALPHA * count)), count - 1) / count


# Responses and numbers of reporters are secrets, so they are left out of the repr.
@dataclass(frozen=True, slots=True)
class TwoStageResponse:
    """The responses of all users, one row per user.

    indicators: which items a user reports; sent to the coordinator
    bits: the bits that a user shares among the helpers; zero for items that are not reported
    """

    indicators: NDArray[np.bool_] = field(repr=False)
    bits: Residues = field(repr=False)


@dataclass(frozen=True, slots=True)
class TwoStageSum:
    """What the aggregator knows in the end.

    reporters: number of reporters per item; for the aggregator only
    sums: revealed sum per item
    """

    reporters: Ints = field(repr=False)
    sums: Residues


@dataclass(frozen=True, kw_only=True)
class TSS(Sampling, OneQuestion):
    """Two-stage sampling, Algorithm 3.

    `alpha` is M/N. `gamma` = 1 is the uniform second stage, above 1 it is the adaptive one. An item
    with a single reporter has a single helper, who sees a bit in the clear. TSS therefore has no
    guarantee against participants; `TSSPrime` does.

    >>> two_stage = fc.TSS(items=10, users=1000, p=0.3, alpha=0.4, floor=60)
    >>> two_stage.guarantee(epsilon=1.0).epsilon
    1.0
    """

    name: ClassVar[str] = "tss"
    collected: ClassVar[Collected] = Collected.SETS
    required_parameters: ClassVar[tuple[str, ...]] = ("p", "alpha", "epsilon")
    parameter_docs: ClassVar[dict[str, str]] = {
        "dropouts": "users who may drop out or be left out, subtracted from the floor; "
        "against S1, from the users who report an item",
        "alpha": "fraction of the items that a user reports",
        "gamma": "how much more likely a reported set contains the user's own item",
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"alpha": "alpha", "gamma": "gamma"}
    alpha: float
    gamma: float = 1.0

    def __post_init__(self) -> None:
        set_fields(
            self, alpha=check_fraction("alpha", self.alpha), gamma=check_real("gamma", self.gamma)
        )
        nearest = round(self.alpha * self.N)
        if abs(self.alpha - nearest / self.N) > _PRINTED_DIGITS or nearest in (0, self.N):
            # Suggest the possible values on both sides.
            below = min(max(int(self.alpha * self.N), 1), self.N - 1)
            nearby = sorted({below, min(below + 1, self.N - 1)})
            choices = ", ".join(f"{m}/{self.N} = {m / self.N:.4g}" for m in nearby)
            raise ParameterError(
                f"alpha times {self.N} items must be a whole number of items, as with {choices}"
            )
        set_fields(self, alpha=nearest / self.N)
        if not 1 <= self.gamma <= two_stage.LARGEST_GAMMA:
            raise ParameterError(
                "gamma must be at least 1: 1 is uniform, above 1 prefers the true item "
                f"(up to {two_stage.LARGEST_GAMMA:g})"
            )
        super().__post_init__()

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Raise: no parameters are sound, because a lone helper sees a bit in the clear."""
        raise RefusedError(
            "if only one user reports an item, a single helper sees that user's bit: use tss-prime"
        )

    @classmethod
    def example(cls, users: int, items: int) -> Self:
        """Return a small instance with fixed parameters, since no budget determines them."""
        return cls(users=users, items=items, p=0.6, alpha=default_alpha(items))

    def _find_p(self) -> float:
        raise ParameterError(f"{self.name}: give p, the sampling probability of the first stage")

    @property
    def reported_items(self) -> int:
        """M, the number of items that every user reports."""
        return round(self.alpha * self.N)

    @property
    def p_chi(self) -> float:
        """Probability that an active user reports its own item (the paper's lemma on p_chi)."""
        odds = self.reported_items * self.gamma
        return odds / (odds + self.N - self.reported_items)

    @property
    def least_helpers(self) -> int:
        """Smallest number of users who hold the shares of an item."""
        return self.covered_colluders + 1

    @property
    def response_bits(self) -> int:
        """The set as one bit per item, as the coordinator sees it."""
        return self.N

    @property
    def covered_colluders(self) -> int:
        """Zero: Algorithm 3 has no guarantee against participants."""
        return 0

    def channel(self, included: int) -> Channel:
        """Return the channel of s_j = Bin(Pi_j, p p_chi)."""
        return Channel(self.rate * self.p_chi)

    @cached_property
    def _own_item(self) -> DrawTable:
        """Whether the set of an active user contains its own item."""
        # p_chi as a fraction, exact in the floating-point gamma, and rounded down to 128 bits.
        odds = Fraction(self.gamma) * self.reported_items
        inside = int(odds / (odds + self.N - self.reported_items) * ONE)
        return DrawTable((1, 0), (inside, ONE))

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> TwoStageResponse:
        """Draw coin, set and bits of every user (Algorithm 3, lines 2 to 9)."""
        return self._draw_responses(self.positions(answers), entropy)

    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> TwoStageResponse:
        """Compute the response of the user at place `user` of the roster, as its client does."""
        check_integer("user", user, most=self.n - 1)
        return self._draw_responses(self.position_of(sheet), entropy)

    def _draw_responses(self, positions: Ints, entropy: Entropy) -> TwoStageResponse:
        # The stream is read in this order: all first-stage coins, all coins for the own item, then
        # the keys of the sets.
        active = self.coin.draw(positions.size, entropy) == 1
        inside = self._own_item.draw(positions.size, entropy) == 1
        indicators = np.empty((positions.size, self.N), dtype=bool)
        for start in range(0, positions.size, CHUNK):
            chunk = slice(start, start + CHUNK)
            sets = self._draw_sets(positions[chunk], active[chunk], inside[chunk], entropy)
            indicators[chunk] = sets
        bits = np.zeros(indicators.shape, dtype=dtype_for(self.modulus))
        rows = np.arange(positions.size)
        bits[rows, positions] = active & indicators[rows, positions]
        return TwoStageResponse(indicators, bits)

    def _draw_sets(
        self,
        positions: Ints,
        active: NDArray[np.bool_],
        inside: NDArray[np.bool_],
        entropy: Entropy,
    ) -> NDArray[np.bool_]:
        """Draw the set of every user: the M items with the smallest random keys."""
        shape = (positions.size, self.N)
        keys = draw_distinct_keys(shape, entropy)
        # The coin of an active user decides whether its own item is in the set: key 0 puts the item
        # first and the largest key puts it last. All other items keep their random order.
        rows = np.flatnonzero(active)
        largest = np.iinfo(np.uint64).max
        keys[rows, positions[rows]] = np.where(inside[rows], np.uint64(0), np.uint64(largest))
        chosen = np.argpartition(keys, self.reported_items - 1, axis=1)[:, : self.reported_items]
        sets = np.zeros(shape, dtype=bool)
        np.put_along_axis(sets, chosen, True, axis=1)
        return sets

    def total(self, responses: TwoStageResponse) -> TwoStageSum:
        """Return the number of reporters per item and the sum of their bits."""
        reporters = responses.indicators.sum(axis=0).astype(np.int64)
        return TwoStageSum(reporters, sum_rows(responses.bits, self.modulus))

    def collect(
        self,
        responses: TwoStageResponse,
        parties: int | None,
        entropy: Entropy,
        progress: Progress | None = None,
    ) -> tuple[TwoStageSum, dict[str, object]]:
        """Share the bits of every item among its helpers and reveal the sums."""
        reporters = responses.indicators.sum(axis=0).astype(np.int64)
        sums = np.zeros(self.N, dtype=responses.bits.dtype)
        # An item without reporters has no helpers, and its sum stays 0.
        for j in np.flatnonzero(reporters):
            bits: Residues = responses.bits[responses.indicators[:, j], j : j + 1]
            helpers = self._count_helpers(int(reporters[j]), parties)
            sums[j] = combine(exchange(bits, helpers, self.modulus, entropy), self.modulus)[0]
        return TwoStageSum(reporters, sums), {"topology": "shares", "modulus": self.modulus}

    def _count_helpers(self, reporters: int, parties: int | None) -> int:
        """Return the number of helpers of an item, m_j in the paper (m'_j in TSS')."""
        # As printed, every reporter is a helper. Large surveys use fewer, but at least phi + 1.
        wanted = reporters
        if parties is not None or self.n > EVERY_USER_UP_TO:
            wanted = min(reporters, parties or 2)
        return min(self.n, max(self.least_helpers, wanted))

    def adversary_view(
        self, responses: TwoStageResponse, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return what this adversary knows about the first two items."""
        shape = (answers.size, copies, 2)
        bits = responses.bits[:, :2].reshape(shape)
        sums = np.asarray(bits.sum(axis=0, dtype=np.int64))
        return self.view_of_sums(
            sums, responses.indicators[:, :2].reshape(shape), bits, answers, adversary
        )

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the published sums together with the sets that the adversary knows."""
        sets = np.array([response.indicators[:, :2] for response in log.responses])
        bits = np.array([response.bits[:, :2] for response in log.responses])
        view: Ints = self.view_of_sums(sums[None], sets, bits, answers, adversary)[0]
        return view

    def view_of_sums(
        self,
        sums: Ints,
        sets: NDArray[np.bool_],
        bits: Residues,
        answers: NDArray[Any],
        adversary: Adversary,
    ) -> Ints:
        """Return the view of two revealed sums together with the sets that the adversary knows.

        `sets` and `bits` have one row per user, then one per survey, then the two items. A reader
        knows the sums, the aggregator and the insiders also the numbers of reporters, and the
        coordinator all sets.
        """
        if adversary == OUTSIDER:
            return sums
        known = adversary.insiders
        others = sums - bits[:known].sum(axis=0, dtype=np.int64)
        if adversary != S1:
            return np.hstack([others, sets[known:].sum(axis=0)])
        # Of the other users, only those who hold an item can be in its sum.
        held = answers[:-1, None] == np.arange(2)
        crowd = (sets[:-1] & held[:, None, :]).sum(axis=0)
        codes = crowd * (held.sum(axis=0) + 2) + sums
        own = sets[-1].astype(np.int64)
        return np.hstack([own @ np.array([[1], [2]]), codes, sums, crowd, own])

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return the pair of all sampling; the coordinator's view of it also has the sets."""
        plain = super().worst_pair(epsilon, adversary)
        if plain.adversary != S1:
            return plain
        first, second = self.worst_holders(S1, epsilon)
        distribution = two_stage.SetDistribution.of(self.rate, self.alpha, self.gamma)
        M = self.reported_items
        both = M * (M - 1) / (self.N * (self.N - 1))
        only_one = M / self.N - both
        cases = []
        # Whether the user's own set holds the first and the second item, in the order of the codes.
        none = max(0.0, 1 - both - 2 * only_one)
        for number, share in enumerate((none, only_one, only_one, both)):
            has_first = number & 1
            has_second = number >> 1
            factors = (distribution.outside, distribution.inside)
            marginals = (
                _crowd_marginal(distribution, first, (has_first, 0)),
                _crowd_marginal(distribution, second, (0, has_second)),
            )
            cases.append((share * factors[has_first], share * factors[has_second], marginals))
        return MixedPair(plain.mechanism, plain.first, plain.second, (), self, S1, tuple(cases))

    def _with_two_items(self) -> Self:
        """Return the mechanism with all items, because the sets are drawn from them."""
        return replace(self, users=None, floor=0)

    def decode(self, total: TwoStageSum, included: int) -> Ints:
        """Return the sums as counts, checked against the reporters and the number of users."""
        users = check_integer("included", included, least=1)
        if np.shape(total.sums) != (self.N,) or np.shape(total.reporters) != (self.N,):
            raise AnswerError(
                f"a sum must have {self.N} entries and {self.N} numbers of reporters, one per item"
            )
        sums = check_range(np.asarray(total.sums, dtype=np.int64), 0, users, 0, users)
        if np.any(sums > total.reporters):
            raise CorruptSumError(
                "an item was counted more often than it was reported: a response was corrupted"
            )
        return sums

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Both servers and a reader of the result, but no participants."""
        return (S1, S2, OUTSIDER)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return delta: exact against the coordinator and a reader, otherwise an upper bound.

        The aggregator and insiders also learn the numbers of reporters; against them delta is at
        most that of DPDS. The coordinator may choose by their sets which `dropouts` users are
        missing; with dropouts its delta is an upper bound, too.
        """
        if adversary == S1:
            known = (self.N, self.reported_items, self.rate, self.gamma, self.floor)
            return two_stage.coordinator_delta(*known, epsilon, relation, lost=self.dropouts)
        hidden = self.hidden_holders(adversary)
        if adversary == OUTSIDER:
            return exact.sampling_delta(hidden, self.rate * self.p_chi, epsilon, relation)
        if adversary.insiders:
            self._check_colluders(adversary)
        return exact.sampling_delta(hidden, self.rate, epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return None: sets or numbers of reporters reveal more than two counts."""
        return None

    def _enumerated_users(self, adversary: Adversary) -> int:
        """Return 0: two items are accounted for like three and more."""
        return 0

    def _check_colluders(self, adversary: Adversary) -> None:
        """Raise if there is no guarantee against this many colluding users."""
        raise RefusedError(
            "TSS gives no guarantee against participants: the one helper of an item with one "
            "reporter sees its bit. Use TSSPrime with phi at least as large as the number of "
            "colluding users"
        )

    def remaining_guarantees(
        self, included: int, epsilon: float, lost: int
    ) -> tuple[Guarantee, ...]:
        """Return the guarantee against every adversary when `included` users are in the sum.

        `lost` users sent their set and are not in the sum. Their sets may be all that the
        aggregator and the helpers know of them, and a set alone has a delta of its own.
        """
        sets_delta = 0.0
        if lost:
            known = (self.N, self.reported_items, self.rate, self.gamma)
            sets_delta = two_stage.sets_delta(*known, epsilon)
        guarantees = []
        for guarantee in replace(self, dropouts=self.n - included).guarantees(epsilon=epsilon):
            # A reader of the result sees no sets.
            if guarantee.adversary != OUTSIDER:
                guarantee = replace(guarantee, delta=max(guarantee.delta, sets_delta))
            guarantees.append(guarantee)
        return tuple(guarantees)

    def condition(self, adversary: Adversary) -> Condition | None:
        """Return the floor, and the assumptions about the coordinator and the helpers."""
        floor = super().condition(adversary)
        assumed = [floor]
        # The coordinator knows the sets and could choose by them who is left out. Its own guarantee
        # accounts for that; the others assume that it does not.
        if floor is not None and self.dropouts and adversary != S1:
            assumed.append(NOBODY_LEFT_OUT)
        # A collector sees the report itself, which is more than a helper sees.
        if adversary != COLLECTOR and not self.covered_colluders:
            assumed.append(NO_HELPER_LOOKS)
        return joint_condition(assumed)

    def _chooses_dropouts(self, adversary: Adversary) -> bool:
        """Whether this adversary knows the sets and may choose by them who is left out."""
        return adversary == S1


def _crowd_marginal(
    distribution: two_stage.SetDistribution, holders: int, added: tuple[int, int]
) -> Marginal:
    """Return the distributions of a crowd of reporters with its sum, as one number.

    `holders` others hold the item; those whose sets hold it are the crowd. `added` says whether the
    user joins them on the first and on the second data set. The number is the size of the crowd
    times (holders + 2) plus the sum.
    """
    log_crowd = log_binomial(holders, min(1.0, distribution.alpha * distribution.inside))
    # A crowd of a size that never occurs is left out, which bounds the memory.
    sizes = np.flatnonzero(log_crowd > _NEVER)
    logs = np.full((2, sizes.size, holders + 2), -np.inf)
    for table, more in zip(logs, added, strict=True):
        for row, size in zip(table, sizes.tolist(), strict=True):
            row[: size + more + 1] = log_crowd[size] + log_binomial(size + more, distribution.bit)
    return Marginal(int(sizes[0]) * (holders + 2), LossPair(logs[0].ravel(), logs[1].ravel()))


def as_two_stage(mechanism: Mechanism) -> TSS:
    """Return the mechanism with its type, or raise if its users report no sets of items."""
    if not isinstance(mechanism, TSS):
        raise ParameterError(f"{mechanism.name} reports no sets of items: choose TSS or TSSPrime")
    return mechanism


@dataclass(frozen=True, kw_only=True)
class TSSPrime(TSS):
    """Algorithm 4: at least phi + 1 helpers per item, so that phi colluding users learn no bit.

    >>> two_stage = fc.TSSPrime(items=10, users=1000, p=0.3, alpha=0.4, floor=60, phi=1)
    >>> two_stage.guarantee(epsilon=1.0).epsilon
    1.0
    """

    name: ClassVar[str] = "tss-prime"
    parameter_docs: ClassVar[dict[str, str]] = {
        "phi": "number of colluding users who together learn no bit"
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"phi": "phi"}
    phi: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, phi=check_integer("phi", self.phi, least=1))
        if self.insiders > self.phi:
            raise ParameterError(
                f"{self.insiders} insiders can be all the helpers of an item when "
                f"phi = {self.phi}: make phi as large"
            )
        if self.users is not None and self.phi >= self.users:
            raise ParameterError(
                f"phi = {self.phi} must be below the number of users ({self.users})"
            )

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism with a uniform second stage and the largest possible p.

        The coordinator, who knows the sets and reads the result, limits p. The losses of several
        releases are added up.
        """
        hidden = count_hidden_holders(wanted)
        alpha = default_alpha(wanted.items)
        # Basic composition: every release gets an equal part of the budget.
        epsilon = wanted.epsilon / wanted.releases
        delta = wanted.delta / wanted.releases
        p = two_stage.uniform_probability(
            wanted.items,
            round(alpha * wanted.items),
            wanted.floor,
            wanted.dropouts,
            hidden,
            epsilon,
            delta,
        )
        mechanism = cls(
            **wanted.population,
            **wanted.promised_budget,
            p=p,
            alpha=alpha,
            floor=wanted.floor,
            phi=wanted.insiders,
        )

        def total_delta() -> float:
            deltas = [guarantee.delta for guarantee in mechanism.guarantees(epsilon=epsilon)]
            return wanted.releases * max(deltas)

        return CalibrationResult(mechanism, total_delta)

    @property
    def covered_colluders(self) -> int:
        """phi."""
        return self.phi

    def _bystanders(self, others: int) -> Ints:
        """Return holders of the last item, so that there are more than phi users in all."""
        if self.N == 2:
            return super()._bystanders(others)
        return np.full(max(0, self.phi - others), self.N - 1)

    def for_survey(self) -> Self:
        """Return the mechanism with phi insiders, as many as the shares protect from."""
        return replace(self, insiders=self.phi)

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Both servers, the insiders if there are any, and a reader of the result."""
        colluding = (insiders(self.insiders),) if self.insiders else ()
        return (S1, S2, *colluding, OUTSIDER)

    def _check_colluders(self, adversary: Adversary) -> None:
        if adversary.insiders > self.phi:
            raise RefusedError(
                f"{adversary.insiders} colluding users can be all helpers of an item: "
                f"phi is {self.phi}"
            )

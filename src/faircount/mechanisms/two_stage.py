"""Two-stage sampling: TSS (Algorithm 3) and TSS' (Algorithm 4).

After the coin of DPDS a user reports only M of the N items: a set A chosen uniformly (chi_U) or with sets that contain
the true item gamma times likelier (chi_A). S1 sees the sets and elects helpers, the helpers hold the shares, S2 opens
the sums. Three parties with three views, so a guarantee is always against one of them.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting import exact, two_stage
from faircount.accounting.composition import Losses
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary, Guarantee, Relation, insiders
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.validation import fraction, integer, real
from faircount.mechanisms.base import Collected, Mechanism, Progress, check_range, keep
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.exact_draws import ONE, DrawTable, distinct_keys
from faircount.mechanisms.sampling import Sampling, hidden_by_floor
from faircount.mechanisms.secret_shared import EVERY_USER_UP_TO, FieldMechanism
from faircount.sharing.additive import combine, exchange
from faircount.sharing.field import dtype_for, sum_rows

ALPHA = 0.4
"""Share of the items that a user reports unless told otherwise, rounded to whole items: the paper's choice."""

NO_HELPER_LOOKS = "no helper looks at what it gets (the one helper of an item with one reporter sees that user's bit)"
"""What TSS without phi has to assume of its participants."""

NOBODY_LEFT_OUT = "S1 leaves nobody out because of the items that they report"
"""What is supposed against all but S1 where users may be missing: S1, who knows the sets, could choose whom."""

_TYPED = 0.51e-4  # half of the last of four digits: an alpha that was typed as it is printed is meant to be M/N

CHUNK = 1 << 16  # users whose sets are drawn at once: bounds the memory for the random keys


def usual_alpha(items: int) -> float:
    """The share M/N of so many items that is nearest to 0.4, with at least one item reported and one not."""
    count = integer("items", items, least=2)
    return min(max(1, round(ALPHA * count)), count - 1) / count


@dataclass(frozen=True, slots=True)
class TwoStageResponse:
    """Row i: which items user i reports (goes to S1), and the bits it shares among the helpers (zero elsewhere)."""

    indicators: NDArray[np.bool_] = field(repr=False)  # a response is a secret: it does not print
    bits: Residues = field(repr=False)


@dataclass(frozen=True, slots=True)
class TwoStageSum:
    """What S2 holds at the end: the number of reporters and the opened sum of every item."""

    reporters: Ints = field(repr=False)  # for S2's eyes only
    sums: Residues


@dataclass(frozen=True, kw_only=True)
class TSS(Sampling, FieldMechanism):
    """Algorithm 3. `alpha` is M/N; `gamma` = 1 is the uniform second stage, above 1 the adaptive one.

    An item with a single reporter has a single helper, who then sees a bit in the clear. TSS therefore claims nothing
    against participants; `TSSPrime` does.
    """

    name: ClassVar[str] = "tss"
    collected: ClassVar[Collected] = Collected.SETS
    needs: ClassVar[tuple[str, ...]] = ("p", "alpha", "epsilon")
    means: ClassVar[dict[str, str]] = {
        "dropouts": "users who may vanish or be left out, taken off the floor; against S1 off those who report an item",
        "alpha": "share of the items that a user reports",
        "gamma": "how much likelier a reported set holds the own item",
    }
    run_with: ClassVar[dict[str, str]] = {"alpha": "alpha", "gamma": "gamma"}
    alpha: float
    gamma: float = 1.0

    def __post_init__(self) -> None:
        keep(self, alpha=fraction("alpha", self.alpha), gamma=real("gamma", self.gamma))
        nearest = round(self.alpha * self.N)
        if abs(self.alpha - nearest / self.N) > _TYPED or nearest in (0, self.N):
            near = ", ".join(f"{m}/{self.N} = {m / self.N:.4g}" for m in self._nearby())
            raise ParameterError(f"alpha times {self.N} items must be a whole number of items, as with {near}")
        keep(self, alpha=nearest / self.N)
        if not 1 <= self.gamma <= two_stage.LARGEST_GAMMA:
            raise ParameterError(
                "gamma must be at least 1: 1 is uniform, above 1 prefers the true item "
                f"(up to {two_stage.LARGEST_GAMMA:g})"
            )
        super().__post_init__()

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """Never sound: a lone helper sees a bit in the clear."""
        raise RefusedError("an item that one user reports has one helper, who sees that user's bit: use tss-prime")

    @classmethod
    def example(cls, users: int, items: int) -> Self:
        """No budget makes one, so it is made of parameters."""
        return cls(users=users, items=items, p=0.6, alpha=usual_alpha(items))

    def _nearby(self) -> list[int]:
        below = min(max(int(self.alpha * self.N), 1), self.N - 1)
        return sorted({below, min(below + 1, self.N - 1)})

    def _calibrated(self) -> float:
        raise ParameterError(f"{self.name}: give p, the sampling probability of the first stage")

    @property
    def reported(self) -> int:
        """M, the number of items each user reports."""
        return round(self.alpha * self.N)

    @property
    def p_chi(self) -> float:
        """Probability that an active user reports its own item (the paper's Lemma on p_chi)."""
        odds = self.reported * self.gamma
        return odds / (odds + self.N - self.reported)

    @property
    def least_helpers(self) -> int:
        """Users who hold the shares of an item, at least."""
        return self.covered_colluders + 1

    @property
    def response_bits(self) -> int:
        """A mark for every item: the set, as S1 sees it."""
        return self.N

    @property
    def covered_colluders(self) -> int:
        """None: Algorithm 3 claims nothing against participants."""
        return 0

    def channel(self, included: int) -> Channel:
        """s_j = Bin(Pi_j, p p_chi)."""
        return Channel(self.rate * self.p_chi)

    @cached_property
    def _own_item(self) -> DrawTable:
        """Whether an active user's set contains its own item, exact in the floating-point gamma."""
        odds = Fraction(self.gamma) * self.reported
        inside = int(odds / (odds + self.N - self.reported) * ONE)
        return DrawTable((1, 0), (inside, ONE))

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> TwoStageResponse:
        """Coin, set and bits of every user (Algorithm 3, lines 2 to 9)."""
        return self._drawn(self.positions(answers), entropy)

    def respond_as(self, user: int, answer: int, entropy: Entropy) -> TwoStageResponse:
        """The response, one row, of the user at place `user` of the roster: what a device computes on its own."""
        integer("user", user, most=self.n - 1)
        return self._drawn(self.positions(np.array([answer]), 1), entropy)

    def _drawn(self, positions: Ints, entropy: Entropy) -> TwoStageResponse:
        active = self.coin.draw(positions.size, entropy) == 1
        inside = self._own_item.draw(positions.size, entropy) == 1
        indicators = np.empty((positions.size, self.N), dtype=bool)
        for start in range(0, positions.size, CHUNK):
            part = slice(start, start + CHUNK)
            indicators[part] = self._sets(positions[part], active[part], inside[part], entropy)
        bits = np.zeros(indicators.shape, dtype=dtype_for(self.modulus))
        rows = np.arange(positions.size)
        bits[rows, positions] = active & indicators[rows, positions]
        return TwoStageResponse(indicators, bits)

    def _sets(
        self, positions: Ints, active: NDArray[np.bool_], inside: NDArray[np.bool_], entropy: Entropy
    ) -> NDArray[np.bool_]:
        """The M items with the smallest random keys; an active user's own item is put first or last by its coin."""
        shape = (positions.size, self.N)
        keys = distinct_keys(shape, entropy)
        rows = np.flatnonzero(active)
        top = np.iinfo(np.uint64).max
        keys[rows, positions[rows]] = np.where(inside[rows], np.uint64(0), np.uint64(top))
        chosen = np.argpartition(keys, self.reported - 1, axis=1)[:, : self.reported]
        sets = np.zeros(shape, dtype=bool)
        np.put_along_axis(sets, chosen, True, axis=1)
        return sets

    def total(self, responses: TwoStageResponse) -> TwoStageSum:
        """Reporters per item and the sum of their bits."""
        reporters = responses.indicators.sum(axis=0).astype(np.int64)
        return TwoStageSum(reporters, sum_rows(responses.bits, self.modulus))

    def collect(
        self, responses: TwoStageResponse, parties: int | None, entropy: Entropy, progress: Progress | None = None
    ) -> tuple[TwoStageSum, dict[str, object]]:
        """S1 counts the reporters, helpers add the shares of their item, S2 adds the helpers' sums."""
        reporters = responses.indicators.sum(axis=0).astype(np.int64)
        sums = np.zeros(self.N, dtype=responses.bits.dtype)
        for j in np.flatnonzero(reporters):
            bits: Residues = responses.bits[responses.indicators[:, j], j : j + 1]
            helpers = self._helpers(int(reporters[j]), parties)
            sums[j] = combine(exchange(bits, helpers, self.modulus, entropy), self.modulus)[0]
        return TwoStageSum(reporters, sums), {"topology": "shares", "modulus": self.modulus}

    def _helpers(self, reporters: int, parties: int | None) -> int:
        """m_j helpers as printed (m'_j in TSS'); fewer for crowds too large for that, but never below phi + 1."""
        wanted = reporters if parties is None and self.n <= EVERY_USER_UP_TO else min(reporters, parties or 2)
        return min(self.n, max(self.least_helpers, wanted))

    def seen(self, responses: TwoStageResponse, copies: int, insiders: int) -> Ints:
        """The opened sums of the first two items."""
        users = responses.bits.shape[0] // copies
        return np.asarray(responses.bits[:, :2].reshape(users, copies, 2).sum(axis=0, dtype=np.int64))

    def _with_two_items(self) -> Self:
        """All items stay: the sets are drawn among them."""
        return replace(self, users=None, floor=0)

    def decode(self, total: TwoStageSum, included: int) -> Ints:
        """The sums as counts: none above the number of its reporters, all together at most n'."""
        present = integer("included", included, least=1)
        if np.shape(total.sums) != (self.N,) or np.shape(total.reporters) != (self.N,):
            raise AnswerError(f"a sum must have {self.N} entries and {self.N} numbers of reporters, one per item")
        sums = check_range(np.asarray(total.sums, dtype=np.int64), 0, present, 0, present)
        if np.any(sums > total.reporters):
            raise CorruptSumError("an item was counted more often than it was reported: a response was corrupted")
        return sums

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Both servers and a reader of the result; no claim is made against participants."""
        return (S1, S2, OUTSIDER)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """S1 and a reader: exact. S2 and insiders, who also learn how many report each item: at most that of DPDS.

        S1 may choose by their sets which of the `dropouts` users are missing; against that it is an upper bound.
        """
        if adversary == S1:
            known = (self.N, self.reported, self.rate, self.gamma, self.floor, epsilon, relation)
            return two_stage.s1_delta(*known, lost=self.dropouts)
        k = self.crowd(adversary)
        if adversary == OUTSIDER:
            return exact.sampling_delta(k, self.rate * self.p_chi, epsilon, relation)
        if adversary.insiders:
            self._admit(adversary)
        return exact.sampling_delta(k, self.rate, epsilon, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """None: who sees sets or numbers of reporters sees more than two counts."""
        return None

    def _enumerated(self, adversary: Adversary) -> int:
        """Never: two items are accounted for like three and more."""
        return 0

    def _admit(self, adversary: Adversary) -> None:
        raise RefusedError(
            "TSS gives no guarantee against participants: the one helper of an item with one reporter sees its bit. "
            "Use TSSPrime with phi at least as large as the number of colluding users"
        )

    def realized_against(self, included: int, epsilon: float, lost: int) -> tuple[Guarantee, ...]:
        """What is left against each adversary when only `included` users are in the sum.

        `lost` users indicated and are not in the sum: S2 and helpers may know no more of them than their sets.
        """
        sets = two_stage.sets_delta(self.N, self.reported, self.rate, self.gamma, epsilon) if lost else 0.0
        left = replace(self, dropouts=self.n - included).guarantees(epsilon=epsilon)
        return tuple(
            each if each.adversary == OUTSIDER else replace(each, delta=max(each.delta, sets)) for each in left
        )

    def condition(self, adversary: Adversary) -> str | None:
        """The floor, whom S1 leaves out, and what a helper sees where phi is 0."""
        floor = super().condition(adversary)
        said = [] if floor is None else [floor]
        if floor and self.dropouts and adversary != S1:
            said.append(NOBODY_LEFT_OUT)
        if adversary != COLLECTOR and not self.covered_colluders:  # who collects reports sees more than a helper does
            said.append(NO_HELPER_LOOKS)
        return " and ".join(said) or None

    def _leaving(self, adversary: Adversary) -> str:
        """S1 knows the sets, and may choose by them."""
        return "may drop out or be left out by S1" if adversary == S1 else super()._leaving(adversary)


def reports_sets(mechanism: Mechanism) -> TSS:
    """The mechanism as one whose users report sets of items; refused if it is none."""
    if not isinstance(mechanism, TSS):
        raise ParameterError(f"{mechanism.name} reports no sets of items: choose TSS or TSSPrime")
    return mechanism


@dataclass(frozen=True, kw_only=True)
class TSSPrime(TSS):
    """Algorithm 4: at least phi + 1 helpers for every item, so that phi colluding users learn no bit."""

    name: ClassVar[str] = "tss-prime"
    means: ClassVar[dict[str, str]] = {"phi": "colluding users who together learn no bit"}
    run_with: ClassVar[dict[str, str]] = {"phi": "phi"}
    phi: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, phi=integer("phi", self.phi, least=1))
        if self.insiders > self.phi:
            raise ParameterError(
                f"{self.insiders} insiders can be all the helpers of an item when phi = {self.phi}: make phi as large"
            )
        if self.users is not None and self.phi >= self.users:
            raise ParameterError(f"phi = {self.phi} must be below the number of users ({self.users})")

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """Uniform second stage; p as large as S1, who knows the sets and reads the result, allows. Releases add up."""
        crowd, alpha = hidden_by_floor(wanted), usual_alpha(wanted.items)
        each, delta = wanted.epsilon / wanted.releases, wanted.delta / wanted.releases
        p = two_stage.uniform_probability(
            wanted.items, round(alpha * wanted.items), wanted.floor, wanted.dropouts, crowd, each, delta
        )
        made = cls(**wanted.crowd, **wanted.promise, p=p, alpha=alpha, floor=wanted.floor, phi=wanted.insiders)
        return Calibrated(made, lambda: wanted.releases * max(one.delta for one in made.guarantees(epsilon=each)))

    @property
    def covered_colluders(self) -> int:
        """phi."""
        return self.phi

    def _bystanders(self, others: int) -> Ints:
        """More users than phi in all."""
        return np.full(max(0, self.phi - others), self.N - 1) if self.N > 2 else super()._bystanders(others)

    def for_survey(self) -> Self:
        """With phi insiders: the promise must hold against as many users as the shares do."""
        return replace(self, insiders=self.phi)

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """The servers, and as many participants as the mechanism was made for."""
        return (S1, S2, *((insiders(self.insiders),) if self.insiders else ()), OUTSIDER)

    def _admit(self, adversary: Adversary) -> None:
        if adversary.insiders > self.phi:
            raise RefusedError(f"{adversary.insiders} colluding users can be all helpers of an item: phi is {self.phi}")

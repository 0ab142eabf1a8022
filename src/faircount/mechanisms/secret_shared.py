"""Mechanisms whose responses are vectors over a prime field F_q, of which only the sum is revealed.

    respond   answer -> N integers (a one-hot vector times a coin, or plus noise) -> residues mod q
    total     sum of all vectors mod q, which is what additive shares of the vectors add up to

The class hierarchy adds one property at a time:

    FieldMechanism      sums are revealed in F_q; how q is chosen
    VectorMechanism     responses are vectors that are shared additively (Algorithm 2)
    SharedMechanism     the same for one question: who gives which of N answers
    NoiseOfUsers        every user adds noise; insiders and dropouts add none that counts
    NoiseMechanism      the same for one question
    BoundedNoise        noise that stays within bounds except with probability 2^-60
    TableNoise          noise that every user draws from one table
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import COLLECTOR, Adversary, Guarantee, insiders
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.questions import Questionnaire, Sheet
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.validation import check_counts, check_integer
from faircount.mechanisms.base import (
    Collected,
    FrequencyMechanism,
    Mechanism,
    Progress,
    check_range,
    set_fields,
)
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.additive import combine, exchange
from faircount.sharing.field import check_residues, dtype_for, from_signed, sum_rows, to_signed
from faircount.sharing.packing import packed_bits
from faircount.sharing.primes import smallest_prime_above

# How often an honest sum may leave the range that `decode` accepts, over all items together.
OVERFLOW_PROBABILITY = 2.0**-60

# Largest size of the modulus: the sum of two field elements must fit into 64 bits.
MAX_BITS = 62

# Up to this many users, every user holds shares of every other user by default.
EVERY_USER_UP_TO = 2000

# Honest users of an audited survey if the mechanism fixes no number. Fewer users run faster, and
# the noise of an audited survey is calibrated for exactly these users.
AUDITED_USERS = 4

# Entries computed at a time, so that the randomness for a million users does not fill the memory.
_BLOCK = 1 << 17


@dataclass(frozen=True, slots=True)
class DerivedParameters:
    """Numbers that follow from a mechanism's parameters, published for clients.

    h: number of users whose noise is counted on
    D: fair coins per item
    p: probability that a user is counted
    table: distribution of one user's noise in one entry
    """

    h: int | None = None
    D: int | None = None
    p: float | None = None
    table: DrawTable | None = None


@dataclass(frozen=True, kw_only=True)
class FieldMechanism(Mechanism):
    """A mechanism whose sums are revealed in a prime field F_q.

    If q is just above the largest honest sum, nearly every residue is a plausible sum. `spare_bits`
    makes q that many bits larger: a sum that was corrupted at random then passes the range check of
    `decode` with probability at most 2^-spare_bits per corrupted item. It costs as many bits per
    share and nothing else.
    """

    servers_add_noise: ClassVar[bool] = False
    """Whether the noise comes from the servers, so that it does not depend on who responds."""

    parameter_docs: ClassVar[dict[str, str]] = {
        "spare_bits": "extra bits of the field, so that a randomly corrupted sum is noticed"
    }
    parameter_attributes: ClassVar[dict[str, str]] = {
        "insiders": "insiders",
        "dropouts": "dropouts",
        "q": "modulus",
    }
    spare_bits: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, spare_bits=check_integer("spare_bits", self.spare_bits, most=MAX_BITS))

    @property
    @abstractmethod
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of revealed sums: one per item, or one per cell of a questionnaire."""

    @abstractmethod
    def check_questionnaire(self, questionnaire: Questionnaire) -> None:
        """Refuse questions that are not the ones whose answers the mechanism counts."""

    @abstractmethod
    def cells_of(self, sheet: Sheet) -> Ints:
        """Return what one person's answers add to the N sums, before sampling and noise."""

    @property
    @abstractmethod
    def sum_span(self) -> int:
        """The largest minus the smallest honest sum of an item."""

    @property
    def min_sum(self) -> int:
        """The smallest honest sum of an item."""
        return 0

    @property
    def min_field_size(self) -> int:
        """Number of elements that the field needs for other reasons than the size of sums."""
        return 2

    @abstractmethod
    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> Any:
        """Compute the response of the user at place `user` of the roster, as its client does."""

    @abstractmethod
    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the weakest guarantee when only `included` users are in the sum.

        The insiders whom the parameters allow for are among them. If users add unequal noise,
        `places` in the roster says who they are; without it, those with the least noise are
        assumed.
        """

    @property
    def derived_parameters(self) -> DerivedParameters:
        """The numbers that follow from the parameters; None for those a mechanism lacks."""
        # By name, so that a mechanism publishes a number simply by having it.
        names = [field.name for field in fields(DerivedParameters)]
        return DerivedParameters(**{name: getattr(self, name, None) for name in names})

    @property
    def noise_tables(self) -> str:
        """The outcomes and cumulative probabilities of all noise tables; empty without one."""
        table = self.derived_parameters.table
        if table is None:
            return ""
        rows = zip(table.values, table.cumulative, strict=True)
        # As text in decimals: programs in other languages hash the same bytes.
        return "".join(f"{value} {cumulative}\n" for value, cumulative in rows)

    @property
    def steps_per_count(self) -> int:
        """By how much one holder raises an item's sum."""
        return 1

    def audited_sums(self, cells: NDArray[Any]) -> Ints:
        """Return the published sums that an audit looks at, as whole numbers of grid steps.

        They are those of the first two items, in which a worst pair differs.
        """
        return np.asarray(np.rint(np.asarray(cells)[:2] * self.steps_per_count), dtype=np.int64)

    @property
    def covered_colluders(self) -> int:
        """Number of colluding users who learn nothing from the shares that they hold."""
        return self.insiders

    def with_equal_noise(self) -> Self:
        """Return a mechanism with at least this protection that is identical for all users."""
        return self

    def for_questionnaire(self, questionnaire: Questionnaire) -> "FieldMechanism":
        """Return the mechanism with which a survey asks these questions; raises if it cannot."""
        self.check_questionnaire(questionnaire)
        return self

    def for_survey(self) -> Self:
        """Return the mechanism as a survey runs it.

        The promise then covers as many colluding users as the shares do.
        """
        return self

    def for_included(self, places: Sequence[int]) -> Self:
        """Return the mechanism as it ran when exactly the users at these places were included."""
        return self

    @cached_property
    def modulus(self) -> int:
        """The prime q: the smallest one with 2^spare_bits elements per possible sum."""
        # Enough elements for all sums with their spare bits, and for whatever else needs the field.
        elements = max((self.sum_span + 1) << self.spare_bits, self.min_field_size)
        q = smallest_prime_above(elements - 1)
        if q.bit_length() > MAX_BITS:
            spare = MAX_BITS - 1 - self.sum_span.bit_length()
            raise ParameterError(
                f"{self.name}: sums take {self.sum_span + 1} different values, and with "
                f"{self.spare_bits} spare bits the field is larger than 2^{MAX_BITS}: "
                f"ask for at most {spare} spare bits"
            )
        return q


@dataclass(frozen=True, kw_only=True)
class VectorMechanism(FieldMechanism):
    """A mechanism with additive shares over F_q: Algorithm 2, for any vectors."""

    collected: ClassVar[Collected] = Collected.SUM

    def total(self, responses: Residues) -> Residues:
        """Return the sum of all vectors mod q."""
        # Checked before adding: NumPy would silently broadcast a table of another shape.
        if np.ndim(responses) != 2 or np.shape(responses)[1] != self.N:
            raise AnswerError(f"responses must be a table with {self.N} columns, one per item")
        check_residues(responses, self.modulus)
        return sum_rows(responses, self.modulus)

    def collect(
        self,
        responses: Residues,
        parties: int | None,
        entropy: Entropy,
        progress: Progress | None = None,
    ) -> tuple[Residues, dict[str, object]]:
        """Share every response additively, add up the shares and reveal the sum."""
        holders = share_holders(self.n, parties)
        sums = exchange(responses, holders, self.modulus, entropy, progress)
        facts: dict[str, object] = {
            "topology": "shares",
            "share holders": holders,
            "modulus": self.modulus,
        }
        return combine(sums, self.modulus), facts

    def check_sum(self, total: Residues) -> Residues:
        """Return a revealed sum, or raise unless it has one canonical residue per item."""
        if np.shape(total) != (self.N,):
            raise AnswerError(f"a sum must have {self.N} entries, one per item")
        check_residues(total, self.modulus)
        return total

    def _signed_sums(self, rows: Residues) -> Ints:
        """Return the sum of vectors of residues as signed integers."""
        return to_signed(sum_rows(rows, self.modulus), self.modulus, self.min_sum)

    def view_of_sums(self, sums: Ints, known: Ints, adversary: Adversary) -> Ints:
        """Return the view of an adversary who knows a part of the published sums."""
        if not adversary.insiders:
            return sums
        return np.hstack([sums - known, known])

    def check_included(self, included: int) -> int:
        """Return the number of users in the sum, or raise unless it lies between 1 and n."""
        # More than n could wrap around in the field, whose size follows from n.
        return check_integer("included", included, least=1, most=self.n)


@dataclass(frozen=True, kw_only=True)
class OneQuestion(FrequencyMechanism, FieldMechanism):
    """What all mechanisms in a field have in common that count the answers to one question."""

    def check_questionnaire(self, questionnaire: Questionnaire) -> None:
        """Refuse anything but one question with exactly the answers that the mechanism counts."""
        first = questionnaire.questions[0]
        labels = tuple(str(label) for label in self.domain.labels)
        if len(questionnaire) > 1 or not isinstance(first, ChoiceQuestion):
            raise ParameterError(
                f"{self.name} counts the answers to one question with exactly one answer each: "
                "several questions, and other kinds, need the mechanism server-joint"
            )
        # In the same order: otherwise every count would be published under another answer.
        if first.answers != labels:
            raise ParameterError(f"{self.name} was created for other answers than the question has")

    def for_questionnaire(self, questionnaire: Questionnaire) -> FieldMechanism:
        """Return the mechanism with the answers as the survey spells them: as text."""
        self.check_questionnaire(questionnaire)
        return replace(self, items=tuple(str(label) for label in self.domain.labels))

    def position_of(self, sheet: Sheet) -> Ints:
        """Return the position of the one answer of a sheet, as an array."""
        if len(sheet) != 1:
            raise AnswerError("a sheet has one answer, since there is one question")
        return self.positions(np.array(sheet), 1)

    def cells_of(self, sheet: Sheet) -> Ints:
        """Return 1 for the answer, and 0 for all others."""
        cells: Ints = one_hot(self.position_of(sheet), self.N)[0]
        return cells


@dataclass(frozen=True, kw_only=True)
class SharedMechanism(OneQuestion, VectorMechanism):
    """Vectors for one question, one entry per item."""

    @abstractmethod
    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return the vectors, as signed integers, of the users at these places of the roster."""

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Residues:
        """Return one row of N residues per user for answers given as item positions."""
        positions = self.positions(answers)
        responses = np.empty((self.n, self.N), dtype=dtype_for(self.modulus))
        # Blocks of users in roster order; the size of a block determines how the stream is read.
        for users in np.array_split(np.arange(self.n), 1 + self.n * self.N // _BLOCK):
            rows = self._draw_residues(positions[users], users, entropy)
            responses[users[0] : users[-1] + 1] = rows
        return responses

    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> Residues:
        """Compute the response of the user at place `user` of the roster, as its client does."""
        place = np.array([check_integer("user", user, most=self.n - 1)])
        row: Residues = self._draw_residues(self.position_of(sheet), place, entropy)[0]
        return row

    def _draw_residues(self, positions: Ints, users: Ints, entropy: Entropy) -> Residues:
        return from_signed(self.contribute(positions, users, entropy), self.modulus)

    @property
    def response_bits(self) -> int:
        """Size of a vector of N packed field elements."""
        return packed_bits(self.modulus, self.N)

    def adversary_view(
        self, responses: Residues, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the sums of the first two items without what insiders sent, then that."""
        # The copies of a user are adjacent, so a row of the reshaped table is one user in all
        # surveys.
        rows = responses[:, :2].reshape(answers.size, copies * 2)
        sums = self._signed_sums(rows).reshape(copies, 2)
        known = self._signed_sums(rows[: adversary.insiders]).reshape(copies, 2)
        return self.view_of_sums(sums, known, adversary)

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the published sums without what insiders sent, then that."""
        sent = np.array(log.responses)[: adversary.insiders, :2]
        view: Ints = self.view_of_sums(sums[None], self._signed_sums(sent)[None], adversary)[0]
        return view

    def check_population(self, population: NDArray[Any]) -> Ints:
        """Return the counts per item of those who take part, or raise if they exceed n."""
        clean = check_counts(population, items=self.N)
        if clean.sum() > self.n:
            raise AnswerError(
                f"counts add up to {clean.sum()}, but the mechanism was created for {self.n} users"
            )
        return clean


@dataclass(frozen=True, kw_only=True)
class NoiseOfUsers(VectorMechanism):
    """Every user is counted and adds a little noise to every entry; any data is protected.

    `insiders` users may pool their knowledge, so that their own noise protects nobody, and
    `dropouts` users may be missing when the sum is revealed. The guarantee relies on the noise of
    the other h = n - insiders - dropouts users. In the zero-out relation, a user who is zeroed out
    still adds noise, to a zero vector.
    """

    error_power: ClassVar[float] = 1.0
    parameter_docs: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants, whose own noise does not protect",
        "dropouts": "dropout allowance: users who may be missing when the sum is revealed",
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"h": "h"}

    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            insiders=check_integer("insiders", self.insiders),
            dropouts=check_integer("dropouts", self.dropouts),
        )
        missing = self.insiders + self.dropouts
        if self.users is not None and self.users <= missing:
            raise ParameterError(
                f"{self.name}: of {self.users} users, {self.insiders} may be insiders and "
                f"{self.dropouts} may drop out, so nobody's noise can be counted on: "
                f"invite more than {missing} users or expect fewer of both"
            )

    @property
    def h(self) -> int:
        """Number of users whose noise the guarantee relies on."""
        return self.n - self.insiders - self.dropouts

    @property
    def default_adversary(self) -> Adversary:
        """The insiders whom the parameters allow for."""
        return insiders(self.insiders)

    def unknown_users(self, adversary: Adversary) -> int:
        """Return how many users' noise the adversary does not know; possibly below 1.

        All expected dropouts are missing. From a collector, who sees the user's own report, only
        the user's own noise protects.
        """
        if adversary == COLLECTOR:
            return 1
        return self.n - adversary.insiders - self.dropouts

    def count_honest(self, included: int) -> int:
        """Return how many included users are no insiders; raises if there are none."""
        users = self.check_included(included)
        if users <= self.insiders:
            raise RefusedError(
                f"{users} users took part and {self.insiders} may collude: no noise is left"
            )
        return users - self.insiders

    def _with_same_noise(self, copies: int) -> Self:
        """Return the mechanism for `copies` times as many users and the same noise per user."""
        users = self.n * copies
        # The noise per user depends on h, so h is kept by declaring all further users insiders.
        return replace(self, users=users, insiders=users - self.dropouts - self.h)

    def stated_guarantees(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """Return the guarantees; beyond the dropout allowance, from the noise that was added."""
        if included is None or self.users is None or self.users - included <= self.dropouts:
            return super().stated_guarantees()
        epsilon = 1.0 if self.promise[0] is None else None
        return (self.remaining_guarantee(included, epsilon=epsilon),)


@dataclass(frozen=True, kw_only=True)
class NoiseMechanism(NoiseOfUsers, SharedMechanism):
    """Noise of the users on the counts of one question."""

    @property
    def count_step(self) -> float:
        """All holders are counted, so the sum is the count plus noise."""
        return 1.0

    def honest_channel(self, insiders: int) -> Channel:
        """Return the channel of all users but the first `insiders`, whose noise is known."""
        return self.channel(self.n - insiders)

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return any two neighbouring data sets: noise protects all of them equally."""
        # A mechanism without a number of users is audited with few: its noise protects any data.
        users = self.users or AUDITED_USERS + self.insiders + self.dropouts
        against = adversary or self.default_adversary
        small = replace(self, users=users, items=self.domain.labels[: self.audited_items])
        # The insiders come first in the roster, where users may have more noise than the others.
        channel = small.honest_channel(against.insiders)
        return WorstPair.for_added_noise(small, users, channel, against)

    @property
    def audited_items(self) -> int:
        """How many items an audited survey has: the two that a replaced answer moves."""
        return 2


@dataclass(frozen=True, kw_only=True)
class BoundedNoise(SharedMechanism):
    """Noise that leaves its bounds once in 2^60 surveys, from which the range of sums follows.

    Bounds and sums are in grid steps, `steps_per_count` of which make one count.
    """

    @abstractmethod
    def bound_noise(self, entries: int, tail: float) -> int:
        """Return B with P(|sum of the noise in `entries` entries| > B) <= tail."""

    @cached_property
    def bound(self) -> int:
        """B: the noise of every item stays within +-B, except with probability 2^-60."""
        # Union bound over the items.
        return self.bound_noise(1, OVERFLOW_PROBABILITY / self.N)

    @cached_property
    def total_bound(self) -> int:
        """The same bound for the noise of all items added up."""
        # The total of all items is known, so it is checked more narrowly than each of them.
        return self.bound_noise(self.N, OVERFLOW_PROBABILITY)

    @property
    def min_sum(self) -> int:
        """No holder, and noise of -B."""
        return -self.bound

    @property
    def sum_span(self) -> int:
        """Sums from -B to n + B; a sum that wraps around costs accuracy, never privacy."""
        return self.n * self.steps_per_count + 2 * self.bound

    def decode(self, total: Residues, included: int) -> NDArray[Any]:
        """Return noisy counts, checked against the bounds of the noise per item and in total."""
        top = self.check_included(included) * self.steps_per_count
        spread = self.total_bound
        steps = to_signed(self.check_sum(total), self.modulus, self.min_sum)
        return check_range(steps, -self.bound, top + self.bound, top - spread, top + spread)


@dataclass(frozen=True, kw_only=True)
class TableNoise(BoundedNoise, NoiseMechanism):
    """Noise that every user draws for every entry from one public table."""

    @property
    @abstractmethod
    def table(self) -> DrawTable:
        """Distribution of one user's noise in one entry, in grid steps; the same for all users."""

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return one-hot vectors plus a draw from the table in every entry."""
        noise = self.table.draw(users.size * self.N, entropy).reshape(users.size, self.N)
        return one_hot(answers, self.N, self.steps_per_count) + noise


def as_field_mechanism(mechanism: Mechanism) -> FieldMechanism:
    """Return the mechanism with its type, or raise if it makes no shares."""
    if not isinstance(mechanism, FieldMechanism):
        raise ParameterError(
            f"{mechanism.name} makes no shares, so no protocol runs it: choose one that does"
        )
    return mechanism


def as_one_question(mechanism: Mechanism) -> OneQuestion:
    """Return the mechanism with its type, or raise unless it makes shares of one question."""
    shared = as_field_mechanism(mechanism)
    if not isinstance(shared, OneQuestion):
        raise ParameterError(f"{mechanism.name} is made for a questionnaire, not for one question")
    return shared


def share_holders(users: int, parties: int | None) -> int:
    """Return how many parties hold shares of a response.

    By default all users in small surveys, and two servers in larger ones.
    """
    if parties is not None:
        return check_integer("parties", parties, least=2)
    return users if 2 <= users <= EVERY_USER_UP_TO else 2


def one_hot(positions: Ints, items: int, height: int = 1) -> Ints:
    """Return one row per position, with `height` at the position and 0 elsewhere."""
    vectors = np.zeros((positions.size, items), dtype=np.int64)
    vectors[np.arange(positions.size), positions] = height
    return vectors


def chernoff_bound(log_mgf: Callable[[Floats], Floats], largest: float, tail: float) -> int:
    """Return B with P(|Z| > B) <= tail for a symmetric Z with this log moment generating function.

    Chernoff: P(Z >= b) <= exp(K(t) - t b) for every 0 < t < largest, where K is `log_mgf`.
    """
    # Every t gives a valid bound, so the grid costs a few units of tightness and never validity.
    t = largest * np.geomspace(1e-4, 1, 400)[:-1]
    return int(np.ceil(np.min((log_mgf(t) + np.log(2 / tail)) / t)))

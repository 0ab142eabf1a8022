"""The interface that every mechanism implements.

A mechanism turns private answers into a published estimate and accounts for the privacy of it:

    answers --respond--> responses --total--> sum --decode--> aggregate --estimate--> estimate
                      (one per user)                              ^
    counts  --draw------------------------------------------------+   same distribution, in O(N)

The upper path is what clients and servers compute. `draw` samples the aggregate directly from its
distribution, which simulations use because it does not depend on the number of users. `variance` is
the theoretical variance of `estimate`, and `guarantee` the privacy of publishing the aggregate.

A mechanism also describes itself, so that planning, auditing and the protocol need no list of
mechanisms: its name and parameters, what a server sees of the responses (`collected`), whether all
users draw from the same distribution (`identical_for_all_users`), whether reports carry a validity
proof (`proven`), which adversaries it protects from (`adversaries`), what remains of the guarantee
when users drop out (`stated_guarantees`), and how its parameters follow from a privacy budget
(`calibrate`). It knows neither topologies nor commands.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from inspect import cleandoc
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses
from faircount.accounting.conditions import Condition
from faircount.accounting.divergence import epsilon_for
from faircount.accounting.guarantee import OUTSIDER, Adversary, Guarantee, Relation, check_adversary
from faircount.core.arrays import Floats, Ints
from faircount.core.domain import Domain
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.validation import MAX_USERS, check_frequencies, check_integer
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import WorstPair

# Called with the number of users that have been processed so far.
Progress = Callable[[int], None]

# The delta at which epsilon is stated when the parameters of a mechanism fix neither of them.
DEFAULT_DELTA = 1e-6


class Collected(StrEnum):
    """What the servers see of the responses; decides which topologies can run a mechanism."""

    # One vector over a prime field per user, of which only the sum of all vectors is revealed.
    SUM = "sum"
    # The coordinator sees which items a user reports, and only the sums per item are revealed.
    SETS = "sets"
    # The server sees the randomized report of every user.
    REPORTS = "reports"
    # A trusted server sees every answer in the clear.
    ANSWERS = "answers"


def _merge_tables(kind: type, table: str) -> dict[str, str]:
    """Merge the class attribute `table` of a class and its bases; subclasses override."""
    merged: dict[str, str] = {}
    # Base classes first, so that their parameters are listed first and can be described anew.
    for base in reversed(kind.__mro__):
        merged.update(vars(base).get(table, {}))
    return merged


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A randomized algorithm from private answers to a published estimate, with exact accounting.

    Mechanisms are immutable. A parameter is a field of the dataclass, is validated when the
    mechanism is created, and is described in `parameter_docs`, from which the list of parameters at
    the end of every docstring is generated.
    """

    name: ClassVar[str]
    collected: ClassVar[Collected]

    # Parameters that an audit needs; `epsilon` may also be the epsilon of the audited claim.
    required_parameters: ClassVar[tuple[str, ...]] = ("epsilon",)

    # Name of a parameter -> its description, given by the class that introduces the field.
    parameter_docs: ClassVar[dict[str, str]] = {
        "users": "number of users who take part; may be left out until the survey runs"
    }

    # Whether a report comes with a proof that it is a single vote (see `ProvenMechanism`).
    proven: ClassVar[bool] = False

    users: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The generated list is what help() and the API reference show, with inherited parameters.
        documented = _merge_tables(cls, "parameter_docs").items()
        listed = "\n".join(f"{name}: {description}" for name, description in documented)
        cls.__doc__ = f"{cleandoc(cls.__doc__ or cls.__name__)}\n\n{listed}"

    def __post_init__(self) -> None:
        if self.users is not None:
            set_fields(self, users=check_integer("users", self.users, least=1, most=MAX_USERS))

    def bind(self, users: int) -> Self:
        """Return the mechanism for this number of users.

        A mechanism that already has a number of users can only be bound to the same number.
        """
        if self.users is not None and self.users != users:
            raise ParameterError(
                f"the mechanism was created for {self.users} users, but there are {users}"
            )
        return replace(self, users=users)

    @property
    def n(self) -> int:
        """The number of users; an error if it has not been given yet."""
        if self.users is None:
            raise ParameterError(
                f"{self.name}: give users=, the number of users who will take part"
            )
        return self.users

    @abstractmethod
    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Any:
        """Compute the responses of all users; row i is what the client of user i computes."""

    @abstractmethod
    def total(self, responses: Any) -> Any:
        """Add up the responses; the sum is all that an honest run uses of them."""

    def collect(
        self,
        responses: Any,
        parties: int | None,
        entropy: Entropy,
        progress: Progress | None = None,
    ) -> tuple[Any, dict[str, object]]:
        """Compute the same sum as `total` in the way the servers do, from shares of `parties`.

        Returns the sum and the facts about the computation that a result records.
        """
        return self.total(responses), {}

    @abstractmethod
    def decode(self, total: Any, included: int) -> Any:
        """Decode the sum of `included` users; a sum outside the possible range is an error."""

    @abstractmethod
    def draw(self, population: Any, rng: np.random.Generator) -> Any:
        """Sample an aggregate with the distribution of decode(total(respond(...))).

        For simulations only: `rng` is not cryptographically secure.
        """

    @abstractmethod
    def estimate(self, aggregate: Any, included: int) -> Any:
        """Return an unbiased estimate for the included users."""

    @abstractmethod
    def variance(self, truth: Any, included: int | None = None) -> Any:
        """Return the variance that privacy noise gives `estimate` when the users hold `truth`."""

    @abstractmethod
    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return delta at this epsilon: exact, or an upper bound where a subclass says so."""

    def condition(self, adversary: Adversary) -> Condition | None:
        """Return what the guarantee assumes about the data or the servers; None for nothing."""
        return None

    @property
    def default_adversary(self) -> Adversary:
        """The adversary that an audit plays first: by default, a reader of the published result."""
        return OUTSIDER

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """All adversaries against whom a complete privacy statement gives a guarantee."""
        return (self.default_adversary,)

    def check_adversary(self, adversary: object) -> Adversary:
        """Return the adversary, or raise if the mechanism has no guarantee against it."""
        return check_adversary(adversary)

    @property
    def participants(self) -> Adversary:
        """The colluding participants whom the parameters allow for; else a reader."""
        return self.default_adversary

    @property
    def insiders(self) -> int:
        """Number of colluding users whom the parameters allow for."""
        return 0

    @property
    def dropouts(self) -> int:
        """Dropout allowance: how many users may be missing when the sum is revealed."""
        return 0

    @property
    def makes_shares(self) -> bool:
        """Whether responses stay secret until they are added up."""
        return self.collected in (Collected.SUM, Collected.SETS)

    @property
    def identical_for_all_users(self) -> bool:
        """Whether all users draw from the same distribution, so that no roster is needed."""
        return True

    @property
    def promise(self) -> tuple[float | None, float | None]:
        """(epsilon, delta) that the parameters were calibrated for; None where they fix none."""
        return getattr(self, "epsilon", None), getattr(self, "delta", None)

    def guarantee(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adversary: Adversary | None = None,
        relation: Relation = Relation.REPLACE_ONE,
    ) -> Guarantee:
        """Return delta at the given epsilon, or epsilon at the given delta.

        With neither, the epsilon that the parameters were calibrated for is used. Without an
        adversary, the weakest guarantee over all `adversaries` is returned.
        """
        if epsilon is not None and delta is not None:
            raise ParameterError("give epsilon or delta, not both: the other one is computed")
        if epsilon is None and delta is None:
            epsilon = self.promise[0]
        if adversary is None:
            return self.guarantees(epsilon=epsilon, delta=delta, relation=relation)[0]

        against = self.check_adversary(adversary)
        neighbours = Relation.of(relation)
        if epsilon is None:
            if delta is None:
                raise ParameterError(
                    f"{self.name}: give epsilon= or delta=, the other one is computed"
                )
            epsilon = epsilon_for(lambda value: self.delta_at(value, against, neighbours), delta)
        # Delta is computed again at the epsilon found: it is exact there, and at most what was
        # asked for.
        spent = self.delta_at(epsilon, against, neighbours)
        return Guarantee(epsilon, spent, neighbours, against, self.condition(against))

    def guarantees(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: Relation = Relation.REPLACE_ONE,
    ) -> tuple[Guarantee, ...]:
        """Return one guarantee per adversary, the weakest first."""
        found = [
            self.guarantee(epsilon=epsilon, delta=delta, adversary=adversary, relation=relation)
            for adversary in self.adversaries
        ]
        if delta is None:
            return tuple(sorted(found, key=lambda g: (g.delta, g.epsilon), reverse=True))
        # At a given delta the deltas differ by rounding only, and epsilon tells which is weakest.
        return tuple(sorted(found, key=lambda g: (g.epsilon, g.delta), reverse=True))

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return the neighbouring data sets on which delta at this epsilon is largest.

        They may depend on the adversary, which is by default the first that an audit plays.
        """
        raise ParameterError(
            f"{self.name} defines no worst pair of data sets, so it cannot be audited"
        )

    def same_view(self, adversary: Adversary) -> Adversary:
        """Return the adversary whom an audit plays for this one, because both see the same."""
        return adversary

    def adversary_view(
        self, responses: Any, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return what the adversary computes from the responses of `copies` surveys.

        The result has one row of integers per survey: first those whose distribution the worst pair
        knows, then whatever else the adversary knows, such as its own noise. The responses are
        ordered by user, `copies` in a row for the same user. The insiders come first; of `answers`,
        one per user, the adversary knows all but the last.
        """
        raise ParameterError(f"{self.name} defines no adversary's view, so it cannot be audited")

    def simulate_views(
        self,
        answers: NDArray[Any],
        copies: int,
        adversaries: Sequence[Adversary],
        entropy: Entropy,
    ) -> list[Ints]:
        """Run `copies` surveys with these answers and return every adversary's view of them.

        The responses come from the same code that clients run. All surveys share one call of
        `respond` where the mechanism can be batched.
        """
        batch = self.for_batch(copies)
        if batch is not None:
            responses = batch.respond(np.repeat(answers, copies), entropy)
            return [
                batch.adversary_view(responses, answers, copies, adversary)
                for adversary in adversaries
            ]
        views: list[list[Ints]] = [[] for _ in adversaries]
        for _ in range(copies):
            responses = self.respond(answers, entropy)
            for seen, adversary in zip(views, adversaries, strict=True):
                seen.append(self.adversary_view(responses, answers, 1, adversary))
        return [np.concatenate(seen) for seen in views]

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the view of one whole survey: its published sums of two items, and its draws.

        The result is one row of what `adversary_view` returns.
        """
        raise ParameterError(f"{self.name} makes no shares, so no protocol runs it")

    @property
    def has_fast_simulation(self) -> bool:
        """Whether `simulate_views` runs hundreds of thousands of surveys within seconds."""
        return self.for_batch(1) is not None

    # Work per user of a simulated survey, compared with a mechanism that draws a few numbers.
    simulation_cost: ClassVar[int] = 1

    def for_batch(self, copies: int) -> Self | None:
        """Return a mechanism that runs `copies` surveys in one call, or None if there is none.

        In the batch every user of every survey draws exactly as in a survey of its own. Users are
        ordered by their place in the roster, `copies` in a row for the same place.
        """
        return None

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the privacy losses for exact composition (replace-one).

        None means that only the (epsilon, delta) guarantee itself can be composed.
        """
        return None

    def stated_guarantees(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """Return the guarantees that a result states, one per adversary, the weakest first.

        They are stated at the promised epsilon, else at delta = 1e-6, else at epsilon = 1.
        If more users are missing than the dropout allowance, subclasses return what remains.
        """
        if self.promise[0] is not None:
            return self.guarantees()
        try:
            return self.guarantees(delta=DEFAULT_DELTA)
        except RefusedError:
            # No epsilon reaches this delta, as for sampling without a floor.
            return self.guarantees(epsilon=1.0)


@dataclass(frozen=True, kw_only=True)
class FrequencyMechanism(Mechanism):
    """A mechanism for the frequencies of N items when every user holds one item."""

    # The error falls like n^(-error_power): 1/2 if every user randomizes, 1 for noise on the sum.
    error_power: ClassVar[float] = 0.5

    parameter_docs: ClassVar[dict[str, str]] = {
        "items": "number of items, or the public list of labels"
    }

    # Name in `parameters` -> attribute that holds the value; those of base classes come first.
    parameter_attributes: ClassVar[dict[str, str]] = {}

    items: int | Sequence[object] | Domain

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, items=Domain.of(self.items))

    @cached_property
    def domain(self) -> Domain:
        """The public list of items."""
        return Domain.of(self.items)

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of items."""
        return len(self.domain)

    def positions(self, answers: NDArray[Any], size: int | None = None) -> Ints:
        """Validate encoded answers: one position in 0..N-1 per user.

        Error messages never repeat an answer, because they may end up in a log.
        """
        encoded = np.asarray(answers)
        users = self.n if size is None else size
        if encoded.dtype.kind not in "iu" or encoded.shape != (users,):
            raise AnswerError(
                f"answers must be {users} positions in the item list, one per user: "
                "encode them first"
            )
        if encoded.size and (encoded.min() < 0 or encoded.max() >= self.N):
            raise AnswerError(
                f"an answer lies outside the {self.N} items: encode answers with the item list"
            )
        return encoded.astype(np.int64)

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism that spends the given budget; raises if there is none."""
        raise RefusedError(f"{cls.name} has no rule that finds its parameters for a budget")

    @classmethod
    def example(cls, users: int, items: int) -> "FrequencyMechanism":
        """Return a small instance on which the tests of the interface run."""
        # A weak budget, and the largest floor that this number of users can guarantee.
        wanted = Requirements(users, items, epsilon=2.0, delta=0.01, floor=(users - 1) // items)
        return cls.calibrate(wanted).mechanism

    @property
    def floor(self) -> int:
        """Number of other holders that every item must have for the guarantee to hold."""
        return 0

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of a run under their names in the paper: p, D, gamma, q and so on."""
        attributes = _merge_tables(type(self), "parameter_attributes").items()
        return {name: getattr(self, attribute) for name, attribute in attributes}

    @property
    def response_bits(self) -> int:
        """Size of one response before it is shared and encrypted: here, the index of an item."""
        return (self.N - 1).bit_length()

    @abstractmethod
    def channel(self, included: int) -> Channel:
        """Return the distribution of one item's sum when `included` users take part."""

    def estimate(self, aggregate: NDArray[Any], included: int, *, raw: bool = False) -> Floats:
        """Return unbiased frequencies of the included users (for sampling, Horvitz-Thompson).

        Where all items have independent noise, they are fitted to sum to one; `raw` ones are not.
        """
        count = check_integer("included", included, least=1)
        channel = self.channel(count)
        if raw or not channel.fits_total(self.N):
            return channel.estimate(aggregate, count)
        return channel.fit(aggregate, count) / count

    def variance(self, truth: Floats, included: int | None = None, *, raw: bool = False) -> Floats:
        """Return the variance of every estimated frequency, from privacy noise only."""
        count = self.n if included is None else check_integer("included", included, least=1)
        channel = self.channel(count)
        spread = channel.variance(check_frequencies(truth, items=self.N), count)
        fitted = not raw and channel.fits_total(self.N)
        return spread * (1 - 1 / self.N) if fitted else spread

    def expected_errors(self, included: int) -> tuple[float, float]:
        """Return the standard error and the 95% half-width for an item of average frequency.

        The half-width comes from the distribution of the sum itself, which is close to normal only
        where the sum has a standard deviation of hundreds of counts.
        """
        return self.channel(included).fitted_to_total(self.N).expected_errors(self.N, included)

    def reaches(self, half_width: float, included: int) -> bool:
        """Whether the 95% half-width for an item of average frequency is at most this.

        A plan asks this of hundreds of numbers of users: a mechanism may answer no without the
        distribution of the sum, where a bound is enough.
        """
        return self.expected_errors(included)[1] <= half_width

    @property
    def count_step(self) -> float:
        """By how much one more in an item's sum raises the estimated count."""
        channel = self.channel(self.n)
        return 1 / (channel.hit - channel.miss)


def set_fields(mechanism: Mechanism, **values: object) -> None:
    """Store validated parameters in a frozen mechanism.

    The values are Python numbers: NumPy's small integers would wrap around in sums.
    """
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)


def check_range(values: Ints, low: int, high: int, total_low: int, total_high: int) -> Ints:
    """Return the sums, or raise if honest responses cannot produce them."""
    if np.any(values < low) or np.any(values > high):
        raise CorruptSumError(
            f"a revealed count lies outside [{low}, {high}]: a response was corrupted"
        )
    # A corrupted item often stays within its own range, but rarely keeps the total within its own.
    if not total_low <= int(values.sum()) <= total_high:
        raise CorruptSumError(
            f"the revealed counts add up to a number outside [{total_low}, {total_high}]"
        )
    return values

"""The one contract that every mechanism keeps.

    answers --respond--> responses --total--> sum --decode--> aggregate --estimate--> what the analyst reads
                     (per user)                                  ^
    counts  --draw-----------------------------------------------+   the same law in O(N), for simulations

`variance` is the theory for `estimate`, `guarantee` the privacy of publishing the aggregate.

A mechanism also says of itself what others need to know: its name and parameters, what a server sees of the responses
(`collected`), whether all users do the same (`every_user_alike`), whether reports are proven (`proven`), whom it
protects from (`adversaries`), what is left of the guarantee when users vanish (`stated`, `realized`), and which of its
kind spends a given budget (`calibrated`). It knows no topology and no command.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from inspect import cleandoc
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses
from faircount.accounting.divergence import epsilon_for
from faircount.accounting.guarantee import OUTSIDER, Adversary, Guarantee, Relation, known
from faircount.core.arrays import Floats, Ints
from faircount.core.domain import Domain
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.validation import MOST_USERS, frequencies, integer
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.worst_pair import WorstPair

Progress = Callable[[int], None]
"""Is told the number of users done."""

DEFAULT_DELTA = 1e-6
"""delta at which a mechanism's epsilon is stated when its parameters do not fix one."""


class Collected(StrEnum):
    """What the servers see of the users' responses. A topology decides from this whether it can carry them."""

    SUM = "sum"  # each user makes one vector over a field, and only the sum of all vectors is opened
    SETS = "sets"  # S1 sees which items each user reports; only the sums of what they report are opened
    REPORTS = "reports"  # the server sees every user's own randomized report
    ANSWERS = "answers"  # a trusted server sees every answer in the clear


def _gathered(kind: type, table: str) -> dict[str, str]:
    """What a class and its bases say in a table of this name, each about itself."""
    return {name: words for base in kind.__mro__[::-1] for name, words in vars(base).get(table, {}).items()}


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A way from private answers to a published estimate, with its exact privacy."""

    name: ClassVar[str]
    collected: ClassVar[Collected]
    needs: ClassVar[tuple[str, ...]] = ("epsilon",)
    """Parameters that must be given before its privacy can be tested; epsilon may be that of the claim."""

    means: ClassVar[dict[str, str]] = {"users": "number of users who take part; may be left out until the survey runs"}
    """What its parameters mean, each where it is a field; the docstring of every mechanism lists all of them."""

    proven: ClassVar[bool] = False
    """Whether a report comes with a proof that it is one vote, as those of every `VerifiedMechanism` do."""

    users: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        listed = "\n".join(f"{name}: {words}" for name, words in _gathered(cls, "means").items())
        cls.__doc__ = f"{cleandoc(cls.__doc__ or cls.__name__)}\n\n{listed}"

    def __post_init__(self) -> None:
        if self.users is not None:
            keep(self, users=integer("users", self.users, least=1, most=MOST_USERS))

    def bind(self, users: int) -> Self:
        """The same mechanism for this number of users; a number fixed before must agree."""
        if self.users is not None and self.users != users:
            raise ParameterError(f"the mechanism was made for {self.users} users, but there are {users}")
        return replace(self, users=users)

    @property
    def n(self) -> int:
        """Number of users; needed from here on."""
        if self.users is None:
            raise ParameterError(f"{self.name}: give users=, the number of users who will take part")
        return self.users

    @abstractmethod
    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Any:
        """What each user's device makes of its own answer; row i belongs to user i."""

    @abstractmethod
    def total(self, responses: Any) -> Any:
        """The sum that an honest run opens: nothing else of the responses is used."""

    def collect(
        self, responses: Any, parties: int | None, entropy: Entropy, progress: Progress | None = None
    ) -> tuple[Any, dict[str, object]]:
        """The same sum, made as the servers make it, and what is to be remembered of how; `parties` hold shares."""
        return self.total(responses), {}

    @abstractmethod
    def decode(self, total: Any, included: int) -> Any:
        """The sum as numbers, checked against its possible range; `included` users took part."""

    @abstractmethod
    def draw(self, population: Any, rng: np.random.Generator) -> Any:
        """An aggregate with the law of decode(total(respond(...))), drawn directly. Simulations only."""

    @abstractmethod
    def estimate(self, aggregate: Any, included: int) -> Any:
        """Unbiased estimate of what these users hold."""

    @abstractmethod
    def variance(self, truth: Any, included: int | None = None) -> Any:
        """Variance of `estimate` when the users hold `truth`: privacy noise alone."""

    @abstractmethod
    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """The exact (or, where said, an upper bound on) delta at this epsilon."""

    def condition(self, adversary: Adversary) -> str | None:
        """What must be true of the data for the guarantee to hold; None for nothing."""
        return None

    @property
    def default_adversary(self) -> Adversary:
        """Who reads the published result and nothing else: the adversary that an audit plays."""
        return OUTSIDER

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Everybody a complete statement of privacy speaks about."""
        return (self.default_adversary,)

    def accounted(self, adversary: object) -> Adversary:
        """An adversary whose view is accounted for; anybody else is refused."""
        return known(adversary)

    @property
    def participants(self) -> Adversary:
        """The colluding participants that the parameters were made for; else who reads the result."""
        return self.default_adversary

    @property
    def insiders(self) -> int:
        """Colluding users whom the parameters allow for."""
        return 0

    @property
    def dropouts(self) -> int:
        """Users who may vanish before the sum is opened, as the parameters allow for."""
        return 0

    @property
    def makes_shares(self) -> bool:
        """Whether responses are secret until they are added up; else a server sees each of them."""
        return self.collected in (Collected.SUM, Collected.SETS)

    @property
    def every_user_alike(self) -> bool:
        """Whether every user draws from the same law, so that no user needs a place in a roster."""
        return True

    @property
    def promise(self) -> tuple[float | None, float | None]:
        """(epsilon, delta) that the parameters were made for, its fields; None where they do not fix one."""
        return getattr(self, "epsilon", None), getattr(self, "delta", None)

    def guarantee(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adversary: Adversary | None = None,
        relation: Relation = Relation.REPLACE_ONE,
    ) -> Guarantee:
        """The delta at an epsilon, or the epsilon at a delta; with neither, at the epsilon promised.

        Without an adversary it is the weakest of all guarantees, which names its own.
        """
        if epsilon is not None and delta is not None:
            raise ParameterError("give epsilon or delta, not both: the other one is computed")
        if epsilon is None and delta is None:
            epsilon = self.promise[0]
        if adversary is None:
            return self.guarantees(epsilon=epsilon, delta=delta, relation=relation)[0]
        against, relation = self.accounted(adversary), Relation.of(relation)
        if epsilon is None:
            if delta is None:
                raise ParameterError(f"{self.name}: give epsilon= or delta=, the other one is computed")
            epsilon = epsilon_for(lambda each: self.delta_at(each, against, relation), delta)
        return Guarantee(epsilon, self.delta_at(epsilon, against, relation), relation, against, self.condition(against))

    def guarantees(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: Relation = Relation.REPLACE_ONE,
    ) -> tuple[Guarantee, ...]:
        """One guarantee per adversary; the weakest comes first."""
        against = partial(self.guarantee, epsilon=epsilon, delta=delta, relation=relation)
        each = [against(adversary=who) for who in self.adversaries]
        asked = delta is not None  # then deltas differ by rounding alone, and epsilon says which is the weakest
        return tuple(sorted(each, key=lambda g: (g.epsilon, g.delta) if asked else (g.delta, g.epsilon), reverse=True))

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """The neighbouring data sets on which it hides least at this epsilon; `reader` knows nobody's noise."""
        raise ParameterError(f"{self.name} names no worst pair of data sets, so it cannot be audited")

    def seen(self, responses: Any, copies: int, insiders: int) -> Ints:
        """What the adversary looks at in each of `copies` surveys: whole numbers, one row per survey.

        Responses come user by user, each in all surveys; what the first `insiders` users sent is taken off.
        """
        raise ParameterError(f"{self.name} does not say what is seen of it, so it cannot be audited")

    def observed(self, answers: NDArray[Any], copies: int, insiders: int, entropy: Entropy) -> Ints:
        """What the adversary sees in each of `copies` surveys with these answers, from what the users' own code makes.

        Many surveys in one call of `respond` where the mechanism allows it, else one call for each.
        """
        wide = self.side_by_side(copies)
        if wide is not None:
            return wide.seen(wide.respond(np.repeat(answers, copies), entropy), copies, insiders)
        return np.concatenate([self.seen(self.respond(answers, entropy), 1, insiders) for _ in range(copies)])

    @property
    def observed_quickly(self) -> bool:
        """Whether hundreds of thousands of surveys are observed in seconds."""
        return self.side_by_side(1) is not None

    def side_by_side(self, copies: int) -> Self | None:
        """The mechanism for so many surveys at once, in which each user does as it does alone; None if there is none.

        Users come in the order of their places, each `copies` times.
        """
        return None

    def losses(self, adversary: Adversary) -> Losses | None:
        """What composes exactly (replace-one); None where only the guarantee itself does."""
        return None

    def stated(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """Per adversary, weakest first: at the promised epsilon, else at delta 1e-6, else at epsilon 1.

        If more users are missing than the parameters allow for, what is left of the guarantee without them.
        """
        if self.promise[0] is not None:
            return self.guarantees()
        try:
            return self.guarantees(delta=DEFAULT_DELTA)
        except RefusedError:
            return self.guarantees(epsilon=1.0)


@dataclass(frozen=True, kw_only=True)
class FrequencyMechanism(Mechanism):
    """A mechanism for the frequencies of N items, one item per user."""

    error_power: ClassVar[float] = 0.5
    """The error falls about like the number of users to this power: 1/2 for coins of each user, 1 for added noise."""

    means: ClassVar[dict[str, str]] = {"items": "number of items, or the public list of labels"}

    run_with: ClassVar[dict[str, str]] = {}
    """Names of its own `parameters`, and of the attributes that have them; they come after those of its bases."""

    items: int | Sequence[object] | Domain

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, items=Domain.of(self.items))

    @cached_property
    def domain(self) -> Domain:
        """The public list of items."""
        return Domain.of(self.items)

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of items."""
        return len(self.domain)

    def positions(self, answers: NDArray[Any], size: int | None = None) -> Ints:
        """Encoded answers, one position in 0..N-1 per user; the message of a refusal repeats no answer."""
        held, users = np.asarray(answers), self.n if size is None else size
        if held.dtype.kind not in "iu" or held.shape != (users,):
            raise AnswerError(f"answers must be {users} positions in the item list, one per user: encode them first")
        if held.size and (held.min() < 0 or held.max() >= self.N):
            raise AnswerError(f"an answer lies outside the {self.N} items: encode answers with the item list")
        return held.astype(np.int64)

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        """The mechanism that spends this budget, and nothing more; refused with the reason where it cannot."""
        raise RefusedError(f"{cls.name} has no rule that finds its parameters for a budget")

    @classmethod
    def example(cls, users: int, items: int) -> "FrequencyMechanism":
        """A small one of this kind, on which the contract is tested: made for a weak budget, with the largest floor."""
        wanted = Requirements(users, items, epsilon=2.0, delta=0.01, floor=(users - 1) // items)
        return cls.calibrated(wanted).mechanism

    @property
    def floor(self) -> int:
        """Holders besides any one user that every item must have for the guarantee to hold."""
        return 0

    @property
    def parameters(self) -> dict[str, float]:
        """What it is run with, by the names used on paper: p, D, gamma, q and the like."""
        return {name: getattr(self, where) for name, where in _gathered(type(self), "run_with").items()}

    @property
    def response_bits(self) -> int:
        """Size of what one user's device computes from its answer, before shares and seals: here, one item's number."""
        return (self.N - 1).bit_length()

    @abstractmethod
    def channel(self, included: int) -> Channel:
        """The law of one item's sum when `included` users took part."""

    def estimate(self, aggregate: NDArray[Any], included: int) -> Floats:
        """Unbiased estimate of the frequencies among the included users (Horvitz-Thompson for sampling)."""
        return self.channel(included).estimate(aggregate, integer("included", included, least=1))

    def variance(self, truth: Floats, included: int | None = None) -> Floats:
        """Variance of each estimated frequency when the users' frequencies are `truth`: privacy noise alone."""
        count = self.n if included is None else integer("included", included, least=1)
        return self.channel(count).variance(frequencies(truth, items=self.N), count)

    def expected_errors(self, included: int) -> tuple[float, float]:
        """Standard error and 95% half-width of an average item's frequency when so many users are in the sum.

        The half-width is that of the sum's own law, which is normal only where the sum spreads over hundreds of counts.
        """
        return self.channel(included).expected_errors(self.N, included)

    @property
    def count_step(self) -> float:
        """How much one more in an item's sum adds to its estimated count."""
        law = self.channel(self.n)
        return 1 / (law.hit - law.miss)


def keep(mechanism: Mechanism, **clean: object) -> None:
    """Store checked parameters: Python numbers, because NumPy's small integers would wrap around in sums."""
    for name, value in clean.items():
        object.__setattr__(mechanism, name, value)


def check_range(values: Ints, low: int, high: int, total_low: int, total_high: int) -> Ints:
    """Refuse sums that honest responses cannot make, per item or in total; corruption mostly shows in the total."""
    if np.any(values < low) or np.any(values > high):
        raise CorruptSumError(f"an opened count lies outside [{low}, {high}]: a response was corrupted")
    if not total_low <= int(values.sum()) <= total_high:
        raise CorruptSumError(f"the opened counts add up to a number outside [{total_low}, {total_high}]")
    return values

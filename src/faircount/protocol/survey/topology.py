"""Topologies, the ways in which shares travel: their common interface, and the registry by name.

The mechanism decides what is computed; the topology decides who sends what to whom, and so who sees
what before the result is published:

    servers     every client sends one share to the coordinator and one, encrypted, to the
                aggregator. Each server sees one uniform share of every response
    explicit    clients exchange shares with all others through the coordinator, which sees
                ciphertexts. A client sees one uniform share of every other response
    masked      clients add masks that cancel with those of their neighbours in a random graph. The
                coordinator sees masked vectors, the aggregator seeds of masks and one sum
    two-stage   elected helpers add up shares. The coordinator sees which items a client reports,
                helpers see uniform shares, the aggregator how many clients report an item

Everybody sees the result. What a party learns besides is covered by the guarantee, which states
epsilon and delta for each adversary where they differ.

A topology is a package in `protocol/topologies` with a subclass of `Topology`. Loading the package
registers an instance, and `faircount.protocol` loads all of them. Nothing else knows which exist,
except the programs of both servers: they handle several parts of `servers` at a time. The messages
and the rules of the parties, which are most of the code, are loaded when they are first needed: a
plan compares errors, and a table at home is counted, without any of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from faircount.core.errors import ParameterError
from faircount.core.questions import MostOf, Number, OneOf, QuestionGroup, Questionnaire
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.phases import Phase
from faircount.protocol.wire.codec import Message, declare_messages

if TYPE_CHECKING:
    from faircount.protocol.roles.aggregator import AggregatorRules
    from faircount.protocol.roles.client import Client
    from faircount.protocol.roles.coordinator import CoordinatorRules
    from faircount.protocol.survey.parameters import SurveyParameters

ATTEMPTS = 10
"""Default number of attempts where the shares are with the clients."""

TARGET_COMPLETION = 0.99
"""The share of surveys that should publish a result."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who takes part, as assumed for the probability that a survey completes.

    users:    invited participants
    minimum:  fewest responses with which the survey publishes
    loss:     probability that a client misses a phase, independently of all others
    insiders: colluding participants that the promise covers
    """

    users: int
    minimum: int
    loss: float
    attempts: int = ATTEMPTS
    insiders: int = 1


Size = tuple[int, int]
"""Most elements of a list in a message, and most bytes of a field of variable length in it."""


def noiseless_mechanism(users: int) -> FieldMechanism:
    """A mechanism for tests that counts everybody and adds no noise.

    One item per participant, so that a count of 2 is somebody counted twice.
    """
    return DPDS(items=users, users=users, p=1.0)


def example_questionnaire(users: int) -> Questionnaire:
    """Three questions for tests, the first with one item per participant, as above."""
    items = tuple(str(user) for user in range(max(3, users)))
    return Questionnaire(
        (
            OneOf(text="Who?", items=items),
            MostOf(text="Which two?", items=("a", "b", "c"), most=2),
            Number(text="How many?", low=Fraction(0), high=Fraction(3), skip=True),
        )
    )


def example_sheets(users: int) -> tuple[FieldMechanism, dict[str, Any]]:
    """Sheets between participants for tests, of whom three have to stay, and the promise.

    The noise is 0 except with probability 10^-9: every cell loses 25 per step.
    """
    questionnaire = example_questionnaire(users)
    questions = questionnaire.questions
    shares = [25 * question.moves * question.blocks[0].reach for question in questions]
    groups = tuple(QuestionGroup.of(share, [number]) for number, share in enumerate(shares))
    mechanism = LaplaceSheets(
        questionnaire=questionnaire,
        groups=groups,
        epsilon=float(sum(shares)),
        users=users,
        dropouts=max(0, users - 3),
    )
    return mechanism, {"epsilon": mechanism.epsilon}


class Roles(NamedTuple):
    """How the parties act in a topology."""

    coordinator: "CoordinatorRules"
    aggregator: "AggregatorRules"
    client: "Client"


class Topology(ABC):
    """What one topology adds to the common protocol.

    A topology derives from this class and registers one instance. All facts about a survey are in
    its parameters and in the states of the parties, so an instance has no state but its roles, and
    it is pickled by its name.
    """

    name: ClassVar[str]
    """The name in parameters and commands."""

    form: ClassVar[str]
    """A short description for people."""

    sees: ClassVar[str]
    """Who sees what of a response, for people."""

    phases: ClassVar[tuple[Phase, ...]]
    """The phases in which clients act, in order; each has a deadline."""

    completion_kind: ClassVar[str] = "unknown"
    """What kind of number `completion_chance` is: "exact", "at least" or "unknown"."""

    attempts: ClassVar[int] = ATTEMPTS
    """Default number of attempts."""

    needs_order_key: ClassVar[bool] = False
    """Whether the coordinator needs a secret key, by which it orders the clients."""

    supports_proofs: ClassVar[bool] = False
    """Whether reports can have validity proofs."""

    reveals_with_roster: ClassVar[bool] = True
    """Whether the aggregator opens its commitment when it confirms the roster."""

    # --- roles

    @abstractmethod
    def load_roles(self) -> Roles:
        """How the parties act; their modules are imported here."""

    @cached_property
    def roles(self) -> Roles:
        """How the parties act, loaded once."""
        return self.load_roles()

    @property
    def coordinator(self) -> "CoordinatorRules":
        """How the coordinator acts."""
        return self.roles.coordinator

    @property
    def aggregator(self) -> "AggregatorRules":
        """How the aggregator acts."""
        return self.roles.aggregator

    @property
    def client(self) -> "Client":
        """How a participant's client acts."""
        return self.roles.client

    # --- parameters

    @abstractmethod
    def adapt_mechanism(self, mechanism: FieldMechanism) -> FieldMechanism:
        """The mechanism as it runs in this topology; `ParameterError` if it cannot."""

    @abstractmethod
    def check(self, params: "SurveyParameters") -> None:
        """Refuse parameters that do not fit this topology, with a `ParameterError`."""

    def default_terms(self, mechanism: FieldMechanism, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values for the terms that this topology needs and that `given` leaves open."""
        return {}

    def derived_parameters(self, mechanism: FieldMechanism) -> dict[str, Any]:
        """Further values of the published parameters that follow from the mechanism."""
        return {}

    # --- sizes

    @abstractmethod
    def bytes_sent(self, mechanism: FieldMechanism) -> int:
        """Bytes that one client uploads if nobody drops out; the average where clients differ."""

    def vector_size(self, mechanism: FieldMechanism) -> int:
        """Field elements of one client's vector."""
        return mechanism.N

    def sizes(self, params: "SurveyParameters") -> Mapping[type[Message], Size]:
        """The largest lists and variable fields of each upload; larger ones are not read."""
        return {}

    # --- how likely a survey completes

    def completion_chance(self, who: Attendance) -> float | None:
        """The probability that a survey publishes a result; None if it is not computed."""
        return None

    @abstractmethod
    def completion_advice(self, who: Attendance, chance: float) -> str:
        """What this probability means, in a few words for people."""

    def tolerated_malicious(self, who: Attendance) -> int:
        """How many clients that send garbage cannot stop a survey.

        By default as many as may be missing: their reports are left out at once.
        """
        # Topologies in which clients depend on each other's messages override this.
        return who.users - who.minimum

    # --- tests

    def example(self, users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
        """Mechanism and terms of a small survey without noise that tests run, in variants."""
        return noiseless_mechanism(users), {}

    @property
    def messages(self) -> frozenset[type[Message]]:
        """All message classes that its servers accept, from clients and from each other."""
        from_clients = self.coordinator.user_handlers()
        from_aggregator = self.coordinator.aggregator_handlers()
        return frozenset((*from_clients, *from_aggregator, *self.aggregator.handlers()))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Topology({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled in another process, it is the instance that is registered there.
        return topology_named, (self.name,)


_KNOWN: dict[str, Topology] = {}


def register(topology: Topology) -> Topology:
    """Register a topology under its name, and the `messages` of its package."""
    _KNOWN[topology.name] = topology
    declare_messages(f"{type(topology).__module__}.messages")
    return topology


def topology_named(name: str) -> Topology:
    """The topology with this name."""
    if name not in _KNOWN:
        raise ParameterError(f"topology must be one of {', '.join(_KNOWN)}, not {name!r:.40}")
    return _KNOWN[name]


def known_topologies() -> tuple[Topology, ...]:
    """All topologies, in the order in which they were registered."""
    return tuple(_KNOWN.values())


def load_all_roles() -> tuple[Roles, ...]:
    """The roles of every topology; with them the classes of all stored states are loaded."""
    return tuple(topology.roles for topology in known_topologies())

"""A topology, the way in which shares travel, as one value; and the registry in which topologies stand by name.

A topology is a package in `protocol/topologies`. It registers its value when it is loaded, and `faircount.protocol`
loads them all; nothing else needs to know which ones there are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.states import State
from faircount.protocol.wire.codec import Message

if TYPE_CHECKING:
    from faircount.protocol.roles.aggregator import Aggregator, Handler
    from faircount.protocol.roles.client import Client
    from faircount.protocol.roles.coordinator import Rules
    from faircount.protocol.survey.parameters import SurveyParameters

ATTEMPTS = 10
"""How often users may be asked again where they hold the shares, unless told."""

TARGET_COMPLETION = 0.99
"""Share of the surveys that should come to an end."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who is invited, how many must stay, and how often a visit is missed, independently of all others."""

    users: int
    minimum: int
    loss: float
    attempts: int = ATTEMPTS
    insiders: int = 1


@dataclass(frozen=True, slots=True)
class Completion:
    """How likely a survey comes to its end: the chance (None if it is not computed), what kind of number that is."""

    kind: str  # "exact", "at least" or "unknown"
    chance: Callable[[Attendance], float] | None
    words: Callable[[Attendance, float], str]


def as_many_as_may_be_missing(who: Attendance) -> int:
    """Lying clients who cannot stop a survey where whoever sends garbage is left out at once."""
    return who.users - who.minimum


Size = tuple[int, int]
"""Most elements of a list in a message, most bytes of a blob in it."""


def noiseless(users: int) -> FieldMechanism:
    """A mechanism that counts everybody and adds nothing: one item per user, so that a 2 is somebody counted twice."""
    return DPDS(items=users, users=users, p=1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Topology:
    """Everything that one way for shares to travel adds to the common protocol.

    `phases` are the states in which users act, in order, each with a deadline. `runs` gives the mechanism as it runs
    here, or refuses it; `terms` completes what a proposal left open; `check` refuses parameters that do not fit. `s1`
    and `s2` are what the servers do, `client` what a user does. `bytes_sent` counts the bodies of one user, of the
    average one where users differ, in a survey that nobody leaves. `sizes` says how many elements a list, and how many
    bytes a blob, of a user can have. `trial` gives mechanism and terms of small surveys without noise, one item per
    user, in variants: tests play them. `form` names it to people, `sees` says who sees what of an answer.
    """

    name: str
    form: str
    sees: str
    phases: tuple[State, ...]
    runs: Callable[[FieldMechanism], FieldMechanism]
    check: "Callable[[SurveyParameters], None]"
    s1: "Rules"
    s2: "Mapping[type[Message], Handler]"
    client: "Client"
    bytes_sent: Callable[[FieldMechanism], int]
    completion: Completion
    liars: Callable[[Attendance], int] = as_many_as_may_be_missing  # lying clients who cannot stop a survey
    terms: Callable[[FieldMechanism, Mapping[str, Any]], dict[str, Any]] = lambda mechanism, given: {}
    sizes: "Callable[[SurveyParameters], Mapping[type[Message], Size]]" = lambda params: {}
    trial: Callable[[int, int], tuple[FieldMechanism, dict[str, Any]]] = lambda users, variant: (noiseless(users), {})
    vector_size: Callable[[FieldMechanism], int] = lambda mechanism: mechanism.N  # field elements of a user's vector
    derived: Callable[[FieldMechanism], dict[str, Any]] = lambda mechanism: {}  # what the parameters spell out besides
    attempts: int = ATTEMPTS
    numbers_users: bool = False  # S1 needs a key for an order that only it knows
    apart: "Callable[[Aggregator, Message], Aggregator | None]" = lambda s2, message: s2  # what S2's long step needs
    takes_proofs: bool = False  # reports can be proven
    reveals_with_roster: bool = True  # S2 opens its commitment when it seals the roster

    @property
    def messages(self) -> frozenset[type[Message]]:
        """What its servers take, from users and from each other."""
        return frozenset((*self.s1.users, *self.s1.s2, *self.s2))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Topology({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return topology_named, (self.name,)


_KNOWN: dict[str, Topology] = {}


def register(topology: Topology) -> Topology:
    """Make a topology known by its name."""
    _KNOWN[topology.name] = topology
    return topology


def topology_named(name: str) -> Topology:
    """The topology of this name."""
    if name not in _KNOWN:
        raise ParameterError(f"topology must be one of {', '.join(_KNOWN)}, not {name!r:.40}")
    return _KNOWN[name]


def known_topologies() -> tuple[Topology, ...]:
    """All topologies, in the order in which they were registered."""
    return tuple(_KNOWN.values())

"""The public parameters of a survey: everything that matters for privacy, under one digest, before anybody enrols.

The published form is canonical JSON. A reader hashes the bytes, parses them, rebuilds the mechanism from its settings,
and encodes again: every derived number (q, p, h, D, the hash of the noise tables) is computed by the reader, not
believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, get_args, get_type_hints

from faircount.accounting.guarantee import Relation
from faircount.core.domain import Domain
from faircount.core.errors import FaircountError, MalformedError, ParameterError, RefusedError
from faircount.core.validation import integer
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.secret_shared import FieldMechanism, makes_shares
from faircount.protocol.survey.remaining_privacy import minimum_set, realized
from faircount.protocol.survey.topology import Topology, topology_named
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.digests import labelled, params_digest

VERSION = 2
NO_COMMITMENT = bytes(32)


@dataclass(frozen=True)
class Keys:
    """Public keys of the servers, and of each server the hash of a value that it reveals later."""

    s1: bytes  # Ed25519
    s2: bytes  # Ed25519
    box: bytes  # X25519, of S2
    s1_commitment: bytes = NO_COMMITMENT
    s2_commitment: bytes = NO_COMMITMENT

    def __post_init__(self) -> None:
        if any(len(getattr(self, each.name)) != 32 for each in fields(self)):
            raise ParameterError("server keys and commitments have 32 bytes each")


@dataclass(frozen=True, kw_only=True)
class SurveyParameters:
    """A survey as published. `mechanism` is bound to n_max users, and its insiders are phi.

    `k` and `t` are the degree and the recovery threshold of the masked form; for two-stage k = phi + 1 elects that many
    helpers for every item instead of m'_j; 0 elsewhere. `phases` gives the seconds
    of each visit in order. All surveys of a `population` add up.
    `owner`, `purpose`, `contact` and the operators of both servers are what a person reads before it answers.
    """

    survey: bytes
    question: str
    mechanism: FieldMechanism
    topology: Topology
    minimum: int
    epsilon: float
    delta: float
    keys: Keys
    relation: Relation = Relation.REPLACE_ONE
    k: int = 0
    t: int = 0
    attempts: int = 1
    phases: tuple[int, ...] = ()
    population: str = ""
    owner: str = ""
    purpose: str = ""
    contact: str = ""
    s1_operator: str = ""
    s2_operator: str = ""

    def __post_init__(self) -> None:
        if len(self.survey) != 16:
            raise ParameterError("a survey id has 16 bytes")
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str):
                raise ParameterError(f"{name} must be text")
        for name, value in (("k", self.k), ("t", self.t), *(("phases", each) for each in self.phases)):
            integer(name, value, most=canonical.LARGEST)
        integer("minimum", self.minimum, least=2, most=self.n_max)
        integer("attempts", self.attempts, least=1, most=1 << 16)
        integer("n_max", self.n_max, least=2, most=1 << 31)
        if self.relation is not Relation.REPLACE_ONE:
            raise ParameterError("surveys promise replace-one: the roster is public")
        if self.phases and len(self.phases) != len(self.topology.phases):
            raise ParameterError(f"phases needs one number of seconds for each of {len(self.topology.phases)} visits")
        self.topology.runs(self.mechanism)  # refuses what cannot run there
        self.topology.check(self)
        if self.minimum < (needed := minimum_set(self.mechanism, self.epsilon, self.delta)):
            raise RefusedError(
                f"with {self.minimum} users in the sum the promised ({self.epsilon:.4g}, {self.delta:.3g}) does not "
                f"hold: the minimum must be at least {needed}"
            )

    @property
    def n_max(self) -> int:
        """The largest number of users."""
        return self.mechanism.n

    @property
    def phi(self) -> int:
        """Number of colluding users that the promise covers."""
        return self.mechanism.covered_colluders

    @property
    def q(self) -> int:
        """The modulus of the shares."""
        return self.mechanism.modulus

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of items."""
        return self.mechanism.N

    @property
    def proven(self) -> bool:
        """Whether every report is proven to be one vote."""
        return self.mechanism.proven

    @cached_property
    def published(self) -> bytes:
        """The canonical bytes that everybody hashes."""
        return canonical.encode(self._plain())

    @cached_property
    def digest(self) -> bytes:
        """params_digest."""
        return params_digest(self.published)

    def _plain(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "survey": self.survey.hex(),
            "items": _labels(self.mechanism.domain),
            "mechanism": self.mechanism.name,
            "settings": settings(self.mechanism),
            "derived": {**derived(self.mechanism), **self.topology.derived(self.mechanism)},
            "topology": str(self.topology),
            "phi": self.phi,
            "n_max": self.n_max,
            "phases": list(self.phases),
            "epsilon": canonical.scaled(self.epsilon),
            "delta": canonical.scaled(self.delta),
            "relation": str(self.relation),
            "keys": {each.name: getattr(self.keys, each.name).hex() for each in fields(Keys)},
            **{name: getattr(self, name) for name in _COPIED},
        }

    @classmethod
    def parse(cls, published: bytes) -> Self:
        """The parameters behind published bytes; refused unless they encode to the same bytes again."""
        plain = canonical.decode(published)
        try:
            found = cls(
                survey=bytes.fromhex(plain["survey"]),
                mechanism=rebuild(plain["mechanism"], plain["items"], plain["n_max"], plain["settings"]),
                topology=topology_named(plain["topology"]),
                epsilon=canonical.unscaled(plain["epsilon"]),
                delta=canonical.unscaled(plain["delta"]),
                keys=Keys(**{name: bytes.fromhex(key) for name, key in plain["keys"].items()}),
                relation=Relation(plain["relation"]),
                phases=tuple(plain["phases"]),
                **{name: plain[name] for name in _COPIED},
            )
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            if isinstance(problem, FaircountError):
                raise
            raise MalformedError(
                "these are not the parameters of a survey: a part is missing or of a wrong kind"
            ) from None
        if found.published != published:
            raise MalformedError("the parameters do not follow from each other, or hold something unknown")
        return found


_TEXTS = ("question", "population", "owner", "purpose", "contact", "s1_operator", "s2_operator")
_COPIED = (*_TEXTS, "minimum", "k", "t", "attempts")


def room_for_absent(users: int) -> int:
    """How many of the invited may be missing, or send what nobody can open, unless the owner says otherwise: 5%.

    Without room one person who does not come, or sends garbage, would end a survey with its budget spent.
    """
    return max(0, min(users - 2, max(1, -(-users // 20))))


def smallest_set(mechanism: FrequencyMechanism) -> int:
    """Users who are left if as many are missing as the mechanism has room for: the minimum, unless one is given."""
    return max(2, mechanism.n - mechanism.dropouts)


def propose(
    mechanism: FrequencyMechanism,
    keys: Keys,
    *,
    survey: bytes,
    topology: Topology,
    question: str = "",
    epsilon: float | None = None,
    delta: float | None = None,
    minimum: int | None = None,
    **others: Any,
) -> SurveyParameters:
    """Parameters for a mechanism bound to n_max users; what is not given is the strongest that the mechanism keeps.

    The promise defaults to the mechanism's own, with the largest delta that any set from the minimum up can leave; the
    minimum leaves room for those whom the mechanism expects to drop out, or for `room_for_absent` if it expects none.
    """
    if minimum is None:
        mechanism = _with_room(makes_shares(mechanism))
    promised = mechanism.promise[0] if epsilon is None else epsilon
    if promised is None:
        raise ParameterError(f"{mechanism.name}: give epsilon, the promise that participants will read")
    bound = mechanism.promise[1] if delta is None else delta
    runs = topology.runs(makes_shares(mechanism).for_survey())
    stay = smallest_set(mechanism) if minimum is None else minimum
    if bound is None:
        bound = max(realized(runs, size, promised).delta for size in (stay, runs.n))
        bound = canonical.unscaled(canonical.scaled_up(bound))
    others = {"attempts": topology.attempts, **topology.terms(runs, others), **others}
    return SurveyParameters(
        survey=survey, question=question, mechanism=runs, topology=topology, epsilon=float(promised), delta=bound,
        minimum=stay, keys=keys, **others,
    )  # fmt: skip


def _with_room(mechanism: FieldMechanism) -> FieldMechanism:
    """The mechanism, made to keep its promise when so many are missing: the others make more noise instead."""
    room = room_for_absent(mechanism.n)
    return mechanism if mechanism.dropouts or not room else replace(mechanism, dropouts=room)  # type: ignore[call-arg]  # they all have it


def settings(mechanism: FieldMechanism) -> dict[str, Any]:
    """The mechanism's own fields, but for items and users, as canonical values."""
    real = _real_fields(type(mechanism))
    values = {each.name: getattr(mechanism, each.name) for each in fields(mechanism)}
    return {name: _plain_value(values[name], name in real) for name in values if name not in ("items", "users")}


def rebuild(name: str, items: list[Any], users: int, values: Mapping[str, Any]) -> FieldMechanism:
    """The mechanism with these settings, bound to this number of users."""
    kind = shared_mechanisms().get(name)
    if kind is None:
        raise MalformedError(f"no protocol runs a mechanism of the name {name!r:.40}")
    if set(values) != {each.name for each in fields(kind)} - {"items", "users"}:
        raise MalformedError(f"the settings of {name} are not complete, or name something unknown")
    real = _real_fields(kind)
    own: dict[str, Any] = {
        key: canonical.unscaled(value) if key in real and value is not None else value for key, value in values.items()
    }
    return kind(items=Domain(tuple(items)), users=users, **own)


def derived(mechanism: FieldMechanism) -> dict[str, Any]:
    """What follows from the settings, spelled out for clients that cannot compute it."""
    found = mechanism.derived
    return {
        "h": found.h,
        "D": found.D,
        "scale": mechanism.steps_per_count,
        "allocation": "alike" if mechanism.every_user_alike else "first more",
        "q": str(mechanism.modulus),
        "p": None if found.p is None else canonical.scaled(found.p),
        "tables": table_digest(found.table).hex(),
    }


def table_digest(table: DrawTable | None) -> bytes:
    """Digest of a noise table: its outcomes and cumulative probabilities in decimal; zero where there is none."""
    if table is None:
        return NO_COMMITMENT
    rows = "".join(f"{value} {top}\n" for value, top in zip(table.values, table.cumulative, strict=True))
    return labelled(b"table", rows.encode())


def _labels(domain: Domain) -> list[str | int]:
    if any(type(label) not in (str, int) for label in domain.labels):
        raise ParameterError("the items of a survey must be text or whole numbers")
    return list(domain.labels)  # type: ignore[arg-type]  # just checked


def _real_fields(kind: type[FieldMechanism]) -> set[str]:
    hints = get_type_hints(kind)
    return {each.name for each in fields(kind) if float in (hints[each.name], *get_args(hints[each.name]))}


def _plain_value(value: Any, real: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if real:
        return canonical.scaled(float(value))
    return str(value) if isinstance(value, str) else value

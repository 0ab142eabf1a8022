"""The public parameters of a survey: all that matters for privacy, fixed before anybody enrols.

The published form is canonical JSON, and every invitation is bound to it by a hash. A reader hashes
the bytes, parses them, rebuilds the mechanism from its settings and encodes the parameters again:
derived values (q, p, h, D, the hash of the noise table) are recomputed and never believed. DAP
fixes the same facts in its task configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, get_args, get_type_hints

from faircount.accounting.guarantee import Relation
from faircount.accounting.levels import Level, Levels
from faircount.core.domain import Domain
from faircount.core.errors import FaircountError, MalformedError, ParameterError, RefusedError
from faircount.core.questions import OneOf, QuestionGroup, Questionnaire
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.published import from_plain, to_plain
from faircount.core.questions.question import SKIP_LABEL
from faircount.core.questions.questionnaire import EPSILON_BITS
from faircount.core.validation import check_integer
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.secret_shared import FieldMechanism, OneQuestion, as_field_mechanism
from faircount.mechanisms.sheets import SheetMechanism
from faircount.protocol.survey.remaining_privacy import minimum_responses, remaining_guarantee
from faircount.protocol.survey.topology import Topology, topology_named
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.digests import params_digest, tagged_hash

VERSION = 3
NO_COMMITMENT = bytes(32)
NO_KEY = bytes(32)


@dataclass(frozen=True)
class Keys:
    """Public keys of both servers, and their commitments to values that they reveal later.

    All but the operators' keys are made for one survey.
    """

    coordinator: bytes  # Ed25519
    aggregator: bytes  # Ed25519
    encryption_key: bytes  # X25519, of the aggregator: clients encrypt shares for it
    coordinator_commitment: bytes = NO_COMMITMENT
    aggregator_commitment: bytes = NO_COMMITMENT
    s1_operator_key: bytes = NO_KEY  # Ed25519, of the organization that runs the coordinator
    s2_operator_key: bytes = NO_KEY  # Ed25519, of the organization that runs the aggregator

    def __post_init__(self) -> None:
        # Lengths only: a key that is no point of the curve fails where it is used, for its own
        # server.
        if any(len(getattr(self, key.name)) != 32 for key in fields(self)):
            raise ParameterError("server keys and commitments have 32 bytes each")


@dataclass(frozen=True, kw_only=True)
class SurveyParameters:
    """The parameters of a survey.

    questionnaire: what is asked
    mechanism:  bound to n_max participants; it covers phi colluding ones
    minimum:    fewest responses with which a result is published
    epsilon, delta: the guarantee that is promised
    k, t:       masked: number of neighbours and recovery threshold. two-stage: k = phi + 1 elects
                that many helpers for every item, instead of m'_j. Otherwise 0
    attempts:   how often clients may be asked again
    phase_seconds: seconds until the deadline of each phase in which clients act
    grace:      seconds for which a phase that has too few participants at its deadline is held open
    population: the people whose budget is charged; all surveys of a population add up
    owner, purpose, contact, s1_operator, s2_operator: what a participant reads before responding
    """

    survey: bytes
    questionnaire: Questionnaire
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
    phase_seconds: tuple[int, ...] = ()
    grace: int = 0
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
        # Integers above this bound would be published as text, and read back as another type.
        check_integer("k", self.k, most=canonical.LARGEST)
        check_integer("t", self.t, most=canonical.LARGEST)
        check_integer("grace", self.grace, most=canonical.LARGEST)
        for seconds in self.phase_seconds:
            check_integer("phase_seconds", seconds, most=canonical.LARGEST)
        # At least two: a sum over one report is that report.
        check_integer("minimum", self.minimum, least=2, most=self.n_max)
        check_integer("attempts", self.attempts, least=1, most=1 << 16)
        # Numbers of people travel as U32.
        check_integer("n_max", self.n_max, least=2, most=1 << 31)
        if self.relation is not Relation.REPLACE_ONE:
            # Who takes part is known, so hiding whether somebody does cannot be promised.
            raise ParameterError("surveys promise replace-one: the roster is public")
        if self.phase_seconds and len(self.phase_seconds) != len(self.topology.phases):
            raise ParameterError(
                "phase_seconds needs one number of seconds for each of "
                f"{len(self.topology.phases)} phases"
            )
        self.mechanism.check_questionnaire(self.questionnaire)
        self.topology.adapt_mechanism(self.mechanism)  # refuses what cannot run there
        self.topology.check(self)
        # Computed again by every reader: an owner who writes a smaller minimum promises too much.
        needed = minimum_responses(self.mechanism, self.epsilon, self.delta)
        if self.minimum < needed:
            raise RefusedError(
                f"with {self.minimum} users in the sum the promised ({self.epsilon:.4g}, "
                f"{self.delta:.3g}) does not hold: the minimum must be at least {needed}"
            )

    def __hash__(self) -> int:
        # Equal parameters have one survey id. Hashing all questions for every report takes longer
        # than checking it.
        return hash(self.survey)

    @property
    def n_max(self) -> int:
        """The largest number of participants."""
        return self.mechanism.n

    @property
    def phi(self) -> int:
        """Number of colluding participants that the promise covers."""
        return self.mechanism.covered_colluders

    @property
    def q(self) -> int:
        """The modulus of the shares."""
        return self.mechanism.modulus

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of revealed sums."""
        return self.mechanism.N

    @cached_property
    def vector_size(self) -> int:
        """Field elements of a participant's vector, in this topology."""
        return self.topology.vector_size(self.mechanism)

    @property
    def proven(self) -> bool:
        """Whether every report has a proof that it is one sheet of answers."""
        return self.mechanism.proven

    @property
    def single_epsilon(self) -> float | None:
        """The largest loss of a single answer where there are several questions, else None.

        A single answer loses at most the epsilon of its group, and all of them the sum.
        """
        if len(self.questionnaire) == 1:
            return None
        if not isinstance(self.mechanism, SheetMechanism):
            return self.epsilon
        numbers = range(len(self.questionnaire))
        return max(self.mechanism.answer_epsilon(number) for number in numbers)

    @cached_property
    def published(self) -> bytes:
        """The canonical bytes, which everybody hashes."""
        return canonical.encode(self._plain())

    @cached_property
    def digest(self) -> bytes:
        """params_digest: the hash to which every invitation is bound."""
        return params_digest(self.published)

    def _plain(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "survey": self.survey.hex(),
            **to_plain(self.questionnaire),
            "mechanism": self.mechanism.name,
            "settings": settings(self.mechanism),
            "derived": {
                **derive_values(self.mechanism),
                **self.topology.derived_parameters(self.mechanism),
            },
            "topology": str(self.topology),
            "phi": self.phi,
            "n_max": self.n_max,
            "phase_seconds": list(self.phase_seconds),
            "epsilon": canonical.format_real(self.epsilon),
            "delta": canonical.format_real(self.delta),
            "relation": str(self.relation),
            "keys": {key.name: getattr(self.keys, key.name).hex() for key in fields(Keys)},
            **{name: getattr(self, name) for name in _COPIED},
        }

    @classmethod
    def parse(cls, published: bytes) -> Self:
        """The parameters in published bytes; refused unless they encode to the same bytes again."""
        plain = canonical.decode(published)
        try:
            questionnaire = from_plain(plain)
            found = cls(
                survey=bytes.fromhex(plain["survey"]),
                questionnaire=questionnaire,
                mechanism=rebuild(
                    plain["mechanism"], questionnaire, plain["n_max"], plain["settings"]
                ),
                topology=topology_named(plain["topology"]),
                epsilon=canonical.parse_real(plain["epsilon"]),
                delta=canonical.parse_real(plain["delta"]),
                keys=Keys(**{name: bytes.fromhex(key) for name, key in plain["keys"].items()}),
                relation=Relation(plain["relation"]),
                phase_seconds=tuple(plain["phase_seconds"]),
                **{name: plain[name] for name in _COPIED},
            )
        # Published bytes can be anything: what goes wrong inside is the sender's mistake, not ours.
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            if isinstance(problem, FaircountError):
                raise
            raise MalformedError(
                "these are not the parameters of a survey: a part is missing or of a wrong kind"
            ) from None
        # Refuses unknown keys, and derived values that do not follow from the settings: a client
        # without the exact mechanism relies on them.
        if found.published != published:
            raise MalformedError(
                "the parameters do not follow from each other, or hold something unknown"
            )
        return found


_TEXTS = ("population", "owner", "purpose", "contact", "s1_operator", "s2_operator")
_COPIED = (*_TEXTS, "minimum", "k", "t", "attempts", "grace")


def default_dropout_allowance(users: int) -> int:
    """How many of the invited may be missing where users make the noise: 5%, at least one.

    Without an allowance, one participant who does not respond, or sends garbage, would end a survey
    whose budget is spent.
    """
    five_percent = -(-users // 20)
    return max(0, min(users - 2, max(1, five_percent)))


def default_minimum(mechanism: FieldMechanism) -> int:
    """The minimum number of responses unless the owner gives another.

    Where users make the noise, everybody who may be missing costs accuracy: the default allows for
    a few. Where the servers add it, the guarantee and the noise are the same for any number of
    responses. The minimum then only keeps a result from being about a handful of people:
    a quarter of the invited, at least ten, but never more than half, for surveys of a few people.
    """
    users = mechanism.n
    if not mechanism.servers_add_noise:
        return users - default_dropout_allowance(users)
    quarter = -(-users // 4)
    return max(2, min(users // 2, max(10, quarter)))


def minimum_after_dropouts(mechanism: Mechanism) -> int:
    """Responses that are left if the mechanism's dropout allowance is used up.

    It is the minimum number of responses: owners choose a minimum, and the mechanism the noise.
    """
    return max(2, mechanism.n - mechanism.dropouts)


def propose(
    mechanism: Mechanism,
    keys: Keys,
    *,
    survey: bytes,
    topology: Topology,
    questionnaire: Questionnaire | None = None,
    question: str = "Which one?",
    epsilon: float | None = None,
    delta: float | None = None,
    minimum: int | None = None,
    **others: Any,
) -> SurveyParameters:
    """Parameters for a mechanism that is bound to n_max participants.

    Values that are not given default to the strongest that the mechanism keeps: the promise is the
    mechanism's own, with the largest delta of any number of responses from the minimum up. The
    minimum leaves the mechanism's dropout allowance; without one it is the default minimum. A
    mechanism for one question needs only its text, `question`, in place of a questionnaire.
    """
    if minimum is None:
        mechanism = _with_dropout_allowance(as_field_mechanism(mechanism))
    promised = mechanism.promise[0] if epsilon is None else epsilon
    if promised is None:
        raise ParameterError(
            f"{mechanism.name}: give epsilon, the promise that participants will read"
        )
    bound = mechanism.promise[1] if delta is None else delta
    survey_form = as_field_mechanism(mechanism).for_survey()
    asked = questionnaire or questionnaire_of(survey_form, question)
    adapted = topology.adapt_mechanism(survey_form.for_questionnaire(asked))
    min_responses = minimum_after_dropouts(mechanism) if minimum is None else minimum
    if bound is None:
        deltas = (
            remaining_guarantee(adapted, size, promised).delta
            for size in (min_responses, adapted.n)
        )
        # Both ends, since delta may rise or fall with the number of responses.
        bound = canonical.parse_real(canonical.format_upper_bound(max(deltas)))
    terms = {"attempts": topology.attempts, **topology.default_terms(adapted, others), **others}
    return SurveyParameters(
        survey=survey,
        questionnaire=asked,
        mechanism=adapted,
        topology=topology,
        epsilon=float(promised),
        delta=bound,
        minimum=min_responses,
        keys=keys,
        **terms,
    )


def _with_dropout_allowance(mechanism: FieldMechanism) -> FieldMechanism:
    """The mechanism with the default dropout allowance, for which users add more noise."""
    allowance = mechanism.n - default_minimum(mechanism)
    if mechanism.dropouts or not allowance:
        return mechanism
    # Every mechanism that runs in the protocol has this field.
    return replace(mechanism, dropouts=allowance)  # type: ignore[call-arg]


_NOT_SETTINGS = ("items", "users", "questionnaire")
"""Fields of every mechanism that the parameters publish under other names."""


def settings(mechanism: FieldMechanism) -> dict[str, Any]:
    """The mechanism's own fields, without users and questions, as canonical values."""
    real = _real_fields(type(mechanism))
    plain = {}
    for member in fields(mechanism):
        if member.name not in _NOT_SETTINGS:
            value = getattr(mechanism, member.name)
            plain[member.name] = _plain_value(value, is_real=member.name in real)
    return plain


def rebuild(
    name: str, questionnaire: Questionnaire, users: int, values: Mapping[str, Any]
) -> FieldMechanism:
    """The mechanism with these settings, bound to this number of participants."""
    kind = shared_mechanisms().get(name)
    if kind is None:
        raise MalformedError(f"no protocol runs a mechanism of the name {name!r:.40}")
    # Exactly the known settings: a missing one would take the reader's default, which may differ.
    if set(values) != {member.name for member in fields(kind)} - set(_NOT_SETTINGS):
        raise MalformedError(f"the settings of {name} are not complete, or name something unknown")
    own: dict[str, Any] = dict(values)
    for key in _real_fields(kind):
        if own[key] is not None:
            own[key] = canonical.parse_real(own[key])
    if "groups" in own:
        own["groups"] = tuple(_parse_group(group) for group in own["groups"])
    if "levels" in own:
        own["levels"] = Levels(tuple(_parse_level(level) for level in own["levels"]))
    asked: dict[str, Any] = {"questionnaire": questionnaire}
    if issubclass(kind, OneQuestion):
        asked = {"items": answers_of(questionnaire)}
    return kind(users=users, **asked, **own)


def answers_of(questionnaire: Questionnaire) -> Domain:
    """The items of a mechanism that counts the answers to one question."""
    first = questionnaire.questions[0]
    if len(questionnaire) > 1 or not isinstance(first, ChoiceQuestion):
        raise ParameterError(
            "this mechanism counts the answers to one question with exactly one answer each"
        )
    return Domain(first.answers)


def questionnaire_of(mechanism: FieldMechanism, text: str) -> Questionnaire:
    """The questions that a mechanism counts; one question is asked with this text."""
    if not isinstance(mechanism, OneQuestion):
        known: Questionnaire = mechanism.questionnaire  # type: ignore[attr-defined]
        return known
    labels = [str(label) for label in mechanism.domain.labels]
    skip = labels[-1] == SKIP_LABEL
    items = labels[:-1] if skip else labels
    return Questionnaire((OneOf(text=text, items=tuple(items), skip=skip),))


def _parse_group(plain: Mapping[str, Any]) -> QuestionGroup:
    # Exactly these keys, and whole numbers: the group decides how much noise a question gets.
    if set(plain) != {"epsilon", "questions"}:
        raise MalformedError("a group of questions has an epsilon and questions")
    if any(type(number) is not int for number in plain["questions"]):
        raise MalformedError("a group names its questions by number")
    epsilon = Fraction(canonical.parse_integer(plain["epsilon"]), 1 << EPSILON_BITS)
    return QuestionGroup(epsilon, tuple(plain["questions"]))


def _parse_level(plain: Mapping[str, Any]) -> Level:
    # Exactly these keys: the coins are not read but computed, as every derived value is.
    if set(plain) != {"epsilon", "name"}:
        raise MalformedError("a privacy level has a name and an epsilon")
    epsilon = Fraction(canonical.parse_integer(plain["epsilon"]), 1 << EPSILON_BITS)
    return Level(plain["name"], epsilon)


def derive_values(mechanism: FieldMechanism) -> dict[str, Any]:
    """What follows from the settings, spelled out for clients that cannot compute it."""
    values = mechanism.derived_parameters
    levels: Levels | None = getattr(mechanism, "levels", None)
    return {
        **({} if levels is None else {"coins": [str(coin) for coin in levels.coins]}),
        "h": values.h,
        "D": values.D,
        "scale": mechanism.steps_per_count,
        "allocation": "alike" if mechanism.identical_for_all_users else "first more",
        "q": str(mechanism.modulus),
        "p": None if values.p is None else canonical.format_real(values.p),
        "tables": table_digest(mechanism.noise_tables).hex(),
    }


def table_digest(tables: str) -> bytes:
    """Digest of noise tables, from outcomes and cumulative probabilities; zero without one."""
    return tagged_hash(b"table", tables.encode()) if tables else NO_COMMITMENT


def _real_fields(kind: type[FieldMechanism]) -> set[str]:
    """The fields of a mechanism that are annotated as float, or as float or None."""
    names = set()
    hints = get_type_hints(kind)
    for member in fields(kind):
        hint = hints[member.name]
        if member.name not in _NOT_SETTINGS and float in (hint, *get_args(hint)):
            names.add(member.name)
    return names


def _plain_value(value: Any, *, is_real: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if is_real:
        return canonical.format_real(float(value))
    if isinstance(value, Levels):
        return [_plain_level(level) for level in value.offered]
    if isinstance(value, tuple):
        return [_plain_group(group) for group in value]
    # Enumerations of text become plain text.
    return str(value) if isinstance(value, str) else value


def _plain_group(group: QuestionGroup) -> dict[str, Any]:
    return {"epsilon": str(group.scaled_epsilon), "questions": list(group.questions)}


def _plain_level(level: Level) -> dict[str, Any]:
    return {"epsilon": str(level.scaled_epsilon), "name": level.name}

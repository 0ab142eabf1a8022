"""Which mechanism a survey should run: the planner's advice for one topology.

The planner compares mechanisms, each in the topology where it is cheapest. A survey has one
topology, so every option is costed again as it runs there, and the one with the smallest error
wins. Unlike the rows of a table, participants' devices may be malicious. In the topology `servers`,
where a report can be proven to be one vote, only mechanisms with such proofs are considered, unless
the owner asks for another one by name.

The minimum number of responses depends on the mechanism (`default_minimum`). Mechanisms are
compared at the same number of responses: the minimum that the owner gives, or else a survey in
which a few do not respond. `faircount plan` with the same numbers makes the same forecast.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from faircount.accounting.levels import Levels
from faircount.core.domain import Domain
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Questionnaire
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.form import Form
from faircount.core.validation import expected_users, share_of_users
from faircount.mechanisms.registry import frequency_names, shared_mechanisms
from faircount.owner.questions import check_readable
from faircount.planning.forecast import Forecast, forecast, forecast_sheet
from faircount.planning.minimum import check_minimum
from faircount.planning.one_question import (
    JOINT,
    OTHER_REASON,
    REASONS,
    SHEETS,
    TOPOLOGY_REASONS,
)
from faircount.planning.option import Option
from faircount.planning.plan import Plan, plan
from faircount.planning.request import PlanRequest
from faircount.protocol import EXPLICIT, MASKED, SERVERS, Topology
from faircount.protocol.survey.parameters import answers_of

AUTO = "auto"
LEVELS = "server-levels"


@dataclass(frozen=True)
class SurveyRequirements:
    """What the owner requires of a survey.

    form: the questions, with the errors that are wanted
    users: how many people are invited
    epsilon, delta: the largest privacy loss
    mechanism: the name of a mechanism, or "auto" for the best one
    topology: how shares travel
    minimum: the minimum number of responses; by default one that fits the mechanism
    floor: how many people choose each item for sure
    colluding: share of the participants who may collude with a server
    response_rate: expected response rate, for which errors are stated; None for nearly all
    levels: hidden privacy levels that people choose from; epsilon is then that of the weakest
    """

    form: Form
    users: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = AUTO
    topology: Topology = SERVERS
    minimum: int | None = None
    floor: int = 0
    colluding: float = 0.0
    response_rate: float | None = None
    levels: Levels | None = None

    def __post_init__(self) -> None:
        check_readable(self.questionnaire)
        if self.levels is not None and self.epsilon != self.levels.most:
            message = "with levels, epsilon is that of the weakest one: leave it out"
            raise ParameterError(message).with_code("levels_and_epsilon")
        if self.minimum is not None:
            check_minimum(self.minimum, self.users)

    @property
    def questionnaire(self) -> Questionnaire:
        """The questions."""
        return self.form.questionnaire

    @property
    def is_one_choice(self) -> bool:
        """Whether there is one question with exactly one answer each, as all mechanisms count."""
        questions = self.questionnaire.questions
        return len(questions) == 1 and isinstance(questions[0], ChoiceQuestion)

    @property
    def items(self) -> tuple[str, ...]:
        """The answers to the one question of the survey, for mechanisms that count one."""
        return tuple(str(label) for label in answers_of(self.questionnaire).labels)

    @property
    def needs_proofs(self) -> bool:
        """Whether reports have to be proven to be one vote, because clients may be malicious."""
        return self.topology.supports_proofs and self.mechanism == AUTO

    def plan(self) -> Plan:
        """All mechanisms, for the participants who are expected to respond."""
        return plan(
            self.users,
            len(self.items),
            self.epsilon,
            self.delta,
            minimum=self.minimum,
            floor=self.floor,
            colluding=self.colluding,
            malicious_clients=self.needs_proofs,
            response_rate=self.response_rate,
        )


@dataclass(frozen=True, kw_only=True)
class Advice(Forecast):
    """The mechanism to run and what to expect of it."""

    requirements: SurveyRequirements


def advise(requirements: SurveyRequirements) -> Advice:
    """The mechanism with the smallest error, or the required one; refused if none is possible."""
    if not requirements.is_one_choice or requirements.levels is not None:
        return _advise_sheet(requirements)
    possible: list[Advice] = []
    reasons: list[str] = []
    planned = requirements.plan()
    for option in _candidates(requirements, planned.options):
        try:
            possible.append(_forecast(requirements, option, planned.request))
        # A mechanism that cannot run here is no failure while another one can.
        except (ParameterError, RefusedError) as refusal:
            reasons.append(f"{option.name}: {refusal}")
    if possible:
        # The planner ranks mechanisms with proofs as they run in servers. In other topologies their
        # errors differ from those of the plan.
        best = min(possible, key=lambda advice: advice.standard_error)
        return possible[0] if requirements.needs_proofs else best

    # Several options may be impossible for the same reason; the owner reads it once.
    listed = "; ".join(dict.fromkeys(reasons))
    message = f"no mechanism keeps this promise in {requirements.topology}: {listed}"
    if requirements.needs_proofs:
        message += ". Without proofs that a report is one vote: --mechanism laplace"
    raise RefusedError(message).with_code("no_mechanism")


def _advise_sheet(requirements: SurveyRequirements) -> Advice:
    """The advice on several questions, or on one without exactly one answer each."""
    name = requirements.mechanism
    topology = requirements.topology
    if requirements.levels is not None:
        _check_levels(requirements)
        name = AUTO
    if not topology.supports_proofs and str(topology) in TOPOLOGY_REASONS:
        raise _only_one_question(f"the topology {topology}", TOPOLOGY_REASONS[str(topology)])
    if name not in (AUTO, JOINT, SHEETS):
        known = (*shared_mechanisms(), *frequency_names())
        if name not in known:
            message = (
                f"mechanism must be {AUTO}, {JOINT} or {SHEETS} for these questions, not "
                f"{name!r:.40}"
            )
            raise ParameterError(message).with_code("unknown_mechanism", names=f"{JOINT}, {SHEETS}")
        raise _only_one_question(f"the mechanism {name}", REASONS.get(name, OTHER_REASON))
    # Where there are no proofs, participants draw the noise.
    if name == JOINT and not topology.supports_proofs:
        raise RefusedError(
            f"{JOINT} counts proven reports, which only {SERVERS} checks: leave --mechanism out, "
            f"and {topology} runs {SHEETS}"
        ).with_code("no_mechanism")
    rate = requirements.response_rate
    users = requirements.users
    expected = forecast_sheet(
        requirements.form,
        users=users,
        epsilon=requirements.epsilon,
        topology=topology,
        minimum=requirements.minimum,
        expected=None if rate is None else expected_users("response_rate", rate, users),
        # At least one: every participant reads the result and knows its own answer.
        insiders=max(1, share_of_users("colluding", requirements.colluding, users)),
        levels=requirements.levels,
        proven=topology.supports_proofs and name != SHEETS,
    )
    return _with_requirements(expected, requirements)


def _check_levels(requirements: SurveyRequirements) -> None:
    """Refuse a mechanism or a topology in which levels would not be hidden."""
    name = requirements.mechanism
    if not requirements.topology.supports_proofs or name not in (AUTO, LEVELS):
        raise RefusedError(
            f"hidden privacy levels run in {SERVERS} with {LEVELS}, where every report is proven "
            "and nobody sees who chose what: leave --mechanism and --topology out, or give "
            "--level-column for public levels"
        ).with_code("levels_elsewhere")


def _only_one_question(what: str, reason: str) -> RefusedError:
    message = (
        f"{what} cannot carry these questions: {reason}. Several questions, and kinds other than "
        f"one of N, run in {SERVERS} with {JOINT}, or in {EXPLICIT} and {MASKED} with {SHEETS}"
    )
    return RefusedError(message).with_code("one_question_only")


def _with_requirements(expected: Forecast, requirements: SurveyRequirements) -> Advice:
    values = {field.name: getattr(expected, field.name) for field in fields(expected)}
    return Advice(**values, requirements=requirements)


def _forecast(requirements: SurveyRequirements, option: Option, request: PlanRequest) -> Advice:
    """An option as it runs in the survey's topology; an error says why it cannot."""
    expected = forecast(option, request, requirements.topology, Domain(requirements.items))
    return _with_requirements(expected, requirements)


def _candidates(requirements: SurveyRequirements, options: Sequence[Option]) -> list[Option]:
    """The planner's options that may run in the survey."""
    if requirements.mechanism == AUTO:
        kinds = shared_mechanisms()
        candidates = [option for option in options if option.name in kinds]
        if requirements.needs_proofs:
            candidates = [option for option in candidates if kinds[option.name].proven]
        return candidates
    # A mechanism that the owner names may lack proofs; the advice then says so.
    chosen = [option for option in options if option.name == requirements.mechanism]
    if not chosen:
        names = ", ".join(option.name for option in options)
        message = f"mechanism must be {AUTO} or one of {names}, not {requirements.mechanism!r:.40}"
        raise ParameterError(message).with_code("unknown_mechanism", names=names)
    return chosen

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

from faircount.core.domain import Domain, visible_form
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.registry import shared_mechanisms
from faircount.planning.forecast import Forecast, forecast
from faircount.planning.minimum import check_minimum
from faircount.planning.option import Option
from faircount.planning.plan import Plan, plan
from faircount.planning.question import Question
from faircount.protocol import SERVERS, Topology

AUTO = "auto"


def check_items(items: Sequence[str]) -> None:
    """Refuse answers that are blank, or that a reader could not tell apart."""
    shown: dict[str, str] = {}
    for item in items:
        form = visible_form(str(item))
        if not form:
            message = "an answer to choose from is empty: write every answer out"
            raise ParameterError(message).with_code("empty_item")
        if form in shown:
            message = (
                f"people could not tell the answers {shown[form]!r} and {item!r} apart: remove or "
                "rename one of them"
            )
            raise ParameterError(message).with_code("same_items", first=shown[form], second=item)
        shown[form] = item


@dataclass(frozen=True)
class SurveyRequirements:
    """What the owner requires of a survey.

    items: the possible answers
    users: how many people are invited
    epsilon, delta: the largest privacy loss
    mechanism: the name of a mechanism, or "auto" for the best one
    topology: how shares travel
    minimum: the minimum number of responses; by default one that fits the mechanism
    floor: how many people choose each item for sure
    colluding: share of the participants who may collude with a server
    response_rate: expected response rate, for which errors are stated; None for nearly all
    """

    items: tuple[str, ...]
    users: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = AUTO
    topology: Topology = SERVERS
    minimum: int | None = None
    floor: int = 0
    colluding: float = 0.0
    response_rate: float | None = None

    def __post_init__(self) -> None:
        check_items(self.items)
        if self.minimum is not None:
            check_minimum(self.minimum, self.users)

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


@dataclass(frozen=True)
class Advice(Forecast):
    """The mechanism to run and what to expect of it."""

    requirements: SurveyRequirements


def advise(requirements: SurveyRequirements) -> Advice:
    """The mechanism with the smallest error, or the required one; refused if none is possible."""
    possible: list[Advice] = []
    reasons: list[str] = []
    planned = requirements.plan()
    for option in _candidates(requirements, planned.options):
        try:
            possible.append(_forecast(requirements, option, planned.question))
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


def _forecast(requirements: SurveyRequirements, option: Option, question: Question) -> Advice:
    """An option as it runs in the survey's topology; an error says why it cannot."""
    expected = forecast(option, question, requirements.topology, Domain(requirements.items))
    values = {field.name: getattr(expected, field.name) for field in fields(expected)}
    return Advice(**values, requirements=requirements)


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

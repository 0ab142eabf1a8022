"""Which mechanism a survey should run: the planner's advice for one topology.

The planner compares mechanisms, each in the topology where it is cheapest. A survey has one
topology, so every option is costed again as it runs there, and the one with the smallest error
wins. Unlike the rows of a table, participants' devices may be malicious. In the topology `servers`,
where a report can be proven to be one vote, only mechanisms with such proofs are considered, unless
the owner asks for another one by name.
"""

from dataclasses import dataclass, replace

from faircount.accounting.conditions import Condition
from faircount.core.domain import Domain
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation.validity import ASSUMPTIONS
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.secret_shared import as_field_mechanism
from faircount.planning.dropout import usual_dropout
from faircount.planning.option import Option, percent
from faircount.planning.plan import Plan, plan
from faircount.protocol import SERVERS, Topology
from faircount.protocol.survey.parameters import minimum_after_dropouts

AUTO = "auto"


@dataclass(frozen=True)
class SurveyRequirements:
    """What the owner requires of a survey.

    items: the possible answers
    users: how many people are invited
    epsilon, delta: the largest privacy loss
    mechanism: the name of a mechanism, or "auto" for the best one
    topology: how shares travel
    dropout: share of the invited who may stay away without ending the survey; by default the usual
        dropout allowance
    floor: how many people choose each item for sure
    colluding: share of the participants who may collude with a server
    """

    items: tuple[str, ...]
    users: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = AUTO
    topology: Topology = SERVERS
    dropout: float | None = None
    floor: int = 0
    colluding: float = 0.0

    @property
    def needs_proofs(self) -> bool:
        """Whether reports have to be proven to be one vote, because clients may be malicious."""
        return self.topology.supports_proofs and self.mechanism == AUTO

    def plan(self) -> Plan:
        """All mechanisms, for the participants who are expected to respond."""
        dropout = usual_dropout(self.users) if self.dropout is None else self.dropout
        return plan(
            self.users,
            len(self.items),
            self.epsilon,
            self.delta,
            floor=self.floor,
            dropout=dropout,
            colluding=self.colluding,
            malicious_clients=self.needs_proofs,
        )


@dataclass(frozen=True)
class Advice:
    """The mechanism to run and what to expect of it."""

    requirements: SurveyRequirements
    mechanism: FrequencyMechanism
    standard_error: float
    half_width_95: float
    condition: Condition | None

    @property
    def minimum(self) -> int:
        """The minimum number of responses."""
        return minimum_after_dropouts(self.mechanism)

    @property
    def is_informative(self) -> bool:
        """Whether the 95% error stays below the frequency of an average item."""
        return self.half_width_95 < 1 / len(self.requirements.items)

    @property
    def proven(self) -> bool:
        """Whether every report will be proven to be one vote."""
        return self.mechanism.proven

    @property
    def assumption(self) -> str:
        """What is assumed about the clients, in words."""
        return ASSUMPTIONS[self.proven]

    @property
    def description(self) -> str:
        """What to expect, in sentences for the owner."""
        requirements = self.requirements
        condition = "whatever the answers are"
        if self.condition is not None:
            condition = f"provided that {self.condition}"
        proofs = "There are no proofs that a report is one vote"
        if self.proven:
            proofs = "Every report is proven to be one vote"
        return (
            f"At least {self.minimum:,} of the {requirements.users:,} invited people must answer. "
            f"With 95% certainty each frequency is then accurate to {self.error_text} of those "
            f"who answer. The answers are private {condition}. {proofs}. Mechanism: "
            f"{self.mechanism.name}, topology: {requirements.topology}."
        )

    @property
    def error_text(self) -> str:
        """The 95% error, such as ±3.1%."""
        return percent(self.half_width_95, "±")


def advise(requirements: SurveyRequirements) -> Advice:
    """The mechanism with the smallest error, or the required one; refused if none is possible."""
    possible: list[Advice] = []
    reasons: list[str] = []
    for option in _candidates(requirements):
        try:
            possible.append(_cost_in_topology(requirements, option))
        except (ParameterError, RefusedError) as refusal:
            reasons.append(f"{option.name}: {refusal}")
    if possible:
        return min(possible, key=lambda advice: advice.standard_error)

    # Several options may be impossible for the same reason; the owner reads it once.
    listed = "; ".join(dict.fromkeys(reasons))
    message = f"no mechanism keeps this promise in {requirements.topology}: {listed}"
    if requirements.needs_proofs:
        message += ". Without proofs that a report is one vote: --mechanism laplace"
    raise RefusedError(message).with_code("no_mechanism")


def _candidates(requirements: SurveyRequirements) -> list[Option]:
    """The planner's options that may run in the survey."""
    options = requirements.plan().options
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


def _cost_in_topology(requirements: SurveyRequirements, option: Option) -> Advice:
    """An option as it runs in the topology; an error says why it cannot."""
    # The planner has found no parameters for it, and says why.
    if option.mechanism is None:
        raise RefusedError(option.reason).with_code("no_mechanism")
    # The planner knows the number of items only; the survey needs their labels.
    labelled = replace(as_field_mechanism(option.mechanism), items=Domain(requirements.items))
    running = requirements.topology.adapt_mechanism(labelled.for_survey())
    # The error if only the minimum number of people respond: it can only be smaller.
    error, half_width = running.expected_errors(minimum_after_dropouts(running))
    condition = running.condition(running.participants)
    return Advice(requirements, labelled, error, half_width, condition)

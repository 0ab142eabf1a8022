"""Which mechanism a survey should run: the planner's advice for one topology.

The planner compares mechanisms, each in the topology where it is cheapest. A survey has one
topology, so every option is costed again as it runs there, and the one with the smallest error
wins. Unlike the rows of a table, participants' devices may be malicious. In the topology `servers`,
where a report can be proven to be one vote, only mechanisms with such proofs are considered, unless
the owner asks for another one by name.

The minimum number of responses depends on the mechanism (`default_minimum`). Mechanisms are
compared at the same number of responses: the minimum that the owner gives, or else a survey in
which a few do not respond. The error at the minimum is stated besides.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from faircount.accounting.conditions import Condition
from faircount.core.domain import Domain, visible_form
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation.validity import ASSUMPTIONS
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.secret_shared import FieldMechanism, as_field_mechanism
from faircount.planning.dropout import DropoutCost, dropout_cost, usual_dropout
from faircount.planning.option import Option, percent
from faircount.planning.plan import Plan, plan
from faircount.planning.question import Question
from faircount.protocol import SERVERS, Topology
from faircount.protocol.survey.parameters import default_minimum, minimum_after_dropouts

AUTO = "auto"
FEWEST = 2
"""A result over one person would be that person's answer with noise."""

_NUMBER = re.compile("[0-9]{1,10}")
_RATE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def parse_minimum(text: str, users: int) -> int:
    """The minimum number of responses that an owner writes: a number, or a rate such as 40%."""
    given = text.strip()
    rate = _RATE.fullmatch(given)
    if rate is not None:
        # Rounded up: at least this rate responds. As a fraction, 30% of 10 is 3 and not 4.
        minimum = math.ceil(Fraction(rate[1]) * users / 100)
    elif _NUMBER.fullmatch(given):
        minimum = int(given)
    else:
        message = f"the minimum number of responses is a number or a rate such as 40%, not {text!r}"
        raise ParameterError(message).with_code("minimum_form")
    return check_minimum(minimum, users)


def check_minimum(minimum: int, users: int) -> int:
    """The minimum number of responses; refused if so many people cannot respond."""
    if not FEWEST <= minimum <= users:
        message = (
            f"the minimum number of responses must be {FEWEST} to {users:,}, the number of people "
            f"invited, not {minimum:,}"
        )
        raise ParameterError(message).with_code("minimum_range", fewest=FEWEST, invited=users)
    return minimum


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
        dropout = usual_dropout(self.users)
        if self.minimum is not None:
            dropout = (self.users - self.minimum) / self.users
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
    """The mechanism to run and what to expect of it.

    responses: the number of responses for which the errors are stated
    standard_error, half_width_95: the errors of an average item with so many responses
    half_width_95_at_minimum: the 95% error with the minimum number of responses
    allowance_cost: what it costs that some may be missing, where users make the noise
    """

    requirements: SurveyRequirements
    mechanism: FieldMechanism
    responses: int
    standard_error: float
    half_width_95: float
    half_width_95_at_minimum: float
    condition: Condition | None
    allowance_cost: DropoutCost | None

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
            f"The minimum number of responses is {self.minimum:,} of {requirements.users:,} "
            f"invited people: with fewer there is no result. {self._accuracy} The answers are "
            f"private {condition}. {proofs}. Mechanism: {self.mechanism.name}, topology: "
            f"{requirements.topology}."
        )

    @property
    def _accuracy(self) -> str:
        """The errors at both ends, and what the allowance for missing responses costs."""
        text = (
            f"With 95% certainty each frequency is accurate to {self.error_text} of those who "
            f"answer if {self.responses:,} do"
        )
        if self.minimum < self.responses:
            text += f", and to {percent(self.half_width_95_at_minimum, '±')} if {self.minimum:,} do"
        text += "."
        cost = self.allowance_cost
        if cost is not None and cost.half_width_95_without is not None:
            text += (
                f" Participants make the noise, so a lower minimum costs accuracy: if all "
                f"{cost.users:,} had to answer, the error would be "
                f"{percent(cost.half_width_95_without, '±')}."
            )
        return text

    @property
    def error_text(self) -> str:
        """The 95% error, such as ±3.1%."""
        return percent(self.half_width_95, "±")


def advise(requirements: SurveyRequirements) -> Advice:
    """The mechanism with the smallest error, or the required one; refused if none is possible."""
    possible: list[Advice] = []
    reasons: list[str] = []
    planned = requirements.plan()
    for option in _candidates(requirements, planned.options):
        try:
            possible.append(_cost_in_topology(requirements, option, planned.question))
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


def _cost_in_topology(
    requirements: SurveyRequirements, option: Option, question: Question
) -> Advice:
    """An option as it runs in the topology; an error says why it cannot."""
    # The planner has found no parameters for it, and says why.
    if option.mechanism is None:
        raise RefusedError(option.reason).with_code("no_mechanism")
    # The planner knows the number of items only; the survey needs their labels.
    labelled = replace(as_field_mechanism(option.mechanism), items=Domain(requirements.items))
    running = requirements.topology.adapt_mechanism(labelled.for_survey())
    responses = minimum_after_dropouts(running)
    error, half_width = running.expected_errors(responses)
    fewest = _with_default_minimum(requirements, running)
    _, half_width_at_minimum = fewest.expected_errors(minimum_after_dropouts(fewest))
    return Advice(
        requirements,
        _with_default_minimum(requirements, labelled),
        responses,
        error,
        half_width,
        half_width_at_minimum,
        running.condition(running.participants),
        None if running.servers_add_noise else dropout_cost(option, question),
    )


def _with_default_minimum(
    requirements: SurveyRequirements, mechanism: FieldMechanism
) -> FieldMechanism:
    """The mechanism with the minimum that suits it, if the owner has not given one.

    The planner gives all mechanisms the allowance of those in which users make the noise.
    """
    if requirements.minimum is not None or not mechanism.servers_add_noise:
        return mechanism
    # Every mechanism with noise of the servers has this field.
    dropouts = mechanism.n - default_minimum(mechanism)
    return replace(mechanism, dropouts=dropouts)  # type: ignore[call-arg]

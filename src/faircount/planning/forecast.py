"""What to expect of a survey over the network: its minimum, its errors, its conditions.

A plan and the advice on a survey that is being created are made here, so that both say the same.
Errors are stated for the responses that are expected: those of a survey in which a few do not
respond, unless the owner gives a minimum or a response rate. The error at the minimum number of
responses is stated besides.
"""

from dataclasses import dataclass, replace
from typing import Any

from faircount.accounting.conditions import Condition
from faircount.core.domain import Domain
from faircount.core.errors import RefusedError
from faircount.estimation.validity import ASSUMPTIONS
from faircount.mechanisms.secret_shared import FieldMechanism, as_field_mechanism
from faircount.planning.dropout import DropoutCost, dropout_cost
from faircount.planning.option import Option, percent
from faircount.planning.question import Question
from faircount.protocol import Topology
from faircount.protocol.survey.parameters import default_minimum, minimum_after_dropouts


@dataclass(frozen=True)
class Forecast:
    """The mechanism of a survey and what to expect of it.

    mechanism: ready to run, with the minimum number of responses
    topology: how shares travel
    invited: how many people are invited
    responses: the number of responses for which the errors are stated
    standard_error, half_width_95: the errors of an average item with so many responses
    half_width_95_at_minimum: the 95% error with the minimum number of responses
    condition: condition of the guarantee; None if it holds for any data
    allowance_cost: what it costs that some may be missing, where users make the noise
    """

    mechanism: FieldMechanism
    topology: Topology
    invited: int
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
        # As in a plan: a wider interval cannot tell an average item from one that nobody chose.
        return self.half_width_95 < 1 / len(self.mechanism.domain)

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
        return f"{self.minimum_sentence} {self.accuracy} {self.terms}"

    @property
    def minimum_sentence(self) -> str:
        """How many responses the survey needs."""
        return (
            f"The minimum number of responses is {self.minimum:,} of {self.invited:,} invited "
            "people: with fewer there is no result."
        )

    @property
    def accuracy(self) -> str:
        """The errors at both ends, and what the allowance for missing responses costs."""
        text = (
            f"With 95% certainty each frequency is accurate to {self.error_text} of those who "
            f"answer if {self.responses:,} do"
        )
        # With the same number the sentence would state the same error twice.
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
    def terms(self) -> str:
        """When the answers are private, whether reports are proven, and by which mechanism."""
        condition = "whatever the answers are"
        if self.condition is not None:
            condition = f"provided that {self.condition}"
        proofs = "There are no proofs that a report is one vote"
        if self.proven:
            proofs = "Every report is proven to be one vote"
        return (
            f"The answers are private {condition}. {proofs}. Mechanism: {self.mechanism.name}, "
            f"topology: {self.topology}."
        )

    @property
    def error_text(self) -> str:
        """The 95% error, such as ±3.1%."""
        return percent(self.half_width_95, "±")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "mechanism": self.mechanism.name,
            "topology": str(self.topology),
            "minimum": self.minimum,
            "responses": self.responses,
            "standard_error": self.standard_error,
            "half_width_95": self.half_width_95,
            "half_width_95_at_minimum": self.half_width_95_at_minimum,
            "proven": self.proven,
        }


def forecast(
    option: Option, question: Question, topology: Topology, items: Domain | None = None
) -> Forecast:
    """An option of a plan as it runs in a topology; an error says why it cannot.

    items: the answers to choose from; by default numbers
    """
    # The planner has found no parameters for it, and says why.
    if option.mechanism is None:
        raise RefusedError(option.reason).with_code("no_mechanism")
    mechanism = as_field_mechanism(option.mechanism)
    if items is not None:
        mechanism = replace(mechanism, items=items)
    # Errors are those of what really runs: between servers some mechanisms need more noise, because
    # nobody knows a user's place.
    running = topology.adapt_mechanism(mechanism.for_survey())
    responses = minimum_after_dropouts(running)
    error, half_width = running.expected_errors(responses)
    fewest = _with_minimum(question, running)
    _, half_width_at_minimum = fewest.expected_errors(minimum_after_dropouts(fewest))
    return Forecast(
        _with_minimum(question, mechanism),
        topology,
        question.users,
        responses,
        error,
        half_width,
        half_width_at_minimum,
        running.condition(running.participants),
        # Noise of the servers does not become less when people stay away, so the allowance is free.
        None if running.servers_add_noise else dropout_cost(option, question),
    )


def _with_minimum(question: Question, mechanism: FieldMechanism) -> FieldMechanism:
    """The mechanism with the minimum that suits it, if the owner has not given one.

    The planner gives all mechanisms the allowance of those in which users make the noise.
    """
    if question.minimum is not None or not mechanism.servers_add_noise:
        return mechanism
    # Every mechanism with noise of the servers has this field.
    dropouts = mechanism.n - default_minimum(mechanism)
    return replace(mechanism, dropouts=dropouts)  # type: ignore[call-arg]

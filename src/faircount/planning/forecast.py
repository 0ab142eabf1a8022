"""What to expect of a survey over the network: its minimum, its errors, its conditions.

A plan and the advice on a survey that is being created are made here, so that both say the same.
Errors are stated for the responses that are expected: those of a survey in which a few do not
respond, unless the owner gives a minimum or a response rate. The error at the minimum number of
responses is stated besides.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faircount.accounting.conditions import Condition
from faircount.accounting.levels import Levels
from faircount.core.domain import Domain
from faircount.core.errors import RefusedError
from faircount.core.questions.form import Form
from faircount.estimation.validity import ASSUMPTIONS
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.secret_shared import FieldMechanism, OneQuestion, as_one_question
from faircount.mechanisms.server_levels import ServerLevels, check_choices
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.planning.dropout import DropoutCost, dropout_cost
from faircount.planning.option import Option, format_percent, percents
from faircount.planning.questionnaire import QuestionnairePlan, make_plan
from faircount.planning.request import PlanRequest
from faircount.planning.split_plan import Crowd, make_split_plan
from faircount.protocol import SERVERS, Topology
from faircount.protocol.survey.parameters import (
    default_dropout_allowance,
    default_minimum,
    minimum_after_dropouts,
)
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance

ALMOST_CERTAIN = 0.999
"""Chances beyond this are not written in digits: nobody knows the response rate so well."""


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
    expected: how many responses the owner expects; None if nothing was said about it
    sheet: the errors of every question with so many responses, if there are several or of other
        kinds than one of N; the errors above are then those of the worst of them
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
    expected: int | None
    sheet: QuestionnairePlan | None = None

    @property
    def minimum(self) -> int:
        """The minimum number of responses."""
        return minimum_after_dropouts(self.mechanism)

    @property
    def is_informative(self) -> bool:
        """Whether the 95% error of every question stays below what nothing is learned from."""
        if self.sheet is not None:
            return not self.sheet.uninformative
        return self.half_width_95 < 1 / self.mechanism.N

    @property
    def objection(self) -> str:
        """Why a survey with these questions should not be run, and what to do; empty if it may."""
        if self.sheet is not None and self.sheet.objection:
            return self.sheet.objection
        return self.too_few_expected

    @property
    def too_few_expected(self) -> str:
        """That fewer responses are expected than are needed, and what to do; empty if not."""
        if self.expected is None or self.expects_enough:
            return ""
        return (
            f"{self.expected:,} people are expected to respond, fewer than the minimum number of "
            f"responses, {self.minimum:,}; invite more people, or set a lower minimum"
        )

    @property
    def expects_enough(self) -> bool:
        """Whether the minimum is not above the responses that the owner expects."""
        return self.expected is None or self.expected >= self.minimum

    @property
    def chance_of_minimum(self) -> float | None:
        """The chance that the minimum is reached, if people respond independently as expected."""
        if self.expected is None:
            return None
        missing = 1 - self.expected / self.invited
        # One visit decides whether somebody responds, as in `servers`, whatever the topology.
        return SERVERS.completion_chance(Attendance(self.invited, self.minimum, missing))

    @property
    def chance_sentence(self) -> str:
        """How likely the minimum is reached at the expected response rate; empty without one."""
        chance = self.chance_of_minimum
        if chance is None or self.expected is None:
            return ""
        rate = f"{self.expected / self.invited:.0%}"
        text = (
            f"If {rate} of the invited respond, independently, the minimum is reached "
            f"{format_chance(chance)}."
        )
        if chance < TARGET_COMPLETION:
            text += " Set a lower minimum, or invite more people."
        return text

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
        parts = (self.minimum_sentence, self.chance_sentence, self.accuracy, self.terms)
        return " ".join(filter(None, parts))

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
        clauses = self.accuracy_clauses
        return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)

    @property
    def accuracy_clauses(self) -> tuple[str, ...]:
        """The same without capital letters and full stops, to be put into another sentence."""
        if self.sheet is not None:
            return self._accuracy_of_sheet
        cost = self.allowance_cost
        errors = [self.half_width_95, self.half_width_95_at_minimum]
        if cost is not None and cost.half_width_95_without is not None:
            errors.append(cost.half_width_95_without)
        expected, at_minimum, *without = percents(errors, "±")
        text = (
            f"with 95% certainty each frequency is accurate to {expected} of those who "
            f"answer if {self.responses:,} do"
        )
        # With the same number the sentence would state the same error twice.
        if self.minimum < self.responses:
            text += f", and to {at_minimum} if {self.minimum:,} do"
        if cost is None or not without:
            return (text,)
        price = (
            "participants make the noise, so a lower minimum costs accuracy: if all "
            f"{cost.users:,} had to answer, the error would be {without[0]}"
        )
        return text, price

    @property
    def _accuracy_of_sheet(self) -> tuple[str, ...]:
        text = (
            "with 95% certainty each estimate is as accurate as the table of questions says if "
            f"{self.responses:,} people answer"
        )
        if self.minimum < self.responses:
            times = growth_of_errors(self.mechanism, self.responses, self.minimum)
            text += f"; if {self.minimum:,} do, the errors are {times:.2g} times as large"
        if self.mechanism.servers_add_noise or self.minimum >= self.invited:
            return (text,)
        price = (
            "participants make the noise, so a lower minimum costs accuracy: the noise of "
            f"{self.minimum:,} people has to suffice"
        )
        return text, price

    @property
    def terms(self) -> str:
        """When the answers are private, whether reports are proven, and by which mechanism."""
        condition = "whatever the answers are"
        if self.condition is not None:
            condition = f"provided that {self.condition}"
        what = "one vote" if self.sheet is None else "one sheet of possible answers"
        proofs = f"There are no proofs that a report is {what}"
        if self.proven:
            proofs = f"Every report is proven to be {what}"
        return (
            f"The answers are private {condition}. {proofs}. Mechanism: {self.mechanism.name}, "
            f"topology: {self.topology}."
        )

    @property
    def error_text(self) -> str:
        """The 95% error, such as ±3.1%."""
        return format_percent(self.half_width_95, "±")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "mechanism": self.mechanism.name,
            "topology": str(self.topology),
            "minimum": self.minimum,
            "responses": self.responses,
            "chance_of_minimum": self.chance_of_minimum,
            "standard_error": self.standard_error,
            "half_width_95": self.half_width_95,
            "half_width_95_at_minimum": self.half_width_95_at_minimum,
            "proven": self.proven,
            **({} if self.sheet is None else {"questions": self._describe_questions()}),
        }

    def _describe_questions(self) -> list[dict[str, Any]]:
        """The errors of every question, with both numbers of responses."""
        lines = () if self.sheet is None else self.sheet.lines
        times = growth_of_errors(self.mechanism, self.responses, self.minimum)
        return [
            {**line.to_dict(), "half_width_at_minimum": line.half_width * times} for line in lines
        ]


def format_chance(chance: float) -> str:
    """A chance as people say it, without digits that nobody knows."""
    if chance > ALMOST_CERTAIN:
        return "almost certainly"
    if chance < 1 - ALMOST_CERTAIN:
        return "almost never"
    return f"with a chance of {chance:.0%}" if chance < 0.995 else "with a chance above 99%"


def forecast_sheet(
    form: Form,
    *,
    users: int,
    epsilon: float,
    topology: Topology,
    minimum: int | None = None,
    expected: int | None = None,
    insiders: int = 1,
    levels: Levels | None = None,
    proven: bool = True,
) -> Forecast:
    """A survey with any questions, to which both servers add joint noise, or the users their own.

    users: how many people are invited
    minimum: minimum number of responses; None for one that fits the mechanism
    expected: how many responses the owner expects; None for nearly all
    insiders: how many participants may collude
    proven: whether reports are proven, and the servers add the noise
    levels: hidden privacy levels; errors are those of the strongest, which need no assumption
    """
    usual = users - default_dropout_allowance(users) if minimum is None else minimum
    responses = usual if expected is None else max(1, expected)
    plan: QuestionnairePlan
    mechanism: ServerSheets | LaplaceSheets
    if proven:
        if levels is not None:
            # Before a plan is made, which is of no use for questions that have no levels.
            check_choices(form.questionnaire)
        plan = make_plan(form, responses, epsilon if levels is None else levels.base, draws=2)
        terms: dict[str, Any] = {
            "questionnaire": form.questionnaire,
            "groups": plan.mechanism.groups,
            "epsilon": epsilon,
            "users": users,
            "insiders": insiders,
        }
        mechanism = ServerSheets(**terms)
        if levels is not None:
            mechanism = ServerLevels(**terms, levels=levels)
        min_responses = default_minimum(mechanism) if minimum is None else minimum
        mechanism = replace(mechanism, dropouts=users - min_responses)
    else:
        # Noise of the users suffices for no fewer than the minimum, so no error is stated below it.
        responses = max(usual, responses)
        crowd = Crowd(users, insiders, users - usual)
        split = make_split_plan(form, responses, epsilon, crowd)
        plan = split
        mechanism = split.mechanism
        min_responses = usual
    # Refuses what the topology cannot carry, before anybody is told about errors.
    running = topology.adapt_mechanism(mechanism)
    # Shares of what one person can add to a cell: 1 to a count, its range to a number.
    tops = [sum(weight for _, weight in cell) for cell in form.questionnaire.cell_weights]
    # With levels the cells of the second table follow; the base is what is relied on.
    errors = np.sqrt(mechanism.variance(None, responses)[: len(tops)]) / tops
    half_width = max(line.half_width for line in plan.lines) / 100
    return Forecast(
        mechanism,
        topology,
        users,
        responses,
        float(errors.max()),
        half_width,
        half_width * growth_of_errors(mechanism, responses, min_responses),
        running.condition(running.participants),
        None,
        expected,
        plan,
    )


def growth_of_errors(mechanism: FieldMechanism, responses: int, min_responses: int) -> float:
    """How many times as large errors become if the fewest people respond.

    Noise of the servers is the same for any number. Where people add it, fewer of them add less.
    """
    times = responses / min_responses
    return times if mechanism.servers_add_noise else times**0.5


def forecast(
    option: Option, request: PlanRequest, topology: Topology, items: Domain | None = None
) -> Forecast:
    """An option of a plan as it runs in a topology; an error says why it cannot.

    items: the answers to choose from; by default numbers
    """
    # The planner has found no parameters for it, and says why.
    if option.mechanism is None:
        raise RefusedError(option.reason).with_code("no_mechanism")
    mechanism = as_one_question(option.mechanism)
    if items is not None:
        mechanism = replace(mechanism, items=items)
    # Errors are those of what really runs: between servers some mechanisms need more noise, because
    # nobody knows a user's place.
    running = as_one_question(topology.adapt_mechanism(mechanism.for_survey()))
    responses = minimum_after_dropouts(running)
    # Noise of the users suffices for no fewer than the minimum, so no error is stated below it.
    if request.expected is not None:
        fewest_possible = 1 if running.servers_add_noise else responses
        responses = max(fewest_possible, request.expected)
    error, half_width = running.expected_errors(responses)
    at_minimum = _with_minimum(request, running)
    _, half_width_at_minimum = at_minimum.expected_errors(minimum_after_dropouts(at_minimum))
    return Forecast(
        _with_minimum(request, mechanism),
        topology,
        request.users,
        responses,
        error,
        half_width,
        half_width_at_minimum,
        running.condition(running.participants),
        # Noise of the servers does not become less when people stay away, so the allowance is free.
        None if running.servers_add_noise else dropout_cost(option, request),
        request.expected,
    )


def _with_minimum(request: PlanRequest, mechanism: OneQuestion) -> OneQuestion:
    """The mechanism with the minimum that suits it, if the owner has not given one.

    The planner gives all mechanisms the allowance of those in which users make the noise.
    """
    if request.minimum is not None or not mechanism.servers_add_noise:
        return mechanism
    # Every mechanism with noise of the servers has this field.
    dropouts = mechanism.n - default_minimum(mechanism)
    return replace(mechanism, dropouts=dropouts)  # type: ignore[call-arg]

"""How one group of users is surveyed, with which mechanism, and whether that is worth it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from faircount.accounting.conditions import ConditionCode
from faircount.core.arrays import Ints
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.option import format_percent, make_option
from faircount.planning.plan import compare_mechanisms
from faircount.planning.request import PlanRequest, privacy_warnings

AUTO = "auto"

RUN_NEVERTHELESS = (
    "To run it nevertheless, and spend the budget, use --anyway (anyway=True in Python)"
)
"""Stands after every refusal of a result from which nothing would be learned."""


@dataclass(frozen=True)
class PlannedSurvey:
    """A survey that is ready to run; no noise has been drawn yet."""

    settings: "RunSettings"
    positions: Ints = field(repr=False)
    mechanism: FrequencyMechanism
    half_width_95: float

    @property
    def users(self) -> int:
        """Number of users in this survey."""
        return int(self.positions.size)


@dataclass(frozen=True)
class RunSettings:
    """Budget, mechanism and assumptions of one group of users."""

    epsilon: float
    delta: float
    mechanism: str = AUTO
    floor: int = 0
    colluding: float = 0.0

    def plan(self, positions: Ints, items: int) -> PlannedSurvey:
        """Plan the survey of these users, or refuse if no mechanism meets the budget."""
        if self.mechanism == AUTO:
            made = compare_mechanisms(
                positions.size,
                items,
                self.epsilon,
                self.delta,
                floor=self.floor,
                colluding=self.colluding,
            )
            chosen = made.recommended
            reason = made.verdict
        else:
            known = frequency_mechanisms()
            if self.mechanism not in known:
                raise ParameterError(
                    f"mechanism must be {AUTO} or one of {', '.join(known)}, not {self.mechanism!r}"
                )
            request = PlanRequest(
                positions.size,
                items,
                self.epsilon,
                self.delta,
                self.floor,
                colluding=self.colluding,
            )
            # A mechanism that the analyst names is held to the same budget as a recommended one.
            chosen = make_option(known[self.mechanism], request)
            reason = f"{self.mechanism}: {chosen.reason}"
        if chosen is None or chosen.mechanism is None:
            raise RefusedError(reason)
        return PlannedSurvey(self, positions, chosen.mechanism, chosen.half_width_95 or 0.0)

    def warnings_for(self, result: Result) -> tuple[str, ...]:
        """What to know about the guarantee, such as a large epsilon or an item below the floor."""
        return (
            *privacy_warnings(self.epsilon, self.delta),
            *_items_below_floor(result),
            *_describe_absent_servers(result),
        )


def check_worthwhile(surveys: Sequence[PlannedSurvey], items: int, anyway: bool) -> tuple[str, ...]:
    """Refuse surveys whose 95% error exceeds the average frequency: they would tell nothing.

    The error is that of all groups together, weighted by size. With `anyway` the warning is
    returned instead, to be noted with the result.
    """
    users = sum(survey.users for survey in surveys)
    variance = 0.0
    for survey in surveys:
        variance += (survey.users / users * survey.half_width_95) ** 2
    error = math.sqrt(variance)
    if error < 1 / items:
        return ()
    # Groups may use different mechanisms; each is named once, in the order of the groups.
    names = "+".join(dict.fromkeys(survey.mechanism.name for survey in surveys))
    warning = (
        f"do not run this: {names} has a 95% error of {format_percent(error, '±')}, more than an "
        f"average item's {format_percent(1 / items)}; ask more users, offer fewer items or allow "
        "a larger epsilon"
    )
    if not anyway:
        raise RefusedError(f"{warning}. {RUN_NEVERTHELESS}")
    return (warning,)


def _describe_absent_servers(result: Result) -> tuple[str, ...]:
    """A note where the guarantee names servers, of which none runs for a table."""
    condition = result.guarantee.condition
    noise = (ConditionCode.S1_NOISE, ConditionCode.S2_NOISE, ConditionCode.EITHER_NOISE)
    if condition is None or not condition.has(*noise):
        return ()
    note = (
        "no servers ran: this program drew the noise of both and saved it nowhere, so the "
        "condition about servers holds as far as you trust the machine that holds the table"
    )
    return (note,)


def _items_below_floor(result: Result) -> tuple[str, ...]:
    """A note that names the items which seem to have fewer holders than the floor."""
    floor = result.mechanism.floor
    if not floor:
        return ()
    # Only the published intervals are used: looking at the counts would leak what they hide.
    upper_counts = result.interval(simultaneous=True).high * result.included
    below = []
    for item, count in zip(result.items, upper_counts, strict=True):
        if round(count) < floor:
            below.append(str(item))
    if not below:
        return ()
    note = (
        f"the guarantee needs at least {floor} holders of every item, which seems not to hold for "
        f"{', '.join(below)}: the simultaneous 95% intervals end below that"
    )
    return (note,)

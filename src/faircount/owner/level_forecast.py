"""What to expect of a survey in public levels: of all levels together, and of one level for all."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions.form import Form
from faircount.owner.advice import AUTO, Advice, SurveyRequirements, advise
from faircount.planning.groups import (
    NORMAL_95,
    Combined,
    best_way,
    combine_errors,
    describe_ways,
    find_epsilon,
)
from faircount.planning.minimum import parse_minimum, parse_response_rate
from faircount.planning.questionnaire import largest_error
from faircount.protocol import topology_named


@dataclass(frozen=True)
class LevelForecast:
    """What to expect of every level, of all together, and of everybody at the strongest level.

    levels: the advice on every level
    everybody: the advice on one survey of everybody at the strongest level's epsilon; None where it
        is not possible
    ways: errors of one question, combined in every way; empty for a questionnaire
    equal_epsilon: at which one level for all has the smallest error of all ways
    """

    levels: Mapping[str, Advice]
    everybody: Advice | None
    ways: Mapping[str, Combined]
    equal_epsilon: float | None = None

    @property
    def half_widths(self) -> tuple[float, ...]:
        """The 95% error of every question in percentage points, every person counting the same."""
        if self.ways:
            return (100 * NORMAL_95 * self.ways["uwa"].standard_error,)
        counted = sum(advice.responses for advice in self.levels.values())
        found = []
        for number in range(len(next(iter(self.levels.values())).requirements.questionnaire)):
            # Errors of independent levels, each for its share of the people.
            parts = [
                advice.responses / counted * _half_widths(advice)[number]
                for advice in self.levels.values()
            ]
            found.append(math.hypot(*parts))
        return tuple(found)

    @property
    def half_widths_of_one_level(self) -> tuple[float, ...]:
        """The same if everybody were asked at the strongest level; empty where that is unknown."""
        return () if self.everybody is None else _half_widths(self.everybody)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which way to combine, and whether one level for all is better."""
        if self.ways:
            return (describe_ways(self.ways, self.equal_epsilon),)
        pairs = zip(self.half_widths, self.half_widths_of_one_level, strict=False)
        better = [number for number, (ours, one) in enumerate(pairs, 1) if one < ours]
        if not better:
            return ()
        listed = ", ".join(map(str, better))
        text = (
            "one survey of everybody at the strongest level would be more exact for question "
            f"{listed}, whatever the levels answer: levels help only where people insist on them, "
            "or if they answer alike"
        )
        return (text,)

    def check(self, anyway: bool) -> None:
        """Refuse levels from which nothing would be learned even together."""
        for name, advice in self.levels.items():
            if not advice.expects_enough and not anyway:
                raise RefusedError(
                    f"level {name!r}: {advice.expected:,} people are expected to respond, fewer "
                    f"than its minimum number of responses, {advice.minimum:,}. Invite more people "
                    "or set a lower minimum, or create the survey nevertheless with --anyway"
                ).with_code("level_expects_too_few", level=name, minimum=advice.minimum)
        asked = next(iter(self.levels.values())).requirements.questionnaire.questions
        pairs = zip(self.half_widths, asked, strict=True)
        hopeless = [error for error, question in pairs if error >= largest_error(question)]
        if hopeless and not anyway:
            raise RefusedError(
                "do not run this survey: even all levels together have a 95% error of "
                f"±{max(hopeless):.0f} points, more than the share of an average answer. Ask more "
                "people, offer fewer answers or levels, or allow larger epsilons, or create it "
                "nevertheless with --anyway"
            ).with_code("not_worthwhile")


def forecast_levels(
    form: Form,
    sizes: Mapping[str, tuple[int, float]],
    *,
    delta: float,
    minimum: int | str | None = None,
    response_rate: float | str | None = None,
    topology: str = "servers",
    mechanism: str = AUTO,
    floor: int = 0,
    colluding: float = 0.0,
    **_: Any,
) -> LevelForecast:
    """Plan every level as `survey create` does; refused if one of them is not possible.

    sizes: people and epsilon of every level
    """
    rate = None if response_rate is None else parse_response_rate(response_rate)

    def advise_on(users: int, epsilon: float, holders: int) -> Advice:
        # A rate is one of the people of each level, not of all levels together.
        needed = None if minimum is None else parse_minimum(str(minimum), users)
        kind = topology_named(topology)
        terms = (delta, mechanism, kind, needed, holders, colluding, rate)
        return advise(SurveyRequirements(form, users, epsilon, *terms))

    levels = {}
    for name, (users, epsilon) in sizes.items():
        try:
            levels[name] = advise_on(users, epsilon, floor)
        except (ParameterError, RefusedError) as problem:
            message = f"level {name!r}, {users:,} people: {problem}"
            raise type(problem)(message).with_code(problem.code, **problem.values) from None

    @cache  # the search below begins where it was asked before
    def advise_on_everybody(epsilon: float) -> Advice | None:
        everybody = sum(users for users, _ in sizes.values())
        # So many others choose each answer in every level, and together so many more.
        try:
            return advise_on(everybody, epsilon, floor * len(sizes))
        # No comparison then: that everybody cannot be asked at once is no reason to refuse levels.
        except (ParameterError, RefusedError):
            return None

    def error_of_one_level(epsilon: float) -> float | None:
        advice = advise_on_everybody(epsilon)
        return None if advice is None else advice.standard_error

    strictest = min(epsilon for _, epsilon in sizes.values())
    pooled = advise_on_everybody(strictest)
    asked = next(iter(levels.values())).requirements
    if not asked.is_one_choice:
        return LevelForecast(levels, pooled, {})
    counted = [advice.responses for advice in levels.values()]
    errors = [advice.standard_error for advice in levels.values()]
    ways = combine_errors(counted, errors, len(asked.items))
    if pooled is None:
        return LevelForecast(levels, None, ways)
    ways["cpa"] = Combined((1.0,), pooled.standard_error, pooled.standard_error)
    smallest = ways[best_way(ways, if_alike=True)].standard_error
    # What people would have to accept for the same error without levels.
    equal = find_epsilon(smallest, strictest, error_of_one_level)
    return LevelForecast(levels, pooled, ways, equal)


def _half_widths(advice: Advice) -> tuple[float, ...]:
    """The 95% error of every question, in percentage points."""
    if advice.sheet is None:
        return (100 * advice.half_width_95,)
    return tuple(line.half_width for line in advice.sheet.lines)

"""Hidden privacy levels on the dashboard: read from the form, and described for the page.

What is described is public anyway: the levels of the parameters, and what a result publishes. Who
chose which level is nowhere to be read.
"""

from typing import Any

from faircount.accounting.levels import FEWEST, MOST, Levels
from faircount.core.errors import ParameterError
from faircount.dashboard.question_results import describe_rows
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.server_levels import KINDS, ServerLevels
from faircount.owner.advice import Advice, SurveyRequirements
from faircount.owner.levels import check_levels
from faircount.planning.levels import plan_levels
from faircount.protocol import SurveyParameters

Form = dict[str, Any]
WANTED = "levels"
"""Value of the field `protection` where everybody chooses."""


def read_levels(form: Form) -> Levels | None:
    """The levels of a form, the strongest first; None where all have the same protection."""
    if form.get("protection") != WANTED:
        return None
    found: dict[str, float] = {}
    for number in range(1, MOST + 1):
        name = str(form.get(f"level_name_{number}", "")).strip()
        # Without a name a level is not offered.
        if not name:
            continue
        if name in found:
            message = f"the level {name!r} is given twice"
            raise ParameterError(message).with_code("level_twice", level=name)
        found[name] = _epsilon(form, number)
    if len(found) < FEWEST:
        message = f"offer {FEWEST} or {MOST} levels"
        raise ParameterError(message).with_code("number_of_levels", most=MOST)
    # Checked as on the command line, with the same codes.
    return Levels.of(check_levels(found))


def _epsilon(form: Form, number: int) -> float:
    try:
        epsilon = float(form.get(f"level_epsilon_{number}", ""))
    except ValueError:
        epsilon = 0.0
    # "nan" and "inf" are floats, too.
    if not 0 < epsilon < float("inf"):
        message = f"the epsilon of level {number} must be a number above 0"
        raise ParameterError(message).with_code("level_epsilon", number=number)
    return epsilon


def check_kinds(requirements: SurveyRequirements) -> None:
    """Refuse questions for which there are no levels, by their number."""
    if requirements.levels is None:
        return
    for number, question in enumerate(requirements.questionnaire.questions, 1):
        if question.kind not in KINDS:
            message = "with hidden levels, ask questions with one of several answers or yes/no"
            raise ParameterError(message).with_code("level_kinds", question=number)


def form_of_levels(params: SurveyParameters) -> Form:
    """The fields from which a survey with the same levels is created."""
    levels = levels_of(params)
    if levels is None:
        return {"protection": "one"}
    fields: Form = {"protection": WANTED}
    for number in range(1, MOST + 1):
        is_offered = number <= len(levels)
        fields[f"level_name_{number}"] = levels.names[number - 1] if is_offered else ""
        epsilon = f"{float(levels[number - 1].epsilon):g}" if is_offered else ""
        fields[f"level_epsilon_{number}"] = epsilon
    return fields


def levels_of(params: SurveyParameters) -> Levels | None:
    """The levels that a survey offers."""
    mechanism = params.mechanism
    return mechanism.levels if isinstance(mechanism, ServerLevels) else None


def describe_levels(levels: Levels | None) -> list[dict[str, Any]] | None:
    """What participants lose at every level: of the answer, and of answer and level together."""
    if levels is None:
        return None
    found = []
    for number, name in enumerate(levels.names):
        answer, both = levels.stated_losses(number)
        found.append({"name": name, "answer": answer, "both": both})
    return found


def describe_gain(advice: Advice) -> dict[str, Any] | None:
    """What levels would gain if people chose all of them equally often and were alike.

    None where there are several questions: the planner says it of one.
    """
    requirements = advice.requirements
    levels = requirements.levels
    if levels is None or len(requirements.questionnaire) > 1:
        return None
    # Nobody can know what people will choose; equal shares are stated as an example.
    shares = [1 / len(levels)] * len(levels)
    plan = plan_levels(levels, shares, advice.responses, len(requirements.items))
    return {
        "inside": round(plan.again),
        "responses": advice.responses,
        "half_width_95": plan.alike_error,
        "equal_epsilon": plan.equal_epsilon,
    }


def describe_tables(result: QuestionnaireResult) -> dict[str, Any] | None:
    """What the second table of a result says, with the rows of every question."""
    tables = result.tables
    if tables is None:
        return None
    again = tables.counted_again()
    return {
        "offered": describe_levels(tables.mechanism.levels),
        "twice": {"estimate": again.estimate, "low": again.low, "high": again.high},
        "test": {"p": tables.test.p_value, "rejected": tables.test.rejected},
        "rows": [describe_rows(found, found.alike) for found in result.questions],
    }

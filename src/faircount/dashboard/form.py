"""The form of a new survey as the page sends it: parsed, checked, and passed to the planner."""

import math
import sys
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.questions.sums import SumQuestion
from faircount.dashboard.error_payload import error_payload
from faircount.dashboard.levels import (
    check_kinds,
    describe_gain,
    describe_levels,
    form_of_levels,
    read_levels,
)
from faircount.dashboard.question_fields import check_texts, fields_of, questions_of
from faircount.dashboard.sheets import people_of_sheet
from faircount.owner.advice import Advice, SurveyRequirements, advise
from faircount.owner.creation import GRACE, SurveyDescription, closing_time
from faircount.owner.folder import OwnerFile
from faircount.owner.invitation_texts import ENGLISH, printed_words
from faircount.owner.people import People
from faircount.planning.minimum import parse_minimum
from faircount.protocol import SurveyParameters

Form = dict[str, Any]
LONGEST_NAME = 60
FEWEST_PEOPLE = 2
MAX_PEOPLE = 1_000_000
"""More people would not fit into one page, nor into one table of invitations."""

SECONDS_PER_UNIT = {"days": 86400, "hours": 3600}
"""The units in which the form asks how long people can answer."""

SMALLEST_DELTA = sys.float_info.min
"""The planner needs a delta above 0."""

TEXTS = ("owner", "purpose", "contact", "population")


def requirements_of(form: Form) -> SurveyRequirements:
    """The request to the planner."""
    questions = questions_of(form)
    users = _users(form)
    # An empty field means the minimum that fits the mechanism.
    written = _text(form, "minimum")
    minimum = parse_minimum(written, users) if written else None
    levels = read_levels(form)
    # The population is charged what the weakest level loses: nobody knows who lost less.
    epsilon = _positive(form, "epsilon") if levels is None else levels.most
    requirements = SurveyRequirements(
        questions,
        users,
        epsilon,
        _delta(form),
        minimum=minimum,
        response_rate=_response_rate(form),
        levels=levels,
    )
    check_kinds(requirements)
    return requirements


def people_of(form: Form) -> People | None:
    """Who is invited: those in a table, or named in the form; None are as many as it says."""
    if form.get("sheet") is not None:
        return people_of_sheet(form)
    names = _lines(form, "people")
    return People.from_names(names) if names else None


def language_of(form: Form) -> str:
    """The language of the printed invitations."""
    return printed_words(str(form.get("invitation_language", ENGLISH))).language


def _users(form: Form) -> int:
    # Names win over the number beside them: every name gets an invitation.
    users = len(_lines(form, "people")) or _integer(form, "users")
    # Checked before anybody makes a list: the field can hold any number.
    if not FEWEST_PEOPLE <= users <= MAX_PEOPLE:
        message = f"invite {FEWEST_PEOPLE} to {MAX_PEOPLE:,} people"
        limits = {"fewest": FEWEST_PEOPLE, "most": MAX_PEOPLE}
        raise ParameterError(message).with_code("people", **limits)
    return users


def facts_of(form: Form) -> SurveyDescription:
    """What a participant reads before answering; all questions are required now."""
    check_texts(form)
    texts = {name: _text(form, name) for name in TEXTS}
    seconds = _seconds_open(form)
    return SurveyDescription(seconds=seconds, grace=GRACE, **texts)


def closing_time_of(form: Form) -> str:
    """The closing time that the form names, as ISO 8601; empty where it names a duration."""
    written = _text(form, "closes")
    return closing_time("closes", written)[1] if written else ""


def _seconds_open(form: Form) -> int:
    """For how long people can answer: until a closing time, or for days or hours."""
    written = _text(form, "closes")
    if written:
        return closing_time("closes", written)[0]
    unit = _text(form, "unit")
    if unit not in SECONDS_PER_UNIT:
        message = f"the time is given in one of {', '.join(SECONDS_PER_UNIT)}"
        raise ParameterError(message).with_code("bad_call")
    return _integer(form, "open_for") * SECONDS_PER_UNIT[unit]


def _response_rate(form: Form) -> float | None:
    """The expected response rate, which the form has in percent; None for nearly all."""
    if not _text(form, "response_rate"):
        return None
    percent = _positive(form, "response_rate")
    if percent > 100:
        message = "the expected response rate is at most 100 %"
        raise ParameterError(message).with_code("response_rate_form")
    return percent / 100


def form_of(params: SurveyParameters, owner: OwnerFile) -> Form:
    """The form from which a survey like this one is created."""
    is_unnamed = params.population == f"survey {params.survey.hex()}"
    epsilon, delta = owner.budget
    return {
        **fields_of(params.questionnaire),
        "owner": params.owner,
        "purpose": params.purpose,
        "contact": params.contact,
        "users": str(params.n_max),
        "minimum": str(params.minimum),
        **_duration_of(params.phase_seconds[0]),
        "invitation_language": owner.language,
        "epsilon": f"{params.epsilon:g}",
        **form_of_levels(params),
        "delta": f"{params.delta:g}",
        "population": "" if is_unnamed else params.population,
        "budget_epsilon": f"{epsilon:g}",
        "budget_delta": f"{delta:g}",
    }


def _duration_of(seconds: int) -> Form:
    """A duration in the fields of the form: in days if there are only whole ones, else in hours."""
    unit = "hours" if seconds % SECONDS_PER_UNIT["days"] else "days"
    # Rounded up: nobody gets less time than in the survey before.
    return {"open_for": str(-(-seconds // SECONDS_PER_UNIT[unit])), "unit": unit}


def budget_of(form: Form, requirements: SurveyRequirements) -> tuple[float, float]:
    """The privacy budget of a new population; without a name it covers this survey alone."""
    if not _text(form, "population"):
        return requirements.epsilon, requirements.delta
    return _number(form, "budget_epsilon"), _number(form, "budget_delta")


def is_wanted_anyway(form: Form) -> bool:
    """Whether the owner wants the survey although the planner advises against it."""
    return form.get("anyway") == "yes"


def check_name(name: str) -> str:
    """The name of a survey, if it can be the name of a folder."""
    # Letters and digits only: a name with a slash or dots would lead out of the owner's folder.
    is_plain = all(character.isalnum() or character in "-_" for character in name)
    # check: dashboard-folder - a path leads out of the owner's folder
    if not name or not is_plain or len(name) > LONGEST_NAME:
        message = "the name of a survey is made of letters, digits, - and _"
        raise ParameterError(message).with_code("bad_name")
    return name


def advice(form: Form) -> dict[str, Any]:
    """The planner's advice on the survey in the form, or why there is none."""
    # The form is sent while the owner types: unfinished input is normal and becomes a hint.
    try:
        requirements = requirements_of(form)
        found = _ask_planner(requirements)
    except FaircountError as problem:
        return {"problem": error_payload(problem)}
    condition = []
    if found.condition is not None:
        condition = found.condition.to_list()
    return {
        "mechanism": found.mechanism.name,
        "proven": found.proven,
        "invited": requirements.users,
        "minimum": found.minimum,
        "responses": found.responses,
        "half_width_95_at_minimum": found.half_width_95_at_minimum,
        "users_make_noise": not found.mechanism.servers_add_noise,
        "condition": condition,
        "worthwhile": found.is_informative and found.expects_enough,
        "informative": found.is_informative,
        "expected": found.expected,
        "chance_of_minimum": found.chance_of_minimum,
        "half_width_95": found.half_width_95,
        # An example of a result is drawn for the answers of a single choice.
        "items": list(requirements.items) if requirements.is_one_choice else [],
        "questions": _previews(found),
        "epsilon": requirements.epsilon,
        "delta": requirements.delta,
        "levels": describe_levels(requirements.levels),
        "gain": describe_gain(found),
        "costly": requirements.levels is not None and requirements.levels.is_costly,
    }


def _ask_planner(requirements: SurveyRequirements) -> Advice:
    try:
        return advise(requirements)
    except FaircountError as problem:
        # What the planner says about several questions is in English: the page introduces it.
        raise problem if problem.code else problem.with_code("no_mechanism") from None


def _previews(found: Advice) -> list[dict[str, Any]]:
    """What to expect of every question: its 95% error, and the share of epsilon of its group.

    `error` is in percentage points or, where `unit` is "units", in those of the number.
    """
    if found.sheet is None:
        error = 100 * found.half_width_95
        alone = {"number": 1, "group": 1, "epsilon": found.requirements.epsilon, "target": None}
        return [{**alone, "error": error, "unit": "points", "is_useless": not found.is_informative}]
    useless = {line.number for line in found.sheet.uninformative}
    previews = []
    questions = found.requirements.questionnaire.questions
    for line, question in zip(found.sheet.lines, questions, strict=True):
        error = line.half_width
        unit = "points"
        if isinstance(question, SumQuestion):
            # The planner states the error of a mean in percent of its range.
            error *= float(question.unit * question.largest) / 100
            unit = "units"
        shown = {"number": line.number, "group": line.group, "epsilon": line.epsilon}
        wanted = {"target": line.target, "is_useless": line.number in useless}
        previews.append({**shown, "error": error, "unit": unit, **wanted})
    return previews


def _text(form: Form, name: str) -> str:
    return str(form.get(name, "")).strip()


def _lines(form: Form, name: str) -> list[str]:
    lines = (line.strip() for line in _text(form, name).splitlines())
    return [line for line in lines if line]


def _integer(form: Form, name: str) -> int:
    value = _number(form, name)
    if value != int(value) or value < 1:
        message = f"{name} must be a whole number above 0"
        raise ParameterError(message).with_code("not_whole", field=name)
    return int(value)


def _positive(form: Form, name: str) -> float:
    value = _number(form, name)
    if value <= 0:
        raise ParameterError(f"{name} must be above 0").with_code("not_above_zero", field=name)
    return value


def _delta(form: Form) -> float:
    value = _number(form, "delta")
    if not SMALLEST_DELTA <= value < 1:
        message = "delta must be above 0 and below 1"
        raise ParameterError(message).with_code("not_inside", field="delta")
    return value


def _number(form: Form, name: str) -> float:
    try:
        value = float(form[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        value = math.nan
    # "nan" and "inf" are floats too, but would pass every comparison or none.
    if not math.isfinite(value):
        raise ParameterError(f"{name} must be a number").with_code("not_a_number", field=name)
    return value

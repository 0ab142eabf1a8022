"""The form of a new survey: what is read from it, and the advice beside it."""

from datetime import UTC, datetime, timedelta

import pytest

from faircount.core.errors import ParameterError
from faircount.dashboard.form import (
    advice,
    budget_of,
    check_name,
    closing_time_of,
    facts_of,
    language_of,
    people_of,
    requirements_of,
)
from faircount.owner.people import People

ASKED = {"kind": "one", "text": "", "items": "a\nb"}
GOOD = {
    "questions": [ASKED],
    "users": "300",
    "epsilon": "1",
    "delta": "1e-6",
    "minimum": "80%",
    "open_for": "72",
    "unit": "hours",
}


def test_advice_is_the_planners() -> None:
    found = advice(GOOD)
    assert (found["worthwhile"], found["invited"], found["minimum"], found["items"]) == (
        True,
        300,
        240,
        ["a", "b"],
    )
    assert 0 < found["half_width_95"] < 0.05
    assert found["condition"] == [{"code": "either_noise", "values": {}}]
    assert not advice({**GOOD, "users": "6", "epsilon": "0.1"}).get("worthwhile", False)


def test_advice_says_what_is_missing() -> None:
    found = advice({**GOOD, "questions": [{**ASKED, "items": "a"}]})["problem"]
    assert found == {
        "message": "write at least two answers, one per line",
        "code": "too_few_items",
        "values": {},
    }


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("users", "many", "not_a_number"),
        ("epsilon", "nan", "not_a_number"),
        ("epsilon", 10**400, "not_a_number"),
        ("users", "2.5", "not_whole"),
        ("epsilon", "0", "not_above_zero"),
        ("delta", "0", "not_inside"),
        ("delta", "1", "not_inside"),
    ],
)
def test_a_refusal_names_the_field_and_has_a_code(field, value, code) -> None:
    problem = advice({**GOOD, field: value})["problem"]
    assert (problem["code"], problem["values"]) == (code, {"field": field})
    assert problem["message"].startswith(f"{field} must be ")


@pytest.mark.parametrize(
    ("written", "code", "values"),
    [
        ("many", "minimum_form", {}),
        ("-3", "minimum_form", {}),
        ("1", "minimum_range", {"fewest": 2, "invited": 300}),
        ("301", "minimum_range", {"fewest": 2, "invited": 300}),
        ("101%", "minimum_range", {"fewest": 2, "invited": 300}),
    ],
)
def test_a_minimum_that_makes_no_sense_has_a_code(written, code, values) -> None:
    problem = advice({**GOOD, "minimum": written})["problem"]
    assert (problem["code"], problem["values"]) == (code, values)


def test_the_advice_states_the_error_at_the_minimum_too() -> None:
    found = advice({**GOOD, "minimum": ""})
    assert (found["minimum"], found["responses"]) == (75, 285)
    assert found["half_width_95"] < found["half_width_95_at_minimum"]
    assert not found["users_make_noise"]


def test_the_expected_response_rate_is_given_in_percent() -> None:
    found = advice({**GOOD, "minimum": "", "response_rate": "60"})
    assert (found["minimum"], found["responses"], found["expected"]) == (75, 180, 180)
    assert found["chance_of_minimum"] > 0.999
    assert found["worthwhile"]
    few = advice({**GOOD, "response_rate": "60"})
    assert (few["minimum"], few["worthwhile"], few["informative"]) == (240, False, True)
    assert advice(GOOD)["chance_of_minimum"] is None
    for wrong, code in (("101", "response_rate_form"), ("0", "not_above_zero")):
        assert advice({**GOOD, "response_rate": wrong})["problem"]["code"] == code


def test_the_time_to_answer_is_days_hours_or_a_closing_time() -> None:
    asked = {**GOOD, "questions": [{**ASKED, "text": "Why?"}]}
    assert facts_of(asked).seconds == 72 * 3600
    assert facts_of({**asked, "open_for": "3", "unit": "days"}).seconds == 3 * 86400
    assert closing_time_of(asked) == ""
    closes = datetime.now(tz=UTC) + timedelta(days=2)
    until = {**asked, "closes": closes.isoformat()}
    assert 0 <= facts_of(until).seconds - 2 * 86400 <= 1
    assert closing_time_of(until) == closes.isoformat()
    for wrong, code in ((closes - timedelta(days=3), "passed"), (datetime.max, "form")):
        with pytest.raises(ParameterError) as refusal:
            facts_of({**asked, "closes": wrong.isoformat()})
        assert refusal.value.code in (f"closing_time_{code}", "closing_time_passed")
    with pytest.raises(ParameterError, match="one of days, hours"):
        facts_of({**asked, "unit": "years"})


@pytest.mark.parametrize("users", ["1", "100000000000"])
def test_nobody_is_listed_before_the_number_is_known_to_be_sound(users) -> None:
    problem = advice({**GOOD, "users": users})["problem"]
    assert (problem["code"], problem["values"]) == ("people", {"fewest": 2, "most": 1_000_000})


def test_what_no_mechanism_can_promise_has_a_code_too() -> None:
    problem = advice({**GOOD, "epsilon": "1e-9"})["problem"]
    assert problem["code"] == "no_mechanism"
    assert "server-joint: " in problem["message"]


def test_people_are_named_or_as_many_as_the_form_says() -> None:
    assert people_of({"users": "3"}) is None
    with pytest.raises(ParameterError, match="printed in one of en, de"):
        language_of({"invitation_language": "xx"})
    named = {**GOOD, "people": " ada@example.org \n\nbo@example.org\n"}
    assert people_of(named) == People.from_names(["ada@example.org", "bo@example.org"])
    assert requirements_of(named).users == 2  # not the 300 of the field beside it


def test_a_budget_is_asked_for_where_people_have_a_name() -> None:
    requirements = requirements_of(GOOD)
    assert budget_of(GOOD, requirements) == (1.0, 1e-6)
    assert budget_of(
        {**GOOD, "population": "staff", "budget_epsilon": "3", "budget_delta": "1e-5"}, requirements
    ) == (
        3.0,
        1e-5,
    )
    with pytest.raises(ParameterError, match="budget_epsilon must be a number"):
        budget_of({**GOOD, "population": "staff"}, requirements)
    asked = {**GOOD, "questions": [{**ASKED, "text": " Why? "}]}
    assert requirements_of(asked).questionnaire.text == "Why?"


@pytest.mark.parametrize("name", ["..", "a/b", "", "a b", "x" * 61])
def test_a_name_that_leads_elsewhere_is_refused(name) -> None:
    with pytest.raises(ParameterError, match="made of letters"):
        check_name(name)

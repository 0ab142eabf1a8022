"""The form of a new survey: what is read from it, and the advice beside it."""

import pytest

from faircount.core.errors import ParameterError
from faircount.dashboard.form import advice, budget_of, facts_of, people_of, plain_name, wishes_of

GOOD = {"items": "a\nb", "users": "300", "epsilon": "1", "delta": "1e-6", "absent": "0.2", "hours": "72"}


def test_advice_is_the_planners() -> None:
    found = advice(GOOD)
    assert (found["worthwhile"], found["invited"], found["needed"], found["items"]) == (True, 300, 240, ["a", "b"])
    assert 0 < found["half_width_95"] < 0.05
    assert not advice({**GOOD, "users": "6", "epsilon": "0.1"}).get("worthwhile", False)


def test_advice_says_what_is_missing() -> None:
    assert advice({**GOOD, "items": "a"})["refused"] == "write at least two answers, one a line"
    assert advice({**GOOD, "users": "many"})["refused"] == "users must be a number"
    assert advice({**GOOD, "users": "2.5"})["refused"] == "users must be a whole number above 0"


def test_weak_promises_are_pointed_out() -> None:
    strong, weak = advice(GOOD), advice({**GOOD, "epsilon": "40", "delta": "0.01"})
    assert (strong["weak_epsilon"], strong["weak_delta"]) == (False, False)
    assert (weak["weak_epsilon"], weak["weak_delta"]) == (True, True)


def test_people_are_named_or_numbered() -> None:
    assert people_of({"users": "3"}) == ["person 1", "person 2", "person 3"]
    named = {**GOOD, "people": " ada@example.org \n\nbo@example.org\n"}
    assert people_of(named) == ["ada@example.org", "bo@example.org"]
    assert wishes_of(named).users == 2  # not the 300 of the field beside it


def test_a_budget_is_asked_for_where_people_have_a_name() -> None:
    wishes = wishes_of(GOOD)
    assert budget_of(GOOD, wishes) == (1.0, 1e-6)
    assert budget_of({**GOOD, "population": "staff", "budget_epsilon": "3", "budget_delta": "1e-5"}, wishes) == (
        3.0,
        1e-5,
    )
    with pytest.raises(ParameterError, match="budget_epsilon must be a number"):
        budget_of({**GOOD, "population": "staff"}, wishes)
    assert facts_of({**GOOD, "question": " Why? "}).question == "Why?"


@pytest.mark.parametrize("name", ["..", "a/b", "", "a b", "x" * 61])
def test_a_name_that_leads_elsewhere_is_refused(name) -> None:
    with pytest.raises(ParameterError, match="made of letters"):
        plain_name(name)

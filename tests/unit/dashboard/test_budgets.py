"""The budget of a population, one step for each survey."""

from faircount.dashboard.budgets import steps_of
from faircount.protocol.survey.budget import Charge, Ledger
from faircount.server.aggregator.app import plain_budget


def ledger() -> Ledger:
    opened = Ledger("staff", 5.0, 1e-5, adaptive=True)
    first, second, third = (Charge(bytes([number]) * 16, 1.5, 1e-6) for number in (1, 2, 3))
    after = opened.reserve(first).settle(first.survey, 1.25, 1e-6)
    return after.reserve(second).cancel(second.survey).reserve(third)


def test_each_survey_begins_where_the_one_before_ended() -> None:
    known = {"01" * 16: {"name": "first", "opened_at": "2026-01-01T00:00:00Z"}}
    found = steps_of(plain_budget(ledger()), known)
    assert [(survey["before"], survey["after"]) for survey in found["surveys"]] == [
        (0.0, 1.25),
        (1.25, 1.25),
        (1.25, 2.75),
    ]
    assert [entry["status"] for entry in found["surveys"]] == ["spent", "cancelled", "reserved"]
    assert [entry.get("name") for entry in found["surveys"]] == ["first", None, None]
    assert found["surveys"][-1]["after"] == found["spent"]["epsilon"]
    assert not found["together"]


def test_surveys_that_cost_less_together_are_said_to() -> None:
    """The aggregator composes surveys that the owner declared to be independent."""
    plain = plain_budget(ledger())
    assert steps_of({**plain, "spent": {"epsilon": 2.5, "delta": 1e-5}}, {})["together"]
    assert not steps_of({**plain, "surveys": [], "spent": {"epsilon": 0.0, "delta": 0.0}}, {})[
        "together"
    ]

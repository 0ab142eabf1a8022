"""`faircount budget`, and `faircount run` with a ledger."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]
CREATE = "budget people.ledger --population people --epsilon 1 --delta 1e-6"
RUN = (
    "run answers.csv --column city --domain @cities.txt --ledger people.ledger --population people"
)
pytestmark = pytest.mark.usefixtures("answers")


def test_a_budget_is_created_spent_and_shown(call: Call) -> None:
    assert "people: epsilon 0 of 1, delta 0 of 1e-06 spent (added up)" in call(CREATE).stdout
    done = call(f"{RUN} --epsilon 0.75")
    assert done.exit_code == 0
    assert (
        "Budget of people: epsilon 0.75 and delta below 1e-30" in done.stdout
    )  # no digits that nobody knows
    done = call(f"{RUN} --epsilon 0.5")
    assert done.exit_code == 2
    assert "does not cover this run: it costs epsilon 0.5" in done.stderr
    assert done.stdout == ""
    shown = call("budget people.ledger").stdout
    assert "epsilon 0.75 of 1, delta below 1e-30 of 1e-06" in shown
    assert "e-3" not in shown.replace("1e-30", "")
    assert "city: frequencies" in shown
    said = json.loads(call("budget people.ledger --json").stdout)["populations"][0]
    assert said["spent"]["epsilon"] == 0.75
    assert [run["status"] for run in said["runs"]] == ["spent"]


def test_a_result_that_cannot_be_drawn_as_a_figure_is_a_result(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed result is safe, so the ledger does not say that there is none."""
    from faircount.core.errors import FaircountError

    def fail(*_: object) -> None:
        raise FaircountError("no figure today")

    monkeypatch.setattr("faircount.estimation.drawing.save_frequencies", fail)
    call(CREATE)
    done = call(f"{RUN} --epsilon 0.5 --plot a.png")
    assert done.exit_code == 2
    assert "no figure today" in done.stderr
    assert (
        json.loads(call("budget people.ledger --json").stdout)["populations"][0]["runs"][0][
            "status"
        ]
        == "spent"
    )


def test_a_fixed_series_says_so(call: Call) -> None:
    assert (
        "composed exactly: the series was fixed in advance"
        in call(f"{CREATE} --fixed-series").stdout
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("budget people.ledger", "there is no ledger"),
        ("budget people.ledger --epsilon 1", "needs all three"),
        (
            "budget people.ledger --epsilon 1 --delta 0 --population a --epsilon -1",
            "epsilon must be above 0",
        ),
        ("budget people.ledger --population a --fixed-series", "decided when a budget is created"),
        ("budget answers.csv", "answers.csv: these bytes are not JSON"),
        (f"{RUN} --epsilon 1", "there is no ledger"),
        (
            "run answers.csv --column city --domain a,b --epsilon 1 --ledger people.ledger",
            "give both",
        ),
    ],
)
def test_wrong_use_is_one_sentence_and_code_2(call: Call, line: str, words: str) -> None:
    done = call(line)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1

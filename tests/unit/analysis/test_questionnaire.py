"""`fc.questionnaire`: from the columns of a table to estimates."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import faircount as fc
from faircount.analysis.sheets import count_cells
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.questions.form import make_form

YES = {"kind": "yes", "text": "Recommend?", "column": "recommend"}
SITE = {"kind": "one", "text": "Site?", "items": ["N", "S", "E"], "column": "site"}


def count(question: dict[str, Any], *columns: list[object]) -> list[int]:
    return [int(cell) for cell in count_cells(make_form([question]), columns)]


@pytest.mark.parametrize(
    ("question", "columns", "cells"),
    [
        (SITE, [["N", " S ", "E", "N"]], [2, 1, 1]),
        ({**SITE, "skip": True}, [["N", None, "", "prefer not to say"]], [1, 0, 0, 3]),
        (YES, [["yes", "no", "yes"]], [2]),
        (YES, [[True, False, True]], [2]),
        (YES, [[1, 0, 1.0]], [2]),
        (YES, [["TRUE", "No", "Yes"]], [2]),
        ({**YES, "skip": True}, [["yes", "no", None]], [1, 1, 1]),
        ({"kind": "scale", "text": "q", "items": ["1", "2", "3"]}, [[1, 3.0, "3"]], [1, 0, 2]),
        (
            {"kind": "scale", "text": "q", "items": ["1", "2", "3"], "open": "mean", "skip": True},
            [[1, 3, None]],
            [2, 2],
        ),
        ({"kind": "any", "text": "q", "items": ["a", "b"]}, [["a;b", "", "b"]], [1, 2]),
        ({"kind": "any", "text": "q", "items": ["a", "b"]}, [[["a", "b"], ["b"], []]], [1, 2]),
        ({"kind": "any", "text": "q", "items": ["a", "b"]}, [[frozenset("ab"), "b"]], [1, 2]),
        ({"kind": "any", "text": "q", "items": ["1", "2"]}, [[1.0, 2.0, float("nan")]], [1, 1]),
        ({"kind": "any", "text": "q", "items": ["a", "b"], "skip": True}, [["a", None]], [1, 0, 1]),
        (
            {"kind": "most", "text": "q", "items": ["a", "b", "c"], "most": 1, "column": [1, 2, 3]},
            [["yes", "0"], [None, "TRUE"], [False, ""]],
            [1, 1, 0],
        ),
        ({"kind": "number", "text": "q", "low": 10, "high": 20}, [[10, "12", 15.4]], [7]),
        ({"kind": "number", "text": "q", "low": 0, "high": 1, "step": 0.25}, [["0.5", 1]], [6]),
        ({"kind": "number", "text": "q", "bands": [0, 18, 65, 100]}, [[17, 18, "70.5"]], [1, 1, 1]),
        (
            {"kind": "table", "text": ["r", "c"], "rows": ["a", "b"], "columns": ["x", "y"]},
            [["a", "b", "b"], ["x", "y", "y"]],
            [1, 0, 0, 2],
        ),
    ],
)
def test_cells_are_counted(
    question: dict[str, Any], columns: list[list[object]], cells: list[int]
) -> None:
    assert count(question, *columns) == cells


@pytest.mark.parametrize(
    ("question", "columns", "message"),
    [
        (SITE, [["N", "W", "W"]], "question 1 .'Site.'.: 2 of 3 users have an answer that is not"),
        (SITE, [["N", None]], "1 of 2 users have no answer: offer"),
        (YES, [["maybe"]], "not offered"),
        ({"kind": "any", "text": "q", "items": ["a", "b"]}, [["a;c"]], "not offered"),
        ({"kind": "most", "text": "q", "items": ["a", "b"], "most": 1}, [["a;b"]], "not offered"),
        ({"kind": "number", "text": "q", "low": 0, "high": 9}, [[12]], "not offered"),
        ({"kind": "number", "text": "q", "low": 0, "high": 9}, [["many"]], "not offered"),
        # Computed exactly, this number would take all memory.
        ({"kind": "number", "text": "q", "low": 0, "high": 9}, [["1e999999999"]], "not offered"),
        ({"kind": "number", "text": "q", "low": 0, "high": 9}, [[10**6000]], "not offered"),
        (SITE, [[10**6000]], "not offered"),
        (SITE, [[{"N": 1}, "N"]], "1 of 2 users have an answer that is not offered"),
        ({"kind": "any", "text": "q", "items": ["a", "b"]}, [[[["a"]], []]], "1 of 2 .* offered"),
        (
            {"kind": "table", "text": ["r", "c"], "rows": ["a", "b"], "columns": ["x", "y"]},
            [["a"], [""]],
            "no answer",
        ),
    ],
)
def test_what_cannot_be_read_is_counted_and_not_repeated(
    question: dict[str, Any], columns: list[list[object]], message: str
) -> None:
    with pytest.raises(AnswerError, match=message) as refused:
        count(question, *columns)
    for cell in ("W", "maybe", "many"):
        assert f"'{cell}'" not in str(refused.value)


def make_table(rows: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(1)
    return {
        "recommend": rng.choice(["yes", "no"], rows, p=[0.7, 0.3]).tolist(),
        "site": rng.choice(["N", "S", "E"], rows, p=[0.5, 0.3, 0.2]).tolist(),
    }


def test_estimates_are_close_and_one_guarantee_holds() -> None:
    result = fc.questionnaire(make_table(2000), [SITE, YES], epsilon=1.0)
    assert result.guarantee.epsilon == 1.0
    assert 0 < result.guarantee.delta < 1e-30
    assert "each row is another person" in str(result.guarantee)
    assert abs(result["Recommend?"].estimates[1].estimate - 0.7) < 0.05
    assert not result.simulation
    assert result.included == 2000


def test_a_frame_and_a_file_give_what_a_mapping_gives(tmp_path: Path) -> None:
    table = make_table(300)
    form = tmp_path / "staff.toml"
    form.write_text(
        '[[question]]\nkind = "yes"\ntext = "Recommend?"\ncolumn = "recommend"\n', encoding="utf-8"
    )
    path = tmp_path / "staff.csv"
    pd.DataFrame(table).to_csv(path, index=False)
    results = [
        fc.questionnaire(source, questions, epsilon=1.0, entropy=SeededStream(4))
        for source, questions in ((table, [YES]), (pd.DataFrame(table), [YES]), (path, form))
    ]
    assert len({tuple(result.cells.tolist()) for result in results}) == 1
    assert results[0].simulation
    assert "does not hold" in str(results[0].guarantee)


def test_a_budget_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "staff.ledger"
    fc.LedgerFile(path).create("staff", epsilon=1.5, delta=1e-6)
    charged = {"ledger": path, "population": "staff"}
    fc.questionnaire(make_table(100), [SITE, YES], epsilon=1.0, **charged)
    assert fc.LedgerFile(path).ledger("staff").spent[0] == 1.0
    with pytest.raises(RefusedError, match="does not cover this run"):
        fc.questionnaire(make_table(100), [SITE, YES], epsilon=1.0, **charged)


def test_people_have_one_row_each() -> None:
    table = {**make_table(4), "id": [1, 2, 3, 3]}
    with pytest.raises(AnswerError, match="one row per person"):
        fc.questionnaire(table, [YES], epsilon=1.0, user="id")
    table["id"] = [1, 2, 3, 4]
    result = fc.questionnaire(table, [YES], epsilon=1.0, user="id", anyway=True)
    assert result.guarantee.condition is None
    repeated = pd.DataFrame(make_table(4), index=[0, 0, 1, 2])
    with pytest.raises(AnswerError, match="same index label"):
        fc.questionnaire(repeated, [YES], epsilon=1.0)


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        (YES, {"epsilon": 1.0}, "a list of questions"),
        ([YES], {"epsilon": 0.0}, "epsilon must be above 0"),
        ([YES], {"epsilon": 1.0, "entropy": np.random.default_rng()}, "source of random bytes"),
        ([YES], {"epsilon": 1.0, "seed": 1}, "entropy=fc.SeededStream"),
        (
            [{**YES, "column": "other"}],
            {"epsilon": 1.0},
            "no column 'other'; it has 'recommend', 'site'$",
        ),
        (
            [{"kind": "yes", "text": "Recommend?"}],
            {"epsilon": 1.0},
            "no column 'Recommend[?]'.*takes the column that is named like its text",
        ),
    ],
)
def test_calls_that_do_not_fit_are_explained(
    questions: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ParameterError, AnswerError), match=message):
        fc.questionnaire(make_table(10), questions, **options)


def test_named_groups_are_kept() -> None:
    questions = [{**YES, "group": "a"}, {**SITE, "group": "b"}, {**YES, "group": "a"}]
    result = fc.questionnaire(make_table(100), questions, epsilon=1.0)
    assert [group.questions for group in result.mechanism.groups] == [(0, 2), (1,)]
    assert sum(float(group.epsilon) for group in result.mechanism.groups) <= 1.0
    assert [question.group for question in result.questions] == [1, 2, 1]


def test_what_cannot_be_estimated_costs_no_budget(tmp_path: Path) -> None:
    path = tmp_path / "staff.ledger"
    fc.LedgerFile(path).create("staff", epsilon=3.0, delta=1e-6)
    items = [f"item {number}" for number in range(200)]
    questions = [
        {"kind": "number", "text": "n", "low": 0, "high": 10_000, "column": "a", "group": "g"},
        {"kind": "any", "text": "m", "items": items, "column": "b", "group": "g"},
    ]
    table = {"a": [0] * 3, "b": [""] * 3}
    with pytest.raises(ParameterError, match="would not fit into memory"):
        fc.questionnaire(table, questions, epsilon=0.2, ledger=path, population="staff")
    assert fc.LedgerFile(path).ledger("staff").spent == (0.0, 0.0)


def test_an_epsilon_out_of_range_is_explained() -> None:
    with pytest.raises(RefusedError, match=r"between 0\.001 and 50, not 51"):
        fc.questionnaire(make_table(10), [YES], epsilon=51.0)


BRANCHED = [
    {"kind": "one", "text": "Site?", "items": ["North", "South"], "skip": True},
    {
        "kind": "yes",
        "text": "Train?",
        "only_if": {"question": "Site?", "items": ["North"]},
    },
    {
        "kind": "number",
        "text": "Minutes?",
        "low": 0,
        "high": 60,
        "only_if": {"question": 2, "items": ["yes"]},
    },
    {
        "kind": "any",
        "text": "What?",
        "items": ["tea", "water"],
        "column": ["tea", "water"],
        "only_if": {"question": 1, "items": ["South"]},
    },
]
TRAVEL = {
    "Site?": ["North", "North", "South", None, "South"],
    "Train?": ["yes", "no", None, "does not apply", ""],
    "Minutes?": [20, None, None, None, None],
    "tea": [None, "no", "yes", 0, "no"],
    "water": [None, None, "yes", False, "no"],
}


def test_people_who_are_not_asked_have_the_answer_does_not_apply() -> None:
    form = make_form(BRANCHED)
    columns = [TRAVEL[name] for name in ("Site?", "Train?", "Minutes?", "tea", "water")]
    # Sites and prefer not to say; no, yes, does not apply; minutes and one who answered; what.
    cells = [2, 2, 1, 1, 1, 3, 20, 1, 1, 1, 3]
    assert count_cells(form, columns).tolist() == cells
    result = fc.questionnaire(TRAVEL, BRANCHED, epsilon=40.0)
    assert [row.answer for row in result["Train?"].estimates][:3] == ["no", "yes", "does not apply"]


@pytest.mark.parametrize(
    ("column", "place", "cell", "message"),
    [
        ("Train?", 2, "yes", "1 of 5 users have an answer although they are not asked"),
        ("Minutes?", 1, 20, "1 of 5 users have an answer although they are not asked"),
        ("tea", 0, "yes", "1 of 5 users have an answer although they are not asked"),
        ("Train?", 0, None, "1 of 2 users have no answer"),
        ("Minutes?", 0, "does not apply", "1 of 1 users have an answer that is not offered"),
    ],
)
def test_answers_that_contradict_a_branch_are_refused(
    column: str, place: int, cell: Any, message: str
) -> None:
    table = {name: list(cells) for name, cells in TRAVEL.items()}
    table[column][place] = cell
    with pytest.raises(AnswerError, match=message):
        fc.questionnaire(table, BRANCHED, epsilon=1.0)

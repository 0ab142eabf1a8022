"""Estimates from the two tables of a survey with levels: the page shows the owner's numbers."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faircount.accounting.levels import Levels
from faircount.core.entropy import SeededStream
from faircount.core.questions import OneOf, Question, Questionnaire, YesNo
from faircount.estimation.leveled import LeveledTables
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels
from faircount.protocol import SERVERS
from faircount.protocol.simulator import set_up

HERE = Path(__file__).parent
PEOPLE = 280
DRINKS = OneOf(text="Drink?", items=("tea", "coffee", "water"))
SKIPPED = OneOf(text="Drink?", items=("tea", "coffee", "water"), skip=True)
AGAIN = YesNo(text="Again?")
SURVEYS: list[tuple[dict[str, float], tuple[Question, ...]]] = [
    ({"very strong": 0.25, "strong": 0.5, "normal": 1.0}, (DRINKS,)),
    # From five times the strongest epsilon on, both tables make the interval.
    ({"strong": 0.1, "weak": 1.0}, (SKIPPED, AGAIN)),
    ({"strong": 0.2, "weak": 3.0}, (AGAIN,)),
    # Without noise.
    ({"strong": 40.0, "weak": 80.0}, (DRINKS,)),
]


def released(mechanism: ServerLevels, inside: int, rng: np.random.Generator) -> Any:
    """Noisy cells of people of whom so many are counted again."""
    cells = np.zeros(mechanism.N, dtype=np.int64)
    wheres = zip(mechanism.questionnaire.cell_slices, mechanism.second_slices, strict=True)
    for first, second in wheres:
        answers = second.stop - second.start
        people = rng.multinomial(PEOPLE, rng.dirichlet(np.ones(answers)))
        cells[first] = people[1:] if answers == 2 else people
        cells[second] = rng.multivariate_hypergeometric(people, inside)
    return mechanism.draw(cells, rng)


def estimated_by_javascript(surveys: list[dict[str, Any]]) -> Any:
    done = subprocess.run(
        ["node", str(HERE / "estimate.mjs")],
        input=json.dumps({"surveys": surveys}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_page_shows_the_numbers_of_the_owner() -> None:
    asked = []
    wanted = []
    rng = np.random.default_rng(26)
    for levels, questions in SURVEYS:
        mechanism = ServerLevels(
            questionnaire=Questionnaire(questions),
            groups=split_epsilon(min(levels.values()), [range(len(questions))]),
            levels=Levels.of(levels),
            epsilon=max(levels.values()),
            users=300,
        )
        published = set_up(mechanism, SERVERS, SeededStream(1)).params.published.decode()
        for inside in (250, 20, 0):
            drawn = released(mechanism, inside, rng)
            counts = {"included": PEOPLE, "counts": drawn.tolist()}
            asked.append({"published": published, **counts})
            wanted.append(LeveledTables(mechanism, drawn, PEOPLE))
    for found, tables in zip(estimated_by_javascript(asked), wanted, strict=True):
        check_count(found["alike"], tables)
        for number, rows in enumerate(found["alike"]["rows"]):
            for row, one in zip(rows, tables.alike(number, 0.05), strict=True):
                numbers = [row["estimate"], row["low"], row["high"]]
                assert numbers == pytest.approx([one.estimate, one.low, one.high], abs=1e-9)
        if tables.narrows("users"):
            check_bounds(found["rows"], tables)
    assert [tables.narrows("users") for tables in wanted[::3]] == [False, True, True, False]


def check_count(found: dict[str, float], tables: LeveledTables) -> None:
    again = tables.counted_again()
    assert found["twice"] == pytest.approx(again.estimate, abs=1e-9)
    # Elsewhere the bounds of the owner are cut at nobody or everybody.
    if again.low > 0 and again.high < PEOPLE:
        assert 2 * found["error"] == pytest.approx(again.high - again.low, abs=1e-9)


def check_bounds(found: list[list[dict[str, Any]]], tables: LeveledTables) -> None:
    for number, rows in enumerate(found):
        low, high = tables.bound(number, 0.05)
        shares = [row for row in rows if not row["ofAnswered"]]
        assert [row["low"] for row in shares] == pytest.approx(low)
        assert [row["high"] for row in shares] == pytest.approx(high)

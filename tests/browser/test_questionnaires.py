"""Questions, their noise and their estimates in the browser's client: the same as in Python.

A participant's page encodes a sheet, checks the tables of the noise, and shows estimates. Random
questionnaires are made here and judged by both programs.
"""

import json
import random
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faircount.core.errors import FaircountError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    Question,
    QuestionGroup,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.published import from_plain, to_plain
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.core.questions.translations import Translation, texts_of
from faircount.estimation.sheet_estimates import Estimate, estimate_question
from faircount.mechanisms.joint_noise.mechanism import JointNoise
from faircount.protocol.wire.digests import tagged_hash

HERE = Path(__file__).parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def in_javascript(cases: list[dict[str, Any]]) -> list[Any]:
    """What the browser's client makes of these cases; anything but a `Refusal` fails in Node."""
    done = subprocess.run(
        ["node", str(HERE / "questionnaires.mjs")],
        input=json.dumps({"cases": cases}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Any] = json.loads(done.stdout)
    return found


def random_question(rng: random.Random, earlier: list[Question]) -> Question:
    """A question of any kind, which may depend on an earlier one."""
    items = tuple(rng.sample(LETTERS, rng.randint(2, 6)))
    step = Fraction(rng.choice((1, 2, 5, 25)), rng.choice((1, 10, 100)))
    low = Fraction(rng.randint(-30, 30), rng.choice((1, 2, 5)))
    edges = sorted(rng.sample(range(-50, 50), rng.randint(3, 7)))
    choices = [number for number, question in enumerate(earlier) if may_lead(question)]
    branch = None
    if choices and rng.random() < 0.4:
        number = rng.choice(choices)
        chosen = earlier[number]
        assert isinstance(chosen, ChoiceQuestion)
        size = rng.randint(1, len(chosen.choices) - 1)
        branch = Branch(number, tuple(sorted(rng.sample(range(len(chosen.choices)), size))))
    common: dict[str, Any] = {"text": "Why?", "skip": rng.random() < 0.4, "only_if": branch}
    made: list[Any] = [
        lambda: OneOf(items=items, **common),
        lambda: YesNo(items=items[:2], **common),
        lambda: AnyOf(items=items, **common),
        lambda: MostOf(items=(*items, "more"), most=rng.randint(1, len(items)), **common),
        lambda: ScaleCounts(items=items, **common),
        lambda: ScaleMean(items=items, **common),
        lambda: Number(low=low, high=low + rng.randint(1, 40) * step, step=step, **common),
        lambda: Bands(edges=tuple(Fraction(edge, 4) for edge in edges), **common),
        lambda: Table(text="One?", columns_text="Two?", rows=items[:3], columns=items[:2]),
    ]
    question: Question = rng.choice(made)()
    return question


def may_lead(question: Question) -> bool:
    return isinstance(question, ChoiceQuestion) and not isinstance(question, Table)


def random_questionnaire(rng: random.Random, most: int = 6) -> Questionnaire:
    questions: list[Question] = []
    for _ in range(rng.randint(1, most)):
        questions.append(random_question(rng, questions))
    translations = ()
    if rng.random() < 0.3:
        own = tuple(texts_of(question) for question in questions)
        translations = (Translation("de", "Warum", own), Translation("pt-br", "", own))
    return Questionnaire(tuple(questions), rng.choice(("", "Title")), "en", translations)


def random_answer(rng: random.Random, question: Question) -> Any:
    """A canonical answer, or now and then one that is none."""
    if rng.random() < 0.05:
        return rng.choice((None, -1, 1000, True, "0", [0, 0], [9], {}, 1.5))
    if question.may_be_missing and rng.random() < 0.2:
        return None
    if isinstance(question, ChoiceQuestion):
        return rng.randrange(len(question.answers))
    if isinstance(question, SumQuestion):
        return rng.randint(0, question.largest)
    assert isinstance(question, SeveralItems)
    size = rng.randint(0, question.limit)
    return rng.sample(range(len(question.items)), size)


def expected(questionnaire: Questionnaire, sheet: list[Any]) -> Any:
    try:
        bits = questionnaire.encode(sheet)
    except FaircountError:
        return None
    numbers = range(len(questionnaire))
    canonical = questionnaire.check_sheet(sheet)
    return {
        "bits": list(bits),
        "cells": list(questionnaire.cells_from_bits(bits)),
        "asked": [questionnaire.is_asked(number, canonical) for number in numbers],
    }


def plain_weights(weights: Any) -> list[list[int]]:
    return [list(pair) for pair in weights]


def plain_block(block: Any) -> dict[str, Any]:
    plain = {"kind": str(block.kind), "cells": block.cells}
    return {**plain, "bound": block.bound} if block.kind in ("most", "number") else plain


def test_random_sheets_are_encoded_alike() -> None:
    rng = random.Random(24)  # noqa: S311 - which questions are tried is no secret
    asked = []
    wanted = []
    for _ in range(400):
        questionnaire = random_questionnaire(rng)
        sheets = [
            [random_answer(rng, question) for question in questionnaire.questions] for _ in range(8)
        ]
        asked.append({"plain": to_plain(questionnaire), "sheets": sheets})
        constraints = [
            {"weights": plain_weights(constraint.weights), "value": constraint.value}
            for constraint in questionnaire.constraints
        ]
        least = [constraint.least_modulus for constraint in questionnaire.constraints]
        wanted.append(
            {
                "bits": questionnaire.bits,
                "cells": questionnaire.cells,
                "constraints": constraints,
                "openings": [plain_weights(weights) for weights in questionnaire.cell_weights],
                "leastModulus": max(2, *least, 2),
                "blocks": [
                    [plain_block(block) for block in question.blocks]
                    for question in questionnaire.questions
                ],
                "sheets": [expected(questionnaire, sheet) for sheet in sheets],
            }
        )
    found = in_javascript(asked)
    assert found == wanted
    refused = sum(sheet is None for case in wanted for sheet in case["sheets"])
    assert 100 < refused < 1600  # both verdicts were met often


REPLACEMENTS = [
    None, True, False, 0, 1, 2, -1, 1.5, 10**6, "", " ", "\x1c", "\ufeff", "a", "x" * 1000,
    "x" * 1001, "\U0001f980" * 1000, "e\u0301", "\u00e9", " a ", "prefer not to say",
    "does not apply", "0", "-0", "1.0", "0.1", "-2.5", "1e3", "00", "9" * 301, "0." + "1" * 301,
    "en", "de", "pt-br", "EN", "one", "yes", "any", "most", "scale", "number", "table", "mean",
    "counts", [], ["a"], ["a", "b"], ["a", "a"], ["a", " a"], [0], [0, 1], [1, 0], ["0", "1", "2"],
    {}, {"question": 0, "items": [0]}, {"question": 0, "items": []}, {"question": 5, "items": [0]},
    ["e\u0301", "\u00e9"], ["a", "prefer not to say"],
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    found = []
    for key in range(len(value)) if isinstance(value, list) else list(value):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            found += places(value[key])
    return found


def mutate(rng: random.Random, plain: Any) -> Any:
    changed = json.loads(json.dumps(plain))
    container, key = rng.choice(places(changed))
    if rng.random() < 0.1 and isinstance(container, list):
        container.append(container[key])
    elif rng.random() < 0.1 and container is not changed:
        del container[key]
    else:
        container[key] = rng.choice(REPLACEMENTS)
    return changed


def is_accepted_by_python(plain: Any) -> bool:
    try:
        from_plain(plain).check_size()
    except FaircountError:
        return False
    return True


def test_mutated_questions_are_judged_alike() -> None:
    rng = random.Random(25)  # noqa: S311 - which mutations are tried is no secret
    originals = [to_plain(random_questionnaire(rng)) for _ in range(300)]
    mutated = [mutate(rng, rng.choice(originals)) for _ in range(6000)]
    said = in_javascript([{"plain": plain} for plain in mutated])
    differences = [
        plain
        for plain, found in zip(mutated, said, strict=True)
        if is_accepted_by_python(plain) != (found is not None)
    ]
    assert differences == []
    accepted = sum(found is not None for found in said)
    assert 500 < accepted < 5500  # both verdicts were met often


def noisy(questionnaire: Questionnaire, groups: tuple[QuestionGroup, ...]) -> JointNoise:
    epsilon = float(sum(group.epsilon for group in groups)) * (1 + 1e-12)
    return JointNoise(questionnaire=questionnaire, groups=groups, epsilon=epsilon, draws=2)


def random_groups(rng: random.Random, size: int) -> tuple[QuestionGroup, ...]:
    numbers = rng.sample(range(size), size)
    cut = rng.randint(0, size)
    parts = [part for part in (numbers[:cut], numbers[cut:]) if part]
    return tuple(QuestionGroup.of(rng.choice((0.4, 1.0, 3.3)), part) for part in parts)


def digest_of(mechanism: JointNoise) -> str:
    lines = []
    for number, noise in enumerate(mechanism.noises):
        lines.append(f"group {number}\n")
        rows = enumerate(noise.table.cumulative)
        lines += [f"{radius} {cumulative}\n" for radius, cumulative in rows]
    return tagged_hash(b"table", "".join(lines).encode()).hex()


def span_of(mechanism: JointNoise, users: int) -> int:
    """The widest range of a cell with the noise of both servers."""
    spans = []
    for noise in mechanism.noises:
        blocks = mechanism.questionnaire.blocks_of(noise.group)
        for block, ball in zip(blocks, noise.balls, strict=True):
            most = block.bound if block.kind == "number" else 1
            reach = noise.table.largest * getattr(ball, "step", 1)
            spans.append(users * most + 2 * 2 * reach)
    return max(spans)


def label_of(question: Question, row: dict[str, Any]) -> str:
    """What Python calls the answer of a row."""
    answer = row["answer"]
    if answer is None or answer == "answered":
        return answer or ""
    if answer == "missing":
        return question.missing_label
    if isinstance(question, Table) and isinstance(answer, dict):
        if "row" in answer:
            return f"{question.rows[answer['row']]} / all"
        return f"all / {question.columns[answer['column']]}"
    labels = question.answers if isinstance(question, ChoiceQuestion) else question.items
    return labels[answer]


def wanted_row(row: Estimate) -> tuple[Any, ...]:
    return row.answer, row.measure, row.estimate, row.low, row.high


def found_row(question: Question, row: dict[str, Any]) -> tuple[Any, ...]:
    measure = row["measure"] + (" of those who answered" if row["ofAnswered"] else "")
    return label_of(question, row), measure, row["estimate"], row["low"], row["high"]


def test_noise_and_estimates_are_those_of_the_library() -> None:
    """Tables to the last bit; estimates and intervals as doubles."""
    rng = random.Random(26)  # noqa: S311 - which questions are tried is no secret
    asked = []
    made = []
    for _ in range(40):
        questionnaire = random_questionnaire(rng, 4)
        mechanism = noisy(questionnaire, random_groups(rng, len(questionnaire)))
        included = rng.randint(30, 200)
        counts = random_counts(rng, questionnaire, included)
        groups = [
            {"epsilon": str(group.scaled_epsilon), "questions": list(group.questions)}
            for group in mechanism.groups
        ]
        case = {"plain": to_plain(questionnaire), "groups": groups, "users": 300}
        asked.append({**case, "included": included, "counts": counts})
        made.append((mechanism, counts, included))
    for (mechanism, counts, included), said in zip(made, in_javascript(asked), strict=True):
        assert said["digest"] == digest_of(mechanism)
        spent = sum(group.scaled_epsilon for group in mechanism.groups)
        assert said["spent"] == str(spent)
        assert said["delta"] == pytest.approx(mechanism.table_delta, rel=1e-12)
        assert said["span"] == span_of(mechanism, 300)
        check_estimates(mechanism, counts, included, said["estimates"])


def random_counts(rng: random.Random, questionnaire: Questionnaire, included: int) -> list[int]:
    """The cells of random sheets with some noise; those of a one-of question keep their sum."""
    cells = np.zeros(questionnaire.cells, dtype=np.int64)
    for _ in range(included):
        sheet = []
        for question in questionnaire.questions:
            answer = random_answer(rng, question)
            while not is_answer(question, answer):
                answer = random_answer(rng, question)
            sheet.append(answer)
        cells += np.array(questionnaire.cells_from_bits(questionnaire.encode(sheet)))
    for where in questionnaire.cell_slices:
        size = where.stop - where.start
        cells[where] += np.array([rng.randint(-9, 9)] + [0] * (size - 1))
        cells[where.stop - 1] -= rng.randint(0, 30) * (size == 1)
    return [int(cell) for cell in cells]


def is_answer(question: Question, answer: Any) -> bool:
    try:
        question.check_answer(answer)
    except FaircountError:
        return False
    return True


def check_estimates(mechanism: JointNoise, counts: list[int], included: int, said: Any) -> None:
    questionnaire = mechanism.questionnaire
    for number, question in enumerate(questionnaire.questions):
        cells = np.array(counts)[questionnaire.cell_slices[number]]
        rows = estimate_question(question, number, cells, mechanism, included, 0.05)
        wanted = [wanted_row(row) for row in rows]
        found = [found_row(question, row) for row in said[number]]
        assert [row[:2] for row in found] == [row[:2] for row in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert one[2:] == pytest.approx(other[2:], rel=1e-9, abs=1e-9), (question, one[:2])


def test_tables_of_large_sheets_are_computed_alike() -> None:
    """400 dimensions need powers of 1,712 bits; a lone number is divided into parts."""
    letters = tuple(f"answer {number}" for number in range(300))
    forms = [
        (tuple(OneOf(text="?", items=letters[:5]) for _ in range(100)), 1.0),
        ((OneOf(text="?", items=letters),), 0.5),
        ((MostOf(text="?", items=letters[:40], most=10),), 1.0),
        ((Number(text="?", low=Fraction(0), high=Fraction(10_000)),), 0.3),
        ((Number(text="?", low=Fraction(0), high=Fraction(7)),), 9.0),
    ]
    asked = []
    made = []
    for questions, epsilon in forms:
        group = QuestionGroup.of(epsilon, range(len(questions)))
        mechanism = noisy(Questionnaire(questions), (group,))
        made.append(mechanism)
        groups = [{"epsilon": str(group.scaled_epsilon), "questions": list(group.questions)}]
        plain = to_plain(mechanism.questionnaire)
        asked.append({"plain": plain, "groups": groups, "users": 1000})
    for mechanism, said in zip(made, in_javascript(asked), strict=True):
        assert said["digest"] == digest_of(mechanism)
        assert said["delta"] == pytest.approx(mechanism.table_delta, rel=1e-12)
        assert said["span"] == span_of(mechanism, 1000)


def test_intervals_of_much_noise_are_those_of_the_library() -> None:
    """Radii in the hundreds, where the page integrates over a circle and Python adds up."""
    questions = (
        Table(text="?", columns_text="?", rows=("a", "b", "c"), columns=("d", "e", "f")),
        ScaleCounts(text="?", items=("a", "b", "c", "d", "e"), skip=True),
        MostOf(text="?", items=("a", "b", "c", "d"), most=2),
    )
    mechanism = noisy(Questionnaire(questions), (QuestionGroup.of(0.2, range(3)),))
    counts = [*range(40, 200, 20), 1000 - sum(range(40, 200, 20)), 400, 300, 100, 100, 60, 40]
    counts += [500, -20, 300, 7]
    (group,) = mechanism.groups
    groups = [{"epsilon": str(group.scaled_epsilon), "questions": list(group.questions)}]
    case = {"plain": to_plain(mechanism.questionnaire), "groups": groups, "users": 1000}
    (said,) = in_javascript([{**case, "included": 1000, "counts": counts}])
    check_estimates(mechanism, counts, 1000, said["estimates"])

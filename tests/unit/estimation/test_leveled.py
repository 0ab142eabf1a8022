"""Estimates from two tables: known answers, coverage without assumptions, and what is stated."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from faircount.accounting.levels import Levels
from faircount.core.questions import OneOf, Questionnaire, YesNo
from faircount.estimation.level_texts import level_words
from faircount.estimation.leveled import LeveledTables, uses_both_tables
from faircount.estimation.sheet_estimates import ALIKE_CONDITION
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.validity import Validity
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels

PEOPLE = 1000


def make_mechanism(epsilons, *sizes: int) -> ServerLevels:
    levels = Levels.of({f"level {number}": value for number, value in enumerate(epsilons)})
    questions = []
    for number, size in enumerate(sizes):
        items = tuple(f"{number}.{item}" for item in range(size))
        yes = YesNo(text="Yes?", items=items) if size == 2 else None
        questions.append(yes or OneOf(text=f"Which {number}?", items=items))
    return ServerLevels(
        questionnaire=Questionnaire(tuple(questions)),
        groups=split_epsilon(levels.base, [[number] for number in range(len(sizes))]),
        epsilon=levels.most,
        levels=levels,
        users=PEOPLE,
    )


def draw_tables(mechanism, answers, inside, rng) -> LeveledTables:
    """The published tables of people with these answers (a row each), some of them inside."""
    cells = []
    for table in (answers, answers[inside]):
        for number, question in enumerate(mechanism.choices):
            counts = np.bincount(table[:, number], minlength=len(question.answers))
            is_single = table is answers and len(counts) == 2
            cells += counts[1:].tolist() if is_single else counts.tolist()
    published = mechanism.draw(np.array(cells), rng)
    return LeveledTables(mechanism, published, len(answers))


def test_known_variances_quantiles_and_weight() -> None:
    mechanism = make_mechanism((0.25, 0.5, 1.0), 10)
    assert mechanism.distribution(0).variance == pytest.approx(198.6387, abs=1e-4)
    assert mechanism.second_distribution(0).variance == pytest.approx(28.1134, abs=1e-4)
    quantiles = (
        mechanism.distribution(0).quantiles(0.02)[1],
        mechanism.second_distribution(0).quantiles(0.005)[1],
        mechanism.second_distribution(0, 9).quantiles(0.005)[1],
        mechanism.distribution(0).quantiles(0.025)[1],
    )
    assert quantiles == (31, 16, 42, 29)
    # Equal shares, 700 of 1,000 inside, no noise in the draw.
    cells = np.array([100] * 10 + [70] * 10)
    tables = LeveledTables(mechanism, cells, PEOPLE)
    a = 198.6387 / PEOPLE**2
    noise = 28.1134 * (1 - 0.2 + 0.01 * 10)
    b = noise / 700**2 + 0.09 * (1 / 700 - 1 / PEOPLE)
    assert tables.weights(0) == pytest.approx(np.full(10, a / (a + b)), rel=1e-5)
    row = tables.alike(0, 0.05)[0]
    assert row.estimate == pytest.approx(0.1)
    assert row.standard_error == pytest.approx(math.sqrt(a * b / (a + b)), rel=1e-5)
    assert tables.votes_per_liar == pytest.approx(1 + a / (a + b) * (1000 / 700 - 1), rel=1e-5)
    assert tables.counted_again().estimate == 700


def test_the_number_counted_twice_is_pooled_over_questions() -> None:
    mechanism = make_mechanism((0.2, 2.0), 3, 2, 5)
    rng = np.random.default_rng(3)
    answers = np.column_stack([rng.integers(size, size=PEOPLE) for size in (3, 2, 5)])
    covered = []
    errors = []
    for _ in range(400):
        inside = rng.random(PEOPLE) < 0.6
        again = draw_tables(mechanism, answers, inside, rng).counted_again()
        covered.append(again.low <= inside.sum() <= again.high)
        errors.append(again.estimate - inside.sum())
    # Four standard errors of 400 draws.
    assert np.mean(covered) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 400)
    assert np.var(errors) == pytest.approx(again.variance, rel=0.3)


# Levels, and with which chance holders of the first answer and others choose each of them.
CHOICES = [
    ((0.1, 0.4, 1.0), (0.55, 0.25, 0.2), (0.25, 0.25, 0.5)),
    ((0.1, 0.4, 1.0), (0.85, 0.05, 0.1), (0.25, 0.25, 0.5)),
    ((0.25, 0.5, 1.0), (0.5, 0.3, 0.2), (0.1, 0.3, 0.6)),
    ((0.5, 2.0, 4.0), (0.3, 0.3, 0.4), (0.1, 0.2, 0.7)),
    ((0.1, 1.0), (0.1, 0.9), (0.03, 0.97)),
    ((0.1, 1.0), (0.0, 1.0), (0.0, 1.0)),
]


@pytest.mark.parametrize(("epsilons", "holders", "others"), CHOICES)
def test_intervals_cover_whatever_people_choose(epsilons, holders, others) -> None:
    """The first answer is held by 10%; its holders choose stronger protection than others."""
    mechanism = make_mechanism(epsilons, 10)
    coins = np.array([mechanism.levels.probability(k) for k in range(len(epsilons))])
    rng = np.random.default_rng(7)
    held = np.repeat(np.arange(10), PEOPLE // 10)
    truth = 0.1
    runs = 200
    chance = np.where(held == 0, coins @ np.array(holders), coins @ np.array(others))
    covered = []
    widths = []
    for _ in range(runs):
        inside = rng.random(PEOPLE) < chance
        tables = draw_tables(mechanism, held[:, None], inside, rng)
        result = QuestionnaireResult(mechanism.questionnaire, mechanism, tables.cells, PEOPLE)
        row = result.questions[0].estimates[0]
        covered.append(row.low - 1e-12 <= truth <= row.high + 1e-12)
        widths.append(row.high - row.low)
        assert row.estimate == pytest.approx(tables.base(0)[0] / PEOPLE)
    # Four standard errors of 200 draws: about one false alarm in 10^4.
    assert np.mean(covered) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)
    if holders[-1] >= 0.9:
        # Nearly everybody is inside: both tables together say more than the first one.
        assert np.mean(widths) < 2 * mechanism.distribution(0).quantiles(0.025)[1] / PEOPLE * 0.7


@pytest.mark.parametrize(
    ("epsilons", "shares"), [((0.25, 1.0), (0.5, 0.2, 0.2, 0.1)), ((0.1, 1.0), (0.25,) * 4)]
)
def test_weighted_intervals_cover_if_people_are_alike(epsilons, shares) -> None:
    mechanism = make_mechanism(epsilons, 4)
    rng = np.random.default_rng(11)
    counts = (np.array(shares) * PEOPLE).astype(int)
    held = np.repeat(np.arange(4), counts)
    covered = []
    gains = []
    for _ in range(300):
        inside = rng.random(PEOPLE) < 0.7
        tables = draw_tables(mechanism, held[:, None], inside, rng)
        rows = tables.alike(0, 0.05)
        covered += [row.low <= share <= row.high for row, share in zip(rows, shares, strict=True)]
        gains.append(rows[0].estimate - shares[0])
    assert 0.92 < np.mean(covered) < 0.98
    assert np.std(gains) < math.sqrt(mechanism.distribution(0).variance) / PEOPLE


def test_people_who_differ_are_noticed_and_change_nothing_else() -> None:
    mechanism = make_mechanism((0.5, 4.0), 4)
    rng = np.random.default_rng(6)
    held = np.repeat(np.arange(4), PEOPLE // 4)
    alike = draw_tables(mechanism, held[:, None], rng.random(PEOPLE) < 0.5, rng)
    differ = draw_tables(mechanism, held[:, None], (held > 1) & (rng.random(PEOPLE) < 0.9), rng)
    assert not alike.test.rejected
    assert differ.test.rejected
    assert differ.test.p_value == LeveledTables(mechanism, differ.cells, PEOPLE).test.p_value
    # The weights come from the first table and the number of people alone.
    shuffled = differ.cells.copy()
    shuffled[4:] = shuffled[4:][::-1]
    assert LeveledTables(mechanism, shuffled, PEOPLE).weights(0) == pytest.approx(differ.weights(0))


def test_contradicting_tables_show_the_interval_of_the_first() -> None:
    mechanism = make_mechanism((0.1, 1.0), 3)
    cells = np.array([0, 500, 500, 800, 0, 0])
    low, high = LeveledTables(mechanism, cells, PEOPLE).bound(0, 0.05)
    alone = mechanism.distribution(0).quantiles(0.025)[1] / PEOPLE
    assert (low[0], high[0]) == (0, pytest.approx(alone))
    assert (low <= high).all()


def test_both_tables_are_used_from_a_ratio_of_five_on() -> None:
    for epsilons, expected in (((0.1, 0.5), True), ((0.1, 0.4), False), ((0.5, 2.5), True)):
        assert uses_both_tables(Levels.of(dict(zip("ab", epsilons, strict=True)))) is expected
    mechanism = make_mechanism((0.5, 2.5), 3)
    tables = LeveledTables(mechanism, np.array([400, 300, 300, 100, 100, 100]), PEOPLE)
    assert tables.narrows("users")
    assert not tables.narrows("population")


def test_nobody_inside_leaves_the_base() -> None:
    mechanism = make_mechanism((0.25, 1.0), 3)
    tables = LeveledTables(mechanism, np.array([400, 300, 300, -2, 1, -3]), PEOPLE)
    again = tables.counted_again()
    assert (again.estimate, again.low) == (0, 0)
    assert tables.weights(0).max() < 1e-3
    assert [row.estimate for row in tables.alike(0, 0.05)] == pytest.approx(
        [0.4, 0.3, 0.3], abs=3e-3
    )


@pytest.fixture(scope="module")
def result() -> QuestionnaireResult:
    mechanism = make_mechanism((0.25, 0.5, 1.0), 3, 2)
    cells = np.array([420, 300, 280, 610, 290, 215, 190, 270, 430])
    facts = {"validity": Validity(True, PEOPLE, 0, questionnaire=mechanism.questionnaire)}
    return QuestionnaireResult(mechanism.questionnaire, mechanism, cells, PEOPLE, facts)


def test_a_result_states_the_base_first_and_the_condition_of_the_rest(result) -> None:
    text = str(result)
    assert "0.0     42.0%" in text
    assert text.index(f"{ALIKE_CONDITION}:") > text.index("42.0%")
    assert "counted twice: about 69" in text
    assert "level level 0: epsilon 0.25 for the answer, epsilon 0.625 for answer and level" in text
    assert ALIKE_CONDITION in result._repr_html_()
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["questions"][0]["estimates"][0]["estimate"] == 0.42
    assert ALIKE_CONDITION in plain["questions"][0]["if_alike"][0]["measure"]
    # Every answer has its own weight, so the estimates need not sum to 1; the consistent ones do.
    for question in plain["questions"]:
        assert sum(row["consistent"] for row in question["if_alike"]) == pytest.approx(1)
    assert plain["guarantee"]["epsilon"] == 1.0
    assert [level["answer"]["epsilon"] for level in plain["levels"]["offered"]] == [0.25, 0.5, 1.0]
    assert plain["questions"][1]["epsilon"] == pytest.approx(0.5)


def test_a_liar_has_more_votes_where_people_are_counted_twice(result) -> None:
    votes = result.tables.votes_per_liar
    assert votes > 1.1
    validity = replace(result.validity, alike_votes=votes)
    assert validity.to_dict()["votes_per_liar_if_alike"] == votes
    assert validity.to_dict()["frequency_per_liar"] == 1 / PEOPLE
    assert f"each counts like at most {math.ceil(10 * votes) / 10:.1f} votes" in str(validity)


@pytest.mark.parametrize("language", ["en", "de"])
def test_words_about_levels(result, language) -> None:
    lines = level_words(language).lines(result, 0.95)
    assert len(lines) == 5
    decimal = "," if language == "de" else "."
    assert f"56{decimal}3 %" in lines[2]
    assert f"65{decimal}2 %" in lines[2]
    assert level_words("de").name("very strong") == "sehr stark"
    assert level_words("xx") is level_words("en")

"""Estimates of questionnaires: what they are, and how often their intervals cover, by enumeration."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Number,
    OneOf,
    Question,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.estimation.mean_intervals import bound_drawn_mean
from faircount.estimation.result import Result
from faircount.estimation.sheet_estimates import Estimate, estimate_question
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.joint_noise.mechanism import GroupNoise, JointNoise, split_epsilon
from faircount.mechanisms.joint_noise.radius import radius_table
from faircount.mechanisms.laplace import Laplace

ONE = 1 << 128


def make_noise(*questions: Question, epsilon: float = 2.0, users: int = 20) -> JointNoise:
    form = Questionnaire(questions)
    groups = split_epsilon(epsilon, [range(len(form))])
    return JointNoise(questionnaire=form, groups=groups, epsilon=epsilon, users=users)


def coverage(
    question: Question,
    counts: tuple[int, ...],
    truth: Callable[[Estimate], float],
    *,
    reach: int,
    error: float = 0.1,
    users: int = 20,
) -> dict[str, float]:
    """How often each interval covers the truth, over all noise up to a radius, and the rest as a miss."""
    mechanism = make_noise(question, users=users)
    (noise,) = mechanism.noises
    table = radius_table(noise.balls, noise.scaled)
    sizes = [
        math.prod(row) for row in zip(*(b.sizes(table.largest) for b in noise.balls), strict=True)
    ]
    heights = [0.0] * (table.largest + 2)
    for radius in range(table.largest, -1, -1):
        heights[radius] = heights[radius + 1] + table.weights[radius] / ONE / sizes[radius]
    covered: dict[str, float] = {}
    seen = 0.0
    steps = [getattr(ball, "step", 1) for ball in noise.balls for _ in range(ball.cells)]
    for point in product(*(range(-reach * step, reach * step + 1) for step in steps)):
        left = list(point)
        radii = []
        for ball in noise.balls:
            radii.append(ball.radius_of(left[: ball.cells]))
            del left[: ball.cells]
        if None in radii or max(radii) > reach:
            continue
        chance = heights[max(radii)]
        seen += chance
        noisy = np.array(counts) + np.array(point)
        for row in estimate_question(question, 0, noisy, mechanism, users, error):
            is_covered = row.low - 1e-9 <= truth(row) <= row.high + 1e-9
            name = f"{row.answer}: {row.measure}"
            covered[name] = covered.get(name, 0.0) + chance * is_covered
    assert seen > 0.97
    # What was not enumerated may all be covered, or not: at least so much is.
    return {name: chance / seen for name, chance in covered.items()}


def test_intervals_of_shares_scores_and_skips_cover_at_their_level() -> None:
    question = ScaleCounts(text="q", items=("1", "2", "3"), skip=True)
    counts = (5, 2, 9, 4)
    shares = dict(zip(question.answers, counts, strict=True))

    def truth(row: Estimate) -> float:
        if row.measure == "share":
            return shares[row.answer] / 20
        if row.measure == "share of those who answered":
            return shares[row.answer] / 16
        return (5 + 2 * 2 + 3 * 9) / 16

    found = coverage(question, counts, truth, reach=6)
    assert len(found) == 4 + 3 + 1
    assert min(found.values()) >= 0.9
    # A share is exact: its interval is not wider than whole numbers make it.
    assert found["1: share"] < 0.99


def test_intervals_of_a_mean_with_skip_cover_at_their_level() -> None:
    question = ScaleMean(text="q", items=("1", "2", "3", "4"), skip=True)

    def truth(row: Estimate) -> float:
        return 15 / 20 if row.answer == "answered" else 1 + 24 / 15

    found = coverage(question, (24, 15), truth, reach=7)
    assert len(found) == 2
    assert min(found.values()) >= 0.9


def test_intervals_of_a_mean_cover_at_their_level() -> None:
    question = Number(text="q", low=10, high=14, step=2)
    found = coverage(question, (13,), lambda _: 10 + 2 * 13 / 20, reach=20)
    assert 0.9 <= found[": mean"] < 0.95


def test_intervals_of_a_median_cover_at_their_level() -> None:
    question = Bands(text="q", edges=(0, 10, 20, 50))
    # Ten people in the first band and ten above: the first band is the first with half of them.
    found = coverage(
        question, (9, 4, 7), lambda row: 15.0 if row.measure == "median" else 0.45, reach=8
    )
    assert found[": median"] >= 0.9


def test_intervals_of_a_median_cover_all_medians() -> None:
    question = Bands(text="q", edges=(0, 10, 20, 50))
    # Half of the people are below 10 and half from 20 on: every number between is a median.
    for median in (5.0, 15.0, 30.0):

        def truth(row: Estimate, median: float = median) -> float:
            return median if row.measure == "median" else 0.5

        assert coverage(question, (10, 0, 10), truth, reach=8)[": median"] >= 0.9


def test_intervals_of_a_table_and_its_margins_cover_at_their_level() -> None:
    question = Table(text="r", columns_text="c", rows=("a", "b"), columns=("x", "y"))
    counts = (3, 5, 8, 4)
    expected = dict(zip(question.answers, counts, strict=True))
    expected |= {"a / all": 8, "b / all": 12, "all / x": 11, "all / y": 9}
    found = coverage(question, counts, lambda row: expected[row.answer] / 20, reach=6)
    assert len(found) == 8
    assert min(found.values()) >= 0.9


def make_result() -> QuestionnaireResult:
    mechanism = make_noise(
        OneOf(text="Site?", items=("North", "South", "East")),
        YesNo(text="Recommend?"),
        ScaleCounts(text="Satisfied?", items=("1", "2", "3")),
        AnyOf(text="Used?", items=("a", "b"), skip=True),
        Number(text="Years?", low=0, high=50),
        Table(text="Row?", columns_text="Column?", rows=("a", "b"), columns=("x", "y", "z")),
        users=1000,
    )
    cells = np.array(
        [500, 300, 200, 700, 100, 200, 700, 400, 300, 250, 20000, 5, 195, 200, 200, 200, 200]
    )
    return QuestionnaireResult(
        mechanism.questionnaire, mechanism, mechanism.release(cells, SeededStream(3)), 1000
    )


def test_the_estimates_are_shares_and_means() -> None:
    result = make_result()
    site = result["Site?"].estimates
    assert [row.answer for row in site] == ["North", "South", "East"]
    assert math.isclose(sum(row.estimate for row in site), 1.0)
    assert abs(site[0].estimate - 0.5) < 0.05
    recommend = result[2].estimates
    assert [row.answer for row in recommend] == ["no", "yes"]
    assert math.isclose(recommend[0].estimate + recommend[1].estimate, 1.0)
    mean = result["Satisfied?"].estimates[-1]
    assert mean.measure == "mean"
    assert abs(mean.estimate - 2.6) < 0.1
    years = result["Years?"].estimates[0]
    assert abs(years.estimate - 20) < 3
    used = {(row.answer, row.measure): row for row in result["Used?"].estimates}
    assert abs(used["a", "share of those who answered"].estimate - 400 / 750) < 0.05
    assert used["prefer not to say", "share"].low < 0.25 < used["prefer not to say", "share"].high
    with pytest.raises(ParameterError, match="no question 'Other"):
        result["Other?"]


def test_margins_agree_with_the_cells_also_when_consistent() -> None:
    rows = {row.answer: row for row in make_result()["Row? / Column?"].estimates}
    for measure in ("estimate", "consistent"):
        total = sum(getattr(rows[f"a / {column}"], measure) for column in "xyz")
        assert math.isclose(getattr(rows["a / all"], measure), total, abs_tol=1e-12)
        both = getattr(rows["a / all"], measure) + getattr(rows["b / all"], measure)
        assert math.isclose(both, 1.0)
    assert all(row.consistent >= 0 for row in rows.values())


def test_simultaneous_intervals_are_wider() -> None:
    result = make_result()
    single = result.estimates(0.9)
    together = result.estimates(0.9, simultaneous=True)
    for one, other in zip(single, together, strict=True):
        for narrow, wide in zip(one.estimates, other.estimates, strict=True):
            assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert together[0].estimates[0].low < single[0].estimates[0].low


def test_the_result_shows_itself() -> None:
    result = make_result()
    text = str(result)
    assert "joint: 1000 users, 6 questions" in text
    assert "for all answers of a person together" in text
    assert "<table>" in result._repr_html_()
    frame = result.to_frame()
    assert list(frame.columns)[:4] == ["question", "answer", "measure", "estimate"]
    assert len(frame) == sum(len(question.estimates) for question in result.questions)
    assert frame.attrs["guarantee"]["epsilon"] == 2.0
    assert repr(result) == "<QuestionnaireResult: 6 questions, 1,000 users, epsilon 2>"
    document = result.to_dict()
    assert [question["kind"] for question in document["questions"]] == [
        "one", "yes", "scale", "any", "number", "table",
    ]  # fmt: skip


def test_the_result_draws_a_chart_per_question() -> None:
    pytest.importorskip("matplotlib")
    figure = make_result().plot()
    assert len(figure.axes) == 6
    assert figure.axes[0].get_title("left") == "1. Site?"
    # A mean is drawn within the range of its answers.
    assert figure.axes[4].get_xlim() == (0.0, 50.0)


def test_the_mean_of_a_question_with_skip_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    mechanism = make_noise(ScaleMean(text="q", items=("1", "2", "3"), skip=True), users=100)
    figure = QuestionnaireResult(mechanism.questionnaire, mechanism, np.array([90, 80]), 100).plot()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["mean of those who answered"]


def test_a_level_is_written_with_all_its_digits() -> None:
    assert make_result().statements(0.999)[0][1].startswith("99.9% each")


def drawn_coverage(
    question: Question, population: dict[object, float], truth: Callable[[Estimate], float]
) -> float:
    """The smallest coverage of a population's truths, by all answers of 5 people and all noise.

    population: how likely a drawn person gives every answer
    """
    users = 5
    mechanism = make_noise(question, epsilon=6.0, users=users)
    (noise,) = mechanism.noises
    covered: dict[str, float] = {}
    found: dict[tuple[int, ...], tuple[Estimate, ...]] = {}
    seen = 0.0
    opened = [
        Questionnaire((question,)).cells_from_bits(question.encode(answer)) for answer in population
    ]
    for counts, drawn in multinomial(users, list(population.values())):
        cells = np.array(counts) @ np.array(opened)
        for point, chance in likely_points(noise):
            seen += drawn * chance
            noisy = tuple((cells + np.array(point)).tolist())
            if noisy not in found:
                found[noisy] = estimate_question(
                    question, 0, np.array(noisy), mechanism, users, 0.2, "population"
                )
            for row in found[noisy]:
                name = f"{row.answer}: {row.measure}"
                hit = row.low - 1e-9 <= truth(row) <= row.high + 1e-9
                covered[name] = covered.get(name, 0.0) + drawn * chance * hit
    assert seen > 0.97
    return min(covered.values()) / seen


def multinomial(users: int, chances: list[float]) -> list[tuple[tuple[int, ...], float]]:
    """All ways in which people can answer, with their probabilities."""
    found = []
    for counts in product(range(users + 1), repeat=len(chances)):
        if sum(counts) == users:
            ways = math.factorial(users)
            probability = 1.0
            for count, chance in zip(counts, chances, strict=True):
                ways //= math.factorial(count)
                probability *= chance**count
            found.append((counts, ways * probability))
    return found


def likely_points(noise: GroupNoise) -> list[tuple[tuple[int, ...], float]]:
    """The points of the smallest balls that hold nearly all of the noise, with probabilities."""
    table = noise.table
    columns = [ball.sizes(table.largest) for ball in noise.balls]
    heights = [0.0] * (table.largest + 2)
    for radius in range(table.largest, -1, -1):
        size = math.prod(column[radius] for column in columns)
        heights[radius] = heights[radius + 1] + table.weights[radius] / ONE / size
    # A number that is alone has small balls, of which several are needed.
    last = next(r for r in range(table.largest) if table.cumulative[r] > 0.98 * ONE)
    spans = []
    for ball in noise.balls:
        spans += [range(-last * ball.reach, last * ball.reach + 1)] * ball.cells
    found = []
    for point in product(*spans):
        left = list(point)
        radii = []
        for ball in noise.balls:
            radii.append(ball.radius_of(left[: ball.cells]))
            del left[: ball.cells]
        if None not in radii and max(radii) <= last:
            found.append((point, heights[max(radii)]))
    return found


def test_intervals_of_a_population_cover_shares_means_and_medians() -> None:
    chances = [0.5, 0.2, 0.3]
    population = dict(enumerate(chances))
    scale = ScaleCounts(text="q", items=("1", "2", "3"))

    def scores(row: Estimate) -> float:
        return 1.8 if row.measure == "mean" else chances[int(row.answer) - 1]

    assert drawn_coverage(scale, population, scores) >= 0.8
    bands = Bands(text="q", edges=(0, 10, 20, 50))

    def medians(row: Estimate) -> float:
        # Half are below 10 and half above it: 10 is the median.
        return 10.0 if row.measure == "median" else chances[bands.answers.index(row.answer)]

    assert drawn_coverage(bands, population, medians) >= 0.8


def test_intervals_of_a_population_cover_means_of_numbers() -> None:
    number = Number(text="q", low=10, high=16, step=2)
    mean = 10 + 2 * (0.1 + 3 * 0.5)
    assert drawn_coverage(number, {0: 0.4, 1: 0.1, 3: 0.5}, lambda _: mean) >= 0.8


def test_intervals_of_a_population_cover_what_those_say_who_answer() -> None:
    population: dict[object, float] = {0: 0.4, 2: 0.3, None: 0.3}
    means = ScaleMean(text="q", items=("1", "2", "3"), skip=True)

    def truth(row: Estimate) -> float:
        return 0.7 if row.answer == "answered" else 1 + 2 * 0.3 / 0.7

    assert drawn_coverage(means, population, truth) >= 0.8
    shares = {("a", "share"): 0.4, ("c", "share"): 0.3, ("prefer not to say", "share"): 0.3}
    shares |= {("b", "share"): 0.0, ("b", "share of those who answered"): 0.0}
    shares |= {
        (answer, "share of those who answered"): shares[answer, "share"] / 0.7 for answer in "ac"
    }
    choice = OneOf(text="q", items=("a", "b", "c"), skip=True)
    assert drawn_coverage(choice, population, lambda row: shares[row.answer, row.measure]) >= 0.8


@pytest.mark.parametrize("people", [5, 40])
def test_a_drawn_mean_is_bounded_whatever_the_values_are(people: int) -> None:
    """Coins are the worst values in [0, 1]; their mean is covered at the level, by enumeration."""
    for center in (0.02, 0.3, 0.5, 0.9):
        covered = 0.0
        for heads in range(people + 1):
            low, high = bound_drawn_mean(heads / people, people, 0.1)
            chance = math.comb(people, heads) * center**heads * (1 - center) ** (people - heads)
            covered += chance * (low <= center <= high)
        assert covered >= 0.9


def test_a_mechanism_that_counts_votes_gives_the_same_numbers_as_its_result() -> None:
    question = ScaleCounts(text="q", items=("1", "2", "3"), skip=True)
    mechanism = Laplace(items=question.answers, users=100, epsilon=1.0)
    votes = Result(mechanism, np.array([40, 25, 20, 17]), 100)
    result = QuestionnaireResult.of_frequencies(votes, question)
    for covers in ("users", "population"):
        (found,) = result.estimates(0.9, covers=covers)
        bounds = votes.interval(0.9, covers=covers)
        shares = found.estimates[:4]
        np.testing.assert_array_equal([row.estimate for row in shares], votes.estimates)
        np.testing.assert_array_equal([row.low for row in shares], bounds.low)
        np.testing.assert_array_equal([row.high for row in shares], bounds.high)
        assert found.coverage == bounds.coverage
    assert result.guarantees == votes.guarantees
    answered = found.estimates[4]
    assert answered.measure == "share of those who answered"
    assert answered.estimate == pytest.approx(votes.estimates[0] / votes.estimates[:3].sum())
    mean = found.estimates[-1]
    assert mean.low < mean.estimate < mean.high
    together = result.estimates(0.9, simultaneous=True)[0]
    assert together.coverage.method.endswith("Bonferroni over 8 estimates")
    document = result.to_dict()
    assert [row["item"] for row in document["estimates"]] == list(question.answers)
    assert document["raw"] == votes.raw.tolist()
    with pytest.raises(ParameterError, match="laplace counts the answers to one question only"):
        QuestionnaireResult.of_frequencies(votes, Number(text="q", low=0, high=3))

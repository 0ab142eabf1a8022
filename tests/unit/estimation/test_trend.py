"""Changes between results: their intervals hold as often as they say."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from faircount.core.errors import ParameterError
from faircount.core.questions import OneOf, Questionnaire, YesNo
from faircount.estimation.record import SurveyRecord
from faircount.estimation.result import Result
from faircount.estimation.sheet_estimates import EstimateNoise
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.trend import (
    Change,
    Trend,
    bound_difference,
    match_questions,
    trend_of,
)
from faircount.mechanisms.count_distribution import NoiseDistribution
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local_frequency import GRR

ITEMS = ("tea", "coffee", "water")


QUESTION = OneOf(text="Tea?", items=ITEMS)


def result_of(
    users: int, sums: list[int], epsilon: float = 1.0, **facts: Any
) -> QuestionnaireResult:
    mechanism = Laplace(items=ITEMS, users=users, epsilon=epsilon)
    result = Result(mechanism, np.array(sums), users, facts)
    return QuestionnaireResult.of_frequencies(result, QUESTION)


def only_change(trend: Trend, place: int = 0) -> Change:
    (question,) = trend.questions
    return question.changes[place]


def widths(change: Change) -> list[float]:
    return [row.high - row.low for row in change.rows]


def geometric(scale: float, size: int) -> NoiseDistribution:
    """Two-sided geometric noise, cut off and normalized."""
    values = np.arange(-size, size + 1)
    weights = np.exp(-np.abs(values) / scale)
    return NoiseDistribution(-size, weights / weights.sum())


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_exact_intervals_hold_as_often_as_they_say(confidence: float) -> None:
    """Every pair of noises is enumerated: coverage is computed, not sampled."""
    before = geometric(2.0, 40)
    after = geometric(3.0, 60)
    users = (70, 90)
    covered = 0.0
    truth = 31 / users[1] - 22 / users[0]
    for first, second in itertools.product(range(before.pmf.size), range(after.pmf.size)):
        noisy = (31 + after.values[second]) / users[1] - (22 + before.values[first]) / users[0]
        # The bounds move with the difference, so they are computed once.
        if not covered and (first, second) == (0, 0):
            noises = (EstimateNoise(before, 1 / users[0]), EstimateNoise(after, 1 / users[1]))
            low, high = bound_difference(*noises, 1 - confidence)
        if noisy + low <= truth + 1e-12 and truth <= noisy + high + 1e-12:
            covered += before.pmf[first] * after.pmf[second]
    assert confidence <= covered + 1e-9
    assert covered < confidence + 0.03


def test_a_trend_has_every_step_and_the_whole_way() -> None:
    results = [
        result_of(100, [50, 30, 20]),
        result_of(80, [30, 40, 10]),
        result_of(90, [9, 63, 18]),
    ]
    trend = trend_of(results, ["a", "b", "c"])
    (question,) = trend.questions
    steps = [(change.before, change.after) for change in question.changes]
    assert steps == [(0, 1), (1, 2), (0, 2)]
    whole = question.changes[2]
    differences = [row.estimate for row in whole.rows]
    np.testing.assert_allclose(differences, [-0.4, 0.4, 0.0], atol=1e-12)
    assert [row.is_clear for row in whole.rows] == [True, True, False]
    assert all(row.low <= row.estimate <= row.high for row in whole.rows)
    assert "may be noise" in str(trend)
    assert "tea: -40.0 points" in str(trend)
    assert whole.method.startswith("exact")


def test_more_noise_and_fewer_people_make_wider_intervals() -> None:
    usual = only_change(trend_of([result_of(100, [50, 30, 20])] * 2, ["a", "b"]))
    noisier = only_change(trend_of([result_of(100, [50, 30, 20], 0.5)] * 2, ["a", "b"]))
    fewer = only_change(trend_of([result_of(50, [25, 15, 10])] * 2, ["a", "b"]))
    drawn = trend_of([result_of(100, [50, 30, 20])] * 2, ["a", "b"], covers="population")
    wider = only_change(drawn)
    for other in (noisier, fewer, wider):
        assert np.all(np.array(widths(other)) > widths(usual))
    assert wider.method.startswith("approximate")
    # Wider than either interval alone, narrower than both together.
    single = result_of(100, [50, 30, 20]).questions[0].estimates
    for row, width in zip(single, widths(usual), strict=True):
        assert row.high - row.low < width < 2 * (row.high - row.low)


def test_combined_intervals_of_local_reports_hold() -> None:
    """400 seeded trials at 95%: fewer than 368 hits has a probability below 1% (binomial)."""
    mechanism = GRR(items=ITEMS, epsilon=2.0)
    truth = np.array([0.1, 0.1, -0.2])
    hits = 0
    rng = np.random.default_rng(7)
    for _ in range(400):
        drawn = []
        for counts in ([100, 60, 40], [120, 80, 0]):
            bound = mechanism.bind(200)
            result = Result(bound, bound.draw(np.array(counts), rng), 200)
            drawn.append(QuestionnaireResult.of_frequencies(result, QUESTION))
        row = only_change(trend_of(drawn, ["a", "b"])).rows[0]
        hits += int(row.low <= truth[0] <= row.high)
    assert 368 <= hits < 400


def test_only_the_same_answers_are_compared() -> None:
    other = replace(
        result_of(100, [50, 30, 20]),
        questionnaire=Questionnaire((OneOf(text="Tea?", items=("x", "y", "z")),)),
    )
    with pytest.raises(ParameterError, match="b has other answers"):
        trend_of([result_of(100, [50, 30, 20]), other], ["a", "b"])
    with pytest.raises(ParameterError, match="at least two"):
        trend_of([other], ["a"])
    with pytest.raises(ParameterError, match="the same name"):
        trend_of([other, other], ["a", "a"])


def dated(name: str, ended: str) -> SurveyRecord:
    return SurveyRecord("ab" * 16, name, "Tea?", "Us", None, ended, 120, 100, 100)


def test_a_question_that_moved_is_not_another_one_in_other_words() -> None:
    lunch, desk, bike = (YesNo(text=text) for text in ("Lunch?", "Desk?", "Bike?"))
    first = Questionnaire((lunch, desk))
    # Worded anew in its place, and found in another place under its own text.
    assert match_questions(first, Questionnaire((bike, desk))) == [(0, 0), (1, 1)]
    assert match_questions(first, Questionnaire((desk, lunch))) == [(0, 1), (1, 0)]
    # "Desk?" comes first now: it is not "Lunch?" in other words, although the answers agree.
    assert match_questions(first, Questionnaire((desk, bike))) == [(1, 0)]


def test_a_trend_is_a_frame_json_and_a_figure() -> None:
    results = [
        result_of(100, [50, 30, 20], record=dated("a", "2026-01-02T08:00:00+00:00")),
        result_of(100, [40, 40, 20], record=dated("b", "2026-07-02T08:00:00+00:00")),
    ]
    trend: Trend = trend_of(results, ["a", "b"])
    frame = trend.to_frame()
    assert len(frame) == 6
    assert frame["change"].isna().tolist() == [True] * 3 + [False] * 3
    assert frame["change"].tolist()[3:5] == pytest.approx([-0.1, 0.1])
    plain = trend.to_dict()
    assert plain["changes"][0]["from"] == "a"
    assert plain["results"][1]["record"]["question"] == "Tea?"
    figure = trend.plot()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "a\n2 January 2026",
        "b\n2 July 2026",
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(ITEMS)
    assert figure.get_suptitle() == "Tea?"
    assert repr(trend) == "<Trend of 2 results, 3 items>"


def test_a_change_of_fitted_estimates_has_the_distribution_of_fitted_noise() -> None:
    """Both results use the known total, so a difference is as narrow as their errors allow."""
    results = [result_of(100, [50, 30, 20])] * 2
    change = only_change(trend_of(results, ["a", "b"]))
    channel = Laplace(items=ITEMS, users=100, epsilon=1.0).channel(100)
    raw, fitted = (
        EstimateNoise(distribution, 0.01)
        for distribution in (channel.noise, channel.fitted_to_total(3).noise)
    )
    bounds = bound_difference(fitted, fitted, 0.05)
    for row in change.rows:
        np.testing.assert_allclose((row.low, row.high), bounds)
    assert bounds[1] < bound_difference(raw, raw, 0.05)[1]

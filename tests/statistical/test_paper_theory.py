"""Measured errors match the theory at every point of every figure, at a false-alarm rate of 1e-6.

For every point the probability that an average of so many runs is so far from theory is computed,
skewness included; the smallest one must exceed 1e-6 over the number of points. The same test must
reject, at EVERY point, a noise whose scale is off by 30%.
"""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from faircount.reproduction.report.tables import list_agreement
from faircount.reproduction.studies import fig5, squared_errors
from faircount.reproduction.studies.checks import line_probability
from faircount.reproduction.studies.judging import rescale
from faircount.reproduction.studies.registry import STUDIES, task
from faircount.reproduction.studies.study import COUNT_LEVEL, USER_LEVEL, compare_with_theory
from faircount.reproduction.sweep.sweep import sweep

FALSE_ALARM = 1e-6
RUNS = {
    "fig1": 300,
    "fig2": 500,
    "fig3": 500,
    "fig4": 1000,
    "fig5": 500,
    "table2": 1000,
    "fig1_exact": 300,
}
SEED = 20


def measure_points(study, points, runs):
    lines = []
    for measured in sweep(task, points, runs=runs, seed=SEED, workers=1):
        lines += compare_with_theory(study, measured)
    return lines


def measure_lines(name, runs, how):
    """All points of a study at one level."""
    study = STUDIES[name]
    points = [point for point in study.named_points() if point["how"] == how]
    return measure_points(study, points, runs)


def probabilities(lines, factor=1.0):
    """How likely the averages are if the squared errors are `factor` times those of the theory."""
    found = []
    for line in lines:
        scaled = replace(line, expected=rescale(line.expected, factor))
        found.append(line_probability(scaled))
    return np.array(found)


@pytest.mark.parametrize("name", RUNS)
def test_every_point_matches_theory_and_an_error_of_30_percent_is_caught(name):
    """The averages, and how far the runs are spread around them."""
    lines = measure_lines(name, RUNS[name], COUNT_LEVEL)
    limit = FALSE_ALARM / len(lines)
    assert probabilities(lines).min() > limit
    for scale in (0.7, 1.3):
        assert probabilities(lines, scale**2).max() < limit
    ratios = [line.standard_error * line.runs**0.5 / line.expected.deviation for line in lines]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)


def test_a_planted_error_in_the_running_code_is_caught_at_every_point(monkeypatch):
    draw_sums = squared_errors._draw_sums

    def wide(channel, counts, rng):
        others = counts.sum(axis=1, keepdims=True) - counts
        mean = counts * channel.hit + others * channel.miss
        return mean + 1.3 * (draw_sums(channel, counts, rng) - mean)

    monkeypatch.setattr(squared_errors, "_draw_sums", wide)
    for name in ("fig2", "fig3"):
        lines = measure_lines(name, RUNS[name], COUNT_LEVEL)
        assert probabilities(lines).max() < FALSE_ALARM / len(lines)


def test_a_planted_error_in_a_local_mean_is_caught(monkeypatch):
    estimate_mean = fig5._estimate_mean

    def wide(mechanism, values, how, rng):
        truth = values.mean()
        return truth + 1.3 * (estimate_mean(mechanism, values, how, rng) - truth)

    monkeypatch.setattr(fig5, "_estimate_mean", wide)
    points = []
    for point in fig5.STUDY.named_points():
        place = (point["setting"], point["how"])
        if place == ("s2", COUNT_LEVEL) and point["mechanism"] in fig5.MEANS:
            points.append(point)
    lines = measure_points(fig5.STUDY, points, RUNS["fig5"])
    assert probabilities(lines).max() < FALSE_ALARM / len(lines)


@pytest.mark.slow
def test_real_shares_match_theory_and_the_count_level():
    """Twenty runs, as in the paper, with every user simulated: real shares and real reports."""
    results = {name: measure_lines(name, 20, USER_LEVEL) for name in RUNS}
    lines = list(chain.from_iterable(results.values()))
    assert len(lines) > 40
    limit = FALSE_ALARM / len(lines)
    assert probabilities(lines).min() > limit
    # Twenty runs show an error of 30% only where there are many items.
    for scale in (0.7, 1.3):
        assert probabilities(lines, scale**2).min() < limit

    # The same points at count level.
    for name, user_level in results.items():
        twins = []
        for line in user_level:
            twin = {**line.point, "how": COUNT_LEVEL}
            if twin not in twins:
                twins.append(twin)
        results[name] = user_level + measure_points(STUDIES[name], twins, 20)
    both = list_agreement(results)
    assert len(both) == len(lines)
    # With 19 degrees of freedom each such distance is less likely than 1e-9.
    assert max(abs(float(record["z"])) for record in both) < 12


def test_counters_of_two_stage_runs_match_their_formulas():
    lines = measure_lines("table1", 40, USER_LEVEL)
    random = []
    for line in lines:
        if line.expected.deviation is None:
            random.append(line)
            assert line.standard_error > 0
        else:
            assert line.expected.deviation == 0
            assert line.standard_error == 0
            assert line.z == 0
    assert len(random) == 17
    limit = FALSE_ALARM / len(random)
    assert probabilities(random).min() > limit
    assert probabilities(random, 1.3).max() < limit

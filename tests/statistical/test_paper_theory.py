"""Measured errors match the theory at every point of every figure, with a false-alarm rate of 1e-6 per figure.

For each point the probability that an average of so many runs lies so far from the theory is computed (skewness
included); the smallest one must exceed 1e-6 over the number of points. The same test must reject, at EVERY point, a
noise whose scale is off by 30%.
"""

from dataclasses import replace

import numpy as np
import pytest

from faircount.experiments.report.tables import agreement
from faircount.experiments.studies import fig5, squared_errors
from faircount.experiments.studies.checks import probability
from faircount.experiments.studies.judging import scaled
from faircount.experiments.studies.registry import STUDIES, task
from faircount.experiments.studies.study import ACTING, COUNTS, lines_of
from faircount.sweep.sweep import sweep

FALSE_ALARM = 1e-6
RUNS = {"fig1": 300, "fig2": 500, "fig3": 500, "fig4": 1000, "fig5": 500, "table2": 1000, "fig1_exact": 300}
SEED = 20


def measured_lines(name, runs, how, only=None):
    study = STUDIES[name]
    points = [point for point in study.named() if point["how"] == how and (only is None or point in only)]
    measured = sweep(task, points, runs=runs, seed=SEED, workers=1)
    return [line for each in measured for line in lines_of(study, each)]


def probabilities(lines, factor=1.0):
    """How likely each average is, were the squared errors `factor` times those of the theory."""
    return np.array([probability(replace(line, expected=scaled(line.expected, factor))) for line in lines])


@pytest.mark.parametrize("name", RUNS)
def test_every_point_matches_theory_and_an_error_of_30_percent_is_caught(name):
    """The averages, and how far the runs are spread around them."""
    lines = measured_lines(name, RUNS[name], COUNTS)
    limit = FALSE_ALARM / len(lines)
    assert probabilities(lines).min() > limit
    for scale in (0.7, 1.3):
        assert probabilities(lines, scale**2).max() < limit
    ratios = [line.standard_error * line.runs**0.5 / line.expected.deviation for line in lines]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)


def test_a_planted_error_in_the_running_code_is_caught_at_every_point(monkeypatch):
    honest = squared_errors._sums

    def wide(channel, counts, rng):
        mean = counts * channel.hit + (counts.sum(axis=1, keepdims=True) - counts) * channel.miss
        return mean + 1.3 * (honest(channel, counts, rng) - mean)

    monkeypatch.setattr(squared_errors, "_sums", wide)
    for name in ("fig2", "fig3"):
        lines = measured_lines(name, RUNS[name], COUNTS)
        assert probabilities(lines).max() < FALSE_ALARM / len(lines)


def test_a_planted_error_in_a_local_mean_is_caught(monkeypatch):
    honest = fig5._mean

    def wide(mechanism, part, how, rng):
        return part.mean() + 1.3 * (honest(mechanism, part, how, rng) - part.mean())

    monkeypatch.setattr(fig5, "_mean", wide)
    points = [{"mechanism": name, "users": 10_000, "setting": "s2", "how": COUNTS} for name in fig5.MEANS]
    measured = sweep(fig5.task, points, runs=RUNS["fig5"], seed=SEED, workers=1)
    lines = [line for each in measured for line in lines_of(fig5.STUDY, each)]
    assert probabilities(lines).max() < FALSE_ALARM / len(lines)


def test_real_shares_match_theory_and_the_count_level():
    """Twenty runs as in the paper: every user acts, real shares and real reports."""
    results = {name: measured_lines(name, 20, ACTING) for name in RUNS}
    lines = [line for each in results.values() for line in each]
    assert len(lines) > 40
    limit = FALSE_ALARM / len(lines)
    assert probabilities(lines).min() > limit
    for scale in (0.7, 1.3):
        assert probabilities(lines, scale**2).min() < limit  # with 20 runs seen where there are many items
    for name in RUNS:
        results[name] += measured_lines(name, 20, COUNTS, [{**line.point, "how": COUNTS} for line in results[name]])
    both = agreement(results)
    assert len(both) == len(lines)
    assert max(abs(float(each["z"])) for each in both) < 12  # 19 degrees of freedom: below 1e-9 each


def test_counters_of_two_stage_runs_match_their_formulas():
    lines = measured_lines("table1", 40, ACTING)
    random = [line for line in lines if line.expected.deviation is None]
    fixed = [line for line in lines if line.expected.deviation == 0]
    assert all(line.standard_error == 0 and line.z == 0 for line in fixed)
    assert len(random) == 17
    assert all(line.standard_error > 0 for line in random)
    limit = FALSE_ALARM / len(random)
    assert probabilities(random).min() > limit
    assert probabilities(random, 1.3).max() < limit

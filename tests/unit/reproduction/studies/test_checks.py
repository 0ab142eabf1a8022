"""Runs that contradict their theory fail; runs that agree with it do not."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.reproduction.studies import fig5, squared_errors, weighted_groups
from faircount.reproduction.studies.checks import FALSE_ALARM, check, line_probability
from faircount.reproduction.studies.registry import STUDIES, task
from faircount.reproduction.studies.study import COUNT_LEVEL, Expected, Line, compare_with_theory
from faircount.reproduction.sweep.sweep import sweep


def make_line(mean, expected, runs=20, error=0.1):
    return Line("x", {}, "m", "noise", 1, runs, mean, error, mean, mean, expected)


def measure_lines(name, seed=3):
    """Twenty runs of a study at count level."""
    study = STUDIES[name]
    points = [point for point in study.named_points() if point["how"] == COUNT_LEVEL]
    lines = []
    for measured in sweep(task, points, runs=20, seed=seed, workers=1):
        lines += compare_with_theory(study, measured)
    return lines


def test_runs_agree_with_the_theory_of_figure_2():
    found = check(measure_lines("fig2"))
    assert found.is_consistent
    assert found.averages == 75
    assert found.ratio == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("factor", [9.0, 1.12, 1 / 1.12])
def test_runs_that_are_off_everywhere_fail(factor):
    """Nine: every deviation tripled. 1.12: 6% more deviation, which no single average shows."""
    lines = [replace(line, mean=line.mean * factor) for line in measure_lines("fig2")]
    found = check(lines)
    assert not found.is_consistent
    # Only the large error shows in a single average.
    assert (found.single < FALSE_ALARM / 2) == (factor == 9.0)


@pytest.mark.slow
def test_ten_percent_more_deviation_fails_every_figure(monkeypatch):
    """Planted error: every estimate is 1.1 times as far from the truth as it should be."""
    draw_estimates = squared_errors.draw_estimates
    estimate_mean = fig5._estimate_mean

    def wide(mechanism, counts, how, rng):
        truth = counts / counts.sum(axis=1, keepdims=True)
        return truth + 1.1 * (draw_estimates(mechanism, counts, how, rng) - truth)

    def wide_mean(mechanism, values, how, rng):
        truth = values.mean()
        return truth + 1.1 * (estimate_mean(mechanism, values, how, rng) - truth)

    monkeypatch.setattr(squared_errors, "draw_estimates", wide)
    # Both modules have imported the function under its name.
    monkeypatch.setattr(weighted_groups, "draw_estimates", wide)
    monkeypatch.setattr(fig5, "_estimate_mean", wide_mean)
    # Table I has counters and no estimates; the poisoning study has its own test.
    for name in set(STUDIES) - {"table1", "poisoning"}:
        assert not check(measure_lines(name)).is_consistent, name


def test_one_average_that_is_off_fails():
    lines = measure_lines("fig2")
    lines[7] = replace(lines[7], mean=8 * lines[7].mean)
    found = check(lines)
    assert not found.is_consistent
    # The report then names the average that is off.
    assert found.worst == lines[7]


def test_counters_that_are_not_random_must_be_exact():
    exact = make_line(600.0, Expected(600.0, 0.0), error=0.0)
    wrong = replace(exact, mean=601.0)
    assert line_probability(exact) == 1.0
    assert line_probability(wrong) == 0.0
    assert not check([wrong]).is_consistent


def test_equal_random_counts_prove_nothing():
    two_equal_counts = make_line(61.0, Expected(60.95), runs=2, error=0.0)
    assert line_probability(two_equal_counts) == 1.0


@pytest.mark.parametrize("runs", [20, 2])
def test_where_theory_knows_the_mean_alone_students_distribution_decides(runs):
    from scipy.stats import t

    found = line_probability(make_line(1.3, Expected(1.0), runs=runs))
    assert found == pytest.approx(2 * t.sf(3.0, runs - 1))


def test_the_stated_chances_are_true():
    """Of 75 x 40 averages and 40 studies with different seeds, as many are rare as stated.

    At most 1e-6 of such tests would find more (upper end of the binomial distribution).
    """
    from scipy.stats import binom

    single = []
    together = []
    for seed in range(100, 140):
        lines = measure_lines("fig2", seed)
        single += map(line_probability, lines)
        together.append(check(lines).together)
    for level in (0.1, 0.01):
        for probabilities in (np.array(single), np.array(together)):
            limit = binom.isf(1e-6, probabilities.size, level)
            assert (probabilities < level).sum() <= limit
    # Nor are they so cautious that they would notice nothing.
    assert (np.array(single) < 0.1).mean() > 0.07

"""Runs that contradict their theory fail; runs that agree with it do not."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.experiments.studies import fig5, squared_errors, weighted_groups
from faircount.experiments.studies.checks import FALSE_ALARM, check, probability
from faircount.experiments.studies.registry import STUDIES, task
from faircount.experiments.studies.study import COUNTS, Expected, Line, lines_of
from faircount.sweep.sweep import sweep


def line(mean, expected, runs=20, error=0.1, **point):
    return Line("x", point, "m", "noise", 1, runs, mean, error, mean, mean, expected)


def measured(name, runs, seed=3):
    study = STUDIES[name]
    points = [point for point in study.named() if point["how"] == COUNTS]
    return [each for found in sweep(task, points, runs=runs, seed=seed, workers=1) for each in lines_of(study, found)]


def test_runs_agree_with_the_theory_of_figure_2():
    found = check(measured("fig2", 20))
    assert found.passed
    assert found.averages == 75
    assert found.ratio == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("factor", [9.0, 1.12, 1 / 1.12])
def test_runs_that_are_off_everywhere_fail(factor):
    """Nine: every draw's deviation tripled. 1.12: 6% more deviation, which no single average shows."""
    found = check([replace(each, mean=each.mean * factor) for each in measured("fig2", 20)])
    assert not found.passed
    assert (found.single < FALSE_ALARM / 2) == (factor == 9.0)


@pytest.mark.slow
def test_ten_percent_more_deviation_fails_every_figure(monkeypatch):
    """Planted error: every estimate is 1.1 times as far from the truth as it should be."""
    honest, honest_mean = squared_errors.estimates, fig5._mean

    def wide(mechanism, counts, how, rng):
        truth = counts / counts.sum(axis=1, keepdims=True)
        return truth + 1.1 * (honest(mechanism, counts, how, rng) - truth)

    def wide_mean(mechanism, part, how, rng):
        return part.mean() + 1.1 * (honest_mean(mechanism, part, how, rng) - part.mean())

    monkeypatch.setattr(squared_errors, "estimates", wide)
    monkeypatch.setattr(weighted_groups, "estimates", wide)
    monkeypatch.setattr(fig5, "_mean", wide_mean)
    names = [name for name in STUDIES if name not in ("table1", "poisoning")]  # counters; liars, in a test of their own
    assert {name: check(measured(name, 20)).passed for name in names} == dict.fromkeys(names, False)


def test_one_average_that_is_off_fails():
    lines = measured("fig2", 20)
    lines[7] = replace(lines[7], mean=8 * lines[7].mean)
    found = check(lines)
    assert not found.passed
    assert found.worst == lines[7]


def test_counters_must_be_exact_where_chance_has_no_say():
    exact = line(600.0, Expected(600.0, 0.0), error=0.0)
    assert probability(exact) == 1.0
    assert probability(replace(exact, mean=601.0)) == 0.0
    assert not check([replace(exact, mean=601.0)]).passed
    assert probability(line(61.0, Expected(60.95), runs=2, error=0.0)) == 1.0  # two random counts, equal by chance


def test_where_theory_knows_the_mean_alone_students_law_decides():
    from scipy.stats import t

    assert probability(line(1.3, Expected(1.0))) == pytest.approx(2 * t.sf(3.0, 19))
    assert probability(line(1.3, Expected(1.0), runs=2)) == pytest.approx(2 * t.sf(3.0, 1))  # two runs prove little


def test_the_stated_chances_are_true():
    """Of 75 x 40 averages and 40 studies with another seed each, so many are as rare as they are said to be.

    At most 1e-6 of such tests would find more (binomial law, its upper end).
    """
    from scipy.stats import binom

    studies = [measured("fig2", 20, seed) for seed in range(100, 140)]
    single = np.array([probability(each) for lines in studies for each in lines])
    together = np.array([check(lines).together for lines in studies])
    for level in (0.1, 0.01):
        assert (single < level).sum() <= binom.isf(1e-6, single.size, level)
        assert (together < level).sum() <= binom.isf(1e-6, together.size, level)
    assert (single < 0.1).mean() > 0.07  # nor are they so careful that they would see nothing

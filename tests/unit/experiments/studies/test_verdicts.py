"""Verdicts: how they are reached, and what they are; on lines made from the theory alone, so nothing here is chance."""

from collections import Counter
from dataclasses import replace

import pytest

from faircount.experiments.studies import fig1, fig2, table2
from faircount.experiments.studies.judging import (
    AGREES,
    CANNOT,
    DIFFERS,
    chance,
    everywhere,
    half_unit,
    number,
    readings,
    scaled,
    tail_probability,
    with_measured_spread,
)
from faircount.experiments.studies.registry import STUDIES
from faircount.experiments.studies.study import Expected, Line
from faircount.experiments.studies.verdicts import tally, verdicts


def lines_of(name):
    """Lines that measured exactly what the theory expects, with a spread of 30% from run to run."""
    study, lines = STUDIES[name], []
    for point in study.named():
        for key, expected in study.theory(point).items():
            method, _, against = key.rpartition("|")
            mean, error = expected.mean, 0.3 * expected.mean / 20**0.5
            bounds = (mean, error, mean - 2 * error, mean + 2 * error)
            who = method or str(point["method"])
            lines.append(Line(name, point, who, against, study.items(point), 20, *bounds, expected))
    return lines


@pytest.fixture(scope="module")
def results():
    return {name: lines_of(name) for name in STUDIES if name != "fig1_exact"}


@pytest.fixture(scope="module")
def judged(results):
    return verdicts(results)


def find(judged, study, *words):
    found = [each for each in judged if each.study == study and all(word in each.claim for word in words)]
    assert len(found) == 1, [each.claim for each in found]
    return found[0]


def test_half_a_unit_of_the_last_digit():
    assert half_unit("2.4e-3") == pytest.approx(0.05e-3)
    assert half_unit("1.124e-3") == pytest.approx(0.0005e-3)
    assert half_unit("0.01") == pytest.approx(0.005)
    assert half_unit("1.4e-2") == pytest.approx(0.05e-2)


def test_the_law_of_an_average_is_exact_for_normal_errors():
    from scipy.stats import chi2

    items, runs = 5, 20
    expected = Expected(1.0, (2 / items) ** 0.5, (8 / items) ** 0.5)
    for value in (0.6, 0.9, 1.2, 1.5):
        law = chi2(items * runs, scale=1 / (items * runs))
        tail = law.cdf(value) if value < 1 else law.sf(value)
        assert tail_probability(value, expected, runs) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    plain = Expected(1.0, (2 / items) ** 0.5)  # without a skewness: the gamma law with that variance, here the same
    assert tail_probability(1.5, plain, runs) == pytest.approx(tail_probability(1.5, expected, runs), rel=1e-9)


def test_chance_grants_rounding_and_falls_with_distance():
    expected = Expected(2.44e-3, 1e-3, 1.0)
    assert chance("2.4e-3", expected) == 1.0
    far = [chance(printed, expected) for printed in ("2.5e-3", "2.9e-3", "3.4e-3", "5.0e-3")]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 1e-6
    assert chance("2.4e-3", Expected(3e-3)) == 0.0  # no spread known: nothing to excuse a difference with


def test_a_number_agrees_if_one_reading_fits():
    fits, misses = Expected(1.0e-3, 0.2e-3, 0.5), Expected(9.0e-3, 0.2e-3, 0.5)
    assert number("x", "", "", "1.05e-3", {"a": misses, "b": fits}, "").verdict == AGREES
    assert number("x", "", "", "1.05e-3", {"a": misses}, "").verdict == DIFFERS
    assert scaled(fits, 2.0) == Expected(2.0e-3, 0.4e-3, 0.5)


def test_claims_and_readings():
    assert everywhere([True, True]) == AGREES
    assert everywhere([True, False]) == DIFFERS
    assert everywhere([]) == DIFFERS
    assert readings({"a": True, "b": False}) == CANNOT
    assert readings({"a": True, "b": True}) == AGREES
    assert readings({"a": False}) == DIFFERS


def test_measured_spread_stands_in_where_theory_has_none():
    line = Line("x", {}, "", "", 1, 25, 1.0, 0.1, 0.8, 1.2, Expected(1.0))
    assert with_measured_spread(line) == Expected(1.0, 0.5)
    assert with_measured_spread(replace(line, expected=Expected(1.0, 0.3))) == Expected(1.0, 0.3)


def test_figure_1(judged):
    assert find(judged, "fig1", "around 0.01").verdict == AGREES
    assert find(judged, "fig1", "over 90%", "Gowalla").verdict == CANNOT
    assert "at least 15 items" in find(judged, "fig1", "over 90%", "Gowalla").why
    assert find(judged, "fig1", "epsilon < 0.6", "Gowalla").verdict == DIFFERS
    assert find(judged, "fig1", "Similar", "over 90%").verdict == AGREES
    assert find(judged, "fig1", "Similar", "epsilon < 0.6").verdict == DIFFERS
    assert find(judged, "fig1", "same privacy level").verdict == DIFFERS
    assert "exact delta of DPDS at 0 of 30" in find(judged, "fig1", "same privacy level").ours
    assert find(judged, "fig1", "budget is small").verdict == AGREES
    assert find(judged, "fig1", "Eq. (bound)").verdict == DIFFERS


def test_figure_2(judged):
    assert find(judged, "fig2", "1000 participants").verdict == DIFFERS
    assert find(judged, "fig2", "5000 participants").verdict == AGREES
    assert find(judged, "fig2", "two printed numbers").verdict == DIFFERS
    assert find(judged, "fig2", "obvious accuracy improvement").verdict == AGREES
    slopes = find(judged, "fig2", "inversely proportional to the population size, on all three")
    assert slopes.verdict == AGREES
    assert slopes.ours.count("-1.00") == 3


def test_figures_3_to_5(judged):
    for study, count in (("fig3", 2), ("fig4", 4), ("fig5", 4)):
        found = [each.verdict for each in judged if each.study == study]
        assert found == [AGREES] * count


def test_table_1(judged):
    wrong = {each.claim for each in judged if each.study == "table1" and each.verdict == DIFFERS}
    assert len(wrong) == 6
    assert any("2nN+N" in claim for claim in wrong)
    assert sum("adaptive" in claim for claim in wrong) == 5


def test_table_2(judged):
    cells = [each for each in judged if each.study == "table2"]
    weights = [each for each in cells if each.claim.endswith("weights of OWA/VWA")]
    assert len(weights) == 8
    assert {each.verdict for each in weights} == {AGREES}
    errors = {each.claim: each.verdict for each in cells if each.claim.endswith("MSE")}
    assert len(errors) == len(table2.ERRORS) == 16
    agreeing = {claim for claim, verdict in errors.items() if verdict == AGREES}
    uniform = {f"{s}, uniform, {m}: MSE" for s in ("s1", "s2", "s3", "s4") for m in ("OWA/VWA", "UWA")}
    assert agreeing == uniform - {"s3, uniform, OWA/VWA: MSE"}
    assert find(judged, "table2", "same for both data distributions").verdict == AGREES
    assert find(judged, "table2", "normal distribution").verdict == DIFFERS
    assert find(judged, "table2", "OWA (numerical").verdict == AGREES


def test_set_up_is_judged_with_all_studies_only(judged, results):
    assert Counter(each.verdict for each in judged if each.study == "set-up") == {CANNOT: 3, DIFFERS: 1}
    alone = verdicts({"fig2": results["fig2"]})
    assert {each.study for each in alone} == {"fig2"}


def test_tally_counts_everything(judged):
    counted = tally(judged)
    assert sum(counted.values()) == len(judged)
    assert counted[CANNOT] == 4
    assert all(each.claim and each.ours and each.why for each in judged)


def test_printed_values_are_judged_and_not_typed(results, monkeypatch):
    monkeypatch.setitem(fig2.PRINTED, 1000, "4.5e-3")
    told = fig2.verdicts(results["fig2"])
    assert find(told, "fig2", "1000 participants").verdict == AGREES
    assert find(told, "fig2", "two printed numbers").verdict == AGREES
    monkeypatch.setitem(table2.WEIGHTS, "s1", (0.0316, 0.1477, 0.3045, 0.5164))
    assert find(table2.verdicts(results["table2"]), "table2", "s1, normal: weights").verdict == DIFFERS


def test_a_wrong_theory_would_change_the_verdict(results):
    """DPDS with a third of its error would no longer fit the printed 0.9e-3: the judge looks at what was computed."""
    shrunk = [replace(line, expected=scaled(line.expected, 1 / 3)) for line in results["fig2"]]
    assert find(fig2.verdicts(shrunk), "fig2", "5000 participants").verdict == DIFFERS
    assert find(fig2.verdicts(shrunk), "fig2", "inversely proportional", "three").verdict == DIFFERS


def test_levels_are_those_of_the_data(judged):
    assert len(fig1.levels()) == 30
    assert all(0 < theorem < real < 1 for _, _, theorem, real in fig1.levels())

"""Verdicts: how they are reached, and what they are; on lines made from the theory alone, so nothing here is chance."""

from collections import Counter
from dataclasses import replace

import pytest

from faircount.experiments.studies import fig1, fig2, fig3, fig4, fig5, table2
from faircount.experiments.studies.judging import (
    AGREES,
    ARITHMETIC,
    CANNOT,
    DIFFERS,
    RUNS,
    THEORY,
    chance,
    everywhere,
    half_unit,
    number,
    ordered,
    readings,
    scaled,
    tail_probability,
)
from faircount.experiments.studies.registry import STUDIES
from faircount.experiments.studies.study import Expected, Line
from faircount.experiments.studies.verdicts import remarks, tally, verdicts


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
    return {name: lines_of(name) for name in STUDIES if name not in ("fig1_exact", "poisoning")}


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


def test_no_average_above_zero_is_impossible():
    """Two runs of one large item: the law with that skewness begins at a fifth of the mean, real averages do not."""
    expected = Expected(1.0, 1.1, 2.75)
    found = [tail_probability(value, expected, 2) for value in (0.5, 0.1, 0.01)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1e-3


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


def line(mean, error=0.1):
    return Line("x", {}, "", "", 1, 20, mean, error, mean, mean, Expected(1.0, error * 20**0.5))


def test_an_order_is_decided_by_the_runs():
    clear, unclear = (line(2.0), line(1.0)), (line(1.1), line(1.0))
    assert ordered([[clear], [clear, clear]])[0] == AGREES
    assert ordered([[unclear]])[0] == CANNOT
    assert ordered([[(line(1.0), line(2.0))]])[0] == DIFFERS
    assert ordered([[clear]] * 20 + [[(line(1.0), line(2.0))]])[0] == DIFFERS  # one that is surely the other way round
    assert ordered([[unclear]] * 100) == (AGREES, "measured at 100 of 100 pairs, together 7.1 standard errors")
    assert ordered([[unclear] * 100])[0] == CANNOT  # the same lines a hundred times prove no more than once
    assert ordered([[clear]], factor=2.0)[0] == CANNOT


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
    slopes = find(judged, "fig2", "obvious accuracy improvement", "inversely proportional")
    assert slopes.verdict == AGREES
    assert slopes.ours.count("-1.00") == 3


def test_figures_3_to_5(judged):
    for study, count in (("fig3", 2), ("fig4", 2), ("fig5", 1)):
        found = [each.verdict for each in judged if each.study == study]
        assert found == [AGREES] * count


def test_table_1(judged):
    cells = [each for each in judged if each.study == "table1"]
    wrong = {each.claim for each in cells if each.verdict == DIFFERS}
    assert len(wrong) == 8
    assert any("2nN+N" in claim for claim in wrong)
    assert sum(claim.startswith("TSS, user") for claim in wrong) == 4
    assert sum("what TSS' adds" in claim for claim in wrong) == 2
    assert find(judged, "table1", "average user's costs").verdict == DIFFERS
    assert find(judged, "table1", "DPDS, user: rounds").verdict == AGREES
    assert find(judged, "table1", "TSS, S2: field elements sent: 0").verdict == AGREES


def test_table_2(judged):
    cells = [each for each in judged if each.study == "table2"]
    weights = [each for each in cells if "weights of OWA/VWA" in each.claim]
    assert len(weights) == 4
    assert {each.verdict for each in weights} == {AGREES}
    errors = {each.claim: each.verdict for each in cells if each.claim.endswith("MSE")}
    assert len(errors) == len(table2.ERRORS) == 16
    agreeing = {claim for claim, verdict in errors.items() if verdict == AGREES}
    uniform = {f"{s}, uniform, {m}: MSE" for s in ("s1", "s2", "s3", "s4") for m in ("OWA/VWA", "UWA")}
    assert agreeing == uniform - {"s3, uniform, OWA/VWA: MSE"}
    assert find(judged, "table2", "normal distribution").verdict == DIFFERS
    assert find(judged, "table2", "OWA (numerical").verdict == AGREES
    assert find(judged, "table2", "1/N sum").verdict == DIFFERS


def test_every_verdict_says_what_decided_it(judged):
    counted = Counter(each.decided_by for each in judged)
    assert set(counted) == {RUNS, THEORY, ARITHMETIC}
    assert all(each.claim and each.ours and each.why for each in judged)
    assert {each.study for each in judged if each.decided_by == RUNS} == {"fig2", "fig3", "fig4", "fig5", "table1"}


def test_nothing_is_judged_twice(judged):
    claims = [(each.study, each.claim) for each in judged]
    assert len(set(claims)) == len(claims)


def test_what_cannot_fail_is_a_remark(judged):
    assert [each.place for each in remarks()] == ["IV-A1", "IV-A1", "IV-B1", "IV-B4"]
    assert all(each.here for each in remarks())
    assert not {each.claim for each in judged} & {each.paper for each in remarks()}


def test_a_study_whose_runs_contradict_its_theory_concludes_nothing(results):
    sound, void = verdicts({"fig2": results["fig2"]}), verdicts({"fig2": results["fig2"]}, ["fig2"])
    for before, after in zip(sound, void, strict=True):
        if before.decided_by == ARITHMETIC:
            assert after == before
        else:
            assert after.verdict == CANNOT
            assert "contradict" in after.why


def test_tally_counts_everything(judged):
    counted = tally(judged)
    assert list(counted) == [DIFFERS, CANNOT, AGREES]
    assert sum(counted.values()) == len(judged)
    assert counted[CANNOT] == 1


def test_runs_decide_what_they_decide(results):
    """Errors of 1,000 users at every size, and no difference between the methods: the claims fall."""
    flat = [replace(each, mean=1e-3) for each in results["fig2"]]
    assert find(fig2.verdicts(flat), "fig2", "inversely proportional", "on all").verdict == DIFFERS
    for module, name in ((fig3, "fig3"), (fig4, "fig4"), (fig5, "fig5")):
        level = [replace(each, mean=1e-3) for each in results[name]]
        assert {each.verdict for each in module.verdicts(level)} <= {CANNOT, DIFFERS}


def test_printed_values_are_judged_and_not_typed(results, monkeypatch):
    monkeypatch.setitem(fig2.PRINTED, 1000, "4.5e-3")
    told = fig2.verdicts(results["fig2"])
    assert find(told, "fig2", "1000 participants").verdict == AGREES
    assert find(told, "fig2", "two printed numbers").verdict == AGREES
    monkeypatch.setitem(table2.WEIGHTS, "s1", (0.0316, 0.1477, 0.3045, 0.5164))
    assert find(table2.verdicts(results["table2"]), "table2", "s1: weights").verdict == DIFFERS


def test_a_wrong_theory_would_change_the_verdict(results):
    """DPDS with a third of its error would no longer fit the printed 0.9e-3: the judge looks at what was computed."""
    shrunk = [replace(line, expected=scaled(line.expected, 1 / 3)) for line in results["fig2"]]
    assert find(fig2.verdicts(shrunk), "fig2", "5000 participants").verdict == DIFFERS


def test_levels_are_those_of_the_data(judged):
    assert len(fig1.levels()) == 30
    assert all(0 < theorem < real < 1 for _, _, theorem, real in fig1.levels())

"""Verdicts: how they are reached, and what they are.

They are computed on lines that measured exactly what the theory expects, so nothing is random here.
"""

from dataclasses import replace

import pytest
from paper_lines import lines_at_theory

from faircount.reproduction.studies import fig1, fig2, fig3, fig4, fig5, table2
from faircount.reproduction.studies.judging import (
    AGREES,
    ARITHMETIC,
    DIFFERS,
    RUNS,
    THEORY,
    UNDECIDED,
    half_unit,
    judge_all,
    judge_number,
    judge_order,
    judge_readings,
    printed_probability,
    rescale,
    tail_probability,
)
from faircount.reproduction.studies.registry import STUDIES
from faircount.reproduction.studies.study import Expected, Line
from faircount.reproduction.studies.verdicts import count_verdicts, judge_studies, list_remarks


@pytest.fixture(scope="module")
def results():
    # The second edition and the poisoning study are not in the paper.
    names = [name for name in STUDIES if name not in ("fig1_exact", "poisoning")]
    return {name: lines_at_theory(name) for name in names}


@pytest.fixture(scope="module")
def all_verdicts(results):
    return judge_studies(results)


def of_study(verdicts, study):
    return [verdict for verdict in verdicts if verdict.study == study]


def find(verdicts, study, *words):
    """The only verdict of a study whose claim contains all the words."""
    found = of_study(verdicts, study)
    for word in words:
        found = [verdict for verdict in found if word in verdict.claim]
    assert len(found) == 1, found
    return found[0]


def test_half_a_unit_of_the_last_digit():
    assert half_unit("2.4e-3") == pytest.approx(0.05e-3)
    assert half_unit("1.124e-3") == pytest.approx(0.0005e-3)
    assert half_unit("0.01") == pytest.approx(0.005)
    assert half_unit("1.4e-2") == pytest.approx(0.05e-2)


@pytest.mark.parametrize("value", [0.6, 0.9, 1.2, 1.5])
def test_the_distribution_of_an_average_is_exact_for_normal_errors(value):
    from scipy.stats import chi2

    items = 5
    runs = 20
    distribution = chi2(items * runs, scale=1 / (items * runs))
    tail = distribution.cdf(value) if value < 1 else distribution.sf(value)
    expected = Expected(1.0, (2 / items) ** 0.5, (8 / items) ** 0.5)
    found = tail_probability(value, expected, runs)
    assert found == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    # Without a skewness it is the gamma distribution with that variance, which is the same here.
    plain = Expected(1.0, (2 / items) ** 0.5)
    assert tail_probability(value, plain, runs) == pytest.approx(found, rel=1e-9)


def test_no_average_above_zero_is_impossible():
    """Two runs of one large item.

    The distribution with that skewness begins at a fifth of the mean; real averages do not.
    """
    expected = Expected(1.0, 1.1, 2.75)
    found = [tail_probability(value, expected, 2) for value in (0.5, 0.1, 0.01)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1e-3


def test_probabilities_allow_for_rounding_and_fall_with_distance():
    expected = Expected(2.44e-3, 1e-3, 1.0)
    assert printed_probability("2.4e-3", expected) == 1.0
    printed = ("2.5e-3", "2.9e-3", "3.4e-3", "5.0e-3")
    found = [printed_probability(number, expected) for number in printed]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1e-6
    # Without a known spread nothing excuses a difference.
    assert printed_probability("2.4e-3", Expected(3e-3)) == 0.0


def test_a_number_agrees_if_one_reading_fits():
    fits = Expected(1.0e-3, 0.2e-3, 0.5)
    misses = Expected(9.0e-3, 0.2e-3, 0.5)
    both = judge_number("x", "", "", "1.05e-3", {"a": misses, "b": fits}, "")
    assert both.verdict == AGREES
    assert judge_number("x", "", "", "1.05e-3", {"a": misses}, "").verdict == DIFFERS
    assert rescale(fits, 2.0) == Expected(2.0e-3, 0.4e-3, 0.5)


def test_claims_and_readings():
    assert judge_all([True, True]) == AGREES
    assert judge_all([True, False]) == DIFFERS
    # A claim about nothing is not confirmed.
    assert judge_all([]) == DIFFERS
    assert judge_readings({"a": True, "b": False}) == UNDECIDED
    assert judge_readings({"a": True, "b": True}) == AGREES
    assert judge_readings({"a": False}) == DIFFERS


def make_line(mean, error=0.1):
    expected = Expected(1.0, error * 20**0.5)
    return Line("x", {}, "", "", 1, 20, mean, error, mean, mean, expected)


CLEAR = (make_line(2.0), make_line(1.0))
UNCLEAR = (make_line(1.1), make_line(1.0))
REVERSED = (make_line(1.0), make_line(2.0))


@pytest.mark.parametrize(
    ("clusters", "verdict"),
    [
        ([[CLEAR], [CLEAR, CLEAR]], AGREES),
        ([[UNCLEAR]], UNDECIDED),
        ([[REVERSED]], DIFFERS),
        # One pair that is certainly the other way round refutes the claim.
        ([[CLEAR]] * 20 + [[REVERSED]], DIFFERS),
        # The same lines a hundred times prove no more than once.
        ([[UNCLEAR] * 100], UNDECIDED),
    ],
)
def test_an_order_is_decided_by_the_runs(clusters, verdict):
    assert judge_order(clusters)[0] == verdict


def test_many_independent_pairs_decide_together():
    verdict, measured = judge_order([[UNCLEAR]] * 100)
    assert verdict == AGREES
    assert measured == "measured at 100 of 100 pairs, together 7.1 standard errors"
    # Twice as large is not more than twice as large.
    assert judge_order([[CLEAR]], factor=2.0)[0] == UNDECIDED


def test_figure_1(all_verdicts):
    assert find(all_verdicts, "fig1", "around 0.01").verdict == AGREES
    gain = find(all_verdicts, "fig1", "over 90%", "Gowalla")
    assert gain.verdict == UNDECIDED
    # The three readings of the cells have 9, 12 and 25 items.
    assert "at least 15 items" in gain.why
    assert find(all_verdicts, "fig1", "epsilon < 0.6", "Gowalla").verdict == DIFFERS
    assert find(all_verdicts, "fig1", "Similar", "over 90%").verdict == AGREES
    assert find(all_verdicts, "fig1", "Similar", "epsilon < 0.6").verdict == DIFFERS
    level = find(all_verdicts, "fig1", "same privacy level")
    assert level.verdict == DIFFERS
    assert "exact delta of DPDS at 0 of 30" in level.ours
    assert find(all_verdicts, "fig1", "budget is small").verdict == AGREES
    assert find(all_verdicts, "fig1", "Eq. (bound)").verdict == DIFFERS


def test_figure_2(all_verdicts):
    assert find(all_verdicts, "fig2", "1000 participants").verdict == DIFFERS
    assert find(all_verdicts, "fig2", "5000 participants").verdict == AGREES
    assert find(all_verdicts, "fig2", "two printed numbers").verdict == DIFFERS
    slopes = find(all_verdicts, "fig2", "obvious accuracy improvement", "inversely proportional")
    assert slopes.verdict == AGREES
    # On lines from theory the slope is exact on all three data sets.
    assert slopes.ours.count("-1.00") == 3


@pytest.mark.parametrize(("study", "claims"), [("fig3", 2), ("fig4", 2), ("fig5", 1)])
def test_figures_3_to_5(all_verdicts, study, claims):
    found = [verdict.verdict for verdict in of_study(all_verdicts, study)]
    assert found == [AGREES] * claims


def test_table_1(all_verdicts):
    wrong = set()
    for verdict in of_study(all_verdicts, "table1"):
        if verdict.verdict == DIFFERS:
            wrong.add(verdict.claim)
    # One formula of DPDS, four of TSS, two of TSS', and the claimed reduction.
    assert len(wrong) == 8
    listed = "\n".join(sorted(wrong))
    assert "2nN+N" in listed
    assert listed.count("TSS, user") == 4
    assert listed.count("what TSS' adds") == 2
    assert find(all_verdicts, "table1", "average user's costs").verdict == DIFFERS
    assert find(all_verdicts, "table1", "DPDS, user: rounds").verdict == AGREES
    assert find(all_verdicts, "table1", "TSS, S2: field elements sent: 0").verdict == AGREES


def test_weights_of_table_2(all_verdicts):
    for setting in ("s1", "s2", "s3", "s4"):
        assert find(all_verdicts, "table2", f"{setting}: weights of OWA/VWA").verdict == AGREES
    assert find(all_verdicts, "table2", "OWA (numerical").verdict == AGREES


def test_errors_of_table_2(all_verdicts):
    errors = {}
    for verdict in of_study(all_verdicts, "table2"):
        if verdict.claim.endswith("MSE"):
            errors[verdict.claim] = verdict.verdict
    assert len(errors) == 16
    assert len(table2.ERRORS) == 16
    # Seven of the eight errors on uniform data agree, and none on normal data.
    agreeing = {claim for claim, verdict in errors.items() if verdict == AGREES}
    uniform = {claim for claim in errors if "uniform" in claim}
    assert len(uniform) == 8
    assert agreeing == uniform - {"s3, uniform, OWA/VWA: MSE"}
    assert find(all_verdicts, "table2", "normal distribution").verdict == DIFFERS
    assert find(all_verdicts, "table2", "1/N sum").verdict == DIFFERS


def test_every_verdict_says_what_decided_it(all_verdicts):
    assert {verdict.decided_by for verdict in all_verdicts} == {RUNS, THEORY, ARITHMETIC}
    for verdict in all_verdicts:
        assert verdict.claim
        assert verdict.ours
        assert verdict.why
    by_runs = {verdict.study for verdict in all_verdicts if verdict.decided_by == RUNS}
    assert by_runs == {"fig2", "fig3", "fig4", "fig5", "table1"}


def test_nothing_is_judged_twice(all_verdicts):
    claims = [(verdict.study, verdict.claim) for verdict in all_verdicts]
    assert len(set(claims)) == len(claims)


def test_what_cannot_fail_is_a_remark(all_verdicts):
    remarks = list_remarks()
    assert [remark.place for remark in remarks] == ["IV-A1", "IV-A1", "IV-B1", "IV-B4"]
    claims = {verdict.claim for verdict in all_verdicts}
    for remark in remarks:
        assert remark.here
        assert remark.paper not in claims


def test_a_study_whose_runs_contradict_its_theory_concludes_nothing(results):
    lines = {"fig2": results["fig2"]}
    verdicts = judge_studies(lines)
    withdrawn = judge_studies(lines, ["fig2"])
    for before, after in zip(verdicts, withdrawn, strict=True):
        if before.decided_by == ARITHMETIC:
            assert after == before
        else:
            assert after.verdict == UNDECIDED
            assert "contradict" in after.why


def test_all_verdicts_are_counted(all_verdicts):
    counted = count_verdicts(all_verdicts)
    assert list(counted) == [DIFFERS, UNDECIDED, AGREES]
    assert sum(counted.values()) == len(all_verdicts)
    assert counted[UNDECIDED] == 1


def flatten(lines):
    """The same measured error everywhere."""
    return [replace(line, mean=1e-3) for line in lines]


def test_equal_errors_refute_the_inverse_proportion(results):
    verdicts = fig2.judge(flatten(results["fig2"]))
    assert find(verdicts, "fig2", "inversely proportional", "on all").verdict == DIFFERS


@pytest.mark.parametrize("module", [fig3, fig4, fig5])
def test_equal_errors_refute_an_order(results, module):
    verdicts = module.judge(flatten(results[module.STUDY.name]))
    assert {verdict.verdict for verdict in verdicts} <= {UNDECIDED, DIFFERS}


def test_printed_values_are_judged_and_no_verdict_is_written_by_hand(results, monkeypatch):
    # A number that theory expects makes the verdict agree.
    monkeypatch.setitem(fig2.PRINTED, 1000, "4.5e-3")
    verdicts = fig2.judge(results["fig2"])
    assert find(verdicts, "fig2", "1000 participants").verdict == AGREES
    assert find(verdicts, "fig2", "two printed numbers").verdict == AGREES
    # A weight that is off by two units of its last digit makes it differ.
    monkeypatch.setitem(table2.WEIGHTS, "s1", (0.0316, 0.1477, 0.3045, 0.5164))
    verdicts = table2.judge(results["table2"])
    assert find(verdicts, "table2", "s1: weights").verdict == DIFFERS


def test_a_wrong_theory_would_change_the_verdict(results):
    """With a third of its error DPDS would no longer fit the printed 0.9e-3."""
    shrunk = [replace(line, expected=rescale(line.expected, 1 / 3)) for line in results["fig2"]]
    assert find(fig2.judge(shrunk), "fig2", "5000 participants").verdict == DIFFERS


def test_the_exact_delta_is_larger_than_that_of_theorem_1():
    levels = fig1.privacy_levels()
    assert len(levels) == 30
    for level in levels:
        assert 0 < level.theorem1 < level.exact < 1

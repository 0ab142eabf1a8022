"""Figures and tables: points, theory against closed forms and known answers, and the second edition's curves."""

import math
from itertools import pairwise

import numpy as np
import pytest

from faircount.accounting import exact, two_stage
from faircount.core.errors import ParameterError
from faircount.estimation.weighting import combine
from faircount.experiments.studies import (
    equal_privacy,
    exact_curves,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    table1,
    table2,
    weighted_groups,
)
from faircount.experiments.studies.error_law import expected_error
from faircount.experiments.studies.registry import STUDIES, measure, task
from faircount.experiments.studies.squared_errors import acted, blend, estimates
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, Expected, Line, holders, one, select
from faircount.mechanisms.local_frequency import GRR
from faircount.mechanisms.sampling import DPDS


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_points_are_distinct_and_users_act_at_one_at_least(study):
    points = study.named()
    assert len({tuple(sorted(point.items())) for point in points}) == len(points)
    assert any(point["how"] == ACTING for point in points)
    assert all(point["study"] == study.name for point in points)


def test_the_papers_grids():
    assert fig1.EPSILONS == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert {1e-7, 0.5} <= set(fig1.DELTAS)
    assert fig2.SIZES == (1000, 2000, 3000, 4000, 5000)
    assert fig2.EPSILONS == (0.2, 0.4, 0.6, 0.8, 1.0)
    assert [(len(holders(data)), fig3.reported(len(holders(data)))) for data in DATA] == [(9, 4), (19, 8), (30, 12)]
    assert fig5.values().size == 10_000
    assert np.abs(fig5.values()).max() <= 1


def test_every_item_of_the_figures_has_one_percent_of_the_users():
    for data in DATA:
        assert sum(holders(data)) == 1000
        assert min(holders(data)) >= 10
    assert min(holders("gowalla-12", 1000, 0.0)) < 10
    assert sum(holders("gowalla", 5000)) == 5000
    assert holders("census") == holders("census")


def _theory(module, **wanted):
    points = [point for point in module.points() if all(point.get(k) == v for k, v in wanted.items())]
    assert len(points) == 1
    return module.STUDY.theory(points[0])


def test_theory_of_figure_1_is_the_papers_formulas():
    for data in DATA:
        for epsilon in (0.1, 0.5, 1.0):
            here = {"data": data, "epsilon": epsilon, "how": COUNTS}
            sampled = _theory(fig1, method="dpds", **here)["noise"].mean
            assert sampled == pytest.approx(1 / (1000 * math.expm1(epsilon)), rel=1e-12)
            for delta in (1e-7, 0.5):
                items = len(holders(data))
                noisy = _theory(fig1, method="dpdg", delta=delta, **here)["noise"].mean
                assert noisy == pytest.approx(items * 4 * math.log(1.25 / delta) / (1000 * epsilon) ** 2, rel=0.005)
                printed = _theory(fig1, method="dpdg as printed", delta=delta, **here)["noise"].mean
                assert printed == pytest.approx(noisy / 1000, rel=0.005)


def test_theory_of_figures_2_and_3():
    for users in fig2.SIZES:
        found = _theory(fig2, data="census", users=users, epsilon=0.4, how=COUNTS)["noise"].mean
        assert found == pytest.approx(1 / (users * math.expm1(0.4)), rel=1e-12)
    for budget in (0.0, 2.0):
        found = _theory(fig3, data="uniform", p=0.3, epsilon_star=budget, how=COUNTS)["noise"].mean
        q = 0.3 * 0.4 * math.exp(budget) / (0.4 * math.exp(budget) + 0.6)
        assert found == pytest.approx((1 - q) / (q * 1000), rel=1e-12)


NOISE_KNOWN = {"s1": 1.20e-3, "s2": 1.27e-3, "s3": 1.97e-3, "s4": 0.985e-3}
POPULATION_KNOWN = {"s1": 1.71e-3, "s2": 2.04e-3, "s3": 3.79e-3, "s4": 1.30e-3}


@pytest.mark.parametrize("setting", weighted_groups.SETTINGS)
def test_theory_of_table_2_has_the_known_answers(setting):
    found = _theory(table2, data="uniform", setting=setting, how=COUNTS)
    assert found["vwa|noise"].mean == pytest.approx(NOISE_KNOWN[setting], rel=0.005)
    assert found["vwa|population"].mean == pytest.approx(POPULATION_KNOWN[setting], rel=0.005)
    assert found["owa|noise"].mean == pytest.approx(found["vwa|noise"].mean, rel=1e-9)
    mean = np.mean([1 / math.expm1(each) for each in weighted_groups.SETTINGS[setting]])
    assert found["uwa|noise"].mean == pytest.approx(mean / 1000, rel=1e-12)
    assert found["uwa|population"] == found["uwa|noise"]
    assert found["total|population"].mean < found["vwa|population"].mean < found["uwa|population"].mean
    assert table2.found_weights(setting, "normal") == pytest.approx(table2.WEIGHTS[setting], abs=0.6e-4)


def test_total_variance_known_answers():
    assert _theory(table2, data="uniform", setting="s1", how=COUNTS)["total|population"].mean == pytest.approx(
        1.55e-3, rel=0.01
    )
    assert _theory(table2, data="uniform", setting="s3", how=COUNTS)["total|population"].mean == pytest.approx(
        3.32e-3, rel=0.01
    )


def test_cpa_is_everybody_at_the_smallest_epsilon():
    found = _theory(fig4, data="gowalla", setting="s4", how=COUNTS)["cpa|noise"].mean
    assert found == pytest.approx(1 / (1000 * math.expm1(0.1)), rel=1e-9)


def test_the_split_keeps_everybody_in_groups_of_equal_size():
    parts = weighted_groups.split(holders("normal", 1000, 0.0), np.random.default_rng(1), 5)
    assert parts.shape == (4, 5, 30)
    assert np.all(parts.sum(axis=2) == 250)
    assert np.all(parts.sum(axis=0) == np.array(holders("normal", 1000, 0.0)))


@pytest.mark.parametrize("how", [COUNTS, ACTING])
def test_without_noise_estimates_are_the_truth(how):
    counts = np.tile(np.array([5, 3, 2]), (2, 1))
    found = estimates(DPDS(items=3, p=1.0), counts, how, np.random.default_rng(2))
    assert found == pytest.approx(counts / 10)


@pytest.mark.parametrize("method", equal_privacy.METHODS)
def test_estimates_are_the_mechanisms_own(method):
    made = equal_privacy.mechanism(method, holders("gowalla"), 1.0)
    counts = np.array([holders("gowalla")])
    found = estimates(made, counts, COUNTS, np.random.default_rng(4))
    sums = found * 1000 * (made.channel(1000).hit - made.channel(1000).miss)
    offset = -made.channel(1000).estimate(np.zeros(9), 1000)[0]
    back = made.estimate(sums[0] + offset * 1000 * (made.channel(1000).hit - made.channel(1000).miss), 1000)
    assert back == pytest.approx(found[0], abs=1e-9)


def test_blending_is_the_librarys_combination():
    rng = np.random.default_rng(5)
    w = np.array([0.1, 0.2, 0.3, 0.4])
    for shape in ((4,), (4, 7), (4, 7, 3)):
        rows = rng.random(shape)
        assert blend(rows, w) == pytest.approx(combine(rows, w), rel=1e-13)


def test_acting_needs_the_mechanisms_own_labels():
    found = acted(DPDS(items=("a", "b"), users=4, p=1.0), np.array([3, 1]), np.random.default_rng(2))
    assert found == pytest.approx([0.75, 0.25])


def test_dependent_channels_are_drawn_by_the_mechanism_itself():
    counts = np.array([[50, 30, 20]])
    found = estimates(GRR(items=3, epsilon=20.0), counts, COUNTS, np.random.default_rng(2))
    assert found[0] == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)


def test_crossing_solves_its_equation():
    for items in (9, 25, 30):
        epsilon = fig1.crossing(items, 0.5)
        assert fig1.sampling_error(1000, epsilon) == pytest.approx(fig1.gaussian_error(1000, items, epsilon, 0.5))
        assert fig1.items_for_crossing(epsilon, 0.5) == pytest.approx(items, rel=1e-6)


def test_users_needed_is_the_smallest_number(monkeypatch):
    monkeypatch.setattr(exact_curves, "WIDE_EPSILONS", (0.5, 1.0))
    records = {(each["method"], each["epsilon"]): int(each["users"]) for each in exact_curves.users_needed()}
    assert records["laplace", 1.0] == 300
    assert records["oue", 1.0] == pytest.approx(36_300, rel=0.01)
    for method in equal_privacy.METHODS:
        users = records[method, 0.5]
        assert exact_curves.half_width(method, 0.5, users) <= 0.02
        assert exact_curves.half_width(method, 0.5, users - 1) > 0.02
        assert all(records[method, a] >= records[method, b] for a, b in pairwise(exact_curves.WIDE_EPSILONS))


def test_the_floor_allows_what_it_says():
    records = exact_curves.floor_effect()
    for each in records[:: len(records) // 12]:
        floor, p, epsilon = int(each["floor"]), float(each["p"]), float(each["epsilon"])
        assert exact.sampling_delta(floor - 1, p, epsilon) <= 1e-5
        assert exact.sampling_delta(floor - 1, min(1.0, p * 1.01), epsilon) > 1e-5
    assert all(float(each["error_ratio"]) > 1 for each in records)


def test_the_papers_p_on_data_as_they_are():
    records = exact_curves.floor_unmet()
    met = [each for each in records if each["floor"] == "met"]
    assert len(met) == 30
    assert all(float(each["exact_delta"]) > float(each["theorem1_delta"]) for each in met)
    real = [each for each in records if each["floor"] == "real"]
    assert all(0.05 < float(each["exact_delta"]) <= float(each["p"]) for each in real)


@pytest.mark.parametrize("budget", [0.0, 1.0])
def test_two_stage_is_private_against_s1_and_no_larger_p_is(budget):
    p, seen = exact_curves.two_stage_probability(50, budget, 1.0)
    delta = [two_stage.s1_delta(30, 12, p * factor, math.exp(budget), 50, 1.0) for factor in (0.9, 1.0, 1.01)]
    assert delta[0] < delta[1] <= 1e-5 < delta[2]
    assert seen == pytest.approx(12 * math.exp(budget) / (12 * math.exp(budget) + 18))


def test_groups_at_exact_privacy():
    records = {(each["setting"], each["method"]): each for each in exact_curves.groups_exact()}
    for setting in weighted_groups.SETTINGS:
        errors = {method: float(records[setting, method]["error"]) for method in ("laplace", "dpds", "decoys", "oue")}
        assert errors["laplace"] < errors["decoys"] < errors["dpds"] < errors["oue"]
        assert float(records[setting, "dpds, the paper's p"]["worst_delta"]) > 0.05


def test_equal_privacy_mechanisms_keep_their_promise():
    for method in equal_privacy.METHODS:
        made = equal_privacy.mechanism(method, holders("gowalla"), 0.5)
        strongest = made.guarantees(epsilon=0.5)[0]
        assert strongest.delta <= equal_privacy.DELTA, method


def test_counters_of_fixed_protocols_are_their_formulas():
    for protocol in table1.FIXED:
        point = {"protocol": protocol, "users": 60, "items": 10, "how": ACTING}
        counted = table1.task(point, np.random.default_rng(1), 2)
        expected = table1.theory(point)
        assert counted.keys() == expected.keys()
        assert all(np.all(counted[name] == expected[name].mean) for name in counted), protocol


def test_one_sweep_serves_several_studies_and_repeats_itself():
    studies = [STUDIES["fig2"], STUDIES["table2"]]
    first, again = (measure(studies, 2, seed=7, workers=1) for _ in range(2))
    assert first == again
    assert set(first) == {"fig2", "table2"}
    assert len(first["fig2"]) == len(fig2.points())
    assert measure([STUDIES["fig2"]], 2, seed=7, workers=1)["fig2"] == first["fig2"]


def test_a_line_has_both_normalizations():
    line = Line("fig1", {"data": "gowalla"}, "dpds", "noise", 9, 4, 0.9, 0.1, 0.7, 1.1, Expected(0.8, 0.4))
    record = line.record()
    assert (record["mse_summed"], record["mse_per_item"]) == (0.9, pytest.approx(0.1))
    assert (record["theory_summed"], record["theory_per_item"]) == (0.8, pytest.approx(0.8 / 9))
    assert line.z == pytest.approx(0.5)
    assert select([line], data="gowalla", method="dpds") == [line]
    with pytest.raises(ParameterError, match="0 lines"):
        one([line], data="census")


def test_tasks_are_found_by_the_name_of_the_study():
    point = {"study": "fig2", **fig2.points()[0]}
    found = task(point, np.random.default_rng(3), 2)
    assert found.keys() == fig2.STUDY.theory(point).keys()


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_at_equal_privacy_laplace_is_best_and_sampling_is_last_but_for_local_ones(epsilon):
    for data in DATA:
        error = {
            method: expected_error(equal_privacy.mechanism(method, holders(data), epsilon), holders(data)).mean
            for method in equal_privacy.METHODS
        }
        assert min(error, key=error.__getitem__) == "laplace"
        assert max(error["decoys"], error["dpdg"]) < error["dpds"] < min(error["oue"], error["grr"])

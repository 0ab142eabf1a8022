"""Groups with their own epsilon, planned on their own and put together."""

import numpy as np
import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation import weighting
from faircount.planning.groups import GroupsPlan, plan_groups
from faircount.planning.plan import plan

FOUR = {"a": (250, 0.1), "b": (250, 0.4), "c": (250, 0.7), "d": (250, 1.0)}


def test_each_group_is_planned_as_if_alone() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    for name, (users, epsilon) in FOUR.items():
        alone = plan(users, 30, epsilon, 1e-6, purpose="table")
        there = made.plans[name]
        assert there.to_dict() == alone.to_dict()


def test_weights_and_errors_are_those_of_the_formulas() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    n = np.full(4, 250.0)
    errors = [
        group.recommended.standard_error for group in made.plans.values() if group.recommended
    ]
    noise = n * 30 * np.array(errors) ** 2
    assert made.combined["uwa"].weights == (0.25,) * 4
    np.testing.assert_allclose(made.combined["vwa"].weights, weighting.vwa(n, noise))
    np.testing.assert_allclose(made.combined["vwa"].noise_error ** 2 * 30, 1 / (n / noise).sum())
    np.testing.assert_allclose(
        made.combined["total"].weights, weighting.total_variance(n, noise, 1 - 1 / 30)
    )


def test_what_assumes_nothing_is_recommended_and_weights_by_variance_stand_beside() -> None:
    """Weights by variance were recommended, although they are biased where groups differ."""
    made = plan_groups(FOUR, 30, 1e-6)
    assert made.best == "cpa"
    assert made.best_if_alike == "total"
    assert min(made.combined, key=lambda name: made.combined[name].noise_error) in ("vwa", "owa")
    assert made.verdict.startswith("combine with cpa")
    assert "only if the groups answer alike, total has" in made.verdict
    large = plan_groups({"strict": (100, 0.5), "open": (5000, 1.0)}, 30, 1e-6, floor=3)
    assert large.best in ("uwa", "cpa")


def test_owa_solves_for_the_weights_of_vwa() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    np.testing.assert_allclose(
        made.combined["owa"].weights, made.combined["vwa"].weights, atol=1e-6
    )


def test_one_survey_of_all_wins_where_epsilons_hardly_differ() -> None:
    """Noise is per group, so four groups have four times the noise of one survey of all."""
    made = plan_groups({name: (250, 1.0 + 0.01 * i) for i, name in enumerate("abcd")}, 12, 1e-6)
    assert made.best == "cpa"
    assert made.combined["cpa"].standard_error < 0.7 * made.combined["uwa"].standard_error


def test_json_has_groups_and_every_way() -> None:
    said = plan_groups(FOUR, 30, 1e-6).to_dict()
    keys = {"best", "best_if_alike", "verdict", "worthwhile", "combined", "groups", "notes"}
    assert keys <= set(said)
    assert set(said["combined"]) == {"uwa", "vwa", "owa", "total", "cpa"}
    assert [group["group"] for group in said["groups"]] == list(FOUR)
    assert all(sum(way["weights"]) == pytest.approx(1) for way in said["combined"].values())


def test_one_group_is_no_groups() -> None:
    with pytest.raises(ParameterError, match="at least 2 groups"):
        plan_groups({"a": (10, 1.0)}, 3, 1e-6)


def test_a_group_that_nothing_serves_is_named() -> None:
    with pytest.raises(RefusedError, match="group tiny"):
        plan_groups({"tiny": (10, 1e-7), "b": (10, 1.0)}, 3, 1e-12)


def test_a_plan_for_groups_is_a_table_in_pandas_and_in_a_notebook() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    frame = made.to_frame()
    assert list(frame.index) == list(FOUR)
    assert frame["weight"].isna().all()  # cpa is one survey
    assert frame.attrs["verdict"] == made.verdict
    shown = made._repr_html_()
    assert shown.count("<tr>") == 5
    assert made.verdict in shown
    assert repr(made) == f"<GroupsPlan: {made.verdict}>"


def test_the_weights_of_a_frame_are_those_of_the_recommended_way() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    without_cpa = {name: way for name, way in made.combined.items() if name != "cpa"}
    frame = GroupsPlan(made.plans, without_cpa).to_frame()
    assert tuple(frame["weight"]) == (0.25,) * 4


def test_one_survey_of_everybody_has_no_weights_of_groups() -> None:
    made = plan_groups({"a": (400, 0.99), "b": (400, 1.0)}, 30, 1e-6)
    assert made.best == "cpa"
    assert made.to_frame()["weight"].isna().all()

"""Groups with their own epsilon, planned on their own and put together."""

import numpy as np
import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation import weighting
from faircount.planning.groups import plan_groups
from faircount.planning.plan import plan

FOUR = {"a": (250, 0.1), "b": (250, 0.4), "c": (250, 0.7), "d": (250, 1.0)}


def test_each_group_is_planned_as_if_alone() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    for name, (users, epsilon) in FOUR.items():
        alone = plan(users, 30, epsilon, 1e-6)
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


def test_total_variance_weights_are_best_and_noise_weights_have_the_least_noise() -> None:
    made = plan_groups(FOUR, 30, 1e-6)
    assert made.best == "total"
    assert min(made.combined, key=lambda name: made.combined[name].noise_error) == "vwa"
    assert "only if the groups answer alike" in made.verdict


def test_one_survey_of_all_wins_where_epsilons_hardly_differ() -> None:
    """Noise is per group, so four groups have four times the noise of one survey of all."""
    made = plan_groups({name: (250, 1.0 + 0.01 * i) for i, name in enumerate("abcd")}, 12, 1e-6)
    assert made.best == "cpa"
    assert made.combined["cpa"].standard_error < 0.7 * made.combined["uwa"].standard_error


def test_json_has_groups_and_every_way() -> None:
    said = plan_groups(FOUR, 30, 1e-6).to_dict()
    assert {"best", "verdict", "worthwhile", "combined", "groups", "notes"} <= set(said)
    assert set(said["combined"]) == {"uwa", "vwa", "total", "cpa"}
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
    assert tuple(frame["weight"]) == made.combined["total"].weights
    assert frame.attrs["verdict"] == made.verdict
    shown = made._repr_html_()
    assert shown.count("<tr>") == 5
    assert made.verdict in shown
    assert repr(made) == f"<GroupsPlan: {made.verdict}>"


def test_one_survey_of_everybody_has_no_weights_of_groups() -> None:
    made = plan_groups({"a": (400, 0.99), "b": (400, 1.0)}, 30, 1e-6)
    assert made.best == "cpa"
    assert made.to_frame()["weight"].isna().all()

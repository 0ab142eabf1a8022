"""Plans, statements and audits as values, JSON, data frames, notebook output and figures."""

import json

import matplotlib
import pytest

import faircount as fc
from faircount.planning.plan import compare_mechanisms

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def plan() -> object:
    return compare_mechanisms(200, 4, 1.0)


def test_a_plan_compares_and_hashes(plan) -> None:
    again = compare_mechanisms(200, 4, 1.0, 1e-6)
    assert plan == again
    assert hash(plan) == hash(again)
    assert len({*plan.options, *again.options}) == len(plan.options)
    assert plan != compare_mechanisms(200, 5, 1.0)


def test_a_plan_carries_what_was_asked_for(plan) -> None:
    said = json.loads(json.dumps(plan.to_dict()))
    assert said["version"] == 1
    assert said["requested"] == {"epsilon": 1.0, "delta": 1e-6}
    assert said["users"] == 200


def test_a_plan_as_a_frame(plan) -> None:
    frame = plan.to_frame()
    assert frame.index[0] == plan.recommended.name
    assert frame["standard_error"].iloc[0] == plan.recommended.standard_error
    assert frame["sound"].tolist() == [option.sound for option in plan.options]
    assert frame.attrs["verdict"] == plan.verdict


def test_a_plan_in_a_notebook(plan) -> None:
    page = plan._repr_html_()
    assert plan.verdict in page
    assert page.count("<tr>") == 1 + sum(
        option.sound + (option.servers is not None) for option in plan.options
    )
    assert "decoys in servers" in page
    assert plan.verdict in repr(plan)


def test_a_plan_draws_itself(plan) -> None:
    from matplotlib import pyplot

    axes = plan.plot()
    assert axes.get_xlabel() == "users"
    assert plan.recommended.name in [text.get_text() for text in axes.texts]
    pyplot.close("all")


def test_statements_about_the_same_are_equal() -> None:
    one, two = fc.privacy("laplace", epsilon=1.0), fc.privacy("laplace", epsilon=1.0)
    assert one == two
    assert hash(one) == hash(two)


def test_an_audit_draws_itself() -> None:
    from matplotlib import pyplot

    grr = fc.GRR(items=3, epsilon=2.0)
    for claim, verdict in ((2.0, "not refuted"), (0.1, "REFUTED")):
        made = fc.audit(grr, epsilon=claim, delta=0.0, runs=2000, entropy=fc.SeededStream(1))
        axes = made.plot()
        assert axes.get_title(loc="left") == verdict
        assert axes.patches[0].get_width() == made.lower_bound
    pyplot.close("all")


def test_an_audit_is_a_value() -> None:
    one, two = (
        fc.audit(fc.GRR(items=3, epsilon=1.0), runs=200, entropy=fc.SeededStream(1))
        for _ in range(2)
    )
    assert one == two
    assert hash(one) == hash(two)
    said = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert said["claim"] == {"epsilon": 1.0, "delta": 0.0}
    assert one.to_frame().loc["grr", "lower_bound"] == one.lower_bound
    assert "not refuted" in one._repr_html_()
    assert "not refuted" in repr(one)

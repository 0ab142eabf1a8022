"""Plans of questionnaires whose noise participants draw, and what topologies cost in error."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.accounting.composition import compose_randomized_response
from faircount.cli import main
from faircount.core.errors import ParameterError
from faircount.core.questions.form import make_form
from faircount.mechanisms.registry import FREQUENCY, MEAN
from faircount.planning.forecast import forecast_sheet
from faircount.planning.one_question import REASONS
from faircount.planning.sheet_comparison import compare_ways, describe_costs
from faircount.planning.split_plan import Crowd, make_split_plan
from faircount.protocol import MASKED


def yes(number: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "yes", "text": f"q{number}", **fields}


def one(items: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "one", "text": "q", "items": [str(item) for item in range(items)], **fields}


NUMBER = {"kind": "number", "text": "n", "low": 0, "high": 20, "skip": True}


def test_equal_questions_get_equal_shares_and_unlike_ones_more_or_less() -> None:
    equal = make_split_plan(make_form([yes(0), yes(1), yes(2)]), 300, 1.0, Crowd(300))
    assert [line.epsilon for line in equal.lines] == pytest.approx([1 / 3] * 3)
    # One person moves two counts of the second question, so that it needs more.
    unlike = make_split_plan(make_form([yes(0), one(5)]), 300, 1.0, Crowd(300))
    small, large = unlike.lines
    assert small.epsilon < large.epsilon
    assert small.half_width < large.half_width
    assert sum(line.epsilon for line in unlike.lines) == pytest.approx(1.0)


def test_targets_decide_about_the_shares() -> None:
    form = make_form([yes(0, target=2), yes(1, target=6), NUMBER | {"target": 12}])
    plan = make_split_plan(form, 300, 3.0, Crowd(300))
    ratios = [line.half_width / line.target for line in plan.lines]
    assert max(ratios) <= 1.25 * min(ratios)
    assert plan.is_met == (max(ratios) <= 1)
    # At the least epsilon that was found all targets are met.
    assert plan.least_epsilon is not None
    assert make_split_plan(form, 300, plan.least_epsilon, Crowd(300)).is_met


def test_too_many_questions_are_named() -> None:
    form = make_form([yes(number, target=5) for number in range(7)])
    plan = make_split_plan(form, 300, 1.0, Crowd(300))
    assert not plan.is_met
    assert len(plan.excess) == 2
    assert any("merge or drop" in sentence for sentence in plan.advice)


def test_people_who_may_be_missing_or_collude_cost_accuracy() -> None:
    form = make_form([one(5)])
    errors = []
    for crowd in (Crowd(300), Crowd(300, insiders=30), Crowd(300, insiders=30, dropouts=60)):
        plan = make_split_plan(form, 240, 0.2, crowd)
        assert plan.mechanism.h == 300 - crowd.insiders - crowd.dropouts
        errors.append(plan.lines[0].half_width)
    assert errors[0] < errors[1] < errors[2]


def test_a_table_is_compared_with_its_questions_asked_apart() -> None:
    table = {"kind": "table", "text": ["a", "b"], "rows": ["1", "2"], "columns": ["1", "2"]}
    plan = make_split_plan(make_form([table, yes(0)]), 300, 1.0, Crowd(300))
    margins = plan.lines[0].apart
    assert margins is not None
    assert all(error > 0 for error in margins)
    assert any("if asked apart" in sentence for sentence in plan.advice)


def test_names_of_groups_and_too_fine_numbers_are_refused_in_words() -> None:
    with pytest.raises(ParameterError, match="leave group out"):
        make_split_plan(make_form([yes(0, group="a")]), 300, 1.0, Crowd(300))
    fine = make_form([NUMBER | {"high": 9000}])
    with pytest.raises(ParameterError, match=r"choose a larger step"):
        make_split_plan(fine, 300, 1.0, Crowd(300))


def test_the_forecast_counts_on_those_who_stay() -> None:
    expected = forecast_sheet(
        make_form([yes(0), NUMBER]), users=300, epsilon=2.0, topology=MASKED, proven=False
    )
    assert (expected.minimum, expected.responses) == (285, 285)
    assert not expected.mechanism.servers_add_noise
    more = forecast_sheet(
        make_form([yes(0), NUMBER]),
        users=300,
        epsilon=2.0,
        topology=MASKED,
        minimum=150,
        expected=200,
        proven=False,
    )
    assert (more.minimum, more.responses) == (150, 200)
    assert more.half_width_95_at_minimum == pytest.approx(more.half_width_95 * (4 / 3) ** 0.5)
    assert "the noise of 150 people has to suffice" in more.description
    # Fewer than the minimum publish nothing, so no error is stated for them.
    fewer = forecast_sheet(
        make_form([yes(0)]), users=300, epsilon=2.0, topology=MASKED, expected=100, proven=False
    )
    assert fewer.responses == 285
    assert not fewer.expects_enough


def test_all_ways_are_compared_and_refusals_are_results() -> None:
    ways = compare_ways(make_form([yes(number) for number in range(6)]), users=300, epsilon=1.0)
    assert [(str(way.topology), way.mechanism) for way in ways] == [
        ("servers", "server-joint"),
        ("servers", "laplace-sheets"),
        ("explicit", "laplace-sheets"),
        ("masked", "laplace-sheets"),
    ]
    joint, *split = ways
    assert all(way.errors == split[0].errors for way in split)
    assert min(split[0].errors) > max(joint.errors)
    assert joint.proven
    assert not any(way.proven for way in split)
    assert "no report is proven" in describe_costs(ways)
    fine = compare_ways(make_form([NUMBER | {"high": 9000}]), users=300, epsilon=1.0)
    assert fine[0].errors
    assert all("choose a larger step" in way.reason for way in fine[1:])
    assert describe_costs(fine) == ""


def test_every_mechanism_for_one_question_has_a_reason() -> None:
    assert set(REASONS) == {*FREQUENCY, *MEAN} - {"server-joint"}


def test_the_command_compares_topologies(tmp_path: Path) -> None:
    file = tmp_path / "form.toml"
    file.write_text(
        '[[question]]\nkind = "yes"\ntext = "a"\n\n[[question]]\nkind = "yes"\ntext = "b"'
    )
    words = ["plan", "--questionnaire", str(file), "--users", "300", "--epsilon", "1"]
    short = CliRunner().invoke(main, words)
    assert short.exit_code == 0, short.output
    assert "--all compares all of them" in " ".join(short.stdout.split())
    long = " ".join(CliRunner().invoke(main, [*words, "--all"]).stdout.split())
    assert "masked laplace-sheets no 4" in long
    assert "The same coin for all questions protects less" in long
    document = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert [way["topology"] for way in document["topologies"]][-1] == "masked"
    assert document["topologies"][0]["proven"]


def test_privacy_of_a_questionnaire_is_that_of_all_answers_together(tmp_path: Path) -> None:
    file = tmp_path / "form.toml"
    file.write_text(
        '[[question]]\nkind = "yes"\ntext = "a"\n\n[[question]]\nkind = "yes"\ntext = "b"'
    )
    split = fc.privacy("laplace-sheets", questionnaire=file, epsilon=1.0)
    assert (split.epsilon, split.more["single_answer_epsilon"]) == (1.0, 0.5)
    assert split.delta is not None
    assert split.delta < 1e-20
    joint = fc.privacy("server-joint", questionnaire=file, epsilon=1.0)
    assert (joint.epsilon, joint.more["single_answer_epsilon"]) == (1.0, 1.0)
    # Ten surveys: every answer is a randomized response of its own.
    several = fc.privacy("laplace-sheets", questionnaire=file, epsilon=0.1, delta=1e-6, releases=10)
    exact = compose_randomized_response(0.05, 20, delta=1e-6)
    assert several.epsilon == pytest.approx(exact, rel=1e-3)
    for wrong in ({"epsilon": 1.0}, {"questionnaire": file}, {"p": 0.5, "questionnaire": file}):
        with pytest.raises(ParameterError, match="needs questionnaire and epsilon"):
            fc.privacy("laplace-sheets", **wrong)
    with pytest.raises(ParameterError, match="counted by server-joint and laplace-sheets"):
        fc.privacy("laplace", questionnaire=file, epsilon=1.0)

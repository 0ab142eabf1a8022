"""What room for missing users costs a survey between devices, as `plan` states it."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.cli import main
from faircount.planning.dropout import usual_dropout
from faircount.planning.plan import compare_mechanisms
from faircount.protocol.survey.parameters import default_dropout_allowance

ASKED = (800, 20, 1.0, 1e-6)


def test_the_cost_is_the_difference_of_two_plans() -> None:
    made = compare_mechanisms(*ASKED)
    name = made.recommended.name
    options = {option.name: option for option in compare_mechanisms(*ASKED, dropout=0.05).options}
    cost = made.dropout_cost
    assert (cost.users, cost.missing) == (800, 40)
    assert cost.standard_error == options[name].standard_error
    assert cost.half_width_95 == options[name].half_width_95
    assert cost.standard_error_without == made.recommended.standard_error
    assert cost.half_width_95_without == made.recommended.half_width_95 < cost.half_width_95


def test_an_allowance_that_was_asked_for_is_compared_with_none() -> None:
    cost = compare_mechanisms(*ASKED, dropout=0.25).dropout_cost
    assert cost.missing == 200
    assert cost.standard_error_without == compare_mechanisms(*ASKED).recommended.standard_error
    assert cost.standard_error_without < cost.standard_error


def test_text_and_json_say_it() -> None:
    options = ["plan", "--users", "800", "--items", "20", "--epsilon", "1"]
    shown = " ".join(CliRunner().invoke(main, [*options, "--all"]).stdout.split())
    assert "If 40 of the 800 do not respond, the 95% error is ±" in shown
    said = json.loads(CliRunner().invoke(main, [*options, "--json"]).stdout)["dropout_cost"]
    made = fc.plan(*ASKED)
    assert said == made.dropout_cost.to_dict()
    assert said["standard_error"] > said["standard_error_without"] > 0
    known = {"servers": 40, "masked": 9, "explicit": 8, "two-stage": 1}
    assert said["tolerated_malicious"] == known
    tolerated = "survey still completes if participants send garbage: up to 40 in servers, 9 in"
    assert f"The {tolerated} masked, 8 in explicit, 1 in two-stage." in shown
    assert f"the {tolerated} masked" in str(made)


def test_a_plan_for_a_table_speaks_of_rows_and_not_of_participants() -> None:
    options = ["plan", "--for", "table", "--users", "800", "--items", "20", "--epsilon", "1"]
    shown = CliRunner().invoke(main, [*options, "--all"]).stdout
    assert "every row of the table holds what that person answered" in " ".join(shown.split())
    made = fc.plan(*ASKED, purpose="table")
    for text in (shown, str(made), made._repr_html_()):
        assert "server-joint" in text
        for word in (
            "garbage",
            "respond",
            "malicious",
            "bytes",
            "visits",
            "in servers",
            "topology",
        ):
            assert word not in text
    said = json.loads(CliRunner().invoke(main, [*options, "--json"]).stdout)
    assert (said["dropout_cost"], said["alternative_advice"], said["topologies"]) == (
        None,
        None,
        [],
    )


def test_the_errors_of_a_table_are_those_without_an_allowance() -> None:
    table = fc.plan(*ASKED, purpose="table").recommended
    bare = compare_mechanisms(*ASKED).recommended
    assert (table.name, table.half_width_95) == (bare.name, bare.half_width_95)


def test_there_is_no_allowance_where_no_shares_travel_or_nobody_may_be_missing() -> None:
    reports = compare_mechanisms(100, 2, 60.0, colluding=0.98)
    few = compare_mechanisms(2, 2, 5.0, malicious_clients=True)
    assert (reports.recommended.topology, reports.dropout_cost) == (None, None)
    assert (few.recommended.topology, few.dropout_cost) == ("servers", None)
    assert replace(few, options=()).dropout_cost is None


def test_an_allowance_that_leaves_nobody_to_hide_among_meets_no_budget() -> None:
    cost = compare_mechanisms(20, 2, 8.0, 1e-2, colluding=0.95, malicious_clients=True).dropout_cost
    assert (cost.missing, cost.standard_error) == (1, None)
    assert cost.words.startswith(
        "if 1 of the 20 do not respond, the budget is not met; if everybody must respond, the 95% "
        "error is"
    )


@pytest.mark.parametrize("users", [3, 20, 21, 299, 801, 12_345])
def test_the_share_names_the_same_number_of_users(users: int) -> None:
    assert compare_mechanisms(
        users, 2, 8.0, dropout=usual_dropout(users)
    ).request.lost == default_dropout_allowance(users)

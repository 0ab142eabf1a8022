"""Plans for clients who follow the protocol, and for clients who may lie."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.cli import main
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.plan import Plan


@pytest.fixture(scope="module")
def trusting() -> Plan:
    return fc.plan(800, 12, 1.0, 1e-6)


@pytest.fixture(scope="module")
def wary() -> Plan:
    return fc.plan(800, 12, 1.0, 1e-6, liars=True)


def test_the_recommendation_for_clients_who_follow_the_protocol_stays(trusting: Plan) -> None:
    assert trusting.recommended is not None
    assert trusting.recommended.name == "laplace"
    assert "dpdg, the next" in trusting.verdict  # compared with what makes the same supposition
    assert trusting.verified is not None
    assert trusting.verified.name == "server-laplace"
    assert trusting.verified.standard_error == pytest.approx(2**0.5 * trusting.recommended.standard_error, rel=2e-3)
    assert trusting.otherwise.startswith("if clients may lie: server-laplace, whose reports are proven")
    assert "0.49% (+41%)" in trusting.otherwise
    assert "--liars" in trusting.otherwise


def test_liars_make_the_verified_form_the_recommendation(wary: Plan) -> None:
    assert wary.recommended is wary.verified is wary.options[0]
    assert "run server-laplace" in wary.verdict
    assert "provided that S1 or S2 adds its noise and keeps it secret" in wary.verdict
    assert wary.otherwise.startswith("if clients follow the protocol: laplace has a standard error of 0.35% (-29%)")


def test_even_where_unproven_noise_is_larger_it_needs_no_server_to_be_honest() -> None:
    """With 60% of the users colluding, users must make more noise than two servers would."""
    made = fc.plan(60, 3, 1.0, 1e-3, colluding=0.6)
    assert made.recommended is not None
    assert made.verified is not None
    assert made.recommended.name == "laplace"
    assert (made.recommended.standard_error or 0) > (made.verified.standard_error or 0)
    assert "(-11%)" in made.otherwise


def test_many_releases_ask_for_coins(wary: Plan) -> None:
    many = fc.plan(3000, 12, 1.0, 1e-6, releases=12, liars=True)
    assert many.recommended is not None
    assert many.recommended.name == "placed-coins"
    servers = {each.name: each.standard_error or 0 for each in many.options}
    assert servers["server-coins"] < servers["server-laplace"]


def test_without_users_enough_for_placed_coins_the_servers_make_the_noise() -> None:
    made = fc.plan(100, 3, 1.0, 1e-6, liars=True)
    placed = next(each for each in made.options if each.name == "placed-coins")
    assert not placed.sound
    assert "invite 149 or more, or choose server-laplace" in placed.reason
    assert made.recommended is not None
    assert made.recommended.name == "server-laplace"


def test_where_nothing_proven_meets_the_budget_it_says_so(trusting: Plan) -> None:
    unproven = tuple(each for each in trusting.options if not each.proven)
    bare = Plan(trusting.question, unproven)
    assert bare.otherwise == (
        "if clients may lie: nothing meets the budget with reports that are proven to be one vote"
    )
    wary = Plan(replace(trusting.question, liars=True), unproven)
    assert wary.recommended is None
    assert "no mechanism with proven reports meets the budget" in wary.verdict


@pytest.mark.parametrize("liars", [False, True])
def test_text_json_and_notebook_say_which_was_supposed(trusting: Plan, wary: Plan, liars: bool) -> None:
    made = wary if liars else trusting
    words = "clients may lie" if liars else "clients follow the protocol"
    said = made.to_dict()
    assert (said["liars"], said["verified"]) == (liars, "server-laplace")
    assert said["supposed"].startswith(words)
    assert said["otherwise"] == made.otherwise
    assert f"supposed: {words}" in str(made)
    assert f"Supposed: {words}" in made._repr_html_()
    proven = {each["name"] for each in said["mechanisms"] if each["proven"]}
    assert proven == {"server-laplace", "server-coins", "placed-coins"}
    assert proven == {name for name, kind in frequency_mechanisms().items() if kind.proven}


def test_the_command_takes_liars() -> None:
    line = ["plan", "--users", "800", "--items", "12", "--epsilon", "1", "--liars"]
    said = json.loads(CliRunner().invoke(main, [*line, "--json"]).stdout)
    assert said["recommended"] == "server-laplace"
    shown = " ".join(CliRunner().invoke(main, line).stdout.split())
    assert "supposed: clients may lie" in shown
    assert "If clients follow the protocol: laplace has a standard error" in shown


def test_a_table_keeps_the_smallest_error_because_rows_cannot_lie() -> None:
    found = fc.histogram(["a", "b"] * 100, domain=["a", "b"], epsilon=1.0, entropy=fc.SeededStream(1))
    assert found.mechanism.name == "laplace"

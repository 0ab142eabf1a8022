"""Plans for clients who follow the protocol, and for clients who may lie."""

import json
import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.accounting.conditions import EITHER_NOISE
from faircount.cli import main
from faircount.core.errors import ParameterError
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.advice import TIE_FACTOR
from faircount.planning.option import Option
from faircount.planning.plan import Plan, compare_mechanisms


@pytest.fixture(scope="module")
def honest_plan() -> Plan:
    return compare_mechanisms(800, 12, 1.0, 1e-6)


@pytest.fixture(scope="module")
def malicious_plan() -> Plan:
    return compare_mechanisms(800, 12, 1.0, 1e-6, malicious_clients=True)


def test_the_recommendation_for_clients_who_follow_the_protocol_stays(honest_plan: Plan) -> None:
    assert honest_plan.recommended is not None
    assert honest_plan.recommended.name == "laplace"
    assert "25% below that of server-joint, the second best," in honest_plan.verdict
    assert honest_plan.verified is not None
    assert honest_plan.verified.name == "server-joint"
    # Both servers add all of the noise, but it is smaller, since it adds up to zero.
    assert honest_plan.recommended.standard_error < honest_plan.verified.standard_error
    assert honest_plan.verified.standard_error < 2**0.5 * honest_plan.recommended.standard_error
    assert honest_plan.alternative_advice.startswith(
        "if clients may be malicious: server-joint, whose reports are proven"
    )
    assert "0.44% (+33%)" in honest_plan.alternative_advice
    assert "--malicious-clients" in honest_plan.alternative_advice


def test_malicious_clients_make_the_verified_form_the_recommendation(malicious_plan: Plan) -> None:
    assert malicious_plan.recommended is malicious_plan.verified is malicious_plan.options[0]
    assert "run server-joint" in malicious_plan.verdict
    assert f"provided that {EITHER_NOISE}" in malicious_plan.verdict
    assert malicious_plan.alternative_advice.startswith(
        "if clients follow the protocol: laplace has a standard error of 0.34% (-25%)"
    )


def test_where_unproven_noise_is_larger_proven_reports_are_recommended() -> None:
    """With 40% of 1,000 colluding and half missing, users must add more noise than servers do."""
    made = compare_mechanisms(1000, 5, 1.0, 1e-6, dropout=0.5, colluding=0.4)
    assert made.recommended is not None
    assert made.recommended is made.verified is made.options[0]
    assert made.recommended.name == "server-joint"
    laplace = next(option for option in made.options if option.name == "laplace")
    assert laplace.standard_error > 1.5 * made.recommended.standard_error
    assert "14% below that of server-laplace, the second best" in made.verdict
    assert f"provided that {EITHER_NOISE}" in made.verdict
    assert made.assumption.startswith("clients may be malicious")
    assert made.alternative_advice == (
        "if clients may be malicious: server-joint, whose reports are proven to be one vote, is "
        "the recommendation, too"
    )


GRID = list(
    product((60, 1000), (2, 12), (0.5, 2.0), (0, 20), (1, 6), (0.0, 0.5), (0.0, 0.4), (False, True))
)


# Every fifth point: 5 shares no factor with the two values of each parameter, so all of them occur.
@pytest.mark.parametrize("known", GRID[::5], ids=str)
def test_the_first_option_is_the_best_and_its_sentence_is_true(known: tuple[Any, ...]) -> None:
    users, items, epsilon, floor, releases, dropout, colluding, malicious = known
    made = compare_mechanisms(
        users,
        items,
        epsilon,
        floor=min(floor, (users - 1) // items),  # more is refused
        releases=releases,
        dropout=dropout,
        colluding=colluding,
        malicious_clients=malicious,
    )
    fit = [
        option
        for option in made.options
        if option.sound and not option.needs_trust and (option.proven or not malicious)
    ]
    best = made.recommended
    if best is None:
        assert not fit
        return
    assert made.options[: len(fit)] == tuple(fit)
    assert best is fit[0]
    assert best.standard_error <= TIE_FACTOR * min(option.standard_error for option in fit)
    assert [option.standard_error for option in fit[1:]] == sorted(
        option.standard_error for option in fit[1:]
    )
    assert_true_comparison(made, fit)


def assert_true_comparison(made: Plan, fit: list[Option]) -> None:
    """The option that is named the second best has the smallest error of all that are printed."""
    said = re.search(r" of ([a-z-]+), the second best([^,]*)", made.verdict)
    if said is None:
        return
    name, terms = said.groups()
    following = next(option for option in made.options if option.name == name)
    assert following is fit[1]
    skipped = [
        option
        for option in made.options
        if option.sound and option not in fit and option.standard_error <= following.standard_error
    ]
    assert bool(skipped) == bool(terms)
    if terms == " with proven reports":
        assert following.proven
    elif terms:
        assert all(option.needs_trust for option in skipped)


def test_many_releases_ask_for_coins(malicious_plan: Plan) -> None:
    many = compare_mechanisms(3000, 12, 1.0, 1e-6, releases=12, malicious_clients=True)
    assert many.recommended is not None
    assert many.recommended.name == "placed-coins"
    servers = {option.name: option.standard_error or 0 for option in many.options}
    assert servers["server-coins"] < servers["server-laplace"]


def test_without_users_enough_for_placed_coins_the_servers_make_the_noise() -> None:
    made = compare_mechanisms(100, 3, 1.0, 1e-6, malicious_clients=True)
    placed = next(option for option in made.options if option.name == "placed-coins")
    assert not placed.sound
    assert "invite 149 or more, or choose server-laplace" in placed.reason
    assert made.recommended is not None
    assert made.recommended.name == "server-joint"


def test_where_nothing_proven_meets_the_budget_it_says_so(honest_plan: Plan) -> None:
    unproven = tuple(option for option in honest_plan.options if not option.proven)
    bare = Plan(honest_plan.request, unproven)
    assert bare.alternative_advice == (
        "if clients may be malicious: nothing meets the budget with reports that are proven to be "
        "one vote"
    )
    malicious_plan = Plan(replace(honest_plan.request, malicious_clients=True), unproven)
    assert malicious_plan.recommended is None
    assert "no mechanism with proven reports meets the budget" in malicious_plan.verdict


@pytest.mark.parametrize("malicious", [False, True])
def test_text_json_and_notebook_say_which_was_supposed(
    honest_plan: Plan, malicious_plan: Plan, malicious: bool
) -> None:
    made = malicious_plan if malicious else honest_plan
    words = "clients may be malicious" if malicious else "clients follow the protocol"
    said = made.to_dict()
    assert (said["malicious_clients"], said["verified"]) == (malicious, "server-joint")
    assert said["assumption"].startswith(words)
    assert said["alternative_advice"] == made.alternative_advice
    assert f"assumes: {words}" in str(made)
    assert f"Assumes: {words}" in made._repr_html_()
    proven = {option["name"] for option in said["mechanisms"] if option["proven"]}
    assert proven == {"server-joint", "server-laplace", "server-coins", "placed-coins"}
    assert proven == {name for name, kind in frequency_mechanisms().items() if kind.proven}


def test_the_command_plans_for_malicious_clients() -> None:
    line = ["plan", "--users", "800", "--items", "12", "--epsilon", "1"]
    for more in (["--malicious-clients"], ["--for", "survey"]):
        said = json.loads(CliRunner().invoke(main, [*line, *more, "--json"]).stdout)
        assert said["recommended"] == "server-joint"
    shown = " ".join(CliRunner().invoke(main, [*line, "--all"]).stdout.split())
    assert "assumes: clients may be malicious" in shown
    assert "If clients follow the protocol: laplace has a standard error" in shown
    honest = CliRunner().invoke(main, [*line, "--honest-clients", "--json"]).stdout
    assert json.loads(honest)["recommended"] == "laplace"


def test_rows_of_a_table_are_not_malicious_clients() -> None:
    with pytest.raises(ParameterError, match="rows of a table send no reports: plan a survey"):
        fc.plan(800, 12, 1.0, purpose="table", malicious_clients=True)


def test_a_table_keeps_the_smallest_error_because_rows_cannot_lie() -> None:
    found = fc.histogram(
        ["a", "b"] * 100, domain=["a", "b"], epsilon=1.0, entropy=fc.SeededStream(1)
    )
    assert found.mechanism.name == "laplace"

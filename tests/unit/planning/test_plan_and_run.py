"""What a plan recommends runs in the form it names, with the error and the bytes it states.

Errors are drawn 400 times, at count level, from random crowds of those expected to stay. The mean
squared error is off from the stated one by more than 6 of its standard errors with probability
about 2e-9; with some 30 comparisons a false alarm has probability below 1e-6 (and the seeds are
fixed).
"""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from completion_runs import played

import faircount as fc
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.decoys import Decoys, decoys_needed
from faircount.planning.costs import in_servers
from faircount.planning.option import Option
from faircount.planning.plan import Plan, compare_mechanisms
from faircount.protocol import EXPLICIT, MASKED, SERVERS, encode, topology_named
from faircount.protocol.survey.topology import TARGET_COMPLETION, Topology
from faircount.protocol.wire.messages import OutcomeRequest, PollRequest

RUNS = 400
SURE = 6.0

GRID = [
    (40, 3, 2.0, 1e-4, 1, 0.0),
    (40, 3, 1.0, 1e-6, 1, 0.2),
    (60, 5, 4.0, 1e-3, 12, 0.0),
    (60, 5, 1.0, 1e-3, 12, 0.1),
    (90, 4, 2.0, 1e-5, 30, 0.0),
    (150, 12, 0.5, 1e-6, 3, 0.0),
    (150, 3, 1.0, 1e-6, 12, 0.3),
    (200, 12, 1.0, 1e-6, 12, 0.05),
]


@cache
def plan_for(
    users: int, items: int, epsilon: float, delta: float, releases: int, dropout: float
) -> Plan:
    return compare_mechanisms(users, items, epsilon, delta, releases=releases, dropout=dropout)


def decoys(made: Plan) -> Option:
    return next(option for option in made.options if option.name == "decoys")


def forms(made: Plan) -> list[tuple[FrequencyMechanism, Topology, float, int]]:
    """Mechanism, topology, error and bytes of the recommended option and of decoys."""
    found: list[Any] = []
    for option in {id(one): one for one in (made.recommended, decoys(made))}.values():
        assert option is not None
        assert option.cost is not None
        assert option.topology is not None
        found.append(
            (
                option.mechanism,
                topology_named(option.topology),
                option.standard_error,
                option.cost.bytes_sent,
            )
        )
        if option.servers is not None:
            found.append(
                (
                    option.servers.mechanism,
                    SERVERS,
                    option.servers.standard_error,
                    option.servers.bytes_sent,
                )
            )
    return found


def squared_errors(mechanism: FrequencyMechanism, staying: int, seed: int) -> Any:
    """Mean over the items, of every draw; who stays decides how many coins go in."""
    rng = np.random.default_rng(seed)
    made = []
    held = np.full(mechanism.N, staying // mechanism.N)
    held[0] += staying - held.sum()
    for _ in range(RUNS):
        here = mechanism.for_included(rng.permutation(mechanism.n)[:staying])
        found = here.estimate(here.draw(held, rng), staying)
        made.append(np.mean((found - held / staying) ** 2))
    return np.array(made)


def differs(measured: Any, stated: float) -> bool:
    return bool(abs(measured.mean() - stated**2) > SURE * measured.std(ddof=1) / math.sqrt(RUNS))


@pytest.mark.parametrize("question", GRID, ids=str)
def test_errors_are_those_stated(question: tuple[Any, ...]) -> None:
    made = plan_for(*question)
    for seed, (mechanism, _, stated, _) in enumerate(forms(made)):
        assert not differs(squared_errors(mechanism, made.request.staying, seed), stated), mechanism


@pytest.mark.parametrize("question", GRID, ids=str)
def test_every_form_runs_as_stated(question: tuple[Any, ...]) -> None:
    made = plan_for(*question)
    answers = [j % made.request.items for j in range(made.request.users)]
    for mechanism, topology, _, _ in forms(made):
        if topology is EXPLICIT and mechanism.n > 60:
            continue  # thousands of sealed rows
        found = fc.run(answers, mechanism, topology=str(topology), entropy=fc.SeededStream(1))
        assert found.to_dict()["topology"] == str(topology)
        assert found.mechanism.expected_errors(mechanism.n) == mechanism.expected_errors(
            mechanism.n
        )


@pytest.mark.parametrize("question", GRID, ids=str)
def test_bytes_are_those_that_users_send(question: tuple[Any, ...]) -> None:
    """Played, message by message; questions what there is to do are not counted."""
    for mechanism, topology, _, stated in forms(plan_for(*question)):
        sent = []

        def meter(user: int, said: Any, answer: Any, sent: list[int] = sent) -> None:
            if not isinstance(said, (PollRequest, OutcomeRequest)):
                sent.append(len(encode(said)))

        played(topology, mechanism.n, mechanism.n, mechanism=mechanism, meter=meter, epsilon=8.0)
        assert sum(sent) == mechanism.n * stated, (mechanism.name, str(topology))


def test_the_grid_recommends_both_and_knows_every_form() -> None:
    every = [plan_for(*terms) for terms in GRID]
    assert {"laplace", "decoys"} <= {made.recommended.name for made in every if made.recommended}
    assert {str(form[1]) for made in every for form in forms(made)} == {
        "servers",
        "explicit",
        "masked",
    }
    assert any(made.recommended is decoys(made) and decoys(made).servers for made in every)


def test_the_error_of_the_other_form_would_be_caught() -> None:
    """Decoys with places and in servers: the plan printed the first as that of two servers."""
    made = compare_mechanisms(300, 12, 1.0, 1e-6)
    one = decoys(made)
    staying = made.request.staying
    assert one.servers is not None
    assert one.mechanism is not None
    assert one.servers.mechanism is not None
    assert differs(squared_errors(one.servers.mechanism, staying, 1), one.standard_error or 0.0)
    assert differs(squared_errors(one.mechanism, staying, 2), one.servers.standard_error or 0.0)


@pytest.mark.parametrize("name", ["laplace", "dpdg", "dpds"])
def test_who_draws_alike_runs_in_servers_and_has_no_second_line(name: str) -> None:
    made = compare_mechanisms(600, 3, 1.0, 1e-3, floor=150, releases=3)
    one = next(option for option in made.options if option.name == name)
    assert one.topology == "servers"
    assert one.servers is None
    assert one.to_dict()["servers"] is None
    found = fc.run(
        [j % 3 for j in range(600)], one.mechanism, topology="servers", entropy=fc.SeededStream(1)
    )
    assert found.mechanism.parameters == one.parameters


def test_json_names_the_topology_and_what_servers_do() -> None:
    """Decoys of 800 users for 12 releases: they did not run in servers at all."""
    one = decoys(compare_mechanisms(800, 12, 1.0, 1e-6, releases=12)).to_dict()
    assert one["topology"] == "masked"
    assert one["bytes_per_user"] == MASKED.bytes_sent(
        Decoys(items=12, users=800, coins=one["parameters"]["D"])
    )
    assert set(one["servers"]) == {
        "standard_error",
        "half_width_95",
        "bytes_per_user",
        "parameters",
        "reason",
    }
    assert one["servers"]["parameters"]["D"] == 3 * 800  # 1,714 are needed of 799 users
    assert one["servers"]["standard_error"] == pytest.approx(
        one["standard_error"] * math.sqrt(2400 / 1717), rel=1e-3
    )


@pytest.mark.parametrize(
    ("users", "insiders", "dropouts"), [(100, 1, 0), (100, 7, 20), (37, 5, 3), (999, 1, 99)]
)
def test_made_alike_has_the_fewest_coins_that_protect_enough(
    users: int, insiders: int, dropouts: int
) -> None:
    """From epsilon and delta, and from the coins of one of several releases: the same number."""
    made = Decoys(
        items=3, users=users, insiders=insiders, dropouts=dropouts, epsilon=1.0, delta=1e-6
    )
    fewest = -(-decoys_needed(1.0, 1e-6) // made.h) * users
    assert fewest == made.with_equal_noise().D
    given = Decoys(items=3, users=users, insiders=insiders, dropouts=dropouts, coins=made.D)
    assert fewest == given.with_equal_noise().D
    assert given.with_equal_noise().identical_for_all_users


def test_more_coins_than_there_may_be_are_refused_in_words() -> None:
    servers = in_servers(Decoys(items=12, users=2 * 10**8, coins=301), 2 * 10**8)
    assert servers is not None
    assert servers.mechanism is None
    assert "coins must be between" in (servers.reason or "")


@pytest.mark.slow
def test_few_coins_for_several_releases_run_where_they_are_planned() -> None:
    """They do not reach a delta of 1e-6 in one release, and were refused there."""
    made = next(
        option
        for option in compare_mechanisms(300, 3, 12.0, 0.01, releases=3).options
        if option.name == "decoys"
    )
    assert made.parameters["D"] < 20
    assert made.mechanism is not None
    answers = [0] * 150 + [1] * 100 + [2] * 50
    for topology in ("servers", made.topology):
        assert fc.run(answers, made.mechanism, topology=topology).included == 300
    with pytest.raises(fc.FaircountError, match="give epsilon="):
        fc.run(answers, fc.DPDS(items=3, p=0.5), topology="servers")


@pytest.mark.parametrize(
    ("epsilon", "delta", "coins"), [(30.0, 0.1, 7), (8.0, 0.3, 5), (8.0, 0.9, 3)]
)
def test_so_do_very_few(epsilon: float, delta: float, coins: int) -> None:
    """Fewer than eight coins guarantee nothing at a delta of 0.01.

    The plan named them for two releases, and run refused them.
    """
    made = {
        option.name: option
        for option in compare_mechanisms(
            12, 2, epsilon, delta, releases=2, malicious_clients=True
        ).options
    }
    assert made["decoys"].parameters["D"] == coins
    for name, topology in (
        ("decoys", "explicit"),
        ("server-coins", "servers"),
        ("placed-coins", "servers"),
    ):
        assert made[name].topology == topology
        found = fc.run(
            [0] * 8 + [1] * 4, made[name].mechanism, topology=topology, entropy=fc.SeededStream(1)
        )
        assert found.included == 12


def test_whether_a_survey_ends_is_asked_of_the_recommended_topology() -> None:
    """Decoys for 12 releases are recommended in masked, where users visit four times.

    With one visit, in servers, the survey would complete.
    """
    made = compare_mechanisms(800, 12, 1.0, 1e-6, releases=12, loss=0.01, dropout=0.02)
    assert made.recommended is not None
    assert (made.recommended.name, made.recommended.topology) == ("decoys", "masked")
    chances = {str(ending.topology): ending.chance or 0.0 for ending in made.completions}
    assert chances["servers"] > TARGET_COMPLETION > chances["masked"]
    assert not made.worthwhile
    assert "complete in masked, with 4 visits" in made.verdict
    assert made.verdict.endswith(", or run dpdg in servers")

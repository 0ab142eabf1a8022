"""`run` gives the same kind of result however the shares travel."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import faircount as fc
from faircount.accounting.conditions import ROWS_ARE_PEOPLE
from faircount.analysis.run import TOPOLOGIES, run
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, ParameterError

ITEMS = ["a", "b", "c"]

ANSWERS = ["a"] * 9 + ["b"] * 5 + ["c"] * 2

# With p = 1 everybody is sampled, so the sum must be exact.
EVERYBODY = fc.DPDS(items=ITEMS, p=1.0, epsilon=1.0, delta=1.0)


@pytest.mark.parametrize("topology", ["shares", "servers", "explicit", "masked"])
def test_without_noise_every_form_opens_the_exact_sum(topology: str) -> None:
    result = run(ANSWERS, EVERYBODY, topology=topology, entropy=SeededStream(41))
    assert result.aggregate.tolist() == [9, 5, 2]
    assert result.included == 16


@pytest.mark.parametrize(
    ("answers", "mechanism"),
    [
        (ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0)),
        (ANSWERS, fc.GRR(items=ITEMS, epsilon=1.0)),
        ([0.5, -0.5], fc.Duchi(epsilon=1.0)),
    ],
)
def test_every_answer_must_be_another_persons(answers: Any, mechanism: Any) -> None:
    assert run(answers, mechanism).guarantee.condition == ROWS_ARE_PEOPLE
    repeated = pd.Series(answers, index=[0] * len(answers))
    with pytest.raises(AnswerError, match=r"as after explode\(\)"):
        run(repeated, mechanism)
    assert run(repeated.reset_index(drop=True), mechanism).included == len(answers)


@pytest.mark.parametrize("topology", ["shares", "two-stage"])
def test_two_stage_counts_nobody_twice(topology: str) -> None:
    made = fc.TSSPrime(items=ITEMS, p=1.0, alpha=2 / 3, phi=2, epsilon=1.0)
    result = run(ANSWERS, made, topology=topology, entropy=SeededStream(42))
    assert np.all(result.aggregate <= [9, 5, 2])
    assert result.aggregate.sum() > 0


def test_the_default_is_the_protocol_for_small_crowds_and_shares_for_the_rest() -> None:
    small = run(ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0))
    assert small.facts["topology"] == "servers"
    for mechanism in (fc.Decoys(items=ITEMS, epsilon=1.0, delta=1e-3), fc.DPDS(items=ITEMS, p=0.5)):
        assert run(ANSWERS, mechanism).facts["topology"] == "shares"
    assert run(ANSWERS * 200, fc.Laplace(items=ITEMS, epsilon=1.0)).facts["topology"] == "shares"
    assert run(ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0), parties=3).facts["share holders"] == 3


def test_what_does_not_fit_is_refused_in_words() -> None:
    assert set(TOPOLOGIES) == {"shares", "servers", "explicit", "masked", "two-stage"}
    with pytest.raises(ParameterError, match="topology must be one of"):
        run(ANSWERS, EVERYBODY, topology="ring")
    with pytest.raises(ParameterError, match="two-stage"):
        run(ANSWERS, EVERYBODY, topology="two-stage")
    with pytest.raises(ParameterError, match="grr makes no shares"):
        run(ANSWERS, fc.GRR(items=ITEMS, epsilon=1.0), topology="servers")
    with pytest.raises(ParameterError, match="give epsilon="):
        run(ANSWERS, fc.DPDS(items=ITEMS, p=0.5), topology="servers")


@pytest.mark.parametrize(
    "mechanism", [fc.GRR(items=3, epsilon=1.0), fc.DPCS(items=3, p=0.5), fc.Duchi(epsilon=1.0)]
)
@pytest.mark.parametrize(
    "asked", [{"topology": "nonsense"}, {"topology": "shares"}, {"parties": 2}]
)
def test_who_makes_no_shares_has_no_topology(mechanism, asked) -> None:
    answers = [0.1, 0.5] if isinstance(mechanism, fc.Duchi) else [0, 1, 2]
    with pytest.raises(ParameterError, match="makes no shares: leave topology and parties out"):
        fc.run(answers, mechanism, **asked)


def test_parties_are_for_shares() -> None:
    with pytest.raises(ParameterError, match="parties is for topology='shares'"):
        fc.run([0, 1, 2] * 5, fc.Laplace(items=3, epsilon=1.0), topology="masked", parties=2)


@pytest.mark.parametrize(
    ("mechanism", "topology", "fitting"),
    [
        (fc.Laplace(items=3, epsilon=1.0), "two-stage", "'servers', 'explicit' or 'masked'"),
        (fc.TSSPrime(items=3, epsilon=1.0, p=0.5, alpha=1 / 3, phi=1), "servers", "'two-stage'"),
    ],
)
def test_a_topology_that_does_not_fit_names_those_that_do(mechanism, topology, fitting) -> None:
    with pytest.raises(ParameterError, match=f"choose {fitting}"):
        fc.run([0, 1, 2] * 5, mechanism, topology=topology)


@pytest.mark.parametrize(("users", "insiders"), [(2, 1), (3, 2)])
def test_explicit_says_how_many_users_it_needs(users, insiders) -> None:
    with pytest.raises(ParameterError, match=f"needs at least {insiders + 2} participants"):
        fc.run(
            [0] * users, fc.Laplace(items=2, epsilon=1.0, insiders=insiders), topology="explicit"
        )


@pytest.mark.parametrize("topology", ["shares", "servers", "explicit", "masked", "two-stage"])
def test_progress_ends_with_everybody_and_the_result_says_how_it_ran(topology) -> None:
    staged = topology == "two-stage"
    mechanism = (
        fc.TSSPrime(items=3, epsilon=1.0, p=0.1, floor=3, alpha=1 / 3, phi=1)
        if staged
        else fc.Laplace(items=3, epsilon=1.0)
    )
    calls: list[int] = []
    result = fc.run(
        [0, 1, 2] * 5, mechanism, topology=topology, entropy=SeededStream(1), progress=calls.append
    )
    assert calls == sorted(calls)
    assert calls[-1] == 15
    assert result.facts["topology"] == topology
    assert f"topology {topology}" in str(result)
    assert result.to_dict()["topology"] == topology
    assert result.simulation
    assert not fc.run([0, 1, 2], fc.GRR(items=3, epsilon=1.0)).simulation
    assert fc.run([0.5], fc.Duchi(epsilon=1.0), entropy=SeededStream(1)).simulation


@pytest.mark.parametrize(
    "answers", [["secret", "secret"], [[1, 2], [3]], [{}], [10**400], [1j]], ids=range(5)
)
def test_answers_to_a_mean_that_are_no_numbers(answers: object) -> None:
    with pytest.raises(AnswerError) as caught:
        fc.run(answers, fc.Duchi(epsilon=1.0))  # type: ignore[call-overload] # that is the point
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "source", [7, "seed", np.random.default_rng(1)], ids=["number", "word", "generator"]
)
def test_a_source_of_randomness_is_an_entropy(source: Any) -> None:
    with pytest.raises(ParameterError, match="entropy"):
        fc.run([0, 1, 2], fc.GRR(items=3, epsilon=1.0), entropy=source)

"""The result objects: what an analyst reads."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import faircount as fc
from faircount.accounting.guarantee import S1, S2
from faircount.analysis.run import run
from faircount.core.entropy import SeededStream
from faircount.core.errors import FaircountError, ParameterError
from faircount.estimation.result import SIMULATION, MeanResult, Result
from faircount.mechanisms.local_mean import ReportSums

CITIES = ["Aldmoor", "Brackwater", "Carrow"]
ANSWERS = ["Aldmoor"] * 60 + ["Brackwater"] * 30 + ["Carrow"] * 10


@pytest.fixture(scope="module")
def result() -> Result:
    return run(ANSWERS, fc.Laplace(items=CITIES, epsilon=1.0), entropy=SeededStream(31))


def test_estimates_intervals_and_consistency(result: Result) -> None:
    bounds = result.interval(0.95)
    assert result.items == tuple(CITIES)
    assert np.all(bounds.low <= np.clip(result.estimates, 0, 1))
    assert np.all(np.clip(result.estimates, 0, 1) <= bounds.high)
    assert result.consistent.sum() == pytest.approx(1)
    assert np.all(result.consistent >= 0)
    wide = result.interval(0.95, simultaneous=True)
    assert np.all(wide.width >= bounds.width)
    assert np.all(result.interval(0.95, covers="population").width > bounds.width)
    assert result.standard_errors == pytest.approx(
        np.sqrt(result.mechanism.variance(result.consistent))
    )


def test_it_prints_and_dumps(result: Result) -> None:
    words = str(result)
    assert "laplace: 100 users, 3 items" in words
    assert "provided that each row is another person" in words
    assert "Aldmoor" in words
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["n"] == 100
    assert plain["guarantee"]["relation"] == "replace-one"
    assert [row["item"] for row in plain["estimates"]] == CITIES
    assert all(row["low"] <= row["high"] for row in plain["estimates"])


def test_a_simulation_says_so_and_a_release_does_not(result: Result) -> None:
    seeded = replace(result, facts={"simulation": True})
    assert str(seeded).startswith(SIMULATION)
    assert seeded.to_dict()["simulation"] is True
    release = replace(result, facts={})
    assert "SIMULATION" not in str(release)
    assert "simulation" not in release.to_dict()
    mean = run([0.5, 0.25], fc.PM(epsilon=1.0))
    assert "SIMULATION" not in str(mean)
    assert str(replace(mean, facts={"simulation": True})).startswith(SIMULATION)


def test_control_characters_in_items_are_escaped() -> None:
    made = run(["a", "\x1b[31m"], fc.Laplace(items=["a", "\x1b[31m"], epsilon=1.0))
    assert "\x1b" not in str(made)


def test_the_answers_are_nowhere_in_it(result: Result) -> None:
    assert "aggregate" not in repr(result)


def test_every_adversary_is_named_weakest_first() -> None:
    made = run(
        ANSWERS,
        fc.TSSPrime(items=CITIES, p=0.5, alpha=1 / 3, floor=8, epsilon=1.0),
        entropy=SeededStream(32),
    )
    deltas = [guarantee.delta for guarantee in made.guarantees]
    assert deltas == sorted(deltas, reverse=True)
    assert made.guarantee == made.guarantees[0]
    assert {guarantee.adversary for guarantee in made.guarantees} >= {S1, S2}


def test_without_a_floor_the_result_says_how_little_it_promises() -> None:
    bare = run(ANSWERS, fc.DPDS(items=CITIES, p=0.5), entropy=SeededStream(33))
    assert bare.guarantee.delta == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("value", [0.0, 0.9, -1.0])
def test_duchi_intervals_cover_exactly_at_fifty_users(epsilon: float, value: float) -> None:
    """Positive reports are binomial when all hold one value: coverage by enumeration."""
    mechanism = fc.Duchi(epsilon=epsilon, users=50)
    chance = (1 + value * float(mechanism.window.excess)) / 2
    covered = 0.0
    for ones in range(51):
        low, high = MeanResult(mechanism, ReportSums(ones, ones), 50).interval()
        covered += binom.pmf(ones, 50, chance) * (low - 1e-9 <= value <= high + 1e-9)
    assert covered >= 0.95


def test_means_print_and_state_their_guarantee() -> None:
    made = run(np.linspace(-1, 1, 200), fc.PM(epsilon=1.0), entropy=SeededStream(34))
    low, high = made.interval()
    wide = made.interval(covers="population")
    assert low <= made.estimate <= high
    assert wide[0] <= low
    assert "200 users" in str(made)
    assert made.guarantee.epsilon == 1.0


@pytest.mark.parametrize("parties", [0, 1, 2.5])
def test_shares_need_two_parties(parties: object) -> None:
    with pytest.raises(ParameterError):
        run(ANSWERS, fc.Laplace(items=CITIES, epsilon=1.0), parties=parties)  # type: ignore[call-overload]


def test_run_refuses_what_is_no_mechanism_and_other_numbers_of_users() -> None:
    with pytest.raises(ParameterError, match="mechanisms"):
        run(ANSWERS, "laplace")  # type: ignore[call-overload]
    with pytest.raises(FaircountError, match="99 users"):
        run(ANSWERS, fc.Laplace(items=CITIES, epsilon=1.0, users=99))
    with pytest.raises(FaircountError, match="item list"):
        run(["Paris"], fc.Laplace(items=CITIES, epsilon=1.0))


@pytest.mark.parametrize("kind", [fc.DPDS, fc.DPCS])
def test_many_users_and_one_user_run(kind: type) -> None:
    many = run(np.zeros(5000, dtype=int), kind(items=4, p=1.0), entropy=SeededStream(35))
    assert many.estimates.tolist() == [1, 0, 0, 0]
    one = run([2], kind(items=4, p=1.0))
    assert one.estimates.tolist() == [0, 0, 1, 0]


COUNTS = np.array([60, 60, 60, 60, 60])


def test_a_result_states_what_is_left_after_dropouts() -> None:
    """300 of 1,000 users took part and no dropout was planned for: the plan does not hold."""
    noise = fc.Laplace(items=5, users=1000, epsilon=1.0)
    assert Result(noise, COUNTS, 300).guarantee == noise.remaining_guarantee(300)
    assert Result(noise, COUNTS, 300).guarantee.epsilon > 3
    coins = fc.Decoys(items=5, users=1000, epsilon=1.0, delta=1e-5)
    assert Result(coins, COUNTS, 300).guarantee.delta == 1.0  # all 300 may have had no coin
    assert Result(fc.Decoys(items=5, users=1000, coins=2000), COUNTS, 900).guarantee.delta < 1e-5
    sampled = fc.DPDS(items=5, users=1000, p=0.5, floor=100, epsilon=1.0)
    assert Result(sampled, COUNTS, 300).guarantee.delta == 0.5
    assert Result(sampled, COUNTS, 950).guarantee == sampled.remaining_guarantee(950)


def test_a_result_within_the_plan_states_the_plan() -> None:
    planned = fc.Laplace(items=5, users=400, epsilon=1.0, dropouts=100)
    assert Result(planned, COUNTS, 300).guarantee == planned.guarantee()
    local = fc.GRR(items=5, users=400, epsilon=1.0)
    assert Result(local, COUNTS, 300).guarantee == local.guarantee()

"""Bounds on epsilon from counted runs are valid, sharp, and honest about their power."""

import math

import numpy as np
import pytest
from scipy.stats import multinomial

import faircount as fc
from faircount.accounting import exact
from faircount.auditing.runs import audit
from faircount.auditing.statistics import (
    CHANCE,
    Claim,
    Event,
    claim_shares,
    epsilon_bound,
    find_bounds,
    learn_combination,
    learn_log_ratio,
    refutable,
)
from faircount.core.binomial import clopper_pearson
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError


def every_outcome(runs: int) -> np.ndarray:
    """All (both, first alone, second alone, neither) that so many pairs of runs can show."""
    found = []
    for both in range(runs + 1):
        for one in range(runs + 1 - both):
            rest = runs - both - one
            found += [(both, one, other, rest - other) for other in range(rest + 1)]
    return np.array(found)


@pytest.mark.parametrize(
    ("p", "q", "delta"), [(0.6, 0.25, 0.02), (0.3, 0.1, 0.0), (0.9, 0.5, 0.2), (0.2, 0.2, 0.0)]
)
def test_the_bound_exceeds_the_truth_no_more_often_than_allowed(
    p: float, q: float, delta: float
) -> None:
    """Exact: over all outcomes of 24 pairs of runs. Twice the allowed error would be noticed."""
    runs = 24
    error = 0.05
    seen = every_outcome(runs)
    bounds = epsilon_bound(
        seen[:, 0] + seen[:, 1], seen[:, 0] + seen[:, 2], seen[:, 0], runs, delta, error
    )
    chances = multinomial.pmf(seen, runs, [p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    assert chances.sum() == pytest.approx(1.0)
    wrong = bounds > math.log((p - delta) / q)
    assert chances[wrong].sum() <= error
    assert chances[bounds > math.log((p - delta) / q) - 0.7].sum() > error  # it does say something


def test_pairs_are_sharper_than_one_bound_for_each_data_set() -> None:
    runs = 100_000
    error = 1e-3
    delta = 1e-3
    p = 0.03
    q = 0.0185
    hits_p = round(p * runs)
    hits_q = round(q * runs)
    both = round(p * q * runs)
    low_p, high_q = (
        clopper_pearson(hits_p, runs, error / 2)[0],
        clopper_pearson(hits_q, runs, error / 2)[1],
    )
    apart = math.log((float(low_p) - delta) / float(high_q))
    together = float(epsilon_bound(hits_p, hits_q, both, runs, delta, error))
    assert apart < 0.33 < together < math.log((p - delta) / q)


def test_certain_and_impossible_events() -> None:
    assert epsilon_bound(0, 0, 0, 50, 0.0, 0.01) == -math.inf
    assert epsilon_bound(50, 50, 50, 50, 0.0, 0.01) == -math.inf
    assert epsilon_bound(50, 0, 0, 50, 0.1, 0.01) > 1.3
    assert epsilon_bound(3, 0, 0, 50, 0.5, 0.01) == -math.inf  # delta alone explains it
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert Event(0, 2.0, swapped=False).bound_epsilon(rows, rows, 0.0, 0.01) == -math.inf


def test_shapes_must_agree() -> None:
    with pytest.raises(ParameterError, match="same number"):
        find_bounds(np.zeros((10, 4)), np.zeros((11, 4)), [Claim(1.0, 0.0)], 0.99)


def test_the_error_is_divided_among_all_claims() -> None:
    assert claim_shares(1) == (1.0,)
    assert claim_shares(4)[0] == 0.5
    assert sum(claim_shares(4)) == pytest.approx(1.0)


@pytest.mark.parametrize("factor", [1, 2, -1])
def test_a_combination_of_what_is_known_is_learned(factor: int) -> None:
    """The first column is an answer plus a multiple of the second: only both together tell."""
    rng = np.random.default_rng(1)
    sides = []
    for answer in (1, 0):
        known = rng.integers(-50, 50, 2000)
        sides.append(np.stack([answer + factor * known, known], axis=1).astype(float))
    first, second = learn_combination(*sides)
    assert first.min() > 0 > second.max()


def test_how_likely_values_are_is_learned() -> None:
    """Even numbers on one data set and odd ones on the other: no threshold tells them apart."""
    rng = np.random.default_rng(2)
    even = 2.0 * rng.integers(-10, 10, 4000)
    first, second = learn_log_ratio(even, even + 1)
    assert first.min() > 0 > second.max()
    # Too many different values to count them.
    assert not learn_log_ratio(rng.random(4000), rng.random(4000))[0].any()


def test_what_is_learned_comes_from_the_pilot_runs_only() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 5, (1000, 2)).astype(float)
    second = rng.integers(0, 5, (1000, 2)).astype(float)
    changed = first.copy()
    changed[100:] = changed[100:][::-1]
    before = learn_combination(first, second)[0]
    after = learn_combination(changed, second)[0]
    assert before[100:].tolist() == after[100:][::-1].tolist()
    assert (
        learn_log_ratio(first[:, 0], second[:, 0])[0][100:].tolist()
        == learn_log_ratio(changed[:, 0], second[:, 0])[0][100:][::-1].tolist()
    )


def count_alarms(claims: list[Claim], audits: int) -> int:
    """How many audits of a randomized response with epsilon 1 refute a claim at confidence 0.8."""
    rng = np.random.default_rng(4)
    own = math.e / (math.e + 1)
    alarms = 0
    for _ in range(audits):
        sides = []
        for chance in (own, 1 - own):
            report = (rng.random(400) < chance).astype(float)
            ratio = 2 * report - 1
            sides.append(np.stack([ratio, -ratio, ratio, -ratio, report, rng.random(400)], axis=1))
        alarms += any(finding.refuted for finding in find_bounds(*sides, claims, 0.8))
    return alarms


def test_false_alarms_stay_below_the_stated_rate() -> None:
    """At claims that hold exactly, one audit in five may be wrong; slightly better ones are not."""
    own = math.e / (math.e + 1)

    def own_claims(epsilons: tuple[float, ...], less: float) -> list[Claim]:
        return [
            Claim(epsilon, max(0.0, own - math.exp(epsilon) * (1 - own) - less))
            for epsilon in epsilons
        ]

    assert count_alarms(own_claims((1.0, 0.5, 0.1), 0.0), 300) <= 0.2 * 300
    assert count_alarms(own_claims((1.0, 0.5, 0.1), 0.2), 50) > 0.5 * 50


DECOYS = fc.Decoys(items=3, epsilon=1.0, delta=1e-3)


def test_the_claim_that_is_said_to_be_refutable_is_refuted() -> None:
    """Of 40 audits at 95%, fewer than 29 refute it once in three million times."""
    said = audit(DECOYS, runs=4000, entropy=SeededStream(1)).refutable
    assert said is not None
    assert said < 1
    claim = {"epsilon": said, "delta": DECOYS.bind(5).guarantee().delta}
    found = [
        audit(DECOYS, **claim, runs=4000, entropy=SeededStream(seed)).refuted for seed in range(40)
    ]
    assert sum(found) >= 29
    fewer = [
        audit(DECOYS, **claim, runs=800, entropy=SeededStream(seed)).refuted for seed in range(40)
    ]
    assert sum(fewer) < 29


def test_what_is_refutable_grows_with_the_runs_up_to_the_truth() -> None:
    distribution = fc.GRR(items=3, epsilon=1.0).worst_pair(1.0)
    found = [
        refutable(distribution.tail_probabilities, 0.0, runs, 0.999, most=3.0)
        for runs in (50, 500, 5000, 500_000)
    ]
    assert found[0] is None
    assert 0 < found[1] < found[2] < found[3] < 1.0
    assert found[3] > 0.97
    assert 0.9 < CHANCE < 1


@pytest.mark.parametrize("floor", [0, 3, 20])
def test_the_distributions_of_a_worst_pair_are_those_of_the_guarantee(floor: int) -> None:
    """P - e^epsilon Q of the event "likelier by epsilon" is the exact delta."""
    made = fc.DPDS(items=3, p=0.4, floor=floor)
    p, q = made.worst_pair(0.5).tail_probabilities(0.5)
    assert p - math.exp(0.5) * q == pytest.approx(exact.sampling_delta(floor, 0.4, 0.5), rel=1e-9)


@pytest.mark.parametrize(
    "made",
    [
        DECOYS,
        fc.DPDG(items=3, epsilon=1.0, delta=1e-3),
        fc.GRR(items=4, epsilon=1.0),
        fc.OUE(items=4, epsilon=1.0),
        fc.Duchi(epsilon=1.0),
        fc.PM(epsilon=1.0),
        fc.Laplace(items=3, epsilon=1.0),
    ],
    ids=lambda made: made.name,
)
def test_so_they_are_for_every_other_mechanism(made: fc.Laplace) -> None:
    pair = made.worst_pair(0.6)
    p, q = pair.tail_probabilities(0.6)
    claimed = pair.stated_by.guarantee(epsilon=0.6, adversary=made.default_adversary).delta
    assert p - math.exp(0.6) * q == pytest.approx(claimed, rel=2e-6)

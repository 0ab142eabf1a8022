"""Composition agrees with closed forms and enumeration, and is never worse than adding up."""

import itertools
import math
import warnings
from collections import Counter
from decimal import Context, Decimal, localcontext
from functools import reduce
from typing import Any

import mpmath
import numpy as np
import pytest

import faircount as fc
from faircount.accounting import composition, exact
from faircount.accounting.conditions import ConditionCode, condition_of
from faircount.accounting.divergence import binomial_window, epsilon_for
from faircount.accounting.gaussian import analytic_delta
from faircount.accounting.guarantee import OUTSIDER, S1, Guarantee, Relation, insiders
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.exact_draws import ONE

CROWD: dict[str, Any] = {"items": 5, "users": 200}


RAIN = condition_of(ConditionCode.OTHER, text="it rains")


def make_guarantee(epsilon: float, delta: float = 0.0, **more: Any) -> Guarantee:
    return Guarantee(epsilon, delta, Relation.REPLACE_ONE, **({"adversary": OUTSIDER} | more))


def test_laplace_releases_are_randomized_responses() -> None:
    """Twelve releases of 0.1: adding up says 1.2 with a delta of next to 0."""
    made = fc.compose(*[fc.Laplace(**CROWD, epsilon=0.1)] * 12, epsilon=0.6)
    truth = composition.compose_randomized_response(0.05, 24, epsilon=0.6)
    assert truth <= made.delta <= truth + 1e-9
    assert made.adversary == insiders(1)
    assert fc.compose(
        *[fc.Laplace(**CROWD, epsilon=0.1)] * 12, delta=made.delta
    ).epsilon == pytest.approx(0.6, abs=1e-3)


def test_local_reports_compose_by_their_own_distribution() -> None:
    made = fc.GRR(items=30, epsilon=1.0)
    truth = made.compose_reports(6, epsilon=3.0)
    assert truth <= fc.compose(*[made] * 6, epsilon=3.0).delta <= truth * (1 + 1e-4) + 1e-12


def test_decoys_and_sampling_compose_by_their_coins() -> None:
    decoys = fc.Decoys(**CROWD, coins=4000)
    pair = exact.shift_pair(binomial_window(decoys.hidden_coins(insiders(1)), 0.5)[1])
    truth = composition.compose([[pair, pair.swap()]] * 4, epsilon=1.0)
    assert fc.compose(*[decoys] * 4, epsilon=1.0).delta == pytest.approx(truth, rel=1e-6)
    sampled = fc.DPDS(items=3, users=400, p=0.3, floor=60)
    pair = composition.sampling_pair(59, 0.3)
    truth = composition.compose([[pair, pair.swap()]] * 3, epsilon=1.0)
    both = fc.compose(sampled, sampled, sampled, epsilon=1.0)
    assert both.delta == pytest.approx(truth, rel=1e-6)
    assert both.condition == sampled.guarantee(epsilon=1.0).condition


def test_a_mixed_series_is_what_enumeration_says() -> None:
    parts = [
        fc.Laplace(**CROWD, epsilon=0.8, insiders=0),
        make_guarantee(0.5, 1e-3),
        make_guarantee(0.3),
    ]
    pairs = [*(composition.randomized_response(0.4),) * 2]
    pairs += [composition.dominating_pair(0.5, 1e-3), composition.dominating_pair(0.3, 0.0)]
    for epsilon in (0.0, 0.5, 1.2):
        truth = 0.0
        for outcome in itertools.product(
            *(zip(pair.log_p, pair.log_q, strict=True) for pair in pairs)
        ):
            p, q = (math.exp(sum(loss[side] for loss in outcome)) for side in (0, 1))
            truth += max(0.0, p - math.exp(epsilon) * q)
        found = fc.compose(*parts, epsilon=epsilon).delta
        assert truth <= found <= truth + 1e-6
        assert found > composition.compose(
            [pairs[:3]], epsilon=epsilon
        )  # leaving a release out shows


def test_dpdg_composes_by_what_is_drawn() -> None:
    made = fc.DPDG(**CROWD, epsilon=1.0, delta=1e-6)
    two = fc.compose(made, made, delta=1e-6)
    assert made.guarantee(delta=1e-6).epsilon < two.epsilon < 2 * made.guarantee(delta=5e-7).epsilon


@pytest.mark.parametrize("epsilons", [[0.1] * 10, [1.0], [0.2, 0.3]])
def test_it_is_never_worse_than_adding_up(epsilons: list[float]) -> None:
    parts = [make_guarantee(epsilon, 1e-8) for epsilon in epsilons]
    together = fc.compose(*parts, epsilon=math.fsum(epsilons))
    assert together.delta <= 1e-8 * len(epsilons)
    assert fc.compose(*parts, delta=1e-8 * len(epsilons)).epsilon <= math.fsum(epsilons)
    assert fc.compose(
        *[make_guarantee(epsilon) for epsilon in epsilons], delta=0.0
    ).epsilon == pytest.approx(sum(epsilons))


def test_what_is_chosen_after_earlier_results_adds_up() -> None:
    made = fc.compose(
        make_guarantee(0.5, 1e-7), make_guarantee(0.25, 1e-7, condition=RAIN), adaptive=True
    )
    assert (made.epsilon, made.delta, made.condition) == (0.75, 2e-7, RAIN)


def test_two_stage_releases_compose_as_their_guarantees() -> None:
    made = fc.TSSPrime(items=5, users=1000, p=0.3, alpha=0.4, floor=100, epsilon=1.0, delta=1e-3)
    said = made.stated_guarantees()[0]
    assert fc.compose(made, made, epsilon=2.0).delta <= 2 * said.delta
    assert fc.compose(made, made, epsilon=1.5).delta > said.delta


def test_huge_epsilons_only_add_up() -> None:
    assert fc.compose(make_guarantee(600.0), make_guarantee(1.0), epsilon=601.0).delta == 0.0
    assert fc.compose(make_guarantee(600.0), make_guarantee(1.0), epsilon=600.0).delta == 1.0
    assert fc.compose(make_guarantee(600.0), make_guarantee(1.0), delta=0.0).epsilon == 601.0
    with pytest.raises(RefusedError, match="too small"):
        fc.compose(make_guarantee(600.0, 1e-3), make_guarantee(1.0), delta=1e-6)


@pytest.mark.parametrize(
    ("parts", "known", "words"),
    [
        ([], {"epsilon": 1.0}, "at least one"),
        ([make_guarantee(1.0)], {}, "give epsilon or delta"),
        ([make_guarantee(1.0)], {"epsilon": 1.0, "delta": 0.1}, "give epsilon or delta"),
        ([make_guarantee(1.0)], {"epsilon": 1.0, "adaptive": True}, "leave epsilon and delta out"),
        (
            [make_guarantee(1.0), make_guarantee(1.0, adversary=S1)],
            {"epsilon": 1.0},
            "one relation and one adversary",
        ),
        ([1.0], {"epsilon": 1.0}, "takes mechanisms and guarantees"),
        ([fc.Laplace(items=3, epsilon=1.0)], {"epsilon": 1.0}, "give users="),
    ],
)
def test_wrong_use_is_told(parts: list[Any], known: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fc.compose(*parts, **known)


def test_forty_runs_of_the_same_data_cost_forty_times() -> None:
    """Each said epsilon 1, and their average was the truth."""
    answers = ["a"] * 70 + ["b"] * 30
    results = [
        fc.run(answers, fc.Laplace(items=["a", "b"], epsilon=1.0), topology="shares")
        for _ in range(40)
    ]
    assert (
        abs(np.mean([result.estimates[0] for result in results]) - 0.7) < 0.05
    )  # deviation 0.0045
    together = fc.compose(*(result.guarantee for result in results), delta=1e-6)
    assert 25 < together.epsilon <= 40


def test_nothing_is_claimed_for_free_just_below_the_sum() -> None:
    """Within a tolerance of 1e-12 the delta at a smaller epsilon was that of the sum."""
    epsilon = 1 - 5e-13
    made = fc.compose(fc.Laplace(**CROWD, epsilon=1.0), epsilon=epsilon)
    truth = composition.compose_randomized_response(0.5, 2, epsilon=epsilon)
    assert truth > 1e-13
    assert made.delta >= truth


def test_ten_times_a_tenth_is_one() -> None:
    made = fc.compose(*[fc.Laplace(**CROWD, epsilon=0.1)] * 10, epsilon=1.0)
    assert made.delta < 1e-20
    assert composition.adds_up_to([0.1] * 10, 1.0)
    assert composition.adds_up_to([0.1, 0.2], 0.3)
    assert not composition.adds_up_to([0.1, 0.2], 0.3 - 1e-15)


def responses_delta(epsilon: float, count: int, at: float) -> mpmath.mpf:
    """The delta of randomized responses, summed over how many of them are true."""
    with mpmath.workdps(60):
        odds = mpmath.exp(epsilon)
        delta = mpmath.mpf(0)
        for true in range(count + 1):
            p = mpmath.binomial(count, true) * odds**true / (1 + odds) ** count
            delta += p * max(0, 1 - mpmath.exp(at - epsilon * (2 * true - count)))
        return delta


@pytest.mark.parametrize(("releases", "least", "most"), [(120, 63, 63.2), (200, 93, 93.3)])
def test_many_laplace_releases_cost_what_their_distribution_costs(
    releases: int, least: float, most: float
) -> None:
    """The cost of finite tables grew with e^epsilon: 120 releases cost epsilon 120."""
    parts = [fc.Laplace(**CROWD, epsilon=1.0)] * releases
    epsilon = fc.compose(*parts, delta=1e-6).epsilon
    assert least < epsilon < most
    assert responses_delta(0.5, 2 * releases, epsilon) <= 1e-6
    assert responses_delta(0.5, 2 * releases, epsilon - 0.01) > 1e-6
    for at in (epsilon, 0.9 * releases, releases - 0.001):
        truth = responses_delta(0.5, 2 * releases, at)
        assert truth <= fc.compose(*parts, epsilon=at).delta <= truth * (1 + 1e-3) + 1e-11


def test_a_thousand_laplace_releases_compose() -> None:
    epsilon = fc.compose(*[fc.Laplace(**CROWD, epsilon=1.0)] * 1000, delta=1e-6).epsilon
    truth = composition.compose_randomized_response(0.5, 2000, delta=1e-6)
    assert truth <= epsilon < truth + 0.1


@pytest.mark.parametrize(
    ("items", "epsilon", "users"), [(2, 12.0, 2), (2, 20.0, 2), (2, 40.0, 3), (3, 50.0, 2)]
)
def test_two_releases_by_enumeration_of_the_integers_that_are_drawn_from(
    items: int, epsilon: float, users: int
) -> None:
    """At and beyond the sum of both epsilons only the finite tables are left of delta."""
    made = fc.Laplace(items=items, users=users, epsilon=epsilon, insiders=1)
    table = np.array(made.table.weights, dtype=object)
    distribution = reduce(np.convolve, [table] * (users - 1)).tolist()
    # A replaced answer moves x by one in a pair, and otherwise two counts by one each.
    moved = list(zip([0, *distribution], [*distribution, 0], strict=True))
    counts = 2 if items == 2 else 4
    whole = Decimal(ONE) ** ((users - 1) * counts)
    outcomes = []
    for chosen in itertools.combinations_with_replacement(moved, counts):
        orders = math.factorial(counts)
        for repeated in Counter(chosen).values():
            orders //= math.factorial(repeated)
        p, q = (math.prod(weights) for weights in zip(*chosen, strict=True))
        outcomes.append((orders * p, orders * q))
    for at in (1.2 * epsilon, 2 * epsilon - 1e-9, 2 * epsilon, 2 * epsilon + 3):
        with localcontext(Context(prec=200)):
            factor = Decimal(at).exp()
            truth = sum(max(Decimal(0), p - factor * q) for p, q in outcomes) / whole
        assert 0 < truth <= Decimal(fc.compose(made, made, epsilon=at).delta)
    assert made.table_delta(2) < 1e-20


def test_many_gaussian_releases_compose_beyond_a_large_epsilon() -> None:
    """The tails that are cut off cost e^epsilon times their probability."""
    parts = [fc.DPDG(**CROWD, epsilon=8.0, delta=1e-6)] * 60
    deviation = parts[0].target_sigma
    epsilon = fc.compose(*parts, delta=1e-6).epsilon
    truth = epsilon_for(lambda at: analytic_delta(deviation, at, math.sqrt(2 * 60)), 1e-6)
    assert epsilon > 70
    assert epsilon == pytest.approx(truth, rel=0.01)


def test_counting_everybody_composes_to_no_privacy_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in (1 - 1e-15, 1.0):
            sampled = fc.DPDS(items=3, users=2000, p=p, floor=100, epsilon=1.0)
            made = fc.compose(sampled, sampled, epsilon=1.0)
            assert made.delta == pytest.approx(1.0)

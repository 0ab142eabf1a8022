"""Composition against exact convolution, dp_accounting's own construction and a known table."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from faircount.accounting import composition, exact
from faircount.accounting.composition import compose, dominating_pair
from faircount.accounting.conditions import (
    MEMBERSHIP,
    Condition,
    ConditionCode,
    condition_of,
    floor_condition,
    joint_condition,
)
from faircount.accounting.divergence import LossPair, hockey_stick, log_binomial
from faircount.accounting.guarantee import (
    OUTSIDER,
    S1,
    Guarantee,
    Relation,
)
from faircount.core.errors import ParameterError, RefusedError


def distribution(*weights: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(weights) / sum(weights))


def convolved(pairs: list[LossPair], epsilon: float) -> float:
    """The definition over the whole product space."""
    total = 0.0
    for outcome in itertools.product(*(zip(pair.log_p, pair.log_q, strict=True) for pair in pairs)):
        p, q = (math.exp(sum(coordinate[side] for coordinate in outcome)) for side in (0, 1))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


UNEVEN = LossPair(distribution(5, 3, 1, 0.2), distribution(4, 3, 2, 0.0))
OTHER = LossPair(distribution(1, 2, 3), distribution(3, 2, 1))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_composition_is_the_product_rounded_up(epsilon: float) -> None:
    releases = [[UNEVEN], [OTHER, UNEVEN], [UNEVEN]]
    flat = [pair for release in releases for pair in release]
    truth = max(convolved(flat, epsilon), convolved([pair.swap() for pair in flat], epsilon))
    value = composition.compose(releases, epsilon=epsilon)
    assert truth <= value <= truth + 1e-7


def test_both_directions_are_looked_at() -> None:
    forward = composition.compose([[UNEVEN]], epsilon=1.0)
    assert forward == composition.compose([[UNEVEN.swap()]], epsilon=1.0)
    assert hockey_stick([UNEVEN.swap()], 1.0) < hockey_stick([UNEVEN], 1.0) <= forward


def test_one_release_is_the_exact_delta() -> None:
    coins = exact.shift_pair(log_binomial(115, 0.5))
    assert composition.compose([[coins, coins.swap()]], epsilon=1.0) == pytest.approx(
        exact.decoys_delta(115, 1.0), rel=1e-6
    )
    sampled = composition.sampling_pair(100, 0.5)
    value = composition.compose([[sampled, sampled.swap()]], epsilon=0.5)
    assert value == pytest.approx(exact.sampling_delta(100, 0.5, 0.5), rel=1e-5)
    zero_out = composition.compose([[sampled]], epsilon=0.5)
    assert zero_out == pytest.approx(
        exact.sampling_delta(100, 0.5, 0.5, Relation.ZERO_OUT), rel=1e-5
    )


def test_epsilon_and_delta_answer_each_other() -> None:
    release = [composition.sampling_pair(100, 0.5), composition.sampling_pair(100, 0.5).swap()]
    epsilon = composition.compose([release] * 10, delta=1e-6)
    assert composition.compose([release] * 10, epsilon=epsilon) <= 1e-6
    assert composition.compose([release] * 10, epsilon=epsilon - 1e-3) > 1e-6
    assert composition.compose([], epsilon=1.0) == 0.0
    for wrong in ({}, {"epsilon": 1.0, "delta": 0.1}):
        with pytest.raises(ParameterError, match="one of them"):
            composition.compose([release], **wrong)


def test_a_revealing_release_stays_revealing() -> None:
    bare = LossPair(distribution(1, 0), distribution(0, 1))
    assert composition.compose([[bare]] * 3, epsilon=5.0) == 1.0
    with pytest.raises(RefusedError):
        composition.compose([[bare, UNEVEN]], delta=0.5)


def test_dp_accounting_agrees_from_both_sides() -> None:
    pair = composition.sampling_pair(100, 0.5)
    upper, lower = dict(enumerate(pair.log_p)), dict(enumerate(pair.log_q))
    bounds = []
    for pessimistic in (False, True):
        parts = [
            pld.from_two_probability_mass_functions(q, p, pessimistic, 1e-4, symmetric=False)
            for p, q in ((upper, lower), (lower, upper))
        ]
        bounds.append(parts[0].compose(parts[1]).self_compose(6).get_delta_for_epsilon(1.5))
    ours = composition.compose([[pair, pair.swap()]] * 6, epsilon=1.5)
    assert bounds[0] <= ours <= bounds[1]
    assert ours == pytest.approx(sum(bounds) / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("response_epsilon", "count", "epsilon"),
    [(0.5, 1, 0.2), (0.5, 2, 0.5), (0.3, 9, 0.8), (0.1, 6, 0.0)],
)
def test_randomized_response_is_the_product(
    response_epsilon: float, count: int, epsilon: float
) -> None:
    response = LossPair(
        distribution(math.exp(response_epsilon), 1), distribution(1, math.exp(response_epsilon))
    )
    value = composition.compose_randomized_response(response_epsilon, count, epsilon=epsilon)
    assert value == pytest.approx(convolved([response] * count, epsilon), rel=1e-9)
    assert composition.compose([[response]] * count, epsilon=epsilon) == pytest.approx(
        value, rel=1e-3
    )


def test_randomized_response_is_pure_at_the_sum() -> None:
    assert composition.compose_randomized_response(0.25, 8, epsilon=2.0) == 0.0
    assert composition.compose_randomized_response(0.25, 8, delta=0.0) == pytest.approx(
        2.0, abs=1e-11
    )
    one = composition.compose_randomized_response(0.5, 2, epsilon=0.4)
    assert one == pytest.approx(exact.laplace_delta(1.0, 1.0, 0.4), rel=1e-12)


# Variance of a release when R of them share a total of (1, 1e-6). The mathematics page prints 143
# for R = 4 and 1856.5 for R = 52; 572 coins fail even by an optimistic bound (test below), and 7425
# pass by our pessimistic one.
TABLE = [
    (1, 7.84, 37),
    (2, 31.8, 72),
    (4, 128, 143.25),
    (6, 286, 214.5),
    (12, 761, 428.5),
    (52, 3609, 1856.25),
]


@pytest.mark.parametrize(("releases", "laplace", "decoys"), TABLE)
def test_the_table_of_repeated_releases(releases: int, laplace: float, decoys: float) -> None:
    release_epsilon = composition.laplace_epsilon_for_releases(1.0, 1e-6, releases)
    ratio = math.exp(-release_epsilon / 2)
    assert float(f"{2 * ratio / (1 - ratio) ** 2:.{4 if laplace > 1000 else 3}g}") == laplace
    assert composition.decoys_for_releases(1.0, 1e-6, releases) == 4 * decoys


def decoys_bound(coins: int, releases: int, *, pessimistic: bool, step: float) -> float:
    pair = exact.shift_pair(log_binomial(coins, 0.5))
    lower, upper = dict(enumerate(pair.log_q)), dict(enumerate(pair.log_p))
    made = pld.from_two_probability_mass_functions(
        lower, upper, pessimistic, step, -60.0, symmetric=False
    )
    return float(made.self_compose(2 * releases).get_delta_for_epsilon(1.0))


def test_572_coins_are_too_few_for_four_releases() -> None:
    assert decoys_bound(572, 4, pessimistic=False, step=2e-5) > 1e-6


def test_laplace_per_release_is_sound_and_tight() -> None:
    for releases in (1, 3, 20):
        release_epsilon = composition.laplace_epsilon_for_releases(1.0, 1e-6, releases)
        total = composition.compose_randomized_response(
            release_epsilon / 2, 2 * releases, epsilon=1.0
        )
        assert total <= 1e-6
        assert (
            composition.compose_randomized_response(
                release_epsilon * 0.5001, 2 * releases, epsilon=1.0
            )
            > 1e-6
        )
    assert composition.laplace_epsilon_for_releases(1.0, 0.0, 4) == 0.25


def test_sampling_per_release_is_sound_and_tight() -> None:
    p = composition.sampling_probability_for_releases(150, 1.0, 1e-6, 4)
    pair, looser = composition.sampling_pair(150, p), composition.sampling_pair(150, p * 1.001)
    assert composition.compose([[pair, pair.swap()]] * 4, epsilon=1.0) <= 1e-6
    assert composition.compose([[looser, looser.swap()]] * 4, epsilon=1.0) > 1e-6
    assert composition.sampling_probability_for_releases(
        150, 1.0, 1e-6, 1
    ) == exact.sampling_probability(150, 1.0, 1e-6)


def test_sampling_without_a_floor_exposes_once_in_a_while() -> None:
    p = composition.sampling_probability_for_releases(0, 1.0, 1e-3, 5)
    assert 1 - (1 - p) ** 5 == pytest.approx(1e-3, rel=1e-9)


FLOOR = floor_condition(23)


def guarantee(
    epsilon: float, delta: float = 0.0, condition: Condition | None = None, **other: object
) -> Guarantee:
    given = {"relation": Relation.REPLACE_ONE, "adversary": OUTSIDER, **other}
    return Guarantee(epsilon, delta, condition=condition, **given)  # type: ignore[arg-type]  # built from names above


def test_adaptive_releases_add_up() -> None:
    total = composition.sum_epsilons(
        [guarantee(0.5, 1e-6, FLOOR), guarantee(0.25, 1e-6), guarantee(1, 0.0, floor_condition(23))]
    )
    assert (total.epsilon, total.delta, total.condition) == (1.75, pytest.approx(2e-6), FLOOR)
    assert composition.sum_epsilons([guarantee(1, 0.7), guarantee(1, 0.7)]).delta == 1.0


def test_disjoint_groups_keep_the_weakest_guarantee() -> None:
    noise = condition_of(ConditionCode.S1_NOISE)
    whole = composition.compose_parallel([guarantee(0.5, 1e-5, FLOOR), guarantee(1.0, 1e-6, noise)])
    assert (whole.epsilon, whole.delta) == (1.0, 1e-5)
    assert whole.condition == joint_condition((FLOOR, noise, MEMBERSHIP))
    assert str(whole.condition) == f"{FLOOR} and {noise} and {MEMBERSHIP}"
    assert composition.compose_parallel([whole, guarantee(0.5)]).condition == whole.condition
    assert composition.compose_parallel([guarantee(0.5), guarantee(0.5)]).condition == MEMBERSHIP
    assert composition.compose_parallel([guarantee(0.5)]).condition is None


def test_unlike_guarantees_do_not_combine() -> None:
    for combine in (composition.compose_parallel, composition.sum_epsilons):
        with pytest.raises(ParameterError, match="alike"):
            combine([guarantee(1), guarantee(1, relation=Relation.ZERO_OUT)])
        with pytest.raises(ParameterError, match="alike"):
            combine([guarantee(1), guarantee(1, adversary=S1)])
        with pytest.raises(ParameterError, match="at least one"):
            combine([])


def test_the_dominating_pair_is_as_private_as_it_says() -> None:
    pair = dominating_pair(0.7, 1e-3)
    assert compose([[pair]], epsilon=0.7) == pytest.approx(1e-3, rel=1e-3)
    assert compose([[pair]], epsilon=0.0) > 0.3


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 20.0, 36.7, 45.0, 200.0, 500.0])
def test_the_dominating_pair_loses_nothing_at_large_epsilons(epsilon: float) -> None:
    """1 - delta - (1 - delta) / (1 + e^-epsilon) cancels: it lost 0.69 at epsilon 36.7."""
    for delta in (0.0, 1e-9):
        mass, loss = dominating_pair(epsilon, delta).losses()
        finite = np.isfinite(loss)
        assert loss[finite].max() == pytest.approx(epsilon, rel=1e-14)
        assert mass[~finite].sum() == pytest.approx(delta, rel=1e-14)
        assert mass.sum() == pytest.approx(1, rel=1e-14)


def test_a_pair_beyond_what_is_looked_at_is_refused() -> None:
    with pytest.raises(RefusedError, match="only add up"):
        dominating_pair(501.0, 0.0)
    assert compose([[dominating_pair(1.0, 1.0)]], epsilon=1.0) == 1.0


mp.mp.dps = 50


@pytest.mark.parametrize(
    ("response_epsilon", "count"), [(0.05, 100), (0.1, 10), (0.01, 1000), (2.0, 6), (37.0, 3)]
)
def test_composed_responses_are_never_too_small_near_their_largest_loss(
    response_epsilon: float, count: int
) -> None:
    p = 1 / (1 + mp.exp(-mp.mpf(response_epsilon)))
    for epsilon in (
        0.3 * response_epsilon * count,
        response_epsilon * count * (1 - 1e-12),
        response_epsilon * count,
    ):
        losses = [mp.mpf(response_epsilon) * (2 * i - count) for i in range(count + 1)]
        gains = [
            mp.binomial(count, i)
            * p**i
            * (1 - p) ** (count - i)
            * (1 - mp.exp(mp.mpf(epsilon) - loss))
            for i, loss in enumerate(losses)
            if loss > mp.mpf(epsilon)
        ]
        assert composition.compose_randomized_response(
            response_epsilon, count, epsilon=epsilon
        ) >= mp.fsum(gains)


def test_pure_loss_stays_pure() -> None:
    assert composition.compose_randomized_response(0.5, 2, epsilon=1.0) == 0.0


def test_releases_with_a_delta_below_the_accounting_error_are_refused() -> None:
    with pytest.raises(RefusedError, match="too small to account"):
        composition.decoys_for_releases(1.0, 1e-15, 10)
    assert (
        0 < composition.sampling_probability_for_releases(50, 1.0, 1e-15, 10) < 0.01
    )  # by adding up, always sound

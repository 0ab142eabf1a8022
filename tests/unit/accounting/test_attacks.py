"""Claims that were once too small by more than rounding, searches that crashed, and adversaries made up by hand.

Every true value here is computed independently: in many digits with mpmath, or by enumerating all outcomes.
"""

import itertools
import math
import random
from collections import defaultdict

import mpmath as mp
import pytest

from faircount.accounting import composition, exact, gaussian, two_stage
from faircount.accounting.divergence import smallest_within
from faircount.accounting.guarantee import (
    COLLECTOR,
    OUTSIDER,
    S1,
    S2,
    Adversary,
    Guarantee,
    Relation,
    insiders,
    known,
    rounded_up,
)
from faircount.core.errors import ParameterError, RefusedError

mp.mp.dps = 50


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float) -> mp.mpf:
    ratio, eps = mp.mpf(sigma) / mp.mpf(sensitivity), mp.mpf(epsilon)
    return mp.ncdf(-eps * ratio + 1 / (2 * ratio)) - mp.exp(eps) * mp.ncdf(-eps * ratio - 1 / (2 * ratio))


def test_analytic_gaussian_is_never_too_small() -> None:
    draw = random.Random(1)  # noqa: S311 - repeatable on purpose
    for _ in range(400):
        epsilon = draw.choice([0, 1e-8, 1e-4, 0.01, 0.5, 1, 5, 30])
        sigma = 10 ** draw.uniform(-4, 9)
        true = gaussian_delta(sigma, epsilon, 1.0)
        if true > mp.mpf(10) ** -200:
            assert gaussian.analytic_delta(sigma, epsilon, 1.0) >= true * (1 - mp.mpf(10) ** -12)


@pytest.mark.parametrize("epsilon", [1e-3, 2e-3, 1e-2, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.1, 0.5, 0.99, 0.999999])
def test_epsilon_of_a_part_of_the_noise_is_never_too_small(epsilon: float, share: float) -> None:
    a, r = mp.exp(-mp.mpf(epsilon) / 2), mp.mpf(share)
    true = 2 * mp.log(mp.hyp2f1(r, r, 1, a * a) / (a * r * mp.hyp2f1(r, r + 1, 2, a * a)))
    said = exact.laplace_epsilon(epsilon, share)
    assert true <= said <= true * (1 + 1e-6)


@pytest.mark.parametrize(("each", "count"), [(0.05, 100), (0.1, 10), (0.01, 1000), (2.0, 6), (37.0, 3)])
def test_composed_responses_are_never_too_small_near_their_largest_loss(each: float, count: int) -> None:
    p = 1 / (1 + mp.exp(-mp.mpf(each)))
    for epsilon in (0.3 * each * count, each * count * (1 - 1e-12), each * count):
        losses = [mp.mpf(each) * (2 * i - count) for i in range(count + 1)]
        gains = [
            mp.binomial(count, i) * p**i * (1 - p) ** (count - i) * (1 - mp.exp(mp.mpf(epsilon) - loss))
            for i, loss in enumerate(losses)
            if loss > mp.mpf(epsilon)
        ]
        assert composition.compose_randomized_response(each, count, epsilon=epsilon) >= mp.fsum(gains)


def test_pure_loss_stays_pure() -> None:
    assert composition.compose_randomized_response(0.5, 2, epsilon=1.0) == 0.0


def test_the_search_survives_a_curve_that_is_flat_to_the_last_bit() -> None:
    above = math.nextafter(0.1, 1)
    assert smallest_within(lambda x: above if x < 0.5 else 0.1, 0.1, 0.0, 1.0) == pytest.approx(0.5, abs=1e-9)
    for coins, delta in ((50, exact.decoys_delta(50, 50.0)), (10, exact.decoys_delta(10, 50.0))):
        assert exact.decoys_delta(coins, exact.decoys_epsilon(coins, delta)) <= delta


def test_releases_with_a_delta_below_the_accounting_error_are_refused() -> None:
    with pytest.raises(RefusedError, match="too small to account"):
        composition.decoys_for_releases(1.0, 1e-15, 10)
    assert 0 < composition.sampling_probability_for_releases(50, 1.0, 1e-15, 10) < 0.01  # by adding up, always sound


def test_huge_floors_and_coins_are_answered_at_once() -> None:
    assert exact.sampling_delta(10**400, 0.5, 1e-4) == exact.sampling_delta(10**9, 0.5, 1e-4)
    assert exact.decoys_delta(10**400, 1e-3) == exact.decoys_delta(10**8, 1e-3)


def test_the_smallest_probability_raises_no_warning() -> None:
    assert exact.sampling_delta(3, 5e-324, 1.0) >= 5e-324


@pytest.mark.parametrize("relation", ["replace_one", "", None, 3])
def test_a_misspelt_relation_does_not_pass_for_the_weaker_one(relation: str) -> None:
    for claim in (
        lambda: exact.sampling_delta(20, 0.5, 0.5, relation),  # type: ignore[arg-type]
        lambda: exact.decoys_delta(20, 0.5, relation),  # type: ignore[arg-type]
        lambda: exact.laplace_delta(1.0, 0.9, 0.5, relation),  # type: ignore[arg-type]
        lambda: two_stage.s1_delta(5, 2, 0.5, 2.0, 20, 0.5, relation),  # type: ignore[arg-type]
        lambda: Guarantee(1.0, 0.1, relation, OUTSIDER),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match="relation"):
            claim()
    assert exact.sampling_delta(20, 0.5, 0.5, "replace-one") == exact.sampling_delta(20, 0.5, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [-1, 2.5, True, None, "3"])
def test_adversaries_have_whole_numbers_of_insiders(count: object) -> None:
    with pytest.raises(ParameterError):
        Adversary("participants", count)  # type: ignore[arg-type] # that is the point
    with pytest.raises(ParameterError):
        insiders(count)  # type: ignore[arg-type] # that is the point


def test_only_adversaries_whose_view_is_known_are_spoken_of() -> None:
    for each in (OUTSIDER, S1, S2, COLLECTOR, insiders(3)):
        assert known(each) == each
    for made_up in (Adversary("S1"), Adversary(S1.who, 2), Adversary("anybody")):
        with pytest.raises(RefusedError, match="not known"):
            known(made_up)
    with pytest.raises(ParameterError):
        known("S1")


def test_what_is_printed_holds_as_well() -> None:
    printed = str(Guarantee(1.00049, 1.2349e-5, Relation.REPLACE_ONE, OUTSIDER))
    assert printed.startswith("(1.001, 1.24e-05)-DP")
    assert str(Guarantee(0.1, 1e-5, Relation.REPLACE_ONE, OUTSIDER)).startswith("(0.1, 1e-05)-DP")
    draw = random.Random(2)  # noqa: S311 - repeatable on purpose
    for _ in range(200):
        value = draw.random() * 10 ** draw.uniform(-300, 2)
        assert value <= float(rounded_up(value, 3)) <= value * 1.01
    assert rounded_up(0.0, 3) == "0"


def test_bad_guarantees_are_refused_as_parameters() -> None:
    for delta in (-1, 1.5, math.nan):
        with pytest.raises(ParameterError):
            Guarantee(1.0, delta, Relation.REPLACE_ONE, OUTSIDER)
    with pytest.raises(ParameterError):
        Guarantee(1.0, 0.1, Relation.REPLACE_ONE, "S1")  # type: ignore[arg-type] # that is the point


def views(items: list[int], N: int, M: int, p: float, gamma: float, zero: bool = False) -> dict[object, float]:
    """The law of everything that S1 sees: all sets and the opened counts; with `zero`, the last user adds nothing."""
    law: dict[object, float] = {((), (0,) * N): 1.0}
    choices = list(itertools.combinations(range(N), M))
    for i, item in enumerate(items):
        silent, grown = zero and i == len(items) - 1, defaultdict(float)
        whole = sum(gamma if item in each else 1.0 for each in choices)
        for (sets, counts), weight in law.items():  # type: ignore[misc]
            for each in choices:
                active = 0.0 if silent else p * (gamma if item in each else 1.0) / whole
                counted = tuple(c + (j == item) for j, c in enumerate(counts)) if item in each else counts
                grown[((*sets, each), counted)] += weight * active
                grown[((*sets, each), counts)] += weight * (1 if silent else 1 - p) / len(choices)
        law = dict(grown)
    return law


def divergence(first: dict[object, float], second: dict[object, float], epsilon: float) -> float:
    return max(
        sum(max(0.0, p - math.exp(epsilon) * other.get(view, 0.0)) for view, p in one.items())
        for one, other in ((first, second), (second, first))
    )


@pytest.mark.parametrize(("N", "M", "k"), [(2, 1, 2), (3, 1, 1), (3, 2, 2), (4, 2, 1), (3, 2, 0)])
@pytest.mark.parametrize(("p", "gamma", "epsilon"), [(0.5, 1.0, 0.1), (0.9, 3.0, 0.5), (0.2, 20.0, 2.0), (1.0, 2.0, 0)])
def test_s1_by_enumeration_of_all_it_sees(N: int, M: int, k: int, p: float, gamma: float, epsilon: float) -> None:
    others = [0] * k + [1] * k
    held = [views([*others, item], N, M, p, gamma) for item in (0, 1)]
    nothing = views([*others, 0], N, M, p, gamma, zero=True)
    replaced, zeroed = divergence(*held, epsilon), divergence(held[0], nothing, epsilon)
    assert two_stage.s1_delta(N, M, p, gamma, k, epsilon) == pytest.approx(replaced, rel=1e-9, abs=1e-12)
    said = two_stage.s1_delta(N, M, p, gamma, k, epsilon, Relation.ZERO_OUT)
    assert said == pytest.approx(zeroed, rel=1e-9, abs=1e-12)


def test_s1_at_an_epsilon_beyond_the_range_of_exp() -> None:
    for relation in Relation:
        assert 0 <= two_stage.s1_delta(5, 2, 0.5, 2.0, 20, 1000.0, relation) < 0.01
    assert two_stage.sets_delta(5, 2, 0.5, 2.0, 1000.0) == 0.0

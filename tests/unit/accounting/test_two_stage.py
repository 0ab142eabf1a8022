"""What the coordinator learns, against enumeration of every set, coin and bit."""

import itertools
import math
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.accounting import exact, two_stage
from faircount.accounting.conditions import NOBODY_LEFT_OUT
from faircount.accounting.guarantee import S1, Relation
from faircount.core.errors import ParameterError
from faircount.mechanisms.calibration import Requirements
from faircount.mechanisms.two_stage import TSS, TSSPrime

Distribution = dict[tuple[object, ...], float]
Sets = tuple[tuple[int, ...], ...]
Users = frozenset[int]


def reports(item: int | None, N: int, M: int, p: float, gamma: float) -> Distribution:
    """Distribution of one user's (set, counted item or None), straight from the paper's definition.

    A user with item None responds with zero.
    """
    subsets = list(itertools.combinations(range(N), M))
    distribution: Distribution = defaultdict(float)
    if item is None:
        return {(chosen, None): 1 / len(subsets) for chosen in subsets}
    scale = gamma * math.comb(N - 1, M - 1) + math.comb(N - 1, M)
    for chosen in subsets:
        distribution[chosen, None] += (1 - p) / len(subsets)
        weight = p * (gamma if item in chosen else 1) / scale
        distribution[chosen, item if item in chosen else None] += weight
    return distribution


def coordinator_view(
    holders: list[int | None], N: int, M: int, p: float, gamma: float
) -> Distribution:
    """Distribution of all sets and the published counts."""
    distribution: Distribution = {((), (0,) * N): 1.0}
    for item in holders:
        after: Distribution = defaultdict(float)
        for (sets, counts), before in distribution.items():
            for (chosen, counted), chance in reports(item, N, M, p, gamma).items():
                new = tuple(count + (j == counted) for j, count in enumerate(counts))
                after[(*sets, chosen), new] += before * chance
        distribution = after
    return distribution


def divergence(left: Distribution, right: Distribution, eps: float) -> float:
    return math.fsum(
        max(0.0, chance - math.exp(eps) * right.get(view, 0.0)) for view, chance in left.items()
    )


CASES = [
    (3, 1, 0.4, 1.0, 1, 0.3),
    (3, 2, 0.5, 2.0, 1, 0.5),
    (2, 1, 0.7, 3.0, 2, 0.2),
    (4, 2, 0.3, 2.0, 1, 0.1),
]


@pytest.mark.parametrize(("N", "M", "p", "gamma", "k", "eps"), CASES)
def test_s1_sees_exactly_this(N: int, M: int, p: float, gamma: float, k: int, eps: float) -> None:
    others: list[int | None] = [0] * k + [1] * k
    first = coordinator_view([*others, 0], N, M, p, gamma)
    second = coordinator_view([*others, 1], N, M, p, gamma)
    truth = divergence(first, second, eps)
    assert two_stage.coordinator_delta(N, M, p, gamma, k, eps) == pytest.approx(truth, rel=1e-9)
    assert divergence(second, first, eps) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(("N", "M", "p", "gamma", "k", "eps"), CASES)
def test_s1_sees_exactly_this_of_a_zero_response(
    N: int, M: int, p: float, gamma: float, k: int, eps: float
) -> None:
    others: list[int | None] = [0] * k
    with_user = coordinator_view([*others, 0], N, M, p, gamma)
    without = coordinator_view([*others, None], N, M, p, gamma)
    truth = max(divergence(with_user, without, eps), divergence(without, with_user, eps))
    assert two_stage.coordinator_delta(N, M, p, gamma, k, eps, Relation.ZERO_OUT) == pytest.approx(
        truth, rel=1e-9
    )


@pytest.mark.parametrize(("p", "gamma"), [(0.5, 2.0), (0.9, 3.0), (1.0, 1.5), (0.3, 1.0)])
def test_the_sets_alone(p: float, gamma: float) -> None:
    N, M = 5, 2
    distributions = []
    for item in (0, 1):
        sets: dict[object, float] = defaultdict(float)
        for (chosen, _), chance in reports(item, N, M, p, gamma).items():
            sets[chosen] += chance
        distributions.append(sets)
    worst = max(
        math.log(distributions[0][chosen] / distributions[1][chosen]) for chosen in distributions[0]
    )
    assert two_stage.coordinator_epsilon(p, M / N, gamma) == pytest.approx(worst, abs=1e-12)
    assert (
        two_stage.coordinator_epsilon(p, M / N, gamma)
        <= two_stage.coordinator_epsilon_paper(gamma) + 1e-12
    )


def test_known_answers_of_the_mathematics_page() -> None:
    values = [two_stage.coordinator_delta(30, 12, 0.5, gamma, 100, 0.5) for gamma in (1, 2, math.e)]
    assert [float(f"{value:.2g}") for value in values] == [3.9e-4, 7.3e-3, 2.2e-2]


def uniform_by_the_page(N: int, M: int, p: float, k: int, eps: float) -> float:
    """The expectation over both crowds, written out."""
    both = M * (M - 1) / (N * (N - 1))
    one, chance = M / N - both, M / N
    total, factor = 0.0, math.exp(eps)
    for a, b in itertools.product(range(k + 1), repeat=2):
        weight = math.prod(
            math.comb(k, count) * chance**count * (1 - chance) ** (k - count) for count in (a, b)
        )
        up, down, low, high = pmf(a + 1, p, k), pmf(a, p, k), pmf(b, p, k), pmf(b + 1, p, k)
        pairs = itertools.product(range(k + 2), repeat=2)
        joint = math.fsum(max(0.0, up[x] * low[y] - factor * down[x] * high[y]) for x, y in pairs)
        single = math.fsum(max(0.0, up[x] - factor * down[x]) for x in range(k + 2))
        single += math.fsum(max(0.0, low[y] - factor * high[y]) for y in range(k + 2))
        total += weight * (both * joint + one * single)
    return total


def pmf(n: int, p: float, k: int) -> list[float]:
    return [math.comb(n, x) * p**x * (1 - p) ** (n - x) if x <= n else 0.0 for x in range(k + 2)]


def test_uniform_reporting_is_the_formula_of_the_page() -> None:
    value = two_stage.coordinator_delta(10, 4, 0.5, 1.0, 8, 0.5)
    assert value == pytest.approx(uniform_by_the_page(10, 4, 0.5, 8, 0.5), rel=1e-9)


def test_reporting_every_item_is_plain_sampling() -> None:
    for gamma in (1.0, 2.0):
        assert two_stage.coordinator_delta(6, 6, 0.5, gamma, 50, 0.5) == pytest.approx(
            exact.sampling_delta(50, 0.5, 0.5), rel=1e-9
        )
        assert two_stage.coordinator_epsilon(0.5, 1.0, gamma) == 0.0


def test_edges() -> None:
    assert two_stage.coordinator_delta(4, 2, 0.3, 1.0, 0, 1.0) == pytest.approx(0.3 * 0.5, rel=1e-9)
    assert two_stage.coordinator_delta(4, 4, 1.0, 1.0, 20, 1.0) == pytest.approx(1, rel=1e-9)
    for bad in (0.5, math.inf):
        with pytest.raises(ParameterError):
            two_stage.coordinator_delta(4, 2, 0.3, bad, 5, 1.0)
    with pytest.raises(ParameterError):
        two_stage.coordinator_epsilon_paper(0.5)
    with pytest.raises(ParameterError):
        two_stage.coordinator_delta(4, 5, 0.3, 1.0, 5, 1.0)


@given(st.integers(0, 120), st.floats(0.1, 0.9), st.floats(1, 3), st.floats(0.05, 1.5))
@settings(max_examples=40, deadline=None)
def test_s1_learns_less_with_larger_floors_and_more_than_a_reader(
    k: int, p: float, gamma: float, eps: float
) -> None:
    here = two_stage.coordinator_delta(12, 5, p, gamma, k, eps)
    assert two_stage.coordinator_delta(12, 5, p, gamma, k + 3, eps) <= here * (1 + 1e-9)
    assert two_stage.coordinator_delta(12, 5, p, gamma, k, eps + 0.1) <= here * (1 + 1e-9)
    assert here >= two_stage.coordinator_delta(12, 5, p, 1.0, k, eps) * (1 - 1e-9)


def test_rounding_large_crowds_down_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse = two_stage.coordinator_delta(30, 12, 0.5, 1.0, 3000, 0.08)
    monkeypatch.setattr(two_stage, "_ROWS", 10**6)
    fine = two_stage.coordinator_delta(30, 12, 0.5, 1.0, 3000, 0.08)
    assert fine <= coarse <= fine * 1.02


def views(
    items: list[int], N: int, M: int, p: float, gamma: float, zero: bool = False
) -> dict[object, float]:
    """The distribution of the coordinator's view: all sets and the published counts.

    With `zero`, the last user adds nothing.
    """
    distribution: dict[object, float] = {((), (0,) * N): 1.0}
    choices = list(itertools.combinations(range(N), M))
    for i, item in enumerate(items):
        silent, grown = zero and i == len(items) - 1, defaultdict(float)
        whole = sum(gamma if item in chosen else 1.0 for chosen in choices)
        for (sets, counts), weight in distribution.items():  # type: ignore[misc]
            for chosen in choices:
                active = 0.0 if silent else p * (gamma if item in chosen else 1.0) / whole
                counted = (
                    tuple(c + (j == item) for j, c in enumerate(counts))
                    if item in chosen
                    else counts
                )
                grown[((*sets, chosen), counted)] += weight * active
                grown[((*sets, chosen), counts)] += weight * (1 if silent else 1 - p) / len(choices)
        distribution = dict(grown)
    return distribution


def either_way(first: dict[object, float], second: dict[object, float], epsilon: float) -> float:
    return max(
        sum(max(0.0, p - math.exp(epsilon) * other.get(view, 0.0)) for view, p in one.items())
        for one, other in ((first, second), (second, first))
    )


@pytest.mark.parametrize(("N", "M", "k"), [(2, 1, 2), (3, 1, 1), (3, 2, 2), (4, 2, 1), (3, 2, 0)])
@pytest.mark.parametrize(
    ("p", "gamma", "epsilon"), [(0.5, 1.0, 0.1), (0.9, 3.0, 0.5), (0.2, 20.0, 2.0), (1.0, 2.0, 0)]
)
def test_s1_by_enumeration_of_all_it_sees(
    N: int, M: int, k: int, p: float, gamma: float, epsilon: float
) -> None:
    others = [0] * k + [1] * k
    held = [views([*others, item], N, M, p, gamma) for item in (0, 1)]
    nothing = views([*others, 0], N, M, p, gamma, zero=True)
    replaced, zeroed = either_way(*held, epsilon), either_way(held[0], nothing, epsilon)
    assert two_stage.coordinator_delta(N, M, p, gamma, k, epsilon) == pytest.approx(
        replaced, rel=1e-9, abs=1e-12
    )
    said = two_stage.coordinator_delta(N, M, p, gamma, k, epsilon, Relation.ZERO_OUT)
    assert said == pytest.approx(zeroed, rel=1e-9, abs=1e-12)


def counts_given(
    sets: Sets, included: Users, items: list[int], N: int, M: int, p: float, gamma: float
) -> Distribution:
    """Chance of these sets together with each result, if only the included users are in the sum."""
    distribution: Distribution = {(0,) * N: 1.0}
    for i, (chosen, item) in enumerate(zip(sets, items, strict=True)):
        after: Distribution = defaultdict(float)
        distributions = reports(item, N, M, p, gamma)
        for counts, before in distribution.items():
            for counted in {None, item}:
                new = tuple(c + (i in included and j == counted) for j, c in enumerate(counts))  # type: ignore[operator]  # counts
                after[new] += before * distributions.get((chosen, counted), 0.0)
        distribution = after
    return distribution


def dishonest_coordinator(
    N: int, M: int, p: float, gamma: float, k: int, lost: int, eps: float, known: int = 0
) -> float:
    """delta of a coordinator that leaves out those `lost` users with whom it learns most.

    `known` holders of each item tell it their bits: what they add to the counts is taken off again.
    """
    others = ([0] * k + [1] * k) + [0, 1] * known
    told, total = range(2 * k, len(others)), 0.0
    for sets in itertools.product(itertools.combinations(range(N), M), repeat=len(others) + 1):
        best = 0.0
        for missing in itertools.combinations(range(2 * k), lost):
            included = frozenset(range(len(sets))) - {*missing, *told}
            distributions = [
                counts_given(sets, included, [*others, item], N, M, p, gamma) for item in (0, 1)
            ]
            best = max(best, divergence(distributions[0], distributions[1], eps))
        total += best
    return total


DISHONEST = [
    (3, 1, 0.4, 1.0, 2, 1, 0.3),
    (2, 1, 0.7, 3.0, 3, 1, 0.2),
    (2, 1, 0.7, 1.0, 3, 2, 0.1),
    (2, 1, 0.5, 2.0, 2, 2, 0.4),
]


@pytest.mark.parametrize(("N", "M", "p", "gamma", "k", "lost", "eps"), DISHONEST)
def test_whom_a_dishonest_coordinator_leaves_out_by_their_sets(
    N: int, M: int, p: float, gamma: float, k: int, lost: int, eps: float
) -> None:
    """Exact where a set holds one of two items; users left out at random would cost less."""
    truth = dishonest_coordinator(N, M, p, gamma, k, lost, eps)
    assert two_stage.coordinator_delta(N, M, p, gamma, k, eps, lost=lost) == pytest.approx(
        truth, rel=1e-9
    )
    blind = two_stage.coordinator_delta(N, M, p, gamma, k - lost, eps)
    assert blind < truth * 0.99 or k == lost
    made = TSS(items=N, p=p, alpha=M / N, gamma=gamma, floor=k, dropouts=lost)
    assert made.guarantee(epsilon=eps, adversary=S1).delta == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    ("p", "gamma", "lost", "eps"), [(0.5, 1.0, 1, 0.5), (0.5, 2.0, 1, 0.5), (0.8, 1.0, 2, 0.1)]
)
def test_a_dishonest_coordinator_shares_out_whom_it_leaves_out(
    p: float, gamma: float, lost: int, eps: float
) -> None:
    truth = dishonest_coordinator(3, 2, p, gamma, 2, lost, eps)
    assert two_stage.coordinator_delta(3, 2, p, gamma, 2 - lost, eps) < truth or lost == 2
    assert truth <= two_stage.coordinator_delta(3, 2, p, gamma, 2, eps, lost=lost) <= truth * 1.4


def test_a_server_with_helpers_has_them_off_the_floor() -> None:
    """For whoever knows all sets and the bits of one holder per item, the floor is one less."""
    truth = dishonest_coordinator(2, 1, 0.7, 2.0, 2, 1, 0.3, known=1)
    assert two_stage.coordinator_delta(2, 1, 0.7, 2.0, 2, 0.3, lost=1) == pytest.approx(
        truth, rel=1e-9
    )
    assert two_stage.coordinator_delta(2, 1, 0.7, 2.0, 3, 0.3, lost=1) < truth * 0.95


def test_s1_that_leaves_out_a_whole_crowd_sees_the_user_alone() -> None:
    for lost in (30, 10**7):
        alone = two_stage.coordinator_delta(10, 4, 0.3, 1.0, 30, 1.0, lost=lost)
        assert alone == pytest.approx(
            two_stage.coordinator_delta(10, 4, 0.3, 1.0, 0, 1.0), rel=1e-9
        )


def test_a_guarantee_says_whom_s1_may_leave_out() -> None:
    made = TSSPrime(items=5, p=0.3, alpha=0.4, floor=60, dropouts=20)
    said = {
        guarantee.adversary: str(guarantee.condition) for guarantee in made.guarantees(epsilon=1.0)
    }
    assert "20 may drop out or be left out by the coordinator (S1)" in said.pop(S1)
    assert len(said) == 3
    assert all(str(NOBODY_LEFT_OUT) in condition for condition in said.values())
    sure = TSSPrime(items=5, p=0.3, alpha=0.4, floor=60)
    assert not any(
        "left out" in str(guarantee) or str(NOBODY_LEFT_OUT) in str(guarantee)
        for guarantee in sure.guarantees(epsilon=1.0)
    )


def test_p_is_found_for_an_s1_that_chooses_whom_it_leaves_out() -> None:
    found = TSSPrime.calibrate(Requirements(400, 4, 1.0, 1e-4, floor=80, dropouts=8))
    assert 0.9e-4 < found.total_delta() <= 1e-4
    blind = two_stage.uniform_probability(4, 2, 72, 0, 71, 1.0, 1e-4)
    assert two_stage.coordinator_delta(4, 2, blind, 1.0, 80, 1.0, lost=8) > 1.5e-4
    assert (
        two_stage.coordinator_delta(4, 2, found.mechanism.parameters["p"], 1.0, 80, 1.0, lost=8)
        <= 1e-4
    )


def test_s1_at_an_epsilon_beyond_the_range_of_exp() -> None:
    for relation in Relation:
        assert 0 <= two_stage.coordinator_delta(5, 2, 0.5, 2.0, 20, 1000.0, relation) < 0.01
    assert two_stage.sets_delta(5, 2, 0.5, 2.0, 1000.0) == 0.0

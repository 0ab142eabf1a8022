"""The guarantees that mechanisms state: against whom, at what, and what is left of them."""

import math
from math import comb

import pytest

import faircount as fc
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, Adversary, Relation, insiders
from faircount.core.errors import ParameterError, RefusedError

CROWD = {"items": 5, "users": 1000, "p": 0.5, "floor": 100}


def test_the_floor_hides_nobody_from_whoever_sees_the_report_itself() -> None:
    for made, delta in ((fc.DPDS(**CROWD), 0.5), (fc.TSS(**CROWD, alpha=0.4), 0.5), (fc.DPCS(**CROWD), 1.0)):
        claim = made.guarantee(epsilon=0.5, adversary=COLLECTOR)
        assert (claim.delta, claim.condition) == (delta, None)
        assert made.guarantee(epsilon=0.5, adversary=OUTSIDER).delta < 1e-4


def test_no_guarantee_against_an_adversary_whose_view_is_not_known() -> None:
    made = fc.TSSPrime(**CROWD, alpha=0.4, gamma=2.0)
    for who in (Adversary("S1, the coordinator"), Adversary(S1.who, 1)):
        with pytest.raises(RefusedError, match="not known"):
            made.guarantee(epsilon=0.5, adversary=who)


def test_a_misspelt_relation_is_refused_and_a_name_means_the_relation() -> None:
    for made in (fc.DPDS(**CROWD), fc.Laplace(items=5, users=10, epsilon=1.0)):
        with pytest.raises(ParameterError, match="relation"):
            made.guarantee(epsilon=0.5, relation="replace_one")  # type: ignore[arg-type] # that is the point
        named = made.guarantee(epsilon=0.5, relation="replace-one")  # type: ignore[arg-type] # that is the point
        assert named == made.guarantee(epsilon=0.5, relation=Relation.REPLACE_ONE)


def test_the_weakest_guarantee_comes_first_at_a_given_delta() -> None:
    """All deltas are then the one asked for, up to rounding: epsilon decides."""
    for p in (0.1, 0.2, 0.3, 0.5, 0.7):
        for floor in (30, 60, 100, 150):
            for made in (
                fc.DPDS(items=5, users=1000, p=p, floor=floor),
                fc.TSS(items=5, users=1000, p=p, floor=floor, alpha=0.4),
            ):
                try:
                    stated = made.guarantees(delta=1e-6)
                except RefusedError:
                    continue
                assert stated[0].epsilon == max(each.epsilon for each in stated)
                at_one = made.guarantees(epsilon=1.0)
                assert at_one[0].delta == max(each.delta for each in at_one)


def test_two_stage_states_what_was_asked_for_or_refuses() -> None:
    with pytest.raises(ParameterError, match="phi"):
        fc.TSSPrime(**CROWD, alpha=0.4, insiders=5, phi=1)
    spoken_of = [each.adversary for each in fc.TSSPrime(**CROWD, alpha=0.4, insiders=0).guarantees(epsilon=1.0)]
    assert len(spoken_of) == len(set(spoken_of)) == 3


def test_realized_keeps_an_epsilon_of_zero_and_names_the_weakest() -> None:
    strict = fc.DPDS(items=5, users=1000, epsilon=0.0, delta=0.01, floor=100)
    assert strict.realized(990).epsilon == 0.0
    staged = fc.TSS(**CROWD, alpha=0.4, epsilon=1.0).realized(990)
    assert staged.adversary == S1
    assert staged.delta > fc.TSS(**CROWD, alpha=0.4).guarantee(epsilon=1.0, adversary=S1).delta


def pair_delta(a: int, b: int, p: float, epsilon: float) -> float:
    """(a + 1, b) against (a, b + 1) holders, all outcomes enumerated."""

    def law(n: int, size: int) -> list[float]:
        return [comb(n, x) * p**x * (1 - p) ** (n - x) if x <= n else 0.0 for x in range(size)]

    up, down = (law(a + 1, a + 2), law(a, a + 2)), (law(b, b + 2), law(b + 1, b + 2))
    return sum(
        max(0.0, up[0][x] * down[0][y] - math.exp(epsilon) * up[1][x] * down[1][y])
        for x in range(a + 2)
        for y in range(b + 2)
    )


@pytest.mark.parametrize(("users", "floor", "t", "d"), [(9, 2, 0, 0), (15, 4, 1, 0), (15, 4, 2, 1), (20, 6, 3, 2)])
@pytest.mark.parametrize(("p", "epsilon"), [(0.1, 0.0), (0.5, 0.5), (0.9, 1.0)])
def test_two_items_with_insiders_and_dropouts(users: int, floor: int, t: int, d: int, p: float, epsilon: float) -> None:
    """Wherever the insiders and those who drop out are, no pair of neighbours is worse than the claim."""
    made = fc.DPDS(items=2, users=users, p=p, floor=floor, insiders=t, dropouts=d)
    claim = made.guarantee(epsilon=epsilon, adversary=insiders(t)).delta
    worst = max(
        pair_delta(a - ta - da, users - 1 - a - (t - ta) - (gone - da), p, epsilon)
        for a in range(floor, users - floor)
        for ta in range(t + 1)
        for gone in range(d + 1)
        for da in range(gone + 1)
    )
    assert worst <= claim * (1 + 1e-12)

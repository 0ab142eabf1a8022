"""Guarantees as mechanisms state them: the adversaries, the weakest first, and after dropouts."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import faircount as fc
from faircount.accounting.guarantee import (
    COLLECTOR,
    OUTSIDER,
    S1,
    Adversary,
    AdversaryCode,
    Relation,
    insiders,
)
from faircount.core.errors import ParameterError, RefusedError

CROWD = {"items": 5, "users": 1000, "p": 0.5, "floor": 100}


def test_the_floor_hides_nobody_from_whoever_sees_the_report_itself() -> None:
    for mechanism, delta in (
        (fc.DPDS(**CROWD), 0.5),
        (fc.TSS(**CROWD, alpha=0.4), 0.5),
        (fc.DPCS(**CROWD), 1.0),
    ):
        claim = mechanism.guarantee(epsilon=0.5, adversary=COLLECTOR)
        assert (claim.delta, claim.condition) == (delta, None)
        assert mechanism.guarantee(epsilon=0.5, adversary=OUTSIDER).delta < 1e-4


def test_no_guarantee_against_an_adversary_whose_view_is_not_known() -> None:
    mechanism = fc.TSSPrime(**CROWD, alpha=0.4, gamma=2.0)
    # Neither insiders of groups nor a server with participants has a view that TSS' accounts for.
    for who in (Adversary(AdversaryCode.GROUP_INSIDERS), Adversary(S1.code, 1)):
        with pytest.raises(RefusedError, match="not known"):
            mechanism.guarantee(epsilon=0.5, adversary=who)


def test_a_misspelt_relation_is_refused_and_a_name_means_the_relation() -> None:
    for mechanism in (fc.DPDS(**CROWD), fc.Laplace(items=5, users=10, epsilon=1.0)):
        with pytest.raises(ParameterError, match="relation"):
            mechanism.guarantee(epsilon=0.5, relation="replace_one")  # type: ignore[arg-type]
        named = mechanism.guarantee(epsilon=0.5, relation="replace-one")  # type: ignore[arg-type]
        assert named == mechanism.guarantee(epsilon=0.5, relation=Relation.REPLACE_ONE)


def test_the_weakest_guarantee_comes_first_at_a_given_delta() -> None:
    """All deltas are then the given one up to rounding, so that epsilon decides."""
    for p, floor in product((0.1, 0.2, 0.3, 0.5, 0.7), (30, 60, 100, 150)):
        for mechanism in (
            fc.DPDS(items=5, users=1000, p=p, floor=floor),
            fc.TSS(items=5, users=1000, p=p, floor=floor, alpha=0.4),
        ):
            # Some floors are too small for this delta at any epsilon.
            try:
                stated = mechanism.guarantees(delta=1e-6)
            except RefusedError:
                continue
            assert stated[0].epsilon == max(guarantee.epsilon for guarantee in stated)
            at_one = mechanism.guarantees(epsilon=1.0)
            assert at_one[0].delta == max(guarantee.delta for guarantee in at_one)


def test_two_stage_states_a_guarantee_for_all_insiders_or_refuses() -> None:
    with pytest.raises(ParameterError, match="phi"):
        fc.TSSPrime(**CROWD, alpha=0.4, insiders=5, phi=1)
    # Without insiders the reader is named once, and not a second time as zero insiders.
    stated = fc.TSSPrime(**CROWD, alpha=0.4, insiders=0).guarantees(epsilon=1.0)
    adversaries = [guarantee.adversary for guarantee in stated]
    assert len(adversaries) == len(set(adversaries)) == 3


def test_the_remaining_guarantee_keeps_an_epsilon_of_zero_and_is_the_weakest() -> None:
    # An epsilon of 0 is given, not missing.
    strict = fc.DPDS(items=5, users=1000, epsilon=0.0, delta=0.01, floor=100)
    assert strict.remaining_guarantee(990).epsilon == 0.0
    staged = fc.TSS(**CROWD, alpha=0.4, epsilon=1.0).remaining_guarantee(990)
    assert staged.adversary == S1
    assert staged.delta > fc.TSS(**CROWD, alpha=0.4).guarantee(epsilon=1.0, adversary=S1).delta


def pair_delta(a: int, b: int, p: float, epsilon: float) -> float:
    """Delta of (a + 1, b) against (a, b + 1) holders, over all outcomes of both counts."""
    first = np.arange(a + 2)[:, np.newaxis]
    second = np.arange(b + 2)
    before = binom.pmf(first, a + 1, p) * binom.pmf(second, b, p)
    after = binom.pmf(first, a, p) * binom.pmf(second, b + 1, p)
    return float(np.maximum(0, before - math.exp(epsilon) * after).sum())


@pytest.mark.parametrize(
    ("users", "floor", "t", "d"), [(9, 2, 0, 0), (15, 4, 1, 0), (15, 4, 2, 1), (20, 6, 3, 2)]
)
@pytest.mark.parametrize(("p", "epsilon"), [(0.1, 0.0), (0.5, 0.5), (0.9, 1.0)])
def test_two_items_with_insiders_and_dropouts(
    users: int, floor: int, t: int, d: int, p: float, epsilon: float
) -> None:
    """Wherever the insiders and dropouts are, no pair of neighbours is worse than the claim."""
    mechanism = fc.DPDS(items=2, users=users, p=p, floor=floor, insiders=t, dropouts=d)
    claim = mechanism.guarantee(epsilon=epsilon, adversary=insiders(t)).delta
    # Of `a` other holders of the first item, `known` are insiders and `missing` dropped out; the
    # rest of the t insiders and of the `gone` dropouts hold the second item.
    for a, known, gone in product(range(floor, users - floor), range(t + 1), range(d + 1)):
        for missing in range(gone + 1):
            other = users - 1 - a - (t - known) - (gone - missing)
            delta = pair_delta(a - known - missing, other, p, epsilon)
            assert delta <= claim * (1 + 1e-12)

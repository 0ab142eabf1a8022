"""The audit itself under attack: it must refute no sound claim, run for every mechanism, and check what it is given."""

import math

import numpy as np
import pytest

import faircount as fc
from faircount.accounting import exact
from faircount.accounting.guarantee import OUTSIDER
from faircount.auditing.runs import _World, audit
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError


@pytest.mark.parametrize(
    ("users", "floor", "p", "epsilon"), [(300, 5, 0.5, 0.5), (60, 3, 0.5, 0.3), (100, 1, 0.3, 0.5)]
)
def test_the_exact_claim_for_two_items_survives(users: int, floor: int, p: float, epsilon: float) -> None:
    """The pair (k+1, k) needs 2k + 1 users: with more of them, and two items, it is no pair of neighbours."""
    made = fc.DPDS(items=2, users=users, p=p, floor=floor)
    assert made.guarantee(epsilon=epsilon, adversary=OUTSIDER).delta < exact.sampling_delta(floor, p, epsilon)
    assert not audit(made, epsilon=epsilon, runs=20_000, entropy=SeededStream(3)).refuted


def test_two_items_are_still_audited_on_their_worst_pair() -> None:
    made = fc.DPDS(items=2, users=60, p=0.5, floor=3)
    world = _World.of(made, 0.3)
    a, b = ((world.first[:-1] == item).sum() for item in (0, 1))
    assert a + b == 59
    claim = made.guarantee(epsilon=0.3, adversary=OUTSIDER).delta
    assert exact._replaced(int(a), int(b), 0.5, 0.3) == pytest.approx(claim, rel=1e-9)
    false = audit(made, epsilon=0.3, delta=claim / 3, runs=20_000, entropy=SeededStream(4))
    assert false.refuted


@pytest.mark.parametrize(("floor", "phi"), [(0, 1), (1, 5), (3, 1)])
def test_two_stage_with_few_holders_is_audited(floor: int, phi: int) -> None:
    made = fc.TSSPrime(items=5, users=100, p=0.5, alpha=0.4, phi=phi, floor=floor)
    assert not audit(made, epsilon=1.0, runs=2000, entropy=SeededStream(1)).refuted


def test_more_insiders_than_users_by_default() -> None:
    assert not audit(fc.Laplace(items=5, epsilon=1.0, insiders=20), runs=2000, entropy=SeededStream(1)).refuted


@pytest.mark.parametrize(
    "claim",
    [{"delta": -1}, {"delta": 2}, {"delta": math.nan}, {"delta": "x"}, {"delta": [0.1]}, {"epsilon": -1.0},
     {"epsilon": "1"}, {"confidence": 1.0}, {"confidence": "x"}, {"runs": 10}, {"runs": 1e4}],
    ids=str,
)  # fmt: skip
def test_bad_claims_are_refused_before_anything_runs(claim: dict[str, object]) -> None:
    class Untouched(SeededStream):
        def fill(self, out: np.ndarray) -> None:
            raise AssertionError("the audit has begun")

    with pytest.raises(ParameterError):
        audit(fc.Laplace(items=3, users=5, epsilon=1.0), entropy=Untouched(1), **claim)  # type: ignore[arg-type]

"""The audit clears sound claims and catches false ones: the paper's theorem, and bugs planted in our own mechanisms.

A sound claim is refuted with probability at most 1e-6 per audit here, and the seeds are fixed.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import faircount as fc
from faircount.auditing.runs import audit
from faircount.auditing.statistics import epsilon_bound, find
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.laplace import laplace_table
from faircount.mechanisms.secret_shared import one_hot

SURE = 1 - 1e-6

SOUND = {
    "dpcs": (fc.DPCS(items=4, p=0.5, floor=20), 0.5),
    "dpds": (fc.DPDS(items=30, users=1000, p=1 - math.exp(-0.5), floor=23), 0.5),
    "tss": (fc.TSS(items=4, p=0.6, alpha=0.5, gamma=2.0, floor=20), 0.5),
    "tss-prime": (fc.TSSPrime(items=4, p=0.6, alpha=0.5, floor=20, phi=1), 0.5),
    "laplace": (fc.Laplace(items=3, epsilon=1.0), None),
    "decoys": (fc.Decoys(items=3, epsilon=1.0, delta=1e-3), None),
    "dpdg": (fc.DPDG(items=3, epsilon=1.0, delta=1e-3), None),
    "grr": (fc.GRR(items=5, epsilon=1.0), None),
    "oue": (fc.OUE(items=5, epsilon=1.0), None),
    "duchi": (fc.Duchi(epsilon=1.0), None),
    "pm": (fc.PM(epsilon=1.0), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_sound_claims_are_cleared(name: str) -> None:
    mechanism, epsilon = SOUND[name]
    report = audit(mechanism, epsilon=epsilon, runs=20_000, confidence=SURE, entropy=SeededStream(21))
    assert not report.refuted
    assert report.lower_bound <= report.epsilon
    assert report.detectable > report.epsilon
    assert "not refuted" in str(report)


@pytest.mark.slow
def test_theorem_1_is_refuted() -> None:
    """n = 1000, N = 30, floor 23, epsilon 0.5: Theorem 1 promises 9.2e-24, and even 1e-5 does not hold."""
    mechanism = fc.DPDS(items=30, users=1000, p=1 - math.exp(-0.5), floor=23)
    report = audit(mechanism, epsilon=0.5, delta=1e-5, runs=1_000_000, confidence=0.999, entropy=SeededStream(22))
    assert report.refuted
    assert report.lower_bound > 0.5


@dataclass(frozen=True, kw_only=True)
class WeakLaplace(fc.Laplace):
    """Planted bug: noise of 0.7 times the scale."""

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        weak = laplace_table(self.epsilon / 0.7, self.h)[0]
        return one_hot(answers, self.N) + weak.draw(users.size * self.N, entropy).reshape(users.size, self.N)


@dataclass(frozen=True, kw_only=True)
class OneCoinDecoys(fc.Decoys):
    """Planted bug: the same coins are added to all items."""

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        plain = one_hot(answers, self.N)
        noise = super().contribute(answers, users, entropy) - plain
        return plain + noise[:, :1]


@dataclass(frozen=True, kw_only=True)
class HalfDecoys(fc.Decoys):
    """Planted bug: every second user forgets its coins."""

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        full = super().contribute(answers, users, entropy)
        return np.where((users % 2 == 0)[:, None], full, one_hot(answers, self.N))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "runs"),
    [
        (WeakLaplace(items=2, epsilon=1.0, users=12), 60_000),
        (OneCoinDecoys(items=2, epsilon=1.0, delta=1e-3, users=12), 2_000),
        (HalfDecoys(items=2, epsilon=1.0, delta=1e-3, users=12), 100_000),
    ],
    ids=["noise times 0.7", "one coin for all items", "half of the decoys"],
)
def test_planted_bugs_are_caught(bug: fc.Laplace, runs: int) -> None:
    report = audit(bug, runs=runs, confidence=0.999, entropy=SeededStream(23))
    assert report.refuted, str(report)
    assert "REFUTED" in str(report)


def test_the_bound_is_clopper_pearson_and_never_exceeds_the_truth_too_often() -> None:
    """Exact: over all outcomes of 60 + 60 runs, the bound exceeds the true epsilon with probability at most 2 tail."""
    from scipy.stats import binom

    runs, p, q, delta, tail = 60, 0.6, 0.25, 0.02, 0.01
    hits = np.arange(runs + 1)
    bounds = epsilon_bound(hits[:, None], hits[None, :], runs, delta, tail)
    wrong = bounds > math.log((p - delta) / q)
    chance = binom.pmf(hits, runs, p) @ wrong @ binom.pmf(hits, runs, q)
    assert 0 < chance <= 2 * tail


def test_more_runs_see_smaller_violations() -> None:
    few, many = (
        audit(fc.GRR(items=3, epsilon=1.0), runs=runs, confidence=0.999, entropy=SeededStream(24)).detectable
        for runs in (500, 50_000)
    )
    assert few > many > 1.0


@pytest.mark.parametrize("runs", [0, 3, 99])
def test_too_few_runs_are_refused(runs: int) -> None:
    with pytest.raises(ParameterError, match="runs"):
        audit(fc.GRR(items=3, epsilon=1.0), runs=runs)


def test_a_claim_is_needed_and_shapes_must_agree() -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        audit(fc.DPDS(items=3, p=0.5, floor=5))
    with pytest.raises(ParameterError, match="same number"):
        find(np.zeros((10, 1)), np.zeros((11, 1)), 0.0, 0.99)

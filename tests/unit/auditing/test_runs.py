"""The audit clears sound claims and catches false ones.

The false ones are the paper's theorem and bugs planted in our own mechanisms.

A sound claim is refuted with probability at most 1e-6 per audit here, and the seeds are fixed.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import faircount as fc
from faircount.accounting import exact
from faircount.accounting.divergence import epsilon_for
from faircount.accounting.guarantee import OUTSIDER
from faircount.auditing.runs import audit, default_runs
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import ParameterError
from faircount.core.questions import Sheet
from faircount.mechanisms.laplace import laplace_table
from faircount.mechanisms.secret_shared import one_hot
from faircount.sharing.field import from_signed

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
    report = audit(
        mechanism, epsilon=epsilon, runs=20_000, confidence=SURE, entropy=SeededStream(21)
    )
    assert not report.refuted
    assert report.lower_bound <= report.epsilon
    assert report.refutable is not None
    assert report.refutable < report.epsilon
    assert "not refuted" in str(report)


@pytest.mark.slow
def test_theorem_1_is_refuted() -> None:
    """For n = 1000, N = 30, floor 23, epsilon 0.5 it promises 9.2e-24; even 1e-5 does not hold."""
    mechanism = fc.DPDS(items=30, users=1000, p=1 - math.exp(-0.5), floor=23)
    report = audit(
        mechanism, epsilon=0.5, delta=1e-5, runs=500_000, confidence=0.999, entropy=SeededStream(22)
    )
    assert report.refuted
    assert report.lower_bound > 0.5


@dataclass(frozen=True, kw_only=True)
class WeakLaplace(fc.Laplace):
    """Planted bug: noise of 0.7 times the scale."""

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        weak = laplace_table(self.epsilon / 0.7, self.h)[0]
        return one_hot(answers, self.N) + weak.draw(users.size * self.N, entropy).reshape(
            users.size, self.N
        )


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
        (WeakLaplace(items=3, epsilon=1.0, users=12), 60_000),
        (OneCoinDecoys(items=2, epsilon=1.0, delta=1e-3, users=12), 2_000),
        (HalfDecoys(items=2, epsilon=1.0, delta=1e-3, users=12), 100_000),
    ],
    ids=["noise times 0.7", "one coin for all items", "half of the decoys"],
)
def test_planted_bugs_are_caught(bug: fc.Laplace, runs: int) -> None:
    report = audit(bug, runs=runs, confidence=0.999, entropy=SeededStream(23))
    assert report.refuted, str(report)
    assert "REFUTED" in str(report)


@pytest.mark.parametrize("runs", [0, 3, 99])
def test_too_few_runs_are_refused(runs: int) -> None:
    with pytest.raises(ParameterError, match="runs"):
        audit(fc.GRR(items=3, epsilon=1.0), runs=runs)


def test_a_claim_is_needed() -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        audit(fc.DPDS(items=3, p=0.5, floor=5))


@dataclass(frozen=True, kw_only=True)
class SilentLaplace(fc.Laplace):
    """Planted bug: the noise is made and lost on the way to the response."""

    def _draw_residues(self, held: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        return from_signed(one_hot(held, self.N), self.modulus)


@dataclass(frozen=True, kw_only=True)
class SilentDevice(fc.Laplace):
    """Planted bug: only what a single device computes lacks its noise."""

    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> np.ndarray:
        return from_signed(one_hot(self.position_of(sheet), self.N), self.modulus)[0]


def test_noise_that_never_leaves_the_device_is_missed() -> None:
    """`contribute` alone is sound; what `run` would publish are exact frequencies."""
    report = audit(SilentLaplace(items=3, epsilon=1.0), runs=200, entropy=SeededStream(1))
    assert report.refuted
    assert "claim (1, below 1e-30)-DP is REFUTED" in str(report)


@pytest.mark.slow
def test_whole_surveys_are_audited() -> None:
    """Each run is a survey of four people through two servers; only the result is looked at."""
    silent = SilentDevice(items=3, epsilon=1.0, users=4)
    sound = fc.Laplace(items=3, epsilon=1.0, users=4)
    assert not audit(silent, runs=200, entropy=SeededStream(2)).refuted  # `respond` itself is sound
    through = audit(silent, runs=100, through="servers", entropy=SeededStream(2))
    assert through.refuted
    assert through.through == "servers"
    assert not audit(sound, runs=100, through="servers", entropy=SeededStream(3)).refuted


def test_an_audit_goes_through_a_known_topology() -> None:
    with pytest.raises(ParameterError, match="must be one of servers"):
        audit(fc.Laplace(items=3, epsilon=1.0, users=4), runs=100, through="pigeons")
    with pytest.raises(ParameterError, match="makes no shares"):
        audit(fc.GRR(items=3, epsilon=1.0), runs=100, through="servers")


@dataclass(frozen=True, kw_only=True)
class DoubledCoins(fc.DPDS):
    """Planted bug: a user is counted if either of two coins says so."""

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        return np.maximum(
            *(super(DoubledCoins, self).contribute(answers, users, entropy) for _ in range(2))
        )


@pytest.mark.slow
def test_doubled_coins_are_found() -> None:
    """The true epsilon at the delta claimed for 0.3 is 0.49: 60 of 60 such audits found it."""
    doubled = DoubledCoins(items=3, p=0.2, floor=30)
    claimed = exact.sampling_delta(30, 0.2, 0.3)
    truth = epsilon_for(lambda epsilon: exact.sampling_delta(30, 0.36, epsilon), claimed)
    assert truth == pytest.approx(0.49, abs=0.005)
    own = audit(doubled, epsilon=0.3, entropy=SeededStream(7))
    assert own.refuted
    assert own.planned_runs == 200_000
    assert own.verdicts[0].findings[0].claim.delta == pytest.approx(claimed)
    # The claim alone, without other points of the guarantee, and against nobody but a reader.
    report = audit(doubled, epsilon=0.3, delta=claimed, adversary=OUTSIDER, entropy=SeededStream(7))
    assert (len(report.verdicts), len(report.verdicts[0].findings)) == (1, 1)
    assert 0.3 < report.lower_bound <= truth


@dataclass(frozen=True, kw_only=True)
class OneByOne(fc.Laplace):
    """A mechanism that cannot run many surveys in one call."""

    def for_batch(self, copies: int) -> None:
        return None


def test_surveys_run_one_by_one_where_they_must() -> None:
    assert audit(
        OneByOne(items=3, epsilon=2.0), epsilon=0.5, delta=0.0, runs=1000, entropy=SeededStream(1)
    ).refuted
    assert not audit(OneByOne(items=3, epsilon=1.0), runs=500, entropy=SeededStream(1)).refuted


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize(
    "made",
    [
        fc.Decoys(items=2, coins=23, users=7, epsilon=1.0),
        fc.DPDG(items=2, users=7, epsilon=1.0, delta=1e-3),
        fc.Laplace(items=2, users=7, epsilon=1.0, insiders=2, dropouts=1),
    ],
    ids=lambda made: made.name,
)
def test_surveys_side_by_side_draw_from_the_same_distributions(
    made: fc.Decoys, copies: int
) -> None:
    wide = made.for_batch(copies)
    assert wide is not None
    assert wide.n == copies * made.n
    if isinstance(made, fc.Decoys):
        assert wide.allocation.tolist() == np.repeat(made.allocation, copies).tolist()
    else:
        assert wide.table.cumulative == made.table.cumulative


@pytest.mark.parametrize(
    ("users", "floor", "p", "epsilon"), [(300, 5, 0.5, 0.5), (60, 3, 0.5, 0.3), (100, 1, 0.3, 0.5)]
)
def test_the_exact_claim_for_two_items_survives(
    users: int, floor: int, p: float, epsilon: float
) -> None:
    """The pair (k+1, k) needs 2k + 1 users; with two items and more users it is no such pair."""
    made = fc.DPDS(items=2, users=users, p=p, floor=floor)
    assert made.guarantee(epsilon=epsilon, adversary=OUTSIDER).delta < exact.sampling_delta(
        floor, p, epsilon
    )
    assert not audit(made, epsilon=epsilon, runs=20_000, entropy=SeededStream(3)).refuted


def test_two_items_are_still_audited_on_their_worst_pair() -> None:
    made = fc.DPDS(items=2, users=60, p=0.5, floor=3)
    pair = made.worst_pair(0.3)
    claimed = made.guarantee(epsilon=0.3, adversary=OUTSIDER).delta
    others = pair.first[:-1]
    assert np.isin(others, (0, 1)).sum() == 59
    p, q = pair.tail_probabilities(0.3)
    assert p - math.exp(0.3) * q == pytest.approx(claimed, rel=1e-9)
    assert audit(made, epsilon=0.3, delta=claimed / 3, runs=20_000, entropy=SeededStream(4)).refuted


@pytest.mark.parametrize(("floor", "phi"), [(0, 1), (1, 5), (3, 1)])
def test_two_stage_with_few_holders_is_audited(floor: int, phi: int) -> None:
    made = fc.TSSPrime(items=5, users=100, p=0.5, alpha=0.4, phi=phi, floor=floor)
    assert not audit(made, epsilon=1.0, runs=2000, entropy=SeededStream(1)).refuted


def test_more_insiders_than_users_by_default() -> None:
    assert not audit(
        fc.Laplace(items=5, epsilon=1.0, insiders=20), runs=2000, entropy=SeededStream(1)
    ).refuted


@pytest.mark.parametrize(
    "claim",
    [
        {"delta": -1},
        {"delta": 2},
        {"delta": math.nan},
        {"delta": "x"},
        {"delta": [0.1]},
        {"epsilon": -1.0},
        {"epsilon": "1"},
        {"confidence": 1.0},
        {"confidence": "x"},
        {"runs": 10},
        {"runs": 1e4},
    ],
    ids=str,
)
def test_bad_claims_are_refused_before_anything_runs(claim: dict[str, Any]) -> None:
    class Untouched(SeededStream):
        def fill(self, out: np.ndarray) -> None:
            raise AssertionError("the audit has begun")

    with pytest.raises(ParameterError):
        audit(fc.Laplace(items=3, users=5, epsilon=1.0), entropy=Untouched(1), **claim)


def test_by_default_as_many_runs_are_made_as_take_seconds() -> None:
    few = fc.Laplace(items=3, epsilon=1.0, users=5)
    many = fc.Laplace(items=3, epsilon=1.0, users=1000)
    one_by_one = OneByOne(items=3, epsilon=1.0)
    assert default_runs(few.worst_pair(1.0)) == 200_000
    assert default_runs(many.worst_pair(1.0)) == 50_000
    assert default_runs(one_by_one.worst_pair(1.0)) == 20_000
    assert default_runs(few.worst_pair(1.0), "servers") == 200


def test_a_smaller_epsilon_without_a_delta_is_a_claim_of_pure_privacy() -> None:
    report = audit(fc.OUE(items=3, epsilon=1.0), epsilon=0.5, runs=4000, entropy=SeededStream(1))
    assert (report.epsilon, report.delta) == (0.5, 0.0)
    assert report.refuted


def test_progress_grows_to_the_number_of_runs() -> None:
    """Both data sets count, so that the time that is left can be estimated."""
    seen: list[int] = []
    audit(
        fc.Laplace(items=3, users=100, epsilon=1.0),
        runs=2000,
        entropy=SeededStream(1),
        progress=seen.append,
    )
    assert seen == sorted(seen)
    assert seen[-1] == 2000
    assert len(seen) > 4


def test_calls_that_do_not_fit_are_told_what_to_pass() -> None:
    with pytest.raises(ParameterError, match=r"fc\.Laplace.*not the text 'laplace'"):
        audit("laplace")  # type: ignore[arg-type]
    made = fc.GRR(items=3, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"audit has no claim_epsilon \(use epsilon\)"):
        audit(made, claim_epsilon=0.5)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=r"audit has no seed \(use entropy=fc\.SeededStream"):
        audit(made, seed=3)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=r"fc\.run\(answers, fc\.Laplace"):
        fc.run("laplace")  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match="not the text 'laplace'"):
        fc.run(["a", "b"], "laplace")  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"histogram has no random_state \(use entropy="):
        fc.histogram(["a", "b"], random_state=1)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=r"histogram has no levels \(use epsilon=\{"):
        fc.histogram(["a", "b"], levels={"a": 1.0})  # type: ignore[call-arg]

"""Audits of mechanisms with server noise and with placed coins; planted errors are refuted."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import faircount as fc
from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.proven import Placement

RUNS = 1500


class NoiseOfOne(fc.ServerLaplace):
    """Only one of the servers adds noise, and it is the one that looks."""

    def respond(self, answers: np.ndarray, entropy: Entropy) -> np.ndarray:
        rows = super().respond(answers, entropy)
        rows[-1] = 0
        return rows


@dataclass(frozen=True, kw_only=True)
class HalfOfTheNoise(fc.ServerLaplace):
    """Each server adds what would be enough together with the other's."""

    def server_noise(self, entropy: Entropy) -> np.ndarray:
        return replace(fc.ServerLaplace(items=self.N, epsilon=2 * self.epsilon)).server_noise(
            entropy
        )


class FewPlaced(fc.PlacedCoins):
    """A quarter of the coins is placed."""

    def place_coins(self, entropy: Entropy, members: int) -> Placement:
        whole = super().place_coins(entropy, members)
        few = self.D // 4
        return Placement(whole.user[:few], whole.coin[:few], whole.inverted[:few])


class KnownCoins(fc.PlacedCoins):
    """Every coin is a head.

    Turned over at random the sum looks as it should, but everybody knows which coins were turned.
    """

    side: ClassVar[int] = 1

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        bits = super().contribute(answers, users, entropy)
        bits[:, self.N :] = self.side
        return bits


class KnownTails(KnownCoins):
    """Every coin is a tail."""

    side: ClassVar[int] = 0


SOUND = [
    fc.ServerLaplace(items=3, epsilon=1.0),
    fc.ServerCoins(items=3, epsilon=1.0, coins=8),
    fc.PlacedCoins(items=3, epsilon=1.0, coins=9),
]


@pytest.mark.parametrize("mechanism", SOUND, ids=lambda mechanism: mechanism.name)
def test_sound_claims_are_not_refuted(mechanism: fc.ServerLaplace) -> None:
    """Confidence 0.999999: a false alarm once in a million."""
    report = fc.audit(mechanism, runs=RUNS, confidence=0.999999, entropy=SeededStream(1))
    assert not report.refuted
    assert report.refutable is not None
    assert report.refutable > 0.2


@pytest.mark.parametrize("mechanism", SOUND, ids=lambda mechanism: mechanism.name)
def test_claims_that_are_too_good_are_refuted(mechanism: fc.ServerLaplace) -> None:
    assert fc.audit(mechanism, epsilon=0.2, delta=1e-6, runs=RUNS, entropy=SeededStream(2)).refuted


@pytest.mark.parametrize(
    "mechanism",
    [
        NoiseOfOne(items=3, epsilon=1.0),
        HalfOfTheNoise(items=3, epsilon=1.0),
        FewPlaced(items=3, epsilon=1.0, coins=36),
        KnownCoins(items=3, epsilon=1.0, coins=9),
        KnownTails(items=3, epsilon=1.0, coins=9),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_planted_errors_are_refuted(mechanism: fc.ServerLaplace) -> None:
    assert fc.audit(mechanism, runs=RUNS, entropy=SeededStream(3)).refuted


@pytest.mark.slow
def test_whole_surveys_with_proofs_and_every_message_are_audited() -> None:
    report = fc.audit(
        SOUND[0], runs=100, through="servers", confidence=0.999999, entropy=SeededStream(4)
    )
    assert not report.refuted
    assert report.through == "servers"


def test_surveys_side_by_side_draw_from_the_distribution_of_one() -> None:
    """40,000 surveys agree with the exact distribution of the coordinator's view within five standard errors."""
    made = fc.ServerLaplace(items=3, epsilon=2.0, users=3).worst_pair(2.0)
    (seen,) = made.mechanism.simulate_views(made.second, 40_000, [made.adversary], SeededStream(5))
    for column, part in enumerate(made.marginals):
        chances = np.exp(part.pair.log_q)
        runs = len(seen)
        counted = np.bincount(seen[:, column] - part.low, minlength=chances.size)[: chances.size]
        assert counted.sum() == runs
        assert np.all(np.abs(counted - runs * chances) <= 5 * np.sqrt(runs * chances) + 5)
    assert abs(np.corrcoef(seen.T)[0, 1]) < 5 / np.sqrt(len(seen))

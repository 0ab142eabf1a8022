"""An audit plays every adversary whom a guarantee names, and says whom it played.

Broken noise of the servers and broken sets of a two-stage survey are found in what leaves the
devices and in whole surveys.
"""

import json
import math
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest
from planted_errors import (
    EqualLaplace,
    InactiveTellTheirItem,
    KnownPlaced,
    OppositeLaplace,
    SilentCoordinatorLaplace,
    TwoTries,
)

import faircount as fc
from faircount.accounting.guarantee import OUTSIDER, S1, Adversary, AdversaryCode, insiders
from faircount.auditing import runs as audit_runs
from faircount.auditing.report import AuditReport
from faircount.core.entropy import Entropy, KeyStream, SeededStream
from faircount.core.errors import RefusedError
from faircount.mechanisms.base import Mechanism
from faircount.protocol.topologies.two_servers import reports

SOUND: dict[str, tuple[Mechanism, float]] = {
    "dpcs": (fc.DPCS(items=3, p=0.5, floor=8), 0.5),
    "dpds": (fc.DPDS(items=3, p=0.5, floor=8), 0.5),
    "tss": (fc.TSS(items=4, p=0.6, alpha=0.5, gamma=2.0, floor=8), 0.5),
    "tss-prime": (fc.TSSPrime(items=4, p=0.6, alpha=0.5, floor=8, phi=1), 0.5),
    "laplace": (fc.Laplace(items=3, epsilon=1.0), 1.0),
    "decoys": (fc.Decoys(items=3, epsilon=1.0, delta=1e-2), 1.0),
    "dpdg": (fc.DPDG(items=3, epsilon=1.0, delta=1e-2), 1.0),
    "server-laplace": (fc.ServerLaplace(items=3, epsilon=1.0), 1.0),
    "server-coins": (fc.ServerCoins(items=3, epsilon=1.0, coins=12), 1.0),
    "placed-coins": (fc.PlacedCoins(items=3, epsilon=1.0, coins=12), 1.0),
    "grr": (fc.GRR(items=3, epsilon=1.0), 1.0),
    "oue": (fc.OUE(items=3, epsilon=1.0), 1.0),
    "duchi": (fc.Duchi(epsilon=1.0), 1.0),
    "pm": (fc.PM(epsilon=1.0), 1.0),
}


def find_refuting(report: AuditReport) -> set[AdversaryCode]:
    """The codes of all adversaries for whom the audit refuted the claim."""
    refuting = [verdict.adversaries for verdict in report.verdicts if verdict.refuted]
    return {adversary.code for adversary in chain.from_iterable(refuting)}


@pytest.mark.parametrize("name", SOUND)
def test_all_adversaries_of_the_guarantee_are_played(name: str) -> None:
    mechanism, epsilon = SOUND[name]
    report = fc.audit(mechanism, epsilon=epsilon, runs=200, entropy=SeededStream(1))
    played = list(chain.from_iterable(verdict.adversaries for verdict in report.verdicts))
    assert sorted(map(str, played)) == sorted({str(one) for one in mechanism.adversaries})
    said = report.to_dict()["adversaries"]
    for adversary in played:
        assert str(adversary) in str(report)
        assert any(str(adversary) in verdict["adversary"] for verdict in said)
    # Each is tested at its own delta, and the first point is the claim.
    for verdict in report.verdicts:
        claim = verdict.findings[0].claim
        stated = mechanism.worst_pair(epsilon, verdict.adversaries[0]).stated_by
        assert claim.epsilon == epsilon
        assert (
            claim.delta == stated.guarantee(epsilon=epsilon, adversary=verdict.adversaries[0]).delta
        )
    json.dumps(report.to_dict())


@pytest.mark.parametrize("name", SOUND)
def test_false_alarms_stay_below_the_stated_rate(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One audit in five may be wrong: more than 16 of 40 once in a thousand times at that rate."""
    monkeypatch.setattr(audit_runs, "_find_power", lambda *_: None)
    mechanism, epsilon = SOUND[name]
    alarms = [
        fc.audit(
            mechanism, epsilon=epsilon, runs=300, confidence=0.8, entropy=SeededStream(seed)
        ).refuted
        for seed in range(40)
    ]
    assert sum(alarms) <= 16


@pytest.mark.parametrize(
    ("faulty", "seen_by"),
    [
        (SilentCoordinatorLaplace, {"s2_participants"}),
        (EqualLaplace, {"s1_participants", "s2_participants"}),
        (OppositeLaplace, {"s1_participants", "s2_participants", "reader"}),
    ],
)
def test_broken_server_noise_is_refuted_for_whom_it_is_broken(
    faulty: type[fc.ServerLaplace], seen_by: set[str]
) -> None:
    report = fc.audit(faulty(items=3, epsilon=1.0), runs=2000, entropy=SeededStream(2))
    assert find_refuting(report) == seen_by
    assert report.to_dict()["adversary"] == report.adversary
    assert str(AdversaryCode(report.decisive.adversaries[0].code)) in seen_by


def test_the_report_says_that_another_point_of_the_guarantee_was_refuted() -> None:
    faulty = TwoTries(items=3, p=0.2, floor=30)
    report = fc.audit(faulty, epsilon=0.3, entropy=SeededStream(3))
    assert report.is_own_point
    assert report.epsilon < 0.3
    assert "dpcs: its own guarantee (" in str(report)
    assert report.delta > faulty.guarantee(epsilon=0.3).delta
    assert report.lower_bound > report.epsilon


def test_an_audit_ends_as_soon_as_the_claim_is_refuted() -> None:
    silent = SilentCoordinatorLaplace(items=3, epsilon=1.0)
    report = fc.audit(silent, runs=20_000, entropy=SeededStream(4))
    assert (report.runs, report.planned_runs) == (2000, 20_000)
    sound = fc.Laplace(items=3, epsilon=1.0)
    whole = fc.audit(sound, runs=20_000, entropy=SeededStream(4))
    assert (whole.runs, whole.planned_runs) == (20_000, 20_000)


def test_one_adversary_can_be_played_alone() -> None:
    made = fc.ServerLaplace(items=3, epsilon=1.0)
    report = fc.audit(made, adversary=OUTSIDER, runs=500, entropy=SeededStream(5))
    assert [verdict.adversaries for verdict in report.verdicts] == [(OUTSIDER,)]
    # A reader knows neither noise, so that more is claimed, and a server could not be held to it.
    more = fc.audit(
        fc.Laplace(items=3, epsilon=1.0), adversary=insiders(2), runs=500, entropy=SeededStream(5)
    )
    assert more.verdicts[0].findings[0].claim.delta > 0.01
    with pytest.raises(RefusedError, match="alone"):
        fc.audit(made, adversary=Adversary(AdversaryCode.GROUP_INSIDERS), runs=500)


@pytest.mark.parametrize("gamma", [1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.2, 0.6])
def test_the_distribution_of_the_coordinators_view_is_that_of_its_guarantee(
    gamma: float, epsilon: float
) -> None:
    made = fc.TSSPrime(items=5, p=0.4, alpha=0.4, gamma=gamma, floor=9)
    pair = made.worst_pair(epsilon, S1)
    p, q = pair.tail_probabilities(epsilon)
    claimed = made.guarantee(epsilon=epsilon, adversary=S1).delta
    assert p - math.exp(epsilon) * q == pytest.approx(claimed, rel=1e-9)


def test_the_coordinators_view_is_drawn_from_that_distribution() -> None:
    """20,000 surveys: how often the log ratio is large, within five standard errors."""
    made = fc.TSSPrime(items=4, p=0.4, alpha=0.5, gamma=3.0, floor=5)
    pair = made.worst_pair(0.5, S1)
    runs = 20_000
    for answers, side in ((pair.first, 0), (pair.second, 1)):
        (seen,) = pair.mechanism.simulate_views(answers, runs, [S1], SeededStream(6))
        ratios = pair.log_ratio(seen)
        for threshold in (-0.5, 0.1, 0.4):
            chance = pair.tail_probabilities(threshold)[side]
            allowed = 5 * math.sqrt(chance * (1 - chance) / runs)
            assert abs((ratios >= threshold).mean() - chance) < allowed


def test_placed_coins_side_by_side_draw_from_the_distribution_of_one() -> None:
    """40,000 surveys agree with the exact distribution of the insider's view within five standard errors."""
    pair = fc.PlacedCoins(items=3, epsilon=1.0, coins=9).worst_pair(1.0)
    runs = 40_000
    (seen,) = pair.mechanism.simulate_views(pair.second, runs, [pair.adversary], SeededStream(7))
    for column, marginal in enumerate(pair.marginals):
        chances = np.exp(marginal.pair.log_q)
        counted = np.bincount(seen[:, column] - marginal.low, minlength=chances.size)
        assert counted.sum() == runs
        assert np.all(np.abs(counted - runs * chances) <= 5 * np.sqrt(runs * chances) + 5)
    # Neither another item's sum nor the public number of inverted coins tells anything.
    correlations = np.corrcoef(seen.T) - np.eye(4)
    assert np.abs(correlations).max() < 5 / np.sqrt(runs)


# --- whole surveys ---------------------------------------------------------------------------------


class NoiseOfOneServer(fc.ServerLaplace):
    """The coordinator adds nothing; it is the server that adds the constants of inverted coins."""

    is_adding: ClassVar[list[bool]] = []

    def add_up(self, tally, placement, *, constants: bool) -> np.ndarray:
        self.is_adding.append(constants)
        return super().add_up(tally, placement, constants=constants)

    def server_noise(self, entropy: Entropy) -> np.ndarray:
        noise = super().server_noise(entropy)
        return 0 * noise if self.is_adding[-1] else noise


class OppositeServers(NoiseOfOneServer):
    """The server that draws last subtracts what the other one has added."""

    drawn: ClassVar[list[np.ndarray]] = []

    def server_noise(self, entropy: Entropy) -> np.ndarray:
        if len(self.drawn) % 2:
            self.drawn.append(-self.drawn[-1])
        else:
            self.drawn.append(fc.ServerLaplace.server_noise(self, entropy))
        return self.drawn[-1]


def audit_servers(mechanism: fc.ServerLaplace) -> AuditReport:
    return fc.audit(mechanism, runs=100, through="servers", entropy=SeededStream(8))


@pytest.mark.slow
def test_broken_server_noise_is_refuted_in_whole_surveys() -> None:
    silent = audit_servers(NoiseOfOneServer(items=3, epsilon=1.0, users=3))
    assert find_refuting(silent) == {"s2_participants"}
    opposite = audit_servers(OppositeServers(items=3, epsilon=1.0, users=3))
    assert "reader" in find_refuting(opposite)


@pytest.mark.slow
def test_a_stream_that_both_servers_use_is_found_in_whole_surveys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = fc.ServerLaplace(items=3, epsilon=1.0, users=3)
    assert not audit_servers(sound).refuted
    monkeypatch.setattr(
        reports,
        "noise_stream",
        lambda params, server, secret, manifest_hash, *release: KeyStream(manifest_hash),
    )
    assert find_refuting(audit_servers(sound)) == {"s1_participants", "s2_participants"}


@pytest.mark.slow
def test_known_coins_are_found_in_whole_surveys() -> None:
    known = KnownPlaced(items=3, epsilon=1.0, coins=6)
    assert fc.audit(known, runs=100, through="servers", entropy=SeededStream(9)).refuted


@pytest.mark.slow
def test_sets_that_tell_the_item_are_found_in_whole_surveys() -> None:
    telling = InactiveTellTheirItem(items=4, p=0.2, alpha=0.25, floor=1)
    report = fc.audit(telling, epsilon=1.0, runs=100, through="two-stage", entropy=SeededStream(10))
    assert "s1" in find_refuting(report)
    assert (
        "the coordinator (S1), who reads the result"
        in report.to_dict()["adversaries"][1]["adversary"]
    )

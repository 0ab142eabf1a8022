"""Every planted error is refuted at the default number of runs, or named as undetectable."""

from pathlib import Path

import pytest
from planted_errors import DETECTABLE, UNDETECTABLE, PlantedError

import faircount as fc
from faircount.auditing import runs as audit_runs
from faircount.auditing.report import AuditReport, Verdict
from faircount.core.entropy import SeededStream
from faircount.mechanisms.registry import FREQUENCY, MEAN

NAMES = {"ids": lambda error: error.name}


@pytest.fixture(autouse=True)
def _without_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which claims an audit could have refuted is the subject of other tests, and takes a while."""
    monkeypatch.setattr(audit_runs, "_find_power", lambda *_: None)


def run_audit(error: PlantedError) -> AuditReport:
    return fc.audit(error.mechanism, epsilon=error.epsilon, entropy=SeededStream(7))


def find_verdicts(report: AuditReport, error: PlantedError) -> list[Verdict]:
    """The verdicts for the adversaries who can see the error."""
    return [
        verdict
        for verdict in report.verdicts
        if {adversary.code for adversary in verdict.adversaries} & set(error.seen_by)
    ]


def check_that_it_is_an_error(report: AuditReport, error: PlantedError) -> None:
    """The true loss exceeds what is claimed against the adversary who sees it."""
    claim = find_verdicts(report, error)[0].findings[0].claim
    if error.true_epsilon is None:
        assert error.true_delta is not None
        assert error.true_delta > claim.delta
    else:
        assert error.true_delta is None
        assert error.true_epsilon > claim.epsilon
        assert claim.delta < 1e-30


def test_the_list_has_errors_of_every_mechanism() -> None:
    assert len(DETECTABLE) >= 40
    assert {error.mechanism.name for error in DETECTABLE} == {*FREQUENCY, *MEAN}
    names = [error.name for error in (*DETECTABLE, *UNDETECTABLE)]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("error", DETECTABLE, **NAMES)
def test_a_planted_error_is_refuted(error: PlantedError) -> None:
    report = run_audit(error)
    check_that_it_is_an_error(report, error)
    assert report.refuted, str(report)
    assert any(verdict.refuted for verdict in find_verdicts(report, error))
    # What was measured is true: epsilon at the claim's delta is not overstated.
    if error.true_epsilon is not None and not report.is_own_point:
        assert report.lower_bound <= error.true_epsilon


@pytest.mark.slow
@pytest.mark.parametrize("error", UNDETECTABLE, **NAMES)
def test_an_undetectable_error_is_named_with_its_reason(error: PlantedError) -> None:
    report = run_audit(error)
    check_that_it_is_an_error(report, error)
    assert error.reason
    assert not report.refuted, "move it to the others"


def test_the_page_about_privacy_counts_them() -> None:
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "privacy.md").read_text("utf-8")
    words = " ".join(page.split())
    assert f"lists {len(DETECTABLE) + len(UNDETECTABLE)} errors in all mechanisms" in words
    assert f"refutes {len(DETECTABLE)} of them" in words
    assert len(UNDETECTABLE) == 5
    assert "the other five" in words

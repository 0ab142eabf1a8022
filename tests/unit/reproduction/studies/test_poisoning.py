"""Malicious clients: their effect is what theory says, and within the bound for proven reports."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.reproduction.report.figure_style import picture_style
from faircount.reproduction.report.figures import POISONING_LOOKS, draw_poisoning
from faircount.reproduction.studies import poisoning
from faircount.reproduction.studies.checks import check
from faircount.reproduction.studies.registry import measure
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    USER_LEVEL,
    Line,
    find_line,
    sampled_counts,
    select,
)


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return measure([poisoning.STUDY], 60, seed=5, workers=1)["poisoning"]


def test_runs_agree_with_theory(lines: list[Line]) -> None:
    """False alarm once in a million."""
    assert check(lines).is_consistent


def test_a_wrong_theory_is_noticed(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    """If malicious clients had a tenth more effect, the runs would show it."""
    shift = poisoning.expected_shift

    def larger_shift(method: str, malicious: int) -> float:
        return 1.1 * shift(method, malicious)

    monkeypatch.setattr(poisoning, "expected_shift", larger_shift)
    wrong = [replace(line, expected=poisoning.theory(line.point)["noise"]) for line in lines]
    assert not check(wrong).is_consistent


@pytest.mark.parametrize("malicious", poisoning.MALICIOUS)
@pytest.mark.parametrize("method", poisoning.PROVEN)
def test_with_proven_reports_a_malicious_client_has_one_vote(method: str, malicious: int) -> None:
    assert poisoning.expected_shift(method, malicious) == malicious / 1000


def test_without_proofs_few_malicious_clients_are_enough() -> None:
    assert poisoning.expected_shift("laplace", 1) == 0.05
    rarest = min(sampled_counts("gowalla"))
    assert poisoning.expected_shift("laplace", 20) == 1 - rarest / 1000
    # The total does not show it, and no count becomes negative.
    forged = poisoning.forge_votes(20)
    crowd = poisoning.split_crowd(20)
    counts = np.array(crowd.honest) + np.array(crowd.malicious) + np.array(forged)
    assert sum(forged) == 0
    assert counts.min() >= 0
    assert counts.max() == 1000


@pytest.mark.parametrize(("method", "votes"), [("oue", 3.16), ("grr", 5.65)])
def test_a_manipulated_local_report_counts_several_times(method: str, votes: float) -> None:
    assert poisoning.expected_shift(method, 100) / 0.1 == pytest.approx(votes, abs=0.01)


@pytest.mark.parametrize("method", poisoning.METHODS)
def test_simulated_users_show_the_same_and_no_check_notices(lines: list[Line], method: str) -> None:
    """Decoding refuses sums outside their range: these attacks stay inside it."""
    line = find_line(lines, method=method, how=USER_LEVEL)
    # Runs at user level are capped.
    assert line.runs == 20
    assert abs(line.z) < 5.5


def test_the_figure_shows_every_method_and_the_bound(lines: list[Line]) -> None:
    with picture_style():
        axes = draw_poisoning(lines).axes[0, 0]
    labels = axes.get_legend_handles_labels()[1]
    assert set(POISONING_LOOKS) == set(poisoning.METHODS)
    assert {look.label for look in POISONING_LOOKS.values()} <= set(labels)
    assert "bound for proven reports, c/n" in " ".join(labels)
    # The bound is the only dashed line.
    bound = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert np.allclose(bound.get_xdata(), bound.get_ydata())
    places = len(poisoning.MALICIOUS) * len(poisoning.METHODS)
    assert len(select(lines, how=COUNT_LEVEL)) == places

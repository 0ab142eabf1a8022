"""Liars among the users: what they move is what theory says, and no more than the bound where reports are proven."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.experiments.report.figure_style import style
from faircount.experiments.report.figures import POISONING_LOOKS, draw_poisoning
from faircount.experiments.studies import poisoning
from faircount.experiments.studies.checks import check
from faircount.experiments.studies.registry import measure
from faircount.experiments.studies.study import ACTING, COUNTS, Line, holders, one, select


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return measure([poisoning.STUDY], 60, seed=5, workers=1)["poisoning"]


def test_runs_agree_with_theory(lines: list[Line]) -> None:
    """False alarm once in a million."""
    assert check(lines).passed


def test_a_wrong_theory_is_noticed(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    """Had liars a tenth more than they have, the runs would say so."""
    honest = poisoning.shift
    monkeypatch.setattr(poisoning, "shift", lambda method, liars: 1.1 * honest(method, liars))
    wrong = [replace(each, expected=poisoning.theory(each.point)["noise"]) for each in lines]
    assert not check(wrong).passed


@pytest.mark.parametrize("liars", poisoning.LIARS)
@pytest.mark.parametrize("method", poisoning.PROVEN)
def test_where_reports_are_proven_liars_have_their_votes_and_no_more(method: str, liars: int) -> None:
    assert poisoning.shift(method, liars) == liars / 1000


def test_without_proofs_few_liars_are_enough() -> None:
    assert poisoning.shift("laplace", 1) == 0.05
    assert poisoning.shift("laplace", 20) == 1 - min(holders("gowalla")) / 1000
    assert sum(poisoning.push(20)) == 0  # the total does not show it
    counts = np.array(poisoning.crowd(20)[0]) + np.array(poisoning.crowd(20)[1]) + np.array(poisoning.push(20))
    assert counts.min() >= 0
    assert counts.max() == 1000


@pytest.mark.parametrize(("method", "votes"), [("oue", 3.16), ("grr", 5.65)])
def test_a_manipulated_local_report_counts_several_times(method: str, votes: float) -> None:
    assert poisoning.shift(method, 100) / 0.1 == pytest.approx(votes, abs=0.01)


def test_users_who_act_show_the_same_and_no_check_notices(lines: list[Line]) -> None:
    """Decoding refuses sums outside their range: these liars stay inside, or the runs would have ended."""
    for method in poisoning.METHODS:
        acting = one(lines, method=method, how=ACTING)
        assert acting.runs == 20
        assert abs(acting.z) < 5.5


def test_the_figure_shows_every_method_and_the_bound(lines: list[Line]) -> None:
    with style():
        axes = draw_poisoning(lines).axes[0, 0]
    labels = " ".join(axes.get_legend_handles_labels()[1])
    assert set(POISONING_LOOKS) == set(poisoning.METHODS)
    assert all(look.label in labels for look in POISONING_LOOKS.values())
    assert "bound for proven reports, c/n" in labels
    drawn = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert np.allclose(drawn.get_xdata(), drawn.get_ydata())
    assert len(select(lines, how=COUNTS)) == len(poisoning.LIARS) * len(poisoning.METHODS)

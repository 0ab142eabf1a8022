"""What each server sees of one proven report, exactly, over F_2 with the question in F_4: honest, curious and lying.

Every share (2^9), every blind (2^2) and the other server's noise are enumerated; the noise is one fair bit that turns
both counts over, and so hides the answer in the sum. Then the law of a server's whole view must be the same for both
answers. What the parties do is what the roles do: split, answer, decide, add up; `test_role_views.py` looks at the
roles themselves.
"""

import itertools
from collections import Counter

import numpy as np
import pytest

from faircount.protocol.topologies.two_servers.validity import ReportForm, prove, query_at
from faircount.sharing.field import add, subtract

FORM = ReportForm(2, 2, 0, 2)
POINTS = [(0, 1), (1, 1)]
NOBODY = np.zeros(FORM.width, np.uint8)


def every(count):
    return np.array(list(itertools.product(range(2), repeat=count)), dtype=np.uint8).reshape(
        -1, count
    )


SHIFTS = every(FORM.verifier_size)


def runs(answer):
    """The coordinator's share, the aggregator's share and the noise of the other server, for all outcomes of what is drawn."""
    bits = np.array([answer == 0, answer == 1], dtype=np.uint8)
    rows = np.array([prove(FORM, bits, blind) for blind in every(FORM.degree)])
    masks = every(FORM.width)
    second = np.repeat(masks, len(rows), axis=0)
    first = subtract(np.tile(rows, (len(masks), 1)), second, 2)
    noise = np.repeat(every(1), len(first), axis=0)
    return np.tile(first, (2, 1)), np.tile(second, (2, 1)), noise


def law(*columns):
    return Counter(map(bytes, np.hstack(columns).astype(np.uint8)))


def s1_view(r, answer, shift, change=NOBODY, *, noise=True):
    """The coordinator may shift its answers, or change its share: what it holds, the aggregator's answers, the aggregator's set and the result."""
    first, second, drawn = runs(answer)
    asked = query_at(FORM, r)
    held = add(first, np.broadcast_to(change, first.shape), 2)
    mine = add(asked.verifier_shares(held), np.broadcast_to(shift, (len(first), 5)), 2)
    theirs = asked.verifier_shares(second)
    counted = asked.accepts(mine, theirs)[:, np.newaxis]
    result = add(
        add(first[:, :2], second[:, :2], 2), np.broadcast_to(change[:2], (len(first), 2)), 2
    )
    published = np.where(counted, (result + drawn * noise) % 2, 2)
    return law(first, theirs, counted, published)


def s2_view(r, answer, shift, *, called_invalid=False, noise=True):
    """The aggregator may shift its answers, or call the report invalid: its share, the coordinator's answers, and the coordinator's sum if the coordinator agrees."""
    first, second, drawn = runs(answer)
    asked = query_at(FORM, r)
    mine, theirs = (
        asked.verifier_shares(first),
        add(asked.verifier_shares(second), np.broadcast_to(shift, (len(second), 5)), 2),
    )
    agreed = asked.accepts(mine, theirs)[:, np.newaxis] & (not called_invalid)
    summed = np.where(agreed, (first[:, :2] + drawn * noise) % 2, 2)
    return law(second, mine, agreed, summed)


@pytest.mark.parametrize("r", POINTS)
@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_a_curious_or_shifting_server_sees_the_same_whatever_the_answer(r, shift):
    """All 32 shifts of its answers; the first is none."""
    for view in (s1_view, s2_view):
        assert view(r, 0, shift) == view(r, 1, shift)


@pytest.mark.parametrize("at", range(FORM.width))
def test_s1_that_changes_an_element_of_a_share_sees_the_same(at):
    change = NOBODY.copy()
    change[at] = 1
    for r in POINTS:
        assert s1_view(r, 0, SHIFTS[0], change) == s1_view(r, 1, SHIFTS[0], change)


def test_s2_that_calls_a_valid_report_invalid_sees_the_same_and_gets_no_sum():
    for r in POINTS:
        views = [s2_view(r, answer, SHIFTS[0], called_invalid=True) for answer in (0, 1)]
        assert views[0] == views[1]


def test_honest_views_end_in_a_result():
    """Not because nothing happens: every honest report is counted, and the result is the counts or both turned over."""
    seen = s1_view(POINTS[0], 0, SHIFTS[0])
    assert {view[-3] for view in seen} == {1}
    assert {tuple(view[-2:]) for view in seen} == {(1, 0), (0, 1)}


@pytest.mark.parametrize("view", [s1_view, s2_view])
def test_without_the_other_servers_noise_the_sum_tells(view):
    """The planted error."""
    assert view(POINTS[0], 0, SHIFTS[0], noise=False) != view(POINTS[0], 1, SHIFTS[0], noise=False)

"""The exact view of each server of one proven report, over F_2 with the query in F_4.

Servers are honest, curious or dishonest. Every share (2^9), every blind (2^2) and the other
server's noise are enumerated. The noise is one fair bit that inverts both counts, and so hides the
response in the sum. Then the distribution of a server's whole view must be the same for both
responses. The parties do here what the roles do: split, compute verifier shares, decide, add up.
`test_role_views.py` runs the roles themselves.
"""

import itertools
from collections import Counter

import numpy as np
import pytest

from faircount.mechanisms.proven import one_vote
from faircount.protocol.topologies.two_servers.proofs import ReportLayout, prove, query_at
from faircount.sharing.field import add, subtract

FORM = ReportLayout(2, 2, 0, one_vote(2), 2)
POINTS = [(0, 1), (1, 1)]
NOBODY = np.zeros(FORM.width, np.uint8)


def every(count):
    return np.array(list(itertools.product(range(2), repeat=count)), dtype=np.uint8).reshape(
        -1, count
    )


SHIFTS = every(FORM.verifier_size)


def runs(answer):
    """Both servers' shares and the other server's noise, for every outcome of the draws."""
    bits = np.array([answer == 0, answer == 1], dtype=np.uint8)
    rows = np.array([prove(FORM, bits, blind) for blind in every(FORM.degree)])
    masks = every(FORM.width)
    second = np.repeat(masks, len(rows), axis=0)
    first = subtract(np.tile(rows, (len(masks), 1)), second, 2)
    noise = np.repeat(every(1), len(first), axis=0)
    return np.tile(first, (2, 1)), np.tile(second, (2, 1)), noise


def distribution(*columns):
    return Counter(map(bytes, np.hstack(columns).astype(np.uint8)))


def coordinator_view(r, answer, shift, change=NOBODY, *, noise=True):
    """The view of a coordinator that may shift its verifier shares, or change its share.

    It consists of its share, the aggregator's verifier shares, the set and the result.
    """
    first, second, drawn = runs(answer)
    query = query_at(FORM, r)
    changed = add(first, np.broadcast_to(change, first.shape), 2)
    mine = add(query.verifier_shares(changed), np.broadcast_to(shift, (len(first), 5)), 2)
    theirs = query.verifier_shares(second)
    counted = query.accepts(mine, theirs)[:, np.newaxis]
    result = add(
        add(first[:, :2], second[:, :2], 2), np.broadcast_to(change[:2], (len(first), 2)), 2
    )
    published = np.where(counted, (result + drawn * noise) % 2, 2)
    return distribution(first, theirs, counted, published)


def aggregator_view(r, answer, shift, *, is_rejected=False, noise=True):
    """The view of an aggregator that may shift its verifier shares, or reject a valid report.

    It consists of its share, the coordinator's verifier shares, and the coordinator's aggregate
    share if the coordinator confirms the set.
    """
    first, second, drawn = runs(answer)
    query = query_at(FORM, r)
    mine = query.verifier_shares(first)
    theirs = add(query.verifier_shares(second), np.broadcast_to(shift, (len(second), 5)), 2)
    agreed = query.accepts(mine, theirs)[:, np.newaxis] & (not is_rejected)
    summed = np.where(agreed, (first[:, :2] + drawn * noise) % 2, 2)
    return distribution(second, mine, agreed, summed)


@pytest.mark.parametrize("r", POINTS)
@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_a_curious_or_shifting_server_sees_the_same_whatever_the_answer(r, shift):
    """All 32 shifts of its verifier shares; the first one changes nothing."""
    for view in (coordinator_view, aggregator_view):
        assert view(r, 0, shift) == view(r, 1, shift)


@pytest.mark.parametrize("at", range(FORM.width))
def test_a_coordinator_that_changes_an_element_of_a_share_sees_the_same(at):
    change = NOBODY.copy()
    change[at] = 1
    for r in POINTS:
        assert coordinator_view(r, 0, SHIFTS[0], change) == coordinator_view(
            r, 1, SHIFTS[0], change
        )


def test_an_aggregator_that_rejects_a_valid_report_sees_the_same_and_gets_no_sum():
    for r in POINTS:
        views = [aggregator_view(r, answer, SHIFTS[0], is_rejected=True) for answer in (0, 1)]
        assert views[0] == views[1]


def test_honest_views_end_in_a_result():
    """Every honest report is counted, and the result is the counts or both inverted."""
    seen = coordinator_view(POINTS[0], 0, SHIFTS[0])
    assert {view[-3] for view in seen} == {1}
    assert {tuple(view[-2:]) for view in seen} == {(1, 0), (0, 1)}


@pytest.mark.parametrize("view", [coordinator_view, aggregator_view])
def test_without_the_other_servers_noise_the_sum_reveals_the_answer(view):
    """A planted error, which the enumeration must notice."""
    assert view(POINTS[0], 0, SHIFTS[0], noise=False) != view(POINTS[0], 1, SHIFTS[0], noise=False)

"""Sets of users that hold together, and their one description."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.protocol.peers.messages import RemovedPair
from faircount.protocol.peers.peer_set import (
    PeerSet,
    drop_until_connected,
    is_robustly_connected,
    parse_peer_set,
)
from faircount.protocol.wire.digests import bitmap


@given(st.integers(2, 7), st.integers(0, 3), st.data())
def test_sets_that_hold_together_do_without_any_phi_users(n, phi, data) -> None:
    from itertools import combinations

    pairs = list(combinations(range(n), 2))
    removed = data.draw(st.sets(st.sampled_from(pairs)))
    if is_robustly_connected(range(n), removed, phi):
        for gone in combinations(range(n), min(phi, n - 1)):
            left = [i for i in range(n) if i not in gone]
            reached = {left[0]}
            todo = [left[0]]
            while todo:
                i = todo.pop()
                near = {
                    j for j in left if j not in reached and (min(i, j), max(i, j)) not in removed
                }
                reached |= near
                todo += near
            assert reached == set(left)
            assert len(left) >= 2


@given(st.integers(2, 8), st.integers(0, 2), st.data())
def test_shrunk_sets_hold_together_or_vanish(n, phi, data) -> None:
    from itertools import combinations

    removed = data.draw(st.sets(st.sampled_from(list(combinations(range(n), 2)))))
    members, pairs = drop_until_connected(range(n), removed, phi)
    assert not pairs or is_robustly_connected(members, pairs, phi)
    assert all(i in members and j in members for i, j in pairs)
    if not removed:
        assert members == tuple(range(n))


def test_sets_have_one_description() -> None:
    wanted = PeerSet(bytes(32), 1, 5, (0, 2, 3), frozenset({(0, 3)}))
    assert parse_peer_set(bytes(32), 1, 5, wanted.bits, wanted.removed_pairs) == wanted
    assert parse_peer_set(bytes(32), 1, 5, wanted.bits, wanted.removed_pairs * 2) is None
    assert parse_peer_set(bytes(32), 1, 5, b"\xff", ()) is None


@pytest.mark.parametrize("pair", [(0, 3), (3, 4), (2, 1), (1, 1), (0, 9)])
def test_a_pair_that_is_none_of_the_set_makes_no_set(pair) -> None:
    """Of five users the first three are in the set."""
    assert parse_peer_set(bytes(32), 1, 5, bitmap(range(3), 5), [RemovedPair(1, 2)]) is not None
    assert parse_peer_set(bytes(32), 1, 5, bitmap(range(3), 5), [RemovedPair(*pair)]) is None

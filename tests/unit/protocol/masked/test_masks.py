"""`masked`: over all masks, what the aggregator sees depends on the accepted members' sum only."""

from collections import Counter
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from faircount.protocol.topologies.masked.masks import AttemptContext, mask_secrets, masks_of
from faircount.protocol.wire.crypto import IdealCrypto, KeyPair

Q = 3

NOW = AttemptContext(SimpleNamespace(q=Q, N=1, survey=bytes(16)), bytes(32), 1, bytes(32))

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]


def name(i: int) -> KeyPair:
    return KeyPair(bytes([i + 1]) * 32, bytes([i + 1]) * 32)  # zeros would be no usable key


def distribution(responses, included, also=()):
    """How often the aggregator sees what, over all masks: the sum, the dropped masks, and `also`."""
    seen = Counter()
    for drawn in product(range(Q), repeat=len(RING)):
        masks = dict(zip(RING, drawn, strict=True))
        sums = {i: (responses[i] + mask_of(drawn, i)) % Q for i in (*included, *also)}
        recovered = tuple(mask for pair, mask in masks.items() if not set(pair) <= set(included))
        seen[tuple(sums[i] for i in (*included, *also)), recovered] += 1
    return seen


def pair_of(info: bytes) -> tuple[int, int]:
    return int.from_bytes(info[33:37], "big"), int.from_bytes(info[37:41], "big")


@cache
def mask_of(drawn: tuple[int, ...], i: int) -> int:
    """What user i adds to its response if these masks were drawn, one for each pair."""
    masks = dict(zip(RING, drawn, strict=True))
    world = IdealCrypto(lambda _, info, q, n: np.array([masks[pair_of(info)]], dtype=np.uint8))
    near = [j for pair in RING if i in pair for j in pair if j != i]
    secrets = mask_secrets(world, name(i), {j: name(j).public for j in near})
    return int(masks_of(world, NOW, i, secrets)[0])


def depends_on(included, also=()):
    """The responses with equal sums that the aggregator can nevertheless tell apart."""
    distributions = {
        responses: distribution(responses, included, also)
        for responses in product((0, 1), repeat=5)
    }
    total = {responses: sum(responses[i] for i in included) % Q for responses in distributions}
    return [
        (a, b)
        for a, b in product(distributions, distributions)
        if total[a] == total[b] and distributions[a] != distributions[b]
    ]


@pytest.mark.parametrize("included", [(0, 1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 4), (2, 3)])
def test_s2_learns_the_sum_of_those_included(included) -> None:
    assert depends_on(included) == []


def test_a_set_that_falls_apart_gives_partial_sums() -> None:
    """Why both servers check that the accepted members are connected."""
    found = depends_on((0, 1, 3))
    assert ((1, 0, 0, 0, 0), (0, 0, 0, 1, 0)) in found


def test_a_dropped_users_sum_beside_its_masks_gives_its_answer() -> None:
    """Why a late sum is never forwarded: the planted hole."""
    found = depends_on((0, 1, 2, 3), also=(4,))
    assert ((0, 0, 0, 0, 0), (0, 0, 0, 0, 1)) in found

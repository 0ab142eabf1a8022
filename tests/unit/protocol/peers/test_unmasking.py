"""The aggregator's part of a sum: the masks that it takes off."""

from types import SimpleNamespace

import numpy as np
import pytest

from faircount.protocol.peers import unmasking
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.wire.crypto import StandardCrypto


def test_masks_made_together_are_those_that_each_user_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In three tables, the last of them smaller; without one user the sum is another one."""
    monkeypatch.setattr(unmasking, "MASKS_AT_ONCE", 3)
    params = SimpleNamespace(q=5003, N=4, survey=bytes(16))
    s2, now = (
        SimpleNamespace(params=params, crypto=StandardCrypto()),
        AttemptContext(params, bytes(32), 1, bytes(32)),
    )
    seeds = {place: bytes([place]) * 32 for place in range(2, 10)}
    masks = [now.self_mask(s2.crypto, place, seed, params.N) for place, seed in seeds.items()]
    wanted = np.sum(masks, axis=0, dtype=np.int64) % params.q
    assert unmasking.sum_self_masks(s2, now, seeds).tolist() == wanted.tolist()
    seeds.pop(9)
    assert unmasking.sum_self_masks(s2, now, seeds).tolist() != wanted.tolist()

"""Pairwise masks, as clients and the aggregator compute them: what binds each key, and the sum.

For neighbours i < j: m_ij = F(i, j) and m_ji = -F(i, j), where F expands the secret that they agree
on with their mask keys. A mask key is used for nothing else: whoever recovers it learns the masks
of its owner and no other secret.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair
from faircount.protocol.wire.digests import tagged_hash
from faircount.sharing.field import subtract, sum_rows
from faircount.sharing.keys import S2_INDEX, Purpose, is_canonical_key, key_info


def mask_info(context: AttemptContext, one: int, other: int) -> bytes:
    """Key info for the mask of a pair."""
    survey = context.params.survey
    # Both members of a pair must derive the same mask, so the smaller place always comes first.
    low = min(one, other)
    high = max(one, other)
    return key_info(Purpose.MASK, survey, context.attempt, low, high, context.set_digest)


def keys_digest(own: bytes, neighbours: Iterable[bytes]) -> bytes:
    """Digest of the mask keys that a client used: its own, and its neighbours' in roster order."""
    return tagged_hash(b"mask keys", own, *neighbours)


def share_info(params: SurveyParameters, sender: int, receiver: int, mask_key: bytes) -> bytes:
    """Key info for a key share to a neighbour: it decrypts only beside the sender's mask key."""
    # Bound to the mask key: the coordinator cannot show a neighbour's share beside another key.
    context = _mask_key_digest(mask_key)
    return key_info(Purpose.KEY_RECOVERY, params.survey, 0, sender, receiver, context)


@lru_cache(maxsize=1 << 12)
def _mask_key_digest(mask_key: bytes) -> bytes:
    """Cached, because all shares of a mask key need it."""
    return tagged_hash(b"mask key", mask_key)


def unmask_info(params: SurveyParameters, sender: int, manifest_hash: bytes) -> bytes:
    """Key info for unmask shares, which are sent to the aggregator for one manifest."""
    # Bound to the manifest: the coordinator cannot replay unmask shares for another set.
    return key_info(Purpose.KEY_RECOVERY, params.survey, 0, sender, S2_INDEX, manifest_hash)


def mask_secrets(
    crypto: CryptoSuite, own: KeyPair, others: Mapping[int, bytes]
) -> dict[int, bytes]:
    """The secrets agreed with others (place -> public mask key); unusable keys are left out."""
    secrets = {}
    for place, key in others.items():
        # A second encoding of one key would make two keys of it.
        secret = crypto.agree(own, key) if is_canonical_key(key) else None
        if secret is not None:
            secrets[place] = secret
    return secrets


def masks_of(
    crypto: CryptoSuite, context: AttemptContext, user: int, secrets: Mapping[int, bytes]
) -> Residues:
    """The sum of a member's pairwise masks modulo q, from the secrets with its neighbours.

    The client adds it to its vector; for a dropped member the aggregator adds it to the sum of the
    others, whose masks with that member it cancels.
    """
    q = context.params.q
    infos = [mask_info(context, user, j) for j in secrets]
    rows = crypto.expand_rows(list(secrets.values()), context.digest, infos, q, context.params.N)
    # A mask is added by the member with the smaller place and subtracted by the other one.
    above = np.array([j > user for j in secrets], dtype=np.bool_)
    return subtract(sum_rows(rows[above], q), sum_rows(rows[~above], q), q)

"""What users and S2 compute alike in the masked form: what binds each key, and the sum of a user's masks.

For neighbours i < j: m_ij = F(i,j) and m_ji = -F(i,j), F expanded from the key between their mask keys. A mask key is
used for nothing else: whoever recovers it learns the masks of its owner and no other secret.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.peers.self_mask import Round
from faircount.protocol.wire.digests import labelled
from faircount.protocol.wire.sealing import KeyPair, Sealing
from faircount.sharing.field import subtract, sum_rows
from faircount.sharing.keys import S2_INDEX, Purpose, canonical_key, key_info


def mask_info(now: Round, one: int, other: int) -> bytes:
    """For the mask of a pair."""
    low, high = min(one, other), max(one, other)
    return key_info(Purpose.MASK, now.params.survey, now.attempt, low, high, now.set_digest)


def keys_digest(own: bytes, neighbours: Iterable[bytes]) -> bytes:
    """Digest of the mask keys between which a user's masks are: its own, and those it was given, in roster order."""
    return labelled(b"mask keys", own, *neighbours)


def share_info(params: SurveyParameters, sender: int, receiver: int, mask_key: bytes) -> bytes:
    """For a key share sent to a neighbour: it opens only beside the sender's own public mask key."""
    return key_info(Purpose.KEY_RECOVERY, params.survey, 0, sender, receiver, _context(mask_key))


@lru_cache(maxsize=1 << 12)
def _context(mask_key: bytes) -> bytes:
    """The same for all shares of a key."""
    return labelled(b"mask key", mask_key)


def help_info(params: SurveyParameters, sender: int, claim_hash: bytes) -> bytes:
    """For the message keys of dropped neighbours' key shares, sent to S2 for one claim."""
    return key_info(Purpose.KEY_RECOVERY, params.survey, 0, sender, S2_INDEX, claim_hash)


def mask_secrets(sealing: Sealing, own: KeyPair, others: Mapping[int, bytes]) -> dict[int, bytes]:
    """What a user agrees on with each of the others (place -> public mask key); none with a key that is unusable."""
    agreed = {j: sealing.agree(own, key) for j, key in others.items() if canonical_key(key)}
    return {j: secret for j, secret in agreed.items() if secret is not None}


def masks_of(sealing: Sealing, now: Round, user: int, secrets: Mapping[int, bytes]) -> Residues:
    """The sum of a user's masks with others, from what it agreed on with each: m_ij over j, modulo q.

    The user adds it to its vector; for a dropped user S2 adds it to the others' sum.
    """
    infos, q = [mask_info(now, user, j) for j in secrets], now.params.q
    rows = sealing.stretch_rows(list(secrets.values()), now.digest, infos, q, now.params.N)
    above = np.array([j > user for j in secrets], dtype=np.bool_)
    return subtract(sum_rows(rows[above], q), sum_rows(rows[~above], q), q)

"""The mask that a client puts over its own vector before it sends it.

    client   vector + F(seed)                      -> coordinator
             the seed, encrypted to the aggregator -> coordinator, relayed with the manifest

Neither server learns anything from what it holds: the coordinator has the masked vector and no
seed, the aggregator the seed and no vector. The seed is drawn for one attempt and bound to survey,
roster, attempt, set and place. So a vector that is sent again in another attempt is under another
mask, and the difference of two masked vectors says nothing.
"""

from dataclasses import dataclass

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.protocol.peers.member import Member
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.crypto import CryptoSuite
from faircount.sharing.field import add
from faircount.sharing.keys import S2_INDEX, SEED_BYTES, Purpose, key_info
from faircount.sharing.packing import pack


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What all keys of one attempt are bound to; `digest` is the roster's."""

    params: SurveyParameters
    digest: bytes
    attempt: int
    set_digest: bytes

    def seed_info(self, sender: int) -> bytes:
        """Key info for an encrypted seed."""
        return self._info(Purpose.SEED, sender)

    def mask_info(self, sender: int) -> bytes:
        """Key info for the mask that a seed expands to."""
        return self._info(Purpose.SEED_EXPANSION, sender)

    def _info(self, purpose: Purpose, sender: int) -> bytes:
        survey = self.params.survey
        return key_info(purpose, survey, self.attempt, sender, S2_INDEX, self.set_digest)

    def self_mask(self, crypto: CryptoSuite, sender: int, seed: bytes, count: int) -> Residues:
        """F(seed): the client adds it to its vector, the aggregator subtracts it from the sum."""
        return crypto.expand(seed, self.digest, self.mask_info(sender), self.params.q, count)


def mask_vector(
    member: Member, context: AttemptContext, vector: Residues, entropy: Entropy
) -> tuple[bytes, bytes]:
    """Mask a vector with a fresh seed.

    Returns:
        the masked vector, packed, for the coordinator, and the seed encrypted to the aggregator
    """
    q = member.params.q
    seed = entropy.bytes(SEED_BYTES)
    # The seed goes to the aggregator and the masked vector to the coordinator: together they would
    # give the vector, so neither message is ever readable by both.
    masked = add(vector, context.self_mask(member.crypto, member.index, seed, len(vector)), q)
    encrypted = member.encrypt_to_aggregator(context.seed_info(member.index), seed, entropy)
    return pack(masked, q), encrypted

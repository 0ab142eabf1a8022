"""The mask that a user puts over its own vector: S1 gets the vector under it, S2 the seed of it, sealed.

    user   y = vector + F(seed)                                     -> S1, openly
           the seed, sealed to S2                                   -> S1, relayed with the claim

Neither server learns anything from its part. The seed is drawn for one attempt and bound to survey, roster, attempt,
set and place: a vector that is sent again in another attempt is under another mask.
"""

from dataclasses import dataclass

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.wire.sealing import Sealing
from faircount.sharing.field import add
from faircount.sharing.keys import S2_INDEX, SEED_BYTES, Purpose, key_info
from faircount.sharing.packing import pack


@dataclass(frozen=True, slots=True)
class Round:
    """What all keys of one attempt are bound to."""

    params: SurveyParameters
    digest: bytes  # of the roster
    attempt: int
    set_digest: bytes

    def seed_info(self, sender: int) -> bytes:
        """For a sealed seed."""
        return key_info(Purpose.SEED, self.params.survey, self.attempt, sender, S2_INDEX, self.set_digest)

    def mask_info(self, sender: int) -> bytes:
        """For the mask that is made of a seed."""
        purpose = Purpose.SEED_EXPANSION
        return key_info(purpose, self.params.survey, self.attempt, sender, S2_INDEX, self.set_digest)

    def self_mask(self, sealing: Sealing, sender: int, seed: bytes, count: int) -> Residues:
        """F(seed): what a user adds to its own vector, and S2 takes off the sum."""
        return sealing.stretch(seed, self.digest, self.mask_info(sender), self.params.q, count)


def hidden(member: Member, now: Round, vector: Residues, entropy: Entropy) -> tuple[bytes, bytes]:
    """A vector under a fresh mask, packed, for S1; and the seed of the mask, sealed to S2."""
    seed, q = entropy.bytes(SEED_BYTES), member.params.q
    masked = add(vector, now.self_mask(member.sealing, member.index, seed, len(vector)), q)
    return pack(masked, q), member.sealed_to_s2(now.seed_info(member.index), seed, entropy)

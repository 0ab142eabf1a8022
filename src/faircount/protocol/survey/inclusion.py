"""Was I counted? The path from a user's entry to the root that S2 signed with the result."""

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import InclusionProof, Levels, leaf, prove, proves
from faircount.protocol.wire.messages import Inclusion, Published, Signed
from faircount.protocol.wire.signing import unwrap


def inclusion(published: Signed, levels: Levels, index: int) -> Inclusion:
    """The result, and the path from the entry at this place of the tree."""
    proof = prove(levels, index)
    return Inclusion(published, proof.index, proof.size, proof.path)


def counts_in(params: SurveyParameters, answer: Inclusion, user: bytes, public_key: bytes) -> bool:
    """Whether S2's signed result counts the entry with this user id and key."""
    published = unwrap(params.keys.s2, Party.S2, answer.published)
    if not isinstance(published, Published) or published.survey != params.survey:
        return False
    proof = InclusionProof(answer.index, answer.size, answer.path)
    return answer.size == published.included and proves(proof, leaf(answer.index, user, public_key), published.root)

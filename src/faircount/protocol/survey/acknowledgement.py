"""S1's acknowledgements: one signature for one body, or for all bodies of a group commit."""

from collections.abc import Sequence
from hashlib import sha256

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import LABEL, InclusionProof, labelled, prove, root_of_proof, tree
from faircount.protocol.wire.messages import Accepted
from faircount.protocol.wire.signing import SigningKey, verify


def unsigned(survey: bytes, body_hash: bytes) -> Accepted:
    """That a body was written, before S1 has signed it."""
    return Accepted(survey, body_hash, 0, 1, (), bytes(64))


def sign_together(key: SigningKey, accepted: Sequence[Accepted]) -> list[Accepted]:
    """The same with one signature for all of them, which are of one survey."""
    if not accepted:
        return []
    levels = tree([_leaf(each.body_hash) for each in accepted])
    signature = key.sign(_signed_bytes(accepted[0].survey, len(accepted), levels[-1][0]))
    size, paths = len(accepted), (prove(levels, index).path for index in range(len(accepted)))
    return [
        Accepted(each.survey, each.body_hash, index, size, path, signature)
        for index, (each, path) in enumerate(zip(accepted, paths, strict=True))
    ]


def acknowledges(params: SurveyParameters, answer: Accepted, body: Message) -> bool:
    """Whether S1 has signed that it wrote this very body."""
    if answer.survey != params.survey or answer.body_hash != sha256(encode(body)).digest():
        return False
    root = root_of_proof(InclusionProof(answer.index, answer.size, answer.path), _leaf(answer.body_hash))
    if root is None:
        return False
    return verify(params.keys.s1, answer.signature, _signed_bytes(answer.survey, answer.size, root))


def _leaf(body_hash: bytes) -> bytes:
    return labelled(b"acknowledged", body_hash)


def _signed_bytes(survey: bytes, size: int, root: bytes) -> bytes:
    return LABEL + b"/acknowledgement\0" + survey + size.to_bytes(4, "big") + root

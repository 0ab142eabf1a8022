"""The coordinator's acknowledgements: its signature that it has stored a message.

The coordinator writes all messages of a group commit together and signs them together: one
signature on the root of a Merkle tree over the hashes of the messages, and for each sender the
path to that root. A single message is a tree with one leaf.
"""

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, add_checksum, encode, keep_encoding
from faircount.protocol.wire.digests import (
    LABEL,
    MerkleProof,
    audit_paths,
    build_tree,
    root_of_proof,
    tagged_hash,
)
from faircount.protocol.wire.messages import Acknowledgement
from faircount.protocol.wire.signing import SigningKey, verify


def unsigned_acknowledgement(survey: bytes, message_hash: bytes) -> Acknowledgement:
    """An acknowledgement that the coordinator has not signed yet."""
    return Acknowledgement(survey, message_hash, 0, 1, (), bytes(64))


def sign_together(
    key: SigningKey, acknowledgements: Sequence[Acknowledgement]
) -> list[Acknowledgement]:
    """These acknowledgements, all of one survey, with one signature for all of them."""
    if not acknowledgements:
        return []
    size = len(acknowledgements)
    levels = build_tree(_leaf(unsigned.message_hash) for unsigned in acknowledgements)
    # One signature per group commit instead of one per message.
    signature = key.sign(_signed_bytes(acknowledgements[0].survey, size, levels[-1][0]))
    signed = []
    for index, path in enumerate(audit_paths(levels)):
        unsigned = acknowledgements[index]
        answer = Acknowledgement(
            unsigned.survey, unsigned.message_hash, index, size, path, signature
        )
        keep_encoding(answer, _encode(answer))
        signed.append(answer)
    return signed


def _encode(answer: Acknowledgement) -> bytes:
    """What the codec makes of it, written out: three times as fast, once for every report."""
    numbers = _NUMBERS.pack(answer.index, answer.size, len(answer.path))
    head = (answer.first_bytes, answer.survey, answer.message_hash, numbers)
    return add_checksum(b"".join((*head, *answer.path, answer.signature)))


_NUMBERS = Struct(">III")


def verify_acknowledgement(
    params: SurveyParameters, answer: Acknowledgement, message: Message
) -> bool:
    """Whether the coordinator has signed that it stored exactly this message."""
    # check: acknowledged-report - the coordinator confirms another report than was sent
    if answer.survey != params.survey or answer.message_hash != sha256(encode(message)).digest():
        return False
    proof = MerkleProof(answer.index, answer.size, answer.path)
    root = root_of_proof(proof, _leaf(answer.message_hash))
    if root is None:
        return False
    # check: acknowledgement-signed - an unsigned confirmation proves nothing
    return verify(
        params.keys.coordinator, answer.signature, _signed_bytes(answer.survey, answer.size, root)
    )


def _leaf(message_hash: bytes) -> bytes:
    # Hashed with a label: the hash of a message must not pass for an inner node of the tree.
    return tagged_hash(b"acknowledged", message_hash)


def _signed_bytes(survey: bytes, size: int, root: bytes) -> bytes:
    # The size is signed because a path does not determine it: the same leaf could be claimed at
    # another index of a larger tree.
    return LABEL + b"/acknowledgement\0" + survey + size.to_bytes(4, "big") + root

"""The list of an item's reporters, fixed by the coordinator before the election.

The aggregator signs a salted Merkle root of each list. Then

    a reporter   shares only after proof that its number is on the list of every item it reports
    a helper     sums only the shares of exactly those on the whole list who are present

So the coordinator cannot single anybody out: an item's sum is over all honest reporters who are
present, or there is none. Because of the salts a root says nothing about who is on the list, and a
proof reveals the salt of one number only.
"""

import hmac
from collections.abc import Sequence
from functools import lru_cache

from faircount.protocol.topologies.two_stage.messages import ListProof
from faircount.protocol.wire.digests import (
    LABEL,
    Levels,
    MerkleProof,
    build_tree,
    merkle_root,
    prove,
    tagged_hash,
    verify_proof,
)


def item_salt(key: bytes, survey: bytes, item: int) -> bytes:
    """The salt of an item's list, from a key of the coordinator; the same again after a restore."""
    return hmac.digest(key, LABEL + b"/list\0" + survey + item.to_bytes(4, "big"), "sha256")


@lru_cache(maxsize=256)
def list_root(salt: bytes, numbers: tuple[int, ...]) -> bytes:
    """Root over a list, ascending; cached for simulations, in which many check the same one."""
    return merkle_root(_leaves(salt, numbers))


def prove_listed(salt: bytes, numbers: Sequence[int], number: int) -> ListProof:
    """The proof that a number is on the list with this salt."""
    # The proof shows a reporter its position on the list, and nobody else's number.
    position = numbers.index(number)
    path = prove(_list_tree(salt, tuple(numbers)), position).path
    return ListProof(position, _number_salt(salt, number), path)


def is_listed(proof: ListProof, number: int, size: int, root: bytes) -> bool:
    """Whether the proof leads from the number to the root of a list of this size."""
    return verify_proof(
        MerkleProof(proof.position, size, proof.path), _leaf(proof.salt, number), root
    )


@lru_cache(maxsize=256)
def _list_tree(salt: bytes, numbers: tuple[int, ...]) -> Levels:
    return build_tree(_leaves(salt, numbers))


def _leaves(salt: bytes, numbers: Sequence[int]) -> list[bytes]:
    return [_leaf(_number_salt(salt, number), number) for number in numbers]


def _number_salt(salt: bytes, number: int) -> bytes:
    # One-way, so that a proof with the salt of one number does not reveal those of the others.
    return tagged_hash(b"salt", salt, number.to_bytes(4, "big"))


def _leaf(salt: bytes, number: int) -> bytes:
    return tagged_hash(b"listed", salt, number.to_bytes(4, "big"))

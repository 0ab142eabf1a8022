"""Which reporters an item has: a list of numbers that S1 fixes before the election, and S2 signs as a salted root.

    reporter   shares only after proof that its number is on the list of every item it reports
    helper     adds up only the shares of exactly those on the whole list who are present

So S1 can single nobody out: an item's sum is over all honest reporters who are present, or there is none. Without the
salts a root says nothing about who is on the list; a proof gives away the salt of one number only.
"""

import hmac
from collections.abc import Sequence
from functools import lru_cache

from faircount.protocol.topologies.two_stage.messages import Listed
from faircount.protocol.wire.digests import LABEL, InclusionProof, Levels, labelled, merkle_root, prove, proves, tree


def item_salt(key: bytes, survey: bytes, item: int) -> bytes:
    """The salt of an item's list, from a key of S1: a restored S1 finds the same one."""
    return hmac.digest(key, LABEL + b"/list\0" + survey + item.to_bytes(4, "big"), "sha256")


@lru_cache(maxsize=256)
def list_root(salt: bytes, numbers: tuple[int, ...]) -> bytes:
    """Root over a list, ascending. Cached for surveys played in memory, where many check the same one."""
    return merkle_root(_leaves(salt, numbers))


def prove_listed(salt: bytes, numbers: Sequence[int], number: int) -> Listed:
    """The proof that a number is on the list with this salt."""
    place = numbers.index(number)
    return Listed(place, _salt(salt, number), prove(_tree(salt, tuple(numbers)), place).path)


def is_listed(proof: Listed, number: int, size: int, root: bytes) -> bool:
    """Whether the proof leads from the number to the root of a list of this size."""
    return proves(InclusionProof(proof.place, size, proof.path), _leaf(proof.salt, number), root)


@lru_cache(maxsize=256)
def _tree(salt: bytes, numbers: tuple[int, ...]) -> Levels:
    return tree(_leaves(salt, numbers))


def _leaves(salt: bytes, numbers: Sequence[int]) -> list[bytes]:
    return [_leaf(_salt(salt, number), number) for number in numbers]


def _salt(salt: bytes, number: int) -> bytes:
    return labelled(b"salt", salt, number.to_bytes(4, "big"))


def _leaf(salt: bytes, number: int) -> bytes:
    return labelled(b"listed", salt, number.to_bytes(4, "big"))

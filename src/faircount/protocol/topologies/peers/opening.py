"""What S2 does in every topology with a roster: name a place, open what its user sealed, hash those it counts."""

from collections.abc import Iterable, Sequence

from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.packed_rows import unpack_rows


def without_bad(s: Aggregator, places: Sequence[int]) -> tuple[int, ...]:
    """The places of a first claim without those whose blobs did not open: the one set that a further claim may name.

    Were anybody else left out, S2 would have a sum with and one without that user.
    """
    return tuple(j for j in places if entry(s, j)[0] not in s.bad)


def entry(s: Aggregator, index: int) -> tuple[bytes, bytes]:
    """(user id, public key) at a place of the sealed roster."""
    line = s.roster.entries[index] if s.roster is not None else None
    return (b"", b"") if line is None else (line.user, line.public_key)


def open_sums(
    s: Aggregator, places: Sequence[int], infos: Iterable[bytes], blobs: Sequence[bytes]
) -> tuple[list[bytes], tuple[int, ...]]:
    """The packed sums, and the positions of blobs that do not open or hold no vector."""
    plain = [opened(s, j, info, blob) for j, info, blob in zip(places, infos, blobs, strict=True)]
    _, fine = unpack_rows(plain, s.params.q, s.params.N)
    return plain, tuple(i for i, each in enumerate(fine) if not each)


def opened(s: Aggregator, j: int, info: bytes, blob: bytes) -> bytes:
    """What user j sealed to S2; nothing if it does not open."""
    secret = s.sealing.agree(s.box, entry(s, j)[1])
    return (s.sealing.open(secret, s.digest, info, blob) or b"") if secret else b""


def root_of(s: Aggregator, members: Sequence[int]) -> bytes:
    """Merkle root of the included users."""
    return merkle_root(roster_leaves(entry(s, j) for j in members))

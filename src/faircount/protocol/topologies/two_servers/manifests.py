"""The batch manifest in parts, as the coordinator makes it and both servers read it.

A manifest of many reports is sent in parts of `REPORTS_PER_PART` entries, so that neither server
needs all of it in memory. Each part holds the hash of the one before: the hash of the last part,
which the aggregator's reservation names, fixes the whole manifest. The last part is the state's
`manifest`, the others are stored by number.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

from faircount.protocol.roles.rows import StepRows, StepTable, part_key
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.messages import (
    BatchManifest,
    ManifestEntry,
    Report,
)
from faircount.protocol.wire.codec import Message, encode, pack_records
from faircount.protocol.wire.crypto import CryptoSuite
from faircount.protocol.wire.packed_rows import split_into_batches
from faircount.protocol.wire.stored import TopologyState

StoredParts = StepTable[bytes, Message]
NO_PART_BEFORE = bytes(32)


class ManifestHolder(Protocol):
    """The state of the coordinator or the aggregator, as far as the manifest is concerned."""

    @property
    def manifest(self) -> Message | None:
        """The last part."""

    @property
    def topology_state(self) -> TopologyState | None:
        """A `PartsState`, once there is a manifest."""


@dataclass(frozen=True)
class PartsState(TopologyState):
    """What both servers keep about a manifest in parts."""

    stored_tag = "servers-manifest-parts"
    # Hashes of all parts but the last, whose hash is `manifest_hash` of the common state.
    earlier: tuple[bytes, ...] = ()
    # Whether a restored coordinator has adopted the manifest, so that its parts are those that the
    # aggregator has recorded, and not those that the coordinator has made.
    is_adopted: bool = False


def earlier_hashes(s: ManifestHolder) -> tuple[bytes, ...]:
    """The hashes of all parts of the manifest but the last."""
    return s.topology_state.earlier if isinstance(s.topology_state, PartsState) else ()


def split_into_parts(
    params: SurveyParameters, entries: Iterable[ManifestEntry]
) -> Iterator[BatchManifest]:
    """The parts of a manifest with these entries, one at a time; one empty part if none."""
    groups = split_into_batches(entries, messages.REPORTS_PER_PART)
    group = next(groups, [])
    number = 0
    before = NO_PART_BEFORE
    while True:
        # A part states whether another one follows, so the next group is read first.
        following = next(groups, None)
        more = int(following is not None)
        part = BatchManifest(
            params.survey, params.digest, pack_records(ManifestEntry, group), number, before, more
        )
        yield part
        if following is None:
            return
        group = following
        number += 1
        before = _hash(part)


def last_missing_part(kept: StoredParts, part: BatchManifest) -> int | None:
    """The number of the last part before this one that is not stored; None if all of them are."""
    while part.number:
        before = kept.get(part_key(part.number - 1))
        if not isinstance(before, BatchManifest) or _hash(before) != part.previous_hash:
            return part.number - 1
        part = before
    return None


def _hash(part: BatchManifest) -> bytes:
    return sha256(encode(part)).digest()


def verify_parts(kept: StoredParts, last: BatchManifest) -> tuple[bytes, ...] | None:
    """The hashes of the parts before the last one, if all are stored and form one manifest."""
    hashes = list[bytes]()
    # Backwards, from the part that the reservation names to the first one.
    part = last
    while part.number:
        before = kept.get(part_key(part.number - 1))
        if (
            not isinstance(before, BatchManifest)
            # check: manifest-part-size - a part of another size hides repeated users
            or not is_valid_part(before)
            # check: manifest-parts-in-order - out of order, somebody may be named twice
            or not is_successor(before, part)
        ):
            return None
        hashes.append(part.previous_hash)
        part = before
    is_whole = (
        is_valid_part(last)
        # check: manifest-complete - a manifest cut short leaves confirmed reports out
        and not last.has_more
        and part.previous_hash == NO_PART_BEFORE
    )
    return tuple(reversed(hashes)) if is_whole else None


def is_successor(before: BatchManifest, part: BatchManifest) -> bool:
    """Whether a part comes directly after another one: number, hash and order of user ids."""
    is_next = before.number == part.number - 1
    names_before = part.previous_hash == _hash(before)
    last = before.entries[-1:]
    first = part.entries[:1]
    in_order = not last or not first or last[0].user < first[0].user
    # check: part-follows - parts of two manifests form one
    return before.has_more == 1 and is_next and names_before and in_order


def is_valid_part(part: BatchManifest) -> bool:
    """Whether a part has the right number of entries, ascending by user id.

    Ascending ids name each participant once. Somebody who is named many times would make up the
    coordinator's sum alone.
    """
    size = len(part.entries)
    if part.has_more:
        right_size = size == messages.REPORTS_PER_PART
    else:
        # Only a manifest without any report has an empty part.
        right_size = size <= messages.REPORTS_PER_PART and (size > 0 or part.number == 0)
    # check: user-once - somebody named many times would make up the sum alone
    return right_size and all(one.user < two.user for one, two in pairwise(part.entries))


def get_part(s: ManifestHolder, rows: StepRows, number: int) -> BatchManifest:
    """A part of the manifest by its number.

    Raises:
        KeyError: there is no such part
    """
    part = s.manifest
    if number < len(earlier_hashes(s)):
        is_adopted = isinstance(s.topology_state, PartsState) and s.topology_state.is_adopted
        parts = rows.recorded_parts if is_adopted else rows.manifest_parts
        part = parts[part_key(number)]
    if not isinstance(part, BatchManifest):
        raise KeyError(number)
    return part


def iterate_parts(s: ManifestHolder, rows: StepRows) -> Iterator[BatchManifest]:
    """The parts of the manifest in order, read one at a time; none before there is a manifest."""
    if s.manifest is None:
        return
    for number in range(len(earlier_hashes(s)) + 1):
        yield get_part(s, rows, number)


def iterate_entries(s: ManifestHolder, rows: StepRows) -> Iterator[ManifestEntry]:
    """The entries of the manifest, ascending by user id, which is the order of stored reports."""
    for part in iterate_parts(s, rows):
        yield from part.entries


def entry_of(crypto: CryptoSuite, user: bytes, report: Report) -> ManifestEntry:
    """The manifest entry of a stored report."""
    commitment = crypto.commit(report.salt, report.share)
    return ManifestEntry(
        user, report.public_key, report.mac, commitment, sha256(report.encrypted_share).digest()
    )


def manifest_size(s: ManifestHolder) -> int:
    """Number of entries of the manifest."""
    return s.manifest.size if isinstance(s.manifest, BatchManifest) else 0

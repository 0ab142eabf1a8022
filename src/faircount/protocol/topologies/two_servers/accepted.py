"""The accepted reports, as the coordinator reads them from its manifest.

The aggregator names the accepted reports by a bitmap over the manifest. The functions here find
the manifest entries of that bitmap, and the position of one participant in it, for the inclusion
proof. They read one part of the manifest at a time, however many reports there are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import compress

import numpy as np

from faircount.core.arrays import Bools, Ints
from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.inclusion import Entry, prove_inclusion
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
    get_part,
    iterate_entries,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    BatchManifest,
    ManifestEntry,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import marks_of
from faircount.protocol.wire.messages import FinalStatement


def entries_at(s: Coordinator, rows: StepRows, positions: Ints) -> Iterator[ManifestEntry]:
    """The manifest entries at these positions, which must be ascending."""
    numbers = positions // messages.REPORTS_PER_PART
    for number in np.unique(numbers).tolist():
        entries = get_part(s, rows, number).entries
        within_part = positions[numbers == number] % messages.REPORTS_PER_PART
        for position in within_part.tolist():
            yield entries[position]


def accepted_marks(s: Coordinator, accepted: AcceptedReports) -> Bools | None:
    """For each manifest entry, whether it is accepted; None if the bitmap has another size."""
    return marks_of(accepted.members, manifest_size(s))


def accepted_entries(
    s: Coordinator, rows: StepRows, accepted: AcceptedReports
) -> Iterator[ManifestEntry]:
    """The manifest entries of the accepted reports."""
    marks = accepted_marks(s, accepted)
    if marks is None:
        return iter(())
    # Nearly all are accepted, and a whole part is decoded faster than its entries one by one.
    return compress(iterate_entries(s, rows), marks.tolist())


def find_position(s: Coordinator, rows: StepRows, user: bytes) -> int | None:
    """A participant's position in the manifest, which is ascending by user id; None if absent."""
    if not isinstance(s.manifest, BatchManifest):
        return None
    # Two binary searches: for the part by its first entry, then for the entry inside the part.
    number = bisect_right(
        range(len(earlier_hashes(s))),
        user,
        key=lambda part: get_part(s, rows, part + 1).entries[0].user,
    )
    entries = get_part(s, rows, number).entries
    position = bisect_left(entries, user, key=lambda entry: entry.user)
    if position == len(entries) or entries[position].user != user:
        return None
    return number * messages.REPORTS_PER_PART + position


def result_for(s: Coordinator, rows: StepRows, position: int) -> Message:
    """The result for the participant at a position, with an inclusion proof if it is counted."""
    accepted = None if s.accepted is None else s.accepted.message
    if s.final is None or not isinstance(accepted, AcceptedReports):
        raise ProtocolError("nobody is counted before there is a result")
    final = s.final.signed
    marks = accepted_marks(s, accepted)
    if marks is None or not marks[position]:
        return FinalStatement(final)
    counted = np.flatnonzero(marks)

    def entries(block: range) -> Iterator[Entry]:
        for entry in entries_at(s, rows, counted[block.start : block.stop]):
            yield entry.user, entry.public_key

    # The leaf of a report is numbered among the accepted ones, not among all of the manifest.
    return prove_inclusion(final, entries, len(counted), int(marks[:position].sum()))

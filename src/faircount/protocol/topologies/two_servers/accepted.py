"""The accepted reports as the coordinator knows them: the entries of its claim that the aggregator
has named, and who of its users is one.

The claim is read a part at a time, however many users there are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

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


def entries_at(s: Coordinator, rows: StepRows, places: Ints) -> Iterator[ManifestEntry]:
    """The lines of the claim at these places, ascending; a part of it is in memory at a time."""
    numbers = places // messages.REPORTS_PER_PART
    for number in np.unique(numbers).tolist():
        entries = get_part(s, rows, number).entries
        yield from (
            entries[at] for at in (places[numbers == number] % messages.REPORTS_PER_PART).tolist()
        )


def accepted_marks(s: Coordinator, stated: AcceptedReports) -> Bools | None:
    """Who of the claim is in a set; None if it is none of the claim."""
    return marks_of(stated.members, manifest_size(s))


def entries_in(s: Coordinator, rows: StepRows, stated: AcceptedReports) -> Iterator[ManifestEntry]:
    """The claim's entries in a set."""
    members = accepted_marks(s, stated)
    return iter(()) if members is None else entries_at(s, rows, np.flatnonzero(members))


def place_of(s: Coordinator, rows: StepRows, user: bytes) -> int | None:
    """A user's place in the claim, which is ascending by user id."""
    number = bisect_right(
        range(len(earlier_hashes(s))),
        user,
        key=lambda at: get_part(s, rows, at + 1).entries[0].user,
    )
    entries = get_part(s, rows, number).entries if isinstance(s.manifest, BatchManifest) else ()
    at = bisect_left(entries, user, key=lambda line: line.user)
    return (
        number * messages.REPORTS_PER_PART + at
        if at < len(entries) and entries[at].user == user
        else None
    )


def inclusion_of(s: Coordinator, rows: StepRows, place: int) -> Message:
    """The result for the user at this place of the claim, with proof that it counts it, if it
    does.
    """
    if s.final is None or s.included is None or not isinstance(s.included.message, AcceptedReports):
        raise ProtocolError("nobody is counted before there is a result")
    final, members = s.final.signed, accepted_marks(s, s.included.message)
    if members is None or not members[place]:
        return FinalStatement(final)
    counted = np.flatnonzero(members)

    def entries(some: range) -> Iterator[Entry]:
        return (
            (each.user, each.public_key)
            for each in entries_at(s, rows, counted[some.start : some.stop])
        )

    return prove_inclusion(final, entries, len(counted), int(members[:place].sum()))

"""The coordinator's state of a `servers` survey, and its verifier shares of proven reports.

    reservation         fixes all reports and reveals the aggregator's value: the coordinator
                        computes its verifier shares and stores them
    encrypted shares    leave with the stored verifier shares
    accepted reports    arrive with the aggregator's verifier shares: the coordinator checks every
                        proof again before it adds anything up

The verifier shares are stored before they are sent. After a crash the coordinator sends the stored
ones: a second query about the same report would reveal more than its validity.
"""

from dataclasses import dataclass, field, replace

from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.accepted import accepted_marks
from faircount.protocol.topologies.two_servers.manifests import (
    PartsState,
    entry_of,
    iterate_parts,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.topologies.two_servers.reports import (
    RevealedValues,
    compute_verifier_shares,
    derive_query,
    pack_verifier_shares,
    report_layout_of,
    unpack_verifier_shares,
    verifier_shares_bytes,
)
from faircount.protocol.wire.digests import marks_of
from faircount.protocol.wire.messages import Reservation


@dataclass(frozen=True)
class ServersState(PartsState):
    """What the coordinator stores for this topology beside the parts of its manifest."""

    stored_tag = "servers-coordinator"
    # Packed, one element for each part of the manifest; empty where reports are not proven.
    verifier_shares: tuple[bytes, ...] = field(default=(), repr=False)
    # The one aggregate share. It is stored before it is sent, and no other one ever leaves.
    total: AggregateShare | None = None


def servers_state(s: Coordinator) -> ServersState:
    """The coordinator's topology state; an empty one before the manifest is fixed."""
    return s.topology_state if isinstance(s.topology_state, ServersState) else ServersState()


def revealed_values(s: Coordinator) -> RevealedValues:
    """v1 of the coordinator itself, and v2, which the aggregator reveals in its reservation."""
    reservation = None if s.reservation is None else s.reservation.message
    if not isinstance(reservation, Reservation):
        return s.committed_value, bytes(32)
    return s.committed_value, reservation.revealed


def with_verifier_shares(s: Coordinator, rows: StepRows) -> Coordinator:
    """Compute and store the coordinator's verifier shares, where reports are proven.

    If a restore has lost reports, nothing is stored. Whether the stored reports are those of the
    manifest is noted for `is_complete`, which is asked before anything is sent: a second look at
    every report would take as long as the first.
    """
    layout = report_layout_of(s.params.mechanism)
    if layout is None:
        return s
    query = derive_query(s.params, layout, revealed_values(s))
    packed_parts = list[bytes]()
    are_intact = True
    for part in iterate_parts(s, rows):
        shares = list[bytes]()
        for entry in part.entries:
            report = rows.first_messages.get(entry.user)
            if report is None:
                return s
            are_intact &= entry_of(s.crypto, entry.user, report) == entry
            shares.append(report.share)
        packed_parts.append(pack_verifier_shares(compute_verifier_shares(query, shares), layout))
    # check: noted-reports-intact - shares of other reports than the manifest's are sent
    if are_intact:
        rows.note_found("first_messages", s.manifest_hash)
    return replace(s, topology_state=replace(servers_state(s), verifier_shares=tuple(packed_parts)))


def is_confirmed_by_proofs(s: Coordinator, rows: StepRows, accepted: AcceptedReports) -> bool:
    """Whether the set has exactly the valid reports of those the aggregator could decrypt.

    Which reports are valid follows from the verifier shares of both servers.
    """
    layout = report_layout_of(s.params.mechanism)
    if layout is None:
        return True
    own_parts = servers_state(s).verifier_shares
    if not own_parts:
        # A restore has lost reports. Then the set need not be checked, for nothing is added up.
        return not s.rules.is_complete(s, rows)
    decrypted = marks_of(accepted.decrypted, manifest_size(s))
    members = accepted_marks(s, accepted)
    if (
        decrypted is None
        or members is None
        # check: accepted-were-decrypted - the aggregator accepts shares that it could not decrypt
        or (members & ~decrypted).any()
    ):
        return False
    query = derive_query(s.params, layout, revealed_values(s))
    # The aggregator's verifier shares are packed part by part, like those of the coordinator.
    unread = accepted.verifier_shares
    for number, packed in enumerate(own_parts):
        first = number * messages.REPORTS_PER_PART
        part = slice(first, first + messages.REPORTS_PER_PART)
        decrypted_in_part = decrypted[part]
        count = int(decrypted_in_part.sum())
        size = verifier_shares_bytes(layout, count)
        theirs = unpack_verifier_shares(unread[:size], layout, count)
        own = unpack_verifier_shares(packed, layout, len(decrypted_in_part))
        if theirs is None or own is None:
            return False
        is_valid = query.accepts(own[decrypted_in_part], theirs)
        if (is_valid != members[part][decrypted_in_part]).any():
            return False
        unread = unread[size:]
    # check: no-extra-verifier-shares - verifier shares about nobody would go unchecked
    return not unread

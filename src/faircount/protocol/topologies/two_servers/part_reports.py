"""The coordinator's copies of reports, one for each part of the manifest, and their uses.

When the manifest is fixed, every report is read once, and the shares of a part are stored together
(`PartReports`), unless they are too long for that. All that follows reads those copies:

    encrypted shares    leave part by part, where reports are proven with the coordinator's
                        verifier shares
    verified parts      arrive with the aggregator's verifier shares: before anything is added up,
                        the coordinator checks every proof again
    aggregate share     the sum of the shares of the accepted reports

There are no copies where shares are long (`MAX_COPY_BYTES`), and none of a manifest that a restored
coordinator has adopted. Then the reports themselves are read, one by one.

Verifier shares are not stored. They follow from the share to which the manifest commits and from
the values to which both servers committed, so they are the same whenever they are computed: there
is no second query about a report.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from faircount.core.arrays import Bools, Residues
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows, part_key
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.accepted import accepted_marks
from faircount.protocol.topologies.two_servers.manifests import (
    PartsState,
    earlier_hashes,
    entry_of,
    get_part,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    ManifestEntry,
    PartReports,
    Report,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.proofs import Query
from faircount.protocol.topologies.two_servers.reports import (
    RevealedValues,
    compute_verifier_shares,
    derive_query,
    pack_verifier_shares,
    report_layout_of,
    unpack_verifier_shares,
)
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import marks_of
from faircount.protocol.wire.messages import PartShares, Reservation
from faircount.sharing.packing import packed_size

SharePair = tuple[bytes, bytes]
"""The coordinator's share of a report, and the encrypted share of the aggregator."""

MAX_COPY_BYTES = 8 * 1024 * 1024
"""The most bytes of shares in one copy, which takes about six times as much memory to store."""


@dataclass(frozen=True)
class ServersState(PartsState):
    """What the coordinator stores for this topology beside the parts of its manifest."""

    stored_tag = "servers-coordinator"
    # The hash of the copy of every part (`PartReports`); empty if there are no copies.
    copies: tuple[bytes, ...] = ()
    # The one aggregate share. It is stored before it is sent, and no other one ever leaves.
    aggregate_share: AggregateShare | None = None


def servers_state(s: Coordinator) -> ServersState:
    """The coordinator's topology state; an empty one before the manifest is fixed."""
    return s.topology_state if isinstance(s.topology_state, ServersState) else ServersState()


def part_numbers(s: Coordinator) -> range:
    """The numbers of all parts of the manifest."""
    return range(len(earlier_hashes(s)) + 1)


# --- copies ---------------------------------------------------------------------------------------


class ReportCopier:
    """Reads every stored report once: for the entries of the manifest and for the copies."""

    def __init__(self, s: Coordinator, rows: StepRows) -> None:
        self._state = s
        self._rows = rows
        self._shares = list[bytes]()
        self._encrypted_shares = list[bytes]()
        reports = min(messages.REPORTS_PER_PART, s.params.n_max)
        self.makes_copies = reports * _share_size(s) <= MAX_COPY_BYTES

    def entries(self) -> Iterator[ManifestEntry]:
        """The entries of all reports whose stored bytes are those that were acknowledged."""
        first_messages = self._rows.first_messages
        for user in first_messages:
            report = first_messages.intact(user)
            if report is not None:
                if self.makes_copies:
                    self._shares.append(report.share)
                    self._encrypted_shares.append(report.encrypted_share)
                yield entry_of(self._state.crypto, user, report)

    def take(self, count: int) -> PartReports:
        """The copy of the next `count` reports, which are then forgotten here."""
        copy = PartReports(b"".join(self._shares[:count]), b"".join(self._encrypted_shares[:count]))
        del self._shares[:count]
        del self._encrypted_shares[:count]
        return copy


def _share_size(s: Coordinator) -> int:
    """Bytes of the coordinator's share of a report."""
    return packed_size(s.params.q, s.params.vector_size)


def reports_of_part(s: Coordinator, rows: StepRows, number: int) -> Iterator[SharePair]:
    """The share and the encrypted share of every report of one part of the manifest, one by one.

    Raises:
        LostReportError: a stored report is not that of the manifest
    """
    copies = servers_state(s).copies
    if number < len(copies):
        copy = rows.report_parts.get(part_key(number))
        # check: copy-intact - a damaged share would spoil the sum of all others
        if isinstance(copy, PartReports) and sha256(encode(copy)).digest() == copies[number]:
            yield from pairs_of_copy(s, copy)
            return
    for entry in get_part(s, rows, number).entries:
        report = intact_report(s, rows, entry)
        # check: sum-of-manifest - the sum would lack a report that the aggregator counts
        if report is None:
            raise LostReportError
        yield report.share, report.encrypted_share


def pairs_of_copy(s: Coordinator, copy: PartReports) -> Iterator[SharePair]:
    """The share and the encrypted share of every report in a copy."""
    shares = _split(copy.shares, _share_size(s))
    return zip(shares, _split(copy.encrypted_shares, ENCRYPTED_SEED_BYTES), strict=True)


def intact_report(s: Coordinator, rows: StepRows, entry: ManifestEntry) -> Report | None:
    """The stored report of a manifest entry; None if it is lost, or is another one."""
    report = rows.first_messages.get(entry.user)
    if (
        not isinstance(report, Report)
        # check: report-of-manifest - shares of other reports than the manifest's are sent
        or entry_of(s.crypto, entry.user, report) != entry
    ):
        return None
    return report


def has_all_reports(s: Coordinator, rows: StepRows) -> bool:
    """Whether every report of the manifest is stored, unchanged."""
    try:
        for number in part_numbers(s):
            # Read to the end, and nothing is kept.
            deque(reports_of_part(s, rows, number), maxlen=0)
    except LostReportError:
        return False
    return True


def _split(joined: bytes, size: int) -> Iterator[bytes]:
    """Byte strings of one size that were joined."""
    return (joined[start : start + size] for start in range(0, len(joined), size))


def shares_of_part(s: Coordinator, rows: StepRows, number: int) -> Iterator[bytes]:
    """The coordinator's shares of the reports of one part.

    Raises:
        LostReportError: a stored report is not that of the manifest
    """
    return (share for share, _ in reports_of_part(s, rows, number))


# --- what leaves ----------------------------------------------------------------------------------


def revealed_values(s: Coordinator) -> RevealedValues:
    """v1 of the coordinator itself, and v2, which the aggregator reveals in its reservation."""
    reservation = None if s.reservation is None else s.reservation.message
    if not isinstance(reservation, Reservation):
        return s.committed_value, bytes(32)
    return s.committed_value, reservation.revealed


def make_part_shares(s: Coordinator, rows: StepRows, number: int) -> PartShares | None:
    """The encrypted shares of one part, with verifier shares where reports are proven.

    None if a report is lost.
    """
    encrypted_shares = list[bytes]()

    def shares() -> Iterator[bytes]:
        # In one pass: where there is no copy, every report is read and checked for it.
        for share, encrypted_share in reports_of_part(s, rows, number):
            encrypted_shares.append(encrypted_share)
            yield share

    layout = report_layout_of(s.params.mechanism)
    revealed = bytes(32)
    verifier_shares = b""
    try:
        if layout is None:
            deque(shares(), maxlen=0)
        else:
            query = derive_query(s.params, layout, revealed_values(s))
            revealed = s.committed_value
            verifier_shares = pack_verifier_shares(compute_verifier_shares(query, shares()), layout)
    except LostReportError:
        return None
    return PartShares(
        s.params.survey,
        s.manifest_hash,
        tuple(encrypted_shares),
        revealed,
        verifier_shares,
        number,
    )


# --- what the aggregator has found ----------------------------------------------------------------


def is_part_verified(s: Coordinator, rows: StepRows, number: int) -> bool:
    """Whether the aggregator's verifier shares of this part have arrived, or are not needed."""
    return not s.params.proven or part_key(number) in rows.verified_parts


def first_unverified(s: Coordinator, rows: StepRows) -> int | None:
    """The first part that the aggregator has not verified yet; None if there is none.

    Where reports are not proven, the aggregator signs the set and says nothing about parts.
    """
    for number in part_numbers(s):
        if not is_part_verified(s, rows, number):
            return number
    return None


def is_within_part(s: Coordinator, verified: VerifiedPart) -> bool:
    """Whether what the aggregator says about a part is not longer than its reports allow."""
    layout = report_layout_of(s.params.mechanism)
    first = verified.number * messages.REPORTS_PER_PART
    size = min(messages.REPORTS_PER_PART, manifest_size(s) - first)
    return (
        layout is not None
        and len(verified.decrypted) <= (size + 7) // 8
        and len(verified.verifier_shares) <= packed_size(layout.q, size * layout.verifier_size)
    )


class LostReportError(Exception):
    """A report of the manifest is lost, so that there is no sum."""


def is_confirmed_by_proofs(s: Coordinator, rows: StepRows, accepted: AcceptedReports) -> bool:
    """Whether the set has exactly the valid reports of those the aggregator could decrypt.

    Which reports are valid follows from the verifier shares of both servers.

    Raises:
        LostReportError: a stored report is not that of the manifest
    """
    layout = report_layout_of(s.params.mechanism)
    marks = accepted_marks(s, accepted)
    if layout is None or marks is None:
        return marks is not None
    verified = (_verified_part(rows, number) for number in part_numbers(s))
    # check: verified-parts-signed - the aggregator shows other verifier shares than it signed
    if accepted.verified != hash_of_verified(verified):
        return False
    query = derive_query(s.params, layout, revealed_values(s))
    for number in part_numbers(s):
        first = number * messages.REPORTS_PER_PART
        members = marks[first : first + messages.REPORTS_PER_PART]
        own_shares = compute_verifier_shares(query, shares_of_part(s, rows, number))
        if not _is_part_confirmed(query, members, own_shares, _verified_part(rows, number)):
            return False
    return True


def _verified_part(rows: StepRows, number: int) -> VerifiedPart:
    part = rows.verified_parts[part_key(number)]
    if not isinstance(part, VerifiedPart):
        raise KeyError(number)
    return part


def _is_part_confirmed(
    query: Query, members: Bools, own_shares: Residues, verified: VerifiedPart
) -> bool:
    """Whether the accepted reports of one part are those that both verifier shares confirm."""
    decrypted = marks_of(verified.decrypted, len(members))
    if (
        decrypted is None
        # check: accepted-were-decrypted - the aggregator accepts shares that it could not decrypt
        or (members & ~decrypted).any()
    ):
        return False
    count = int(decrypted.sum())
    their_shares = unpack_verifier_shares(verified.verifier_shares, query.layout, count)
    if their_shares is None:
        return False
    is_valid = query.accepts(own_shares[decrypted], their_shares)
    return bool((is_valid == members[decrypted]).all())

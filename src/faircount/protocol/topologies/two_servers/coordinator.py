"""The coordinator in the `servers` topology: one share of every report, one aggregate share.

    submitting    stores the first report of each participant and acknowledges it
    deadline      fixes the batch manifest and sends its parts, each when the aggregator asks for it
    reservation   the aggregator has recorded the manifest: the coordinator computes its verifier
                  shares of proven reports, and sends the encrypted shares, again part by part
    accepted      checks the aggregator's set of accepted reports, and stores the aggregate share
                  over it, once; `pending` sends it
    result        checks that it is over that set, and deletes all shares

Whatever the aggregator asks for, only one aggregate share leaves, over one set of at least the
minimum number of reports: from the sums over two sets somebody could compute one person's vector.
A few thousand reports are in memory at a time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.core.arrays import Residues
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, CoordinatorRules
from faircount.protocol.roles.rows import StepRows, part_key
from faircount.protocol.survey.endings import (
    NOT_OF_BATCH,
    OTHER_RESERVATION,
    OTHER_ROOT,
    OTHER_VALUE,
    TWO_SETS,
    EndCode,
    Ending,
    aggregator_contradiction,
    too_few_responses,
)
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.survey.remaining_privacy import keeps_promise
from faircount.protocol.topologies.two_servers.accepted import (
    accepted_entries,
    accepted_marks,
    find_position,
    result_for,
)
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
    entry_of,
    get_part,
    iterate_entries,
    manifest_size,
    split_into_parts,
    verify_parts,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    ManifestEntry,
    NextPartRequest,
    Report,
)
from faircount.protocol.topologies.two_servers.reports import (
    AggregateContext,
    batch_rows,
    opens_commitment,
)
from faircount.protocol.topologies.two_servers.verifier_shares import (
    ServersState,
    is_confirmed_by_proofs,
    revealed_values,
    servers_state,
    with_verifier_shares,
)
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.messages import (
    FinalStatement,
    NotReady,
    OutcomeRequest,
    Published,
    Reason,
    Rejection,
    Reservation,
    ShareBatch,
    Withdrawal,
    reject,
)
from faircount.protocol.wire.packed_rows import first_elements, is_vector, sum_packed
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import pack


class TwoServersCoordinator(CoordinatorRules):
    """The coordinator of `servers`: one report each, one manifest, one aggregate share."""

    reads_in_order = True

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Reports, and requests for the outcome."""
        return {
            **super().user_handlers(),
            Report: self.on_report,
            OutcomeRequest: self.on_outcome_request,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """Requests for a part, and the set of accepted reports."""
        return {
            **super().aggregator_handlers(),
            NextPartRequest: self.on_next_part_request,
            AcceptedReports: self.on_accepted,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """Participants act in one phase only."""
        return {Phase.SUBMITTING: self.fix_manifest}

    def on_report(self, s: Coordinator, rows: StepRows, message: Report) -> coordinator.Change:
        """Store a participant's one report.

        Its form is checked before it is acknowledged: a share that is no vector of field elements
        would spoil the sum of all others.
        """
        user = coordinator.admit_participant(s, rows, message)
        if isinstance(user, Rejection):
            return s, (user,)
        is_encrypted_seed = len(message.encrypted_share) == ENCRYPTED_SEED_BYTES
        share = message.share
        if not is_encrypted_seed or not is_vector(share, s.params.q, s.params.vector_size):
            why = "the share or the encrypted share does not have the form of this survey"
            return s, (reject(Reason.MALFORMED, why),)
        return coordinator.store_first_message(
            s, rows, user, message, open_=s.phase is Phase.SUBMITTING
        )

    def fix_manifest(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Accept no more reports and fix the batch: all intact reports, ascending by user id.

        The encrypted shares stay here until the aggregator has recorded the manifest.
        """
        earlier = list[bytes]()
        for part in split_into_parts(s.params, _intact_entries(s, rows)):
            if part.number:
                earlier.append(part.before)
            if part.more:
                # There is no manifest yet, so nothing is lost if this step is not written.
                rows.manifest_parts.stream(part_key(part.number), part)
        if part.size < s.params.minimum:
            return coordinator.request_abort(s, too_few_responses(part.size, s.params.minimum))
        after = coordinator.with_manifest(_with_parts(s, earlier), part, Phase.COUNTING)
        return after, self.pending(after, rows)

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> coordinator.Change:
        """All reports are fixed: compute the verifier shares.

        A value that the aggregator did not commit to ends the survey.
        """
        is_for_manifest = s.manifest is not None and message.manifest_hash == s.manifest_hash
        is_first = s.phase not in FINAL and s.reservation is None and is_for_manifest
        # check: aggregator-value - a value chosen late lets invalid reports pass
        if (
            is_first
            and s.params.proven
            and not opens_commitment(s.params, Party.AGGREGATOR, message.revealed)
        ):
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_VALUE)
            )
        after, out = super().on_reservation(s, rows, message, statement)
        if is_first:
            after = with_verifier_shares(after, rows)
        return after, out

    def pending(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The manifest, from the reservation on the encrypted shares, then the aggregate share.

        Manifest and encrypted shares begin with the first part. The aggregator asks for the others
        (`on_next_part_request`).
        """
        if s.manifest is None:
            return ()
        if s.reservation is None:
            return (coordinator.to_aggregator(s, get_part(s, rows, 0)),)
        aggregate_share = servers_state(s).total
        if aggregate_share is not None:
            return (coordinator.to_aggregator(s, aggregate_share),)
        entries = get_part(s, rows, 0).entries
        reports = [rows.first_messages[entry.user] for entry in entries]
        return (coordinator.to_aggregator(s, _share_batch(s, 0, reports)),)

    def request_hashes(self, s: Coordinator) -> tuple[bytes, ...]:
        """The aggregator may refuse any part of the manifest."""
        return (*super().request_hashes(s), *earlier_hashes(s))

    def on_next_part_request(
        self, s: Coordinator, rows: StepRows, message: NextPartRequest, _: Statement
    ) -> coordinator.Change:
        """Send the part of the manifest, or of the encrypted shares, that the aggregator asks for.

        Before its restore the coordinator may have sent parts of another manifest. If the
        aggregator has recorded such a part, it gets the part of this manifest in its place. It
        learns nothing from that: it sees every part of this manifest, and no other manifest.
        Encrypted shares leave only for the manifest that the reservation names.
        """
        number = message.number
        is_over = (
            s.phase is not Phase.COUNTING
            or s.accepted is not None
            # check: shares-after-end - no encrypted share leaves a survey that was given up
            or s.final is not None
        )
        if is_over or number == 0:
            return s, ()
        # check: shares-before-reservation - encrypted shares leave once the budget is charged
        if s.reservation is None:
            part = get_part(s, rows, _number_to_send(s, message))
            return s, (coordinator.to_aggregator(s, part),)
        if number > len(earlier_hashes(s)) or message.recorded != s.manifest_hash:
            return s, ()
        reports = _intact_reports(s, rows, get_part(s, rows, number).entries)
        # check: later-share-lost - the aggregator would wait for a share that is lost
        if reports is None:
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        return s, (coordinator.to_aggregator(s, _share_batch(s, number, reports)),)

    def on_accepted(
        self, s: Coordinator, rows: StepRows, message: AcceptedReports, statement: Statement
    ) -> coordinator.Change:
        """The aggregator has fixed the set: compute the aggregate share over it.

        A set that is not of this manifest, or a second one, ends the survey, and nothing is added
        up.
        """
        if (
            s.phase is not Phase.COUNTING
            # check: set-before-reservation - nothing is added up before the budget is charged
            or s.reservation is None
            or message.manifest_hash != s.manifest_hash
        ):
            return s, ()
        # check: second-set - the sums over two sets differ by one report
        if s.accepted is not None:
            if s.accepted.message == message:
                return s, ()
            return coordinator.abort_without_aggregator(s, rows, aggregator_contradiction(TWO_SETS))
        problem = _set_problem(s, rows, message)
        if problem is not None:
            return coordinator.abort_without_aggregator(s, rows, aggregator_contradiction(problem))
        after = _with_aggregate_share(replace(s, accepted=statement), rows, message, statement)
        # `coordinate` adds what is pending to this step, which is stored before it is sent.
        return after, ()

    def sent_once(self, s: Coordinator) -> bytes:
        """The hash of the one aggregate share; zeros before there is one."""
        aggregate_share = servers_state(s).total
        if aggregate_share is None:
            return bytes(32)
        return sha256(encode(aggregate_share)).digest()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> coordinator.Change:
        """Keep the aggregator's result, if it is over the set that the coordinator added up."""
        accepted = _accepted_reports(s)
        if message.manifest_hash == s.manifest_hash and accepted is not None:
            marks = accepted_marks(s, accepted)
            counted = 0 if marks is None else int(marks.sum())
            wanted = (counted, accepted.root, manifest_size(s) - counted)
            # check: result-of-set - a result over another set, or with refused reports hidden
            if wanted != (message.included, message.root, message.rejected):
                why = "this result is over another set than the coordinator added up"
                return s, (reject(Reason.WRONG_DIGEST, why),)
        return super().on_published(s, rows, message, statement)

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """Replace the coordinator's manifest by the one that the aggregator has recorded.

        A restored coordinator may have fixed another one. It answers for one manifest only: were
        another one adopted after a reservation, the aggregator could ask for a second aggregate
        share, and the difference of the two may be one person's vector. So then the survey ends.
        """
        for number, part in enumerate(parts):
            rows.manifest_parts.overwrite(part_key(number), part)
        if not isinstance(manifest, BatchManifest) or manifest.digest != s.params.digest:
            return None
        # check: restored-manifest-chain - the aggregator names one person many times
        earlier = verify_parts(rows.manifest_parts, manifest)
        if earlier is None:
            return None
        if s.manifest == manifest:
            return s
        # check: second-manifest - a second aggregate share would differ by one report
        if s.reservation is not None:
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_RESERVATION)
            )[0]
        path = (Phase.COUNTING,) if s.phase is Phase.SUBMITTING else ()
        return coordinator.with_manifest(_with_parts(s, earlier), manifest, *path)

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the aggregate share is stored, or every report of the manifest is, unchanged."""
        if servers_state(s).total is not None:
            return True
        if rows.has_found("first_messages", s.manifest_hash):
            return True
        return all(_intact_report(s, rows, entry) is not None for entry in iterate_entries(s, rows))

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The state when the survey is over, without shares and without the secret of its noise.

        Hashes of the reports stay, so that a repeated report is recognized.
        """
        # check: shares-deleted - whoever seizes the coordinator later finds no shares to join
        rows.scrub("first_messages")
        return replace(
            s,
            topology_state=ServersState(earlier_hashes(s)),
            # check: noise-secret-deleted - whoever learns the secret later can subtract the noise
            noise_secret=b"",
        )

    def on_outcome_request(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """How the survey ended, and whether it counts this participant, with an inclusion proof."""
        # check: inquiry-invited - anybody could ask whether a person took part
        user = coordinator.recognize_device(s, rows, message)
        if isinstance(user, Rejection):
            return s, (user,)
        if s.phase not in FINAL or s.final is None or s.final.signed.by != Party.AGGREGATOR:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        if s.phase is Phase.ABORTED:
            return s, (FinalStatement(s.final.signed),)
        # A restored coordinator may know the result before it knows whom it counts.
        if s.accepted is None:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        position = find_position(s, rows, user)
        if position is None:
            return s, (FinalStatement(s.final.signed),)
        return s, (result_for(s, rows, position),)

    def rows_needed(self, message: Message) -> tuple[coordinator.RowAddress, ...] | None:
        """A participant's message concerns that participant's rows only."""
        if not isinstance(message, Report | Withdrawal | OutcomeRequest):
            return None
        user = user_id(message.access)
        addresses = tuple((table, user) for table in _TABLES_OF_A_USER)
        if isinstance(message, Report):
            return (*addresses, ("keys", message.public_key))
        return addresses


_TABLES_OF_A_USER = ("invited", "notices", "first_messages", "withdrawn")


# --- the manifest and the encrypted shares --------------------------------------------------------


def _with_parts(s: Coordinator, earlier: Sequence[bytes]) -> Coordinator:
    """The coordinator with a manifest whose parts, all but the last, have these hashes."""
    return replace(s, topology_state=ServersState(tuple(earlier)))


def _number_to_send(s: Coordinator, request: NextPartRequest) -> int:
    """The number of the manifest part that answers a request before the reservation.

    That is the part that is asked for, if the aggregator has recorded the one before. Otherwise it
    is the one before, or the last of a manifest that is shorter than the recorded one.
    """
    earlier = earlier_hashes(s)
    before = request.number - 1
    is_recorded = before < len(earlier) and request.recorded == earlier[before]
    return request.number if is_recorded else min(before, len(earlier))


def _intact_entries(s: Coordinator, rows: StepRows) -> Iterator[ManifestEntry]:
    """The entries of all reports whose stored bytes are those that were acknowledged."""
    for user in rows.first_messages:
        report = rows.first_messages.intact(user)
        if report is not None:
            yield entry_of(s.crypto, user, report)


def _intact_report(s: Coordinator, rows: StepRows, entry: ManifestEntry) -> Report | None:
    """The stored report of a manifest entry; None if it is lost, or is another one."""
    report = rows.first_messages.get(entry.user)
    if not isinstance(report, Report) or entry_of(s.crypto, entry.user, report) != entry:
        return None
    return report


def _intact_reports(
    s: Coordinator, rows: StepRows, entries: Iterable[ManifestEntry]
) -> list[Report] | None:
    """The stored reports of these manifest entries; None if one of them is lost."""
    reports = list[Report]()
    for entry in entries:
        report = _intact_report(s, rows, entry)
        if report is None:
            return None
        reports.append(report)
    return reports


def _share_batch(s: Coordinator, number: int, reports: Sequence[Report]) -> ShareBatch:
    """The encrypted shares of one part, with the coordinator's verifier shares if it has any."""
    encrypted_shares = tuple(report.encrypted_share for report in reports)
    batch = ShareBatch(s.params.survey, s.manifest_hash, encrypted_shares, number=number)
    verifier_shares = servers_state(s).verifier_shares
    if not verifier_shares:
        return batch
    return replace(batch, revealed=s.committed_value, verifier_shares=verifier_shares[number])


# --- the accepted reports and the aggregate share -------------------------------------------------


def _accepted_reports(s: Coordinator) -> AcceptedReports | None:
    """The set that the aggregator has signed and the coordinator has accepted."""
    accepted = None if s.accepted is None else s.accepted.message
    return accepted if isinstance(accepted, AcceptedReports) else None


class _LostReportError(Exception):
    """A report of the manifest is lost, so that there is no sum."""


def shares_to_add(s: Coordinator, rows: StepRows, accepted: AcceptedReports) -> Iterator[bytes]:
    """The shares of the accepted reports, while every report of the manifest is checked.

    Raises:
        _LostReportError: a stored report is not that of the manifest
    """
    marks = accepted_marks(s, accepted)
    if marks is None:
        return
    for entry, is_accepted in zip(iterate_entries(s, rows), marks.tolist(), strict=True):
        report = _intact_report(s, rows, entry)
        # check: sum-of-manifest - a damaged share would spoil the sum of all others
        if report is None:
            raise _LostReportError
        if is_accepted:
            yield report.share


def _set_problem(s: Coordinator, rows: StepRows, accepted: AcceptedReports) -> str | None:
    """Why nothing is added up over this set; None if the set is sound.

    The aggregator must not get a sum over a few people, or over one.
    """
    params = s.params
    marks = accepted_marks(s, accepted)
    if marks is None:
        return NOT_OF_BATCH
    members = int(marks.sum())
    # check: sum-minimum - a sum over few users is nearly one report
    if members < params.minimum or not keeps_promise(
        params.mechanism, members, params.epsilon, params.delta
    ):
        return f"it named {members} reports to add up, {params.minimum} are needed"
    entries = accepted_entries(s, rows, accepted)
    root = merkle_root(roster_leaves((entry.user, entry.public_key) for entry in entries))
    # check: set-root - inclusion would be proven for another set than was added up
    if accepted.root != root:
        return OTHER_ROOT
    # check: set-verified - the aggregator rejects valid reports or accepts invalid ones
    if not is_confirmed_by_proofs(s, rows, accepted):
        return "its accepted reports are not those that the verifier shares of both servers confirm"
    return None


def _with_aggregate_share(
    s: Coordinator, rows: StepRows, accepted: AcceptedReports, statement: Statement
) -> Coordinator:
    """Add up the shares of the accepted reports and store the sum; no other one is ever made.

    If a report is lost, there is none: what is pending then is a request to abort.
    """
    q = s.params.q
    shares = shares_to_add(s, rows, accepted)
    try:
        if s.params.proven:
            total = _sum_proven(s, shares, accepted)
        else:
            total = sum_packed(shares, q, s.params.N)
    except _LostReportError:
        return s
    accepted_hash = sha256(statement.signed.payload).digest()
    message = AggregateShare(s.params.survey, accepted_hash, pack(total, q))
    # The verifier shares are not needed any more.
    return replace(s, topology_state=ServersState(earlier_hashes(s), total=message))


def _sum_proven(s: Coordinator, shares: Iterable[bytes], accepted: AcceptedReports) -> Residues:
    """The aggregate share of proven reports: coins are placed, and the server's noise is added."""
    context = AggregateContext.of(s.params, revealed_values(s), s.manifest_hash, accepted.members)
    bits = context.mechanism.proven_bits
    blocks = batch_rows(shares, bits)
    # Only the bits are added up. The rest of a share is the proof.
    tally = context.mechanism.tally(first_elements(block, s.params.q, bits) for block in blocks)
    return context.aggregate_share(Party.COORDINATOR, s.noise_secret, tally)

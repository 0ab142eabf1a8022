"""The coordinator in the `servers` topology: one share of every report, one aggregate share.

    submitting      stores the first report of each participant and acknowledges it
    deadline        fixes the batch manifest and copies reports part by part (`part_reports`);
                    sends the first part, and each further one when the aggregator asks for it
    reservation     the aggregator has recorded the manifest: sends the encrypted shares, part by
                    part, with its verifier shares where reports are proven
    verified part   stores what the aggregator has found about a part
    accepted        stores the aggregator's set of accepted reports, checks it against all verified
                    parts, and stores the aggregate share over it, once; `pending` sends it
    result          checks that it is over that set, and deletes all shares

Whatever the aggregator asks for, only one aggregate share leaves, over one set of at least the
minimum number of reports: from the sums over two sets somebody could compute one person's vector.
A step has the reports of one part in memory, a few thousand; the service sends several parts at the
same time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import compress

from faircount.core.arrays import Residues
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, CoordinatorRules
from faircount.protocol.roles.rows import StepRows, part_key
from faircount.protocol.survey.endings import (
    NOT_CONFIRMED,
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
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.accepted import (
    accepted_entries,
    accepted_marks,
    find_position,
    result_for,
)
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
    get_part,
    last_missing_part,
    manifest_size,
    split_into_parts,
    verify_parts,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    NextPartRequest,
    RecordedPart,
    RecordedPartRequest,
    Report,
    VerifiedPart,
)
from faircount.protocol.topologies.two_servers.part_reports import (
    LostReportError,
    ReportCopier,
    ServersState,
    first_unverified,
    has_all_reports,
    is_confirmed_by_proofs,
    is_within_part,
    make_part_shares,
    part_numbers,
    revealed_values,
    servers_state,
    shares_of_part,
)
from faircount.protocol.topologies.two_servers.reports import (
    AggregateContext,
    batch_rows,
    opens_commitment,
)
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import entry_leaves, merkle_root
from faircount.protocol.wire.messages import (
    FinalStatement,
    NotReady,
    OutcomeRequest,
    Published,
    Reason,
    Rejection,
    Reservation,
    Signed,
    SyncRequest,
    Withdrawal,
    decode,
    reject,
)
from faircount.protocol.wire.packed_rows import first_elements, is_vector, sum_packed
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import pack


class TwoServersCoordinator(CoordinatorRules):
    """The coordinator of `servers`: one report each, one manifest, one aggregate share."""

    reads_in_order = True
    # No withdrawals: under a shared lock a worker does not see a report that another worker has
    # not committed.
    shared_messages = (Report, OutcomeRequest)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Reports, and requests for the outcome."""
        return {
            **super().user_handlers(),
            Report: self.on_report,
            OutcomeRequest: self.on_outcome_request,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """Requests for a part, parts after a restore, verified parts, and the accepted reports."""
        return {
            **super().aggregator_handlers(),
            NextPartRequest: self.on_next_part_request,
            RecordedPart: self.on_recorded_part,
            VerifiedPart: self.on_verified_part,
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
            s, rows, user, message, phase_is_open=s.phase is Phase.SUBMITTING
        )

    def fix_manifest(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Accept no more reports and fix the batch: all intact reports, ascending by user id.

        The encrypted shares stay here until the aggregator has recorded the manifest.
        """
        earlier = list[bytes]()
        copies = list[bytes]()
        copier = ReportCopier(s, rows)
        for part in split_into_parts(s.params, copier.entries()):
            if part.number:
                earlier.append(part.previous_hash)
            # Streamed rows are written at once. If this step ends in an abort, nobody reads them:
            # there is no manifest that names them.
            if part.has_more:
                rows.manifest_parts.stream(part_key(part.number), part)
            if copier.makes_copies:
                copy = copier.take(len(part.entries))
                rows.report_parts.stream(part_key(part.number), copy)
                copies.append(sha256(encode(copy)).digest())
        if part.size < s.params.minimum:
            return coordinator.request_abort(s, too_few_responses(part.size, s.params.minimum))
        with_parts = replace(s, topology_state=ServersState(tuple(earlier), copies=tuple(copies)))
        after = coordinator.with_manifest(with_parts, part, Phase.COUNTING)
        return after, self.unanswered_messages(after, rows)

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> coordinator.Change:
        """All reports are fixed: encrypted shares and verifier shares may be sent.

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
        return super().on_reservation(s, rows, message, statement)

    def unanswered_messages(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The manifest, from the reservation on the encrypted shares, then the aggregate share.

        The manifest begins with its first part, the encrypted shares with the first part that the
        aggregator has not verified. It asks for the others (`on_next_part_request`).
        """
        if s.manifest is None:
            return ()
        if s.reservation is None:
            return (coordinator.to_aggregator(s, get_part(s, rows, 0)),)
        aggregate_share = servers_state(s).aggregate_share
        if aggregate_share is not None:
            return (coordinator.to_aggregator(s, aggregate_share),)
        number = 0
        if s.params.proven:
            unverified = first_unverified(s, rows)
            # All are verified, and the set is missing: it is the answer to any part.
            number = part_numbers(s)[-1] if unverified is None else unverified
        return self.part_shares(s, rows, number)

    def parts_to_send(self, s: Coordinator, rows: StepRows) -> Sequence[int]:
        """Parts whose encrypted shares may leave, and which the aggregator has not verified."""
        if s.phase is not Phase.COUNTING or s.reservation is None or s.accepted is not None:
            return ()
        if not s.params.proven:
            return part_numbers(s)
        return [number for number in part_numbers(s) if part_key(number) not in rows.verified_parts]

    def part_shares(self, s: Coordinator, rows: StepRows, number: int) -> coordinator.Out:
        """The encrypted shares of one part, if they may leave; nothing if not, or if one is lost.

        The aggregator need not ask for them. It gets every part of this manifest in any case.
        """
        is_open = (
            s.phase is Phase.COUNTING
            # check: shares-before-reservation - shares would leave before the budget is charged
            and s.reservation is not None
            # check: shares-after-end - encrypted shares would leave a survey that was given up
            and s.final is None
        )
        if not is_open or number not in part_numbers(s):
            return ()
        batch = make_part_shares(s, rows, number)
        return () if batch is None else (coordinator.to_aggregator(s, batch),)

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
        if s.phase is not Phase.COUNTING or s.accepted is not None or s.final is not None:
            return s, ()
        if s.reservation is None:
            if message.number == 0:
                return s, ()
            part = get_part(s, rows, _number_to_send(s, message))
            return s, (coordinator.to_aggregator(s, part),)
        if message.number not in part_numbers(s) or message.recorded != s.manifest_hash:
            return s, ()
        return self._send_part(s, rows, message.number)

    def _send_part(self, s: Coordinator, rows: StepRows, number: int) -> coordinator.Change:
        """Send the encrypted shares of one part; if one is lost, ask for an abort."""
        out = self.part_shares(s, rows, number)
        # check: later-share-lost - the aggregator would wait for a share that is lost
        if not out:
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        return s, out

    def on_verified_part(
        self, s: Coordinator, rows: StepRows, message: VerifiedPart, _: Statement
    ) -> coordinator.Change:
        """Store what the aggregator has found about a part; with the last one, go on.

        The set names all of them by a hash, so it does not matter which one comes last. One that
        is longer than its part allows ends the survey: no set is confirmed by it.
        """
        is_wanted = (
            s.phase is Phase.COUNTING
            and s.params.proven
            and s.final is None
            and s.reservation is not None
            and servers_state(s).aggregate_share is None
            and message.manifest_hash == s.manifest_hash
            # check: verified-part-exists - the aggregator fills the disk with made-up parts
            and message.number in part_numbers(s)
        )
        if not is_wanted:
            return s, ()
        # check: verified-part-size - the aggregator fills the disk with what it says about a part
        if not is_within_part(s, message):
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(NOT_CONFIRMED)
            )
        rows.verified_parts.overwrite(part_key(message.number), message)
        return self._add_up(s, rows)

    def on_accepted(
        self, s: Coordinator, rows: StepRows, message: AcceptedReports, statement: Statement
    ) -> coordinator.Change:
        """The aggregator has fixed the set: compute the aggregate share over it.

        A set that is not of this manifest, or a second one, ends the survey, and nothing is added
        up.
        """
        if (
            s.phase is not Phase.COUNTING
            # check: set-before-reservation - a sum would be made before the budget is charged
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
        after, _ = self._add_up(replace(s, accepted=statement), rows)
        # `coordinator_step` adds what is pending, signed with this statement as the newest one.
        return after, ()

    def _add_up(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Store the aggregate share, once the set and all verified parts are there and agree.

        A part that is missing then is sent again. If a report is lost, there is no sum.
        """
        accepted = _accepted_reports(s)
        # Once an abort is requested there is no sum any more, and the reason of the request stays.
        if accepted is None or s.accepted is None or s.final is not None:
            return s, ()
        missing = first_unverified(s, rows)
        if missing is not None:
            return self._send_part(s, rows, missing)
        try:
            # check: set-verified - the aggregator rejects valid reports or accepts invalid ones
            if not is_confirmed_by_proofs(s, rows, accepted):
                return coordinator.abort_without_aggregator(
                    s, rows, aggregator_contradiction(NOT_CONFIRMED)
                )
            total = _make_aggregate_share(s, shares_to_add(s, rows, accepted), accepted)
        except LostReportError:
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        accepted_hash = sha256(s.accepted.signed.payload).digest()
        message = AggregateShare(s.params.survey, accepted_hash, pack(total, s.params.q))
        # Stored before it is sent. The copies of the reports are not needed any more: no other sum
        # is ever made.
        return replace(
            s, topology_state=replace(servers_state(s), copies=(), aggregate_share=message)
        ), ()

    def aggregate_share_hash(self, s: Coordinator) -> bytes:
        """The hash of the one aggregate share; zeros before there is one."""
        aggregate_share = servers_state(s).aggregate_share
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

    def fetch_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> coordinator.Change | None:
        """Ask the aggregator for the last part of its manifest that is missing here.

        Parts arrive from the last to the first (`on_recorded_part`), each named by the hash in the
        one after it. When all are here, the aggregator's history is asked for again, and adopted.
        """
        is_known = s.manifest == manifest or s.reservation is not None
        if not isinstance(manifest, BatchManifest) or is_known:
            return None
        missing = last_missing_part(rows.recorded_parts, manifest)
        if missing is None:
            return None
        # The coordinator's own manifest stays as it is: the aggregator may deny this one later.
        waiting = replace(s, awaiting_sync=True)
        return waiting, (_request_recorded_part(waiting, missing),)

    def on_recorded_part(
        self, s: Coordinator, rows: StepRows, message: RecordedPart, _: Statement
    ) -> coordinator.Change:
        """Store a part of the manifest after a restore, and ask for the next one, or the history.

        Whether the parts form the manifest of the reservation is checked when it is adopted.
        """
        part = decode(message.part)
        # check: part-asked-for - the aggregator exchanges parts of a manifest in use
        is_awaited = s.awaiting_sync and s.reservation is None
        if (
            not is_awaited
            or not isinstance(part, BatchManifest)
            # check: recorded-part-number - the aggregator fills the disk with parts
            or part.number > s.params.n_max // messages.REPORTS_PER_PART
            # check: recorded-part-size - the aggregator fills the disk with one part
            or len(part.entries) > messages.REPORTS_PER_PART
        ):
            return s, ()
        rows.recorded_parts.overwrite(part_key(part.number), part)
        missing = last_missing_part(rows.recorded_parts, part)
        if missing is None:
            return s, (coordinator.to_aggregator(s, SyncRequest(s.params.survey)),)
        return s, (_request_recorded_part(s, missing),)

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> Coordinator | None:
        """Replace the coordinator's manifest by the one that the aggregator has recorded.

        A restored coordinator may have fixed one of its own, and must give it up: over two
        manifests the aggregator could ask for two aggregate shares, whose difference may be one
        person's vector. If it has a reservation for its own already, the survey ends.
        """
        if not isinstance(manifest, BatchManifest) or manifest.digest != s.params.digest:
            return None
        if s.manifest == manifest:
            return s
        # check: second-manifest - a second aggregate share would differ by one report
        if s.reservation is not None:
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_RESERVATION)
            )[0]
        # check: restored-manifest-chain - the aggregator names one person many times
        earlier = verify_parts(rows.recorded_parts, manifest)
        if earlier is None:
            return None
        path = (Phase.COUNTING,) if s.phase is Phase.SUBMITTING else ()
        with_parts = replace(s, topology_state=ServersState(earlier, is_adopted=True))
        return coordinator.with_manifest(with_parts, manifest, *path)

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the aggregate share is stored, or every report of the manifest is, unchanged."""
        return servers_state(s).aggregate_share is not None or has_all_reports(s, rows)

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The state when the survey is over, without shares and without the secret of its noise.

        Hashes of the reports stay, so that a repeated report is recognized.
        """
        # check: shares-deleted - whoever seizes the coordinator later would find shares to join
        for table in ("first_messages", "report_parts", "verified_parts"):
            rows.scrub(table)
        return replace(
            s,
            topology_state=replace(servers_state(s), copies=(), aggregate_share=None),
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
        return tuple((table, user) for table in _TABLES_OF_A_USER)


_TABLES_OF_A_USER = ("invited", "notices", "first_messages", "withdrawn")


# --- the manifest and the encrypted shares --------------------------------------------------------


def _request_recorded_part(s: Coordinator, number: int) -> Signed:
    """Ask the aggregator for a part of the manifest that it has recorded."""
    return coordinator.to_aggregator(s, RecordedPartRequest(s.params.survey, number))


def _number_to_send(s: Coordinator, request: NextPartRequest) -> int:
    """The number of the manifest part that answers a request before the reservation.

    That is the part that is asked for, if the aggregator has recorded the one before. Otherwise it
    is the one before, or the last of a manifest that is shorter than the recorded one.
    """
    earlier = earlier_hashes(s)
    before = request.number - 1
    is_recorded = before < len(earlier) and request.recorded == earlier[before]
    return request.number if is_recorded else min(before, len(earlier))


# --- the accepted reports and the aggregate share -------------------------------------------------


def _accepted_reports(s: Coordinator) -> AcceptedReports | None:
    """The set that the aggregator has signed and the coordinator has accepted."""
    accepted = None if s.accepted is None else s.accepted.message
    return accepted if isinstance(accepted, AcceptedReports) else None


def shares_to_add(s: Coordinator, rows: StepRows, accepted: AcceptedReports) -> Iterator[bytes]:
    """The coordinator's shares of the accepted reports.

    Raises:
        LostReportError: a stored report is not that of the manifest
    """
    marks = accepted_marks(s, accepted)
    if marks is None:
        return
    for number in part_numbers(s):
        first = number * messages.REPORTS_PER_PART
        members = marks[first : first + messages.REPORTS_PER_PART].tolist()
        yield from compress(shares_of_part(s, rows, number), members)


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
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    # check: set-root - inclusion would be proven for another set than was added up
    if accepted.root != root:
        return OTHER_ROOT
    return None


def _make_aggregate_share(
    s: Coordinator, shares: Iterable[bytes], accepted: AcceptedReports
) -> Residues:
    """The coordinator's aggregate share.

    Where reports are proven, coins are placed and the server's noise is added.
    """
    if not s.params.proven:
        return sum_packed(shares, s.params.q, s.params.N)
    context = AggregateContext.of(s.params, revealed_values(s), s.manifest_hash, accepted.members)
    bits = context.mechanism.proven_bits
    blocks = batch_rows(shares, bits)
    # Only the bits are added up. The rest of a share is the proof.
    tally = context.mechanism.tally(first_elements(block, s.params.q, bits) for block in blocks)
    return context.aggregate_share(Party.COORDINATOR, s.noise_secret, tally)

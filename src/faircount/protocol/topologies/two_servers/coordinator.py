"""The coordinator in the `servers` topology: it keeps one share of everybody, claims once, and
sends the aggregator one sum.

Claim and blobs go to the aggregator in parts, each when the aggregator asks for it, so that a
few thousand users are in memory at a time. Where reports are proven, the coordinator answers one
question about each, once the aggregator's receipt has fixed them all, and judges the
aggregator's set.
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
    accepted_marks,
    entries_in,
    inclusion_of,
    place_of,
)
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
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
    Release,
    batch_rows,
    opens_commitment,
    vector_size,
)
from faircount.protocol.topologies.two_servers.verifier_shares import (
    ServersState,
    agrees,
    servers_state,
    values_of,
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
    """The coordinator of `servers`: one submission of each user, one claim, one sum."""

    reads_in_order = True

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Submissions, and how it ended."""
        return {
            **super().user_handlers(),
            Report: self.take,
            OutcomeRequest: self.inquire,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """Which part the aggregator waits for, and whom it counts."""
        return {
            **super().aggregator_handlers(),
            NextPartRequest: self.on_next,
            AcceptedReports: self.on_included,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """There is one phase."""
        return {Phase.SUBMITTING: self.close}

    def take(self, s: Coordinator, rows: StepRows, message: Report) -> coordinator.Change:
        """A user's one body, checked at the door: a share that is no vector would spoil everybody's
        sum.
        """
        user = coordinator.admit_person(s, rows, message.access, message.public_key)
        if isinstance(user, Rejection):
            return s, (user,)
        size = vector_size(s.params.mechanism)
        if len(message.encrypted_share) != ENCRYPTED_SEED_BYTES or not is_vector(
            message.share, s.params.q, size
        ):
            return s, (
                reject(
                    Reason.MALFORMED, "the share or the blob does not have the form of this survey"
                ),
            )
        return coordinator.write_body(s, rows, user, message, open_=s.phase is Phase.SUBMITTING)

    def close(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Close writes and fix the batch: sorted users with the hashes of what they sent.

        Blobs stay here.
        """
        held = ((user, rows.first_messages.intact(user)) for user in rows.first_messages)
        lines = (_line(s, user, body) for user, body in held if body is not None)
        earlier = list[bytes]()
        for part in split_into_parts(s.params, lines):
            if part.number:
                earlier.append(part.before)
            if part.more:
                # There is no manifest yet, so nothing is lost if this step is not written.
                rows.manifest_parts.hand_on(part_key(part.number), part)
        if part.size < s.params.minimum:
            return coordinator.give_up(s, too_few_responses(part.size, s.params.minimum))
        after = coordinator.with_manifest(_of_parts(s, earlier), part, Phase.COUNTING)
        return after, self.pending(after, rows)

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> coordinator.Change:
        """All reports are fixed: the coordinator answers the question about them.

        A value that the aggregator did not commit to ends the survey.
        """
        is_first = s.phase not in FINAL and s.reservation is None
        is_first_receipt = (
            is_first and s.manifest is not None and message.manifest_hash == s.manifest_hash
        )
        # check: aggregator-value - a value chosen late lets invalid reports pass
        if (
            is_first_receipt
            and s.params.proven
            and not opens_commitment(s.params, Party.AGGREGATOR, message.revealed)
        ):
            return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_VALUE))
        after, out = super().on_reservation(s, rows, message, statement)
        return (with_verifier_shares(after, rows) if is_first_receipt else after), out

    def pending(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The claim until there is a receipt, then the blobs until the included set is known, then
        the one sum.

        Claim and blobs begin with the first part, and the aggregator says which one comes next
        (`on_next`).
        """
        if s.manifest is None:
            return ()
        if s.reservation is None:
            return (coordinator.to_aggregator(s, get_part(s, rows, 0)),)
        return (coordinator.to_aggregator(s, servers_state(s).total or _batch(s, rows, 0)),)

    def request_hashes(self, s: Coordinator) -> tuple[bytes, ...]:
        """The aggregator may refuse any part of the claim."""
        return (*super().request_hashes(s), *earlier_hashes(s))

    def on_next(
        self, s: Coordinator, rows: StepRows, message: NextPartRequest, _: Statement
    ) -> coordinator.Change:
        """The part of the claim, or of its blobs, that the aggregator waits for; nothing for an
        aggregator that has other parts than the coordinator.
        """
        number = message.number
        over = (
            s.phase is not Phase.COUNTING
            or s.included is not None
            # check: shares-after-end - no encrypted share leaves a survey that was given up
            or s.final is not None
        )
        if over or not 0 < number <= len(earlier_hashes(s)):
            return s, ()
        # check: shares-before-receipt - encrypted shares leave once the budget is charged
        if s.reservation is None:
            known = message.recorded == earlier_hashes(s)[number - 1]
            return s, ((coordinator.to_aggregator(s, get_part(s, rows, number)),) if known else ())
        if message.recorded != s.manifest_hash:
            return s, ()
        # check: later-share-lost - the aggregator would wait for a share that is lost
        if not _intact(s, rows, get_part(s, rows, number).entries):
            return coordinator.give_up(s, Ending(EndCode.REPORTS_LOST))
        return s, (coordinator.to_aggregator(s, _batch(s, rows, number)),)

    def on_included(
        self, s: Coordinator, rows: StepRows, message: AcceptedReports, statement: Statement
    ) -> coordinator.Change:
        """The set is fixed: the one sum is due.

        A set that is none, or a second one, ends the survey without a sum.
        """
        if (
            s.phase is not Phase.COUNTING
            # check: set-before-receipt - nothing is added up before the budget is charged
            or s.reservation is None
            or message.manifest_hash != s.manifest_hash
        ):
            return s, ()
        # check: second-set - the sums over two sets differ by one report
        if s.included is not None:
            if s.included.message == message:
                return s, ()
            return coordinator.end_alone(s, rows, aggregator_contradiction(TWO_SETS))
        problem = _set_problem(s, rows, message)
        if problem is not None:
            return coordinator.end_alone(s, rows, aggregator_contradiction(problem))
        after = replace(s, included=statement)
        return (_with_sum(after, rows, statement) if self.is_complete(s, rows) else after), ()

    def sent_once(self, s: Coordinator) -> bytes:
        """The hash of the one sum; zeros before there is one."""
        total = servers_state(s).total
        return bytes(32) if total is None else sha256(encode(total)).digest()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> coordinator.Change:
        """The aggregator's result, if it is one over the set that the coordinator added up."""
        stated = None if s.included is None else s.included.message
        marks = accepted_marks(s, stated) if isinstance(stated, AcceptedReports) else None
        counted = 0 if marks is None else int(marks.sum())
        if message.manifest_hash == s.manifest_hash and isinstance(stated, AcceptedReports):
            wanted = (counted, stated.root, manifest_size(s) - counted)
            # check: result-of-set - a result over another set, or with refused reports hidden
            if wanted != (message.included, message.root, message.refused):
                why = "this result is over another set than the coordinator added up"
                return s, (reject(Reason.WRONG_DIGEST, why),)
        return super().on_published(s, rows, message, statement)

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """The aggregator's claim instead of ours, with nothing said about it yet; after a receipt,
        another one ends the survey.

        The coordinator answers one claim. Were another one adopted after the sum was sent, the
        aggregator could ask for a second sum, and the difference of the two may be one person's
        vector.
        """
        for number, part in enumerate(parts):
            rows.manifest_parts.exchange(part_key(number), part)
        # check: restored-manifest-chain - the aggregator names one person many times
        earlier = (
            verify_parts(rows.manifest_parts, manifest)
            if isinstance(manifest, BatchManifest)
            else None
        )
        if (
            not isinstance(manifest, BatchManifest)
            or manifest.digest != s.params.digest
            or earlier is None
        ):
            return None
        if s.manifest == manifest:
            return s
        # check: second-manifest - a second aggregate share would differ by one report
        if s.reservation is not None:
            return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_RESERVATION))[0]
        path = (Phase.COUNTING,) if s.phase is Phase.SUBMITTING else ()
        return coordinator.with_manifest(_of_parts(s, earlier), manifest, *path)

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the sum is made, or every answer of the claim is here with the very bytes that
        were claimed.
        """
        return servers_state(s).total is not None or _intact(s, rows, iterate_entries(s, rows))

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The coordinator when the survey is over: shares, blobs and the secret of its noise go,
        hashes of what users sent stay.
        """
        # check: shares-deleted - whoever seizes the coordinator later finds no shares to join
        rows.scrub("first_messages")
        return replace(
            s,
            topology_state=ServersState(earlier_hashes(s)),
            # check: noise-secret-deleted - whoever learns the secret later can subtract the noise
            noise_secret=b"",
        )

    def inquire(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """How the survey ended, and whether it counts this person, with proof."""
        # check: inquiry-invited - anybody could ask whether a person took part
        user = coordinator.invited_user(rows, message.access)
        if user is None:
            return s, (reject(Reason.UNKNOWN, "no such invitation for this survey"),)
        if s.phase not in FINAL or s.final is None or s.final.signed.by != Party.AGGREGATOR:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        # A restored coordinator knows the result, and not yet whom it counts.
        if s.phase is Phase.PUBLISHED and s.included is None:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        place = None if s.phase is Phase.ABORTED else place_of(s, rows, user)
        return s, (
            FinalStatement(s.final.signed) if place is None else inclusion_of(s, rows, place),
        )

    def rows_needed(self, message: Message) -> tuple[coordinator.Place, ...] | None:
        """A user's message concerns the rows of that user alone, so a service need not read the
        others.
        """
        if not isinstance(message, Report | Withdrawal | OutcomeRequest):
            return None
        user = user_id(message.access)
        if isinstance(message, OutcomeRequest):
            return (("invited", user),)
        mine = (("invited", user), ("first_messages", user), ("withdrawn", user))
        return (*mine, ("keys", message.public_key)) if isinstance(message, Report) else mine


def _of_parts(s: Coordinator, earlier: Sequence[bytes]) -> Coordinator:
    """The coordinator with a claim of which these are the hashes of all parts but the last."""
    return replace(s, topology_state=ServersState(tuple(earlier)))


def _line(s: Coordinator, user: bytes, body: Report) -> ManifestEntry:
    commitment = s.crypto.commit(body.salt, body.share)
    return ManifestEntry(
        user, body.public_key, body.mac, commitment, sha256(body.encrypted_share).digest()
    )


def _batch(s: Coordinator, rows: StepRows, number: int) -> ShareBatch:
    """The blobs of a part of the claim, with the coordinator's answers about its reports where
    they are proven.
    """
    encrypted_shares = tuple(
        rows.first_messages[each.user].encrypted_share for each in get_part(s, rows, number).entries
    )
    known = servers_state(s).verifier_shares
    answers = (s.committed, known[number]) if known else (bytes(32), b"")
    return ShareBatch(s.params.survey, s.manifest_hash, encrypted_shares, *answers, number)


def included_entries(s: Coordinator, rows: StepRows) -> Iterator[ManifestEntry]:
    """The claim's entries that the aggregator included."""
    stated = None if s.included is None else s.included.message
    return entries_in(s, rows, stated) if isinstance(stated, AcceptedReports) else iter(())


def _set_problem(s: Coordinator, rows: StepRows, stated: AcceptedReports) -> str | None:
    """Why the coordinator adds up nothing over this set: a sum over a few people, or one person,
    is what the aggregator must not have.
    """
    marks, params = accepted_marks(s, stated), s.params
    if marks is None:
        return NOT_OF_BATCH
    members = int(marks.sum())
    # check: sum-minimum - a sum over few users is nearly one report
    if members < params.minimum or not keeps_promise(
        params.mechanism, members, params.epsilon, params.delta
    ):
        return f"it named {members} reports to add up, {params.minimum} are needed"
    root = merkle_root(
        roster_leaves((each.user, each.public_key) for each in entries_in(s, rows, stated))
    )
    # check: set-root - inclusion would be proven for another set than was added up
    if stated.root != root:
        return OTHER_ROOT
    # check: set-judged - the aggregator rejects valid reports or accepts invalid ones
    if not agrees(s, rows, stated):
        return "it judged reports otherwise than the verifier shares of both servers do"
    return None


def _with_sum(s: Coordinator, rows: StepRows, included: Statement) -> Coordinator:
    """With the one sum over the set; of proven reports, with coins placed and the coordinator's
    noise added.
    """
    shares, params = (
        (rows.first_messages[each.user].share for each in included_entries(s, rows)),
        s.params,
    )
    total = (
        _released(s, shares, included) if params.proven else sum_packed(shares, params.q, params.N)
    )
    message = AggregateShare(
        params.survey, sha256(included.signed.payload).digest(), pack(total, params.q)
    )
    return replace(s, topology_state=ServersState(earlier_hashes(s), total=message))


def _released(s: Coordinator, shares: Iterable[bytes], included: Statement) -> Residues:
    """The coordinator's part of the one sum of proven reports."""
    release = Release.of(
        s.params, values_of(s), s.manifest_hash, getattr(included.message, "members", b"")
    )
    q, bits = s.params.q, sum(release.mechanism.proven_bits)
    tally = release.mechanism.tally(
        first_elements(some, q, bits) for some in batch_rows(shares, bits)
    )
    return release.aggregate_share(Party.COORDINATOR, s.noise_secret, tally)


def _intact(s: Coordinator, rows: StepRows, lines: Iterable[ManifestEntry]) -> bool:
    held = ((each, rows.first_messages.get(each.user)) for each in lines)
    return all(body is not None and _line(s, each.user, body) == each for each, body in held)

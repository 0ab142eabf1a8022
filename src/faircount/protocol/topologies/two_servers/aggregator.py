"""The aggregator in the `servers` topology: it fixes the accepted reports and publishes the sum.

    manifest           checks its parts one after the other; with the last one it reserves the
                       budget and signs the reservation, which reveals its committed value where
                       reports are proven
    encrypted shares   part by part, in any order: decrypts the seeds, checks the proofs, adds up
                       its shares of the accepted reports (`verification`)
    all parts          signs the set of accepted reports, once
    aggregate share    adds the coordinator's sum to that of its shares and publishes

Manifest and encrypted shares arrive in parts, and the aggregator says which part it lacks. So it
needs one part in memory at a time. Parts of the manifest come in order. Parts of the encrypted
shares do not depend on each other: other processes may verify several at a time before their
steps are made (`work_ahead`). Until the reservation a restored coordinator may send another
manifest, whose parts replace those that differ; afterwards nothing changes, since from two batches
somebody could compute one person's vector. The aggregator draws no randomness: the same message
leads to the same step, and after a crash to the same signed statements.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import compress

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ShareError
from faircount.mechanisms.proven import Tally
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator, AggregatorRules
from faircount.protocol.roles.rows import StepRows, part_key
from faircount.protocol.survey.endings import OTHER_VALUE, EndCode, Ending, too_few_readable
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import (
    NO_PART_BEFORE,
    PartsState,
    earlier_hashes,
    get_part,
    is_valid_part,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    ManifestEntry,
    NextPartRequest,
    RecordedPart,
    RecordedPartRequest,
    StoredVerification,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.reports import (
    AggregateContext,
    RevealedValues,
    opens_commitment,
)
from faircount.protocol.topologies.two_servers.verification import PartVerifier, PartWork
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import (
    MerkleFrontier,
    bits_of,
    entry_leaves,
    marks_of,
)
from faircount.protocol.wire.messages import (
    PartShares,
    Reason,
    Rejection,
    Reservation,
    Signed,
    reject,
)
from faircount.protocol.wire.roster_messages import RosterProposal
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import add, check_residues, dtype_for
from faircount.sharing.packing import unpack


@dataclass(frozen=True)
class ServersProgress(PartsState):
    """How far the aggregator has come: first with a manifest, then with its encrypted shares."""

    stored_tag = "servers-aggregator"
    # Of each part of an unfinished manifest: how many entries have a valid enrolment MAC, and the
    # user id of its last entry. The next part must begin with a larger one.
    authentic_entries: tuple[int, ...] = ()
    last_users: tuple[bytes, ...] = ()
    # Parts whose accepted reports are in the Merkle tree, which grows in the manifest's order.
    counted_parts: int = 0
    accepted: MerkleFrontier = field(default_factory=MerkleFrontier)
    # Further parts that are verified, ascending: some part before them is not.
    verified_ahead: tuple[int, ...] = ()

    def is_verified(self, number: int) -> bool:
        """Whether the encrypted shares of a part have been verified."""
        return number < self.counted_parts or number in self.verified_ahead

    def before_part(self, number: int) -> "ServersProgress":
        """The progress with an unfinished manifest, cut back to the parts before this one.

        Later parts count only after the parts that they follow.
        """
        return ServersProgress(
            self.earlier[:number],
            # check: replaced-part-uncounted - few reports pass for many
            authentic_entries=self.authentic_entries[:number],
            last_users=self.last_users[:number],
        )


def _progress(s: Aggregator) -> ServersProgress:
    return s.topology_state if isinstance(s.topology_state, ServersProgress) else ServersProgress()


class TwoServersAggregator(AggregatorRules):
    """The aggregator of `servers`: a manifest and its encrypted shares in parts, then one sum."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """Manifest, encrypted shares, aggregate share, requests for a part; there is no roster."""
        return {
            **super().handlers(),
            BatchManifest: self.on_manifest,
            PartShares: self.on_part_shares,
            AggregateShare: self.on_aggregate_share,
            RecordedPartRequest: self.on_recorded_part_request,
        }

    # check: no-roster - a roster confirmation would reveal the value too early
    def confirm_roster(self, s: Aggregator, rows: StepRows, _: RosterProposal) -> aggregator.Change:
        """Refuse any roster: this topology has none.

        A roster confirmation may reveal the committed value. The coordinator, which knows its own,
        would then know both before the manifest is fixed, and could forge proofs.
        """
        return s, (reject(Reason.MALFORMED, "a survey of this topology has no such message"),)

    def on_manifest(
        self, s: Aggregator, rows: StepRows, manifest: BatchManifest
    ) -> aggregator.Change:
        """Check one part of the manifest; with the last one, record it and reserve the budget.

        Entries without a valid enrolment MAC do not stop it. They are left out of the accepted
        reports later.
        """
        part_hash = sha256(encode(manifest)).digest()
        earlier = earlier_hashes(s)
        if s.phase not in FINAL and part_hash in earlier:
            # After a crash the coordinator begins again with the first part.
            reservation = s.last(Reservation)
            if reservation is not None:
                return s, (reservation.signed,)
            return s, (_request_part(s, earlier[-1], len(earlier)),)
        known = aggregator.answer_known_manifest(s, manifest)
        if known is not None:
            return known

        # A restored coordinator may have made another manifest: until the reservation, a part
        # replaces the one of its number and all later ones.
        progress = _progress(s).before_part(manifest.number)
        problem = _part_problem(s, progress, manifest)
        if problem is not None:
            return s, (problem,)
        # Checked once: the encrypted shares are decrypted by what is recorded here.
        authentic = [aggregator.has_valid_mac(s, rows, entry) for entry in manifest.entries]
        rows.authentic_entries.overwrite(part_key(manifest.number), bits_of(np.array(authentic)))
        authentic_entries = (*progress.authentic_entries, sum(authentic))
        if manifest.has_more:
            earlier = (*progress.earlier, part_hash)
            last_users = (*progress.last_users, manifest.entries[-1].user)
            state = ServersProgress(
                earlier, authentic_entries=authentic_entries, last_users=last_users
            )
            rows.manifest_parts.overwrite(part_key(manifest.number), manifest)
            next_request = _request_part(s, part_hash, len(earlier))
            return replace(s, topology_state=state), (next_request,)

        begun = replace(s, topology_state=progress)
        after, out = _record_whole_manifest(begun, rows, manifest, sum(authentic_entries))
        is_settled = after.manifest is not None or after.phase in FINAL
        # check: refused-manifest-rolled-back - the next part could name users of earlier ones again
        if not is_settled:
            return s, out
        return replace(after, topology_state=ServersProgress(progress.earlier)), out

    def on_part_shares(self, s: Aggregator, rows: StepRows, batch: PartShares) -> aggregator.Change:
        """Verify the reports of one part; once all parts are verified, fix the accepted reports.

        The same batch again gets the same answer.
        """
        if s.phase in FINAL:
            return s, s.newest_statements
        if s.manifest is None:
            return s, (reject(Reason.EARLY, "send the manifest before its encrypted shares"),)
        if batch.manifest_hash != s.manifest_hash:
            why = "these are the encrypted shares of another manifest"
            return s, (reject(Reason.CONFLICT, why),)
        if batch.number > len(earlier_hashes(s)):
            return s, (reject(Reason.MALFORMED, "the manifest has no such part"),)
        # check: part-verified-once - the coordinator repeats a part with other verifier shares
        if s.phase is not Phase.COUNTING or _progress(s).is_verified(batch.number):
            return s, _part_replies(s, rows, batch.number)
        # Decoded once: every entry is looked at several times below.
        entries = tuple(get_part(s, rows, batch.number).entries)
        if not _are_shares_of(entries, batch.encrypted_shares):
            why = "these are not the encrypted shares of the manifest: send them again"
            return s, (reject(Reason.WRONG_SHARES, why),)
        # From here on the aggregator has data that depend on answers, so an abort is charged.
        return _verify_batch(replace(s, has_answer_data=True), rows, entries, batch)

    def rows_for(self, s: Aggregator, rows: StepRows, message: Message) -> None:
        """No whole step is sent to another process: what takes long is done ahead."""

    def work_ahead(self, s: Aggregator, rows: StepRows, message: Message) -> PartWork | None:
        """The verification of a part, which does not depend on other parts.

        None unless the coordinator is committed to the value and to the encrypted shares in it:
        nothing is computed about others.
        """
        if (
            not isinstance(message, PartShares)
            or s.phase is not Phase.COUNTING
            or message.manifest_hash != s.manifest_hash
            or message.number > len(earlier_hashes(s))
            or _progress(s).is_verified(message.number)
        ):
            return None
        part = get_part(s, rows, message.number)
        if (
            # check: ahead-of-other-value - other processes would make a second query about reports
            (
                s.params.proven
                and not opens_commitment(s.params, Party.COORDINATOR, message.revealed)
            )
            # check: ahead-of-other-shares - other processes would work on whatever is sent
            or not _are_shares_of(part.entries, message.encrypted_shares)
        ):
            return None
        authentic = rows.authentic_entries[part_key(message.number)]
        return PartWork.of(s, part, authentic, message)

    def on_aggregate_share(
        self, s: Aggregator, rows: StepRows, message: AggregateShare
    ) -> aggregator.Change:
        """Add the coordinator's aggregate share and publish, or abort if the sum is corrupt.

        The survey is over then: a second aggregate share changes nothing.
        """
        if s.phase in FINAL:
            return s, s.newest_statements
        statement = s.last(AcceptedReports)
        accepted = None if statement is None else statement.message
        if statement is None or not isinstance(accepted, AcceptedReports) or s.partial_sum is None:
            return s, (reject(Reason.EARLY, "send the encrypted shares first"),)
        if message.accepted_hash != sha256(statement.signed.payload).digest():
            return s, (reject(Reason.WRONG_DIGEST, "the aggregate share is over another set"),)
        try:
            coordinator_sum = unpack(message.total, s.params.q, s.params.N)
        except ShareError:
            return s, (reject(Reason.MALFORMED, "the aggregate share is not a packed vector"),)
        total = add(check_residues(coordinator_sum, s.params.q), s.partial_sum, s.params.q)
        reports = manifest_size(s)
        counted = int.from_bytes(accepted.members, "big").bit_count()
        return aggregator.publish(
            s, rows, total, counted, None, accepted.root, rejected=reports - counted
        )

    def on_recorded_part_request(
        self, s: Aggregator, rows: StepRows, request: RecordedPartRequest
    ) -> aggregator.Change:
        """Send a restored coordinator a part of the manifest, also when the survey is over."""
        if s.manifest is None or request.number > len(earlier_hashes(s)):
            return s, (reject(Reason.MALFORMED, "no such part of a manifest is recorded"),)
        part = get_part(s, rows, request.number)
        recorded = RecordedPart(s.params.survey, encode(part))
        return s, (sign(s.key, Party.AGGREGATOR, recorded),)

    def scrub(self, s: Aggregator, rows: StepRows) -> Aggregator:
        """The state when the survey is over.

        The hashes of the manifest's parts stay, because a restored coordinator asks for the parts.
        """
        return replace(super().scrub(s, rows), topology_state=ServersProgress(earlier_hashes(s)))


# --- the manifest ---------------------------------------------------------------------------------


def _request_part(s: Aggregator, recorded: bytes, number: int) -> Signed:
    """Ask for a part of the manifest, or of its encrypted shares."""
    return sign(s.key, Party.AGGREGATOR, NextPartRequest(s.params.survey, recorded, number))


def _part_problem(
    s: Aggregator, progress: ServersProgress, manifest: BatchManifest
) -> Rejection | Signed | None:
    """The answer to a part that does not continue the recorded ones; None if it does.

    If the part follows another one than is recorded, the answer names the recorded one. The
    coordinator then goes back part by part, until both manifests agree on what came before.
    """
    if manifest.digest != s.params.digest:
        return reject(Reason.WRONG_DIGEST, "the manifest was made for other parameters")
    recorded = len(progress.earlier)
    before = progress.earlier[-1] if progress.earlier else NO_PART_BEFORE
    # check: parts-in-order - the coordinator exchanges a part that was checked
    if (manifest.number, manifest.previous_hash) != (recorded, before):
        if 0 < manifest.number == recorded:
            return _request_part(s, before, recorded)
        return reject(Reason.EARLY, "send the parts of a manifest in order, from the first")
    if (
        # check: part-size - parts of any size exhaust the aggregator's memory
        not is_valid_part(manifest)
        # check: order-across-parts - a user named in two parts would be counted twice
        or _is_out_of_order(progress, manifest)
    ):
        why = "a manifest names every user once, ascending by user id, in parts of one size"
        return reject(Reason.MALFORMED, why)
    # check: manifest-size - with more entries than people some are made up
    if manifest.size > s.params.n_max:
        return reject(Reason.FULL, f"more than {s.params.n_max} participants")
    return None


def _is_out_of_order(progress: ServersProgress, manifest: BatchManifest) -> bool:
    """Whether a part begins at or below the last user id of the part before."""
    last = progress.last_users[-1:]
    first = manifest.entries[:1]
    return bool(last) and bool(first) and first[0].user <= last[0]


def _record_whole_manifest(
    s: Aggregator, rows: StepRows, manifest: BatchManifest, authentic: int
) -> aggregator.Change:
    """The last part has arrived: record the whole manifest and reserve the budget, or refuse."""
    revealed = bytes(32)
    if s.params.proven:
        if not opens_commitment(s.params, Party.AGGREGATOR, s.committed_value):
            return aggregator.abort(s, rows, Ending(EndCode.AGGREGATOR_SECRET_LOST), spent=False)
        revealed = s.committed_value
    path = (Phase.CONFIRMED, Phase.SUBMITTING)
    return aggregator.record_manifest(s, rows, manifest, authentic, None, path, revealed)


# --- the encrypted shares -------------------------------------------------------------------------


def _are_shares_of(entries: Sequence[ManifestEntry], encrypted_shares: Sequence[bytes]) -> bool:
    """Whether these are the encrypted shares whose hashes the manifest has, in its order."""
    if len(entries) != len(encrypted_shares):
        return False
    for entry, encrypted_share in zip(entries, encrypted_shares, strict=True):
        if sha256(encrypted_share).digest() != entry.encrypted_share_hash:
            return False
    return True


def _verify_batch(
    s: Aggregator, rows: StepRows, entries: Sequence[ManifestEntry], batch: PartShares
) -> aggregator.Change:
    """Decide which reports of a part are accepted, and add up the aggregator's shares of them."""
    # check: coordinator-value - a value chosen late lets invalid reports pass
    if s.params.proven and not opens_commitment(s.params, Party.COORDINATOR, batch.revealed):
        ending = Ending(EndCode.COORDINATOR_CONTRADICTION, (), OTHER_VALUE)
        return aggregator.abort(s, rows, ending, spent=True)
    key = part_key(batch.number)
    shares_hash = sha256(encode(batch)).digest()
    # Another process may have verified it before this step.
    verification = rows.part_verifications.get(key)
    if not isinstance(verification, StoredVerification) or verification.shares_hash != shares_hash:
        authentic = rows.authentic_entries[key]
        verification = PartVerifier.of(s).verify(entries, authentic, batch)
    if verification is None:
        why = "these are not the verifier shares of the manifest's reports: send them again"
        return s, (reject(Reason.MALFORMED, why),)
    rows.part_verifications.overwrite(key, verification)

    progress = _progress(s)
    ahead = tuple(sorted((*progress.verified_ahead, batch.number)))
    counted = _count_parts(s, rows, replace(progress, verified_ahead=ahead))
    after = replace(s, topology_state=counted)
    if counted.counted_parts > len(earlier_hashes(s)):
        fixed, out = _fix_accepted(after, rows, batch.revealed)
        if fixed.phase in FINAL:
            return fixed, out
        after = fixed
    return after, _part_replies(after, rows, batch.number)


def _count_parts(s: Aggregator, rows: StepRows, progress: ServersProgress) -> ServersProgress:
    """Append the accepted reports of verified parts to the Merkle tree, up to a missing part."""
    ahead = progress.verified_ahead
    while ahead and ahead[0] == progress.counted_parts:
        number = ahead[0]
        ahead = ahead[1:]
        entries = get_part(s, rows, number).entries
        marks = marks_of(_verification(rows, number).members, len(entries))
        accepted = compress(entries, () if marks is None else marks.tolist())
        leaves = entry_leaves(
            ((entry.user, entry.public_key) for entry in accepted), progress.accepted.count
        )
        progress = replace(
            progress,
            counted_parts=number + 1,
            accepted=progress.accepted.append(leaves),
            verified_ahead=ahead,
        )
    return progress


def _part_replies(s: Aggregator, rows: StepRows, number: int) -> tuple[Message, ...]:
    """What the coordinator is told about a part that is verified, and what it should do next."""
    answers = list[Message]()
    if s.params.proven:
        part = _verified_part(s, rows, number)
        answers.append(sign(s.key, Party.AGGREGATOR, part))
    accepted = s.last(AcceptedReports)
    if accepted is not None:
        answers.append(accepted.signed)
    else:
        answers.append(_request_part(s, s.manifest_hash, _progress(s).counted_parts))
    return tuple(answers)


def _verification(rows: StepRows, number: int) -> StoredVerification:
    """What was stored about a part that is verified."""
    stored = rows.part_verifications[part_key(number)]
    if not isinstance(stored, StoredVerification):
        raise KeyError(number)
    return stored


def _verified_part(s: Aggregator, rows: StepRows, number: int) -> VerifiedPart:
    """What the coordinator is told about a part: never the shares, or their sum."""
    stored = _verification(rows, number)
    return VerifiedPart(
        s.params.survey, s.manifest_hash, number, stored.decrypted, stored.verifier_shares
    )


def _fix_accepted(s: Aggregator, rows: StepRows, revealed: bytes) -> aggregator.Change:
    """Sign the set of accepted reports, once, and keep the aggregator's sum over it."""
    accepted = _progress(s).accepted
    # check: accepted-minimum - with all but one share garbled the sum is one person's vector
    if not aggregator.is_still_private(s, accepted.count):
        ending = too_few_readable(accepted.count, s.params.minimum)
        return aggregator.abort(s, rows, ending, spent=True)
    numbers = range(len(earlier_hashes(s)) + 1)
    members = _join_bitmaps(s, [_verification(rows, number).members for number in numbers])
    message = AcceptedReports(s.params.survey, s.manifest_hash, members, accepted.root)
    if s.params.proven:
        # The coordinator checks every proof again before it adds anything up.
        verified = (_verified_part(s, rows, number) for number in numbers)
        message = replace(message, verified=hash_of_verified(verified))
    return aggregator.sign_statement(
        s,
        message,
        partial_sum=_make_aggregate_share(s, rows, (revealed, s.committed_value), members),
        topology_state=ServersProgress(earlier_hashes(s)),
        phase=advance(s.phase, Phase.AGGREGATED),
    )


def _join_bitmaps(s: Aggregator, bitmaps: Iterable[bytes]) -> bytes:
    """One bitmap over the manifest from those over its parts, whose sizes need not fill bytes."""
    joined = list[Bools]()
    remaining = manifest_size(s)
    for bits in bitmaps:
        size = min(messages.REPORTS_PER_PART, remaining)
        marks = marks_of(bits, size)
        if marks is not None:
            joined.append(marks)
        remaining -= size
    return bits_of(np.concatenate(joined))


def _make_aggregate_share(
    s: Aggregator, rows: StepRows, values: RevealedValues, members: bytes
) -> Residues:
    """The aggregator's aggregate share over the accepted reports of all parts.

    Where reports are proven, coins are placed and the server's noise is added.
    """
    q = s.params.q
    total = np.zeros(s.params.N, dtype=dtype_for(q))
    packed_coins = list[tuple[int, bytes]]()
    for number in range(len(earlier_hashes(s)) + 1):
        stored = _verification(rows, number)
        total = add(total, unpack(stored.total, q, s.params.N), q)
        accepted = int.from_bytes(stored.members, "big").bit_count()
        packed_coins.append((accepted, stored.coins))
    if not s.params.proven:
        return total
    context = AggregateContext.of(s.params, values, s.manifest_hash, members)
    per_user = context.mechanism.coins_per_user
    coins = [
        unpack(packed, q, accepted * per_user).reshape(accepted, per_user)
        for accepted, packed in packed_coins
    ]
    tally = Tally(total, np.concatenate(coins))
    return context.aggregate_share(Party.AGGREGATOR, s.noise_secret, tally)

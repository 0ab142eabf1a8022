"""The aggregator of TSS and TSS': it holds one election, decrypts the masks' seeds and publishes.

    announcement   checks that the invitations authenticate all reporting keys, reserves the budget
                   and records the hash of the one election request that it will accept
    request        signs the election and reveals its committed value, which selects the helpers
    manifest       decrypts the seeds of the helpers' masks and names the helpers whose seeds it
                   could decrypt. If it could decrypt all, it is ready for the total
    total          subtracts the masks item by item and publishes

The aggregator learns who is eligible and who is counted, the m_j of the election, and the total of
every item. It never gets the m_j again: together with who left, a second set of m_j would reveal
which items those people reported. It reads the m_j only of reporters whose keys are authentic, so
the coordinator cannot make up reporters to isolate one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from faircount.accounting import guarantee
from faircount.accounting.guarantee import Adversary
from faircount.core.arrays import Residues
from faircount.mechanisms.two_stage import TwoStageSum, as_two_stage
from faircount.protocol.peers import unmasking
from faircount.protocol.peers.messages import AggregateTotal
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.peers.unmasking import PeersAggregator
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.invitations import verify_entry_mac
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.survey.reservations import reservation_for
from faircount.protocol.topologies.two_stage.election import (
    Ballot,
    Slots,
    draw_ballot,
    tally_problem,
)
from faircount.protocol.topologies.two_stage.messages import (
    Announcement,
    AnnouncementReply,
    Election,
    ElectionRequest,
    ReporterKey,
    TwoStageManifest,
)
from faircount.protocol.topologies.two_stage.sum_requests import (
    HelperSums,
    SumScope,
    sums_by_helper,
)
from faircount.protocol.topologies.two_stage.user import ANONYMOUS_ID, REPORTING_LABEL
from faircount.protocol.wire.canonical_json import format_upper_bound
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import bitmap, entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import AdversaryGuarantee, Reason, Rejection, reject
from faircount.protocol.wire.roster_messages import RejectedEntries
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import add, dtype_for


class TwoStageAggregator(PeersAggregator):
    """The aggregator of `two-stage`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The election, and the manifest of an attempt."""
        return {
            **super().handlers(),
            Announcement: self.on_announcement,
            ElectionRequest: self.on_request,
            TwoStageManifest: self.on_manifest,
        }

    def on_announcement(
        self, s: Aggregator, rows: StepRows, message: Announcement
    ) -> aggregator.Change:
        """Reserve the budget, and record which election request will be accepted.

        The m_j depend on responses. From here on they may be on their way, so an abort is charged.
        If some keys are not authentic, they are named, and nothing is recorded.
        """
        stored = s.last(AnnouncementReply)
        if stored is not None:
            # Send the reservation and the reply again; another announcement is a conflict.
            position = s.statements.index(stored)
            again = tuple(
                statement.signed for statement in s.statements[position - 1 : position + 1]
            )
            if stored.message == _announcement_reply(s, message):
                return s, again
            return s, (reject(Reason.CONFLICT, "another request was announced"), *again)
        if s.phase is not Phase.CONFIRMED or s.roster is None:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"),)
        problem = _entries_problem(s, message.entries)
        if problem is not None:
            return s, (problem,)
        rejected = _rejected_positions(s, rows, message.entries)
        # check: reporter-invited - the coordinator elects reporters under made-up keys
        if rejected:
            request_hash = sha256(encode(message)).digest()
            entries = RejectedEntries(s.params.survey, request_hash, rejected)
            return s, (sign(s.key, Party.AGGREGATOR, entries),)
        granted = aggregator.reserve(s, rows)
        if not isinstance(granted, Aggregator):
            return granted
        reservation = reservation_for(
            granted.ledger, s.params.survey, message.request_hash, bytes(32)
        )
        charged = replace(
            granted,
            # check: election-spends - aborting once the counts are known would be free
            has_answer_data=True,
        )
        # The reservation and the reply are stored in one step, before the m_j can arrive.
        after, first = aggregator.sign_statement(charged, reservation)
        after, second = aggregator.sign_statement(after, _announcement_reply(s, message))
        return after, (*first, *second)

    def on_request(
        self, s: Aggregator, rows: StepRows, request: ElectionRequest
    ) -> aggregator.Change:
        """Sign the election for the one request that was announced, and reveal the value."""
        stored = s.last(Election)
        announced = s.last(AnnouncementReply)
        reply = None if announced is None else announced.message
        if (
            not isinstance(reply, AnnouncementReply)
            # check: request-announced - the counts of two requests differ by one user's items
            or reply.request_hash != sha256(encode(request)).digest()
        ):
            if stored is None:
                return s, (reject(Reason.CONFLICT, "this request was not announced"),)
            return s, (reject(Reason.CONFLICT, "another election was held"), stored.signed)
        if stored is not None:
            return s, (stored.signed,)
        if s.phase is not Phase.CONFIRMED or s.roster is None:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"),)
        if request.digest != s.digest:
            why = "an election is held for the confirmed roster"
            return s, (reject(Reason.WRONG_DIGEST, why),)
        # The value is revealed here, when neither the m_j nor the lists can change any more.
        election = Election(
            s.params.survey,
            s.digest,
            reply.eligible,
            reply.keys,
            request.reporters,
            request.lists,
            s.committed_value,
        )
        problem = tally_problem(s.params, len(s.roster.entries), election)
        if problem is not None:
            return s, (problem,)
        return aggregator.sign_statement(s, election)

    def on_manifest(
        self, s: Aggregator, rows: StepRows, manifest: TwoStageManifest
    ) -> aggregator.Change:
        """Check the manifest of an attempt, record it and decrypt its seeds."""
        known = unmasking.answer_known_manifest(s, manifest)
        if known is not None:
            return known
        ballot = ballot_of(s)
        if ballot is None or (manifest.digest, manifest.election) != (s.digest, ballot.hash):
            why = "the manifest is about another election than the one that was held"
            return aggregator.refuse_manifest(s, reject(Reason.WRONG_DIGEST, why))
        slots = ballot.after(manifest.gone)
        numbers = members_of(manifest.members, len(ballot.eligible))
        problem = _manifest_problem(s, manifest, ballot, slots, numbers)
        if problem is not None or slots is None or numbers is None:
            return aggregator.refuse_manifest(s, problem)
        step = unmasking.record_attempt(s, rows, manifest, len(numbers), None)
        # A manifest that was refused, for example over budget, leaves the state without it.
        is_recorded = step[0].manifest == manifest
        return _name_readable(s, manifest, ballot, slots, step) if is_recorded else step

    def on_total(self, s: Aggregator, rows: StepRows, message: AggregateTotal) -> aggregator.Change:
        """Subtract the masks from the coordinator's totals and publish (Algorithm 3, line 22).

        No item can have a larger count than it has reporters: decoding checks it.
        """
        if s.phase in FINAL:
            return s, s.newest_statements
        counts = unmasking.unmask_total(s, message)
        if isinstance(counts, Rejection):
            return s, (counts,)
        manifest = s.manifest
        ballot = ballot_of(s)
        if not isinstance(manifest, TwoStageManifest) or ballot is None:
            return s, (reject(Reason.EARLY, "send the manifest first"),)
        # The m_j of the election, not of those who are left: the aggregator does not know these.
        total = TwoStageSum(np.array(ballot.reporters, dtype=np.int64), counts)
        counted = len(members_of(manifest.members, len(ballot.eligible)) or ())
        guarantees = _realized_guarantees(s, counted, len(ballot.eligible) - counted)
        after = replace(s, phase=advance(s.phase, Phase.AGGREGATED))
        root = _reporters_root(ballot, manifest)
        return aggregator.publish(after, rows, total, counted, None, root, guarantees)


# --- the election ---------------------------------------------------------------------------------


def _announcement_reply(s: Aggregator, message: Announcement) -> AnnouncementReply:
    n = unmasking.roster_size(s)
    eligible = bitmap((entry.place for entry in message.entries if entry.place < n), n)
    keys = tuple(entry.public_key for entry in message.entries)
    return AnnouncementReply(s.params.survey, message.request_hash, eligible, keys)


def _entries_problem(s: Aggregator, entries: Sequence[ReporterKey]) -> Rejection | None:
    """Why these participants and keys cannot be elected; the MACs of the keys are checked later."""
    n = unmasking.roster_size(s)
    places = {entry.place for entry in entries}
    keys = {entry.public_key for entry in entries}
    if (
        not places <= set(range(n))
        # check: elected-once - a user elected twice fills the set and hides nobody
        or len(places) != len(entries)
    ):
        return reject(
            Reason.MALFORMED, "an election is held of participants of the roster, each once"
        )
    if (
        len(keys) != len(entries)
        # check: reporting-key-fresh - a key of the roster would link a report to its user
        or not keys.isdisjoint(unmasking.entry(s, i)[1] for i in range(n))
    ):
        return reject(Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's")
    # check: election-minimum - an election among few users shows nearly one user's items
    if len(entries) < s.params.minimum:
        why = f"{len(entries)} participants indicated, {s.params.minimum} are needed"
        return reject(Reason.TOO_FEW, why)
    return None


def _rejected_positions(
    s: Aggregator, rows: StepRows, entries: Sequence[ReporterKey]
) -> tuple[int, ...]:
    """Positions of the entries whose reporting key the user's invitation does not authenticate."""
    rejected = list[int]()
    for position, entry in enumerate(entries):
        if not _is_authentic(s, rows, entry):
            rejected.append(position)
    return tuple(rejected)


def _is_authentic(s: Aggregator, rows: StepRows, entry: ReporterKey) -> bool:
    """Whether the MAC of this reporting key was made with the invitation of its user."""
    # The key comes from the owner, not from the coordinator.
    key = rows.mac_keys.get(unmasking.entry(s, entry.place)[0])
    # check: reporting-key-purpose - an enrolment key and its MAC are used again to report
    return verify_entry_mac(key, s.params.digest, entry.public_key, entry.mac, REPORTING_LABEL)


def ballot_of(s: Aggregator) -> Ballot | None:
    """The election that was held, if one was."""
    stored = s.last(Election)
    election = None if stored is None else stored.message
    if not isinstance(election, Election) or s.roster is None:
        return None
    return draw_ballot(s.params, len(s.roster.entries), election)


# --- the manifest and the total -------------------------------------------------------------------


def _manifest_problem(
    s: Aggregator,
    manifest: TwoStageManifest,
    ballot: Ballot,
    slots: Slots | None,
    numbers: tuple[int, ...] | None,
) -> Rejection | None:
    scope = SumScope.of(manifest)
    if slots is None or numbers is None:
        return reject(Reason.MALFORMED, "a manifest names reporters, and who holds the slots")
    # Before anything is computed for every attempt: the number is the coordinator's.
    if not scope.is_within(s.params.attempts):
        return reject(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    if len(list(sums_by_helper(ballot, slots, scope))) != len(manifest.encrypted_shares):
        why = "a manifest has one encrypted seed for each sum request to each helper"
        return reject(Reason.MALFORMED, why)
    if manifest.set_digest != scope.digest(ballot):
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    return None


def _name_readable(
    s: Aggregator, manifest: TwoStageManifest, ballot: Ballot, slots: Slots, step: aggregator.Change
) -> aggregator.Change:
    """Name the helpers all of whose seeds can be decrypted.

    If that is everybody, the aggregator keeps the sum of the masks and is ready for the total.
    Otherwise others take over the slots of the rest.
    """
    seeds = list[tuple[HelperSums, bytes]]()
    holders = set[int]()
    unreadable = set[int]()
    helpers = sums_by_helper(ballot, slots, SumScope.of(manifest))
    for helper, encrypted_seed in zip(helpers, manifest.encrypted_shares, strict=True):
        seed = _decrypt_seed(s, helper, encrypted_seed)
        seeds.append((helper, seed))
        holders.add(helper.holder)
        if not seed:
            unreadable.add(helper.holder)
    # Without all seeds there is no sum of masks, so the aggregator is not ready for a total.
    masks = None if unreadable else _sum_masks(s, slots, seeds)
    readable = sorted(holders - unreadable)
    root = _reporters_root(ballot, manifest)
    return unmasking.state_accepted(s, step, manifest.set_digest, readable, masks, root)


def _attempt_context(s: Aggregator, helper: HelperSums) -> AttemptContext:
    return AttemptContext(s.params, s.digest, helper.attempt, helper.digest)


def _decrypt_seed(s: Aggregator, helper: HelperSums, encrypted_seed: bytes) -> bytes:
    """The seed of a helper's mask; empty if it cannot be decrypted."""
    context = _attempt_context(s, helper)
    seeds = unmasking.decrypt_seeds(s, context, [helper.holder], [encrypted_seed])
    return seeds.get(helper.holder, b"")


def _sum_masks(s: Aggregator, slots: Slots, seeds: Sequence[tuple[HelperSums, bytes]]) -> Residues:
    """The masks that the helpers have added to their sums, summed item by item."""
    totals = np.zeros(s.params.N, dtype=dtype_for(s.params.q))
    for helper, seed in seeds:
        # Nobody holds two slots of one item, so no index occurs twice here.
        items = slots.item[helper.due]
        context = _attempt_context(s, helper)
        mask = context.self_mask(s.crypto, helper.holder, seed, len(items))
        totals[items] = add(totals[items], mask, s.params.q)
    return totals


def _reporters_root(ballot: Ballot, manifest: TwoStageManifest) -> bytes:
    """Merkle root of the accepted reporters, who are known by their keys alone."""
    numbers = members_of(manifest.members, len(ballot.eligible)) or ()
    return merkle_root(entry_leaves((ANONYMOUS_ID, ballot.keys[number]) for number in numbers))


def _realized_guarantees(s: Aggregator, counted: int, lost: int) -> tuple[AdversaryGuarantee, ...]:
    """The guarantee that remains against every adversary, rounded up.

    TSS promises nothing against colluding participants.
    """
    mechanism = as_two_stage(s.params.mechanism)
    # A guarantee is published rounded up, so that it is never better than the computed one.
    stated = list[AdversaryGuarantee]()
    for remaining in mechanism.remaining_guarantees(counted, s.params.epsilon, lost):
        epsilon = format_upper_bound(remaining.epsilon).encode()
        delta = format_upper_bound(remaining.delta).encode()
        stated.append(AdversaryGuarantee(_code(remaining.adversary), epsilon, delta))
    return tuple(stated)


def _code(adversary: Adversary) -> int:
    """How an adversary is encoded: the address of a server, or a number of participants."""
    servers = {guarantee.S1: int(Party.COORDINATOR), guarantee.S2: int(Party.AGGREGATOR)}
    return servers.get(adversary, adversary.insiders)

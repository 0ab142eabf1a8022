"""The aggregator in TSS and TSS': it holds one election, opens the seeds of the helpers' masks,
takes ONE sum and publishes.

The aggregator learns who may be elected and who is counted, the m_j of the election, and the
total of every item. It gets no update of the m_j: together with who was lost, that would tell
which items a lost user reported. It reads the m_j once, of users for whose keys invitations
vouch: the coordinator cannot invent a reporter, and a second request would tell somebody's
items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from faircount.accounting import guarantee
from faircount.accounting.guarantee import Adversary
from faircount.core.arrays import Residues
from faircount.mechanisms.two_stage import TwoStageSum, as_two_stage
from faircount.protocol.peers import opening
from faircount.protocol.peers.messages import AggregateTotal
from faircount.protocol.peers.opening import PeersAggregator
from faircount.protocol.peers.self_mask import AttemptContext
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
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import AdversaryGuarantee, Reason, Rejection, reject
from faircount.protocol.wire.roster_messages import RejectedEntries
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import add, dtype_for


class TwoStageAggregator(PeersAggregator):
    """The aggregator of `two-stage`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The election, and the claim of an attempt."""
        return {
            **super().handlers(),
            Announcement: self.on_announcement,
            ElectionRequest: self.on_request,
            TwoStageManifest: self.on_claim,
        }

    def on_announcement(
        self, s: Aggregator, rows: StepRows, message: Announcement
    ) -> aggregator.Change:
        """Reserve the budget and record which request will be read, about whom; any other later is
        a conflict.

        The m_j depend on answers: from here on they may be on their way, so an abort is charged.
        Keys for which no invitation vouches are named first, and nothing is recorded.
        """
        stored = s.last(AnnouncementReply)
        if stored is not None:
            again = stored.message == _announced(s, message)
            why = () if again else (reject(Reason.CONFLICT, "another request was announced"),)
            at = s.statements.index(stored)
            return s, (*why, *(each.signed for each in s.statements[at - 1 : at + 1]))
        if s.phase is not Phase.CONFIRMED or s.roster is None:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"),)
        problem = _entries_problem(s, message.entries)
        if problem is not None:
            return s, (problem,)
        # check: reporter-invited - the coordinator elects reporters under made-up keys
        bad = tuple(i for i, each in enumerate(message.entries) if not _vouched_for(s, rows, each))
        if bad:
            hash_ = sha256(encode(message)).digest()
            return s, (sign(s.key, Party.AGGREGATOR, RejectedEntries(s.params.survey, hash_, bad)),)
        granted = aggregator.reserve(s, rows)
        if not isinstance(granted, Aggregator):
            return granted
        reservation = reservation_for(
            granted.ledger, s.params.survey, message.request_hash, bytes(32)
        )
        charged = replace(
            granted,
            # check: election-spends - aborting once the counts are known would be free
            handed_over=True,
        )
        after, first = aggregator.say(charged, reservation)
        after, second = aggregator.say(after, _announced(s, message))
        return after, (*first, *second)

    def on_request(
        self, s: Aggregator, rows: StepRows, request: ElectionRequest
    ) -> aggregator.Change:
        """Reveal the committed value for the one request that was announced; any other is a
        conflict.
        """
        stored, announced = s.last(Election), s.last(AnnouncementReply)
        known = None if announced is None else announced.message
        if (
            not isinstance(known, AnnouncementReply)
            # check: request-announced - the counts of two requests differ by one user's items
            or known.request_hash != sha256(encode(request)).digest()
        ):
            why = (
                "this request was not announced" if stored is None else "another election was held"
            )
            return s, (
                reject(Reason.CONFLICT, why),
                *(() if stored is None else (stored.signed,)),
            )
        if stored is not None:
            return s, (stored.signed,)
        if s.phase is not Phase.CONFIRMED or s.roster is None:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"),)
        if request.digest != s.digest:
            return s, (reject(Reason.WRONG_DIGEST, "an election is held for the sealed roster"),)
        drawn = request.reporters, request.lists, s.committed
        election = Election(s.params.survey, s.digest, known.eligible, known.keys, *drawn)
        problem = tally_problem(s.params, len(s.roster.entries), election)
        return (s, (problem,)) if problem is not None else aggregator.say(s, election)

    def on_claim(
        self, s: Aggregator, rows: StepRows, manifest: TwoStageManifest
    ) -> aggregator.Change:
        """Check election, reporters, slots, minimum and budget, record the claim and open its
        seeds.
        """
        known = opening.answer_known_manifest(s, manifest)
        if known is not None:
            return known
        ballot = ballot_of(s)
        if ballot is None or (manifest.digest, manifest.election) != (s.digest, ballot.hash):
            why = reject(
                Reason.WRONG_DIGEST,
                "the claim is about another election than the one that was held",
            )
            return aggregator.refuse_manifest(s, why)
        slots, numbers = (
            ballot.after(manifest.gone),
            members_of(manifest.members, len(ballot.eligible)),
        )
        problem = _form_problem(s, manifest, ballot, slots, numbers)
        if problem is not None or slots is None or numbers is None:
            return aggregator.refuse_manifest(s, problem)
        step = opening.admit_attempt(s, rows, manifest, len(numbers), None)
        return _included(s, manifest, ballot, slots, step) if step[0].manifest == manifest else step

    def on_total(self, s: Aggregator, rows: StepRows, message: AggregateTotal) -> aggregator.Change:
        """The coordinator's one sum of all slots, item by item (Alg.

        3, line 22); no item is counted more often than reported.
        """
        manifest, ballot = s.manifest, ballot_of(s)
        if s.phase in FINAL:
            return s, s.newest_statements
        counts = opening.unmask_total(s, message)
        if (
            isinstance(counts, Rejection)
            or not isinstance(manifest, TwoStageManifest)
            or ballot is None
        ):
            return s, (
                counts
                if isinstance(counts, Rejection)
                else reject(Reason.EARLY, "send the claim first"),
            )
        total = TwoStageSum(np.array(ballot.reporters, dtype=np.int64), counts)
        included = len(members_of(manifest.members, len(ballot.eligible)) or ())
        against = _against(s, included, len(ballot.eligible) - included)
        opened = replace(s, phase=advance(s.phase, Phase.AGGREGATED))
        return aggregator.publish(
            opened, rows, total, included, None, _root(ballot, manifest), against
        )


def _announced(s: Aggregator, message: Announcement) -> AnnouncementReply:
    places, keys = (
        [each.place for each in message.entries],
        tuple(each.public_key for each in message.entries),
    )
    n = opening.roster_size(s)
    return AnnouncementReply(
        s.params.survey, message.request_hash, bitmap((i for i in places if i < n), n), keys
    )


def _entries_problem(s: Aggregator, entries: Sequence[ReporterKey]) -> Rejection | None:
    places, keys, n = (
        {each.place for each in entries},
        {each.public_key for each in entries},
        opening.roster_size(s),
    )
    if (
        not places <= set(range(n))
        # check: elected-once - a user elected twice fills the set and hides nobody
        or len(places) != len(entries)
    ):
        return reject(Reason.MALFORMED, "an election is held of users of the roster, each once")
    if (
        len(keys) != len(entries)
        # check: reporting-key-fresh - a key of the roster would link a report to its user
        or not keys.isdisjoint(opening.entry(s, i)[1] for i in range(n))
    ):
        return reject(Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's")
    # check: election-minimum - an election among few users shows nearly one user's items
    if len(entries) < s.params.minimum:
        return reject(
            Reason.TOO_FEW, f"{len(entries)} users indicated, {s.params.minimum} are needed"
        )
    return None


def _vouched_for(s: Aggregator, rows: StepRows, each: ReporterKey) -> bool:
    """Whether this user's invitation vouches for the key under which it is said to report."""
    key = rows.mac_keys.get(opening.entry(s, each.place)[0])
    # check: reporting-key-purpose - an enrolment key and its MAC are used again to report
    return verify_entry_mac(key, s.params.digest, each.public_key, each.mac, REPORTING_LABEL)


def ballot_of(s: Aggregator) -> Ballot | None:
    """The election that was held, if one was."""
    stored = s.last(Election)
    held = None if stored is None else stored.message
    return (
        draw_ballot(s.params, len(s.roster.entries), held)
        if isinstance(held, Election) and s.roster is not None
        else None
    )


def _form_problem(
    s: Aggregator,
    manifest: TwoStageManifest,
    ballot: Ballot,
    slots: Slots | None,
    numbers: tuple[int, ...] | None,
) -> Rejection | None:
    called = SumScope.of(manifest)
    if slots is None or numbers is None:
        return reject(Reason.MALFORMED, "a claim names reporters, and who holds the slots")
    if not called.is_within(s.params.attempts):
        return reject(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    if len(list(sums_by_helper(ballot, slots, called))) != len(manifest.encrypted_shares):
        return reject(Reason.MALFORMED, "a claim has one sealed seed for each call of each helper")
    if manifest.set_digest != called.digest(ballot):
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    return None


def _included(
    s: Aggregator, manifest: TwoStageManifest, ballot: Ballot, slots: Slots, step: aggregator.Change
) -> aggregator.Change:
    """Which helpers' seeds open.

    If all do, the aggregator is ready for the sum; else others take the places of the rest.
    """
    found = [
        (part, _seed(s, part, encrypted_share))
        for part, encrypted_share in zip(
            _parts(ballot, slots, manifest), manifest.encrypted_shares, strict=True
        )
    ]
    closed = {part.holder for part, seed in found if not seed}
    opens = sorted({part.holder for part, _ in found} - closed)
    held = None if closed else _masks(s, slots, found)
    return opening.state_accepted(
        s, step, manifest.set_digest, opens, held, _root(ballot, manifest)
    )


def _parts(ballot: Ballot, slots: Slots, manifest: TwoStageManifest) -> list[HelperSums]:
    return list(sums_by_helper(ballot, slots, SumScope.of(manifest)))


def _round(s: Aggregator, part: HelperSums) -> AttemptContext:
    return AttemptContext(s.params, s.digest, part.attempt, part.digest)


def _seed(s: Aggregator, part: HelperSums, encrypted_share: bytes) -> bytes:
    """The seed of this part's mask; nothing if it does not open."""
    return opening.decrypt_seeds(s, _round(s, part), [part.holder], [encrypted_share]).get(
        part.holder, b""
    )


def _masks(s: Aggregator, slots: Slots, seeds: Sequence[tuple[HelperSums, bytes]]) -> Residues:
    """What the helpers have put over their sums, item by item; nobody holds two slots of one
    item.
    """
    totals = np.zeros(s.params.N, dtype=dtype_for(s.params.q))
    for part, seed in seeds:
        items = slots.item[part.due]
        mask = _round(s, part).self_mask(s.crypto, part.holder, seed, len(items))
        totals[items] = add(totals[items], mask, s.params.q)
    return totals


def _root(ballot: Ballot, manifest: TwoStageManifest) -> bytes:
    """Merkle root of the included reporters, known by their keys alone."""
    numbers = members_of(manifest.members, len(ballot.eligible)) or ()
    return merkle_root(roster_leaves((ANONYMOUS_ID, ballot.keys[number]) for number in numbers))


def _against(s: Aggregator, included: int, lost: int) -> tuple[AdversaryGuarantee, ...]:
    """The realized guarantee against the coordinator, the aggregator, phi users and readers,
    rounded up.

    TSS claims nothing against users.
    """
    left = as_two_stage(s.params.mechanism).remaining_guarantees(included, s.params.epsilon, lost)
    return tuple(
        AdversaryGuarantee(
            _code(each.adversary),
            format_upper_bound(each.epsilon).encode(),
            format_upper_bound(each.delta).encode(),
        )
        for each in left
    )


def _code(adversary: Adversary) -> int:
    return {guarantee.S1: int(Party.COORDINATOR), guarantee.S2: int(Party.AGGREGATOR)}.get(
        adversary, adversary.insiders
    )

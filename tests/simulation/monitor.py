"""What must never happen, whatever fails: a monitor that sees every message and forgets nothing.

Every participant has an item of its own and noise is off. So the published histogram must consist
of 0s and 1s and count exactly the accepted set; a 2 is a participant counted twice. The monitor
reads what was SENT, delivered or not: a message in transit may still arrive, and a curious server
keeps what a crash made it forget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from faircount.core.errors import MalformedError
from faircount.core.questions import Sheet
from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import ExplicitManifest, PeerSum
from faircount.protocol.topologies.masked.messages import MaskedManifest, MaskedSum, UnmaskBatch
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_stage.election import draw_ballot
from faircount.protocol.topologies.two_stage.messages import (
    Election,
    ElectionRequest,
    SlotSums,
    TwoStageManifest,
)
from faircount.protocol.topologies.two_stage.sum_requests import SumScope, sums_by_helper
from faircount.protocol.topologies.two_stage.user import ANONYMOUS_ID
from faircount.protocol.wire.codec import Message, Party, encode, parse
from faircount.protocol.wire.digests import entry_leaves, members_of, merkle_root, roster_digest
from faircount.protocol.wire.messages import Aborted, PartShares, Published, Reservation, Signed
from faircount.protocol.wire.roster_messages import RosterProposal

Entry = tuple[bytes, bytes]
"""(user id, public key)."""


@dataclass
class Monitor:
    """All messages of one survey, and what was wrong with them.

    Attributes:
        params: of the survey
        sheets: name of a participant in the accepted set -> the answers that it counts with
        problems: what should not have happened
        rosters: proposed rosters, by digest
        manifests: by hash
        reserved: hashes of the manifests with a reservation, in order
        claimed: hashes of manifests for which a dishonest aggregator has signed a reservation
        elections: by hash
        verified: what the aggregator found, by manifest hash and number of the part
        accepted: hash of a manifest -> whom the aggregator accepted
        once: what has one value for ever
        arrived: encrypted shares that reached the coordinator
        intact: encrypted shares for the aggregator from devices that follow the protocol
        broken: devices that do not follow the protocol
        invalid: keys of participants who sent invalid reports, where reports have proofs
        withdrawn: names whose withdrawal the coordinator has acknowledged
        is_s1_dishonest: whether the coordinator signed something false
        is_s1_rolled_back: whether the coordinator may have forgotten a withdrawal
        sets: what the aggregator stated as accepted, truly or not, by hash
        releases: number of messages to the aggregator that depend on answers
        summed: participants whose vectors are in a sum that the aggregator was sent
        recovered: participants whose mask key shares the aggregator was sent
    """

    params: SurveyParameters
    sheets: dict[bytes, Sheet | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    rosters: dict[bytes, tuple[Entry, ...]] = field(default_factory=dict)
    manifests: dict[bytes, Message] = field(default_factory=dict)
    reserved: list[bytes] = field(default_factory=list)
    claimed: set[bytes] = field(default_factory=set)
    elections: dict[bytes, Election] = field(default_factory=dict)
    verified: dict[tuple[bytes, int], VerifiedPart] = field(default_factory=dict)
    accepted: dict[bytes, tuple[Entry, ...]] = field(default_factory=dict)
    once: dict[tuple[object, ...], bytes] = field(default_factory=dict)
    arrived: set[bytes] = field(default_factory=set)
    intact: set[bytes] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    invalid: set[bytes] = field(default_factory=set)
    withdrawn: set[bytes] = field(default_factory=set)
    is_s1_dishonest: bool = False
    is_s1_rolled_back: bool = False
    sets: dict[bytes, AcceptedReports | AcceptedMembers] = field(default_factory=dict)
    releases: int = 0
    summed: set[Entry] = field(default_factory=set)
    recovered: set[Entry] = field(default_factory=set)

    # --- what happens

    def observe_server_message(self, message: Message) -> None:
        """A server sent a message to the other one."""
        if not isinstance(message, Signed):
            return
        try:
            inner = parse(message.payload)
        except MalformedError:
            return
        # From the coordinator an abort is only a request.
        if isinstance(inner, Aborted) and message.by == Party.COORDINATOR:
            return
        observe = OBSERVERS.get(type(inner))
        if observe is not None:
            observe(self, inner)

    def observe_request(self, device: tuple[object, ...], message: Message) -> None:
        """A client sent a message: under one natural key it must always have the same bytes."""
        key = ("message", *device, type(message).__name__)
        self.check_once(key, encode(message), "a user drew or sent something twice")
        if device[0] not in self.broken and isinstance(message, (PeerSum, MaskedSum, SlotSums)):
            self.intact.update(_encrypted_shares(message))

    def observe_arrival_at_s1(self, message: Message) -> None:
        """A message arrived at the coordinator, changed in transit or not."""
        self.arrived.update(_encrypted_shares(message))

    # --- checks

    def check_once(self, key: tuple[object, ...], value: bytes, problem: str) -> None:
        """Note a problem if this key had another value before."""
        if self.once.setdefault(key, value) != value:
            self.problems.append(problem)

    def compare_restart(self, who: str, before: object, after: object) -> None:
        """A party that crashed and was read from its stored bytes must be what was written."""
        if before != after:
            self.problems.append(f"{who} came back from its storage as another than it was")

    def check_servers(self, s1: Coordinator, s2: Aggregator) -> None:
        """Check what the servers store."""
        if self.summed & self.recovered:
            self.problems.append(
                "The aggregator was sent both a user's sum and shares of its mask key"
            )
        charge = s2.ledger.find(self.params.survey)
        if self.releases and charge is not None and charge.status is Status.CANCELLED:
            self.problems.append(
                "the reservation was cancelled although encrypted shares were sent"
            )
        if s1.phase is not Phase.PUBLISHED:
            return
        if ("published",) not in self.once:
            self.problems.append("The coordinator shows a result that the aggregator never signed")
        if s1.final is not None and s1.final.signed.by == Party.AGGREGATOR:
            self.check_once(
                ("published",),
                s1.final.signed.payload,
                "The coordinator shows another result than the aggregator signed",
            )

    # --- who is in which set

    def manifest_entries(self, manifest_hash: bytes) -> tuple[Entry, ...]:
        """The participants that a manifest names."""
        manifest = self.manifests.get(manifest_hash)
        if isinstance(manifest, BatchManifest):
            entries = list[Entry]()
            for part in self.manifest_parts(manifest):
                entries.extend((entry.user, entry.public_key) for entry in part.entries)
            return tuple(entries)
        if isinstance(manifest, TwoStageManifest):
            election = self.elections.get(manifest.election)
            keys = () if election is None else election.keys
            reporters = members_of(manifest.members, len(keys)) or ()
            return tuple((ANONYMOUS_ID, keys[i]) for i in reporters)
        if isinstance(manifest, MaskedManifest):
            return self.roster_entries(manifest, manifest.senders)
        return self.roster_entries(manifest, getattr(manifest, "members", b""))

    def manifest_parts(self, last: BatchManifest) -> list[BatchManifest]:
        """The parts of a manifest, in order, without those that nobody has sent."""
        parts = [last]
        before = self.manifests.get(last.previous_hash)
        while isinstance(before, BatchManifest):
            parts.append(before)
            before = self.manifests.get(before.previous_hash)
        return parts[::-1]

    def roster_entries(self, manifest: Message | None, bits: bytes) -> tuple[Entry, ...]:
        """The entries of a manifest's roster that a bitmap names."""
        roster = self.rosters.get(getattr(manifest, "digest", b""), ())
        return tuple(roster[i] for i in members_of(bits, len(roster)) or ())

    def counted_entries(self, stated: AcceptedReports | AcceptedMembers) -> tuple[Entry, ...]:
        """Whom a sum over a stated set counts.

        In two-stage the aggregator states helpers, and the reporters are counted.
        """
        manifest = self.manifests.get(stated.manifest_hash)
        entries = self.manifest_entries(stated.manifest_hash)
        if isinstance(manifest, BatchManifest):
            return tuple(entries[i] for i in members_of(stated.members, len(entries)) or ())
        if isinstance(manifest, TwoStageManifest):
            return entries
        return self.roster_entries(manifest, stated.members)

    def seed_senders(self, manifest_hash: bytes) -> tuple[Entry, ...]:
        """Who encrypted the seeds of a manifest, in its order."""
        manifest = self.manifests.get(manifest_hash)
        if not isinstance(manifest, TwoStageManifest):
            return self.manifest_entries(manifest_hash)
        roster = self.rosters.get(manifest.digest, ())
        ballot = draw_ballot(self.params, len(roster), self.elections[manifest.election])
        slots = ballot.after(manifest.gone)
        if slots is None:
            return ()
        sums = sums_by_helper(ballot, slots, SumScope.of(manifest))
        return tuple(roster[helper_sums.holder] for helper_sums in sums)

    def expected_entries(self, manifest_hash: bytes) -> tuple[Entry, ...]:
        """The participants that a result over this manifest must count."""
        return self.accepted.get(manifest_hash, self.manifest_entries(manifest_hash))


def hash_of(message: Message) -> bytes:
    """The hash by which a message is known."""
    return sha256(encode(message)).digest()


def _encrypted_shares(message: Message) -> tuple[bytes, ...]:
    """The encrypted parts of an upload."""
    return (*getattr(message, "encrypted_shares", ()), getattr(message, "encrypted_share", b""))


# --- messages to the aggregator -------------------------------------------------------------------


def _observe_roster(monitor: Monitor, proposal: RosterProposal) -> None:
    entries = tuple((entry.user, entry.public_key) for entry in proposal.entries)
    root = merkle_root(entry_leaves(entries))
    monitor.rosters[roster_digest(proposal.params, len(entries), root)] = entries


def _observe_manifest(monitor: Monitor, manifest: Message) -> None:
    monitor.manifests[hash_of(manifest)] = manifest


def _observe_seeds(
    monitor: Monitor, manifest: ExplicitManifest | MaskedManifest | TwoStageManifest
) -> None:
    """Seeds in a manifest say nothing about answers, but must be what clients sent."""
    _observe_manifest(monitor, manifest)
    if not monitor.arrived.issuperset(manifest.encrypted_shares):
        monitor.problems.append("The coordinator sent bytes that were spoiled in its storage")


def _observe_election_request(monitor: Monitor, request: ElectionRequest) -> None:
    monitor.releases += 1
    problem = "The aggregator was sent two requests for an election"
    monitor.check_once(("election",), encode(request), problem)


def _observe_part_shares(monitor: Monitor, batch: PartShares) -> None:
    """Encrypted shares leave only with a reservation, and only the same ones."""
    monitor.releases += 1
    monitor.summed |= set(monitor.manifest_entries(batch.manifest_hash))
    if batch.manifest_hash not in (*monitor.reserved, *monitor.claimed):
        monitor.problems.append(
            "encrypted shares were sent before the aggregator had recorded their manifest"
        )
    monitor.check_once(
        ("batch", batch.manifest_hash, batch.number),
        encode(batch),
        "two batches of one manifest were sent",
    )
    monitor.check_once(
        ("value",),
        batch.revealed,
        "The coordinator revealed two values: a second query about the same reports",
    )
    manifest = monitor.manifests.get(batch.manifest_hash)
    parts = list[BatchManifest]()
    if isinstance(manifest, BatchManifest):
        parts = monitor.manifest_parts(manifest)[batch.number :][:1]
    expected = [tuple(entry.encrypted_share_hash for entry in part.entries) for part in parts]
    hashes = tuple(sha256(encrypted_share).digest() for encrypted_share in batch.encrypted_shares)
    if [hashes] != expected:
        monitor.problems.append("encrypted shares were sent that are not those of the manifest")
    if not monitor.arrived.issuperset(batch.encrypted_shares):
        monitor.problems.append("The coordinator sent bytes that were spoiled in its storage")


def _observe_unmask_batch(monitor: Monitor, message: UnmaskBatch) -> None:
    """Masked: the keys of dropped members are recovered, so their vectors must be in no sum."""
    manifest = monitor.manifests.get(message.manifest_hash)
    if isinstance(manifest, MaskedManifest):
        inside = set(monitor.roster_entries(manifest, manifest.members))
        monitor.recovered |= inside - set(monitor.expected_entries(message.manifest_hash))


def _observe_sum(monitor: Monitor, message: AggregateShare | AggregateTotal) -> None:
    """The coordinator sends one sum, over enough people."""
    monitor.releases += 1
    monitor.check_once(("sum",), encode(message), "The coordinator sent two different sums")
    stated = monitor.sets.get(message.accepted_hash)
    counted = () if stated is None else monitor.counted_entries(stated)
    if isinstance(message, AggregateTotal):
        monitor.summed |= set(counted)
    # As a set: somebody who is named many times is one person.
    if len(set(counted)) < monitor.params.minimum:
        monitor.problems.append("The coordinator added up the shares of fewer than the minimum")


# --- statements of the aggregator -----------------------------------------------------------------


def _observe_election(monitor: Monitor, election: Election) -> None:
    monitor.elections[hash_of(election)] = election
    monitor.check_once(("held",), encode(election), "The aggregator held two elections")


def _observe_reservation(monitor: Monitor, reservation: Reservation) -> None:
    """One manifest; with a roster, further ones before the sum."""
    manifest = monitor.manifests.get(reservation.manifest_hash)
    # The reservation of an election has no manifest.
    if reservation.manifest_hash in monitor.reserved or manifest is None:
        return
    monitor.reserved.append(reservation.manifest_hash)
    if isinstance(manifest, BatchManifest):
        if len(monitor.reserved) > 1:
            monitor.problems.append("The aggregator recorded a second manifest")
    elif ("sum",) in monitor.once:
        monitor.problems.append(
            "The aggregator recorded a manifest although the coordinator had sent its sum"
        )


def _observe_accepted_members(monitor: Monitor, stated: AcceptedMembers) -> None:
    """One set per manifest, with every seed that an honest client encrypted for it."""
    manifest = monitor.manifests.get(stated.manifest_hash)
    accepted = monitor.roster_entries(manifest, stated.members)
    monitor.accepted.setdefault(stated.manifest_hash, monitor.counted_entries(stated))
    monitor.sets[hash_of(stated)] = stated
    monitor.check_once(
        ("included", stated.manifest_hash),
        encode(stated),
        "The aggregator named two sets for one manifest",
    )
    if monitor.is_s1_dishonest:
        return
    senders = monitor.seed_senders(stated.manifest_hash)
    seeds = getattr(manifest, "encrypted_shares", ())
    for sender, seed in zip(senders, seeds, strict=True):
        if sender not in accepted and seed in monitor.intact:
            monitor.problems.append(
                "The aggregator was sent a seed that a client had encrypted for something else"
            )


def _observe_verified_part(monitor: Monitor, part: VerifiedPart) -> None:
    """One answer about each report: two verifier shares would be about two queries."""
    place = part.manifest_hash, part.number
    monitor.verified[place] = part
    problem = "The aggregator said two things about the reports of one part"
    monitor.check_once(("verified", *place), encode(part), problem)


def _check_verified(monitor: Monitor, stated: AcceptedReports) -> None:
    """Where reports are proven, the set names what was said about all parts before."""
    manifest = monitor.manifests.get(stated.manifest_hash)
    if not monitor.params.proven or not isinstance(manifest, BatchManifest):
        return
    numbers = range(manifest.number + 1)
    parts = [monitor.verified.get((stated.manifest_hash, number)) for number in numbers]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or stated.verified != hash_of_verified(known):
        monitor.problems.append("The aggregator fixed a set over other parts than it had verified")


def _observe_accepted_reports(monitor: Monitor, stated: AcceptedReports) -> None:
    _check_verified(monitor, stated)
    monitor.accepted.setdefault(stated.manifest_hash, monitor.counted_entries(stated))
    monitor.sets[hash_of(stated)] = stated
    problem = "The aggregator fixed two sets of accepted reports"
    monitor.check_once(("included",), encode(stated), problem)


def _observe_published(monitor: Monitor, result: Published) -> None:
    """The result counts the accepted set, and each of its participants once."""
    monitor.check_once(("published",), encode(result), "The aggregator published two results")
    entries = monitor.expected_entries(result.manifest_hash)
    names = {_name(entry) for entry in entries}
    if not monitor.is_s1_rolled_back and names & monitor.withdrawn:
        monitor.problems.append(
            "a user is counted although the coordinator has acknowledged its withdrawal"
        )
    if not monitor.invalid.isdisjoint(key for _, key in entries):
        monitor.problems.append("an invalid report is counted")
    check_histogram(monitor, result, entries)
    if result.root != merkle_root(entry_leaves(entries)) or result.included != len(entries):
        monitor.problems.append("the published root or size is not that of the accepted set")


def _name(entry: Entry) -> bytes:
    """The name in `Monitor.sheets`: the user id, or the key of a reporter without one."""
    user, public_key = entry
    return public_key if user == ANONYMOUS_ID else user


def check_histogram(monitor: Monitor, result: Published, entries: Sequence[Entry]) -> None:
    """Check that the counts are those of these participants' answers."""
    expected = np.zeros(monitor.params.N, dtype=np.int64)
    for entry in entries:
        sheet = monitor.sheets[_name(entry)]
        if sheet is not None:
            expected += monitor.params.mechanism.cells_of(sheet)
    # In the first question every participant has an answer of its own.
    first = monitor.params.questionnaire.questions[0]
    is_counted_once = max(expected[: first.cells]) <= 1
    has_minimum = len(entries) >= monitor.params.minimum
    if list(result.counts) != expected.tolist() or not is_counted_once or not has_minimum:
        monitor.problems.append(
            f"counts {list(result.counts)} are not those of the accepted set, {expected.tolist()}"
        )


def _observe_aborted(monitor: Monitor, stated: Aborted) -> None:
    """No vector is false here, so a sum out of range means that the wrong things were added up."""
    if stated.code == EndCode.CORRUPT_SUM:
        monitor.problems.append("The aggregator computed a sum that is nobody's")
    if monitor.releases and not stated.spent and stated.code != EndCode.OVER_BUDGET:
        monitor.problems.append(
            "The aggregator states that nothing was spent although encrypted shares were sent"
        )


OBSERVERS: dict[type[Message], Callable[[Monitor, Any], None]] = {
    RosterProposal: _observe_roster,
    BatchManifest: _observe_manifest,
    ExplicitManifest: _observe_seeds,
    MaskedManifest: _observe_seeds,
    TwoStageManifest: _observe_seeds,
    ElectionRequest: _observe_election_request,
    Election: _observe_election,
    Reservation: _observe_reservation,
    PartShares: _observe_part_shares,
    UnmaskBatch: _observe_unmask_batch,
    VerifiedPart: _observe_verified_part,
    AcceptedReports: _observe_accepted_reports,
    AggregateShare: _observe_sum,
    AcceptedMembers: _observe_accepted_members,
    AggregateTotal: _observe_sum,
    Published: _observe_published,
    Aborted: _observe_aborted,
}
"""What the monitor does with each kind of message between the servers."""

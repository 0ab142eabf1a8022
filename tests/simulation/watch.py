"""What may never happen, whatever fails: an onlooker who sees every message and forgets nothing.

Every user holds an item of its own and noise is off, so the opened histogram must hold 0s and 1s and name exactly the
declared set; a 2 is a user counted twice. The watch reads what was SENT, delivered or not: a message on the way may
arrive at any time, and a curious server keeps what a crash made it forget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from faircount.core.errors import MalformedError
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
from faircount.protocol.wire.digests import members_of, merkle_root, roster_digest, roster_leaves
from faircount.protocol.wire.messages import Aborted, Published, Reservation, ShareBatch, Signed
from faircount.protocol.wire.roster_messages import RosterProposal

Line = tuple[bytes, bytes]
"""(user id, public key)."""


@dataclass
class Watch:
    """All that was said in one survey, and what was wrong with it."""

    params: SurveyParameters
    items: dict[bytes, int | None] = field(
        default_factory=dict
    )  # name in the declared set -> the item it counts for
    problems: list[str] = field(default_factory=list)
    rosters: dict[bytes, tuple[Line, ...]] = field(default_factory=dict)  # by digest
    manifests: dict[bytes, Message] = field(default_factory=dict)  # by hash
    receipted: list[bytes] = field(default_factory=list)  # hashes, in order
    elections: dict[bytes, Election] = field(default_factory=dict)  # by hash
    included: dict[bytes, tuple[Line, ...]] = field(
        default_factory=dict
    )  # claim hash -> whom the aggregator has named
    once: dict[tuple[object, ...], bytes] = field(
        default_factory=dict
    )  # what has one value for ever
    heard: set[bytes] = field(default_factory=set)  # blobs that reached the coordinator
    made: set[bytes] = field(
        default_factory=set
    )  # blobs for the aggregator that sound devices made
    broken: set[int] = field(default_factory=set)  # devices that are not sound
    invalid: set[bytes] = field(
        default_factory=set
    )  # keys of users who sent invalid reports, where those are proven
    withdrawn: set[bytes] = field(
        default_factory=set
    )  # names whose withdrawal the coordinator has acknowledged
    s1_lies: bool = False
    forgetful: bool = (
        False  # The coordinator was taken back to a backup, and may have forgotten a withdrawal
    )
    sets: dict[bytes, AcceptedReports | AcceptedMembers] = field(
        default_factory=dict
    )  # what the aggregator named, truly or not, by hash
    batches: int = 0  # messages to the aggregator that depend on answers
    opened: set[Line] = field(
        default_factory=set
    )  # users whose vectors are in a sum that the aggregator was sent
    recovered: set[Line] = field(
        default_factory=set
    )  # users whose mask keys the aggregator was sent shares of

    def said(self, message: Message) -> None:
        """A message between the servers was sent."""
        if not isinstance(message, Signed):
            return
        try:
            inner = parse(message.payload)
        except MalformedError:
            return
        reader = READERS.get(type(inner))
        if reader is not None and not (
            isinstance(inner, Aborted) and message.by == Party.COORDINATOR
        ):  # that is a wish
            reader(self, inner)

    def left_device(self, device: tuple[object, ...], body: Message) -> None:
        """A user's body was sent: the same natural key must always have the same bytes."""
        self.one_value(
            ("body", *device, type(body).__name__),
            encode(body),
            "a user drew or sent something twice",
        )
        if device[0] not in self.broken and isinstance(body, (PeerSum, MaskedSum, SlotSums)):
            self.made.update(_blobs(body))

    def reached_s1(self, message: Message) -> None:
        """A message came to the coordinator, changed on the way or not."""
        self.heard.update(_blobs(message))

    def one_value(self, key: tuple[object, ...], value: bytes, problem: str) -> None:
        """Note a problem if this key had another value before."""
        if self.once.setdefault(key, value) != value:
            self.problems.append(problem)

    def came_back(self, who: str, before: object, after: object) -> None:
        """A party crashed and was read from its bytes: it must be what was written."""
        if before != after:
            self.problems.append(f"{who} came back from its storage as another than it was")

    def look(self, s1: Coordinator, s2: Aggregator) -> None:
        """Check what the servers hold."""
        if self.opened & self.recovered:
            self.problems.append(
                "The aggregator was sent both a user's sum and shares of its mask key"
            )
        charge = s2.ledger.find(self.params.survey)
        if self.batches and charge is not None and charge.status is Status.RELEASED:
            self.problems.append("the budget was released although blobs were sent")
        if s1.phase is Phase.PUBLISHED and ("published",) not in self.once:
            self.problems.append("The coordinator shows a result that the aggregator never signed")
        if (
            s1.phase is Phase.PUBLISHED
            and s1.final is not None
            and s1.final.signed.by == Party.AGGREGATOR
        ):
            self.one_value(
                ("published",),
                s1.final.signed.payload,
                "The coordinator shows another result than the aggregator signed",
            )

    def lines_of(self, manifest_hash: bytes) -> tuple[Line, ...]:
        """The users that a claim names."""
        manifest = self.manifests.get(manifest_hash)
        if isinstance(manifest, BatchManifest):
            return tuple(
                (each.user, each.public_key)
                for part in self.parts_of(manifest)
                for each in part.entries
            )
        if isinstance(manifest, TwoStageManifest):
            keys = (
                self.elections[manifest.election].keys
                if manifest.election in self.elections
                else ()
            )
            return tuple(
                (ANONYMOUS_ID, keys[i]) for i in members_of(manifest.members, len(keys)) or ()
            )
        bits = (
            manifest.included
            if isinstance(manifest, MaskedManifest)
            else getattr(manifest, "members", b"")
        )
        return self.of_roster(manifest, bits)

    def parts_of(self, last: BatchManifest) -> list[BatchManifest]:
        """The parts of a claim, in order; without those that nobody has sent."""
        before = self.manifests.get(last.before)
        return [*(self.parts_of(before) if isinstance(before, BatchManifest) else []), last]

    def of_roster(self, manifest: Message | None, bits: bytes) -> tuple[Line, ...]:
        """The lines of a claim's roster that a bitmap names."""
        roster = self.rosters.get(getattr(manifest, "digest", b""), ())
        return tuple(roster[i] for i in members_of(bits, len(roster)) or ())

    def counted(self, stated: AcceptedReports | AcceptedMembers) -> tuple[Line, ...]:
        """Whom a sum over a set that the aggregator has named counts; in two-stage the aggregator names helpers, and reporters are counted."""
        manifest = self.manifests.get(stated.manifest_hash)
        lines = self.lines_of(stated.manifest_hash)
        if isinstance(manifest, BatchManifest):
            return tuple(lines[i] for i in members_of(stated.members, len(lines)) or ())
        return (
            lines
            if isinstance(manifest, TwoStageManifest)
            else self.of_roster(manifest, stated.members)
        )

    def sealers(self, manifest_hash: bytes) -> tuple[Line, ...]:
        """Who has sealed the seeds of a claim, in its order."""
        manifest = self.manifests.get(manifest_hash)
        if not isinstance(manifest, TwoStageManifest):
            return self.lines_of(manifest_hash)
        roster = self.rosters.get(manifest.digest, ())
        ballot = draw_ballot(self.params, len(roster), self.elections[manifest.election])
        slots = ballot.after(manifest.gone)
        return (
            ()
            if slots is None
            else tuple(
                roster[each.holder] for each in sums_by_helper(ballot, slots, SumScope.of(manifest))
            )
        )

    def declared(self, manifest_hash: bytes) -> tuple[Line, ...]:
        """The users that a result over this claim must count."""
        return self.included.get(manifest_hash, self.lines_of(manifest_hash))


def hash_of(what: Message) -> bytes:
    """The hash by which a message is known."""
    return sha256(encode(what)).digest()


def _blobs(message: Message) -> tuple[bytes, ...]:
    """The sealed parts of an upload."""
    return (*getattr(message, "encrypted_shares", ()), getattr(message, "encrypted_share", b""))


def _roster(watch: Watch, request: RosterProposal) -> None:
    lines = tuple((each.user, each.public_key) for each in request.entries)
    root = merkle_root(roster_leaves(lines))
    watch.rosters[roster_digest(request.params, len(lines), root)] = lines


def _claim(watch: Watch, manifest: Message) -> None:
    watch.manifests[hash_of(manifest)] = manifest


def _seeds(watch: Watch, manifest: ExplicitManifest | MaskedManifest | TwoStageManifest) -> None:
    """A claim with sealed seeds: they say nothing of answers, but must be what users sent."""
    _claim(watch, manifest)
    if not watch.heard.issuperset(manifest.encrypted_shares):
        watch.problems.append("The coordinator sent bytes that were spoiled in its storage")


def _receipt(watch: Watch, reservation: Reservation) -> None:
    """One claim; between peers another one before the sum."""
    new = reservation.manifest_hash
    if new in watch.receipted or new not in watch.manifests:  # of an election there is no claim
        return
    watch.receipted.append(new)
    if isinstance(watch.manifests.get(new), BatchManifest):
        if len(watch.receipted) > 1:
            watch.problems.append("The aggregator admitted a second claim")
    elif ("sum",) in watch.once:
        watch.problems.append(
            "The aggregator admitted a claim although the coordinator had sent its sum"
        )


def _batch(watch: Watch, batch: ShareBatch) -> None:
    """Blobs leave only with a receipt, and only the same ones."""
    watch.batches += 1
    watch.opened |= set(watch.lines_of(batch.manifest_hash))
    if batch.manifest_hash not in watch.receipted:
        watch.problems.append("blobs were sent before the aggregator had recorded their claim")
    watch.one_value(
        ("batch", batch.manifest_hash, batch.number),
        encode(batch),
        "two batches of one claim were sent",
    )
    watch.one_value(
        ("value",),
        batch.revealed,
        "The coordinator revealed two values: reports were asked a second question",
    )
    manifest = watch.manifests.get(batch.manifest_hash)
    hashes = tuple(sha256(encrypted_share).digest() for encrypted_share in batch.encrypted_shares)
    parts = (
        watch.parts_of(manifest)[batch.number :][:1] if isinstance(manifest, BatchManifest) else []
    )
    if [hashes] != [tuple(line.encrypted_share_hash for line in part.entries) for part in parts]:
        watch.problems.append("blobs were sent that are not those of the claim")
    if not watch.heard.issuperset(batch.encrypted_shares):
        watch.problems.append("The coordinator sent bytes that were spoiled in its storage")


def _help(watch: Watch, message: UnmaskBatch) -> None:
    """Masked: key shares are of users in the claimed set whom the aggregator has not named; their vectors must be in no sum."""
    manifest = watch.manifests.get(message.manifest_hash)
    if isinstance(manifest, MaskedManifest):
        inside = watch.of_roster(manifest, manifest.members)
        watch.recovered |= set(inside) - set(watch.declared(message.manifest_hash))


def _named(watch: Watch, stated: AcceptedMembers) -> None:
    """Peers: whose seeds open, once per claim. What a sound device has sealed for this set opens."""
    manifest = watch.manifests.get(stated.manifest_hash)
    lines = watch.of_roster(manifest, stated.members)
    watch.included.setdefault(stated.manifest_hash, watch.counted(stated))
    watch.sets[hash_of(stated)] = stated
    watch.one_value(
        ("included", stated.manifest_hash),
        encode(stated),
        "The aggregator named two sets for one claim",
    )
    pairs = zip(
        watch.sealers(stated.manifest_hash), getattr(manifest, "encrypted_shares", ()), strict=True
    )
    if not watch.s1_lies and any(
        line not in lines and encrypted_share in watch.made for line, encrypted_share in pairs
    ):
        watch.problems.append(
            "The aggregator was sent a seed that a user had sealed for something else"
        )


def _included(watch: Watch, stated: AcceptedReports) -> None:
    watch.included.setdefault(stated.manifest_hash, watch.counted(stated))
    watch.sets[hash_of(stated)] = stated
    watch.one_value(("included",), encode(stated), "The aggregator fixed two included sets")


def _sum(watch: Watch, message: AggregateShare | AggregateTotal) -> None:
    """The coordinator sends one sum, over enough people."""
    watch.batches += 1
    watch.one_value(("sum",), encode(message), "The coordinator sent two different sums")
    stated = watch.sets.get(message.accepted_hash)
    counted = () if stated is None else watch.counted(stated)
    if isinstance(message, AggregateTotal):
        watch.opened |= set(counted)
    if len(set(counted)) < watch.params.minimum:  # somebody who is named many times is one person
        watch.problems.append("The coordinator added up the shares of fewer than the minimum")


def _election(watch: Watch, held: Election) -> None:
    watch.elections[hash_of(held)] = held
    watch.one_value(("held",), encode(held), "The aggregator held two elections")


def _request(watch: Watch, request: ElectionRequest) -> None:
    watch.batches += 1
    watch.one_value(
        ("election",), encode(request), "The aggregator was sent two requests for an election"
    )


def _published(watch: Watch, result: Published) -> None:
    """The result is the declared set's, each of its users once."""
    watch.one_value(("published",), encode(result), "The aggregator published two results")
    lines = watch.declared(result.manifest_hash)
    if not watch.forgetful and not watch.withdrawn.isdisjoint(
        key if user == ANONYMOUS_ID else user for user, key in lines
    ):
        watch.problems.append(
            "a user is counted although the coordinator has acknowledged its withdrawal"
        )
    if not watch.invalid.isdisjoint(key for _, key in lines):
        watch.problems.append("an invalid report is counted")
    check_histogram(watch, result, lines)
    if result.root != merkle_root(roster_leaves(lines)) or result.included != len(lines):
        watch.problems.append("the published root or size is not that of the declared set")


def check_histogram(watch: Watch, result: Published, lines: Sequence[Line]) -> None:
    """Whether the counts are those of these users' items."""
    wanted = [0] * watch.params.N
    for user, key in lines:
        item = watch.items[key if user == ANONYMOUS_ID else user]
        if item is not None:
            wanted[item] += 1
    if list(result.counts) != wanted or max(wanted) > 1 or len(lines) < watch.params.minimum:
        watch.problems.append(
            f"counts {list(result.counts)} are not those of the declared set, {wanted}"
        )


def _aborted(watch: Watch, stated: Aborted) -> None:
    """Nobody lies about its vector here, so a sum out of range means that the protocol added up the wrong things."""
    if stated.code == EndCode.CORRUPT_SUM:
        watch.problems.append("The aggregator opened a sum that is nobody's")
    if watch.batches and not stated.spent and stated.code != EndCode.OVER_BUDGET:
        watch.problems.append("The aggregator says that nothing was spent although blobs were sent")


READERS: dict[type[Message], Callable[[Watch, Any], None]] = {
    RosterProposal: _roster,
    BatchManifest: _claim,
    ExplicitManifest: _seeds,
    MaskedManifest: _seeds,
    TwoStageManifest: _seeds,
    ElectionRequest: _request,
    Election: _election,
    Reservation: _receipt,
    ShareBatch: _batch,
    UnmaskBatch: _help,
    AcceptedReports: _included,
    AggregateShare: _sum,
    AcceptedMembers: _named,
    AggregateTotal: _sum,
    Published: _published,
    Aborted: _aborted,
}
"""What the watch makes of each kind of message between the servers."""

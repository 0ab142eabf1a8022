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
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit.messages import PeersClaim, SumUpload
from faircount.protocol.topologies.masked.messages import HelpBatch, MaskedClaim, MaskedSum
from faircount.protocol.topologies.peers.messages import PeersIncluded, Total
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum
from faircount.protocol.topologies.two_stage.calls import Called, parts
from faircount.protocol.topologies.two_stage.election import draw
from faircount.protocol.topologies.two_stage.messages import Election, ElectionRequest, SlotSums, TwoStageClaim
from faircount.protocol.topologies.two_stage.user import NOBODY
from faircount.protocol.wire.codec import Message, Party, encode, parse
from faircount.protocol.wire.digests import members_of, merkle_root, roster_digest, roster_leaves
from faircount.protocol.wire.messages import Aborted, Batch, Published, Receipt, Signed
from faircount.protocol.wire.roster_messages import SealRequest

Line = tuple[bytes, bytes]
"""(user id, public key)."""


@dataclass
class Watch:
    """All that was said in one survey, and what was wrong with it."""

    params: SurveyParameters
    items: dict[bytes, int | None] = field(default_factory=dict)  # name in the declared set -> the item it counts for
    problems: list[str] = field(default_factory=list)
    rosters: dict[bytes, tuple[Line, ...]] = field(default_factory=dict)  # by digest
    claims: dict[bytes, Message] = field(default_factory=dict)  # by hash
    receipted: list[bytes] = field(default_factory=list)  # hashes, in order
    elections: dict[bytes, Election] = field(default_factory=dict)  # by hash
    included: dict[bytes, tuple[Line, ...]] = field(default_factory=dict)  # claim hash -> whom S2 has named
    once: dict[tuple[object, ...], bytes] = field(default_factory=dict)  # what has one value for ever
    heard: set[bytes] = field(default_factory=set)  # blobs that reached S1
    made: set[bytes] = field(default_factory=set)  # blobs for S2 that sound devices made
    broken: set[int] = field(default_factory=set)  # devices that are not sound
    invalid: set[bytes] = field(default_factory=set)  # keys of users who sent invalid reports, where those are proven
    withdrawn: set[bytes] = field(default_factory=set)  # names whose withdrawal S1 has acknowledged
    s1_lies: bool = False
    forgetful: bool = False  # S1 was taken back to a backup, and may have forgotten a withdrawal
    sets: dict[bytes, Included | PeersIncluded] = field(default_factory=dict)  # what S2 named, truly or not, by hash
    batches: int = 0  # messages to S2 that depend on answers
    opened: set[Line] = field(default_factory=set)  # users whose vectors are in a sum that S2 was sent
    recovered: set[Line] = field(default_factory=set)  # users whose mask keys S2 was sent shares of

    def said(self, message: Message) -> None:
        """A message between the servers was sent."""
        if not isinstance(message, Signed):
            return
        try:
            inner = parse(message.payload)
        except MalformedError:
            return
        reader = READERS.get(type(inner))
        if reader is not None and not (isinstance(inner, Aborted) and message.by == Party.S1):  # that is a wish
            reader(self, inner)

    def left_device(self, device: tuple[object, ...], body: Message) -> None:
        """A user's body was sent: the same natural key must always have the same bytes."""
        self.one_value(("body", *device, type(body).__name__), encode(body), "a user drew or sent something twice")
        if device[0] not in self.broken and isinstance(body, (SumUpload, MaskedSum, SlotSums)):
            self.made.update(_blobs(body))

    def reached_s1(self, message: Message) -> None:
        """A message came to S1, changed on the way or not."""
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
            self.problems.append("S2 was sent both a user's sum and shares of its mask key")
        charge = s2.ledger.find(self.params.survey)
        if self.batches and charge is not None and charge.status is Status.RELEASED:
            self.problems.append("the budget was released although blobs were sent")
        if s1.state is State.PUBLISHED and ("published",) not in self.once:
            self.problems.append("S1 shows a result that S2 never signed")
        if s1.state is State.PUBLISHED and s1.final is not None and s1.final.signed.by == Party.S2:
            self.one_value(("published",), s1.final.signed.payload, "S1 shows another result than S2 signed")

    def lines_of(self, claim_hash: bytes) -> tuple[Line, ...]:
        """The users that a claim names."""
        claim = self.claims.get(claim_hash)
        if isinstance(claim, ServersClaim):
            return tuple((each.user, each.public_key) for part in self.parts_of(claim) for each in part.entries)
        if isinstance(claim, TwoStageClaim):
            keys = self.elections[claim.election].keys if claim.election in self.elections else ()
            return tuple((NOBODY, keys[i]) for i in members_of(claim.members, len(keys)) or ())
        bits = claim.included if isinstance(claim, MaskedClaim) else getattr(claim, "members", b"")
        return self.of_roster(claim, bits)

    def parts_of(self, last: ServersClaim) -> list[ServersClaim]:
        """The parts of a claim, in order; without those that nobody has sent."""
        before = self.claims.get(last.before)
        return [*(self.parts_of(before) if isinstance(before, ServersClaim) else []), last]

    def of_roster(self, claim: Message | None, bits: bytes) -> tuple[Line, ...]:
        """The lines of a claim's roster that a bitmap names."""
        roster = self.rosters.get(getattr(claim, "digest", b""), ())
        return tuple(roster[i] for i in members_of(bits, len(roster)) or ())

    def counted(self, stated: Included | PeersIncluded) -> tuple[Line, ...]:
        """Whom a sum over a set that S2 has named counts; in two-stage S2 names helpers, and reporters are counted."""
        claim = self.claims.get(stated.claim_hash)
        lines = self.lines_of(stated.claim_hash)
        if isinstance(claim, ServersClaim):
            return tuple(lines[i] for i in members_of(stated.members, len(lines)) or ())
        return lines if isinstance(claim, TwoStageClaim) else self.of_roster(claim, stated.members)

    def sealers(self, claim_hash: bytes) -> tuple[Line, ...]:
        """Who has sealed the seeds of a claim, in its order."""
        claim = self.claims.get(claim_hash)
        if not isinstance(claim, TwoStageClaim):
            return self.lines_of(claim_hash)
        roster = self.rosters.get(claim.digest, ())
        ballot = draw(self.params, len(roster), self.elections[claim.election])
        slots = ballot.after(claim.gone)
        return () if slots is None else tuple(roster[each.holder] for each in parts(ballot, slots, Called.by(claim)))

    def declared(self, claim_hash: bytes) -> tuple[Line, ...]:
        """The users that a result over this claim must count."""
        return self.included.get(claim_hash, self.lines_of(claim_hash))


def hash_of(what: Message) -> bytes:
    """The hash by which a message is known."""
    return sha256(encode(what)).digest()


def _blobs(message: Message) -> tuple[bytes, ...]:
    """The sealed parts of an upload."""
    return (*getattr(message, "blobs", ()), getattr(message, "blob", b""))


def _roster(watch: Watch, request: SealRequest) -> None:
    lines = tuple((each.user, each.public_key) for each in request.entries)
    root = merkle_root(roster_leaves(lines))
    watch.rosters[roster_digest(request.params, len(lines), root)] = lines


def _claim(watch: Watch, claim: Message) -> None:
    watch.claims[hash_of(claim)] = claim


def _seeds(watch: Watch, claim: PeersClaim | MaskedClaim | TwoStageClaim) -> None:
    """A claim with sealed seeds: they say nothing of answers, but must be what users sent."""
    _claim(watch, claim)
    if not watch.heard.issuperset(claim.blobs):
        watch.problems.append("S1 sent bytes that were spoiled in its storage")


def _receipt(watch: Watch, receipt: Receipt) -> None:
    """One claim; between peers another one before the sum."""
    new = receipt.claim_hash
    if new in watch.receipted or new not in watch.claims:  # of an election there is no claim
        return
    watch.receipted.append(new)
    if isinstance(watch.claims.get(new), ServersClaim):
        if len(watch.receipted) > 1:
            watch.problems.append("S2 admitted a second claim")
    elif ("sum",) in watch.once:
        watch.problems.append("S2 admitted a claim although S1 had sent its sum")


def _batch(watch: Watch, batch: Batch) -> None:
    """Blobs leave only with a receipt, and only the same ones."""
    watch.batches += 1
    watch.opened |= set(watch.lines_of(batch.claim_hash))
    if batch.claim_hash not in watch.receipted:
        watch.problems.append("blobs were sent before S2 had recorded their claim")
    watch.one_value(("batch", batch.claim_hash, batch.number), encode(batch), "two batches of one claim were sent")
    watch.one_value(("value",), batch.revealed, "S1 revealed two values: reports were asked a second question")
    claim = watch.claims.get(batch.claim_hash)
    hashes = tuple(sha256(blob).digest() for blob in batch.blobs)
    parts = watch.parts_of(claim)[batch.number :][:1] if isinstance(claim, ServersClaim) else []
    if [hashes] != [tuple(line.blob_hash for line in part.entries) for part in parts]:
        watch.problems.append("blobs were sent that are not those of the claim")
    if not watch.heard.issuperset(batch.blobs):
        watch.problems.append("S1 sent bytes that were spoiled in its storage")


def _help(watch: Watch, message: HelpBatch) -> None:
    """Masked: key shares are of users in the claimed set whom S2 has not named; their vectors must be in no sum."""
    claim = watch.claims.get(message.claim_hash)
    if isinstance(claim, MaskedClaim):
        inside = watch.of_roster(claim, claim.members)
        watch.recovered |= set(inside) - set(watch.declared(message.claim_hash))


def _named(watch: Watch, stated: PeersIncluded) -> None:
    """Peers: whose seeds open, once per claim. What a sound device has sealed for this set opens."""
    claim = watch.claims.get(stated.claim_hash)
    lines = watch.of_roster(claim, stated.members)
    watch.included.setdefault(stated.claim_hash, watch.counted(stated))
    watch.sets[hash_of(stated)] = stated
    watch.one_value(("included", stated.claim_hash), encode(stated), "S2 named two sets for one claim")
    pairs = zip(watch.sealers(stated.claim_hash), getattr(claim, "blobs", ()), strict=True)
    if not watch.s1_lies and any(line not in lines and blob in watch.made for line, blob in pairs):
        watch.problems.append("S2 was sent a seed that a user had sealed for something else")


def _included(watch: Watch, stated: Included) -> None:
    watch.included.setdefault(stated.claim_hash, watch.counted(stated))
    watch.sets[hash_of(stated)] = stated
    watch.one_value(("included",), encode(stated), "S2 fixed two included sets")


def _sum(watch: Watch, message: ShareSum | Total) -> None:
    """S1 sends one sum, over enough people."""
    watch.batches += 1
    watch.one_value(("sum",), encode(message), "S1 sent two different sums")
    stated = watch.sets.get(message.included_hash)
    counted = () if stated is None else watch.counted(stated)
    if isinstance(message, Total):
        watch.opened |= set(counted)
    if len(set(counted)) < watch.params.minimum:  # somebody who is named many times is one person
        watch.problems.append("S1 added up the shares of fewer than the minimum")


def _election(watch: Watch, held: Election) -> None:
    watch.elections[hash_of(held)] = held
    watch.one_value(("held",), encode(held), "S2 held two elections")


def _request(watch: Watch, request: ElectionRequest) -> None:
    watch.batches += 1
    watch.one_value(("election",), encode(request), "S2 was sent two requests for an election")


def _published(watch: Watch, result: Published) -> None:
    """The result is the declared set's, each of its users once."""
    watch.one_value(("published",), encode(result), "S2 published two results")
    lines = watch.declared(result.claim_hash)
    if not watch.forgetful and not watch.withdrawn.isdisjoint(key if user == NOBODY else user for user, key in lines):
        watch.problems.append("a user is counted although S1 has acknowledged its withdrawal")
    if not watch.invalid.isdisjoint(key for _, key in lines):
        watch.problems.append("an invalid report is counted")
    check_histogram(watch, result, lines)
    if result.root != merkle_root(roster_leaves(lines)) or result.included != len(lines):
        watch.problems.append("the published root or size is not that of the declared set")


def check_histogram(watch: Watch, result: Published, lines: Sequence[Line]) -> None:
    """Whether the counts are those of these users' items."""
    wanted = [0] * watch.params.N
    for user, key in lines:
        item = watch.items[key if user == NOBODY else user]
        if item is not None:
            wanted[item] += 1
    if list(result.counts) != wanted or max(wanted) > 1 or len(lines) < watch.params.minimum:
        watch.problems.append(f"counts {list(result.counts)} are not those of the declared set, {wanted}")


def _aborted(watch: Watch, stated: Aborted) -> None:
    """Nobody lies about its vector here, so a sum out of range means that the protocol added up the wrong things."""
    if stated.reason == b"corrupt":
        watch.problems.append("S2 opened a sum that is nobody's")
    if watch.batches and not stated.spent and stated.reason != b"over budget":
        watch.problems.append("S2 says that nothing was spent although blobs were sent")


READERS: dict[type[Message], Callable[[Watch, Any], None]] = {
    SealRequest: _roster,
    ServersClaim: _claim,
    PeersClaim: _seeds,
    MaskedClaim: _seeds,
    TwoStageClaim: _seeds,
    ElectionRequest: _request,
    Election: _election,
    Receipt: _receipt,
    Batch: _batch,
    HelpBatch: _help,
    Included: _included,
    ShareSum: _sum,
    PeersIncluded: _named,
    Total: _sum,
    Published: _published,
    Aborted: _aborted,
}
"""What the watch makes of each kind of message between the servers."""

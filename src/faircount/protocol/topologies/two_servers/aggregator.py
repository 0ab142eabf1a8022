"""S2 in the `servers` topology: it opens the seeds of one batch, fixes whom to count, and adds S1's one sum.

Claim and blobs come in parts, in order; S2 says which one it waits for, and a part is all that it has in memory. Where
reports are proven it reveals its value with the receipt, asks the one question, and counts valid reports alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import zip_longest

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.core.errors import ShareError
from faircount.mechanisms.verified import Tally, proves_reports
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.write_once import WriteOnce, part_key
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.claims import claimed_size, entries_of, is_part, part_of
from faircount.protocol.topologies.two_servers.messages import (
    Included,
    Judged,
    Next,
    ServersClaim,
    ShareSum,
    Submitter,
)
from faircount.protocol.topologies.two_servers.reports import (
    Release,
    blocks,
    form_of,
    holds,
    pack_answers,
    question_of,
    unpack_answers,
    vector_size,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, seal_info
from faircount.protocol.topologies.two_servers.validity import Question
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import Peaks, bitmap, bits_of, marks_of, members_of, roster_leaves
from faircount.protocol.wire.messages import Batch, Reason, Receipt, Signed, rejected
from faircount.protocol.wire.packed_rows import sum_parts
from faircount.protocol.wire.roster_messages import SealRequest
from faircount.protocol.wire.signing import sign
from faircount.protocol.wire.stored import TopologyState
from faircount.sharing.field import add, check, dtype_for
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import pack, unpack

Holder = tuple[Submitter, bytes]
"""A line of the claim, and the seed that its user sealed to S2."""


@dataclass(frozen=True)
class Recorded(TopologyState):
    """How far S2 has come with a claim that is not whole: how many lines invitations vouch for, whom it named last."""

    stored_version = 1
    vouched: int = 0
    last_user: bytes = b""


@dataclass(frozen=True)
class Opening(TopologyState):
    """How far S2 has come with the blobs: of how many parts, and the tree over those whom it counts."""

    stored_version = 1
    parts: int = 0
    counted: Peaks = field(default_factory=Peaks)


def on_claim(s: Aggregator, claim: ServersClaim) -> aggregator.Step:
    """Check the frozen list and record it; entries that no invitation vouches for are left out of the set later."""
    name = sha256(encode(claim)).digest()
    receipt = s.last(Receipt)
    if s.state not in FINAL and name in s.earlier:  # S1 begins again with what it said before
        return s, (_next(s, s.earlier[-1], len(s.earlier)) if receipt is None else receipt.signed,)
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    if claim.digest != s.params.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "the claim was made for other parameters"),)
    begun = s if claim.number else replace(s, earlier=(), own=Recorded())
    so_far = begun.own if isinstance(begun.own, Recorded) else Recorded()
    if (claim.number, claim.before) != (len(begun.earlier), next(reversed(begun.earlier), bytes(32))):
        return s, (rejected(Reason.EARLY, "send the parts of a claim in order, from the first"),)
    if not is_part(claim) or any(each.user <= so_far.last_user for each in claim.entries[:1]):
        return s, (rejected(Reason.MALFORMED, "a claim is ascending by user id, each once, in parts of one size"),)
    if claim.size > s.params.n_max:
        return s, (rejected(Reason.FULL, f"more than {s.params.n_max} users"),)
    vouched = so_far.vouched + sum(aggregator.believed(s, each) for each in claim.entries)
    if claim.more:
        own = Recorded(vouched, claim.entries[-1].user)
        after = replace(
            begun, earlier=(*begun.earlier, name), kept=s.kept.exchanged(part_key(claim.number), claim), own=own
        )
        return after, (_next(after, name, len(after.earlier)),)
    after, out = _on_whole(begun, claim, vouched)
    granted = after.claim is not None or after.state in FINAL
    return (replace(after, own=None) if granted else s), out  # refused, S2 stands where it stood


def _on_whole(s: Aggregator, claim: ServersClaim, vouched: int) -> aggregator.Step:
    """The last part has come: the claim is admitted, or refused."""
    if not _different_keys(s, claim):
        return s, (rejected(Reason.MALFORMED, "two users have the same public key"),)
    if s.params.proven and not holds(s.params, Party.S2, s.committed):
        return aggregator.abort(s, "S2 does not hold the value that it has committed to", spent=False)
    revealed = s.committed if s.params.proven else bytes(32)
    return aggregator.admit(s, claim, vouched, None, (State.SEALED, State.SUBMITTING), revealed)


def _different_keys(s: Aggregator, claim: ServersClaim) -> bool:
    """Whether no two lines of a claim have the same key. Whole keys are held only where their first 8 bytes agree."""

    def keys() -> Iterator[bytes]:
        return (line.public_key for line in entries_of(replace(s, claim=claim)))

    beginnings = np.fromiter((int.from_bytes(each[:8], "big") for each in keys()), np.uint64)
    found, times = np.unique(beginnings, return_counts=True)
    doubtful = {int(each).to_bytes(8, "big") for each in found[times > 1]}
    whole = [each for each in keys() if each[:8] in doubtful] if doubtful else []
    return len(set(whole)) == len(whole)


def _next(s: Aggregator, recorded: bytes, number: int) -> Signed:
    """What S2 waits for."""
    return sign(s.key, Party.S2, Next(s.params.survey, recorded, number))


def no_roster(s: Aggregator, _: SealRequest) -> aggregator.Step:
    """There is none here, and nothing to reveal for one: a value that is known before the claim would forge votes."""
    return s, (rejected(Reason.MALFORMED, "no message for this survey in this topology"),)


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open the blobs of a part and note whom they count; after the last part fix the set. Done again it is the same."""
    stored = s.last(Included)
    if s.state in FINAL or (stored is not None and batch.claim_hash == s.claim_hash):
        return s, ((stored.signed,) if stored is not None and s.state is State.OPENED else s.last_words)
    if s.claim is None:
        return s, (rejected(Reason.EARLY, "claim a batch before sending it"),)
    if batch.claim_hash != s.claim_hash:
        return s, (rejected(Reason.CONFLICT, "these are blobs of another claim"),)
    done = s.own if isinstance(s.own, Opening) else Opening()
    if batch.number != done.parts:
        return s, (_next(s, s.claim_hash, done.parts),)
    entries = part_of(s, batch.number).entries
    hashes = (each.blob_hash for each in entries)
    if any(blob is None or sha256(blob).digest() != wanted for blob, wanted in zip_longest(batch.blobs, hashes)):
        return s, (rejected(Reason.WRONG_BLOBS, "these are not the blobs that were claimed: send them again"),)
    return _on_part(replace(s, handed_over=True), entries, batch, done)


def _on_part(s: Aggregator, entries: Sequence[Submitter], batch: Batch, done: Opening) -> aggregator.Step:
    """The blobs of a part that stand in the claim."""
    form, told = form_of(s.params.mechanism), None
    if form is not None:
        if not holds(s.params, Party.S1, batch.revealed):
            return aggregator.abort(s, "S1 revealed another value than the one that it had committed to", spent=True)
        told = unpack_answers(batch.answers, form, len(entries))
        if told is None:
            return s, (rejected(Reason.MALFORMED, "these are no answers about the claimed reports: send them again"),)
    note, votes = _noted(s, _opened(s, entries, batch), len(entries), batch.revealed, told)
    lines = (entries[at] for at in members_of(note.members, len(entries)) or ())
    counted = done.counted.grown(roster_leaves(((each.user, each.public_key) for each in lines), done.counted.count))
    held = votes if s.held is None else add(s.held, votes, s.params.q)
    own, notes = Opening(done.parts + 1, counted), s.notes.exchanged(part_key(done.parts), note)
    after = replace(s, held=held, own=own, notes=notes)
    if own.parts <= len(s.earlier):
        return after, (_next(after, s.claim_hash, own.parts),)
    return _fix_set(after, counted, batch.revealed)


def _noted(
    s: Aggregator, opened: Mapping[int, Holder], n: int, revealed: bytes, told: Residues | None
) -> tuple[Judged, Residues]:
    """What is noted of a part of n lines, and the sum over those who count: all that opened, or the valid if proven."""
    form, places, holders = form_of(s.params.mechanism), list(opened), list(opened.values())
    if form is None or told is None:
        return Judged(b"", bitmap(places, n), b"", b""), _sum_expanded(s, holders)
    asked = question_of(s.params, form, (revealed, s.committed))
    mine, valid, tally = _answered(s, asked, holders, told[places])
    counted = (at for at, fine in zip(places, valid, strict=True) if fine)
    coins = pack(tally.coins.reshape(-1), s.params.q)
    return Judged(bitmap(places, n), bitmap(counted, n), pack_answers(mine, form), coins), tally.votes


def _fix_set(s: Aggregator, counted: Peaks, revealed: bytes) -> aggregator.Step:
    """Every blob was looked at: sign the set for good, with S2's part of the sum kept."""
    if not aggregator.still_private(s, counted.count):
        return aggregator.abort(s, "too few blobs open", spent=True)
    found = (s.notes[part_key(number)] for number in range(len(s.earlier) + 1))
    notes = [each for each in found if isinstance(each, Judged)]
    stated = Included(s.params.survey, s.claim_hash, _joined(s, (each.members for each in notes)), counted.root)
    held = s.held
    if s.params.proven and held is not None:
        answers = b"".join(each.answers for each in notes)
        stated = replace(stated, opened=_joined(s, (each.opened for each in notes)), answers=answers)
        held = _released(s, held, notes, Release.of(s.params, (revealed, s.committed), s.claim_hash, stated.members))
    return aggregator.say(s, stated, held=held, own=None, state=advance(s.state, State.OPENED))


def _joined(s: Aggregator, bitmaps: Iterable[bytes]) -> bytes:
    """Bitmaps over the parts of the claim as one over the whole."""
    n = claimed_size(s)
    sizes = (min(messages.LINES, n - first) for first in range(0, n, messages.LINES))
    marks = (marks_of(bits, size) for bits, size in zip(bitmaps, sizes, strict=True))
    return bits_of(np.concatenate([each for each in marks if each is not None]))


def _released(s: Aggregator, votes: Residues, notes: Iterable[Judged], release: Release) -> Residues:
    """S2's part of the one sum of proven reports."""
    m, q = release.mechanism.coins_per_user, s.params.q
    members = ((each.coins, int.from_bytes(each.members, "big").bit_count()) for each in notes)
    coins = [unpack(data, q, count * m).reshape(count, m) for data, count in members]
    return release.part(Party.S2, s.noise_secret, Tally(votes, np.concatenate(coins)))


def _opened(s: Aggregator, entries: Sequence[Submitter], batch: Batch) -> dict[int, Holder]:
    """Those of a part whose blob opens, by place, each with its seed."""
    pairs = enumerate(zip(entries, batch.blobs, strict=True))
    found = ((at, each, _open(s, each, blob)) for at, (each, blob) in pairs)
    return {at: (each, seed) for at, each, seed in found if seed is not None}


def _open(s: Aggregator, each: Submitter, blob: bytes) -> bytes | None:
    if not aggregator.believed(s, each):
        return None
    secret = s.sealing.agree(s.box, each.public_key)
    info = seal_info(s.params, each.user, each.public_key, each.commitment)
    seed = None if secret is None else s.sealing.open(secret, s.params.digest, info, blob)
    return seed if seed is not None and len(seed) == SEED_BYTES else None


def _expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    """S2's shares of these users' vectors, one row each."""
    seeds = [seed for _, seed in holders]
    infos = [expansion_info(s.params, each.user, each.public_key) for each, _ in holders]
    return s.sealing.stretch_rows(seeds, s.params.digest, infos, s.params.q, vector_size(s.params.mechanism))


def _sum_expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    parts = (_expanded(s, holders[some]) for some in blocks(len(holders), s.params.N))
    return sum_parts(parts, s.params.q, s.params.N)


def _answered(
    s: Aggregator, asked: Question, holders: Sequence[Holder], told: Residues
) -> tuple[Residues, Marks, Tally]:
    """S2's answers about its shares, which reports are valid, and the tally of those; whole rows are soon forgotten."""
    answers = np.empty((len(holders), asked.form.answers), dtype=dtype_for(s.params.q))
    valid = np.empty(len(holders), dtype=np.bool_)

    def valid_rows() -> Iterator[Residues]:
        for some in blocks(len(holders), asked.form.width):
            rows = _expanded(s, holders[some])
            answers[some] = asked.answers(rows)
            valid[some] = asked.accepts(told[some], answers[some])
            yield rows[valid[some]]

    tally = proves_reports(s.params.mechanism).tally(valid_rows())
    return answers, valid, tally


def on_sum(s: Aggregator, message: ShareSum) -> aggregator.Step:
    """S1's one sum: the result, or an abort if it cannot be one. Another sum later changes nothing."""
    stated = s.last(Included)
    if s.state in FINAL:
        return s, s.last_words
    if stated is None or s.held is None or not isinstance(stated.says, Included):
        return s, (rejected(Reason.EARLY, "send the blobs first"),)
    if message.included_hash != sha256(stated.signed.payload).digest():
        return s, (rejected(Reason.WRONG_DIGEST, "the sum was made over another set"),)
    try:
        shares = unpack(message.total, s.params.q, s.params.N)
    except ShareError:
        return s, (rejected(Reason.MALFORMED, "the sum is not a packed vector"),)
    claimed = claimed_size(s)
    included = len(members_of(stated.says.members, claimed) or ())
    total = add(check(shares, s.params.q), s.held, s.params.q)
    return aggregator.publish(s, total, included, None, stated.says.root, refused=claimed - included)


def apart(s: Aggregator, message: Message) -> Aggregator | None:
    """S2 with what a step about one part of a claim needs of its stores; None for a step that may need all of them."""
    entries: Sequence[Submitter] = ()
    parts, notes = range(0), range(0)
    if isinstance(message, ServersClaim) and (message.more or not message.number):
        entries = message.entries
    elif isinstance(message, Batch) and s.state is State.CLAIMED and message.number <= len(s.earlier):
        entries, last = part_of(s, message.number).entries, len(s.earlier)
        parts = range(message.number, min(message.number + 1, last))
        notes = range(last if message.number == last else 0)
    elif not isinstance(message, Batch | ShareSum):
        return None
    known = {each.user: s.mac_keys.get(each.user) for each in entries}
    keys = {user: key for user, key in known.items() if key is not None}
    return replace(s, mac_keys=keys, kept=_some(s.kept, parts), notes=_some(s.notes, notes))


def _some(store: WriteOnce[bytes, Message], numbers: range) -> WriteOnce[bytes, Message]:
    found = {part_key(number): store.get(part_key(number)) for number in numbers}
    return WriteOnce({key: value for key, value in found.items() if value is not None})


S2: Mapping[type[Message], aggregator.Handler] = {
    SealRequest: no_roster,
    ServersClaim: on_claim,
    Batch: on_batch,
    ShareSum: on_sum,
}

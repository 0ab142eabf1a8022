"""The aggregator in the `servers` topology: it opens the seeds of one batch, fixes whom to count,
and adds the coordinator's one sum.

Claim and blobs come in parts, in order; the aggregator says which one it waits for, and a part
is all that it has in memory. Where reports are proven it reveals its value with the receipt,
asks the one question, and counts valid reports alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import zip_longest

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ShareError
from faircount.mechanisms.verified import Tally, as_verified
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator, AggregatorRules
from faircount.protocol.roles.rows import MemoryRows, RowWrite, StepRows, part_key
from faircount.protocol.survey.endings import OTHER_VALUE, EndCode, Ending, too_few_readable
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import (
    PartsState,
    earlier_hashes,
    get_part,
    is_valid_part,
    iterate_entries,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    ManifestEntry,
    NextPartRequest,
    PartVerdicts,
)
from faircount.protocol.topologies.two_servers.reports import (
    Release,
    derive_query,
    form_of,
    opens_commitment,
    pack_verifier_shares,
    row_blocks,
    unpack_verifier_shares,
    vector_size,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, seed_info
from faircount.protocol.topologies.two_servers.validity import Query
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import (
    MerkleFrontier,
    bitmap,
    bits_of,
    marks_of,
    members_of,
    roster_leaves,
)
from faircount.protocol.wire.messages import Reason, Reservation, ShareBatch, Signed, reject
from faircount.protocol.wire.packed_rows import sum_batches
from faircount.protocol.wire.roster_messages import RosterProposal
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import add, check_residues, dtype_for
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import pack, unpack

Holder = tuple[ManifestEntry, bytes]
"""A line of the claim, and the seed that its user sealed to the aggregator."""


@dataclass(frozen=True)
class ServersProgress(PartsState):
    """How far the aggregator has come with the parts of a claim, and later with those of its
    blobs.
    """

    stored_tag = "servers-aggregator"
    vouched: int = 0  # lines for which invitations vouch
    last_user: bytes = b""  # of the newest part of the claim
    opened: int = 0  # parts of the blobs
    counted: MerkleFrontier = field(
        default_factory=MerkleFrontier
    )  # the tree over those whom the aggregator counts


def _progress(s: Aggregator) -> ServersProgress:
    return s.topology_state if isinstance(s.topology_state, ServersProgress) else ServersProgress()


class TwoServersAggregator(AggregatorRules):
    """The aggregator of `servers`: a claim and its blobs in parts, then one sum."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """Claim, blobs and the sum; there is no roster."""
        return {
            **super().handlers(),
            BatchManifest: self.on_claim,
            ShareBatch: self.on_batch,
            AggregateShare: self.on_sum,
        }

    # check: no-roster - a sealed roster would reveal the value too early
    def confirm_roster(self, s: Aggregator, rows: StepRows, _: RosterProposal) -> aggregator.Change:
        """There is none here, and nothing to reveal for one: a value that is known before the claim
        would forge votes.
        """
        return s, (reject(Reason.MALFORMED, "no message for this survey in this topology"),)

    def on_claim(self, s: Aggregator, rows: StepRows, manifest: BatchManifest) -> aggregator.Change:
        """Check the frozen list and record it; entries that no invitation vouches for are left out
        of the set later.
        """
        name = sha256(encode(manifest)).digest()
        reservation = s.last(Reservation)
        if s.phase not in FINAL and name in earlier_hashes(
            s
        ):  # The coordinator begins again with what it said before
            earlier = earlier_hashes(s)
            return s, (
                _next(s, earlier[-1], len(earlier)) if reservation is None else reservation.signed,
            )
        known = aggregator.repeated(s, manifest)
        if known is not None:
            return known
        if manifest.digest != s.params.digest:
            return s, (reject(Reason.WRONG_DIGEST, "the claim was made for other parameters"),)
        begun = s if manifest.number else replace(s, topology_state=ServersProgress())
        so_far = _progress(begun)
        last = next(reversed(so_far.earlier), bytes(32))
        # check: parts-in-order - the coordinator exchanges a part that was checked
        if (manifest.number, manifest.before) != (len(so_far.earlier), last):
            return s, (reject(Reason.EARLY, "send the parts of a claim in order, from the first"),)
        if (
            # check: part-size - parts of any size exhaust the aggregator's memory
            not is_valid_part(manifest)
            # check: order-across-parts - a user named in two parts would be counted twice
            or any(each.user <= so_far.last_user for each in manifest.entries[:1])
        ):
            return s, (
                reject(
                    Reason.MALFORMED,
                    "a claim is ascending by user id, each once, in parts of one size",
                ),
            )
        # check: manifest-size - with more entries than people some are made up
        if manifest.size > s.params.n_max:
            return s, (reject(Reason.FULL, f"more than {s.params.n_max} users"),)
        vouched = so_far.vouched + sum(
            aggregator.believed(s, rows, each) for each in manifest.entries
        )
        if manifest.more:
            earlier = (*so_far.earlier, name)
            own = ServersProgress(earlier, vouched, manifest.entries[-1].user)
            rows.manifest_parts.exchange(part_key(manifest.number), manifest)
            return replace(begun, topology_state=own), (_next(s, name, len(earlier)),)
        after, out = _on_whole(begun, rows, manifest, vouched)
        granted = after.manifest is not None or after.phase in FINAL
        # check: refused-manifest-rolled-back - a refused manifest leaves nothing behind
        if not granted:  # The aggregator stands where it stood
            return s, out
        return replace(after, topology_state=ServersProgress(so_far.earlier)), out

    def on_batch(self, s: Aggregator, rows: StepRows, batch: ShareBatch) -> aggregator.Change:
        """Open the blobs of a part and note whom they count; after the last part fix the set.

        Done again it is the same.
        """
        stored = s.last(AcceptedReports)
        if s.phase in FINAL or (stored is not None and batch.manifest_hash == s.manifest_hash):
            return s, (
                (stored.signed,)
                if stored is not None and s.phase is Phase.AGGREGATED
                else s.newest_statements
            )
        if s.manifest is None:
            return s, (reject(Reason.EARLY, "claim a batch before sending it"),)
        if batch.manifest_hash != s.manifest_hash:
            return s, (reject(Reason.CONFLICT, "these are blobs of another claim"),)
        done = _progress(s)
        # check: shares-of-this-part - the coordinator repeats a part in place of another one
        if batch.number != done.opened:
            return s, (_next(s, s.manifest_hash, done.opened),)
        entries = get_part(s, rows, batch.number).entries
        hashes = (each.encrypted_share_hash for each in entries)
        if any(
            encrypted_share is None or sha256(encrypted_share).digest() != wanted
            for encrypted_share, wanted in zip_longest(batch.encrypted_shares, hashes)
        ):
            return s, (
                reject(
                    Reason.WRONG_SHARES,
                    "these are not the blobs that were claimed: send them again",
                ),
            )
        return _on_part(replace(s, handed_over=True), rows, entries, batch, done)

    def on_sum(self, s: Aggregator, rows: StepRows, message: AggregateShare) -> aggregator.Change:
        """The coordinator's one sum: the result, or an abort if it cannot be one.

        Another sum later changes nothing.
        """
        stated = s.last(AcceptedReports)
        if s.phase in FINAL:
            return s, s.newest_statements
        if (
            stated is None
            or s.partial_sum is None
            or not isinstance(stated.message, AcceptedReports)
        ):
            return s, (reject(Reason.EARLY, "send the blobs first"),)
        if message.accepted_hash != sha256(stated.signed.payload).digest():
            return s, (reject(Reason.WRONG_DIGEST, "the sum was made over another set"),)
        try:
            shares = unpack(message.total, s.params.q, s.params.N)
        except ShareError:
            return s, (reject(Reason.MALFORMED, "the sum is not a packed vector"),)
        claimed = manifest_size(s)
        included = len(members_of(stated.message.members, claimed) or ())
        total = add(check_residues(shares, s.params.q), s.partial_sum, s.params.q)
        return aggregator.publish(
            s, rows, total, included, None, stated.message.root, refused=claimed - included
        )

    def claim_parts(self, s: Aggregator, rows: StepRows) -> tuple[Message, ...]:
        """The parts of the claim before the last one; none before it is whole."""
        if s.manifest is None:
            return ()
        return tuple(
            rows.manifest_parts[part_key(number)] for number in range(len(earlier_hashes(s)))
        )

    def scrub(self, s: Aggregator, rows: StepRows) -> Aggregator:
        """The names of the parts stay: a restored coordinator asks for them."""
        return replace(super().scrub(s, rows), topology_state=ServersProgress(earlier_hashes(s)))

    def rows_for(self, s: Aggregator, rows: StepRows, message: Message) -> MemoryRows | None:
        """What a step about one part of a manifest reads; None for a step that may read all."""
        entries: Sequence[ManifestEntry] = ()
        parts, notes = range(0), range(0)
        if isinstance(message, BatchManifest) and (message.more or not message.number):
            entries = message.entries
        elif (
            isinstance(message, ShareBatch)
            and s.phase is Phase.COUNTING
            and message.number <= len(earlier_hashes(s))
        ):
            entries, last = get_part(s, rows, message.number).entries, len(earlier_hashes(s))
            parts = range(message.number, min(message.number + 1, last))
            notes = range(last if message.number == last else 0)
        elif not isinstance(message, ShareBatch | AggregateShare):
            return None
        wanted: list[tuple[str, bytes]] = [("mac_keys", entry.user) for entry in entries]
        wanted += [("manifest_parts", part_key(number)) for number in parts]
        wanted += [("part_verdicts", part_key(number)) for number in notes]
        found = ((table, key, rows.find(table, key)) for table, key in wanted)
        return MemoryRows(RowWrite(table, key, row.value) for table, key, row in found if row)


def _on_whole(
    s: Aggregator, rows: StepRows, manifest: BatchManifest, vouched: int
) -> aggregator.Change:
    """The last part has come: the claim is admitted, or refused."""
    # check: distinct-keys - one key in two parts would stand for two people
    if not _different_keys(s, rows, manifest):
        return s, (reject(Reason.MALFORMED, "two users have the same public key"),)
    if s.params.proven and not opens_commitment(s.params, Party.AGGREGATOR, s.committed):
        return aggregator.abort(s, rows, Ending(EndCode.AGGREGATOR_SECRET_LOST), spent=False)
    revealed = s.committed if s.params.proven else bytes(32)
    return aggregator.admit(
        s, rows, manifest, vouched, None, (Phase.CONFIRMED, Phase.SUBMITTING), revealed
    )


def _different_keys(s: Aggregator, rows: StepRows, manifest: BatchManifest) -> bool:
    """Whether no two lines of a claim have the same key.

    Whole keys are held only where their first 8 bytes agree.
    """

    def keys() -> Iterator[bytes]:
        return (line.public_key for line in iterate_entries(replace(s, manifest=manifest), rows))

    beginnings = np.fromiter((int.from_bytes(each[:8], "big") for each in keys()), np.uint64)
    found, times = np.unique(beginnings, return_counts=True)
    doubtful = {int(each).to_bytes(8, "big") for each in found[times > 1]}
    whole = [each for each in keys() if each[:8] in doubtful] if doubtful else []
    return len(set(whole)) == len(whole)


def _next(s: Aggregator, recorded: bytes, number: int) -> Signed:
    """What the aggregator waits for."""
    return sign(s.key, Party.AGGREGATOR, NextPartRequest(s.params.survey, recorded, number))


def _on_part(
    s: Aggregator,
    rows: StepRows,
    entries: Sequence[ManifestEntry],
    batch: ShareBatch,
    done: ServersProgress,
) -> aggregator.Change:
    """The blobs of a part that stand in the claim."""
    form, told = form_of(s.params.mechanism), None
    if form is not None:
        # check: coordinator-value - a value chosen late lets invalid reports pass
        if not opens_commitment(s.params, Party.COORDINATOR, batch.revealed):
            ending = Ending(EndCode.COORDINATOR_CONTRADICTION, (), OTHER_VALUE)
            return aggregator.abort(s, rows, ending, spent=True)
        told = unpack_verifier_shares(batch.verifier_shares, form, len(entries))
        if told is None:
            return s, (
                reject(
                    Reason.MALFORMED,
                    "these are no answers about the claimed reports: send them again",
                ),
            )
    note, votes = _noted(s, _opened(s, rows, entries, batch), len(entries), batch.revealed, told)
    lines = (entries[at] for at in members_of(note.members, len(entries)) or ())
    counted = done.counted.append(
        roster_leaves(((each.user, each.public_key) for each in lines), done.counted.count)
    )
    held = votes if s.partial_sum is None else add(s.partial_sum, votes, s.params.q)
    own = replace(done, opened=done.opened + 1, counted=counted)
    rows.part_verdicts.exchange(part_key(done.opened), note)
    after = replace(s, partial_sum=held, topology_state=own)
    if own.opened <= len(own.earlier):
        return after, (_next(after, s.manifest_hash, own.opened),)
    return _fix_set(after, rows, counted, batch.revealed)


def _noted(
    s: Aggregator, opened: Mapping[int, Holder], n: int, revealed: bytes, told: Residues | None
) -> tuple[PartVerdicts, Residues]:
    """What is noted of a part of n lines, and the sum over those who count: all that opened, or the
    valid if proven.
    """
    form, places, holders = form_of(s.params.mechanism), list(opened), list(opened.values())
    if form is None or told is None:
        return PartVerdicts(b"", bitmap(places, n), b"", b""), _sum_expanded(s, holders)
    asked = derive_query(s.params, form, (revealed, s.committed))
    mine, valid, tally = _answered(s, asked, holders, told[places])
    counted = (at for at, fine in zip(places, valid, strict=True) if fine)
    coins = pack(tally.coins.reshape(-1), s.params.q)
    return PartVerdicts(
        bitmap(places, n), bitmap(counted, n), pack_verifier_shares(mine, form), coins
    ), tally.votes


def _fix_set(
    s: Aggregator, rows: StepRows, counted: MerkleFrontier, revealed: bytes
) -> aggregator.Change:
    """Every blob was looked at: sign the set for good, with the aggregator's part of the sum
    kept.
    """
    if not aggregator.still_private(s, counted.count):
        ending = too_few_readable(counted.count, s.params.minimum)
        return aggregator.abort(s, rows, ending, spent=True)
    found = (rows.part_verdicts[part_key(number)] for number in range(len(earlier_hashes(s)) + 1))
    notes = [each for each in found if isinstance(each, PartVerdicts)]
    stated = AcceptedReports(
        s.params.survey, s.manifest_hash, _joined(s, (each.members for each in notes)), counted.root
    )
    held = s.partial_sum
    if s.params.proven and held is not None:
        answers = b"".join(each.verifier_shares for each in notes)
        stated = replace(
            stated, opened=_joined(s, (each.opened for each in notes)), verifier_shares=answers
        )
        held = _released(
            s,
            held,
            notes,
            Release.of(s.params, (revealed, s.committed), s.manifest_hash, stated.members),
        )
    own = ServersProgress(earlier_hashes(s))
    return aggregator.say(
        s, stated, partial_sum=held, topology_state=own, phase=advance(s.phase, Phase.AGGREGATED)
    )


def _joined(s: Aggregator, bitmaps: Iterable[bytes]) -> bytes:
    """Bitmaps over the parts of the claim as one over the whole."""
    n = manifest_size(s)
    sizes = (
        min(messages.REPORTS_PER_PART, n - first)
        for first in range(0, n, messages.REPORTS_PER_PART)
    )
    marks = (marks_of(bits, size) for bits, size in zip(bitmaps, sizes, strict=True))
    return bits_of(np.concatenate([each for each in marks if each is not None]))


def _released(
    s: Aggregator, votes: Residues, notes: Iterable[PartVerdicts], release: Release
) -> Residues:
    """The aggregator's part of the one sum of proven reports."""
    m, q = release.mechanism.coins_per_user, s.params.q
    members = ((each.coins, int.from_bytes(each.members, "big").bit_count()) for each in notes)
    coins = [unpack(data, q, count * m).reshape(count, m) for data, count in members]
    return release.aggregate_share(
        Party.AGGREGATOR, s.noise_secret, Tally(votes, np.concatenate(coins))
    )


def _opened(
    s: Aggregator, rows: StepRows, entries: Sequence[ManifestEntry], batch: ShareBatch
) -> dict[int, Holder]:
    """Those of a part whose blob opens, by place, each with its seed."""
    pairs = enumerate(zip(entries, batch.encrypted_shares, strict=True))
    found = (
        (at, each, _open(s, rows, each, encrypted_share)) for at, (each, encrypted_share) in pairs
    )
    return {at: (each, seed) for at, each, seed in found if seed is not None}


def _open(
    s: Aggregator, rows: StepRows, each: ManifestEntry, encrypted_share: bytes
) -> bytes | None:
    if not aggregator.believed(s, rows, each):
        return None
    secret = s.crypto.agree(s.encryption_keys, each.public_key)
    info = seed_info(s.params, each.user, each.public_key, each.commitment)
    seed = (
        None if secret is None else s.crypto.decrypt(secret, s.params.digest, info, encrypted_share)
    )
    return seed if seed is not None and len(seed) == SEED_BYTES else None


def _expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    """The aggregator's shares of these users' vectors, one row each."""
    seeds = [seed for _, seed in holders]
    infos = [expansion_info(s.params, each.user, each.public_key) for each, _ in holders]
    return s.crypto.expand_rows(
        seeds, s.params.digest, infos, s.params.q, vector_size(s.params.mechanism)
    )


def _sum_expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    parts = (_expanded(s, holders[some]) for some in row_blocks(len(holders), s.params.N))
    return sum_batches(parts, s.params.q, s.params.N)


def _answered(
    s: Aggregator, asked: Query, holders: Sequence[Holder], told: Residues
) -> tuple[Residues, Bools, Tally]:
    """The aggregator's answers about its shares, which reports are valid, and the tally of
    those; whole rows are soon forgotten.
    """
    answers = np.empty((len(holders), asked.form.verifier_size), dtype=dtype_for(s.params.q))
    valid = np.empty(len(holders), dtype=np.bool_)

    def valid_rows() -> Iterator[Residues]:
        for some in row_blocks(len(holders), asked.form.width):
            rows = _expanded(s, holders[some])
            answers[some] = asked.verifier_shares(rows)
            # check: invalid-reports - a malicious client would skew the result
            valid[some] = asked.accepts(told[some], answers[some])
            yield rows[valid[some]]

    tally = as_verified(s.params.mechanism).tally(valid_rows())
    return answers, valid, tally

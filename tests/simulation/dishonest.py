"""Dishonest servers for the fault simulation: what one may sign to deceive the other, in `servers`.

A dishonest aggregator wants a sum over few people, or two sums; a dishonest coordinator wants two
results. The other server is the real one. A server that changes its own aggregate share is left
out, because no protocol prevents that.

Which message is forged follows from the numbers of a step: `who` has people in its bits, and single
bits of `how` choose variants. So many of them choose that a forgery is believed now and then and
the survey goes on; a chained statement that the aggregator does not have in its chain ends it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from faircount.protocol import Message
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.coordinator import roster_proposal
from faircount.protocol.roles.rows import part_key
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import (
    iterate_entries,
    iterate_parts,
    split_into_parts,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    ManifestEntry,
    RecordedPart,
    StoredVerification,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.part_reports import make_part_shares
from faircount.protocol.topologies.two_servers.reports import (
    pack_verifier_shares,
    report_layout_of,
    unpack_verifier_shares,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap, entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import PartShares, Reservation, Signed, SyncState
from faircount.protocol.wire.roster_messages import RejectedEntries
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, compute_chain_link, sign
from simulation.monitor import hash_of
from simulation.parties import Simulation

T = TypeVar("T")


def forge_for_aggregator(
    sim: Simulation, manifest: BatchManifest, who: int, how: int
) -> Signed | None:
    """A set that is not the accepted one, another manifest, or other verified parts."""
    if how % 2:
        return _forge_manifest(sim, who, how)
    if how >> 10 & 1:
        return _forge_verified_part(sim, who, how)
    return _forge_set(sim, manifest, who, how)


def forge_for_coordinator(sim: Simulation, manifest: BatchManifest, who: int, how: int) -> Message:
    """A smaller manifest, the shares of that, or an aggregate share of nothing.

    Of a manifest in parts, the last or the first part is made smaller. Or one part of the true
    shares comes with verifier shares that make every report invalid.
    """
    parts = list(iterate_parts(sim.s1.state, sim.s1.view))
    part = parts[-1] if how >> 9 & 1 else parts[0]
    fewer = replace(part, entries=choose(manifest.entries, who))
    sim.monitor.manifests[hash_of(fewer)] = fewer
    if how >> 10 & 1 and sim.s1.reservation is not None and sim.s1.topology_state is not None:
        batch = make_part_shares(sim.s1.state, sim.s1.view, who % len(parts))
        if batch is not None:
            return replace(batch, verifier_shares=bytes(len(batch.verifier_shares)))
    zeros = AggregateShare(manifest.survey, bytes(32), bytes(len(sim.s1.view.first_messages)))
    return (fewer, PartShares(manifest.survey, hash_of(fewer), ()), zeros)[how % 3]


def _accepted_reports(
    manifest: BatchManifest, entries: Sequence[ManifestEntry], bits: int
) -> AcceptedReports:
    """The entries in the bits as a set; with the highest bit, under the root of another set."""
    places = choose(range(len(entries)), bits)
    named = [entries[i] for i in places] if bits < 32 else []
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in named))
    return AcceptedReports(manifest.survey, hash_of(manifest), bitmap(places, len(entries)), root)


def _forge_set(sim: Simulation, manifest: BatchManifest, who: int, how: int) -> Signed:
    """A set of the entries in the bits, or of all but one."""
    entries = list(iterate_entries(sim.s1.state, sim.s1.view))
    bits = who
    if not how >> 8 & 1:
        everybody = (1 << len(entries)) - 1
        bits = everybody & ~(1 << who % len(entries))
    stated = _accepted_reports(manifest, entries, bits)
    shown = _verified_parts(sim)
    if shown and how >> 11 & 1:
        # It claims that it could not decrypt the others, so that the proofs confirm the set.
        shown = [_keep_only(sim, part, bits, len(entries)) for part in shown]
        for part in shown:
            sim.send_to_s1(sign(sim.s2.key, Party.AGGREGATOR, part))
    if shown:
        stated = replace(stated, verified=hash_of_verified(shown))
    sim.monitor.sets[hash_of(stated)] = stated
    return sign_for_aggregator(sim, stated, how)


def _verified_parts(sim: Simulation) -> list[VerifiedPart]:
    """What the true aggregator has found about all parts; nothing before it knows all of them."""
    verified = list[VerifiedPart]()
    numbers = range(len(list(iterate_parts(sim.s1.state, sim.s1.view))))
    for number in numbers:
        stored = sim.s2.view.part_verifications.get(part_key(number))
        if not isinstance(stored, StoredVerification) or not sim.setup.params.proven:
            return []
        verified.append(
            VerifiedPart(
                sim.setup.params.survey,
                sim.s1.manifest_hash,
                number,
                stored.decrypted,
                stored.verifier_shares,
            )
        )
    return verified


def _keep_only(sim: Simulation, part: VerifiedPart, bits: int, size: int) -> VerifiedPart:
    """The part as if only the reports in these bits of the manifest had been decrypted."""
    first = part.number * messages.REPORTS_PER_PART
    length = min(messages.REPORTS_PER_PART, size - first)
    decrypted = members_of(part.decrypted, length) or ()
    kept = [i for i in decrypted if bits >> first + i & 1]
    layout = report_layout_of(sim.setup.params.mechanism)
    shares = None
    if layout is not None:
        shares = unpack_verifier_shares(part.verifier_shares, layout, len(decrypted))
    if layout is None or shares is None:
        return part
    packed = pack_verifier_shares(shares[[decrypted.index(i) for i in kept]], layout)
    return replace(part, decrypted=bitmap(kept, length), verifier_shares=packed)


def _forge_verified_part(sim: Simulation, who: int, how: int) -> Signed:
    """Another verified part than the true one, of this manifest or of nothing."""
    true = _verified_parts(sim)
    number = who % (len(true) + 1)
    part = VerifiedPart(sim.setup.params.survey, sim.s1.manifest_hash, number, bytes((who,)), b"")
    if number < len(true):
        part = replace(true[number - 1], number=number)
    if how >> 8 & 1:
        part = replace(part, verifier_shares=bytes(len(part.verifier_shares)))
    return sign_for_aggregator(sim, part, how & ~(1 << 6))


def _forge_manifest(sim: Simulation, who: int, how: int) -> Signed | None:
    """A manifest over fewer people, or over one of them many times."""
    entries = tuple(iterate_entries(sim.s1.state, sim.s1.view))
    named = (entries[who % len(entries)],) * len(entries)
    if how >> 9 & 1:
        named = choose(entries, who)
    *earlier, last = split_into_parts(sim.setup.params, named)
    for part in earlier:
        sim.monitor.manifests[hash_of(part)] = part
    everybody = (1 << len(named)) - 1
    stated = _accepted_reports(last, named, everybody)
    return forge_sync_state(sim, last, stated, how, tuple(map(encode, earlier)))


# --- for every topology ---------------------------------------------------------------------------


def repeat_statement(sim: Simulation, who: int, how: int) -> Signed | None:
    """An earlier statement of the aggregator, under a new number or none."""
    statements = sim.s2.statements
    if not statements:
        return None
    return sign_for_aggregator(sim, statements[who % len(statements)].message, how)


def reject_good_entries(sim: Simulation, who: int, how: int) -> Signed | None:
    """Entries of the roster with valid MACs, rejected."""
    proposal = roster_proposal(sim.s1.state)
    if not proposal.entries:
        return None
    positions = choose_left_out(who, how, len(proposal.entries))
    rejected = RejectedEntries(proposal.survey, hash_of(proposal), positions)
    return sign_for_aggregator(sim, rejected, how)


def sign_for_aggregator(sim: Simulation, message: Message, how: int) -> Signed:
    """The message, signed as the aggregator's next statement or outside its chain."""
    newest = sim.s2.chain_end
    chain_link = ChainLink(newest.number + 1, newest.hash) if how >> 6 & 1 else UNCHAINED
    return sign(sim.s2.key, Party.AGGREGATOR, message, chain_link)


def choose(everybody: Sequence[T], bits: int) -> tuple[T, ...]:
    """Those in the bits."""
    return tuple(one for i, one in enumerate(everybody) if bits >> i & 1)


def choose_left_out(who: int, how: int, n: int) -> tuple[int, ...]:
    """Which of n people a forgery leaves out: one of them, or all those in the bits."""
    return choose(range(n), who) if how >> 8 & 1 else (who % n,)


def forge_sync_state(
    sim: Simulation,
    manifest: Any,
    stated: AcceptedReports | AcceptedMembers,
    how: int,
    earlier: tuple[bytes, ...] = (),
) -> Signed | None:
    """A false answer to a request to synchronize.

    The aggregator claims to have recorded another manifest (and `earlier` parts of it), with a
    reservation for it and a set to add up. They come after all its true statements, or instead of
    those from its newest reservation on.
    """
    statements = [statement.message for statement in sim.s2.statements]
    reserved = [i for i, message in enumerate(statements) if isinstance(message, Reservation)]
    if not reserved:
        # A reservation that the aggregator has not made yet.
        reserved = [len(statements)]
        statements.append(
            Reservation(
                manifest.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), sim.s2.committed_value
            )
        )
    newest = reserved[-1]
    reservation: Any = statements[newest]
    forged = replace(reservation, manifest_hash=hash_of(manifest))
    before = statements if how >> 7 & 1 else statements[:newest]
    sim.monitor.manifests[hash_of(manifest)] = manifest
    sim.monitor.claimed.add(hash_of(manifest))
    sim.monitor.sets[hash_of(stated)] = stated
    roster = b"" if sim.s2.roster is None else encode(sim.s2.roster)
    chain = _sign_chain(sim, [*before, forged, stated])
    sync_state = SyncState(manifest.survey, roster, encode(manifest), chain)
    history = sign(sim.s2.key, Party.AGGREGATOR, sync_state)
    if earlier:
        # The coordinator asks for the other parts, from the last to the first, then for all again.
        sim.send_to_s1(history)
        for part in reversed(earlier):
            recorded = RecordedPart(manifest.survey, part)
            sim.send_to_s1(sign(sim.s2.key, Party.AGGREGATOR, recorded))
    return history


def _sign_chain(sim: Simulation, messages: Sequence[Message]) -> tuple[Signed, ...]:
    """The messages as a chain of the aggregator's statements."""
    chain = list[Signed]()
    before = UNCHAINED
    for number, message in enumerate(messages, 1):
        signed = sign(sim.s2.key, Party.AGGREGATOR, message, ChainLink(number, before.hash))
        chain.append(signed)
        before = compute_chain_link(signed)
    return tuple(chain)

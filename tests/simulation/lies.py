"""Dishonest servers for the fault simulation: what either may sign against the other. Here those of `servers`.

A lying aggregator wants a sum over few people, or two sums; a lying coordinator wants two results. The other server is the real one.
What no protocol prevents is left out: a server that changes its own sum. Which lie it is follows from the numbers of a
step: `who` has people in its bits, and so many bits of `how` choose that a lie is believed now and then, and the
survey goes on: a chained statement that the aggregator has forgotten again ends it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from faircount.protocol import Message
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.coordinator import roster_proposal
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
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Reservation, ShareBatch, Signed, SyncState
from faircount.protocol.wire.roster_messages import RejectedEntries
from faircount.protocol.wire.signing import UNCHAINED, Link, compute_link, sign
from simulation.watch import hash_of
from simulation.world import World

T = TypeVar("T")


def lies_of_s2(world: World, manifest: BatchManifest, who: int, how: int) -> Signed | None:
    """A set that is not the true one, or another claim."""
    return (_foreign_set, _another_claim)[how % 2](world, manifest, who, how)


def lies_of_s1(world: World, manifest: BatchManifest, who: int, how: int) -> Message:
    """A smaller claim, the blobs of that, or a sum of nothing; of a claim in parts, the last or the first part."""
    parts = list(iterate_parts(world.s1.state, world.s1.view))
    fewer = replace(parts[how >> 9 & 1 and -1], entries=some(manifest.entries, who))
    world.watch.manifests[hash_of(fewer)] = fewer
    zeros = AggregateShare(manifest.survey, bytes(32), bytes(len(world.s1.view.first_messages)))
    return (fewer, ShareBatch(manifest.survey, hash_of(fewer), ()), zeros)[how % 3]


def _set(manifest: BatchManifest, entries: Sequence[ManifestEntry], bits: int) -> AcceptedReports:
    """The set of those in the bits, out of all lines of a claim; with the highest bit, under another set's root."""
    places = some(range(len(entries)), bits)
    lines = [(entries[i].user, entries[i].public_key) for i in (places if bits < 32 else ())]
    return AcceptedReports(
        manifest.survey,
        hash_of(manifest),
        bitmap(places, len(entries)),
        merkle_root(roster_leaves(lines)),
    )


def _foreign_set(world: World, manifest: BatchManifest, who: int, how: int) -> Signed:
    entries = list(iterate_entries(world.s1.state, world.s1.view))
    everybody = (1 << len(entries)) - 1
    stated = _set(
        manifest, entries, who if how >> 8 & 1 else everybody & ~(1 << who % len(entries))
    )
    world.watch.sets[hash_of(stated)] = stated
    return said_by_s2(world, stated, how)


def _another_claim(world: World, manifest: BatchManifest, who: int, how: int) -> Signed | None:
    """A claim over fewer people, or over one of them many times."""
    entries = tuple(iterate_entries(world.s1.state, world.s1.view))
    named = some(entries, who) if how >> 9 & 1 else (entries[who % len(entries)],) * len(entries)
    *earlier, other = split_into_parts(world.setup.params, named)
    for each in earlier:
        world.watch.manifests[hash_of(each)] = each
    return what_stands(
        world, other, _set(other, named, (1 << len(named)) - 1), how, tuple(map(encode, earlier))
    )


# --- for every topology


def old_statement(world: World, who: int, how: int) -> Signed | None:
    """A statement from before, under a new number or none."""
    said = world.s2.statements
    return said_by_s2(world, said[who % len(said)].message, how) if said else None


def bad_lines(world: World, who: int, how: int) -> Signed | None:
    """Good lines of the roster called bad."""
    asked = roster_proposal(world.s1.state)
    if not asked.entries:
        return None
    return said_by_s2(
        world,
        RejectedEntries(asked.survey, hash_of(asked), left_out(who, how, len(asked.entries))),
        how,
    )


def said_by_s2(world: World, what: Message, how: int) -> Signed:
    """A lie where the next statement of the aggregator would stand, or in no chain."""
    newest = world.s2.newest_link
    return sign(
        world.s2.key,
        Party.AGGREGATOR,
        what,
        Link(newest.number + 1, newest.hash) if how >> 6 & 1 else UNCHAINED,
    )


def some(everybody: Sequence[T], bits: int) -> tuple[T, ...]:
    """Those in the bits."""
    return tuple(each for i, each in enumerate(everybody) if bits >> i & 1)


def left_out(who: int, how: int, n: int) -> tuple[int, ...]:
    """Whom of n people a lie leaves out: one of them, or all those in the bits."""
    return some(range(n), who) if how >> 8 & 1 else (who % n,)


def what_stands(
    world: World,
    other: Any,
    stated: AcceptedReports | AcceptedMembers,
    how: int,
    earlier: tuple[bytes, ...] = (),
) -> Signed | None:
    """What the aggregator says that stands: another claim (and earlier parts of it), a receipt for it, and a set to add up.

    They come instead of its newest receipt and what it has said since, or after all that.
    """
    said = [each.message for each in world.s2.statements]
    given = [i for i, each in enumerate(said) if isinstance(each, Reservation)]
    if not given:  # one that it has not given out yet
        made_up = Reservation(
            other.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), world.s2.committed_value
        )
        said, given = [*said, made_up], [len(said)]
    world.watch.manifests[hash_of(other)], world.watch.sets[hash_of(stated)] = other, stated
    reservation: Any = said[given[-1]]
    words = [
        *(said if how >> 7 & 1 else said[: given[-1]]),
        replace(reservation, manifest_hash=hash_of(other)),
        stated,
    ]
    roster = b"" if world.s2.roster is None else encode(world.s2.roster)
    stands = SyncState(other.survey, roster, encode(other), _chained(world, words), earlier)
    return sign(world.s2.key, Party.AGGREGATOR, stands)


def _chained(world: World, words: Sequence[Message]) -> tuple[Signed, ...]:
    chain, before = list[Signed](), UNCHAINED
    for number, says in enumerate(words, 1):
        chain.append(sign(world.s2.key, Party.AGGREGATOR, says, Link(number, before.hash)))
        before = compute_link(chain[-1])
    return tuple(chain)

"""Dishonest servers for the fault simulation: what either may sign against the other. Here those of `servers`.

A lying S2 wants a sum over few people, or two sums; a lying S1 wants two results. The other server is the real one.
What no protocol prevents is left out: a server that changes its own sum. Which lie it is follows from the numbers of a
step: `who` has people in its bits, and so many bits of `how` choose that a lie is believed now and then, and the
survey goes on: a chained statement that S2 has forgotten again ends it.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from faircount.protocol import TWO_STAGE, Message
from faircount.protocol.roles.coordinator import seal_request
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.masked.messages import MaskedClaim
from faircount.protocol.topologies.peers.messages import PeersIncluded
from faircount.protocol.topologies.two_servers.claims import entries_of, in_chain, parts_of
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submitter
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Batch, Receipt, Signed, SyncState
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.protocol.wire.signing import UNCHAINED, Link, link_to, sign
from faircount.testing.world import World


def lie_of_s2(world: World, who: int, how: int) -> None:
    """S2 signs something false, and S1 hears it."""
    from faircount.testing import lies_two_stage  # they need this module
    from faircount.testing.lies_peers import lies_of_s2

    claim, message = world.s1.claim, None
    if how % 5 == 4:
        message = _old_statement(world, who, how)
    elif world.s1.state is State.ENROLLING:
        message = _bad_lines(world, who, how)
    elif isinstance(claim, ServersClaim):
        message = (_foreign_set, _another_claim)[how % 2](world, claim, who, how)
    elif isinstance(claim, (PeersClaim, MaskedClaim)):
        message = lies_of_s2(world, claim, who, how)
    elif world.setup.params.topology is TWO_STAGE:
        message = lies_two_stage.lies_of_s2(world, who, how)
    if message is not None:
        world.tell_s1(message)


def lie_of_s1(world: World, who: int, how: int) -> None:
    """S1 signs something false, and S2 hears it."""
    from faircount.testing import lies_two_stage  # they need this module
    from faircount.testing.lies_peers import lies_of_s1

    claim, lie = world.s1.claim, None
    if isinstance(claim, ServersClaim):
        lie = _lies_of_s1(world, claim, who, how)
    elif isinstance(claim, (PeersClaim, MaskedClaim)):
        lie = lies_of_s1(world, claim, who, how)
    elif world.setup.params.topology is TWO_STAGE:
        lie = lies_two_stage.lies_of_s1(world, who, how)
    if lie is None:
        return
    ahead = Link(99, bytes(32)) if how % 21 == 20 else world.s1.newest  # S2 takes itself for restored, and stops
    world.watch.claims[hash_of(lie)] = lie
    world.tell_s2(sign(world.s1.key, Party.S1, lie, ahead))


def _lies_of_s1(world: World, claim: ServersClaim, who: int, how: int) -> Message:
    """A smaller claim, the blobs of that, or a sum of nothing; of a claim in parts, the last or the first part."""
    parts = list(parts_of(world.s1))
    fewer = replace(parts[how >> 9 & 1 and -1], entries=_some(claim.entries, who))
    world.watch.claims[hash_of(fewer)] = fewer
    zeros = ShareSum(claim.survey, bytes(32), bytes(len(world.s1.bodies)))
    return (fewer, Batch(claim.survey, hash_of(fewer), ()), zeros)[how % 3]


def _some(everybody: Sequence[Submitter], bits: int) -> tuple[Submitter, ...]:
    return tuple(each for i, each in enumerate(everybody) if bits >> i & 1)


def _set(claim: ServersClaim, entries: Sequence[Submitter], bits: int) -> Included:
    """The set of those in the bits, out of all lines of a claim; with the highest bit, under another set's root."""
    places = [i for i in range(len(entries)) if bits >> i & 1]
    lines = [(entries[i].user, entries[i].public_key) for i in (places if bits < 32 else ())]
    return Included(claim.survey, hash_of(claim), bitmap(places, len(entries)), merkle_root(roster_leaves(lines)))


def _foreign_set(world: World, claim: ServersClaim, who: int, how: int) -> Signed:
    entries = list(entries_of(world.s1))
    everybody = (1 << len(entries)) - 1
    stated = _set(claim, entries, who if how >> 8 & 1 else everybody & ~(1 << who % len(entries)))
    world.watch.sets[hash_of(stated)] = stated
    return said_by_s2(world, stated, how)


def _another_claim(world: World, claim: ServersClaim, who: int, how: int) -> Signed | None:
    """A claim over fewer people, or over one of them many times."""
    entries = tuple(entries_of(world.s1))
    some = _some(entries, who) if how >> 9 & 1 else (entries[who % len(entries)],) * len(entries)
    *earlier, other = in_chain(world.setup.params, some)
    for each in earlier:
        world.watch.claims[hash_of(each)] = each
    return what_stands(world, other, _set(other, some, (1 << len(some)) - 1), how, tuple(map(encode, earlier)))


def _old_statement(world: World, who: int, how: int) -> Signed | None:
    """A statement from before, under a new number or none."""
    said = world.s2.statements
    return said_by_s2(world, said[who % len(said)].says, how) if said else None


def _bad_lines(world: World, who: int, how: int) -> Signed | None:
    """Good lines of the roster called bad."""
    asked = seal_request(world.s1)
    if not asked.entries:
        return None
    return said_by_s2(world, BadEntries(asked.survey, hash_of(asked), left_out(who, how, len(asked.entries))), how)


# --- for every topology


def said_by_s2(world: World, what: Message, how: int) -> Signed:
    """A lie where the next statement of S2 would stand, or in no chain."""
    newest = world.s2.newest
    return sign(world.s2.key, Party.S2, what, Link(newest.number + 1, newest.hash) if how >> 6 & 1 else UNCHAINED)


def left_out(who: int, how: int, n: int) -> tuple[int, ...]:
    """Whom of n people a lie leaves out: one of them, or all those in the bits."""
    return tuple(i for i in range(n) if who >> i & 1) if how >> 8 & 1 else (who % n,)


def what_stands(
    world: World, other: Any, stated: Included | PeersIncluded, how: int, earlier: tuple[bytes, ...] = ()
) -> Signed | None:
    """What S2 says that stands: another claim (and earlier parts of it), a receipt for it, and a set to add up.

    They come instead of its newest receipt and what it has said since, or after all that.
    """
    said = [each.says for each in world.s2.statements]
    given = [i for i, each in enumerate(said) if isinstance(each, Receipt)]
    if not given:  # one that it has not given out yet
        made_up = Receipt(other.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), world.s2.committed)
        said, given = [*said, made_up], [len(said)]
    world.watch.claims[hash_of(other)], world.watch.sets[hash_of(stated)] = other, stated
    receipt: Any = said[given[-1]]
    words = [*(said if how >> 7 & 1 else said[: given[-1]]), replace(receipt, claim_hash=hash_of(other)), stated]
    roster = b"" if world.s2.roster is None else encode(world.s2.roster)
    stands = SyncState(other.survey, roster, encode(other), _chained(world, words), earlier)
    return sign(world.s2.key, Party.S2, stands)


def _chained(world: World, words: Sequence[Message]) -> tuple[Signed, ...]:
    chain, before = list[Signed](), UNCHAINED
    for number, says in enumerate(words, 1):
        chain.append(sign(world.s2.key, Party.S2, says, Link(number, before.hash)))
        before = link_to(chain[-1])
    return tuple(chain)


def hash_of(what: Message) -> bytes:
    """The hash by which a message is known."""
    return sha256(encode(what)).digest()

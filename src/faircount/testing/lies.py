"""Dishonest servers for the fault simulation: what either may sign against the other. Here those of `servers`.

A lying S2 wants a sum over few people, or two sums; a lying S1 wants two results. The other server is the real one.
What no protocol prevents is left out: a server that changes its own sum.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.protocol import TWO_STAGE, Message
from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.masked.messages import MaskedClaim
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submitter
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Batch, Receipt, Signed, SyncState
from faircount.protocol.wire.signing import UNCHAINED, Link, link_to, sign
from faircount.testing.world import World


def lie_of_s2(world: World, who: int, how: int) -> None:
    """S2 signs something false, and S1 hears it."""
    from faircount.testing import lies_two_stage  # they need this module
    from faircount.testing.lies_peers import lies_of_s2

    claim, message = world.s1.claim, None
    if how % 5 == 4:
        message = _old_statement(world, who)
    elif isinstance(claim, ServersClaim):
        message = (_foreign_set, _another_claim)[how % 2](world, claim, who)
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
    ahead = Link(99, bytes(32)) if how % 7 == 6 else world.s1.newest
    world.watch.claims[hash_of(lie)] = lie
    world.tell_s2(sign(world.s1.key, Party.S1, lie, ahead))


def _lies_of_s1(world: World, claim: ServersClaim, who: int, how: int) -> Message:
    """A smaller claim, the blobs of that, or a sum of nothing."""
    fewer = replace(claim, entries=_some(claim.entries, who))
    world.watch.claims[hash_of(fewer)] = fewer
    zeros = ShareSum(claim.survey, bytes(32), bytes(len(world.s1.bodies)))
    return (fewer, Batch(claim.survey, hash_of(fewer), ()), zeros)[how % 3]


def _some(everybody: Sequence[Submitter], bits: int) -> tuple[Submitter, ...]:
    return tuple(each for i, each in enumerate(everybody) if bits >> i & 1)


def _set(claim: ServersClaim, bits: int) -> Included:
    """The set of those in the bits; with the highest bit, under another set's root."""
    places = [i for i in range(len(claim.entries)) if bits >> i & 1]
    lines = [(claim.entries[i].user, claim.entries[i].public_key) for i in (places if bits < 32 else ())]
    named = bitmap(places, len(claim.entries))
    return Included(claim.survey, sha256(encode(claim)).digest(), named, merkle_root(roster_leaves(lines)))


def _foreign_set(world: World, claim: ServersClaim, who: int) -> Signed:
    stated = _set(claim, who)
    world.watch.sets[hash_of(stated)] = stated
    return sign(world.s2.key, Party.S2, stated, next_link(world))


def _another_claim(world: World, claim: ServersClaim, who: int) -> Signed | None:
    """What S2 says that stands: a smaller claim, a receipt for it, and a set to add up."""
    other = replace(claim, entries=_some(claim.entries, who))
    world.watch.claims[hash_of(other)] = other
    receipt = next((each.says for each in world.s2.statements if isinstance(each.says, Receipt)), None)
    if not isinstance(receipt, Receipt):
        return None
    stated = _set(other, (1 << len(other.entries)) - 1)
    world.watch.sets[hash_of(stated)] = stated
    first = sign(world.s2.key, Party.S2, replace(receipt, claim_hash=hash_of(other)), Link(1, UNCHAINED.hash))
    second = sign(world.s2.key, Party.S2, stated, Link(2, link_to(first).hash))
    return sign(world.s2.key, Party.S2, SyncState(claim.survey, b"", encode(other), (first, second)))


def _old_statement(world: World, who: int) -> Signed | None:
    """A statement from before, under a new number."""
    said = world.s2.statements
    return sign(world.s2.key, Party.S2, said[who % len(said)].says, next_link(world)) if said else None


def next_link(world: World) -> Link:
    """Where the next statement of S2 would stand."""
    newest = world.s2.newest
    return Link(newest.number + 1, newest.hash)


def hash_of(what: Message) -> bytes:
    """The hash by which a message is known."""
    return sha256(encode(what)).digest()

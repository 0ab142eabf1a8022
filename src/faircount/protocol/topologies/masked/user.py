"""A user of the `masked` topology.

    verify    its own line and its neighbours', under the root that S2 signed; it finds its neighbours by itself
    share     draw vector and mask key, share the mask key t-of-k among the neighbours, sealed                -> S1
    answer    R_i + sum of m_ij over the neighbours in the set, under a fresh mask of its own; its seed to S2  -> S1
    help      the message keys of the shares dealt by neighbours that S2 signed for as dropped, sealed to S2,  -> S1
              for the first statement of an attempt only

Everything drawn is drawn once and kept before it is sent; asked again, a user sends the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.values import ArrayValue
from faircount.protocol.roles.client import Device, UserState, state_of
from faircount.protocol.topologies.masked.graph import draw
from faircount.protocol.topologies.masked.masks import help_info, keys_digest, mask_secrets, masks_of, share_info
from faircount.protocol.topologies.masked.messages import (
    Help,
    HelpCall,
    KeyBundle,
    MaskCall,
    MaskedSum,
    Neighbourhood,
)
from faircount.protocol.topologies.peers import member as members
from faircount.protocol.topologies.peers.client import PeersClient
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.messages import Peer, PeersIncluded
from faircount.protocol.topologies.peers.peer_set import PeerSet, peer_set
from faircount.protocol.topologies.peers.self_mask import Round, hidden
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.digests import leaf, members_of, root_from
from faircount.protocol.wire.messages import Reason, Rejected, Signed, rejected
from faircount.protocol.wire.roster_messages import Seal
from faircount.protocol.wire.sealing import OVERHEAD, KeyPair
from faircount.protocol.wire.signing import unwrap
from faircount.sharing.field import add
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.shamir import KeyShare, split_key


@dataclass(frozen=True)
class Placed:
    """A member who knows its place among n users, and its neighbours' public keys."""

    member: Member
    n: int
    neighbours: Mapping[int, bytes] = field(repr=False)  # place -> public key, ascending


@dataclass(frozen=True, eq=False)
class Masker(ArrayValue, UserState):
    """A user who has drawn everything: its vector, its mask key, the sealed shares of it; kept before it is sent."""

    stored_version = 2
    placed: Placed
    mask: KeyPair
    response: Residues = field(repr=False)
    secrets: Mapping[int, bytes] = field(repr=False)  # of the pair with each neighbour, for key shares
    bundle: KeyBundle = field(repr=False)
    near: Mapping[int, bytes] = field(default_factory=dict, repr=False)  # mask keys of the neighbours in the last set
    last: PeerSet | None = None
    bodies: tuple[MaskedSum, ...] = field(default=(), repr=False)  # one for each attempt taken part in
    asked: bytes = b""  # the one statement of S2 that this user helps with in this attempt
    helped: Help | None = field(default=None, repr=False)
    revealed: frozenset[int] = frozenset()  # neighbours whose keys it has helped to put together

    @property
    def member(self) -> Member:
        """The user as it enrolled."""
        return self.placed.member


def verify_roster(member: Member, message: Neighbourhood) -> Placed | Rejected:
    """The member with its place; refused unless the lines are its own and its neighbours' on the roster S2 signed."""
    seal = unwrap(member.params.keys.s2, Party.S2, message.seal)
    if not isinstance(seal, Seal):
        return rejected(Reason.UNSIGNED, "S2 did not sign this roster")
    if not member.params.minimum <= seal.n <= member.params.n_max or message.index >= seal.n:
        return rejected(Reason.TOO_FEW, "the roster is too small or too large, or has no such place")
    graph = draw(seal.revealed, seal.digest, seal.n, member.params.k)
    places = sorted((*graph.of(message.index), message.index))
    lines = dict(zip(places, message.lines, strict=False))
    leaves = {place: leaf(place, line.user, line.public_key) for place, line in lines.items()}
    fits = len(message.lines) == len(places)
    root = root_from(seal.n, leaves, message.hashes) if fits else None
    problem = members.seal_problem(member, seal, seal.n, root) or _lines_problem(member, message.index, lines)
    if problem is not None:
        return problem
    placed = replace(member, digest=seal.digest, index=message.index)
    return Placed(placed, seal.n, {j: line.public_key for j, line in lines.items() if j != message.index})


def _lines_problem(member: Member, index: int, lines: Mapping[int, Peer]) -> Rejected | None:
    if lines[index] != Peer(member.user, member.keys.public):
        return rejected(Reason.UNKNOWN, "this user is not on the roster with its own key")
    if len({line.public_key for line in lines.values()}) != len(lines):
        return rejected(Reason.MALFORMED, "the roster names a key twice")
    if len(lines) <= member.params.t:
        return rejected(Reason.TOO_FEW, f"fewer than {member.params.t} neighbours: nobody could recover a key")
    return None


def share(placed: Placed, answer: int, entropy: Entropy) -> Masker:
    """Draw response and mask key, and share the key, once; `answer` is a position in the item list."""
    member = placed.member
    response = member.params.mechanism.respond_as(member.index, answer, entropy)
    return prepare(placed, response, member.sealing.keypair(entropy), entropy)


def prepare(placed: Placed, response: Residues, mask: KeyPair, entropy: Entropy) -> Masker:
    """Share a mask key drawn before; `entropy` is for the polynomial and the nonces."""
    member = placed.member
    dealt = split_key(mask.secret, member.params.t, len(placed.neighbours), entropy)
    secrets = {j: member.sealing.agree(member.keys, key) or b"" for j, key in placed.neighbours.items()}
    blobs = tuple(
        _sealed(member, j, secret, mask.public, part.to_bytes(), entropy)
        for (j, secret), part in zip(secrets.items(), dealt, strict=True)
    )
    bundle = KeyBundle(member.params.survey, member.index, member.credential, mask.public, blobs)
    return Masker(placed, mask, response, secrets, bundle)


def _sealed(member: Member, to: int, secret: bytes, mask_key: bytes, part: bytes, entropy: Entropy) -> bytes:
    if not secret:  # no key with this neighbour: it cannot help
        return bytes(len(part) + OVERHEAD)
    info = share_info(member.params, member.index, to, mask_key)
    return member.sealing.seal(secret, member.digest, info, part, entropy)


def answer_call(masker: Masker, call: MaskCall, entropy: Entropy) -> tuple[Masker, MaskedSum | Rejected]:
    """The masked vector for an attempt. Asked again: the same bytes, and never for another set."""
    member = masker.member
    wanted = peer_set(member.digest, call.attempt, masker.placed.n, call.members, ())
    known = next((each for each in masker.bodies if each.attempt == call.attempt), None)
    if known is not None and masker.last is not None:
        same = wanted == masker.last or call.attempt < masker.last.attempt
        return masker, known if same else rejected(Reason.CONFLICT, "two sets for one attempt: do not go on")
    live = _live(masker, wanted)
    problem = _set_problem(masker, wanted, live)
    if problem is not None or wanted is None:
        return masker, problem or rejected(Reason.MALFORMED, "this is no set of the roster")
    if not len(live) == len(call.mask_keys) == len(call.blobs):
        return masker, rejected(Reason.MALFORMED, "one mask key and one share of every neighbour in the set are needed")
    keys = dict(zip(live, call.mask_keys, strict=True))
    secrets = mask_secrets(member.sealing, masker.mask, keys)
    if len(secrets) < len(keys):  # a mask of zeros hides nothing
        return masker, rejected(Reason.MALFORMED, "a neighbour's mask key cannot be used: do not take part")
    if sum(_opens(masker, j, keys[j], blob) for j, blob in zip(live, call.blobs, strict=True)) < member.params.t:
        few = "too few neighbours have shared their keys with this user: do not take part"  # the others may be S1's own
        return masker, rejected(Reason.TOO_FEW, few)
    after = replace(masker, last=wanted, near=keys, asked=b"", helped=None)
    body = _body(after, wanted, secrets, entropy)
    return replace(after, bodies=(*masker.bodies, body)), body


def _live(masker: Masker, wanted: PeerSet | None) -> list[int]:
    inside = frozenset(() if wanted is None else wanted.members)
    return [j for j in masker.placed.neighbours if j in inside]


def _set_problem(masker: Masker, wanted: PeerSet | None, live: list[int]) -> Rejected | None:
    params, last = masker.member.params, masker.last
    if wanted is None or not 1 <= wanted.attempt <= params.attempts or masker.member.index not in wanted.members:
        return rejected(Reason.MALFORMED, "this is no set of the roster with this user in it")
    if len(wanted.members) < params.minimum or len(live) < params.t:
        return rejected(Reason.TOO_FEW, "this set has too few users or too few neighbours in it: do not take part")
    if last is not None and not (wanted.attempt > last.attempt and set(wanted.members) <= set(last.members)):
        return rejected(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    if not masker.revealed.isdisjoint(wanted.members):
        return rejected(Reason.CONFLICT, "this set has a user in it whose key this user has helped to reveal")
    return None


def _opens(masker: Masker, j: int, mask_key: bytes, blob: bytes) -> bool:
    """Whether neighbour j has dealt this user a share of its mask key."""
    member, key = masker.member, _message_key(masker, j, mask_key)
    part = None if key is None else member.sealing.open_with(key, blob)
    return part is not None and _is_share(part, member.params.t)


def _message_key(masker: Masker, j: int, mask_key: bytes) -> bytes | None:
    """The key of the blob in which neighbour j has dealt this user a share of its mask key."""
    member, secret = masker.member, masker.secrets[j]
    info = share_info(member.params, j, member.index, mask_key)
    return member.sealing.message_key(secret, member.digest, info) if secret else None


def _is_share(part: bytes, threshold: int) -> bool:
    try:
        return KeyShare.from_bytes(part).threshold == threshold
    except ShareError:
        return False


def _body(masker: Masker, wanted: PeerSet, secrets: Mapping[int, bytes], entropy: Entropy) -> MaskedSum:
    member, params = masker.member, masker.member.params
    now = Round(params, member.digest, wanted.attempt, wanted.set_digest)
    total = add(masker.response, masks_of(member.sealing, now, member.index, secrets), params.q)
    made_for = now.attempt, now.set_digest, keys_digest(masker.mask.public, masker.near.values())
    return MaskedSum(params.survey, member.index, member.credential, *made_for, *hidden(member, now, total, entropy))


def answer_help(masker: Masker, call: HelpCall, entropy: Entropy) -> tuple[Masker, Help | Rejected]:
    """Message keys of what dropped neighbours dealt, for the first statement of S2 in an attempt and for no other."""
    if masker.helped is not None:
        same = masker.asked == call.statement.payload
        return masker, masker.helped if same else rejected(Reason.CONFLICT, "help is given for one statement only")
    stated = _stated(masker, call.statement)
    if isinstance(stated, Rejected) or masker.last is None:
        return masker, stated if isinstance(stated, Rejected) else rejected(Reason.EARLY, "no vector was sent yet")
    included = frozenset(members_of(stated.members, masker.placed.n) or ())
    gone = {j: _message_key(masker, j, key) or bytes(KEY_BYTES) for j, key in masker.near.items() if j not in included}
    member = masker.member
    if not gone:
        return masker, rejected(Reason.EARLY, "no neighbour was dropped: there is nothing to help with")
    info = help_info(member.params, member.index, stated.claim_hash)
    blob = member.sealed_to_s2(info, b"".join(gone.values()), entropy)
    body = Help(member.params.survey, member.index, member.credential, stated.set_digest, blob)
    revealed = masker.revealed | gone.keys()
    return replace(masker, asked=call.statement.payload, helped=body, revealed=revealed), body


def _stated(masker: Masker, statement: Signed) -> PeersIncluded | Rejected:
    """What S2 signed, if it speaks of the set in which this user took part, and includes the user and enough others."""
    member, wanted = masker.member, masker.last
    stated = unwrap(member.params.keys.s2, Party.S2, statement)
    if not isinstance(stated, PeersIncluded) or stated.survey != member.params.survey:
        return rejected(Reason.UNSIGNED, "S2 did not sign for this: give nothing")
    if wanted is None or stated.set_digest != wanted.set_digest:
        return rejected(Reason.WRONG_DIGEST, "S2 speaks of another set: give nothing")
    included = frozenset(members_of(stated.members, masker.placed.n) or ())
    if not included <= frozenset(wanted.members) or member.index not in included:
        return rejected(Reason.MALFORMED, "this user's own vector is not among those included")
    if len(included) < member.params.minimum:
        return rejected(Reason.TOO_FEW, "too few users are included: give nothing")
    return stated


class MaskedClient(PeersClient):
    """A shared mask key, a masked vector for every attempt, help with the keys of users who vanished."""

    calls = {MaskCall: answer_call, HelpCall: answer_help}  # noqa: RUF012 - a table, never changed
    shows_roster = Neighbourhood

    def verify_roster(self, member: Member, answer: Neighbourhood) -> Placed | Rejected:
        """Place and neighbours."""
        return verify_roster(member, answer)

    def drawn(self, device: Device, placed: Placed, entropy: Entropy) -> Masker:
        """Vector and mask key."""
        return share(placed, device.answer, entropy)

    def first_body(self, device: Device) -> Message:
        """The shares of the mask key."""
        masker: Masker = state_of(device, Masker)
        return masker.bundle

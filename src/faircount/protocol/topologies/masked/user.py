"""The client of the `masked` topology.

    verify    its own roster entry and its neighbours', under the root that the aggregator signed;
              it derives by itself who its neighbours are
    share     draw vector and mask key, share the key t-of-k among the neighbours  -> coordinator
    mask      R_i + sum of m_ij over the neighbours in the set, under a fresh mask of its own, whose
              seed is encrypted to the aggregator                                  -> coordinator
    unmask    the message keys of the key shares dealt by neighbours that the aggregator declared
              dropped, encrypted to the aggregator                                 -> coordinator

What is random is drawn once and stored before it is sent; the same request again gets the same
bytes. A client unmasks for one statement per attempt, and never shares a set again with a member
whose key it has helped to reveal: that member's pairwise masks no longer hide anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from faircount.core.arrays import ArrayValue, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.questions import Sheet
from faircount.protocol.peers import member as members
from faircount.protocol.peers.client import PeersClient
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.messages import AcceptedMembers, PeerKey
from faircount.protocol.peers.peer_set import PeerSet, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext, mask_vector
from faircount.protocol.roles.client import ClientState, TopologyClientState, require_state
from faircount.protocol.topologies.masked.graph import draw_graph
from faircount.protocol.topologies.masked.masks import (
    keys_digest,
    mask_secrets,
    masks_of,
    share_info,
    unmask_info,
)
from faircount.protocol.topologies.masked.messages import (
    KeyBundle,
    MaskedSum,
    MaskedSumRequest,
    Neighbourhood,
    UnmaskRequest,
    UnmaskShares,
)
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import OVERHEAD, KeyPair
from faircount.protocol.wire.digests import leaf, members_of, root_from_multiproof
from faircount.protocol.wire.messages import Reason, Rejection, Signed, reject
from faircount.protocol.wire.roster_messages import RosterConfirmation
from faircount.protocol.wire.signing import verify_message
from faircount.sharing.field import add
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.shamir import KeyShare, split_key


@dataclass(frozen=True)
class Placed:
    """A member that knows its place among n members, and its neighbours' public keys."""

    member: Member
    n: int
    neighbours: Mapping[int, bytes] = field(repr=False)  # place -> public key, ascending


@dataclass(frozen=True, eq=False)
class Masker(ArrayValue, TopologyClientState):
    """A client that has drawn everything: its vector, its mask key, the encrypted key shares.

    Attributes:
        placed: its place and its neighbours
        mask: the key pair of its pairwise masks
        response: its vector
        secrets: agreed with each neighbour, for encrypting key shares
        bundle: its encrypted key shares
        near: mask keys of the neighbours in the last set
        last: the set of the last attempt that it took part in
        first_messages: its sum for each attempt that it took part in
        asked: the aggregator's statement for which it unmasks in this attempt
        helped: its unmask shares for that statement
        revealed: neighbours whose keys it has helped to reveal, in any attempt
    """

    stored_tag = "masked-client"
    placed: Placed
    mask: KeyPair
    response: Residues = field(repr=False)
    secrets: Mapping[int, bytes] = field(repr=False)
    bundle: KeyBundle = field(repr=False)
    near: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    last: PeerSet | None = None
    first_messages: tuple[MaskedSum, ...] = field(default=(), repr=False)
    asked: bytes = b""
    helped: UnmaskShares | None = field(default=None, repr=False)
    revealed: frozenset[int] = frozenset()

    @property
    def member(self) -> Member:
        """The member as it enrolled."""
        return self.placed.member


def verify_roster(member: Member, message: Neighbourhood) -> Placed | Rejection:
    """The member with its place and neighbours.

    Rejected unless the entries are its own and its neighbours' on the roster that the aggregator
    signed.
    """
    params = member.params
    index = message.index
    confirmation = verify_message(params.keys.aggregator, Party.AGGREGATOR, message.confirmation)
    if not isinstance(confirmation, RosterConfirmation):
        return reject(Reason.UNSIGNED, "The aggregator did not sign this roster")
    n = confirmation.n
    if not params.minimum <= n <= params.n_max or index >= n:
        return reject(Reason.TOO_FEW, "the roster is too small or too large, or has no such place")
    # The client derives its neighbours: the coordinator could otherwise surround it with its own.
    graph = draw_graph(confirmation.revealed, confirmation.digest, n, params.k)
    places = sorted((*graph.neighbours_of(index), index))
    entries = dict(zip(places, message.entries, strict=False))
    root = None
    if len(message.entries) == len(places):
        leaves = {place: leaf(place, peer.user, peer.public_key) for place, peer in entries.items()}
        root = root_from_multiproof(n, leaves, message.hashes)
    # The first check makes sure that there is an entry at every place, which the second relies on.
    problem = members.confirmation_problem(member, confirmation, n, root) or _neighbourhood_problem(
        member, index, entries
    )
    if problem is not None:
        return problem
    placed = replace(member, digest=confirmation.digest, index=index)
    keys = {place: peer.public_key for place, peer in entries.items() if place != index}
    return Placed(placed, n, keys)


def _neighbourhood_problem(
    member: Member, index: int, entries: Mapping[int, PeerKey]
) -> Rejection | None:
    # Neighbours encrypt their key shares for whoever has the key under this client's name.
    if entries[index] != PeerKey(member.user, member.keys.public):
        return reject(Reason.UNKNOWN, "this user is not on the roster with its own key")
    # Two neighbours with one key would be one participant with two key shares.
    if len({peer.public_key for peer in entries.values()}) != len(entries):
        return reject(Reason.MALFORMED, "the roster names a key twice")
    # The entries are the client's own and its neighbours', so t entries are t - 1 neighbours.
    if len(entries) <= member.params.t:
        return reject(
            Reason.TOO_FEW, f"fewer than {member.params.t} neighbours: nobody could recover a key"
        )
    return None


def share(placed: Placed, sheet: Sheet, entropy: Entropy) -> Masker:
    """Draw response and mask key, and share the key, once.

    `sheet` has the participant's answers, one per question.
    """
    member = placed.member
    response = member.params.mechanism.respond_as(member.index, sheet, entropy)
    return make_report(placed, response, member.crypto.keypair(entropy), entropy)


def make_report(placed: Placed, response: Residues, mask: KeyPair, entropy: Entropy) -> Masker:
    """Share a mask key drawn before; `entropy` is for the polynomial and the nonces."""
    member = placed.member
    # One share for each neighbour, in roster order: its index is 1 + the neighbour's position.
    key_shares = split_key(mask.secret, member.params.t, len(placed.neighbours), entropy)
    secrets = {
        j: member.crypto.agree(member.keys, key) or b"" for j, key in placed.neighbours.items()
    }
    encrypted_shares = tuple(
        _encrypt_key_share(member, j, secret, mask.public, key_share.to_bytes(), entropy)
        for (j, secret), key_share in zip(secrets.items(), key_shares, strict=True)
    )
    bundle = KeyBundle(
        member.params.survey, member.index, member.credential, mask.public, encrypted_shares
    )
    return Masker(placed, mask, response, secrets, bundle)


def _encrypt_key_share(
    member: Member, to: int, secret: bytes, mask_key: bytes, key_share: bytes, entropy: Entropy
) -> bytes:
    if not secret:
        # The neighbour's key is unusable: it cannot help to recover this mask key.
        return bytes(len(key_share) + OVERHEAD)
    info = share_info(member.params, member.index, to, mask_key)
    return member.crypto.encrypt(secret, member.digest, info, key_share, entropy)


# --- masking --------------------------------------------------------------------------------------


def answer_sum_request(
    masker: Masker, request: MaskedSumRequest, entropy: Entropy
) -> tuple[Masker, MaskedSum | Rejection]:
    """The masked vector for an attempt; the same bytes again, and never for another set."""
    member = masker.member
    wanted = parse_peer_set(member.digest, request.attempt, masker.placed.n, request.members, ())
    known = next((sent for sent in masker.first_messages if sent.attempt == request.attempt), None)
    if known is not None and masker.last is not None:
        # Two sums over different sets in one attempt would differ by single masks.
        if wanted == masker.last or request.attempt < masker.last.attempt:
            return masker, known
        return masker, reject(Reason.CONFLICT, "two sets for one attempt: do not go on")
    problem = _set_problem(masker, wanted)
    if problem is not None or wanted is None:
        return masker, problem or reject(Reason.MALFORMED, "this is no set of the roster")
    return _mask_for_set(masker, wanted, request, entropy)


def _mask_for_set(
    masker: Masker, wanted: PeerSet, request: MaskedSumRequest, entropy: Entropy
) -> tuple[Masker, MaskedSum | Rejection]:
    member = masker.member
    near = _neighbours_in(masker, wanted)
    if not len(near) == len(request.mask_keys) == len(request.encrypted_shares):
        return masker, reject(
            Reason.MALFORMED, "one mask key and one share of every neighbour in the set are needed"
        )
    keys = dict(zip(near, request.mask_keys, strict=True))
    secrets = mask_secrets(member.crypto, masker.mask, keys)
    # check: neighbour-mask-key - a mask made with a low-order key is zero and hides nothing
    if len(secrets) < len(keys):
        return masker, reject(
            Reason.MALFORMED, "a neighbour's mask key cannot be used: do not take part"
        )
    # A share that decrypts under the neighbour's own key vouches for the mask key beside it.
    vouched = sum(
        _has_key_share(masker, j, keys[j], encrypted_share)
        for j, encrypted_share in zip(near, request.encrypted_shares, strict=True)
    )
    # check: masked-few-shares - the other neighbours may be the coordinator's own
    if vouched < member.params.t:
        few = "too few neighbours have shared their keys with this user: do not take part"
        return masker, reject(Reason.TOO_FEW, few)
    # A new set: what was unmasked for the last one is over, but who was revealed stays known.
    after = replace(masker, last=wanted, near=keys, asked=b"", helped=None)
    message = _masked_sum(after, wanted, secrets, entropy)
    return replace(after, first_messages=(*masker.first_messages, message)), message


def _neighbours_in(masker: Masker, wanted: PeerSet) -> list[int]:
    inside = frozenset(wanted.members)
    return [j for j in masker.placed.neighbours if j in inside]


def _set_problem(masker: Masker, wanted: PeerSet | None) -> Rejection | None:
    params = masker.member.params
    last = masker.last
    # Masks made for a set without this client would not cancel.
    if (
        wanted is None
        or not 1 <= wanted.attempt <= params.attempts
        or masker.member.index not in wanted.members
    ):
        return reject(Reason.MALFORMED, "this is no set of the roster with this user in it")
    # With fewer than t neighbours in the set nobody could recover this client's mask key.
    if len(wanted.members) < params.minimum or len(_neighbours_in(masker, wanted)) < params.t:
        return reject(
            Reason.TOO_FEW,
            "this set has too few participants or too few neighbours in it: do not take part",
        )
    # A set that grows again would differ from an earlier one by members of somebody's choice.
    if last is not None and not (
        wanted.attempt > last.attempt and set(wanted.members) <= set(last.members)
    ):
        return reject(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    # check: masked-revealed-member - a member whose mask key was revealed has no mask
    if not masker.revealed.isdisjoint(wanted.members):
        return reject(
            Reason.CONFLICT, "this set has a user in it whose key this user has helped to reveal"
        )
    return None


def _has_key_share(masker: Masker, j: int, mask_key: bytes, encrypted_share: bytes) -> bool:
    """Whether neighbour j has dealt this client a share of its mask key."""
    member = masker.member
    key = _message_key(masker, j, mask_key)
    if key is None:
        return False
    key_share = member.crypto.decrypt_with_key(key, encrypted_share)
    if key_share is None:
        return False
    try:
        # A share of another threshold would not combine with those of the other neighbours.
        return KeyShare.from_bytes(key_share).threshold == member.params.t
    except ShareError:
        return False


def _message_key(masker: Masker, j: int, mask_key: bytes) -> bytes | None:
    """The key that decrypts the share of its mask key that neighbour j dealt this client."""
    member = masker.member
    secret = masker.secrets[j]
    if not secret:
        return None
    info = share_info(member.params, j, member.index, mask_key)
    return member.crypto.message_key(secret, member.digest, info)


def _masked_sum(
    masker: Masker, wanted: PeerSet, secrets: Mapping[int, bytes], entropy: Entropy
) -> MaskedSum:
    member = masker.member
    params = member.params
    context = AttemptContext(params, member.digest, wanted.attempt, wanted.set_digest)
    masks = masks_of(member.crypto, context, member.index, secrets)
    total = add(masker.response, masks, params.q)
    vector, encrypted_share = mask_vector(member, context, total, entropy)
    return MaskedSum(
        params.survey,
        member.index,
        member.credential,
        wanted.attempt,
        wanted.set_digest,
        keys_digest(masker.mask.public, masker.near.values()),
        vector,
        encrypted_share,
    )


# --- unmasking ------------------------------------------------------------------------------------


def answer_unmask_request(
    masker: Masker, request: UnmaskRequest, entropy: Entropy
) -> tuple[Masker, UnmaskShares | Rejection]:
    """Message keys of what dropped neighbours dealt, for the first statement of an attempt only."""
    if masker.helped is not None:
        same = masker.asked == request.statement.payload
        # check: masked-one-statement - help for two sets would unmask the users who differ
        return masker, masker.helped if same else reject(
            Reason.CONFLICT, "help is given for one statement only"
        )
    stated = _verify_statement(masker, request.statement)
    if isinstance(stated, Rejection):
        return masker, stated

    member = masker.member
    accepted = frozenset(members_of(stated.members, masker.placed.n) or ())
    dropped = [j for j in masker.near if j not in accepted]
    # Nothing to reveal, and the one statement per attempt must not be used up by it.
    if not dropped:
        return masker, reject(
            Reason.EARLY, "no neighbour was dropped: there is nothing to help with"
        )
    # Zeros stand for a key that this client never had, so that all have their place.
    keys = [_message_key(masker, j, masker.near[j]) or bytes(KEY_BYTES) for j in dropped]
    info = unmask_info(member.params, member.index, stated.manifest_hash)
    message = UnmaskShares(
        member.params.survey,
        member.index,
        member.credential,
        stated.set_digest,
        member.encrypt_to_aggregator(info, b"".join(keys), entropy),
    )
    # Stored with the message: after a crash this client must remember whom it has revealed.
    revealed = masker.revealed.union(dropped)
    payload = request.statement.payload
    return replace(masker, asked=payload, helped=message, revealed=revealed), message


def _verify_statement(masker: Masker, statement: Signed) -> AcceptedMembers | Rejection:
    """The accepted members that the aggregator signed.

    Rejected unless they are of the set in which this client took part, include the client, and are
    enough.
    """
    member = masker.member
    wanted = masker.last
    stated = verify_message(member.params.keys.aggregator, Party.AGGREGATOR, statement)
    if not isinstance(stated, AcceptedMembers) or stated.survey != member.params.survey:
        return reject(Reason.UNSIGNED, "The aggregator did not sign for this: give nothing")
    if (
        wanted is None
        # check: masked-help-set - keys would be revealed for a set that nobody masked for
        or stated.set_digest != wanted.set_digest
    ):
        return reject(Reason.WRONG_DIGEST, "The aggregator speaks of another set: give nothing")
    accepted = frozenset(members_of(stated.members, masker.placed.n) or ())
    if (
        not accepted <= frozenset(wanted.members)
        # check: masked-help-included - help from outside the set only unmasks others
        or member.index not in accepted
    ):
        return reject(Reason.MALFORMED, "this participant's own vector is not among those included")
    # check: masked-help-minimum - a sum over few users is nearly one report
    if len(accepted) < member.params.minimum:
        return reject(Reason.TOO_FEW, "too few participants are included: give nothing")
    return stated


class MaskedClient(PeersClient):
    """A shared mask key, a masked vector for every attempt, unmask shares for the dropped."""

    handlers = {  # noqa: RUF012 - a table, never changed
        MaskedSumRequest: answer_sum_request,
        UnmaskRequest: answer_unmask_request,
    }
    roster_kind = Neighbourhood

    def verify_roster(self, member: Member, roster: Neighbourhood) -> Placed | Rejection:
        """Find place and neighbours."""
        return verify_roster(member, roster)

    def draw_response(self, client: ClientState, placed: Placed, entropy: Entropy) -> Masker:
        """Draw vector and mask key."""
        return share(placed, client.sheet, entropy)

    def first_message(self, client: ClientState) -> Message:
        """The shares of the mask key."""
        masker: Masker = require_state(client, Masker)
        return masker.bundle

"""The client of the `explicit` topology: it shares its vector, and sums the shares it received.

The package's docstring describes the protocol. What is random is drawn once and stored before it is
sent; a request that comes again gets the same bytes. A client refuses any second set in one
attempt, and any set that grows again: the difference of two sums could be somebody's vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from faircount.core.arrays import ArrayValue, Bools, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.questions import Sheet
from faircount.protocol.peers.client import PeersClient
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.peer_set import PeerSet, is_robustly_connected, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext, mask_vector
from faircount.protocol.roles.client import ClientState, TopologyClientState, require_state
from faircount.protocol.topologies.explicit.messages import (
    Complaint,
    PeerSum,
    ShareBundle,
    SumRequest,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import OVERHEAD
from faircount.protocol.wire.messages import Reason, Rejection, reject
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.sharing.field import add, subtract, sum_rows, uniform
from faircount.sharing.keys import Purpose, key_info

FOR_ALL_SETS = bytes(32)
"""Context of a share's key: shares are made for the roster, not for one set."""

PAIR_BYTES = 8 + len(FOR_ALL_SETS)
"""End of a key info that differs between shares: sender, receiver and the context."""


@dataclass(frozen=True, eq=False)
class Sharer(ArrayValue, TopologyClientState):
    """A client that has drawn everything: its vector, its shares, the encrypted bundle."""

    stored_tag = "explicit-client"
    member: Member
    response: Residues = field(repr=False)
    sent: Residues = field(repr=False)  # row j: the share for member j; its own row is zero
    secrets: tuple[bytes, ...] = field(repr=False)  # agreed with member j
    bundle: ShareBundle = field(repr=False)
    received: Residues = field(repr=False)  # row j: the share from member j
    decrypted: Bools = field(repr=False)  # whose shares could be decrypted
    last: PeerSet | None = None
    # one for each attempt taken part in
    first_messages: tuple[PeerSum | Complaint, ...] = field(default=(), repr=False)


def share(member: Member, sheet: Sheet, entropy: Entropy) -> Sharer:
    """Draw response and shares, once (Algorithm 2, lines 2 to 9).

    `sheet` has the participant's answers, one per question.
    """
    params = member.params
    # Before the roster is verified its keys may be the coordinator's own.
    if member.index < 0:
        raise ProtocolError("verify the roster before sharing")
    response = params.mechanism.respond_as(member.index, sheet, entropy)
    return make_report(member, response, uniform(params.q, (member.n, params.N), entropy), entropy)


def make_report(member: Member, response: Residues, shares: Residues, entropy: Entropy) -> Sharer:
    """Encrypt shares drawn before, row j for member j; `entropy` is for the nonces."""
    params = member.params
    secrets = [member.crypto.agree(member.keys, peer.public_key) or b"" for peer in member.roster]
    sent = shares.copy()
    sent[member.index] = 0  # it keeps nothing from itself
    packed = pack_rows(sent, params.q)
    others = (j for j in range(member.n) if j != member.index)
    encrypted_shares = tuple(
        _encrypt_share(member, j, secrets[j], packed[j], entropy) for j in others
    )
    bundle = ShareBundle(params.survey, member.index, member.credential, encrypted_shares)
    return Sharer(
        member,
        response,
        sent,
        tuple(secrets),
        bundle,
        received=np.zeros_like(sent),
        decrypted=np.zeros(member.n, dtype=np.bool_),
    )


def _share_info(survey: bytes, sender: int, receiver: int) -> bytes:
    pair = sender.to_bytes(4, "big") + receiver.to_bytes(4, "big")
    return _info_prefix(survey) + pair + FOR_ALL_SETS


@lru_cache(maxsize=64)
def _info_prefix(survey: bytes) -> bytes:
    """The info of a share's key up to the pair: the rest differs between the shares of a survey."""
    return key_info(Purpose.EXPLICIT_SHARE, survey, 0, 0, 0, FOR_ALL_SETS)[:-PAIR_BYTES]


def _encrypt_share(
    member: Member, to: int, secret: bytes, packed: bytes, entropy: Entropy
) -> bytes:
    if not secret:
        # The other key is unusable, so its owner cannot decrypt: it complains, and the pair is
        # left out.
        return bytes(len(packed) + OVERHEAD)
    info = _share_info(member.params.survey, member.index, to)
    return member.crypto.encrypt(secret, member.digest, info, packed, entropy)


def answer_sum_request(
    sharer: Sharer, request: SumRequest, entropy: Entropy
) -> tuple[Sharer, PeerSum | Complaint | Rejection]:
    """The sum for an attempt (Algorithm 2, line 10), or a complaint about shares.

    The same request again gets the same message.
    """
    member = sharer.member
    wanted = parse_peer_set(
        member.digest, request.attempt, member.n, request.members, request.removed
    )
    known = next((sent for sent in sharer.first_messages if sent.attempt == request.attempt), None)
    if known is not None and sharer.last is not None:
        # Two sums over different sets in one attempt would differ by single vectors.
        if wanted == sharer.last or request.attempt < sharer.last.attempt:
            return sharer, known
        return sharer, reject(Reason.CONFLICT, "two sets for one attempt: do not go on")
    problem = _set_problem(sharer, wanted)
    if problem is not None or wanted is None:
        return sharer, problem or reject(Reason.MALFORMED, "this is no set of the roster")
    # Shares come with the first request only, and later sets are subsets of that one.
    if sharer.last is None:
        if len(request.encrypted_shares) != len(wanted.members) - 1:
            return sharer, reject(Reason.MALFORMED, "one share from every other member is needed")
        sharer = _decrypt_shares(sharer, wanted, request.encrypted_shares)
    message = _sum_or_complaint(sharer, wanted, entropy)
    # Complaints count in the first attempt only; later ones could shrink the set at will.
    if isinstance(message, Complaint) and request.attempt > 1:
        return sharer, reject(
            Reason.CONFLICT, "this set counts shares of which this user has complained"
        )
    first_messages = (*sharer.first_messages, message)
    return replace(sharer, last=wanted, first_messages=first_messages), message


def _set_problem(sharer: Sharer, wanted: PeerSet | None) -> Rejection | None:
    params = sharer.member.params
    last = sharer.last
    own = sharer.member.index
    if wanted is None or not 1 <= wanted.attempt <= params.attempts or own not in wanted.members:
        return reject(Reason.MALFORMED, "this is no set of the roster with this user in it")
    if (
        # check: explicit-minimum - a sum over few members is nearly one report
        len(wanted.members) < params.minimum
        or not is_robustly_connected(wanted.members, wanted.removed, params.phi)
    ):
        return reject(Reason.TOO_FEW, "this set is too small or falls apart: do not take part")
    # A set that grows again would differ from an earlier one by members of somebody's choice.
    if last is not None and not (
        wanted.attempt > last.attempt and set(wanted.members) <= set(last.members)
    ):
        return reject(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    return None


def _decrypt_shares(sharer: Sharer, wanted: PeerSet, encrypted_shares: Sequence[bytes]) -> Sharer:
    member = sharer.member
    others = [j for j in wanted.members if j != member.index]
    plaintexts = []
    for j, encrypted_share in zip(others, encrypted_shares, strict=True):
        info = _share_info(member.params.survey, j, member.index)
        secret = sharer.secrets[j]
        plaintext = None
        if secret:
            plaintext = member.crypto.decrypt(secret, member.digest, info, encrypted_share)
        # An empty plaintext is no packed vector, so it counts as a share that failed.
        plaintexts.append(plaintext or b"")
    rows, is_valid = unpack_rows(plaintexts, member.params.q, member.params.N)
    received = np.zeros_like(sharer.received)
    received[others] = rows
    decrypted = np.zeros_like(sharer.decrypted)
    decrypted[others] = is_valid
    return replace(sharer, received=received, decrypted=decrypted)


def _sum_or_complaint(sharer: Sharer, wanted: PeerSet, entropy: Entropy) -> PeerSum | Complaint:
    member = sharer.member
    params = member.params
    # Both members of a removed pair leave each other out, so that the other shares still cancel.
    removed = set[int]()
    for pair in wanted.removed:
        if member.index in pair:
            removed.update(pair)
    counted = [j for j in wanted.members if j != member.index and j not in removed]
    failed = tuple(j for j in counted if not sharer.decrypted[j])
    if failed:
        return Complaint(params.survey, member.index, member.credential, wanted.attempt, failed)
    arrived = sum_rows(sharer.received[counted], params.q)
    given = sum_rows(sharer.sent[counted], params.q)
    # tau_i of Algorithm 2, line 10; over the whole set what arrived and what was given cancel.
    tau = subtract(add(sharer.response, arrived, params.q), given, params.q)
    context = AttemptContext(params, member.digest, wanted.attempt, wanted.set_digest)
    vector, encrypted_share = mask_vector(member, context, tau, entropy)
    return PeerSum(
        params.survey,
        member.index,
        member.credential,
        wanted.attempt,
        wanted.set_digest,
        vector,
        encrypted_share,
    )


class ExplicitClient(PeersClient):
    """A bundle of shares, then a sum for every attempt."""

    handlers = {SumRequest: answer_sum_request}  # noqa: RUF012 - a table, never changed

    def draw_response(self, client: ClientState, placed: Member, entropy: Entropy) -> Sharer:
        """Draw vector and shares."""
        return share(placed, client.sheet, entropy)

    def first_message(self, client: ClientState) -> Message:
        """The bundle of shares."""
        sharer: Sharer = require_state(client, Sharer)
        return sharer.bundle

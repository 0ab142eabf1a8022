"""A user of the `explicit` topology: it shares its vector with everybody, and adds up what it was sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.values import ArrayValue
from faircount.protocol.roles.client import Device, UserState, state_of
from faircount.protocol.topologies.explicit.messages import Call, Complaint, ShareBundle, SumUpload
from faircount.protocol.topologies.peers.client import PeersClient
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set
from faircount.protocol.topologies.peers.self_mask import Round, hidden
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.sharing.field import add, subtract, sum_rows, uniform
from faircount.sharing.keys import Purpose, key_info

FOR_ALL_SETS = bytes(32)
"""Context of a share's key: shares are made for the roster, not for one set."""


@dataclass(frozen=True, eq=False)
class Sharer(ArrayValue, UserState):
    """A user who has drawn everything: its vector, its shares, the sealed bundle; kept before anything is sent."""

    stored_version = 1
    member: Member
    response: Residues = field(repr=False)
    sent: Residues = field(repr=False)  # row j: the share for user j; its own row is zero
    secrets: tuple[bytes, ...] = field(repr=False)  # of the pair with user j
    bundle: ShareBundle = field(repr=False)
    received: Residues = field(repr=False)
    opened: Marks = field(repr=False)
    last: PeerSet | None = None
    bodies: tuple[SumUpload | Complaint, ...] = field(default=(), repr=False)  # one for each attempt taken part in


def share(member: Member, answer: int, entropy: Entropy) -> Sharer:
    """Draw response and shares, once; `answer` is a position in the item list (Alg. 2, lines 2 to 9)."""
    params, mechanism = member.params, member.params.mechanism
    if member.index < 0:
        raise ProtocolError("verify the roster before sharing")
    response = mechanism.respond_as(member.index, answer, entropy)
    return prepare(member, response, uniform(params.q, (member.n, params.N), entropy), entropy)


def prepare(member: Member, response: Residues, shares: Residues, entropy: Entropy) -> Sharer:
    """Seal shares drawn before, row j for user j (its own row does not count); `entropy` is for the nonces."""
    params, sent = member.params, shares.copy()
    secrets = [member.sealing.agree(member.keys, each.public_key) or b"" for each in member.roster]
    sent[member.index] = 0
    packed = pack_rows(sent, params.q)
    blobs = tuple(_sealed(member, j, secrets[j], packed[j], entropy) for j in range(member.n) if j != member.index)
    bundle = ShareBundle(params.survey, member.index, member.credential, blobs)
    return Sharer(
        member, response, sent, tuple(secrets), bundle, np.zeros_like(sent), np.zeros(member.n, dtype=np.bool_)
    )


def _share_info(survey: bytes, sender: int, receiver: int) -> bytes:
    return _bound(survey) + sender.to_bytes(4, "big") + receiver.to_bytes(4, "big") + FOR_ALL_SETS


@lru_cache(maxsize=64)
def _bound(survey: bytes) -> bytes:
    """The info of a share's key up to the pair, which is all that differs between the shares of a survey."""
    return key_info(Purpose.EXPLICIT_SHARE, survey, 0, 0, 0, FOR_ALL_SETS)[:-40]


def _sealed(member: Member, to: int, secret: bytes, packed: bytes, entropy: Entropy) -> bytes:
    if not secret:  # no key with this user: it will complain, and the pair is left out
        return bytes(len(packed) + OVERHEAD)
    info = _share_info(member.params.survey, member.index, to)
    return member.sealing.seal(secret, member.digest, info, packed, entropy)


def answer_call(sharer: Sharer, call: Call, entropy: Entropy) -> tuple[Sharer, SumUpload | Complaint | Rejected]:
    """The sum for an attempt (Alg. 2, line 10), or a complaint about shares that do not open. Asked again: the same."""
    member = sharer.member
    wanted = peer_set(member.digest, call.attempt, member.n, call.members, call.removed)
    known = next((each for each in sharer.bodies if each.attempt == call.attempt), None)
    if known is not None and sharer.last is not None:
        same = wanted == sharer.last or call.attempt < sharer.last.attempt
        return sharer, known if same else rejected(Reason.CONFLICT, "two sets for one attempt: do not go on")
    problem = _set_problem(sharer, wanted)
    if problem is not None or wanted is None:
        return sharer, problem or rejected(Reason.MALFORMED, "this is no set of the roster")
    if sharer.last is None:
        if len(call.blobs) != len(wanted.members) - 1:
            return sharer, rejected(Reason.MALFORMED, "one share from every other member is needed")
        sharer = _open_shares(sharer, wanted, call.blobs)
    body = _body(sharer, wanted, entropy)
    if isinstance(body, Complaint) and call.attempt > 1:
        return sharer, rejected(Reason.CONFLICT, "this set counts shares of which this user has complained")
    return replace(sharer, last=wanted, bodies=(*sharer.bodies, body)), body


def _set_problem(sharer: Sharer, wanted: PeerSet | None) -> Rejected | None:
    params, last, own = sharer.member.params, sharer.last, sharer.member.index
    if wanted is None or not 1 <= wanted.attempt <= params.attempts or own not in wanted.members:
        return rejected(Reason.MALFORMED, "this is no set of the roster with this user in it")
    if len(wanted.members) < params.minimum or not holds_together(wanted.members, wanted.removed, params.phi):
        return rejected(Reason.TOO_FEW, "this set is too small or falls apart: do not take part")
    if last is not None and not (wanted.attempt > last.attempt and set(wanted.members) <= set(last.members)):
        return rejected(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    return None


def _open_shares(sharer: Sharer, wanted: PeerSet, blobs: Sequence[bytes]) -> Sharer:
    member, others = sharer.member, [j for j in wanted.members if j != sharer.member.index]
    plain = [_opened(sharer, j, blob) for j, blob in zip(others, blobs, strict=True)]
    rows, fine = unpack_rows(plain, member.params.q, member.params.N)
    received, opened = np.zeros_like(sharer.received), np.zeros_like(sharer.opened)
    received[others], opened[others] = rows, fine
    return replace(sharer, received=received, opened=opened)


def _opened(sharer: Sharer, j: int, blob: bytes) -> bytes:
    member = sharer.member
    info = _share_info(member.params.survey, j, member.index)
    return member.sealing.open(sharer.secrets[j], member.digest, info, blob) or b"" if sharer.secrets[j] else b""


def _body(sharer: Sharer, wanted: PeerSet, entropy: Entropy) -> SumUpload | Complaint:
    member, params = sharer.member, sharer.member.params
    apart = {j for pair in wanted.removed if member.index in pair for j in pair}
    counted = [j for j in wanted.members if j != member.index and j not in apart]
    closed = tuple(j for j in counted if not sharer.opened[j])
    if closed:
        return Complaint(params.survey, member.index, member.credential, wanted.attempt, closed)
    arrived, left = sum_rows(sharer.received[counted], params.q), sum_rows(sharer.sent[counted], params.q)
    tau = subtract(add(sharer.response, arrived, params.q), left, params.q)
    now = Round(params, member.digest, wanted.attempt, wanted.set_digest)
    made_for = now.attempt, now.set_digest
    return SumUpload(params.survey, member.index, member.credential, *made_for, *hidden(member, now, tau, entropy))


class ExplicitClient(PeersClient):
    """A bundle of shares, then a sum for every attempt."""

    calls = {Call: answer_call}  # noqa: RUF012 - a table, never changed

    def drawn(self, device: Device, placed: Member, entropy: Entropy) -> Sharer:
        """Vector and shares."""
        return share(placed, device.answer, entropy)

    def first_body(self, device: Device) -> Message:
        """The bundle of shares."""
        sharer: Sharer = state_of(device, Sharer)
        return sharer.bundle

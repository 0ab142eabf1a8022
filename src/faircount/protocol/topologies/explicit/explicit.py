"""The `explicit` topology: Algorithm 2 as printed. Everybody holds a share of everybody's vector.

    user   draws its vector and n - 1 uniform shares once, seals one to each other user                  -> S1, relayed
    user   tau_i(S) = R_i + sum over j in S of (s(j->i) - s(i->j)), sealed to S2 under the set's digest   -> S1
    S1     all of S_a sent: claim, blobs. Somebody did not: S_(a+1) = those who did, and once more
    S2     opens all, adds, publishes. Over S the shares cancel: the sum of the tau_i is the sum of the R_i

The same shares serve every attempt; S2 receives one attempt only. A pair whose shares do not open is left out by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.peers import roster
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.messages import Call, Complaint, ShareBundle, SumUpload
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set, shrunk
from faircount.protocol.topologies.peers.sums import S2, adopt, complete, current_set, last_word, make_claim, sum_info
from faircount.protocol.wire.messages import BadBlobs, Reason, Rejected, Signed, Visit, Wait, rejected
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.sharing.field import add, subtract, sum_rows, uniform
from faircount.sharing.keys import Purpose, key_info
from faircount.sharing.packing import pack, packed_size

__all__ = ["S1", "S2"]
ALL = bytes(32)
"""Context of a share's key: shares are made for the roster, not for one set."""


# --- user ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sharer:
    """A user who has drawn everything: its vector, its shares, the sealed bundle; kept before anything is sent."""

    member: Member
    response: Residues = field(repr=False)
    sent: Residues = field(repr=False)  # row j: the share for user j; its own row is zero
    secrets: tuple[bytes, ...] = field(repr=False)  # of the pair with user j
    bundle: ShareBundle = field(repr=False)
    received: Residues = field(repr=False)
    opened: NDArray[np.bool_] = field(repr=False)
    last: PeerSet | None = None
    bodies: tuple[SumUpload | Complaint, ...] = field(default=(), repr=False)  # one for each attempt taken part in


def share(member: Member, answer: int, entropy: Entropy) -> Sharer:
    """Draw response and shares, once; `answer` is a position in the item list (Alg. 2, lines 2 to 9)."""
    params, mechanism = member.params, member.params.mechanism
    if not isinstance(mechanism, SharedMechanism) or member.index < 0:
        raise ProtocolError("believe the roster before sharing")
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
    return _bound(survey) + sender.to_bytes(4, "big") + receiver.to_bytes(4, "big") + ALL


@lru_cache(maxsize=64)
def _bound(survey: bytes) -> bytes:
    """The info of a share's key up to the pair, which is all that differs between the shares of a survey."""
    return key_info(Purpose.EXPLICIT_SHARE, survey, 0, 0, 0, ALL)[:-40]


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
    counted = [j for j in wanted.members if j != member.index and not _apart(wanted, member.index, j)]
    closed = tuple(j for j in counted if not sharer.opened[j])
    if closed:
        return Complaint(params.survey, member.index, member.credential, wanted.attempt, closed)
    arrived, left = sum_rows(sharer.received[counted], params.q), sum_rows(sharer.sent[counted], params.q)
    tau = subtract(add(sharer.response, arrived, params.q), left, params.q)
    secret = member.sealing.agree(member.keys, params.keys.box)
    if secret is None:
        raise ProtocolError("S2's key cannot be used: do not answer, ask the owner")
    info = sum_info(params, wanted, member.index)
    blob = member.sealing.seal(secret, member.digest, info, pack(tau, params.q), entropy)
    return SumUpload(params.survey, member.index, member.credential, wanted.attempt, wanted.set_digest, blob)


def _apart(wanted: PeerSet, i: int, j: int) -> bool:
    return (min(i, j), max(i, j)) in wanted.removed


# --- S1 -----------------------------------------------------------------------------------------------------------


def take_bundle(s: Coordinator, message: ShareBundle) -> coordinator.Step:
    """A user's shares for all others."""
    size = packed_size(s.params.q, s.params.N) + OVERHEAD
    if len(message.blobs) != s.n - 1 or any(len(blob) != size for blob in message.blobs):
        return s, (rejected(Reason.MALFORMED, f"{s.n - 1} sealed shares of {size} bytes are needed"),)
    return coordinator.upload(s, message, made_for=0, open_=s.state is State.SHARING)


def take_sum(s: Coordinator, message: SumUpload) -> coordinator.Step:
    """A user's sum for the current attempt, over the very set that S1 has now.

    After a restore S1 may form another set for the same attempt: a sum over the former one, sent again, would not open,
    and S2 could take the difference to the further claim.
    """
    if len(message.blob) != packed_size(s.params.q, s.params.N) + OVERHEAD:
        return s, (rejected(Reason.MALFORMED, "a sealed sum has another length"),)
    open_ = _may_send(s, message) and message.set_digest == current_set(s).set_digest
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def take_complaint(s: Coordinator, message: Complaint) -> coordinator.Step:
    """A user cannot open some shares: alive, but not in this attempt's sum."""
    if not message.senders or message.index in message.senders or not set(message.senders) <= set(range(s.n)):
        return s, (rejected(Reason.MALFORMED, "a complaint names other users of the roster"),)
    return coordinator.upload(s, message, made_for=message.attempt, open_=_may_send(s, message))


def _may_send(s: Coordinator, message: SumUpload | Complaint) -> bool:
    return s.state is State.SUBMITTING and message.attempt == s.attempt and message.index in s.members


def answer_visit(s: Coordinator, message: Visit) -> coordinator.Step:
    """What there is to do for a user: share, or take part in the current attempt."""
    outsider = coordinator.intruder(s, message.index, message.credential)
    if outsider is not None:
        return s, (outsider,)
    if s.state is State.SHARING and not coordinator.holds(s, ShareBundle, 0, message.index):
        return s, (roster.roster_message(s),)
    if s.state is State.SUBMITTING and message.index in s.members and not _heard(s, message.index):
        return s, (_call(s, message.index),)
    return s, (Wait(s.params.survey, s.state.encode()),)


def _heard(s: Coordinator, index: int) -> bool:
    sent = coordinator.holds(s, SumUpload, current_set(s).set_digest, index)
    return sent or coordinator.holds(s, Complaint, s.attempt, index)


def _call(s: Coordinator, index: int) -> Call:
    """Shares travel with the first attempt only: later sets are subsets, and the user has kept them."""
    wanted, blobs = current_set(s), ()
    if s.attempt == 1:
        bundles = [(j, s.uploads[ShareBundle.tag, 0, j]) for j in s.members if j != index]
        blobs = tuple(each.blobs[index - (index > j)] for j, each in bundles)
    return Call(s.params.survey, s.attempt, wanted.bits, wanted.edges, blobs)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Those who shared are the first set."""
    members = tuple(j for j in range(s.n) if coordinator.holds(s, ShareBundle, 0, j))
    return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), members, frozenset())


def _attempt(s: Coordinator, alive: Sequence[int], removed: frozenset[tuple[int, int]]) -> coordinator.Step:
    members, pairs = shrunk(alive, removed, s.params.phi)
    if s.claim is not None and len(members) < len(alive):
        return coordinator.give_up(s, "users complain of each other after the claim, and the set is final")
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} users are left, {s.params.minimum} are needed")
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, f"somebody was missing in each of {s.params.attempts} attempts: try `masked`")
    return replace(s, attempt=s.attempt + 1, members=members, removed=pairs), ()


def end_attempt(s: Coordinator) -> coordinator.Step:
    """Everybody sent its sum: claim. Otherwise the next attempt, with those who were heard of.

    Once S2 has blobs the set is final: it must not get a sum without somebody of whom it has had one with.
    """
    digest = current_set(s).set_digest
    sums = [j for j in s.members if coordinator.holds(s, SumUpload, digest, j)]
    if len(sums) == len(s.members):
        after = make_claim(s)
        return after, last_word(after)
    complaints = [coordinator.held(s, Complaint, s.attempt, j) for j in s.members]
    apart = {(min(c.index, j), max(c.index, j)) for c in complaints if c is not None for j in c.senders}
    alive = {*sums, *(c.index for c in complaints if c is not None)}
    if s.claim is not None and len(alive) < len(s.members):
        return coordinator.give_up(s, "somebody vanished after the claim, and the set is final")
    return _attempt(s, sorted(alive), s.removed | apart)


def on_bad_blobs(s: Coordinator, message: BadBlobs, _: Signed) -> coordinator.Step:
    """S2 could not open some sums and added none: one further attempt without those users."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash:
        return s, ()
    bad = {s.members[position] for position in message.positions if position < len(s.members)}
    again = replace(s, receipt=None, state=advance(s.state, State.SUBMITTING))
    return _attempt(again, [j for j in s.members if j not in bad], s.removed)


S1 = Rules(
    users={
        **roster.USERS,
        ShareBundle: take_bundle,
        SumUpload: take_sum,
        Complaint: take_complaint,
        Visit: answer_visit,
    },
    s2={**roster.S2, BadBlobs: on_bad_blobs},
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_attempt,
    },
    resume=last_word,
    adopt=adopt,
    complete=complete,
)

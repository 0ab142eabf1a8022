"""The `servers` topology: a user answers in one visit; S1 and S2 hold one uniform share of it each.

    user   share1 = R - expand(seed), blob2 = seal(seed) to S2, bound to user id, key and C(share1)         -> S1
    S1     freezes (user, key, C(share1), hash blob2), claims                                              -> S2
    S2     receipt; S1 sends the blobs; S2 opens all, fixes the included set I for good and signs it       -> S1
    S1     ONE sum of share1 over I                                                                        -> S2
    S2     adds its expanded seeds, publishes with the Merkle root of I

C is a commitment with a salt that only the user and S1 know. A plain hash of share1 would tell S2 everything: S2 has
the seed, a response has few possible values, and each could be tried. There is no roster position: everybody makes the
same noise, and the salt of every key is params_digest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError, ShareError
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.invitations import Invitation, user_id
from faircount.protocol.survey.parameters import SurveyParameters, Topology
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers.member import counts_in
from faircount.protocol.topologies.two_servers.messages import (
    Included,
    Inclusion,
    ServersClaim,
    ShareSum,
    Submission,
    Submitter,
)
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.digests import (
    bitmap,
    members_of,
    merkle_root,
    prove,
    roster_leaves,
)
from faircount.protocol.wire.messages import Batch, Inquiry, Reason, Rejected, Signed, Wait, rejected
from faircount.protocol.wire.packed_rows import is_vector, sum_packed, sum_vectors
from faircount.protocol.wire.sealing import OVERHEAD, KeyPair, RealSealing, Sealing
from faircount.protocol.wire.signing import unwrap
from faircount.sharing.field import add, check, subtract
from faircount.sharing.keys import S2_INDEX, Purpose, key_info
from faircount.sharing.packing import pack, unpack

SEED = 32
SALT = 16


# --- user ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Respondent:
    """A user who has answered: the exact body, drawn once. Losing this state is a dropout, never a second draw."""

    params: SurveyParameters
    user: bytes
    public_key: bytes
    body: Submission = field(repr=False)


def respond(
    params: SurveyParameters, invitation: Invitation, answer: int, entropy: Entropy, sealing: Sealing | None = None
) -> Respondent:
    """Draw coin, noise, key and seed of one user, and make its body. Store the result before sending anything.

    `answer` is a position in the item list.
    """
    if invitation.params != params.digest:
        raise ProtocolError("the invitation is for other parameters: do not answer, ask the owner")
    if not isinstance(params.mechanism, SharedMechanism) or params.topology is not Topology.SERVERS:
        raise ProtocolError("these parameters are not for the servers topology")
    crypto = RealSealing() if sealing is None else sealing
    response = params.mechanism.respond_as(0, answer, entropy)
    return prepare(params, invitation, response, entropy.bytes(SEED), crypto.keypair(entropy), entropy, crypto)


def prepare(
    params: SurveyParameters,
    invitation: Invitation,
    response: Residues,
    seed: bytes,
    mine: KeyPair,
    entropy: Entropy,
    crypto: Sealing,
) -> Respondent:
    """The body for a vector, a seed and a key drawn before; `entropy` is for salt and nonce."""
    share = pack(subtract(response, _expanded(crypto, params, invitation.user, mine.public, seed), params.q), params.q)
    secret = crypto.agree(mine, params.keys.box)
    if secret is None:
        raise ProtocolError("S2's key cannot be used: do not answer, ask the owner")
    salt = entropy.bytes(SALT)
    info = _seal_info(params, invitation.user, mine.public, crypto.commit(salt, share))
    blob = crypto.seal(secret, params.digest, info, seed, entropy)
    mac = invitation.seal(mine.public)
    body = Submission(params.survey, invitation.access, mine.public, mac, salt, share, blob)
    return Respondent(params, invitation.user, mine.public, body)


def submit(state: Respondent) -> Submission:
    """The body to send, the same every time."""
    return state.body


def was_included(state: Respondent, answer: Inclusion) -> bool:
    """Whether S2's signed result counts this user's answer."""
    return counts_in(state.params, answer, state.user, state.public_key)


def _seal_info(params: SurveyParameters, user: bytes, public_key: bytes, commitment: bytes) -> bytes:
    return _bound(Purpose.SERVERS, params.survey) + sha256(user + public_key + commitment).digest()


@lru_cache(maxsize=64)
def _bound(purpose: Purpose, survey: bytes) -> bytes:
    """A key's info up to its context, which is all that differs between the users of a survey."""
    return key_info(purpose, survey, 0, 0, S2_INDEX, bytes(32))[:-32]


def _expanded(crypto: Sealing, params: SurveyParameters, user: bytes, public_key: bytes, seed: bytes) -> Residues:
    info = _bound(Purpose.SEED_EXPANSION, params.survey) + sha256(user + public_key).digest()
    return crypto.stretch(seed, params.digest, info, params.q, params.N)


# --- S1 -----------------------------------------------------------------------------------------------------------


def open_survey(s: Coordinator) -> Coordinator:
    """Begin to take answers: there is no roster, so enrolling and sealing are passed through at once."""
    return replace(s, state=advance(s.state, State.SEALED, State.SUBMITTING))


def take(s: Coordinator, message: Submission) -> coordinator.Step:
    """A user's one body, checked at the door: a share that is no vector would spoil everybody's sum."""
    user = coordinator.admit_person(s, message.access, message.public_key)
    if isinstance(user, Rejected):
        return s, (user,)
    if len(message.blob) != SEED + OVERHEAD or not is_vector(message.share, s.params.q, s.params.N):
        return s, (rejected(Reason.MALFORMED, "the share or the blob does not have the form of this survey"),)
    return coordinator.write_body(s, user, message, open_=s.state is State.SUBMITTING)


def close(s: Coordinator) -> coordinator.Step:
    """Close writes and fix the batch: sorted users with the hashes of what they sent. Blobs stay here."""
    held = [(user, s.bodies.intact(user)) for user in sorted(s.bodies.keys())]
    entries = tuple(_line(s, user, body) for user, body in held if body is not None)
    if len(entries) < s.params.minimum:
        return coordinator.give_up(s, f"{len(entries)} users answered, {s.params.minimum} are needed")
    claim = ServersClaim(s.params.survey, s.params.digest, entries)
    after = coordinator.with_claim(s, claim, State.CLAIMED)
    return after, _last_word(after)


def _line(s: Coordinator, user: bytes, body: Submission) -> Submitter:
    commitment = s.sealing.commit(body.salt, body.share)
    return Submitter(user, body.public_key, body.mac, commitment, sha256(body.blob).digest())


def _entries(claim: Message | None) -> tuple[Submitter, ...]:
    return claim.entries if isinstance(claim, ServersClaim) else ()


def _last_word(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then the blobs until the included set is known, then the one sum."""
    if s.claim is None:
        return ()
    if s.receipt is None:
        return (coordinator.to_s2(s, s.claim),)
    if s.included is None:
        blobs = tuple(s.bodies[each.user].blob for each in _entries(s.claim))
        return (coordinator.to_s2(s, Batch(s.params.survey, s.claim_hash, blobs)),)
    return (coordinator.to_s2(s, _share_sum(s, s.included)),)


def _share_sum(s: Coordinator, signed: Signed) -> ShareSum:
    shares = [s.bodies[each.user].share for each in _chosen(s)]
    total = sum_packed(shares, s.params.q, s.params.N)
    return ShareSum(s.params.survey, sha256(signed.payload).digest(), pack(total, s.params.q))


def _chosen(s: Coordinator) -> list[Submitter]:
    """The claim's entries that S2 included."""
    stated = None if s.included is None else unwrap(s.params.keys.s2, Party.S2, s.included)
    entries = _entries(s.claim)
    members = members_of(stated.members, len(entries)) if isinstance(stated, Included) else None
    return [entries[i] for i in members or ()]


def on_included(s: Coordinator, message: Included, signed: Signed) -> coordinator.Step:
    """The set is fixed: the one sum is due. A second, different set is never answered."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash or s.included is not None:
        return s, ()
    return replace(s, included=signed), ()


def adopt(s: Coordinator, claim: Message) -> Coordinator:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, ServersClaim) or s.claim == claim:
        return s
    path = {State.ENROLLING: (State.SEALED, State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}
    return coordinator.with_claim(s, claim, *path.get(s.state, ()))


def complete(s: Coordinator) -> bool:
    """Whether every answer of the claim is here, with the very bytes that were claimed."""
    return all(each.user in s.bodies and _line(s, each.user, s.bodies[each.user]) == each for each in _entries(s.claim))


def inquire(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """Whether a user was counted, with proof."""
    if s.state is not State.PUBLISHED or s.final is None:
        return s, (Wait(s.params.survey, s.state.encode()),)
    lines = [(each.user, each.public_key) for each in _chosen(s)]
    at = next((i for i, (user, _) in enumerate(lines) if user == user_id(message.access)), None)
    if at is None:
        return s, (rejected(Reason.UNKNOWN, "this answer was not counted"),)
    proof = prove(roster_leaves(lines), at)
    return s, (Inclusion(s.final, proof.index, proof.size, proof.path),)


# --- S2 -----------------------------------------------------------------------------------------------------------


def on_claim(s: Aggregator, claim: ServersClaim) -> aggregator.Step:
    """Check the frozen list and record it; entries that no invitation vouches for are left out of the set later."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    users = [each.user for each in claim.entries]
    if claim.digest != s.params.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "the claim was made for other parameters"),)
    if any(a >= b for a, b in pairwise(users)):
        return s, (rejected(Reason.MALFORMED, "a claim is ascending by user id, each once"),)
    if len({each.public_key for each in claim.entries}) != len(users):
        return s, (rejected(Reason.MALFORMED, "two users have the same public key"),)
    vouched = [each.user for each in claim.entries if aggregator.believed(s, each)]
    return aggregator.admit(s, claim, vouched, None, (State.SEALED, State.SUBMITTING))


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob, fix the set of those that open, and only then add. Done again, it gives the same."""
    entries, stored = _entries(s.claim), s.last(Included)
    if s.state in FINAL or (stored is not None and batch.claim_hash == s.claim_hash):
        return s, ((stored,) if stored is not None and s.state is State.OPENED else s.statements[-1:])
    problem = aggregator.batch_problem(s, batch, [each.blob_hash for each in entries])
    if problem is not None:
        return s, (problem,)
    seeds = [_open(s, each, blob) for each, blob in zip(entries, batch.blobs, strict=True)]
    members = [i for i, seed in enumerate(seeds) if seed is not None]
    if not aggregator.still_private(s, len(members)):
        return aggregator.abort(replace(s, handed_over=True), "too few blobs open", spent=True)
    lines = [(entries[i].user, entries[i].public_key) for i in members]
    stated = Included(s.params.survey, s.claim_hash, bitmap(members, len(entries)), merkle_root(roster_leaves(lines)))
    held = _sum_expanded(s, [(entries[i], seeds[i] or b"") for i in members])
    return aggregator.say(s, stated, held=held, handed_over=True, state=advance(s.state, State.OPENED))


def _open(s: Aggregator, each: Submitter, blob: bytes) -> bytes | None:
    if not aggregator.believed(s, each):
        return None
    secret = s.sealing.agree(s.box, each.public_key)
    info = _seal_info(s.params, each.user, each.public_key, each.commitment)
    seed = None if secret is None else s.sealing.open(secret, s.params.digest, info, blob)
    return seed if seed is not None and len(seed) == SEED else None


def _sum_expanded(s: Aggregator, seeds: Sequence[tuple[Submitter, bytes]]) -> Residues:
    masks = (_expanded(s.sealing, s.params, each.user, each.public_key, seed) for each, seed in seeds)
    return sum_vectors(masks, s.params.q, s.params.N)


def on_sum(s: Aggregator, message: ShareSum) -> aggregator.Step:
    """S1's one sum: the result, or an abort if it cannot be one. Another sum later changes nothing."""
    stated = s.last(Included)
    if s.state in FINAL:
        return s, s.statements[-1:]
    if stated is None or s.held is None:
        return s, (rejected(Reason.EARLY, "send the blobs first"),)
    if message.included_hash != sha256(stated.payload).digest():
        return s, (rejected(Reason.WRONG_DIGEST, "the sum was made over another set"),)
    try:
        shares = unpack(message.total, s.params.q, s.params.N)
    except ShareError:
        return s, (rejected(Reason.MALFORMED, "the sum is not a packed vector"),)
    included = unwrap(s.params.keys.s2, Party.S2, stated)
    members = members_of(included.members, len(_entries(s.claim))) if isinstance(included, Included) else None
    root = included.root if isinstance(included, Included) else bytes(32)
    total = add(check(shares, s.params.q), s.held, s.params.q)
    return aggregator.publish(s, total, len(members or ()), None, root)


S1 = Rules(
    users={Submission: take, Inquiry: inquire},
    s2={Included: on_included},
    deadlines={State.SUBMITTING: close},
    resume=_last_word,
    adopt=adopt,
    complete=complete,
)
S2: dict[type[Message], aggregator.Handler] = {ServersClaim: on_claim, Batch: on_batch, ShareSum: on_sum}

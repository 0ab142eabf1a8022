"""S1, the coordinator: what it does in every topology. It relays, keeps deadlines, claims one batch, opens nothing.

    enrol -> close the roster, have it sealed -> take uploads, first write wins -> claim -> send blobs -> keep result

A topology adds its `Rules`: its uploads, what S2's answers lead to, and what a deadline does. Every function is
(state, message) -> (state, outgoing); `resume` repeats what S2 may not have heard after a crash, from the state alone.
What S1 stores is filled in place (`write_once`), so a state that is to be kept as it was must be copied: `backup`.
"""

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, ClassVar

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.write_once import Acknowledged, WriteOnce
from faircount.protocol.survey.acknowledgement import unsigned
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.server_secrets import check_secrets
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import Levels, roster_digest, roster_leaves, tree
from faircount.protocol.wire.messages import (
    Aborted,
    Reason,
    Rejected,
    Signed,
    SyncRequest,
    Withdraw,
    rejected,
)
from faircount.protocol.wire.roster_messages import Enrolled, SealRequest
from faircount.protocol.wire.sealing import RealSealing, Sealing
from faircount.protocol.wire.signing import (
    UNCHAINED,
    Link,
    SigningKey,
    Statement,
    make_statement,
    sign,
)
from faircount.protocol.wire.stored import Rows, StoredState, TopologyState
from faircount.protocol.wire.stored_kinds import BYTES, ReadAs, SetOf, absent
from faircount.sharing.keys import canonical_key

Phase = tuple[State, int]
"""A time in which users act: the state and the attempt."""

Upload = tuple[int, int | bytes, int]
"""Natural key of an upload: message tag, what it was made for (an attempt, a digest, or 0), place in the roster."""


Place = tuple[str, bytes]
"""A row of S1's stores: the name of the store, and the row's key as it is stored."""


def invitations(access: Iterable[bytes]) -> WriteOnce[bytes, bytes]:
    """Access values by the ids of their users, as S1 keeps them."""
    return WriteOnce({user_id(each): each for each in access})


@dataclass(frozen=True)
class Coordinator(StoredState):
    """All that S1 keeps of one survey. What it keeps by row is its own, filled in place."""

    stored_version = 4
    older: ClassVar = {
        3: {"invited": ReadAs(SetOf(BYTES), invitations), "earlier": absent(tuple), "kept": absent(WriteOnce)}
    }  # of `servers` only while nothing is claimed: claims had another form
    params: SurveyParameters
    key: SigningKey
    invited: Annotated[WriteOnce[bytes, bytes], Rows] = field(repr=False)  # user id -> SHA-256("s1" | T)
    sealing: Sealing = field(default_factory=RealSealing)
    state: State = State.ENROLLING
    committed: bytes = field(default=bytes(32), repr=False)  # the value behind S1's commitment
    bodies: Annotated[Acknowledged[bytes], Rows] = field(default_factory=Acknowledged)  # user id -> its first message
    keys: Annotated[WriteOnce[bytes, bytes], Rows] = field(default_factory=WriteOnce)  # public key -> user id
    roster: tuple[Enrolled, ...] = ()  # fixed when enrolment closes
    uploads: Annotated[Acknowledged[Upload], Rows] = field(default_factory=Acknowledged)
    withdrawn: Annotated[WriteOnce[bytes, bytes], Rows] = field(default_factory=WriteOnce)  # user -> hash of its words
    attempt: int = 0
    members: tuple[int, ...] = ()
    removed: frozenset[tuple[int, int]] = frozenset()
    claim: Message | None = None
    claim_hash: bytes = bytes(32)
    earlier: tuple[bytes, ...] = ()  # of a claim in parts, the hashes of all but the last
    kept: Annotated[WriteOnce[bytes, Message], Rows] = field(default_factory=WriteOnce)  # those parts, by number
    seal: Statement | None = None
    receipt: Statement | None = None
    included: Statement | None = None  # S2's word on whose shares count
    final: Statement | None = None  # S2's last word, or our own request to end the survey
    order_key: bytes = field(default=b"", repr=False)  # of the numbers of reporters and the salts of their lists
    newest: Link = UNCHAINED  # of the statements of S2 that were heard: said to S2 with everything
    asks: bool = False  # restored, and not yet told what stands
    own: TopologyState | None = None  # what only this topology keeps
    noise_secret: bytes = field(default=b"", repr=False)  # where S1's own noise comes from

    @classmethod
    def begin(
        cls,
        params: SurveyParameters,
        key: SigningKey,
        invited: Iterable[bytes] = (),
        committed: bytes = bytes(32),
        sealing: Sealing | None = None,
        order_key: bytes = b"",
        noise_secret: bytes = b"",
    ) -> "Coordinator":
        """S1 when the first user arrives; where there is no roster, enrolling and sealing are passed through."""
        first = params.topology.phases[0]
        state = State.ENROLLING if first is State.ENROLLING else advance(State.ENROLLING, State.SEALED, first)
        if params.keys.s1_commitment not in (NO_COMMITMENT, sha256(committed).digest()):
            raise ProtocolError("S1 does not hold the value that the parameters say it has committed to")
        if params.topology.numbers_users and len(order_key) != 32:
            raise ProtocolError("S1 numbers users in a secret order here: give it 32 random bytes as order_key")
        check_secrets(params, Party.S1, committed, noise_secret)
        crypto = sealing or RealSealing()
        people = invitations(invited)
        return cls(params, key, people, crypto, state, committed, order_key=order_key, noise_secret=noise_secret)

    @property
    def rules(self) -> "Rules":
        """What the topology adds."""
        return self.params.topology.s1

    @property
    def n(self) -> int:
        """Users on the roster."""
        return len(self.roster)

    @property
    def phase(self) -> Phase:
        """What a deadline is set for."""
        return self.state, self.attempt

    @cached_property
    def levels(self) -> Levels:
        """The tree of the roster as S1 has it."""
        return tree(roster_leaves((each.user, each.public_key) for each in self.roster))

    @cached_property
    def digest(self) -> bytes:
        """The digest of the roster as S1 has it; without one, of the parameters."""
        if not self.roster:
            return self.params.digest
        return roster_digest(self.params.digest, self.n, self.levels[-1][0])


def backup(s: Coordinator) -> Coordinator:
    """A copy in memory, as the state is now, whatever is written later; what is kept for good is `roles.stored`."""
    stores = ("invited", "bodies", "keys", "uploads", "withdrawn", "kept")
    return replace(s, **{name: getattr(s, name).copy() for name in stores})


def is_person(s: Coordinator, user: bytes) -> bool:
    """Whether this is the id of an invited person, whose invitation was not exchanged."""
    return bool(s.invited.get(user))


def invited_user(s: Coordinator, access: bytes) -> bytes | None:
    """The id of the person whom this access value admits; None if it admits nobody."""
    user = user_id(access)
    return user if s.invited.get(user) == access else None


Out = tuple[Message, ...]
Step = tuple[Coordinator, Out]


def restored(s: Coordinator) -> Step:
    """S1 from a backup: it asks S2 what stands, and ends no phase before it knows."""
    after = replace(s, asks=s.state not in FINAL)
    return after, (to_s2(after, SyncRequest(s.params.survey)),)


FromUser = Callable[[Coordinator, Any], Step]
FromS2 = Callable[[Coordinator, Any, Statement], Step]


def _included_lines(s: Coordinator) -> tuple[Entry, ...]:
    return tuple((s.roster[place].user, s.roster[place].public_key) for place in s.rules.included(s))


def _without_uploads(s: Coordinator) -> Coordinator:
    """S1 when the survey is over: of what users sent it keeps the hashes, to know a repeated message."""
    return replace(s, uploads=s.uploads.scrubbed())


def _blobs_may_have_left(s: Coordinator) -> bool:
    """Only an S1 that holds a claim without a receipt knows that no blob has left; one that was restored does not."""
    return s.claim is None or s.receipt is not None


@dataclass(frozen=True)
class Rules:
    """What a topology adds to S1: handlers by message class, what ends each phase, and what it has to say to S2."""

    users: Mapping[type[Message], FromUser]
    s2: Mapping[type[Message], FromS2]
    deadlines: Mapping[State, Callable[[Coordinator], Step]]
    pending: Callable[[Coordinator], Out]  # what S2 has not answered yet
    adopt: Callable[[Coordinator, Message], Coordinator | None]  # S2's claim becomes S1's own; None if it is no claim
    complete: Callable[[Coordinator], bool]  # whether S1 still has every blob of its claim
    answers: tuple[type[Message], ...] = ()  # uploads that carry a user's answer: of no use once it withdrew
    request: Callable[[Coordinator], Message | None] = attrgetter("claim")  # what S1 asks S2 to grant
    included: Callable[[Coordinator], tuple[int, ...]] = attrgetter("members")  # places that the result counts
    entries: Callable[[Coordinator], tuple[Entry, ...]] = _included_lines  # how the result names them, in its order
    scrubbed: Callable[[Coordinator], Coordinator] = _without_uploads  # the survey is over: what users sent goes
    reads: Callable[[Message], tuple[Place, ...] | None] = lambda message: None  # rows that a message is about, or all
    in_order: bool = False  # whether every step asks for bodies in ascending order, so that a few are read at a time
    sent_once: Callable[[Coordinator], bytes] = lambda s: bytes(32)  # hash of what S1 hands over once for good
    spends: Callable[[Coordinator], bool] = _blobs_may_have_left  # whether S1 asks to charge a survey that it gives up


def end_phase(s: Coordinator, seen: Phase | None = None) -> Step:
    """End the current phase. Two workers at one deadline: the second finds another phase than it has seen, and repeats.

    `seen` is the phase whose time is up; without it, whatever phase there is.
    """
    handler = s.rules.deadlines.get(s.state)
    over = handler is None or s.final is not None or s.asks or seen not in (None, s.phase)
    return (s, resume(s)) if handler is None or over else handler(s)


def resume(s: Coordinator) -> Out:
    """What S1 last had to say to S2, again: after a crash, or when no answer came."""
    if s.final is not None:
        return (s.final.signed,) if s.final.signed.by == Party.S1 else ()
    if s.asks:
        return (to_s2(s, SyncRequest(s.params.survey)),)
    if s.state is State.ENROLLING:
        return (to_s2(s, seal_request(s)),) if s.roster else ()
    if s.state is State.CLAIMED and s.receipt is not None and not s.rules.complete(s):
        return give_up(s, "a blob of the claimed batch was damaged or lost")[1]
    return s.rules.pending(s)


def to_s2(s: Coordinator, what: Message) -> Signed:
    """A message under S1's signature, with the newest statement of S2 that it has heard."""
    return sign(s.key, Party.S1, what, s.newest)


def with_claim(s: Coordinator, claim: Message, *path: State, earlier: Sequence[bytes] = ()) -> Coordinator:
    """The state with its batch fixed, and nothing said about it yet; `earlier` parts of the claim are kept."""
    return replace(
        s,
        claim=claim,
        claim_hash=sha256(encode(claim)).digest(),
        earlier=tuple(earlier),
        receipt=None,
        included=None,
        state=advance(s.state, *path),
    )


def withdraw(s: Coordinator, message: Withdraw) -> Step:
    """A person takes its answer back before the claim, for good: its body is deleted, its later uploads are refused.

    On a sealed roster it is a user who vanished. A restored S1 first asks S2 whether there is a claim.
    """
    user = invited_user(s, message.access)
    if user is None:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
    if user not in s.withdrawn:
        if s.asks:
            return s, (rejected(Reason.EARLY, "S1 was restored and does not know yet what stands: ask again later"),)
        if s.claim is not None or s.final is not None:
            return s, (rejected(Reason.LATE, "the batch is fixed: it is too late to withdraw"),)
        s.withdrawn.put(user, sha256(encode(message)).digest())
        if not s.roster:  # a line of the roster stays, so that its user can still be told from others
            s.bodies.scrub(user)
    return s, (unsigned(s.params.survey, s.withdrawn[user]),)


def has_withdrawn(s: Coordinator, index: int) -> bool:
    """Whether the user at this place of the roster has withdrawn."""
    return index < s.n and s.roster[index].user in s.withdrawn


_WITHDRAWN = "this person has withdrawn from the survey, which is final"


def admit_person(s: Coordinator, access: bytes, public_key: bytes) -> bytes | Rejected:
    """The user id of an invited person with a key of its own, or why it is not admitted."""
    user = invited_user(s, access)
    if user is None:
        return rejected(Reason.UNKNOWN, "no such invitation for this survey")
    if user in s.withdrawn and all(line.user != user for line in s.roster):
        return rejected(Reason.CLOSED, _WITHDRAWN)
    if not canonical_key(public_key) or not s.keys.fits(public_key, user):
        return rejected(Reason.MALFORMED, "a public key is canonical and belongs to one user: make a new one")
    full = len(s.bodies) >= s.params.n_max and user not in s.bodies
    if full and all(line.user != user for line in s.roster):  # whom S2 has sealed may always come back
        return rejected(Reason.FULL, f"the survey has its {s.params.n_max} users")
    return user


def write_body(s: Coordinator, user: bytes, body: Any, *, open_: bool) -> Step:
    """First write of a user's enrolment or submission; the same again is accepted at any time."""
    if user not in s.bodies and not (open_ and s.final is None):
        return s, (rejected(Reason.LATE, "the survey takes no more users"),)
    if not s.bodies.put(user, body):
        return s, (rejected(Reason.CONFLICT, "this invitation was used with other bytes; the first stand"),)
    s.keys.put(body.public_key, user)
    return s, (unsigned(s.params.survey, s.bodies.hash_of(user)),)


def seal_request(s: Coordinator) -> SealRequest:
    """What S2 is asked to seal."""
    return SealRequest(s.params.survey, s.params.digest, s.roster)


def credential_problem(s: Coordinator, index: int, credential: bytes) -> Rejected | None:
    """Why this is not the user at this place of the roster; None if it is."""
    if index < s.n:
        body = s.bodies.get(s.roster[index].user)
        if body is not None and hmac.compare_digest(sha256(credential).digest(), body.credential_hash):
            return None
    return rejected(Reason.UNKNOWN, "no user of the roster has this credential")


def upload(s: Coordinator, message: Any, *, made_for: int | bytes, open_: bool) -> Step:
    """First write of an authenticated user's message; the same again is accepted at any time, even late.

    Spoiled bytes are mended only while the phase is open: later, others may have been given them.
    """
    problem = credential_problem(s, message.index, message.credential)
    if problem is not None:
        return s, (problem,)
    if has_withdrawn(s, message.index):
        return s, (rejected(Reason.CLOSED, _WITHDRAWN),)
    key = (message.tag, made_for, message.index)
    write = open_ and s.final is None
    if key not in s.uploads and not write:
        return s, (rejected(Reason.LATE, "this phase is not open for you"),)
    if not (s.uploads.put if write else s.uploads.fits)(key, message):
        return s, (rejected(Reason.CONFLICT, "something else was sent before; the first stands"),)
    return s, (unsigned(s.params.survey, s.uploads.hash_of(key)),)


def held(s: Coordinator, kind: type[Message], made_for: int | bytes, index: int) -> Any | None:
    """This user's message as acknowledged; None if there is none, it was spoiled, or its sender took it back."""
    if kind in s.rules.answers and has_withdrawn(s, index):
        return None
    return s.uploads.intact((kind.tag, made_for, index))


def holds(s: Coordinator, kind: type[Message], made_for: int | bytes, index: int) -> bool:
    """Whether S1 has this user's message as acknowledged; if not, the user is asked again while there is time."""
    return held(s, kind, made_for, index) is not None


def give_up(s: Coordinator, reason: str) -> Step:
    """Ask S2 to end the survey. It is over when S2 says so: a restored S1 may not know that there is a result."""
    wish = Aborted(s.params.survey, reason.encode(), int(s.rules.spends(s)))
    last = make_statement(s.key, Party.S1, wish, s.newest)
    return replace(s, final=last), (last.signed,)


def end_alone(s: Coordinator, reason: str) -> Step:
    """End the survey whatever S2 says about it: it has contradicted itself, or asked for what S1 must not give."""
    wished, out = give_up(s, reason)
    return s.rules.scrubbed(replace(wished, state=advance(s.state, State.ABORTED))), out

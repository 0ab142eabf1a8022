"""S2, the aggregator: what it does in every topology. It uses no randomness, so doing a thing again gives the same.

    seal a roster once -> admit a claim once, reserving the budget -> take the blobs of that claim -> publish or abort

A topology adds the checks of its claim and what it does with the blobs (`Topology.s2`). Every function is
(state, message) -> (state, outgoing); a state is written before its answer is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.errors import CorruptSumError, ProtocolError
from faircount.core.values import ArrayValue
from faircount.protocol.roles.write_once import WriteOnce, part_key
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.invitations import entry_holds
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.receipts import charge_of, receipt_for, shown_by
from faircount.protocol.survey.remaining_privacy import keeps, realized
from faircount.protocol.survey.server_secrets import check_secrets
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.wire.canonical_json import scaled_up
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import merkle_root, roster_digest, roster_leaves
from faircount.protocol.wire.messages import (
    Aborted,
    Against,
    Published,
    Reason,
    Receipt,
    Refused,
    Rejected,
    Signed,
    SyncRequest,
    SyncState,
    rejected,
)
from faircount.protocol.wire.roster_messages import BadEntries, Seal, SealRequest
from faircount.protocol.wire.sealing import KeyPair, RealSealing, Sealing
from faircount.protocol.wire.signing import (
    UNCHAINED,
    Link,
    SigningKey,
    Statement,
    link_to,
    make_statement,
    sign,
    unwrap,
    verified,
)
from faircount.protocol.wire.stored import Rows, StoredState, TopologyState
from faircount.protocol.wire.stored_kinds import absent


@dataclass(frozen=True, eq=False)
class Aggregator(ArrayValue, StoredState):
    """All that S2 keeps of one survey; and, lent for one step, the ledger of its population (`aggregate_with`)."""

    stored_version = 6
    older: ClassVar = {
        5: {
            "earlier": absent(tuple),
            "kept": absent(WriteOnce),
            "notes": absent(WriteOnce),
            "own": absent(lambda: None),
        }
    }  # of `servers` only while nothing is claimed: claims had another form
    params: SurveyParameters
    key: SigningKey
    box: KeyPair
    mac_keys: Annotated[Mapping[bytes, bytes], Rows] = field(repr=False)  # user id -> key of the seal on its enrolment
    ledger: Ledger
    committed: bytes = field(default=bytes(32), repr=False)  # revealed once roster or claim are fixed
    sealing: Sealing = field(default_factory=RealSealing)
    state: State = State.ENROLLING
    roster: SealRequest | None = None
    sealed: bytes = b""  # the roster's digest
    claim: Message | None = None
    claim_hash: bytes = bytes(32)
    earlier: tuple[bytes, ...] = ()  # of a claim in parts, the hashes of all but the last
    kept: Annotated[WriteOnce[bytes, Message], Rows] = field(default_factory=WriteOnce)  # those parts, by number
    notes: Annotated[WriteOnce[bytes, Message], Rows] = field(default_factory=WriteOnce)  # about blobs, by part
    handed_over: bool = False  # whether S2 may have been sent something that depends on answers
    statements: tuple[Statement, ...] = ()
    held: Residues | None = field(default=None, repr=False)  # what was added so far
    noise_secret: bytes = field(default=b"", repr=False)  # where S2's own noise comes from
    own: TopologyState | None = None  # what only this topology keeps

    @classmethod
    def begin(cls, *given: Any, **named: Any) -> "Aggregator":
        """S2 before the first message; refused where reports are proven and it lacks a value or a secret of its own."""
        s2 = cls(*given, **named)
        check_secrets(s2.params, Party.S2, s2.committed, s2.noise_secret)
        return s2

    @property
    def digest(self) -> bytes:
        """The sealed digest; without a roster (`servers`) that of the parameters."""
        return self.sealed or self.params.digest

    def last(self, kind: type[Message]) -> Statement | None:
        """The newest statement of a kind."""
        return next((each for each in reversed(self.statements) if isinstance(each.says, kind)), None)

    @property
    def newest(self) -> Link:
        """The end of the chain of its statements."""
        return link_to(self.statements[-1].signed) if self.statements else UNCHAINED

    @property
    def last_words(self) -> tuple[Signed, ...]:
        """The newest statement, if there is one, as it is sent."""
        return tuple(each.signed for each in self.statements[-1:])


Step = tuple[Aggregator, tuple[Message, ...]]
Handler = Callable[[Aggregator, Any], Step]


class Entry(Protocol):
    """A line that names a user with its key, and carries the seal of its invitation."""

    @property
    def user(self) -> bytes:
        """Id of the person."""

    @property
    def public_key(self) -> bytes:
        """The key that the person made for this survey."""

    @property
    def mac(self) -> bytes:
        """The invitation's seal on the key."""


def aggregate(s: Aggregator, message: Message) -> Step:
    """S2 receives what S1 signed; anything else is rejected."""
    if not isinstance(message, Signed):
        return s, (rejected(Reason.UNSIGNED, "S2 reads what S1 signed, and nothing else"),)
    statement = verified(s.params.keys.s1, Party.S1, message)
    if statement is None:
        return s, (rejected(Reason.UNSIGNED, "the signature is not that of the S1 in the parameters"),)
    if s.state not in FINAL and _is_behind(s, message):
        return restored(s)
    says = statement.says
    handler = s.params.topology.s2.get(type(says)) or FROM_S1.get(type(says))
    if handler is None or getattr(says, "survey", None) != s.params.survey:
        return s, (rejected(Reason.MALFORMED, "no message for this survey in this topology"),)
    after, out = handler(s, says)
    if after.state in FINAL and all(isinstance(each, Rejected) for each in out):
        out = (*out, *after.last_words)  # S1 may not have heard how it ended
    return after, tuple(_refused(s, message, each) if isinstance(each, Rejected) else each for each in out)


def _is_behind(s: Aggregator, heard: Signed) -> bool:
    """Whether S1 has heard a statement that this S2 does not know: it was restored, and nobody told it."""
    if heard.number > len(s.statements):
        return True
    return heard.number > 0 and link_to(s.statements[heard.number - 1].signed).hash != heard.previous


def _refused(s: Aggregator, request: Signed, why: Rejected) -> Signed:
    """A refusal bound to the request, so that it cannot be shown for another one."""
    return sign(s.key, Party.S2, Refused(s.params.survey, sha256(request.payload).digest(), why.reason, why.detail))


def say(s: Aggregator, what: Message, **change: Any) -> Step:
    """Sign a statement, chained to the one before, keep it and send it."""
    before = s.newest
    statement = make_statement(s.key, Party.S2, what, Link(before.number + 1, before.hash))
    return replace(s, statements=(*s.statements, statement), **change), (statement.signed,)


def seal_roster(s: Aggregator, request: SealRequest) -> Step:
    """Seal the one roster. Entries that S1 cannot have from an invited person are named, and nothing is sealed."""
    if s.state in FINAL:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"), *s.last_words)
    if s.roster is not None:
        stored = s.last(Seal)
        again = () if s.roster == request else (rejected(Reason.CONFLICT, "another roster is sealed"),)
        return s, (*again, *([stored.signed] if stored else []))
    problem = _roster_problem(s, request)
    if problem is not None:
        return s, (problem,)
    bad = [i for i, each in enumerate(request.entries) if not believed(s, each)]
    if bad:
        return s, (sign(s.key, Party.S2, BadEntries(s.params.survey, sha256(encode(request)).digest(), tuple(bad))),)
    lines = [(each.user, each.public_key) for each in request.entries]
    root = merkle_root(roster_leaves(lines))
    digest = roster_digest(s.params.digest, len(lines), root)
    revealed = s.committed if s.params.topology.reveals_with_roster else bytes(32)
    seal = Seal(s.params.survey, digest, len(lines), root, revealed)
    return say(s, seal, roster=request, sealed=digest, state=advance(s.state, State.SEALED))


def believed(s: Aggregator, each: Entry) -> bool:
    """Whether an invitation vouches for this entry: S1 cannot have made it up."""
    return entry_holds(s.mac_keys.get(each.user), s.params.digest, each.public_key, each.mac)


def _roster_problem(s: Aggregator, request: SealRequest) -> Rejected | None:
    users = [each.user for each in request.entries]
    if request.params != s.params.digest:
        return rejected(Reason.WRONG_DIGEST, "the roster was made for other parameters")
    if any(a >= b for a, b in pairwise(users)):
        return rejected(Reason.MALFORMED, "a roster is ascending by user id, each once")
    if len({each.public_key for each in request.entries}) != len(users):
        return rejected(Reason.MALFORMED, "two users have the same public key")
    if not s.params.minimum <= len(users) <= s.params.n_max:
        return rejected(Reason.TOO_FEW, f"a roster has {s.params.minimum} to {s.params.n_max} users")
    return None


def admit(
    s: Aggregator,
    claim: Message,
    included: int,
    places: Sequence[int] | None,
    path: Sequence[State],
    revealed: bytes = bytes(32),
) -> Step:
    """Record the claim for good, reserve the budget and give a receipt: the one transaction before any blob is sent.

    The topology has checked the claim's own content, that it is no second one (`repeated`), how many users it names,
    and says what the receipt reveals.
    """
    problem = _claim_problem(s, included, places)
    if problem is not None:
        return refuse_claim(s, problem)
    granted = reserve(s)
    if not isinstance(granted, Aggregator):
        return granted
    after = replace(
        granted,
        claim=claim,
        claim_hash=sha256(encode(claim)).digest(),
        state=advance(s.state, *path, State.CLAIMED),
        held=None,
    )
    return say(after, receipt_for(after.ledger, s.params.survey, after.claim_hash, revealed))


def reserve(s: Aggregator) -> Aggregator | Step:
    """S2 with the budget of this survey reserved, once; or why it cannot be."""
    if s.ledger.population != s.params.population:
        raise ProtocolError("S2 was given the ledger of another population")
    if s.ledger.closed:
        return s, (rejected(Reason.CLOSED, "the population is closed until S2's newest receipts are shown"),)
    charge = charge_of(s.params)
    known = s.ledger.find(charge.survey)
    if known is not None and s.last(Receipt) is None:
        return s, (rejected(Reason.CLOSED, "this survey was charged before S2 was restored: begin another one"),)
    if known is None and not s.ledger.admits(charge):
        return abort(s, "over budget", spent=False)
    return replace(s, ledger=s.ledger.reserve(charge) if known is None else s.ledger)


def repeated(s: Aggregator, claim: Message) -> Step | None:
    """The answer to a claim that needs no check: the same again, another one, or one that comes too late."""
    receipt = s.last(Receipt)
    if s.state in FINAL:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"), *s.last_words)
    if s.claim is None or receipt is None:
        return None
    if s.claim == claim:
        return s, (receipt.signed,)
    return s, (rejected(Reason.CONFLICT, "another claim stands"), receipt.signed)


def refuse_claim(s: Aggregator, problem: Rejected | None) -> Step:
    """Refuse a claim; with the receipt that was given for another one, from which a restored S1 learns of it."""
    receipt = None if s.claim is None else s.last(Receipt)
    why = problem or rejected(Reason.MALFORMED, "this claim names no set of the sealed roster")
    return s, (why, *(() if receipt is None else (receipt.signed,)))


def _claim_problem(s: Aggregator, included: int, places: Sequence[int] | None) -> Rejected | None:
    if included < s.params.minimum:
        return rejected(Reason.TOO_FEW, f"{included} users are fewer than the minimum of {s.params.minimum}")
    if included > s.params.n_max:
        return rejected(Reason.FULL, f"more than {s.params.n_max} users")
    if not still_private(s, included, places):
        return rejected(Reason.TOO_FEW, "this set does not keep the promised guarantee")
    return None


def publish(
    s: Aggregator,
    total: Any,
    included: int,
    places: Sequence[int] | None,
    root: bytes,
    against: tuple[Against, ...] = (),
    refused: int = 0,
) -> Step:
    """Decode the opened sum and publish it with what was promised and what holds; a sum out of range aborts."""
    params, mechanism = s.params, s.params.mechanism
    try:
        counts = mechanism.decode(total, included)
    except CorruptSumError:
        return abort(s, "corrupt", spent=True)
    left = realized(mechanism, included, params.epsilon, places)
    steps = np.rint(np.asarray(counts) * getattr(mechanism, "steps_per_count", 1)).astype(np.int64)
    result = Published(
        params.survey, s.digest, s.claim_hash, root, included, tuple(steps.tolist()),
        epsilon=scaled_up(params.epsilon).encode(), delta=scaled_up(params.delta).encode(),
        realized_epsilon=scaled_up(left.epsilon).encode(), realized_delta=scaled_up(left.delta).encode(),
        against=against, refused=refused,
    )  # fmt: skip
    ledger = s.ledger.settle(params.survey, left.epsilon, left.delta)
    return _end(s, result, ledger, State.PUBLISHED)


def still_private(s: Aggregator, included: int, places: Sequence[int] | None = None) -> bool:
    """Whether a set that shrank after the claim still keeps minimum and promise."""
    return included >= s.params.minimum and keeps(
        s.params.mechanism, included, s.params.epsilon, s.params.delta, places
    )


def abort(s: Aggregator, reason: str, *, spent: bool) -> Step:
    """End without a result. The reservation is released only if no blob was sent."""
    ledger, known = s.ledger, s.ledger.find(s.params.survey)
    if known is not None and known.status == "reserved":
        ledger = ledger.settle(s.params.survey) if spent else ledger.release(s.params.survey)
    return _end(s, Aborted(s.params.survey, reason.encode(), int(spent)), ledger, State.ABORTED)


def _end(s: Aggregator, last: Message, ledger: Ledger, state: State) -> Step:
    """Say the last word. What was sealed to S2 can be opened by nobody from now on: its secrets are destroyed."""
    after = replace(s, ledger=ledger, held=None, notes=WriteOnce(), own=None, box=s.box.destroyed(), noise_secret=b"")
    return say(after, last, state=advance(s.state, state))


def give_up(s: Aggregator, message: Aborted) -> Step:
    """S1 cannot go on."""
    if s.state in FINAL:
        return s, s.last_words
    spent = s.handed_over or (s.claim is not None and message.spent != 0)
    return abort(s, f"S1: {message.reason.decode(errors='replace')}", spent=spent)


def sync_state(s: Aggregator, _: SyncRequest) -> Step:
    """Everything that S1 needs to go on from where S2 stands."""
    roster = b"" if s.roster is None else encode(s.roster)
    claim = b"" if s.claim is None else encode(s.claim)
    earlier = () if s.claim is None else tuple(encode(s.kept[part_key(number)]) for number in range(len(s.earlier)))
    said = tuple(each.signed for each in s.statements)
    return s, (sign(s.key, Party.S2, SyncState(s.params.survey, roster, claim, said, earlier)),)


def aggregate_with(stored: Ledger, s: Aggregator, message: Message) -> tuple[Ledger, Step]:
    """One step with the ledger as it is stored now: many surveys share it, so it is not kept with any of them.

    Write the ledger with `swapped(stored now, stored, ledger)` and the state, both or neither, then send. If that
    refuses, another survey came first: read the ledger and do the step again. S2 draws nothing, so nothing is lost.
    """
    step = aggregate(replace(s, ledger=stored), message)
    return step[0].ledger, step


def restored(s: Aggregator) -> Step:
    """S2 after a restore: what was live is aborted and charged, for it may have been published since the backup."""
    if s.state in FINAL:
        return replace(s, ledger=s.ledger.restored(())), ()
    after = replace(s, ledger=s.ledger.restored((charge_of(s.params),)))
    return abort(after, "S2 was restored from a backup", spent=True)


def show_receipts(s: Aggregator, receipts: Sequence[Signed]) -> Aggregator:
    """Open the population again after a restore: charges that S2's own receipts prove are taken over as spent."""
    found = [unwrap(s.key.public, Party.S2, each) for each in receipts]
    population = s.ledger.population.encode()
    mine = [each for each in found if isinstance(each, Receipt) and each.population == population]
    return replace(s, ledger=s.ledger.reopen([shown_by(each) for each in mine]))


FROM_S1: Mapping[type[Message], Handler] = {SealRequest: seal_roster, Aborted: give_up, SyncRequest: sync_state}

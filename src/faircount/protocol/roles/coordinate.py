"""S1 receives a message: a user's, or a statement of S2, which may lie.

S2's statements move a survey on, but only as the table of states and the topology's `Rules` allow. A statement that
does not fit is refused and changes nothing: S1 never raises for what another party sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain

from faircount.core.errors import MalformedError, ProtocolError
from faircount.protocol.roles.coordinator import (
    Coordinator,
    FromS2,
    FromUser,
    Out,
    Step,
    end_alone,
    give_up,
    is_person,
    resume,
    seal_request,
    to_s2,
    withdraw,
)
from faircount.protocol.roles.sync import Synced, read_sync
from faircount.protocol.roles.write_once import part_key
from faircount.protocol.survey.acknowledgement import sign_together
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.wire.canonical_json import unscaled
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.messages import (
    Aborted,
    Accepted,
    Published,
    Reason,
    Receipt,
    Refused,
    Rejected,
    Signed,
    SyncRequest,
    SyncState,
    Withdraw,
    rejected,
)
from faircount.protocol.wire.roster_messages import Seal
from faircount.protocol.wire.signing import Statement, link_to, verified


def coordinate(s: Coordinator, message: Message) -> Step:
    """S1 receives a user's message, or what S2 signed; anything else is rejected.

    After a statement of S2 that changed something, S1 says to S2 what comes next.
    """
    after, (out,) = coordinate_many(s, [message])
    return after, out


def coordinate_many(s: Coordinator, messages: Iterable[Message]) -> tuple[Coordinator, list[Out]]:
    """S1 receives several messages and writes them together: one signature acknowledges all that it has written."""
    outs = list[Out]()
    for message in messages:
        s, out = _receive(s, message)
        outs.append(out)
    signed = iter(sign_together(s.key, [each for out in outs for each in out if isinstance(each, Accepted)]))
    return s, [tuple(next(signed) if isinstance(each, Accepted) else each for each in out) for out in outs]


def _receive(s: Coordinator, message: Message) -> Step:
    if isinstance(message, Signed):
        return _on_signed(s, message)
    handler = s.rules.users.get(type(message)) or FROM_USERS.get(type(message))
    if handler is None or getattr(message, "survey", None) != s.params.survey:
        return s, (rejected(Reason.MALFORMED, "no message for this survey in this topology"),)
    return handler(s, message)


def _on_signed(s: Coordinator, message: Signed) -> Step:
    """S2's statement, and what comes next. One that leads nowhere from here is refused, whatever S2 meant by it."""
    statement = verified(s.params.keys.s2, Party.S2, message)
    if statement is None:
        return s, (rejected(Reason.UNSIGNED, "the signature is not that of the S2 in the parameters"),)
    try:
        after, out = _on_s2_statement(s, statement)
        return after, out or (() if after is s else resume(after))
    except ProtocolError:
        return s, (rejected(Reason.MALFORMED, "this statement does not follow from what was said before"),)


def _on_s2_statement(s: Coordinator, statement: Statement) -> Step:
    after, out = _handled(s, statement)
    heard = statement.signed.number > s.newest.number and not any(isinstance(each, Rejected) for each in out)
    return (replace(after, newest=link_to(statement.signed)) if heard else after), out


def _handled(s: Coordinator, statement: Statement) -> Step:
    says = statement.says
    if isinstance(says, SyncState) and says.survey == s.params.survey:
        return adopt(s, says)
    if isinstance(says, Refused) and _out_of_step(s, says):
        return s, (to_s2(s, SyncRequest(s.params.survey)),)
    handler = s.rules.s2.get(type(says)) or FROM_S2.get(type(says))
    if handler is None or getattr(says, "survey", None) != s.params.survey:
        return s, (rejected(Reason.MALFORMED, "no statement of S2 for this survey in this topology"),)
    return handler(s, says, statement)


def _out_of_step(s: Coordinator, why: Refused) -> bool:
    """Whether S2 refuses what S1 says now because another claim stands: S1 must ask what does."""
    stands = why.reason in (Reason.CONFLICT, Reason.WRONG_DIGEST)
    return stands and s.receipt is not None and why.request_hash in _asked(s)


def _asked(s: Coordinator) -> list[bytes]:
    """What S1 says to S2 now, by hash."""
    return [sha256(each.payload).digest() for each in resume(s) if isinstance(each, Signed)]


def on_receipt(s: Coordinator, message: Receipt, statement: Statement) -> Step:
    """Keep S2's receipt: now blobs may leave, those of this claim. For a claim not ours, ask S2 what stands."""
    if s.state in FINAL or (s.receipt is not None and message.claim_hash == s.claim_hash):
        return s, ()
    if s.claim is None or message.claim_hash != s.claim_hash:
        return s, (to_s2(s, SyncRequest(s.params.survey)),)
    return replace(s, receipt=statement), ()


_FOR_GOOD = (Reason.TOO_FEW, Reason.FULL, Reason.WRONG_DIGEST, Reason.MALFORMED, Reason.DISCONNECTED)


def on_refused(s: Coordinator, message: Refused, _: Statement) -> Step:
    """S2 will never grant what we ask for now: give up. What it holds instead comes as a statement of its own.

    An S2 that has named a set, and then has not come so far, lies: it would wait for ever.
    """
    if s.state not in FINAL and s.included is not None and message.reason == Reason.EARLY:
        lies = message.request_hash in _asked(s)
        return end_alone(s, "S2 named a set to add up before it had come so far") if lies else (s, ())
    asked = seal_request(s) if s.state is State.ENROLLING else s.rules.request(s)
    if s.state in FINAL or s.receipt is not None or asked is None or message.reason not in _FOR_GOOD:
        return s, ()
    if message.request_hash not in (sha256(encode(asked)).digest(), *s.earlier):
        return s, ()
    return give_up(s, f"S2 refused: {message.detail.decode(errors='replace')}")


def conclude(s: Coordinator, message: Published | Aborted, statement: Statement) -> Step:
    """Keep S2's last word: it stands whatever S1 was about to do. Then nothing that users sent is needed any more."""
    if s.state in FINAL:
        return s, ()
    if isinstance(message, Aborted):
        return s.rules.scrubbed(replace(s, final=statement, state=advance(s.state, State.ABORTED))), ()
    if not _is_result(s, message):
        return s, (rejected(Reason.MALFORMED, "this is no result of this survey"),)
    if s.claim is None or message.claim_hash != s.claim_hash:
        return s, (to_s2(s, SyncRequest(s.params.survey)),)
    path = (State.PUBLISHED,) if s.state is State.OPENED else (State.OPENED, State.PUBLISHED)
    return s.rules.scrubbed(replace(s, final=statement, state=advance(s.state, *path))), ()


def _is_result(s: Coordinator, message: Published) -> bool:
    """Whether it has a count for every item, and numbers where numbers stand: S1 shows them to everybody."""
    stated = [(message.epsilon, message.delta), (message.realized_epsilon, message.realized_delta)]
    stated += [(each.epsilon, each.delta) for each in message.against]
    try:
        for amount in chain.from_iterable(stated):
            unscaled(amount.decode())
    except (MalformedError, ValueError):  # no number, or no text
        return False
    return len(message.counts) == s.params.N


def adopt(s: Coordinator, message: SyncState) -> Step:
    """After a restore: S2's roster, claim and statements become ours, and S1 goes on from there.

    Where blobs of S2's claim were lost with the restore and are still needed, the survey ends.
    """
    if s.state in FINAL:
        return s, ()
    found = read_sync(s.params, partial(is_person, s), message)
    if found is None:
        return s, (rejected(Reason.MALFORMED, "what S2 says that stands does not fit together"),)
    if not found.over and len(found.statements) < s.newest.number:
        return s, ()  # S2 said this before something that S1 has heard since: a repeated answer
    if not found.over and s.newest != found.place(s.newest.number):
        return end_alone(s, "S2 does not know what it had signed")
    after, out = _adopted(replace(s, asks=False, roster=found.roster or s.roster), found)
    if after is None:
        return s, (rejected(Reason.MALFORMED, "what S2 says that stands does not belong to this survey"),)
    anew = after.state in (State.SHARING, State.SUBMITTING)  # the claim led to a further attempt
    if after.final is None and after.claim and not anew and not after.rules.complete(after):
        return give_up(after, "blobs of the claimed batch were lost in a restore")
    return after, out or resume(after)


def _adopted(s: Coordinator, found: Synced) -> tuple[Coordinator | None, Out]:
    """S1 after what S2 said, the claim in its place: after the seal. None if any of it means nothing here."""
    sealed = sum(isinstance(each.says, Seal) for each in found.statements)
    after, out = _heard_all(s, found.statements[:sealed])
    claimed = after if after is None or found.claim is None else s.rules.adopt(_with_parts(after, found), found.claim)
    if claimed is None or claimed.final != s.final:  # nothing of ours, or the claim ends the survey
        return claimed, ()
    after, later = _heard_all(claimed, found.statements[sealed:])
    return after, later or (() if found.statements[sealed:] else out)


def _with_parts(s: Coordinator, found: Synced) -> Coordinator:
    """S1 with the earlier parts of S2's claim beside its own."""
    kept = s.kept
    for number, each in enumerate(found.parts):
        kept = kept.exchanged(part_key(number), each)
    return replace(s, kept=kept) if found.parts else s


def _heard_all(s: Coordinator, statements: Sequence[Statement]) -> tuple[Coordinator | None, Out]:
    """S1 after these statements, and what it says to the last one; None if one of them is refused."""
    out: Out = ()
    for each in statements:
        s, out = _on_s2_statement(s, each)
        if any(isinstance(one, Rejected) for one in out):
            return None, ()
    return s, out


FROM_USERS: Mapping[type[Message], FromUser] = {Withdraw: withdraw}

FROM_S2: Mapping[type[Message], FromS2] = {
    Receipt: on_receipt,
    Refused: on_refused,
    Published: conclude,
    Aborted: conclude,
}

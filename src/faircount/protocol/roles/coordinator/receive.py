"""The coordinator (S1) receives a message: a user's, or a statement of the aggregator, which may
lie.

The aggregator's statements move a survey on, but only as the table of states and the topology's
rules allow. A statement that does not fit is refused and changes nothing: the coordinator never
raises for what another party sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator.state import (
    Change,
    Coordinator,
    Out,
    PhaseAttempt,
    is_person,
)
from faircount.protocol.roles.coordinator.steps import (
    end_alone,
    give_up,
    messages_now,
    request_hashes_now,
    to_aggregator,
)
from faircount.protocol.roles.rows import RowReader, RowSink, Step, StepRows
from faircount.protocol.roles.sync import AggregatorHistory, verify_sync
from faircount.protocol.survey.acknowledgement import sign_together
from faircount.protocol.survey.endings import EndCode, Ending, aggregator_contradiction
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import (
    Acknowledgement,
    Reason,
    Refusal,
    Rejection,
    Signed,
    SyncRequest,
    SyncState,
    reject,
)
from faircount.protocol.wire.roster_messages import RosterConfirmation
from faircount.protocol.wire.signing import Statement, compute_link, verify_statement


def coordinate(s: Coordinator, message: Message, reader: RowReader) -> Step[Coordinator]:
    """The coordinator receives a participant's message, or what the aggregator signed.

    After a statement of the aggregator that changed something, the coordinator says what comes
    next. Anything else is rejected.
    """
    return coordinate_many(s, [message], reader)[0]


def coordinate_many(
    s: Coordinator, messages: Iterable[Message], reader: RowReader
) -> tuple[Step[Coordinator], list[Out]]:
    """The coordinator receives several messages and writes them together; and the answers to each.

    One signature acknowledges all that is written.
    """
    rows = StepRows(reader)
    answers = list[Out]()
    for message in messages:
        s, out = _receive(s, rows, message)
        answers.append(out)
    waiting = [reply for out in answers for reply in _acknowledgements(out)]
    signed = iter(sign_together(s.key, waiting))
    answers = [
        tuple(next(signed) if isinstance(reply, Acknowledgement) else reply for reply in out)
        for out in answers
    ]
    return rows.step(s, tuple(chain.from_iterable(answers))), answers


def _acknowledgements(out: Out) -> list[Acknowledgement]:
    return [reply for reply in out if isinstance(reply, Acknowledgement)]


def end_phase(
    s: Coordinator,
    seen: PhaseAttempt | None = None,
    *,
    reader: RowReader,
    sink: RowSink | None = None,
) -> Step[Coordinator]:
    """End the current phase.

    Two workers at one deadline: the second finds another phase than it has seen, and repeats.

    `seen` is the phase whose time is up; without it, whatever phase there is. `sink` takes parts of
    a manifest as they are made.
    """
    rows = StepRows(reader, sink)
    handler = s.rules.deadline_handlers().get(s.phase)
    over = s.final is not None or s.awaiting_sync or seen not in (None, s.phase_attempt)
    if handler is None or over:
        return rows.step(s, messages_now(s, rows))
    return rows.step(*handler(s, rows))


def resume(s: Coordinator, reader: RowReader) -> Out:
    """What the coordinator last had to say to the aggregator, again: after a crash, or when no
    answer came. It changes nothing.
    """
    return messages_now(s, StepRows(reader))


def restored(s: Coordinator, reader: RowReader) -> Step[Coordinator]:
    """The coordinator from a backup: it asks the aggregator what stands, and ends no phase before
    it knows.
    """
    after = replace(s, awaiting_sync=s.phase not in FINAL)
    return StepRows(reader).step(after, (to_aggregator(after, SyncRequest(s.params.survey)),))


def end_without_aggregator(s: Coordinator, ending: Ending, reader: RowReader) -> Step[Coordinator]:
    """End the survey alone: the aggregator has lost it and will say no more about it."""
    rows = StepRows(reader)
    return rows.step(*end_alone(s, rows, ending))


def _receive(s: Coordinator, rows: StepRows, message: Message) -> Change:
    savepoint = rows.savepoint()
    after, out = _take(s, rows, message)
    if after is s and any(isinstance(reply, Rejection) for reply in out):
        rows.roll_back(savepoint)
    return after, out


def _take(s: Coordinator, rows: StepRows, message: Message) -> Change:
    if isinstance(message, Signed):
        return _on_signed(s, rows, message)
    handler = s.rules.user_handlers().get(type(message))
    if handler is None or getattr(message, "survey", None) != s.params.survey:
        return s, (reject(Reason.MALFORMED, "no message for this survey in this topology"),)
    return handler(s, rows, message)


def _on_signed(s: Coordinator, rows: StepRows, message: Signed) -> Change:
    """The aggregator's statement, and what comes next.

    One that leads nowhere from here is refused, whatever the aggregator meant by it.
    """
    statement = verify_statement(s.params.keys.s2, Party.AGGREGATOR, message)
    if statement is None:
        return s, (
            reject(
                Reason.UNSIGNED, "the signature is not that of the aggregator in the parameters"
            ),
        )
    try:
        after, out = _on_s2_statement(s, rows, statement)
        return after, out or (() if after is s else messages_now(after, rows))
    except ProtocolError:
        return s, (
            reject(Reason.MALFORMED, "this statement does not follow from what was said before"),
        )


def _on_s2_statement(s: Coordinator, rows: StepRows, statement: Statement) -> Change:
    after, out = _handled(s, rows, statement)
    heard = statement.signed.number > s.newest.number and not any(
        isinstance(each, Rejection) for each in out
    )
    return (replace(after, newest=compute_link(statement.signed)) if heard else after), out


def _handled(s: Coordinator, rows: StepRows, statement: Statement) -> Change:
    says = statement.message
    if isinstance(says, SyncState) and says.survey == s.params.survey:
        return adopt(s, rows, says)
    if isinstance(says, Refusal) and _out_of_step(s, rows, says):
        return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
    handler = s.rules.aggregator_handlers().get(type(says))
    if handler is None or getattr(says, "survey", None) != s.params.survey:
        return s, (
            reject(
                Reason.MALFORMED, "no statement of the aggregator for this survey in this topology"
            ),
        )
    return handler(s, rows, says, statement)


def _out_of_step(s: Coordinator, rows: StepRows, why: Refusal) -> bool:
    """Whether the aggregator refuses what the coordinator says now because another claim stands:
    the coordinator must ask what does.
    """
    stands = why.reason in (Reason.CONFLICT, Reason.WRONG_DIGEST)
    return stands and s.reservation is not None and why.request_hash in request_hashes_now(s, rows)


def adopt(s: Coordinator, rows: StepRows, message: SyncState) -> Change:
    """After a restore: the aggregator's roster, claim and statements become ours, and the
    coordinator goes on from there.

    Where blobs of the aggregator's claim were lost with the restore and are still needed, the
    survey ends.
    """
    if s.phase in FINAL:
        return s, ()
    found = verify_sync(s.params, partial(is_person, rows), message)
    if found is None:
        return s, (
            reject(Reason.MALFORMED, "what the aggregator says that stands does not fit together"),
        )
    if not found.is_over and len(found.statements) < s.newest.number:
        # An answer that was delayed or repeated: the coordinator has heard a newer statement.
        return s, ()
    # check: other-history - an aggregator that denies what it signed gets a second try
    if not found.is_over and s.newest != found.link(s.newest.number):
        return end_alone(s, rows, aggregator_contradiction("it does not know what it had signed"))
    after, out = _adopted(
        replace(s, awaiting_sync=False, roster=found.roster or s.roster), rows, found
    )
    if after is None:
        return s, (
            reject(
                Reason.MALFORMED,
                "what the aggregator says that stands does not belong to this survey",
            ),
        )
    anew = after.phase in (Phase.SHARING, Phase.SUBMITTING)  # the claim led to a further attempt
    if (
        after.final is None
        and after.manifest
        and not anew
        and not after.rules.is_complete(after, rows)
    ):
        return give_up(after, Ending(EndCode.REPORTS_LOST, (), "in a restore"))
    return after, out or messages_now(after, rows)


def _adopted(
    s: Coordinator, rows: StepRows, found: AggregatorHistory
) -> tuple[Coordinator | None, Out]:
    """The coordinator after what the aggregator said, the claim in its place: after the seal.

    None if any of it means nothing here.
    """
    sealed = sum(isinstance(each.message, RosterConfirmation) for each in found.statements)
    after, out = _heard_all(s, rows, found.statements[:sealed])
    claimed = after
    if after is not None and found.manifest is not None:
        claimed = s.rules.adopt_manifest(after, rows, found.manifest, found.parts)
    if claimed is None or claimed.final != s.final:  # nothing of ours, or the claim ends the survey
        return claimed, ()
    after, later = _heard_all(claimed, rows, found.statements[sealed:])
    return after, later or (() if found.statements[sealed:] else out)


def _heard_all(
    s: Coordinator, rows: StepRows, statements: Sequence[Statement]
) -> tuple[Coordinator | None, Out]:
    """The coordinator after these statements, and what it says to the last one; None if one of
    them is refused.
    """
    out: Out = ()
    for each in statements:
        s, out = _on_s2_statement(s, rows, each)
        if any(isinstance(one, Rejection) for one in out):
            return None, ()
    return s, out

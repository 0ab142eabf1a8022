"""How the coordinator (S1) handles a message from a participant or from the aggregator.

Either of them may be malicious, so nothing that they send raises: a message that does not fit is
rejected, and a rejected message leaves no trace in state or rows. One thing is noted: that another
device than the one that answered has shown an invitation. The first device is told.

    participant    the topology's handler for this kind of message; several messages are written
                   together, and one signature acknowledges them all
    aggregator     verify the signature -> the topology's handler -> what the coordinator has to
                   send next. Phases advance only as `TRANSITIONS` and the rules allow

A coordinator that was restored from a backup has forgotten what it did since. It sends a
`SyncRequest`, ends no phase meanwhile, and then goes through the aggregator's whole history
(`adopt`) as if the statements had arrived one by one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator.notices import add_notices, note_other_device
from faircount.protocol.roles.coordinator.rules import UserHandler
from faircount.protocol.roles.coordinator.state import (
    Change,
    Coordinator,
    Out,
    PhaseAttempt,
    is_invited,
)
from faircount.protocol.roles.coordinator.steps import (
    abort_without_aggregator,
    request_abort,
    to_aggregator,
    unanswered_messages,
    unanswered_request_hashes,
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
from faircount.protocol.wire.signing import Statement, compute_chain_link, verify_statement


def coordinator_step(s: Coordinator, message: Message, reader: RowReader) -> Step[Coordinator]:
    """The step that follows from one message of a participant or of the aggregator."""
    return coordinator_step_for_many(s, [message], reader)[0]


def coordinator_step_for_many(
    s: Coordinator, messages: Iterable[Message], reader: RowReader
) -> tuple[Step[Coordinator], list[Out]]:
    """One step for several messages, and the replies to each of them.

    One signature acknowledges everything that the step writes.
    """
    # All messages share one `StepRows`: each sees what those before it have written.
    rows = StepRows(reader)
    # Made once: a topology has the same handlers for all messages.
    handlers = s.rules.user_handlers()
    replies = list[Out]()
    for message in messages:
        s, out = _receive(s, rows, message, handlers)
        replies.append(out)
    replies = _sign_acknowledgements(s, replies)
    return rows.step(s, tuple(chain.from_iterable(replies))), replies


def _sign_acknowledgements(s: Coordinator, replies: Sequence[Out]) -> list[Out]:
    """The same replies, with signatures on their acknowledgements."""
    all_replies = chain.from_iterable(replies)
    unsigned = [reply for reply in all_replies if isinstance(reply, Acknowledgement)]
    signed = iter(sign_together(s.key, unsigned))
    after = list[Out]()
    for out in replies:
        signed_out = [next(signed) if type(reply) is Acknowledgement else reply for reply in out]
        after.append(tuple(signed_out))
    return after


def end_phase(
    s: Coordinator,
    seen: PhaseAttempt | None = None,
    *,
    reader: RowReader,
    sink: RowSink | None = None,
) -> Step[Coordinator]:
    """The step that ends a phase whose deadline has passed.

    Args:
        s: the state
        seen: the phase to end, if it is still open; without it, the current one
        reader: where rows are read
        sink: takes the parts of a manifest as they are made
    """
    rows = StepRows(reader, sink)
    handler = s.rules.deadline_handlers().get(s.phase)
    # Of two workers that notice one deadline, the second finds another phase than it has seen.
    is_over = s.final is not None or s.awaiting_sync or seen not in (None, s.phase_attempt)
    if handler is None or is_over:
        return rows.step(s, unanswered_messages(s, rows))
    return rows.step(*handler(s, rows))


def resume(s: Coordinator, reader: RowReader) -> Out:
    """The messages that the aggregator has not answered yet, to be sent again; changes nothing."""
    return unanswered_messages(s, StepRows(reader))


def start_resync(s: Coordinator, reader: RowReader) -> Step[Coordinator]:
    """The first step after a restore: ask the aggregator for its history.

    Until it arrives no phase ends: a second manifest could be fixed beside one that was sent.
    """
    after = replace(s, awaiting_sync=s.phase not in FINAL)
    return StepRows(reader).step(after, (to_aggregator(after, SyncRequest(s.params.survey)),))


def end_without_aggregator(s: Coordinator, ending: Ending, reader: RowReader) -> Step[Coordinator]:
    """The step that ends a survey which the aggregator has lost."""
    rows = StepRows(reader)
    return rows.step(*abort_without_aggregator(s, rows, ending))


def _is_rejected(out: Out) -> bool:
    return Rejection in map(type, out)


UserHandlers = Mapping[type[Message], UserHandler]


def _receive(s: Coordinator, rows: StepRows, message: Message, handlers: UserHandlers) -> Change:
    """Handle one of the messages of a step; a rejected one writes nothing of its own."""
    savepoint = rows.savepoint()
    after, out = _dispatch(s, rows, message, handlers)
    if after is s and _is_rejected(out):
        rows.roll_back(savepoint)
        note_other_device(s, rows, message, out)
    return after, add_notices(after, rows, message, out)


def _dispatch(s: Coordinator, rows: StepRows, message: Message, handlers: UserHandlers) -> Change:
    if isinstance(message, Signed):
        return _on_signed(s, rows, message)
    handler = handlers.get(type(message))
    if handler is None or getattr(message, "survey", None) != s.params.survey:
        return s, (reject(Reason.MALFORMED, "a survey of this topology has no such message"),)
    return handler(s, rows, message)


def _on_signed(s: Coordinator, rows: StepRows, message: Signed) -> Change:
    """Handle a statement of the aggregator, and send what comes next."""
    statement = verify_statement(s.params.keys.aggregator, Party.AGGREGATOR, message)
    if statement is None:
        why = "the signature is not that of the aggregator in the parameters"
        return s, (reject(Reason.UNSIGNED, why),)
    try:
        after, out = _on_statement(s, rows, statement)
        if not out and after is not s:
            out = unanswered_messages(after, rows)
    except ProtocolError:
        # No transition leads from this phase to the one that the statement implies.
        why = "this statement does not follow from those before it"
        return s, (reject(Reason.MALFORMED, why),)
    return after, out


def _on_statement(s: Coordinator, rows: StepRows, statement: Statement) -> Change:
    """Handle a verified statement, and remember its chain link if it is the newest."""
    after, out = _dispatch_statement(s, rows, statement)
    # A statement that was rejected must not count as received: it is asked for again.
    if statement.signed.number > s.chain_end.number and not _is_rejected(out):
        after = replace(after, chain_end=compute_chain_link(statement.signed))
    return after, out


def _dispatch_statement(s: Coordinator, rows: StepRows, statement: Statement) -> Change:
    content = statement.message
    if isinstance(content, SyncState) and content.survey == s.params.survey:
        return adopt(s, rows, content)
    # Once there is a reservation, the topology's handler ignores such refusals.
    if isinstance(content, Refusal) and _is_out_of_step(s, rows, content):
        return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
    handler = s.rules.aggregator_handlers().get(type(content))
    if handler is None or getattr(content, "survey", None) != s.params.survey:
        why = "no statement of the aggregator for this survey in this topology"
        return s, (reject(Reason.MALFORMED, why),)
    return handler(s, rows, content, statement)


def _is_out_of_step(s: Coordinator, rows: StepRows, refusal: Refusal) -> bool:
    """Whether the aggregator refuses a current request because it recorded another manifest.

    Then the coordinator must resynchronize.
    """
    if refusal.reason not in (Reason.CONFLICT, Reason.WRONG_DIGEST) or s.reservation is None:
        return False
    return refusal.request_hash in unanswered_request_hashes(s, rows)


def adopt(s: Coordinator, rows: StepRows, message: SyncState) -> Change:
    """Take over the aggregator's history: its roster, its manifest and its statements.

    The survey is aborted if reports of that manifest were lost with the restore and are still
    needed.
    """
    if s.phase in FINAL:
        return s, ()
    history = verify_sync(s.params, partial(is_invited, rows), message)
    if history is None:
        why = "the history that the aggregator sent does not fit together"
        return s, (reject(Reason.MALFORMED, why),)
    if not history.is_over and len(history.statements) < s.chain_end.number:
        # An answer that was delayed or repeated: a newer statement was received since.
        return s, ()
    # check: other-history - an aggregator that denies what it signed gets a second try
    if not history.is_over and s.chain_end != history.chain_link(s.chain_end.number):
        ending = aggregator_contradiction("it does not know what it had signed")
        return abort_without_aggregator(s, rows, ending)

    if history.manifest is not None:
        fetching = s.rules.fetch_manifest(s, rows, history.manifest)
        if fetching is not None:
            return fetching

    # The roster of a backup from before its confirmation is only a proposal: take the signed one.
    synced = replace(s, awaiting_sync=False, roster=history.roster or s.roster)
    after, out = _replay_history(synced, rows, history)
    if after is None:
        why = "the history that the aggregator sent does not belong to this survey"
        return s, (reject(Reason.MALFORMED, why),)
    if _lacks_reports(after, rows):
        return request_abort(after, Ending(EndCode.REPORTS_LOST, (), "in a restore"))
    return after, out or unanswered_messages(after, rows)


def _lacks_reports(s: Coordinator, rows: StepRows) -> bool:
    """Whether the manifest needs reports that are not stored any more."""
    # In these phases the manifest has already led to a further attempt, and is not needed.
    is_new_attempt = s.phase in (Phase.SHARING, Phase.SUBMITTING)
    if s.final is not None or not s.manifest or is_new_attempt:
        return False
    return not s.rules.is_complete(s, rows)


def _replay_history(
    s: Coordinator, rows: StepRows, history: AggregatorHistory
) -> tuple[Coordinator | None, Out]:
    """The state after all statements, with the manifest adopted between roster and reservation.

    None if the manifest or a statement is not of this survey.
    """
    # If there is a roster, its confirmation is the first statement of an honest aggregator.
    confirmed = sum(
        isinstance(statement.message, RosterConfirmation) for statement in history.statements
    )
    after, out = _replay_statements(s, rows, history.statements[:confirmed])
    if after is not None and history.manifest is not None:
        after = s.rules.adopt_manifest(after, rows, history.manifest)
    if after is None or after.final != s.final:
        # Another survey's history, or one that contradicts ours, which has ended the survey.
        return after, ()
    later = history.statements[confirmed:]
    if not later:
        return after, out
    return _replay_statements(after, rows, later)


def _replay_statements(
    s: Coordinator, rows: StepRows, statements: Sequence[Statement]
) -> tuple[Coordinator | None, Out]:
    """The state after these statements, and the reply to the last one; None if one is rejected."""
    out: Out = ()
    for statement in statements:
        s, out = _on_statement(s, rows, statement)
        if _is_rejected(out):
            return None, ()
    return s, out

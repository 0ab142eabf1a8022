"""How the aggregator (S2) handles a message: only what the coordinator signed is read.

A message passes four stages, and a later one never runs if an earlier one fails:

    signature     the coordinator of this survey made it
    history       the coordinator knows no statement that this aggregator has forgotten
    handler       the topology's function for this kind of message
    refusals      rejections are signed, bound to the request they answer

The aggregator draws no randomness, so a message that is handled again after a crash leads to the
same state and the same bytes.
"""

from dataclasses import replace
from hashlib import sha256

from faircount.protocol.roles.aggregator.state import Aggregator, Change
from faircount.protocol.roles.aggregator.steps import abort, abort_as_restored
from faircount.protocol.roles.rows import RowReader, Step, StepRows
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.endings import Ending
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import Reason, Refusal, Rejection, Signed, reject
from faircount.protocol.wire.signing import compute_chain_link, sign, verify_statement


def aggregator_step(s: Aggregator, message: Message, reader: RowReader) -> Step[Aggregator]:
    """The step that follows from a message of the coordinator; any other message is rejected."""
    rows = StepRows(reader)
    after, out = _receive(s, rows, message)
    if after is s:
        # Only the state says how far the aggregator is. Rows without a new state would belong to
        # a request that was refused.
        return Step(s, out)
    return rows.step(after, out)


def abort_after_restore(s: Aggregator, reader: RowReader) -> Step[Aggregator]:
    """The step of an aggregator that was restored: a running survey is aborted and charged."""
    rows = StepRows(reader)
    return rows.step(*abort_as_restored(s, rows))


def stop(s: Aggregator, ending: Ending, reader: RowReader) -> Step[Aggregator]:
    """The step of an aggregator whose operator stops a survey, unless it is over.

    What is reserved counts as spent: shares may have arrived.
    """
    if s.phase in FINAL:
        return Step(s)
    rows = StepRows(reader)
    # check: stop-spends - an operator stops a survey whose shares arrived, and has its budget back
    is_spent = s.ledger.find(s.params.survey) is not None
    return rows.step(*abort(s, rows, ending, spent=is_spent))


def aggregator_step_with(
    stored: Ledger, s: Aggregator, message: Message, reader: RowReader
) -> tuple[Ledger, Step[Aggregator]]:
    """One step with the ledger as it is stored now, and the ledger after it.

    Many surveys share the ledger of their population, so it is not stored with any of them. Write
    the ledger with `compare_and_swap(stored now, stored, ledger)` together with the step, both or
    neither, and send afterwards. If `compare_and_swap` refuses, another survey came first: read
    the ledger and make the step again.
    """
    with_ledger = s if s.ledger is stored else replace(s, ledger=stored)
    step = aggregator_step(with_ledger, message, reader)
    return step.state.ledger, step


def _receive(s: Aggregator, rows: StepRows, message: Message) -> Change:
    if not isinstance(message, Signed):
        why = "the aggregator reads only messages that the coordinator has signed"
        return s, (reject(Reason.UNSIGNED, why),)
    statement = verify_statement(s.params.keys.coordinator, Party.COORDINATOR, message)
    if statement is None:
        why = "the signature is not that of the coordinator in the parameters"
        return s, (reject(Reason.UNSIGNED, why),)

    # check: aggregator-is-behind - a restored aggregator would sign a second history
    if s.phase not in FINAL and _is_behind(s, message):
        return abort_as_restored(s, rows)

    content = statement.message
    handler = s.params.topology.aggregator.handlers().get(type(content))
    if handler is None or getattr(content, "survey", None) != s.params.survey:
        return s, (reject(Reason.MALFORMED, "a survey of this topology has no such message"),)
    after, out = handler(s, rows, content)

    # The coordinator may have missed the final statement: a rejection alone would leave it waiting.
    if after.phase in FINAL and all(isinstance(reply, Rejection) for reply in out):
        out = (*out, *after.newest_statements)
    return after, tuple(_sign_refusal(s, message, reply) for reply in out)


def _is_behind(s: Aggregator, request: Signed) -> bool:
    """Whether the coordinator has received a statement that this aggregator does not know.

    Then the aggregator's database was rolled back without `faircount restore`.
    """
    number = request.number
    if number > len(s.statements):
        return True
    if number == 0:
        return False
    return compute_chain_link(s.statements[number - 1].signed).hash != request.previous


def _sign_refusal(s: Aggregator, request: Signed, reply: Message) -> Message:
    """A rejection as a signed refusal; any other reply unchanged."""
    if not isinstance(reply, Rejection):
        return reply
    # Bound to the hash of the request, so that it cannot be shown as the answer to another one.
    request_hash = sha256(request.payload).digest()
    refusal = Refusal(s.params.survey, request_hash, reply.reason, reply.detail)
    return sign(s.key, Party.AGGREGATOR, refusal)

"""The aggregator (S2) receives a message: it reads what the coordinator signed, and nothing
else.
"""

from dataclasses import replace
from hashlib import sha256

from faircount.protocol.roles.aggregator.state import Aggregator, Change
from faircount.protocol.roles.aggregator.steps import end_restored
from faircount.protocol.roles.rows import RowReader, Step, StepRows
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import Reason, Refusal, Rejection, Signed, reject
from faircount.protocol.wire.signing import compute_link, sign, verify_statement


def aggregate(s: Aggregator, message: Message, reader: RowReader) -> Step[Aggregator]:
    """The aggregator receives what the coordinator signed; anything else is rejected."""
    rows = StepRows(reader)
    after, out = _receive(s, rows, message)
    if after is s:
        # Nothing but the state says how far the aggregator is: without it, its rows mean nothing.
        return Step(s, out)
    return rows.step(after, out)


def restored(s: Aggregator, reader: RowReader) -> Step[Aggregator]:
    """The aggregator after a restore: what was live is aborted and charged."""
    rows = StepRows(reader)
    return rows.step(*end_restored(s, rows))


def _receive(s: Aggregator, rows: StepRows, message: Message) -> Change:
    if not isinstance(message, Signed):
        return s, (
            reject(
                Reason.UNSIGNED,
                "The aggregator reads what the coordinator signed, and nothing else",
            ),
        )
    statement = verify_statement(s.params.keys.s1, Party.COORDINATOR, message)
    if statement is None:
        return s, (
            reject(
                Reason.UNSIGNED, "the signature is not that of the coordinator in the parameters"
            ),
        )
    # check: aggregator-is-behind - a restored aggregator would sign a second history
    if s.phase not in FINAL and _is_behind(s, message):
        return end_restored(s, rows)
    says = statement.message
    handler = s.params.topology.aggregator.handlers().get(type(says))
    if handler is None or getattr(says, "survey", None) != s.params.survey:
        return s, (reject(Reason.MALFORMED, "no message for this survey in this topology"),)
    after, out = handler(s, rows, says)
    if after.phase in FINAL and all(isinstance(each, Rejection) for each in out):
        out = (*out, *after.newest_statements)  # The coordinator may not have heard how it ended
    return after, tuple(
        _refused(s, message, each) if isinstance(each, Rejection) else each for each in out
    )


def aggregate_with(
    stored: Ledger, s: Aggregator, message: Message, reader: RowReader
) -> tuple[Ledger, Step[Aggregator]]:
    """One step with the ledger as it is stored now: many surveys share it, so it is not kept with
    any of them.

    Write the ledger with `compare_and_swap(stored now, stored, ledger)` and the step, both or
    neither, then send. If that refuses, another survey came first: read the ledger and do the
    step again. The aggregator draws nothing, so nothing is lost.
    """
    lent = s if s.ledger is stored else replace(s, ledger=stored)
    step = aggregate(lent, message, reader)
    return step.state.ledger, step


def _is_behind(s: Aggregator, heard: Signed) -> bool:
    """Whether the coordinator has heard a statement that this aggregator does not know: it was
    restored, and nobody told it.
    """
    if heard.number > len(s.statements):
        return True
    return (
        heard.number > 0
        and compute_link(s.statements[heard.number - 1].signed).hash != heard.previous
    )


def _refused(s: Aggregator, request: Signed, why: Rejection) -> Signed:
    """A refusal bound to the request, so that it cannot be shown for another one."""
    return sign(
        s.key,
        Party.AGGREGATOR,
        Refusal(s.params.survey, sha256(request.payload).digest(), why.reason, why.detail),
    )

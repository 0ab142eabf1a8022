"""What a topology adds to the aggregator (S2): a subclass of `AggregatorRules`.

There is one instance per topology, and it keeps no state: everything about a survey is in its
`Aggregator`. The base class handles the three messages that every topology knows: a roster
proposal, the coordinator's request to abort, and its request to resynchronize.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, Protocol

from faircount.protocol.roles.aggregator.state import Aggregator, Change
from faircount.protocol.roles.aggregator.steps import abort, has_valid_mac, sign_statement
from faircount.protocol.roles.rows import MemoryRows, RowWrite, StepRows
from faircount.protocol.survey.endings import ending_of
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import entry_leaves, merkle_root, roster_digest
from faircount.protocol.wire.messages import (
    Aborted,
    Reason,
    Rejection,
    SyncRequest,
    SyncState,
    reject,
)
from faircount.protocol.wire.roster_messages import (
    RejectedEntries,
    RosterConfirmation,
    RosterProposal,
)
from faircount.protocol.wire.signing import sign

Handler = Callable[[Aggregator, StepRows, Any], Change]


class WorkAhead(Protocol):
    """Work that takes long and does not depend on what is stored meanwhile."""

    def run(self) -> bytes:
        """Do the work, in any process."""

    def rows(self, result: bytes) -> MemoryRows:
        """The rows that the step reads in place of doing the work (`PrecomputedReader`)."""


class AggregatorRules:
    """The aggregator's side of one topology."""

    def handlers(self) -> Mapping[type[Message], Handler]:
        """The function for each kind of message from the coordinator.

        A subclass adds its manifests, encrypted shares and aggregate shares.
        """
        return {
            RosterProposal: self.confirm_roster,
            Aborted: self.on_abort_request,
            SyncRequest: self.sync_state,
        }

    def scrub(self, s: Aggregator, rows: StepRows) -> Aggregator:
        """The state after the survey is over, without anything that depends on answers."""
        # Statements and manifest stay: a restored coordinator may still ask for them.
        rows.scrub("part_verifications")
        rows.scrub("authentic_entries")
        rows.scrub("mac_keys")
        return replace(s, partial_sum=None, topology_state=None)

    def work_ahead(self, s: Aggregator, rows: StepRows, message: Message) -> WorkAhead | None:
        """Work for this message that another process can do before its step is made, if any."""
        return None

    def rows_for(self, s: Aggregator, rows: StepRows, message: Message) -> MemoryRows | None:
        """The rows that the step for this message needs, to be sent to another process.

        None for a step that may need more rows than another process should be given.
        """
        keys = rows.mac_keys
        return MemoryRows(RowWrite("mac_keys", user, keys[user]) for user in keys)

    def confirm_roster(self, s: Aggregator, rows: StepRows, request: RosterProposal) -> Change:
        """Confirm one roster, once.

        Entries without a valid enrolment MAC are named, and then nothing is confirmed: the
        coordinator proposes again without them.
        """
        if s.phase in FINAL:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
        if s.roster is not None:
            return s, _repeat_confirmation(s, request)
        problem = _roster_problem(s, request)
        if problem is not None:
            return s, (problem,)

        invalid = list[int]()
        for position, entry in enumerate(request.entries):
            if not has_valid_mac(s, rows, entry):
                invalid.append(position)
        if invalid:
            # Not part of the chain of statements: it fixes nothing, and may be repeated.
            request_hash = sha256(encode(request)).digest()
            rejected = RejectedEntries(s.params.survey, request_hash, tuple(invalid))
            return s, (sign(s.key, Party.AGGREGATOR, rejected),)

        size = len(request.entries)
        root = merkle_root(
            entry_leaves((entry.user, entry.public_key) for entry in request.entries)
        )
        digest = roster_digest(s.params.digest, size, root)
        # Whoever knew the value before could choose keys to fit the graph or election that it
        # draws. In two-stage more is chosen later, so the value is revealed later.
        revealed = bytes(32)
        if s.params.topology.reveals_with_roster:
            revealed = s.committed_value
        return sign_statement(
            s,
            RosterConfirmation(s.params.survey, digest, size, root, revealed),
            roster=request,
            roster_digest=digest,
            phase=advance(s.phase, Phase.CONFIRMED),
        )

    def on_abort_request(self, s: Aggregator, rows: StepRows, message: Aborted) -> Change:
        """Abort because the coordinator cannot go on."""
        if s.phase in FINAL:
            return s, s.newest_statements
        # The coordinator may ask for a charge, but cannot avert one for data that is here already.
        spent = s.has_answer_data or (s.manifest is not None and message.spent != 0)
        # The aggregator signs that the coordinator gave this reason, not that the reason is true:
        # it may be that the aggregator contradicted itself.
        return abort(s, rows, ending_of(message), spent=spent, by=Party.COORDINATOR)

    def sync_state(self, s: Aggregator, rows: StepRows, _: SyncRequest) -> Change:
        """Send all that a restored coordinator needs to go on; `roles.sync` verifies it."""
        state = SyncState(
            s.params.survey,
            _encode_if_any(s.roster),
            _encode_if_any(s.manifest),
            tuple(statement.signed for statement in s.statements),
        )
        return s, (sign(s.key, Party.AGGREGATOR, state),)


def _encode_if_any(message: Message | None) -> bytes:
    """The message as bytes; nothing if there is none yet."""
    if message is None:
        return b""
    return encode(message)


def _repeat_confirmation(s: Aggregator, request: RosterProposal) -> tuple[Message, ...]:
    """The answer to a second roster proposal: the confirmation of the first one."""
    answers = list[Message]()
    if s.roster != request:
        # A restored coordinator learns from the confirmation that it has forgotten a roster.
        answers.append(reject(Reason.CONFLICT, "another roster is confirmed already"))
    stored = s.last(RosterConfirmation)
    if stored is not None:
        answers.append(stored.signed)
    return tuple(answers)


def _roster_problem(s: Aggregator, request: RosterProposal) -> Rejection | None:
    """Why a roster cannot be confirmed, whoever is on it."""
    if request.params != s.params.digest:
        return reject(Reason.WRONG_DIGEST, "the roster was made for other parameters")
    users = [entry.user for entry in request.entries]
    # Ascending ids name nobody twice: a second entry would count a participant twice.
    if any(first >= second for first, second in pairwise(users)):
        return reject(Reason.MALFORMED, "a roster is ascending by user id, each once")
    keys = {entry.public_key for entry in request.entries}
    if len(keys) != len(users):
        return reject(Reason.MALFORMED, "two participants have the same public key")
    if not s.params.minimum <= len(users) <= s.params.n_max:
        return reject(
            Reason.TOO_FEW, f"a roster has {s.params.minimum} to {s.params.n_max} participants"
        )
    return None

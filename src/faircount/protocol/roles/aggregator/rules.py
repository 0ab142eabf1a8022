"""What a topology adds to the aggregator (S2): a subclass of `AggregatorRules`, one instance per
topology.

An instance keeps nothing: everything about a survey is in its `Aggregator`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

from faircount.protocol.roles.aggregator.state import Aggregator, Change
from faircount.protocol.roles.aggregator.steps import abort, believed, say
from faircount.protocol.roles.rows import MemoryRows, RowWrite, StepRows
from faircount.protocol.survey.endings import ending_of
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import merkle_root, roster_digest, roster_leaves
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


class AggregatorRules:
    """The aggregator's side of one topology."""

    def handlers(self) -> Mapping[type[Message], Handler]:
        """What is done with what the coordinator says, by its class; a subclass adds its claims
        and sums.
        """
        return {
            RosterProposal: self.confirm_roster,
            Aborted: self.give_up,
            SyncRequest: self.sync_state,
        }

    def claim_parts(self, s: Aggregator, rows: StepRows) -> tuple[Message, ...]:
        """All parts of the manifest but the last, which is `s.manifest`."""
        return ()

    def scrub(self, s: Aggregator, rows: StepRows) -> Aggregator:
        """The state when the survey is over: nothing that depends on answers is left."""
        rows.scrub("part_verdicts")
        rows.scrub("mac_keys")
        return replace(s, partial_sum=None, topology_state=None)

    def rows_for(self, s: Aggregator, rows: StepRows, message: Message) -> MemoryRows | None:
        """The rows that a step about this message needs, to be sent to another process.

        None for a step that may need more than another process should be given.
        """
        keys = rows.mac_keys
        return MemoryRows(RowWrite("mac_keys", user, keys[user]) for user in keys)

    def confirm_roster(self, s: Aggregator, rows: StepRows, request: RosterProposal) -> Change:
        """Seal the one roster.

        Entries that the coordinator cannot have from an invited person are named, and nothing is
        sealed.
        """
        if s.phase in FINAL:
            return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
        if s.roster is not None:
            stored = s.last(RosterConfirmation)
            again = (
                ()
                if s.roster == request
                else (reject(Reason.CONFLICT, "another roster is sealed"),)
            )
            return s, (*again, *([stored.signed] if stored else []))
        problem = _roster_problem(s, request)
        if problem is not None:
            return s, (problem,)
        bad = [i for i, each in enumerate(request.entries) if not believed(s, rows, each)]
        if bad:
            return s, (
                sign(
                    s.key,
                    Party.AGGREGATOR,
                    RejectedEntries(s.params.survey, sha256(encode(request)).digest(), tuple(bad)),
                ),
            )
        lines = [(each.user, each.public_key) for each in request.entries]
        root = merkle_root(roster_leaves(lines))
        digest = roster_digest(s.params.digest, len(lines), root)
        revealed = s.committed if s.params.topology.reveals_with_roster else bytes(32)
        seal = RosterConfirmation(s.params.survey, digest, len(lines), root, revealed)
        return say(
            s, seal, roster=request, roster_digest=digest, phase=advance(s.phase, Phase.CONFIRMED)
        )

    def give_up(self, s: Aggregator, rows: StepRows, message: Aborted) -> Change:
        """The coordinator cannot go on."""
        if s.phase in FINAL:
            return s, s.newest_statements
        spent = s.handed_over or (s.manifest is not None and message.spent != 0)
        # The aggregator signs that the coordinator has given this reason, not that it is true: it
        # may say that the aggregator lied.
        return abort(s, rows, ending_of(message), spent=spent, by=Party.COORDINATOR)

    def sync_state(self, s: Aggregator, rows: StepRows, _: SyncRequest) -> Change:
        """Everything that the coordinator needs to go on from where the aggregator stands."""
        roster = b"" if s.roster is None else encode(s.roster)
        manifest = b"" if s.manifest is None else encode(s.manifest)
        earlier = tuple(encode(part) for part in self.claim_parts(s, rows))
        said = tuple(each.signed for each in s.statements)
        return s, (
            sign(
                s.key, Party.AGGREGATOR, SyncState(s.params.survey, roster, manifest, said, earlier)
            ),
        )


def _roster_problem(s: Aggregator, request: RosterProposal) -> Rejection | None:
    users = [each.user for each in request.entries]
    if request.params != s.params.digest:
        return reject(Reason.WRONG_DIGEST, "the roster was made for other parameters")
    if any(a >= b for a, b in pairwise(users)):
        return reject(Reason.MALFORMED, "a roster is ascending by user id, each once")
    if len({each.public_key for each in request.entries}) != len(users):
        return reject(Reason.MALFORMED, "two users have the same public key")
    if not s.params.minimum <= len(users) <= s.params.n_max:
        return reject(Reason.TOO_FEW, f"a roster has {s.params.minimum} to {s.params.n_max} users")
    return None

"""What S2 says that stands, read with distrust: S1 goes on from it only if all of it fits together.

    statements   S2's own, from the first, each naming the one before
    roster       the one in the seal: invited people, ascending, each once
    claim        the one in the newest receipt; the earlier parts of it, if it has several, in order

A lying S2 can still say less than it signed, or another claim than S1 made: what S1 then does about it is the
topology's to decide (`Rules.adopt`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import merkle_root, roster_digest, roster_leaves
from faircount.protocol.wire.messages import Aborted, Published, Receipt, SyncState, decode
from faircount.protocol.wire.roster_messages import Enrolled, Seal, SealRequest
from faircount.protocol.wire.signing import UNCHAINED, Link, Statement, chained, link_to, verified


def most_statements(params: SurveyParameters) -> int:
    """More than S2 signs in this survey: a seal, an election, an end, and three for each attempt."""
    return 8 + 3 * params.attempts


@dataclass(frozen=True, slots=True)
class Synced:
    """Where S2 stands: its statements in order, the roster and the claim that they are about."""

    statements: tuple[Statement, ...]
    roster: tuple[Enrolled, ...]
    claim: Message | None
    parts: tuple[Message, ...] = ()  # of the claim, all but the last

    def place(self, number: int) -> Link:
        """Which statement has this number."""
        return link_to(self.statements[number - 1].signed) if 0 < number <= len(self.statements) else UNCHAINED

    @property
    def over(self) -> bool:
        """Whether S2 has said its last word."""
        return any(isinstance(each.says, (Published, Aborted)) for each in self.statements)


def read_sync(params: SurveyParameters, invites: Callable[[bytes], bool], message: SyncState) -> Synced | None:
    """Where S2 says that it stands; None if that does not fit together. `invites` knows the ids of people."""
    statements = _statements(params, message)
    roster = None if statements is None else _roster(params, invites, message.roster, statements)
    if statements is None or roster is None:
        return None
    receipts = [each.says for each in statements if isinstance(each.says, Receipt)]
    claim = decode(message.claim) if message.claim else None
    granted = receipts[-1].claim_hash if receipts else None
    named = None if claim is None else sha256(encode(claim)).digest()
    early = claim is None and not params.topology.reveals_with_roster  # the receipt may be that of an election
    parts = tuple(decode(each) for each in message.earlier)
    alike = all(type(each) is type(claim) for each in parts)
    return Synced(statements, roster, claim, parts) if alike and (named == granted or early) else None


def _statements(params: SurveyParameters, message: SyncState) -> tuple[Statement, ...] | None:
    if len(message.statements) > most_statements(params) or not chained(message.statements):
        return None
    found = [verified(params.keys.s2, Party.S2, each) for each in message.statements]
    known = tuple(each for each in found if each is not None and getattr(each.says, "survey", None) == params.survey)
    nested = any(isinstance(each.says, SyncState) for each in known)
    return known if len(known) == len(found) and not nested else None


def _roster(
    params: SurveyParameters, invites: Callable[[bytes], bool], sent: bytes, statements: Sequence[Statement]
) -> tuple[Enrolled, ...] | None:
    seals = [each.says for each in statements if isinstance(each.says, Seal)]
    if not seals:
        return None if sent else ()
    request = decode(sent)
    if not isinstance(request, SealRequest) or len(seals) > 1 or request.params != params.digest:
        return None
    lines, (seal,) = request.entries, seals
    users, keys = [each.user for each in lines], {each.public_key for each in lines}
    if not params.minimum <= len(lines) <= params.n_max or len(keys) != len(lines):
        return None
    if any(a >= b for a, b in pairwise(users)) or not all(map(invites, users)):
        return None
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in lines))
    stated = len(lines), root, roster_digest(params.digest, len(lines), root)
    return lines if (seal.n, seal.root, seal.digest) == stated else None

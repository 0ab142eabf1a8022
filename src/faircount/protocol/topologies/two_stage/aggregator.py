"""S2 in TSS and TSS': it holds one election, opens the seeds of the helpers' masks, takes ONE sum and publishes.

S2 learns who may be elected and who is counted, the m_j of the election, and the total of every item. It gets no update
of the m_j: together with who was lost, that would tell which items a lost user reported. It reads the m_j once, of
users for whose keys invitations vouch: S1 cannot invent a reporter, and a second request would tell somebody's items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from faircount.accounting import guarantee
from faircount.accounting.guarantee import Adversary
from faircount.core.arrays import Residues
from faircount.mechanisms.two_stage import TwoStageSum, reports_sets
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.invitations import entry_holds
from faircount.protocol.survey.receipts import receipt_for
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers import opening
from faircount.protocol.topologies.peers.messages import Total
from faircount.protocol.topologies.peers.self_mask import Round
from faircount.protocol.topologies.two_stage.calls import Called, Part, parts
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, draw, tally_problem
from faircount.protocol.topologies.two_stage.messages import (
    Announced,
    Announcement,
    Election,
    ElectionRequest,
    ReporterKey,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.user import NOBODY, REPORTING
from faircount.protocol.wire.canonical_json import scaled_up
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Against, Reason, Rejected, rejected
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import add, dtype_for

# --- the election -------------------------------------------------------------------------------------------------


def on_announcement(s: Aggregator, message: Announcement) -> aggregator.Step:
    """Reserve the budget and record which request will be read, about whom; any other later is a conflict.

    The m_j depend on answers: from here on they may be on their way, so an abort is charged. Keys for which no
    invitation vouches are named first, and nothing is recorded.
    """
    stored = s.last(Announced)
    if stored is not None:
        again = stored.says == _announced(s, message)
        why = () if again else (rejected(Reason.CONFLICT, "another request was announced"),)
        at = s.statements.index(stored)
        return s, (*why, *(each.signed for each in s.statements[at - 1 : at + 1]))
    if s.state is not State.SEALED or s.roster is None:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"),)
    problem = _entries_problem(s, message.entries)
    if problem is not None:
        return s, (problem,)
    bad = tuple(i for i, each in enumerate(message.entries) if not _vouched_for(s, each))
    if bad:
        hash_ = sha256(encode(message)).digest()
        return s, (sign(s.key, Party.S2, BadEntries(s.params.survey, hash_, bad)),)
    granted = aggregator.reserve(s)
    if not isinstance(granted, Aggregator):
        return granted
    receipt = receipt_for(granted.ledger, s.params.survey, message.request_hash, bytes(32))
    after, first = aggregator.say(replace(granted, handed_over=True), receipt)
    after, second = aggregator.say(after, _announced(s, message))
    return after, (*first, *second)


def _announced(s: Aggregator, message: Announcement) -> Announced:
    places, keys = [each.place for each in message.entries], tuple(each.public_key for each in message.entries)
    n = opening.roster_size(s)
    return Announced(s.params.survey, message.request_hash, bitmap((i for i in places if i < n), n), keys)


def _entries_problem(s: Aggregator, entries: Sequence[ReporterKey]) -> Rejected | None:
    places, keys, n = {each.place for each in entries}, {each.public_key for each in entries}, opening.roster_size(s)
    if len(places) != len(entries) or not places <= set(range(n)):
        return rejected(Reason.MALFORMED, "an election is held of users of the roster, each once")
    if len(keys) != len(entries) or not keys.isdisjoint(opening.entry(s, i)[1] for i in range(n)):
        return rejected(Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's")
    if len(entries) < s.params.minimum:
        return rejected(Reason.TOO_FEW, f"{len(entries)} users indicated, {s.params.minimum} are needed")
    return None


def _vouched_for(s: Aggregator, each: ReporterKey) -> bool:
    """Whether this user's invitation vouches for the key under which it is said to report."""
    key = s.mac_keys.get(opening.entry(s, each.place)[0])
    return entry_holds(key, s.params.digest, each.public_key, each.mac, REPORTING)


def on_request(s: Aggregator, request: ElectionRequest) -> aggregator.Step:
    """Reveal the committed value for the one request that was announced; any other is a conflict."""
    stored, announced = s.last(Election), s.last(Announced)
    known = None if announced is None else announced.says
    if not isinstance(known, Announced) or known.request_hash != sha256(encode(request)).digest():
        why = "this request was not announced" if stored is None else "another election was held"
        return s, (rejected(Reason.CONFLICT, why), *(() if stored is None else (stored.signed,)))
    if stored is not None:
        return s, (stored.signed,)
    if s.state is not State.SEALED or s.roster is None:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"),)
    if request.digest != s.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "an election is held for the sealed roster"),)
    drawn = request.reporters, request.lists, s.committed
    election = Election(s.params.survey, s.digest, known.eligible, known.keys, *drawn)
    problem = tally_problem(s.params, len(s.roster.entries), election)
    return (s, (problem,)) if problem is not None else aggregator.say(s, election)


def ballot_of(s: Aggregator) -> Ballot | None:
    """The election that was held, if one was."""
    stored = s.last(Election)
    held = None if stored is None else stored.says
    return draw(s.params, len(s.roster.entries), held) if isinstance(held, Election) and s.roster is not None else None


# --- claims -------------------------------------------------------------------------------------------------------


def on_claim(s: Aggregator, claim: TwoStageClaim) -> aggregator.Step:
    """Check election, reporters, slots, minimum and budget, record the claim and open its seeds."""
    known = opening.repeated(s, claim)
    if known is not None:
        return known
    ballot = ballot_of(s)
    if ballot is None or (claim.digest, claim.election) != (s.digest, ballot.hash):
        why = rejected(Reason.WRONG_DIGEST, "the claim is about another election than the one that was held")
        return aggregator.refuse_claim(s, why)
    slots, numbers = ballot.after(claim.gone), members_of(claim.members, len(ballot.eligible))
    problem = _form_problem(s, claim, ballot, slots, numbers)
    if problem is not None or slots is None or numbers is None:
        return aggregator.refuse_claim(s, problem)
    step = opening.admitted(s, claim, len(numbers), None)
    return _included(s, claim, ballot, slots, step) if step[0].claim == claim else step


def _form_problem(
    s: Aggregator, claim: TwoStageClaim, ballot: Ballot, slots: Slots | None, numbers: tuple[int, ...] | None
) -> Rejected | None:
    called = Called.by(claim)
    if slots is None or numbers is None:
        return rejected(Reason.MALFORMED, "a claim names reporters, and who holds the slots")
    if not called.within(s.params.attempts):
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    if len(list(parts(ballot, slots, called))) != len(claim.blobs):
        return rejected(Reason.MALFORMED, "a claim has one sealed seed for each call of each helper")
    if claim.set_digest != called.digest(ballot):
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    return None


def _included(
    s: Aggregator, claim: TwoStageClaim, ballot: Ballot, slots: Slots, step: aggregator.Step
) -> aggregator.Step:
    """Which helpers' seeds open. If all do, S2 is ready for the sum; else others take the places of the rest."""
    found = [(part, _seed(s, part, blob)) for part, blob in zip(_parts(ballot, slots, claim), claim.blobs, strict=True)]
    closed = {part.holder for part, seed in found if not seed}
    opens = sorted({part.holder for part, _ in found} - closed)
    held = None if closed else _masks(s, slots, found)
    return opening.say_included(s, step, claim.set_digest, opens, held, _root(ballot, claim))


def _parts(ballot: Ballot, slots: Slots, claim: TwoStageClaim) -> list[Part]:
    return list(parts(ballot, slots, Called.by(claim)))


def _round(s: Aggregator, part: Part) -> Round:
    return Round(s.params, s.digest, part.attempt, part.digest)


def _seed(s: Aggregator, part: Part, blob: bytes) -> bytes:
    """The seed of this part's mask; nothing if it does not open."""
    return opening.open_seeds(s, _round(s, part), [part.holder], [blob]).get(part.holder, b"")


def _masks(s: Aggregator, slots: Slots, seeds: Sequence[tuple[Part, bytes]]) -> Residues:
    """What the helpers have put over their sums, item by item; nobody holds two slots of one item."""
    totals = np.zeros(s.params.N, dtype=dtype_for(s.params.q))
    for part, seed in seeds:
        items = slots.item[part.due]
        mask = _round(s, part).self_mask(s.sealing, part.holder, seed, len(items))
        totals[items] = add(totals[items], mask, s.params.q)
    return totals


def _root(ballot: Ballot, claim: TwoStageClaim) -> bytes:
    """Merkle root of the included reporters, known by their keys alone."""
    numbers = members_of(claim.members, len(ballot.eligible)) or ()
    return merkle_root(roster_leaves((NOBODY, ballot.keys[number]) for number in numbers))


# --- the one sum --------------------------------------------------------------------------------------------------


def on_total(s: Aggregator, message: Total) -> aggregator.Step:
    """S1's one sum of all slots, item by item (Alg. 3, line 22); no item is counted more often than reported."""
    claim, ballot = s.claim, ballot_of(s)
    if s.state in FINAL:
        return s, s.last_words
    counts = opening.read_total(s, message)
    if isinstance(counts, Rejected) or not isinstance(claim, TwoStageClaim) or ballot is None:
        return s, (counts if isinstance(counts, Rejected) else rejected(Reason.EARLY, "send the claim first"),)
    total = TwoStageSum(np.array(ballot.reporters, dtype=np.int64), counts)
    included = len(members_of(claim.members, len(ballot.eligible)) or ())
    against = _against(s, included, len(ballot.eligible) - included)
    opened = replace(s, state=advance(s.state, State.OPENED))
    return aggregator.publish(opened, total, included, None, _root(ballot, claim), against)


def _against(s: Aggregator, included: int, lost: int) -> tuple[Against, ...]:
    """The realized guarantee against S1, S2, phi users and readers, rounded up. TSS claims nothing against users."""
    left = reports_sets(s.params.mechanism).realized_against(included, s.params.epsilon, lost)
    return tuple(
        Against(_code(each.adversary), scaled_up(each.epsilon).encode(), scaled_up(each.delta).encode())
        for each in left
    )


def _code(adversary: Adversary) -> int:
    return {guarantee.S1: int(Party.S1), guarantee.S2: int(Party.S2)}.get(adversary, adversary.insiders)


S2: Mapping[type[Message], aggregator.Handler] = {
    Announcement: on_announcement,
    ElectionRequest: on_request,
    TwoStageClaim: on_claim,
    Total: on_total,
}

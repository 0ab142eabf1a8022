"""S2 in TSS and TSS': it holds one election, admits one set of reporters, opens the slots' sums and publishes.

S2 learns who may be elected, the m_j of the election, the number of reporters in the sum, and the sums of the slots. It
gets no update of the m_j: together with who was lost, that would tell which items a lost user reported. So the set of
reporters must not change once blobs were sent: S2 could take the sum over one set from that over another. A further
claim after bad blobs is therefore over the very same reporters, with other users in the places of those whose sums did
not open, and the same bytes for every slot whose holder stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from faircount.accounting import guarantee
from faircount.accounting.guarantee import Adversary
from faircount.core.arrays import Residues
from faircount.core.errors import ProtocolError
from faircount.mechanisms.two_stage import TwoStageSum, reports_sets
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.receipts import receipt_for
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers.opening import entry
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, draw, sum_info, tally_problem
from faircount.protocol.topologies.two_stage.messages import (
    Announced,
    Announcement,
    Election,
    ElectionRequest,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.user import NOBODY
from faircount.protocol.wire.canonical_json import scaled_up
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Against, BadBlobs, Batch, Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import unpack_rows
from faircount.sharing.field import sum_rows


def on_announcement(s: Aggregator, message: Announcement) -> aggregator.Step:
    """Reserve the budget and record which request will be read; any other later is a conflict.

    The m_j depend on answers: from here on they may be on their way, so an abort is charged.
    """
    stored = s.last(Announced)
    if stored is not None:
        again = stored.says == Announced(message.survey, message.request_hash)
        why = () if again else (rejected(Reason.CONFLICT, "another request was announced"),)
        at = s.statements.index(stored)
        return s, (*why, *(each.signed for each in s.statements[at - 1 : at + 1]))
    if s.state is not State.SEALED or s.roster is None:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"),)
    granted = aggregator.reserve(s)
    if not isinstance(granted, Aggregator):
        return granted
    receipt = receipt_for(granted.ledger, s.params.survey, message.request_hash, bytes(32))
    after, first = aggregator.say(replace(granted, handed_over=True), receipt)
    after, second = aggregator.say(after, Announced(s.params.survey, message.request_hash))
    return after, (*first, *second)


def on_request(s: Aggregator, request: ElectionRequest) -> aggregator.Step:
    """Reveal the committed value for the first eligible list and m_j; any other later is a conflict."""
    stored = s.last(Election)
    if stored is not None:
        again = () if _asked(stored.says) == request else (rejected(Reason.CONFLICT, "another election was held"),)
        return s, (*again, stored.signed)
    if s.state is not State.SEALED or s.roster is None:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"),)
    announced, own = s.last(Announced), Announced(s.params.survey, sha256(encode(request)).digest())
    if announced is None or announced.says != own:
        return s, (rejected(Reason.CONFLICT, "this request was not announced"),)
    if request.digest != s.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "an election is held for the sealed roster"),)
    problem = tally_problem(s.params, len(s.roster.entries), request.eligible, request.reporters)
    if problem is not None:
        return s, (problem,)
    return aggregator.say(
        s, Election(s.params.survey, request.digest, request.eligible, request.reporters, s.committed)
    )


def _asked(held: Message) -> ElectionRequest | None:
    if not isinstance(held, Election):
        return None
    return ElectionRequest(held.survey, held.digest, held.eligible, held.reporters)


def ballot_of(s: Aggregator) -> Ballot | None:
    """The election that was held, if one was."""
    stored = s.last(Election)
    held = None if stored is None else stored.says
    return draw(s.params, len(s.roster.entries), held) if isinstance(held, Election) and s.roster is not None else None


def on_claim(s: Aggregator, claim: TwoStageClaim) -> aggregator.Step:
    """Check election, reporters, slots, minimum and budget, and record the claim for good."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    ballot = ballot_of(s)
    if ballot is None or (claim.digest, claim.election) != (s.digest, ballot.hash):
        why = rejected(Reason.WRONG_DIGEST, "the claim is about another election than the one that was held")
        return aggregator.refuse_claim(s, why)
    slots, numbers = ballot.after(claim.gone), members_of(claim.members, len(ballot.eligible))
    problem = _form_problem(s, claim, ballot, slots, numbers)
    if problem is None and slots is not None and isinstance(s.claim, TwoStageClaim):
        problem = _further_problem(s, s.claim, claim, ballot, slots)
    if problem is not None or numbers is None:
        return aggregator.refuse_claim(s, problem)
    path = () if s.state is State.SUBMITTING else (State.SUBMITTING,)
    return aggregator.admit(s, claim, [number.to_bytes(16, "big") for number in numbers], None, path)


def _form_problem(
    s: Aggregator, claim: TwoStageClaim, ballot: Ballot, slots: Slots | None, numbers: tuple[int, ...] | None
) -> Rejected | None:
    last = max([claim.formed, *(each.attempt for each in claim.gone)])
    if slots is None or numbers is None or len(claim.blob_hashes) != len(slots):
        return rejected(Reason.MALFORMED, "a claim names reporters, who holds the slots, and one blob of each slot")
    if len(set(claim.keys)) != len(claim.keys) or len(claim.keys) != len(numbers):
        return rejected(Reason.MALFORMED, "every reporter has a key of its own")
    if not 1 <= claim.formed <= last <= s.params.attempts:
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    if claim.set_digest != ballot.set_digest(claim.formed, numbers):
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    return None


def _further_problem(
    s: Aggregator, before: TwoStageClaim, claim: TwoStageClaim, ballot: Ballot, slots: Slots
) -> Rejected | None:
    """The same reporters, nobody whose blob did not open, and the same sums from those who stay."""
    earlier = ballot.after(before.gone)
    if (claim.formed, claim.members, claim.keys) != (before.formed, before.members, before.keys) or earlier is None:
        return rejected(Reason.CONFLICT, "a further claim is over the same reporters: S2 must not see two sums")
    if claim.gone[: len(before.gone)] != before.gone or not s.bad.isdisjoint(_users(s, slots)):
        return rejected(Reason.CONFLICT, "a further claim has others in the place of those whose blobs did not open")
    stays = slots.holder == earlier.holder
    hashes = zip(stays.tolist(), claim.blob_hashes, before.blob_hashes, strict=True)
    if any(same and after != first for same, after, first in hashes):
        return rejected(Reason.CONFLICT, "who stays does not send another sum")
    return None


def _users(s: Aggregator, slots: Slots) -> list[bytes]:
    """User ids of the holders, slot by slot."""
    return [entry(s, index)[0] for index in slots.holder.tolist()]


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob before adding any. Some do not open: add nothing, name them, admit one further claim."""
    claim, ballot, bad = s.claim, ballot_of(s), s.last(BadBlobs)
    if bad is not None and s.state is State.SUBMITTING and batch.claim_hash == s.claim_hash:
        return s, (bad.signed,)
    if s.state in FINAL:
        return s, s.last_words
    hashes = claim.blob_hashes if isinstance(claim, TwoStageClaim) else ()
    problem = aggregator.batch_problem(s, batch, hashes)
    if problem is not None or not isinstance(claim, TwoStageClaim) or ballot is None:
        return s, (problem or rejected(Reason.EARLY, "claim a batch before sending it"),)
    slots = ballot.after(claim.gone)
    if slots is None:
        raise ProtocolError("a claim was admitted that nobody could have met")
    s = replace(s, handed_over=True)
    sums, closed = _open(s, claim, slots, batch.blobs)
    if closed:
        return _refuse_blobs(s, closed, _users(s, slots))
    return _publish(s, claim, ballot, slots, sums)


def _refuse_blobs(s: Aggregator, closed: tuple[int, ...], senders: Sequence[bytes]) -> aggregator.Step:
    """Name the blobs that do not open; `senders` are the user ids, blob by blob. After the second claim no further."""
    if s.claims > 1:
        return aggregator.abort(s, "blobs of the further claim do not open", spent=True)
    stated = BadBlobs(s.params.survey, s.claim_hash, closed)
    bad = frozenset(senders[at] for at in closed)
    return aggregator.say(s, stated, bad=bad, state=advance(s.state, State.SUBMITTING))


def _open(
    s: Aggregator, claim: TwoStageClaim, slots: Slots, blobs: Sequence[bytes]
) -> tuple[Residues, tuple[int, ...]]:
    """Each slot's sum, and the positions of blobs that do not open or hold no element."""
    secrets = {i: s.sealing.agree(s.box, entry(s, i)[1]) for i in set(slots.holder.tolist())}
    plain = []
    for at, blob in enumerate(blobs):
        secret, info = secrets[int(slots.holder[at])], sum_info(s.params, claim.set_digest, claim.formed, slots, at)
        plain.append((s.sealing.open(secret, s.digest, info, blob) or b"") if secret else b"")
    rows, fine = unpack_rows(plain, s.params.q, 1)
    return rows, tuple(at for at, each in enumerate(fine) if not each)


def _publish(s: Aggregator, claim: TwoStageClaim, ballot: Ballot, slots: Slots, sums: Residues) -> aggregator.Step:
    """s_j is the sum of item j's slots (Alg. 3, line 22); no item is counted more often than it was reported."""
    counts = np.array([sum_rows(sums[slots.item == j], s.params.q)[0] for j in range(s.params.N)], dtype=sums.dtype)
    total = TwoStageSum(np.array(ballot.reporters, dtype=np.int64), counts)
    opened = replace(s, state=advance(s.state, State.OPENED))
    root = merkle_root(roster_leaves((NOBODY, key) for key in claim.keys))
    included = len(claim.keys)
    against = _against(s, included, len(ballot.eligible) - included)
    return aggregator.publish(opened, total, included, None, root, against)


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
    Batch: on_batch,
}

"""S2 in the `servers` topology: it opens the seeds of one batch, fixes whom to count, and adds S1's one sum.

Where reports are proven it reveals its value with the receipt, asks the one question, and counts valid reports alone.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.core.errors import ShareError
from faircount.mechanisms.verified import Tally, proves_reports
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.two_servers.coordinator import entries_of
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submitter
from faircount.protocol.topologies.two_servers.reports import (
    Release,
    blocks,
    form_of,
    holds,
    pack_answers,
    question_of,
    unpack_answers,
    vector_size,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, seal_info
from faircount.protocol.topologies.two_servers.validity import Question
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Batch, Reason, rejected
from faircount.protocol.wire.packed_rows import sum_parts
from faircount.protocol.wire.roster_messages import SealRequest
from faircount.sharing.field import add, check, dtype_for
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import unpack

Holder = tuple[Submitter, bytes]
"""A line of the claim, and the seed that its user sealed to S2."""


class Opened(Sequence[Holder]):
    """Those whose blob has opened, in the order of the claim; lines and seeds stay packed, for there can be many."""

    def __init__(self, entries: Sequence[Submitter], seeds: Iterable[tuple[int, bytes]]) -> None:
        self._entries, self._seeds, self.places = entries, bytearray(), array("I")
        for place, seed in seeds:
            self.places.append(place)
            self._seeds += seed

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [self[at] for at in range(*which.indices(len(self)))]
        seed = self._seeds[which * SEED_BYTES : (which + 1) * SEED_BYTES]
        return self._entries[self.places[which]], bytes(seed)


def on_claim(s: Aggregator, claim: ServersClaim) -> aggregator.Step:
    """Check the frozen list and record it; entries that no invitation vouches for are left out of the set later."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    users = (each.user for each in claim.entries)
    if claim.digest != s.params.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "the claim was made for other parameters"),)
    if any(a >= b for a, b in pairwise(users)):
        return s, (rejected(Reason.MALFORMED, "a claim is ascending by user id, each once"),)
    if len({each.public_key for each in claim.entries}) != len(claim.entries):
        return s, (rejected(Reason.MALFORMED, "two users have the same public key"),)
    vouched = sum(aggregator.believed(s, each) for each in claim.entries)
    if s.params.proven and not holds(s.params, Party.S2, s.committed):
        return aggregator.abort(s, "S2 does not hold the value that it has committed to", spent=False)
    revealed = s.committed if s.params.proven else bytes(32)
    return aggregator.admit(s, claim, vouched, None, (State.SEALED, State.SUBMITTING), revealed)


def no_roster(s: Aggregator, _: SealRequest) -> aggregator.Step:
    """There is none here, and nothing to reveal for one: a value that is known before the claim would forge votes."""
    return s, (rejected(Reason.MALFORMED, "no message for this survey in this topology"),)


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob, fix the set of those that open and are valid, and only then add. Done again it is the same."""
    entries, stored = entries_of(s.claim), s.last(Included)
    if s.state in FINAL or (stored is not None and batch.claim_hash == s.claim_hash):
        return s, ((stored.signed,) if stored is not None and s.state is State.OPENED else s.last_words)
    problem = aggregator.batch_problem(s, batch, (each.blob_hash for each in entries))
    if problem is not None:
        return s, (problem,)
    if s.params.proven:
        return _on_proven(replace(s, handed_over=True), batch)
    opened = _opened(s, batch)
    return _fix_set(s, opened.places, lambda members: _sum_expanded(s, opened))


def _on_proven(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Ask the one question about all shares; whoever's report is not valid is left out like one who did not come."""
    form, entries = form_of(s.params.mechanism), entries_of(s.claim)
    if form is None or not holds(s.params, Party.S1, batch.revealed):
        return aggregator.abort(s, "S1 revealed another value than the one that it had committed to", spent=True)
    told = unpack_answers(batch.answers, form, len(entries))
    if told is None:
        return s, (rejected(Reason.MALFORMED, "these are no answers about the claimed reports: send them again"),)
    values, opened = (batch.revealed, s.committed), _opened(s, batch)
    asked = question_of(s.params, form, values)
    mine, valid, tally = _judged(s, asked, opened, told[opened.places])
    evidence = bitmap(opened.places, len(entries)), pack_answers(mine, form)

    def part(members: bytes) -> Residues:
        release = Release(s.params, proves_reports(s.params.mechanism), values, s.claim_hash, members)
        return release.part(Party.S2, s.noise_secret, tally)

    return _fix_set(s, [at for at, fine in zip(opened.places, valid, strict=True) if fine], part, *evidence)


def _fix_set(
    s: Aggregator, members: Sequence[int], held: Callable[[bytes], Residues], *evidence: bytes
) -> aggregator.Step:
    """Sign the set for good, with S2's part of the sum kept; `held` makes it from the bitmap."""
    entries = entries_of(s.claim)
    if not aggregator.still_private(s, len(members)):
        return aggregator.abort(replace(s, handed_over=True), "too few blobs open", spent=True)
    lines, named = (entries[i] for i in members), bitmap(members, len(entries))
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in lines))
    stated = Included(s.params.survey, s.claim_hash, named, root, *evidence)
    return aggregator.say(s, stated, held=held(named), handed_over=True, state=advance(s.state, State.OPENED))


def _opened(s: Aggregator, batch: Batch) -> Opened:
    """Those whose blob opens, each with its seed."""
    entries = entries_of(s.claim)
    found = ((i, _open(s, each, blob)) for i, (each, blob) in enumerate(zip(entries, batch.blobs, strict=True)))
    return Opened(entries, ((i, seed) for i, seed in found if seed is not None))


def _open(s: Aggregator, each: Submitter, blob: bytes) -> bytes | None:
    if not aggregator.believed(s, each):
        return None
    secret = s.sealing.agree(s.box, each.public_key)
    info = seal_info(s.params, each.user, each.public_key, each.commitment)
    seed = None if secret is None else s.sealing.open(secret, s.params.digest, info, blob)
    return seed if seed is not None and len(seed) == SEED_BYTES else None


def _expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    """S2's shares of these users' vectors, one row each."""
    seeds = [seed for _, seed in holders]
    infos = [expansion_info(s.params, each.user, each.public_key) for each, _ in holders]
    return s.sealing.stretch_rows(seeds, s.params.digest, infos, s.params.q, vector_size(s.params.mechanism))


def _sum_expanded(s: Aggregator, holders: Sequence[Holder]) -> Residues:
    parts = (_expanded(s, holders[some]) for some in blocks(len(holders), s.params.N))
    return sum_parts(parts, s.params.q, s.params.N)


def _judged(s: Aggregator, asked: Question, holders: Sequence[Holder], told: Residues) -> tuple[Residues, Marks, Tally]:
    """S2's answers about its shares, which reports are valid, and the tally of those; whole rows are soon forgotten."""
    answers = np.empty((len(holders), asked.form.answers), dtype=dtype_for(s.params.q))
    valid = np.empty(len(holders), dtype=np.bool_)

    def valid_rows() -> Iterator[Residues]:
        for some in blocks(len(holders), asked.form.width):
            rows = _expanded(s, holders[some])
            answers[some] = asked.answers(rows)
            valid[some] = asked.accepts(told[some], answers[some])
            yield rows[valid[some]]

    tally = proves_reports(s.params.mechanism).tally(valid_rows())
    return answers, valid, tally


def on_sum(s: Aggregator, message: ShareSum) -> aggregator.Step:
    """S1's one sum: the result, or an abort if it cannot be one. Another sum later changes nothing."""
    stated = s.last(Included)
    if s.state in FINAL:
        return s, s.last_words
    if stated is None or s.held is None or not isinstance(stated.says, Included):
        return s, (rejected(Reason.EARLY, "send the blobs first"),)
    if message.included_hash != sha256(stated.signed.payload).digest():
        return s, (rejected(Reason.WRONG_DIGEST, "the sum was made over another set"),)
    try:
        shares = unpack(message.total, s.params.q, s.params.N)
    except ShareError:
        return s, (rejected(Reason.MALFORMED, "the sum is not a packed vector"),)
    claimed = len(entries_of(s.claim))
    included = len(members_of(stated.says.members, claimed) or ())
    total = add(check(shares, s.params.q), s.held, s.params.q)
    return aggregator.publish(s, total, included, None, stated.says.root, refused=claimed - included)


S2: Mapping[type[Message], aggregator.Handler] = {
    SealRequest: no_roster,
    ServersClaim: on_claim,
    Batch: on_batch,
    ShareSum: on_sum,
}

"""What the aggregator (S2) does in every topology, as functions of its state and its rows.

A topology builds its own handlers from these: admit a claim and reserve the budget, publish, abort.
The aggregator uses no randomness, so doing a thing again gives the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from faircount.core.errors import CorruptSumError, ProtocolError
from faircount.protocol.roles.aggregator.state import Aggregator, Change, Entry
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.invitations import verify_entry_mac
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.survey.remaining_privacy import keeps_promise, remaining_guarantee
from faircount.protocol.survey.reservations import charge_of, reservation_for
from faircount.protocol.wire.canonical_json import format_upper_bound
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.messages import (
    AdversaryGuarantee,
    Published,
    Reason,
    Rejection,
    Reservation,
    reject,
)
from faircount.protocol.wire.signing import Link, make_statement


def say(s: Aggregator, what: Message, **change: Any) -> Change:
    """Sign a statement, chained to the one before, keep it and send it."""
    before = s.newest
    statement = make_statement(s.key, Party.AGGREGATOR, what, Link(before.number + 1, before.hash))
    return replace(s, statements=(*s.statements, statement), **change), (statement.signed,)


def believed(s: Aggregator, rows: StepRows, each: Entry) -> bool:
    """Whether an invitation vouches for this entry: the coordinator cannot have made it up."""
    return verify_entry_mac(
        rows.mac_keys.get(each.user), s.params.digest, each.public_key, each.mac
    )


def admit(
    s: Aggregator,
    rows: StepRows,
    manifest: Message,
    included: int,
    places: Sequence[int] | None,
    path: Sequence[Phase],
    revealed: bytes = bytes(32),
) -> Change:
    """Record the claim for good, reserve the budget and give a receipt: the one transaction before
    any blob is sent.

    The topology has checked the claim's own content, that it is no second one (`repeated`), how
    many users it names, and says what the receipt reveals.
    """
    problem = _claim_problem(s, included, places)
    if problem is not None:
        return refuse_manifest(s, problem)
    granted = reserve(s, rows)
    if not isinstance(granted, Aggregator):
        return granted
    after = replace(
        granted,
        manifest=manifest,
        manifest_hash=sha256(encode(manifest)).digest(),
        phase=advance(s.phase, *path, Phase.COUNTING),
        partial_sum=None,
    )
    return say(after, reservation_for(after.ledger, s.params.survey, after.manifest_hash, revealed))


def reserve(s: Aggregator, rows: StepRows) -> Aggregator | Change:
    """The aggregator with the budget of this survey reserved, once; or why it cannot be."""
    if s.ledger.population != s.params.population:
        raise ProtocolError("The aggregator was given the ledger of another population")
    if s.ledger.closed:
        return s, (
            reject(
                Reason.CLOSED,
                "the population is closed until the aggregator's newest receipts are shown",
            ),
        )
    charge = charge_of(s.params)
    known = s.ledger.find(charge.survey)
    # check: charged-before-restore - a restored aggregator would run a charged survey again
    if known is not None and s.last(Reservation) is None:
        return s, (
            reject(
                Reason.CLOSED,
                "this survey was charged before the aggregator was restored: begin another one",
            ),
        )
    if known is None and not s.ledger.admits(charge):
        return abort(s, rows, Ending(EndCode.OVER_BUDGET), spent=False)
    return replace(s, ledger=s.ledger.reserve(charge) if known is None else s.ledger)


def repeated(s: Aggregator, manifest: Message) -> Change | None:
    """The answer to a claim that needs no check: the same again, another one, or one that comes too
    late.
    """
    reservation = s.last(Reservation)
    if s.phase in FINAL:
        return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
    if s.manifest is None or reservation is None:
        return None
    if s.manifest == manifest:
        return s, (reservation.signed,)
    return s, (reject(Reason.CONFLICT, "another claim stands"), reservation.signed)


def refuse_manifest(s: Aggregator, problem: Rejection | None) -> Change:
    """Refuse a claim; with the receipt that was given for another one, from which a restored
    coordinator learns of it.
    """
    reservation = None if s.manifest is None else s.last(Reservation)
    why = problem or reject(Reason.MALFORMED, "this claim names no set of the sealed roster")
    return s, (why, *(() if reservation is None else (reservation.signed,)))


def _claim_problem(s: Aggregator, included: int, places: Sequence[int] | None) -> Rejection | None:
    if included < s.params.minimum:
        return reject(
            Reason.TOO_FEW, f"{included} users are fewer than the minimum of {s.params.minimum}"
        )
    if included > s.params.n_max:
        return reject(Reason.FULL, f"more than {s.params.n_max} users")
    if not still_private(s, included, places):
        return reject(Reason.TOO_FEW, "this set does not keep the promised guarantee")
    return None


def publish(
    s: Aggregator,
    rows: StepRows,
    total: Any,
    included: int,
    places: Sequence[int] | None,
    root: bytes,
    against: tuple[AdversaryGuarantee, ...] = (),
    refused: int = 0,
) -> Change:
    """Decode the opened sum and publish it with what was promised and what holds; a sum out of
    range aborts.
    """
    params, mechanism = s.params, s.params.mechanism
    try:
        counts = mechanism.decode(total, included)
    except CorruptSumError:
        return abort(s, rows, Ending(EndCode.CORRUPT_SUM), spent=True)
    left = remaining_guarantee(mechanism, included, params.epsilon, places)
    steps = np.rint(np.asarray(counts) * getattr(mechanism, "steps_per_count", 1)).astype(np.int64)
    result = Published(
        params.survey, s.digest, s.manifest_hash, root, included, tuple(steps.tolist()),
        epsilon=format_upper_bound(params.epsilon).encode(),
        delta=format_upper_bound(params.delta).encode(),
        realized_epsilon=format_upper_bound(left.epsilon).encode(),
        realized_delta=format_upper_bound(left.delta).encode(),
        against=against, refused=refused,
    )  # fmt: skip
    ledger = s.ledger.settle(params.survey, left.epsilon, left.delta)
    return _end(s, rows, result, ledger, Phase.PUBLISHED)


def still_private(s: Aggregator, included: int, places: Sequence[int] | None = None) -> bool:
    """Whether a set that shrank after the claim still keeps minimum and promise."""
    return included >= s.params.minimum and keeps_promise(
        s.params.mechanism, included, s.params.epsilon, s.params.delta, places
    )


def abort(
    s: Aggregator, rows: StepRows, ending: Ending, *, spent: bool, by: Party = Party.AGGREGATOR
) -> Change:
    """End without a result. The reservation is released only if no blob was sent."""
    ledger, known = s.ledger, s.ledger.find(s.params.survey)
    if known is not None and known.status == "reserved":
        ledger = ledger.settle(s.params.survey) if spent else ledger.release(s.params.survey)
    return _end(
        s, rows, make_aborted(s.params.survey, ending, by, spent=spent), ledger, Phase.ABORTED
    )


def _end(s: Aggregator, rows: StepRows, last: Message, ledger: Ledger, state: Phase) -> Change:
    """Say the last word.

    What was sealed to the aggregator can be opened by nobody from now on: its secrets are
    destroyed.
    """
    left = s.params.topology.aggregator.scrub(s, rows)
    after = replace(
        left,
        ledger=ledger,
        # check: box-key-destroyed - whoever seizes the aggregator can open nothing
        encryption_keys=s.encryption_keys.without_secret(),
        noise_secret=b"",
    )
    return say(after, last, phase=advance(s.phase, state))


def end_restored(s: Aggregator, rows: StepRows) -> Change:
    """The aggregator after a restore: what was live is aborted and charged, for it may have been
    published since the backup.
    """
    if s.phase in FINAL:
        return replace(s, ledger=s.ledger.close_after_restore(())), ()
    after = replace(s, ledger=s.ledger.close_after_restore((charge_of(s.params),)))
    return abort(after, rows, Ending(EndCode.AGGREGATOR_RESTORED), spent=True)

"""What the aggregator (S2) does in every topology, as functions of its state and its rows.

A topology builds its handlers from these functions:

    answer_known_manifest   a manifest was recorded already: repeat its reservation, or refuse
    record_manifest         record a manifest, reserve the budget, sign the reservation
    publish                 decode the sum and sign the result
    abort                   end without a result, charged or not

Every statement that the aggregator signs is chained to the one before (`sign_statement`) and is
part of the state, so it is stored before it is sent.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from faircount.core.errors import CorruptSumError, ProtocolError
from faircount.protocol.roles.aggregator.state import Aggregator, AuthenticatedEntry, Change
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
from faircount.protocol.wire.signing import ChainLink, make_statement


def sign_statement(s: Aggregator, content: Message, **change: Any) -> Change:
    """Sign a statement, chained to the one before, and add it to the state.

    change: other fields of the state to replace in the same step
    """
    before = s.chain_end
    chain_link = ChainLink(before.number + 1, before.hash)
    statement = make_statement(s.key, Party.AGGREGATOR, content, chain_link)
    return replace(s, statements=(*s.statements, statement), **change), (statement.signed,)


def has_valid_mac(s: Aggregator, rows: StepRows, entry: AuthenticatedEntry) -> bool:
    """Whether an invitation vouches for this entry, so that the coordinator did not invent it."""
    mac_key = rows.mac_keys.get(entry.user)
    return verify_entry_mac(mac_key, s.params.digest, entry.public_key, entry.mac)


def record_manifest(
    s: Aggregator,
    rows: StepRows,
    manifest: Message,
    included: int,
    places: Sequence[int] | None,
    path: Sequence[Phase],
    revealed: bytes = bytes(32),
) -> Change:
    """Record the manifest for good, reserve the budget and sign the reservation, in one step.

    Nothing that depends on answers leaves the coordinator before it has this reservation. The
    topology has checked the entries, and that no manifest is recorded yet
    (`answer_known_manifest`).

    Args:
        s: the state
        rows: the rows of this step
        manifest: the manifest, or the last part of a long one
        included: number of its entries that can be counted; in `servers`, with a valid MAC
        places: positions of its participants in the roster, if there is one
        path: the phases between the current one and `COUNTING`
        revealed: what the reservation reveals, if anything
    """
    problem = _size_problem(s, included, places)
    if problem is not None:
        return refuse_manifest(s, problem)
    # Manifest and reservation are written in one step: a manifest without its charge would allow
    # a second survey to spend the same budget.
    reserved = reserve(s, rows)
    if not isinstance(reserved, Aggregator):
        return reserved
    after = replace(
        reserved,
        manifest=manifest,
        manifest_hash=sha256(encode(manifest)).digest(),
        phase=advance(s.phase, *path, Phase.COUNTING),
        partial_sum=None,
    )
    reservation = reservation_for(after.ledger, s.params.survey, after.manifest_hash, revealed)
    return sign_statement(after, reservation)


def reserve(s: Aggregator, rows: StepRows) -> Aggregator | Change:
    """The state with the budget of this survey reserved, once; or the refusal or abort instead."""
    if s.ledger.population != s.params.population:
        raise ProtocolError("the aggregator was given the ledger of another population")
    if s.ledger.closed:
        why = "the population is closed until the aggregator's newest reservations are shown"
        return s, (reject(Reason.CLOSED, why),)
    charge = charge_of(s.params)
    known = s.ledger.find(charge.survey)
    # check: charged-before-restore - a restored aggregator would run a charged survey again
    if known is not None and s.last(Reservation) is None:
        why = "this survey was charged before the aggregator was restored: begin another one"
        return s, (reject(Reason.CLOSED, why),)
    # A further attempt of this survey uses the reservation of the first one.
    if known is not None:
        return s
    if not s.ledger.covers(charge):
        return abort(s, rows, Ending(EndCode.OVER_BUDGET), spent=False)
    return replace(s, ledger=s.ledger.reserve(charge))


def answer_known_manifest(s: Aggregator, manifest: Message) -> Change | None:
    """The answer to a manifest that comes after another one, or too late; None if it is the first.

    The same manifest again gets the same reservation: the coordinator may have missed it.
    """
    if s.phase in FINAL:
        return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
    reservation = s.last(Reservation)
    if s.manifest is None or reservation is None:
        return None
    if s.manifest == manifest:
        return s, (reservation.signed,)
    # From the shares of two manifests the aggregator could subtract one report.
    return s, (
        reject(Reason.CONFLICT, "another manifest is recorded already"),
        reservation.signed,
    )


def refuse_manifest(s: Aggregator, problem: Rejection | None) -> Change:
    """Refuse a manifest.

    If another one is recorded its reservation goes along, from which a restored coordinator learns
    that it has forgotten a manifest.
    """
    why = problem or reject(Reason.MALFORMED, "these are not entries of the confirmed roster")
    reservation = s.last(Reservation)
    if s.manifest is None or reservation is None:
        return s, (why,)
    return s, (why, reservation.signed)


def _size_problem(s: Aggregator, included: int, places: Sequence[int] | None) -> Rejection | None:
    if included < s.params.minimum:
        why = f"{included} participants are fewer than the minimum of {s.params.minimum}"
        return reject(Reason.TOO_FEW, why)
    if included > s.params.n_max:
        return reject(Reason.FULL, f"more than {s.params.n_max} participants")
    if not is_still_private(s, included, places):
        why = "with so few participants the promised guarantee does not hold"
        return reject(Reason.TOO_FEW, why)
    return None


def publish(
    s: Aggregator,
    rows: StepRows,
    total: Any,
    included: int,
    places: Sequence[int] | None,
    root: bytes,
    against: tuple[AdversaryGuarantee, ...] = (),
    rejected: int = 0,
) -> Change:
    """Decode the sum of both aggregate shares and publish it with the remaining guarantee.

    A sum outside the range that honest reports can reach aborts the survey.

    Args:
        s: the state
        rows: the rows of this step
        total: the sum of both aggregate shares
        included: number of accepted reports
        places: their positions in the roster, if there is one
        root: Merkle root of the accepted reports
        against: guarantees that differ by adversary
        rejected: number of reports in the manifest that were not accepted
    """
    params = s.params
    mechanism = params.mechanism
    try:
        counts = mechanism.decode(total, included)
    except CorruptSumError:
        return abort(s, rows, Ending(EndCode.CORRUPT_SUM), spent=True)
    # Computed again for those who are included: dropouts took their noise with them.
    remaining = remaining_guarantee(mechanism, included, params.epsilon, places)
    # Counts travel as integers: in steps of the mechanism's resolution.
    scaled = np.asarray(counts) * getattr(mechanism, "steps_per_count", 1)
    steps = np.rint(scaled).astype(np.int64)
    result = Published(
        params.survey,
        s.digest,
        s.manifest_hash,
        root,
        included,
        tuple(steps.tolist()),
        epsilon=format_upper_bound(params.epsilon).encode(),
        delta=format_upper_bound(params.delta).encode(),
        realized_epsilon=format_upper_bound(remaining.epsilon).encode(),
        realized_delta=format_upper_bound(remaining.delta).encode(),
        against=against,
        rejected=rejected,
    )
    ledger = s.ledger.settle(params.survey, remaining.epsilon, remaining.delta)
    return _end(s, rows, result, ledger, Phase.PUBLISHED)


def is_still_private(s: Aggregator, included: int, places: Sequence[int] | None = None) -> bool:
    """Whether this number of reports reaches the minimum and keeps the promised guarantee."""
    if included < s.params.minimum:
        return False
    return keeps_promise(s.params.mechanism, included, s.params.epsilon, s.params.delta, places)


def abort(
    s: Aggregator, rows: StepRows, ending: Ending, *, spent: bool, by: Party = Party.AGGREGATOR
) -> Change:
    """End the survey without a result.

    The reservation is cancelled only if nothing that depends on answers can have arrived (not
    `spent`).
    """
    survey = s.params.survey
    ledger = s.ledger
    charge = ledger.find(survey)
    # There is no reservation if the survey ends before its manifest.
    if charge is not None and charge.status == "reserved":
        ledger = ledger.settle(survey) if spent else ledger.cancel(survey)
    aborted = make_aborted(survey, ending, by, spent=spent)
    return _end(s, rows, aborted, ledger, Phase.ABORTED)


def _end(s: Aggregator, rows: StepRows, final: Message, ledger: Ledger, phase: Phase) -> Change:
    """Sign the final statement, and destroy the secrets of the survey in the same step."""
    # One step: a crash leaves either a running survey or one that is over and scrubbed.
    scrubbed = s.params.topology.aggregator.scrub(s, rows)
    after = replace(
        scrubbed,
        ledger=ledger,
        # check: encryption-key-destroyed - whoever seizes the aggregator could decrypt the shares
        encryption_keys=s.encryption_keys.without_secret(),
        noise_secret=b"",
    )
    return sign_statement(after, final, phase=advance(s.phase, phase))


def abort_as_restored(s: Aggregator, rows: StepRows) -> Change:
    """Abort and charge a survey that was running in the backup: it may have published since."""
    # A survey that is over is charged already, but reservations of others may be missing.
    if s.phase in FINAL:
        return replace(s, ledger=s.ledger.close_after_restore(())), ()
    after = replace(s, ledger=s.ledger.close_after_restore((charge_of(s.params),)))
    return abort(after, rows, Ending(EndCode.AGGREGATOR_RESTORED), spent=True)

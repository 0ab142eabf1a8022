"""Schedules with a name: each was once a failure, or shows a rule.

Where a rule is named beside it, the schedule must find the hole that opens without the rule.
"""

from dataclasses import replace
from hashlib import sha256
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, Topology
from faircount.protocol.peers import unmasking
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import AggregatorRules
from faircount.protocol.roles.aggregator import receive as aggregator_receive
from faircount.protocol.roles.aggregator import rules as aggregator_rules
from faircount.protocol.roles.aggregator import steps as aggregator_steps
from faircount.protocol.roles.anchor import MemoryAnchor
from faircount.protocol.roles.coordinator import steps as coordinator_steps
from faircount.protocol.roles.rows import AcknowledgedTable, StoredRow, part_key
from faircount.protocol.survey.acknowledgement import unsigned_acknowledgement
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import SumRequest
from faircount.protocol.topologies.masked import aggregator as masked_aggregate
from faircount.protocol.topologies.masked import coordinator as masked
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.topologies.two_servers import coordinator as servers_coordinator
from faircount.protocol.topologies.two_servers import messages, part_reports
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import PartShares
from faircount.sharing.keys import S2_INDEX, Purpose, key_info
from simulation.faults import BOTH_COPIES, Kind, Mishap, Op, Outcome, run_schedule
from simulation.parties import Trouble, small_survey

ROUND = Op(Kind.ROUND)
DEADLINE = Op(Kind.DEADLINE)
EXCHANGE = Op(Kind.EXCHANGE)
ENROLLED = (ROUND, DEADLINE, EXCHANGE)
SHARED = (*ENROLLED, ROUND, DEADLINE)
ELECTED = (*ENROLLED, ROUND, DEADLINE, EXCHANGE)
# An odd seed: few helpers and neighbours, so that somebody is left to step in.
SEED = 1
TWO_WORKERS = Op(Kind.DEADLINE, 0, 1)
# Of a key bundle, after survey, index and credential.
FIRST_BYTE_OF_THE_MASK_KEY = 52


def without(*users: int) -> Op:
    """A round in which these participants stay away."""
    return Op(Kind.ROUND, 0, sum(1 << user for user in users))


def visit(user: int, trouble: Trouble, how: int = 0) -> Op:
    return Op(Kind.VISIT, user, list(Trouble).index(trouble) + len(Trouble) * how)


def carry(which: int = 0, mishap: Mishap = Mishap.NONE, how: int = 0) -> Op:
    return Op(Kind.CARRY, which, list(Mishap).index(mishap) + len(Mishap) * how)


def forget(backup: int) -> tuple[Op, ...]:
    """The coordinator goes back to a backup (after that many steps), and nobody tells it."""
    return (Op(Kind.RESTORE_S1, backup, 1),)


# --- planted holes: what happens if a rule is left out ---------------------------------------------


def replace_rules(patch: pytest.MonkeyPatch, topology: Topology, **changed: Any) -> None:
    """The coordinator follows other rules in this topology."""
    for name, method in changed.items():
        patch.setattr(topology.coordinator, name, method)


def shares_are_sent_before_the_reservation(patch: pytest.MonkeyPatch) -> None:
    unanswered = SERVERS.coordinator.unanswered_messages

    def send_early(s, rows):
        messages = unanswered(s, rows)
        if s.manifest is None or s.reservation is not None:
            return messages
        return *messages, *unanswered(replace(s, reservation=messages[0]), rows)

    replace_rules(patch, SERVERS, unanswered_messages=send_early)


def any_manifest_is_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregator, "answer_known_manifest", lambda s, manifest: None)
    patch.setattr(unmasking, "answer_known_manifest", lambda s, manifest: None)
    patch.setattr(MemoryAnchor, "advance", lambda anchor, name, before, after: True)
    patch.setattr(aggregator_steps, "advance", lambda state, *path: (state, *path)[-1])


def the_last_write_wins(patch: pytest.MonkeyPatch) -> None:
    def write(s, rows, user, message, *, phase_is_open):
        message_hash = sha256(encode(message)).digest()
        row = StoredRow(message, message_hash, message.device_key)
        rows.first_messages.write(user, row)
        return s, (unsigned_acknowledgement(s.params.survey, message_hash),)

    patch.setattr(coordinator, "store_first_message", write)
    # From whatever device.
    patch.setattr(coordinator_steps, "_first_device", lambda s, rows, user: None)


def an_answer_is_drawn_at_every_visit(patch: pytest.MonkeyPatch) -> None:
    def draw_again(rules, client):
        drawn = servers_user.respond(
            client.state.params, client.invitation, client.sheet, SystemEntropy()
        )
        return drawn.report if client.waiting else None

    patch.setattr(servers_user.TwoServersClient, "next_message", draw_again)


def s2_goes_on_after_a_restore(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregator_receive, "abort_as_restored", lambda s, rows: (s, ()))


def every_share_is_added(patch: pytest.MonkeyPatch) -> None:
    def add_all(s, rows, accepted):
        for number in part_reports.part_numbers(s):
            yield from part_reports.shares_of_part(s, rows, number)

    patch.setattr(servers_coordinator, "shares_to_add", add_all)


def sums_are_not_bound_to_their_set(patch: pytest.MonkeyPatch) -> None:
    def info(context, sender):
        return key_info(Purpose.SEED, context.params.survey, 0, sender, S2_INDEX, bytes(32))

    patch.setattr(AttemptContext, "seed_info", info)


def clients_answer_for_every_set(patch: pytest.MonkeyPatch) -> None:
    answer_sum_request = explicit_user.answer_sum_request

    def answer(sharer, request, entropy):
        forgetful = replace(sharer, first_messages=(), last=None)
        return answer_sum_request(forgetful, request, entropy)

    patch.setitem(explicit_user.ExplicitClient.handlers, SumRequest, answer)


def the_budget_is_cancelled_by_whoever_forgot(patch: pytest.MonkeyPatch) -> None:
    on_abort_request = AggregatorRules.on_abort_request
    patch.setattr(
        AggregatorRules,
        "on_abort_request",
        lambda rules, s, rows, message: on_abort_request(rules, s, rows, replace(message, spent=0)),
    )


def a_roster_of_nobody_is_made_again(patch: pytest.MonkeyPatch) -> None:
    def leave_out(s, rows, message, _):
        rejected = set(message.positions)
        left = tuple(entry for i, entry in enumerate(s.roster) if i not in rejected)
        return s.rules.close_roster(replace(s, roster=left), rows)

    for topology in (EXPLICIT, MASKED):
        replace_rules(patch, topology, on_rejected_entries=leave_out)


def masks_stay_in_the_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        masked_aggregate, "find_uncancelled", lambda graph, inside, accepted: inside & ~inside
    )


def late_sums_are_forwarded(patch: pytest.MonkeyPatch) -> None:
    unanswered = MASKED.coordinator.unanswered_messages

    def forward_all(s, rows):
        messages = unanswered(s, rows)
        if s.phase is not Phase.COUNTING or s.reservation is None:
            return messages
        keys = [(MaskedSum.tag, s.topology_state.set_digest, j) for j in range(s.n)]
        stored = [rows.uploads[key] for key in keys if rows.uploads.get(key)]
        shares = tuple(masked_sum.encrypted_share for masked_sum in stored)
        batch = PartShares(s.params.survey, s.manifest_hash, shares)
        return *messages, coordinator.to_aggregator(s, batch)

    def take_any(s, rows, message):
        return masked.coordinator.upload(
            s, rows, message, made_for=message.set_digest, phase_is_open=True
        )

    replace_rules(patch, MASKED, unanswered_messages=forward_all, take_sum=take_any)


def shares_are_drawn_again(patch: pytest.MonkeyPatch) -> None:
    encrypt_shares = two_stage_user._encrypt_shares
    split = two_stage_user._split

    def draw_again(user, ballot, slots, attempt, entropy):
        if attempt > 1:
            user = replace(user, shares=split(user, ballot, entropy))
        return encrypt_shares(user, ballot, slots, attempt, entropy)

    patch.setattr(two_stage_user, "_encrypt_shares", draw_again)


def damaged_bytes_are_used(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AcknowledgedTable, "intact", lambda store, key: store.get(key))


def stored_shares_are_not_checked_again(patch: pytest.MonkeyPatch) -> None:
    def take_any(s, rows, entry):
        return rows.first_messages.get(entry.user)

    patch.setattr(part_reports, "intact_report", take_any)


def copies_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    def take_any(s, rows, number):
        return part_reports.pairs_of_copy(s, rows.report_parts[part_key(number)])

    patch.setattr(part_reports, "reports_of_part", take_any)


def sums_over_any_set_are_taken(patch: pytest.MonkeyPatch) -> None:
    def take_explicit_sum(s, rows, message):
        digest = explicit_coordinator.current_set(s).set_digest
        is_open = explicit_coordinator._is_of_attempt(s, message)
        return coordinator.upload(s, rows, message, made_for=digest, phase_is_open=is_open)

    def take_masked_sum(s, rows, message):
        digest = s.topology_state.set_digest
        is_open = s.phase is Phase.SUBMITTING and message.index in s.members
        return coordinator.upload(s, rows, message, made_for=digest, phase_is_open=is_open)

    def have_sent(s, rows):
        digest = s.topology_state.set_digest
        has_sum = [coordinator.has_upload(s, rows, MaskedSum, digest, j) for j in range(s.n)]
        return np.array(has_sum, dtype=np.bool_)

    replace_rules(patch, EXPLICIT, take_sum=take_explicit_sum)
    replace_rules(patch, MASKED, take_sum=take_masked_sum)
    patch.setattr(masked, "_have_sent", have_sent)


def nobody_compares_a_clients_own_mask_key(patch: pytest.MonkeyPatch) -> None:
    for where in (masked, masked_user):
        patch.setattr(where, "keys_digest", lambda own, neighbours: keys_digest(b"", neighbours))


def s2_does_not_repeat_how_it_ended(patch: pytest.MonkeyPatch) -> None:
    for module in (aggregator_receive, aggregator_rules, aggregator_steps):
        patch.setattr(module, "FINAL", ())


# --- schedules ------------------------------------------------------------------------------------

A_SUM_FOR_A_FORGOTTEN_SET = (
    *ENROLLED,
    without(5),
    DEADLINE,
    visit(2, Trouble.NONE),
    visit(2, Trouble.NONE),
    Op(Kind.RESTORE_S1, -4),
    EXCHANGE,
    ROUND,  # participant 5 is in the set after all
    DEADLINE,
    Op(Kind.REPLAY, -11),  # of participant 2, over the set without 5
    ROUND,
    DEADLINE,
    EXCHANGE,
)

NAMED = {
    "a sum for a forgotten set": (
        EXPLICIT,
        "published",
        A_SUM_FOR_A_FORGOTTEN_SET,
        sums_over_any_set_are_taken,
    ),
    "a vector for a forgotten set": (
        MASKED,
        "published",
        A_SUM_FOR_A_FORGOTTEN_SET,
        sums_over_any_set_are_taken,
    ),
    "The coordinator has another mask key of a client than the client": (
        MASKED,
        "published",
        (
            *ENROLLED,
            visit(0, Trouble.NONE),
            visit(0, Trouble.CORRUPTED, FIRST_BYTE_OF_THE_MASK_KEY),
        ),
        nobody_compares_a_clients_own_mask_key,
    ),
    "encrypted shares wait for the reservation": (
        SERVERS,
        "published",
        (ROUND, DEADLINE),
        shares_are_sent_before_the_reservation,
    ),
    "The coordinator restored to before its manifest makes another one": (
        SERVERS,
        "published",
        (without(0), DEADLINE, carry(), Op(Kind.DROP), *forget(1), ROUND, DEADLINE, EXCHANGE),
        any_manifest_is_recorded,
    ),
    "The coordinator restored to before its manifest makes another one, peers": (
        EXPLICIT,
        "aborted",
        (
            *SHARED,
            ROUND,
            DEADLINE,
            carry(),
            carry(),
            carry(),
            Op(Kind.DROP, -1),  # its total
            Op(Kind.DROP),  # the manifest, sent again
            *forget(4),
            without(0),
            DEADLINE,
            without(0),
            DEADLINE,
            EXCHANGE,
        ),
        any_manifest_is_recorded,
    ),
    "both servers restored after the result": (
        SERVERS,
        "aborted",
        (
            without(0),
            DEADLINE,
            EXCHANGE,
            Op(Kind.RESTORE_S2, 1),
            Op(Kind.DROP),
            *forget(1),
            ROUND,
            DEADLINE,
            EXCHANGE,
        ),
        s2_goes_on_after_a_restore,
    ),
    "a second device of the same person": (
        SERVERS,
        "published",
        (
            ROUND,
            Op(Kind.SECOND_DEVICE, 2),
            ROUND,
            DEADLINE,
            carry(),
            Op(Kind.SECOND_DEVICE, 3),
            ROUND,
            Op(Kind.ROT, -1, 1),  # of the copies: now the reports themselves are read
            EXCHANGE,
        ),
        the_last_write_wins,
    ),
    "a retry after a lost answer": (
        SERVERS,
        "published",
        (visit(1, Trouble.ANSWER_LOST), ROUND, DEADLINE, EXCHANGE),
        an_answer_is_drawn_at_every_visit,
    ),
    "an encrypted share that was changed before the manifest": (
        SERVERS,
        "published",
        (visit(1, Trouble.CORRUPTED, 150), ROUND, DEADLINE, EXCHANGE),
        every_share_is_added,
    ),
    "one participant is shown another set": (
        EXPLICIT,
        "published",
        (
            *SHARED,
            visit(0, Trouble.TAMPERED, 1),
            ROUND,
            DEADLINE,
            EXCHANGE,
            ROUND,
            DEADLINE,
            EXCHANGE,
        ),
        sums_are_not_bound_to_their_set,
    ),
    "two sets for one attempt": (
        EXPLICIT,
        "aborted",
        (
            *ENROLLED,
            without(0),
            DEADLINE,
            ROUND,
            *forget(4),
            ROUND,
            DEADLINE,
            ROUND,
            DEADLINE,
            EXCHANGE,
        ),
        clients_answer_for_every_set,
    ),
    "encrypted shares were sent and the coordinator forgot it": (
        SERVERS,
        "aborted",
        (ROUND, DEADLINE, carry(), carry(), Op(Kind.DROP), Op(Kind.RESTORE_S1, 0), EXCHANGE),
        the_budget_is_cancelled_by_whoever_forgot,
    ),
    "no entry of the roster has a valid MAC": (
        EXPLICIT,
        "aborted",
        (*(Op(Kind.WRONG_KEY, user, 1) for user in range(6)), ROUND, DEADLINE, EXCHANGE),
        a_roster_of_nobody_is_made_again,
    ),
    "The aggregator was restored before the election and its statement was lost": (
        TWO_STAGE,
        "aborted",
        (*ENROLLED, ROUND, Op(Kind.RESTORE_S2, 4), Op(Kind.DROP, -1)),
        s2_does_not_repeat_how_it_ended,
    ),
    "a participant drops out after sharing its mask key": (
        MASKED,
        "published",
        (*SHARED, without(0), DEADLINE, EXCHANGE, without(0), DEADLINE, EXCHANGE),
        masks_stay_in_the_sum,
    ),
    "a restored coordinator begins again without the mask keys of the set": (
        MASKED,
        "aborted",
        (*SHARED, without(0), DEADLINE, EXCHANGE, DEADLINE, Op(Kind.RESTORE_S1, 0), EXCHANGE),
        None,
    ),
    "a masked sum comes after the deadline": (
        MASKED,
        "published",
        (
            *SHARED,
            visit(0, Trouble.NONE),
            visit(0, Trouble.DELAYED),
            without(0),
            DEADLINE,
            Op(Kind.MAIL),
            EXCHANGE,
        ),
        late_sums_are_forwarded,
    ),
    "the seed of a masked sum cannot be decrypted": (
        MASKED,
        "published",
        (
            *SHARED,
            visit(1, Trouble.NONE),
            visit(1, Trouble.CORRUPTED, 70),
            ROUND,
            DEADLINE,
            EXCHANGE,
        ),
        None,
    ),
    "the seed of a sum of shares cannot be decrypted": (
        EXPLICIT,
        "published",
        (
            *SHARED,
            visit(1, Trouble.NONE),
            visit(1, Trouble.CORRUPTED, 70),
            ROUND,
            DEADLINE,
            EXCHANGE,
            ROUND,
            DEADLINE,
        ),
        None,
    ),
    "a helper drops out": (
        TWO_STAGE,
        "published",
        (
            *ELECTED,
            ROUND,
            DEADLINE,
            Op(Kind.LOSE, 0),
            ROUND,
            DEADLINE,
            ROUND,
            DEADLINE,
            ROUND,
            DEADLINE,
            EXCHANGE,
        ),
        shares_are_drawn_again,
    ),
    "a reporter drops out": (
        TWO_STAGE,
        "published",
        (*ELECTED, without(0), DEADLINE, ROUND, DEADLINE, EXCHANGE),
        None,
    ),
    "The coordinator crashes at every message": (
        MASKED,
        "published",
        (*SHARED, ROUND, DEADLINE, *(carry(0, Mishap.CRASH_AFTER) for _ in range(8))),
        None,
    ),
    "The aggregator crashes at every message": (
        EXPLICIT,
        "published",
        (
            *SHARED,
            ROUND,
            DEADLINE,
            *(carry(0, Mishap.CRASH_BEFORE) for _ in range(3)),
            Op(Kind.RETRY),
            EXCHANGE,
        ),
        None,
    ),
    "everything is sent twice and changed once": (
        SERVERS,
        "published",
        (
            *(visit(user, Trouble.DUPLICATED) for user in range(6)),
            DEADLINE,
            carry(0, Mishap.DUPLICATED),
            Op(Kind.RETRY),
            carry(1, Mishap.CORRUPTED, 100),
            Op(Kind.FLOOD, 3, 44),
            EXCHANGE,
        ),
        None,
    ),
    "an encrypted seed is damaged before the manifest": (
        MASKED,
        "published",
        (*SHARED, ROUND, Op(Kind.ROT, -1, 6), DEADLINE, EXCHANGE),
        damaged_bytes_are_used,
    ),
    "a stored mask key is damaged": (
        MASKED,
        "published",
        (
            *SHARED,
            visit(0, Trouble.NONE),
            visit(0, Trouble.NONE),
            Op(Kind.ROT, 8, 7),
            ROUND,
            DEADLINE,
            ROUND,
            DEADLINE,
        ),
        None,
    ),
    "a stored indicator is damaged": (
        TWO_STAGE,
        "published",
        (*ELECTED, ROUND, DEADLINE, Op(Kind.ROT, 9, 7), ROUND, DEADLINE, ROUND, DEADLINE, EXCHANGE),
        None,
    ),
    "a helper's stored sums are damaged": (
        TWO_STAGE,
        "published",
        (*ELECTED, ROUND, DEADLINE, ROUND, Op(Kind.ROT, -1, 6), DEADLINE, EXCHANGE),
        damaged_bytes_are_used,
    ),
    "a damaged report is sent again": (
        SERVERS,
        "published",
        (ROUND, Op(Kind.ROT, 1, 5), Op(Kind.REPLAY, 1), DEADLINE, EXCHANGE),
        None,
    ),
    "an encrypted share is damaged after the manifest, and the copy of its part": (
        SERVERS,
        "aborted",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, 2, 6), Op(Kind.ROT, -1, 1), EXCHANGE),
        stored_shares_are_not_checked_again,
    ),
    "an encrypted share is damaged after the manifest, and with it the copy": (
        SERVERS,
        "aborted",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, 2, 6 + BOTH_COPIES), EXCHANGE),
        stored_shares_are_not_checked_again,
    ),
    "a report is damaged after it was copied": (
        SERVERS,
        "published",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, 2, 6), EXCHANGE),
        None,
    ),
    "a copied share is damaged": (
        SERVERS,
        "published",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, -1, 0), EXCHANGE),
        copies_are_not_checked,
    ),
    "a copied encrypted share is damaged": (
        SERVERS,
        "published",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, -1, 1), EXCHANGE),
        copies_are_not_checked,
    ),
    "a copied share is damaged between the encrypted shares and the set": (
        SERVERS,
        "published",
        (ROUND, DEADLINE, carry(), carry(), carry(), Op(Kind.ROT, -1, 0), EXCHANGE),
        copies_are_not_checked,
    ),
    "two rosters": (
        EXPLICIT,
        "published",
        (without(0), DEADLINE, carry(), *forget(1), ROUND, DEADLINE, EXCHANGE),
        None,
    ),
    "two workers end one attempt": (
        EXPLICIT,
        "published",
        (*SHARED, without(0), TWO_WORKERS, without(0), TWO_WORKERS, EXCHANGE),
        None,
    ),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
def test_a_named_schedule_ends_as_it_should(name: str, real: bool) -> None:
    topology, ending, ops, _ = NAMED[name]
    outcome = run_schedule(topology, ops, seed=SEED, real=real)
    assert outcome.problems == ()
    assert outcome.ending == ending


@pytest.mark.parametrize("name", [name for name, case in NAMED.items() if case[3] is not None])
def test_a_named_schedule_finds_its_hole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topology, ending, ops, hole = NAMED[name]
    hole(monkeypatch)
    try:
        outcome = run_schedule(topology, ops, seed=SEED)
    except ProtocolError:
        # A role noticed the hole before the monitor could.
        return
    assert outcome.problems or outcome.ending != ending


@pytest.mark.parametrize("seed", [0, 1], ids=["proven", "without proofs"])
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("back", range(6))
def test_parts_arrive_in_any_order_and_the_coordinator_is_restored_between_them(
    order: tuple[int, ...], back: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 2)
    # Two parts of the manifest with the requests for the next ones, the last, and the reservation.
    reserved = (ROUND, DEADLINE, *(carry(),) * 6)
    # All three are sent, after the one that follows the reservation and what resumes.
    sent = (Op(Kind.DROP), Op(Kind.RETRY, 0, 1), Op(Kind.DROP))
    left = [0, 1, 2]
    carried = list[Op]()
    for number in order:
        carried.append(carry(left.index(number)))
        left.remove(number)
    ops = (*reserved, *sent, *carried, Op(Kind.RESTORE_S1, -1 - back), EXCHANGE)
    assert run_schedule(SERVERS, ops, 6, seed) == Outcome("published", ())


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("carried", [1, 3, 5, 7])
@pytest.mark.parametrize("part", range(4))
def test_a_late_report_is_lost_between_two_parts_of_a_manifest(
    part: int, carried: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next manifest begins like the one that the aggregator has in part, and then differs."""
    users = 14
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 4)
    invitations = small_survey(SERVERS, users, SEED).invitations
    in_order = sorted(range(users), key=lambda user: invitations[user].user)
    late = in_order[4 * part]
    ops = (
        without(late),
        ROUND,
        DEADLINE,
        # Every other message is the aggregator's request for the next part.
        *(carry(),) * carried,
        Op(Kind.RESTORE_S1, 1, int(not told)),
        DEADLINE,
        EXCHANGE,
    )
    outcome = run_schedule(SERVERS, ops, users, SEED)
    assert outcome.problems == ()
    # With all four parts the aggregator has reserved the budget for a report that is lost.
    assert outcome.ending == ("aborted" if carried == 7 else "published")

"""Schedules with a name: each was once a failure or shows a rule, and must find the hole that the rule closes."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, Topology
from faircount.protocol.peers import opening
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import AggregatorRules
from faircount.protocol.roles.aggregator import receive as aggregator_receive
from faircount.protocol.roles.aggregator import rules as aggregator_rules
from faircount.protocol.roles.aggregator import steps as aggregator_steps
from faircount.protocol.roles.anchor import MemoryAnchor
from faircount.protocol.roles.rows import Acknowledged, StoredRow
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
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import ShareBatch
from faircount.sharing.keys import S2_INDEX, Purpose, key_info
from simulation.faults import Kind, Mishap, Op, play
from simulation.world import Trouble

ROUND, DEADLINE, CONVERSE = Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CONVERSE)
ENROLLED = (ROUND, DEADLINE, CONVERSE)
SHARED = (*ENROLLED, ROUND, DEADLINE)
ELECTED = (*ENROLLED, ROUND, DEADLINE, CONVERSE)
SEED = 1  # an odd one: few helpers and neighbours, so that somebody is left to step in
TWO_WORKERS = Op(Kind.DEADLINE, 0, 1)
FIRST_BYTE_OF_THE_MASK_KEY = 52  # of a key bundle: survey, index and credential come first


def without(*users: int) -> Op:
    """A round in which these users do not come."""
    return Op(Kind.ROUND, 0, sum(1 << user for user in users))


def visit(user: int, trouble: Trouble, how: int = 0) -> Op:
    return Op(Kind.VISIT, user, list(Trouble).index(trouble) + len(Trouble) * how)


def carry(which: int = 0, mishap: Mishap = Mishap.NONE, how: int = 0) -> Op:
    return Op(Kind.CARRY, which, list(Mishap).index(mishap) + len(Mishap) * how)


def forget(backup: int) -> tuple[Op, ...]:
    """The coordinator goes back to a backup (after that many steps), and nobody tells it."""
    return (Op(Kind.RESTORE_S1, backup, 1),)


# --- planted holes: what happens if a rule is left out


def rules(patch: pytest.MonkeyPatch, topology: Topology, **changed: Any) -> None:
    """The coordinator follows other rules in this topology."""
    for name, method in changed.items():
        patch.setattr(topology.coordinator, name, method)


def blobs_before_the_receipt(patch: pytest.MonkeyPatch) -> None:
    told = SERVERS.coordinator.pending

    def eager(s, rows):
        known = told(s, rows)
        return (
            (*known, *told(replace(s, reservation=known[0]), rows))
            if s.manifest and not s.reservation
            else known
        )

    rules(patch, SERVERS, pending=eager)


def any_claim_is_admitted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregator, "repeated", lambda s, manifest: None)
    patch.setattr(opening, "repeated", lambda s, manifest: None)
    patch.setattr(MemoryAnchor, "advance", lambda anchor, name, before, after: True)
    patch.setattr(aggregator_steps, "advance", lambda state, *path: (state, *path)[-1])


def the_last_write_stands(patch: pytest.MonkeyPatch) -> None:
    def write(s, rows, user, body, *, open_):
        given = sha256(encode(body)).digest()
        rows.write("first_messages", user, StoredRow(body, given))
        return s, (unsigned_acknowledgement(s.params.survey, given),)

    patch.setattr(coordinator, "write_body", write)


def an_answer_is_drawn_at_every_visit(patch: pytest.MonkeyPatch) -> None:
    def ask(client, device):
        drawn = servers_user.respond(
            device.state.params, device.invitation, device.answer, SystemEntropy()
        )
        return drawn.report if device.waiting else None

    patch.setattr(servers_user.TwoServersClient, "next_message", ask)


def s2_goes_on_after_a_restore(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregator_receive, "end_restored", lambda s, rows: (s, ()))


def every_share_is_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(servers_coordinator, "entries_to_add", servers_coordinator.iterate_entries)


def sums_are_not_bound_to_their_set(patch: pytest.MonkeyPatch) -> None:
    def info(now, sender):
        return key_info(Purpose.SEED, now.params.survey, 0, sender, S2_INDEX, bytes(32))

    patch.setattr(AttemptContext, "seed_info", info)


def users_answer_for_every_set(patch: pytest.MonkeyPatch) -> None:
    told = explicit_user.answer_sum_request

    def answer(sharer, call, entropy):
        return told(replace(sharer, first_messages=(), last=None), call, entropy)

    patch.setitem(explicit_user.ExplicitClient.handlers, SumRequest, answer)


def the_budget_is_released_by_whoever_forgot(patch: pytest.MonkeyPatch) -> None:
    told = AggregatorRules.give_up
    patch.setattr(
        AggregatorRules,
        "give_up",
        lambda own, s, rows, message: told(own, s, rows, replace(message, spent=0)),
    )


def a_roster_of_nobody_is_made_again(patch: pytest.MonkeyPatch) -> None:
    def leave_out(s, rows, message, _):
        doubted = set(message.positions)
        left = tuple(each for i, each in enumerate(s.roster) if i not in doubted)
        return s.rules.close_roster(replace(s, roster=left), rows)

    for topology in (EXPLICIT, MASKED):
        rules(patch, topology, on_bad_entries=leave_out)


def masks_stay_in_the_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(masked_aggregate, "needed", lambda graph, inside, included: inside & ~inside)


def late_sums_are_forwarded(patch: pytest.MonkeyPatch) -> None:
    told = MASKED.coordinator.pending

    def generous(s, rows):
        known = told(s, rows)
        if s.phase is not Phase.COUNTING or s.reservation is None:
            return known
        names = [(MaskedSum.tag, s.topology_state.set_digest, j) for j in range(s.n)]
        late = [rows.uploads[name].encrypted_share for name in names if rows.uploads.get(name)]
        return *known, coordinator.to_aggregator(
            s, ShareBatch(s.params.survey, s.manifest_hash, tuple(late))
        )

    def keep(s, rows, message):
        return masked.coordinator.upload(s, rows, message, made_for=message.set_digest, open_=True)

    rules(patch, MASKED, pending=generous, take_sum=keep)


def shares_are_drawn_again(patch: pytest.MonkeyPatch) -> None:
    told, split = two_stage_user._encrypt_shares, two_stage_user._split

    def fresh(user, ballot, slots, attempt, entropy):
        again = replace(user, shares=split(user, ballot, entropy)) if attempt > 1 else user
        return told(again, ballot, slots, attempt, entropy)

    patch.setattr(two_stage_user, "_encrypt_shares", fresh)


def damaged_bytes_are_claimed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Acknowledged, "intact", lambda store, key: store.get(key))


def blobs_are_not_looked_at_again(patch: pytest.MonkeyPatch) -> None:
    rules(patch, SERVERS, is_complete=lambda s, rows: True)


def sums_over_any_set_are_taken(patch: pytest.MonkeyPatch) -> None:
    def explicitly(s, rows, message):
        digest, open_ = (
            explicit_coordinator.current_set(s).set_digest,
            explicit_coordinator._may_send(s, message),
        )
        return coordinator.upload(s, rows, message, made_for=digest, open_=open_)

    def masked_too(s, rows, message):
        open_ = s.phase is Phase.SUBMITTING and message.index in s.members
        return coordinator.upload(
            s, rows, message, made_for=s.topology_state.set_digest, open_=open_
        )

    rules(patch, EXPLICIT, take_sum=explicitly)
    rules(patch, MASKED, take_sum=masked_too)
    patch.setattr(
        masked,
        "_sent",
        lambda s, rows: masked._holding(s, rows, MaskedSum, s.topology_state.set_digest),
    )


def nobody_compares_a_users_own_mask_key(patch: pytest.MonkeyPatch) -> None:
    for where in (masked, masked_user):
        patch.setattr(where, "keys_digest", lambda own, neighbours: keys_digest(b"", neighbours))


def s2_does_not_say_how_it_ended(patch: pytest.MonkeyPatch) -> None:
    for module in (aggregator_receive, aggregator_rules, aggregator_steps):
        patch.setattr(module, "FINAL", ())


# --- schedules

A_SUM_FOR_A_FORGOTTEN_SET = (
    *ENROLLED,
    without(5),
    DEADLINE,
    visit(2, Trouble.NONE),
    visit(2, Trouble.NONE),
    Op(Kind.RESTORE_S1, -4),
    CONVERSE,
    ROUND,  # user 5 is in the set after all
    DEADLINE,
    Op(Kind.REPLAY, -11),  # of user 2, over the set without user 5
    ROUND,
    DEADLINE,
    CONVERSE,
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
    "The coordinator has another mask key of a user than the user": (
        MASKED,
        "published",
        (
            *ENROLLED,
            visit(0, Trouble.NONE),
            visit(0, Trouble.CORRUPTED, FIRST_BYTE_OF_THE_MASK_KEY),
        ),
        nobody_compares_a_users_own_mask_key,
    ),
    "blobs wait for the receipt": (
        SERVERS,
        "published",
        (ROUND, DEADLINE),
        blobs_before_the_receipt,
    ),
    "The coordinator restored to before its claim makes another one": (
        SERVERS,
        "published",
        (without(0), DEADLINE, carry(), Op(Kind.DROP), *forget(1), ROUND, DEADLINE, CONVERSE),
        any_claim_is_admitted,
    ),
    "The coordinator restored to before its claim makes another one, peers": (
        EXPLICIT,
        "aborted",
        (
            *SHARED,
            ROUND,
            DEADLINE,
            carry(),
            carry(),
            carry(),
            Op(Kind.DROP, -1),  # its one sum
            Op(Kind.DROP),  # the claim, said again
            *forget(4),
            without(0),
            DEADLINE,
            without(0),
            DEADLINE,
            CONVERSE,
        ),
        any_claim_is_admitted,
    ),
    "both servers restored after the result": (
        SERVERS,
        "aborted",
        (
            without(0),
            DEADLINE,
            CONVERSE,
            Op(Kind.RESTORE_S2, 1),
            Op(Kind.DROP),
            *forget(1),
            ROUND,
            DEADLINE,
            CONVERSE,
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
            CONVERSE,
        ),
        the_last_write_stands,
    ),
    "a retry after a lost answer": (
        SERVERS,
        "published",
        (visit(1, Trouble.ANSWER_LOST), ROUND, DEADLINE, CONVERSE),
        an_answer_is_drawn_at_every_visit,
    ),
    "a blob that was changed before the claim": (
        SERVERS,
        "published",
        (visit(1, Trouble.CORRUPTED, 150), ROUND, DEADLINE, CONVERSE),
        every_share_is_added,
    ),
    "one user is shown another set": (
        EXPLICIT,
        "published",
        (
            *SHARED,
            visit(0, Trouble.TAMPERED, 1),
            ROUND,
            DEADLINE,
            CONVERSE,
            ROUND,
            DEADLINE,
            CONVERSE,
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
            CONVERSE,
        ),
        users_answer_for_every_set,
    ),
    "blobs were sent and the coordinator forgot it": (
        SERVERS,
        "aborted",
        (ROUND, DEADLINE, carry(), carry(), Op(Kind.DROP), Op(Kind.RESTORE_S1, 0), CONVERSE),
        the_budget_is_released_by_whoever_forgot,
    ),
    "nobody on the roster is vouched for": (
        EXPLICIT,
        "aborted",
        (*(Op(Kind.WRONG_KEY, user, 1) for user in range(6)), ROUND, DEADLINE, CONVERSE),
        a_roster_of_nobody_is_made_again,
    ),
    "The aggregator was restored before the election and its word was lost": (
        TWO_STAGE,
        "aborted",
        (*ENROLLED, ROUND, Op(Kind.RESTORE_S2, 4), Op(Kind.DROP, -1)),
        s2_does_not_say_how_it_ended,
    ),
    "a user vanishes after it shared its mask key": (
        MASKED,
        "published",
        (*SHARED, without(0), DEADLINE, CONVERSE, without(0), DEADLINE, CONVERSE),
        masks_stay_in_the_sum,
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
            CONVERSE,
        ),
        late_sums_are_forwarded,
    ),
    "a masked sum does not open": (
        MASKED,
        "published",
        (
            *SHARED,
            visit(1, Trouble.NONE),
            visit(1, Trouble.CORRUPTED, 70),
            ROUND,
            DEADLINE,
            CONVERSE,
        ),
        None,
    ),
    "a sum of shares does not open": (
        EXPLICIT,
        "published",
        (
            *SHARED,
            visit(1, Trouble.NONE),
            visit(1, Trouble.CORRUPTED, 70),
            ROUND,
            DEADLINE,
            CONVERSE,
            ROUND,
            DEADLINE,
        ),
        None,
    ),
    "an elected user vanishes": (
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
            CONVERSE,
        ),
        shares_are_drawn_again,
    ),
    "a reporter vanishes": (
        TWO_STAGE,
        "published",
        (*ELECTED, without(0), DEADLINE, ROUND, DEADLINE, CONVERSE),
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
            CONVERSE,
        ),
        None,
    ),
    "everything is said twice and changed once": (
        SERVERS,
        "published",
        (
            *(visit(user, Trouble.DUPLICATED) for user in range(6)),
            DEADLINE,
            carry(0, Mishap.DUPLICATED),
            Op(Kind.RETRY),
            carry(1, Mishap.CORRUPTED, 100),
            Op(Kind.FLOOD, 3, 44),
            CONVERSE,
        ),
        None,
    ),
    "a blob is damaged before the claim": (
        MASKED,
        "published",
        (*SHARED, ROUND, Op(Kind.ROT, -1, 6), DEADLINE, CONVERSE),
        damaged_bytes_are_claimed,
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
        (*ELECTED, ROUND, DEADLINE, Op(Kind.ROT, 9, 7), ROUND, DEADLINE, ROUND, DEADLINE, CONVERSE),
        None,
    ),
    "a helper's stored sums are damaged": (
        TWO_STAGE,
        "published",
        (*ELECTED, ROUND, DEADLINE, ROUND, Op(Kind.ROT, -1, 6), DEADLINE, CONVERSE),
        damaged_bytes_are_claimed,
    ),
    "a damaged answer is said again": (
        SERVERS,
        "published",
        (ROUND, Op(Kind.ROT, 1, 5), Op(Kind.REPLAY, 1), DEADLINE, CONVERSE),
        None,
    ),
    "a blob is damaged after the claim": (
        SERVERS,
        "aborted",
        (ROUND, DEADLINE, carry(), Op(Kind.ROT, 2, 6), CONVERSE),
        blobs_are_not_looked_at_again,
    ),
    "two rosters": (
        EXPLICIT,
        "published",
        (without(0), DEADLINE, carry(), *forget(1), ROUND, DEADLINE, CONVERSE),
        None,
    ),
    "two workers end one attempt": (
        EXPLICIT,
        "published",
        (*SHARED, without(0), TWO_WORKERS, without(0), TWO_WORKERS, CONVERSE),
        None,
    ),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
def test_a_named_schedule_ends_as_it_should(name: str, real: bool) -> None:
    topology, ending, ops, _ = NAMED[name]
    found = play(topology, ops, seed=SEED, real=real)
    assert found.problems == ()
    assert found.ending == ending


@pytest.mark.parametrize("name", [name for name, case in NAMED.items() if case[3] is not None])
def test_a_named_schedule_finds_its_hole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topology, ending, ops, hole = NAMED[name]
    hole(monkeypatch)
    try:
        found = play(topology, ops, seed=SEED)
    except ProtocolError:
        return  # a role has noticed it
    assert found.problems or found.ending != ending

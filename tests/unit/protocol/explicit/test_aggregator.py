"""`explicit`: what the aggregator records, refuses and decrypts."""

from dataclasses import replace

import pytest

from faircount.protocol import EXPLICIT
from faircount.protocol.peers import member as user
from faircount.protocol.peers.messages import AggregateTotal, RemovedPair
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.wire.messages import (
    Reason,
    Refusal,
    Reservation,
)
from faircount.protocol.wire.roster_messages import RejectedEntries, RosterConfirmation

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


def test_seeds_that_do_not_open_lead_to_a_further_attempt_without_them(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    assert play.s2.partial_sum is None  # not ready: no sum may come
    assert (play.s1.attempt, play.s1.members) == (2, (0, 1, 2, 3, 5))
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 1, 1, 0, 1]
    kinds = [type(play.read_from_s2(statement)).__name__ for statement in play.s2.statements]
    assert kinds == [
        "RosterConfirmation",
        "Reservation",
        "AcceptedMembers",
        "Reservation",
        "AcceptedMembers",
        "Published",
    ]


def test_further_attempts_may_lose_others_until_the_minimum_and_an_abort_costs_nothing(
    stage,
) -> None:
    """The aggregator has seeds only, whatever the attempt: a smaller set gives it no difference."""
    play = ready(stage, minimum=4)
    play.share_all()
    for attempt, who in ((1, 4), (2, 3)):
        assert play.s1.attempt == attempt
        play.spoil(who)
        play.settle(play.sum_all(skip=(who,)))
    play.settle(play.sum_all(skip=(2,)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED


def test_no_claim_is_admitted_once_s1_may_have_sent_its_sum(stage) -> None:
    play, manifest = run_until_manifest(stage)
    play.send_to_s2(manifest)
    later = explicit_coordinator.current_set(
        play.s1.replace_fields(attempt=2, members=(0, 1, 2, 3))
    )
    further = replace(
        play.s1.manifest,
        attempt=2,
        members=later.bits,
        set_digest=later.set_digest,
        encrypted_shares=play.s1.manifest.encrypted_shares[:4],
    )
    refused, reservation = play.send_to_s2(play.by_s1(further))
    assert play.read_from_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.read_from_s2(reservation), Reservation)
    play.settle((manifest,))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"accepted_hash": bytes(32)}, Reason.WRONG_DIGEST), ({"total": b""}, Reason.MALFORMED)],
)
def test_sums_that_s2_cannot_use(stage, change, reason) -> None:
    play, manifest = run_until_manifest(stage)
    early = AggregateTotal(play.setup.params.survey, bytes(32), b"")
    assert play.read_from_s2(play.send_to_s2(play.by_s1(early))[0]).reason == Reason.EARLY
    reservation, included = play.send_to_s2(manifest)
    play.send_to_s1(reservation)
    (total,) = play.send_to_s1(included)
    wrong = replace(play.s1.topology_state.total, **change)
    assert play.read_from_s2(play.send_to_s2(play.by_s1(wrong))[0]).reason == reason
    play.settle((total,))
    assert play.counts() == [1] * 6


def run_until_manifest(stage):
    play = ready(stage)
    play.share_all()
    (manifest,) = play.sum_all()
    return play, manifest


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 2}, Reason.WRONG_DIGEST),
        ({"members": b"\xff"}, Reason.MALFORMED),
        ({"members": b"\x1f"}, Reason.MALFORMED),
        ({"removed": (RemovedPair(1, 0),)}, Reason.MALFORMED),
        ({"removed": (RemovedPair(0, 1), RemovedPair(0, 1))}, Reason.MALFORMED),
        ({"encrypted_shares": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(stage, change, reason) -> None:
    play, _ = run_until_manifest(stage)
    (answer,) = play.send_to_s2(play.by_s1(replace(play.s1.manifest, **change)))
    refused = play.read_from_s2(answer)
    assert isinstance(refused, Refusal)
    assert refused.reason == reason
    assert play.s2.manifest is None


@pytest.mark.parametrize(
    ("attempt", "removed", "reason"),
    [
        (4, frozenset(), Reason.TOO_MANY_ATTEMPTS),
        (1, {(0, j) for j in range(1, 6)}, Reason.DISCONNECTED),
    ],
)
def test_well_formed_sets_that_s2_refuses(stage, attempt, removed, reason) -> None:
    play, _ = run_until_manifest(stage)
    wanted = explicit_coordinator.current_set(
        play.s1.replace_fields(
            attempt=attempt,
            topology_state=replace(play.s1.topology_state, removed=frozenset(removed)),
        )
    )
    manifest = replace(
        play.s1.manifest,
        attempt=attempt,
        removed=wanted.removed_pairs,
        set_digest=wanted.set_digest,
    )
    (answer,) = play.send_to_s2(play.by_s1(manifest))
    assert play.read_from_s2(answer).reason == reason


def test_too_small_a_set_is_refused(stage) -> None:
    play, _ = run_until_manifest(stage)
    wanted = explicit_coordinator.current_set(play.s1.replace_fields(members=(0, 1)))
    small = replace(
        play.s1.manifest,
        members=wanted.bits,
        set_digest=wanted.set_digest,
        encrypted_shares=play.s1.manifest.encrypted_shares[:2],
    )
    (answer,) = play.send_to_s2(play.by_s1(small))
    assert play.read_from_s2(answer).reason in (Reason.TOO_FEW, Reason.DISCONNECTED)


def test_an_invented_roster_entry_is_named_and_left_out(stage) -> None:
    play = stage(E)
    members = [
        user.enrol(play.setup.params, invitation, play.entropy)
        for invitation in play.setup.invitations
    ]
    for i, member in enumerate(members):
        enrolment = member.enrolment
        if i == 2:
            enrolment = replace(enrolment, mac=bytes(32))
        play.send_to_s1(enrolment)
    (request,) = play.deadline()
    (answer,) = play.send_to_s2(request)
    assert isinstance(play.read_from_s2(answer), RejectedEntries)
    play.settle((answer,))
    assert play.s1.phase is Phase.SHARING
    assert play.s1.n == 5


def test_one_roster_is_sealed(stage) -> None:
    play = ready(stage)
    smaller = replace(play.s2.roster, entries=play.s2.roster.entries[1:])
    refused, stored = play.send_to_s2(play.by_s1(smaller))
    assert play.read_from_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.read_from_s2(stored), RosterConfirmation)
    assert play.send_to_s2(play.by_s1(play.s2.roster)) == (stored,)

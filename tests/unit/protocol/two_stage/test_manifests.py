"""TSS and TSS': manifests. The aggregator accepts one total over one set of reporters."""

from dataclasses import replace

import numpy as np
import pytest
from stored_rows import put

from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles import coordinator
from faircount.protocol.survey.budget import Ledger, Status
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Election,
    SlotSumRequest,
    SlotSums,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.relay import ballot_of
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.digests import members_of
from faircount.protocol.wire.messages import Published, Reason, Reservation

SAME_ITEMS = dict.fromkeys(range(8), (0, 1, 2))


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


def get_refusal(play, message):
    """Send a message of the coordinator, and return the aggregator's refusal."""
    return play.read_from_s2(play.send_to_s2(play.by_s1(message))[0])


def test_others_take_over_from_a_helper_with_an_unreadable_seed(two_stage) -> None:
    play = two_stage("shared", k=2)
    bad = play.bad_sums()
    assert (play.s1.phase, play.s2.phase) == (Phase.SHARING, Phase.COUNTING)
    first = play.s2.manifest
    play.finish()
    assert play.counts() == ones()
    second = play.s2.manifest
    assert (first.members, first.formed, first.attempt) == (
        second.members,
        second.formed,
        second.attempt - 1,
    )
    assert bad not in play.holders()
    kinds = [type(play.read_from_s2(statement)).__name__ for statement in play.s2.statements]
    assert kinds[:6] == [
        "RosterConfirmation",
        "Reservation",
        "AnnouncementReply",
        "Election",
        "Reservation",
        "AcceptedMembers",
    ]
    assert kinds[6:] == ["Reservation", "AcceptedMembers", "Published"]


def test_a_reporter_lost_after_an_unreadable_seed_leaves_and_the_survey_goes_on(two_stage) -> None:
    """The aggregator has no data yet that depend on answers, so a smaller set reveals nothing."""
    play = two_stage("shared", k=2)
    play.bad_sums()
    lost = play.waiting_for(Assignment)[0]
    play.phase(skip=(lost,))
    play.finish()
    assert play.counts() == ones(lost)


def test_every_unreadable_seed_costs_an_attempt(two_stage) -> None:
    play = two_stage("shared", k=2)
    for attempt in (2, 3, 4):
        play.bad_sums()
        assert play.s1.attempt == attempt
        play.phase()
    play.bad_sums()
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


def test_sums_over_another_set_are_unreadable(two_stage) -> None:
    """The coordinator sends one helper a smaller set, for which its seed is then encrypted."""
    play = two_stage("shared", k=2)
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    ballot = ballot_of(play.s1)
    tasks = []
    for task in call.tasks:
        is_listed = 7 in members_of(task.listed, 8)
        shares = task.encrypted_shares[:-1] if is_listed else task.encrypted_shares
        tasks.append(replace(task, encrypted_shares=shares))
    changed = replace(call, members=b"\x7f", tasks=tuple(tasks))
    play.people[i], sums = people.answer_sum_request(play.people[i], changed, play.entropy)
    # An honest coordinator does not accept these sums.
    assert play.send_to_s1(sums)[0].why is Reason.LATE
    put(play.s1, "uploads", (SlotSums.tag, SumScope.of(call).digest(ballot), i), sums)
    play.settle(play.phase())
    assert i not in members_of(play.s2.last(AcceptedMembers).message.members, 8)
    assert play.s2.last(Published) is None


def test_a_corrupt_sum_aborts(two_stage) -> None:
    play = two_stage("elected", sets=SAME_ITEMS, k=2)
    play.people[3] = replace(play.people[3], bits=np.array([9, 0, 0], dtype=np.uint8))
    play.phase()
    play.finish()
    assert play.s2.phase is Phase.ABORTED
    assert play.read_from_s2(play.s1.final).code == EndCode.CORRUPT_SUM
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"election": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"formed": 2}, Reason.TOO_MANY_ATTEMPTS),
        ({"formed": 0}, Reason.TOO_MANY_ATTEMPTS),
        ({"attempt": 5}, Reason.TOO_MANY_ATTEMPTS),
        ({"gone": (VanishedHelper(2, 0),)}, Reason.TOO_MANY_ATTEMPTS),
        ({"gone": (VanishedHelper(1, 0),)}, Reason.MALFORMED),
        ({"members": b"\xff\x01"}, Reason.MALFORMED),
        ({"members": b"\x7f"}, Reason.WRONG_DIGEST),
        ({"encrypted_shares": ()}, Reason.MALFORMED),
    ],
)
def test_manifests_that_the_aggregator_refuses(two_stage, change, reason) -> None:
    play = two_stage("shared", k=2)
    play.phase()
    assert get_refusal(play, replace(play.s1.manifest, **change)).reason == reason
    assert play.s2.manifest is None


def test_too_small_a_set_and_a_manifest_without_an_election_are_refused(two_stage) -> None:
    play = two_stage("shared")
    play.phase()
    manifest = play.s1.manifest
    small = replace(manifest, members=b"\x03")
    small = replace(small, set_digest=SumScope.of(small).digest(ballot_of(play.s1)))
    assert get_refusal(play, small).reason == Reason.TOO_FEW
    play.s2 = play.s2.replace_fields(statements=play.s2.statements[:1])
    assert get_refusal(play, manifest).reason == Reason.WRONG_DIGEST


def test_once_the_aggregator_is_ready_another_manifest_is_a_conflict(two_stage) -> None:
    play = two_stage("shared")
    (manifest,) = play.phase()
    reservation, included = play.send_to_s2(manifest)
    answer, stored = play.send_to_s2(play.by_s1(replace(play.s1.manifest, attempt=2)))
    assert (play.read_from_s2(answer).reason, stored) == (Reason.CONFLICT, reservation)
    assert play.send_to_s2(manifest) == (reservation, included)


def test_the_budget_is_reserved_before_the_numbers_of_reporters_are_read_and_spent_then(
    two_stage,
) -> None:
    """The aggregator reads the m_j at the election, so an abort after it is charged."""
    play = two_stage("drawn")
    survey = play.params.survey
    assert play.s2.ledger.find(survey) is None
    (announcement,) = play.phase()
    reservation, announced = play.send_to_s2(announcement)
    assert isinstance(play.read_from_s2(reservation), Reservation)
    assert play.s2.ledger.find(survey).status is Status.RESERVED
    (*_, request) = (*play.send_to_s1(reservation), *play.send_to_s1(announced))
    play.settle((request,))
    play.settle(
        coordinator.request_abort(play.s1.state, Ending(EndCode.OWNER, (), "nobody shares"))[1]
    )
    assert play.s2.ledger.find(survey).status is Status.SPENT


def test_an_election_over_budget_is_not_held(two_stage) -> None:
    play = two_stage("drawn")
    empty = Ledger(play.params.population, 0.5, 0.0)
    play.s2 = play.s2.replace_fields(ledger=empty)
    play.settle(play.phase())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert not any(isinstance(statement.message, Election) for statement in play.s2.statements)
    assert play.s2.ledger.find(play.params.survey) is None

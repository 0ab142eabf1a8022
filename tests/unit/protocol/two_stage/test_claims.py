"""TSS and TSS': S2 admits one set of reporters, whatever S1 claims and whoever sends what does not open."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.protocol.roles import coordinator
from faircount.protocol.survey.budget import Ledger, Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Election,
    Gone,
    SlotComplaint,
    SlotSums,
    SumCall,
)
from faircount.protocol.topologies.two_stage.relay import ballot_of, reporters, rounds, slots_of
from faircount.protocol.wire.messages import BadBlobs, Batch, Published, Reason, Receipt

SAME_ITEMS = dict.fromkeys(range(8), (0, 1, 2))


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


def refused(play, what):
    """S2's refusal of something that S1 signed."""
    return play.said_by_s2(play.tell_s2(play.by_s1(what))[0])


def complain(play, i, numbers):
    body = SlotComplaint(play.params.survey, i, play.people[i].member.credential, play.s1.attempt, tuple(numbers))
    return play.tell_s1(body)[0]


def test_others_take_over_from_who_sent_a_sum_that_does_not_open(two_stage) -> None:
    play = two_stage("shared", k=2)
    bad = play.bad_sums()
    assert play.s2.claims == 1
    assert (play.s1.state, play.s2.state) == (State.SHARING, State.SUBMITTING)
    first = play.s2.claim
    play.finish()
    assert play.counts() == ones()
    second = play.s2.claim
    assert (first.members, first.keys, first.formed) == (second.members, second.keys, second.formed)
    assert bad not in play.holders()
    kinds = [type(play.said_by_s2(each)).__name__ for each in play.s2.statements]
    assert kinds == ["Seal", "Receipt", "Announced", "Election", "Receipt", "BadBlobs", "Receipt", "Published"]


def test_a_further_claim_over_fewer_reporters_is_refused(two_stage) -> None:
    """The hole: S2 has opened all sums of other items over the set; over a smaller one it could take differences."""
    play = two_stage("shared", k=2)
    play.bad_sums()
    before, digest = play.s2.claim, ballot_of(play.s1).set_digest(2, range(1, 8))
    smaller = replace(
        before, formed=2, members=b"\xfe", keys=before.keys[1:], gone=rounds(play.s1).gone, set_digest=digest
    )
    answer = refused(play, smaller)
    assert answer.reason == Reason.CONFLICT
    assert b"same reporters" in answer.detail
    assert play.s2.claim == before


def test_a_further_claim_keeps_the_sums_of_who_stays_and_leaves_out_who_was_bad(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.bad_sums()
    before = play.s2.claim
    assert (
        b"place of those"
        in refused(play, replace(before, keys=before.keys, blob_hashes=before.blob_hashes[::-1])).detail
    )
    stays = np.flatnonzero(slots_of(play.s1, 2).granted == 1)[0]
    hashes = tuple(bytes(32) if at == stays else each for at, each in enumerate(before.blob_hashes))
    assert b"another sum" in refused(play, replace(before, gone=rounds(play.s1).gone, blob_hashes=hashes)).detail


def test_a_further_claim_does_not_rewrite_who_had_left(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.phase(skip=play.waiting_for(SumCall)[:1])
    play.phase()
    play.bad_sums()
    before, gone = play.s2.claim, rounds(play.s1).gone
    assert (len(before.gone), gone[0]) == (1, before.gone[0])
    answer = refused(play, replace(before, gone=gone[1:]))
    assert (answer.reason, b"place of those" in answer.detail) == (Reason.CONFLICT, True)
    play.finish()
    assert play.counts() == ones()


def test_a_reporter_lost_after_the_claim_ends_the_survey_with_the_budget_spent(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.bad_sums()
    play.settle(play.phase(skip=play.waiting_for(Assignment)[:1]))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"set is final" in play.said_by_s2(play.s1.final).reason
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


@pytest.mark.parametrize("complains", [False, True])
def test_a_helper_lost_or_complaining_after_the_claim_is_replaced(two_stage, complains) -> None:
    play = two_stage("shared", k=2)
    play.bad_sums()
    play.phase()
    i = play.waiting_for(SumCall)[0]
    if complains:
        complain(play, i, (reporters(play.s1)[0][0],))
    play.phase(skip=(i,))
    assert len(play.s1.members) == 8
    assert rounds(play.s1).gone[-1].index == i
    play.finish()
    assert play.counts() == ones()


def test_after_the_further_claim_there_is_none(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.bad_sums()
    play.phase()
    play.bad_sums()
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


def test_sums_made_over_another_set_do_not_open(two_stage) -> None:
    """S1 shows one helper a smaller set: S2 opens only what was sealed under the claimed one."""
    play = two_stage("shared", k=2)
    i = play.waiting_for(SumCall)[0]
    call = play.visit(i)
    tasks = tuple(replace(each, parcels=tuple(p for p in each.parcels if p.number != 7)) for each in call.tasks)
    fooled = replace(call, members=b"\x7f", tasks=tasks)
    play.people[i], body = people.add_up(play.people[i], fooled, play.entropy)
    assert play.tell_s1(body)[0].why is Reason.LATE  # S1 itself would not take it
    play.s1.uploads.put((SlotSums.tag, people.call_digest(call), i), body)
    play.settle(play.phase())
    assert play.s2.last(BadBlobs) is not None
    assert play.s2.last(Published) is None


def test_a_sum_that_cannot_be_aborts(two_stage) -> None:
    play = two_stage("elected", sets=SAME_ITEMS, k=2)
    play.people[3] = replace(play.people[3], bits=np.array([9, 0, 0], dtype=np.uint8))
    play.phase()
    play.finish()
    assert play.s2.state is State.ABORTED
    assert play.said_by_s2(play.s1.final).reason == b"corrupt"
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"election": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"formed": 2}, Reason.WRONG_DIGEST),
        ({"formed": 0}, Reason.TOO_MANY_ATTEMPTS),
        ({"formed": 5}, Reason.TOO_MANY_ATTEMPTS),
        ({"gone": (Gone(5, 0),)}, Reason.TOO_MANY_ATTEMPTS),
        ({"gone": (Gone(1, 0),)}, Reason.MALFORMED),
        ({"members": b"\xff\x01"}, Reason.MALFORMED),
        ({"members": b"\x7f"}, Reason.MALFORMED),
        ({"keys": (bytes(32),) * 8}, Reason.MALFORMED),
        ({"blob_hashes": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(two_stage, change, reason) -> None:
    play = two_stage("shared", k=2)
    play.phase()
    assert refused(play, replace(play.s1.claim, **change)).reason == reason
    assert play.s2.claim is None


def test_too_small_a_set_and_a_claim_without_an_election_are_refused(two_stage) -> None:
    play = two_stage("shared")
    play.phase()
    claim, digest = play.s1.claim, ballot_of(play.s1).set_digest(1, (0, 1))
    assert (
        refused(play, replace(claim, members=b"\x03", keys=claim.keys[:2], set_digest=digest)).reason == Reason.TOO_FEW
    )
    play.s2 = replace(play.s2, statements=play.s2.statements[:1])
    assert refused(play, claim).reason == Reason.WRONG_DIGEST


def test_another_claim_is_a_conflict_and_other_blobs_are_refused(two_stage) -> None:
    play = two_stage("shared")
    (claim,) = play.phase()
    (receipt,) = play.tell_s2(claim)
    answer, stored = play.tell_s2(play.by_s1(replace(play.s1.claim, formed=2)))
    assert (play.said_by_s2(answer).reason, stored) == (Reason.CONFLICT, receipt)
    assert refused(play, Batch(play.params.survey, bytes(32), ())).reason == Reason.CONFLICT
    assert refused(play, Batch(play.params.survey, play.s1.claim_hash, ())).reason == Reason.WRONG_BLOBS


def test_the_budget_is_reserved_before_the_numbers_of_reporters_are_read_and_spent_then(two_stage) -> None:
    """S2 reads the m_j at the election: an abort after it left the ledger empty."""
    play = two_stage("drawn")
    survey = play.params.survey
    assert play.s2.ledger.find(survey) is None
    (announcement,) = play.phase()
    receipt, announced = play.tell_s2(announcement)
    assert isinstance(play.said_by_s2(receipt), Receipt)
    assert play.s2.ledger.find(survey).status is Status.RESERVED
    (*_, request) = (*play.tell_s1(receipt), *play.tell_s1(announced))
    play.settle((request,))
    play.settle(coordinator.give_up(play.s1, "nobody shares")[1])
    assert play.s2.ledger.find(survey).status is Status.SPENT


def test_an_election_over_budget_is_not_held(two_stage) -> None:
    play = two_stage("drawn")
    empty = Ledger(play.params.population, 0.5, 0.0)
    play.s2 = replace(play.s2, ledger=empty)
    play.settle(play.phase())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert not any(isinstance(each.says, Election) for each in play.s2.statements)
    assert play.s2.ledger.find(play.params.survey) is None

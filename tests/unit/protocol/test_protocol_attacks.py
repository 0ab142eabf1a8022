"""Attacks that once worked, with honest parties and an unlucky network, storage or client. None may work again."""

from dataclasses import replace

import pytest

from faircount.protocol import EXPLICIT, SERVERS, aggregate, decode, resume
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.survey.budget import Charge, Ledger, parallel_costs
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import ShareBundle
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import MaskedSum, Recovery
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Enrolment
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import SlotComplaint, SumCall
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import Accepted, BadBlobs, Reason, Rejected, SyncRequest
from faircount.protocol.wire.signing import sign


def asks_what_stands(play) -> None:
    play.settle((sign(play.s1.key, Party.S1, SyncRequest(play.s1.params.survey)),))


# --- a set that changed in a restore: S2 must not see what was made for the former one ----------------------------


def test_a_masked_vector_for_a_forgotten_set_is_not_taken(masked) -> None:
    """S2 would open it by guessing the set, its sender would be dropped, and its neighbours would give S2 its key."""
    play = masked("enrolled", n=6, k=5, t=3)
    for i in range(5):
        play.tell_s1(play.people[i].bundle)
    before = coordinator.backup(play.s1)
    play.settle(play.deadline())
    play.people[2], vector = masked_user.answer_call(play.people[2], play.visit(2), play.entropy)
    play.tell_s1(vector)
    play.s1 = before
    asks_what_stands(play)
    play.tell_s1(play.people[5].bundle)
    play.settle(play.deadline())
    assert play.s1.members == tuple(range(6))
    assert play.tell_s1(vector)[0].why is Reason.LATE
    play.settle(play.sum_all(skip=(2,)))
    play.settle(play.recover())
    assert play.counts() == [1, 1, 0, 1, 1, 1]
    assert play.s2.last(BadBlobs) is None


def test_an_explicit_sum_for_a_forgotten_set_is_not_taken(stage) -> None:
    play = stage(EXPLICIT)
    play.enrol_all()
    for i in range(5):
        play.tell_s1(play.people[i].bundle)
    before = coordinator.backup(play.s1)
    play.settle(play.deadline())
    play.people[2], tau = explicit_user.answer_call(play.people[2], play.visit(2), play.entropy)
    play.tell_s1(tau)
    play.s1 = before
    asks_what_stands(play)
    play.tell_s1(play.people[5].bundle)
    play.settle(play.deadline())
    assert play.tell_s1(tau)[0].why is Reason.LATE
    assert play.sum_all(skip=(2,)) == ()  # nobody's sum was claimed: user 2 is not in the next set
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 0, 1, 1, 1]
    assert play.s2.last(BadBlobs) is None


def test_slot_sums_for_a_forgotten_set_are_not_taken(two_stage) -> None:
    play = two_stage("elected", k=2)
    others = list(play.people)[1:]
    for i in others:
        play.act(i)
    before = coordinator.backup(play.s1)
    play.deadline()  # user 0 did not report
    helper = play.waiting_for(SumCall)[0]
    play.people[helper], sums = two_stage_user.add_up(play.people[helper], play.visit(helper), play.entropy)
    play.tell_s1(sums)
    play.s1 = before
    play.act(0)
    play.deadline()
    assert len(play.s1.members) == 8
    assert play.tell_s1(sums)[0].why is Reason.LATE
    play.finish()
    assert play.s2.last(BadBlobs) is None
    assert play.counts() == [1] * 8


# --- the further claim: the first without the bad blobs, and nobody else -----------------------------------------


def test_a_restored_s1_cannot_drop_a_user_whose_vector_s2_has(masked) -> None:
    """User 4 sends garbage; S1 forgets user 2's vector, which S2 has opened, and claims without both."""
    play = masked("shared", n=8, k=7, t=3)
    for i in (0, 1, 3, 5, 6, 7):
        play.come(i)
    before = coordinator.backup(play.s1)
    play.come(2)
    play.spoil(4)
    (receipt,) = play.tell_s2(play.deadline()[0])
    (batch,) = play.tell_s1(receipt)
    play.tell_s2(batch)
    play.s1 = before  # and nobody tells it
    (other,) = play.deadline()
    refused, stands = play.tell_s2(other)
    assert play.said_by_s2(refused).reason == Reason.CONFLICT
    assert stands == receipt
    play.settle((stands,))
    assert play.s1.state is play.s2.state is State.ABORTED  # it has lost the vector that must be in the sum
    assert play.s2.last(Recovery) is None


def test_bad_blobs_that_cut_somebody_off_end_the_survey(masked) -> None:
    """Those around user 2 on the ring send garbage: without them it stands alone, and must not be dropped either."""
    play = masked("shared", n=24, k=8, t=3)
    near = play.people[2].placed.neighbours
    for i in near:
        play.spoil(i)
    play.settle(play.sum_all(skip=tuple(near)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"hang together" in play.said_by_s2(play.s1.final).reason
    assert play.s2.last(Recovery) is None


def test_nobody_may_be_lost_between_the_claims(stage) -> None:
    """S2 has opened user 2's sum over the first set: one over a smaller set would give it the difference."""
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    assert play.s1.members == (0, 1, 2, 3, 5)
    smaller = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 3, 5)))
    claim = replace(
        play.s2.claim,
        attempt=2,
        members=smaller.bits,
        set_digest=smaller.set_digest,
        blob_hashes=play.s2.claim.blob_hashes[:4],
    )
    refused, _ = play.tell_s2(sign(play.s1.key, Party.S1, claim))
    assert b"without the bad blobs" in play.said_by_s2(refused).detail
    play.settle(play.sum_all(skip=(2,)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"set is final" in play.said_by_s2(play.s1.final).reason


# --- bytes that changed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [2, 60, -20, -1])
def test_a_blob_that_changed_on_its_way_is_not_acknowledged(masked, at) -> None:
    """Else the sender's retry would be a conflict, and S2 would get nearly its vector, and then its key."""
    play = masked("shared")
    play.people[3], body = masked_user.answer_call(play.people[3], play.visit(3), play.entropy)
    wire = bytearray(encode(body))
    wire[at] ^= 4
    assert isinstance(decode(bytes(wire)), Rejected)
    play.tell_s1(body)
    play.settle(play.sum_all(skip=(3,)))
    assert play.counts() == [1] * 20


def test_a_vector_made_with_a_spoiled_mask_key_is_not_taken_after_a_restore(masked) -> None:
    play = masked("shared")
    good, victim = coordinator.backup(play.s1), min(play.people[3].placed.neighbours)
    key = (masked_user.KeyBundle.tag, 0, 3)
    bundle = play.s1.uploads[key]
    play.s1.uploads._written[key] = replace(bundle, mask_key=play.people[4].mask.public)  # a disk does this
    play.people[victim], vector = masked_user.answer_call(play.people[victim], play.visit(victim), play.entropy)
    play.tell_s1(vector)
    play.s1 = good
    asks_what_stands(play)
    assert play.tell_s1(vector)[0].why is Reason.LATE
    play.settle(play.sum_all(skip=(victim,)))
    play.settle(play.recover())
    assert play.counts() == [int(i != victim) for i in range(20)]


def test_spoiled_numbers_in_the_store_end_no_role(masked, two_stage, stage) -> None:
    play = masked("recovering")
    held = next(key for key in play.s1.uploads.keys() if key[0] == MaskedSum.tag)  # noqa: SIM118 - it is no dict
    play.s1.uploads._written[held] = replace(play.s1.uploads[held], lacking=(4_000_000_000,))
    play.settle(play.recover())
    assert play.s1.state is State.PUBLISHED
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    key = (ShareBundle.tag, 0, 1)
    play.s1.uploads._written[key] = replace(play.s1.uploads[key], index=258)
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6
    play = two_stage("shared", k=2)
    i = play.waiting_for(SumCall)[0]
    body = SlotComplaint(play.params.survey, i, play.people[i].member.credential, play.s1.attempt, (0,))
    play.tell_s1(body)
    key = (SlotComplaint.tag, play.s1.attempt, i)
    play.s1.uploads._written[key] = replace(body, numbers=(99,))
    play.finish()
    assert play.s1.state is State.PUBLISHED


# --- S2's words, out of step --------------------------------------------------------------------------------------


def test_a_repeated_answer_of_s2_does_not_take_s1_back(masked) -> None:
    play = masked("shared", n=8, k=7, t=3)
    play.spoil(2)
    (claim,) = play.sum_all(skip=(2,))
    play.tell_s2(claim)  # its receipt is lost
    (standing,) = play.tell_s2(play.by_s1(SyncRequest(play.setup.params.survey)))
    play.settle((standing,))
    assert play.s1.state is State.RECOVERING
    newer = play.s1.claim
    play.settle((standing,))  # the network repeats it
    assert play.s1.claim == newer
    play.settle(play.recover())
    assert play.counts() == [int(i != 2) for i in range(8)]


def test_s1_asks_what_stands_when_s2_refuses_its_blobs(masked) -> None:
    """However S1 came to an older claim, it does not say the same for ever."""
    play = masked("shared", n=8, k=7, t=3)
    play.spoil(2)
    (claim,) = play.sum_all(skip=(2,))
    older, (receipt,) = coordinator.backup(play.s1), play.tell_s2(claim)
    play.settle((receipt,))
    assert play.s1.state is State.RECOVERING
    play.s1 = older  # without asking what stands
    play.settle((receipt,))
    assert play.s1.claim == play.s2.claim
    play.settle(play.recover())
    assert play.counts() == [int(i != 2) for i in range(8)]


# --- one bad client -----------------------------------------------------------------------------------------------


def test_a_client_with_garbage_shares_and_a_garbage_sum_is_left_out(masked) -> None:
    play = masked("enrolled", n=8, k=7, t=3)
    bundle = play.people[2].bundle
    play.people[2] = replace(play.people[2], bundle=replace(bundle, blobs=tuple(bytes(len(b)) for b in bundle.blobs)))
    play.share_all()
    play.spoil(2)
    assert play.sum_all(skip=(2,)) == ()
    play.settle(play.sum_all())
    assert play.counts() == [int(i != 2) for i in range(8)]


def test_servers_know_no_enrolment(stage) -> None:
    """A service must not be brought down by a message of another topology."""
    play = stage(SERVERS)
    guest = play.invitations[0]
    body = Enrolment(play.setup.params.survey, guest.access, bytes(31) + b"\1", bytes(32), bytes(32))
    assert play.tell_s1(body)[0].why is Reason.MALFORMED
    assert resume(play.s1) == ()
    unopened = coordinator.backup(play.s1)
    play.answer_all()
    (receipt,) = play.tell_s2(play.deadline()[0])
    assert receipt is not None
    play.s1 = unopened
    asks_what_stands(play)  # the answers were lost with the restore
    assert play.s1.state is play.s2.state is State.ABORTED


# --- the budget ---------------------------------------------------------------------------------------------------


def charge(number: int, group: str, budget: str = "spring", epsilon: float = 1.0) -> Charge:
    return Charge(number.to_bytes(16, "big"), epsilon, 0.0, budget, group)


def test_surveys_of_the_same_group_add_up() -> None:
    assert parallel_costs([charge(i, "north") for i in range(3)]) == [(1.0, 0.0)] * 3
    assert parallel_costs([charge(1, "north"), charge(2, "south", epsilon=0.5)]) == [(1.0, 0.0)]
    both = [charge(1, "north"), charge(2, "north", epsilon=0.2), charge(3, "south", epsilon=0.5), charge(4, "south")]
    assert parallel_costs(both) == [(1.0, 0.0), (0.5, 0.0)]
    assert parallel_costs([charge(1, "north", ""), charge(2, "south", "")]) == [(1.0, 0.0)] * 2  # no budget in common
    ledger = Ledger("people", 1.0, 0.0).reserve(charge(1, "north"))
    assert ledger.admits(charge(2, "south"))
    assert not ledger.admits(charge(2, "north"))


def test_a_survey_that_was_charged_before_a_restore_has_no_second_life(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    (claim,) = play.deadline()
    (receipt,) = play.tell_s2(claim)
    fresh = aggregator.show_receipts(replace(play.setup.s2, ledger=play.setup.s2.ledger.restored(())), [receipt])
    assert not fresh.ledger.closed
    _, (refused,) = aggregate(fresh, claim)
    assert play.said_by_s2(refused).reason == Reason.CLOSED


def test_whom_s2_has_sealed_may_enrol_again_in_a_full_survey(stage) -> None:
    play = stage(EXPLICIT)
    extra = Invitation.issue(play.setup.params.digest, play.entropy)
    play.s1 = replace(play.s1, invited=play.s1.invited | {extra.access})
    empty = coordinator.backup(play.s1)
    play.enrol_all()
    play.s1 = empty
    intruder = user.join(play.setup.params, extra, play.entropy)
    others = [each.member.enrolment for each in play.people]
    for body in (intruder.enrolment, *others[:5]):
        assert isinstance(play.tell_s1(body)[0], Accepted)
    asks_what_stands(play)
    assert isinstance(play.tell_s1(others[5])[0], Accepted)


def test_a_reason_that_nobody_has_given_out_is_read_all_the_same() -> None:
    assert Rejected(200).why is Reason.MALFORMED
    assert "malformed" in str(Rejected(200, b"?"))

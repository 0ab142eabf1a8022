"""`masked`: retries, crashes and restores."""

import copy
from dataclasses import replace

import pytest
from stored_rows import spoil

from faircount.protocol import resume
from faircount.protocol.peers import member as members
from faircount.protocol.roles import aggregator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import (
    KeyBundle,
    UnmaskRequest,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import (
    Acknowledgement,
    NotReady,
    Reason,
    SyncRequest,
)
from faircount.protocol.wire.signing import sign


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


@pytest.mark.parametrize("change", [{"credential": bytes(32)}, {"index": 99}])
def test_uploads_need_the_users_credential(masked, change) -> None:
    play = masked("enrolled")
    assert play.send_to_s1(replace(play.people[0].bundle, **change))[0].why is Reason.UNKNOWN
    assert (
        play.send_to_s1(replace(members.poll_request(play.people[0].member), **change))[0].why
        is Reason.UNKNOWN
    )
    play.share_all()
    _, body = masked_user.answer_sum_request(play.people[0], play.visit(0), play.entropy)
    assert play.send_to_s1(replace(body, **change))[0].why in (Reason.UNKNOWN, Reason.LATE)
    play.settle(play.sum_all(skip=(3,)))
    helper = next(i for i in range(20) if isinstance(play.visit(i), UnmaskRequest))
    _, help_ = masked_user.answer_unmask_request(
        play.people[helper], play.visit(helper), play.entropy
    )
    assert play.send_to_s1(replace(help_, **change))[0].why in (Reason.UNKNOWN, Reason.LATE)


def test_forms_are_checked_at_the_door(masked) -> None:
    play = masked("enrolled")
    bundle = play.people[0].bundle
    for change in (
        {"encrypted_shares": bundle.encrypted_shares[1:]},
        {"encrypted_shares": (b"", *bundle.encrypted_shares[1:])},
        {"mask_key": b"\xff" * 32},
    ):
        assert play.send_to_s1(replace(bundle, **change))[0].why is Reason.MALFORMED
    play.share_all()
    _, body = masked_user.answer_sum_request(play.people[0], play.visit(0), play.entropy)
    for change in (
        {"encrypted_share": b""},
        {"vector": b""},
        {"vector": b"\xff" * len(body.vector)},
    ):
        assert play.send_to_s1(replace(body, **change))[0].why is Reason.MALFORMED
    play.settle(play.sum_all(skip=(3,)))
    helper = next(iter(play.people[3].placed.neighbours))
    _, help_ = masked_user.answer_unmask_request(
        play.people[helper], play.visit(helper), play.entropy
    )
    assert (
        play.send_to_s1(replace(help_, encrypted_share=help_.encrypted_share + b"x"))[0].why
        is Reason.MALFORMED
    )


def test_nothing_is_taken_early_or_late(masked) -> None:
    play = masked("open")
    early = KeyBundle(play.setup.params.survey, 0, bytes(32), bytes(32), ())
    assert play.send_to_s1(early)[0].why is Reason.EARLY
    play = masked("enrolled")
    play.share_all(skip=(2,))
    assert play.send_to_s1(play.people[2].bundle)[0].why is Reason.LATE
    assert isinstance(play.visit(2), NotReady)


def test_retries_are_the_same_bytes_and_others_are_a_conflict(masked) -> None:
    play = masked("enrolled")
    play.share_all()
    assert isinstance(play.send_to_s1(play.people[0].bundle)[0], Acknowledgement)
    other = masked_user.share(play.people[0].placed, (3,), play.entropy)
    assert play.send_to_s1(other.bundle)[0].why is Reason.CONFLICT
    call = play.visit(0)
    play.people[0], body = masked_user.answer_sum_request(play.people[0], call, play.entropy)
    play.people[0], again = masked_user.answer_sum_request(play.people[0], call, play.entropy)
    assert encode(again) == encode(body)
    for _ in range(2):
        assert isinstance(play.send_to_s1(body)[0], Acknowledgement)
    assert (
        play.send_to_s1(replace(body, encrypted_share=bytes(len(body.encrypted_share))))[0].why
        is Reason.CONFLICT
    )
    assert isinstance(play.visit(0), NotReady)
    play.settle(play.sum_all(skip=(0, 3)))
    assert isinstance(play.send_to_s1(body)[0], Acknowledgement)  # also late


def test_every_message_between_the_servers_may_come_again(masked) -> None:
    play = masked("shared")
    play.sum_all(skip=(3,))
    for _ in range(4):
        for message in resume(play.s1.state, play.s1.rows) * 3:
            answers = play.send_to_s2(message)
        for answer in answers * 2:
            play.send_to_s1(answer)
    assert play.s1.phase is Phase.UNMASKING
    play.recover()
    for _ in range(2):
        for message in resume(play.s1.state, play.s1.rows) * 3:
            answers = play.send_to_s2(message)
        for answer in answers * 2:
            play.send_to_s1(answer)
    assert play.counts() == without(20, 3)
    kinds = [type(play.read_from_s2(statement)).__name__ for statement in play.s2.statements]
    assert kinds == [
        "RosterConfirmation",
        "Reservation",
        "AcceptedMembers",
        "ReadyForTotal",
        "Published",
    ]


def again(play):
    play.settle((play.by_s1(SyncRequest(play.setup.params.survey)),))


def test_s1_restored_at_any_point_goes_on_with_what_s2_has(masked) -> None:
    play = masked("enrolled")
    backups = [copy.deepcopy(play.s1)]
    play.share_all()
    backups.append(copy.deepcopy(play.s1))
    for i in set(range(20)) - {3}:
        play.come(i)
    backups.append(copy.deepcopy(play.s1))
    play.settle(play.deadline())
    backups.append(copy.deepcopy(play.s1))
    for backup in backups[2:]:
        second = copy.copy(play)
        second.s1, second.people = backup, list(play.people)
        again(second)
        assert second.s1.phase is Phase.UNMASKING
        assert isinstance(second.visit(next(iter(play.people[3].placed.neighbours))), UnmaskRequest)
        second.settle(second.recover())
        assert second.counts() == without(20, 3)


def test_s1_restored_after_the_claim_goes_on_only_with_the_blobs(masked) -> None:
    play = masked("shared")
    empty = copy.deepcopy(play.s1)
    for i in set(range(20)) - {3}:
        play.come(i)
    full = copy.deepcopy(play.s1)
    (manifest,) = play.deadline()
    play.send_to_s2(manifest)
    for backup, ends in ((full, Phase.UNMASKING), (empty, Phase.ABORTED)):
        second = copy.copy(play)
        second.s1 = backup
        again(second)
        assert second.s1.phase is ends
    assert second.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED


def test_a_restored_s1_that_hears_a_dropped_user_does_not_pass_its_sum_on(masked) -> None:
    """It forgot its deadline and takes the late sum, but the recorded manifest does not have it."""
    play = masked("shared")
    for i in set(range(20)) - {3}:
        play.come(i)
    backup = copy.deepcopy(play.s1)
    play.settle(play.deadline())
    play.s1 = backup
    assert isinstance(play.come(3), Acknowledgement)
    play.settle(play.deadline())
    assert play.s1.phase is Phase.UNMASKING
    assert 3 not in play.s1.topology_state.accepted
    play.settle(play.recover())
    assert play.counts() == without(20, 3)


def test_s2_restored_aborts_and_charges(masked) -> None:
    play = masked("recovering")
    play.s2, out = play.s2.make_step(aggregator.abort_after_restore)
    play.settle(out)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_after_the_end_nobody_is_asked(masked) -> None:
    play = masked("recovering", gone=(3,))
    helper = next(iter(play.people[3].placed.neighbours))
    assert isinstance(play.visit(helper), UnmaskRequest)
    play.deadline()  # nobody helped: the aggregator will say that the key is lost
    assert isinstance(play.visit(helper), NotReady)


def asks_what_stands(play) -> None:
    play.settle((sign(play.s1.key, Party.COORDINATOR, SyncRequest(play.s1.params.survey)),))


def test_a_masked_vector_for_a_forgotten_set_is_not_taken(masked) -> None:
    """Its masks would not cancel."""
    play = masked("enrolled", n=6, k=5, t=3)
    for i in range(5):
        play.send_to_s1(play.people[i].bundle)
    before = play.s1.copy()
    play.settle(play.deadline())
    play.people[2], vector = masked_user.answer_sum_request(
        play.people[2], play.visit(2), play.entropy
    )
    play.send_to_s1(vector)
    play.s1 = before
    asks_what_stands(play)
    play.send_to_s1(play.people[5].bundle)
    play.settle(play.deadline())
    assert play.s1.members == tuple(range(6))
    assert play.send_to_s1(vector)[0].why is Reason.LATE
    play.settle(play.sum_all(skip=(2,)))
    play.settle(play.recover())
    assert play.counts() == [1, 1, 0, 1, 1, 1]
    assert play.s1.attempt == 1


def test_a_vector_made_with_a_spoiled_mask_key_is_not_taken_after_a_restore(masked) -> None:
    play = masked("shared")
    good, victim = play.s1.copy(), min(play.people[3].placed.neighbours)
    key = (masked_user.KeyBundle.tag, 0, 3)
    bundle = play.s1.view.uploads[key]
    spoil(
        play.s1, "uploads", key, replace(bundle, mask_key=play.people[4].mask.public)
    )  # a disk does this
    play.people[victim], vector = masked_user.answer_sum_request(
        play.people[victim], play.visit(victim), play.entropy
    )
    play.send_to_s1(vector)
    play.s1 = good
    asks_what_stands(play)
    assert play.send_to_s1(vector)[0].why is Reason.LATE
    play.settle(play.sum_all(skip=(victim,)))
    play.settle(play.recover())
    assert play.counts() == [int(i != victim) for i in range(20)]


def test_s1_restored_to_before_a_further_attempt_comes_to_the_same_set(masked) -> None:
    play = masked("recovering", gone=(3,))
    before = play.s1.copy()
    play.settle(play.recover(skip=range(20)))
    wanted = play.s1.topology_state.set_digest
    assert play.s1.attempt == 2
    play.come(0)
    play.s1 = before
    asks_what_stands(play)
    assert (play.s1.attempt, play.s1.topology_state.set_digest) == (2, wanted)
    play.settle(play.sum_all())
    assert play.counts() == without(20, 3)


def test_s1_taken_back_after_its_sum_ends_as_it_was(masked) -> None:
    """The sum is lost in transit; the coordinator forgets it, resynchronizes, and makes it again."""
    play = masked("recovering", gone=(3,))
    before = play.s1.copy()
    (ready,) = play.send_to_s2(play.recover()[0])
    (first,) = play.send_to_s1(ready)
    play.s1 = before
    (standing,) = play.send_to_s2(play.by_s1(SyncRequest(play.setup.params.survey)))
    (again_,) = play.send_to_s1(standing)
    assert again_.payload == first.payload
    play.settle((again_,))
    assert play.counts() == without(20, 3)

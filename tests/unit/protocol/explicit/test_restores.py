"""`explicit`: repeated messages, crashes and restores."""

from dataclasses import replace

from stored_rows import put

from faircount.protocol import EXPLICIT, resume
from faircount.protocol.peers import member as user
from faircount.protocol.roles import aggregator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.devices import sign_for_device
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    Acknowledgement,
    Reason,
    Reservation,
    SyncRequest,
    Withdrawal,
)
from faircount.protocol.wire.signing import SigningKey, sign

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


def run_until_manifest(stage):
    play = ready(stage)
    play.share_all()
    (manifest,) = play.sum_all()
    return play, manifest


def test_s1_restored_before_the_seal_adopts_it(stage) -> None:
    play = stage(E)
    members = [
        user.enrol(play.setup.params, invitation, play.entropy)
        for invitation in play.setup.invitations
    ]
    for member in members[:4]:
        play.send_to_s1(member.enrolment)
    kept = play.s1.copy()
    play.send_to_s1(members[4].enrolment)
    play.settle(play.deadline())
    play.s1 = kept
    play.send_to_s1(members[5].enrolment)
    play.settle(play.deadline())
    assert play.s1.phase is Phase.SHARING
    assert play.s1.n == 5
    assert play.s1.digest == play.s2.digest
    assert isinstance(
        play.send_to_s1(members[4].enrolment)[0], Acknowledgement
    )  # whom the restored coordinator had forgotten


def test_s1_restored_after_the_claim_goes_on(stage) -> None:
    play = ready(stage)
    play.share_all()
    for i in play.s1.members:
        play.people[i], body = explicit_user.answer_sum_request(
            play.people[i], play.visit(i), play.entropy
        )
        play.send_to_s1(body)
    kept = play.s1.copy()
    (manifest,) = play.deadline()
    play.send_to_s2(manifest)
    play.s1 = kept
    play.settle((play.by_s1(SyncRequest(play.setup.params.survey)),))
    assert play.counts() == [1] * 6


def test_s1_restored_without_the_sums_gives_up(stage) -> None:
    play = ready(stage)
    play.share_all()
    kept = play.s1.copy()
    (manifest,) = play.sum_all()
    play.send_to_s2(manifest)
    play.s1 = kept
    play.settle((play.by_s1(SyncRequest(play.setup.params.survey)),))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_s2_restored_aborts(stage) -> None:
    play, manifest = run_until_manifest(stage)
    play.send_to_s2(manifest)
    play.s2, out = play.s2.make_step(aggregator.abort_after_restore)
    play.settle(out)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_s2_restored_before_the_seal_tells_s1_when_it_asks(stage) -> None:
    play = stage(E)
    for invitation in play.setup.invitations:
        play.send_to_s1(user.enrol(play.setup.params, invitation, play.entropy).enrolment)
    play.s2, _ = play.s2.make_step(aggregator.abort_after_restore)  # the statement is lost
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_every_message_between_the_servers_may_come_again(stage) -> None:
    play, _ = run_until_manifest(stage)
    for _ in range(4):
        for message in resume(play.s1.state, play.s1.rows) * 3:
            answers = play.send_to_s2(message)
        for answer in answers * 2:
            play.send_to_s1(answer)
    assert play.counts() == [1] * 6
    assert sum(isinstance(play.read_from_s2(s), Reservation) for s in play.s2.statements) == 1


def asks_what_stands(play) -> None:
    play.settle((sign(play.s1.key, Party.COORDINATOR, SyncRequest(play.s1.params.survey)),))


def test_an_explicit_sum_for_a_forgotten_set_is_not_taken(stage) -> None:
    play = stage(EXPLICIT)
    play.enrol_all()
    for i in range(5):
        play.send_to_s1(play.people[i].bundle)
    before = play.s1.copy()
    play.settle(play.deadline())
    play.people[2], tau = explicit_user.answer_sum_request(
        play.people[2], play.visit(2), play.entropy
    )
    play.send_to_s1(tau)
    play.s1 = before
    asks_what_stands(play)
    play.send_to_s1(play.people[5].bundle)
    play.settle(play.deadline())
    assert play.send_to_s1(tau)[0].why is Reason.LATE
    assert play.sum_all(skip=(2,)) == ()  # no manifest: participant 2 is not in the next set
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 0, 1, 1, 1]
    assert set(play.s1.members) == {0, 1, 3, 4, 5}


def test_a_restored_s1_knows_from_the_roster_whose_devices_have_enrolled(stage) -> None:
    """The owner has the invitation, and sees everybody's public key on the roster."""
    play = stage(EXPLICIT)
    empty = play.s1.copy()
    play.enrol_all()
    play.s1 = empty
    asks_what_stands(play)
    params, access = play.setup.params, play.setup.invitations[3].access
    owner = SigningKey.generate(play.entropy)
    first = play.people[3].member.enrolment
    posing = replace(first, credential_hash=bytes(32), device_key=owner.public)
    assert play.send_to_s1(posing)[0].why is Reason.INVITATION_USED
    taken_back = sign_for_device(Withdrawal, params, access, owner)
    assert play.send_to_s1(taken_back)[0].why is Reason.INVITATION_USED
    assert isinstance(play.send_to_s1(first)[0], Acknowledgement)


def test_whom_s2_has_sealed_may_enrol_again_in_a_full_survey(stage) -> None:
    play = stage(EXPLICIT)
    extra = Invitation.issue(play.setup.params.digest, play.entropy)
    put(play.s1, "invited", extra.user, extra.access)
    empty = play.s1.copy()
    play.enrol_all()
    play.s1 = empty
    intruder = user.enrol(play.setup.params, extra, play.entropy)
    others = [person.member.enrolment for person in play.people]
    for body in (intruder.enrolment, *others[:5]):
        assert isinstance(play.send_to_s1(body)[0], Acknowledgement)
    asks_what_stands(play)
    assert isinstance(play.send_to_s1(others[5])[0], Acknowledgement)

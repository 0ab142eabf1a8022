"""TSS and TSS': retries with the same bytes, replays, crashes and restores from backup."""

import copy
from collections import Counter
from dataclasses import replace

import pytest

from faircount.core.errors import ProtocolError
from faircount.protocol import end_phase, resume
from faircount.protocol.peers import member as user
from faircount.protocol.peers.messages import AcceptedMembers, Roster
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import Election, SlotBundle, SlotSumRequest
from faircount.protocol.topologies.two_stage.relay import ballot_of, two_stage_state
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import (
    Acknowledgement,
    NotReady,
    Published,
    Reason,
    Reservation,
    SyncRequest,
)

ALL = [1] * 8


def synchronize(play) -> None:
    play.settle((play.by_s1(SyncRequest(play.params.survey)),))


def test_retries_are_the_same_bytes(two_stage) -> None:
    play = two_stage("elected", crypto=StandardCrypto())
    call = play.visit(0)
    play.people[0], bundle = people.send_shares(play.people[0], call, play.entropy)
    play.people[0], again = people.send_shares(play.people[0], call, play.entropy)
    assert encode(again) == encode(bundle)
    for _ in range(2):
        assert isinstance(play.send_to_s1(bundle)[0], Acknowledgement)
        assert isinstance(play.send_to_s1(play.people[0].indicator)[0], Acknowledgement)
    play.phase()
    assert isinstance(play.send_to_s1(bundle)[0], Acknowledgement)
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    play.people[i], sums = people.answer_sum_request(play.people[i], call, play.entropy)
    play.people[i], again = people.answer_sum_request(play.people[i], call, play.entropy)
    assert encode(again) == encode(sums)
    for _ in range(2):
        assert isinstance(play.send_to_s1(sums)[0], Acknowledgement)
    assert isinstance(play.visit(i), NotReady)


def test_other_bytes_are_a_conflict(two_stage) -> None:
    play = two_stage("elected", crypto=StandardCrypto())
    person = play.people[0]
    items = tuple((item + 1) % 8 for item in person.items)
    other = people.make_report(person.member, play.invitations[0], items, person.bits, play.entropy)
    assert play.send_to_s1(other.indicator)[0].why is Reason.CONFLICT
    _, bundle = people.send_shares(play.people[0], play.visit(0), play.entropy)
    play.act(0)
    assert play.send_to_s1(bundle)[0].why is Reason.CONFLICT
    play.phase()
    i = play.waiting_for(SlotSumRequest)[0]
    _, sums = people.answer_sum_request(play.people[i], play.visit(i), play.entropy)
    play.act(i)
    assert play.send_to_s1(sums)[0].why is Reason.CONFLICT


def test_malformed_uploads_are_refused(two_stage) -> None:
    play = two_stage("elected", crypto=StandardCrypto())
    for items in (b"", b"\x03", b"\xff", b"\x07\x00"):
        assert (
            play.send_to_s1(replace(play.people[0].indicator, items=items))[0].why
            is Reason.MALFORMED
        )
    _, bundle = people.send_shares(play.people[0], play.visit(0), play.entropy)
    for change in (
        {"encrypted_shares": bundle.encrypted_shares[1:]},
        {"encrypted_shares": (b"", *bundle.encrypted_shares[1:])},
    ):
        assert play.send_to_s1(replace(bundle, **change))[0].why is Reason.MALFORMED
    assert play.send_to_s1(replace(bundle, attempt=2))[0].why is Reason.LATE
    play.phase()
    i = play.waiting_for(SlotSumRequest)[0]
    _, sums = people.answer_sum_request(play.people[i], play.visit(i), play.entropy)
    too_large = b"\xff" * len(sums.vector)
    for change in (
        {"vector": sums.vector + b"\0"},
        {"vector": too_large},
        {"encrypted_share": b""},
    ):
        assert play.send_to_s1(replace(sums, **change))[0].why is Reason.MALFORMED


@pytest.mark.parametrize("change", [{"credential": bytes(32)}, {"index": 99}])
def test_every_upload_needs_the_credential(two_stage, change) -> None:
    play = two_stage("elected")
    assert play.send_to_s1(replace(play.people[0].indicator, **change))[0].why is Reason.UNKNOWN
    _, bundle = people.send_shares(play.people[0], play.visit(0), play.entropy)
    assert play.send_to_s1(replace(bundle, **change))[0].why is Reason.UNKNOWN
    assert (
        play.send_to_s1(replace(user.poll_request(play.people[0].member), **change))[0].why
        is Reason.UNKNOWN
    )


def test_a_key_belongs_to_one_reporter_and_is_fresh(two_stage) -> None:
    play = two_stage("drawn", crypto=StandardCrypto())
    play.send_to_s1(play.people[0].indicator)
    low_order = bytes(32)
    of_another = play.people[0].reporting_key
    on_the_roster = play.people[1].member.keys
    for key in (b"\xff" * 32, low_order, of_another.public, on_the_roster.public):
        wrong = replace(play.people[1].indicator, public_key=key)
        assert play.send_to_s1(wrong)[0].why is Reason.MALFORMED
    assert isinstance(play.send_to_s1(play.people[1].indicator)[0], Acknowledgement)


def test_every_message_between_the_servers_may_come_again(two_stage) -> None:
    play = two_stage("drawn")
    for person in play.people.values():
        play.send_to_s1(person.indicator)
    play.deadline()
    for _ in ("announcement", "request"):
        answers = {}
        for request in resume(play.s1.state, play.s1.rows) * 3:
            answers.update(dict.fromkeys(play.send_to_s2(request)))
        for answer in list(answers) * 2:
            play.send_to_s1(answer)
    play.phase()
    play.phase()
    for _ in range(4):
        for message in resume(play.s1.state, play.s1.rows) * 3:
            answers = play.send_to_s2(message)
        for answer in answers * 2:
            play.send_to_s1(answer)
    assert play.counts() == ALL
    kinds = Counter(type(play.read_from_s2(statement)) for statement in play.s2.statements)
    # One of the reservations is for the election.
    assert (kinds[Election], kinds[Reservation], kinds[Published]) == (1, 2, 1)


def test_two_workers_at_one_deadline(two_stage) -> None:
    play = two_stage("elected", k=2)
    for i in play.people:
        play.act(i)
    seen = play.s1.phase_attempt
    play.s1, _ = play.s1.make_step(end_phase, seen)
    play.s1, out = play.s1.make_step(end_phase, seen)
    assert (play.s1.phase, out) == (Phase.SUBMITTING, ())
    play.finish()
    assert play.counts() == ALL


def test_indicators_are_closed_once_the_request_is_made(two_stage) -> None:
    play = two_stage("drawn")
    for i in range(7):
        play.send_to_s1(play.people[i].indicator)
    first = play.deadline()
    assert play.send_to_s1(play.people[7].indicator)[0].why is Reason.LATE
    # No answer arrived, so the coordinator sends the same again.
    assert play.deadline() == first
    play.settle(first)
    play.finish()
    assert play.counts() == [*ALL[:7], 0]


def test_misuse_raises(two_stage) -> None:
    play = two_stage("drawn")
    with pytest.raises(ProtocolError):
        people.indicate(
            replace(play.people[0].member, index=-1), play.invitations[0], 0, play.entropy
        )
    with pytest.raises(ProtocolError):
        ballot_of(play.s1)


def test_a_coordinator_restored_before_its_request_adopts_the_election(two_stage) -> None:
    """The backup lacks an indicator: that client is in the election, and sends it again."""
    play = two_stage("drawn")
    for i in range(7):
        play.send_to_s1(play.people[i].indicator)
    backup = copy.deepcopy(play.s1)
    play.indicate()
    election = two_stage_state(play.s1).election
    play.s1, sync_request = backup.make_step(coordinator.start_resync)
    # No phase ends before the coordinator has synchronized.
    assert play.deadline() == sync_request
    play.settle(sync_request)
    assert two_stage_state(play.s1).election == election
    assert 7 in ballot_of(play.s1).eligible
    assert isinstance(play.visit(7), Roster)
    early = SlotBundle(play.params.survey, 7, play.people[7].member.credential, 1, ())
    assert play.send_to_s1(early)[0].why is Reason.EARLY
    assert isinstance(play.send_to_s1(play.people[7].indicator)[0], Acknowledgement)
    play.finish()
    assert play.counts() == ALL


def test_a_coordinator_restored_before_the_roster_confirmation_goes_on(two_stage) -> None:
    play = two_stage("open")
    enrolled = [play.exchange(client) for client in play.begun()]
    backup = copy.deepcopy(play.s1)
    play.settle(play.deadline())
    play.people = {i: play.exchange(client).state for i, client in enumerate(enrolled)}
    play.indicate()
    play.s1 = backup
    synchronize(play)
    assert play.s1.phase is Phase.SHARING
    for person in play.people.values():
        play.send_to_s1(person.indicator)
    play.finish()
    assert play.counts() == ALL


def test_a_coordinator_restored_while_sharing_asks_again(two_stage) -> None:
    play = two_stage("elected")
    backup = copy.deepcopy(play.s1)
    play.phase()
    play.s1 = backup
    play.finish()
    assert play.counts() == ALL


def test_a_coordinator_restored_to_another_set_does_not_get_sums_over_both(two_stage) -> None:
    """A helper that summed over the first set refuses the second one, and is replaced."""
    play = two_stage("elected", k=2)
    backup = copy.deepcopy(play.s1)
    play.phase()
    stubborn = play.waiting_for(SlotSumRequest)[0]
    play.act(stubborn)
    play.s1 = backup
    play.phase(skip=(6,))
    _, answer = people.answer_sum_request(play.people[stubborn], play.visit(stubborn), play.entropy)
    assert answer.why is Reason.CONFLICT
    play.phase(skip=(stubborn,))
    play.finish()
    assert play.counts() == [*ALL[:6], 0, 1]


def test_a_coordinator_restored_after_the_manifest_goes_on(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    play.phase()
    for i in play.people:
        play.act(i)
    backup = copy.deepcopy(play.s1)
    (manifest,) = play.deadline()
    play.send_to_s2(manifest)
    play.s1 = backup
    synchronize(play)
    assert play.counts() == ALL


def test_a_coordinator_restored_without_the_sums_aborts(two_stage) -> None:
    play = two_stage("shared")
    backup = copy.deepcopy(play.s1)
    (manifest,) = play.phase()
    play.send_to_s2(manifest)
    play.s1 = backup
    synchronize(play)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_a_coordinator_restored_before_the_election_learns_the_result(two_stage) -> None:
    play = two_stage("drawn")
    backup = copy.deepcopy(play.s1)
    play.indicate()
    play.finish()
    play.s1 = backup
    synchronize(play)
    assert play.s1.phase is Phase.PUBLISHED
    assert play.counts() == ALL


def test_a_coordinator_restored_after_unreadable_seeds_keeps_the_set(two_stage) -> None:
    play = two_stage("shared", k=2)
    backups = []
    tell = play.settle
    # Back up the coordinator when it has just fixed a manifest.
    play.settle = lambda out: (backups.append(copy.deepcopy(play.s1)), tell(out))
    play.bad_sums()
    play.settle = tell
    play.s1 = backups[-1]
    synchronize(play)
    assert play.s1.phase is Phase.SHARING
    play.finish()
    assert play.counts() == ALL


def test_a_restored_aggregator_aborts(two_stage) -> None:
    play = two_stage("shared")
    (manifest,) = play.phase()
    play.send_to_s2(manifest)
    play.s2, out = play.s2.make_step(aggregator.abort_after_restore)
    play.settle(out)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_sums_over_a_forgotten_set_are_refused(two_stage) -> None:
    play = two_stage("elected", k=2)
    others = list(play.people)[1:]
    for i in others:
        play.act(i)
    before = play.s1.copy()
    # User 0 has not reported.
    play.deadline()
    helper = play.waiting_for(SlotSumRequest)[0]
    play.people[helper], sums = two_stage_user.answer_sum_request(
        play.people[helper], play.visit(helper), play.entropy
    )
    play.send_to_s1(sums)
    play.s1 = before
    play.act(0)
    play.deadline()
    assert len(play.s1.members) == 8
    assert play.send_to_s1(sums)[0].why is Reason.LATE
    play.finish()
    accepted = [
        statement
        for statement in play.s2.statements
        if isinstance(statement.message, AcceptedMembers)
    ]
    # All seeds were decrypted in the first attempt.
    assert len(accepted) == 1
    assert play.counts() == [1] * 8

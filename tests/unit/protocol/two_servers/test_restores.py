"""`servers`: lost and repeated messages, crashes and restores."""

import pytest

from faircount.protocol import SERVERS, aggregator_step, resume
from faircount.protocol.roles import aggregator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.reservations import record_from
from faircount.protocol.topologies.two_servers.messages import AcceptedReports
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import (
    Published,
    Reason,
    Reservation,
    SyncRequest,
)

S = SERVERS


@pytest.fixture(params=["without proofs", "proven"])
def stage(request, stage, proven):
    """Run every test without proofs and with proofs, whose query must stay the same too."""
    return stage if request.param == "without proofs" else lambda topology, **terms: proven(**terms)


def test_every_message_between_the_servers_may_be_lost_or_come_twice(stage) -> None:
    """After every step the coordinator sends its messages again, three times."""
    play = stage(S)
    play.answer_all()
    play.deadline()
    for _ in range(6):
        for message in resume(play.s1.state, play.s1.rows) * 3:
            answers = play.send_to_s2(message)
        for answer in answers * 2:
            play.send_to_s1(answer)
    assert play.counts() == [1] * 6
    kinds = [type(play.read_from_s2(statement)) for statement in play.s2.statements]
    assert kinds == [Reservation, AcceptedReports, Published]


def test_the_aggregator_gives_the_same_result_after_a_crash_anywhere(stage) -> None:
    plays = []
    for crash in range(4):
        play = stage(S)
        play.answer_all()
        out = play.deadline()
        for step in range(3):
            before = play.s2
            answers = play.send_to_s2(out[0])
            # The answer is lost, and the write with it.
            if step == crash:
                play.s2 = before
                answers = play.send_to_s2(resume(play.s1.state, play.s1.rows)[0])
            # With proofs there is what was found about the part before there is the set.
            for answer in answers:
                out = play.send_to_s1(answer)
        plays.append(play)
    assert len({encode(play.s1.final.signed) for play in plays}) == 1


def test_a_coordinator_restored_before_its_manifest_adopts_the_recorded_one(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(5,))
    kept = play.s1.copy()
    (manifest,) = play.deadline()
    play.send_to_s2(manifest)
    play.s1 = kept
    # The restored coordinator accepts reports again, one more than before.
    play.send_to_s1(play.people[5].report)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 1, 1, 0]
    assert (
        len(
            [
                statement
                for statement in play.s2.statements
                if isinstance(play.read_from_s2(statement), Reservation)
            ]
        )
        == 1
    )


def test_a_coordinator_that_lost_reports_of_the_manifest_aborts(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(4, 5))
    kept = play.s1.copy()
    play.send_to_s1(play.people[4].report)
    (manifest,) = play.deadline()
    play.send_to_s2(manifest)
    play.s1 = kept
    play.settle((play.by_s1(SyncRequest(play.setup.params.survey)),))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_a_coordinator_restored_after_the_result_learns_it(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(4, 5))
    kept = play.s1.copy()
    play.send_to_s1(play.people[4].report)
    play.settle(play.deadline())
    play.s1 = kept
    play.settle((play.by_s1(SyncRequest(play.setup.params.survey)),))
    assert play.counts() == [1, 1, 1, 1, 1, 0]


def test_a_restored_coordinator_that_aborts_too_early_learns_the_result(stage) -> None:
    """The coordinator asks the aggregator to abort, and the aggregator knows of the result."""
    play = stage(S)
    kept = play.s1.copy()
    play.answer_all()
    play.settle(play.deadline())
    play.s1 = kept
    (request,) = play.deadline()
    assert play.s1.phase is Phase.SUBMITTING
    assert resume(play.s1.state, play.s1.rows) == (request,)
    play.settle((request,))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_restored_aggregator_aborts_and_charges_what_was_live(stage, steps) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(steps):
        out = play.send_to_s1(play.send_to_s2(out[0])[0])
    play.s2, aborted = play.s2.make_step(aggregator.abort_after_restore)
    play.settle(aborted)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.closed
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s2.phase is Phase.ABORTED


def test_a_coordinator_restored_before_its_manifest_cannot_release_the_budget(stage) -> None:
    """Encrypted shares are on their way when the coordinator is restored and aborts.

    It must not state that none were sent.
    """
    play = stage(S)
    empty = play.s1.copy()
    play.answer_all()
    (reservation,) = play.send_to_s2(play.deadline()[0])
    (batch,) = play.send_to_s1(reservation)
    play.s1 = empty
    (request,) = play.deadline()
    play.send_to_s2(request)
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT
    play.send_to_s2(batch)
    assert play.s2.phase is Phase.ABORTED


def test_a_restored_aggregator_closes_its_population_even_if_the_survey_is_over(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    after, out = play.s2.make_step(aggregator.abort_after_restore)
    assert (after.phase, out) == (Phase.PUBLISHED, ())
    assert after.ledger.closed
    assert after.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_a_closed_population_opens_with_the_reservations(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.send_to_s2(play.deadline()[0])
    reservation = play.s2.statements[-1].signed
    restored = play.setup.s2.ledger.close_after_restore(())
    assert restored.closed
    reopened = restored.reopen([record_from(play.read_from_s2(reservation))])
    assert not reopened.closed
    assert reopened.find(play.setup.params.survey).status is Status.SPENT


def test_a_survey_that_was_charged_before_a_restore_cannot_run_again(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    (manifest,) = play.deadline()
    (reservation,) = play.send_to_s2(manifest)
    reopened = play.setup.s2.ledger.close_after_restore(()).reopen(
        [record_from(play.read_from_s2(reservation))]
    )
    assert not reopened.closed
    fresh = play.setup.s2.replace_fields(ledger=reopened)
    _, (refused,) = fresh.make_step(aggregator_step, manifest)
    assert play.read_from_s2(refused).reason == Reason.CLOSED

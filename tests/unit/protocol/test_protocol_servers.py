"""The `servers` topology: one visit, claim before blobs, one included set, one sum, and what happens on failure."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, resume
from faircount.protocol.play import play as play_survey
from faircount.protocol.play import set_up
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.coordinator import backup
from faircount.protocol.survey.budget import Ledger, Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import (
    Aborted,
    Accepted,
    Batch,
    Inclusion,
    Inquiry,
    Published,
    Reason,
    Receipt,
    Refused,
    Rejected,
    SyncRequest,
    Wait,
)
from faircount.protocol.wire.sealing import IdealSealing
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import pack

S = SERVERS


def by_s1(stage, what):
    return sign(stage.s1.key, Party.S1, what)


def test_everybody_is_counted_once(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    assert play.counts() == [1] * 6
    assert play.s1.state is play.s2.state is State.PUBLISHED


def test_a_user_who_does_not_come_is_not_counted(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(2, 4))
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 0, 1, 0, 1]


def test_too_few_answers_abort_and_reveal_nothing(stage) -> None:
    play = stage(S, minimum=5)
    play.answer_all(skip=(0, 1))
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.claim is None
    assert play.s2.ledger.find(play.setup.params.survey) is None


def test_a_retry_is_the_same_bytes_and_is_accepted_even_late(stage) -> None:
    play = stage(S)
    play.answer_all()
    first = play.people[0]
    assert isinstance(play.tell_s1(first.body)[0], Accepted)
    play.settle(play.deadline())
    assert isinstance(play.tell_s1(first.body)[0], Accepted)
    assert play.counts() == [1] * 6


def test_a_second_draw_of_the_same_person_is_a_conflict(stage) -> None:
    play = stage(S)
    play.answer_all()
    again = servers_user.respond(play.setup.params, play.invitations[0], 3, play.entropy)
    (answer,) = play.tell_s1(again.body)
    assert answer.why is Reason.CONFLICT
    play.settle(play.deadline())
    assert play.counts() == [1] * 6


def test_a_late_answer_is_never_forwarded(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(5,))
    out = play.deadline()
    (answer,) = play.tell_s1(play.people[5].body)
    assert answer.why is Reason.LATE
    play.settle(out)
    assert play.counts() == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"access": bytes(32)}, Reason.UNKNOWN),
        ({"share": b""}, Reason.MALFORMED),
        ({"share": b"\xff" * 3}, Reason.MALFORMED),
        ({"blob": bytes(59)}, Reason.MALFORMED),
        ({"public_key": b"\xff" * 32}, Reason.MALFORMED),
        ({"survey": bytes(16)}, Reason.MALFORMED),
    ],
)
def test_bad_bodies_are_rejected_at_the_door(stage, change, reason) -> None:
    play = stage(S)
    play.answer_all(skip=(0,))
    (answer,) = play.tell_s1(replace(play.people[0].body, **change))
    assert isinstance(answer, Rejected)
    assert answer.why is reason


def test_a_public_key_belongs_to_one_user(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(0,))
    stolen = replace(play.people[0].body, public_key=play.people[1].public_key)
    assert play.tell_s1(stolen)[0].why is Reason.MALFORMED


def test_blobs_leave_only_with_a_receipt_and_only_those_of_the_claim(stage) -> None:
    play = stage(S)
    play.answer_all()
    (claim,) = play.deadline()
    assert play.said_by_s2(claim) is None  # S1 signed it, not S2
    assert resume(play.s1) == (claim,)
    (receipt,) = play.tell_s2(claim)
    assert isinstance(play.said_by_s2(receipt), Receipt)
    (batch,) = play.tell_s1(receipt)
    assert resume(play.s1) == (batch,)


def test_the_claim_tells_s2_nothing_about_the_shares(stage) -> None:
    """S2 knows the seed: a plain hash of share1 would let it try every response."""
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    claim = play.s2.claim
    assert isinstance(claim, ServersClaim)
    from hashlib import sha256

    for line in claim.entries:
        body = play.s1.bodies[line.user]
        assert sha256(body.share).digest() not in encode(claim)
        assert body.salt not in encode(claim)


def test_blobs_before_the_claim_are_refused(stage) -> None:
    play = stage(S)
    play.answer_all()
    early = by_s1(play, Batch(play.setup.params.survey, bytes(32), (b"x",)))
    (answer,) = play.tell_s2(early)
    assert play.said_by_s2(answer).reason == Reason.EARLY


def test_another_claim_gets_a_conflict_and_the_stored_receipt(stage) -> None:
    play = stage(S)
    play.answer_all()
    (claim,) = play.deadline()
    (receipt,) = play.tell_s2(claim)
    assert play.tell_s2(claim) == (receipt,)
    smaller = replace(play.s1.claim, entries=play.s1.claim.entries[1:])
    refused, stored = play.tell_s2(by_s1(play, smaller))
    assert play.said_by_s2(refused).reason == Reason.CONFLICT
    assert stored == receipt
    assert play.s2.claim == play.s1.claim


@pytest.mark.parametrize("spoil", ["order", "twice", "params", "few"])
def test_claims_that_s2_refuses(stage, spoil) -> None:
    play = stage(S)
    play.answer_all()
    play.deadline()
    lines = play.s1.claim.entries
    bad = {
        "order": replace(play.s1.claim, entries=lines[::-1]),
        "twice": replace(play.s1.claim, entries=(lines[0], *lines)),
        "params": replace(play.s1.claim, digest=bytes(32)),
        "few": replace(play.s1.claim, entries=lines[:2]),
    }[spoil]
    (answer,) = play.tell_s2(by_s1(play, bad))
    assert isinstance(play.said_by_s2(answer), Refused)
    assert play.s2.claim is None
    assert play.s2.state is State.ENROLLING


def test_s2_reads_only_what_s1_signed(stage) -> None:
    play = stage(S)
    play.answer_all()
    (claim,) = play.deadline()
    forged = replace(claim, signature=bytes(64))
    assert play.tell_s2(forged)[0].why is Reason.UNSIGNED
    assert play.tell_s2(play.s1.claim)[0].why is Reason.UNSIGNED
    assert play.tell_s1(sign(play.s1.key, Party.S2, SyncRequest(bytes(16))))[0].why is Reason.UNSIGNED


def test_a_wrong_batch_is_refused_and_the_right_one_still_taken(stage) -> None:
    play = stage(S)
    play.answer_all()
    (claim,) = play.deadline()
    (batch,) = play.tell_s1(play.tell_s2(claim)[0])
    blobs = [play.s1.bodies[line.user].blob for line in play.s1.claim.entries]
    wrong = Batch(play.setup.params.survey, play.s1.claim_hash, (*blobs[:-1], bytes(60)))
    assert play.said_by_s2(play.tell_s2(by_s1(play, wrong))[0]).reason == Reason.WRONG_BLOBS
    play.settle((batch,))
    assert play.counts() == [1] * 6


def test_a_blob_that_does_not_open_leaves_its_user_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    spoiled = replace(play.people[3].body, blob=bytes(60))
    assert isinstance(play.tell_s1(spoiled)[0], Accepted)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_a_share_swapped_under_its_blob_leaves_its_user_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    q, N = play.setup.params.q, play.setup.params.N
    swapped = replace(play.people[3].body, share=pack(np.zeros(N, dtype=np.uint8), q))
    play.tell_s1(swapped)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_an_entry_that_no_invitation_vouches_for_is_left_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    play.tell_s1(replace(play.people[3].body, mac=bytes(32)))
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_too_many_invented_entries_end_the_survey_without_a_charge(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(0, 1, 2, 3))
    for i in range(4):
        play.tell_s1(replace(play.people[i].body, mac=bytes(32)))
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.charges == ()


def test_too_many_blobs_that_do_not_open_abort_and_charge(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(0, 1, 2, 3))
    for i in range(4):
        play.tell_s1(replace(play.people[i].body, blob=bytes(60)))
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_every_message_between_the_servers_may_be_lost_or_come_twice(stage) -> None:
    """After each step S1 says its last word again, three times over: the result is the same."""
    play = stage(S)
    play.answer_all()
    play.deadline()
    for _ in range(6):
        for message in resume(play.s1) * 3:
            answers = play.tell_s2(message)
        for answer in answers * 2:
            play.tell_s1(answer)
    assert play.counts() == [1] * 6
    kinds = [type(play.said_by_s2(each)) for each in play.s2.statements]
    assert kinds == [Receipt, Included, Published]


def test_s2_gives_the_same_result_after_a_crash_anywhere(stage) -> None:
    plays = []
    for crash in range(4):
        play = stage(S)
        play.answer_all()
        out = play.deadline()
        for step in range(3):
            before = play.s2
            answers = play.tell_s2(out[0])
            if step == crash:  # the answer is lost and the write with it
                play.s2 = before
                answers = play.tell_s2(resume(play.s1)[0])
            out = play.tell_s1(answers[0])
        plays.append(play)
    assert len({encode(play.s1.final.signed) for play in plays}) == 1


def test_s1_restored_before_its_claim_adopts_the_one_that_s2_holds(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(5,))
    kept = backup(play.s1)
    (claim,) = play.deadline()
    play.tell_s2(claim)
    play.s1 = kept
    play.tell_s1(play.people[5].body)  # the restored S1 is open again and takes one more
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 1, 1, 0]
    assert len([each for each in play.s2.statements if isinstance(play.said_by_s2(each), Receipt)]) == 1


def test_s1_restored_to_before_answers_of_the_claim_gives_up(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(4, 5))
    kept = backup(play.s1)
    play.tell_s1(play.people[4].body)
    (claim,) = play.deadline()
    play.tell_s2(claim)
    play.s1 = kept
    play.settle((by_s1(play, SyncRequest(play.setup.params.survey)),))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_s1_restored_after_the_result_learns_it(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(4, 5))
    kept = backup(play.s1)
    play.tell_s1(play.people[4].body)
    play.settle(play.deadline())
    play.s1 = kept
    play.settle((by_s1(play, SyncRequest(play.setup.params.survey)),))
    assert play.counts() == [1, 1, 1, 1, 1, 0]


def test_s1_restored_that_gives_up_too_early_learns_the_result(stage) -> None:
    """S1 cannot end a survey alone: it asks S2, which knows better."""
    play = stage(S)
    kept = play.s1
    kept = backup(kept)
    play.answer_all()
    play.settle(play.deadline())
    play.s1 = kept
    (request,) = play.deadline()
    assert play.s1.state is State.SUBMITTING
    assert resume(play.s1) == (request,)
    play.settle((request,))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_s2_restored_aborts_and_charges_what_was_live(stage, steps) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(steps):
        out = play.tell_s1(play.tell_s2(out[0])[0])
    play.s2, aborted = aggregator.restored(play.s2)
    play.settle(aborted)
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.closed
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT
    play.settle(resume(play.s1))
    assert play.s2.state is State.ABORTED


def test_an_s1_restored_to_before_its_claim_cannot_release_the_budget(stage) -> None:
    """Blobs are on their way to S2 when S1 forgets everything and gives up: it must not say that none were sent."""
    play = stage(S)
    empty = coordinator.backup(play.s1)
    play.answer_all()
    (receipt,) = play.tell_s2(play.deadline()[0])
    (batch,) = play.tell_s1(receipt)
    play.s1 = empty
    (wish,) = play.deadline()
    play.tell_s2(wish)
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT
    play.tell_s2(batch)
    assert play.s2.state is State.ABORTED


def test_a_restored_s2_closes_its_population_even_if_the_survey_is_over(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    after, out = aggregator.restored(play.s2)
    assert (after.state, out) == (State.PUBLISHED, ())
    assert after.ledger.closed
    assert after.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_a_closed_population_opens_with_the_receipts(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.tell_s2(play.deadline()[0])
    receipt = play.s2.statements[-1].signed
    fresh = replace(play.setup.s2, ledger=play.setup.s2.ledger.restored(()))
    assert fresh.ledger.closed
    opened = aggregator.show_receipts(fresh, [receipt])
    assert not opened.ledger.closed
    assert opened.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_over_budget_aborts_without_a_charge(stage) -> None:
    play = stage(S)
    play.s2 = replace(play.s2, ledger=Ledger("", 0.5, 1.0))
    play.answer_all()
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.charges == ()


def test_the_ledger_must_be_the_populations(stage) -> None:
    play = stage(S, population="customers")
    play.s2 = replace(play.s2, ledger=Ledger("staff", 9.0, 1.0))
    play.answer_all()
    with pytest.raises(ProtocolError, match="another population"):
        play.settle(play.deadline())


def test_a_sum_out_of_range_is_corrupt_and_charged(stage) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(2):
        out = play.tell_s1(play.tell_s2(out[0])[0])
    wrong = ShareSum(play.setup.params.survey, _included_hash(play), pack(np.zeros(6, dtype=np.uint8), 7))
    (answer,) = play.tell_s2(by_s1(play, wrong))
    said = play.said_by_s2(answer)
    assert isinstance(said, Aborted)
    assert (said.reason, said.spent) == (b"corrupt", 1)
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def _included_hash(play) -> bytes:
    from hashlib import sha256

    return sha256(play.s1.included.signed.payload).digest()


def test_a_sum_over_another_set_is_refused(stage) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(2):
        out = play.tell_s1(play.tell_s2(out[0])[0])
    wrong = ShareSum(play.setup.params.survey, bytes(32), pack(np.zeros(6, dtype=np.uint8), 7))
    assert play.said_by_s2(play.tell_s2(by_s1(play, wrong))[0]).reason == Reason.WRONG_DIGEST
    play.settle(out)
    assert play.counts() == [1] * 6


def test_s1_sends_one_sum_whatever_else_s2_signs(stage) -> None:
    """A second included set, even under S2's signature, is not answered."""
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(2):
        out = play.tell_s1(play.tell_s2(out[0])[0])
    first = play.said_by_s2(play.s1.included)
    second = replace(first, members=b"\x07")
    assert play.tell_s1(sign(play.s2.key, Party.S2, second)) == ()
    assert resume(play.s1) == out


def test_a_user_can_check_that_it_was_counted(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    survey, access = play.setup.params.survey, play.invitations[0].access
    assert isinstance(play.tell_s1(Inquiry(survey, access))[0], Wait)
    play.settle(play.deadline())
    (proof,) = play.tell_s1(Inquiry(survey, access))
    assert isinstance(proof, Inclusion)
    assert servers_user.was_included(play.people[0], proof)
    assert not servers_user.was_included(play.people[1], proof)
    (answer,) = play.tell_s1(Inquiry(survey, play.invitations[3].access))
    assert answer.why is Reason.UNKNOWN


def test_an_invitation_to_other_parameters_is_not_answered(stage) -> None:
    play = stage(S)
    other = stage(S, seed=2)
    with pytest.raises(ProtocolError, match="other parameters"):
        servers_user.respond(play.setup.params, other.invitations[0], 0, play.entropy)


def test_it_runs_on_ideal_sealing_too(stage) -> None:
    play = stage(S, sealing=IdealSealing())
    play.answer_all(skip=(1,))
    play.settle(play.deadline())
    assert play.counts() == [1, 0, 1, 1, 1, 1]


def test_under_300_bytes_for_30_items_and_1000_users() -> None:
    sizes = {}
    for mechanism in (
        Laplace(items=30, users=1000, epsilon=1.0, dropouts=200),
        Decoys(items=30, users=1000, epsilon=1.0, delta=1e-6, dropouts=200),
    ):
        entropy = SeededStream(3)
        cast = set_up(mechanism, S, entropy)
        person = servers_user.respond(cast.params, cast.invitations[0], 7, entropy)
        sizes[mechanism.name] = len(encode(person.body))
    assert all(size < 300 for size in sizes.values()), sizes
    assert sizes == {"laplace": 248, "decoys": 248}


def test_a_played_survey_carries_its_guarantee() -> None:
    answers = np.arange(200) % 5
    result = play_survey(answers, Laplace(items=5, epsilon=1.0), SERVERS, entropy=SeededStream(5))
    published = result.facts["published"]
    assert result.included == published.included == 200
    assert abs(result.estimates - 0.2).max() < 0.1
    assert published.realized_epsilon == published.epsilon


def test_secrets_do_not_print(stage) -> None:
    play = stage(S)
    play.answer_all()
    shown = repr(play.people[0]) + repr(play.s1) + repr(play.s2) + repr(play.setup)
    for secret in (play.s2.box.secret, play.s2.key.secret, play.invitations[0].token, play.s1.key.secret):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown

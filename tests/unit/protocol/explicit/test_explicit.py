"""`explicit`: Algorithm 2 as printed, with sets that shrink when somebody vanishes."""

from dataclasses import replace

import numpy as np
import pytest
from stored_rows import spoil

from faircount.core.entropy import SeededStream
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.sampling import DPDS
from faircount.protocol import EXPLICIT
from faircount.protocol.peers import member as user
from faircount.protocol.peers import unmasking
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.simulator import play as play_survey
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import Complaint, PeerSum, ShareBundle
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, IdealCrypto
from faircount.protocol.wire.messages import (
    Acknowledgement,
    NotReady,
    Reason,
)
from faircount.sharing.field import subtract
from faircount.sharing.packing import packed_size, unpack

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


def test_everybody_is_counted_once(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED


def test_two_participants_do_not_enrol_with_one_key(stage) -> None:
    play = stage(E)
    first, second, *_ = (device.waiting[0] for device in play.begun())
    assert isinstance(play.send_to_s1(first)[0], Acknowledgement)
    (answer,) = play.send_to_s1(replace(second, public_key=first.public_key))
    assert answer.why is Reason.MALFORMED
    # Whoever has enrolled cannot take the key of somebody else, and keep them out with it.
    (answer,) = play.send_to_s1(replace(first, public_key=second.public_key))
    assert answer.why is Reason.CONFLICT
    # The rejected enrolments have left nothing: with a key of its own the client enrols.
    assert isinstance(play.send_to_s1(second)[0], Acknowledgement)


def test_the_sum_of_the_held_shares_is_the_sum_of_the_vectors(stage) -> None:
    """Algorithm 2, line 10: the sums add up to the responses, and no single one reveals anything."""
    play = ready(stage)
    play.share_all()
    params = play.setup.params
    wanted = explicit_coordinator.current_set(play.s1)
    taus = []
    for i, mine in enumerate(play.people):
        _, body = explicit_user.answer_sum_request(mine, play.visit(i), play.entropy)
        now = AttemptContext(params, play.s1.digest, wanted.attempt, wanted.set_digest)
        seed = unmasking.decrypt_from_member(play.s2, i, now.seed_info(i), body.encrypted_share)
        own = now.self_mask(play.s2.crypto, i, seed, params.N)
        taus.append(subtract(unpack(body.vector, params.q, params.N), own, params.q))
        others = [
            other.sent[i].astype(int) - mine.sent[j]
            for j, other in enumerate(play.people)
            if j != i
        ]
        assert ((mine.response + np.sum(others, axis=0)) % params.q).tolist() == taus[-1].tolist()
        assert taus[-1].tolist() != mine.response.tolist()
    assert (np.sum(taus, axis=0) % params.q).tolist() == [1] * 6


def test_bytes_that_others_were_given_are_not_mended(stage) -> None:
    """After the phase clients may have the damaged shares: they stay marked as damaged."""
    play = ready(stage)
    spoiled = play.people[1].bundle
    key = (ShareBundle.tag, 0, 1)
    play.send_to_s1(spoiled)
    spoil(
        play.s1, "uploads", key, replace(spoiled, encrypted_shares=spoiled.encrypted_shares[::-1])
    )  # a disk does this
    play.send_to_s1(spoiled)
    assert play.s1.view.uploads.intact(key) == spoiled  # there is time: mended
    play.share_all()
    spoil(
        play.s1, "uploads", key, replace(spoiled, encrypted_shares=spoiled.encrypted_shares[::-1])
    )
    assert isinstance(play.send_to_s1(spoiled)[0], Acknowledgement)
    assert play.s1.view.uploads.intact(key) is None


def test_who_does_not_share_is_not_in_the_first_set(stage) -> None:
    play = ready(stage)
    play.share_all(skip=(2,))
    assert play.s1.members == (0, 1, 3, 4, 5)
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 0, 1, 1, 1]


def test_who_does_not_send_its_sum_is_dropped_in_the_next_attempt(stage) -> None:
    play = ready(stage)
    play.share_all()
    assert play.sum_all(skip=(1,)) == ()
    assert (play.s1.attempt, play.s1.members) == (2, (0, 2, 3, 4, 5))
    assert play.sum_all(skip=(5,)) == ()
    play.settle(play.sum_all())
    assert play.counts() == [1, 0, 1, 1, 1, 0]
    assert play.s1.attempt == 3


def test_a_sum_for_an_earlier_set_comes_too_late(stage) -> None:
    play = ready(stage)
    play.share_all()
    call = play.visit(1)
    play.sum_all(skip=(1,))
    _, body = explicit_user.answer_sum_request(play.people[1], call, play.entropy)
    assert play.send_to_s1(body)[0].why is Reason.LATE
    play.settle(play.sum_all())
    assert play.counts() == [1, 0, 1, 1, 1, 1]


def test_attempts_run_out_in_words(stage) -> None:
    play = ready(stage, attempts=2)
    play.share_all()
    play.sum_all(skip=(1,))
    play.settle(play.sum_all(skip=(2,)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.read_from_s2(play.s1.final).code == EndCode.ATTEMPTS_USED
    assert play.s2.ledger.charges == ()


def test_too_few_left_abort(stage) -> None:
    play = ready(stage, minimum=5)
    play.share_all()
    play.settle(play.sum_all(skip=(1, 2)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.manifest is None


def test_too_few_enrol(stage) -> None:
    play = stage(E)
    for invitation in play.invitations[:2]:
        play.send_to_s1(user.enrol(play.setup.params, invitation, play.entropy).enrolment)
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_retries_are_the_same_bytes(stage) -> None:
    play = ready(stage)
    play.share_all()
    assert isinstance(play.send_to_s1(play.people[0].bundle)[0], Acknowledgement)
    call = play.visit(0)
    play.people[0], body = explicit_user.answer_sum_request(play.people[0], call, play.entropy)
    play.people[0], again = explicit_user.answer_sum_request(play.people[0], call, play.entropy)
    assert encode(again) == encode(body)
    for _ in range(2):
        assert isinstance(play.send_to_s1(body)[0], Acknowledgement)
    assert isinstance(play.visit(0), NotReady)


def test_a_second_bundle_is_a_conflict(stage) -> None:
    play = ready(stage)
    play.send_to_s1(play.people[0].bundle)
    other = explicit_user.share(play.people[0].member, (3,), play.entropy)
    assert play.send_to_s1(other.bundle)[0].why is Reason.CONFLICT


@pytest.mark.parametrize("change", [{"credential": bytes(32)}, {"index": 99}])
def test_uploads_need_the_users_credential(stage, change) -> None:
    play = ready(stage)
    assert play.send_to_s1(replace(play.people[0].bundle, **change))[0].why is Reason.UNKNOWN
    assert (
        play.send_to_s1(replace(user.poll_request(play.people[0].member), **change))[0].why
        is Reason.UNKNOWN
    )


def test_forms_are_checked_at_the_door(stage) -> None:
    play = ready(stage)
    bundle = play.people[0].bundle
    assert (
        play.send_to_s1(replace(bundle, encrypted_shares=bundle.encrypted_shares[1:]))[0].why
        is Reason.MALFORMED
    )
    assert (
        play.send_to_s1(replace(bundle, encrypted_shares=(b"", *bundle.encrypted_shares[1:])))[
            0
        ].why
        is Reason.MALFORMED
    )
    play.share_all()
    size = packed_size(play.setup.params.q, play.setup.params.N)
    for vector, seed in (
        (bytes(size), b"x"),
        (bytes(size + 1), bytes(ENCRYPTED_SEED_BYTES)),
        (b"\xff" * size, bytes(ENCRYPTED_SEED_BYTES)),
    ):
        short = PeerSum(bundle.survey, 0, bundle.credential, 1, bytes(32), vector, seed)
        assert play.send_to_s1(short)[0].why is Reason.MALFORMED
    accused = Complaint(bundle.survey, 0, bundle.credential, 1, (0,))
    assert play.send_to_s1(accused)[0].why is Reason.MALFORMED


def test_shares_that_do_not_open_separate_the_pair_only(stage) -> None:
    play = ready(stage)
    play.people[2] = replace(play.people[2], bundle=_spoiled(play.people[2].bundle, 3))
    play.share_all()
    assert play.sum_all() == ()  # the receiver complains instead of sending a sum
    assert (play.s1.members, play.s1.topology_state.removed) == (
        (0, 1, 2, 3, 4, 5),
        frozenset({(2, 4)}),
    )
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6


def _spoiled(bundle, at):
    return replace(
        bundle,
        encrypted_shares=(
            *bundle.encrypted_shares[:at],
            bytes(len(bundle.encrypted_shares[at])),
            *bundle.encrypted_shares[at + 1 :],
        ),
    )


def test_who_spoils_many_shares_is_dropped(stage) -> None:
    play = ready(stage)
    bundle = play.people[2].bundle
    for at in range(4):
        bundle = _spoiled(bundle, at)
    play.people[2] = replace(play.people[2], bundle=bundle)
    play.share_all()
    play.sum_all()
    assert play.s1.members == (0, 1, 3, 4, 5)
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 0, 1, 1, 1]


def test_costs_are_those_of_the_paper(stage) -> None:
    """(n-1) N elements sent and received, N to the aggregator: Table I as it should read."""
    n = 6
    play = ready(stage)
    params = play.setup.params
    one = packed_size(params.q, params.N) + 28
    assert [len(encrypted_share) for encrypted_share in play.people[0].bundle.encrypted_shares] == [
        one
    ] * (n - 1)
    play.share_all()
    call = play.visit(0)
    assert [len(encrypted_share) for encrypted_share in call.encrypted_shares] == [one] * (n - 1)
    _, body = explicit_user.answer_sum_request(play.people[0], call, play.entropy)
    assert (len(body.vector), len(body.encrypted_share)) == (one - 28, ENCRYPTED_SEED_BYTES)


def test_it_runs_on_ideal_sealing_too(stage) -> None:
    play = ready(stage, crypto=IdealCrypto())
    play.share_all(skip=(0,))
    play.sum_all(skip=(1,))
    play.settle(play.sum_all())
    assert play.counts() == [0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(items=4, epsilon=2.0),
        Decoys(items=4, epsilon=2.0, delta=1e-4),
        DPDS(items=4, epsilon=1.0, delta=1e-2, floor=6),
    ],
)
def test_played_surveys_carry_their_guarantee(mechanism) -> None:
    result = play_survey(np.arange(40) % 4, mechanism, EXPLICIT, entropy=SeededStream(5))
    published = result.facts["published"]
    assert result.included == published.included == 40
    assert abs(result.count_votes().estimates - 0.25).max() < 0.5
    assert int(published.realized_delta) <= int(published.delta)


def test_decoys_publish_the_coins_that_went_in() -> None:
    """Users flip unequal numbers of coins: the estimate uses those of the users who stayed."""
    mechanism = Decoys(items=4, users=10, epsilon=1.0, delta=1e-2, dropouts=3)
    who = (2, 3, 4, 5, 6, 7, 9)
    after = mechanism.for_included(who)
    assert isinstance(after, Decoys)
    assert mechanism.coins_of(np.array(who)) == after.D
    assert after.n == 7


def test_a_complaint_in_a_later_attempt_counts_as_absence(stage) -> None:
    """All shares travel with the first attempt, so an honest user complains there or never."""
    play = ready(stage)
    play.share_all()
    assert play.sum_all(skip=(5,)) == ()
    assert (play.s1.attempt, play.s1.members) == (2, (0, 1, 2, 3, 4))
    member = play.people[0].member
    late = Complaint(member.params.survey, 0, member.credential, 2, (1, 2, 3, 4))
    assert play.send_to_s1(late)[0].why is Reason.LATE
    assert play.sum_all(skip=(0,)) == ()
    assert (play.s1.members, play.s1.topology_state.removed) == ((1, 2, 3, 4), frozenset())
    play.settle(play.sum_all())
    assert play.counts() == [0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(("liars", "ends"), [(2, Phase.PUBLISHED), (3, Phase.ABORTED)])
def test_false_complaints_of_as_many_as_are_borne_leave_the_liars_out(stage, liars, ends) -> None:
    """n > 2c + phi: here n = 6, phi = 1. Each malicious client complains about everybody else."""
    play = ready(stage, minimum=4)
    play.share_all()
    for i in range(liars):
        member = play.people[i].member
        others = tuple(j for j in range(6) if j != i)
        play.send_to_s1(Complaint(member.params.survey, i, member.credential, 1, others))
    play.settle(play.sum_all(skip=range(liars)))
    if play.s1.final is None:
        play.settle(play.sum_all())
    assert play.s1.phase is play.s2.phase is ends

"""`explicit`: Algorithm 2 as printed, with sets that shrink when somebody vanishes."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.sampling import DPDS
from faircount.protocol import EXPLICIT, resume
from faircount.protocol.play import play as play_survey
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.coordinator import backup
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import Call, Complaint, ShareBundle, SumUpload
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Edge, Roster
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import (
    Accepted,
    BadBlobs,
    Batch,
    Inquiry,
    Reason,
    Receipt,
    Refused,
    SyncRequest,
    Wait,
)
from faircount.protocol.wire.roster_messages import BadEntries, Seal
from faircount.protocol.wire.sealing import IdealSealing
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import packed_size, unpack

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


def by_s1(play, what):
    return sign(play.s1.key, Party.S1, what)


def test_everybody_is_counted_once(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6
    assert play.s1.state is play.s2.state is State.PUBLISHED


def test_the_sum_of_the_held_shares_is_the_sum_of_the_vectors(stage) -> None:
    """Algorithm 2, line 10: what the users send adds up to what they hold, and no single one says anything."""
    play = ready(stage)
    play.share_all()
    params, wanted, taus = play.setup.params, explicit_coordinator.current_set(play.s1), []
    for i, mine in enumerate(play.people):
        _, body = explicit_user.answer_call(mine, play.visit(i), play.entropy)
        secret = play.s2.sealing.agree(play.s2.box, mine.member.keys.public)
        plain = play.s2.sealing.open(secret, play.s1.digest, explicit_user.sum_info(params, wanted, i), body.blob)
        taus.append(unpack(plain, params.q, params.N))
        others = [other.sent[i].astype(int) - mine.sent[j] for j, other in enumerate(play.people) if j != i]
        assert ((mine.response + np.sum(others, axis=0)) % params.q).tolist() == taus[-1].tolist()
        assert taus[-1].tolist() != mine.response.tolist()
    assert (np.sum(taus, axis=0) % params.q).tolist() == [1] * 6


def test_bytes_that_others_were_given_are_not_mended(stage) -> None:
    """The phase is over: users may have been sent the spoiled shares, so S1 must go on knowing that they are."""
    play = ready(stage)
    spoiled, key = play.people[1].bundle, (ShareBundle.tag, 0, 1)
    play.tell_s1(spoiled)
    play.s1.uploads._written[key] = replace(spoiled, blobs=spoiled.blobs[::-1])  # a disk does this
    play.tell_s1(spoiled)
    assert play.s1.uploads.intact(key) == spoiled  # there is time: mended
    play.share_all()
    play.s1.uploads._written[key] = replace(spoiled, blobs=spoiled.blobs[::-1])
    assert isinstance(play.tell_s1(spoiled)[0], Accepted)
    assert play.s1.uploads.intact(key) is None


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
    _, body = explicit_user.answer_call(play.people[1], call, play.entropy)
    assert play.tell_s1(body)[0].why is Reason.LATE
    play.settle(play.sum_all())
    assert play.counts() == [1, 0, 1, 1, 1, 1]


def test_attempts_run_out_in_words(stage) -> None:
    play = ready(stage, attempts=2)
    play.share_all()
    play.sum_all(skip=(1,))
    play.settle(play.sum_all(skip=(2,)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"attempts" in play.said_by_s2(play.s1.final).reason
    assert play.s2.ledger.charges == ()


def test_too_few_left_abort(stage) -> None:
    play = ready(stage, minimum=5)
    play.share_all()
    play.settle(play.sum_all(skip=(1, 2)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.claim is None


def test_too_few_enrol(stage) -> None:
    play = stage(E)
    for invitation in play.invitations[:2]:
        play.tell_s1(user.join(play.setup.params, invitation, play.entropy).enrolment)
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED


def test_retries_are_the_same_bytes(stage) -> None:
    play = ready(stage)
    play.share_all()
    assert isinstance(play.tell_s1(play.people[0].bundle)[0], Accepted)
    call = play.visit(0)
    play.people[0], body = explicit_user.answer_call(play.people[0], call, play.entropy)
    play.people[0], again = explicit_user.answer_call(play.people[0], call, play.entropy)
    assert encode(again) == encode(body)
    for _ in range(2):
        assert isinstance(play.tell_s1(body)[0], Accepted)
    assert isinstance(play.visit(0), Wait)


def test_a_second_bundle_is_a_conflict(stage) -> None:
    play = ready(stage)
    play.tell_s1(play.people[0].bundle)
    other = explicit_user.share(play.people[0].member, 3, play.entropy)
    assert play.tell_s1(other.bundle)[0].why is Reason.CONFLICT


@pytest.mark.parametrize("change", [{"credential": bytes(32)}, {"index": 99}])
def test_uploads_need_the_users_credential(stage, change) -> None:
    play = ready(stage)
    assert play.tell_s1(replace(play.people[0].bundle, **change))[0].why is Reason.UNKNOWN
    assert play.tell_s1(replace(user.visit(play.people[0].member), **change))[0].why is Reason.UNKNOWN


def test_forms_are_checked_at_the_door(stage) -> None:
    play = ready(stage)
    bundle = play.people[0].bundle
    assert play.tell_s1(replace(bundle, blobs=bundle.blobs[1:]))[0].why is Reason.MALFORMED
    assert play.tell_s1(replace(bundle, blobs=(b"", *bundle.blobs[1:])))[0].why is Reason.MALFORMED
    play.share_all()
    short = SumUpload(bundle.survey, 0, bundle.credential, 1, bytes(32), b"x")
    assert play.tell_s1(short)[0].why is Reason.MALFORMED
    accused = Complaint(bundle.survey, 0, bundle.credential, 1, (0,))
    assert play.tell_s1(accused)[0].why is Reason.MALFORMED


def test_shares_that_do_not_open_separate_the_pair_only(stage) -> None:
    play = ready(stage)
    play.people[2] = replace(play.people[2], bundle=_spoiled(play.people[2].bundle, 3))
    play.share_all()
    assert play.sum_all() == ()  # the receiver complains instead of sending a sum
    assert (play.s1.members, play.s1.removed) == ((0, 1, 2, 3, 4, 5), frozenset({(2, 4)}))
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6


def _spoiled(bundle, at):
    return replace(bundle, blobs=(*bundle.blobs[:at], bytes(len(bundle.blobs[at])), *bundle.blobs[at + 1 :]))


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


def test_sums_that_do_not_open_allow_one_further_claim_without_them(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    assert play.s2.claims == 1
    assert play.s2.state is State.SUBMITTING
    assert (play.s1.attempt, play.s1.members) == (2, (0, 1, 2, 3, 5))
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 1, 1, 0, 1]
    kinds = [type(play.said_by_s2(each)).__name__ for each in play.s2.statements]
    assert kinds == ["Seal", "Receipt", "BadBlobs", "Receipt", "Published"]


def test_after_the_further_claim_there_is_none(stage) -> None:
    play = ready(stage)
    play.share_all()
    for attempt, who in ((1, 4), (2, 3)):
        assert play.s1.attempt == attempt
        play.spoil(who)
        play.settle(play.sum_all(skip=(who,)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_the_further_claim_may_not_name_who_did_not_open(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    wanted = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 2, 3, 4)))
    claim = replace(
        play.s2.claim,
        attempt=2,
        members=wanted.bits,
        set_digest=wanted.set_digest,
        blob_hashes=play.s2.claim.blob_hashes[:5],
    )
    answer, receipt = play.tell_s2(by_s1(play, claim))
    assert play.said_by_s2(answer).reason == Reason.CONFLICT
    assert isinstance(play.said_by_s2(receipt), Receipt)  # an S1 that was restored learns what stands


def claimed(stage):
    play = ready(stage)
    play.share_all()
    (claim,) = play.sum_all()
    return play, claim


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 0}, Reason.WRONG_DIGEST),
        ({"members": b"\xff"}, Reason.MALFORMED),
        ({"members": b"\x1f"}, Reason.MALFORMED),
        ({"removed": (Edge(1, 0),)}, Reason.MALFORMED),
        ({"removed": (Edge(0, 1), Edge(0, 1))}, Reason.MALFORMED),
        ({"blob_hashes": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(stage, change, reason) -> None:
    play, _ = claimed(stage)
    (answer,) = play.tell_s2(by_s1(play, replace(play.s1.claim, **change)))
    refused = play.said_by_s2(answer)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert play.s2.claim is None


@pytest.mark.parametrize(
    ("attempt", "removed", "reason"),
    [(4, frozenset(), Reason.TOO_MANY_ATTEMPTS), (1, {(0, j) for j in range(1, 6)}, Reason.DISCONNECTED)],
)
def test_well_formed_sets_that_s2_refuses(stage, attempt, removed, reason) -> None:
    play, _ = claimed(stage)
    wanted = explicit_coordinator.current_set(replace(play.s1, attempt=attempt, removed=frozenset(removed)))
    claim = replace(play.s1.claim, attempt=attempt, removed=wanted.edges, set_digest=wanted.set_digest)
    (answer,) = play.tell_s2(by_s1(play, claim))
    assert play.said_by_s2(answer).reason == reason


def test_too_small_a_set_is_refused(stage) -> None:
    play, _ = claimed(stage)
    wanted = explicit_coordinator.current_set(replace(play.s1, members=(0, 1)))
    small = replace(
        play.s1.claim, members=wanted.bits, set_digest=wanted.set_digest, blob_hashes=play.s1.claim.blob_hashes[:2]
    )
    (answer,) = play.tell_s2(by_s1(play, small))
    assert play.said_by_s2(answer).reason in (Reason.TOO_FEW, Reason.DISCONNECTED)


def test_sums_made_for_another_set_do_not_open(stage) -> None:
    """S1 shows users different sets: S2 opens only what was sealed under the claimed one."""
    play, _ = claimed(stage)
    fooled = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 2, 3)))
    other = Call(play.setup.params.survey, 1, fooled.bits, (), tuple(b"" for _ in range(3)))
    fresh = replace(play.people[0], last=None, bodies=(), opened=np.ones(6, dtype=bool))
    body = explicit_user._body(fresh, fooled, play.entropy)
    assert isinstance(other, Call)
    assert isinstance(body, SumUpload)
    assert play.tell_s1(body)[0].why is Reason.LATE  # S1 itself would not take it
    key = SumUpload.tag, explicit_coordinator.current_set(play.s1).set_digest, 0
    del play.s1.uploads._hashes[key]
    play.s1.uploads.put(key, body)
    play.s1 = replace(play.s1, claim=None, state=State.SUBMITTING)
    play.settle(play.deadline())
    assert isinstance(play.said_by_s2(play.s2.last(BadBlobs)), BadBlobs)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempt": 9}, Reason.MALFORMED),
        ({"members": b"\x3e"}, Reason.MALFORMED),
        ({"members": b"\x03"}, Reason.TOO_FEW),
        ({"blobs": ()}, Reason.MALFORMED),
    ],
)
def test_calls_that_a_user_refuses(stage, change, reason) -> None:
    play = ready(stage)
    play.share_all()
    call = replace(play.visit(0), **change)
    same, answer = explicit_user.answer_call(play.people[0], call, play.entropy)
    assert answer.why is reason
    assert same == play.people[0] or same is play.people[0]


def test_a_user_does_not_take_part_in_two_sets_of_one_attempt(stage) -> None:
    play = ready(stage)
    play.share_all()
    call = play.visit(0)
    play.people[0], _ = explicit_user.answer_call(play.people[0], call, play.entropy)
    _, answer = explicit_user.answer_call(play.people[0], replace(call, members=b"\x1f"), play.entropy)
    assert answer.why is Reason.CONFLICT
    grown = replace(call, attempt=2, blobs=())
    play.people[0], body = explicit_user.answer_call(play.people[0], replace(grown, members=b"\x1f"), play.entropy)
    assert isinstance(body, SumUpload)
    _, answer = explicit_user.answer_call(play.people[0], replace(grown, attempt=3), play.entropy)
    assert answer.why is Reason.CONFLICT


def test_users_believe_only_the_roster_that_s2_sealed(stage) -> None:
    play = ready(stage)
    member = replace(play.people[0].member, index=-1, roster=(), digest=b"")
    (roster,) = play.tell_s1(Inquiry(play.setup.params.survey, play.invitations[0].access))
    assert isinstance(roster, Roster)
    fewer = replace(roster, entries=roster.entries[1:])
    forged = replace(roster, seal=replace(roster.seal, signature=bytes(64)))
    assert user.verify_roster(member, fewer).why is Reason.WRONG_DIGEST
    assert user.verify_roster(member, forged).why is Reason.UNSIGNED
    assert user.verify_roster(replace(member, user=bytes(16)), roster).why is Reason.UNKNOWN
    assert user.verify_roster(replace(member, digest=bytes(32)), roster).why is Reason.CONFLICT
    other = stage(E, seed=9)
    assert user.verify_roster(replace(member, params=other.setup.params), roster).why is Reason.UNSIGNED


def test_s2_must_reveal_what_it_committed_to(stage) -> None:
    play = stage(E)
    play.s2 = replace(play.s2, committed=b"another value, of 32 bytes as well"[:32])
    joined = [user.join(play.setup.params, each, play.entropy) for each in play.setup.invitations]
    for each in joined:
        play.tell_s1(each.enrolment)
    play.settle(play.deadline())
    (roster,) = play.tell_s1(Inquiry(play.setup.params.survey, play.invitations[0].access))
    assert user.verify_roster(joined[0], roster).why is Reason.WRONG_DIGEST


def test_an_invented_roster_entry_is_named_and_left_out(stage) -> None:
    play = stage(E)
    joined = [user.join(play.setup.params, each, play.entropy) for each in play.setup.invitations]
    for i, each in enumerate(joined):
        play.tell_s1(replace(each.enrolment, mac=bytes(32)) if i == 2 else each.enrolment)
    (request,) = play.deadline()
    (answer,) = play.tell_s2(request)
    assert isinstance(play.said_by_s2(answer), BadEntries)
    play.settle((answer,))
    assert play.s1.state is State.SHARING
    assert play.s1.n == 5


def test_one_roster_is_sealed(stage) -> None:
    play = ready(stage)
    smaller = replace(play.s2.roster, entries=play.s2.roster.entries[1:])
    refused, stored = play.tell_s2(by_s1(play, smaller))
    assert play.said_by_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.said_by_s2(stored), Seal)
    assert play.tell_s2(by_s1(play, play.s2.roster)) == (stored,)


def test_s1_restored_before_the_seal_adopts_it(stage) -> None:
    play = stage(E)
    joined = [user.join(play.setup.params, each, play.entropy) for each in play.setup.invitations]
    for each in joined[:4]:
        play.tell_s1(each.enrolment)
    kept = backup(play.s1)
    play.tell_s1(joined[4].enrolment)
    play.settle(play.deadline())
    play.s1 = kept
    play.tell_s1(joined[5].enrolment)
    play.settle(play.deadline())
    assert play.s1.state is State.SHARING
    assert play.s1.n == 5
    assert play.s1.digest == play.s2.digest
    assert isinstance(play.tell_s1(joined[4].enrolment)[0], Accepted)  # whom the restored S1 had forgotten


def test_s1_restored_after_the_claim_goes_on(stage) -> None:
    play = ready(stage)
    play.share_all()
    for i in play.s1.members:
        play.people[i], body = explicit_user.answer_call(play.people[i], play.visit(i), play.entropy)
        play.tell_s1(body)
    kept = backup(play.s1)
    (claim,) = play.deadline()
    play.tell_s2(claim)
    play.s1 = kept
    play.settle((by_s1(play, SyncRequest(play.setup.params.survey)),))
    assert play.counts() == [1] * 6


def test_s1_restored_without_the_sums_gives_up(stage) -> None:
    play = ready(stage)
    play.share_all()
    kept = backup(play.s1)
    (claim,) = play.sum_all()
    play.tell_s2(claim)
    play.s1 = kept
    play.settle((by_s1(play, SyncRequest(play.setup.params.survey)),))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_s2_restored_aborts(stage) -> None:
    play, claim = claimed(stage)
    play.tell_s2(claim)
    play.s2, out = aggregator.restored(play.s2)
    play.settle(out)
    assert play.s1.state is play.s2.state is State.ABORTED


def test_s2_restored_before_the_seal_tells_s1_when_it_asks(stage) -> None:
    play = stage(E)
    for each in play.setup.invitations:
        play.tell_s1(user.join(play.setup.params, each, play.entropy).enrolment)
    play.s2, _ = aggregator.restored(play.s2)  # the word is lost
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED


def test_every_message_between_the_servers_may_come_again(stage) -> None:
    play, _ = claimed(stage)
    for _ in range(4):
        for message in resume(play.s1) * 3:
            answers = play.tell_s2(message)
        for answer in answers * 2:
            play.tell_s1(answer)
    assert play.counts() == [1] * 6
    assert sum(isinstance(play.said_by_s2(each), Receipt) for each in play.s2.statements) == 1


def test_blobs_of_another_claim_are_refused(stage) -> None:
    play, claim = claimed(stage)
    play.tell_s2(claim)
    wrong = by_s1(play, Batch(play.setup.params.survey, bytes(32), ()))
    assert play.said_by_s2(play.tell_s2(wrong)[0]).reason == Reason.CONFLICT


def test_costs_are_those_of_the_paper(stage) -> None:
    """(n-1) N elements sent and received, N to S2: Table I as it should read."""
    n, play = 6, ready(stage)
    params = play.setup.params
    one = packed_size(params.q, params.N) + 28
    assert [len(blob) for blob in play.people[0].bundle.blobs] == [one] * (n - 1)
    play.share_all()
    call = play.visit(0)
    assert [len(blob) for blob in call.blobs] == [one] * (n - 1)
    _, body = explicit_user.answer_call(play.people[0], call, play.entropy)
    assert len(body.blob) == one


def test_it_runs_on_ideal_sealing_too(stage) -> None:
    play = ready(stage, sealing=IdealSealing())
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
    assert abs(result.estimates - 0.25).max() < 0.5
    assert int(published.realized_delta) <= int(published.delta)


def test_decoys_publish_the_coins_that_went_in() -> None:
    """Users flip unequal numbers of coins: the estimate uses those of the users who stayed."""
    mechanism = Decoys(items=4, users=10, epsilon=1.0, delta=1e-2, dropouts=3)
    who = (2, 3, 4, 5, 6, 7, 9)
    after = mechanism.as_included(who)
    assert isinstance(after, Decoys)
    assert mechanism.coins_of(np.array(who)) == after.D
    assert after.n == 7

"""`masked`: what S1, S2 and users refuse: other sets, other keys, bad blobs, sets that fall apart."""

from dataclasses import replace

import pytest

from faircount.protocol import resume
from faircount.protocol.roles import coordinator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.masked import coordinator as masked_rules
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import (
    HelpCall,
    MaskCall,
    MaskedClaim,
    MaskedSum,
    Recovery,
)
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    BadBlobs,
    Inquiry,
    Reason,
    Refused,
    Wait,
)
from faircount.protocol.wire.sealing import IdealSealing
from faircount.protocol.wire.signing import sign


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


# --- wrong sets, wrong keys, bad blobs ----------------------------------------------------------------------------


def test_sums_that_do_not_open_are_dropped_in_one_further_claim(masked) -> None:
    play = masked("shared")
    play.spoil(4)
    play.settle(play.sum_all(skip=(4, 9)))
    kinds = [type(play.said_by_s2(each)).__name__ for each in play.s2.statements]
    assert kinds == ["Seal", "Receipt", "BadBlobs", "Receipt", "Recovery"]
    play.settle(play.recover())
    assert play.counts() == without(20, 4, 9)


def test_a_sum_made_for_another_set_does_not_open(masked) -> None:
    """S1 shows a user another set than the others: its sum cannot be combined with theirs."""
    play = masked("shared")
    call = play.visit(0)
    other = PeerSet(play.s1.digest, 1, 20, tuple(i for i in range(20) if i != 15))
    live = list(play.people[0].placed.neighbours)
    kept = [at for at, j in enumerate(live) if j != 15]
    shown = replace(
        call,
        members=other.bits,
        mask_keys=tuple(call.mask_keys[at] for at in kept),
        blobs=tuple(call.blobs[at] for at in kept),
    )
    _, body = masked_user.answer_call(play.people[0], shown, play.entropy)
    assert play.tell_s1(body)[0].why is Reason.LATE  # S1 itself would not take it
    body = replace(body, keys_digest=masked_rules._keys_around(play.s1, 0))
    play.s1.uploads.put((MaskedSum.tag, play.s1.own.set_digest, 0), body)
    play.settle(play.sum_all(skip=(0,)))
    assert play.said_by_s2(play.s2.last(BadBlobs)).positions == (0,)
    play.settle(play.recover())
    assert play.counts() == without(20, 0)


def test_a_mask_key_that_s1_changes_on_the_way_is_noticed(masked) -> None:
    """The share beside it was sealed for the true one: it does not open, and the user says so."""
    play = masked("shared")
    call = play.visit(0)
    changed = replace(call, mask_keys=(play.people[0].mask.public, *call.mask_keys[1:]))
    _, body = masked_user.answer_call(play.people[0], changed, play.entropy)
    assert body.lacking == (min(play.people[0].placed.neighbours),)


def test_a_mask_key_that_s1_changes_in_the_claim_gives_no_result(masked) -> None:
    play = masked("shared")
    play.sum_all(skip=(3,))
    keys = list(play.s1.claim.mask_keys)
    keys[3] = keys[4]
    play.s1 = coordinator.with_claim(play.s1, replace(play.s1.claim, mask_keys=tuple(keys)))
    play.settle(resume(play.s1))
    play.settle(play.recover())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.held is None


def test_after_the_further_claim_there_is_none(masked) -> None:
    play = masked("shared")
    play.spoil(4)
    (claim,) = play.sum_all(skip=(4,))
    (receipt,) = play.tell_s2(claim)
    (batch,) = play.tell_s1(receipt)
    (bad,) = play.tell_s2(batch)
    assert play.tell_s2(batch) == (bad,)
    (further,) = play.tell_s1(bad)
    (receipt,) = play.tell_s2(further)
    play.s2 = replace(play.s2, sealing=IdealSealing())  # now S2 can open nothing
    play.settle(play.tell_s1(receipt))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_the_further_claim_only_leaves_users_out(masked) -> None:
    """It may not bring another blob of anybody, another set, or somebody whose blob did not open."""
    play = masked("shared")
    play.spoil(4)
    (claim,) = play.sum_all(skip=(4, 9))
    (receipt,) = play.tell_s2(claim)
    (batch,) = play.tell_s1(receipt)
    (bad,) = play.tell_s2(batch)
    play.tell_s1(bad)
    further = play.s1.claim
    others = [
        replace(further, blob_hashes=(bytes(32), *further.blob_hashes[1:])),
        replace(further, mask_keys=(further.mask_keys[1], *further.mask_keys[1:])),
        replace(
            further,
            included=bitmap(set(range(20)) - {0, 9}, 20),
            blob_hashes=tuple(each for i, each in enumerate(play.s2.claim.blob_hashes) if i),
        ),
    ]
    for other in others:
        answer, _ = play.tell_s2(play.by_s1(other))
        assert play.said_by_s2(answer).reason == Reason.CONFLICT
    play.settle(resume(play.s1))
    play.settle(play.recover())
    assert play.counts() == without(20, 4, 9)


def test_bad_blobs_whose_senders_cannot_be_recovered_end_the_survey(masked) -> None:
    play = masked("shared", t=8)  # every neighbour is needed
    play.spoil(4)
    play.spoil(next(iter(play.people[4].placed.neighbours)))
    play.settle(play.sum_all(skip=(4, next(iter(play.people[4].placed.neighbours)))))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


# --- falling apart ------------------------------------------------------------------------------------------------


def cut_off(play):
    """Two users on the ring, and the eight around them without whom they are alone."""
    order = play.s1.own.graph.order.tolist()
    return set(order[8:10]), set(order[4:8]) | set(order[10:14])


@pytest.mark.parametrize(("attempts", "ends"), [(1, State.ABORTED), (2, State.PUBLISHED)])
def test_who_is_cut_off_is_dropped_before_the_claim(masked, attempts, ends) -> None:
    play = masked("shared", attempts=attempts)
    alone, around = cut_off(play)
    play.settle(play.sum_all(skip=around))
    assert play.s2.claim is None
    if attempts == 2:
        assert set(play.s1.members) == set(range(20)) - alone - around
        play.settle(play.sum_all())
        assert play.counts() == without(20, *alone, *around)
    assert play.s1.state is play.s2.state is ends


def test_who_is_cut_off_while_sharing_is_not_in_the_set(masked) -> None:
    play = masked("enrolled")
    alone, around = cut_off(play)
    play.share_all(skip=around)
    assert set(play.s1.members) == set(range(20)) - alone - around
    play.settle(play.sum_all())
    assert play.counts() == without(20, *alone, *around)


def altered(play, everybody, part, **change):
    wanted = PeerSet(play.s1.digest, 1, 20, tuple(sorted(everybody)))
    hashes = tuple(bytes(32) for _ in part)
    keys = tuple(play.people[i].mask.public for i in wanted.members)
    bits = bitmap(part, 20)
    claim = MaskedClaim(play.setup.params.survey, play.s1.digest, 1, wanted.bits, bits, wanted.set_digest, keys, hashes)
    return replace(claim, **change)


def test_s2_refuses_a_part_that_falls_apart_or_cannot_be_recovered(masked) -> None:
    play = masked("shared")
    alone, around = cut_off(play)
    everybody = set(range(20))
    for included, reason in (
        (everybody - around, Reason.DISCONNECTED),
        (everybody - around - alone, Reason.TOO_FEW),
        ({0, *play.people[0].placed.neighbours} - {0}, Reason.TOO_FEW),
    ):
        claim = altered(play, everybody, included)
        (answer,) = play.tell_s2(play.by_s1(claim))
        assert play.said_by_s2(answer).reason == reason
    assert play.s2.claim is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 2}, Reason.WRONG_DIGEST),
        ({"members": bytes(2)}, Reason.MALFORMED),
        ({"members": b"\xff\xff\xff"}, Reason.MALFORMED),
        ({"included": bytes(3)}, Reason.MALFORMED),
        ({"mask_keys": ()}, Reason.MALFORMED),
        ({"mask_keys": (b"\xff" * 32,) * 20}, Reason.MALFORMED),
        ({"blob_hashes": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(masked, change, reason) -> None:
    play = masked("shared")
    (answer,) = play.tell_s2(play.by_s1(altered(play, range(20), range(20), **change)))
    refused = play.said_by_s2(answer)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert play.s2.claim is None


def test_attempts_have_an_end_at_s2_too(masked) -> None:
    play = masked("shared", attempts=1)
    wanted = PeerSet(play.s1.digest, 2, 20, tuple(range(20)))
    claim = altered(play, range(20), range(20), attempt=2, set_digest=wanted.set_digest)
    assert play.said_by_s2(play.tell_s2(play.by_s1(claim))[0]).reason == Reason.TOO_MANY_ATTEMPTS


def test_too_small_a_part_is_refused(masked) -> None:
    play = masked("shared", n=6, k=5, t=2, minimum=4)
    wanted = PeerSet(play.s1.digest, 1, 6, tuple(range(6)))
    keys = tuple(each.mask.public for each in play.people)
    three = bitmap((0, 1, 2), 6), wanted.set_digest, keys, (bytes(32),) * 3
    claim = MaskedClaim(play.setup.params.survey, play.s1.digest, 1, wanted.bits, *three)
    assert play.said_by_s2(play.tell_s2(play.by_s1(claim))[0]).reason == Reason.TOO_FEW


# --- what a user refuses ------------------------------------------------------------------------------------------


def asks(play, i=0):
    member = play.people[i].member
    return replace(member, index=-1, digest=b""), play.inquire(member)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda near: {"lines": near.lines[1:]}, Reason.WRONG_DIGEST),
        (lambda near: {"lines": (near.lines[1], near.lines[0], *near.lines[2:])}, Reason.WRONG_DIGEST),
        (lambda near: {"hashes": near.hashes[1:]}, Reason.WRONG_DIGEST),
        (lambda near: {"hashes": (*near.hashes, bytes(32))}, Reason.WRONG_DIGEST),
        (lambda near: {"index": near.index + 1}, Reason.WRONG_DIGEST),
        (lambda near: {"index": 20}, Reason.TOO_FEW),
        (lambda near: {"seal": replace(near.seal, signature=bytes(64))}, Reason.UNSIGNED),
    ],
)
def test_users_believe_only_lines_of_the_roster_that_s2_sealed(masked, change, reason) -> None:
    play = masked("enrolled")
    member, near = asks(play)
    assert masked_user.verify_roster(member, replace(near, **change(near))).why is reason
    assert isinstance(masked_user.verify_roster(member, near), masked_user.Placed)


def test_a_user_believes_in_one_roster_with_its_own_key(masked) -> None:
    play = masked("enrolled")
    member, near = asks(play)
    assert masked_user.verify_roster(replace(member, user=bytes(16)), near).why is Reason.UNKNOWN
    assert masked_user.verify_roster(replace(member, digest=bytes(32)), near).why is Reason.CONFLICT
    strangers = replace(member.params, keys=replace(member.params.keys, commitment=bytes([1]) * 32))
    assert masked_user.verify_roster(replace(member, params=strangers), near).why is Reason.WRONG_DIGEST
    large = replace(member.params, minimum=20)
    assert masked_user.verify_roster(replace(member, params=large), near).why is Reason.WRONG_DIGEST


def test_who_is_not_on_the_roster_has_no_place(masked) -> None:
    play = masked("enrolled", skip=(5,))
    survey, (absent,) = play.setup.params.survey, set(play.setup.invitations) - set(play.invitations)
    assert play.tell_s1(Inquiry(survey, absent.access))[0].why is Reason.UNKNOWN
    assert play.tell_s1(Inquiry(survey, bytes(32)))[0].why is Reason.UNKNOWN
    fresh = masked("open")
    assert isinstance(fresh.tell_s1(Inquiry(fresh.setup.params.survey, fresh.invitations[0].access))[0], Wait)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempt": 9}, Reason.MALFORMED),
        ({"members": bitmap(range(1, 20), 20)}, Reason.MALFORMED),
        ({"members": bytes(2)}, Reason.MALFORMED),
        ({"members": bitmap((0, 1), 20)}, Reason.TOO_FEW),
        ({"mask_keys": ()}, Reason.MALFORMED),
        ({"blobs": ()}, Reason.MALFORMED),
    ],
)
def test_calls_that_a_user_refuses(masked, change, reason) -> None:
    play = masked("shared")
    same, answer = masked_user.answer_call(play.people[0], replace(play.visit(0), **change), play.entropy)
    assert answer.why is reason
    assert same is play.people[0]


def test_a_set_without_enough_neighbours_is_refused(masked) -> None:
    """Without masks the vector would be bare: a user checks that t of its neighbours are in the set."""
    play = masked("shared")
    near = list(play.people[0].placed.neighbours)
    call = play.visit(0)
    lonely = replace(
        call, members=bitmap(set(range(20)) - set(near[2:]), 20), mask_keys=call.mask_keys[:2], blobs=call.blobs[:2]
    )
    assert masked_user.answer_call(play.people[0], lonely, play.entropy)[1].why is Reason.TOO_FEW


def test_a_user_takes_part_in_one_set_of_an_attempt_and_in_smaller_ones_later(masked) -> None:
    play = masked("shared")
    call = play.visit(0)
    play.people[0], body = masked_user.answer_call(play.people[0], call, play.entropy)
    other = replace(call, members=bitmap(range(19), 20))
    assert masked_user.answer_call(play.people[0], other, play.entropy)[1].why is Reason.CONFLICT
    larger = replace(play.people[0], last=replace(play.people[0].last, members=tuple(range(19))))
    assert masked_user.answer_call(larger, replace(call, attempt=2), play.entropy)[1].why is Reason.CONFLICT
    assert masked_user.answer_call(play.people[0], call, play.entropy)[1] == body


def stated(play, **change):
    statement = Recovery(play.setup.params.survey, play.s2.claim_hash, play.s2.claim.set_digest, play.s2.claim.included)
    return HelpCall(sign(play.s2.key, Party.S2, replace(statement, **change)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"survey": bytes(16)}, Reason.UNSIGNED),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"included": bytes(3)}, Reason.MALFORMED),
        ({"included": bitmap((1, 2), 20)}, Reason.MALFORMED),
        ({"included": bitmap((0, 1), 20)}, Reason.TOO_FEW),
        ({"included": bitmap(range(20), 20)}, Reason.EARLY),
    ],
)
def test_key_shares_that_a_user_does_not_give(masked, change, reason) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    _, answer = masked_user.answer_help(play.people[0], stated(play, **change), play.entropy)
    assert answer.why is reason


def test_key_shares_are_given_for_one_statement_of_s2_only(masked) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    helper = next(i for i in range(20) if isinstance(play.visit(i), HelpCall))
    call = play.visit(helper)
    forged = HelpCall(sign(play.s1.key, Party.S2, play.said_by_s2(call.statement)))
    assert masked_user.answer_help(play.people[helper], forged, play.entropy)[1].why is Reason.UNSIGNED
    play.people[helper], body = masked_user.answer_help(play.people[helper], call, play.entropy)
    again = masked_user.answer_help(play.people[helper], call, play.entropy)[1]
    assert encode(again) == encode(body)
    fewer = stated(play, included=bitmap(range(1, 20), 20))
    assert masked_user.answer_help(play.people[helper], fewer, play.entropy)[1].why is Reason.CONFLICT
    later = MaskCall(play.setup.params.survey, 2, bitmap(set(range(20)) - {3, 7, 12}, 20), (), ())
    assert masked_user.answer_call(play.people[helper], later, play.entropy)[1].why is Reason.CONFLICT


def test_who_sent_no_sum_gives_no_key_shares(masked) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    call = HelpCall(play.s1.own.recovery.signed)
    assert masked_user.answer_help(play.people[3], call, play.entropy)[1].why is Reason.WRONG_DIGEST
    assert isinstance(play.visit(3), Wait)

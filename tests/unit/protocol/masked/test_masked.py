"""`masked`: masks that cancel, users who vanish at any point, and keys that are recovered for nobody else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.remaining_privacy import realized
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.masks import Round, help_info, masks_of
from faircount.protocol.topologies.masked.messages import (
    Help,
    HelpBatch,
    MaskCall,
    MaskedSum,
)
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    Accepted,
    Batch,
    Inquiry,
    Published,
    Reason,
    Receipt,
)
from faircount.sharing.field import add, subtract
from faircount.sharing.packing import unpack
from faircount.sharing.shamir import SHARE_BYTES, KeyShare

RING = {"n": 20, "k": 8, "t": 3}


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


@pytest.mark.parametrize("terms", [{"n": 3, "k": 2, "t": 2}, {"n": 6, "k": 5, "t": 3}, RING])
def test_everybody_is_counted_once(masked, terms) -> None:
    play = masked("shared", **terms)
    play.settle(play.sum_all())
    assert play.counts() == [1] * terms["n"]
    assert play.s1.state is play.s2.state is State.PUBLISHED


def test_masks_cancel_over_the_set_and_hide_every_part_of_it(masked) -> None:
    play = masked("shared")
    q, wanted = play.setup.params.q, PeerSet(play.s1.digest, 1, 20, play.s1.members)
    now = Round(play.setup.params, play.s1.digest, 1, wanted.set_digest)
    keys = {i: each.mask.public for i, each in enumerate(play.people)}
    masks = [
        masks_of(play.s2.sealing, now, i, each.mask, {j: keys[j] for j in each.placed.neighbours})
        for i, each in enumerate(play.people)
    ]
    assert not (np.sum(masks, axis=0, dtype=np.int64) % q).any()
    assert all((np.sum(masks[:i], axis=0, dtype=np.int64) % q).any() for i in range(1, 20))
    play.come(4)
    opened = unpack(plain_sum(play, 4), q, 20)
    assert subtract(opened, masks[4], q).tolist() == without(20, *(set(range(20)) - {4}))
    assert opened.tolist() == add(play.people[4].response, masks[4], q).tolist()


def plain_sum(play, i):
    wanted = PeerSet(play.s1.digest, play.s1.attempt, play.s1.n, play.s1.members)
    now = Round(play.setup.params, play.s1.digest, play.s1.attempt, wanted.set_digest)
    secret = play.s2.sealing.agree(play.s2.box, play.people[i].member.keys.public)
    body = play.s1.uploads[MaskedSum.tag, play.s1.own.set_digest, i]
    return play.s2.sealing.open(secret, play.s1.digest, now.sum_info(i), body.blob)


def test_dropouts_at_every_phase_are_left_out_and_nobody_else(masked) -> None:
    play = masked("enrolled", skip=(5,))
    assert play.s1.n == 19
    play.share_all(skip=(2, 11))  # after enrolment
    assert set(play.s1.members) == set(range(19)) - {2, 11}
    play.settle(play.sum_all(skip=(3, 7, 12)))  # after sharing their keys
    assert play.s1.state is play.s2.state is State.RECOVERING
    play.settle(play.recover(skip=(0, 18)))  # before helping
    assert play.counts() == [*without(19, 2, 3, 7, 11, 12), 0]
    final = play.said_by_s2(play.s1.final)
    left = realized(play.setup.params.mechanism, 14, play.setup.params.epsilon)
    assert final.included == 14
    assert int(final.realized_delta) >= int(left.delta * 2**128)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(phases=st.lists(st.sampled_from("." * 12 + "esrh"), min_size=20, max_size=20), attempts=st.integers(1, 3))
def test_whoever_vanishes_the_sum_is_that_of_the_claimed_set_or_there_is_none(masked, phases, attempts) -> None:
    """Each user vanishes before it enrols, shares, submits, helps, or not at all."""
    play = masked("enrolled", skip=[i for i, phase in enumerate(phases) if phase == "e"], attempts=attempts)
    ways = [phase for phase in phases if phase != "e"]
    play.share_all(skip={i for i, phase in enumerate(ways) if phase == "s"})
    while play.s1.state is State.SUBMITTING and play.s1.final is None:
        play.settle(play.sum_all(skip={i for i, phase in enumerate(ways) if phase in "sr"}))
    if play.s1.state is State.RECOVERING:
        play.settle(play.recover(skip={i for i, phase in enumerate(ways) if phase == "h"}))
    assert play.s1.state is play.s2.state
    if play.s1.state is State.PUBLISHED:
        claimed = set(play.s1.own.included)
        assert play.counts() == [int(i in claimed) for i in range(20)]
        assert not {i for i, phase in enumerate(ways) if phase in "sr"} & claimed
    else:
        assert play.s1.state is State.ABORTED
        assert play.s2.held is None


def test_too_few_left_end_the_survey(masked) -> None:
    play = masked("enrolled", minimum=18)
    play.share_all(skip=(0, 1, 2))
    assert play.s1.state is play.s2.state is State.ABORTED
    play = masked("shared", minimum=18)
    play.settle(play.sum_all(skip=(0, 1, 2)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.claim is None
    assert play.s2.ledger.charges == ()


def test_a_roster_too_small_for_the_threshold_is_refused_by_its_users(masked) -> None:
    play = masked("open", n=8, k=7, t=5)
    joined = [user.join(play.setup.params, each, play.entropy) for each in play.invitations[:5]]
    for each in joined:
        play.tell_s1(each.enrolment)
    play.settle(play.deadline())
    (near,) = play.tell_s1(Inquiry(play.setup.params.survey, joined[0].enrolment.access))
    assert masked_user.verify_roster(joined[0], near).why is Reason.TOO_FEW
    play.settle(play.deadline())
    assert play.s1.state is play.s2.state is State.ABORTED


def test_a_late_sum_is_refused_and_never_reaches_s2(masked) -> None:
    play = masked("shared")
    call = play.visit(3)
    claim = play.sum_all(skip=(3,))
    play.people[3], late = masked_user.answer_call(play.people[3], call, play.entropy)
    assert play.tell_s1(late)[0].why is Reason.LATE
    play.settle(claim)
    assert play.s1.state is State.RECOVERING
    assert play.tell_s1(late)[0].why is Reason.LATE
    assert (MaskedSum.tag, play.s1.own.set_digest, 3) not in play.s1.uploads
    play.settle(play.recover())
    assert play.tell_s1(late)[0].why is Reason.LATE
    assert play.counts() == without(20, 3)


def test_s2_gets_the_key_shares_of_dropped_users_and_of_nobody_else(masked) -> None:
    play = masked("recovering")
    play.recover()
    for i in range(20):
        help_ = play.s1.uploads.get((Help.tag, 0, i))
        gone = [j for j in (3, 7) if j in play.people[i].placed.neighbours]
        assert (help_ is not None) == bool(gone and i not in (3, 7))
        if help_ is not None:
            parts = opened_help(play, i)
            assert [KeyShare.from_bytes(part).dealing for part in parts] == [dealing(play, j, i) for j in gone]


def opened_help(play, i):
    secret = play.s2.sealing.agree(play.s2.box, play.people[i].member.keys.public)
    info = help_info(play.setup.params, i, play.s2.claim_hash)
    plain = play.s2.sealing.open(secret, play.s1.digest, info, play.s1.uploads[Help.tag, 0, i].blob)
    return [plain[at : at + SHARE_BYTES] for at in range(0, len(plain), SHARE_BYTES)]


def test_a_key_share_counts_only_from_whom_it_was_dealt_to(masked) -> None:
    """Three of eight helpers send somebody else's share: no three good ones stand in a row, and it is put together."""
    play = masked("recovering", gone=(3,))
    near = sorted(play.people[3].placed.neighbours)
    for at in (0, 3, 6):
        other = play.people[near[at + 1]].shares[3]
        play.people[near[at]] = replace(play.people[near[at]], shares={**play.people[near[at]].shares, 3: other})
    play.settle(play.recover())
    assert play.counts() == without(20, 3)


def dealing(play, dealer, holder):
    return KeyShare.from_bytes(play.people[holder].shares[dealer]).dealing


def test_a_mask_key_is_used_for_nothing_else(masked) -> None:
    """Whoever recovers it learns no key of the roster, and two users never have one in common."""
    play = masked("shared")
    masks, others = {each.mask.public for each in play.people}, {each.member.keys.public for each in play.people}
    assert len(masks) == 20
    assert not masks & others
    again = masked("enrolled")
    stolen = replace(again.people[0].bundle, mask_key=again.people[1].member.keys.public)
    assert again.tell_s1(stolen)[0].why is Reason.MALFORMED


def test_claim_before_blobs_and_blobs_of_the_claim_only(masked) -> None:
    play = masked("shared")
    (claim,) = play.sum_all(skip=(3,))
    batch = play.by_s1(Batch(play.setup.params.survey, play.s1.claim_hash, ()))
    assert play.said_by_s2(play.tell_s2(batch)[0]).reason == Reason.EARLY
    (receipt,) = play.tell_s2(claim)
    assert play.tell_s2(claim) == (receipt,)
    (sent,) = play.tell_s1(receipt)
    wrong = play.by_s1(Batch(play.setup.params.survey, play.s1.claim_hash, (b"",)))
    assert play.said_by_s2(play.tell_s2(wrong)[0]).reason == Reason.WRONG_BLOBS
    play.settle((sent,))
    assert play.s2.state is State.RECOVERING


def test_another_claim_is_a_conflict_at_any_time(masked) -> None:
    play = masked("recovering")
    other = replace(play.s2.claim, included=play.s2.claim.members)
    refused, receipt = play.tell_s2(play.by_s1(other))
    assert play.said_by_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.said_by_s2(receipt), Receipt)
    play.settle(play.recover())
    assert play.counts() == without(20, 3, 7)
    refused, published = play.tell_s2(play.by_s1(other))
    assert play.said_by_s2(refused).reason == Reason.CLOSED
    assert isinstance(play.said_by_s2(published), Published)


def test_help_comes_after_the_batch(masked) -> None:
    play = masked("shared")
    (claim,) = play.sum_all(skip=(3,))
    play.tell_s2(claim)
    early = play.by_s1(HelpBatch(play.setup.params.survey, play.s1.claim_hash, bytes(3), ()))
    assert play.said_by_s2(play.tell_s2(early)[0]).reason == Reason.EARLY
    assert play.tell_s1(Help(play.setup.params.survey, 0, play.people[0].member.credential, b""))[0].why is Reason.LATE


@pytest.mark.parametrize("change", [{"claim_hash": bytes(32)}, {"helpers": b""}, {"blobs": ()}])
def test_help_that_is_none(masked, change) -> None:
    play = masked("recovering")
    (sent,) = play.recover()
    batch = replace(HelpBatch(play.setup.params.survey, play.s1.claim_hash, b"", ()), **change)
    assert play.said_by_s2(play.tell_s2(play.by_s1(batch))[0]).reason == Reason.WRONG_DIGEST
    play.settle((sent,))
    assert play.counts() == without(20, 3, 7)


def test_too_few_helpers_end_the_survey_with_nothing_revealed(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(skip=near[2:]))  # two of three shares
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"neighbours" in play.said_by_s2(play.s1.final).reason
    assert play.s2.held is None
    assert not any(isinstance(play.said_by_s2(each), Published) for each in play.s2.statements)
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_exactly_enough_helpers_do(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(skip=near[3:]))
    assert play.counts() == without(20, 3)


@pytest.mark.parametrize(("helpers", "ends"), [(4, State.PUBLISHED), (3, State.ABORTED)])
def test_one_helper_who_lies_does_not_stop_the_others(masked, helpers, ends) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    liar = play.people[near[1]]
    part = KeyShare.from_bytes(liar.shares[3])
    lie = replace(part, value=part.value ^ 1).to_bytes()
    play.people[near[1]] = replace(liar, shares={**liar.shares, 3: lie})
    play.settle(play.recover(skip=near[helpers:]))
    assert play.s1.state is play.s2.state is ends
    assert play.s2.held is None


def test_help_that_does_not_open_counts_for_nothing(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    member = play.people[near[0]].member
    assert isinstance(play.tell_s1(Help(member.params.survey, near[0], member.credential, bytes(73)))[0], Accepted)
    play.settle(play.recover())
    assert play.counts() == without(20, 3)


@pytest.mark.parametrize(("attempts", "ends"), [(1, State.ABORTED), (2, State.PUBLISHED)])
def test_who_deals_bad_shares_and_vanishes_costs_an_attempt(masked, attempts, ends) -> None:
    """Neighbours say whose share they could not open: S1 sees that the key is lost before anything reaches S2."""
    play = masked("enrolled", attempts=attempts)
    bad = play.people[3].bundle
    play.people[3] = replace(play.people[3], bundle=replace(bad, blobs=tuple(bytes(len(each)) for each in bad.blobs)))
    play.share_all()
    play.settle(play.sum_all(skip=(3,)))
    assert play.s2.claim is None
    if attempts == 2:
        assert (play.s1.attempt, set(play.s1.members)) == (2, set(range(20)) - {3})
        play.settle(play.sum_all())
        assert play.counts() == without(20, 3)
    assert play.s1.state is play.s2.state is ends


@pytest.mark.parametrize(("absent", "ends"), [(0, State.PUBLISHED), (1, State.ABORTED)])
def test_helpers_who_lack_a_share_do_not_count(masked, absent, ends) -> None:
    """Three of eight neighbours can open their share: all three must come back, whatever the others send."""
    play = masked("enrolled")
    bundle = play.people[3].bundle
    spoiled = tuple(blob if at < 3 else bytes(len(blob)) for at, blob in enumerate(bundle.blobs))
    play.people[3] = replace(play.people[3], bundle=replace(bundle, blobs=spoiled))
    play.share_all()
    play.settle(play.sum_all((3,)))
    assert play.s1.state is State.RECOVERING
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(near[:absent]))
    assert play.s1.state is play.s2.state is ends


def test_who_deals_bad_shares_is_left_out_even_if_it_stays(masked) -> None:
    """Its sum may be no better than its shares: then nobody could help to remove its masks, and all was in vain."""
    play = masked("enrolled")
    bad = play.people[3].bundle
    play.people[3] = replace(play.people[3], bundle=replace(bad, blobs=tuple(bytes(len(each)) for each in bad.blobs)))
    play.share_all()
    first = play.s1.own.set_digest
    assert play.sum_all() == ()
    assert play.s1.uploads[MaskedSum.tag, first, min(play.people[3].placed.neighbours)].lacking == (3,)
    play.settle(play.sum_all())
    assert play.counts() == without(20, 3)


def test_a_sum_of_the_first_attempt_is_not_for_the_second(masked) -> None:
    play = masked("enrolled")
    bad = play.people[3].bundle
    play.people[3] = replace(play.people[3], bundle=replace(bad, blobs=tuple(bytes(len(each)) for each in bad.blobs)))
    play.share_all()
    play.sum_all(skip=(3,))
    first = play.people[0].bodies[0]
    assert isinstance(play.tell_s1(first)[0], Accepted)  # the same bytes again
    play.people[0], second = masked_user.answer_call(play.people[0], play.visit(0), play.entropy)
    assert second.attempt == 2
    assert second.blob != first.blob
    old = MaskCall(play.setup.params.survey, 1, bitmap(range(20), 20), (), ())
    assert masked_user.answer_call(play.people[0], old, play.entropy)[1] == first

"""`masked`: masks that cancel, dropouts at any point, and keys that are recovered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faircount.protocol.peers import member as user
from faircount.protocol.peers import unmasking
from faircount.protocol.peers.peer_set import PeerSet
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.remaining_privacy import remaining_guarantee
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.masks import mask_secrets, masks_of, unmask_info
from faircount.protocol.topologies.masked.messages import (
    MaskedSum,
    MaskedSumRequest,
    UnmaskBatch,
    UnmaskShares,
    Unrecoverable,
)
from faircount.protocol.wire.crypto import KeyPair
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    Acknowledgement,
    Published,
    Reason,
    Reservation,
)
from faircount.sharing.field import add, subtract
from faircount.sharing.packing import unpack
from faircount.sharing.shamir import KeyShare

RING = {"n": 20, "k": 8, "t": 3}


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


@pytest.mark.parametrize("terms", [{"n": 3, "k": 2, "t": 2}, {"n": 6, "k": 5, "t": 3}, RING])
def test_everybody_is_counted_once(masked, terms) -> None:
    play = masked("shared", **terms)
    play.settle(play.sum_all())
    assert play.counts() == [1] * terms["n"]
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED


def test_masks_cancel_over_the_set_and_hide_every_part_of_it(masked) -> None:
    play = masked("shared")
    q = play.setup.params.q
    wanted = PeerSet(play.s1.digest, 1, 20, play.s1.members)
    now = AttemptContext(play.setup.params, play.s1.digest, 1, wanted.set_digest)
    keys = {i: person.mask.public for i, person in enumerate(play.people)}
    crypto = play.s2.crypto
    masks = [
        masks_of(
            crypto,
            now,
            i,
            mask_secrets(crypto, person.mask, {j: keys[j] for j in person.placed.neighbours}),
        )
        for i, person in enumerate(play.people)
    ]
    assert not (np.sum(masks, axis=0, dtype=np.int64) % q).any()
    assert all((np.sum(masks[:i], axis=0, dtype=np.int64) % q).any() for i in range(1, 20))
    play.come(4)
    opened = plain_sum(play, 4)
    assert subtract(opened, masks[4], q).tolist() == without(20, *(set(range(20)) - {4}))
    assert opened.tolist() == add(play.people[4].response, masks[4], q).tolist()


def plain_sum(play, i):
    wanted = PeerSet(play.s1.digest, play.s1.attempt, play.s1.n, play.s1.members)
    now = AttemptContext(play.setup.params, play.s1.digest, play.s1.attempt, wanted.set_digest)
    body, params = (
        play.s1.view.uploads[MaskedSum.tag, play.s1.topology_state.set_digest, i],
        play.setup.params,
    )
    seed = unmasking.decrypt_from_member(play.s2, i, now.seed_info(i), body.encrypted_share)
    return subtract(
        unpack(body.vector, params.q, 20), now.self_mask(play.s2.crypto, i, seed, 20), params.q
    )


def test_dropouts_at_every_phase_are_left_out_and_nobody_else(masked) -> None:
    play = masked("enrolled", skip=(5,))
    assert play.s1.n == 19
    play.share_all(skip=(2, 11))  # after enrolment
    assert set(play.s1.members) == set(range(19)) - {2, 11}
    play.settle(play.sum_all(skip=(3, 7, 12)))  # after sharing their keys
    assert play.s1.phase is Phase.UNMASKING
    play.settle(play.recover(skip=(0, 18)))  # before helping
    assert play.counts() == [*without(19, 2, 3, 7, 11, 12), 0]
    final = play.read_from_s2(play.s1.final)
    left = remaining_guarantee(play.setup.params.mechanism, 14, play.setup.params.epsilon)
    assert final.included == 14
    assert int(final.realized_delta) >= int(left.delta * 2**128)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    phases=st.lists(st.sampled_from("." * 12 + "esrh"), min_size=20, max_size=20),
    attempts=st.integers(1, 3),
)
def test_whoever_vanishes_the_sum_is_that_of_the_claimed_set_or_there_is_none(
    masked, phases, attempts
) -> None:
    """Each user vanishes before it enrols, shares, submits, helps, or not at all."""
    play = masked(
        "enrolled", skip=[i for i, phase in enumerate(phases) if phase == "e"], attempts=attempts
    )
    ways = [phase for phase in phases if phase != "e"]
    play.share_all(skip={i for i, phase in enumerate(ways) if phase == "s"})
    while play.s1.phase is Phase.SUBMITTING and play.s1.final is None:
        play.settle(play.sum_all(skip={i for i, phase in enumerate(ways) if phase in "sr"}))
        if play.s1.phase is Phase.UNMASKING:
            play.settle(play.recover(skip={i for i, phase in enumerate(ways) if phase == "h"}))
    assert play.s1.phase is play.s2.phase
    if play.s1.phase is Phase.PUBLISHED:
        accepted = set(play.s1.topology_state.accepted)
        assert play.counts() == [int(i in accepted) for i in range(20)]
        assert not {i for i, phase in enumerate(ways) if phase in "sr"} & accepted
    else:
        assert play.s1.phase is Phase.ABORTED
        assert play.s2.partial_sum is None


def test_too_few_left_end_the_survey(masked) -> None:
    play = masked("enrolled", minimum=18)
    play.share_all(skip=(0, 1, 2))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    play = masked("shared", minimum=18)
    play.settle(play.sum_all(skip=(0, 1, 2)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.manifest is None
    assert play.s2.ledger.charges == ()


def test_a_roster_too_small_for_the_threshold_is_refused_by_its_users(masked) -> None:
    play = masked("open", n=8, k=7, t=5)
    members = [
        user.enrol(play.setup.params, invitation, play.entropy)
        for invitation in play.invitations[:5]
    ]
    for member in members:
        play.send_to_s1(member.enrolment)
    play.settle(play.deadline())
    near = play.inquire(members[0])
    assert masked_user.verify_roster(members[0], near).why is Reason.TOO_FEW
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_a_late_sum_is_refused_and_never_reaches_s2(masked) -> None:
    play = masked("shared")
    call = play.visit(3)
    manifest = play.sum_all(skip=(3,))
    play.people[3], late = masked_user.answer_sum_request(play.people[3], call, play.entropy)
    assert play.send_to_s1(late)[0].why is Reason.LATE
    play.settle(manifest)
    assert play.s1.phase is Phase.UNMASKING
    assert play.send_to_s1(late)[0].why is Reason.LATE
    assert (MaskedSum.tag, play.s1.topology_state.set_digest, 3) not in play.s1.view.uploads
    play.settle(play.recover())
    assert play.send_to_s1(late)[0].why is Reason.LATE
    assert play.counts() == without(20, 3)


def test_a_mask_key_is_used_for_nothing_else(masked) -> None:
    """Whoever recovers it learns no key of the roster, and two users never have one in common."""
    play = masked("shared")
    masks, others = (
        {person.mask.public for person in play.people},
        {person.member.keys.public for person in play.people},
    )
    assert len(masks) == 20
    assert not masks & others
    again = masked("enrolled")
    stolen = replace(again.people[0].bundle, mask_key=again.people[1].member.keys.public)
    assert again.send_to_s1(stolen)[0].why is Reason.MALFORMED


def test_another_claim_is_a_conflict_at_any_time(masked) -> None:
    play = masked("recovering")
    other = replace(play.s2.manifest, set_digest=bytes(32))
    refused, reservation = play.send_to_s2(play.by_s1(other))
    assert play.read_from_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.read_from_s2(reservation), Reservation)
    play.settle(play.recover())
    assert play.counts() == without(20, 3, 7)
    refused, published = play.send_to_s2(play.by_s1(other))
    assert play.read_from_s2(refused).reason == Reason.CLOSED
    assert isinstance(play.read_from_s2(published), Published)


@pytest.mark.parametrize(
    "change", [{"manifest_hash": bytes(32)}, {"helpers": b""}, {"encrypted_shares": ()}]
)
def test_help_that_is_none(masked, change) -> None:
    play = masked("recovering")
    (sent,) = play.recover()
    batch = replace(
        UnmaskBatch(play.setup.params.survey, play.s1.manifest_hash, b"", (), ()), **change
    )
    assert play.read_from_s2(play.send_to_s2(play.by_s1(batch))[0]).reason == Reason.WRONG_DIGEST
    play.settle((sent,))
    assert play.counts() == without(20, 3, 7)


def test_exactly_enough_helpers_do(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(skip=near[3:]))
    assert play.counts() == without(20, 3)


def test_help_that_does_not_open_counts_for_nothing(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    member = play.people[near[0]].member
    garbage = UnmaskShares(
        member.params.survey,
        near[0],
        member.credential,
        play.s1.topology_state.set_digest,
        bytes(60),
    )
    assert isinstance(play.send_to_s1(garbage)[0], Acknowledgement)
    play.settle(play.recover())
    assert play.counts() == without(20, 3)


def test_s2_gets_message_keys_of_what_dropped_users_dealt_and_of_nothing_else(masked) -> None:
    play = masked("recovering")
    play.recover()
    digest = play.s1.topology_state.set_digest
    for i in range(20):
        help_ = play.s1.view.uploads.get((UnmaskShares.tag, digest, i))
        gone = [j for j in (3, 7) if j in play.people[i].placed.neighbours]
        assert (help_ is not None) == bool(gone and i not in (3, 7))
        if help_ is not None:
            keys = opened_help(play, i, help_)
            dealt = [
                play.people[j].bundle.encrypted_shares[
                    list(play.people[j].placed.neighbours).index(i)
                ]
                for j in gone
            ]
            opened = [
                play.s2.crypto.decrypt_with_key(key, encrypted_share)
                for key, encrypted_share in zip(keys, dealt, strict=True)
            ]
            assert [KeyShare.from_bytes(data).threshold for data in opened] == [3] * len(gone)


def opened_help(play, i, help_):
    secret = play.s2.crypto.agree(play.s2.encryption_keys, play.people[i].member.keys.public)
    info = unmask_info(play.setup.params, i, play.s2.manifest_hash)
    plain = play.s2.crypto.decrypt(secret, play.s1.digest, info, help_.encrypted_share)
    return [plain[at : at + 32] for at in range(0, len(plain), 32)]


def test_help_comes_after_the_set_is_named(masked) -> None:
    play = masked("shared")
    early = play.by_s1(UnmaskBatch(play.setup.params.survey, bytes(32), bytes(3), (), ()))
    assert play.read_from_s2(play.send_to_s2(early)[0]).reason == Reason.EARLY
    help_ = UnmaskShares(
        play.setup.params.survey,
        0,
        play.people[0].member.credential,
        play.s1.topology_state.set_digest,
        b"",
    )
    assert play.send_to_s1(help_)[0].why is Reason.LATE


@pytest.mark.parametrize(("attempts", "ends"), [(1, Phase.ABORTED), (2, Phase.PUBLISHED)])
def test_too_few_helpers_cost_an_attempt_and_no_budget(masked, attempts, ends) -> None:
    play = masked("recovering", gone=(3,), attempts=attempts)
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(skip=near[2:]))  # two of three shares
    assert [type(statement.message) for statement in play.s2.statements][3] is Unrecoverable
    assert play.s2.partial_sum is None
    if attempts == 2:
        assert (play.s1.attempt, set(play.s1.members)) == (2, set(range(20)) - {3})
        play.settle(play.sum_all())
        assert play.counts() == without(20, 3)
    else:
        assert play.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED
    assert play.s1.phase is play.s2.phase is ends


def deal_wrong_shares(play, i) -> None:
    """User i gives other message keys than those of its shares."""
    secrets = {j: bytes(32) for j in play.people[i].secrets}
    play.people[i] = replace(play.people[i], secrets=secrets)


@pytest.mark.parametrize("honest", [8, 4, 3])
def test_helpers_who_lie_do_not_stop_the_others(masked, honest) -> None:
    """They can withhold a share, and not change it: any three that open will do."""
    play = masked("recovering", gone=(3,))
    for i in list(play.people[3].placed.neighbours)[honest:]:
        deal_wrong_shares(play, i)
    play.settle(play.recover())
    assert play.counts() == without(20, 3)


def deals_wrongly(play, i) -> None:
    """Client i deals shares that decrypt and give no key: half of one dealing, half of another."""
    other = masked_user.make_report(
        play.people[i].placed, play.people[i].response, play.people[i].mask, play.entropy
    )
    one = play.people[i].bundle
    two = other.bundle
    encrypted_shares = tuple(
        (one if at % 2 else two).encrypted_shares[at] for at in range(len(one.encrypted_shares))
    )
    play.people[i] = replace(play.people[i], bundle=replace(one, encrypted_shares=encrypted_shares))


def test_a_dealer_of_wrong_shares_who_vanishes_is_left_out_and_the_survey_goes_on(masked) -> None:
    play = masked("enrolled", t=6)
    deals_wrongly(play, 3)
    play.share_all()
    play.settle(play.sum_all(skip=(3,)))
    play.settle(play.recover())
    assert (play.s1.phase, play.s1.attempt) == (Phase.SUBMITTING, 2)
    play.settle(play.sum_all())
    assert play.counts() == without(20, 3)


def test_a_dealer_of_shares_of_another_key_is_found_out(masked) -> None:
    """The shares combine to a key, but not to the one whose public half is in the manifest."""
    play = masked("enrolled")
    user = play.people[3]
    other = play.s2.crypto.keypair(play.entropy)
    false = masked_user.make_report(
        user.placed, user.response, KeyPair(other.secret, user.mask.public), play.entropy
    )
    play.people[3] = replace(user, bundle=false.bundle)
    play.share_all()
    play.settle(play.sum_all(skip=(3,)))
    play.settle(play.recover())
    assert isinstance(play.s2.statements[-1].message, Unrecoverable)
    play.settle(play.sum_all())
    assert play.counts() == without(20, 3)


def test_a_dealer_of_wrong_shares_who_stays_is_counted(masked) -> None:
    play = masked("enrolled", t=6)
    deals_wrongly(play, 3)
    play.share_all()
    play.settle(play.sum_all())
    assert play.counts() == [1] * 20


def test_wrong_dealers_who_leave_one_by_one_cost_an_attempt_each(masked) -> None:
    """Ten attempts tolerate nine of them (docs/explanation/protocol.md); here two tolerate one."""
    play = masked("enrolled", t=6, attempts=2)
    for i in (3, 4):
        deals_wrongly(play, i)
    play.share_all()
    for gone in (3, 4):
        play.settle(play.sum_all(skip=(3, gone)))
        play.settle(play.recover())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED


def test_a_vector_of_the_first_attempt_is_not_for_the_second(masked) -> None:
    play = masked("recovering", gone=(3,))
    first = play.people[0].first_messages[0]
    play.settle(play.recover(skip=range(20)))
    assert play.s1.attempt == 2
    assert isinstance(
        play.send_to_s1(first)[0], Acknowledgement
    )  # the same bytes again: the coordinator knows them by their hash
    assert not play.s1.view.uploads.get((MaskedSum.tag, first.set_digest, 0))
    play.people[0], second = masked_user.answer_sum_request(
        play.people[0], play.visit(0), play.entropy
    )
    assert second.attempt == 2
    assert (second.encrypted_share, second.vector) != (first.encrypted_share, first.vector)
    old = MaskedSumRequest(play.setup.params.survey, 1, bitmap(range(20), 20), (), ())
    assert masked_user.answer_sum_request(play.people[0], old, play.entropy)[1] == first


def test_helpers_join_no_later_set_with_somebody_whose_key_they_revealed(masked) -> None:
    play = masked("recovering", gone=(3,))
    near = list(play.people[3].placed.neighbours)
    play.settle(play.recover(skip=near[2:]))
    call = play.visit(near[0])
    again = replace(call, members=bitmap(range(20), 20))
    assert (
        masked_user.answer_sum_request(play.people[near[0]], again, play.entropy)[1].why
        is Reason.CONFLICT
    )

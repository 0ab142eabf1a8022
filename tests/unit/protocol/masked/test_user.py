"""`masked`: what a user refuses to believe, to sum and to reveal."""

from dataclasses import replace

import pytest

from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import (
    UnmaskRequest,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    NotReady,
    OutcomeRequest,
    Reason,
)
from faircount.protocol.wire.signing import sign


def awaiting_sync(play, i=0):
    member = play.people[i].member
    return replace(member, index=-1, digest=b""), play.inquire(member)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda near: {"entries": near.entries[1:]}, Reason.WRONG_DIGEST),
        (
            lambda near: {"entries": (near.entries[1], near.entries[0], *near.entries[2:])},
            Reason.WRONG_DIGEST,
        ),
        (lambda near: {"hashes": near.hashes[1:]}, Reason.WRONG_DIGEST),
        (lambda near: {"hashes": (*near.hashes, bytes(32))}, Reason.WRONG_DIGEST),
        (lambda near: {"index": near.index + 1}, Reason.WRONG_DIGEST),
        (lambda near: {"index": 20}, Reason.TOO_FEW),
        (
            lambda near: {"confirmation": replace(near.confirmation, signature=bytes(64))},
            Reason.UNSIGNED,
        ),
    ],
)
def test_users_believe_only_lines_of_the_roster_that_s2_sealed(masked, change, reason) -> None:
    play = masked("enrolled")
    member, near = awaiting_sync(play)
    assert masked_user.verify_roster(member, replace(near, **change(near))).why is reason
    assert isinstance(masked_user.verify_roster(member, near), masked_user.Placed)


def test_a_user_believes_in_one_roster_with_its_own_key(masked) -> None:
    play = masked("enrolled")
    member, near = awaiting_sync(play)
    assert masked_user.verify_roster(replace(member, user=bytes(16)), near).why is Reason.UNKNOWN
    assert masked_user.verify_roster(replace(member, digest=bytes(32)), near).why is Reason.CONFLICT
    strangers = replace(
        member.params, keys=replace(member.params.keys, aggregator_commitment=bytes([1]) * 32)
    )
    assert (
        masked_user.verify_roster(replace(member, params=strangers), near).why
        is Reason.WRONG_DIGEST
    )
    large = replace(member.params, minimum=20)
    assert masked_user.verify_roster(replace(member, params=large), near).why is Reason.WRONG_DIGEST


def test_who_is_not_on_the_roster_has_no_place(masked) -> None:
    play = masked("enrolled", skip=(5,))
    (absent,) = set(play.setup.invitations) - set(play.invitations)
    for access in (absent.access, bytes(32)):
        asked = play.signed_with(OutcomeRequest, access)
        assert play.send_to_s1(asked)[0].why is Reason.UNKNOWN
    fresh = masked("open")
    asked = fresh.signed_with(OutcomeRequest, fresh.invitations[0].access)
    assert isinstance(fresh.send_to_s1(asked)[0], NotReady)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempt": 9}, Reason.MALFORMED),
        ({"members": bitmap(range(1, 20), 20)}, Reason.MALFORMED),
        ({"members": bytes(2)}, Reason.MALFORMED),
        ({"members": bitmap((0, 1), 20)}, Reason.TOO_FEW),
        ({"mask_keys": ()}, Reason.MALFORMED),
        ({"encrypted_shares": ()}, Reason.MALFORMED),
    ],
)
def test_calls_that_a_user_refuses(masked, change, reason) -> None:
    play = masked("shared")
    same, answer = masked_user.answer_sum_request(
        play.people[0], replace(play.visit(0), **change), play.entropy
    )
    assert answer.why is reason
    assert same is play.people[0]


def test_a_set_without_enough_neighbours_is_refused(masked) -> None:
    """Without masks the vector would be bare: t of a client's neighbours must be in the set."""
    play = masked("shared")
    near = list(play.people[0].placed.neighbours)
    call = play.visit(0)
    lonely = replace(
        call,
        members=bitmap(set(range(20)) - set(near[2:]), 20),
        mask_keys=call.mask_keys[:2],
        encrypted_shares=call.encrypted_shares[:2],
    )
    assert (
        masked_user.answer_sum_request(play.people[0], lonely, play.entropy)[1].why
        is Reason.TOO_FEW
    )


def test_a_user_takes_part_in_one_set_of_an_attempt_and_in_smaller_ones_later(masked) -> None:
    play = masked("shared")
    call = play.visit(0)
    play.people[0], body = masked_user.answer_sum_request(play.people[0], call, play.entropy)
    other = replace(call, members=bitmap(range(19), 20))
    assert (
        masked_user.answer_sum_request(play.people[0], other, play.entropy)[1].why
        is Reason.CONFLICT
    )
    larger = replace(play.people[0], last=replace(play.people[0].last, members=tuple(range(19))))
    assert (
        masked_user.answer_sum_request(larger, replace(call, attempt=2), play.entropy)[1].why
        is Reason.CONFLICT
    )
    assert masked_user.answer_sum_request(play.people[0], call, play.entropy)[1] == body


def stated(play, **change):
    manifest = play.s2.manifest
    statement = AcceptedMembers(
        play.setup.params.survey,
        play.s2.manifest_hash,
        manifest.set_digest,
        manifest.senders,
        bytes(32),
    )
    return UnmaskRequest(sign(play.s2.key, Party.AGGREGATOR, replace(statement, **change)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"survey": bytes(16)}, Reason.UNSIGNED),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"members": bytes(3)}, Reason.MALFORMED),
        ({"members": bitmap((1, 2), 20)}, Reason.MALFORMED),
        ({"members": bitmap((0, 1), 20)}, Reason.TOO_FEW),
        ({"members": bitmap(range(20), 20)}, Reason.EARLY),
    ],
)
def test_key_shares_that_a_user_does_not_give(masked, change, reason) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    _, answer = masked_user.answer_unmask_request(
        play.people[0], stated(play, **change), play.entropy
    )
    assert answer.why is reason


def test_key_shares_are_given_for_one_statement_of_s2_only(masked) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    helper = next(i for i in range(20) if isinstance(play.visit(i), UnmaskRequest))
    call = play.visit(helper)
    forged = UnmaskRequest(sign(play.s1.key, Party.AGGREGATOR, play.read_from_s2(call.statement)))
    assert (
        masked_user.answer_unmask_request(play.people[helper], forged, play.entropy)[1].why
        is Reason.UNSIGNED
    )
    play.people[helper], body = masked_user.answer_unmask_request(
        play.people[helper], call, play.entropy
    )
    again = masked_user.answer_unmask_request(play.people[helper], call, play.entropy)[1]
    assert encode(again) == encode(body)
    fewer = stated(play, members=bitmap(range(1, 20), 20))
    assert (
        masked_user.answer_unmask_request(play.people[helper], fewer, play.entropy)[1].why
        is Reason.CONFLICT
    )


def test_who_sent_no_sum_gives_no_key_shares(masked) -> None:
    play = masked("recovering", gone=(3, 7, 12))
    call = UnmaskRequest(play.s1.accepted.signed)
    assert (
        masked_user.answer_unmask_request(play.people[3], call, play.entropy)[1].why
        is Reason.WRONG_DIGEST
    )
    assert isinstance(play.visit(3), NotReady)

"""`explicit`: what a user refuses."""

from dataclasses import replace

import pytest

from faircount.protocol import EXPLICIT
from faircount.protocol.peers import member as user
from faircount.protocol.peers.messages import PeerKey, Roster
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import entry_leaves, merkle_root, roster_digest
from faircount.protocol.wire.messages import (
    Reason,
)
from faircount.protocol.wire.signing import sign, verify_message

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempt": 9}, Reason.MALFORMED),
        ({"members": b"\x3e"}, Reason.MALFORMED),
        ({"members": b"\x03"}, Reason.TOO_FEW),
        ({"encrypted_shares": ()}, Reason.MALFORMED),
    ],
)
def test_calls_that_a_user_refuses(stage, change, reason) -> None:
    play = ready(stage)
    play.share_all()
    call = replace(play.visit(0), **change)
    same, answer = explicit_user.answer_sum_request(play.people[0], call, play.entropy)
    assert answer.why is reason
    assert same == play.people[0] or same is play.people[0]


def test_a_user_takes_part_in_no_set_below_the_minimum(stage) -> None:
    play = ready(stage, minimum=5)
    play.share_all()
    call = play.visit(0)
    for members, few in ((b"\x0f", True), (b"\x1f", False)):  # 4 and 5 of the 6
        smaller = replace(
            call,
            members=members,
            encrypted_shares=call.encrypted_shares[: members[0].bit_count() - 1],
        )
        _, answer = explicit_user.answer_sum_request(play.people[0], smaller, play.entropy)
        assert (answer.why is Reason.TOO_FEW) if few else isinstance(answer, PeerSum)


def test_a_user_does_not_take_part_in_two_sets_of_one_attempt(stage) -> None:
    play = ready(stage)
    play.share_all()
    call = play.visit(0)
    play.people[0], _ = explicit_user.answer_sum_request(play.people[0], call, play.entropy)
    _, answer = explicit_user.answer_sum_request(
        play.people[0], replace(call, members=b"\x1f"), play.entropy
    )
    assert answer.why is Reason.CONFLICT
    grown = replace(call, attempt=2, encrypted_shares=())
    play.people[0], body = explicit_user.answer_sum_request(
        play.people[0], replace(grown, members=b"\x1f"), play.entropy
    )
    assert isinstance(body, PeerSum)
    _, answer = explicit_user.answer_sum_request(
        play.people[0], replace(grown, attempt=3), play.entropy
    )
    assert answer.why is Reason.CONFLICT


def test_users_believe_only_the_roster_that_s2_sealed(stage) -> None:
    play = ready(stage)
    member = replace(play.people[0].member, index=-1, roster=(), digest=b"")
    (roster,) = play.send_to_s1(play.inquiry(0))
    assert isinstance(roster, Roster)
    fewer = replace(roster, entries=roster.entries[1:])
    forged = replace(roster, confirmation=replace(roster.confirmation, signature=bytes(64)))
    assert user.verify_roster(member, fewer).why is Reason.WRONG_DIGEST
    assert user.verify_roster(member, forged).why is Reason.UNSIGNED
    assert user.verify_roster(replace(member, user=bytes(16)), roster).why is Reason.UNKNOWN
    assert user.verify_roster(replace(member, digest=bytes(32)), roster).why is Reason.CONFLICT
    other = stage(E, seed=9)
    assert (
        user.verify_roster(replace(member, params=other.setup.params), roster).why
        is Reason.UNSIGNED
    )


def confirm_other_roster(play, roster: Roster, entries: tuple[PeerKey, ...]) -> Roster:
    """A roster that a dishonest aggregator confirmed instead of the true one."""
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    true = verify_message(play.params.keys.aggregator, Party.AGGREGATOR, roster.confirmation)
    digest = roster_digest(play.params.digest, len(entries), root)
    confirmation = replace(true, n=len(entries), root=root, digest=digest)
    return Roster(sign(play.s2.key, Party.AGGREGATOR, confirmation), entries)


def test_a_roster_that_a_lying_s2_sealed_is_no_smaller_than_the_minimum_and_has_the_users_own_key(
    stage,
) -> None:
    play = ready(stage, minimum=5)
    member = replace(play.people[0].member, index=-1, roster=(), digest=b"")
    (roster,) = play.send_to_s1(play.inquiry(0))
    lines = roster.entries
    assert user.verify_roster(member, confirm_other_roster(play, roster, lines[:5])).index == 0
    assert (
        user.verify_roster(member, confirm_other_roster(play, roster, lines[:4])).why
        is Reason.TOO_FEW
    )
    swapped = (replace(lines[0], public_key=bytes(31) + b"\x09"), *lines[1:])
    assert (
        user.verify_roster(member, confirm_other_roster(play, roster, swapped)).why
        is Reason.UNKNOWN
    )


def test_s2_must_reveal_what_it_committed_to(stage) -> None:
    play = stage(E)
    play.s2 = play.s2.replace_fields(committed_value=b"another value, of 32 bytes as well"[:32])
    members = [
        user.enrol(play.setup.params, invitation, play.entropy) for invitation in play.invitations
    ]
    play.people = members
    for member in members:
        play.send_to_s1(member.enrolment)
    play.settle(play.deadline())
    (roster,) = play.send_to_s1(play.inquiry(0))
    assert user.verify_roster(members[0], roster).why is Reason.WRONG_DIGEST

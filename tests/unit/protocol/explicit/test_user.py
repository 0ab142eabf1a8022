"""`explicit`: what a user refuses."""

from dataclasses import replace

import pytest

from faircount.protocol import EXPLICIT
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import SumUpload
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Roster
from faircount.protocol.wire.messages import (
    Inquiry,
    Reason,
)

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

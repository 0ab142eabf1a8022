"""S1 in every topology: what its storage may do to it."""

from dataclasses import replace

from faircount.protocol import EXPLICIT
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit.messages import ShareBundle
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.topologies.two_stage.messages import SlotComplaint, SumCall


def test_spoiled_numbers_in_the_store_end_no_role(masked, two_stage, stage) -> None:
    play = masked("recovering")
    held = (MaskedSum.tag, play.s1.own.set_digest, 0)
    play.s1.uploads._written[held] = replace(play.s1.uploads[held], attempt=4_000_000_000)
    play.settle(play.recover())
    assert play.s1.state is play.s2.state is State.ABORTED  # its vector cannot be added up any more
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    key = (ShareBundle.tag, 0, 1)
    play.s1.uploads._written[key] = replace(play.s1.uploads[key], index=258)
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6
    play = two_stage("shared", k=2)
    i = play.waiting_for(SumCall)[0]
    body = SlotComplaint(play.params.survey, i, play.people[i].member.credential, play.s1.attempt, (0,))
    play.tell_s1(body)
    key = (SlotComplaint.tag, play.s1.attempt, i)
    play.s1.uploads._written[key] = replace(body, numbers=(99,))
    play.finish()
    assert play.s1.state is State.PUBLISHED

"""Servers that are taken back to an old backup, by whoever wants a second sum or a second result."""

from dataclasses import replace

from faircount.protocol import SERVERS, aggregate, coordinate, end_phase, resume
from faircount.protocol.play import converse
from faircount.protocol.roles.anchor import MemoryAnchor, anchored_s1, anchored_s2
from faircount.protocol.roles.coordinator import backup
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.two_servers.messages import ShareSum
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.messages import Aborted, Published, Signed
from faircount.protocol.wire.signing import sign


def results(state) -> list[Published]:
    return [each.says for each in state.statements if isinstance(each.says, Published)]


def whole_survey(play, s1, s2, step_s2):
    """S1 closes and talks to S2 until there is nothing to say; S2 steps as it is told to."""
    s1, out = end_phase(backup(s1))
    waiting = list(out)
    while waiting:
        message = waiting.pop(0)
        if message.by == Party.S1:
            s2, answers = step_s2(s2, message)
        else:
            s1, answers = coordinate(s1, message)
        waiting += answers
    return s1, s2


def two_results(stage, step_s2):
    """A lying S1 takes S2 back to its first day and runs the survey again without one user."""
    play = stage(SERVERS)
    first_day = play.s2
    play.answer_all(skip=(0,))
    without = backup(play.s1)
    play.tell_s1(play.people[0].body)
    _, one = whole_survey(play, play.s1, first_day, step_s2)
    _, other = whole_survey(play, without, first_day, step_s2)
    return results(one) + results(other), other


def test_without_an_anchor_a_lying_s1_gets_two_results(stage) -> None:
    """The attack: the difference of the two is one user's vector."""
    (one, other), _ = two_results(stage, aggregate)
    assert sum(one.counts) == sum(other.counts) + 1


def test_with_an_anchor_it_gets_one_and_an_abort(stage) -> None:
    anchor = MemoryAnchor()
    found, other = two_results(stage, lambda s2, message: anchored_s2(anchor, s2, aggregate(s2, message)))
    assert len(found) == 1
    assert other.state is State.ABORTED
    assert isinstance(other.statements[-1].says, Aborted)
    assert other.ledger.closed


def test_a_ledger_that_was_taken_back_is_not_charged_by_another_survey(stage) -> None:
    """A second survey of the same people has no past of its own that the anchor could know."""
    anchor, plays = MemoryAnchor(), [stage(SERVERS, seed=seed) for seed in (1, 2)]
    for play in plays:
        play.answer_all()
        after, _ = anchored_s2(anchor, play.s2, aggregate(play.s2, play.deadline()[0]))
        first = play is plays[0]
        assert (after.state, after.ledger.closed) == (State.CLAIMED if first else State.ABORTED, not first)
    assert plays[0].s2.ledger == plays[1].s2.ledger  # as it was before either


def test_the_same_step_again_after_a_crash_is_not_a_second_one(stage) -> None:
    """S2 crashed after the anchor was set and before its own write: it is asked again, and says the same."""
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    out = play.deadline()
    for _ in range(3):
        first = anchored_s2(anchor, play.s2, aggregate(play.s2, out[0]))
        again = anchored_s2(anchor, play.s2, aggregate(play.s2, out[0]))
        assert (again[1], again[0].statements) == (first[1], first[0].statements)
        play.s2 = again[0]
        out = play.tell_s1(again[1][0])
    assert play.s2.state is State.PUBLISHED


def test_an_s1_that_was_taken_back_hands_over_no_second_sum(stage) -> None:
    """S2 lies: it names everybody, has S1 taken back, and names all but one."""
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    before = backup(play.s1)
    named = play.tell_s2(resume(play.s1)[0])[0]
    first = anchored_s1(anchor, before, coordinate(before, named))
    assert anchored_s1(anchor, before, coordinate(before, named)) == first  # a crash: the same sum again
    fewer = replace(play.said_by_s2(named), members=b"\x1f", root=_root(before, 5))
    step = coordinate(before, sign(play.s2.key, Party.S2, fewer))
    assert _sums(step[1]) != _sums(first[1])  # without the anchor it would leave
    after, out = anchored_s1(anchor, before, step)
    assert _sums(out) == _sums(resume(after)) == []
    assert isinstance(after.final.says, Aborted)


def _root(s1, count: int) -> bytes:
    from faircount.protocol.wire.digests import merkle_root, roster_leaves

    return merkle_root(roster_leaves((each.user, each.public_key) for each in s1.claim.entries[:count]))


def _sums(out) -> list[ShareSum]:
    said = [parse(each.payload) for each in out if isinstance(each, Signed)]
    return [each for each in said if isinstance(each, ShareSum)]


def test_an_anchor_does_not_stand_in_the_way_of_an_honest_survey(stage) -> None:
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    s1, s2 = whole_survey(play, play.s1, play.s2, lambda s, m: anchored_s2(anchor, s, aggregate(s, m)))
    assert s1.state is s2.state is State.PUBLISHED
    assert anchor.standing(b"s2/" + play.params.survey) == s2.newest.hash
    assert converse(s1, s2, resume(s1)) == (s1, s2)

"""Servers that are rolled back to an old backup, by whoever wants a second sum or a second result."""

from dataclasses import replace
from functools import partial

from faircount.protocol import SERVERS, aggregator_step, coordinator_step, end_phase, resume
from faircount.protocol.roles.anchor import (
    MemoryAnchor,
    anchor_aggregator_step,
    anchor_coordinator_step,
)
from faircount.protocol.simulator import exchange_messages
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers.messages import AggregateShare
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.messages import Aborted, Published, Signed
from faircount.protocol.wire.signing import sign


def results(state) -> list[Published]:
    return [
        statement.message
        for statement in state.statements
        if isinstance(statement.message, Published)
    ]


def whole_survey(play, s1, s2, step_s2):
    """The coordinator ends its phase, and the servers exchange messages until both wait; `step` makes the aggregator's steps."""
    s1, out = s1.copy().make_step(end_phase)
    s2 = s2.copy()
    waiting = list(out)
    while waiting:
        message = waiting.pop(0)
        if message.by == Party.COORDINATOR:
            s2, answers = step_s2(s2, message)
        else:
            s1, answers = s1.make_step(coordinator_step, message)
        waiting += answers
    return s1, s2


def with_anchor(anchor, s2, message):
    """The aggregator's step as a service makes it: anchored, then written."""
    step = aggregator_step(s2.state, message, s2.rows)
    step = anchor_aggregator_step(anchor, s2.state, step, s2.rows)
    return s2.write_step(step), step.messages


def two_results(stage, step_s2):
    """A lying coordinator takes the aggregator back to its first day and runs the survey again without one user."""
    play = stage(SERVERS)
    first_day = play.s2
    play.answer_all(skip=(0,))
    without = play.s1.copy()
    play.send_to_s1(play.people[0].report)
    _, one = whole_survey(play, play.s1, first_day, step_s2)
    _, other = whole_survey(play, without, first_day, step_s2)
    return results(one) + results(other), other


def test_without_an_anchor_a_lying_s1_gets_two_results(stage) -> None:
    """The attack: the difference of the two is one user's vector."""
    (one, other), _ = two_results(stage, lambda s2, message: s2.make_step(aggregator_step, message))
    assert sum(one.counts) == sum(other.counts) + 1


def test_with_an_anchor_it_gets_one_and_an_abort(stage) -> None:
    anchor = MemoryAnchor()
    found, other = two_results(stage, partial(with_anchor, anchor))
    assert len(found) == 1
    assert other.phase is Phase.ABORTED
    assert isinstance(other.statements[-1].message, Aborted)
    assert other.ledger.closed


def test_a_ledger_that_was_rolled_back_is_not_charged_by_another_survey(stage) -> None:
    """A second survey of the same people has no past of its own that the anchor could know."""
    anchor, plays = MemoryAnchor(), [stage(SERVERS, seed=seed) for seed in (1, 2)]
    for play in plays:
        play.answer_all()
        after, _ = with_anchor(anchor, play.s2.copy(), play.deadline()[0])
        first = play is plays[0]
        assert (after.phase, after.ledger.closed) == (
            Phase.COUNTING if first else Phase.ABORTED,
            not first,
        )
    assert plays[0].s2.ledger == plays[1].s2.ledger  # as it was before either


def test_the_same_step_again_after_a_crash_is_not_a_second_one(stage) -> None:
    """The aggregator crashed after the anchor was set and before its own write: it is asked again, and says the same."""
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    out = play.deadline()
    for _ in range(3):
        first = with_anchor(anchor, play.s2.copy(), out[0])
        again = with_anchor(anchor, play.s2, out[0])
        assert (again[1], again[0].statements) == (first[1], first[0].statements)
        play.s2 = again[0]
        out = play.send_to_s1(again[1][0])
    assert play.s2.phase is Phase.PUBLISHED


def test_a_coordinator_that_was_rolled_back_sends_no_second_sum(stage) -> None:
    """A dishonest aggregator names everybody, has the coordinator rolled back, and names all but one."""
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    before = play.s1.copy()
    named = play.send_to_s2(resume(play.s1.state, play.s1.rows)[0])[0]
    first = anchor_coordinator_step(
        anchor, before.state, coordinator_step(before.state, named, before.rows)
    )
    again = anchor_coordinator_step(
        anchor, before.state, coordinator_step(before.state, named, before.rows)
    )
    assert again == first  # a crash: the same sum again
    fewer = replace(play.read_from_s2(named), members=b"\x1f", root=_root(before, 5))
    step = coordinator_step(before.state, sign(play.s2.key, Party.AGGREGATOR, fewer), before.rows)
    assert _sums(step.messages) != _sums(first.messages)  # without the anchor it would leave
    ended = anchor_coordinator_step(anchor, before.state, step)
    assert _sums(ended.messages) == _sums(resume(ended.state, before.rows)) == []
    assert isinstance(ended.state.final.message, Aborted)


def _root(s1, count: int) -> bytes:
    from faircount.protocol.wire.digests import entry_leaves, merkle_root

    return merkle_root(
        entry_leaves((entry.user, entry.public_key) for entry in s1.manifest.entries[:count])
    )


def _sums(out) -> list[AggregateShare]:
    contents = [parse(message.payload) for message in out if isinstance(message, Signed)]
    return [content for content in contents if isinstance(content, AggregateShare)]


def test_an_anchor_does_not_stand_in_the_way_of_an_honest_survey(stage) -> None:
    anchor, play = MemoryAnchor(), stage(SERVERS)
    play.answer_all()
    s1, s2 = whole_survey(play, play.s1, play.s2, partial(with_anchor, anchor))
    assert s1.phase is s2.phase is Phase.PUBLISHED
    assert anchor.current_value(b"s2/" + play.params.survey) == s2.chain_end.hash
    assert exchange_messages(s1, s2, resume(s1.state, s1.rows)) == (s1, s2)

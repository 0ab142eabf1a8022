"""The states of a survey and the steps between them."""

import pytest

from faircount.core.errors import IllegalTransitionError, ProtocolError
from faircount.protocol.survey.states import FINAL, TRANSITIONS, State, advance


def test_the_straight_way_and_both_detours() -> None:
    straight = [State.ENROLLING, State.SEALED, State.SUBMITTING, State.CLAIMED, State.OPENED, State.PUBLISHED]
    assert advance(State.DRAFT, *straight) is State.PUBLISHED
    assert advance(State.SEALED, State.SHARING, State.SUBMITTING, State.CLAIMED, State.RECOVERING, State.OPENED)
    assert advance(State.CLAIMED, State.SUBMITTING, State.CLAIMED) is State.CLAIMED


def test_every_step_that_is_not_in_the_table_raises() -> None:
    for before in State:
        for after in State:
            if after in TRANSITIONS[before]:
                assert advance(before, after) is after
            else:
                with pytest.raises(IllegalTransitionError, match=f"a survey that is {before} cannot become {after}"):
                    advance(before, after)


def test_everything_may_abort_but_what_is_over() -> None:
    assert {State.PUBLISHED, State.ABORTED} == FINAL
    assert all((State.ABORTED in after) == (state not in FINAL) for state, after in TRANSITIONS.items())
    assert issubclass(IllegalTransitionError, ProtocolError)

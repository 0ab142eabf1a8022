"""The states of a survey and the steps between them."""

import pytest

from faircount.core.errors import IllegalTransitionError, ProtocolError
from faircount.protocol.survey.phases import FINAL, TRANSITIONS, Phase, advance


def test_the_straight_way_and_both_detours() -> None:
    straight = [
        Phase.ENROLLING,
        Phase.CONFIRMED,
        Phase.SUBMITTING,
        Phase.COUNTING,
        Phase.AGGREGATED,
        Phase.PUBLISHED,
    ]
    assert advance(Phase.DRAFT, *straight) is Phase.PUBLISHED
    assert advance(
        Phase.CONFIRMED,
        Phase.SHARING,
        Phase.SUBMITTING,
        Phase.COUNTING,
        Phase.UNMASKING,
        Phase.AGGREGATED,
    )
    assert advance(Phase.COUNTING, Phase.SUBMITTING, Phase.COUNTING) is Phase.COUNTING


def test_every_step_that_is_not_in_the_table_raises() -> None:
    for before in Phase:
        for after in Phase:
            if after in TRANSITIONS[before]:
                assert advance(before, after) is after
            else:
                with pytest.raises(
                    IllegalTransitionError, match=f"a survey that is {before} cannot become {after}"
                ):
                    advance(before, after)


def test_everything_may_abort_but_what_is_over() -> None:
    assert {Phase.PUBLISHED, Phase.ABORTED} == FINAL
    assert all(
        (Phase.ABORTED in after) == (state not in FINAL) for state, after in TRANSITIONS.items()
    )
    assert issubclass(IllegalTransitionError, ProtocolError)

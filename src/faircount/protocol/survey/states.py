"""Where a survey stands. One table for everybody: it knows no role.

draft -> enrolling -> sealed -> [indicating] -> [sharing] -> submitting -> claimed -> [recovering] -> opened
-> published; besides
claimed -> submitting   peers: some seeds do not open, so a further attempt
recovering -> submitting   masked: a key cannot be put together, so a further attempt without its owner
submitting -> sharing   two-stage: shares for those who take over from elected users who vanished
every state before `published` -> aborted
"""

from enum import StrEnum

from faircount.core.errors import IllegalTransitionError


class State(StrEnum):
    """The states of protocol section 4."""

    DRAFT = "draft"
    ENROLLING = "enrolling"
    SEALED = "sealed"
    INDICATING = "indicating"
    SHARING = "sharing"
    SUBMITTING = "submitting"
    CLAIMED = "claimed"
    RECOVERING = "recovering"
    OPENED = "opened"
    PUBLISHED = "published"
    ABORTED = "aborted"


_FORWARD: dict[State, tuple[State, ...]] = {
    State.DRAFT: (State.ENROLLING,),
    State.ENROLLING: (State.SEALED,),
    State.SEALED: (State.INDICATING, State.SHARING, State.SUBMITTING),
    State.INDICATING: (State.SHARING,),
    State.SHARING: (State.SUBMITTING,),
    State.SUBMITTING: (State.CLAIMED, State.SHARING),
    State.CLAIMED: (State.RECOVERING, State.OPENED, State.SUBMITTING),
    State.RECOVERING: (State.OPENED, State.SUBMITTING),
    State.OPENED: (State.PUBLISHED,),
    State.PUBLISHED: (),
    State.ABORTED: (),
}

TRANSITIONS: dict[State, frozenset[State]] = {
    state: frozenset({*after, *((State.ABORTED,) if after else ())}) for state, after in _FORWARD.items()
}
"""From each state to those that may follow it."""

FINAL = frozenset(state for state, after in TRANSITIONS.items() if not after)
"""States that nothing follows."""


def advance(state: State, *path: State) -> State:
    """The last state of a path that starts here; every step of it must be in the table, else nothing happens."""
    for after in path:
        if after not in TRANSITIONS[state]:
            allowed = ", ".join(sorted(TRANSITIONS[state])) or "nothing"
            raise IllegalTransitionError(f"a survey that is {state} cannot become {after}: it can become {allowed}")
        state = after
    return state

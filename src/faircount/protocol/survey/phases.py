"""The phases of a survey, and which may follow which; the same table for every role.

    draft -> enrolling -> confirmed -> [indicating] -> [sharing] -> submitting -> counting
          -> [unmasking] -> aggregated -> published

Phases in brackets belong to some topologies only.

    enrolling    participants enrol; the coordinator proposes the roster
    confirmed    the aggregator has confirmed the roster
    indicating   two-stage: clients say which items they report, and helpers are elected
    sharing      clients exchange encrypted shares or keys
    submitting   clients send reports, or sums of shares
    counting     the manifest is fixed, and the aggregator decides which reports it accepts
    unmasking    masked: clients help to remove the masks of those who dropped out
    aggregated   the accepted reports are final, and the aggregate shares are combined

Besides, a survey can go back for another attempt, or end without a result:

    counting   -> submitting   some seeds cannot be decrypted: another attempt without their senders
    unmasking  -> submitting   masked: a key cannot be recovered: another attempt without its owner
    submitting -> sharing      two-stage: shares for those who replace elected clients that vanished
    any phase before published -> aborted
"""

from enum import StrEnum

from faircount.core.errors import IllegalTransitionError


class Phase(StrEnum):
    """A phase of a survey; the module's docstring draws them."""

    DRAFT = "draft"
    ENROLLING = "enrolling"
    CONFIRMED = "confirmed"
    INDICATING = "indicating"
    SHARING = "sharing"
    SUBMITTING = "submitting"
    COUNTING = "counting"
    UNMASKING = "unmasking"
    AGGREGATED = "aggregated"
    PUBLISHED = "published"
    ABORTED = "aborted"


_NEXT: dict[Phase, tuple[Phase, ...]] = {
    Phase.DRAFT: (Phase.ENROLLING,),
    Phase.ENROLLING: (Phase.CONFIRMED,),
    Phase.CONFIRMED: (Phase.INDICATING, Phase.SHARING, Phase.SUBMITTING),
    Phase.INDICATING: (Phase.SHARING,),
    Phase.SHARING: (Phase.SUBMITTING,),
    Phase.SUBMITTING: (Phase.COUNTING, Phase.SHARING),
    Phase.COUNTING: (Phase.UNMASKING, Phase.AGGREGATED, Phase.SUBMITTING),
    Phase.UNMASKING: (Phase.AGGREGATED, Phase.SUBMITTING),
    Phase.AGGREGATED: (Phase.PUBLISHED,),
}

FINAL = frozenset((Phase.PUBLISHED, Phase.ABORTED))
"""Phases that no other follows."""

TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    phase: frozenset() if phase in FINAL else frozenset((*_NEXT[phase], Phase.ABORTED))
    for phase in Phase
}
"""From each phase to those that may follow it."""


def advance(phase: Phase, *path: Phase) -> Phase:
    """The last phase of a path that starts at `phase`; every step must be in the table."""
    # A path and not a single step: some topologies skip phases, and the table stays the judge.
    for after in path:
        if after not in TRANSITIONS[phase]:
            allowed = ", ".join(sorted(TRANSITIONS[phase])) or "nothing"
            raise IllegalTransitionError(
                f"a survey that is {phase} cannot become {after}: it can become {allowed}"
            )
        phase = after
    return phase

"""The coordinator (S1): what it does in every topology.

    enrol participants -> propose the roster -> store uploads, the first one of a kind counts
    -> fix the manifest -> send encrypted shares and one aggregate share -> store the result

It relays messages and keeps deadlines, and it can decrypt nothing.

`state` is all that it stores, `receive` handles a message, `steps` has the functions from which
the topologies build their handlers, and `rules` the class that a topology derives from to add
them. The functions of `receive` take a state and a reader of rows and return a `Step`. The caller
writes the step, and only then sends its messages.
"""

from faircount.protocol.roles.coordinator.receive import (
    coordinator_step,
    coordinator_step_for_many,
    end_phase,
    end_without_aggregator,
    resume,
    start_resync,
)
from faircount.protocol.roles.coordinator.rules import (
    AggregatorHandler,
    CoordinatorRules,
    DeadlineHandler,
    UserHandler,
)
from faircount.protocol.roles.coordinator.state import (
    Change,
    Coordinator,
    Out,
    PhaseAttempt,
    RowAddress,
    invitation_rows,
    invited_user,
    is_invited,
)
from faircount.protocol.roles.coordinator.steps import (
    abort_without_aggregator,
    admit_participant,
    credential_problem,
    has_upload,
    intact_upload,
    recognize_device,
    request_abort,
    roster_proposal,
    store_first_message,
    to_aggregator,
    unanswered_messages,
    upload,
    with_manifest,
)

__all__ = [
    "AggregatorHandler",
    "Change",
    "Coordinator",
    "CoordinatorRules",
    "DeadlineHandler",
    "Out",
    "PhaseAttempt",
    "RowAddress",
    "UserHandler",
    "abort_without_aggregator",
    "admit_participant",
    "coordinator_step",
    "coordinator_step_for_many",
    "credential_problem",
    "end_phase",
    "end_without_aggregator",
    "has_upload",
    "intact_upload",
    "invitation_rows",
    "invited_user",
    "is_invited",
    "recognize_device",
    "request_abort",
    "resume",
    "roster_proposal",
    "start_resync",
    "store_first_message",
    "to_aggregator",
    "unanswered_messages",
    "upload",
    "with_manifest",
]

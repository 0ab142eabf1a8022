"""The coordinator (S1): what it does in every topology.

It relays, keeps deadlines, claims one batch, opens nothing.

    enrol participants -> propose the roster -> take uploads, the first write wins
    -> fix the manifest -> send encrypted shares -> keep the result

`state` is all that it keeps, `receive` what happens when a message comes in, `steps` what the
topologies build their handlers from, and `rules` the class that a topology derives from to add
these handlers. The functions of `receive` take a state and a reader of rows and return a `Step`,
without input or output of their own: who calls them writes the step first, and then sends.
"""

from faircount.protocol.roles.coordinator.receive import (
    coordinate,
    coordinate_many,
    end_phase,
    end_without_aggregator,
    restored,
    resume,
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
    Place,
    invitation_rows,
    invited_user,
    is_person,
)
from faircount.protocol.roles.coordinator.steps import (
    admit_person,
    credential_problem,
    end_alone,
    give_up,
    has_upload,
    intact_upload,
    messages_now,
    roster_proposal,
    to_aggregator,
    upload,
    with_manifest,
    write_body,
)

__all__ = [
    "AggregatorHandler",
    "Change",
    "Coordinator",
    "CoordinatorRules",
    "DeadlineHandler",
    "Out",
    "PhaseAttempt",
    "Place",
    "UserHandler",
    "admit_person",
    "coordinate",
    "coordinate_many",
    "credential_problem",
    "end_alone",
    "end_phase",
    "end_without_aggregator",
    "give_up",
    "has_upload",
    "intact_upload",
    "invitation_rows",
    "invited_user",
    "is_person",
    "messages_now",
    "restored",
    "resume",
    "roster_proposal",
    "to_aggregator",
    "upload",
    "with_manifest",
    "write_body",
]

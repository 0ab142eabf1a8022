"""The servers' two entrances: a state and a message in, a state and what is to be sent out.

A topology is one module with `S1` (its `Rules`) and `S2` (its handlers). What S1 stores is filled in place
(`store.WriteOnce`), so a state that is to be kept as it was must be copied: `coordinator.backup`.
"""

from types import ModuleType

from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.parameters import Topology
from faircount.protocol.topologies.explicit import explicit
from faircount.protocol.topologies.masked import coordinator as masked
from faircount.protocol.topologies.two_servers import servers
from faircount.protocol.topologies.two_stage import coordinator as two_stage
from faircount.protocol.wire.codec import Message

TOPOLOGIES: dict[Topology, ModuleType] = {
    Topology.SERVERS: servers,
    Topology.EXPLICIT: explicit,
    Topology.MASKED: masked,
    Topology.TWO_STAGE: two_stage,
}
"""Where the rules of each topology are."""


def coordinate(state: Coordinator, message: Message) -> coordinator.Step:
    """S1 receives a user's message or S2's statement."""
    return coordinator.receive(TOPOLOGIES[state.params.topology].S1, state, message)


def end_phase(state: Coordinator, seen: coordinator.Phase | None = None) -> coordinator.Step:
    """S1's deadline for the current phase has passed, or for the one `seen`: if that is over already, S1 repeats."""
    return coordinator.deadline(TOPOLOGIES[state.params.topology].S1, state, seen)


def resume(state: Coordinator) -> coordinator.Out:
    """S1, restarted, says again what S2 may not have heard."""
    return coordinator.resume(TOPOLOGIES[state.params.topology].S1, state)


def aggregate(state: Aggregator, message: Message) -> aggregator.Step:
    """S2 receives a message of S1."""
    return aggregator.receive(TOPOLOGIES[state.params.topology].S2, state, message)

"""What the coordinator keeps of a `masked` survey beside the common state."""

from dataclasses import dataclass, replace

from faircount.core.errors import ProtocolError
from faircount.protocol.peers.one_sum import PeersState
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.topologies.masked.graph import Graph


@dataclass(frozen=True)
class MaskedState(PeersState):
    """What the coordinator keeps of this topology: the graph, and what was fixed at each
    deadline.
    """

    stored_tag = "masked-coordinator"
    graph: Graph
    bits: bytes = b""  # the set of the attempt
    set_digest: bytes = b""
    members: frozenset[int] = frozenset()
    included: tuple[int, ...] = ()
    gone: frozenset[int] = frozenset()  # in the set, but not included
    helped: bool = False  # the time for help is over: it is with the aggregator


def masked_state(s: Coordinator) -> MaskedState:
    """The coordinator's own part of the state, once the roster is sealed."""
    if not isinstance(s.topology_state, MaskedState):
        raise ProtocolError("the graph is drawn once the roster is sealed")
    return s.topology_state


def with_included(
    masked: MaskedState, members: frozenset[int], included: tuple[int, ...]
) -> MaskedState:
    """The state with a set and those of it who are counted; the rest of the set is gone."""
    return replace(
        masked, members=members, included=included, gone=members - frozenset(included), helped=False
    )

"""What the coordinator stores for a `masked` survey beside the common state."""

from dataclasses import dataclass, replace

from faircount.core.errors import ProtocolError
from faircount.protocol.peers.one_sum import PeersState
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.topologies.masked.graph import Graph


@dataclass(frozen=True)
class MaskedState(PeersState):
    """The graph, and what was fixed at each deadline.

    Attributes:
        graph: drawn when the roster is confirmed
        bits: the set of the attempt, as the bitmap that clients get
        set_digest: the digest that masks and seeds of the attempt are bound to
        members: the set of the attempt
        accepted: first those of the set that sent a sum, then those that the aggregator accepted
        dropped: in the set, but not accepted
        unmasking_closed: whether the unmask shares were sent to the aggregator: no more are taken
    """

    stored_tag = "masked-coordinator"
    graph: Graph
    bits: bytes = b""
    set_digest: bytes = b""
    members: frozenset[int] = frozenset()
    accepted: tuple[int, ...] = ()
    dropped: frozenset[int] = frozenset()
    unmasking_closed: bool = False


def masked_state(s: Coordinator) -> MaskedState:
    """The topology state, which exists once the roster is confirmed."""
    if not isinstance(s.topology_state, MaskedState):
        raise ProtocolError("the graph is drawn once the roster is confirmed")
    return s.topology_state


def with_accepted(
    masked: MaskedState, members: frozenset[int], accepted: tuple[int, ...]
) -> MaskedState:
    """The state with a set and its accepted members; the others of the set are dropped."""
    dropped = members - frozenset(accepted)
    return replace(
        masked, members=members, accepted=accepted, dropped=dropped, unmasking_closed=False
    )

"""Network-free protocol code (sans-IO), on which the servers and clients are built.

    coordinator  Coordinator.begin -> coordinate(state, message, reader), end_phase(state, reader=)
                 -> Step: the new state, rows to write, messages to send
    aggregator   aggregate_with(ledger, state, message, reader) -> ledger, Step
    client       topology.client -> start, next_message(state), handle_response
    bytes        encode(message), decode(data); from other parties: decode_upload,
                 decode_response, decode_signed in `roles.limits`
    storage      encode_state(state), decode_state(Coordinator, data); encode_row, decode_row

A reader finds rows that earlier steps wrote (`MemoryRows`, or one of a database). Write a step
before you send its messages, and send the same messages again after a crash. `simulator.play` runs
the whole protocol in memory, in one loop for every topology.
"""

from faircount.protocol.roles.aggregator import Aggregator, aggregate, aggregate_with
from faircount.protocol.roles.client import Client, ClientState, has_progressed
from faircount.protocol.roles.coordinator import Coordinator, coordinate, end_phase, resume
from faircount.protocol.roles.rows import MemoryRows, RowReader, RowWrite, Step
from faircount.protocol.roles.stored import Row, decode_row, decode_state, encode_row, encode_state
from faircount.protocol.survey.budget import Ledger, compare_and_swap
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose
from faircount.protocol.survey.topology import Topology, known_topologies, topology_named
from faircount.protocol.topologies import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.messages import decode

__all__ = [
    "EXPLICIT",
    "MASKED",
    "SERVERS",
    "TWO_STAGE",
    "Aggregator",
    "Client",
    "ClientState",
    "Coordinator",
    "Invitation",
    "Keys",
    "Ledger",
    "MemoryRows",
    "Message",
    "Row",
    "RowReader",
    "RowWrite",
    "Step",
    "SurveyParameters",
    "Topology",
    "aggregate",
    "aggregate_with",
    "compare_and_swap",
    "coordinate",
    "decode",
    "decode_row",
    "decode_state",
    "encode",
    "encode_row",
    "encode_state",
    "end_phase",
    "has_progressed",
    "known_topologies",
    "propose",
    "resume",
    "topology_named",
]

"""The protocol without input or output: what a service, a client or another implementation builds on.

    S1     Coordinator.begin -> coordinate(state, message), end_phase(state), resume(state)  -> state, messages to send
    S2     Aggregator        -> aggregate_with(ledger, state, message)         -> ledger, (state, messages to send)
    user   topology.client   -> begin(...), ask(device), hear(device, asked, answer)          -> the device's next state
    bytes  encode(message), decode(data); of a stranger: decode_upload, decode_answer, decode_signed in `roles.limits`
    store  encode_state(state), decode_state(Coordinator, data); or encode_head, rows_of -> decode_head, add_row

Write the state before sending what came with it; send the same again after a crash. `play` is the whole protocol in
memory, one loop for every topology.
"""

from faircount.protocol.roles.aggregator import Aggregator, aggregate, aggregate_with
from faircount.protocol.roles.client import Client, Device, goes_on
from faircount.protocol.roles.coordinate import coordinate
from faircount.protocol.roles.coordinator import Coordinator, end_phase, resume
from faircount.protocol.roles.stored import (
    Row,
    add_row,
    decode_head,
    decode_state,
    encode_head,
    encode_state,
    rows_of,
)
from faircount.protocol.survey.budget import Ledger, swapped
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
    "Coordinator",
    "Device",
    "Invitation",
    "Keys",
    "Ledger",
    "Message",
    "Row",
    "SurveyParameters",
    "Topology",
    "add_row",
    "aggregate",
    "aggregate_with",
    "coordinate",
    "decode",
    "decode_head",
    "decode_state",
    "encode",
    "encode_head",
    "encode_state",
    "end_phase",
    "goes_on",
    "known_topologies",
    "propose",
    "resume",
    "rows_of",
    "swapped",
    "topology_named",
]

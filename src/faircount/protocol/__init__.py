"""Network-free protocol code (sans-IO), on which the servers and clients are built.

    coordinator  Coordinator.begin
                 coordinator_step(state, message, reader), end_phase(state, reader=)
                 -> Step: the new state, rows to write, messages to send
    aggregator   aggregator_step_with(ledger, state, message, reader) -> ledger, Step
    client       topology.client -> start, next_message(state), handle_response
    bytes        encode(message), decode(data); from other parties: decode_client_message,
                 decode_response, decode_signed in `roles.limits`
    storage      encode_state(state), decode_state(Coordinator, data); encode_row, decode_row

A reader finds rows that earlier steps wrote (`MemoryRows`, or one of a database). Write a step
before you send its messages, and send the same messages again after a crash. `simulator.play` runs
the whole protocol in memory, in one loop for every topology.

The topologies are loaded with this package. Their messages, and what the parties do, are loaded
when they are first used: a plan needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose
from faircount.protocol.survey.topology import Topology, known_topologies, topology_named
from faircount.protocol.topologies import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.wire.codec import Message, encode

if TYPE_CHECKING:
    from faircount.protocol.roles.aggregator import Aggregator as Aggregator
    from faircount.protocol.roles.aggregator import aggregator_step as aggregator_step
    from faircount.protocol.roles.aggregator import aggregator_step_with as aggregator_step_with
    from faircount.protocol.roles.client import Client as Client
    from faircount.protocol.roles.client import ClientState as ClientState
    from faircount.protocol.roles.client import has_progressed as has_progressed
    from faircount.protocol.roles.coordinator import Coordinator as Coordinator
    from faircount.protocol.roles.coordinator import coordinator_step as coordinator_step
    from faircount.protocol.roles.coordinator import end_phase as end_phase
    from faircount.protocol.roles.coordinator import resume as resume
    from faircount.protocol.roles.rows import MemoryRows as MemoryRows
    from faircount.protocol.roles.rows import RowReader as RowReader
    from faircount.protocol.roles.rows import RowWrite as RowWrite
    from faircount.protocol.roles.rows import Step as Step
    from faircount.protocol.roles.stored import Row as Row
    from faircount.protocol.roles.stored import decode_row as decode_row
    from faircount.protocol.roles.stored import decode_state as decode_state
    from faircount.protocol.roles.stored import encode_row as encode_row
    from faircount.protocol.roles.stored import encode_state as encode_state
    from faircount.protocol.survey.budget import Ledger as Ledger
    from faircount.protocol.survey.budget import compare_and_swap as compare_and_swap
    from faircount.protocol.survey.invitations import Invitation as Invitation
    from faircount.protocol.wire.messages import decode as decode

_LAZY_MODULES = {
    "Aggregator": "roles.aggregator",
    "Client": "roles.client",
    "ClientState": "roles.client",
    "Coordinator": "roles.coordinator",
    "Invitation": "survey.invitations",
    "Ledger": "survey.budget",
    "MemoryRows": "roles.rows",
    "Row": "roles.stored",
    "RowReader": "roles.rows",
    "RowWrite": "roles.rows",
    "Step": "roles.rows",
    "aggregator_step": "roles.aggregator",
    "aggregator_step_with": "roles.aggregator",
    "compare_and_swap": "survey.budget",
    "coordinator_step": "roles.coordinator",
    "decode": "wire.messages",
    "decode_row": "roles.stored",
    "decode_state": "roles.stored",
    "encode_row": "roles.stored",
    "encode_state": "roles.stored",
    "end_phase": "roles.coordinator",
    "has_progressed": "roles.client",
    "resume": "roles.coordinator",
}

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
    "aggregator_step",
    "aggregator_step_with",
    "compare_and_swap",
    "coordinator_step",
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


def __getattr__(name: str) -> object:
    if name in _LAZY_MODULES:
        return getattr(import_module(f"faircount.protocol.{_LAZY_MODULES[name]}"), name)
    raise AttributeError(f"faircount.protocol has no name {name!r}")

"""Which messages each party decodes, and how large they may be; others are rejected undecoded.

    coordinator, from clients     kinds of this topology, at most as long as this survey needs
    client, from the coordinator  kinds addressed to clients; their lists stay packed until the
                                  aggregator's signature or the client's own keys vouch for them
    server, from the other one    signed messages: the signature is verified (`verify_statement`)
                                  before what it covers is decoded

A sender has shown neither an invitation nor a signature when its bytes arrive, so decoding must
be cheap: it costs at most twice the bytes of the message.
"""

from collections.abc import Mapping
from functools import lru_cache

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party, max_encoded_size, peek_class
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.messages import Reason, Rejection, Signed, decode, reject
from faircount.sharing.packing import packed_size

MAX_SERVER_MESSAGES = 10_000
"""More messages than any survey needs between the servers; a longer conversation is a loop."""


def max_client_bytes(params: SurveyParameters, kind: type[Message]) -> int:
    """Bytes of the longest message of this kind that a client of this survey sends."""
    # A topology gives sizes only for messages that differ from the usual: a list of at most
    # everybody, and a masked vector or an encrypted seed.
    vector = packed_size(params.q, params.vector_size)
    usual = (params.n_max, max(vector + OVERHEAD, ENCRYPTED_SEED_BYTES))
    return max_encoded_size(kind, *params.topology.sizes(params).get(kind, usual))


@lru_cache(maxsize=64)
def max_bytes_by_kind(params: SurveyParameters) -> Mapping[type[Message], int]:
    """Bytes of the longest message of every kind that the coordinator accepts from clients."""
    kinds = params.topology.coordinator.user_handlers()
    return {kind: max_client_bytes(params, kind) for kind in kinds}


@lru_cache(maxsize=64)
def max_message_bytes(params: SurveyParameters) -> int:
    """Bytes of the longest message of any kind that the coordinator accepts from clients."""
    return max(max_bytes_by_kind(params).values())


def decode_client_message(params: SurveyParameters, data: bytes) -> Message:
    """Decode a client's message to the coordinator, or reject it by its kind and length."""
    kind = peek_class(data)
    max_bytes = max_bytes_by_kind(params)
    if kind is None or kind not in max_bytes:
        return reject(Reason.MALFORMED, "a survey of this topology has no such message")
    # check: upload-length - a client makes the coordinator decode a message of any size
    if len(data) > max_bytes[kind]:
        return reject(Reason.MALFORMED, "longer than any message of its kind in this survey")
    return decode(data)


def decode_response(data: bytes) -> Message:
    """Decode the coordinator's response to a client."""
    kind = peek_class(data)
    if (
        kind is None
        # check: for-participants - a client would decode what only servers read
        or kind.to is not Party.CLIENT
    ):
        return reject(Reason.MALFORMED, "no message for a client")
    return decode(data)


def decode_signed(data: bytes) -> Signed | Rejection:
    """Decode a message between the servers.

    A rejection may come unsigned: it changes no state, so nobody gains by forging one.
    """
    # check: signed-only - anybody makes a server decode large messages that nobody signed
    found = decode(data) if peek_class(data) in (Signed, Rejection) else None
    if isinstance(found, Signed | Rejection):
        return found
    return reject(Reason.MALFORMED, "the message is not signed by the other server")

"""How long a user's message can be in a survey: longer ones are refused unread, whoever sends them.

Nobody has shown an invitation before a message is read, so reading must not cost more than a message of this survey
does. Between the servers the signature comes first (`signing.verified`): what it covers is not read before.
"""

from faircount.protocol.roles.coordinate import FROM_USERS
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, class_of, most_bytes
from faircount.protocol.wire.messages import Reason, decode, rejected
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.sharing.packing import packed_size

SEED = 32
"""Bytes of the seed that a user seals where a share is expanded from one: more than a short vector has."""


def longest_upload(params: SurveyParameters, kind: type[Message]) -> int:
    """Bytes of the longest message of this kind that a user of this survey sends."""
    vector = packed_size(params.q, params.topology.vector_size(params.mechanism))
    usual = params.n_max, max(vector, SEED) + OVERHEAD
    return most_bytes(kind, *params.topology.sizes(params).get(kind, usual))


def decode_upload(params: SurveyParameters, data: bytes) -> Message:
    """A user's message to S1 as bytes; refused unread if it is longer than any of its kind in this survey."""
    kind = class_of(data)
    if kind is None or kind not in {*params.topology.s1.users, *FROM_USERS}:
        return rejected(Reason.MALFORMED, "no message for this survey in this topology")
    if len(data) > longest_upload(params, kind):
        return rejected(Reason.MALFORMED, "longer than any message of its kind in this survey")
    return decode(data)

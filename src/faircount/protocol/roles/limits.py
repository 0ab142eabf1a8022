"""What each party reads of others, and how much of it: everything else is refused unread, whoever sends it.

    S1, from users        kinds of this topology, no longer than a message of this survey is
    users, from S1        kinds for users; their lists stay packed until S2's signature or the device's own keys fit
    S1 and S2             what is signed: the signature comes first (`signing.verified`), and then what it covers

Nobody has shown an invitation or a signature before a message is read, so reading it costs at most twice its bytes.
"""

from collections.abc import Mapping
from functools import lru_cache

from faircount.protocol.roles.coordinate import FROM_USERS
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party, class_of, most_bytes
from faircount.protocol.wire.messages import Reason, Rejected, Signed, decode, rejected
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.sharing.packing import packed_size


def longest_upload(params: SurveyParameters, kind: type[Message]) -> int:
    """Bytes of the longest message of this kind that a user of this survey sends."""
    vector = packed_size(params.q, params.topology.vector_size(params.mechanism))
    usual = params.n_max, max(vector + OVERHEAD, SEALED_SEED)
    return most_bytes(kind, *params.topology.sizes(params).get(kind, usual))


@lru_cache(maxsize=64)
def longest_uploads(params: SurveyParameters) -> Mapping[type[Message], int]:
    """Bytes of the longest message of every kind that S1 takes from users of this survey."""
    return {kind: longest_upload(params, kind) for kind in (*params.topology.s1.users, *FROM_USERS)}


def decode_upload(params: SurveyParameters, data: bytes) -> Message:
    """A user's message to S1 as bytes; refused unread if it is longer than any of its kind in this survey."""
    kind, longest = class_of(data), longest_uploads(params)
    if kind is None or kind not in longest:
        return rejected(Reason.MALFORMED, "no message for this survey in this topology")
    if len(data) > longest[kind]:
        return rejected(Reason.MALFORMED, "longer than any message of its kind in this survey")
    return decode(data)


def decode_answer(data: bytes) -> Message:
    """What S1 answers a user."""
    kind = class_of(data)
    if kind is None or kind.to is not Party.USER:
        return rejected(Reason.MALFORMED, "no message for a user")
    return decode(data)


def decode_signed(data: bytes) -> Signed | Rejected:
    """What one server says to the other; a refusal may come unsigned, and changes nothing."""
    found = decode(data) if class_of(data) in (Signed, Rejected) else None
    if isinstance(found, Signed | Rejected):
        return found
    return rejected(Reason.MALFORMED, "servers read what the other one signed, and nothing else")

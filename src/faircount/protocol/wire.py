"""Bytes from outside to messages: the one place that knows every message class (importing a module registers it)."""

from faircount.core.errors import MalformedError
from faircount.protocol import messages_masked, messages_peers, messages_servers, messages_two_stage
from faircount.protocol.codec import Message, parse
from faircount.protocol.messages import Reason, rejected

KNOWN = (messages_servers, messages_peers, messages_masked, messages_two_stage)
"""Modules with messages beside the common ones; a topology adds its own."""


def decode(data: bytes) -> Message:
    """The message behind these bytes, or a `Rejected`."""
    try:
        return parse(data)
    except MalformedError as problem:
        return rejected(Reason.MALFORMED, str(problem))

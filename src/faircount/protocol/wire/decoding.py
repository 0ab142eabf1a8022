"""Bytes from outside to messages: the one place that knows every message class (importing a module registers it)."""

from faircount.core.errors import MalformedError
from faircount.protocol.topologies.masked import messages as messages_masked
from faircount.protocol.topologies.peers import messages as messages_peers
from faircount.protocol.topologies.two_servers import messages as messages_servers
from faircount.protocol.topologies.two_stage import messages as messages_two_stage
from faircount.protocol.wire.codec import Message, parse
from faircount.protocol.wire.messages import Reason, rejected

KNOWN = (messages_servers, messages_peers, messages_masked, messages_two_stage)
"""Modules with messages beside the common ones; a topology adds its own."""


def decode(data: bytes) -> Message:
    """The message behind these bytes, or a `Rejected`."""
    try:
        return parse(data)
    except MalformedError as problem:
        return rejected(Reason.MALFORMED, str(problem))

"""Several messages in one HTTP body: each message follows its length as a u32, big-endian."""

from faircount.protocol import Message, encode


def frame_messages(messages: tuple[Message, ...]) -> bytes:
    """Encode messages as one body."""
    encoded = [encode(message) for message in messages]
    return b"".join(len(data).to_bytes(4, "big") + data for data in encoded)

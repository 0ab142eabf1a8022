"""The key of the device that answered, without which nobody speaks for its participant any more.

An invitation is not enough for that: the owner has made it, and has a copy. So a client draws an
Ed25519 key with its first message, which carries the public half. The coordinator stores it when it
stores the message. A withdrawal, and every other message that shows the invitation, is signed over

    "faircount/1/device" 0x00 | params_digest | message with a signature of zeros

A signature, and not a secret that is shown: whoever reads a message on its way, for example the
owner's own TLS proxy in an office, could show such a secret again and withdraw. A signed message
can only be repeated as it is. That is harmless, so there is no counter in it: a withdrawal is
final, and a question only gets the answer that its first sender got.

Members of a roster also have a credential (`peers.member`). It serves only for messages that are
useless without the member's other keys.
"""

from dataclasses import replace
from enum import IntFlag
from typing import TypeVar

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.digests import LABEL
from faircount.protocol.wire.messages import OutcomeRequest, Withdrawal
from faircount.protocol.wire.signing import SigningKey, verify

DeviceMessage = OutcomeRequest | Withdrawal
M = TypeVar("M", OutcomeRequest, Withdrawal)


class Notice(IntFlag):
    """What happened with an invitation after a device had answered with it."""

    OTHER_DEVICE = 1  # another device sent something with the invitation, and was rejected
    REISSUE_REFUSED = 2  # the owner asked to exchange the invitation, and was refused


ALL_NOTICES = Notice.OTHER_DEVICE | Notice.REISSUE_REFUSED


def sign_for_device(
    kind: type[M], params: SurveyParameters, access: bytes, device: SigningKey
) -> M:
    """A message that shows the invitation, with the signature of the device that answered."""
    # The digest of the parameters is signed as well: the same message in another survey is
    # worthless.
    unsigned = kind(params.survey, access, device.public, bytes(64))
    return replace(unsigned, signature=device.sign(_signed_bytes(params, unsigned)))


def is_signed_by_device(params: SurveyParameters, message: DeviceMessage) -> bool:
    """Whether the key that a message names has signed it for this survey."""
    unsigned = replace(message, signature=bytes(64))
    return verify(message.device_key, message.signature, _signed_bytes(params, unsigned))


def _signed_bytes(params: SurveyParameters, unsigned: DeviceMessage) -> bytes:
    return LABEL + b"/device\0" + params.digest + encode(unsigned)

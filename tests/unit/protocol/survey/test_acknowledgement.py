"""Acknowledgements: one signature for all messages of a group, and the bytes of each."""

from dataclasses import replace

import pytest

from faircount.protocol.survey.acknowledgement import sign_together, unsigned_acknowledgement
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.signing import SigningKey

KEY = SigningKey(bytes(32))
SURVEY = b"s" * 16


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_the_bytes_that_are_written_out_are_those_of_the_codec(size: int) -> None:
    unsigned = [unsigned_acknowledgement(SURVEY, bytes((place,)) * 32) for place in range(size)]
    for place, signed in enumerate(sign_together(KEY, unsigned)):
        # A copy does not have the bytes that are kept with the message.
        assert encode(signed) == encode(replace(signed))
        assert parse(encode(signed)) == signed
        assert (signed.survey, signed.message_hash) == (SURVEY, bytes((place,)) * 32)


def test_nothing_is_signed_for_nobody() -> None:
    assert sign_together(KEY, []) == []

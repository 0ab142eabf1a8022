"""What the tests of views have in common."""

from hashlib import sha512

import pytest

from faircount.protocol.survey import acknowledgement, devices
from faircount.protocol.wire import signing


@pytest.fixture
def ideal_signatures(monkeypatch) -> None:
    """As long as real ones, and checked; they hide nothing, and take most of the time otherwise."""
    monkeypatch.setattr(
        signing.SigningKey, "sign", lambda key, data: sha512(key.public + data).digest()
    )
    for place in (signing, acknowledgement, devices):
        monkeypatch.setattr(
            place, "verify", lambda public, made, data: sha512(public + data).digest() == made
        )

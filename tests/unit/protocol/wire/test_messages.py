"""What every message class has in common: whom it is for, and rejections with a text."""

from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    Reason,
    Rejection,
    Signed,
    SyncRequest,
    addressee,
    reject,
)


def test_addresses() -> None:
    assert addressee(SyncRequest(bytes(16))) is Party.AGGREGATOR
    assert addressee(Signed(Party.COORDINATOR, b"", bytes(64))) is Party.AGGREGATOR
    assert addressee(Signed(Party.AGGREGATOR, b"", bytes(64))) is Party.COORDINATOR


def test_rejections_speak() -> None:
    assert str(reject(Reason.TOO_FEW, "ask more people")) == "rejected: too few: ask more people"
    assert reject(Reason.LATE, "a") == reject(Reason.LATE, "b")


def test_a_reason_that_nobody_has_given_out_is_read_all_the_same() -> None:
    assert Rejection(200).why is Reason.MALFORMED
    assert "malformed" in str(Rejection(200, b"?"))

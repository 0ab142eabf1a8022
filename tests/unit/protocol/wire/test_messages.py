"""What every message class has in common: whom it is for, and rejections in words."""

from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Rejected, Signed, SyncRequest, addressee, rejected


def test_addresses() -> None:
    assert addressee(SyncRequest(bytes(16))) is Party.S2
    assert addressee(Signed(Party.S1, b"", bytes(64))) is Party.S2
    assert addressee(Signed(Party.S2, b"", bytes(64))) is Party.S1


def test_rejections_speak() -> None:
    assert str(rejected(Reason.TOO_FEW, "ask more people")) == "rejected: too few: ask more people"
    assert rejected(Reason.LATE, "a") == rejected(Reason.LATE, "b")


def test_a_reason_that_nobody_has_given_out_is_read_all_the_same() -> None:
    assert Rejected(200).why is Reason.MALFORMED
    assert "malformed" in str(Rejected(200, b"?"))

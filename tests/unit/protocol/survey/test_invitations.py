"""An invitation, and which part of it a server knows."""

from hashlib import sha256

import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.protocol.survey.invitations import Invitation, user_id, verify_entry_mac


def test_an_invitation_gives_each_server_its_part() -> None:
    entropy = SeededStream(1)
    mine, other = Invitation.issue(bytes(32), entropy), Invitation.issue(bytes(32), entropy)
    key = b"\2" * 31 + b"\0"
    assert mine.access == sha256(b"s1" + mine.token).digest()
    assert mine.user == user_id(mine.access)
    assert verify_entry_mac(mine.enrolment_mac_key, bytes(32), key, mine.authenticate_key(key))
    assert not verify_entry_mac(other.enrolment_mac_key, bytes(32), key, mine.authenticate_key(key))
    assert not verify_entry_mac(mine.enrolment_mac_key, b"\1" * 32, key, mine.authenticate_key(key))
    assert not verify_entry_mac(
        mine.enrolment_mac_key, bytes(32), b"\3" * 31 + b"\0", mine.authenticate_key(key)
    )
    assert not verify_entry_mac(None, bytes(32), key, mine.authenticate_key(key))
    assert mine.token.hex() not in repr(mine)
    assert repr(mine.token)[2:-1] not in repr(mine)
    with pytest.raises(ParameterError):
        Invitation(b"short", bytes(32))

"""Sealing: section 5 byte for byte, and the ideal one that tests are made of."""

from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.protocol.wire.sealing import OVERHEAD, IdealSealing, KeyPair, RealSealing
from faircount.sharing.expand import expand
from faircount.sharing.keys import Purpose, agree, derive_key, key_info, public_key

SALT = sha256(b"roster").digest()

INFO = key_info(Purpose.MASK, bytes(range(16)), 1, 0, 1, sha256(b"set").digest())


def pair(sealing):
    entropy = SeededStream(1)
    return entropy, sealing.keypair(entropy), sealing.keypair(entropy)


@pytest.mark.parametrize("sealing", [RealSealing(), IdealSealing()], ids=["real", "ideal"])
def test_who_shares_a_key_opens_and_nobody_else(sealing) -> None:
    entropy, a, b = pair(sealing)
    secret = sealing.agree(a, b.public)
    assert secret == sealing.agree(b, a.public)
    blob = sealing.seal(secret, SALT, INFO, b"twenty bytes or more", entropy)
    assert len(blob) == 20 + OVERHEAD
    assert sealing.open(secret, SALT, INFO, blob) == b"twenty bytes or more"
    assert sealing.open(sealing.agree(sealing.keypair(entropy), b.public), SALT, INFO, blob) is None
    assert sealing.open(secret, bytes(32), INFO, blob) is None
    assert sealing.open(secret, SALT, INFO + b"x", blob) is None
    assert sealing.open(secret, SALT, INFO, blob[:-1] + bytes([blob[-1] ^ 1])) is None
    assert sealing.open(secret, SALT, INFO, blob[:20]) is None


def test_real_keys_are_those_of_section_5() -> None:
    sealing, mine = RealSealing(), bytes(range(1, 33))
    theirs = bytes(range(33, 65))
    keys = KeyPair(mine, public_key(mine))
    secret = sealing.agree(keys, public_key(theirs))
    key = derive_key(agree(sealing.keypair_of(theirs).private, keys.public), SALT, INFO)
    blob = sealing.seal(secret, SALT, INFO, b"x", SeededStream(1))
    assert AESGCM(key).decrypt(blob[:12], blob[12:], None) == b"x"
    assert np.array_equal(sealing.stretch(secret, SALT, INFO, 1009, 50), expand(key, 1009, 50))
    assert sealing.stretch(secret, SALT, INFO, 1009, 4).tolist() == [600, 708, 801, 203]  # the page's known answer


@pytest.mark.parametrize("theirs", [bytes(32), b"\1" + bytes(31), b"\xff" * 32, b"short"])
def test_keys_that_give_no_secret_are_refused(theirs) -> None:
    sealing = RealSealing()
    assert sealing.agree(sealing.keypair(SeededStream(1)), theirs) is None


def test_generated_keys_are_their_own() -> None:
    keys = RealSealing().keypair(SeededStream(3))
    assert keys.public == public_key(keys.secret)
    assert keys.private is keys.private
    assert keys.secret.hex() not in repr(keys)
    assert repr(keys.secret)[2:-1] not in repr(keys)


def test_an_ideal_handle_says_nothing_about_what_is_in_it() -> None:
    handles = set()
    for inside in (b"one", b"two"):
        sealing = IdealSealing()
        entropy, a, b = pair(sealing)
        handles.add(sealing.seal(sealing.agree(a, b.public), SALT, INFO, inside, entropy))
    assert len(handles) == 1


def test_an_ideal_key_seals_one_message() -> None:
    sealing = IdealSealing()
    entropy, a, b = pair(sealing)
    secret = sealing.agree(a, b.public)
    for _ in range(2):
        sealing.seal(secret, SALT, INFO, b"one", entropy)
    with pytest.raises(ProtocolError, match="drawn twice"):
        sealing.seal(secret, SALT, INFO, b"two", entropy)


def test_ideal_masks_are_the_tests_own() -> None:
    sealing = IdealSealing(lambda secret, info, q, count: np.full(count, len(secret) % q, dtype=np.uint8))
    assert sealing.stretch(b"abc", SALT, INFO, 7, 2).tolist() == [3, 3]
    assert IdealSealing().stretch(b"abc", SALT, INFO, 7, 5).max() < 7


def test_commitments_hide_and_bind() -> None:
    real, ideal = RealSealing(), IdealSealing()
    assert real.commit(bytes(16), b"a") != real.commit(bytes(16), b"b")
    assert real.commit(bytes(16), b"a") != real.commit(b"\1" * 16, b"a")
    assert ideal.commit(bytes(16), b"a") == IdealSealing().commit(bytes(16), b"b")  # says nothing of the content
    assert ideal.commit(bytes(16), b"b") != ideal.commit(bytes(16), b"a")

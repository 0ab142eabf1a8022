"""Sealing: section 5 byte for byte, and the ideal one that tests are made of."""

from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.protocol.wire.crypto import OVERHEAD, IdealCrypto, KeyPair, StandardCrypto
from faircount.sharing.expand import expand
from faircount.sharing.keys import Purpose, agree, derive_key, key_info, public_key

SALT = sha256(b"roster").digest()

INFO = key_info(Purpose.MASK, bytes(range(16)), 1, 0, 1, sha256(b"set").digest())


def pair(crypto):
    entropy = SeededStream(1)
    return entropy, crypto.keypair(entropy), crypto.keypair(entropy)


@pytest.mark.parametrize("crypto", [StandardCrypto(), IdealCrypto()], ids=["real", "ideal"])
def test_who_shares_a_key_opens_and_nobody_else(crypto) -> None:
    entropy, a, b = pair(crypto)
    secret = crypto.agree(a, b.public)
    assert secret == crypto.agree(b, a.public)
    encrypted_share = crypto.encrypt(secret, SALT, INFO, b"twenty bytes or more", entropy)
    assert len(encrypted_share) == 20 + OVERHEAD
    assert crypto.decrypt(secret, SALT, INFO, encrypted_share) == b"twenty bytes or more"
    assert (
        crypto.decrypt(crypto.agree(crypto.keypair(entropy), b.public), SALT, INFO, encrypted_share)
        is None
    )
    assert crypto.decrypt(secret, bytes(32), INFO, encrypted_share) is None
    assert crypto.decrypt(secret, SALT, INFO + b"x", encrypted_share) is None
    assert (
        crypto.decrypt(secret, SALT, INFO, encrypted_share[:-1] + bytes([encrypted_share[-1] ^ 1]))
        is None
    )
    assert crypto.decrypt(secret, SALT, INFO, encrypted_share[:20]) is None


def test_real_keys_are_those_of_section_5() -> None:
    crypto, mine = StandardCrypto(), bytes(range(1, 33))
    theirs = bytes(range(33, 65))
    keys = KeyPair(mine, public_key(mine))
    secret = crypto.agree(keys, public_key(theirs))
    key = derive_key(agree(crypto.keypair_from(theirs).private, keys.public), SALT, INFO)
    encrypted_share = crypto.encrypt(secret, SALT, INFO, b"x", SeededStream(1))
    assert AESGCM(key).decrypt(encrypted_share[:12], encrypted_share[12:], None) == b"x"
    assert np.array_equal(crypto.expand(secret, SALT, INFO, 1009, 50), expand(key, 1009, 50))
    assert crypto.expand(secret, SALT, INFO, 1009, 4).tolist() == [
        600,
        708,
        801,
        203,
    ]  # the page's known answer


@pytest.mark.parametrize("theirs", [bytes(32), b"\1" + bytes(31), b"\xff" * 32, b"short"])
def test_keys_that_give_no_secret_are_refused(theirs) -> None:
    crypto = StandardCrypto()
    assert crypto.agree(crypto.keypair(SeededStream(1)), theirs) is None


def test_generated_keys_are_their_own() -> None:
    keys = StandardCrypto().keypair(SeededStream(3))
    assert keys.public == public_key(keys.secret)
    assert keys.private is keys.private
    assert keys.secret.hex() not in repr(keys)
    assert repr(keys.secret)[2:-1] not in repr(keys)


def test_an_ideal_handle_says_nothing_about_what_is_in_it() -> None:
    handles = set()
    for inside in (b"one", b"two"):
        crypto = IdealCrypto()
        entropy, a, b = pair(crypto)
        handles.add(crypto.encrypt(crypto.agree(a, b.public), SALT, INFO, inside, entropy))
    assert len(handles) == 1


def test_an_ideal_key_seals_one_message() -> None:
    crypto = IdealCrypto()
    entropy, a, b = pair(crypto)
    secret = crypto.agree(a, b.public)
    for _ in range(2):
        crypto.encrypt(secret, SALT, INFO, b"one", entropy)
    with pytest.raises(ProtocolError, match="drawn twice"):
        crypto.encrypt(secret, SALT, INFO, b"two", entropy)


def test_ideal_masks_are_the_tests_own() -> None:
    crypto = IdealCrypto(
        lambda secret, info, q, count: np.full(count, len(secret) % q, dtype=np.uint8)
    )
    assert crypto.expand(b"abc", SALT, INFO, 7, 2).tolist() == [3, 3]
    assert IdealCrypto().expand(b"abc", SALT, INFO, 7, 5).max() < 7


def test_commitments_hide_and_bind() -> None:
    real, ideal = StandardCrypto(), IdealCrypto()
    assert real.commit(bytes(16), b"a") != real.commit(bytes(16), b"b")
    assert real.commit(bytes(16), b"a") != real.commit(b"\1" * 16, b"a")
    assert ideal.commit(bytes(16), b"a") == IdealCrypto().commit(
        bytes(16), b"b"
    )  # says nothing of the content
    assert ideal.commit(bytes(16), b"b") != ideal.commit(bytes(16), b"a")

import hashlib
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from faircount.core.errors import (
    ParameterError,
    ShareError,
)
from faircount.sharing.expand import expand
from faircount.sharing.keys import (
    S2_INDEX,
    Purpose,
    agree,
    check_public_key,
    derive_key,
    is_canonical_key,
    key_info,
    public_key,
)

ALICE, BOB = bytes(range(0x01, 0x21)), bytes(range(0x21, 0x41))

SURVEY, CONTEXT, SALT = (
    bytes(range(16)),
    hashlib.sha256(b"set").digest(),
    hashlib.sha256(b"roster").digest(),
)

PRIME = 2**255 - 19


def info(**changed):
    usual = {
        "purpose": Purpose.MASK,
        "survey": SURVEY,
        "attempt": 1,
        "sender": 0,
        "receiver": 1,
        "context": CONTEXT,
    }
    return key_info(**{**usual, **changed})


def point(u):
    return u.to_bytes(32, "little")


def pair_key(private: bytes, public: bytes, salt: bytes, info: bytes) -> bytes:
    return derive_key(agree(X25519PrivateKey.from_private_bytes(private), public), salt, info)


@pytest.mark.parametrize(
    ("q", "first", "digest"),
    [
        (1009, [600, 708, 801, 203], "9b2a2c88a270891c"),
        (100003, None, "556b601651202a2b"),
        (2**61 - 1, None, "752200968399932c"),
    ],
)
def test_known_answer_of_the_protocol_page(q, first, digest):
    """The page's digests are over elements that are packed one by one."""
    vector = expand(pair_key(ALICE, public_key(BOB), SALT, info()), q, 1000)
    assert first is None or vector[:4].tolist() == first
    bits = (q - 1).bit_length()
    whole = sum(int(element) << bits * at for at, element in enumerate(vector))
    assert (
        hashlib.sha256(whole.to_bytes((1000 * bits + 7) // 8, "little"))
        .hexdigest()
        .startswith(digest)
    )


@pytest.mark.parametrize("salt", [b"", SALT, bytes(32), bytes(range(200))])
def test_keys_are_those_of_the_librarys_hkdf(salt):
    for secret in (b"", ALICE, bytes(100)):
        assert derive_key(secret, salt, info()) == HKDF(SHA256(), 32, salt, info()).derive(secret)


def test_both_ends_get_the_same_key():
    key = pair_key(ALICE, public_key(BOB), SALT, info())
    assert len(key) == 32
    assert pair_key(BOB, public_key(ALICE), SALT, info()) == key


def test_info_is_laid_out_as_the_page_says():
    made = info(purpose=Purpose.SERVERS, attempt=258, sender=3, receiver=S2_INDEX)
    assert (
        made == b"faircount/1\x00\x04" + SURVEY + struct.pack(">III", 258, 3, 0xFFFFFFFF) + CONTEXT
    )
    assert len(made) == 73


def test_purposes_and_servers_have_their_numbers():
    assert [purpose.name for purpose in Purpose] == [
        *(
            "MASK",
            "EXPLICIT_SHARE",
            "SEED",
            "SERVERS",
            "TSS_SHARE",
            "KEY_RECOVERY",
            "SEED_EXPANSION",
        ),
    ]
    assert list(Purpose) == [1, 2, 3, 4, 5, 7, 8]  # 6 was given once, and is never given again
    assert S2_INDEX == 0xFFFFFFFF


def test_every_part_of_the_info_changes_the_key():
    changes = [
        *({}, {"purpose": Purpose.SEED}, {"survey": bytes(16)}, {"attempt": 2}),
        *({"receiver": 2}, {"sender": 1, "receiver": 2}, {"context": SALT}),
    ]
    keys = {pair_key(ALICE, public_key(BOB), SALT, info(**change)) for change in changes}
    keys.add(pair_key(ALICE, public_key(BOB), CONTEXT, info()))
    keys.add(pair_key(ALICE, public_key(ALICE), SALT, info()))
    assert len(keys) == len(changes) + 2


def test_a_mask_is_keyed_by_the_smaller_index_first():
    for sender, receiver in ((1, 0), (4, 4)):
        with pytest.raises(ParameterError, match="smaller index"):
            info(sender=sender, receiver=receiver)
        assert len(info(purpose=Purpose.SEED, sender=sender, receiver=receiver)) == 73


@pytest.mark.parametrize(
    "u",
    [
        *(0, 1, PRIME - 1),
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    ],
)
def test_public_keys_of_small_order_are_refused(u):
    with pytest.raises(ShareError, match="low order"):
        pair_key(ALICE, point(u), SALT, info())


@pytest.mark.parametrize("u", [PRIME, PRIME + 9, 2**255 - 1, 2**255 + 9, 2**256 - 1])
def test_public_keys_that_are_not_canonical_are_refused(u):
    with pytest.raises(ShareError, match="canonical"):
        pair_key(ALICE, point(u), SALT, info())


def test_canonical_public_keys_pass():
    assert check_public_key(public_key(ALICE)) == public_key(ALICE)
    assert check_public_key(point(9)) == point(9)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_byte_strings_have_their_size(size):
    wrong = bytes(size)
    for make in (
        lambda: pair_key(ALICE, wrong, SALT, info()),
        lambda: public_key(wrong),
        lambda: info(survey=wrong),
        lambda: info(context=wrong),
        lambda: info(context="x" * 32),
    ):
        with pytest.raises(ShareError, match="must be exactly"):
            make()


@pytest.mark.parametrize(
    "changed",
    [
        *({"purpose": 0}, {"purpose": 9}, {"attempt": -1}, {"attempt": 2**32}),
        *({"receiver": 2**32}, {"sender": -1}, {"attempt": 1.0}),
    ],
)
def test_numbers_out_of_range_are_refused(changed):
    with pytest.raises(ParameterError):
        info(**changed)


def test_messages_contain_no_key():
    secret = bytes([0x5A]) * 33
    with pytest.raises(ShareError) as caught:
        public_key(secret)
    assert "5a" not in str(caught.value).lower()
    assert "ZZ" not in str(caught.value)


def test_public_keys_have_one_encoding() -> None:
    prime = (1 << 255) - 19
    assert is_canonical_key((prime - 2).to_bytes(32, "little"))
    assert not is_canonical_key((prime - 1).to_bytes(32, "little"))  # of low order
    assert not is_canonical_key(prime.to_bytes(32, "little"))
    assert not is_canonical_key(b"\xff" * 32)
    assert not is_canonical_key(bytes(31))

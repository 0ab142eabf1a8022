import hashlib
from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.errors import ParameterError, ShareError
from faircount.sharing.expand import expand, expand_rows
from faircount.sharing.field import BLOCK_BYTES, dtype_for

KEY = hashlib.sha256(b"a key to expand").digest()
MODULI = [
    2,
    251,
    1009,
    10007,
    32771,
    46349,
    65521,
    65537,
    100003,
    2**31 + 11,
    2**32 - 5,
    2**32 + 15,
    2**61 - 1,
]


def by_the_page(key, q, count):
    """Protocol section 5 word by word, from single encrypted counter blocks."""
    size = 2 if q < 1 << 16 else 4 if q < 1 << 32 else 8
    limit = (1 << 8 * size) // q * q
    blocks = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 - a block at a time is what is tested
    elements, counter = [], 0
    while len(elements) < count:
        block = blocks.update(counter.to_bytes(16, "big"))
        words = [int.from_bytes(block[at : at + size], "little") for at in range(0, 16, size)]
        elements += [word % q for word in words if word < limit]
        counter += 1
    return elements[:count]


@pytest.mark.parametrize("q", MODULI)
@pytest.mark.parametrize("count", [0, 1, 30, 1000])
def test_is_what_the_page_says(q, count):
    vector = expand(KEY, q, count)
    assert vector.dtype == dtype_for(q)
    assert vector.tolist() == by_the_page(KEY, q, count)


def test_the_last_accepted_and_the_first_rejected_word(monkeypatch):
    words = np.array(
        [64 * 1009 - 1, 64 * 1009, 7, 65535, 2019, 64 * 1009 - 2, *range(50)], dtype="<u2"
    ).tobytes()

    class Stream:
        def update(self, zeros):
            return words[: len(zeros)]

    monkeypatch.setattr("faircount.sharing.expand.key_stream", lambda key: Stream())
    assert expand(KEY, 1009, 5).tolist() == [1008, 7, 1, 1007, 0]


@pytest.mark.parametrize("q", MODULI)
def test_a_longer_vector_begins_with_the_shorter(q):
    longest = expand(KEY, q, BLOCK_BYTES + 5)
    for count in (1, 29, BLOCK_BYTES // 8, BLOCK_BYTES // 2 + 1):
        assert np.array_equal(expand(KEY, q, count), longest[:count])


def test_another_key_gives_another_vector():
    assert not np.array_equal(expand(KEY, 1009, 30), expand(bytes(32), 1009, 30))


def test_bad_input_is_refused():
    for key in (b"", KEY[:31], KEY + b"\0"):
        with pytest.raises(ShareError, match="32 bytes"):
            expand(key, 1009, 3)
    with pytest.raises(ParameterError, match="count"):
        expand(KEY, 1009, -1)
    with pytest.raises(ParameterError, match="q must be"):
        expand(KEY, 2**62 + 1, 1)


def keys(count: int) -> list[bytes]:
    return [sha256(bytes([i])).digest() for i in range(count)]


@given(q=st.integers(2, 2**62), rows=st.integers(0, 5), count=st.integers(0, 40))
def test_rows_are_the_expansions(q, rows, count) -> None:
    found = expand_rows(keys(rows), q, count)
    assert found.shape == (rows, count)
    for key, row in zip(keys(rows), found, strict=True):
        alone = expand(key, q, count)
        assert row.dtype == alone.dtype
        assert row.tolist() == alone.tolist()


@pytest.mark.parametrize("q", [32769, 43691, 2**31 + 11])
def test_half_of_the_words_are_rejected(q) -> None:
    """Far more rejections than spare words: such a row is drawn on its own."""
    found = expand_rows(keys(20), q, 50)
    assert np.array_equal(found, [expand(key, q, 50) for key in keys(20)])


def test_keys_have_32_bytes() -> None:
    with pytest.raises(ShareError, match="32 bytes"):
        expand_rows([b"short"], 1009, 5)


@pytest.mark.parametrize("q", [40961, 32771, 6217, 2863311531])
def test_rows_with_many_rejected_words_are_the_expansions_too(q):
    """Up to half of all words are rejected: no row may stop early or use a rejected word."""
    keys = [number.to_bytes(32, "big") for number in range(60)]
    assert all(
        np.array_equal(row, expand(key, q, 90))
        for key, row in zip(keys, expand_rows(keys, q, 90), strict=True)
    )

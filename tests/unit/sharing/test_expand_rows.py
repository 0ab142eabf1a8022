"""Many keys expanded at once: the same elements as one by one, also where words are rejected."""

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.errors import ShareError
from faircount.sharing.expand import expand, expand_rows


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

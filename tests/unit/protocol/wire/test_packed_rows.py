"""Matrices packed row by row are the single vectors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import InputError
from faircount.protocol.wire.packed_rows import (
    first_elements,
    is_vector,
    pack_rows,
    sum_packed,
    unpack_rows,
)
from faircount.sharing.field import uniform
from faircount.sharing.packing import pack, unpack


@given(
    st.sampled_from([2, 7, 251, 257, 1009, 65537, 100003, 2**31 - 1, 2**61 - 1]),
    st.integers(1, 60),
    st.integers(0, 5),
)
def test_rows_are_packed_as_single_vectors_are(q, count, rows) -> None:
    matrix = uniform(q, (rows, count), SeededStream(q + count))
    packed = pack_rows(matrix, q)
    assert packed == [pack(row, q) for row in matrix]
    back, fine = unpack_rows(packed, q, count)
    assert fine.all()
    assert np.array_equal(back, matrix)
    total = sum(matrix.astype(object)) % q if rows else np.zeros(count)
    assert sum_packed(packed, q, count).tolist() == list(total)


@given(st.binary(max_size=8), st.sampled_from([5, 7, 251, 1009]), st.integers(1, 9))
def test_bad_rows_are_found_as_single_vectors_are(data, q, count) -> None:
    try:
        wanted = unpack(data, q, count)
    except InputError:
        wanted = None
    rows, fine = unpack_rows([data], q, count)
    assert bool(fine[0]) == (wanted is not None) == is_vector(data, q, count)
    assert rows[0].tolist() == (wanted.tolist() if wanted is not None else [0] * count)


@given(
    st.sampled_from([2, 5, 1009, 65537, 2**31 - 1, 2**58 - 27, 2**61 - 1]),
    st.integers(1, 60),
    st.integers(0, 12),
)
def test_the_first_elements_are_those_of_the_whole_vector(q, count, more) -> None:
    matrix = uniform(q, (3, count + more), SeededStream(q + count))
    assert np.array_equal(first_elements(pack_rows(matrix, q), q, count), matrix[:, :count])


@given(st.sampled_from([5, 7, 251, 1009, 100003, 2**31 - 1]), st.integers(1, 60), st.data())
def test_one_changed_bit_is_judged_alike_everywhere(q, count, data) -> None:
    """Vectors of the largest elements, with a bit changed in any group, in the last one, or behind it."""
    packed = bytearray(pack(np.full(count, q - 1), q))
    at = data.draw(st.integers(0, 8 * len(packed) - 1))
    packed[at // 8] ^= 1 << at % 8
    fine = bool(unpack_rows([bytes(packed)], q, count)[1][0])
    assert fine == is_vector(bytes(packed), q, count)
    assert fine == (pack(unpack_rows([bytes(packed)], q, count)[0][0], q) == bytes(packed))

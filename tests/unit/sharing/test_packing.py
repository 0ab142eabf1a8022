import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing.field import dtype_for, uniform
from faircount.sharing.packing import pack, packed_size, unpack

EDGES = [2, 3, 4, 5, 255, 256, 257, 1009, 65521, 65536, 65537, 2**31, 2**32 - 5, 2**32, 2**61 - 1, 2**62]


@st.composite
def vectors(draw):
    q = draw(st.one_of(st.sampled_from(EDGES), st.integers(2, 2**62)))
    element = st.one_of(st.integers(0, q - 1), st.sampled_from([0, q - 1]))
    return q, draw(st.lists(element, max_size=40))


def by_the_page(elements, q):
    """Protocol section 5 as one large integer: element t at bits [t b, (t+1) b), least significant first."""
    bits = (q - 1).bit_length()
    number = sum(element << t * bits for t, element in enumerate(elements))
    return number.to_bytes(-(-len(elements) * bits // 8), "little")


@given(vectors())
def test_is_what_the_page_says(drawn):
    q, elements = drawn
    assert pack(np.array(elements, dtype=np.uint64), q) == by_the_page(elements, q)
    assert packed_size(q, len(elements)) == len(by_the_page(elements, q))


@given(vectors())
def test_unpack_undoes_pack(drawn):
    q, elements = drawn
    vector = unpack(pack(np.array(elements, dtype=np.uint64), q), q, len(elements))
    assert vector.tolist() == elements
    assert vector.dtype == dtype_for(q)


@given(st.integers(2, 2**20), st.integers(0, 6), st.data())
def test_what_unpacks_is_the_only_encoding(q, count, data):
    """Arbitrary bytes either are refused or pack to themselves again."""
    size = packed_size(q, count)
    octets = data.draw(st.binary(min_size=size, max_size=size))
    try:
        vector = unpack(octets, q, count)
    except ShareError:
        return
    assert pack(vector, q) == octets


@pytest.mark.parametrize("q", EDGES)
def test_long_vectors(q):
    vector = uniform(q, 10_001, SeededStream(q % 1000))
    assert np.array_equal(unpack(pack(vector, q), q, vector.size), vector)


def test_wrong_length_is_refused():
    data = pack([1, 2, 3], 1009)
    for octets in (b"", data[:-1], data + b"\0"):
        with pytest.raises(ShareError, match="take 4 bytes"):
            unpack(octets, 1009, 3)


@pytest.mark.parametrize("bit", [6, 7])
def test_padding_must_be_zero(bit):
    data = bytearray(pack([1, 2, 3], 1009))
    data[-1] |= 1 << bit
    with pytest.raises(ShareError, match="must be zero"):
        unpack(bytes(data), 1009, 3)


@pytest.mark.parametrize("element", [1009, 1023])
def test_an_element_from_q_on_is_refused(element):
    data = by_the_page([5, element], 1024)
    with pytest.raises(ShareError, match="between 0 and 1008"):
        unpack(data, 1009, 2)


def test_bad_input_is_refused():
    for values in ([[1, 2]], 3):
        with pytest.raises(ShareError, match="vector"):
            pack(values, 5)
    with pytest.raises(ShareError):
        pack([5], 5)
    with pytest.raises(ParameterError, match="count"):
        unpack(b"", 5, -1)
    with pytest.raises(ParameterError, match="q must be"):
        unpack(b"", 1, 0)

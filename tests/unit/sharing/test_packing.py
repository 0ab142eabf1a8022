import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing.field import dtype_for, uniform
from faircount.sharing.packing import pack, packed_bits, packed_size, unpack

EDGES = [
    2,
    3,
    4,
    5,
    255,
    256,
    257,
    1009,
    65521,
    65536,
    65537,
    2**31 - 1,
    2**31,
    2**32 - 5,
    2**32,
    2**61 - 1,
    2**62,
]
EDGES += [
    94906265,
    94906266,
    2**53 - 111,
    2**53,
    2**53 + 1,
    2**57 + 1,
]  # two elements just fit in 53 bits, or do not


@st.composite
def vectors(draw):
    q = draw(st.one_of(st.sampled_from(EDGES), st.integers(2, 2**20), st.integers(2, 2**62)))
    element = st.one_of(st.integers(0, q - 1), st.sampled_from([0, q - 1]))
    return q, draw(st.lists(element, max_size=120))  # two groups and more for every q


def by_the_page(elements, q):
    """Section 5 of the protocol as one large integer: groups in base q."""
    together = max([1, *(g for g in range(1, 54) if q**g <= 2**53)])
    number = bits = 0
    for start in range(0, len(elements), together):
        group = elements[start : start + together]
        number += sum(element * q**at for at, element in enumerate(group)) << bits
        bits += (q ** len(group) - 1).bit_length()
    return number.to_bytes(-(-bits // 8), "little")


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


def test_elements_take_fewer_bits_than_one_by_one():
    """5 elements take 52 bits, not 55, for 1,000 users; 3 take 50, not 51, for 100,000."""
    assert [packed_bits(1213, count) for count in (0, 1, 4, 5, 6, 10)] == [0, 11, 41, 52, 63, 104]
    assert [packed_bits(100237, count) for count in (1, 2, 3, 4, 614)] == [
        17,
        34,
        50,
        67,
        204 * 50 + 34,
    ]
    assert [packed_bits(q, 600) for q in (2, 256, 2**31, 2**62)] == [600, 4800, 18600, 37200]


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


@pytest.mark.parametrize(("together", "before"), [(5, 0), (2, 0), (5, 5), (1, 5)])
def test_a_group_that_is_too_large_is_refused(together, before):
    """The largest group is one of largest elements; one more, and all bits set, are refused."""
    limit, count = 1009**together, before + together
    size, start = packed_size(1009, count), packed_bits(1009, before)
    assert (
        unpack((limit - 1 << start).to_bytes(size, "little"), 1009, count)[before:].tolist()
        == [1008] * together
    )
    for group in (limit, (1 << limit.bit_length()) - 1):
        with pytest.raises(ShareError, match="between 0 and 1008"):
            unpack((group << start).to_bytes(size, "little"), 1009, count)


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

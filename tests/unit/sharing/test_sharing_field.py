import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from faircount.core.entropy import SeededStream, SystemEntropy
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing import field
from faircount.sharing.expand import expand
from faircount.sharing.field import (
    add,
    check_residues,
    dtype_for,
    from_signed,
    last_accepted,
    reduce_mod,
    subtract,
    sum_middle_axis,
    sum_rows,
    to_signed,
    uniform,
    word_for,
)
from faircount.sharing.packing import pack, unpack

BIG = 2**62 - 57  # the largest prime below 2^62
EDGES = [
    2,
    3,
    61,
    67,
    127,
    131,
    251,
    257,
    1009,
    16381,
    32771,
    65521,
    65537,
    2**31 - 1,
    2**32 - 5,
    2**32 + 15,
    BIG,
]
moduli = st.one_of(st.sampled_from(EDGES), st.integers(2, 2**62))


@st.composite
def vectors(draw, count=2):
    q = draw(moduli)
    size = draw(st.integers(0, 20))
    element = st.one_of(st.integers(0, q - 1), st.sampled_from([0, q - 1]))
    lists = [draw(st.lists(element, min_size=size, max_size=size)) for _ in range(count)]
    return q, *(np.array(values, dtype=np.uint64) for values in lists)


# types and checks


@pytest.mark.parametrize(
    ("q", "kind", "word"),
    [
        *((2, "u1", "u2"), (255, "u1", "u2"), (256, "u2", "u2"), (65535, "u2", "u2")),
        *((65536, "u4", "u4"), (2**32 - 1, "u4", "u4"), (2**32, "u8", "u8"), (2**62, "u8", "u8")),
    ],
)
def test_smallest_type(q, kind, word):
    assert dtype_for(q) == np.dtype(kind)
    assert word_for(q) == np.dtype(word)


@pytest.mark.parametrize("q", [1, 0, -3, 2**62 + 1, 5.0, True, "7", None])
def test_modulus_out_of_range(q):
    dtype_for(5)  # an equal number of another type must not be found in a cache
    with pytest.raises(ParameterError, match="q must be"):
        dtype_for(q)


@pytest.mark.parametrize(
    "values", [[-1], [5], [0, 1, 2**63], [1.0], [True], ["1"], [None], [], 7, [2**64]]
)
def test_check_refuses(values):
    with pytest.raises(ShareError):
        check_residues(values, 5)


def test_check_accepts_canonical_residues_of_any_integer_type():
    for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        clean = check_residues(np.array([[0, 4], [3, 1]], dtype=kind), 5)
        assert clean.dtype == np.uint8
        assert clean.tolist() == [[0, 4], [3, 1]]
    assert check_residues(np.array([], dtype=np.int64), 5).size == 0


# arithmetic


@given(vectors())
def test_add_and_subtract_agree_with_integers(drawn):
    q, a, b = drawn
    assert add(a, b, q).tolist() == [
        (x + y) % q for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert subtract(a, b, q).tolist() == [
        (x - y) % q for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert add(a, b, q).dtype == subtract(a, b, q).dtype == dtype_for(q)


@given(vectors())
def test_subtract_undoes_add(drawn):
    q, a, b = drawn
    assert np.array_equal(subtract(add(a, b, q), b, q), a)


@pytest.mark.parametrize("operation", [add, subtract])
def test_vectors_of_different_shape_are_refused(operation):
    with pytest.raises(ShareError, match="same shape"):
        operation([1, 2], [1], 5)


def test_operands_are_not_changed():
    a, b = np.array([4, 4], dtype=np.uint8), np.array([3, 4], dtype=np.uint8)
    (
        add(a, b, 5),
        subtract(a, b, 5),
        sum_rows(np.stack([a, b]), 5),
        sum_middle_axis(np.stack([a, b])[None], 5),
    )
    assert a.tolist() == [4, 4]
    assert b.tolist() == [3, 4]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_sum_shares_no_memory_with_its_rows(rows):
    matrix = np.ones((rows, 3), dtype=np.uint8)
    assert not np.shares_memory(sum_rows(matrix, 5), matrix)


@pytest.mark.parametrize("q", [*EDGES, 2**62])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 13, 63, 64, 65, 66, 255, 1000, 4099])
def test_sums_of_largest_elements_do_not_wrap(q, rows):
    total = sum_rows(np.full((rows, 3), q - 1, dtype=dtype_for(q)), q)
    assert total.tolist() == [-rows % q] * 3
    assert total.dtype == dtype_for(q)


@pytest.mark.parametrize("q", [251, 16381, 65521, 2**32 - 5])
def test_a_hundred_thousand_largest_elements(q):
    rows = 2**17 + 1
    assert sum_rows(np.full(rows, q - 1, dtype=dtype_for(q)), q) == -rows % q


@given(moduli)
def test_the_type_of_sums_holds_four_residues(q):
    assert 4 * (q - 1) <= np.iinfo(field.sum_dtype_for(q)).max


@given(moduli, st.integers(0, 40), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))
def test_fold_agrees_with_integers(q, rows, outer, width, seed):
    cube = uniform(q, (outer, rows, width), SeededStream(seed))
    expected = [[sum(cube[u, :, w].tolist()) % q for w in range(width)] for u in range(outer)]
    assert sum_middle_axis(cube, q).tolist() == expected


def test_sum_rows_keeps_the_shape_of_a_row():
    cube = np.arange(24).reshape(4, 3, 2) % 7
    assert sum_rows(cube, 7).tolist() == (cube.sum(axis=0) % 7).tolist()
    assert sum_rows(np.zeros((0, 2), dtype=np.int64), 7).tolist() == [0, 0]
    with pytest.raises(ShareError, match="one row per summand"):
        sum_rows(3, 7)


@pytest.mark.parametrize("q", [251, 1009, 2**32 - 5, BIG, 2**62])
def test_a_modulus_from_an_array_is_as_good(q):
    """NumPy integers overflow where Python's do not."""
    scalar, vector = np.array([q])[0], np.array([0, 1, q - 1])
    assert uniform(scalar, 50, SeededStream(1)).tolist() == uniform(q, 50, SeededStream(1)).tolist()
    assert add(vector, vector, scalar).tolist() == add(vector, vector, q).tolist()
    assert (
        subtract(vector[::-1], vector, scalar).tolist()
        == subtract(vector[::-1], vector, q).tolist()
    )
    assert sum_rows(vector, scalar) == sum_rows(vector, q)
    assert to_signed(vector, scalar, -1).tolist() == [0, 1, -1]
    assert from_signed([-1], scalar).tolist() == [q - 1]
    assert unpack(pack(vector, scalar), scalar, 3).tolist() == vector.tolist()
    assert expand(bytes(32), scalar, 9).tolist() == expand(bytes(32), q, 9).tolist()


# signed numbers


@given(moduli, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10))
def test_from_signed_is_the_residue(q, ints):
    residues = from_signed(np.array(ints, dtype=np.int64), q)
    assert residues.tolist() == [value % q for value in ints]
    assert residues.dtype == dtype_for(q)


@pytest.mark.parametrize("q", [2, 251, 70_001, 2**62])
def test_from_signed_is_the_residue_of_many_numbers_at_both_ends_of_the_range(q):
    """Many numbers are reduced in another way than few."""
    least = -(2**63)
    ints = [*range(least, least + 300), *range(-300, 300), *range(2**63 - 300, 2**63)]
    residues = from_signed(np.array(ints, dtype=np.int64), q)
    assert residues.tolist() == [value % q for value in ints]
    assert residues.dtype == dtype_for(q)


def test_from_signed_takes_unsigned_numbers_above_the_signed_range():
    assert from_signed(np.array([2**64 - 1], dtype=np.uint64), 1009).tolist() == [
        (2**64 - 1) % 1009
    ]
    with pytest.raises(ShareError):
        from_signed([0.5], 5)


@given(st.data(), moduli)
def test_to_signed_is_the_representative_in_the_window(data, q):
    low = data.draw(
        st.one_of(
            st.integers(-(2**63), 2**63 - q), st.sampled_from([-(2**63), 2**63 - q, 0, -(q // 2)])
        )
    )
    residues = data.draw(
        st.lists(st.one_of(st.integers(0, q - 1), st.sampled_from([0, q - 1])), max_size=8)
    )
    signed = to_signed(np.array(residues, dtype=np.uint64), q, low)
    assert signed.dtype == np.int64
    assert all(low <= value < low + q for value in signed.tolist())
    assert [value % q for value in signed.tolist()] == residues


@given(vectors(count=1), st.integers(-(2**40), 2**40))
def test_from_signed_undoes_to_signed(drawn, low):
    q, residues = drawn
    assert np.array_equal(from_signed(to_signed(residues, q, low), q), residues)


@pytest.mark.parametrize("low", [-(2**63) - 1, 2**63 - 4, 0.5])
def test_a_window_outside_64_bits_is_refused(low):
    with pytest.raises(ParameterError, match="low"):
        to_signed([1], 5, low)


# uniform elements: the map from words to elements, exactly


@pytest.mark.parametrize(
    "q", [2, 3, 255, 257, 1009, 5003, 10007, 21851, 32771, 46349, 65521, 65535]
)
def test_each_element_has_equally_many_of_all_16_bit_words(q):
    """Exact: all 65,536 words, none sampled."""
    words = np.arange(1 << 16, dtype=np.uint16)
    accepted = words[words <= last_accepted(q, words.dtype)]
    counts = np.bincount(reduce_mod(accepted, q), minlength=q)
    assert counts.tolist() == [65536 // q] * q


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.uint64])
@given(st.data())
def test_accepted_words_are_the_most_whole_turns_that_fit(kind, data):
    """Accepted are 0 .. c q - 1 with c as large as possible: c words for every residue."""
    bits = 8 * np.dtype(kind).itemsize
    q = data.draw(st.integers(2, min(2**bits - 1, 2**62)))
    accepted = int(last_accepted(q, np.dtype(kind))) + 1
    assert accepted % q == 0
    assert 2**bits - q < accepted <= 2**bits


@given(st.data(), moduli)
def test_reduced_is_the_remainder(data, q):
    kind = word_for(q)
    words = data.draw(st.lists(st.integers(0, np.iinfo(kind).max), max_size=20))
    assert reduce_mod(np.array(words, dtype=kind), q).tolist() == [word % q for word in words]


@pytest.mark.parametrize("q", [3, 251, 1009, 5003, 65521])
def test_uniform_maps_each_accepted_word_in_its_place(q, tape):
    """Exact: every 16-bit word once, each rejected one replaced by the next words of the source."""
    words = list(range(1 << 16))
    rejected = sum(word >= 65536 // q * q for word in words)
    drawn = uniform(q, 1 << 16, tape.of_words([*words, *range(rejected)], np.uint16))
    accepted = len(words) - rejected
    assert drawn[:accepted].tolist() == [word % q for word in words[:accepted]]
    assert drawn[accepted:].tolist() == [word % q for word in range(rejected)]


def test_a_replacement_can_be_rejected_too(tape):
    words = [5, 65535, 7, 65535, 65535, 12, 1020]  # 65,535 is above 64 x 1009 - 1
    source = tape.of_words(words, np.uint16)
    assert uniform(1009, 4, source).tolist() == [5, 1020 - 1009, 7, 12]
    assert source.left == b""


@pytest.mark.parametrize(
    ("q", "kind"),
    [(1009, np.uint16), (10007, np.uint32), (32771, np.uint32), (2**31 + 11, np.uint64)],
)
def test_longer_words_where_short_ones_are_often_rejected(q, kind, tape):
    assert uniform(q, 3, tape.of_words([q + 1, 2 * q - 1, q], kind)).tolist() == [1, q - 1, 0]


@given(moduli)
def test_few_words_are_rejected_unless_they_are_the_longest(q):
    kind = field._frugal_word(q)
    accepted = int(last_accepted(q, kind)) + 1
    assert kind.itemsize >= word_for(q).itemsize
    assert kind == np.uint64 or accepted >= 0.98 * 2 ** (8 * kind.itemsize)


@pytest.mark.parametrize("q", [2, 1009, 10007, 100003, BIG])
def test_a_long_vector_is_drawn_block_by_block(q):
    block = field.BLOCK_BYTES // field._frugal_word(q).itemsize
    sizes = [block, block, 13]
    whole, parts = SeededStream(4), SeededStream(4)
    pieces = [uniform(q, size, parts) for size in sizes]
    assert np.array_equal(uniform(q, sum(sizes), whole), np.concatenate(pieces))
    assert all(piece.dtype == dtype_for(q) and piece.max() < q for piece in pieces)


@pytest.mark.parametrize("shape", [0, 5, (2, 3), (2, 0, 3), ()])
def test_uniform_has_the_shape_asked_for(shape):
    assert uniform(7, shape, SystemEntropy()).shape == np.empty(shape).shape


def looks_uniform(elements, q):
    """Pearson's test at a false-alarm rate of 1e-6."""
    counts = np.bincount(elements, minlength=q)
    expected = elements.size / q
    return math.fsum((counts - expected) ** 2) / expected < chi2.isf(1e-6, q - 1)


@pytest.mark.parametrize("q", [251, 1009, 5003, 10007])
def test_elements_look_uniform(q):
    assert looks_uniform(uniform(q, 4_000_000, SystemEntropy()), q)


def test_the_bias_of_words_taken_modulo_q_is_seen():
    """Planted error: without rejection 497 of 5003 elements come up 14 times, not 13."""
    words = SystemEntropy().words(4_000_000, np.uint16)
    assert not looks_uniform(words % np.uint16(5003), 5003)

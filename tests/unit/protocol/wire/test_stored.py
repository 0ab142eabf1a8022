"""Kinds of fields that states have beside those of messages: each comes back, and has no other spelling."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.arrays import Bools, Ints, Residues
from faircount.core.errors import MalformedError, ParameterError
from faircount.protocol.wire.messages import Acknowledgement, NotReady, Rejection
from faircount.protocol.wire.stored import decode_value, stored_codec
from faircount.protocol.wire.stored_codecs import DTYPES, CustomCodec, encode_value


class Word(StrEnum):
    YES = "yes"
    NO = "no"


@dataclass(frozen=True)
class Small:
    number: int

    def __post_init__(self) -> None:
        if self.number > 9:
            raise ParameterError("too large: take a smaller one")


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, -1),
        (bool, True),
        (str, "Bräter"),
        (bytes, b"\0x"),
        (Word, Word.NO),
        (Small, Small(3)),
        (int | None, None),
        (int | None, 7),
        (int | bytes, b"digest"),
        (int | bytes, 7),
        (Acknowledgement | NotReady, NotReady(bytes(16), b"sharing")),
        (tuple[int, ...], (3, 1, 2)),
        (tuple[int, bytes], (3, b"x")),
        (frozenset[tuple[int, int]], frozenset({(1, 2), (0, 5)})),
        (dict[int, bytes], {4: b"d", 1: b"a"}),
    ],
    ids=str,
)
def test_every_kind_comes_back(hint: Any, value: Any) -> None:
    kind = stored_codec(hint)
    data = encode_value(kind, value)
    assert decode_value(kind, data) == value
    for bad in (data + b"\0", data[:-1]):
        with pytest.raises(MalformedError):
            decode_value(kind, bad)


def test_sets_have_one_order_and_mappings_keep_theirs() -> None:
    kind = stored_codec(frozenset[bytes])
    assert encode_value(kind, frozenset({b"b", b"a"})) == encode_value(
        kind, frozenset({b"a", b"b"})
    )
    mapping = stored_codec(dict[int, bytes])
    assert list(decode_value(mapping, encode_value(mapping, {4: b"d", 1: b"a"}))) == [4, 1]


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=2), st.booleans())
def test_arrays_keep_type_and_shape(code: str, shape: list[int], swapped: bool) -> None:
    hint = {"b": Bools, "i": Ints, "u": Residues}[np.dtype(code).kind]
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2
    value = numbers.astype(np.dtype(code).newbyteorder(">" if swapped else "<"))
    found = decode_value(stored_codec(hint), encode_value(stored_codec(hint), value))
    assert np.array_equal(found, value)
    assert (found.shape, found.dtype.isnative, found.dtype.itemsize) == (
        value.shape,
        True,
        value.dtype.itemsize,
    )
    assert found.flags.writeable


MARKS = encode_value(stored_codec(Bools), np.array([True, False]))


@pytest.mark.parametrize(
    ("hint", "data"),
    [
        (Ints, MARKS),
        (Residues, MARKS),
        (Bools, MARKS[:-1] + b"\2"),
        (Bools, b"\0\3" + bytes(24)),
        (Bools, b"\x09\1" + bytes(8)),
        (Ints, b"\5\2" + b"\xff" * 16),
        (Ints, b"\5\2" + b"\xff" * 8 + bytes(8)),  # no element, but more rows than can be
        (Ints, b"\5\1" + (1 << 40).to_bytes(8, "big")),
        (tuple[int, ...], b"\xff" * 4),
        (dict[int, bytes], b"\0\0\0\2" + (bytes(8) + b"\0\0\0\0") * 2),
        (frozenset[int], b"\0\0\0\2" + bytes(16)),
        (bool, b"\2"),
        (int | None, b"\2"),
        (Word, b"\0\0\0\5maybe"),
        (str, b"\0\0\0\1\xff"),
        (Small, bytes(7) + b"\12"),
    ],
    ids=range(16),
)
def test_bytes_of_no_value_are_refused(hint: Any, data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_value(stored_codec(hint), data)


def test_what_cannot_stand_in_a_field_is_not_written() -> None:
    with pytest.raises(MalformedError, match="float64"):
        encode_value(stored_codec(Ints), np.zeros(2))
    with pytest.raises(MalformedError, match="str"):
        encode_value(stored_codec(int | None), "7")
    kind = stored_codec(Acknowledgement | NotReady)
    with pytest.raises(MalformedError, match="Rejection"):
        decode_value(kind, encode_value(kind, Rejection(1)))


def test_annotations_without_a_stored_form_are_a_mistake_of_ours() -> None:
    for hint in (object, list[int], int | bytes | None):
        with pytest.raises(TypeError):
            stored_codec(hint)


def test_a_value_with_a_form_of_its_own() -> None:
    kind = CustomCodec("Small", lambda small: bytes((small.number,)), lambda raw: Small(raw[0]))
    assert decode_value(kind, encode_value(kind, Small(4))) == Small(4)
    with pytest.raises(MalformedError, match="take a smaller one"):
        decode_value(kind, b"\0\0\0\1\x0a")

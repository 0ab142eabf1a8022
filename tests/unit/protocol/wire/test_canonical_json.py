"""Canonical JSON: one spelling for every value, and nothing else is read."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.errors import InputError, MalformedError
from faircount.protocol.wire import canonical_json as canonical

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-canonical.LARGEST, canonical.LARGEST)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain)
def test_values_survive_their_bytes(value) -> None:
    try:
        data = canonical.encode(value)
    except MalformedError:
        return  # an unpaired surrogate, or nested too deep
    assert canonical.decode(data) == value


@given(plain, st.booleans())
def test_other_spellings_are_refused(value, indent) -> None:
    spelled = json.dumps(
        value,
        ensure_ascii=False,
        indent=1 if indent else None,
        separators=None if indent else (", ", ": "),
    )
    try:
        data, exact = spelled.encode(), canonical.encode(value)
    except (UnicodeEncodeError, MalformedError):
        return
    if data != exact:
        with pytest.raises(MalformedError):
            canonical.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"1.5",
        b"1e3",
        b"NaN",
        b"Infinity",
        b"9007199254740992",
        b"-9007199254740992",
        b"1" * 5000,
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b' {"a":1}',
        b"01",
        b"-0",
        b'"\\u0041"',
        b'"\\/"',
        b"\xff",
        b"\xef\xbb\xbf1",
        b'"\\ud800"',
        b"[" * 2000 + b"]" * 2000,
        b"[" * 200_000,
        b"[[[[[[[[[[[1]]]]]]]]]]]",
    ],
)
def test_bytes_that_are_nobodys_encoding(data) -> None:
    with pytest.raises(MalformedError):
        canonical.decode(data)


@pytest.mark.parametrize("value", [1.5, 1 << 53, {1: 2}, b"x", {"a": {1, 2}}, "\ud800"])
def test_values_that_cannot_be_published(value) -> None:
    with pytest.raises(MalformedError):
        canonical.encode(value)


@given(st.floats(2.0**-75, 1e6))
def test_real_numbers_are_exact(value) -> None:
    assert canonical.parse_real(canonical.format_real(value)) == value
    assert Fraction(int(canonical.format_real(value)), canonical.UNIT) == Fraction(value)


def test_real_numbers_too_fine_to_publish_are_rounded_up_or_refused() -> None:
    with pytest.raises(MalformedError):
        canonical.format_real(2.0**-130)
    assert canonical.format_upper_bound(2.0**-130) == "1"
    assert canonical.format_upper_bound(0.0) == "0"
    for text in ("+1", "01", "", "-", "1.0", "--1", "\u0661", 3, None):
        with pytest.raises(MalformedError):
            canonical.parse_integer(text)
    assert canonical.parse_integer("-12") == -12
    assert issubclass(MalformedError, InputError)

"""A ledger as bytes: every ledger comes back, and nothing else is read."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.errors import MalformedError, ProtocolError
from faircount.protocol.survey.budget import Charge, Ledger, Status
from faircount.protocol.survey.stored_ledger import decode, encode
from faircount.protocol.wire import canonical_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

SMALL = st.floats(0, 1)

CHARGES = st.builds(
    Charge,
    st.binary(min_size=16, max_size=16),
    st.floats(0, 100),
    SMALL,
    st.sampled_from(Status),
    TEXT,
    st.integers(0, 99),
)

LEDGERS = st.builds(
    Ledger,
    TEXT,
    st.floats(0, 1e9),
    SMALL,
    st.booleans(),
    st.lists(CHARGES, max_size=5).map(tuple),
    st.integers(0, 10**6),
    st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(tuple),
    st.booleans(),
)

USED = (
    Ledger("people", 1.0, 1e-6)
    .reserve(Charge(bytes(16), 0.25, 7e-34, label="city"))
    .settle(bytes(16))
)


@given(LEDGERS)
def test_every_ledger_comes_back(ledger: Ledger) -> None:
    assert decode(encode(ledger)) == ledger


@given(st.integers(0, len(encode(USED)) - 1), st.integers(1, 255))
def test_one_changed_byte_is_noticed(place: int, change: int) -> None:
    data = bytearray(encode(USED))
    data[place] ^= change
    with pytest.raises(MalformedError):
        decode(bytes(data))


@given(st.binary(max_size=60))
def test_other_bytes_are_no_ledger(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(data)


def test_a_cut_file_is_noticed() -> None:
    data = encode(USED)
    for end in range(0, len(data), 7):
        with pytest.raises(MalformedError):
            decode(data[:end])


def forged(**change: object) -> bytes:
    """With a right check, as somebody would make it who knows how."""
    from faircount.protocol.survey import stored_ledger

    fields = {**json.loads(encode(USED)), **change}
    del fields["check"]
    fields = {key: value for key, value in fields.items() if value != "gone"}
    return canonical_json.encode({**fields, "check": stored_ledger._checksum(fields)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "has version 2, and this faircount reads 1"),
        ({"version": None}, "has version None"),
        ({"kind": "else"}, "no ledger of faircount"),
        ({"epsilon": "gone"}, "lacks a field"),
        ({"further": 1}, "means nothing"),
        ({"epsilon": "nan"}, "means nothing"),
        ({"epsilon": "1.00"}, "means nothing"),
        ({"delta": 1}, "means nothing"),
        ({"charges": [{}]}, "lacks a field"),
        ({"charges": 7}, "means nothing"),
        ({"heads": ["zz"]}, "means nothing"),
        ({"changes": True}, "means nothing"),
        ({"closed": 1}, "means nothing"),
        ({"adaptive": "no"}, "means nothing"),
        ({"population": 5}, "means nothing"),
    ],
)
def test_what_no_ledger_can_be_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        decode(forged(**change))


def test_a_ledger_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(ProtocolError, match="too many charges"):
        encode(replace(USED, charges=USED.charges * 10_000))

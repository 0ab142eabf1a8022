"""Every message class, to bytes and back; any other bytes are rejected, never an exception."""

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.errors import MalformedError
from faircount.protocol import decode
from faircount.protocol.wire.codec import (
    VERSION,
    Message,
    Party,
    encode,
    message,
    message_classes,
    parse,
)
from faircount.protocol.wire.field_codecs import FixedBytes
from faircount.protocol.wire.messages import Acknowledgement, Reason, Rejection, SyncRequest


def strategy(hint):
    if hint is bytes:
        return st.binary(max_size=12)
    if get_origin(hint) in (tuple, Sequence):
        return st.lists(strategy(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is Annotated:
        mark = hint.__metadata__[0]
        if isinstance(mark, FixedBytes):
            return st.binary(min_size=mark.size, max_size=mark.size)
        bits = 8 * mark.width
        return (
            st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
            if mark.code == "q"
            else st.integers(0, (1 << bits) - 1)
        )
    return built(hint)


def built(kind):
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, *(strategy(hints[field.name]) for field in dataclasses.fields(kind)))


@pytest.mark.parametrize(
    "kind",
    sorted(message_classes().values(), key=lambda kind: kind.tag),
    ids=lambda kind: kind.__name__,
)
def test_every_message_survives_its_bytes(kind) -> None:
    @settings(max_examples=25)
    @given(built(kind), st.data())
    def check(what, data) -> None:
        raw = encode(what)
        assert raw[:2] == bytes([VERSION, kind.tag])
        assert decode(raw) == what
        assert isinstance(decode(raw + b"\0"), Rejection)
        assert isinstance(decode(raw[: data.draw(st.integers(0, len(raw) - 1))]), Rejection)

    check()


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_rejected_and_have_one_spelling(data) -> None:
    found = decode(data)
    if not (isinstance(found, Rejection) and found.reason == Reason.MALFORMED):
        assert encode(found) == data


@pytest.mark.parametrize(
    "kind",
    sorted(message_classes().values(), key=lambda kind: kind.tag),
    ids=lambda kind: kind.__name__,
)
def test_a_message_prints_its_numbers_and_no_bytes(kind) -> None:
    """Shares, credentials and answers are bytes; what prints may end up in a log."""

    @settings(max_examples=10)
    @given(built(kind))
    def check(what) -> None:
        shown = repr(what)
        assert shown.startswith(kind.__name__)
        assert "b'" not in shown
        assert 'b"' not in shown

    check()


def test_a_huge_count_allocates_nothing() -> None:
    raw = encode(SyncRequest(bytes(16)))
    assert isinstance(decode(bytes([VERSION, 4]) + raw[2:] + bytes(32) + b"\xff" * 4), Rejection)


def test_values_that_do_not_fit_are_refused() -> None:
    for bad in (
        Acknowledgement(b"short", bytes(32), 0, 1, (), bytes(64)),
        Rejection(256),
        Rejection(-1),
    ):
        with pytest.raises(MalformedError):
            encode(bad)
    with pytest.raises(MalformedError):
        parse(b"\2\0\1\0\0\0\0")


def test_tags_are_given_once() -> None:
    class Impostor(Message):
        pass

    with pytest.raises(TypeError, match="belongs to"):
        message(SyncRequest.tag, Party.AGGREGATOR)(Impostor)


@pytest.mark.parametrize("name", ["RosterProposal", "MaskedSum", "SlotBundle", "Published"])
def test_messages_that_are_not_loaded_yet_are_decoded(name: str) -> None:
    """In a process of its own, in which nobody has asked for a message of this kind."""
    kinds = {kind.__name__: kind for kind in message_classes().values()}
    data = bytes((VERSION, kinds[name].tag))
    code = (
        "import sys\nfrom faircount.protocol.wire.codec import peek_class\n"
        f"assert peek_class({data!r}).__name__ == {name!r}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

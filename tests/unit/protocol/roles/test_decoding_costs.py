"""Before anybody has shown who sent it, reading a message costs at most twice its bytes."""

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from faircount.protocol import encode, known_topologies
from faircount.protocol.roles.coordinate import FROM_USERS, coordinate
from faircount.protocol.roles.limits import decode_upload, longest_upload
from faircount.protocol.topologies.explicit.messages import Complaint, ShareBundle
from faircount.protocol.topologies.two_stage.messages import SlotComplaint
from faircount.protocol.wire.codec import FixedBytes, Integer, ListOf, Message, Party, VariableBytes, kind_of, parse
from faircount.protocol.wire.messages import Reason, Signed
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.testing.world import World, small_survey

FEW = 4096
"""Bytes of the objects that even an empty message takes."""
LONG = 100_000
"""No message in this test is made longer."""


def peak_of(read: Callable[[], Any]) -> int:
    """The most memory that was in use while something was read."""
    read()  # what is worked out once and kept does not count
    tracemalloc.start()
    read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def filled(kind: type[Message], size: int, blob: int) -> bytes:
    """A message of nearly this size: with lists, if it has any, of blobs this long; else with long blobs."""
    parts = dict(kind_of(kind).parts)  # type: ignore[attr-defined]  # a message is a record
    lists = [name for name, part in parts.items() if isinstance(part, ListOf)]
    long = lists or [name for name, part in parts.items() if isinstance(part, VariableBytes)]
    room = max(0, size - len(encode(kind(**{n: _value(part, 0, 0) for n, part in parts.items()}))))
    share = room // max(1, len(long))
    return encode(kind(**{n: _value(part, share if n in long else 0, blob) for n, part in parts.items()}))


def _value(part: Any, size: int, blob: int) -> Any:
    if isinstance(part, FixedBytes):
        return bytes(part.size)
    if isinstance(part, Integer):
        return 0
    if isinstance(part, VariableBytes):
        return bytes(size)
    if isinstance(part.each, Integer):
        return (70_000,) * (size // part.each.form.size)
    return (bytes(range(blob)),) * (size // (4 + blob))


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_what_anybody_may_send_to_s1_costs_at_most_twice_its_bytes(topology) -> None:
    """Complaints cost twelve times their bytes, bundles of short blobs nine times."""
    params = small_survey(topology, 300, 0).params
    for kind in {*topology.s1.users, *FROM_USERS}:
        for blob in (0, 2, 48):
            data = filled(kind, min(longest_upload(params, kind), LONG), blob)
            most = peak_of(partial(decode_upload, params, data))
            assert most <= 2 * len(data) + FEW, (kind, blob, len(data))


@pytest.mark.parametrize("blob", [0, 2, 48])
@pytest.mark.parametrize("kind", [ShareBundle, Complaint, SlotComplaint])
def test_lists_of_users_stay_packed_however_long(kind, blob: int) -> None:
    data = filled(kind, 200_000, blob)
    assert len(data) > 199_000
    assert peak_of(lambda: parse(data)) <= 2 * len(data)


def test_the_measure_notices_a_list_that_is_built() -> None:
    data = filled(BadEntries, 200_000, 0)  # travels between the servers, under a signature
    assert peak_of(lambda: parse(data)) > 2 * len(data)


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_what_a_server_did_not_sign_is_not_read(topology) -> None:
    """Every other kind travels under a signature: a long one without it costs its bytes, and those that are hashed."""
    s1 = World(topology, 7, 1).s1
    inside = filled(BadEntries, 200_000, 0)
    data = encode(Signed(int(Party.S2), inside, bytes(64)))
    assert coordinate(s1, parse(data))[1][0].why is Reason.UNSIGNED
    assert peak_of(lambda: coordinate(s1, parse(data))) <= 2 * len(data) + FEW


def test_a_packed_list_is_the_list_that_was_sent() -> None:
    sent = ShareBundle(bytes(16), 1, bytes(32), (b"a", b"", b"long"))
    found = parse(encode(sent))
    assert found == sent == found
    assert hash(found) == hash(sent)
    assert (found.blobs[1:], found.blobs[-1], list(found.blobs)) == ((b"", b"long"), b"long", list(sent.blobs))
    assert found.blobs != (b"a", b"")
    assert found.blobs != [b"a", b"", b"long"]
    named = parse(encode(Complaint(bytes(16), 1, bytes(32), 1, (5, 70_000))))
    assert (tuple(named.senders), len(named.senders), 70_000 in named.senders) == ((5, 70_000), 2, True)

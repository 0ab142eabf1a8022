"""Before anybody has shown who sent it, reading a message costs at most twice its bytes."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from faircount.core.entropy import Entropy, SeededStream
from faircount.protocol import (
    Client,
    ClientState,
    aggregator_step,
    coordinator_step,
    encode,
    known_topologies,
)
from faircount.protocol.roles.limits import (
    decode_client_message,
    decode_response,
    decode_signed,
    max_client_bytes,
)
from faircount.protocol.topologies.explicit.messages import Complaint, ShareBundle
from faircount.protocol.topologies.two_stage.messages import SlotComplaint
from faircount.protocol.wire.codec import Message, Party, codec_for, message_classes, parse
from faircount.protocol.wire.field_codecs import FixedBytes, Integer, ListOf, Record, VariableBytes
from faircount.protocol.wire.messages import (
    Acknowledgement,
    InclusionProof,
    Reason,
    Rejection,
    Signed,
    SyncState,
)
from faircount.protocol.wire.roster_messages import RejectedEntries
from simulation.faults import Kind, Op, step
from simulation.parties import Simulation, small_survey

FEW = 8192
"""Bytes of the objects that a step takes for itself, however short the message."""
LONG = 100_000
"""No message in this test is made much longer."""
BLOBS = (0, 2, 48)
"""How long the blobs in a list are: the shorter, the more objects there would be."""
FOR_USERS = [class_ for class_ in message_classes().values() if class_.to is Party.CLIENT]


def peak_of(read: Callable[[], Any]) -> int:
    """The most memory that was in use while something was read."""
    read()  # what is worked out once and kept does not count
    tracemalloc.start()
    read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def filled(kind: type[Message], size: int, encrypted_share: int) -> bytes:
    """A message of nearly this size: with lists, if it has any, of blobs this long; else with long blobs."""
    layout = codec_for(kind)
    room = max(0, size - len(encode(_value(layout, 0, 0))))
    return encode(_value(layout, room, encrypted_share))


def _value(part: Any, size: int, encrypted_share: int) -> Any:
    """A value of about so many bytes, where it can have them."""
    if isinstance(part, FixedBytes):
        return bytes(part.size)
    if isinstance(part, Integer):
        return 0
    if isinstance(part, VariableBytes):
        return bytes(size)
    if isinstance(part, Record):
        return _record(part, size, encrypted_share)
    if isinstance(part.element, Integer):
        return (70_000,) * (size // part.element.width)
    if isinstance(part.element, VariableBytes):
        return (bytes(range(encrypted_share)),) * (size // (4 + encrypted_share))
    return (_value(part.element, 0, 0),) * (size // part.element.longest(0, 0))


def _record(layout: Record, size: int, encrypted_share: int) -> Any:
    lists = [name for name, part in layout.parts if isinstance(part, ListOf)]
    long = lists or [
        name for name, part in layout.parts if isinstance(part, VariableBytes | Record)
    ]
    share = size // max(1, len(long))
    return layout.kind(
        *(
            _value(part, share if name in long else 0, encrypted_share)
            for name, part in layout.parts
        )
    )


# --- what anybody may send to the coordinator


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_what_anybody_may_send_to_s1_costs_at_most_twice_its_bytes(topology) -> None:
    """Complaints cost twelve times their bytes, bundles of short blobs nine times."""
    params = small_survey(topology, 300, 0).params
    for kind in topology.coordinator.user_handlers():
        for encrypted_share in BLOBS:
            data = filled(kind, min(max_client_bytes(params, kind), LONG), encrypted_share)
            most = peak_of(partial(decode_client_message, params, data))
            assert most <= 2 * len(data) + FEW, (kind, encrypted_share, len(data))


@pytest.mark.parametrize("encrypted_share", BLOBS)
@pytest.mark.parametrize("kind", [ShareBundle, Complaint, SlotComplaint])
def test_lists_of_users_stay_packed_however_long(kind, encrypted_share: int) -> None:
    data = filled(kind, 200_000, encrypted_share)
    assert len(data) > 199_000
    assert peak_of(lambda: parse(data)) <= 2 * len(data)


def test_the_measure_notices_a_list_that_is_built() -> None:
    data = filled(RejectedEntries, 200_000, 0)  # travels between the servers, under a signature
    assert peak_of(lambda: parse(data)) > 2 * len(data)


# --- what the coordinator sends to users


@pytest.mark.parametrize("kind", FOR_USERS, ids=lambda kind: kind.__name__)
def test_what_s1_sends_to_users_costs_at_most_twice_its_bytes(kind) -> None:
    """Calls cost eight times their bytes, assignments and calls for sums five times, rosters four times."""
    for encrypted_share in BLOBS:
        data = filled(kind, LONG, encrypted_share)
        assert len(data) > LONG * 0.95
        assert isinstance(decode_response(data), kind)
        assert peak_of(lambda data=data: decode_response(data)) <= 2 * len(data) + FEW, (
            encrypted_share
        )


@pytest.mark.parametrize(
    "kind", [class_ for class_ in message_classes().values() if class_.to is not Party.CLIENT]
)
def test_what_is_not_for_users_they_do_not_read(kind) -> None:
    data = filled(kind, LONG, 0)
    assert isinstance(decode_response(data), Rejection)
    assert peak_of(lambda: decode_response(data)) <= FEW


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_device_that_is_sent_long_lists_in_true_messages_builds_none_of_them(topology) -> None:
    """The coordinator can leave all that the aggregator signed as it is, and send a million lines beside it."""
    tried = set[str]()
    for device, asked, answer in _conversation(Simulation(topology, 7, 1, real=True)):
        hear = partial(_heard, topology.client, device, asked)
        usual = peak_of(partial(hear, encode(answer)))
        for name, long in _lengthened(answer):
            data = encode(long)
            after = hear(data)
            assert after.state == device.state, name
            assert not after.counted
            assert peak_of(partial(hear, data)) <= usual + 2 * len(data) + FEW, name
            tried.add(name)
    common = {
        Acknowledgement,
        InclusionProof,
        getattr(topology.client, "roster_kind", Acknowledgement),
    }
    lists = (
        f"{kind.__name__}.{name}"
        for kind in common | {*getattr(topology.client, "handlers", {})}
        for name, part in codec_for(kind).parts
        if isinstance(part, ListOf)
    )
    assert tried == set(lists)


def _heard(client: Client, device: ClientState, asked: Message, data: bytes) -> ClientState:
    return client.handle_response(device, asked, decode_response(data), SeededStream(1))


def _lengthened(answer: Message) -> Iterator[tuple[str, Message]]:
    for name, part in codec_for(type(answer)).parts:
        if isinstance(part, ListOf):
            many, one = _value(part, LONG, 0), (_value(part.element, LONG, 0),)
            yield f"{type(answer).__name__}.{name}", replace(answer, **{name: many})
            if isinstance(part.element, Record):
                yield f"{type(answer).__name__}.{name}", replace(answer, **{name: one})


def _conversation(world: Simulation) -> list[tuple[ClientState, Message, Message]]:
    """What devices are answered in a survey in which some vanish: the first answer of each kind."""
    found = dict[type[Message], tuple[ClientState, Message, Message]]()
    hear = world.client.handle_response

    class Noting:
        """The client, which notes what it hears."""

        def __getattr__(self, name: str) -> Any:
            return getattr(topology_client, name)

        def handle_response(
            self, device: ClientState, asked: Message, answer: Message, entropy: Entropy
        ) -> ClientState:
            found.setdefault(type(answer), (device, asked, answer))
            return hear(device, asked, answer, entropy)

    topology_client, world.client = world.client, Noting()
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 2:
        step(world, Op(kind))
    step(world, Op(Kind.ROUND, 0, 2))  # the second user stays away: in `masked` the others help
    world.finish()
    asked = topology_client.outcome_request(world.devices[0])
    world.client.handle_response(world.devices[0], asked, world.send_to_s1(asked)[0], world.entropy)
    return list(found.values())


# --- what one server sends to the other


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_between_servers_the_signature_is_looked_at_before_anything_is_built(topology) -> None:
    """A long message without it costs its bytes, and those that are hashed; with it the lists are built."""
    world = Simulation(topology, 7, 1)
    statements = {*topology.coordinator.aggregator_handlers(), SyncState}
    to_s1 = ((coordinator_step, world.s1, Party.AGGREGATOR, kind) for kind in statements)
    to_s2 = (
        (aggregator_step, world.s2, Party.COORDINATOR, kind)
        for kind in topology.aggregator.handlers()
    )
    for role, state, by, kind in (*to_s1, *to_s2):
        inside = filled(kind, LONG, 0)
        data = encode(Signed(int(by), inside, bytes(64)))
        receive = partial(_received, role, state)
        after, out = receive(data)
        assert (after, out[0].why) == (state, Reason.UNSIGNED)
        assert peak_of(partial(receive, data)) <= 2 * len(data) + FEW, kind
        assert peak_of(partial(decode_signed, inside)) <= FEW, kind


def _received(role: Callable[..., Any], state: Any, data: bytes) -> Any:
    return state.make_step(role, decode_signed(data))


@pytest.mark.parametrize(
    "kind", [class_ for class_ in message_classes().values() if class_ not in (Signed, Rejection)]
)
def test_what_is_not_signed_servers_do_not_read(kind) -> None:
    assert isinstance(decode_signed(filled(kind, 100, 0)), Rejection)


# --- lists that stay packed


def test_a_packed_list_is_the_list_that_was_sent() -> None:
    sent = ShareBundle(bytes(16), 1, bytes(32), (b"a", b"", b"long"))
    found = parse(encode(sent))
    assert found == sent == found
    assert hash(found) == hash(sent)
    assert (
        found.encrypted_shares[1:],
        found.encrypted_shares[-1],
        list(found.encrypted_shares),
    ) == (
        (b"", b"long"),
        b"long",
        list(sent.encrypted_shares),
    )
    assert found.encrypted_shares != (b"a", b"")
    assert found.encrypted_shares != [b"a", b"", b"long"]
    named = parse(encode(Complaint(bytes(16), 1, bytes(32), 1, (5, 70_000))))
    assert (tuple(named.senders), len(named.senders), 70_000 in named.senders) == (
        (5, 70_000),
        2,
        True,
    )

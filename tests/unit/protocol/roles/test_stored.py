"""The states of S1, S2 and devices as bytes: every state comes back and goes on, and nothing else is read."""

import contextlib
import dataclasses
import tracemalloc
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import MalformedError, ProtocolError
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    Aggregator,
    Coordinator,
    Device,
    Invitation,
    known_topologies,
    play,
)
from faircount.protocol.roles import stored
from faircount.protocol.roles.stored import (
    Row,
    add_row,
    decode_head,
    decode_state,
    encode_head,
    encode_state,
    rows_of,
)
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import Charge, Ledger
from faircount.protocol.wire import codec, field_kinds
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.sealing import RealSealing
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import AnyState, StoredState, layout_of
from faircount.protocol.wire.stored_kinds import (
    AnyMessage,
    Array,
    Choice,
    Flag,
    Live,
    MapOf,
    OneOf,
    OwnForm,
    RowStore,
    SetOf,
    Several,
)
from faircount.testing.faults import Kind, Op, step
from faircount.testing.world import World, small_survey

SEALING = RealSealing()
STATES = (Coordinator, Aggregator, Device)
LEDGER = Ledger("people", 1.0, 1e-6).reserve(Charge(bytes(16), 0.25, 7e-34, label="city"))


def read(kind: type[Any], data: bytes) -> Any:
    """The state behind these bytes, with the objects that are not stored."""
    return decode_state(kind, data, SEALING, LEDGER)


# --- any state, from its annotations


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this kind may hold."""
    if isinstance(kind, field_kinds.Record):
        size = 32 if kind.kind is Invitation else None  # the one record that checks its fields
        return st.builds(kind.kind, *(values(part) if size is None else sized(size) for _, part in kind.parts))
    if isinstance(kind, field_kinds.Integer):
        bits, signed = 8 * kind.form.size, kind.form.format.endswith("q")
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)
    if isinstance(kind, RowStore):
        return store(kind)
    return MAKERS[type(kind)](kind)


def sized(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def store(kind: RowStore) -> st.SearchStrategy[Any]:
    def filled(rows: dict[Any, Any]) -> Any:
        made = kind.store()
        for key, value in rows.items():
            if isinstance(made, dict):
                made[key] = value
            else:
                made.put(key, value)
        return made

    return st.dictionaries(values(kind.key), values(kind.value), max_size=3).map(filled)


def messages(classes: tuple[type[codec.Message], ...]) -> st.SearchStrategy[Any]:
    known = [each for each in codec._CLASSES.values() if issubclass(each, classes)]
    return st.sampled_from(known).flatmap(lambda each: values(field_kinds.Record.of(each, codec.kind_of)))


def states(base: type[StoredState]) -> st.SearchStrategy[Any]:
    derived = [each for each in (base, *base.__subclasses__()) if dataclasses.is_dataclass(each)]
    return st.sampled_from(derived).flatmap(lambda each: values(layout_of(each)))


def arrays(kind: Array) -> st.SearchStrategy[Any]:
    def made(code: str, shape: list[int], seed: int) -> Any:
        numbers = np.random.default_rng(seed).integers(0, 2 if code == "|b1" else 256, shape)
        return numbers.astype(np.dtype(code).newbyteorder("="))

    return st.builds(
        made, st.sampled_from(kind.dtypes), st.lists(st.integers(0, 3), max_size=2), st.integers(0, 1 << 32)
    )


OWN = {
    "SurveyParameters": st.sampled_from([small_survey(each, 4, 0).params for each in known_topologies()]),
    "Statement": st.builds(
        lambda says, by, signature: Statement(Signed(by, codec.encode(says), signature), says),
        messages((codec.Message,)),
        st.integers(0, (1 << 32) - 1),
        sized(64),
    ),
    "Text": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
}
MAKERS: dict[type[Any], Any] = {
    field_kinds.FixedBytes: lambda kind: sized(kind.size),
    field_kinds.VariableBytes: lambda _: st.binary(max_size=9),
    field_kinds.ListOf: lambda kind: st.lists(values(kind.each), max_size=3).map(tuple),
    field_kinds.PackedListOf: lambda kind: st.lists(values(kind.each), max_size=3).map(tuple),
    Flag: lambda _: st.booleans(),
    Choice: lambda kind: st.sampled_from(kind.words),
    OneOf: lambda kind: st.one_of(*(st.none() if each is None else values(each) for each in kind.kinds)),
    AnyMessage: lambda kind: messages(kind.classes),
    Several: lambda kind: st.tuples(*map(values, kind.kinds)),
    SetOf: lambda kind: st.frozensets(values(kind.each), max_size=3),
    MapOf: lambda kind: st.dictionaries(values(kind.key), values(kind.value), max_size=3),
    Array: arrays,
    OwnForm: lambda kind: OWN[kind.name],
    Live: lambda kind: st.just(LEDGER if kind.kind is Ledger else SEALING),
    AnyState: lambda kind: states(kind.base),
}


@pytest.mark.parametrize("kind", STATES)
def test_every_state_comes_back(kind: type[StoredState]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(states(kind))
    def check(state: Any) -> None:
        data = encode_state(state)
        assert read(kind, data) == state
        assert encode_state(read(kind, data)) == data
        by_rows = decode_head(kind, encode_head(state), SEALING, LEDGER)
        for row in rows_of(state):
            add_row(by_rows, row)
        assert by_rows == state

    check()


# --- real states


def end_of(topology: Any) -> World:
    """A survey in which user 1 vanished after enrolling."""
    world = World(topology, 6, 1)
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.CONVERSE) * 4:
        step(world, Op(kind, 0, 2 if kind is Kind.ROUND and world.s1.roster else 0))
    return world


WORLDS = {str(each): end_of(each) for each in known_topologies()}


def s1_at_work(name: str) -> Coordinator:
    """S1 while users send it things: at the end it deletes them."""
    world = WORLDS[name]
    return world.disk_s1.read(world.backups_s1[1 if name == "servers" else 4])


BYTES = {
    (name, type(state).__name__): encode_state(state)
    for name, world in WORLDS.items()
    for state in (s1_at_work(name), world.s2, world.devices[0])
}


@pytest.mark.parametrize(
    ("topology", "mechanism"),
    [
        (SERVERS, DPDS(items=4, users=6, p=0.5, floor=1)),
        (EXPLICIT, DPDS(items=4, users=6, p=0.5, floor=1)),
        (MASKED, DPDS(items=4, users=6, p=0.5, floor=1)),
        (TWO_STAGE, TSSPrime(items=4, users=6, p=0.5, alpha=0.5, phi=1)),
    ],
    ids=str,
)
def test_a_state_that_was_read_goes_on_as_the_one_that_was_written(
    topology: Any, mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every party is read from its bytes before everything it does; what S2 publishes is the same to the last byte."""

    def run() -> Any:
        terms = {"epsilon": 1.0, "delta": 1.0, "minimum": 3}
        return play.play([0, 1, 2, 3, 3, 3], mechanism, topology, entropy=SeededStream(5), **terms).facts["published"]

    def again(kind: type[StoredState], role: Any) -> Any:
        def reread(state: Any) -> Any:
            ledger = stored_ledger.decode(stored_ledger.encode(state.ledger)) if kind is Aggregator else None
            return decode_state(kind, encode_state(state), None, ledger)

        return lambda state, *rest: role(reread(state), *rest)

    plain, client = run(), type(topology.client)
    for name in ("coordinate", "end_phase"):
        monkeypatch.setattr(play, name, again(Coordinator, getattr(play, name)))
    monkeypatch.setattr(play, "aggregate", again(Aggregator, play.aggregate))
    hear = client.hear
    reread = again(Device, lambda device, own, *rest: hear(own, device, *rest))
    monkeypatch.setattr(client, "hear", lambda own, device, *rest: reread(device, own, *rest))
    assert run() == plain


# --- bytes of nothing


@pytest.mark.parametrize(("name", "kind"), BYTES)
def test_damaged_bytes_are_refused(name: str, kind: str) -> None:
    data, state = BYTES[name, kind], globals()[kind]

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, len(data) - 1), st.integers(1, 255))
    def check(place: int, change: int) -> None:
        for bad in (data[:place] + bytes((data[place] ^ change,)) + data[place + 1 :], data[:place], data[place + 1 :]):
            with pytest.raises(MalformedError):
                read(state, bad)

    check()


@pytest.mark.parametrize(("name", "kind"), BYTES)
def test_forged_bytes_with_a_right_check_raise_nothing_else(name: str, kind: str) -> None:
    """Whoever can write the storage can do worse; but a fault there must have one name."""
    data, state = BYTES[name, kind], globals()[kind]
    body = data[len(stored.KIND) + 1 : -stored.CHECK]

    @settings(max_examples=150, deadline=None)
    @given(st.integers(0, len(body) - 1), st.one_of(st.binary(max_size=9), st.just(b"\xff" * 8)), st.integers(0, 9))
    def check(place: int, new: bytes, cut: int) -> None:
        forged = stored._framed(stored.WHOLE, body[:place] + new + body[place + cut :])
        try:
            found = read(state, forged)
        except MalformedError:
            return
        assert isinstance(found, state)

    check()


@given(st.binary(max_size=200))
def test_other_bytes_are_no_state(data: bytes) -> None:
    for bad in (data, stored.KIND + data, stored._framed(stored.WHOLE, data), stored._framed(stored.HEAD, data)):
        for kind in STATES:
            for reading in (decode_state, decode_head):
                with pytest.raises(MalformedError):
                    reading(kind, bad, SEALING, LEDGER)


def test_a_huge_number_allocates_nothing() -> None:
    """Neither damaged bytes nor forged ones make us ask for more memory than they have."""
    device = WORLDS["explicit"].devices[0]
    assert device is not None
    data = encode_state(device)
    tracemalloc.start()
    for place in range(len(stored.KIND) + 1, len(data) - stored.CHECK, 7):
        forged = stored._framed(data[len(stored.KIND) : place] + b"\xff" * 16 + data[place + 16 : -stored.CHECK])
        with contextlib.suppress(MalformedError):  # some places hold bytes that may have any value
            decode_state(Device, forged)
        with pytest.raises(MalformedError, match="damaged"):
            decode_state(Device, data[:place] + b"\xff" * 16 + data[place + 16 :])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_states_are_told_apart() -> None:
    world = WORLDS["masked"]
    with pytest.raises(MalformedError, match="no bytes of a Device: look whether it is the right file"):
        decode_state(Device, encode_state(world.s1))
    nobody = encode_state(world.s1).replace(b"\0\0\0\x0bMaskedState", b"\0\0\0\x0dTopologyState", 1)[:-32]
    with pytest.raises(MalformedError, match="no bytes of a TopologyState"):
        decode_state(Coordinator, nobody + sha256(nobody).digest())
    with pytest.raises(MalformedError, match="decode_head"):
        decode_state(Coordinator, encode_head(world.s1))
    with pytest.raises(MalformedError, match="decode_state"):
        decode_head(Coordinator, encode_state(world.s1))
    with pytest.raises(ProtocolError, match="ledger of its population"):
        decode_state(Aggregator, encode_state(world.s2))
    with pytest.raises(MalformedError, match="look whether it is the right file"):
        decode_state(Coordinator, world.setup.params.published)


# --- rows


def test_bytes_that_storage_spoiled_stay_spoiled_and_can_be_mended() -> None:
    s1 = s1_at_work("servers")
    user, other = s1.bodies.keys()[:2]
    body = s1.bodies[user]
    s1.bodies._written[user] = s1.bodies[other]  # a disk does this
    back = decode_state(Coordinator, encode_state(s1), s1.sealing)
    assert back == s1
    assert back.bodies.intact(user) is None
    assert back.bodies.put(user, body)
    assert back.bodies.intact(user) == body


def test_a_deleted_message_keeps_its_hash() -> None:
    s1 = s1_at_work("servers")
    user = s1.bodies.keys()[0]
    body = s1.bodies[user]
    s1.bodies.scrub(user)
    back = decode_state(Coordinator, encode_state(s1), s1.sealing)
    assert back == s1
    assert back.bodies.get(user) is None
    assert back.bodies.fits(user, body)
    assert not back.bodies.fits(user, s1.bodies[s1.bodies.keys()[0]])
    assert next(each for each in rows_of(back) if each.store == "bodies").value == b""


def test_a_store_whose_messages_were_deleted_for_good_takes_none_again() -> None:
    s1 = s1_at_work("servers")
    user = s1.bodies.keys()[0]
    body, s1 = s1.bodies[user], dataclasses.replace(s1, bodies=s1.bodies.scrubbed())
    back = decode_state(Coordinator, encode_state(s1), s1.sealing)
    assert back == s1
    assert back.bodies.put(user, body)
    assert back.bodies.get(user) is None


def test_a_row_is_the_message_under_its_key_with_its_hash() -> None:
    s1 = s1_at_work("servers")
    rows = [row for row in rows_of(s1) if row.store == "bodies"]
    assert [row.key for row in rows] == s1.bodies.keys()
    assert all(row.hash == sha256(row.value).digest() for row in rows)
    assert codec.parse(rows[0].value) == s1.bodies[rows[0].key]
    assert repr(rows[0].value) not in repr(rows[0])


def test_heads_stay_small_when_stores_fill() -> None:
    """What is written at every change does not grow with the users who come by."""
    world = World(SERVERS, 6, 1)
    empty = len(encode_head(world.s1))
    step(world, Op(Kind.ROUND))
    assert len(world.s1.bodies) == 6
    assert len(encode_head(world.s1)) == empty


def test_rows_that_do_not_fit_are_refused() -> None:
    s2 = WORLDS["servers"].s2
    row = next(rows_of(s2))
    for bad, words in ((row, "same key"), (Row("nothing", b"", b""), "no store")):
        with pytest.raises(MalformedError, match=words):
            add_row(s2, bad)
    with pytest.raises(MalformedError):
        add_row(s1_at_work("servers"), Row("bodies", bytes(16), b"no message", bytes(32)))

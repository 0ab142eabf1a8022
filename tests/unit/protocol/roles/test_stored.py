"""The states of the coordinator, the aggregator and devices as bytes: every state comes back and goes on, and nothing else is read."""

import contextlib
import dataclasses
import subprocess
import sys
import tracemalloc
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_rows import spoil

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
    ClientState,
    Coordinator,
    Invitation,
    known_topologies,
    simulator,
)
from faircount.protocol.roles import stored
from faircount.protocol.roles.rows import RowWrite, StepRows
from faircount.protocol.roles.stored import (
    TABLE_CODECS,
    Row,
    decode_row,
    decode_rows,
    decode_state,
    encode_key,
    encode_row,
    encode_rows,
    encode_state,
)
from faircount.protocol.simulator import InMemory
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import Charge, Ledger
from faircount.protocol.wire import codec, field_codecs
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import AnyState, StoredState, layout_of
from faircount.protocol.wire.stored_codecs import (
    AnyMessage,
    Array,
    Boolean,
    CustomCodec,
    EnumMember,
    FixedTuple,
    Injected,
    MapOf,
    SetOf,
    TaggedUnion,
)
from simulation.faults import Kind, Op, step
from simulation.parties import Simulation, small_survey

SEALING = StandardCrypto()
STATES = (Coordinator, Aggregator, ClientState)
LEDGER = Ledger("people", 1.0, 1e-6).reserve(Charge(bytes(16), 0.25, 7e-34, label="city"))


def read(kind: type[Any], data: bytes) -> Any:
    """The state behind these bytes, with the objects that are not stored."""
    return decode_state(kind, data, SEALING, LEDGER)


# --- any state, from its annotations


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this kind may hold."""
    if isinstance(kind, field_codecs.Record):
        size = 32 if kind.kind is Invitation else None  # the one record that checks its fields
        return st.builds(
            kind.kind, *(values(part) if size is None else sized(size) for _, part in kind.parts)
        )
    if isinstance(kind, field_codecs.Integer):
        bits, signed = 8 * kind.form.size, kind.form.format.endswith("q")
        return (
            st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
            if signed
            else st.integers(0, (1 << bits) - 1)
        )
    return MAKERS[type(kind)](kind)


def sized(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def messages(classes: tuple[type[codec.Message], ...]) -> st.SearchStrategy[Any]:
    known = [kind for kind in codec.message_classes().values() if issubclass(kind, classes)]
    return st.sampled_from(known).flatmap(
        lambda kind: values(field_codecs.Record.of(kind, codec.codec_for))
    )


def states(base: type[StoredState]) -> st.SearchStrategy[Any]:
    derived = [kind for kind in (base, *base.__subclasses__()) if dataclasses.is_dataclass(kind)]
    return st.sampled_from(derived).flatmap(lambda kind: values(layout_of(kind)))


def arrays(kind: Array) -> st.SearchStrategy[Any]:
    def made(code: str, shape: list[int], seed: int) -> Any:
        numbers = np.random.default_rng(seed).integers(0, 2 if code == "|b1" else 256, shape)
        return numbers.astype(np.dtype(code).newbyteorder("="))

    return st.builds(
        made,
        st.sampled_from(kind.dtypes),
        st.lists(st.integers(0, 3), max_size=2),
        st.integers(0, 1 << 32),
    )


OWN = {
    "SurveyParameters": st.sampled_from(
        [small_survey(topology, 4, 0).params for topology in known_topologies()]
    ),
    "Statement": st.builds(
        lambda says, by, signature: Statement(Signed(by, codec.encode(says), signature), says),
        messages((codec.Message,)),
        st.integers(0, (1 << 32) - 1),
        sized(64),
    ),
    "Text": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
}
MAKERS: dict[type[Any], Any] = {
    field_codecs.FixedBytes: lambda kind: sized(kind.size),
    field_codecs.VariableBytes: lambda _: st.binary(max_size=9),
    field_codecs.ListOf: lambda kind: st.lists(values(kind.element), max_size=3).map(tuple),
    field_codecs.PackedListOf: lambda kind: st.lists(values(kind.element), max_size=3).map(tuple),
    Boolean: lambda _: st.booleans(),
    EnumMember: lambda kind: st.sampled_from(kind.members),
    TaggedUnion: lambda kind: st.one_of(
        *(st.none() if part is None else values(part) for part in kind.codecs)
    ),
    AnyMessage: lambda kind: messages(kind.classes),
    FixedTuple: lambda kind: st.tuples(*map(values, kind.codecs)),
    SetOf: lambda kind: st.frozensets(values(kind.element), max_size=3),
    MapOf: lambda kind: st.dictionaries(values(kind.key), values(kind.value), max_size=3),
    Array: arrays,
    CustomCodec: lambda kind: OWN[kind.name],
    Injected: lambda kind: st.just(LEDGER if kind.kind is Ledger else SEALING),
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

    check()


@pytest.mark.parametrize("table", TABLE_CODECS)
def test_every_row_comes_back(table: str) -> None:
    form = TABLE_CODECS[table]

    @settings(max_examples=40, deadline=None)
    @given(values(form.key), values(form.value), st.binary(max_size=32))
    def check(key: Any, value: Any, given_hash: bytes) -> None:
        write = RowWrite(table, key, value, given_hash)
        row = encode_row(write)
        assert decode_row(row) == write
        assert row.key == encode_key(table, key)
        assert decode_rows(encode_rows([write, write])) == [write, write]

    check()


# --- real states


def end_of(topology: Any) -> Simulation:
    """A survey in which user 1 vanished after enrolling."""
    world = Simulation(topology, 6, 1)
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 4:
        step(world, Op(kind, 0, 2 if kind is Kind.ROUND and world.s1.roster else 0))
    return world


WORLDS = {str(topology): end_of(topology) for topology in known_topologies()}


def s1_at_work(name: str) -> InMemory[Coordinator]:
    """The coordinator while users send it things: at the end it deletes them."""
    world = WORLDS[name]
    return world.disk_s1.read(world.backups_s1[1 if name == "servers" else 4])


BYTES = {
    (name, type(state).__name__): encode_state(state)
    for name, world in WORLDS.items()
    for state in (s1_at_work(name).state, world.s2.state, world.devices[0])
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
    """Every party is read from its bytes before everything it does; what the aggregator publishes is the same to the last byte."""

    def run() -> Any:
        terms = {"epsilon": 1.0, "delta": 1.0, "minimum": 3}
        return simulator.play(
            [0, 1, 2, 3, 3, 3], mechanism, topology, entropy=SeededStream(5), **terms
        ).facts["published"]

    def again(kind: type[StoredState], role: Any) -> Any:
        def reread(state: Any) -> Any:
            ledger = (
                stored_ledger.decode(stored_ledger.encode(state.ledger))
                if kind is Aggregator
                else None
            )
            return decode_state(kind, encode_state(state), None, ledger)

        return lambda state, *rest, **named: role(reread(state), *rest, **named)

    plain, client = run(), type(topology.client)
    for name in ("coordinator_step", "end_phase"):
        monkeypatch.setattr(simulator, name, again(Coordinator, getattr(simulator, name)))
    monkeypatch.setattr(simulator, "aggregator_step", again(Aggregator, simulator.aggregator_step))
    hear = client.handle_response
    reread = again(ClientState, lambda device, own, *rest: hear(own, device, *rest))
    monkeypatch.setattr(
        client, "handle_response", lambda own, device, *rest: reread(device, own, *rest)
    )
    assert run() == plain


@pytest.mark.parametrize("name", WORLDS)
def test_a_process_that_has_played_no_survey_reads_a_state(name: str) -> None:
    code = (
        "import sys\nfrom faircount.protocol import ClientState, decode_state, encode_state\n"
        "data = sys.stdin.buffer.read()\n"
        "assert encode_state(decode_state(ClientState, data)) == data\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, input=BYTES[name, "ClientState"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- bytes of nothing


@pytest.mark.parametrize(("name", "kind"), BYTES)
def test_damaged_bytes_are_refused(name: str, kind: str) -> None:
    data, state = BYTES[name, kind], globals()[kind]

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, len(data) - 1), st.integers(1, 255))
    def check(place: int, change: int) -> None:
        for bad in (
            data[:place] + bytes((data[place] ^ change,)) + data[place + 1 :],
            data[:place],
            data[place + 1 :],
        ):
            with pytest.raises(MalformedError):
                read(state, bad)

    check()


@pytest.mark.parametrize(("name", "kind"), BYTES)
def test_forged_bytes_with_a_right_check_raise_nothing_else(name: str, kind: str) -> None:
    """Whoever can write the storage can do worse; but a fault there must have one name."""
    data, state = BYTES[name, kind], globals()[kind]
    encoded = data[len(stored.START) : -stored.CHECK]

    @settings(max_examples=150, deadline=None)
    @given(
        st.integers(0, len(encoded) - 1),
        st.one_of(st.binary(max_size=9), st.just(b"\xff" * 8)),
        st.integers(0, 9),
    )
    def check(place: int, new: bytes, cut: int) -> None:
        forged = stored._frame(encoded[:place] + new + encoded[place + cut :])
        try:
            found = read(state, forged)
        except MalformedError:
            return
        assert isinstance(found, state)

    check()


@given(st.binary(max_size=200))
def test_other_bytes_are_no_state(data: bytes) -> None:
    for bad in (data, stored.START + data, stored._frame(data)):
        for kind in STATES:
            with pytest.raises(MalformedError):
                decode_state(kind, bad, SEALING, LEDGER)


def test_a_huge_number_allocates_nothing() -> None:
    """Neither damaged bytes nor forged ones make us ask for more memory than they have."""
    device = WORLDS["explicit"].devices[0]
    assert device is not None
    data = encode_state(device)
    tracemalloc.start()
    for place in range(len(stored.START) + 1, len(data) - stored.CHECK, 7):
        forged = stored._frame(
            data[len(stored.START) : place] + b"\xff" * 16 + data[place + 16 : -stored.CHECK]
        )
        with contextlib.suppress(MalformedError):  # some places hold bytes that may have any value
            decode_state(ClientState, forged)
        with pytest.raises(MalformedError, match="damaged"):
            decode_state(ClientState, data[:place] + b"\xff" * 16 + data[place + 16 :])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_states_are_told_apart() -> None:
    world = WORLDS["masked"]
    with pytest.raises(
        MalformedError, match="bytes are not a ClientState: check whether it is the right file"
    ):
        decode_state(ClientState, encode_state(world.s1.state))
    nobody = encode_state(world.s1.state).replace(
        b"\x12masked-coordinator", b"\x12unknown-coordinato", 1
    )[:-32]
    with pytest.raises(MalformedError, match="bytes are not a TopologyState"):
        decode_state(Coordinator, nobody + sha256(nobody).digest())
    with pytest.raises(ProtocolError, match="ledger of its population"):
        decode_state(Aggregator, encode_state(world.s2.state))
    with pytest.raises(MalformedError, match="check whether it is the right file"):
        decode_state(Coordinator, world.setup.params.published)


# --- rows


def read_back(server: InMemory[Coordinator]) -> InMemory[Coordinator]:
    """The coordinator from its bytes."""
    disk = Simulation(SERVERS, 6, 1).disk_s1
    back = disk.read(disk.write(server))
    assert back.rows == server.rows
    return back


def test_bytes_that_storage_spoiled_stay_spoiled_and_can_be_mended() -> None:
    s1 = s1_at_work("servers")
    user, other = list(s1.view.first_messages)[:2]
    message = s1.view.first_messages[user]
    spoil(s1, "first_messages", user, s1.view.first_messages[other])
    back = read_back(s1)
    assert back.view.first_messages.intact(user) is None
    rows = back.view
    assert rows.first_messages.put(user, message)
    assert rows.first_messages.intact(user) == message
    assert [write.key for write in rows.step(back.state).rows] == [user]


def test_a_deleted_message_keeps_its_hash() -> None:
    s1 = s1_at_work("servers")
    user, other = list(s1.view.first_messages)[:2]
    message = s1.view.first_messages[user]
    rows = s1.view
    rows.first_messages.scrub(user)
    step = rows.step(s1.state)
    assert [(write.key, write.value, write.is_new) for write in step.rows] == [(user, None, False)]
    found = read_back(s1.write_step(step)).view.first_messages
    assert found.get(user) is None
    assert found.accepts(user, message)
    assert not found.accepts(user, found[other])
    assert encode_row(step.rows[0]).value == b""


def test_of_a_scrubbed_table_only_hashes_are_left() -> None:
    s1 = s1_at_work("servers")
    user, other = list(s1.view.first_messages)[:2]
    messages = [s1.view.first_messages[user], s1.view.first_messages[other]]
    rows = s1.view
    rows.scrub("first_messages")
    assert rows.first_messages.get(user) is None  # within the same step, too
    found = read_back(s1.write_step(rows.step(s1.state)))
    assert found.rows.is_scrubbed("first_messages")
    assert len(found.view.first_messages) == 6
    assert found.view.first_messages.accepts(user, messages[0])
    assert not found.view.first_messages.accepts(user, messages[1])


def test_a_row_is_the_message_under_its_key_with_its_hash() -> None:
    s1 = s1_at_work("servers")
    written = [write for write in s1.rows.rows() if write.table == "first_messages"]
    rows = [encode_row(write) for write in written]
    assert sorted(row.key for row in rows) == list(s1.view.first_messages)
    assert all(row.hash == sha256(row.value).digest() for row in rows)
    assert codec.parse(rows[0].value) == s1.view.first_messages[rows[0].key]
    assert repr(rows[0].value) not in repr(rows[0])


def test_states_stay_small_when_tables_fill() -> None:
    """What is written at every change does not grow with the participants who come by."""
    world = Simulation(SERVERS, 6, 1)
    empty = len(encode_state(world.s1.state))
    step(world, Op(Kind.ROUND))
    assert len(world.s1.view.first_messages) == 6
    assert len(encode_state(world.s1.state)) == empty


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MalformedError, match="no table"):
        decode_row(Row("nothing", b"", b""))
    with pytest.raises(MalformedError):
        decode_row(Row("first_messages", bytes(16), b"no message", bytes(32)))
    with pytest.raises(MalformedError):
        decode_rows(b"\xff" * 20)


def test_what_a_step_reads_it_does_not_write() -> None:
    s1 = s1_at_work("servers")
    rows = StepRows(s1.rows)
    for user in rows.first_messages:
        assert rows.first_messages.intact(user) is not None
        assert rows.first_messages.put(user, rows.first_messages[user])
    assert rows.step(s1.state).rows == ()

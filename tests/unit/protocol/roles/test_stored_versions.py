"""Version and tags of stored states: another version is refused, and no layout changes without one."""

import dataclasses
from hashlib import sha256
from typing import get_type_hints

import pytest

from faircount.core.errors import MalformedError
from faircount.protocol import MASKED, ClientState, Coordinator
from faircount.protocol.roles import stored
from faircount.protocol.roles.stored import decode_state, encode_state
from faircount.protocol.survey.topology import load_all_roles
from faircount.protocol.wire import stored as wire_stored
from faircount.protocol.wire.stored import VERSION, AnyState, StoredState, layout_of
from faircount.protocol.wire.stored_codecs import encode_value
from simulation.faults import Kind, Op, step
from simulation.parties import Simulation


def sealed() -> Simulation:
    world = Simulation(MASKED)
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE):
        step(world, Op(kind))
    return world


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    s1 = sealed().s1.state
    with monkeypatch.context() as newer:
        newer.setattr(stored, "START", stored.KIND + bytes((VERSION + 1,)))
        data = encode_state(s1)
    with pytest.raises(
        MalformedError, match=f"has version {VERSION + 1}, .* use the faircount that wrote it"
    ):
        decode_state(Coordinator, data)


LAYOUTS = {
    "aggregator": "9a7735fd087f0b48",
    "client": "20410b021c38c2aa",
    "coordinator": "d4c40efec559bb9f",
    "enrolled-client": "c1e6af619f257180",
    "explicit-client": "350cee9502a5a27b",
    "explicit-coordinator": "0e0761e2f02777c3",
    "masked-client": "b81d52f983064cfb",
    "masked-coordinator": "a420c6d5198d8859",
    "peers-coordinator": "b4727845d21efb9e",
    "servers-aggregator": "a2e8b2ab8816d37e",
    "servers-manifest-parts": "66647bf042c87885",
    "servers-client": "3e922ee559ca1958",
    "servers-coordinator": "9ada7ed9a5bfafe5",
    "two-stage-client": "2d0d30da3c40ab63",
    "two-stage-coordinator": "0d2541c3a7eb96e8",
}
"""Layout of every state by its tag, as version 1 writes them."""


def layout_digest(kind: type[StoredState]) -> str:
    return sha256(repr(layout_of(kind)).encode()).hexdigest()[:16]


load_all_roles()  # every class of a state is known once its topology's roles are loaded


def every_state(base: type[StoredState] = StoredState) -> list[type[StoredState]]:
    below = [kind for child in base.__subclasses__() for kind in every_state(child)]
    return [base, *below] if "__dataclass_fields__" in vars(base) else below


@pytest.mark.parametrize("kind", every_state(), ids=lambda kind: kind.stored_tag)
def test_a_new_layout_has_a_new_version(kind: type[StoredState]) -> None:
    """If this fails the fields of a state have changed: raise `VERSION` once states of this one are in use."""
    assert VERSION == 1
    assert LAYOUTS.get(kind.stored_tag) == layout_digest(kind)


def test_a_field_more_is_a_new_layout() -> None:
    hints = get_type_hints(ClientState, include_extras=True)
    own = [(field.name, hints[field.name]) for field in dataclasses.fields(ClientState)]
    assert layout_digest(dataclasses.make_dataclass("ClientState", own)) == layout_digest(
        ClientState
    )
    assert layout_digest(
        dataclasses.make_dataclass("ClientState", [*own, ("more", int)])
    ) != layout_digest(ClientState)


def test_every_state_has_a_tag_of_its_own() -> None:
    tags = [kind.stored_tag for kind in every_state()]
    assert all(tags)
    assert len(set(tags)) == len(tags)


def test_two_states_cannot_share_a_tag() -> None:
    with pytest.raises(TypeError, match="stored tag client belongs to ClientState"):
        type("Other", (StoredState,), {"stored_tag": "client"})
    with pytest.raises(
        TypeError, match="stored tag client belongs to ClientState"
    ):  # it would be read back as a ClientState
        type("Heir", (ClientState,), {})


def test_a_state_without_a_tag_is_not_written() -> None:
    nameless = type("Nameless", (StoredState,), {})
    with pytest.raises(TypeError, match="Nameless cannot be stored: give it a stored_tag"):
        encode_value(AnyState(StoredState), nameless())


def test_renaming_a_class_changes_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    s1 = sealed().s1.state
    data = encode_state(s1)
    digest = layout_digest(Coordinator)
    monkeypatch.setattr(wire_stored, "_LAYOUTS", {})
    kinds = Coordinator, type(s1.topology_state)
    names = [kind.__name__ for kind in kinds]
    try:
        for kind in kinds:
            kind.__name__ = f"Renamed{kind.__name__}"
        assert encode_state(s1) == data
        assert decode_state(Coordinator, data, s1.crypto) == s1
        assert layout_digest(Coordinator) == digest
    finally:
        for kind, name in zip(kinds, names, strict=True):
            kind.__name__ = name

"""Versions of stored states: another one is refused, and no layout changes without one."""

import dataclasses
from hashlib import sha256
from typing import get_type_hints

import pytest

from faircount.core.errors import MalformedError
from faircount.protocol import MASKED, Coordinator, Device
from faircount.protocol.roles.stored import decode_state, encode_state
from faircount.protocol.wire.stored import StoredState, layout_of
from faircount.testing.faults import Kind, Op, step
from faircount.testing.world import World


def sealed() -> World:
    world = World(MASKED)
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.CONVERSE):
        step(world, Op(kind))
    return world


@pytest.mark.parametrize("part", ["Coordinator", "MaskedState"])
def test_another_version_is_refused(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s1 = sealed().s1
    kind = Coordinator if part == "Coordinator" else type(s1.own)
    with monkeypatch.context() as newer:
        newer.setattr(kind, "stored_version", kind.stored_version + 1)
        data = encode_state(s1)
    with pytest.raises(
        MalformedError, match=f"this {part} has version {kind.stored_version + 1}, .* use the faircount that wrote it"
    ):
        decode_state(Coordinator, data)


LAYOUTS = {
    "Aggregator": (6, "eafcef14a42d3fd0"),
    "Answered": (2, "487af2c6c7a6f600"),
    "Coordinator": (4, "1d68b3272c6f1e27"),
    "Device": (2, "e3c840e60da93b52"),
    "MaskedState": (2, "e3037672f0b0eca7"),
    "Masker": (2, "df42cc1f2ae73a3a"),
    "Member": (1, "3a29f552258ea2af"),
    "OneSum": (1, "d8c8db2f77ba047e"),
    "Opening": (1, "21d1e4417edd0ebc"),
    "Participant": (2, "5f8a4dec69b0e1d6"),
    "PeersState": (1, "c6dfda67f8bf853d"),
    "Recorded": (1, "a41bc16379598693"),
    "Respondent": (1, "00b404e1fcac3204"),
    "Sharer": (1, "b05e8dab51ee11b9"),
    "TwoStageState": (2, "f5b5d2fd307e319b"),
}
"""Version and layout of every state, as they are written."""


def layout_digest(kind: type[StoredState]) -> str:
    return sha256(repr(layout_of(kind)).encode()).hexdigest()[:16]


def every_state(base: type[StoredState] = StoredState) -> list[type[StoredState]]:
    below = [each for child in base.__subclasses__() for each in every_state(child)]
    return [base, *below] if "__dataclass_fields__" in vars(base) else below


@pytest.mark.parametrize("kind", every_state(), ids=lambda kind: kind.__name__)
def test_a_new_layout_has_a_new_version(kind: type[StoredState]) -> None:
    """If this fails the fields of a state have changed: raise its `stored_version`, and write both here."""
    assert LAYOUTS.get(kind.__name__) == (kind.stored_version, layout_digest(kind))


def test_a_field_more_is_a_new_layout() -> None:
    hints = get_type_hints(Device, include_extras=True)
    own = [(each.name, hints[each.name]) for each in dataclasses.fields(Device)]
    assert layout_digest(dataclasses.make_dataclass("Device", own)) == layout_digest(Device)
    assert layout_digest(dataclasses.make_dataclass("Device", [*own, ("more", int)])) != layout_digest(Device)


def test_every_state_has_a_name_of_its_own() -> None:
    names = [each.__name__ for each in every_state()]
    assert len(set(names)) == len(names)

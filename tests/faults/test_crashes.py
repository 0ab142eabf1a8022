"""Who crashes comes back from its stored form, which is bytes; a form that loses something is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    Aggregator,
    Coordinator,
    MemoryRows,
    known_topologies,
)
from faircount.protocol.roles.stored import decode_state
from simulation import disk, world
from simulation.faults import Kind, Mishap, Op, play
from simulation.watch import Watch
from simulation.world import Trouble

ROUND, DEADLINE, CONVERSE = Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CONVERSE)
ENROLLED = (ROUND, DEADLINE, CONVERSE)
SHARED = (*ENROLLED, ROUND, DEADLINE)


def visit(user: int, trouble: Trouble) -> Op:
    return Op(Kind.VISIT, user, list(Trouble).index(trouble))


def carry(mishap: Mishap = Mishap.NONE) -> Op:
    return Op(Kind.CARRY, 0, list(Mishap).index(mishap))


def read_otherwise(patch: pytest.MonkeyPatch, server: type[Any], **forgotten: Any) -> None:
    """The stored form of a server lacks these fields."""
    read = disk.decode_state

    def otherwise(kind, *written):
        found = read(kind, *written)
        return replace(found, **forgotten) if kind is server else found

    patch.setattr(disk, "decode_state", otherwise)


def s1_forgets_its_attempt(patch: pytest.MonkeyPatch) -> None:
    read_otherwise(patch, Coordinator, attempt=0)


def s2_forgets_its_claim(patch: pytest.MonkeyPatch) -> None:
    read_otherwise(patch, Aggregator, manifest=None, partial_sum=None)


def rows_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disk, "MemoryRows", lambda rows: MemoryRows())


def a_device_forgets_what_it_has_drawn(patch: pytest.MonkeyPatch) -> None:
    def blank(kind, data, crypto):
        return replace(decode_state(kind, data, crypto), state=None, waiting=())

    patch.setattr(world, "decode_state", blank)
    patch.setattr(
        Watch, "came_back", lambda *_: None
    )  # it would notice at once; what it draws again shows, too


CRASHES: dict[str, tuple[Any, tuple[Op, ...], Callable[[pytest.MonkeyPatch], None]]] = {
    "The coordinator while users send their sums": (
        EXPLICIT,
        (
            *SHARED,
            ROUND,
            visit(0, Trouble.S1_CRASH_BEFORE),
            visit(1, Trouble.S1_CRASH_AFTER),
            DEADLINE,
            CONVERSE,
        ),
        s1_forgets_its_attempt,
    ),
    "The coordinator while users enrol": (
        MASKED,
        (
            visit(0, Trouble.S1_CRASH_AFTER),
            visit(1, Trouble.S1_CRASH_AFTER),
            ROUND,
            DEADLINE,
            CONVERSE,
        ),
        rows_are_lost,
    ),
    "The aggregator at the claim": (
        MASKED,
        (
            *(*SHARED, ROUND, DEADLINE, carry(Mishap.CRASH_BEFORE), Op(Kind.RETRY)),
            *(carry(Mishap.CRASH_AFTER), CONVERSE),
        ),
        s2_forgets_its_claim,
    ),
    "a device before it hears": (
        TWO_STAGE,
        (visit(1, Trouble.ANSWER_LOST), ROUND, DEADLINE, CONVERSE),
        a_device_forgets_what_it_has_drawn,
    ),
}


@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
@pytest.mark.parametrize("name", CRASHES)
def test_who_crashes_comes_back_and_the_survey_ends_well(name: str, real: bool) -> None:
    topology, ops, _ = CRASHES[name]
    found = play(topology, ops, seed=1, real=real)
    assert (found.ending, found.problems) == ("published", ())


@pytest.mark.parametrize("name", CRASHES)
def test_a_stored_form_that_loses_something_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, ops, forgets = CRASHES[name]
    forgets(monkeypatch)
    assert play(topology, ops, seed=1).problems != ()


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_restores_read_bytes(topology: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both servers go back to before the first user, and to a later time: only bytes come with them."""
    read, heads = disk.decode_state, list[tuple[str, bytes]]()

    def noted(kind, data, *others):
        heads.append((kind.__name__, data))
        return read(kind, data, *others)

    monkeypatch.setattr(disk, "decode_state", noted)
    back = (
        Op(Kind.RESTORE_S1, 0, 1),
        Op(Kind.RESTORE_S1, 3),
        Op(Kind.RESTORE_S2, 0),
        Op(Kind.RESTORE_S2, 3),
    )
    assert play(topology, (*ENROLLED, *back), seed=1).problems == ()
    assert [name for name, _ in heads] == ["Coordinator"] * 2 + ["Aggregator"] * 2
    assert all(type(data) is bytes for _, data in heads)


def test_s1_forgot_the_seal_and_users_who_know_their_places_come_by() -> None:
    """It has no graph to look at: it lets them wait."""
    ops = (*ENROLLED, ROUND, Op(Kind.RESTORE_S1, 2, 1), ROUND, Op(Kind.RETRY), CONVERSE)
    for topology in known_topologies():
        if topology is not SERVERS:
            assert play(topology, ops, seed=1).problems == ()
    assert play(MASKED, ops, seed=1).ending == "published"


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_what_was_read_back_from_the_disk_can_rot_too(topology) -> None:
    """Lists that were read from bytes are packed, and a schedule that spoiled one of them broke off."""
    back = (*ENROLLED, ROUND, Op(Kind.RESTORE_S1, -1, 1))
    for how in range(6):
        assert play(topology, (*back, Op(Kind.ROT, 8, how))).problems == ()

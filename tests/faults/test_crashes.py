"""Crashed parties come back from their stored bytes; a stored form that loses something is found."""

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
from simulation import disk, parties
from simulation.faults import Kind, Mishap, Op, run_schedule
from simulation.monitor import Monitor
from simulation.parties import Trouble

ROUND, DEADLINE, EXCHANGE = Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.EXCHANGE)
ENROLLED = (ROUND, DEADLINE, EXCHANGE)
SHARED = (*ENROLLED, ROUND, DEADLINE)


def visit(user: int, trouble: Trouble) -> Op:
    return Op(Kind.VISIT, user, list(Trouble).index(trouble))


def carry(mishap: Mishap = Mishap.NONE) -> Op:
    return Op(Kind.CARRY, 0, list(Mishap).index(mishap))


def lose_fields(patch: pytest.MonkeyPatch, server: type[Any], **lost: Any) -> None:
    """The stored form of a server lacks these fields."""
    read = disk.decode_state

    def decode_without(kind, *written):
        found = read(kind, *written)
        return replace(found, **lost) if kind is server else found

    patch.setattr(disk, "decode_state", decode_without)


def s1_forgets_its_attempt(patch: pytest.MonkeyPatch) -> None:
    lose_fields(patch, Coordinator, attempt=0)


def s2_forgets_its_manifest(patch: pytest.MonkeyPatch) -> None:
    lose_fields(patch, Aggregator, manifest=None, partial_sum=None)


def rows_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disk, "MemoryRows", lambda rows: MemoryRows())


def a_device_forgets_what_it_has_drawn(patch: pytest.MonkeyPatch) -> None:
    def blank(kind, data, crypto):
        return replace(decode_state(kind, data, crypto), state=None, waiting=())

    patch.setattr(parties, "decode_state", blank)
    # This check would notice at once; what the device draws again must be noticed, too.
    patch.setattr(Monitor, "compare_restart", lambda *_: None)


CRASHES: dict[str, tuple[Any, tuple[Op, ...], Callable[[pytest.MonkeyPatch], None]]] = {
    "The coordinator while users send their sums": (
        EXPLICIT,
        (
            *SHARED,
            ROUND,
            visit(0, Trouble.S1_CRASH_BEFORE),
            visit(1, Trouble.S1_CRASH_AFTER),
            DEADLINE,
            EXCHANGE,
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
            EXCHANGE,
        ),
        rows_are_lost,
    ),
    "The aggregator at the manifest": (
        MASKED,
        (
            *(*SHARED, ROUND, DEADLINE, carry(Mishap.CRASH_BEFORE), Op(Kind.RETRY)),
            *(carry(Mishap.CRASH_AFTER), EXCHANGE),
        ),
        s2_forgets_its_manifest,
    ),
    "a device before it gets its answer": (
        TWO_STAGE,
        (visit(1, Trouble.ANSWER_LOST), ROUND, DEADLINE, EXCHANGE),
        a_device_forgets_what_it_has_drawn,
    ),
}


@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
@pytest.mark.parametrize("name", CRASHES)
def test_a_party_that_crashed_comes_back_and_the_survey_publishes(name: str, real: bool) -> None:
    topology, ops, _ = CRASHES[name]
    outcome = run_schedule(topology, ops, seed=1, real=real)
    assert (outcome.ending, outcome.problems) == ("published", ())


@pytest.mark.parametrize("name", CRASHES)
def test_a_stored_form_that_loses_something_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, ops, plant_loss = CRASHES[name]
    plant_loss(monkeypatch)
    assert run_schedule(topology, ops, seed=1).problems != ()


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_restores_read_bytes(topology: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both servers go back to the beginning, and to a later time, by nothing but stored bytes."""
    read = disk.decode_state
    decoded = list[tuple[str, bytes]]()

    def record(kind, data, *others):
        decoded.append((kind.__name__, data))
        return read(kind, data, *others)

    monkeypatch.setattr(disk, "decode_state", record)
    restores = (
        Op(Kind.RESTORE_S1, 0, 1),
        Op(Kind.RESTORE_S1, 3),
        Op(Kind.RESTORE_S2, 0),
        Op(Kind.RESTORE_S2, 3),
    )
    assert run_schedule(topology, (*ENROLLED, *restores), seed=1).problems == ()
    assert [name for name, _ in decoded] == ["Coordinator"] * 2 + ["Aggregator"] * 2
    assert all(type(data) is bytes for _, data in decoded)


def test_s1_forgot_the_confirmation_and_clients_who_know_their_places_poll() -> None:
    """It has no graph to look at, so it lets them wait."""
    ops = (*ENROLLED, ROUND, Op(Kind.RESTORE_S1, 2, 1), ROUND, Op(Kind.RETRY), EXCHANGE)
    for topology in known_topologies():
        if topology is not SERVERS:
            assert run_schedule(topology, ops, seed=1).problems == ()
    assert run_schedule(MASKED, ops, seed=1).ending == "published"


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_what_was_read_back_from_the_disk_can_be_damaged_too(topology) -> None:
    """Lists that were read from bytes are packed, and damaging one of them broke the simulation."""
    restored = (*ENROLLED, ROUND, Op(Kind.RESTORE_S1, -1, 1))
    for how in range(6):
        assert run_schedule(topology, (*restored, Op(Kind.ROT, 8, how))).problems == ()

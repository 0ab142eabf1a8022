"""Messages that wait together are written together, and each caller learns what became of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any

import pytest

from faircount.server.coordinator import group_commit, service
from faircount.server.coordinator.group_commit import LARGE_GROUP, MAX_GROUP, GroupCommit
from faircount.server.coordinator.service import CoordinatorService

LONG = 30.0
"""Seconds that no test waits."""


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run


class Written:
    """Takes numbers instead of messages, and answers each with itself."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def __call__(self, messages: Sequence[Any]) -> list[Any]:
        self.groups.append(list(messages))
        await asyncio.sleep(0)
        return [(message,) for message in messages]


async def add_all(commit: GroupCommit, numbers: Sequence[int]) -> list[Any]:
    messages: Sequence[Any] = numbers
    return await asyncio.gather(*(commit.add(message) for message in messages))


@in_event_loop
async def test_messages_that_come_together_are_one_group_and_each_has_its_own_answer() -> None:
    written = Written()
    assert await add_all(GroupCommit(written), range(5)) == [(n,) for n in range(5)]
    assert written.groups == [[0, 1, 2, 3, 4]]


@in_event_loop
async def test_single_messages_wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", LONG)
    written = Written()
    commit = GroupCommit(written)
    async with asyncio.timeout(LONG / 3):
        for number in range(3):
            await add_all(commit, [number])
    assert written.groups == [[0], [1], [2]]


@in_event_loop
async def test_after_a_group_of_several_the_next_one_waits_for_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def pause(seconds: float) -> None:
        if seconds:
            begun.set()
            await go_on.wait()
        else:
            await sleep(0)

    sleep = asyncio.sleep
    written = Written()
    commit = GroupCommit(written)
    await add_all(commit, range(2))
    monkeypatch.setattr(group_commit.asyncio, "sleep", pause)
    first = asyncio.create_task(add_all(commit, [2]))
    await begun.wait()
    second = asyncio.create_task(add_all(commit, [3]))
    go_on.set()
    await asyncio.gather(first, second)
    assert written.groups == [[0, 1], [2, 3]]


@in_event_loop
async def test_a_large_group_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", LONG)
    written = Written()
    commit = GroupCommit(written)
    await add_all(commit, range(2))
    async with asyncio.timeout(LONG / 3):
        await add_all(commit, range(LARGE_GROUP))
    assert written.groups == [[0, 1], [*range(LARGE_GROUP)]]


@in_event_loop
async def test_a_group_has_a_largest_size() -> None:
    written = Written()
    await add_all(GroupCommit(written), range(MAX_GROUP + 1))
    assert [len(group) for group in written.groups] == [MAX_GROUP, 1]


@in_event_loop
async def test_a_group_that_fails_is_an_error_for_all_of_it_and_the_next_one_is_written() -> None:
    problems = [OSError("the disk is full")]
    written = Written()

    async def write(messages: Sequence[Any]) -> list[Any]:
        if problems:
            raise problems.pop()
        return await written(messages)

    commit = GroupCommit(write)
    answers = await asyncio.gather(
        add_all(commit, [0]), add_all(commit, [1]), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [OSError, OSError]
    assert await add_all(commit, [2]) == [(2,)]


@in_event_loop
async def test_a_caller_who_leaves_takes_nobody_else_along() -> None:
    written = Written()
    commit = GroupCommit(written)
    leaving = asyncio.create_task(add_all(commit, [0]))
    staying = asyncio.create_task(add_all(commit, [1]))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == [(1,)]


@in_event_loop
async def test_a_survey_with_messages_under_way_keeps_its_one_group_commit(monkeypatch) -> None:
    """With a second one, a worker could let in more people than the survey has places."""
    monkeypatch.setattr(service, "MAX_COMMITS", 2)
    coordinator = CoordinatorService(server=None, states=None)  # type: ignore[arg-type]
    may_end = asyncio.Event()

    async def write(messages: Sequence[Any]) -> list[Any]:
        await may_end.wait()
        return [()] * len(messages)

    busy = coordinator.commits[b"busy"] = GroupCommit(write)
    answer = asyncio.create_task(busy.add(0))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    for number in range(5):
        coordinator._commit_of(bytes((number,)))
        assert len(coordinator.commits) <= 2
    assert coordinator._commit_of(b"busy") is busy
    may_end.set()
    await answer
    coordinator._commit_of(b"other")
    coordinator._commit_of(b"another")
    assert b"busy" not in coordinator.commits

"""Rows that are read a page at a time: the same answers as from a dictionary."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.protocol.roles.rows import StoredRow
from faircount.storage import pages, states
from faircount.storage.database import Query, connect
from faircount.storage.pages import PagedStore

KEYS = st.lists(st.binary(min_size=1, max_size=2), unique=True, max_size=12)


@given(KEYS, st.lists(st.binary(min_size=1, max_size=2), max_size=12))
def test_any_key_in_any_order_is_found_and_a_page_is_never_longer(
    there: list[bytes], asked: list[bytes]
) -> None:
    stored: dict[bytes, StoredRow] = {key: StoredRow(key * 2, b"h" + key) for key in sorted(there)}
    sizes = list[int]()

    def read(first: bytes) -> dict[bytes, StoredRow]:
        found = [key for key in stored if key >= first][: pages.PAGE]
        sizes.append(len(found))
        return {key: stored[key] for key in found}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "PAGE", 3)
        store = PagedStore("first_messages", read)
        assert [store.find(key) for key in asked] == [stored.get(key) for key in asked]
        assert list(store.keys()) == sorted(there)
        assert [store.find(key) for key in [*there, *asked]] == [
            stored.get(key) for key in [*there, *asked]
        ]
    assert max(sizes) <= 3


def test_who_goes_through_all_keys_reads_each_page_once() -> None:
    stored: dict[bytes, StoredRow] = {bytes((key,)): StoredRow(key) for key in range(1, 8)}
    reads = list[bytes]()

    def read(first: bytes) -> dict[bytes, StoredRow]:
        reads.append(first)
        return {key: stored[key] for key in [key for key in stored if key >= first][:3]}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "PAGE", 3)
        store = PagedStore("first_messages", read)
        assert [store.find(key) for key in stored] == list(stored.values())
    assert len(reads) == 3


def test_rows_of_a_few_users_are_found_by_the_index(tmp_path: Path) -> None:
    """Were the store not asked for, SQLite would look at every row of the survey for every group of users."""

    async def work() -> None:
        database = await connect(f"sqlite:///{tmp_path}/s1.sqlite", "coordinator")
        asked = list[Query]()
        async with database.read() as tx:
            every = tx.fetch_in_turn

            async def noted(queries: Sequence[Query]) -> Any:
                asked.extend(queries)
                return await every(queries)

            tx.fetch_in_turn = noted  # type: ignore[method-assign]  # to look
            wanted = [("first_messages", b"one"), ("keys", b"two"), ("first_messages", b"three")]
            assert await states.find_with_rows(tx, bytes(16), wanted) == (None, [])
            _, (statement, values) = asked
            plan = await tx.fetch_all(f"EXPLAIN QUERY PLAN {statement}", *values)
            searches = [step["detail"] for step in plan if "state_rows" in step["detail"]]
            assert len(searches) == 2
            assert all("(survey=? AND store=? AND key=?)" in search for search in searches)
        await database.close()

    asyncio.run(work())

"""The upgrade drill: a survey that began under one schema ends under the next one, on both databases."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from in_process import Pair, in_process
from made_up_schema import SECOND, know_second_schema
from trial_survey import (
    TrialSurvey,
    ask_for_outcome,
    begin_client,
    require_success,
    set_up,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import SchemaError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.storage.database import connect
from faircount.storage.migrate import NEWEST

Fresh = Callable[[], str]
ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1]
TOKENS = "owner-at-s1", "owner-at-s2"


async def version(pair: Pair) -> set[str]:
    found = set()
    for server in (pair.s1.server, pair.s2.server):
        async with server.database.read() as tx:
            line = await tx.fetch_one("SELECT version_num FROM alembic_version")
        assert line is not None
        found.add(line["version_num"])
    return found


async def begun_survey(pair: Pair) -> TrialSurvey:
    mechanism = Laplace(
        items=["a", "b", "c"], epsilon=20.0, users=len(ANSWERS), dropouts=2
    )  # noise with chance 1e-8
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    return survey


def test_a_survey_goes_on_under_the_next_schema(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some people answer before the upgrade and some after it; what they sent is in the sum."""
    urls, entropy = (fresh_database(), fresh_database()), SystemEntropy()

    async def work() -> None:
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            assert await version(pair) == {NEWEST}
            survey = await begun_survey(pair)
            devices = [
                begin_client(survey, at, answer, entropy) for at, answer in enumerate(ANSWERS)
            ]
            for at in range(0, len(devices), 2):
                devices[at] = await visit_once(pair.to_s1, survey, devices[at], entropy)
        know_second_schema(monkeypatch, tmp_path)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            assert await version(pair) == {SECOND}
            for at in range(1, len(devices), 2):
                devices[at] = await visit_once(pair.to_s1, survey, devices[at], entropy)
            require_success(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (result["phase"], result["included"]) == ("published", len(ANSWERS))
            assert [item["count"] for item in result["counts"]] == [2, 3, 3]
            told = [
                await ask_for_outcome(pair.to_s1, survey, device, entropy) for device in devices
            ]
            assert all(device.counted for device in told)

    asyncio.run(work())


async def everything(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every line of every table, by whatever program it was made."""
    if url.startswith("sqlite"):
        import sqlite3

        database = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        found = {
            name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for name in names
        }
        database.close()
        return found
    import asyncpg

    database = await asyncpg.connect(url)
    named = await database.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    found = {
        table["tablename"]: sorted(
            map(repr, await database.fetch(f'SELECT * FROM "{table["tablename"]}"'))
        )
        for table in named
    }
    await database.close()
    return found


def test_an_older_program_refuses_a_newer_database_untouched(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back is not possible, and nothing is spoiled by trying: the newer program goes on as before."""
    urls = fresh_database(), fresh_database()

    async def work() -> None:
        with monkeypatch.context() as newer:
            know_second_schema(newer, tmp_path)
            async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
                survey = await begun_survey(pair)
        before = [await everything(url) for url in urls]
        for url, role in zip(urls, ("coordinator", "aggregator"), strict=True):
            with pytest.raises(
                SchemaError, match="use the faircount that wrote it, or a newer one"
            ):
                await connect(url, role)
        assert [await everything(url) for url in urls] == before
        know_second_schema(monkeypatch, tmp_path)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            assert (
                require_success(await pair.to_s1.get(f"{survey.path}/status")).json()["phase"]
                == "submitting"
            )

    asyncio.run(work())

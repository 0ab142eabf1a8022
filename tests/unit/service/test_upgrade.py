"""The upgrade drill: a survey that began under the first schema ends under the newest one, on both databases."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begun, done, inquired, set_up, told, visited

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import SchemaError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Coordinator, Invitation
from faircount.protocol.wire import stored
from faircount.protocol.wire.field_kinds import Record
from faircount.protocol.wire.messages import Inquiry, Reason
from faircount.protocol.wire.stored import layout_of
from faircount.protocol.wire.stored_kinds import BYTES, SetOf
from faircount.storage import states
from faircount.storage.database import connect
from faircount.storage.keys import survey_key
from faircount.storage.migrate import REVISIONS
from faircount.storage.pages import pages_of

Fresh = Callable[[], str]
ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1]
TOKENS = "owner-at-s1", "owner-at-s2"


def under(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on this program is the one that knew no newer schema."""
    known = REVISIONS[: REVISIONS.index(revision) + 1]
    monkeypatch.setattr("faircount.storage.migrate.REVISIONS", known)
    monkeypatch.setattr("faircount.storage.migrate.NEWEST", revision)


async def version(pair: Pair) -> set[str]:
    found = set()
    for server in (pair.s1.server, pair.s2.server):
        async with server.database.read() as tx:
            line = await tx.one("SELECT version_num FROM alembic_version")
        assert line is not None
        found.add(line["version_num"])
    return found


async def begun_survey(pair: Pair) -> TrialSurvey:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=len(ANSWERS), dropouts=2)  # noise with chance 1e-8
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
    done(await pair.to_s1.post(f"{survey.path}/open"))
    return survey


def test_a_survey_goes_on_through_every_schema(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some people answer under each schema; what they sent is in the sum."""
    urls, entropy = (fresh_database(), fresh_database()), SystemEntropy()
    assert REVISIONS[:5] == ("0001", "0002", "0003", "0004", "0005")

    async def work() -> None:
        under("0001", monkeypatch)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            survey = await begun_survey(pair)
        devices = [begun(survey, at, answer, entropy) for at, answer in enumerate(ANSWERS)]
        for number, revision in enumerate(REVISIONS):
            under(revision, monkeypatch)
            async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
                assert await version(pair) == {revision}
                for at in range(number, len(devices), len(REVISIONS)):
                    devices[at] = await visited(pair.to_s1, survey, devices[at], entropy)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            done(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.once()
            result = done(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (result["state"], result["included"]) == ("published", len(ANSWERS))
            assert [each["count"] for each in result["counts"]] == [2, 3, 3]
            told = [await inquired(pair.to_s1, survey, each, entropy) for each in devices]
            assert all(each.counted for each in told)

    asyncio.run(work())


async def put_head_into_line(pair: Pair) -> None:
    """The databases as a program wrote them that knew schema 0003 at most."""
    for server in (pair.s1.server, pair.s2.server):
        async with server.database.write() as tx:
            heads = await tx.all("SELECT survey, sealed FROM state_rows WHERE store = 'head'")
            assert len(heads) == 1
            await tx.run("UPDATE surveys SET sealed = ? WHERE id = ?", heads[0]["sealed"], heads[0]["survey"])
            await tx.run("DELETE FROM state_rows WHERE store = 'head'")


def test_states_that_stood_in_the_line_of_their_survey_are_found(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls, entropy = (fresh_database(), fresh_database()), SystemEntropy()

    async def work() -> None:
        with monkeypatch.context() as past:
            under("0003", past)
            async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
                survey = await begun_survey(pair)
                await put_head_into_line(pair)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            for at, answer in enumerate(ANSWERS):
                await visited(pair.to_s1, survey, begun(survey, at, answer, entropy), entropy)
            done(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.once()
            result = done(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [each["count"] for each in result["counts"]] == [2, 3, 3]

    asyncio.run(work())


async def put_people_into_head(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1's database as a program wrote it that knew schema 0004 at most."""
    known = ((name, kind) for name, kind in layout_of(Coordinator).parts if name not in ("earlier", "kept"))
    form = tuple((name, SetOf(BYTES) if name == "invited" else kind) for name, kind in known)
    async with pair.s1.server.database.write() as tx:
        (line,) = await tx.all("SELECT id FROM surveys")
        row = await states.find(tx, bytes(line["id"]))
        assert row is not None
        loaded = await pair.s1.states.load(tx, row, wanted=())
        key = pair.s1.server.keys.get(survey_key(row.id, row.generation))
        pages = [page async for page in pages_of(tx, row.id, "invited")]
        people = frozenset(states._opened(key, row, each).value for page in pages for each in page)
        assert len(people) == len(ANSWERS)
        with monkeypatch.context() as past:
            past.setattr(Coordinator, "stored_version", 3)
            past.setitem(stored._LAYOUTS, Coordinator, Record(Coordinator, form))
            head = replace(loaded.state, invited=people)  # type: ignore[arg-type]  # as it was
            await pair.s1.states._write_survey(tx, key, row, head)
        await tx.run("DELETE FROM state_rows WHERE store = 'invited'")


async def people_in_rows(pair: Pair) -> int:
    async with pair.s1.server.database.read() as tx:
        return len(await tx.all("SELECT key FROM state_rows WHERE store = 'invited'"))


@pytest.mark.parametrize("moment", ["open", "claimed", "aborting", "over"])
def test_people_who_stood_in_the_head_of_their_survey_are_admitted(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The first change of the state after the upgrade puts them into rows, whatever change it is."""
    urls, entropy = (fresh_database(), fresh_database()), SystemEntropy()

    async def work() -> None:
        with monkeypatch.context() as past:
            under("0004", past)
            async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
                survey = await begun_survey(pair)
                devices = [begun(survey, at, answer, entropy) for at, answer in enumerate(ANSWERS)]
                if moment != "open":
                    devices = [await visited(pair.to_s1, survey, each, entropy) for each in devices]
                    done(await pair.to_s1.post(f"{survey.path}/{'abort' if moment == 'aborting' else 'close'}"))
                if moment == "over":
                    await pair.scheduler.once()
                await put_people_into_head(pair, past)
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            assert await version(pair) == {REVISIONS[-1]}
            assert done(await pair.to_s1.get(f"{survey.path}/status")).json()["people"] == len(ANSWERS)
            assert await people_in_rows(pair) == 0
            if moment == "open":
                fresh = Invitation.issue(survey.params.digest, entropy)
                stranger = Inquiry(survey.params.survey, fresh.access)
                assert (await told(pair.to_s1, survey, stranger)).why is Reason.UNKNOWN  # type: ignore[attr-defined]
                assert await people_in_rows(pair) == len(ANSWERS)
                devices = [await visited(pair.to_s1, survey, each, entropy) for each in devices]
                done(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.once()
            result = done(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert result["state"] == ("aborted" if moment == "aborting" else "published")
            heard = [await inquired(pair.to_s1, survey, each, entropy) for each in devices]
            assert all(each.outcome is not None for each in heard)
            assert all(each.counted for each in heard) is (moment != "aborting")
            assert await people_in_rows(pair) == len(ANSWERS)

    asyncio.run(work())


async def everything(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every line of every table, by whatever program it was made."""
    if url.startswith("sqlite"):
        import sqlite3

        database = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for name in names}  # noqa: S608
        database.close()
        return found
    import asyncpg

    database = await asyncpg.connect(url)
    named = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    found = {
        each["tablename"]: sorted(map(repr, await database.fetch(f'SELECT * FROM "{each["tablename"]}"')))  # noqa: S608
        for each in named
    }
    await database.close()
    return found


def test_an_older_program_refuses_a_newer_database_untouched(
    tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back is not possible, and nothing is spoiled by trying: the newer program goes on as before."""
    urls = fresh_database(), fresh_database()

    async def work() -> None:
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            survey = await begun_survey(pair)
        before = [await everything(each) for each in urls]
        with monkeypatch.context() as past:
            under("0001", past)
            for url, role in zip(urls, ("coordinator", "aggregator"), strict=True):
                with pytest.raises(SchemaError, match="use the faircount that wrote it, or a newer one"):
                    await connect(url, role)
        assert [await everything(each) for each in urls] == before
        async with in_process(tmp_path, databases=urls, tokens=TOKENS) as pair:
            assert done(await pair.to_s1.get(f"{survey.path}/status")).json()["state"] == "submitting"

    asyncio.run(work())

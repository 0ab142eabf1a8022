"""Databases, backups and logs searched byte for byte for what must not be there, during a survey and after it."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begun, done, set_up, visited

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Device, Ledger
from faircount.service.logs import JsonLines
from faircount.service.restore import back_up
from faircount.storage import states

Fresh = Callable[[], str]


def spelled(name: str, secret: bytes) -> Iterator[tuple[str, bytes]]:
    """A secret as it might have been written: as bytes, and in hexadecimal."""
    yield name, secret
    yield f"{name} in hexadecimal", secret.hex().encode()


def found_in(places: dict[str, bytes], secrets: list[tuple[str, bytes]]) -> list[str]:
    """Which secrets stand where."""
    return [
        f"{name} in {place}"
        for name, secret in secrets
        for spelling, text in spelled(name, secret)
        for place, data in places.items()
        if text in data and spelling
    ]


def of_people(survey: TrialSurvey, devices: list[Device]) -> list[tuple[str, bytes]]:
    """Secrets of a few people: what was planted in the invitations, and what their devices sent."""
    planted = list[tuple[str, bytes]]()
    for invitation, device in zip(survey.invitations, devices, strict=False):
        body: Any = device.waiting[0]
        planted += [
            ("token", invitation.token),
            ("access", invitation.access),
            ("sealing key", invitation.sealing_key),
            ("salt", body.salt),
            ("blob", body.blob),
            ("share with salt", body.salt + body.share),
        ]
    return planted


async def of_servers(pair: Pair, survey: TrialSurvey) -> list[tuple[str, bytes]]:
    """Secrets of the servers: owners' tokens, signing keys, S2's box."""
    s1 = await pair.s1.to_say(survey.params.survey)
    assert s1 is not None
    tokens = [("owner's token", each.encode()) for each in pair.owner_tokens]
    async with pair.s2.server.database.read() as tx:
        row = await states.find(tx, survey.params.survey)
        assert row is not None
        s2 = (await pair.s2.states.load(tx, row, Ledger("trial", 1.0, 0.0))).state
    return [*tokens, ("S1's signing key", s1.key.secret), ("S2's signing key", s2.key.secret), ("box", s2.box.secret)]


def backed_up(urls: Iterable[str], folder: Path, server: Any) -> dict[str, bytes]:
    """Fresh backups, as an operator makes them: `faircount backup` for SQLite, `pg_dump` for PostgreSQL."""
    found = dict[str, bytes]()
    for number, url in enumerate(urls):
        target = folder / f"backup-{number}-{len(list(folder.iterdir()))}"
        if server is None:
            back_up(url, target)
            found[target.name] = target.read_bytes()
        else:
            found[target.name] = subprocess.check_output([server.bin_path / "pg_dump", "--dbname", url])
    return found


def content(path: Path) -> bytes:
    """What is in a file; nothing if it is gone: PostgreSQL makes and removes caches of its own as it likes."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_no_secret_is_in_a_database_a_backup_or_a_log(
    tmp_path: Path, fresh_database: Fresh, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    urls = fresh_database(), fresh_database()
    server = None if urls[0].startswith("sqlite") else request.getfixturevalue("postgresql_server")

    def places() -> dict[str, bytes]:
        backups = backed_up(urls, tmp_path, server)
        assert len(backups) == 2
        assert all(b"alembic_version" in each for each in backups.values())
        if server is None:
            files = [each for each in tmp_path.iterdir() if each.is_file()]
        else:
            server.psql("CHECKPOINT;")
            files = [each for each in Path(server.pgdata).rglob("*") if each.is_file()]
        log = "\n".join(JsonLines().format(each) + str(each.__dict__) for each in caplog.records)
        return {**{each.name: content(each) for each in files}, **backups, "log": log.encode()}

    async def work() -> None:
        entropy = SeededStream(5)
        async with in_process(tmp_path, databases=urls) as pair:
            mechanism = Laplace(items=[f"item {at}" for at in range(40)], epsilon=20.0, users=12, dropouts=4)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
            done(await pair.to_s1.post(f"{survey.path}/open"))
            devices = [begun(survey, at, at % 3, entropy) for at in range(12)]
            for each in devices:
                await visited(pair.to_s1, survey, each, entropy)
            secrets = of_people(survey, devices) + await of_servers(pair, survey)
            during = places()
            assert found_in(during, secrets) == []
            hidden = [("user id", survey.invitations[0].user)]  # the search finds what is there, in both backups too
            assert sum(" in backup-" in each for each in found_in(during, hidden)) == 2
            live_keys = {each: (tmp_path / "s1" / "keys" / f"{each}.key") for each in pair.s1.server.keys.names()}
            secret_of_rows = next(iter(live_keys.values())).read_bytes()
            done(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.once()
            assert done(await pair.to_s1.get(f"{survey.path}/result")).json()["state"] == "published"
            after = places()
            assert found_in(after, [*secrets, ("key of the rows", secret_of_rows)]) == []
            for of in (pair.s1.server, pair.s2.server):
                names = of.keys.names()
                assert [each[-2:] for each in names] == ["-1"]  # the key of the live state is destroyed:
                assert secret_of_rows not in {(of.keys.path / f"{each}.key").read_bytes() for each in names}

    with caplog.at_level(logging.DEBUG):
        asyncio.run(work())


def test_a_line_of_the_log_says_only_what_it_may() -> None:
    record = logging.LogRecord("faircount", logging.INFO, "file", 1, "call", (), None)
    record.survey, record.status, record.token = "ab", 200, "secret"  # type: ignore[attr-defined]  # as `extra` does
    line = JsonLines().format(record)
    assert '"survey": "ab"' in line
    assert "secret" not in line


def test_an_error_is_logged_without_its_text() -> None:
    try:
        raise ValueError("quoted answer 7")
    except ValueError:
        record = logging.LogRecord("faircount", logging.ERROR, "file", 1, "failed", (), sys.exc_info())
    line = JsonLines().format(record)
    assert "ValueError" in line
    assert "quoted" not in line

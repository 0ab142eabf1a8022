"""No secret is in any byte of a database, a backup or a log, during a survey or after it."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begin_client, require_success, set_up, visit_once

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, ClientState, Ledger
from faircount.server.common.logs import JsonLines
from faircount.server.restore import back_up
from faircount.storage import states

Fresh = Callable[[], str]


def find_secrets(places: dict[str, bytes], secrets: list[tuple[str, bytes]]) -> list[str]:
    """Return which secrets are found where, as bytes or in hexadecimal."""
    found = []
    for name, secret in secrets:
        for place, data in places.items():
            found += [
                f"{name} in {place}" for text in (secret, secret.hex().encode()) if text in data
            ]
    return found


def participants_secrets(
    survey: TrialSurvey, devices: list[ClientState]
) -> list[tuple[str, bytes]]:
    """Return secrets of a few participants, from their invitations and their reports."""
    secrets = list[tuple[str, bytes]]()
    for invitation, device in zip(survey.invitations, devices, strict=False):
        report: Any = device.waiting[0]
        secrets += [
            ("token", invitation.token),
            ("access", invitation.access),
            ("enrolment MAC key", invitation.enrolment_mac_key),
            ("salt", report.salt),
            ("encrypted share", report.encrypted_share),
            ("share with salt", report.salt + report.share),
        ]
    return secrets


async def servers_secrets(pair: Pair, survey: TrialSurvey) -> list[tuple[str, bytes]]:
    """Return secrets of the servers: owners' tokens, signing keys, the aggregator's box key."""
    s1 = await pair.s1.pending_messages(survey.params.survey)
    assert s1 is not None
    tokens = [("owner's token", token.encode()) for token in pair.owner_tokens]
    async with pair.s2.server.database.read() as tx:
        row = await states.find(tx, survey.params.survey)
        assert row is not None
        s2 = (await pair.s2.states.load(tx, row, Ledger("trial", 1.0, 0.0))).state
    return [
        *tokens,
        ("coordinator's signing key", s1.key.secret),
        ("aggregator's signing key", s2.key.secret),
        ("box key", s2.encryption_keys.secret),
        ("coordinator's operator key", pair.s1.server.operator.key.secret),
        ("aggregator's operator key", pair.s2.server.operator.key.secret),
    ]


def make_backups(urls: Iterable[str], folder: Path, server: Any) -> dict[str, bytes]:
    """Make backups as an operator does: `faircount backup` for SQLite, `pg_dump` for PostgreSQL."""
    found = dict[str, bytes]()
    for number, url in enumerate(urls):
        target = folder / f"backup-{number}-{len(list(folder.iterdir()))}"
        if server is None:
            back_up(url, target)
            found[target.name] = target.read_bytes()
        else:
            found[target.name] = subprocess.check_output(
                [server.bin_path / "pg_dump", "--dbname", url]
            )
    return found


def read_if_there(path: Path) -> bytes:
    """Read a file, or nothing if it is gone: PostgreSQL creates and removes caches at any time."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_no_secret_is_in_a_database_a_backup_or_a_log(
    tmp_path: Path,
    fresh_database: Fresh,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    urls = fresh_database(), fresh_database()
    server = None if urls[0].startswith("sqlite") else request.getfixturevalue("postgresql_server")

    def read_everything() -> dict[str, bytes]:
        backups = make_backups(urls, tmp_path, server)
        assert len(backups) == 2
        assert all(b"alembic_version" in backup for backup in backups.values())
        if server is None:
            files = [file for file in tmp_path.iterdir() if file.is_file()]
        else:
            server.psql("CHECKPOINT;")
            files = [file for file in Path(server.pgdata).rglob("*") if file.is_file()]
        lines = [JsonLines().format(record) + str(record.__dict__) for record in caplog.records]
        places = {file.name: read_if_there(file) for file in files}
        return {**places, **backups, "log": "\n".join(lines).encode()}

    async def work() -> None:
        entropy = SeededStream(5)
        async with in_process(tmp_path, databases=urls) as pair:
            mechanism = Laplace(
                items=[f"item {at}" for at in range(40)], epsilon=20.0, users=12, dropouts=4
            )
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            devices = [begin_client(survey, at, at % 3, entropy) for at in range(12)]
            for device in devices:
                await visit_once(pair.to_s1, survey, device, entropy)
            secrets = participants_secrets(survey, devices) + await servers_secrets(pair, survey)
            during = read_everything()
            assert find_secrets(during, secrets) == []
            # The search works: it finds a public value, in both backups too.
            public = [("user id", survey.invitations[0].user)]
            assert sum(" in backup-" in place for place in find_secrets(during, public)) == 2
            name = pair.s1.server.keys.names()[0]
            row_key = (tmp_path / "s1" / "keys" / f"{name}.key").read_bytes()
            require_success(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.run_once()
            assert (
                require_success(await pair.to_s1.get(f"{survey.path}/result")).json()["phase"]
                == "published"
            )
            after = read_everything()
            assert find_secrets(after, [*secrets, ("row key", row_key)]) == []
            # The key of the live state is destroyed, and the other one is a different key.
            for running in (pair.s1.server, pair.s2.server):
                (name,) = running.keys.names()
                assert name.endswith("-1")
                assert (running.keys.path / f"{name}.key").read_bytes() != row_key

    with caplog.at_level(logging.DEBUG):
        asyncio.run(work())


def test_a_log_line_contains_only_the_known_fields() -> None:
    record = logging.LogRecord("faircount", logging.INFO, "file", 1, "call", (), None)
    # As `extra` does.
    record.__dict__.update({"survey": "ab", "status": 200, "token": "secret"})
    line = JsonLines().format(record)
    assert '"survey": "ab"' in line
    assert "secret" not in line


def test_an_error_is_logged_without_its_text() -> None:
    try:
        raise ValueError("quoted answer 7")
    except ValueError:
        record = logging.LogRecord(
            "faircount", logging.ERROR, "file", 1, "failed", (), sys.exc_info()
        )
    line = JsonLines().format(record)
    assert "ValueError" in line
    assert "quoted" not in line

"""`faircount backup` and `faircount restore`: a server's database, and the way back to it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircount.cli.options import FILE
from faircount.core.errors import RefusedError

if TYPE_CHECKING:
    from faircount.service.restore import Restored
    from faircount.service.settings import ServerSettings

ROLE = click.Choice(["coordinator", "aggregator"])
SETTINGS = click.option("--settings", type=FILE, help="File with the server's settings (TOML).")
DATA = click.option("--data", metavar="FOLDER", help="Folder of the server, where no settings name it.")


@click.command()
@click.argument("role", type=ROLE)
@click.argument("file", type=FILE)
@SETTINGS
@DATA
def backup(role: str, file: Path, settings: Path | None, data: str | None) -> None:
    """Copy the database of this machine's ROLE, coordinator or aggregator, into FILE, while the server runs.

    The folders of keys and of the anchor are not in it, and must not be kept with it: with old keys, answers that were
    destroyed could be read again. A backup without the keys of its time can be read by nobody.
    """
    from faircount.service.restore import back_up

    back_up(_settings(role, settings, data).database_url, file)
    click.echo(f"The database of the {role} is in {file}.")


def _settings(role: str, file: Path | None, data: str | None) -> "ServerSettings":
    from faircount.service.settings import AggregatorSettings, CoordinatorSettings, read_settings

    kind = CoordinatorSettings if role == "coordinator" else AggregatorSettings
    return read_settings(kind, file, {"data": data})


@click.command()
@click.argument("role", type=ROLE)
@click.argument("file", type=FILE, required=False)
@SETTINGS
@DATA
def restore(role: str, file: Path | None, settings: Path | None, data: str | None) -> None:
    """Put a backup in FILE in the place of the database of this machine's ROLE, which must be stopped.

    S1 then asks S2 what stands before it goes on. S2 ends what was live, counts it as spent, and keeps every population
    closed until its receipts are shown: see faircount reopen. Without FILE the database is taken as restored already,
    for PostgreSQL.
    """
    import asyncio

    from faircount.service.restore import put_back

    known = _settings(role, settings, data)
    _stopped(known)
    if file is not None:
        put_back(known.database_url, file, role)
    _tell(role, asyncio.run(_restored(known)))


def _stopped(settings: "ServerSettings") -> None:
    """Refuse while the server listens: it would go on with what it has in memory."""
    import socket

    with socket.socket() as tried:
        tried.settimeout(2)
        if tried.connect_ex((settings.host, settings.public_port)) == 0:
            raise RefusedError(f"something listens on port {settings.public_port}: stop the {settings.role} first")


async def _restored(settings: "ServerSettings") -> "Restored":
    from faircount.service.restore import restored_s1, restored_s2
    from faircount.service.run import opened

    server = await opened(settings)
    try:
        return await (restored_s1 if settings.role == "coordinator" else restored_s2)(server)
    finally:
        await server.database.close()


def _tell(role: str, done: "Restored") -> None:
    if role == "coordinator":
        click.echo(f"S1 is restored: {len(done.resumed)} live surveys will ask S2 what stands when it is started.")
    else:
        click.echo(f"S2 is restored: {len(done.ended)} live surveys are ended and counted as spent.")
        for name in done.closed:
            click.echo(f"Closed until its receipts are shown (faircount reopen): {name}")
    if done.lost:
        click.echo(f"{len(done.lost)} surveys ended after the backup, and nothing of them can be read any more.")

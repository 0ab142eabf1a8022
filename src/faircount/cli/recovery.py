"""`faircount backup`, `restore` and `reopen`: copy a server's database, and recover from the copy.

A restored server has forgotten what it did after the backup. The coordinator asks the aggregator
about every live survey. The aggregator could spend the same budget twice, so it closes every
population until the operator shows it the reservations that it signed since the backup.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import CERTIFICATES, FILE
from faircount.core.errors import FaircountError, RefusedError

if TYPE_CHECKING:
    from faircount.server.common.settings import ServerSettings
    from faircount.server.restore import RestoreOutcome

ROLE = click.argument("role", type=click.Choice(["coordinator", "aggregator"]), metavar="ROLE")
SETTINGS = click.option("--settings", type=FILE, help="The server's settings file (TOML).")
DATA = click.option("--data", metavar="FOLDER", help="The server's folder, without --settings.")


@click.command()
@ROLE
@click.argument("file", type=FILE)
@SETTINGS
@DATA
def backup(role: str, file: Path, settings: Path | None, data: str | None) -> None:
    """Copy the database of a server to FILE while it runs; ROLE is coordinator or aggregator.

    The copy does not include the folders of keys and of the anchor, and must not be kept together
    with them: with old keys, responses that were deleted could be decrypted again. Without the keys
    of its time nobody can read a backup.
    """
    from faircount.server.restore import back_up

    # The database alone: together with its keys, a copy would undo every deletion.
    back_up(read_role_settings(role, settings, data).database_url, file)
    click.echo(f"The database of the {role} was copied to {file}.")


@click.command()
@ROLE
@click.argument("file", type=FILE, required=False)
@SETTINGS
@DATA
@click.option(
    "--new-anchor",
    is_flag=True,
    help="State that the server's anchor is lost, so that nobody can know what it has signed.",
)
def restore(
    role: str, file: Path | None, settings: Path | None, data: str | None, new_anchor: bool
) -> None:
    """Replace the database of a server by the backup in FILE; ROLE is coordinator or aggregator.

    The server must be stopped. Without FILE the database is taken to be restored already, as with
    the tools of PostgreSQL.

    When it starts again, the coordinator asks the aggregator how live surveys stand. The aggregator
    ends its live surveys, counts them as spent, and keeps every population closed until it has seen
    its reservations: see faircount reopen.

    A server does not start with another anchor than the one its database knows. If the anchor is
    lost, --new-anchor begins another one. The coordinator then ends its live surveys too, because
    it may have sent its sum already. The operator of the aggregator must state, for each
    population, which reservation was the newest.
    """
    import asyncio

    from faircount.server.restore import restore_database

    # In this order: a running server would write over the restored database, and a server that is
    # resynchronized must have the restored one.
    known = read_role_settings(role, settings, data)
    _check_stopped(known)
    with _lock(known):
        if file is not None:
            restore_database(known.database_url, file, role)
        done = asyncio.run(_resynchronize(known, has_new_anchor=new_anchor))
    _show_restored(role, done, has_new_anchor=new_anchor)


def read_role_settings(role: str, file: Path | None, data: str | None) -> "ServerSettings":
    """Read the settings of a server."""
    from faircount.server.common.settings import (
        AggregatorSettings,
        CoordinatorSettings,
        read_settings,
    )

    # Settings of the two roles differ in their defaults and in the prefix of environment variables.
    kind = CoordinatorSettings if role == "coordinator" else AggregatorSettings
    return read_settings(kind, file, {"data": data})


@contextmanager
def _lock(settings: "ServerSettings") -> Iterator[None]:
    """Refuse while the server runs on this machine, and keep it from starting meanwhile."""
    from faircount.core.files import lock_file, make_private_folder

    make_private_folder(settings.folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(settings.lock_path))
        except RefusedError:
            raise RefusedError(
                f"the {settings.role} is running with this database: stop it first"
            ) from None
        yield


def _check_stopped(settings: "ServerSettings") -> None:
    """Refuse while something listens on the server's port: it may run on another machine."""
    import socket

    with socket.socket() as probe:
        # A server behind a firewall may not answer at all.
        probe.settimeout(2)
        # Besides the lock, which other machines on the same database do not see.
        if probe.connect_ex((settings.host, settings.public_port)) == 0:
            raise RefusedError(
                f"something listens on port {settings.public_port}: stop the {settings.role} first"
            )


async def _resynchronize(settings: "ServerSettings", *, has_new_anchor: bool) -> "RestoreOutcome":
    from faircount.server.restore import restore_aggregator, restore_coordinator
    from faircount.server.run import open_server
    from faircount.storage.anchor import FolderAnchor

    # Opened with the restored database: which anchor it knows is written there.
    server = await open_server(settings, has_new_anchor=has_new_anchor)
    new_anchor = FolderAnchor(settings.anchor_folder) if has_new_anchor else None
    restore_role = restore_coordinator if settings.role == "coordinator" else restore_aggregator
    try:
        return await restore_role(server, new_anchor)
    finally:
        await server.database.close()


def _show_restored(role: str, done: "RestoreOutcome", *, has_new_anchor: bool) -> None:
    if role == "coordinator" and has_new_anchor:
        click.echo(
            f"The coordinator has a new anchor. When it starts, {len(done.ended)} live surveys "
            "are ended: nobody can know whether it has sent its sums."
        )
    elif role == "coordinator":
        click.echo(
            f"The coordinator is restored. When it starts, {len(done.resumed)} live surveys ask "
            "the aggregator how they stand."
        )
    else:
        click.echo(
            f"The aggregator is restored. {len(done.ended)} live surveys were ended and count as "
            "spent."
        )
        # By name, since the operator has to ask every owner for the receipts of a population.
        for name in done.closed:
            click.echo(f"Closed until its reservations are shown (faircount reopen): {name}")
        if has_new_anchor:
            click.echo(
                "The anchor is new. Nobody can know from it which reservation of a population was "
                "the newest, and which populations were opened since the database was written. "
                'Look in the log for lines with "reserved" and state the newest number with '
                "faircount reopen --newest."
            )
    if has_new_anchor:
        click.echo(
            "The lost anchor also knew which tokens were revoked. Those that were revoked after "
            f"the database was written are accepted again: faircount token list {role}"
        )
    if done.removed_keys:
        click.echo(
            f"{done.removed_keys} survey keys without a survey were removed: owners whose survey "
            "is not open yet create it again."
        )
    if done.lost:
        click.echo(
            f"{len(done.lost)} surveys ended after the backup; their data cannot be read any more."
        )


@click.command()
@click.argument("receipts", type=FILE)
@click.option("--address", required=True, help="Address of the aggregator, which must be running.")
@click.option(
    "--token-file",
    type=FILE,
    required=True,
    help="File with the operator's token of the aggregator (DATA/operator-token).",
)
@click.option(
    "--newest",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="State the number of the newest reservation, if the aggregator's anchor is lost.",
)
@CERTIFICATES
def reopen(
    receipts: Path,
    address: str,
    token_file: Path,
    newest: int | None,
    certificates: str | None,
) -> None:
    """Open a population of the aggregator again after a restore.

    RECEIPTS is the file that the owner writes with faircount survey receipts: the reservations
    of its surveys. The aggregator accepts only reservations that it has signed itself, for this
    population and its owner, in one unbroken chain, and says which one is missing. Its anchor
    knows the newest one. If the anchor is lost, state the newest number yourself: the log of the
    aggregator has a line for each ("reserved"). Whoever gave you the file could have left the last
    reservations out.
    """
    from urllib.parse import quote

    from faircount.client.calls import RemoteServer
    from faircount.client.invitation_codes import server_address
    from faircount.core.files import read_file
    from faircount.owner.server_replies import BUDGET, read_answer
    from faircount.transport.limits import LIST_ANSWER

    content = read_file(receipts, "the owner writes it with faircount survey receipts")
    # The file travelled from the coordinator through the owner to this operator.
    try:
        document = json.loads(content)
        population = str(document["population"])
        signed = list(document["reservations"])
    except (ValueError, KeyError, TypeError):
        raise FaircountError(
            f"{receipts} holds no reservations: ask the owner for the file again"
        ) from None
    # Read before anything is sent, and never an option, which other users of the machine could see.
    token = read_file(token_file, "the aggregator wrote it to its folder at its first start")
    # Nothing is verified here: the aggregator itself checks its signatures, and that no
    # reservation is missing.
    server = RemoteServer(
        server_address(address), name="S2", token=token.decode().strip(), verify=certificates
    )
    path = f"/v1/populations/{quote(population, safe='')}/reservations"
    body: dict[str, Any] = {"reservations": signed}
    if newest is not None:
        body["newest"] = newest
    reply = server.call("POST", path, json_body=body, limit=LIST_ANSWER)
    ledger = read_answer(reply, BUDGET)
    click.echo(
        f"{population} is open again: epsilon {ledger['spent']['epsilon']:.4g} of "
        f"{ledger['epsilon']:.4g} is spent."
    )
    if newest is not None:
        click.echo(
            f"That reservation {newest} is the newest is your statement. If there are newer ones, "
            "what they have spent can be spent again."
        )

"""`faircount token`: the tokens with which owners and operators call a server.

These commands change the server's database, which may be in use: run them on its machine.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from faircount.cli.recovery import DATA, ROLE, SETTINGS, read_role_settings

if TYPE_CHECKING:
    from faircount.server.common.base import Server
    from faircount.server.common.tokens import TokenInfo

T = TypeVar("T")

ID = click.argument("token_id", metavar="ID")
DAYS = click.option("--days", type=click.IntRange(1), help="Let it expire after so many days.")


@click.group()
def token() -> None:
    """List, add, replace and revoke the tokens of a server's owners and operators.

    Run this on the machine of the server, which may be running: it notices every change at once. A
    token is printed when it is made and never again, because the server stores only its hash.
    """


@token.command("add")
@ROLE
@click.argument("kind", type=click.Choice(["owner", "operator"]), metavar="KIND")
@click.option("--name", required=True, help="Whose token it is, for your list.")
@DAYS
@SETTINGS
@DATA
def add_command(
    role: str, kind: str, name: str, days: int | None, settings: Path | None, data: str | None
) -> None:
    """Print a new token for somebody; KIND is owner or operator."""
    from faircount.server.common.tokens import Scope, add_token, fresh_token

    # Made before the transaction and printed after it: a token on the screen is one that works.
    fresh = fresh_token()

    async def add(server: "Server") -> None:
        async with server.database.write() as tx:
            await add_token(tx, fresh, Scope(kind), _expiry(days), name=name)

    _with_server(role, settings, data, add)
    click.echo(fresh)


@token.command("list")
@ROLE
@SETTINGS
@DATA
def list_command(role: str, settings: Path | None, data: str | None) -> None:
    """Show whose tokens there are, since when, and how many surveys and budgets they own."""
    from rich.table import Table

    from faircount.cli.show import console
    from faircount.server.common.tokens import list_tokens

    async def read(server: "Server") -> "list[TokenInfo]":
        async with server.database.read() as tx:
            return await list_tokens(tx)

    table = Table("id", "name", "kind", "made", "state", "surveys", "budgets", box=None)
    for entry in _with_server(role, settings, data, read):
        # So that an operator sees what hangs on a token before revoking it.
        numbers = (str(entry.surveys), str(entry.populations))
        made = _day(entry.created_at)
        table.add_row(entry.id, entry.name, str(entry.scope), made, _state(entry), *numbers)
    console().print(table)


def _state(entry: "TokenInfo") -> str:
    from faircount.server.common.clock import now

    if entry.revoked_at is not None:
        return f"revoked {_day(entry.revoked_at)}"
    if entry.expires_at is None:
        return "valid"
    verb = "expired" if entry.expires_at <= now() else "valid until"
    return f"{verb} {_day(entry.expires_at)}"


def _day(time: int) -> str:
    from faircount.server.common.clock import format_time

    return (format_time(time) or "")[:10]


@token.command("revoke")
@ROLE
@ID
@SETTINGS
@DATA
def revoke_command(role: str, token_id: str, settings: Path | None, data: str | None) -> None:
    """Refuse a token from now on; ID is in the list.

    Surveys and budgets stay with its holder, who gets access again with faircount token rotate.
    Running surveys go on; faircount operator hand-over gives one to somebody else.
    """
    from faircount.server.common.tokens import revoke_tokens

    async def revoke(server: "Server") -> "TokenInfo":
        async with server.database.write() as tx:
            # The anchor remembers it, or a restored backup would let the token in again.
            return await revoke_tokens(tx, server.anchor, token_id)

    revoked = _with_server(role, settings, data, revoke)
    click.echo(f"The token of {revoked.name or token_id} is refused from now on.")


@token.command("rotate")
@ROLE
@ID
@DAYS
@SETTINGS
@DATA
def rotate_command(
    role: str, token_id: str, days: int | None, settings: Path | None, data: str | None
) -> None:
    """Print a new token for the holder ID; the old one is refused from now on.

    The holder keeps all surveys and budgets. To hand over everything that somebody has, give the
    new token to their successor.
    """
    from faircount.server.common.tokens import rotate_token

    async def rotate(server: "Server") -> str:
        async with server.database.write() as tx:
            return await rotate_token(tx, server.anchor, token_id, _expiry(days))

    click.echo(_with_server(role, settings, data, rotate))


def _expiry(days: int | None) -> int | None:
    from faircount.server.common.clock import now

    # The clock counts milliseconds.
    return None if days is None else now() + 24 * 3600 * 1000 * days


def _with_server(
    role: str,
    settings: Path | None,
    data: str | None,
    work: "Callable[[Server], Awaitable[T]]",
) -> T:
    """Do something with the database of a server, which may be running."""
    from faircount.server.run import open_server

    async def run() -> T:
        server = await open_server(read_role_settings(role, settings, data))
        try:
            return await work(server)
        finally:
            # Also after an error: a running server shares this database and its connections.
            await server.database.close()

    return asyncio.run(run())

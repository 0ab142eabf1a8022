"""Options that `faircount coordinator` and `faircount aggregator` share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from faircount.cli.options import FILE

if TYPE_CHECKING:
    from faircount.service.settings import ServerSettings

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--settings", type=FILE, help="File with settings (TOML)."),
    click.option("--data", metavar="FOLDER", help="Folder of this server; made if it is not there."),
    click.option("--database", metavar="URL", help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."),
    click.option("--host", metavar="ADDRESS", help="Address on which it listens; 127.0.0.1 unless told."),
    click.option("--port", type=click.IntRange(0, 65535), help="Port on which it listens."),
    click.option("--private-port", type=click.IntRange(-1, 65535), help="Port of health and metrics; -1 for none."),
    click.option("--operator", metavar="NAME", help="Who runs this server: people read it before they answer."),
    click.option(
        "--add-token", type=click.Choice(["owner", "operator"]), help="Print a new token of this kind, and end."
    ),
    click.option("--token-days", type=click.IntRange(1), help="After so many days the new token expires."),
)


def server_options(command: F) -> F:
    """Give a command the options of a server."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def start(
    settings: "ServerSettings", serve: Callable[[Any], Any], add_token: str | None, token_days: int | None
) -> None:
    """Run a server, or print a new token for it."""
    from faircount.service.run import new_token, run

    if add_token is None:
        run(settings, serve)
        return
    import asyncio

    from faircount.service.clock import now
    from faircount.service.tokens import Scope

    expires_at = None if token_days is None else now() + 24 * 3600 * 1000 * token_days
    click.echo(asyncio.run(new_token(settings, Scope(add_token), expires_at=expires_at)))

"""`faircount coordinator`, `aggregator` and `serve`: run one server, or both for a trial."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from faircount.cli.options import FILE
from faircount.core.errors import FaircountError

if TYPE_CHECKING:
    from faircount.demo.trial import Trial
    from faircount.server.common.settings import ServerSettings

F = TypeVar("F", bound=Callable[..., Any])

PORT = click.IntRange(1, 65535)

# Options have no defaults here: a default would override the settings file and the environment.
_SERVER_OPTIONS = (
    click.option("--settings", type=FILE, help="Read settings from this TOML file."),
    click.option(
        "--data", metavar="FOLDER", help="Keep everything in this folder; created if missing."
    ),
    click.option(
        "--database", metavar="URL", help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
    ),
    click.option("--host", metavar="ADDRESS", help="Listen on this address; 127.0.0.1 by default."),
    click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port."),
    click.option(
        "--private-port",
        type=click.IntRange(-1, 65535),
        help="Serve health checks and metrics on this port; -1 turns them off.",
    ),
    click.option(
        "--operator",
        metavar="NAME",
        help="Your organization; participants see it before they answer.",
    ),
    click.option(
        "--show-operator",
        is_flag=True,
        help="Print the name and key that your organization should publish, and exit.",
    ),
)


def server_options(command: F) -> F:
    """Decorate a command with the options that both servers share."""
    # Decorators apply from the bottom up, and help lists options in the order of the table.
    for option in reversed(_SERVER_OPTIONS):
        command = option(command)
    return command


@click.command()
@server_options
@click.option("--aggregator", metavar="URL", help="Address of the aggregator.")
def coordinator(settings: Path | None, show_operator: bool, **given: Any) -> None:
    """Run the coordinator (S1), which collects encrypted reports and keeps deadlines.

    It cannot read any response. Everything it stores is in the folder DATA: its database, the keys
    that encrypt the database, and an anchor of values that no restore may roll back. At the first
    start it writes an access token for owners to DATA/owner-token and one for its operator to
    DATA/operator-token. faircount token makes and revokes others.

    Settings are read from the file, then the environment (FAIRCOUNT_COORDINATOR_...), then these
    options; later ones take precedence.
    """
    from faircount.server.common.settings import CoordinatorSettings, read_settings
    from faircount.server.run import run, serve_coordinator

    known = read_settings(CoordinatorSettings, settings, given)
    if show_operator:
        _show_operator(known)
    else:
        run(known, serve_coordinator)


@click.command()
@server_options
def aggregator(settings: Path | None, show_operator: bool, **given: Any) -> None:
    """Run the aggregator (S2), which keeps privacy budgets and opens one sum per survey.

    It should be run by another organization than the coordinator. Only the coordinator and the
    owner call it, so it can stand behind a firewall. Everything it stores is in the folder DATA. At
    the first start it writes an access token for owners to DATA/owner-token and one for its
    operator to DATA/operator-token. faircount token makes and revokes others.

    Settings are read from the file, then the environment (FAIRCOUNT_AGGREGATOR_...), then these
    options; later ones take precedence.
    """
    from faircount.server.common.settings import AggregatorSettings, read_settings
    from faircount.server.run import run, serve_aggregator

    known = read_settings(AggregatorSettings, settings, given)
    if show_operator:
        _show_operator(known)
    else:
        run(known, serve_aggregator)


def _show_operator(settings: "ServerSettings") -> None:
    """Print what the organization publishes, so that participants can compare it."""
    from faircount.server.common.base import describe_operator
    from faircount.server.run import operator_in
    from faircount.storage.keys import KeyFolder

    shown = describe_operator(operator_in(settings.operator, KeyFolder(settings.key_folder)))
    for name, value in shown.items():
        click.echo(f"{name}: {value}")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--s1-port", type=PORT, default=8461, show_default=True, help="Port of the coordinator."
)
@click.option(
    "--s2-port", type=PORT, default=8462, show_default=True, help="Port of the aggregator."
)
def serve(folder: Path, s1_port: int, s2_port: int) -> None:
    """Run both servers on this machine for a TRIAL, until you press Ctrl-C.

    The servers are two processes with two databases in FOLDER. Privacy holds only if the two
    server operators do not collude, so do not collect real answers like this: let two
    organizations run one server each, with faircount coordinator and faircount aggregator (see
    docs/how-to/operate-two-servers.md).
    """
    from faircount.demo.trial import trial

    # Two processes with two databases, so that a trial behaves like two machines and every message
    # really travels between them.
    with trial(folder, (s1_port, s2_port)) as running:
        click.echo(
            "TRIAL: both servers run on this machine, so whoever controls it can combine the "
            "shares.\n"
            f"Coordinator, for participants and you: {running.address}\n"
            f"Your access to both servers (keep it secret): {running.servers_file}\n"
            "Next, in another terminal: faircount survey create my-survey --servers "
            f"{running.servers_file} ...\n"
            "Press Ctrl-C to stop; all data stays in the folder."
        )
        try:
            _wait_for_failure(running)
        except KeyboardInterrupt:
            click.echo("\nBoth servers are stopped.")


def _wait_for_failure(running: "Trial") -> None:
    """Raise an error as soon as one of the servers ends, which it should not."""
    # Polling is enough: a trial has two processes and a person watching.
    while True:
        for name, process in (("coordinator", running.s1), ("aggregator", running.s2)):
            if not process.is_alive:
                raise FaircountError(
                    f"the {name} has stopped, and the other server with it. All data is still in "
                    f"{running.folder}: run the same command again. What it did last is at the end "
                    f"of {process.log}"
                )
        time.sleep(0.5)

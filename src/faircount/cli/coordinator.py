"""`faircount coordinator`: run S1."""

from pathlib import Path

import click

from faircount.cli.server_options import server_options


@click.command()
@server_options
@click.option("--aggregator", metavar="URL", help="Address of S2.")
def coordinator(
    settings: Path | None,
    data: str | None,
    database: str | None,
    host: str | None,
    port: int | None,
    private_port: int | None,
    operator: str | None,
    add_token: str | None,
    token_days: int | None,
    aggregator: str | None,
) -> None:
    """Run S1, the coordinator: it takes people's answers, of which it can read none, and talks to S2.

    Everything it keeps is in the folder DATA: its database, the keys of what is in it, and its anchor. At the first
    start it writes an owner's token into DATA/owner-token and an operator's into DATA/operator-token. Settings come
    from a file, the environment (FAIRCOUNT_COORDINATOR_...) and these options; the last one wins.
    """
    from faircount.cli.server_options import start
    from faircount.service.run import serve_coordinator
    from faircount.service.settings import CoordinatorSettings, read_settings

    given = {"data": data, "database": database, "host": host, "port": port, "private_port": private_port}
    given |= {"operator": operator, "aggregator": aggregator}
    start(read_settings(CoordinatorSettings, settings, given), serve_coordinator, add_token, token_days)

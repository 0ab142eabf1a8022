"""`faircount coordinator`: run S1."""

from pathlib import Path
from typing import Any

import click

from faircount.cli.server_options import server_options, start


@click.command()
@server_options
@click.option("--aggregator", metavar="URL", help="Address of S2.")
def coordinator(settings: Path | None, add_token: str | None, token_days: int | None, **given: Any) -> None:
    """Run S1, the coordinator: it takes people's answers, of which it can read none, and talks to S2.

    Everything it keeps is in the folder DATA: its database, the keys of what is in it, and its anchor. At the first
    start it writes an owner's token into DATA/owner-token and an operator's into DATA/operator-token. Settings come
    from a file, the environment (FAIRCOUNT_COORDINATOR_...) and these options; the last one wins.
    """
    from faircount.service.run import serve_coordinator
    from faircount.service.settings import CoordinatorSettings, read_settings

    start(read_settings(CoordinatorSettings, settings, given), serve_coordinator, add_token, token_days)

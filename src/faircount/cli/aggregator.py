"""`faircount aggregator`: run S2."""

from pathlib import Path
from typing import Any

import click

from faircount.cli.server_options import server_options, start


@click.command()
@server_options
def aggregator(settings: Path | None, add_token: str | None, token_days: int | None, **given: Any) -> None:
    """Run S2, the aggregator: it keeps the budgets, and opens one sum of each survey.

    Another organization than S1's runs it. Only S1 and the owner call it, so it can stand behind a firewall. Everything
    it keeps is in the folder DATA; at the first start it writes an owner's token into DATA/owner-token and an
    operator's into DATA/operator-token. Settings come from a file, the environment (FAIRCOUNT_AGGREGATOR_...) and these
    options; the last one wins.
    """
    from faircount.service.run import serve_aggregator
    from faircount.service.settings import AggregatorSettings, read_settings

    start(read_settings(AggregatorSettings, settings, given), serve_aggregator, add_token, token_days)

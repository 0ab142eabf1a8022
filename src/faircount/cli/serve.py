"""`faircount serve`: both servers on this machine, for a trial."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircount.core.errors import FaircountError

if TYPE_CHECKING:
    from faircount.service.trial import Trial

PORT = click.IntRange(1, 65535)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--s1-port", type=PORT, default=8461, show_default=True, help="Port of S1, which people call.")
@click.option("--s2-port", type=PORT, default=8462, show_default=True, help="Port of S2, which S1 calls.")
def serve(folder: Path, s1_port: int, s2_port: int) -> None:
    """Run both servers on this machine, as two processes with two databases in FOLDER, until you stop it.

    This is a TRIAL: whoever runs both servers can put the shares together. For real answers two organizations run one
    server each, with faircount coordinator and faircount aggregator: see docs/operations.md.
    """
    from faircount.service.trial import trial

    with trial(folder, (s1_port, s2_port)) as running:
        click.echo(
            "TRIAL: both servers run on this machine, so whoever controls it can put the shares together.\n"
            f"S1 (people and you): {running.address}\n"
            f"Your access to both servers: {running.servers_file}, which is secret.\n"
            f"Next, in another window: faircount survey create my-survey --servers {running.servers_file} ...\n"
            "Stop with Ctrl-C; everything stays in the folder."
        )
        try:
            _watch(running)
        except KeyboardInterrupt:
            click.echo("\nBoth servers are stopped.")


def _watch(running: "Trial") -> None:
    """Until one of them ends, which it should not."""
    import time

    while True:
        for name, process in (("S1", running.s1), ("S2", running.s2)):
            if not process.alive:
                raise FaircountError(f"{name} has ended: {process.last_words()}")
        time.sleep(0.5)

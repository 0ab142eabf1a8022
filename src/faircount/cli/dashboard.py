"""`faircount dashboard`: surveys in the owner's browser, on the owner's own machine."""

from pathlib import Path

import click

from faircount.cli.options import FILE
from faircount.core.errors import FaircountError

LOOPBACK = "127.0.0.1"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--servers",
    type=FILE,
    required=True,
    help="File with address and token of both servers: see serve.",
)
@click.option("--port", default=8470, show_default=True, help="Port on this machine; 0 for any that is free.")
def dashboard(folder: Path, servers: Path, port: int) -> None:
    """Create surveys and watch them, in a browser on this machine.

    FOLDER holds a folder for each survey, as faircount survey makes them. The address that is printed has a key in it:
    whoever knows it can act as you while the command runs.
    """
    from secrets import token_urlsafe
    from socket import create_server

    from faircount.dashboard.surveys import Surveys
    from faircount.service.owner.folder import read_servers

    try:
        import uvicorn

        from faircount.dashboard.app import dashboard_app
    except ImportError:
        raise FaircountError("the dashboard needs more: pip install 'faircount[service]'") from None
    read_servers(servers)
    folder.mkdir(parents=True, exist_ok=True)
    with create_server((LOOPBACK, port)) as listening:
        host, key = f"{LOOPBACK}:{listening.getsockname()[1]}", token_urlsafe(24)
        click.echo(f"Your surveys, until you press Ctrl-C:\nhttp://{host}/#{key}")
        app = dashboard_app(Surveys(folder, servers), key, host)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])

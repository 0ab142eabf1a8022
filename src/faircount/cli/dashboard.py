"""`faircount dashboard`: create and watch surveys in the owner's browser."""

import os
from pathlib import Path

import click

from faircount.cli.options import FILE, FOLDER
from faircount.core.errors import FaircountError

# The dashboard acts with the owner's tokens, so it is never reachable from another machine.
LOOPBACK = "127.0.0.1"


@click.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--servers",
    type=FILE,
    required=True,
    help="File with address and token of both servers, as faircount serve writes it.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8470,
    show_default=True,
    help="Port on this machine; 0 picks a free one.",
)
def dashboard(folder: Path, servers: Path, port: int) -> None:
    """Create and watch surveys in a browser on this machine.

    FOLDER holds one folder per survey, as `faircount survey` creates them. The address that is
    printed contains a key: whoever has it can act as you while the command runs.

    To send invitations from there, name your mail server in the environment variables that
    `faircount survey mail` reads. The password never appears on the page.
    """
    from secrets import token_urlsafe
    from socket import create_server

    from faircount.core.files import describe_os_error, lock_file
    from faircount.dashboard.surveys import Surveys
    from faircount.owner.folder import read_servers
    from faircount.owner.mail_server import MailSettings

    # Only surveys need the web packages, so they are not installed with faircount itself.
    try:
        import uvicorn

        from faircount.dashboard.app import dashboard_app
    except ImportError:
        raise FaircountError(
            "the dashboard needs more packages: pip install 'faircount[service]'"
        ) from None
    mail = MailSettings.from_environment(os.environ)
    read_servers(servers)  # refuses a wrong file now, and not when the first survey is created
    try:
        # Before anything is written, and before an address is printed.
        listener = create_server((LOOPBACK, port))
    except OSError as problem:
        raise FaircountError(
            f"the dashboard cannot listen on port {port}: {describe_os_error(problem)}. Stop the "
            "program that uses the port, or give another one with --port"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    # Two dashboards would not see what the other one does.
    with listener, lock_file(folder / "dashboard"):
        host = f"{LOOPBACK}:{listener.getsockname()[1]}"
        key = token_urlsafe(24)
        # Browsers do not send the part after # to servers, so the key stays out of logs.
        click.echo(f"Open this address; press Ctrl-C to stop:\nhttp://{host}/#{key}")
        app = dashboard_app(Surveys(folder, servers, mail), key, host)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])

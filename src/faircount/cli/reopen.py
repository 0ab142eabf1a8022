"""`faircount reopen`: S2's operator shows it the receipts that S1 has kept, after a restore."""

from pathlib import Path

import click

from faircount.cli.options import FILE
from faircount.core.errors import FaircountError


@click.command()
@click.argument("receipts", type=FILE)
@click.option("--address", required=True, help="Address of S2, which must run.")
@click.option("--token-file", type=FILE, required=True, help="File with the operator's token of S2: operator-token.")
@click.option("--certificates", metavar="FILE", help="Certificates to believe, for a server with its own authority.")
def reopen(receipts: Path, address: str, token_file: Path, certificates: str | None) -> None:
    """Open a population of S2 again after a restore, with RECEIPTS that the owner got from S1.

    The owner writes them with faircount survey receipts. S2 believes none that it has not signed itself, and says which
    one is missing.
    """
    import json
    from urllib.parse import quote

    from faircount.core.files import read_file
    from faircount.service.calls import RemoteServer
    from faircount.service.codes import server_address

    try:
        said = json.loads(read_file(receipts, "the owner writes it with faircount survey receipts"))
        population, shown = str(said["population"]), list(said["receipts"])
    except (ValueError, KeyError, TypeError):
        raise FaircountError(f"{receipts} holds no receipts: ask the owner for the file again") from None
    token = read_file(token_file, "S2 wrote it into its folder at its first start").decode().strip()
    server = RemoteServer(server_address(address), name="S2", token=token, verify=certificates)
    path = f"/v1/populations/{quote(population, safe='')}/receipts"
    found = server.call("POST", path, given={"receipts": shown}).json()
    spent = found["spent"]
    click.echo(f"{population} is open again: epsilon {spent['epsilon']:.4g} of {found['epsilon']:.4g} is spent.")

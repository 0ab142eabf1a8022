"""`faircount operator`: what the operator of a server can do with the surveys on it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from faircount.cli.options import CERTIFICATES, FILE

if TYPE_CHECKING:
    from faircount.client.calls import RemoteServer

SURVEY = click.argument("survey", metavar="SURVEY")
ADDRESS = click.option("--address", required=True, help="Address of your server.")
TOKEN_FILE = click.option(
    "--token-file",
    type=FILE,
    required=True,
    help="File with the operator's token of the server (DATA/operator-token).",
)


@click.group()
def operator() -> None:
    """List, stop, hand over and erase surveys on a server that you operate.

    SURVEY is the id of a survey, as the list shows it. You act on your own server only: the
    operator of the other one decides about the other half.
    """


@operator.command("surveys")
@ADDRESS
@TOKEN_FILE
@CERTIFICATES
def surveys_command(address: str, token_file: Path, certificates: str | None) -> None:
    """List all surveys on the server, with phase and owner."""
    # Imported in the command: `faircount --help` must not wait for what it does not use.
    from rich.table import Table

    from faircount.cli.show import console
    from faircount.transport.limits import LIST_ANSWER

    reply = _server(address, token_file, certificates).call(
        "GET", "/v1/operator/surveys", limit=LIST_ANSWER
    )
    table = Table("survey", "phase", "owner", "owner's name", box=None)
    for entry in reply.json()["surveys"]:
        table.add_row(entry["survey"], entry["phase"], entry["owner"], entry["owner_name"])
    console().print(table)


@operator.command("stop")
@SURVEY
@click.option("--reason", default="", help="Reason that everybody can read.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@ADDRESS
@TOKEN_FILE
@CERTIFICATES
def stop_command(
    survey: str,
    reason: str,
    yes: bool,
    address: str,
    token_file: Path,
    certificates: str | None,
) -> None:
    """End a running survey for good, without a result.

    The coordinator asks the aggregator to abort it. The aggregator refuses everything more about
    it, and the coordinator learns that with its next message, at the latest when the survey closes.
    Budget that was reserved stays spent.
    """
    if not yes:
        # By its id, as the list of all surveys shows it.
        click.confirm(f"End the survey {survey} without a result?", abort=True)
    _call(address, token_file, certificates, "POST", f"{_path(survey)}/stop", {"reason": reason})
    click.echo("The survey is stopped on this server.")


@operator.command("hand-over")
@SURVEY
@click.argument("owner", metavar="OWNER")
@ADDRESS
@TOKEN_FILE
@CERTIFICATES
def hand_over_command(
    survey: str, owner: str, address: str, token_file: Path, certificates: str | None
) -> None:
    """Give a survey to another owner; OWNER is an id from faircount token list.

    The budget stays with the owner who opened it. The new owner also needs the survey's folder from
    the old one: no server has the invitations.
    """
    _call(address, token_file, certificates, "POST", f"{_path(survey)}/owner", {"to": owner})
    click.echo(f"The survey belongs to {owner} on this server.")


@operator.command("erase")
@SURVEY
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@ADDRESS
@TOKEN_FILE
@CERTIFICATES
def erase_command(
    survey: str, yes: bool, address: str, token_file: Path, certificates: str | None
) -> None:
    """Erase a survey that is over: parameters, people, hashes, result and keys.

    What stays: the charge in the population's budget, which is never given back, the aggregator's
    reservation at the coordinator, and at the aggregator which key signed it.
    """
    if not yes:
        click.confirm(f"Erase the survey {survey} from this server?", abort=True)
    # The server refuses it while the survey runs; stopping it is a decision of its own.
    _call(address, token_file, certificates, "DELETE", _path(survey))
    click.echo("The survey is erased on this server.")


@operator.command("receipts")
@click.argument("population", metavar="POPULATION")
@click.argument("file", type=FILE)
@ADDRESS
@TOKEN_FILE
@CERTIFICATES
def receipts_command(
    population: str, file: Path, address: str, token_file: Path, certificates: str | None
) -> None:
    """Save all reservations of a POPULATION that the coordinator has to FILE.

    For faircount reopen, if owners cannot fetch them any more or several have surveys of the
    population. Only the coordinator has them.
    """
    from faircount.core.files import write_durably
    from faircount.owner.server_replies import RESERVATIONS, read_answer
    from faircount.transport.limits import LIST_ANSWER

    path = f"/v1/operator/reservations?population={quote(population, safe='')}"
    reply = _server(address, token_file, certificates).call("GET", path, limit=LIST_ANSWER)
    found = read_answer(reply, RESERVATIONS)["reservations"]
    document = {"population": population, "reservations": found}
    write_durably(file, json.dumps(document, indent=1).encode() + b"\n")
    click.echo(f"{len(found)} reservations of {population} are in {file}.")


def _path(survey: str) -> str:
    # Quoted whole: with a slash in it, an id could name another call.
    return f"/v1/operator/surveys/{quote(survey, safe='')}"


def _call(
    address: str,
    token_file: Path,
    certificates: str | None,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
) -> None:
    _server(address, token_file, certificates).call(method, path, json_body=body)


def _server(address: str, token_file: Path, certificates: str | None) -> "RemoteServer":
    from faircount.client.calls import RemoteServer
    from faircount.client.invitation_codes import server_address
    from faircount.core.files import read_file

    # From a file and never from an option, which other users of the machine could see.
    token = read_file(token_file, "the server wrote it to its folder at its first start")
    return RemoteServer(server_address(address), token=token.decode().strip(), verify=certificates)

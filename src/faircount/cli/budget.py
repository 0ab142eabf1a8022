"""`faircount budget`: create a privacy budget, or show how much of it is spent."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.protocol.survey.budget import Ledger

# How the status of a charge is shown. A charge without a result belongs to a run that was stopped,
# or that is still at work.
STATUS = {"reserved": "spent, no result", "spent": "spent", "cancelled": "given back"}


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--population",
    metavar="NAME",
    help="Name of the people who share the budget.",
)
# With these the command creates a budget; without them it shows one.
@click.option(
    "--epsilon", type=float, help="Create a budget with this total epsilon; it is never raised."
)
@click.option("--delta", type=float, help="Total delta of the new budget.")
@click.option(
    "--fixed-series",
    is_flag=True,
    help="Compose runs exactly, which allows more of them, because all runs were decided before "
    "the first result was seen.",
)
@click.option(
    "--token-file", type=FILE, help="File with the owner's token, if FILE is the aggregator's URL."
)
@JSON
def budget(
    file: str,
    population: str | None,
    epsilon: float | None,
    delta: float | None,
    fixed_series: bool,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Create or show the privacy budget in FILE.

    Every run on the same people spends privacy again. A budget adds up what all runs spend and
    refuses a run that would exceed the total. `faircount run --ledger FILE --population NAME`
    charges it before noise is drawn. A run that is stopped before it has shown its result therefore
    stays charged, as 'spent, no result'.

    To create a budget, give --population, --epsilon and --delta. If FILE is the address of an
    aggregator (https://...), this is the budget that surveys of a population spend there; give
    --population and --token-file.
    """
    from faircount.cli.show import console, print_json

    # A total is only given to create a budget, because a budget that could be raised would protect
    # nobody.
    creates = epsilon is not None or delta is not None
    if creates and (population is None or epsilon is None or delta is None):
        raise ParameterError(
            "a new budget needs all three: --population NAME, --epsilon TOTAL and --delta TOTAL"
        )
    if fixed_series and not creates:
        raise ParameterError(
            "--fixed-series is decided when a budget is created: give --epsilon and --delta too"
        )
    total = {"epsilon": epsilon, "delta": delta, "adaptive": not fixed_series} if creates else None
    if file.startswith(("http://", "https://")):
        ledgers = [_use_server(file, population, total, token_file)]
    else:
        ledgers = _use_file(Path(file), population, total)
    if as_json:
        print_json({"populations": ledgers})
        return
    for ledger in ledgers:
        _show(console(), ledger)


def _use_file(
    path: Path, population: str | None, total: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Create a budget in a file if a total is given; return those asked for."""
    from faircount.analysis.ledger_file import LedgerFile

    file = LedgerFile(path)
    if population is None:
        return [_to_dict(ledger) for ledger in file.ledgers()]
    if total is not None:
        file.create(population, **total)
    return [_to_dict(file.ledger(population))]


def _use_server(
    address: str, population: str | None, total: dict[str, Any] | None, token_file: Path | None
) -> dict[str, Any]:
    """Create a budget at the aggregator if a total is given; return it."""
    from urllib.parse import quote

    from faircount.client.calls import RemoteServer
    from faircount.core.files import read_file
    from faircount.owner.server_replies import BUDGET, read_answer
    from faircount.transport.limits import LIST_ANSWER

    if population is None or token_file is None:
        raise ParameterError(
            "a budget at the aggregator needs both: --population NAME and --token-file FILE"
        )
    token = read_file(token_file, "it holds the owner's token at the aggregator")
    server = RemoteServer(
        address.rstrip("/"), name="The aggregator", token=token.decode(errors="replace").strip()
    )
    path = f"/v1/populations/{quote(population, safe='')}"
    if total is not None:
        server.call("PUT", path, json_body=total)
    ledger = read_answer(server.call("GET", path, limit=LIST_ANSWER), BUDGET)
    # The aggregator names surveys by their identifiers and keeps no labels.
    runs = []
    for charge in ledger["surveys"]:
        label = f"survey {charge['survey']}"
        runs.append({**charge, "label": label, "status": STATUS.get(charge["status"], "")})
    return {**ledger, "fixed_series": not ledger["adaptive"], "runs": runs}


def _to_dict(ledger: "Ledger") -> dict[str, Any]:
    runs = [
        {
            "label": charge.label,
            "epsilon": charge.epsilon,
            "delta": charge.delta,
            "status": STATUS[charge.status],
        }
        for charge in ledger.charges
    ]
    epsilon, delta = ledger.spent
    return {
        "population": ledger.population,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "fixed_series": not ledger.adaptive,
        "spent": {"epsilon": epsilon, "delta": delta},
        "runs": runs,
    }


def _show(out: "Console", ledger: dict[str, Any]) -> None:
    from faircount.accounting.guarantee import format_delta
    from faircount.cli.show import format_number, make_table

    def shown_delta(delta: float) -> str:
        return format_delta(delta, digits=4)

    spent = ledger["spent"]
    epsilons = f"{format_number(spent['epsilon'])} of {format_number(ledger['epsilon'])}"
    deltas = f"{shown_delta(spent['delta'])} of {shown_delta(ledger['delta'])}"
    method = "added up"
    if ledger["fixed_series"]:
        method = "composed exactly: the series was fixed in advance"
    out.print(
        f"{ledger['population']}: epsilon {epsilons}, delta {deltas} spent ({method})",
        markup=False,
    )
    rows = []
    for run in ledger["runs"]:
        epsilon = format_number(run["epsilon"])
        rows.append([run["label"], epsilon, shown_delta(run["delta"]), run["status"]])
    if rows:
        out.print(make_table(["run", "epsilon", "delta", "status"], rows, left=(0, 3)))

"""`faircount budget`: what the people of a population have left."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.protocol.survey.budget import Ledger

STATUS = {"reserved": "spent, no result", "spent": "spent", "released": "given back"}
"""What becomes of a charge. One without a result belongs to a run that was stopped, or is still at work."""


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--population", metavar="NAME", help="The people who share the budget; with --epsilon it is created.")
@click.option("--epsilon", type=float, help="Create the budget with this total privacy loss: it is never raised.")
@click.option("--delta", type=float, help="Total delta: the chance, over all runs, that the privacy loss is larger.")
@click.option(
    "--fixed-series",
    is_flag=True,
    help="All runs were fixed before the first result was seen: compose them exactly instead of adding up.",
)
@click.option("--token-file", type=FILE, help="File with the owner's token, where FILE is S2.")
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
    """Create or show the budget in FILE, which `faircount run --ledger FILE --population NAME` spends.

    Every run on the same people spends privacy again. A budget adds up what they spend together, and refuses the run
    that would exceed the total. A run is charged before anything is drawn: one that is stopped before it has shown its
    result stays charged, as 'spent, no result'.

    Where FILE is the address of S2 (https://...), this is the budget that surveys of a population spend there; give
    --population and --token-file.
    """
    from faircount.cli.show import console, print_json

    total = None if epsilon is None or delta is None else (epsilon, delta)
    if (epsilon is not None or delta is not None) and (population is None or total is None):
        raise ParameterError("a new budget needs all three: --population NAME, --epsilon TOTAL and --delta TOTAL")
    if total is None and fixed_series:
        raise ParameterError("--fixed-series is decided when a budget is created: give --epsilon and --delta too")
    look = _at_server if file.startswith(("http://", "https://")) else _in_file
    shown = look(file, population, total, fixed_series, token_file)
    if as_json:
        print_json({"populations": shown})
        return
    for each in shown:
        _show(console(), each)


def _in_file(
    file: str, population: str | None, total: tuple[float, float] | None, fixed_series: bool, _: Path | None
) -> list[dict[str, Any]]:
    from faircount.analysis.ledger_file import LedgerFile

    ledgers = LedgerFile(Path(file))
    if total is not None and population is not None:
        ledgers.create(population, *total, adaptive=not fixed_series)
    return [_plain(each) for each in (ledgers.ledgers() if population is None else (ledgers.ledger(population),))]


def _at_server(
    address: str, population: str | None, total: tuple[float, float] | None, fixed_series: bool, token: Path | None
) -> list[dict[str, Any]]:
    from urllib.parse import quote

    from faircount.core.files import read_file
    from faircount.service.calls import RemoteServer

    if population is None or token is None:
        raise ParameterError("a budget at S2 needs both: --population NAME and --token-file FILE")
    secret = read_file(token, "it holds the owner's token at S2").decode(errors="replace").strip()
    server = RemoteServer(address.rstrip("/"), name="S2", token=secret)
    path = f"/v1/populations/{quote(population, safe='')}"
    if total is not None:
        wanted = {"epsilon": total[0], "delta": total[1], "adaptive": not fixed_series}
        server.call("PUT", path, given=wanted)
    said = server.call("GET", path).json()
    runs = [{**each, "label": f"survey {each['survey']}", "status": STATUS[each["status"]]} for each in said["surveys"]]
    return [{**said, "fixed_series": not said["adaptive"], "runs": runs}]


def _plain(ledger: "Ledger") -> dict[str, Any]:
    epsilon, delta = ledger.spent
    return {
        "population": ledger.population,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "fixed_series": not ledger.adaptive,
        "spent": {"epsilon": epsilon, "delta": delta},
        "runs": [
            {"label": each.label, "epsilon": each.epsilon, "delta": each.delta, "status": STATUS[each.status]}
            for each in ledger.charges
        ],
    }


def _show(out: "Console", said: dict[str, Any]) -> None:
    from faircount.accounting.guarantee import delta_in_words
    from faircount.cli.show import grid, number

    written: dict[str, Callable[[float], str]] = {"epsilon": number, "delta": partial(delta_in_words, digits=4)}
    how = "composed exactly: the series was fixed in advance" if said["fixed_series"] else "added up"
    amounts = ", ".join(f"{key} {say(said['spent'][key])} of {say(said[key])}" for key, say in written.items())
    out.print(f"{said['population']}: {amounts} spent ({how})", markup=False)
    rows = [[each["label"], *(say(each[key]) for key, say in written.items()), each["status"]] for each in said["runs"]]
    if rows:
        out.print(grid(["run", "epsilon", "delta", "status"], rows, left=(0, 3)))

"""`faircount budget`: what the people of a population have left."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.protocol.survey.budget import Ledger

STATUS = {"reserved": "spent, no result", "spent": "spent", "released": "given back"}
"""What becomes of a charge. One without a result belongs to a run that was stopped, or is still at work."""


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--population", metavar="NAME", help="The people who share the budget; with --epsilon it is created.")
@click.option("--epsilon", type=float, help="Create the budget with this total privacy loss: it is never raised.")
@click.option("--delta", type=float, help="Total delta: the chance, over all runs, that the privacy loss is larger.")
@click.option(
    "--fixed-series",
    is_flag=True,
    help="All runs were fixed before the first result was seen: compose them exactly instead of adding up.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def budget(
    file: Path, population: str | None, epsilon: float | None, delta: float | None, fixed_series: bool, as_json: bool
) -> None:
    """Create or show the budget in FILE, which `faircount run --ledger FILE --population NAME` spends.

    Every run on the same people spends privacy again. A budget adds up what they spend together, and refuses the run
    that would exceed the total. A run is charged before anything is drawn: one that is stopped before it has shown its
    result stays charged, as 'spent, no result'.
    """
    from faircount.analysis.ledger_file import LedgerFile
    from faircount.cli.show import console, print_json
    from faircount.core.errors import ParameterError

    ledgers = LedgerFile(file)
    if epsilon is not None or delta is not None:
        if population is None or epsilon is None or delta is None:
            raise ParameterError("a new budget needs all three: --population NAME, --epsilon TOTAL and --delta TOTAL")
        ledgers.create(population, epsilon, delta, adaptive=not fixed_series)
    elif fixed_series:
        raise ParameterError("--fixed-series is decided when a budget is created: give --epsilon and --delta too")
    shown = ledgers.ledgers() if population is None else (ledgers.ledger(population),)
    if as_json:
        print_json({"populations": [_plain(each) for each in shown]})
        return
    for each in shown:
        _show(console(), each)


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


def _show(out: "Console", ledger: "Ledger") -> None:
    from faircount.cli.show import grid, number

    said = _plain(ledger)
    how = "composed exactly: the series was fixed in advance" if said["fixed_series"] else "added up"
    amounts = ", ".join(f"{key} {number(said['spent'][key])} of {number(said[key])}" for key in ("epsilon", "delta"))
    out.print(f"{ledger.population}: {amounts} spent ({how})", markup=False)
    rows = [[each["label"], number(each["epsilon"]), number(each["delta"]), each["status"]] for each in said["runs"]]
    if rows:
        out.print(grid(["run", "epsilon", "delta", "status"], rows, left=(0, 3)))

"""`faircount reproduce`: the figures and tables of the paper, made again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.sweep.sweep import Progress

WHICH = ("all", "fig1", "fig2", "fig3", "fig4", "fig5", "table1", "table2")


@click.command()
@click.argument("which", type=click.Choice(WHICH), default="all")
@click.option("--runs", type=click.IntRange(min=2), default=20, show_default=True, help="Runs of every point.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Directory for figures, CSV files and the report.",
)
@click.option(
    "--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True, help="Who does the work."
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler, such as tcp://10.0.0.5:8786."
)
@click.option("--workers", type=click.IntRange(min=1), help="Number of processes started here.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Same seed, same numbers, on any engine."
)
def reproduce(
    which: str, runs: int, out: Path, engine: str, scheduler: str | None, workers: int | None, seed: int
) -> None:
    """Make the paper's figures and tables again: pictures, data as CSV, and one report to read beside the paper.

    An interrupted run goes on where it stopped when it is started again with the same arguments.
    """
    from faircount.cli.show import console
    from faircount.experiments.report.reproduce import reproduce as make_report

    screen = console()
    with _bar(screen, which) as progress:
        make_report(
            which=which,
            runs=runs,
            out=out,
            engine=engine,
            scheduler=scheduler,
            workers=workers,
            seed=seed,
            progress=progress,
        )
    screen.print(f"Written to {out}: open {out / 'report.html'}")


@contextmanager
def _bar(screen: "Console", which: str) -> Iterator["Progress"]:
    """A bar of runs done, with the time left; where there is no terminal nothing is drawn but the end."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=screen) as display:
        line = display.add_task(which, total=None)
        yield lambda done, total: display.update(line, completed=done, total=total)

"""`faircount reproduce`: the figures and tables of the paper, run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli import PlainError
from faircount.core.errors import ContradictionError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.reproduction.sweep.sweep import Progress

WHICH = ("all", "fig1", "fig2", "fig3", "fig4", "fig5", "table1", "table2")

# Without a terminal, progress is printed at most this often, so that log files stay short.
SECONDS_BETWEEN_LINES = 10.0


@click.command()
@click.argument("which", type=click.Choice(WHICH), default="all")
@click.option(
    "--runs",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    help="Runs of every point; at most 20 where every user is simulated.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Directory for figures, CSV files and the report.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with the original files, plain or .gz: loc-gowalla_totalCheckins.txt, "
    "census-income.data and .test. Without it, built-in counts of parts of them are used.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    show_default=True,
    help="Run on this machine or on a Dask cluster.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Address of a running Dask scheduler, such as tcp://10.0.0.5:8786.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Number of processes started here.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Same seed, same numbers, on any engine.",
)
@click.option(
    "--network",
    type=int,
    metavar="USERS",
    help="Also run every cell of Figure 4 and Table II once as whole surveys over HTTP on this "
    "machine, with so many users each, in four levels: 100 surveys in all.",
)
def reproduce(which: str, out: Path, **given: Any) -> None:
    """Run the paper's figures and tables again: pictures, CSV files, and one report to read.

    An interrupted run continues when it is started again with the same arguments. The exit code is
    1 when the runs contradict the theory; the report then shows where.
    """
    from faircount.cli.show import console
    from faircount.reproduction.report.reproduce import reproduce as write_report

    screen = console()
    # A bar moves the cursor, which fills a log file with escape sequences.
    show_progress = _show_bar if screen.is_terminal else _show_lines
    try:
        with show_progress(screen, which) as progress:
            write_report(which=which, out=out, progress=progress, **given)
    except ContradictionError as error:
        raise ContradictedError(str(error)) from error
    screen.print(f"Written to {out}: open {out / 'report.html'}")


class ContradictedError(PlainError):
    """Exit code 1, as for an audit that refutes its claim."""

    exit_code = 1


@contextmanager
def _show_bar(screen: "Console", which: str) -> Iterator["Progress"]:
    """A progress bar with the elapsed and the remaining time."""
    from rich.progress import Progress, TimeElapsedColumn

    *columns, remaining = Progress.get_default_columns()
    with Progress(*columns, TimeElapsedColumn(), remaining, console=screen) as display:
        line = display.add_task(which, total=None)
        yield lambda done, total: display.update(line, completed=done, total=total)


@contextmanager
def _show_lines(screen: "Console", which: str) -> Iterator["Progress"]:
    """Without a terminal: a line now and then, and one at the end of the runs."""
    from time import monotonic

    started = monotonic()
    last_printed = started

    def show(done: float, total: float) -> None:
        nonlocal last_printed
        now = monotonic()
        # Said at once, however short the last pause was: drawing takes a while, too.
        if done >= total:
            screen.print(f"{which}: runs done, drawing")
            return
        if now - last_printed < SECONDS_BETWEEN_LINES:
            return
        last_printed = now
        remaining = (now - started) * (total - done) / done
        screen.print(f"{which}: {done / total:.0%} of the runs, {remaining:.0f} s left")

    yield show

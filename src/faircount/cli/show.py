"""How results look in a terminal."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faircount.cli.terminal import is_ascii, spell_out
from faircount.core.domain import escape_controls
from faircount.core.plain import JSON_VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from faircount.analysis.groups import GroupedHistogram
    from faircount.estimation.result import Result

BAR_WIDTH = 30  # characters of the longest bar
WIDTH = 100  # columns where there is no terminal to ask
SECONDS_BETWEEN_LINES = 30  # of progress where there is no terminal


def console() -> Console:
    """Standard output; without colours and 100 columns wide when it is not a terminal."""
    # Without highlighting: rich would colour every number in a sentence.
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDTH)


def print_json(value: Mapping[str, Any]) -> None:
    """Print exactly one JSON object on standard output."""
    document = {**JSON_VERSION, **value}
    # NaN and infinity are not JSON: better a failure here than a file that nobody can read.
    text = json.dumps(document, indent=2, ensure_ascii=is_ascii(), allow_nan=False, default=str)
    click.echo(text)


def print_result(result: Any, as_json: bool, show: Callable[[Any], None]) -> None:
    """Print a result as one JSON object, or show it to a person."""
    if as_json:
        print_json(result.to_dict())
    else:
        show(result)


def cell(content: object) -> Text:
    """Text of a table: literal brackets, escaped control characters, only showable signs."""
    # Items come from users' files: rich must not read [bold] in them, nor a terminal obey them.
    return Text(spell_out(escape_controls(content)))


def make_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> Table:
    """A plain table; the columns whose numbers are in `left` are aligned to the left."""
    # Without lines and colours, so that a table can be pasted into a message.
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(spell_out(heading), justify="left" if number in left else "right")
    for row in rows:
        table.add_row(*map(cell, row))
    return table


def make_definitions(rows: Iterable[tuple[str, str]]) -> Table:
    """Terms on the left, their descriptions beside them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    # An empty column indents the rows, and long terms are wrapped to 30 characters.
    for width in (0, 30, None):
        table.add_column(max_width=width)
    for term, description in rows:
        table.add_row("", cell(term), cell(description))
    return table


def format_number(value: float | None) -> str:
    """A number with four significant digits, or a dash for None."""
    if value is None:
        return "-"
    # Above 1e15 not every integer is a float, so digits would pretend to be exact.
    if value == int(value) and 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def print_bars(
    out: Console,
    result: "Result | GroupedHistogram",
    *,
    confidence: float = 0.95,
    covers: str = "users",
    truth: "NDArray[np.float64] | None" = None,
) -> None:
    """Print estimate, interval and bar of every item, and the truth where it is known.

    An estimate outside its interval is marked, and the mark is explained below the table.
    """
    from faircount.estimation.presentation import OUTSIDE_MARK, decimals_for, is_outside
    from faircount.estimation.result_texts import words_of

    words = words_of(result)
    bounds = result.interval(confidence, covers=covers)
    marks = is_outside(result, bounds)
    unmarked = " " if marks.any() else ""
    longest = max(float(result.estimates.max()), 1e-9)
    digits = decimals_for(bounds)
    item_heading, estimate_heading, *_, consistent_heading = words.columns
    headings = [item_heading, estimate_heading, words.interval_heading(confidence)]
    sum_note = words.sum_note(result)
    if sum_note is not None:
        headings.append(consistent_heading)
    if truth is not None:
        headings.append("truth")
    headings.append("")
    rows = []
    for number, item in enumerate(result.items):
        estimate = float(result.estimates[number])
        mark = OUTSIDE_MARK if marks[number] else unmarked
        low = float(bounds.low[number])
        interval = f"{words.range(low, float(bounds.high[number]), digits)}{mark}"
        row = [str(item), words.percent(estimate, digits), interval]
        if sum_note is not None:
            row.append(words.percent(float(result.consistent[number]), digits))
        if truth is not None:
            row.append(f"{truth[number]:.{digits}%}")
        row.append("█" * max(0, round(BAR_WIDTH * estimate / longest)))
        rows.append(row)
    table = make_table(headings, rows, left=(0, len(headings) - 1))
    table.columns[-1].style = "cyan"
    out.print(table)
    if marks.any():
        out.print(f"\n{words.outside_note}.", markup=False)
    if sum_note is not None:
        out.print(f"\n{sum_note}", markup=False)


def print_statements(
    out: Console, result: "Result | GroupedHistogram", confidence: float, covers: str = "users"
) -> None:
    """Print what the intervals cover, what the result assumes and what it guarantees."""
    from faircount.estimation.result_texts import words_of

    words = words_of(result)
    bounds = result.interval(confidence, covers=covers)
    out.print(f"\n{words.intervals}: {words.interval_text(confidence, bounds)}.", markup=False)
    if result.validity is not None and result.validity.proven:
        out.print(f"{words.reports}: {words.statement(result)}", markup=False)
    else:
        out.print(words.assumption_text(result), markup=False)
    of_weakest = (
        " of the weakest group (all others have at least as much)"
        if hasattr(result, "groups")
        else ""
    )
    out.print(f"{words.privacy}{of_weakest}: {words.sentence(result.guarantee)}", markup=False)
    out.print(f"{words.running_again}: {words.repetition}.", markup=False)


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Print each note as a paragraph."""
    # Notes may quote items, so they are escaped as well.
    for note in notes:
        out.print(f"\nNote: {escape_controls(note)}", markup=False)


@contextmanager
def spinner(activity: str) -> Iterator[None]:
    """Show on standard error, if it is a terminal, that something is being computed."""
    # On standard error, so that standard output can be piped into a file or another program.
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(activity):
        yield


@contextmanager
def progress_bar(description: str, total: int | None = None) -> Iterator[Any]:
    """Show a bar on standard error until the work is done; if it is no terminal, lines.

    Yields a function to call with the amount done and, if it was not given, the total.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield _make_line_reporter(description, total)
        return
    display = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
    )
    with display:
        task = display.add_task(description, total=total)
        # Whoever computes may learn the total only later, for example after reading a table.
        yield lambda done, of=total: display.update(task, completed=done, total=of)


def _make_line_reporter(
    description: str, total: int | None, clock: Callable[[], float] = monotonic
) -> Callable[..., None]:
    """A function that prints progress as a line on standard error, at most every 30 seconds.

    A log or a pipe shows no bar, but whoever watches it must see that the work goes on.
    """
    started = clock()
    reported = started

    def report(done: int, of: int | None = total) -> None:
        nonlocal reported
        now = clock()
        if now - reported < SECONDS_BETWEEN_LINES:
            return
        reported = now
        line = f"{description}: {done:,}"
        if of:
            line += f" of {of:,}"
        if of and 0 < done < of:
            minutes = (now - started) * (of - done) / done / 60
            line += f", about {minutes:.2g} more minutes"
        click.echo(f"faircount: {line}", err=True)

    return report

"""How results look in a terminal."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faircount.cli.terminal import fitting, is_ascii
from faircount.core.domain import shown
from faircount.core.plain import JSON_VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from faircount.accounting.guarantee import Guarantee
    from faircount.analysis.groups import GroupedHistogram
    from faircount.estimation.result import Result

BAR = 30  # characters of the longest bar


WIDTH = 100  # columns where there is no terminal to ask


def console() -> Console:
    """Standard output, without colours and 100 columns wide when it is not a terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDTH)


def print_json(value: Mapping[str, Any]) -> None:
    """Exactly one JSON object on standard output."""
    click.echo(json.dumps({**JSON_VERSION, **value}, indent=2, ensure_ascii=is_ascii(), allow_nan=False, default=str))


def tell(made: Any, as_json: bool, show: Callable[[Any], None]) -> None:
    """A result as one JSON object, or shown to a person."""
    if as_json:
        print_json(made.to_dict())
    else:
        show(made)


def cell(words: object) -> Text:
    """Text for a table: brackets and all as they are, control characters escaped, in signs that the terminal has."""
    return Text(fitting(shown(words)))


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> Table:
    """A plain table; columns listed in `left` are aligned to the left."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(fitting(head), justify="left" if place in left else "right")
    for row in rows:
        table.add_row(*map(cell, row))
    return table


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Names at the left, words beside them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (0, 30, None):
        table.add_column(max_width=width)
    for name, words in rows:
        table.add_row("", cell(name), cell(words))
    return table


def number(value: float | None) -> str:
    """A number with four significant digits; a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) and 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def bars(
    out: Console,
    result: "Result | GroupedHistogram",
    *,
    level: float = 0.95,
    covers: str = "users",
    truth: "NDArray[np.float64] | None" = None,
) -> None:
    """One row per item: estimate, interval and a bar; an estimate outside its interval is marked and explained."""
    from faircount.estimation.presentation import MARK, OUTSIDE, outside

    bounds = result.interval(level, covers=covers)
    marks = outside(result, bounds)
    unmarked = " " if marks.any() else ""
    heads = ["item", "estimate", f"{level:.0%} interval", *(["truth"] if truth is not None else []), ""]
    longest, rows, digits = max(float(result.estimates.max()), 1e-9), [], _digits(float(bounds.width.max()) / 2)
    for j, item in enumerate(result.items):
        known = [f"{truth[j]:.{digits}%}"] if truth is not None else []
        bar = "█" * max(0, round(BAR * float(result.estimates[j]) / longest))
        span = f"{bounds.low[j]:.{digits}%} to {bounds.high[j]:.{digits}%}{MARK if marks[j] else unmarked}"
        rows.append([str(item), f"{result.estimates[j]:z.{digits}%}", span, *known, bar])
    table = grid(heads, rows, left=(0, len(heads) - 1))
    table.columns[-1].style = "cyan"
    out.print(table)
    if marks.any():
        out.print(f"\n{OUTSIDE}.", markup=False)


def _digits(half: float) -> int:
    """Digits after the point of a percentage that is right to plus or minus `half`."""
    import math

    return 1 if half <= 0 else min(max(1, -math.floor(math.log10(100 * half))), 6)


def promise(guarantee: "Guarantee") -> str:
    """The guarantee in one plain sentence."""
    import math

    from faircount.accounting.guarantee import delta_in_words, rounded_up

    odds = f"{math.exp(guarantee.epsilon):.3g}" if guarantee.epsilon < 100 else f"e^{guarantee.epsilon:.4g}"
    either = "" if guarantee.delta == 0 else f", except with probability {delta_in_words(guarantee.delta, 2)} (delta)"
    needs = "whatever the answers are" if guarantee.condition is None else f"provided that {guarantee.condition}"
    return (
        f"{guarantee.reservation}against {guarantee.adversary}, the odds between two possible answers of a user change "
        "by at most a factor of "
        f"{odds} (epsilon {rounded_up(guarantee.epsilon, 4)}){either}, {needs}{guarantee.supposition}."
    )


def notes(out: Console, words: Iterable[str]) -> None:
    """What a reader must know, each in a paragraph of its own."""
    for each in words:
        out.print(f"\nNote: {shown(each)}", markup=False)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A sign of life on standard error, where that is a terminal, for work that cannot say how far it is."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(what):
        yield


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Any]:
    """A bar on standard error, gone when done; yields a function that is told how much is done, and of how much."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as display:
        line = display.add_task(what, total=total)
        yield lambda done, of=total: display.update(line, completed=done, total=of)

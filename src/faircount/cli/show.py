"""How results look in a terminal."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from faircount.estimation.result import Result

BAR = 30  # characters of the longest bar


def console() -> Console:
    """Standard output, without colours when it is not a terminal."""
    return Console(highlight=False)


def bars(out: Console, result: "Result", *, level: float = 0.95, truth: "NDArray[np.float64] | None" = None) -> None:
    """One row per item: estimate, interval and a bar."""
    bounds = result.interval(level)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("item")
    for head in ("estimate", f"{level:.0%} interval", *(["truth"] if truth is not None else [])):
        table.add_column(head, justify="right")
    table.add_column("")
    longest = max(float(result.estimates.max()), 1e-9)
    for j, item in enumerate(result.items):
        known = [f"{truth[j]:.1%}"] if truth is not None else []
        bar = "█" * max(0, round(BAR * float(result.estimates[j]) / longest))
        span = f"{bounds.low[j]:.1%} to {bounds.high[j]:.1%}"
        table.add_row(str(item), f"{result.estimates[j]:.1%}", span, *known, f"[cyan]{bar}[/cyan]")
    out.print(table)

"""Table I: costs of DPDS and TSS, the paper's formulas beside corrected ones and beside counters of running code.

Formulas and counters are `experiments.costs`; here they are run like every other study, and judged. Two cheaper forms
of DPDS, which the paper does not have, stand beside.
"""

import math

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.entropy import SeededStream
from faircount.experiments.cost_counters import distributed_sampling, seeded_sampling, two_servers, two_stage
from faircount.experiments.costs import CELLS, Cell, Size
from faircount.experiments.studies.judging import RUNS, Verdict, everywhere
from faircount.experiments.studies.study import ACTING, Expected, Line, Study, one
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS
from faircount.sweep.sweep import Point

USERS, ITEMS, REPORTED, P = 60, 10, 4, 0.5
GAMMA = {"tss uniform": 1.0, "tss adaptive": math.exp(2.0)}
FIXED = {"dpds": distributed_sampling, "seeded": seeded_sampling, "servers": two_servers}
"""Protocols whose counts do not depend on chance."""

PROTOCOLS = ("dpds", *GAMMA, "seeded", "servers")
LABELS = {
    "dpds": "DPDS",
    "tss uniform": "TSS, uniform sets",
    "tss adaptive": "TSS, adaptive sets (ε* = 2)",
    "seeded": "DPDS with seeds for shares (ours)",
    "servers": "DPDS between two servers (ours)",
}


def points() -> list[Point]:
    """One small survey of each protocol, the same users and items in all."""
    return [{"protocol": name, "users": USERS, "items": ITEMS, "how": ACTING} for name in PROTOCOLS]


def cells(protocol: str) -> tuple[Cell, ...]:
    """The costs of a protocol, with the paper's formulas and ours."""
    return tuple(CELLS["tss" if protocol in GAMMA else protocol])


def staged(protocol: str) -> TSS:
    """The two-stage mechanism whose costs are counted."""
    return TSS(items=ITEMS, users=USERS, p=P, alpha=REPORTED / ITEMS, gamma=GAMMA[protocol])


def size(protocol: str) -> Size:
    """The numbers that the formulas are evaluated at."""
    return Size.of(staged(protocol if protocol in GAMMA else "tss uniform"))


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Counters of every run; every item has equally many holders. Where chance has no say, one survey is counted."""
    protocol, rows = str(point["protocol"]), []
    for _ in range(runs if protocol in GAMMA else 1):
        answers = rng.permutation(np.arange(USERS) % ITEMS)
        entropy = SeededStream(int(rng.integers(2**63)))
        if protocol in GAMMA:
            rows.append(two_stage(staged(protocol), answers, entropy, rng))
        else:
            rows = [FIXED[protocol](DPDS(items=ITEMS, users=USERS, p=P), answers, entropy)] * runs
    names = [cell.counter for cell in cells(protocol)]
    return {f"{name}|count": np.array([row[name] for row in rows]) for name in names}


def theory(point: Point) -> dict[str, Expected]:
    """The corrected formulas, with the expected pairs of reporters of an item for the sets at hand."""
    protocol = str(point["protocol"])
    here = size(protocol)
    return {f"{cell.counter}|count": Expected(cell.ours(here)) for cell in cells(protocol)}


# The paper's formulas against the counters.

PLACE = "Table I"
CLOSE = 0.05
"""A formula agrees within 5%: it may leave out terms of order 1/n, which are 2% to 3% here."""


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every formula of the table, and the reduction that the text claims."""
    judged = [
        _formula(lines, protocol, cell) for protocol in PROTOCOLS for cell in cells(protocol) if cell.paper is not None
    ]
    return judged + [_reduction(lines, protocol) for protocol in GAMMA]


def _formula(lines: list[Line], protocol: str, cell: Cell) -> Verdict:
    line = one(lines, protocol=protocol, method=cell.counter)
    value = cell.paper(size(protocol)) if cell.paper else math.nan
    fits = abs(value - line.mean) <= CLOSE * line.mean
    why = (
        f"within {CLOSE:.0%} of what was counted"
        if fits
        else f"it is {cell.corrected} = {cell.ours(size(protocol)):.4g}"
    )
    claim = f"{LABELS[protocol]}, {cell.counter}: {cell.printed}"
    return Verdict("table1", PLACE, claim, _count(value), f"counted {_count(line.mean)}", everywhere([fits]), RUNS, why)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _reduction(lines: list[Line], protocol: str) -> Verdict:
    plain, staged = (one(lines, protocol=each, method="user: field elements sent").mean for each in ("dpds", protocol))
    here = size(protocol)
    claimed, counted = 1 / (here.p_chi * here.alpha), plain / staged
    claim = f"{LABELS[protocol]}: the average user's costs are reduced by a factor of about 1/(p_chi alpha)"
    why = f"by 1/alpha^2 = {1 / here.alpha**2:.3g} up to terms of order 1/n, whatever the sets are drawn with"
    fits = [abs(claimed / counted - 1) < 4 * CLOSE]
    return Verdict("table1", "III-A", claim, f"{claimed:.3g}", f"counted {counted:.3g}", everywhere(fits), RUNS, why)


STUDY = Study(
    name="table1",
    title="Costs of DPDS and TSS",
    paper="Table I: field additions, draws and elements sent, for DPDS and TSS, per server and per user.",
    ours=f"Measured on running code with a ledger: {USERS} users, {ITEMS} items, {REPORTED} of them reported in TSS. "
    "The paper counts 2nN + N elements as sent by a user of DPDS; it is (n-1)N to other users and N to the server, "
    "and as many as the former are received. In the user's column of TSS it has p_chi n helpers per item; the "
    "average is alpha n. The corrected formulas in alpha are exact for uniform sets and within 0.1% here for "
    "adaptive ones.",
    points=points,
    task=task,
    theory=theory,
    items=lambda _: 1,
    seconds=lambda point: 0.1 if point["protocol"] in GAMMA else 0.02,
)

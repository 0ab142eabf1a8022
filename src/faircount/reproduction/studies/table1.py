"""Table I: costs of DPDS and TSS, the paper's formulas beside corrected ones and counts.

Formulas and counters are in `reproduction.costs`. Here the counters run as a study like every
other, and the formulas are judged. Two cheaper forms of DPDS, which the paper does not have, are
counted as well.
"""

import math
from collections.abc import Mapping

import numpy as np

from faircount.core.arrays import Floats
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.reproduction.costs.counters import FIXED, count_added_by_tss_prime, count_tss
from faircount.reproduction.costs.formulas import CELLS, Cell, Size
from faircount.reproduction.costs.table import P, default_phi
from faircount.reproduction.studies.judging import RUNS, Verdict, judge_all
from faircount.reproduction.studies.study import (
    USER_LEVEL,
    Expected,
    Line,
    Study,
    draw_stream,
    find_line,
)
from faircount.reproduction.sweep.sweep import Point

# Small enough to lay out all shares, large enough that terms of order 1/n are below 3%.
USERS = 60
ITEMS = 10
REPORTED = 4
ALPHA = REPORTED / ITEMS
PHI = default_phi(USERS, ALPHA)

# epsilon* = 2 makes adaptive sets clearly different from uniform ones.
GAMMA = {"tss uniform": 1.0, "tss adaptive": math.exp(2.0)}
PRIME = "tss prime"
PROTOCOLS = ("dpds", *GAMMA, PRIME, "seeded", "servers")
LABELS = {
    "dpds": "DPDS",
    "tss uniform": "TSS, uniform sets",
    "tss adaptive": "TSS, adaptive sets (ε* = 2)",
    PRIME: f"what TSS' adds to TSS (phi = {PHI})",
    "seeded": "DPDS with seeds for shares (ours)",
    "servers": "DPDS between two servers (ours)",
}


def points() -> list[Point]:
    """One small survey of every protocol, with the same users and items in all."""
    common: Point = {"users": USERS, "items": ITEMS, "how": USER_LEVEL}
    return [{"protocol": name, **common} for name in PROTOCOLS]


def cells(protocol: str) -> tuple[Cell, ...]:
    """The costs of a protocol, with the paper's formulas and ours."""
    if protocol in GAMMA:
        return CELLS["tss"]
    return CELLS[protocol.replace(" ", "_")]


def make_two_stage(protocol: str) -> TSS:
    """The two-stage mechanism whose costs are counted."""
    if protocol == PRIME:
        return TSSPrime(items=ITEMS, users=USERS, p=P, alpha=ALPHA, phi=PHI)
    gamma = GAMMA.get(protocol, 1.0)
    return TSS(items=ITEMS, users=USERS, p=P, alpha=ALPHA, gamma=gamma)


def size_of(protocol: str) -> Size:
    """The numbers at which the formulas are evaluated."""
    return Size.of(make_two_stage(protocol))


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Counts of every run; equally many users choose every item."""
    protocol = str(point["protocol"])
    if protocol in FIXED:
        # Not random: one survey is counted for all runs.
        surveys = [_count_survey(protocol, rng)] * runs
    else:
        surveys = [_count_survey(protocol, rng) for _ in range(runs)]
    counts = {}
    for cell in cells(protocol):
        values = [survey.get(cell.counter, 0.0) for survey in surveys]
        counts[f"{cell.counter}|count"] = np.array(values)
    return counts


def _count_survey(protocol: str, rng: np.random.Generator) -> dict[str, float]:
    answers = rng.permutation(np.arange(USERS) % ITEMS)
    entropy = draw_stream(rng)
    if protocol in FIXED:
        return FIXED[protocol](DPDS(items=ITEMS, users=USERS, p=P), answers, entropy)
    count = count_added_by_tss_prime if protocol == PRIME else count_tss
    return count(make_two_stage(protocol), answers, entropy, rng)


def theory(point: Point) -> dict[str, Expected]:
    """The corrected formulas at the size of the survey."""
    protocol = str(point["protocol"])
    size = size_of(protocol)
    expected = {}
    for cell in cells(protocol):
        # Of a random count theory knows the average alone.
        deviation = None if cell.is_random else 0.0
        expected[f"{cell.counter}|count"] = Expected(cell.ours(size), deviation)
    return expected


# The paper's formulas against the counts.

# A formula agrees within 5%: it may leave out terms of order 1/n, which are 2% to 3% here.
TOLERANCE = 0.05

# The reduction is a quotient of two costs, and stated with "about": four times the tolerance.
REDUCTION_TOLERANCE = 4 * TOLERANCE

# Where the paper prints costs, and on which protocols each formula is counted.
PLACES = (("Table I", ("dpds",)), ("Table I", tuple(GAMMA)), ("III-A", (PRIME,)))


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge every formula of the table and of the text on TSS', and the claimed reduction."""
    verdicts = []
    for place, protocols in PLACES:
        printed = [cell for cell in cells(protocols[0]) if cell.paper is not None]
        verdicts += [_judge_formula(lines, place, protocols, cell) for cell in printed]
    return [*verdicts, _judge_reduction(lines)]


def _judge_formula(
    lines: list[Line], place: str, protocols: tuple[str, ...], cell: Cell
) -> Verdict:
    """Judge one formula on every protocol that it is printed for: it must hold on all."""
    counted = {}
    printed = {}
    fits = []
    for name in protocols:
        counted[name] = find_line(lines, protocol=name, method=cell.counter).mean
        printed[name] = cell.paper(size_of(name)) if cell.paper else math.nan
        fits.append(abs(printed[name] - counted[name]) <= TOLERANCE * counted[name])
    label = LABELS[protocols[0]] if len(protocols) == 1 else "TSS"
    return Verdict(
        "table1",
        place,
        f"{label}, {cell.counter}: {cell.printed}",
        _format_values(printed),
        f"counted {_format_values(counted)}",
        judge_all(fits),
        RUNS,
        f"within {TOLERANCE:.0%} of what was counted" if all(fits) else f"it is {cell.corrected}",
    )


def _format_values(values: Mapping[str, float]) -> str:
    """One number, or one for each kind of sets where they differ."""
    shown = {name: _format_count(value) for name, value in values.items()}
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{value} ({name.removeprefix('tss ')})" for name, value in shown.items())


def _format_count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _judge_reduction(lines: list[Line]) -> Verdict:
    counter = "user: field elements sent"
    dpds = find_line(lines, protocol="dpds", method=counter).mean
    claimed = {}
    counted = {}
    fits = []
    for name in GAMMA:
        size = size_of(name)
        claimed[name] = 1 / (size.p_chi * size.alpha)
        counted[name] = dpds / find_line(lines, protocol=name, method=counter).mean
        fits.append(abs(claimed[name] / counted[name] - 1) < REDUCTION_TOLERANCE)
    return Verdict(
        "table1",
        "III-A",
        "TSS: the average user's costs are reduced by a factor of about 1/(p_chi alpha)",
        _format_values(claimed),
        f"counted {_format_values(counted)}",
        judge_all(fits),
        RUNS,
        f"by 1/alpha^2 = {1 / ALPHA**2:.3g} up to terms of order 1/n, whatever the sets are drawn "
        "with",
    )


STUDY = Study(
    name="table1",
    title="Costs of DPDS and TSS",
    paper="Table I: field additions, draws and elements sent, for DPDS and TSS, per server and per "
    "user.",
    ours=f"Counted in running code: {USERS} users, {ITEMS} items, {REPORTED} of them reported in "
    "TSS. The paper counts 2nN + N elements as sent by a user of DPDS. A user sends (n-1)N to "
    "other users and N to the server, and receives (n-1)N. The paper has p_chi n helpers per item "
    "in the user's column of TSS; the average is alpha n. The corrected formulas in alpha are "
    "exact for uniform sets and here within 0.1% for adaptive ones. What the text says about TSS' "
    f"is summed over the items, with d_j = max(0, phi + 1 - m_j) and phi = {PHI}. A helper of TSS' "
    "adds up no more shares than one of TSS; there are only more helpers.",
    points=points,
    task=task,
    theory=theory,
    items=lambda _: 1,
    seconds=lambda point: 0.02 if point["protocol"] in FIXED else 0.2,
)

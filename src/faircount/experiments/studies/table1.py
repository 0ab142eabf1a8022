"""Table I: costs of DPDS and TSS, the paper's formulas beside corrected ones and beside counters of running code.

Formulas and counters are `experiments.costs`; here they are run like every other study, and judged. Two cheaper forms
of DPDS, which the paper does not have, stand beside.
"""

import math
from collections.abc import Mapping

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.entropy import SeededStream
from faircount.experiments.cost_counters import FIXED, added_by_more_helpers, two_stage
from faircount.experiments.costs import CELLS, Cell, Size, usual_phi
from faircount.experiments.studies.judging import RUNS, Verdict, everywhere
from faircount.experiments.studies.study import ACTING, Expected, Line, Study, one
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.sweep.sweep import Point

USERS, ITEMS, REPORTED, P = 60, 10, 4, 0.5
PHI = usual_phi(USERS, REPORTED / ITEMS)
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
    """One small survey of each protocol, the same users and items in all."""
    return [{"protocol": name, "users": USERS, "items": ITEMS, "how": ACTING} for name in PROTOCOLS]


def cells(protocol: str) -> tuple[Cell, ...]:
    """The costs of a protocol, with the paper's formulas and ours."""
    return tuple(CELLS["tss" if protocol in GAMMA else protocol.replace(" ", "_")])


def staged(protocol: str) -> TSS:
    """The two-stage mechanism whose costs are counted."""
    if protocol == PRIME:
        return TSSPrime(items=ITEMS, users=USERS, p=P, alpha=REPORTED / ITEMS, phi=PHI)
    return TSS(items=ITEMS, users=USERS, p=P, alpha=REPORTED / ITEMS, gamma=GAMMA.get(protocol, 1.0))


def size(protocol: str) -> Size:
    """The numbers that the formulas are evaluated at."""
    return Size.of(staged(protocol))


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Counters of every run; every item has equally many holders. Where chance has no say, one survey is counted."""
    protocol = str(point["protocol"])
    surveys = [_survey(protocol, rng) for _ in range(1 if protocol in FIXED else runs)]
    rows = surveys * runs if protocol in FIXED else surveys
    names = [cell.counter for cell in cells(protocol)]
    return {f"{name}|count": np.array([row.get(name, 0.0) for row in rows]) for name in names}


def _survey(protocol: str, rng: np.random.Generator) -> dict[str, float]:
    answers, entropy = rng.permutation(np.arange(USERS) % ITEMS), SeededStream(int(rng.integers(2**63)))
    if protocol in FIXED:
        return FIXED[protocol](DPDS(items=ITEMS, users=USERS, p=P), answers, entropy)
    count = added_by_more_helpers if protocol == PRIME else two_stage
    return count(staged(protocol), answers, entropy, rng)


def theory(point: Point) -> dict[str, Expected]:
    """The corrected formulas, with the expected pairs of reporters of an item for the sets at hand."""
    protocol = str(point["protocol"])
    here = size(protocol)
    return {
        f"{cell.counter}|count": Expected(cell.ours(here), None if cell.by_chance else 0.0) for cell in cells(protocol)
    }


# The paper's formulas against the counters.

CLOSE = 0.05
"""A formula agrees within 5%: it may leave out terms of order 1/n, which are 2% to 3% here."""

PLACES = {"dpds": ("Table I", ("dpds",)), "tss": ("Table I", tuple(GAMMA)), PRIME: ("III-A", (PRIME,))}
"""Where the paper prints costs, and the protocols that each formula is counted on."""


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every formula of the table and of the text on TSS', and the reduction that the text claims."""
    judged = [
        _formula(lines, place, protocols, cell)
        for place, protocols in PLACES.values()
        for cell in cells(protocols[0])
        if cell.paper is not None
    ]
    return [*judged, _reduction(lines)]


def _formula(lines: list[Line], place: str, protocols: tuple[str, ...], cell: Cell) -> Verdict:
    """One formula, counted on every protocol it is printed for: it must hold on all."""
    counted = {name: one(lines, protocol=name, method=cell.counter).mean for name in protocols}
    printed = {name: cell.paper(size(name)) if cell.paper else math.nan for name in protocols}
    fits = [abs(printed[name] - counted[name]) <= CLOSE * counted[name] for name in protocols]
    why = f"within {CLOSE:.0%} of what was counted" if all(fits) else f"it is {cell.corrected}"
    name = LABELS[protocols[0]] if len(protocols) == 1 else "TSS"
    claim, values = f"{name}, {cell.counter}: {cell.printed}", _told(protocols, printed)
    return Verdict("table1", place, claim, values, f"counted {_told(protocols, counted)}", everywhere(fits), RUNS, why)


def _told(protocols: tuple[str, ...], values: Mapping[str, float]) -> str:
    """One number, or one for each kind of sets where they differ."""
    shown = {name: _count(values[name]) for name in protocols}
    if len(set(shown.values())) == 1:
        return shown[protocols[0]]
    return ", ".join(f"{value} ({name.removeprefix('tss ')})" for name, value in shown.items())


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _reduction(lines: list[Line]) -> Verdict:
    sent = {name: one(lines, protocol=name, method="user: field elements sent").mean for name in ("dpds", *GAMMA)}
    sizes = {name: size(name) for name in GAMMA}
    claimed = {name: 1 / (here.p_chi * here.alpha) for name, here in sizes.items()}
    counted = {name: sent["dpds"] / sent[name] for name in GAMMA}
    claim = "TSS: the average user's costs are reduced by a factor of about 1/(p_chi alpha)"
    alpha = REPORTED / ITEMS
    why = f"by 1/alpha^2 = {1 / alpha**2:.3g} up to terms of order 1/n, whatever the sets are drawn with"
    fits = [abs(claimed[name] / counted[name] - 1) < 4 * CLOSE for name in GAMMA]
    names = tuple(GAMMA)
    ours = f"counted {_told(names, counted)}"
    return Verdict("table1", "III-A", claim, _told(names, claimed), ours, everywhere(fits), RUNS, why)


STUDY = Study(
    name="table1",
    title="Costs of DPDS and TSS",
    paper="Table I: field additions, draws and elements sent, for DPDS and TSS, per server and per user.",
    ours=f"Measured on running code with a ledger: {USERS} users, {ITEMS} items, {REPORTED} of them reported in TSS. "
    "The paper counts 2nN + N elements as sent by a user of DPDS; it is (n-1)N to other users and N to the server, "
    "and as many as the former are received. In the user's column of TSS it has p_chi n helpers per item; the "
    "average is alpha n. The corrected formulas in alpha are exact for uniform sets and within 0.1% here for "
    "adaptive ones. What the text says of TSS' is summed over the items, with d_j = max(0, phi + 1 - m_j) and phi = "
    f"{PHI}; a helper of TSS' adds up no more shares than one of TSS, there are only more helpers.",
    points=points,
    task=task,
    theory=theory,
    items=lambda _: 1,
    seconds=lambda point: 0.02 if point["protocol"] in FIXED else 0.2,
)

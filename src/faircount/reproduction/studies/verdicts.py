"""Every number and claim that the paper prints in Section IV, judged, and what it leaves open."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from faircount.reproduction.data.populations import get_population
from faircount.reproduction.studies import fig1, fig2, fig3, fig4, fig5, table1, table2
from faircount.reproduction.studies.judging import (
    AGREES,
    ARITHMETIC,
    DIFFERS,
    UNDECIDED,
    Verdict,
)
from faircount.reproduction.studies.study import DATA, FLOOR_SHARE, USERS, Line, sampled_counts

# Studies of the paper itself: second editions judge nothing that it says.
MODULES = (fig1, fig2, fig3, fig4, fig5, table1, table2)
JUDGES = {module.STUDY.name: module.judge for module in MODULES}


def judge_studies(
    results: Mapping[str, list[Line]], contradicted: Collection[str] = ()
) -> list[Verdict]:
    """The verdicts on the studies that were run.

    contradicted: studies whose runs contradict their theory, so that neither can be believed
    """
    verdicts: list[Verdict] = []
    for name, lines in results.items():
        if name not in JUDGES:
            continue
        own = JUDGES[name](lines)
        if name in contradicted:
            own = list(map(_withdraw, own))
        verdicts += own
    return verdicts


def _withdraw(verdict: Verdict) -> Verdict:
    """The verdict without a conclusion, unless the paper's own numbers suffice for it."""
    if verdict.decided_by == ARITHMETIC:
        return verdict
    why = (
        "nothing is concluded, because the runs of this study contradict its theory. "
        f"Otherwise: {verdict.why}"
    )
    return replace(verdict, verdict=UNDECIDED, why=why)


def count_verdicts(verdicts: list[Verdict]) -> dict[str, int]:
    """How many claims differ, are undecided, and agree."""
    found = Counter(verdict.verdict for verdict in verdicts)
    return {name: found[name] for name in (DIFFERS, UNDECIDED, AGREES)}


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the paper's set-up leaves open, and what is used here; it cannot be judged."""

    place: str
    paper: str
    here: str


def list_remarks() -> list[Remark]:
    """What Section IV says about data and groups in too little detail to be judged."""
    return [_remark_on_cells(), _remark_on_wages(), _remark_on_floor(), _remark_on_groups()]


def _remark_on_cells() -> Remark:
    readings = []
    for name in ("gowalla-12", "gowalla-25", "gowalla"):
        population = get_population(name)
        rarest = population.frequencies.min()
        readings.append(f"{len(population.counts)} items, rarest {rarest:.2%}")
    here = (
        "Cells of 5 by 5 degrees (12 cells), or a grid of 5 by 5 (25 cells)? Used here: the cells "
        "of 5 by 5 degrees that at least 1% of the users visit most. The two readings and the "
        f"choice have {'; '.join(readings)}"
    )
    paper = "Gowalla: the range [30, 45] x [-100, -80] is partitioned into cells of 5 x 5"
    return Remark("IV-A1", paper, here)


def _remark_on_wages() -> Remark:
    full = get_population("census-full")
    merged = get_population("census")
    here = (
        f"The attribute is not named. Wage per hour has {len(full.counts)} intervals, the first "
        f"with {full.frequencies[0]:.1%} of the persons. Used here: wages above 0 with merged "
        f"tails, {len(merged.counts)} items"
    )
    paper = "Census-Income: the income attribute is grouped into disjoint intervals of length 100"
    return Remark("IV-A1", paper, here)


def _remark_on_floor() -> Remark:
    # The literal readings of the cells are too uneven for a floor.
    shares = {"gowalla-12": 0.0, "gowalla-25": 0.0, **dict.fromkeys(DATA, FLOOR_SHARE)}
    smallest = []
    for name, share in shares.items():
        smallest.append(f"{name} {min(sampled_counts(name, USERS, share))}")
    here = (
        "beta is not printed, and with all cells of Gowalla no useful beta can be met. The figures "
        f"use samples with beta = {FLOOR_SHARE:.0%}. Smallest counts among {USERS:,} users: "
        f"{', '.join(smallest)}"
    )
    return Remark("IV-B1", "Each item occurs at least 1000 beta times in the sample", here)


def _remark_on_groups() -> Remark:
    paper = (
        "Settings s2 and s3 simulate the case where the groups' sizes are not the same; CPA uses "
        "epsilon = 0.1"
    )
    here = (
        "Two groups of 250 users with one epsilon have the weights and the error of one group of "
        "500: an identity. 0.1 is the smallest epsilon of every setting"
    )
    return Remark("IV-B4", paper, here)

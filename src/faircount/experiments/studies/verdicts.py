"""Every number and claim that the paper prints in Section IV, judged: agrees, differs, or cannot be told."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from faircount.experiments.data.populations import population
from faircount.experiments.studies import fig1, fig2, fig3, fig4, fig5, table1, table2
from faircount.experiments.studies.judging import AGREES, ARITHMETIC, CANNOT, DIFFERS, Verdict
from faircount.experiments.studies.study import DATA, FLOOR_SHARE, USERS, Line, holders

JUDGES = {module.STUDY.name: module.verdicts for module in (fig1, fig2, fig3, fig4, fig5, table1, table2)}


def verdicts(results: Mapping[str, list[Line]], contradicted: Collection[str] = ()) -> list[Verdict]:
    """The verdicts on the studies that were run; those whose runs contradict their theory conclude nothing from it."""
    return [
        _void(verdict) if name in contradicted else verdict
        for name, lines in results.items()
        if name in JUDGES
        for verdict in JUDGES[name](lines)
    ]


def _void(verdict: Verdict) -> Verdict:
    if verdict.decided_by == ARITHMETIC:
        return verdict
    why = f"nothing is concluded: the runs of this study contradict its theory. Otherwise: {verdict.why}"
    return replace(verdict, verdict=CANNOT, why=why)


def tally(judged: list[Verdict]) -> dict[str, int]:
    """How many of each verdict."""
    found = Counter(verdict.verdict for verdict in judged)
    return {name: found[name] for name in (DIFFERS, CANNOT, AGREES)}


@dataclass(frozen=True, slots=True)
class Remark:
    """What the paper leaves open about its set-up, and what is used here: nothing that could agree or differ."""

    place: str
    paper: str
    here: str


def remarks() -> list[Remark]:
    """What Section IV says about data and groups without saying enough to be judged."""
    return [_cells(), _intervals(), _floor(), _group_sizes()]


def _cells() -> Remark:
    shown = "; ".join(
        f"{len(people.counts)} items, rarest {people.frequencies.min():.2%}"
        for people in map(population, ("gowalla-12", "gowalla-25", "gowalla"))
    )
    paper = "Gowalla: the range [30, 45] x [-100, -80] is partitioned into cells of 5 x 5"
    here = (
        "5 by 5 degrees (12 cells), or a grid of 5 by 5 (25)? Used: the cells of 5 by 5 degrees in which at least 1% "
        f"of the users are most often. Their items: {shown}"
    )
    return Remark("IV-A1", paper, here)


def _intervals() -> Remark:
    full, used = population("census-full"), population("census")
    paper = "Census-Income: the income attribute is grouped into disjoint intervals of length 100"
    here = (
        f"the attribute is not named. Wage per hour has {len(full.counts)} intervals, the first with "
        f"{full.frequencies[0]:.1%} of the persons; used: wages above 0, tails merged, {len(used.counts)} items"
    )
    return Remark("IV-A1", paper, here)


def _floor() -> Remark:
    shares = {"gowalla-12": 0.0, "gowalla-25": 0.0, **dict.fromkeys(DATA, FLOOR_SHARE)}
    shown = ", ".join(f"{name} {min(holders(name, USERS, share))}" for name, share in shares.items())
    here = (
        "beta is not printed; with all cells of Gowalla no useful beta can be met. The figures draw samples with "
        f"beta = {FLOOR_SHARE:.0%}. Smallest counts of {USERS:,} users: {shown}"
    )
    return Remark("IV-B1", "Each item occurs at least 1000 beta times in the sample", here)


def _group_sizes() -> Remark:
    paper = "Settings s2 and s3 simulate the case where the groups' sizes are not the same; CPA uses epsilon = 0.1"
    here = (
        "two groups of 250 with one epsilon have the weights and the error of one group of 500: an identity. 0.1 is "
        "the smallest epsilon of every setting"
    )
    return Remark("IV-B4", paper, here)

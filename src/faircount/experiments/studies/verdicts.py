"""Every number and claim that the paper prints in Section IV, judged: agrees, differs, or cannot be told."""

from collections import Counter
from collections.abc import Mapping

from faircount.experiments.data.populations import population
from faircount.experiments.studies import fig1, fig2, fig3, fig4, fig5, table1, table2
from faircount.experiments.studies.judging import AGREES, CANNOT, DIFFERS, Verdict, chance, readings, scaled
from faircount.experiments.studies.study import COUNTS, USERS, Line, held
from faircount.experiments.studies.weighted_groups import NOISE
from faircount.sweep.sweep import Point

JUDGES = {each.STUDY.name: each.verdicts for each in (fig1, fig2, fig3, fig4, fig5, table1, table2)}


def verdicts(results: Mapping[str, list[Line]]) -> list[Verdict]:
    """The verdicts on the studies that were run; those on the set-up when all were."""
    judged = [each for name, lines in results.items() if name in JUDGES for each in JUDGES[name](lines)]
    return [*setup(), *judged] if set(JUDGES) <= set(results) else judged


def tally(judged: list[Verdict]) -> dict[str, int]:
    """How many of each verdict."""
    found = Counter(each.verdict for each in judged)
    return {name: found[name] for name in (AGREES, DIFFERS, CANNOT)}


def setup() -> list[Verdict]:
    """What Section IV-A says about data and metric."""
    return [_metric(), _cells(), _intervals(), _floor()]


def _metric() -> Verdict:
    """Which normalization the printed errors of Table II's uniform rows have."""
    fits = {"summed over the items": 0, "divided by N": 0}
    cells = [cell for cell in table2.ERRORS if cell[1] == "uniform"]
    for setting, data, method in cells:
        point: Point = {"data": data, "users": USERS, "setting": setting, "how": COUNTS}
        expected = table2.theory(point)[f"{method}|{NOISE}"]
        printed = table2.ERRORS[setting, data, method]
        for name, factor in zip(fits, (1.0, 1 / len(held(data))), strict=True):
            fits[name] += chance(printed, scaled(expected, factor)) > 0.01
    told = ", ".join(f"{name} {count}" for name, count in fits.items())
    claim = "MSE = 1/N sum (psi_i - psihat_i)^2 is what is reported"
    why = "the printed errors are sums over the items, of the privacy noise alone; so are ours, and CSV files have both"
    verdict = AGREES if fits["divided by N"] >= fits["summed over the items"] else DIFFERS
    ours = f"of {len(cells)} printed errors of Table II on uniform data theory fits {told}"
    return Verdict("set-up", "IV-A2", claim, "1/N", ours, verdict, why)


def _cells() -> Verdict:
    shares = {name: population(name) for name in ("gowalla-12", "gowalla-25", "gowalla")}
    told = "; ".join(f"{len(each.counts)} items, rarest {each.frequencies.min():.2%}" for each in shares.values())
    claim = "Gowalla: the range [30, 45] x [-100, -80] is partitioned into cells of 5 x 5"
    why = (
        "5 by 5 degrees (12 cells) or a grid of 5 by 5 (25)? Neither meets a floor of 1%; the figures use the 9 "
        "cells that do"
    )
    distinct = {name: len(each.counts) == 12 for name, each in shares.items()}
    return Verdict("set-up", "IV-A1", claim, "5 x 5", told, readings(distinct), why)


def _intervals() -> Verdict:
    full, used = population("census-full"), population("census")
    zero = full.frequencies[0]
    claim = "Census-Income: the income attribute grouped into disjoint intervals of length 100"
    ours = (
        f"{len(full.counts)} intervals of wage per hour, the first with {zero:.1%} of the persons; used: "
        f"{len(used.counts)} items"
    )
    why = "the attribute is not named; with wage per hour nearly everybody is in one interval and most others are empty"
    return Verdict("set-up", "IV-A1", claim, "length 100", ours, CANNOT if zero > 0.5 else AGREES, why)


def _floor() -> Verdict:
    names = {"gowalla-12": 0.0, "gowalla-25": 0.0, "gowalla": 0.01, "census": 0.01, "uniform": 0.01}
    smallest = {name: min(held(name, USERS, share)) for name, share in names.items()}
    told = ", ".join(f"{name} {count}" for name, count in smallest.items())
    claim = "Each item occurs at least 1000 beta times in the sample"
    why = (
        "beta is not printed; with all cells of Gowalla no useful beta can be met. The figures draw samples with "
        "beta = 1%"
    )
    return Verdict("set-up", "IV-B1", claim, "beta", f"smallest counts: {told}", CANNOT, why)

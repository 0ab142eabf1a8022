"""`reproduce`: run the paper's experiments and write pictures, CSV files and one HTML report."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import faircount
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.experiments.report import page, sentences, tables
from faircount.experiments.report.exact_figures import CURVE_PICTURES
from faircount.experiments.report.figure_style import style
from faircount.experiments.report.figures import PICTURES
from faircount.experiments.studies import exact_curves, weighted_groups
from faircount.experiments.studies.exact_curves import Record
from faircount.experiments.studies.judging import PAPER_RUNS, Verdict
from faircount.experiments.studies.registry import STUDIES, Plan, measure
from faircount.experiments.studies.study import DATA_SEED, LEVEL, USERS, Line
from faircount.experiments.studies.verdicts import tally, verdicts
from faircount.sweep.sweep import Progress

NAMES = ("fig1", "fig2", "fig3", "fig4", "fig5", "table1", "table2")
LABELS = {
    name: name.replace("fig", "Figure ").replace("table1", "Table I").replace("table2", "Table II") for name in NAMES
}
MEASURED_EDITIONS = {"fig1": "fig1_exact"}
CURVES = {
    "fig1": ("floor_unmet",),
    "fig2": ("fig2_exact", "floor_effect"),
    "fig3": ("fig3_exact",),
    "fig4": ("fig4_exact",),
}
"""The second edition of each figure that speaks of privacy. Figure 5's mechanisms are exact as they are."""

CURVE_TITLES = {
    "floor_unmet": "Exact privacy of the paper's p, where the floor is met and where it is not",
    "fig2_exact": "Users needed for +-2 percentage points at equal exact privacy",
    "floor_effect": "What a floor allows, and what it buys",
    "fig3_exact": "Two-stage sampling at equal exact privacy against S1",
    "fig4_exact": "Weighted groups at their own exact privacy",
}


@dataclass(frozen=True)
class Outcome:
    """Everything a report is made of."""

    chosen: tuple[str, ...]
    plan: Plan
    results: dict[str, list[Line]]
    curves: dict[str, list[Record]]
    judged: list[Verdict]


def reproduce(
    which: str = "all",
    runs: int = PAPER_RUNS,
    out: Path = Path("out"),
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Make one figure or table of the paper again, or all; returns the report, DIR/report.html.

    Writes CSV, PNG and SVG files beside it. Until it is finished DIR also has a file with the blocks that are done,
    from which the same call goes on after an interruption.
    """
    if which != "all" and which not in NAMES:
        raise ParameterError(f"there is no figure or table {which!r}: choose all or one of {', '.join(NAMES)}")
    chosen = NAMES if which == "all" else (which,)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"unfinished-{which}-{integer('runs', runs, least=2)}-{seed}.sweep"
    plan = Plan(runs, seed, engine, scheduler, workers, progress, unfinished)
    outcome = _outcome(chosen, plan)
    _write_data(outcome, folder)
    _draw(outcome, folder)
    report = folder / "report.html"
    report.write_text(page.page(TITLE, _parts(outcome, folder)), encoding="utf-8")
    unfinished.unlink()
    return report


def _outcome(chosen: tuple[str, ...], plan: Plan) -> Outcome:
    names = [each for name in chosen for each in (name, MEASURED_EDITIONS.get(name)) if each]
    results = measure([STUDIES[name] for name in names], plan)
    curves = {name: exact_curves.CURVES[name]() for each in chosen for name in CURVES.get(each, ())}
    return Outcome(chosen, plan, results, curves, verdicts(results))


def _write_data(outcome: Outcome, folder: Path) -> None:
    special = {"table1": tables.costs, "table2": tables.weights_and_errors}
    for name, lines in outcome.results.items():
        records = special[name](lines) if name in special else [line.record() for line in lines]
        tables.write_csv(folder / f"{name}.csv", records)
    for name, curve in outcome.curves.items():
        tables.write_csv(folder / f"{name}.csv", curve)
    tables.write_csv(folder / "verdicts.csv", [each.record() for each in outcome.judged])
    tables.write_csv(folder / "agreement.csv", tables.agreement(outcome.results))


def _draw(outcome: Outcome, folder: Path) -> None:
    with style():
        for name, lines in outcome.results.items():
            if name in PICTURES:
                PICTURES[name](lines).save(folder / name)
        for name, records in outcome.curves.items():
            CURVE_PICTURES[name](records).save(folder / name)


# The page.

TITLE = "Fair and Differentially Private Distributed Frequency Estimation: the experiments, made again"


def _parts(outcome: Outcome, folder: Path) -> Iterator[str]:
    yield from _summary(outcome)
    yield from _setup(outcome)
    for name in outcome.chosen:
        yield from _section(outcome, name, folder)
    yield from _agreement(outcome)


def _summary(outcome: Outcome) -> Iterator[str]:
    yield page.paragraph(
        "Section IV of the paper by Yang, Tjuawinata, Lam, Zhu and Zhao, run again with the faircount library: "
        "every figure and table, with the theory beside each measured number, and a verdict on every number and "
        "claim that the text prints. After each figure that speaks of privacy comes a second edition in which all "
        "mechanisms have the same exact privacy."
    )
    yield page.links(
        {"setup": "What was run", **{name: LABELS[name] for name in outcome.chosen}, "agreement": "Real shares"}
    )
    yield page.paragraph("of the paper's numbers and claims:", "Verdicts")
    yield page.tally_line(tally(outcome.judged))
    yield page.paragraph(
        "A printed number agrees when an average of 20 runs would be at least that far from theory in more than one "
        "of 100 cases. A claim agrees when the theory bears it out at every point that it speaks of. Where the "
        "paper leaves open what was run, and its possible readings disagree, it cannot be told. No verdict is "
        "typed: all are computed from theory and from the runs."
    )


def _setup(outcome: Outcome) -> Iterator[str]:
    plan = outcome.plan
    yield page.heading("What was run", "setup")
    settings: list[Record] = [
        {"what": "runs of every point", "value": f"{plan.runs:,} (the paper: {PAPER_RUNS})"},
        {
            "what": "users",
            "value": f"{USERS:,} unless a figure says otherwise; drawn once per data set, seed {DATA_SEED}",
        },
        {"what": "seed of the runs", "value": str(plan.seed)},
        {
            "what": "intervals",
            "value": f"{LEVEL:.0%}, Student's t over the runs; shaded bands: {LEVEL:.0%} of such averages by theory",
        },
        {
            "what": "error",
            "value": "squared error of frequencies summed over the items (left scales); divided by N on the right",
        },
        {"what": "software", "value": f"faircount {faircount.__version__}, NumPy {np.__version__}"},
    ]
    yield page.table(settings, {"what": "what", "value": "value"}, "Settings")
    heads = {name: name for name in tables.data_sets()[0]}
    yield page.table(tables.data_sets(), heads, "Data, and what they do not show")
    yield page.paragraph(
        "Both public data sets are parts of the originals, so numbers that depend on the data can differ from the "
        "paper's for that reason. Errors summed over the items hardly depend on the data: for sampling they depend "
        "on n and p alone."
    )
    judged = [each for each in outcome.judged if each.study == "set-up"]
    if judged:
        yield page.verdict_table(judged, "What the paper says about data and metric")


def _section(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    study = STUDIES[name]
    yield page.heading(f"{LABELS[name]}: {study.title}", name)
    yield page.paragraph(study.paper, "The paper.")
    yield page.paragraph(study.ours, "Here.")
    if name in PICTURES:
        caption = (
            f"{LABELS[name]}. {study.title}; {outcome.plan.runs} runs per point, seed {outcome.plan.seed}. Data: "
            f"{name}.csv."
        )
        yield page.figure(folder / f"{name}.png", caption, f"{LABELS[name]}: {study.title}")
    if name == "table1":
        yield _costs(outcome.results[name])
    if name in {"fig4", "fig5"}:
        told = "; ".join(f"{key} {list(values)}" for key, values in weighted_groups.SETTINGS.items())
        yield page.paragraph(f"Epsilons of the four groups: {told}.", "Settings.")
    if name == "table2":
        yield _weights(outcome.results[name])
    judged = [each for each in outcome.judged if each.study == name]
    yield page.verdict_table(judged, f"{LABELS[name]}: what the paper prints, and ours")
    yield from _edition(outcome, name, folder)


def _edition(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    """What the figure becomes under exact privacy."""
    measured = MEASURED_EDITIONS.get(name)
    if measured:
        study, lines = STUDIES[measured], outcome.results[measured]
        told = sentences.equal_privacy(lines)
        yield page.edition(_curve(measured, study.title, f"{study.ours} {told}", folder))
    for each in CURVES.get(name, ()):
        told = sentences.CURVE_FINDINGS[each](outcome.curves[each])
        yield page.edition(_curve(each, CURVE_TITLES[each], told, folder))
    if name == "fig5":
        yield page.edition([page.heading("Second edition", f"{name}-exact", 3), page.paragraph(sentences.local())])


def _curve(name: str, title: str, told: str, folder: Path) -> list[str]:
    image = page.figure(folder / f"{name}.png", f"{title}. Data: {name}.csv.", title)
    return [page.heading(f"Second edition: {title}", name, 3), page.paragraph(told), image]


def _costs(lines: list[Line]) -> str:
    columns = {
        "protocol": "protocol",
        "cost": "cost",
        "printed": "the paper",
        "printed_value": "value",
        "corrected": "corrected",
        "corrected_value": "value",
        "counted": "counted",
    }
    return page.table(tables.costs(lines), columns, "Table I, per server and per average user. Data: table1.csv.")


def _weights(lines: list[Line]) -> str:
    columns = {"setting": "setting", "distribution": "data", "method": "method"}
    columns |= {f"weight_{place}": f"W{place}" for place in range(1, weighted_groups.GROUPS + 1)}
    columns["printed_mse"] = "printed MSE"
    for against in (weighted_groups.NOISE, weighted_groups.POPULATION):
        columns |= {f"theory_{against}": f"theory, {against}", f"measured_{against}": f"measured, {against}"}
    caption = "Table II; 'total' are total-variance weights, which are not in the paper. Data: table2.csv."
    return page.table(tables.weights_and_errors(lines), columns, caption)


def _agreement(outcome: Outcome) -> Iterator[str]:
    records = [each for each in tables.agreement(outcome.results) if each["against"] == weighted_groups.NOISE]
    yield page.heading("Real shares against the count level", "agreement")
    yield page.paragraph(
        "Most points draw the opened sum directly from its law. At these, every user acted: responded, split its "
        "response into shares over the prime field, exchanged and added them (local mechanisms: sent a report). z "
        "is the difference in standard errors; about one in 20 lies beyond 2. Errors against the population are in "
        "agreement.csv."
    )
    columns = {
        "study": "figure",
        "point": "point",
        "users_acting": "users acting",
        "count_level": "count level",
        "theory": "theory",
        "z": "z between both",
        "z_theory": "z against theory",
    }
    if records:
        yield page.table(
            records, columns, f"Average squared errors of {outcome.plan.runs} runs each. Data: agreement.csv."
        )

"""The report, section by section: what contradicts or differs comes first, then what was run, then every figure."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

import faircount
from faircount.experiments.report import page, sentences, tables
from faircount.experiments.report.figures import PICTURES
from faircount.experiments.report.outcome import CURVE_TITLES, CURVES, LABELS, MEASURED_EDITIONS, Outcome
from faircount.experiments.studies import weighted_groups
from faircount.experiments.studies.checks import FALSE_ALARM
from faircount.experiments.studies.exact_curves import Record
from faircount.experiments.studies.judging import AGREES, CANNOT, DIFFERS, PAPER_RUNS, Verdict
from faircount.experiments.studies.registry import ACTING_RUNS, STUDIES
from faircount.experiments.studies.study import DATA_SEED, LEVEL, USERS, Line
from faircount.experiments.studies.verdicts import remarks, tally

TITLE = "Fair and Differentially Private Distributed Frequency Estimation: the experiments, made again"

WORDS = {
    "DPDS, DPCS": "the paper's sampling: every user is counted with probability p",
    "floor": "so many other users hold every item, for sure; sampling is private only with one",
    "DPDG": "the paper's Gaussian: every user adds a piece of Gaussian noise",
    "TSS": "the paper's two-stage sampling: a user reports only some of the items, chosen uniformly (US) or with its "
    "own item likelier (AS, by the factor e^epsilon*)",
    "Laplace": "ours, not in the paper: the pieces of noise that the users add make a two-sided geometric law",
    "decoys": "ours, not in the paper: every user adds a few fair coins to every item, as if a few users who do not "
    "exist had answered; together they are a binomial noise whose mean is taken off again",
    "GRR, OUE, Duchi, PM": "local mechanisms: every report is private by itself, so that no shares are needed",
    "OWA, VWA, UWA, CPA": "weights of groups: by numerical optimization, by noise variance, none, and everybody at the "
    "smallest epsilon",
    "total": "ours, not in the paper: weights by noise variance plus what the luck of the split adds",
    "against the groups' own truth": "an error of the privacy noise alone; 'against the population' also has what the "
    "groups differ from all users",
}


def whole_page(outcome: Outcome, folder: Path) -> str:
    """The page, complete."""
    return page.page(TITLE, _parts(outcome, folder))


def _parts(outcome: Outcome, folder: Path) -> Iterator[str]:
    yield from _summary(outcome)
    yield from _differences(outcome)
    yield from _checks(outcome)
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
    yield _banner(outcome)
    places = {"differences": "What differs", "checks": "Runs and theory", "setup": "What was run"}
    yield page.links({**places, **{name: LABELS[name] for name in outcome.chosen}, "agreement": "Real shares"})


def _banner(outcome: Outcome) -> str:
    failed = [check.study for check in outcome.checks if not check.passed]
    rate = f"false alarm once in {1 / FALSE_ALARM:,.0f} reports for each study"
    if failed:
        text = (
            f"The runs contradict the theory in {', '.join(failed)} ({rate}). One of the two is wrong: no verdict is "
            "drawn from either there."
        )
    else:
        text = f"The runs agree with the theory in all {len(outcome.checks)} studies ({rate})."
    return page.banner(text, passed=not failed)


def _differences(outcome: Outcome) -> Iterator[str]:
    yield page.heading("What differs from the paper", "differences")
    yield page.tally_line(tally(outcome.judged))
    yield page.verdict_table(_with(outcome.judged, DIFFERS), "Numbers and claims of the paper that differ from ours")
    unknown = _with(outcome.judged, CANNOT)
    if unknown:
        yield page.verdict_table(unknown, "What cannot be told")
    yield page.paragraph(
        "A printed number agrees when an average of 20 runs would be at least that far from theory in more than one "
        "of 100 cases. A claim about an order agrees when the runs show it beyond chance. Where the paper leaves open "
        "what was run, and its possible readings disagree, it cannot be told. Each verdict says what decided it: the "
        "runs made here; theory, which the runs of the same study must not contradict; or arithmetic with the paper's "
        "own numbers. No verdict is typed."
    )


def _with(judged: list[Verdict], *wanted: str) -> list[Verdict]:
    return [verdict for kind in wanted for verdict in judged if verdict.verdict == kind]


def _checks(outcome: Outcome) -> Iterator[str]:
    yield page.heading("Do the runs agree with the theory?", "checks")
    columns = {
        "study": "study",
        "averages": "averages",
        "ratio": "measured over expected",
        "chance_together": "chance, all together",
        "farthest": "farthest single average",
        "z": "in standard errors",
        "chance_single": "chance, one of so many",
        "result": "result",
    }
    caption = (
        "Every average of every point beside its expected value: all together, and the one that is farthest off. A "
        f"study fails when either chance is below {FALSE_ALARM / 2:.0e}. Data: checks.csv."
    )
    yield page.table(tables.checks(outcome.checks), columns, caption, cards=True)


def _setup(outcome: Outcome) -> Iterator[str]:
    yield page.heading("What was run", "setup")
    yield page.table(_settings(outcome), {"what": "what", "value": "value"}, "Settings", cards=True)
    heads = {name: name for name in tables.data_sets()[0]}
    yield page.table(tables.data_sets(), heads, "Data, and what they do not show", cards=True)
    yield page.paragraph(
        "Errors summed over the items hardly depend on the data: for sampling they depend on n and p alone. The "
        "built-in counts of both public data sets are parts of the originals; with --data the original files are used."
    )
    open_points = [asdict(remark) for remark in remarks()]
    columns = {"place": "where", "paper": "the paper says", "here": "here"}
    yield page.table(open_points, columns, "What the paper leaves open, and what is used here", cards=True)
    words: list[Record] = [{"name": name, "meaning": meaning} for name, meaning in WORDS.items()]
    yield page.table(words, {"name": "name", "meaning": "meaning"}, "Names used below", cards=True)


def _settings(outcome: Outcome) -> list[Record]:
    runs, acting = outcome.runs, min(outcome.runs, ACTING_RUNS)
    values = {
        "runs of every point": f"{runs:,} (the paper: {PAPER_RUNS})",
        "runs where every user acts": f"{acting}"
        + (f", not {runs:,}: they are capped, because each takes up to a second" if acting < runs else ""),
        "users": f"{USERS:,} unless a figure says otherwise; drawn once per data set, seed {DATA_SEED}",
        "seed of the runs": str(outcome.seed),
        "intervals": f"{LEVEL:.0%}, Student's t over the runs; shaded bands: {LEVEL:.0%} of such averages by theory",
        "error": "squared error of frequencies summed over the items (left scales); divided by N on the right",
        "software": f"faircount {faircount.__version__}, NumPy {np.__version__}",
    }
    return [{"what": what, "value": value} for what, value in values.items()]


def _section(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    study = STUDIES[name]
    yield page.heading(f"{LABELS[name]}: {study.title}", name)
    yield page.paragraph(study.paper, "The paper.")
    yield page.paragraph(study.ours, "Here.")
    if name in PICTURES:
        told = f"{study.title}; {outcome.runs} runs per point, seed {outcome.seed}"
        caption = f"{LABELS[name]}. {told}. Data: {name}.csv."
        yield page.figure(folder / f"{name}.png", caption, f"{LABELS[name]}: {study.title}")
    if name == "table1":
        yield _costs(outcome.results[name])
    if name == "table2":
        yield _weights(outcome.results[name])
    judged = [verdict for verdict in outcome.judged if verdict.study == name]
    ordered = _with(judged, DIFFERS, CANNOT, AGREES)
    yield page.verdict_table(ordered, f"{LABELS[name]}: what the paper prints, and ours")
    yield from _edition(outcome, name, folder)


def _edition(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    """What the figure becomes under exact privacy."""
    measured = MEASURED_EDITIONS.get(name)
    if measured:
        study, lines = STUDIES[measured], outcome.results[measured]
        told = sentences.equal_privacy(lines)
        yield page.edition(_curve(measured, study.title, f"{study.ours} {told}", folder))
    for curve in CURVES.get(name, ()):
        told = sentences.CURVE_FINDINGS[curve](outcome.curves[curve])
        yield page.edition(_curve(curve, CURVE_TITLES[curve], told, folder))
    if name == "fig5":
        head = page.heading("Second edition", f"{name}-exact", 3)
        yield page.edition([head, page.paragraph(sentences.local())])


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
    records = [record for record in tables.agreement(outcome.results) if record["against"] == weighted_groups.NOISE]
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
        runs = f"{min(outcome.runs, ACTING_RUNS)} runs with users acting, {outcome.runs} at count level"
        caption = f"Average squared errors of {runs}. Data: agreement.csv."
        yield page.table(records, columns, caption, cards=True)

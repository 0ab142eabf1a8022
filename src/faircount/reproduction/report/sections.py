"""The report, section by section.

What contradicts the theory or differs from the paper comes first, then what was run, then every
figure with its verdicts and its second edition: the same figure at exact privacy.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import faircount
from faircount.reproduction.network.runs import NetworkRuns
from faircount.reproduction.report import page, sentences, tables
from faircount.reproduction.report.figures import PICTURES
from faircount.reproduction.report.network_section import render_network
from faircount.reproduction.studies import weighted_groups
from faircount.reproduction.studies.checks import FALSE_ALARM, Check
from faircount.reproduction.studies.exact_curves import Record
from faircount.reproduction.studies.judging import (
    AGREES,
    DIFFERS,
    PAPER_RUNS,
    UNDECIDED,
    Verdict,
)
from faircount.reproduction.studies.registry import STUDIES, USER_LEVEL_RUNS
from faircount.reproduction.studies.study import DATA_SEED, LEVEL, USERS, Line
from faircount.reproduction.studies.verdicts import count_verdicts, list_remarks

TITLE = (
    "Fair and Differentially Private Distributed Frequency Estimation: the evaluation, reproduced"
)

# Figures and tables that can be asked for, in the order of the report.
LABELS = {
    "fig1": "Figure 1",
    "fig2": "Figure 2",
    "fig3": "Figure 3",
    "fig4": "Figure 4",
    "fig5": "Figure 5",
    "table1": "Table I",
    "table2": "Table II",
}

# Second editions of the figures that make a statement about privacy: one is measured, the others
# are computed curves. The mechanisms of Figure 5 are exact as they are.
MEASURED_EDITIONS = {"fig1": "fig1_exact"}
CURVES = {
    "fig1": ("floor_unmet",),
    "fig2": ("fig2_exact", "floor_effect"),
    "fig3": ("fig3_exact",),
    "fig4": ("fig4_exact",),
}
CURVE_TITLES = {
    "floor_unmet": "Exact privacy of the paper's p, with the floor met and not met",
    "fig2_exact": "Users needed for +-2 percentage points at equal exact privacy",
    "floor_effect": "What a floor allows, and what it is worth",
    "fig3_exact": "Two-stage sampling at equal exact privacy against S1",
    "fig4_exact": "Weighted groups at their own exact privacy",
}

# For readers who do not have the paper at hand.
GLOSSARY = {
    "DPDS, DPCS": "the paper's sampling: every user is counted with probability p",
    "floor": "the number of other users who are known to choose every item; sampling is private "
    "only with a floor",
    "DPDG": "the paper's Gaussian mechanism: every user adds a piece of Gaussian noise",
    "TSS": "the paper's two-stage sampling: a user reports only some of the items, chosen "
    "uniformly (US) or with the user's own item likelier by the factor e^epsilon* (AS)",
    "Laplace": "ours, not in the paper: the pieces of noise that the users add sum up to a "
    "two-sided geometric distribution",
    "decoys": "ours, not in the paper: every user adds a few fair coins to every item, as if a few "
    "more users had answered; together they are binomial noise, whose mean is subtracted again",
    "GRR, OUE, Duchi, PM": "local mechanisms: every report is private by itself, so no shares are "
    "needed",
    "OWA, VWA, UWA, CPA": "weights of groups: by numerical optimization, by noise variance, "
    "unweighted, and everybody at the smallest epsilon",
    "total": "ours, not in the paper: weights by noise variance plus the variance of the random "
    "split",
    "against the groups' own truth": "an error of the privacy noise alone; 'against the "
    "population' also includes how the groups differ from all users",
    "user level, count level": "every user is simulated with real shares and reports, or the "
    "revealed sum is drawn directly from its distribution",
}


@dataclass(frozen=True)
class Outcome:
    """Everything that a report is made of."""

    chosen: tuple[str, ...]
    runs: int
    seed: int
    results: dict[str, list[Line]]
    curves: dict[str, list[Record]]
    checks: list[Check]
    verdicts: list[Verdict]
    network: NetworkRuns | None = None


def render_report(outcome: Outcome, folder: Path) -> str:
    """The complete page; the pictures are read from the folder."""
    return page.render_page(TITLE, _render_sections(outcome, folder))


def _render_sections(outcome: Outcome, folder: Path) -> Iterator[str]:
    yield from _render_summary(outcome)
    # Bad news first: nobody should read a figure before knowing that its check failed.
    yield from _render_differences(outcome)
    yield from _render_checks(outcome)
    yield from _render_setup(outcome)
    for name in outcome.chosen:
        yield from _render_figure_section(outcome, name, folder)
    yield from _render_agreement(outcome)
    if outcome.network is not None:
        yield from render_network(outcome.network)


def _render_summary(outcome: Outcome) -> Iterator[str]:
    yield page.render_paragraph(
        "Section IV of the paper by Yang, Tjuawinata, Lam, Zhu and Zhao, run again with the "
        "faircount library: every figure and table, with the theory beside every measured number, "
        "and a verdict on every number and claim that the text prints. Figures that make a "
        "statement about privacy have a second edition, in which all mechanisms have the same "
        "exact privacy."
    )
    yield _render_banner(outcome)
    links = {"differences": "What differs", "checks": "Runs and theory", "setup": "What was run"}
    links |= {name: LABELS[name] for name in outcome.chosen}
    links["agreement"] = "User level"
    if outcome.network is not None:
        links["network"] = "Network surveys"
    yield page.render_links(links)


def _render_banner(outcome: Outcome) -> str:
    failed = [check.study for check in outcome.checks if not check.is_consistent]
    rate = f"false alarm once in {1 / FALSE_ALARM:,.0f} reports for each study"
    if failed:
        text = (
            f"The runs contradict the theory in {', '.join(failed)} ({rate}). One of the two is "
            "wrong, so no verdict is based on either there."
        )
    else:
        scope = f"all {len(outcome.checks)} studies" if len(outcome.checks) > 1 else "this study"
        text = f"The runs agree with the theory in {scope} ({rate})."
    return page.render_banner(text, passed=not failed)


def _render_differences(outcome: Outcome) -> Iterator[str]:
    yield page.render_heading("What differs from the paper", "differences")
    yield page.render_tally(count_verdicts(outcome.verdicts))
    # Without rows there is no table: an empty one would look like a mistake.
    differing = _select_verdicts(outcome.verdicts, DIFFERS)
    if differing:
        caption = "Numbers and claims of the paper that differ from ours"
        yield page.render_verdicts(differing, caption)
    undecided = _select_verdicts(outcome.verdicts, UNDECIDED)
    if undecided:
        yield page.render_verdicts(undecided, "Undecided")
    yield page.render_paragraph(
        "A printed number agrees when an average of 20 runs would be at least that far from theory "
        "in more than one of 100 cases. A claim about an order agrees when the runs show it beyond "
        "chance. Where the paper leaves open what was run, and its possible readings disagree, the "
        "claim is undecided. Every verdict says what decided it: the runs made here; theory, which "
        "the runs of the same study must not contradict; or arithmetic with the paper's own "
        "numbers. No verdict is written by hand."
    )


def _select_verdicts(verdicts: list[Verdict], kind: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.verdict == kind]


def _render_checks(outcome: Outcome) -> Iterator[str]:
    yield page.render_heading("Do the runs agree with the theory?", "checks")
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
        "All averages beside their expected values: all together, and the one that is farthest "
        f"off. A study fails when either chance is below {FALSE_ALARM / 2:.0e}. Data: checks.csv."
    )
    yield page.render_table(tables.list_checks(outcome.checks), columns, caption, cards=True)


def _render_setup(outcome: Outcome) -> Iterator[str]:
    yield page.render_heading("What was run", "setup")
    columns = {"what": "what", "value": "value"}
    yield page.render_table(_list_settings(outcome), columns, "Settings", cards=True)
    data_sets = tables.list_data_sets()
    columns = {name: name for name in data_sets[0]}
    yield page.render_table(data_sets, columns, "Data, and their limits", cards=True)
    yield page.render_paragraph(
        "Errors summed over the items hardly depend on the data: for sampling they depend on n and "
        "p alone. The built-in counts of both public data sets are parts of the originals; with "
        "--data the original files are used."
    )
    # Where the paper leaves something open, a reader must know what was chosen before the figures.
    remarks = list(map(asdict, list_remarks()))
    columns = {"place": "where", "paper": "the paper says", "here": "here"}
    caption = "What the paper leaves open, and what is used here"
    yield page.render_table(remarks, columns, caption, cards=True)
    names = [{"name": name, "meaning": meaning} for name, meaning in GLOSSARY.items()]
    columns = {"name": "name", "meaning": "meaning"}
    yield page.render_table(names, columns, "Names used below", cards=True)


def _list_settings(outcome: Outcome) -> list[Record]:
    simulated = str(min(outcome.runs, USER_LEVEL_RUNS))
    # Otherwise a reader would take the number above for all points.
    if outcome.runs > USER_LEVEL_RUNS:
        simulated += f", not {outcome.runs:,}: they are capped, because a run takes up to a second"
    values = {
        "runs of every point": f"{outcome.runs:,} (the paper: {PAPER_RUNS})",
        "runs at user level": simulated,
        "users": f"{USERS:,} unless a figure says otherwise; drawn once per data set, seed "
        f"{DATA_SEED}",
        "seed of the runs": str(outcome.seed),
        "intervals": f"{LEVEL:.0%}, Student's t over the runs; shaded bands: {LEVEL:.0%} of such "
        "averages by theory",
        "error": "squared error of frequencies summed over the items (left scales); divided by N "
        "on the right",
        "software": f"faircount {faircount.__version__}, NumPy {np.__version__}",
    }
    return [{"what": what, "value": value} for what, value in values.items()]


def _render_figure_section(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    study = STUDIES[name]
    label = LABELS[name]
    title = f"{label}: {study.title}"
    yield page.render_heading(title, name)
    yield page.render_paragraph(study.paper, "The paper.")
    yield page.render_paragraph(study.ours, "Here.")
    if name in PICTURES:
        caption = (
            f"{label}. {study.title}; {outcome.runs} runs per point, seed {outcome.seed}. "
            f"Data: {name}.csv."
        )
        yield page.render_figure(folder / f"{name}.png", caption, title)
    if name == "table1":
        yield _render_costs(outcome.results[name])
    if name == "table2":
        yield _render_weights(outcome.results[name])
    own = [verdict for verdict in outcome.verdicts if verdict.study == name]
    # What needs attention comes first.
    ordered = []
    for kind in (DIFFERS, UNDECIDED, AGREES):
        ordered += _select_verdicts(own, kind)
    yield page.render_verdicts(ordered, f"{label}: what the paper prints, and ours")
    yield from _render_second_edition(outcome, name, folder)


def _render_second_edition(outcome: Outcome, name: str, folder: Path) -> Iterator[str]:
    """What the figure becomes under exact privacy."""
    measured = MEASURED_EDITIONS.get(name)
    if measured:
        study = STUDIES[measured]
        finding = sentences.describe_equal_privacy(outcome.results[measured])
        yield _render_curve(measured, study.title, f"{study.ours} {finding}", folder)
    for curve in CURVES.get(name, ()):
        # The sentence is made from the numbers of this run: what it says cannot differ from its
        # figure.
        finding = sentences.CURVE_FINDINGS[curve](outcome.curves[curve])
        yield _render_curve(curve, CURVE_TITLES[curve], finding, folder)
    # Local mechanisms need no new curve: their privacy is exact as it is.
    if name == "fig5":
        heading = page.render_heading("Second edition", f"{name}-exact", 3)
        paragraph = page.render_paragraph(sentences.describe_local())
        yield page.render_edition([heading, paragraph])


def _render_curve(name: str, title: str, text: str, folder: Path) -> str:
    return page.render_edition(
        [
            page.render_heading(f"Second edition: {title}", name, 3),
            page.render_paragraph(text),
            page.render_figure(folder / f"{name}.png", f"{title}. Data: {name}.csv.", title),
        ]
    )


def _render_costs(lines: list[Line]) -> str:
    columns = {
        "protocol": "protocol",
        "cost": "cost",
        "printed": "the paper",
        "printed_value": "value",
        "corrected": "corrected",
        "corrected_value": "value",
        "counted": "counted",
    }
    caption = "Table I, per server and per average user. Data: table1.csv."
    return page.render_table(tables.list_costs(lines), columns, caption)


def _render_weights(lines: list[Line]) -> str:
    columns = {"setting": "setting", "distribution": "data", "method": "method"}
    for place in range(1, weighted_groups.GROUPS + 1):
        columns[f"weight_{place}"] = f"W{place}"
    # The paper's own number stands between its weights and our errors, to be compared with both.
    columns["printed_mse"] = "printed MSE"
    for against in (weighted_groups.NOISE, weighted_groups.POPULATION):
        columns[f"theory_{against}"] = f"theory, {against}"
        columns[f"measured_{against}"] = f"measured, {against}"
    caption = (
        "Table II; 'total' are total-variance weights, which are not in the paper. "
        "Data: table2.csv."
    )
    return page.render_table(tables.list_weights_and_errors(lines), columns, caption)


def _render_agreement(outcome: Outcome) -> Iterator[str]:
    yield page.render_heading("User level against count level", "agreement")
    yield page.render_paragraph(
        "Most points draw the revealed sum directly from its distribution. At these points every "
        "user was simulated: it responded, split its response into shares over the prime field, "
        "exchanged and added them (local mechanisms: sent a report). z is the difference in "
        "standard errors; about one in 20 lies beyond 2. Errors against the population are in "
        "agreement.csv."
    )
    # The page shows the privacy noise alone; the CSV file also has the population.
    both = tables.list_agreement(outcome.results)
    records = [record for record in both if record["against"] == weighted_groups.NOISE]
    columns = {
        "study": "figure",
        "point": "point",
        "user_level": "user level",
        "count_level": "count level",
        "theory": "theory",
        "z": "z between both",
        "z_theory": "z against theory",
    }
    if records:
        simulated = min(outcome.runs, USER_LEVEL_RUNS)
        caption = (
            f"Average squared errors of {simulated} runs at user level and {outcome.runs} at count "
            "level. Data: agreement.csv."
        )
        yield page.render_table(records, columns, caption, cards=True)

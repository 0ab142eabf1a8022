"""Run the paper's evaluation and write pictures, CSV files and one HTML report."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from faircount.core.errors import ContradictionError, ParameterError
from faircount.core.validation import check_integer
from faircount.reproduction.data.loaders import load_original_data
from faircount.reproduction.data.populations import replace_populations
from faircount.reproduction.network.runs import run_network
from faircount.reproduction.report import sections, tables
from faircount.reproduction.report.exact_figures import CURVE_PICTURES
from faircount.reproduction.report.figure_style import picture_style, require_matplotlib
from faircount.reproduction.report.figures import PICTURES
from faircount.reproduction.report.sections import CURVES, LABELS, MEASURED_EDITIONS, Outcome
from faircount.reproduction.studies import exact_curves
from faircount.reproduction.studies.checks import FALSE_ALARM, check
from faircount.reproduction.studies.judging import PAPER_RUNS
from faircount.reproduction.studies.registry import STUDIES, measure
from faircount.reproduction.studies.verdicts import judge_studies
from faircount.reproduction.sweep.sweep import Progress

# Tables whose CSV files do not simply list the lines of the study.
TABLES = {"table1": tables.list_costs, "table2": tables.list_weights_and_errors}


def reproduce(
    which: str = "all",
    runs: int = PAPER_RUNS,
    out: Path = Path("out"),
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    seed: int = 1,
    data: Path | None = None,
    network: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Run one figure or table of the paper, or all; return the path of the report.

    CSV, PNG and SVG files are written beside it. Until it is finished, the folder also has a file
    with the finished blocks, from which the same call continues after an interruption. When the
    runs of a study contradict its theory, the report is written and says so, and then a
    `ContradictionError` is raised.

    data: a folder with the original files of Gowalla, Census-Income or both, used instead of the
        built-in parts of them
    network: also run Figure 4 and Table II once as surveys over the network, with so many users in
        every cell
    """
    if which != "all" and which not in LABELS:
        raise ParameterError(
            f"there is no figure or table {which!r}: choose all or one of {', '.join(LABELS)}"
        )
    # Asked before anything runs: without matplotlib the runs would be for nothing.
    require_matplotlib()
    chosen = tuple(LABELS) if which == "all" else (which,)
    replacements = {} if data is None else load_original_data(Path(data))
    folder = Path(out)
    with replace_populations(replacements):
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = (
            folder / f"unfinished-{which}-{check_integer('runs', runs, least=2)}-{seed}.sweep"
        )
        outcome = _run_studies(
            chosen,
            runs,
            seed,
            resume=unfinished,
            engine=engine,
            scheduler=scheduler,
            workers=workers,
            progress=progress,
        )
        # After the sweep, which can be continued: these surveys cannot.
        if network is not None:
            outcome = replace(outcome, network=run_network(network, seed))
        report = _write_all(outcome, folder)
    # Removed last: if drawing fails, the runs are not lost.
    unfinished.unlink()
    _raise_if_contradicted(outcome, report)
    return report


def _run_studies(chosen: tuple[str, ...], runs: int, seed: int, **options: Any) -> Outcome:
    studies = []
    curves = {}
    for figure in chosen:
        studies.append(STUDIES[figure])
        # The second edition of a figure is part of the same sweep.
        if figure in MEASURED_EDITIONS:
            studies.append(STUDIES[MEASURED_EDITIONS[figure]])
        for name in CURVES.get(figure, ()):
            curves[name] = exact_curves.CURVES[name]
    results = measure(studies, runs, seed=seed, **options)
    checks = [check(lines) for lines in results.values()]
    contradicted = [check.study for check in checks if not check.is_consistent]
    verdicts = judge_studies(results, contradicted)
    # Computed after the runs, so that progress is shown from the start.
    records = {name: compute() for name, compute in curves.items()}
    return Outcome(chosen, runs, seed, results, records, checks, verdicts)


def _write_all(outcome: Outcome, folder: Path) -> Path:
    """Write the data, the pictures and the page that shows them; return the page."""
    # The data come first: they are complete even if drawing fails.
    _write_data(outcome, folder)
    with picture_style():
        for name, lines in outcome.results.items():
            if name in PICTURES:
                PICTURES[name](lines).save(folder / name)
        for name, records in outcome.curves.items():
            CURVE_PICTURES[name](records).save(folder / name)
    report = folder / "report.html"
    report.write_text(sections.render_report(outcome, folder), encoding="utf-8")
    return report


def _write_data(outcome: Outcome, folder: Path) -> None:
    for name, lines in outcome.results.items():
        list_records = TABLES.get(name, tables.list_lines)
        tables.write_csv(folder / f"{name}.csv", list_records(lines))
    for name, curve in outcome.curves.items():
        tables.write_csv(folder / f"{name}.csv", curve)
    tables.write_csv(folder / "verdicts.csv", list(map(asdict, outcome.verdicts)))
    tables.write_csv(folder / "agreement.csv", tables.list_agreement(outcome.results))
    tables.write_csv(folder / "checks.csv", tables.list_checks(outcome.checks))
    if outcome.network is not None:
        records = []
        pairs = zip(outcome.network.lines, outcome.network.count_level, strict=True)
        for line, counted in pairs:
            records.append({**line.record(), "count_level_summed": counted})
        tables.write_csv(folder / "network.csv", records)


def _raise_if_contradicted(outcome: Outcome, report: Path) -> None:
    checks = [*outcome.checks, *(() if outcome.network is None else outcome.network.checks)]
    failed = [check for check in checks if not check.is_consistent]
    if failed:
        listed = "; ".join(f"{check.study} (chance {check.chance:.1g})" for check in failed)
        raise ContradictionError(
            f"the runs contradict the theory in {listed}, where less than {FALSE_ALARM:g} counts "
            f"as a contradiction: do not believe either before the reason is found; {report} shows "
            "where they differ"
        )

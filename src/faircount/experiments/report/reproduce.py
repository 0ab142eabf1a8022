"""`reproduce`: run the paper's experiments and write pictures, CSV files and one HTML report."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from faircount.core.errors import ContradictionError, ParameterError
from faircount.core.validation import integer
from faircount.experiments.data.loaders import original_data
from faircount.experiments.data.populations import using
from faircount.experiments.report import sections, tables
from faircount.experiments.report.exact_figures import CURVE_PICTURES
from faircount.experiments.report.figure_style import require_matplotlib, style
from faircount.experiments.report.figures import PICTURES
from faircount.experiments.report.outcome import CURVES, MEASURED_EDITIONS, NAMES, Outcome
from faircount.experiments.studies import exact_curves
from faircount.experiments.studies.checks import FALSE_ALARM, check
from faircount.experiments.studies.judging import PAPER_RUNS
from faircount.experiments.studies.registry import STUDIES, measure
from faircount.experiments.studies.verdicts import verdicts
from faircount.sweep.sweep import Progress


def reproduce(
    which: str = "all",
    runs: int = PAPER_RUNS,
    out: Path = Path("out"),
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    seed: int = 1,
    data: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make one figure or table of the paper again, or all; returns the report, DIR/report.html.

    Writes CSV, PNG and SVG files beside it. Until it is finished DIR also has a file with the blocks that are done,
    from which the same call goes on after an interruption. `data` is a folder with the original files of Gowalla,
    Census-Income or both, which then stand in for the built-in parts of them. When the runs of a study contradict its
    theory, the report is written and says so, and then a `ContradictionError` is raised.
    """
    if which != "all" and which not in NAMES:
        raise ParameterError(f"there is no figure or table {which!r}: choose all or one of {', '.join(NAMES)}")
    require_matplotlib()
    chosen, folder = NAMES if which == "all" else (which,), Path(out)
    with using({} if data is None else original_data(Path(data))):
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"unfinished-{which}-{integer('runs', runs, least=2)}-{seed}.sweep"
        how = {"engine": engine, "scheduler": scheduler, "workers": workers, "progress": progress}
        outcome = _outcome(chosen, runs, seed, resume=unfinished, **how)
        report = _write(outcome, folder)
    unfinished.unlink()
    _complain(outcome, report)
    return report


def _outcome(chosen: tuple[str, ...], runs: int, seed: int, **how: Any) -> Outcome:
    names = [name for figure in chosen for name in (figure, MEASURED_EDITIONS.get(figure)) if name]
    results = measure([STUDIES[name] for name in names], runs, seed=seed, **how)
    checks = [check(lines) for lines in results.values()]
    judged = verdicts(results, [each.study for each in checks if not each.passed])
    curves = {name: exact_curves.CURVES[name]() for figure in chosen for name in CURVES.get(figure, ())}
    return Outcome(chosen, runs, seed, results, curves, checks, judged)


def _write(outcome: Outcome, folder: Path) -> Path:
    """Data, pictures, and the page that shows them; returns the page."""
    _write_data(outcome, folder)
    with style():
        for name, lines in outcome.results.items():
            if name in PICTURES:
                PICTURES[name](lines).save(folder / name)
        for name, records in outcome.curves.items():
            CURVE_PICTURES[name](records).save(folder / name)
    report = folder / "report.html"
    report.write_text(sections.whole_page(outcome, folder), encoding="utf-8")
    return report


def _write_data(outcome: Outcome, folder: Path) -> None:
    special = {"table1": tables.costs, "table2": tables.weights_and_errors}
    for name, lines in outcome.results.items():
        records = special[name](lines) if name in special else [line.record() for line in lines]
        tables.write_csv(folder / f"{name}.csv", records)
    for name, curve in outcome.curves.items():
        tables.write_csv(folder / f"{name}.csv", curve)
    tables.write_csv(folder / "verdicts.csv", [asdict(verdict) for verdict in outcome.judged])
    tables.write_csv(folder / "agreement.csv", tables.agreement(outcome.results))
    tables.write_csv(folder / "checks.csv", tables.checks(outcome.checks))


def _complain(outcome: Outcome, report: Path) -> None:
    failed = [each for each in outcome.checks if not each.passed]
    if failed:
        told = "; ".join(f"{each.study} (chance {each.chance:.1g})" for each in failed)
        raise ContradictionError(
            f"the runs contradict the theory in {told}, where less than {FALSE_ALARM:g} counts as a contradiction: "
            f"believe neither before the reason is found; {report} shows where they part"
        )

"""Results of the paper's studies without any run, and the CSV files of a report."""

import csv
from pathlib import Path

from faircount.reproduction.studies.registry import STUDIES
from faircount.reproduction.studies.study import Line

RUNS = 20

# Standard deviation of a made-up run, as a share of its mean.
SPREAD = 0.3


def lines_at_theory(name: str) -> list[Line]:
    """Lines of a study that measured exactly what its theory expects, so that nothing is random."""
    study = STUDIES[name]
    lines = []
    for point in study.named_points():
        for key, expected in study.theory(point).items():
            method, _, against = key.rpartition("|")
            error = SPREAD * expected.mean / RUNS**0.5
            line = Line(
                study=name,
                point=point,
                method=method or str(point["method"]),
                against=against,
                items=study.items(point),
                runs=RUNS,
                mean=expected.mean,
                standard_error=error,
                low=expected.mean - 2 * error,
                high=expected.mean + 2 * error,
                expected=expected,
            )
            lines.append(line)
    return lines


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))

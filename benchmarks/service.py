"""Whole surveys over HTTP (`service_load.py`): a report, several workers, and closing a survey.

The empty handler and the coordinator get their reports in turns, and so do one worker and two. The
process that plays all clients takes a large part of two cores, so times per report are CPU times of
the server, except where two workers are compared: there it is how long a report took while as many
as possible were under way. Of the surveys beside the empty handler the median is shown: one of them
may differ by a twentieth from the next.
"""

import json
import os
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

from table import Row

HERE = Path(__file__).parent
ASKED = ("--questions", "1")
SURVEYS = 5
MANY = 100_000


def rows() -> list[Row]:
    return [
        report_row("SQLite"),
        report_row("PostgreSQL", "--postgresql"),
        workers_row("commits at the speed of the disk"),
        workers_row("commits of 50 ms", "--commit-milliseconds", "50", "--connections", "16"),
        closing_row(),
    ]


def report_row(database: str, *options: str) -> Row:
    """The coordinator's CPU time for a report beside that of a handler that only stores it."""
    surveys = [measure("--users", "12000", *options) for _ in range(SURVEYS)]
    surveys.sort(key=itemgetter("ratio_to_empty"))
    found = surveys[SURVEYS // 2]
    least, most = (surveys[place]["ratio_to_empty"] for place in (0, -1))
    return Row(
        f"a report at the coordinator, {database}, 12,000 people, CPU",
        found["submissions"]["cpu_microseconds"] / 1e6,
        "an empty handler that commits the same row",
        found["empty_handler"]["cpu_microseconds"] / 1e6,
        f"{found['submissions']['per_second']:,} and {found['empty_handler']['per_second']:,} per "
        f"second; median of {SURVEYS} surveys, ratios {least:.2f} to {most:.2f}",
    )


def workers_row(commits: str, *options: str) -> Row:
    """The time of a report with two workers of the coordinator beside that with one."""
    found = measure("--users", "30000", "--workers", "2", *options)
    one, both = found["one_worker"], found["all_workers"]
    cpu = both["cpu_microseconds"] / one["cpu_microseconds"]
    return Row(
        f"a report at two workers, PostgreSQL, {commits}, 30,000 people",
        1 / both["per_second"],
        "one worker",
        1 / one["per_second"],
        f"cores busy: {both['cores_busy']:.0%}, with one worker {one['cores_busy']:.0%}; CPU of a "
        f"report {cpu:.2f} times one worker's; transactions waited "
        f"{found['share_of_transactions_waiting']:.1%} of their time for the other worker",
    )


def closing_row() -> Row:
    """From closing a survey of many people to its result."""
    found = measure("--users", str(MANY))
    spent = found["cpu_microseconds_per_person"]
    memory = found["megabytes_of_s1_and_s2"][-2]
    return Row(
        f"from closing to the result, SQLite, {MANY:,} people",
        found["close_to_result_seconds"],
        "-",
        None,
        f"CPU per person: coordinator {spent['coordinator, closing to result']} µs, aggregator "
        f"{spent['aggregator, closing to result']} µs; MB of both, {memory}",
    )


def measure(*options: str) -> dict[str, Any]:
    """The figures of one survey with servers of its own."""
    paths = [str(HERE.parent / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    output = subprocess.run(
        [sys.executable, str(HERE / "service_load.py"), *ASKED, *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    found: dict[str, Any] = json.loads(output)
    return found

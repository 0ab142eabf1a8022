"""The tables of the report as records: Tables I and II, data sets, and shares against the count level."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from faircount.experiments.data.populations import population
from faircount.experiments.studies import table1, table2, weighted_groups
from faircount.experiments.studies.checks import Check
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, FLOOR_SHARE, USERS, Line, Value, holders, one

Record = Mapping[str, Value]

METHODS = {"owa": "OWA", "vwa": "VWA", "uwa": "UWA", "total": "total variance"}


def costs(lines: list[Line]) -> list[Record]:
    """Table I: formula, corrected formula and counter of every cost."""
    records: list[Record] = []
    for protocol in table1.PROTOCOLS:
        here = table1.size(protocol)
        for cell in table1.cells(protocol):
            line = one(lines, protocol=protocol, method=cell.counter)
            known = {name: "" if value is None else value for name, value in cell.record(here).items()}
            measured = {"counted": line.mean, "standard_error": line.standard_error, "runs": line.runs}
            records.append({"protocol": table1.LABELS[protocol], **known, **measured})
    return records


def weights_and_errors(lines: list[Line]) -> list[Record]:
    """Table II: weights, the printed error, and ours against both truths, measured and expected."""
    records: list[Record] = []
    for setting in weighted_groups.SETTINGS:
        for data in table2.DATA:
            for method in table2.METHODS:
                found = table2.found_weights(setting, data, method)
                row: dict[str, Value] = {"setting": setting, "distribution": data, "method": METHODS[method]}
                row |= {f"weight_{place}": float(each) for place, each in enumerate(found, 1)}
                row["printed_mse"] = table2.ERRORS.get((setting, data, "vwa" if method == "owa" else method), "")
                for against in (weighted_groups.NOISE, weighted_groups.POPULATION):
                    line = one(lines, setting=setting, data=data, method=method, against=against, how=COUNTS)
                    row |= {f"theory_{against}": line.expected.mean, f"measured_{against}": line.mean}
                    row |= {f"low_{against}": line.low, f"high_{against}": line.high}
                    row[f"measured_{against}_per_item"] = line.mean / line.items
                records.append(row | {"runs": lines[0].runs})
    return records


def checks(found: Sequence[Check]) -> list[Record]:
    """Runs beside theory, one row per study."""
    return [
        {
            "study": check.study,
            "averages": check.averages,
            "ratio": check.ratio,
            "chance_together": check.together,
            "farthest": f"{_words(check.worst)}, {check.worst.against}",
            "z": round(check.worst.z, 2),
            "chance_single": check.single,
            "result": "agrees" if check.passed else "CONTRADICTS",
        }
        for check in found
    ]


def agreement(results: Mapping[str, list[Line]]) -> list[Record]:
    """Points at which users acted beside the same at count level: z is the difference in standard errors."""
    records: list[Record] = []
    for name, lines in results.items():
        by_point = {_key(line): line for line in lines if line.point["how"] == COUNTS}
        for line in lines:
            twin = by_point.get(_key(line))
            if line.point["how"] == ACTING and twin is not None:
                error = math.hypot(line.standard_error, twin.standard_error)
                records.append(
                    {
                        "study": name,
                        "point": _words(line),
                        "against": line.against,
                        "users_acting": line.mean,
                        "count_level": twin.mean,
                        "theory": line.expected.mean,
                        "z": round((line.mean - twin.mean) / error, 2),
                        "z_theory": round(line.z, 2),
                        "runs": line.runs,
                    }
                )
    return records


def _key(line: Line) -> tuple[object, ...]:
    where = tuple(sorted((name, value) for name, value in line.point.items() if name != "how"))
    return (*where, line.method, line.against)


def _words(line: Line) -> str:
    shown = {name: value for name, value in line.point.items() if name not in {"study", "how", "method"}}
    told = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"{line.method}, {told}"


def data_sets() -> list[Record]:
    """The populations behind the figures, with their limits."""
    records: list[Record] = []
    floors = {**dict.fromkeys(DATA, FLOOR_SHARE), "normal": 0.0, "gowalla-12": 0.0}
    for name, floor in floors.items():
        people, drawn = population(name), holders(name, USERS, floor)
        records.append(
            {
                "data": name,
                "items": len(people.counts),
                "records": "distribution" if people.distribution else f"{people.users:,}",
                "rarest": f"{people.frequencies.min():.2%}",
                "rarest of 1,000 drawn": min(drawn),
                "source": people.source,
                "limits": people.limits,
            }
        )
    return records


def write_csv(path: Path, records: Sequence[Record]) -> None:
    """Records as CSV; a record that lacks a column leaves it empty."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)

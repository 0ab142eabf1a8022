"""The tables of the report as records, for the page and for CSV files."""

import csv
import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from faircount.reproduction.data.populations import get_population
from faircount.reproduction.studies import table1, table2, weighted_groups
from faircount.reproduction.studies.checks import Check
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    FLOOR_SHARE,
    USER_LEVEL,
    USERS,
    Line,
    Value,
    find_line,
    sampled_counts,
)

Record = Mapping[str, Value]

METHODS = {"owa": "OWA", "vwa": "VWA", "uwa": "UWA", "total": "total variance"}


def list_lines(lines: list[Line]) -> list[Record]:
    """The lines of a study as they are."""
    return [line.record() for line in lines]


def list_costs(lines: list[Line]) -> list[Record]:
    """Table I: the printed formula, the corrected one and the count of every cost."""
    records: list[Record] = []
    for protocol in table1.PROTOCOLS:
        size = table1.size_of(protocol)
        for cell in table1.cells(protocol):
            record: dict[str, Value] = {"protocol": table1.LABELS[protocol]}
            for name, value in cell.record(size).items():
                # Costs that the paper does not list have empty cells.
                record[name] = "" if value is None else value
            line = find_line(lines, protocol=protocol, method=cell.counter)
            record["counted"] = line.mean
            record["standard_error"] = line.standard_error
            record["runs"] = line.runs
            records.append(record)
    return records


def list_weights_and_errors(lines: list[Line]) -> list[Record]:
    """Table II: weights, the printed error, and ours against both truths."""
    rows = product(weighted_groups.SETTINGS, table2.DATA, table2.METHODS)
    return [_describe_method(lines, setting, data, method) for setting, data, method in rows]


def _describe_method(lines: list[Line], setting: str, data: str, method: str) -> Record:
    record: dict[str, Value] = {
        "setting": setting,
        "distribution": data,
        "method": METHODS[method],
    }
    for place, weight in enumerate(table2.our_weights(setting, data, method), start=1):
        record[f"weight_{place}"] = float(weight)
    # The paper has one row for OWA and VWA.
    printed_method = "vwa" if method == "owa" else method
    record["printed_mse"] = table2.ERRORS.get((setting, data, printed_method), "")
    for against in (weighted_groups.NOISE, weighted_groups.POPULATION):
        line = find_line(
            lines, setting=setting, data=data, method=method, against=against, how=COUNT_LEVEL
        )
        record[f"theory_{against}"] = line.expected.mean
        record[f"measured_{against}"] = line.mean
        record[f"low_{against}"] = line.low
        record[f"high_{against}"] = line.high
        record[f"measured_{against}_per_item"] = line.mean / line.items
    record["runs"] = lines[0].runs
    return record


def list_checks(checks: Sequence[Check]) -> list[Record]:
    """Runs beside theory, one record for every study."""
    return list(map(_describe_check, checks))


def _describe_check(check: Check) -> Record:
    return {
        "study": check.study,
        "averages": check.averages,
        "ratio": check.ratio,
        "chance_together": check.together,
        "farthest": f"{_describe_point(check.worst)}, {check.worst.against}",
        "z": round(check.worst.z, 2),
        "chance_single": check.single,
        "result": "agrees" if check.is_consistent else "CONTRADICTS",
    }


def list_agreement(results: Mapping[str, list[Line]]) -> list[Record]:
    """Points at user level beside the same points at count level."""
    records: list[Record] = []
    for name, lines in results.items():
        count_level = {}
        for line in lines:
            if line.point["how"] == COUNT_LEVEL:
                count_level[_place_of(line)] = line
        for line in lines:
            # Points of Table I have no twin: counters exist at user level only.
            twin = count_level.get(_place_of(line))
            if line.point["how"] == USER_LEVEL and twin is not None:
                records.append(_compare_levels(name, line, twin))
    return records


def _compare_levels(study: str, line: Line, twin: Line) -> Record:
    # Both averages are random, so their variances add up.
    error = math.hypot(line.standard_error, twin.standard_error)
    return {
        "study": study,
        "point": _describe_point(line),
        "against": line.against,
        "user_level": line.mean,
        "count_level": twin.mean,
        "theory": line.expected.mean,
        "z": round((line.mean - twin.mean) / error, 2),
        "z_theory": round(line.z, 2),
        "runs": line.runs,
    }


def _place_of(line: Line) -> tuple[object, ...]:
    """What a line measures, whatever the level at which it was run."""
    place = {name: value for name, value in line.point.items() if name != "how"}
    return (*sorted(place.items()), line.method, line.against)


def _describe_point(line: Line) -> str:
    parts = [line.method]
    for name, value in line.point.items():
        if name not in {"study", "how", "method"}:
            parts.append(f"{name} {value}")
    return ", ".join(parts)


def list_data_sets() -> list[Record]:
    """The populations behind the figures, with their limits."""
    records: list[Record] = []
    floors = {**dict.fromkeys(DATA, FLOOR_SHARE), "normal": 0.0, "gowalla-12": 0.0}
    for name, floor_share in floors.items():
        population = get_population(name)
        size = "distribution" if population.distribution else f"{population.users:,}"
        records.append(
            {
                "data": name,
                "items": len(population.counts),
                "records": size,
                "rarest": f"{population.frequencies.min():.2%}",
                "rarest of 1,000 drawn": min(sampled_counts(name, USERS, floor_share)),
                "source": population.source,
                "limits": population.limits,
            }
        )
    return records


def write_csv(path: Path, records: Sequence[Record]) -> None:
    """Write records as CSV; a record that lacks a column leaves it empty."""
    # In the order of first appearance, so that files of two runs can be compared.
    columns: dict[str, None] = {}
    for record in records:
        columns |= dict.fromkeys(record)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)

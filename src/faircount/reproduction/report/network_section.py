"""The section of the report about surveys over the network."""

from collections.abc import Iterator

from faircount.reproduction.network.runs import COUNT_LEVEL_RUNS, NetworkRuns
from faircount.reproduction.report import page, tables
from faircount.reproduction.report.tables import Record
from faircount.reproduction.studies import table2
from faircount.reproduction.studies.study import Value
from faircount.reproduction.studies.weighted_groups import NOISE

# OWA has the weights of VWA, so that its errors are the same; network.csv has both.
SHOWN = {"vwa": "OWA/VWA", "uwa": "UWA", "cpa": "CPA"}


def render_network(runs: NetworkRuns) -> Iterator[str]:
    """What the surveys gave, beside the theory that the count level agrees with."""
    yield page.render_heading("Through whole surveys over the network", "network")
    yield page.render_paragraph(
        f"Every cell of Figure 4 and Table II was also run once as surveys: {runs.users} users in "
        f"four levels, a survey with DPDS for each level in the topology explicit, with both "
        "servers as processes and every client over HTTP on this machine, and one survey of "
        f"everybody at the smallest epsilon; {runs.surveys} surveys, seed {runs.seed} (of answers "
        "and levels; the coins are the operating system's). The results were combined as "
        "faircount survey result does. Beside each error is the average of "
        f"{COUNT_LEVEL_RUNS} runs of the same cell at count level. One run scatters widely: z is "
        "its distance from theory in standard deviations of one run."
    )
    columns = {"study": "study", "data": "data", "setting": "setting"}
    for method, heading in SHOWN.items():
        columns |= {
            method: heading,
            f"counts_{method}": "count level",
            f"theory_{method}": "theory",
            f"z_{method}": "z",
        }
    caption = (
        "Squared errors summed over the items, against the groups' own truth. Errors against the "
        "population are in network.csv."
    )
    yield page.render_table(_list_cells(runs), columns, caption)
    yield page.render_table(
        tables.list_checks(runs.checks),
        {
            "study": "study",
            "averages": "errors",
            "ratio": "measured over expected",
            "chance_together": "chance, all together",
            "chance_single": "chance, one of so many",
            "result": "result",
        },
        "Do the surveys agree with the theory?",
    )
    yield page.render_table(
        [_describe_weights(runs, setting) for setting in runs.weights],
        {"setting": "setting", "printed": "the paper", "ours": "in the combined results"},
        "Weights of OWA/VWA",
    )


def _list_cells(runs: NetworkRuns) -> list[dict[str, Value]]:
    rows: dict[tuple[str, str, str], dict[str, Value]] = {}
    for line, counted in zip(runs.lines, runs.count_level, strict=True):
        if line.against != NOISE or line.method not in SHOWN:
            continue
        place = (line.study, str(line.point["data"]), str(line.point["setting"]))
        row = rows.setdefault(place, dict(zip(("study", "data", "setting"), place, strict=True)))
        row[line.method] = float(f"{line.mean:.3g}")
        row[f"counts_{line.method}"] = float(f"{counted:.3g}")
        row[f"theory_{line.method}"] = float(f"{line.expected.mean:.3g}")
        row[f"z_{line.method}"] = round(line.z, 1)
    return list(rows.values())


def _describe_weights(runs: NetworkRuns, setting: str) -> Record:
    ours = ", ".join(f"{weight:.4f}" for weight in runs.weights[setting])
    printed = ", ".join(f"{weight:.4f}" for weight in table2.WEIGHTS[setting])
    return {"setting": setting, "printed": printed, "ours": ours}

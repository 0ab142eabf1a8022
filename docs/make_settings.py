"""Writes docs/settings.md from the settings themselves. `--check` fails if the page is out of date."""

from typing import Any

import msgspec
from page import write

from faircount.service.settings import AggregatorSettings, CoordinatorSettings, ServerSettings, environment_name

HEAD = """# Settings of the servers

Made by `python docs/make_settings.py`; a test fails when this page is out of date. [Running a survey](operations.md) shows them at work.

A setting stands in a file (TOML, `--settings FILE`), in the environment, or among a command's options; the last one wins. A name that is not
listed here is refused.
"""


def settings_table(kind: type[ServerSettings]) -> list[tuple[str, str, str, str]]:
    """Name, name in the environment, usual value and meaning of every setting."""
    described = {each.name: each for each in msgspec.inspect.type_info(kind).fields}
    return [
        (name, environment_name(kind, name), str(field.default), _meaning(field.type))
        for name, field in described.items()
    ]


def _meaning(of: Any) -> str:
    return str((of.extra_json_schema or {}).get("description", ""))


def table(kind: type[ServerSettings], rows: list[tuple[str, str, str, str]]) -> str:
    lines = [
        f"| `{name}` | `{environment}` | {f'`{usual}`' if usual else ''} | {words} |"
        for name, environment, usual, words in rows
    ]
    return "\n".join(["| setting | in the environment | unless set | |", "|---|---|---|---|", *lines]) + "\n"


def render() -> str:
    return "\n".join([
        HEAD,
        f"## faircount coordinator (S1), port {CoordinatorSettings.usual_port}\n", table(CoordinatorSettings, settings_table(CoordinatorSettings)),
        f"## faircount aggregator (S2), port {AggregatorSettings.usual_port}\n", table(AggregatorSettings, settings_table(AggregatorSettings)),
    ])  # fmt: skip


if __name__ == "__main__":
    write("settings.md", render())

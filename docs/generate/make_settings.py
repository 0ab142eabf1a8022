"""Writes docs/reference/settings.md from the settings themselves. `--check` fails if the page is
out of date.
"""

from typing import Any

import msgspec
from page import write

from faircount.server.common.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    ServerSettings,
    environment_name,
)

HEAD = """# Settings of the servers

Made by `python docs/generate/make_settings.py`; a test fails when this page is out of date.
[Operate two servers](../how-to/operate-two-servers.md) shows them in use.

Settings come from a file (TOML, `--settings FILE`), from the environment, or from a command's
options; the later of these wins. Unknown names are refused.
"""


def settings_table(kind: type[ServerSettings]) -> list[tuple[str, str, str, str]]:
    """Name, name in the environment, usual value and meaning of every setting."""
    described = {setting.name: setting for setting in msgspec.inspect.type_info(kind).fields}
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
    return (
        "\n".join(
            ["| setting | environment variable | default | meaning |", "|---|---|---|---|", *lines]
        )
        + "\n"
    )


def render() -> str:
    return "\n".join([
        HEAD,
        f"## faircount coordinator (S1), port {CoordinatorSettings.default_port}\n", table(CoordinatorSettings, settings_table(CoordinatorSettings)),
        f"## faircount aggregator (S2), port {AggregatorSettings.default_port}\n", table(AggregatorSettings, settings_table(AggregatorSettings)),
    ])  # fmt: skip


if __name__ == "__main__":
    write("reference/settings.md", render())

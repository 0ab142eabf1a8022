"""The files in deploy/ name commands, options and settings that there are."""

import configparser
import re
import shlex
from pathlib import Path

import click
import pytest

from faircount.cli import main
from faircount.service.settings import AggregatorSettings, CoordinatorSettings, settings_table

DEPLOY = Path(__file__).parents[2] / "deploy"
ROLES = {"coordinator": CoordinatorSettings, "aggregator": AggregatorSettings}


def checked(arguments: list[str], role: str) -> None:
    """The command reads these arguments; nothing is started."""
    name, *others = arguments
    assert name == role
    command = main.get_command(click.Context(main), name)
    assert command is not None
    context = command.make_context(name, others)
    assert not context.args


@pytest.mark.parametrize("role", ROLES)
def test_the_unit_of_systemd_starts_a_command_that_there_is(role: str) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # keys as they are written
    unit.read(DEPLOY / f"faircount-{role}.service")
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/bin/faircount")
    checked(arguments, role)
    state = unit["Service"]["StateDirectory"]
    assert arguments[arguments.index("--data") + 1] == f"/var/lib/{state}"


@pytest.mark.parametrize("role", ROLES)
def test_the_compose_file_names_settings_that_there_are(role: str) -> None:
    text = (DEPLOY / f"compose-{role}.yaml").read_text()
    (line,) = re.findall(r"^ +command: (.*)$", text, re.MULTILINE)
    checked(shlex.split(line), role)
    known = {environment for _, environment, _, _ in settings_table(ROLES[role])}
    named = set(re.findall(r"^ +(FAIRCOUNT_\w+):", text, re.MULTILINE))
    assert named
    assert named <= known
    assert f"{ROLES[role].usual_port}:{ROLES[role].usual_port}" in text
    volumes = dict(each.split(":") for each in re.findall(r"^ +- (\w+:/\w+)$", text, re.MULTILINE))
    assert set(volumes) == {"data", "keys", "anchor"}  # apart, so that a backup of one is none of the others


def test_the_image_installs_what_the_servers_need() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert "[service]" in text
    assert 'ENTRYPOINT ["faircount"]' in text

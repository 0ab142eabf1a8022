"""The files in deploy/ name commands, options and settings that there are."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it ships no type information
from make_settings import settings_table
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from faircount.cli import main
from faircount.server.common.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    read_settings,
)

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
    data, keys, anchor = (f"/var/lib/{name}" for name in unit["Service"]["StateDirectory"].split())
    assert arguments[arguments.index("--data") + 1] == data
    # Apart, so that a backup of one is none of the others.
    environment = re.findall(
        r"^Environment=(\w+)=(.*)$",
        (DEPLOY / f"faircount-{role}.service").read_text(),
        re.MULTILINE,
    )
    settings = read_settings(ROLES[role], None, {"data": data}, dict(environment))
    assert (str(settings.key_folder), str(settings.anchor_folder)) == (keys, anchor)
    assert len({data, keys, anchor}) == 3
    assert not any(folder.startswith(f"{data}/") for folder in (keys, anchor))


@pytest.mark.parametrize("role", ROLES)
def test_systemd_understands_the_unit(role: str, tmp_path: Path) -> None:
    """Where systemd is installed; the program is one that there is on this machine."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    unit = tmp_path / f"faircount-{role}.service"
    text = (DEPLOY / unit.name).read_text()
    unit.write_text(text.replace("/opt/faircount/bin/faircount", sys.executable))
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (
        0,
        [],
    )
    unit.write_text(unit.read_text().replace("DynamicUser=yes", "DynamicUzer=yes"))
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert "DynamicUzer" in done.stderr  # it does look


@pytest.mark.parametrize("role", ROLES)
def test_the_compose_file_is_yaml_with_one_service(role: str) -> None:
    read = yaml.safe_load((DEPLOY / f"compose-{role}.yaml").read_text())
    (service,) = read["services"]
    assert (service, set(read["volumes"])) == (role, {"data", "keys", "anchor"})


@pytest.mark.parametrize("role", ROLES)
def test_the_compose_file_names_names_settings_that_there_are(role: str) -> None:
    text = (DEPLOY / f"compose-{role}.yaml").read_text()
    (line,) = re.findall(r"^ +command: (.*)$", text, re.MULTILINE)
    checked(shlex.split(line), role)
    known = {environment for _, environment, _, _ in settings_table(ROLES[role])}
    named = set(re.findall(r"^ +(FAIRCOUNT_\w+):", text, re.MULTILINE))
    assert named
    assert named <= known
    assert f"{ROLES[role].default_port}:{ROLES[role].default_port}" in text
    volumes = dict(
        volume.split(":") for volume in re.findall(r"^ +- (\w+:/\w+)$", text, re.MULTILINE)
    )
    assert set(volumes) == {
        "data",
        "keys",
        "anchor",
    }  # apart, so that a backup of one is none of the others


def test_the_image_installs_what_the_servers_need() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert "[service]" in text
    assert 'ENTRYPOINT ["faircount"]' in text


@pytest.mark.parametrize("role", ROLES)
def test_the_compose_file_trusts_the_gateway_of_its_network_alone(role: str) -> None:
    read = yaml.safe_load((DEPLOY / f"compose-{role}.yaml").read_text())
    trusted = read["services"][role]["environment"][f"FAIRCOUNT_{role.upper()}_TRUSTED_PROXIES"]
    (network,) = read["networks"]["default"]["ipam"]["config"]
    assert trusted == network["gateway"]
    assert len(ROLES[role](trusted_proxies=trusted).proxies) == 1


def locked(*names: str) -> dict[str, list[str]]:
    """What the image installs for these packages: lines by package."""
    command = [sys.executable, DEPLOY / "locked_requirements.py", *names]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    packages: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.match(r"[a-z]", line):
            name = line.partition("==")[0]
        packages.setdefault(name, []).append(line)
    return packages


def needed(name: str, extra: str = "") -> set[str]:
    """The packages that an installed one needs here, and those that they need."""
    found: set[str] = set()
    waiting = [Requirement(f"{name}[{extra}]" if extra else name)]
    while waiting:
        package = waiting.pop()
        for text in requires(package.name) or ():
            one = Requirement(text)
            marks = [{"extra": chosen} for chosen in (*package.extras, "")]
            is_needed = one.marker is None or any(one.marker.evaluate(mark) for mark in marks)
            if is_needed and canonicalize_name(one.name) not in found:
                found.add(canonicalize_name(one.name))
                waiting.append(one)
    return found


def test_the_image_installs_what_the_lock_names_and_what_is_needed() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert text.count("--require-hashes") == 2
    assert "--no-index" in text
    service = locked("faircount[service]")
    assert needed("faircount", "service") <= set(service)
    assert "pytest" not in service
    assert needed("hatchling") <= set(locked("hatchling"))
    lock = (DEPLOY.parent / "requirements.lock").read_text()
    for lines in service.values():
        assert "\n".join(lines) in lock or all(line in lock for line in lines)
        assert any("--hash=sha256:" in line for line in lines)


def test_the_proxy_believes_nobody_and_forwards_to_the_coordinator() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("proxy_pass http://127.0.0.1:8461;") == text.count("location ") == 2
    assert text.count("X-Forwarded-For $proxy_add_x_forwarded_for;") == 2
    assert "X-Forwarded-For $http" not in text
    assert text.count("{") == text.count("}")
    for limit in ("client_header_timeout", "client_body_timeout", "limit_conn ", "limit_req "):
        assert limit in text

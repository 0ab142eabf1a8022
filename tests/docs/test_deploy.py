"""The files in deploy/ name commands, options and settings that there are."""

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import requires
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it ships no type information
from make_settings import settings_table
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from quick_python import quick_python

from faircount.cli import main
from faircount.demo.processes import free_port
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


def test_the_demonstration_waits_for_no_tool_of_development() -> None:
    makefile = (DEPLOY.parent / "Makefile").read_text()
    named = re.search(r"^DEMO := (.+)$", makefile, re.MULTILINE)
    assert named is not None
    first = locked(*shlex.split(named[1]))
    for name, extra in (("faircount", "service"), ("hatchling", ""), ("editables", "")):
        assert needed(name, extra) <= set(first)
    assert not {"pytest", "mypy", "matplotlib", "pyarrow", "playwright"} & set(first)
    assert len(re.findall(r"^demo: \$\(DEMO_STAMP\) ", makefile, re.MULTILINE)) == 1
    # Both parts are checked against their hashes, and name no place that they come from.
    assert makefile.count("--require-hashes -r $(VENV)/") == 2
    others = locked("--others", *shlex.split(named[1]))
    lock = (DEPLOY.parent / "requirements.lock").read_text()
    assert set(first).isdisjoint(others)
    assert set(first) | set(others) == set(re.findall(r"^([a-z].*?)==", lock, re.MULTILINE))
    assert "://" not in lock


def test_the_proxy_believes_nobody_and_forwards_to_the_coordinator() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("proxy_pass http://127.0.0.1:8461;") == text.count("location ") == 2
    assert text.count("X-Forwarded-For $proxy_add_x_forwarded_for;") == 2
    assert "X-Forwarded-For $http" not in text
    assert text.count("{") == text.count("}")
    for limit in ("client_header_timeout", "client_body_timeout", "limit_conn ", "limit_req "):
        assert limit in text


# --- the same commands, run as the files name them --------------------------------------------

START_SECONDS = 90
STOP_SECONDS = 60


def start_and_stop(arguments: list[str], environment: dict[str, str], folder: Path) -> set[str]:
    """Run a server until it listens, and stop it in order; the folders that it has made."""
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [quick_python(), "-m", "faircount", *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stderr=output,
        )
    try:
        end = time.monotonic() + START_SECONDS
        while "listening" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        server.terminate()
        # systemd counts both as a clean end.
        assert server.wait(STOP_SECONDS) in (0, -signal.SIGTERM), log.read_text()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    return {path.name for path in folder.iterdir() if path.is_dir()}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_command_of_the_unit_runs_with_its_environment(role: str, tmp_path: Path) -> None:
    text = (DEPLOY / f"faircount-{role}.service").read_text()
    (line,) = re.findall(r"^ExecStart=/opt/faircount/bin/faircount (.*)$", text, re.MULTILINE)
    settings = tmp_path / f"{role}.toml"
    settings.write_text(f'operator = "Somebody"\nport = {free_port()}\nprivate_port = -1\n')

    def here(value: str) -> str:
        return value.replace("/var/lib", str(tmp_path)).replace("/etc/faircount", str(tmp_path))

    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    here_environment = {name: here(value) for name, value in environment.items()}
    made = start_and_stop(shlex.split(here(line)), here_environment, tmp_path)
    state = f"faircount-{role}"
    assert {state, f"{state}-keys", f"{state}-anchor"} <= made
    assert (tmp_path / state / "owner-token").exists()
    assert not (tmp_path / state / "keys").exists()


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_command_of_the_container_runs_with_its_environment(role: str, tmp_path: Path) -> None:
    service = yaml.safe_load((DEPLOY / f"compose-{role}.yaml").read_text())["services"][role]
    folders = [volume.partition(":")[2] for volume in service["volumes"]]

    def here(value: str) -> str:
        return f"{tmp_path}{value}" if value in folders else value

    environment = {name: here(str(value)) for name, value in service["environment"].items()}
    # The container's own network is replaced by the loopback interface, and its ports by free ones.
    arguments = [here(word) for word in shlex.split(service["command"])]
    arguments[arguments.index("0.0.0.0")] = "127.0.0.1"  # noqa: S104 - it is what is replaced
    arguments += ["--port", str(free_port()), "--private-port", "-1"]
    made = start_and_stop(arguments, environment, tmp_path)
    assert {"data", "keys", "anchor"} <= made
    assert (tmp_path / "data" / "owner-token").exists()
    assert not (tmp_path / "data" / "keys").exists()


# --- compose files, by the keys of the Compose Specification that they use --------------------

SERVICE_KEYS = {
    "image": str,
    "command": str,
    "restart": str,
    "read_only": bool,
    "environment": dict,
    "ports": list,
    "volumes": list,
}
RESTARTS = ("no", "always", "on-failure", "unless-stopped")
PORT = re.compile(r"127\.0\.0\.1:[0-9]{1,5}:[0-9]{1,5}")
VOLUME = re.compile(r"[a-z]+:(/[a-z]+)+")


def check_compose(document: dict[str, Any]) -> None:
    """Fail for what Docker would not understand, or would understand otherwise."""
    assert set(document) == {"services", "volumes", "networks"}
    for service in document["services"].values():
        for key, value in service.items():
            assert isinstance(value, SERVICE_KEYS[key]), key
        assert service["restart"] in RESTARTS
        # Docker refuses lists, and null would take the value from the environment of the host.
        assert all(isinstance(value, str) for value in service["environment"].values())
        # Without an address a port would be open to the network, past the firewall of the host.
        assert all(PORT.fullmatch(port) for port in service["ports"])
        for volume in service["volumes"]:
            assert VOLUME.fullmatch(volume)
            assert volume.partition(":")[0] in document["volumes"]
    for network in document["networks"].values():
        (config,) = network["ipam"]["config"]
        assert ip_address(config["gateway"]) in ip_network(config["subnet"])


@pytest.mark.parametrize("role", ROLES)
def test_docker_would_understand_the_compose_file(role: str) -> None:
    check_compose(yaml.safe_load((DEPLOY / f"compose-{role}.yaml").read_text()))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("restart: always", "restart: ever"),
        ("read_only: true", "readonly: true"),
        ("127.0.0.1:8461:8461", "8461:8461"),
        ("- keys:/keys", "- secrets:/keys"),
        ("gateway: 172.31.61.1", "gateway: 172.31.62.1"),
        ("FAIRCOUNT_COORDINATOR_KEYS: /keys", "FAIRCOUNT_COORDINATOR_KEYS:"),
    ],
)
def test_a_planted_mistake_in_a_compose_file_is_noticed(right: str, wrong: str) -> None:
    text = (DEPLOY / "compose-coordinator.yaml").read_text()
    assert text.count(right) == 1
    with pytest.raises((AssertionError, KeyError)):
        check_compose(yaml.safe_load(text.replace(right, wrong)))

"""A token is revoked while two workers of one server run: both refuse it at once."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from quick_python import quick_processes

from faircount.cli import main
from faircount.demo.processes import Process, free_port


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_both_workers_refuse_a_revoked_token_at_once(
    tmp_path: Path, postgresql_database: Callable[[], str]
) -> None:
    # A SQLite database has one process; several workers share one on PostgreSQL.
    data = tmp_path / "s2"
    settings = tmp_path / "aggregator.toml"
    settings.write_text(f'data = "{data}"\ndatabase = "{postgresql_database()}"\n')
    place = ("--settings", str(settings))
    ports = (free_port(), free_port())
    workers: list[Process] = []
    try:
        for port in ports:
            command = ("faircount", "aggregator", *place, "--port", str(port))
            with quick_processes():
                workers.append(
                    Process.start((*command, "--private-port", "-1"), tmp_path / f"{port}.log")
                )
        for worker, port in zip(workers, ports, strict=True):
            worker.wait_until(lambda port=port: is_listening(port), 120, "the aggregator")
        token = invoke("token", "add", "aggregator", "owner", "--name", "Ada", *place).strip()
        assert [status(port, token) for port in ports] == [409, 409]  # no such population
        (holder,) = re.findall(
            r"([0-9a-f]{16}) +Ada", invoke("token", "list", "aggregator", *place)
        )
        invoke("token", "revoke", "aggregator", holder, *place)
        assert [status(port, token) for port in ports] == [401, 401]
        fresh = invoke("token", "rotate", "aggregator", holder, *place).strip()
        assert [status(port, fresh) for port in ports] == [409, 409]
        access = ("--address", f"http://127.0.0.1:{ports[1]}")
        token_file = ("--token-file", str(data / "operator-token"))
        assert "survey" in invoke("operator", "surveys", *access, *token_file)
        done = CliRunner().invoke(
            main, ["operator", "erase", "00" * 16, "--yes", *access, *token_file]
        )
        assert (done.exit_code, "no such survey" in done.output) == (2, True)
    finally:
        for worker in workers:
            worker.stop()


def is_listening(port: int) -> bool:
    try:
        return status(port, "unknown") == 401
    except httpx.TransportError:
        return False


def status(port: int, token: str) -> int:
    """What an owner's call with this token is answered."""
    address = f"http://127.0.0.1:{port}/v1/populations/people"
    return httpx.get(address, headers={"Authorization": f"Bearer {token}"}).status_code

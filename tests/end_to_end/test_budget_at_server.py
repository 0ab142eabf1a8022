"""`faircount budget` with the address of the aggregator instead of a file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from faircount.cli import main
from faircount.demo.processes import Process, free_port


@pytest.mark.slow
def test_a_budget_is_opened_and_shown_at_the_aggregator_and_never_raised(tmp_path: Path) -> None:
    port = str(free_port())
    data = tmp_path / "s2"
    token = data / "owner-token"
    arguments = ("faircount", "aggregator", "--data", str(data), "--port", port)
    server = Process.start((*arguments, "--private-port", "-1"), tmp_path / "log")
    address = ["budget", f"http://127.0.0.1:{port}"]
    line = [*address, "--population", "our people", "--token-file", str(token)]
    try:
        server.wait_until(token.exists, 120, "the aggregator")
        opened = CliRunner().invoke(main, [*line, "--epsilon", "3", "--delta", "1e-6", "--json"])
        assert opened.exit_code == 0, opened.output
        (population,) = json.loads(opened.output)["populations"]
        assert (population["population"], population["epsilon"]) == ("our people", 3)
        assert (population["spent"]["epsilon"], population["runs"]) == (0, [])
        shown = CliRunner().invoke(main, line)
        assert "our people: epsilon 0 of 3" in shown.output
        raised = CliRunner().invoke(main, [*line, "--epsilon", "4", "--delta", "1e-6"])
        assert (raised.exit_code, "not raised" in raised.output) == (2, True)
        without_token = CliRunner().invoke(main, address)
        assert (without_token.exit_code, "--token-file" in without_token.output) == (2, True)
    finally:
        server.stop()

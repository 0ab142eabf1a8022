"""`faircount budget` with the address of S2 instead of a file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from faircount.cli import main
from faircount.service.processes import Process, free_port


@pytest.mark.slow
def test_a_budget_is_opened_and_shown_at_s2_and_never_raised(tmp_path: Path) -> None:
    port, token = free_port(), tmp_path / "s2" / "owner-token"
    arguments = ("faircount", "aggregator", "--data", str(tmp_path / "s2"), "--port", str(port), "--private-port", "-1")
    server = Process.start(arguments, tmp_path / "log")
    line = ["budget", f"http://127.0.0.1:{port}", "--population", "our people", "--token-file", str(token)]
    try:
        server.wait_until(token.exists, 120, "S2")
        made = CliRunner().invoke(main, [*line, "--epsilon", "3", "--delta", "1e-6", "--json"])
        assert made.exit_code == 0, made.output
        (said,) = json.loads(made.output)["populations"]
        assert (said["population"], said["epsilon"], said["spent"]["epsilon"], said["runs"]) == ("our people", 3, 0, [])
        shown = CliRunner().invoke(main, line)
        assert "our people: epsilon 0 of 3" in shown.output
        raised = CliRunner().invoke(main, [*line, "--epsilon", "4", "--delta", "1e-6"])
        assert (raised.exit_code, "not raised" in raised.output) == (2, True)
        alone = CliRunner().invoke(main, line[:2])
        assert (alone.exit_code, "--token-file" in alone.output) == (2, True)
    finally:
        server.stop()

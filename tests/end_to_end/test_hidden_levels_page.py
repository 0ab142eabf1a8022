"""The guide "Let people choose their privacy level" runs as it is written; only the ports differ."""

from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from quick_python import quick_python


@pytest.mark.slow
def test_levels_go_as_the_guide_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planned, (_, serve), *blocks = blocks_of("how-to/hidden-levels.md")
    assert serve == SERVE
    with served_trial(tmp_path, quick_python()):
        printed = "\n".join(
            run_block(kind, block, tmp_path, quick_python()) for kind, block in (planned, *blocks)
        )
    text = " ".join(printed.split())
    assert "One level of 0.45 for all would give ±1.5 points" in text
    assert "very strong: at most 62.3 % sure which one you chose" in text
    assert "119 simulated people have answered" in text
    assert "server-levels, 120 people counted" in text
    assert "If people who chose weaker protection answer like everybody:" in text
    assert "of 120 people were counted twice" in text
    assert (tmp_path / "tea.html").exists()

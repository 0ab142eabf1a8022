"""The guide "Ask people in public privacy levels" runs as it is written; only the ports differ."""

import csv
from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from quick_python import quick_python


@pytest.mark.slow
def test_levels_are_asked_and_combined_as_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (_, serve), *blocks = blocks_of("how-to/public-levels.md")
    assert serve == SERVE
    with served_trial(tmp_path, quick_python()):
        printed = [run_block(kind, block, tmp_path, quick_python()) for kind, block in blocks]
    asked, planned, combined, python = (" ".join(text.split()) for text in printed)
    assert "All levels together have an error of ±" in asked
    assert "tier: strong (public level, epsilon 0.5)" in asked
    assert "150 people counted, 3 items" in asked
    assert "it is right only if the levels answer alike" in asked
    # The numbers that the page names for the paper's setting s1.
    assert "combine with cpa: standard error 3.7%" in planned
    assert "the groups by size (uwa) have 3.9%" in planned
    assert "total has 1.4%, and so has one level of 0.27 for all" in planned
    assert "100 people counted, 3 items" in combined
    assert python.endswith("100 people")
    with (tmp_path / "tiers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["weights"] == "uwa"]
    assert sum(float(row["estimate"]) for row in rows) == pytest.approx(1)
    assert "it is right only if the levels answer alike" in (tmp_path / "tiers.html").read_text()

"""The tutorial "Your first survey" runs as it is written; only the ports differ."""

from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from quick_python import quick_python


@pytest.mark.slow
def test_the_first_survey_goes_as_the_tutorial_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (_, serve), *blocks = blocks_of("tutorials/first-survey.md")
    assert serve == SERVE
    with served_trial(tmp_path, quick_python()):
        printed = "\n".join(
            run_block(kind, block, tmp_path, quick_python()) for kind, block in blocks
        )
    assert "117 of 120 people" in printed
    assert "117 people counted, 3 items" in printed
    assert "counts your answer" in printed

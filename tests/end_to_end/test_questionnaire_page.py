"""The guide "Ask several questions in a survey" runs as it is written; only the ports differ."""

from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from quick_python import quick_python


@pytest.mark.slow
def test_the_questionnaire_goes_as_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (_, serve), *blocks = blocks_of("how-to/ask-several-questions-in-a-survey.md")
    assert serve == SERVE
    with served_trial(tmp_path, quick_python()):
        printed = "\n".join(
            run_block(kind, block, tmp_path, quick_python()) for kind, block in blocks
        )
    text = " ".join(printed.split())
    assert "3. What is missing in the canteen? at most 2 of 4" in text
    assert "This covers all your answers together" in text
    assert "148 simulated people have answered" in text
    assert "150 people counted, 5 questions" in text
    assert "does not apply" in text
    assert "(1, below 1e-30)-DP, replace-one" in text
    assert (tmp_path / "staff.html").exists()
    assert "Lab (40 of 40) Sales (55 of 55) Board (4 of 4)" in text
    assert "Board: with 4 people counted, the error of question 1 is ±" in text

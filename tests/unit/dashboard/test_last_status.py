"""The last known status of a survey: kept whoever asks at the same time, and never in the way."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from faircount.dashboard.last_status import last_status, remember_status
from faircount.owner.folder import SurveyFolder


def status_with(responses: int) -> dict[str, Any]:
    return {"phase": "submitting", "phase_index": 0, "responses": responses, "invited": 1000}


def test_threads_that_keep_it_at_the_same_time_do_not_fail(tmp_path: Path) -> None:
    folder = SurveyFolder(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        # Taken as a list: an error of any of them is raised.
        list(pool.map(lambda count: remember_status(folder, status_with(count)), range(100)))
    assert json.loads(folder.status_file.read_bytes())["invited"] == 1000
    assert [path.name for path in tmp_path.iterdir()] == [folder.status_file.name]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    folder = SurveyFolder(tmp_path / "deleted")
    remember_status(folder, status_with(3))
    assert last_status(folder) is None

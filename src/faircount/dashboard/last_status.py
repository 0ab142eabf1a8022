"""The last known status of a survey, for the time in which its coordinator cannot be reached.

It is kept in the survey's folder, because the owner may start the dashboard while a server is down.
"""

import json
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from faircount.core.errors import StorageError
from faircount.core.files import write_durably
from faircount.owner.folder import SurveyFolder
from faircount.protocol.survey.phases import Phase

FACTS = ("phase", "phase_index", "responses", "invited")
"""What a page shows of a status that may be out of date."""

_WRITING = Lock()


def remember_status(folder: SurveyFolder, status: dict[str, Any]) -> None:
    """Keep a status; the file is written only if something has changed."""
    facts = {name: status[name] for name in FACTS}
    before = last_status(folder)
    if before is not None and all(before[name] == facts[name] for name in FACTS):
        return
    now = datetime.now(tz=UTC).isoformat(timespec="seconds")
    kept = json.dumps({**facts, "at": now}).encode() + b"\n"
    # One thread at a time: a page may ask for the status while an action of the owner does, and
    # both would write the same temporary file. The status itself is known, so the owner need not
    # be told that it could not be kept, as when the survey's folder is being deleted.
    with _WRITING, suppress(StorageError):
        write_durably(folder.status_file, kept)


def last_status(folder: SurveyFolder) -> dict[str, Any] | None:
    """The status that was kept last; None if there is none that can be read."""
    try:
        kept = json.loads(folder.status_file.read_bytes())
        Phase(kept["phase"])
        datetime.fromisoformat(kept["at"])
        return {name: kept[name] for name in (*FACTS, "at")}
    # Only a help for the owner: without it the page says that nothing is known.
    except (OSError, ValueError, KeyError, TypeError):
        return None

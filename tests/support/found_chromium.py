"""Which Chromium the tests of the pages run."""

import os
from pathlib import Path

from faircount.core.errors import FaircountError

# The shell is Chromium without windows: the same engine, network and storage. A page in a context
# of its own takes it a quarter of the CPU.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FOLDERS = ("/usr/bin", "/usr/local/bin", "/snap/bin")


def found_chromium() -> str:
    """Where Debian, or another system, has put it; FAIRCOUNT_CHROMIUM names another one."""
    if named := os.environ.get("FAIRCOUNT_CHROMIUM"):
        return named
    for name in NAMES:
        for folder in FOLDERS:
            if (path := Path(folder, name)).exists():
                return str(path)
    raise FaircountError(
        "the tests of the page need Chromium: run make browser, or install the package chromium"
    )

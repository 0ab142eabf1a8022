"""The README as the package index shows it: its links lead into the repository, where the index cannot follow.

With `Repository` among the project's addresses they become absolute; without it their words stay and the link goes.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)\s]+\)\n*")  # the index cannot show what is only in the repository


def readable(text: str, repository: str | None) -> str:
    """The text without relative links and pictures."""
    text = IMAGE.sub("", text)
    if repository is None:
        return LINK.sub(r"\1", text)
    return LINK.sub(lambda found: f"[{found[1]}]({repository.rstrip('/')}/blob/main/{found[2]})", text)


class ReadmeHook(MetadataHookInterface):
    """Fills in the project's readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the project table."""
        repository = metadata.get("urls", {}).get("Repository")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readable(text, repository)}

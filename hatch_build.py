"""The README as the package index shows it, without links and pictures that lead nowhere there.

Relative links point into the repository. If the project names a `Repository` among its addresses,
they become absolute; otherwise only their text stays.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")
PICTURE = (
    r"!\[[^\]]*\]\((?!https?://)[^)\s]+\)"  # the index cannot show what is only in the repository
)
TABLE_OF_PICTURES = re.compile(rf"^\|.*\|\n\|[-| ]+\|\n\|(?: {PICTURE} \|)+\n*", re.MULTILINE)
IMAGE = re.compile(rf"{PICTURE}\n*")


def resolve_links(text: str, repository: str | None) -> str:
    """The text without relative links and pictures."""
    text = IMAGE.sub("", TABLE_OF_PICTURES.sub("", text))
    if repository is None:
        return LINK.sub(r"\1", text)
    base = f"{repository.rstrip('/')}/blob/main"
    return LINK.sub(lambda link: f"[{link[1]}]({base}/{link[2]})", text)


class ReadmeHook(MetadataHookInterface):
    """Fills in the project's readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the project table."""
        repository = metadata.get("urls", {}).get("Repository")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        readme = resolve_links(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}

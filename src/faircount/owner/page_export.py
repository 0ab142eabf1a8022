"""The participant's page in a folder, for a web server that the coordinator does not control."""

from dataclasses import dataclass
from pathlib import Path

from faircount.core.errors import RefusedError
from faircount.core.files import write_durably
from faircount.owner.folder import PUBLIC, OwnerFile
from faircount.server.common.page_files import make_bundle, page_hash


def export_page(folder: Path, coordinator: str) -> str:
    """Write the page that calls this coordinator into a new folder, and return its hash."""
    bundle = make_bundle(coordinator)
    # Other files beside ours would be served too, and change the hash that people compute.
    if folder.exists() and any(folder.iterdir()):
        raise RefusedError(f"{folder} is not empty: choose another folder")
    for file in bundle.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, file.content, PUBLIC)
    return bundle.hash


@dataclass(frozen=True)
class PageFacts:
    """What an invitation says about the page, so that a participant can check or avoid it.

    hash: of all files of the page that participants are sent to
    server: the coordinator, for the installed program
    """

    hash: str
    server: str

    @classmethod
    def of(cls, owner: OwnerFile) -> "PageFacts":
        """The facts about the page of an owner's survey, as this version of faircount writes it."""
        server = owner.public_address
        is_elsewhere = bool(owner.page)
        return cls(make_bundle(server).hash if is_elsewhere else page_hash(), server)

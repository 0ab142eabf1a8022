"""A person's device on disk: the whole state of its part in a survey, written before anything is sent.

    "faircount device 1" newline | address of S1 newline | published parameters newline | stored form of the device

The file holds the answer and secret keys: its owner alone can read it. Losing it is a dropout, never a second answer.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from faircount.core.errors import FaircountError, MalformedError
from faircount.core.files import alone, private_folder, read_file, write_durably
from faircount.protocol import Device, SurveyParameters, decode_state, encode_state
from faircount.service.codes import Code

HEAD = b"faircount device 1"


@lru_cache(maxsize=64)
def parameters_of(published: bytes) -> SurveyParameters:
    """Cached: parsing computes every derived number again, and one program may take part many times."""
    return SurveyParameters.parse(published)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept: whom to ask, what was agreed to, and the device."""

    address: str
    published: bytes
    device: Device

    @property
    def parameters(self) -> SurveyParameters:
        """What the person agreed to take part in."""
        return parameters_of(self.published)


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """Where one device is kept."""

    path: Path

    def load(self) -> Kept | None:
        """What was written last; None if nothing was. What was damaged is refused."""
        if not self.path.exists():
            return None
        head, *lines = read_file(self.path, "it was there a moment ago").split(b"\n", 3)
        if head != HEAD or len(lines) != 3:
            raise FaircountError(f"{self.path} is no file of an answer: look whether it is the right one")
        try:
            return Kept(lines[0].decode(), lines[1], decode_state(Device, lines[2]))
        except (MalformedError, UnicodeDecodeError):
            raise FaircountError(f"{self.path} was changed or damaged: this answer cannot be continued") from None

    def save(self, kept: Kept) -> None:
        """Write all of it; when this returns it is on the disk."""
        write_durably(self.path, b"\n".join((HEAD, kept.address.encode(), kept.published, encode_state(kept.device))))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other program takes part with this device meanwhile: two could make two answers of one."""
        private_folder(self.path.parent)
        with alone(self.path):
            yield


def usual_file(code: Code) -> DeviceFile:
    """Where this device keeps its part in a survey, unless told: one file per invitation."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    name = f"{code.survey.hex()}-{code.invitation.user.hex()}.device"
    return DeviceFile(Path(data) / "faircount" / name)

"""A participation on disk: its whole state, written before anything that follows from it is sent.

    "faircount device 1" newline | address of the coordinator newline |
    published parameters newline | stored form of the client's state

The file holds the response and secret keys, so only its owner may read it. Whoever loses it drops
out of the survey, and can never be counted twice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from faircount.client.invitation_codes import Code
from faircount.core.errors import FaircountError, MalformedError
from faircount.core.files import lock_file, make_private_folder, read_file, write_durably
from faircount.protocol import ClientState, SurveyParameters, decode_state, encode_state

HEADER = b"faircount device 1"


# Parsing derives every number of a survey again, and one program may take part many times.
@lru_cache(maxsize=64)
def parse_parameters(published: bytes) -> SurveyParameters:
    """The parameters of a survey from their published bytes."""
    return SurveyParameters.parse(published)


@dataclass(frozen=True, slots=True)
class StoredParticipation:
    """The content of a state file.

    address: the coordinator
    published: the parameters that the participant agreed to
    client: the state of the client
    """

    address: str
    published: bytes
    client: ClientState

    @property
    def parameters(self) -> SurveyParameters:
        """The parameters that the participant agreed to."""
        return parse_parameters(self.published)


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file of one participation."""

    path: Path

    def load(self) -> StoredParticipation | None:
        """The state that was saved last, or None if there is none. A damaged file is refused."""
        if not self.path.exists():
            return None
        # At most three splits, because the stored state may contain newlines itself.
        header, *lines = read_file(self.path, "it was there a moment ago").split(b"\n", 3)
        if header != HEADER or len(lines) != 3:
            raise FaircountError(
                f"{self.path} is not a state file of faircount: check the path that you gave"
            )
        try:
            address = lines[0].decode()
            client = decode_state(ClientState, lines[2])
        except (MalformedError, UnicodeDecodeError):
            # Starting anew instead would send a second, different report for one invitation.
            raise FaircountError(
                f"{self.path} was changed or damaged: restore it from a copy, because without it "
                "this participation cannot go on"
            ) from None
        return StoredParticipation(address, lines[1], client)

    def save(self, stored: StoredParticipation) -> None:
        """Replace the file. When this returns, the new state survives a crash of the machine."""
        state = encode_state(stored.client)
        lines = (HEADER, stored.address.encode(), stored.published, state)
        write_durably(self.path, b"\n".join(lines))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other programs from using this file: two at once could send two reports."""
        make_private_folder(self.path.parent)
        with lock_file(self.path):
            yield


def default_state_file(code: Code) -> StateFile:
    """The file in the user's data folder, one per invitation."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    # Named after the user id and not the token: a listing of the folder reveals no secret.
    name = f"{code.survey.hex()}-{code.invitation.user.hex()}.device"
    return StateFile(Path(data) / "faircount" / name)

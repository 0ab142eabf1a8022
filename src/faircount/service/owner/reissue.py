"""A new invitation for somebody who has lost theirs unused: the old one admits nobody from then on.

What is about to be done is written down first. So a command that is interrupted goes on where it stopped when it is run
again, and no person is left with an invitation that the owner does not know.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbelow

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RemoteError
from faircount.core.files import write_durably
from faircount.protocol import Invitation
from faircount.service.codes import Code, read_code
from faircount.service.owner.invitations import Invited
from faircount.service.owner.survey import Survey

FIRST_PART, PARTS = 100_000, 900_000
"""Numbers of the parts in which S2 is told of single people, beyond those of the first list."""


@dataclass(frozen=True)
class Exchange:
    """One person's old and new invitation, and the part in which S2 hears of the new one."""

    person: str
    old: Code
    new: Code
    part: int

    def write(self, path: Path) -> None:
        """Before anything is done."""
        said = {"person": self.person, "old": self.old.text, "new": self.new.text, "part": self.part}
        write_durably(path, json.dumps(said).encode())

    @classmethod
    def read(cls, path: Path) -> "Exchange":
        """What was begun."""
        try:
            said = json.loads(path.read_bytes())
            return cls(said["person"], read_code(said["old"]), read_code(said["new"]), int(said["part"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise FaircountError(f"{path} is damaged: look into invitations.csv, then remove it") from None


def reissue(survey: Survey, person: str) -> Invited:
    """The new invitation of a person; refused if the old one was used, or nobody of that name is invited."""
    journal = survey.folder.path / "reissue.json"
    people = survey.invited()
    if journal.exists():
        _finish(survey, people, Exchange.read(journal), journal)
        people = survey.invited()
    found = [each for each in people if each.person == person]
    if not found:
        raise ParameterError("nobody of this name is invited: give the person as invitations.csv has it")
    old = found[0].code
    fresh = replace(old, invitation=Invitation.issue(old.invitation.params, SystemEntropy()))
    exchange = Exchange(person, old, fresh, FIRST_PART + randbelow(PARTS))
    exchange.write(journal)
    return _finish(survey, people, exchange, journal)


def _finish(survey: Survey, people: Sequence[Invited], exchange: Exchange, journal: Path) -> Invited:
    """Tell S2, then S1, then write it down; the files change only once S1 has agreed."""
    try:
        survey.servers.exchange(survey.params, exchange.old.invitation, exchange.new.invitation, exchange.part)
    except RemoteError:
        journal.unlink(missing_ok=True)
        raise
    after = Invited(exchange.person, exchange.new)
    survey.write_invitations([after if each.person == exchange.person else each for each in people])
    journal.unlink(missing_ok=True)
    return after

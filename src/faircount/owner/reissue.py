"""A new invitation for somebody who has lost theirs before using it.

The old invitation admits nobody from then on. The replacement is written into a journal file before
any server hears of it. A command that is interrupted is finished when it is run again, so there is
never an invitation at the servers that the owner does not know.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbelow

from faircount.client.invitation_codes import Code, read_code
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RemoteError
from faircount.core.files import write_durably
from faircount.owner.invitations import Invitee
from faircount.owner.survey import Survey
from faircount.protocol import Invitation

# Single invitations get random part numbers at the aggregator, beyond those of the first list.
FIRST_PART = 100_000
PARTS = 900_000


@dataclass(frozen=True)
class Replacement:
    """One person's old and new invitation, and the part number of the new one."""

    person: str
    old: Code
    new: Code
    part: int

    def write(self, path: Path) -> None:
        """Write the journal."""
        content = {
            "person": self.person,
            "old": self.old.text,
            "new": self.new.text,
            "part": self.part,
        }
        write_durably(path, json.dumps(content).encode())

    @classmethod
    def read(cls, path: Path) -> "Replacement":
        """Read the journal of a command that was interrupted."""
        try:
            content = json.loads(path.read_bytes())
            old = read_code(content["old"])
            new = read_code(content["new"])
            return cls(content["person"], old, new, int(content["part"]))
        except (OSError, ValueError, KeyError, TypeError):
            message = f"{path} is damaged: compare invitations.csv with a copy, then remove {path}"
            raise FaircountError(message).with_code("exchange_damaged", file=str(path)) from None


def reissue(survey: Survey, person: str) -> Invitee:
    """Replace a person's invitation; refused if it was used, or if nobody has this name."""
    journal = survey.folder.path / "reissue.json"
    if journal.exists():
        _finish(survey, Replacement.read(journal), journal)
    invitees = [invitee for invitee in survey.invitees() if invitee.person == person]
    if not invitees:
        message = "nobody of this name is invited: write the person as in invitations.csv"
        raise ParameterError(message).with_code("nobody_of_this_name")
    old = invitees[0].code
    new = replace(old, invitation=Invitation.issue(old.invitation.params, SystemEntropy()))
    replacement = Replacement(person, old, new, FIRST_PART + randbelow(PARTS))
    replacement.write(journal)
    return _finish(survey, replacement, journal)


def _finish(survey: Survey, replacement: Replacement, journal: Path) -> Invitee:
    """Register the new invitation, then write it into the files, then remove the journal."""
    old = replacement.old.invitation
    new = replacement.new.invitation
    # Read first: if the table is damaged, this stops before anything has changed.
    invitees = list(survey.invitees())
    try:
        survey.servers.replace_invitation(survey.params, old, new, replacement.part)
    except RemoteError:
        # The coordinator refused, so the old invitation is still the valid one.
        journal.unlink(missing_ok=True)
        raise
    after = Invitee(replacement.person, replacement.new)
    # The files change only now. If the program stops before, the journal still has the new code.
    for place, invitee in enumerate(invitees):
        if invitee.person == replacement.person:
            after = replace(invitee, code=replacement.new)
            invitees[place] = after
    survey.write_invitations(invitees)
    journal.unlink(missing_ok=True)
    return after

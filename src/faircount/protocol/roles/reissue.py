"""Another invitation for somebody who has lost theirs unused: the owner's wish, which the
coordinator grants before the claim.
"""

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator, invited_user
from faircount.protocol.roles.rows import RowReader, Step, StepRows
from faircount.protocol.survey.invitations import user_id

NOBODY = b""
"""What stands in the place of an access value that was exchanged: it is that of nobody."""


def reissued(s: Coordinator, old: bytes, new: bytes, reader: RowReader) -> Step[Coordinator]:
    """The coordinator, which admits the access value `new` instead of `old` from now on; done
    again, it changes nothing.
    """
    rows = StepRows(reader)
    user, known = invited_user(rows, old), invited_user(rows, new) is not None
    if known and user is None:
        return rows.step(s)
    if known or user is None:
        raise ProtocolError("only an invitation of this survey can be exchanged, and for a new one")
    # check: used-invitation - a person with a second invitation would answer twice
    if user in rows.first_messages or user in rows.withdrawn:
        raise ProtocolError("this invitation was used: what was sent with it stands")
    if s.manifest is not None or s.final is not None or s.roster:
        raise ProtocolError(
            "it is too late for another invitation: the coordinator has closed its list"
        )
    rows.invited.overwrite(user, NOBODY)
    rows.invited.overwrite(user_id(new), new)
    return rows.step(s)

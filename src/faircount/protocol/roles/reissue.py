"""Exchange an unused invitation for a new one, for a participant who has lost it.

The owner asks for it. The coordinator agrees until its list is closed: until the roster or the
manifest is fixed. A used invitation stays: otherwise an owner could take back what somebody has
answered, and answer again. Whoever has lost the device that answered is counted, and cannot
withdraw any more. The device that answered is told that the owner has asked.
"""

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator, invited_user
from faircount.protocol.roles.coordinator.notices import note
from faircount.protocol.roles.rows import RowReader, Step, StepRows
from faircount.protocol.survey.devices import Notice
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.wire.messages import Reason, reject

NOBODY = b""
"""Stored instead of an access value that was exchanged: it admits nobody."""

USED = "this invitation was used: what was sent with it counts"


def reissue(s: Coordinator, old: bytes, new: bytes, reader: RowReader) -> Step[Coordinator]:
    """The step that admits the access value `new` instead of `old`.

    A used invitation stays: then the step has a rejection, and writes down that the owner asked.

    Raises:
        ProtocolError: `old` admits nobody, or the list is closed
    """
    rows = StepRows(reader)
    user = invited_user(rows, old)
    is_known = invited_user(rows, new) is not None
    if is_known and user is None:
        # The same exchange was made before: the owner's call is repeated.
        return rows.step(s)
    if is_known or user is None:
        raise ProtocolError("only an invitation of this survey can be exchanged, and for a new one")
    # check: used-invitation - a person with a second invitation would answer twice
    if user in rows.first_messages or user in rows.withdrawn:
        note(rows, user, Notice.REISSUE_REFUSED)
        return rows.step(s, (reject(Reason.INVITATION_USED, USED),))
    if s.manifest is not None or s.final is not None or s.roster:
        raise ProtocolError(
            "it is too late for another invitation: the coordinator has closed its list"
        )
    rows.invited.overwrite(user, NOBODY)
    rows.invited.overwrite(user_id(new), new)
    return rows.step(s)

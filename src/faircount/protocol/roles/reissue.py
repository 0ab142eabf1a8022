"""Another invitation for somebody who has lost theirs unused: the owner's wish, which S1 grants before the claim."""

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator, invited_user
from faircount.protocol.survey.invitations import user_id

NOBODY = b""
"""What stands in the place of an access value that was exchanged: it is that of nobody."""


def reissued(s: Coordinator, old: bytes, new: bytes) -> Coordinator:
    """S1, which admits the access value `new` instead of `old` from now on; done again, it changes nothing."""
    user, known = invited_user(s, old), invited_user(s, new) is not None
    if known and user is None:
        return s
    if known or user is None:
        raise ProtocolError("only an invitation of this survey can be exchanged, and for a new one")
    if user in s.bodies or user in s.withdrawn:
        raise ProtocolError("this invitation was used: what was sent with it stands")
    if s.claim is not None or s.final is not None or s.roster:
        raise ProtocolError("it is too late for another invitation: S1 has closed its list")
    s.invited.exchange(user, NOBODY)
    s.invited.exchange(user_id(new), new)
    return s

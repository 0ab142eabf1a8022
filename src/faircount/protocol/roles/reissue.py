"""Another invitation for somebody who has lost theirs unused: the owner's wish, which S1 grants before the claim."""

from dataclasses import replace

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.invitations import user_id


def reissued(s: Coordinator, old: bytes, new: bytes) -> Coordinator:
    """S1, which admits the access value `new` instead of `old` from now on; done again, it changes nothing."""
    if new in s.invited and old not in s.invited:
        return s
    if old not in s.invited or new in s.invited:
        raise ProtocolError("only an invitation of this survey can be exchanged, and for a new one")
    if user_id(old) in s.bodies or user_id(old) in s.withdrawn:
        raise ProtocolError("this invitation was used: what was sent with it stands")
    if s.claim is not None or s.final is not None or s.roster:
        raise ProtocolError("it is too late for another invitation: S1 has closed its list")
    return replace(s, invited=s.invited - {old} | {new})

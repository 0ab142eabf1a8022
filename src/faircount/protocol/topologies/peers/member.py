"""A user of the peer topologies up to the sealed roster: key, credential, enrolment, and the roster it believes.

What a user draws is drawn once and kept: a retry sends the same bytes, and lost state is a dropout. The user
recomputes the digest from the very lines it will use, and compares with what S2 signed under the key in the parameters
it was invited to.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.protocol.roles.client import UserState
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.topologies.peers.messages import Enrolment, Peer, Roster
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import merkle_root, roster_digest, roster_leaves
from faircount.protocol.wire.messages import Reason, Rejected, Visit, rejected
from faircount.protocol.wire.roster_messages import Seal
from faircount.protocol.wire.sealing import KeyPair, RealSealing, Sealing
from faircount.protocol.wire.signing import unwrap


@dataclass(frozen=True)
class Member(UserState):
    """A user who enrolled. After `verify_roster` it knows its place and everybody's key; before, `index` is -1."""

    stored_version = 1
    params: SurveyParameters
    keys: KeyPair
    credential: bytes = field(repr=False)
    enrolment: Enrolment
    user: bytes
    sealing: Sealing = field(default_factory=RealSealing)
    roster: tuple[Peer, ...] = field(default=(), repr=False)
    digest: bytes = b""
    index: int = -1

    @property
    def n(self) -> int:
        """Users on the sealed roster."""
        return len(self.roster)

    def sealed_to_s2(self, info: bytes, plaintext: bytes, entropy: Entropy) -> bytes:
        """A blob that S2 alone opens."""
        secret = self.sealing.agree(self.keys, self.params.keys.box)
        if secret is None:
            raise ProtocolError("S2's key cannot be used: do not answer, ask the owner")
        return self.sealing.seal(secret, self.digest, info, plaintext, entropy)


def join(params: SurveyParameters, invitation: Invitation, entropy: Entropy, sealing: Sealing | None = None) -> Member:
    """Draw key and credential, and make the enrolment. Store the result before sending anything."""
    if invitation.params != params.digest:
        raise ProtocolError("the invitation is for other parameters: do not enrol, ask the owner")
    crypto = RealSealing() if sealing is None else sealing
    keys, credential = crypto.keypair(entropy), entropy.bytes(32)
    body = Enrolment(
        params.survey, invitation.access, keys.public, invitation.seal(keys.public), sha256(credential).digest()
    )
    return Member(params, keys, credential, body, invitation.user, crypto)


def visit(member: Member) -> Visit:
    """Ask S1 what there is to do."""
    if member.index < 0:
        raise ProtocolError("a user learns its place from the roster: ask for that first")
    return Visit(member.params.survey, member.index, member.credential)


def verify_roster(member: Member, message: Roster) -> Member | Rejected:
    """The member with its place in the roster; refused unless S2 signed exactly these lines and they will do."""
    seal = unwrap(member.params.keys.s2, Party.S2, message.seal)
    if not isinstance(seal, Seal):
        return rejected(Reason.UNSIGNED, "S2 did not sign this roster")
    if len(message.entries) > member.params.n_max:  # before the lines are built: S1 may send any number
        return rejected(Reason.TOO_FEW, "the roster is too small or too large")
    entries = tuple(message.entries)
    problem = _roster_problem(member, entries, seal)
    if problem is not None:
        return problem
    index = [each.user for each in entries].index(member.user)
    return replace(member, roster=entries, digest=seal.digest, index=index)


@lru_cache(maxsize=4)
def _root(entries: tuple[Peer, ...]) -> bytes:
    """Merkle root of a roster; cached for surveys played in memory, where everybody checks the same one."""
    return merkle_root(roster_leaves((each.user, each.public_key) for each in entries))


def _roster_problem(member: Member, entries: tuple[Peer, ...], seal: Seal) -> Rejected | None:
    problem = seal_problem(member, seal, len(entries), _root(entries))
    if problem is not None:
        return problem
    if len({each.public_key for each in entries}) != len(entries):
        return rejected(Reason.MALFORMED, "the roster names a key twice")
    if Peer(member.user, member.keys.public) not in entries:
        return rejected(Reason.UNKNOWN, "this user is not on the roster with its own key")
    return None


def seal_problem(member: Member, seal: object, n: int, root: bytes | None) -> Rejected | None:
    """Why what S2 signed is not the seal of a roster of n users with this root that the member may believe."""
    params = member.params
    if not isinstance(seal, Seal) or seal.survey != params.survey:
        return rejected(Reason.UNSIGNED, "S2 did not sign this roster")
    if root is None or (seal.n, seal.root) != (n, root) or seal.digest != roster_digest(params.digest, n, root):
        return rejected(Reason.WRONG_DIGEST, "S2 signed another roster than S1 shows")
    if member.digest not in (b"", seal.digest):
        return rejected(Reason.CONFLICT, "two rosters of one survey: do not go on")
    if not params.minimum <= n <= params.n_max:
        return rejected(Reason.TOO_FEW, "the roster is too small or too large")
    if params.topology.reveals_with_roster and params.keys.s2_commitment not in (
        NO_COMMITMENT,
        sha256(seal.revealed).digest(),
    ):
        return rejected(Reason.WRONG_DIGEST, "S2 revealed another value than it had committed to")
    return None

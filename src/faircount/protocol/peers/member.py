"""A member of a peer topology up to the confirmed roster: keys, credential, enrolment, roster.

Participants who share with each other need each other's keys, and the coordinator, which relays
them, could put in keys of its own. So the aggregator signs the root of the roster, after it has
checked the MAC that each invitation's key makes over the enrolled public key. A member recomputes
the digest from the very entries it will use, and compares it with what the aggregator signed under
the key in the parameters that the participant was invited to.

Everything is drawn once and kept: a retry sends the same bytes, and lost state is a dropout.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.protocol.peers.messages import Enrolment, PeerKey, Roster
from faircount.protocol.roles.client import TopologyClientState
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair, StandardCrypto
from faircount.protocol.wire.digests import entry_leaves, merkle_root, roster_digest
from faircount.protocol.wire.messages import PollRequest, Reason, Rejection, reject
from faircount.protocol.wire.roster_messages import RosterConfirmation
from faircount.protocol.wire.signing import SigningKey, verify_message


@dataclass(frozen=True)
class Member(TopologyClientState):
    """A participant who enrolled.

    After `verify_roster` it knows its place and everybody's key; before, `index` is -1.
    """

    stored_tag = "enrolled-client"
    params: SurveyParameters
    keys: KeyPair
    credential: bytes = field(repr=False)
    enrolment: Enrolment
    user: bytes
    device: SigningKey
    crypto: CryptoSuite = field(default_factory=StandardCrypto)
    roster: tuple[PeerKey, ...] = field(default=(), repr=False)
    digest: bytes = b""
    index: int = -1

    @property
    def n(self) -> int:
        """Number of members on the confirmed roster."""
        return len(self.roster)

    def encrypt_to_aggregator(self, info: bytes, plaintext: bytes, entropy: Entropy) -> bytes:
        """Encrypt so that only the aggregator decrypts."""
        secret = self.crypto.agree(self.keys, self.params.keys.encryption_key)
        if secret is None:
            raise ProtocolError("the aggregator's key cannot be used: do not answer, ask the owner")
        return self.crypto.encrypt(secret, self.digest, info, plaintext, entropy)


def enrol(
    params: SurveyParameters,
    invitation: Invitation,
    entropy: Entropy,
    crypto: CryptoSuite | None = None,
) -> Member:
    """Draw keys and credential, and make the enrolment. Store it before sending anything."""
    # The invitation binds the parameters by hash: other parameters may promise less privacy.
    if invitation.params != params.digest:
        raise ProtocolError("the invitation is for other parameters: do not enrol, ask the owner")
    crypto = StandardCrypto() if crypto is None else crypto
    keys = crypto.keypair(entropy)
    credential = entropy.bytes(32)
    device = SigningKey.generate(entropy)
    enrolment = Enrolment(
        params.survey,
        invitation.access,
        keys.public,
        invitation.authenticate_key(keys.public),
        sha256(credential).digest(),
        device.public,
    )
    return Member(params, keys, credential, enrolment, invitation.user, device, crypto)


def poll_request(member: Member) -> PollRequest:
    """Ask the coordinator what there is to do."""
    if member.index < 0:
        raise ProtocolError("a member learns its place from the roster: ask for that first")
    return PollRequest(member.params.survey, member.index, member.credential)


def verify_roster(member: Member, message: Roster) -> Member | Rejection:
    """The member with its place in the roster.

    Rejected unless the aggregator signed exactly these entries and they satisfy the parameters.
    """
    confirmation = verify_message(
        member.params.keys.aggregator, Party.AGGREGATOR, message.confirmation
    )
    if not isinstance(confirmation, RosterConfirmation):
        return reject(Reason.UNSIGNED, "The aggregator did not sign this roster")
    # check: roster-length - entries without end must be counted before they are built
    if len(message.entries) > member.params.n_max:
        return reject(Reason.TOO_FEW, "the roster is too small or too large")
    entries = tuple(message.entries)
    problem = _roster_problem(member, entries, confirmation)
    if problem is not None:
        return problem
    index = [entry.user for entry in entries].index(member.user)
    return replace(member, roster=entries, digest=confirmation.digest, index=index)


@lru_cache(maxsize=4)
def _root(entries: tuple[PeerKey, ...]) -> bytes:
    """Merkle root of a roster; cached for simulations, in which all clients check the same one."""
    return merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))


def _roster_problem(
    member: Member, entries: tuple[PeerKey, ...], confirmation: RosterConfirmation
) -> Rejection | None:
    problem = confirmation_problem(member, confirmation, len(entries), _root(entries))
    if problem is not None:
        return problem
    # One key under two ids would be one participant who holds two shares.
    if len({entry.public_key for entry in entries}) != len(entries):
        return reject(Reason.MALFORMED, "the roster names a key twice")
    # check: own-key-on-roster - the coordinator lists a key of its own for this user
    if PeerKey(member.user, member.keys.public) not in entries:
        return reject(Reason.UNKNOWN, "this user is not on the roster with its own key")
    return None


def confirmation_problem(
    member: Member, confirmation: object, n: int, root: bytes | None
) -> Rejection | None:
    """Why this does not confirm a roster of n members with this root; None if it does."""
    params = member.params
    if not isinstance(confirmation, RosterConfirmation) or confirmation.survey != params.survey:
        return reject(Reason.UNSIGNED, "The aggregator did not sign this roster")
    if (
        root is None
        or (confirmation.n, confirmation.root) != (n, root)
        or confirmation.digest != roster_digest(params.digest, n, root)
    ):
        return reject(
            Reason.WRONG_DIGEST, "The aggregator signed another roster than the coordinator shows"
        )
    if member.digest not in (b"", confirmation.digest):
        return reject(Reason.CONFLICT, "two rosters of one survey: do not go on")
    # check: roster-minimum - among few users a report is not hidden
    if not params.minimum <= n <= params.n_max:
        return reject(Reason.TOO_FEW, "the roster is too small or too large")
    # An aggregator that chose its value after it saw the roster could choose the neighbours.
    if params.topology.reveals_with_roster and params.keys.aggregator_commitment not in (
        NO_COMMITMENT,
        sha256(confirmation.revealed).digest(),
    ):
        return reject(
            Reason.WRONG_DIGEST, "The aggregator revealed another value than it had committed to"
        )
    return None

"""A user of the `servers` topology: one visit, one body, everything in it drawn once."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.protocol.roles.client import Client, Device, UserState, state_of
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.messages import Submission
from faircount.protocol.topologies.two_servers.reports import vector_of, vector_size
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.sealing import KeyPair, RealSealing, Sealing
from faircount.sharing.field import subtract
from faircount.sharing.keys import S2_INDEX, SEED_BYTES, Purpose, key_info
from faircount.sharing.packing import pack

SALT = 16


@dataclass(frozen=True)
class Respondent(UserState):
    """A user who has answered: the exact body, drawn once. Losing this state is a dropout, never a second draw."""

    stored_version = 1
    params: SurveyParameters
    user: bytes
    public_key: bytes
    body: Submission = field(repr=False)


def respond(
    params: SurveyParameters, invitation: Invitation, answer: int, entropy: Entropy, sealing: Sealing | None = None
) -> Respondent:
    """Draw coin, noise, key and seed of one user, and make its body. Store the result before sending anything.

    `answer` is a position in the item list.
    """
    if invitation.params != params.digest:
        raise ProtocolError("the invitation is for other parameters: do not answer, ask the owner")
    crypto = RealSealing() if sealing is None else sealing
    response = vector_of(params.mechanism, answer, entropy)
    return prepare(params, invitation, response, entropy.bytes(SEED_BYTES), crypto.keypair(entropy), entropy, crypto)


def prepare(
    params: SurveyParameters,
    invitation: Invitation,
    response: Residues,
    seed: bytes,
    mine: KeyPair,
    entropy: Entropy,
    crypto: Sealing,
) -> Respondent:
    """The body for a vector, a seed and a key drawn before; `entropy` is for salt and nonce."""
    user = invitation.user
    share = pack(subtract(response, expanded(crypto, params, user, mine.public, seed), params.q), params.q)
    secret = crypto.agree(mine, params.keys.box)
    if secret is None:
        raise ProtocolError("S2's key cannot be used: do not answer, ask the owner")
    salt = entropy.bytes(SALT)
    info = seal_info(params, user, mine.public, crypto.commit(salt, share))
    blob = crypto.seal(secret, params.digest, info, seed, entropy)
    mac = invitation.seal(mine.public)
    body = Submission(params.survey, invitation.access, mine.public, mac, salt, share, blob)
    return Respondent(params, user, mine.public, body)


def seal_info(params: SurveyParameters, user: bytes, public_key: bytes, commitment: bytes) -> bytes:
    """What binds the key of a sealed seed: the user, its key, and the share that goes with it."""
    return _bound(Purpose.SERVERS, params.survey) + sha256(user + public_key + commitment).digest()


@lru_cache(maxsize=64)
def _bound(purpose: Purpose, survey: bytes) -> bytes:
    """A key's info up to its context, which is all that differs between the users of a survey."""
    return key_info(purpose, survey, 0, 0, S2_INDEX, bytes(32))[:-32]


def expansion_info(params: SurveyParameters, user: bytes, public_key: bytes) -> bytes:
    """What binds the expansion of a seed: the user and its key."""
    return _bound(Purpose.SEED_EXPANSION, params.survey) + sha256(user + public_key).digest()


def expanded(crypto: Sealing, params: SurveyParameters, user: bytes, public_key: bytes, seed: bytes) -> Residues:
    """S2's share of a user's vector."""
    info = expansion_info(params, user, public_key)
    return crypto.stretch(seed, params.digest, info, params.q, vector_size(params.mechanism))


class TwoServersClient(Client):
    """Answer and leave."""

    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """The whole answer."""
        made = respond(params, blank.invitation, blank.answer, entropy, sealing)
        return replace(blank, state=made, waiting=(made.body,))

    def ask(self, device: Device) -> Message | None:
        """The body until it is acknowledged."""
        return device.waiting[0] if device.waiting else None

    def go_on(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """A refusal ends the visit for good."""
        return device.without(asked)

    def said_before(self, device: Device) -> Message | None:
        """The body, unless it was withdrawn; where there is a roster, S1 asks for what it lacks."""
        return None if device.withdrawn else self._respondent(device).body

    def params(self, device: Device) -> SurveyParameters:
        """As they were when it answered."""
        return self._respondent(device).params

    def entry(self, device: Device) -> Entry:
        """Its user id and the key that it made for this survey."""
        respondent = self._respondent(device)
        return respondent.user, respondent.public_key

    def _respondent(self, device: Device) -> Respondent:
        found: Respondent = state_of(device, Respondent)
        return found

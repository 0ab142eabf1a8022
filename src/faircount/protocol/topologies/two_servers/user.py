"""The client of the `servers` topology: one visit, one report, everything in it drawn once.

The report carries share1 in the clear for the coordinator and the seed of share2 encrypted for the
aggregator. The encryption is bound to user id, key and the commitment to share1, so the coordinator
cannot combine the halves of two reports.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.questions import Sheet
from faircount.protocol.roles.client import Client, ClientState, TopologyClientState, require_state
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.messages import SALT_BYTES, Report
from faircount.protocol.topologies.two_servers.reports import draw_vector
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair, StandardCrypto
from faircount.protocol.wire.messages import Reason, Rejection
from faircount.protocol.wire.packed_rows import pack_rows
from faircount.protocol.wire.signing import SigningKey
from faircount.sharing.field import subtract
from faircount.sharing.keys import S2_INDEX, SEED_BYTES, Purpose, key_info


@dataclass(frozen=True)
class Respondent(TopologyClientState):
    """A participant who has responded: the exact report, drawn once.

    Losing this state is a dropout, never a reason to draw again.
    """

    stored_tag = "servers-client"
    params: SurveyParameters
    user: bytes
    public_key: bytes
    report: Report = field(repr=False)
    device: SigningKey


def respond(
    params: SurveyParameters,
    invitation: Invitation,
    sheet: Sheet,
    entropy: Entropy,
    crypto: CryptoSuite | None = None,
    level: int = 0,
) -> Respondent:
    """Draw all that is random, and make the report. Store the result before sending it.

    Args:
        params: the survey
        invitation: the participant's invitation to it
        sheet: the participant's answers, one per question
        entropy: source of everything that is drawn
        crypto: cryptography to use; the standard suite by default
        level: the privacy level that the participant chose, where the survey offers levels
    """
    # The invitation binds the parameters by hash: other parameters may promise less privacy.
    if invitation.params != params.digest:
        raise ProtocolError("the invitation is for other parameters: do not answer, ask the owner")
    crypto = StandardCrypto() if crypto is None else crypto
    # Whatever is random is drawn here and stored, so that a retry sends the same bytes.
    response = draw_vector(params.mechanism, sheet, entropy, level)
    seed = entropy.bytes(SEED_BYTES)
    return make_report(params, invitation, response, seed, crypto.keypair(entropy), entropy, crypto)


def make_report(
    params: SurveyParameters,
    invitation: Invitation,
    response: Residues,
    seed: bytes,
    keys: KeyPair,
    entropy: Entropy,
    crypto: CryptoSuite,
) -> Respondent:
    """The report for a vector, a seed and a key drawn before.

    `entropy` is for salt, nonce and the key of the device.
    """
    user = invitation.user
    # Share 2 is the expansion of 16 bytes, so the report carries one vector and not two.
    second = expand_seed(crypto, params, user, keys.public, seed)
    (share,) = pack_rows(subtract(response, second, params.q)[np.newaxis], params.q)
    secret = crypto.agree(keys, params.keys.encryption_key)
    if secret is None:
        raise ProtocolError("the aggregator's key cannot be used: do not answer, ask the owner")
    # Without the salt the aggregator, which has the seed, could try all responses on the hash.
    salt = entropy.bytes(SALT_BYTES)
    info = seed_info(params, user, keys.public, crypto.commit(salt, share))
    encrypted_share = crypto.encrypt(secret, params.digest, info, seed, entropy)
    # The aggregator checks this MAC: the coordinator cannot make up participants.
    mac = invitation.authenticate_key(keys.public)
    device = SigningKey.generate(entropy)
    report = Report(
        params.survey,
        invitation.access,
        keys.public,
        mac,
        salt,
        share,
        encrypted_share,
        device.public,
    )
    return Respondent(params, user, keys.public, report, device)


def seed_info(params: SurveyParameters, user: bytes, public_key: bytes, commitment: bytes) -> bytes:
    """Key info of an encrypted seed: it binds the user, the key and the share that goes with it."""
    # check: seed-bound - a copy of a report counts for a second person, or with another share
    context = sha256(user + public_key + commitment).digest()
    return _info_prefix(Purpose.SERVERS, params.survey) + context


def expansion_info(params: SurveyParameters, user: bytes, public_key: bytes) -> bytes:
    """Key info of a seed's expansion: it binds the user and the key."""
    context = sha256(user + public_key).digest()
    return _info_prefix(Purpose.SEED_EXPANSION, params.survey) + context


# Cached, because a server computes it for every report of a survey.
@lru_cache(maxsize=64)
def _info_prefix(purpose: Purpose, survey: bytes) -> bytes:
    """A key info without its last 32 bytes, the context: only that differs between reports."""
    return key_info(purpose, survey, 0, 0, S2_INDEX, bytes(32))[:-32]


def expand_seed(
    crypto: CryptoSuite, params: SurveyParameters, user: bytes, public_key: bytes, seed: bytes
) -> Residues:
    """The aggregator's share of a participant's vector."""
    info = expansion_info(params, user, public_key)
    return crypto.expand(seed, params.digest, info, params.q, params.vector_size)


class TwoServersClient(Client):
    """Send one report; the rest is asking for the outcome."""

    def start(
        self, params: SurveyParameters, blank: ClientState, crypto: CryptoSuite, entropy: Entropy
    ) -> ClientState:
        """Draw the whole report."""
        respondent = respond(params, blank.invitation, blank.sheet, entropy, crypto, blank.level)
        return replace(blank, state=respondent, waiting=(respondent.report,))

    def next_message(self, client: ClientState) -> Message | None:
        """The report until it is acknowledged."""
        return client.waiting[0] if client.waiting else None

    def handle_topology_response(
        self, client: ClientState, request: Message, response: Message, entropy: Entropy
    ) -> ClientState:
        """Only a rejection can come here. There is no other report to send, so most are final."""
        # The same report may be accepted later.
        if isinstance(response, Rejection) and response.why is Reason.EARLY:
            return client
        return client.without_waiting(request)

    def message_to_resend(self, client: ClientState) -> Message | None:
        """The report, unless it was withdrawn: without a roster nobody would ask for a lost one."""
        return None if client.withdrawn else self._respondent(client).report

    def params(self, client: ClientState) -> SurveyParameters:
        """The parameters that the report was made for."""
        return self._respondent(client).params

    def entry(self, client: ClientState) -> Entry:
        """The user id, and the key that the client made for this survey."""
        respondent = self._respondent(client)
        return respondent.user, respondent.public_key

    def device(self, client: ClientState) -> SigningKey:
        """The key that was drawn with the report."""
        return self._respondent(client).device

    def _respondent(self, client: ClientState) -> Respondent:
        found: Respondent = require_state(client, Respondent)
        return found

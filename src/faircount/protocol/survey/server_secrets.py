"""What each server must hold before a survey with proven reports begins, and how noise comes from it.

    committed      32 fresh bytes, whose hash is in the parameters: revealed once all reports are fixed
    noise_secret   32 fresh bytes that are never revealed, and are destroyed when the survey is over

A value that somebody else knows lets a client who is told forge votes. So a server takes part only in a survey whose
parameters name the hash of its own value, and with no value that it has used before (`roles.anchor`). Noise is drawn
from the secret, the parameters, the claim and the set: a message that is made again has the same noise, and no other
message of any survey has it.
"""

from hashlib import sha256

from faircount.core.entropy import KeyStream
from faircount.core.errors import ParameterError, ProtocolError
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import labelled
from faircount.sharing.keys import derive_key

SECRET = 32


def check_secrets(params: SurveyParameters, server: Party, committed: bytes, noise_secret: bytes) -> None:
    """Refuse to begin a survey with proven reports without this server's own value and secret."""
    if not params.proven:
        return
    if commitment_of(params, server) != sha256(committed).digest():
        raise ProtocolError(f"{server.name} does not hold the value that the parameters say it has committed to")
    if len(noise_secret) != SECRET or noise_secret == committed:
        raise ProtocolError(f"give {server.name} {SECRET} fresh random bytes as noise_secret, for this survey alone")


def check_commitments(params: SurveyParameters) -> None:
    """Refuse parameters in which a server has committed to nothing, or to the other one's value."""
    both = {commitment_of(params, server) for server in (Party.S1, Party.S2)}
    if NO_COMMITMENT in both or len(both) < 2:
        raise ParameterError("reports are proven with a value of each server: each must commit to one of its own")


def commitment_of(params: SurveyParameters, server: Party) -> bytes:
    """The hash of a server's value."""
    return params.keys.s1_commitment if server is Party.S1 else params.keys.s2_commitment


def noise_stream(
    params: SurveyParameters, server: Party, secret: bytes, claim_hash: bytes, members: bytes
) -> KeyStream:
    """Where a server draws its noise for one set of one claim."""
    info = labelled(b"noise", int(server).to_bytes(4, "big"), claim_hash, members)
    return KeyStream(derive_key(secret, params.digest, info))

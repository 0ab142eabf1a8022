"""What each server needs before a survey with validity proofs begins, and how it draws its noise.

    committed      32 random bytes, whose hash is in the parameters; revealed once all reports
                   are fixed. Both values together choose the random query of the proofs
    noise_secret   32 random bytes that are never revealed, and destroyed when the survey is over

A client that knows both committed values beforehand can forge proofs. So a server takes part only
if the parameters have the hash of its own value, and it never uses a value twice (`roles.anchor`).

Noise is derived from the secret, the parameters, the manifest and the accepted reports. A message
that is sent again after a crash therefore has the same noise, and no other message has it: two
sums with different noise over the same reports would reveal more than was promised.
"""

from hashlib import sha256

from faircount.core.entropy import KeyStream
from faircount.core.errors import ParameterError, ProtocolError
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import tagged_hash
from faircount.sharing.keys import derive_key

SECRET_BYTES = 32


def check_secrets(
    params: SurveyParameters, server: Party, committed: bytes, noise_secret: bytes
) -> None:
    """Refuse to begin a survey with validity proofs without this server's value and secret."""
    if not params.proven:
        return
    # check: own-commitment - with another value it fails after the budget is spent
    if commitment_of(params, server) != sha256(committed).digest():
        raise ProtocolError(
            f"the {server.name.lower()} does not hold the value that the parameters say it has "
            "committed to: create the survey again with its current survey keys"
        )
    if (
        len(noise_secret) != SECRET_BYTES
        # check: separate-noise-secret - who learns the committed value learns the noise
        or noise_secret == committed
    ):
        raise ProtocolError(
            f"give the {server.name.lower()} {SECRET_BYTES} fresh random bytes as noise_secret, "
            "for this survey alone"
        )


def check_commitments(params: SurveyParameters) -> None:
    """Refuse parameters in which a server has no commitment, or that of the other server."""
    both = {commitment_of(params, server) for server in (Party.COORDINATOR, Party.AGGREGATOR)}
    if (
        NO_COMMITMENT in both
        # check: distinct-commitments - a server that knows both values can forge proofs
        or len(both) < 2
    ):
        raise ParameterError(
            "validity proofs need a random value of each server: each must commit to its own"
        )


def commitment_of(params: SurveyParameters, server: Party) -> bytes:
    """A server's commitment: the hash of its value."""
    return (
        params.keys.coordinator_commitment
        if server is Party.COORDINATOR
        else params.keys.aggregator_commitment
    )


def noise_stream(
    params: SurveyParameters,
    server: Party,
    secret: bytes,
    manifest_hash: bytes,
    members: bytes,
    tag: bytes = b"noise",
) -> KeyStream:
    """The random bytes from which a server draws its noise.

    members: bitmap of the accepted reports of the manifest
    tag:     which published table the noise is for
    """
    # The server is part of it: both must not draw the same noise, even from equal secrets.
    info = tagged_hash(tag, int(server).to_bytes(4, "big"), manifest_hash, members)
    return KeyStream(derive_key(secret, params.digest, info))

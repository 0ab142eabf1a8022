"""The `servers` topology: a user answers in one visit; S1 and S2 hold one uniform share of it each.

    user   share1 = R - expand(seed), blob2 = seal(seed) to S2, bound to user id, key and C(share1)         -> S1
    S1     freezes (user, key, C(share1), hash blob2), claims                                              -> S2
    S2     receipt; S1 sends the blobs; S2 opens all, fixes the included set I for good and signs it       -> S1
    S1     ONE sum of share1 over I                                                                        -> S2
    S2     adds its expanded seeds, publishes with the Merkle root of I

C is a commitment with a salt that only the user and S1 know. A plain hash of share1 would tell S2 everything: S2 has
the seed, a response has few possible values, and each could be tried. There is no roster position: everybody makes the
same noise, and the salt of every key is params_digest.
"""

from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.server_secrets import check_commitments
from faircount.protocol.survey.states import State
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance, Completion, Topology, noiseless
from faircount.protocol.topologies.peers import vectors
from faircount.protocol.topologies.two_servers.aggregator import S2, apart
from faircount.protocol.topologies.two_servers.coordinator import S1
from faircount.protocol.topologies.two_servers.messages import Submission
from faircount.protocol.topologies.two_servers.reports import derived, form_of, vector_size
from faircount.protocol.topologies.two_servers.user import SALT, TwoServersClient
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.sealing import SEALED_SEED
from faircount.sharing.packing import packed_size


def runs(mechanism: FieldMechanism) -> FieldMechanism:
    """A mechanism of proven reports, or of vectors with the same noise for everybody."""
    if mechanism.proven:
        form_of(mechanism)  # refuses what cannot be proven
        return mechanism
    return vectors.runs(mechanism).made_alike()


def check(params: SurveyParameters) -> None:
    """There is no roster position; and who proves needs a value of each server."""
    if not params.mechanism.every_user_alike:
        raise ParameterError("servers know no roster position: give every user equally many coins")
    if params.proven:
        check_commitments(params)


def bytes_sent(mechanism: FieldMechanism) -> int:
    """One submission, as it is encoded."""
    share, blob = bytes(packed_size(mechanism.modulus, vector_size(mechanism))), bytes(SEALED_SEED)
    return len(encode(Submission(bytes(16), bytes(32), bytes(32), bytes(32), bytes(SALT), share, blob)))


def chance(who: Attendance) -> float:
    """Enough users come to their one visit: exact."""
    from scipy.stats import binom

    return float(1 - binom.cdf(who.minimum - 1, who.users, 1 - who.loss))


def trial(users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
    """Proven reports, or vectors as they come; noise of so large an epsilon is 0 but once in 10^8."""
    return (ServerLaplace(items=users, users=users, epsilon=40.0) if variant % 2 == 0 else noiseless(users)), {}


def _words(_: Attendance, found: float) -> str:
    return "one visit" if found >= TARGET_COMPLETION else "too few come: plan with a larger dropout"


SERVERS = Topology(
    name="servers",
    form="two servers",
    sees="each server one uniform share, everybody the result",
    phases=(State.SUBMITTING,),
    runs=runs,
    check=check,
    s1=S1,
    s2=S2,
    client=TwoServersClient(),
    bytes_sent=bytes_sent,
    completion=Completion("exact", chance, _words),
    trial=trial,
    vector_size=vector_size,
    derived=derived,
    attempts=1,
    apart=apart,
    takes_proofs=True,
)

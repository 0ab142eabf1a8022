"""The `masked` topology: everybody adds masks that cancel with its neighbours'; nothing but keys is shared.

    enrol -> roster sealed, graph drawn -> everybody shares its mask key t-of-k with its neighbours (KeyBundle)
    S1   those who did, if they hang together and each has t neighbours, are the set                 -> MaskCall
    user R_i + sum over its neighbours in the set of m_ij, sealed to S2 (MaskedSum)                          -> S1
    S1   claims the set and the largest connected part of it that sent; the others are dropped               -> S2
    S2   receipt; S1 sends those blobs; S2 opens all, and signs once whose key shares it needs (Recovery)    -> S1
    user included, with dropped neighbours: their key shares, sealed to S2 (Help)                            -> S1
    S2   puts the dropped users' mask keys together, removes their masks, publishes

S2 must never hold a user's vector and its mask key. S1 sends no blob of a dropped user, however late it comes; S2
opens key shares of dropped users only; users give shares for one statement of S2 only, and S2 makes one. A blob that
did not open makes its sender a dropped user: it has broken the protocol. Bytes that were spoiled in S1's storage are
not claimed: nearly the sender's blob, they must not meet its key.
"""

from collections.abc import Mapping
from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.states import State
from faircount.protocol.survey.topology import Topology, noiseless
from faircount.protocol.topologies.masked.aggregator import S2
from faircount.protocol.topologies.masked.completion import COMPLETION
from faircount.protocol.topologies.masked.coordinator import S1
from faircount.protocol.topologies.masked.graph import COLLUDING, check_degree, plan
from faircount.protocol.topologies.masked.messages import (
    Help,
    HelpBatch,
    HelpCall,
    KeyBundle,
    MaskCall,
    MaskedClaim,
    MaskedSum,
    Neighbourhood,
    Recovery,
)
from faircount.protocol.topologies.masked.user import MaskedClient
from faircount.protocol.topologies.peers.messages import ENROLMENT_BYTES
from faircount.protocol.topologies.peers.vectors import runs
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.sharing.packing import packed_size
from faircount.sharing.shamir import SHARE_BYTES


def check(params: SurveyParameters) -> None:
    """Enough neighbours for everybody, and a value of S2's to draw the graph from."""
    check_degree(params.n_max, params.k, params.t)
    if params.keys.s2_commitment == NO_COMMITMENT:
        raise ParameterError("masked surveys draw a graph: S2 must commit to a value")


def terms(mechanism: FieldMechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """Neighbours and threshold as planned for this number of users, unless both are given."""
    if ("k" in given) != ("t" in given):
        raise ParameterError("give both k and t, the neighbours and the key shares needed, or neither")
    if "k" in given:
        return {}
    k, t = plan(mechanism.n, max(COLLUDING, mechanism.insiders / mechanism.n))
    return {"k": k, "t": t}


def trial(users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
    """Everybody is everybody's neighbour, or in the variant few are, so that a graph can fall apart."""
    return noiseless(users), {"k": 4 if variant and users > 5 else users - 1, "t": 2}


def bytes_sent(mechanism: FieldMechanism) -> int:
    """Enrolment, a sealed key share for each neighbour, the sealed masked vector. Nobody leaves, so nobody helps."""
    degree = min(terms(mechanism, {})["k"], mechanism.n - 1)
    bundle = KeyBundle(bytes(16), 0, bytes(32), bytes(32), (bytes(SHARE_BYTES + OVERHEAD),) * degree)
    row = bytes(packed_size(mechanism.modulus, mechanism.N) + OVERHEAD)
    vector = MaskedSum(bytes(16), 0, bytes(32), 1, bytes(32), bytes(32), row, ())
    return ENROLMENT_BYTES + len(encode(bundle)) + len(encode(vector))


MASKED = Topology(
    name="masked",
    phases=(State.ENROLLING, State.SHARING, State.SUBMITTING, State.RECOVERING),
    runs=runs,
    check=check,
    terms=terms,
    trial=trial,
    s1=S1,
    s2=S2,
    client=MaskedClient(),
    messages=(Neighbourhood, KeyBundle, MaskCall, MaskedSum, MaskedClaim, Recovery, HelpCall, Help, HelpBatch),
    bytes_sent=bytes_sent,
    completion=COMPLETION,
)

"""The `masked` topology: everybody adds masks that cancel with its neighbours', and one of its own.

    enrol -> roster sealed, graph drawn -> everybody shares its mask key t-of-k with its neighbours (KeyBundle)
    S1   those who did, if they hang together and each has t neighbours, are the set                 -> MaskCall
    user R_i + sum over its neighbours in the set of m_ij + F(seed_i); the seed sealed to S2 (MaskedSum)     -> S1
    S1   claims the set, the largest connected part of it that sent, and their sealed seeds                  -> S2
    S2   receipt; says whose seeds open (PeersIncluded): the others are dropped                              -> S1
    user included, with dropped neighbours: the message keys of their key shares, sealed to S2 (Help)        -> S1
    S2   puts the dropped users' mask keys together (Ready), or names those whose keys are lost (Unrecoverable):
         then a further attempt, with fresh masks, among those whose seeds opened
    S1   ONE sum of the included vectors (Total)                                                             -> S2
    S2   takes the masks off, publishes

S2 has seeds and keys, and no vector; S1 has vectors, and no seed. So a user whom S2 calls dropped although it is not
loses its place in the result and nothing else. The masks of pairs protect users if the records of both servers come
into one hand later: therefore S1 takes no vector after the deadline, and deletes those that are in no sum.
"""

from collections.abc import Mapping
from typing import Any

from faircount.core.errors import ParameterError
from faircount.core.validation import share_of_users
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.states import State
from faircount.protocol.survey.topology import Attendance, Size, Topology, noiseless
from faircount.protocol.topologies.masked.aggregator import S2
from faircount.protocol.topologies.masked.completion import COMPLETION
from faircount.protocol.topologies.masked.coordinator import S1
from faircount.protocol.topologies.masked.graph import COLLUDING, check_degree, plan, safe_threshold, stays_connected
from faircount.protocol.topologies.masked.messages import Help, KeyBundle, MaskedSum
from faircount.protocol.topologies.masked.user import MaskedClient
from faircount.protocol.topologies.peers.messages import ENROLMENT_BYTES
from faircount.protocol.topologies.peers.vectors import runs
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.packing import packed_size
from faircount.sharing.shamir import SHARE_BYTES


def check(params: SurveyParameters) -> None:
    """Enough neighbours against as many colluders as the promise covers, and S2's value to draw the graph from."""
    check_degree(params.n_max, params.k, params.t)
    if params.t < (least := safe_threshold(params.n_max, params.phi, params.k)):
        raise ParameterError(
            f"with t = {params.t} key shares {params.phi} colluding users could put a neighbour's key together: "
            f"t must be at least {least} for k = {params.k}"
        )
    if not stays_connected(params.n_max, params.phi, params.k):
        raise ParameterError(
            f"with k = {params.k} neighbours {params.phi} colluding users could cut the others into parts: "
            "k must be larger"
        )
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
    """Enrolment, a sealed key share for each neighbour, the vector and its sealed seed. Nobody leaves or helps."""
    degree = min(terms(mechanism, {})["k"], mechanism.n - 1)
    bundle = KeyBundle(bytes(16), 0, bytes(32), bytes(32), (bytes(SHARE_BYTES + OVERHEAD),) * degree)
    row = bytes(packed_size(mechanism.modulus, mechanism.N))
    vector = MaskedSum(bytes(16), 0, bytes(32), 1, bytes(32), bytes(32), row, bytes(SEALED_SEED))
    return ENROLMENT_BYTES + len(encode(bundle)) + len(encode(vector))


def sizes(params: SurveyParameters) -> dict[type[Message], Size]:
    """A sealed key share for each neighbour; a vector and a sealed seed; a message key for each neighbour."""
    return {
        KeyBundle: (params.k, SHARE_BYTES + OVERHEAD),
        MaskedSum: (0, max(packed_size(params.q, params.N), SEALED_SEED)),
        Help: (0, params.k * KEY_BYTES + OVERHEAD),
    }


def liars(who: Attendance) -> int:
    """Who withholds help counts as colluding; dealers of wrong shares who leave one by one cost an attempt each."""
    silent = max(who.insiders, share_of_users("colluding", COLLUDING, who.users))
    return max(0, min(who.users - who.minimum, silent, who.attempts - 1))


MASKED = Topology(
    name="masked",
    form="users mask each other",
    sees="S1 vectors under masks, S2 seeds of the masks and one sum, everybody the result",
    phases=(State.ENROLLING, State.SHARING, State.SUBMITTING, State.RECOVERING),
    runs=runs,
    check=check,
    terms=terms,
    trial=trial,
    s1=S1,
    s2=S2,
    client=MaskedClient(),
    bytes_sent=bytes_sent,
    sizes=sizes,
    completion=COMPLETION,
    liars=liars,
)

"""The `masked` topology: participants add pairwise masks, which cancel in the sum, and their own.

    enrol         participants join the roster, which the aggregator confirms; it reveals its
                  committed value, from which everybody derives the graph of neighbours
    share         each client shares the secret of its mask key t-of-k among its k neighbours,
                  encrypted (KeyBundle)                                -> coordinator, relayed
    set           those who shared, if they are connected and each has t neighbours in the set
                                                                       -> MaskedSumRequest
    mask          R_i + sum over neighbours j in the set of m_ij + F(seed_i), where m_ij = -m_ji;
                  the seed encrypted to the aggregator (MaskedSum)     -> coordinator
    manifest      the set, its largest connected part that sent a sum, and their encrypted seeds
                                                                       -> aggregator
    accept        the aggregator names the members whose seeds it could decrypt; all others of the
                  set are dropped (AcceptedMembers)                    -> coordinator
    unmask        an accepted client with dropped neighbours sends the message keys of the key
                  shares they dealt it, encrypted to the aggregator (UnmaskShares)
    recover       the aggregator combines the dropped members' mask keys (ReadyForTotal), or names
                  those it cannot recover (Unrecoverable): then another attempt, with fresh masks,
                  among those whose seeds it could decrypt
    total         one sum of the accepted masked vectors (AggregateTotal)  -> aggregator
    publish       the aggregator subtracts the masks

The paper's Algorithm 2 gives everybody a share of everything. This topology computes the same sum
with the pairwise masks of Bell et al. (SecAgg+, CCS 2020): a client needs only k neighbours.

What each party sees: the coordinator has masked vectors and no seed, the aggregator seeds and keys
and no vector. So a client that a dishonest aggregator calls dropped loses its place in the result
and nothing else. The pairwise masks protect participants even if one operator later gets the
records of both servers. For that the coordinator accepts no vector after the deadline, and deletes
the vectors that are in no sum.
"""

from collections.abc import Mapping
from typing import Any

from faircount.core.errors import ParameterError
from faircount.core.validation import share_of_users
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.peers import vectors
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.topology import (
    Attendance,
    Roles,
    Size,
    Topology,
    example_sheets,
    noiseless_mechanism,
)
from faircount.protocol.topologies.masked import completion
from faircount.protocol.topologies.masked.graph import (
    COLLUDING,
    check_degree,
    plan_graph,
    safe_threshold,
    stays_connected,
)
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.packing import packed_size
from faircount.sharing.shamir import SHARE_BYTES


class Masked(Topology):
    """Participants mask their vectors with keys that they agree on with their neighbours."""

    name = "masked"
    form = "participants mask each other"
    sees = (
        "coordinator: masked vectors; aggregator: seeds of the masks and one sum; "
        "everybody: the result"
    )
    phases = (Phase.ENROLLING, Phase.SHARING, Phase.SUBMITTING, Phase.UNMASKING)
    completion_kind = "at least"

    def load_roles(self) -> Roles:
        """The rules of both servers and of the client."""
        from faircount.protocol.topologies.masked.aggregator import MaskedAggregator
        from faircount.protocol.topologies.masked.coordinator import MaskedCoordinator
        from faircount.protocol.topologies.masked.user import MaskedClient

        return Roles(MaskedCoordinator(), MaskedAggregator(), MaskedClient())

    def adapt_mechanism(self, mechanism: FieldMechanism) -> FieldMechanism:
        """A mechanism that needs only the sum of all vectors."""
        return vectors.check_sum_mechanism(mechanism)

    def check(self, params: SurveyParameters) -> None:
        """Refuse too few neighbours for the assumed colluders, or an aggregator without commitment.

        The graph is derived from the value that the aggregator committed to.
        """
        check_degree(params.n_max, params.k, params.t)
        # check: masked-threshold - phi colluding users could put a neighbour's key together
        if params.t < (least := safe_threshold(params.n_max, params.phi, params.k)):
            raise ParameterError(
                f"with t = {params.t} key shares {params.phi} colluding participants could put a "
                f"neighbour's key together: t must be at least {least} for k = {params.k}"
            )
        # Each part would have a sum of its own, over fewer people than the minimum.
        if not stays_connected(params.n_max, params.phi, params.k):
            raise ParameterError(
                f"with k = {params.k} neighbours {params.phi} colluding participants could cut the "
                "others into parts: k must be larger"
            )
        # Without a commitment the aggregator could choose the graph when it knows the roster.
        if params.keys.aggregator_commitment == NO_COMMITMENT:
            raise ParameterError(
                "masked surveys draw a graph: the aggregator must commit to a value"
            )

    def default_terms(self, mechanism: FieldMechanism, given: Mapping[str, Any]) -> dict[str, Any]:
        """Neighbours and threshold as planned for this number of users, unless both are given."""
        if ("k" in given) != ("t" in given):
            raise ParameterError(
                "give both k and t, the neighbours and the key shares needed, or neither"
            )
        if "k" in given:
            return {}
        # Planned for 5% at least, even if the promise covers fewer: who withholds shares counts,
        # too.
        k, t = plan_graph(mechanism.n, max(COLLUDING, mechanism.insiders / mechanism.n))
        return {"k": k, "t": t}

    def example(self, users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
        """A complete graph; in the variant sheets, and a sparse graph, which can fall apart."""
        is_sparse = bool(variant) and users > 5
        terms = {"k": 4 if is_sparse else users - 1, "t": 2}
        if not variant:
            return noiseless_mechanism(users), terms
        mechanism, promise = example_sheets(users)
        return mechanism, {**terms, **promise}

    def bytes_sent(self, mechanism: FieldMechanism) -> int:
        """Enrolment, an encrypted key share per neighbour, the vector and its encrypted seed.

        Nobody drops out, so nobody has to unmask.
        """
        from faircount.protocol.peers.messages import ENROLMENT_BYTES
        from faircount.protocol.topologies.masked.messages import KeyBundle, MaskedSum

        # Nobody is their own neighbour, so a small survey has a complete graph.
        degree = min(self.default_terms(mechanism, {})["k"], mechanism.n - 1)
        bundle = KeyBundle(
            bytes(16), 0, bytes(32), bytes(32), (bytes(SHARE_BYTES + OVERHEAD),) * degree
        )
        vector = bytes(packed_size(mechanism.modulus, mechanism.N))
        masked_sum = MaskedSum(
            bytes(16), 0, bytes(32), 1, bytes(32), bytes(32), vector, bytes(ENCRYPTED_SEED_BYTES)
        )
        return ENROLMENT_BYTES + len(encode(bundle)) + len(encode(masked_sum))

    def sizes(self, params: SurveyParameters) -> dict[type[Message], Size]:
        """A key share per neighbour; a vector and a seed; a message key per neighbour."""
        from faircount.protocol.topologies.masked.messages import (
            KeyBundle,
            MaskedSum,
            UnmaskShares,
        )

        return {
            KeyBundle: (params.k, SHARE_BYTES + OVERHEAD),
            MaskedSum: (0, max(packed_size(params.q, params.N), ENCRYPTED_SEED_BYTES)),
            UnmaskShares: (0, params.k * KEY_BYTES + OVERHEAD),
        }

    def tolerated_malicious(self, who: Attendance) -> int:
        """How many malicious clients cannot stop the survey.

        A client that withholds its unmask shares counts as colluding, and the graph is planned for
        those. One that dealt wrong key shares and vanishes costs an attempt.
        """
        planned = max(who.insiders, share_of_users("colluding", COLLUDING, who.users))
        return max(0, min(who.users - who.minimum, planned, who.attempts - 1))

    def completion_chance(self, who: Attendance) -> float:
        """A lower bound, for one attempt."""
        return completion.chance(who)

    def completion_advice(self, who: Attendance, chance: float) -> str:
        """Neighbours step in for those who drop out."""
        return completion.advice(who, chance)


MASKED = Masked()

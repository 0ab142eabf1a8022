"""The `explicit` topology: Algorithm 2 of the paper as printed. Every participant holds a share of
every other one's vector.

    enrol         participants join the roster, which the aggregator confirms
    share         client i draws its vector R_i and n - 1 uniform shares, once, and encrypts
                  share s(i->j) to client j (lines 2 to 9)            -> coordinator, relayed
    sum           over the set S of those who shared, client i computes
                  tau_i = R_i + sum over j in S of (s(j->i) - s(i->j)) (line 10), masks it
                  with a fresh seed                                   -> coordinator
                  and encrypts the seed to the aggregator             -> coordinator, relayed
    manifest      all of S sent their sums: the coordinator sends the encrypted seeds
                                                                      -> aggregator
                  somebody did not: another attempt over those who did
    accept        the aggregator names the seeds that it could decrypt. If all: the coordinator
                  sends one total. If not: another attempt without the others
    publish       the aggregator subtracts the masks. Over S the shares cancel, so the sum of the
                  tau_i is the sum of the R_i

What each party sees: a client sees one uniform share of every other vector, the coordinator sees
tau_i under masks, the aggregator seeds and one total. It is safe because a tau_i is uniform given
all shares but those between two honest clients; the graph of honest clients must therefore stay
connected without any phi colluding ones, which every client checks before it sends a sum.

Algorithm 2 assumes that everybody stays. Here the same shares serve every attempt, each under fresh
masks, and sets only shrink. A pair whose shares cannot be decrypted is left out by both: a client
complains in the first attempt, and never later.
"""

from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.peers import vectors
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.topology import (
    Attendance,
    Roles,
    Size,
    Topology,
    example_sheets,
    noiseless_mechanism,
)
from faircount.protocol.topologies.explicit import completion
from faircount.protocol.wire.codec import Message, encode, size_with_encrypted_shares
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.sharing.packing import packed_size


class Explicit(Topology):
    """Algorithm 2: every participant holds a share of every other participant's vector."""

    name = "explicit"
    form = "shares held by participants"
    sees = "every user: one uniform share of each other user's vector; everybody: the result"
    phases = (Phase.ENROLLING, Phase.SHARING, Phase.SUBMITTING)
    completion_kind = "exact"

    def load_roles(self) -> Roles:
        """The rules of both servers and of the client."""
        from faircount.protocol.topologies.explicit.aggregator import ExplicitAggregator
        from faircount.protocol.topologies.explicit.coordinator import ExplicitCoordinator
        from faircount.protocol.topologies.explicit.user import ExplicitClient

        return Roles(ExplicitCoordinator(), ExplicitAggregator(), ExplicitClient())

    def adapt_mechanism(self, mechanism: FieldMechanism) -> FieldMechanism:
        """A mechanism that needs only the sum of all vectors."""
        return vectors.check_sum_mechanism(mechanism)

    def check(self, params: SurveyParameters) -> None:
        """Two honest participants must be left to hide each other."""
        # With a single honest participant the colluders subtract their own vectors from the sum.
        if params.n_max <= params.phi + 1:
            raise ParameterError(
                f"explicit: a sum needs at least {params.phi + 2} participants, so that two are "
                f"left to hide each other when {params.phi} collude: invite more"
            )

    def example(self, users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
        """One question; in the variant sheets."""
        return example_sheets(users) if variant else (noiseless_mechanism(users), {})

    def bytes_sent(self, mechanism: FieldMechanism) -> int:
        """Enrolment, an encrypted share for everybody else, the sum and its encrypted seed."""
        from faircount.protocol.peers.messages import ENROLMENT_BYTES
        from faircount.protocol.topologies.explicit.messages import PeerSum, ShareBundle

        # Computed and not encoded: for many participants the bundle itself would fill the memory.
        vector = packed_size(mechanism.modulus, mechanism.N)
        bundle = size_with_encrypted_shares(
            ShareBundle(bytes(16), 0, bytes(32), ()), mechanism.n - 1, vector + OVERHEAD
        )
        peer_sum = PeerSum(
            bytes(16), 0, bytes(32), 1, bytes(32), bytes(vector), bytes(ENCRYPTED_SEED_BYTES)
        )
        return ENROLMENT_BYTES + bundle + len(encode(peer_sum))

    def sizes(self, params: SurveyParameters) -> dict[type[Message], Size]:
        """An encrypted share for everybody else; a vector and a seed; everybody's place."""
        from faircount.protocol.topologies.explicit.messages import Complaint, PeerSum, ShareBundle

        vector = packed_size(params.q, params.N)
        return {
            ShareBundle: (params.n_max - 1, vector + OVERHEAD),
            PeerSum: (0, max(vector, ENCRYPTED_SEED_BYTES)),
            Complaint: (params.n_max - 1, 0),
        }

    def tolerated_malicious(self, who: Attendance) -> int:
        """How many malicious clients cannot stop the survey.

        At worst all of them complain in the first attempt and then vanish one by one, which costs
        one attempt each; one attempt must be left for the others.
        """
        # The honest clients must stay connected without the pairs that were complained about.
        connected = (who.users - who.insiders - 1) // 2
        return max(0, min(who.users - who.minimum, connected, who.attempts - 2))

    def completion_chance(self, who: Attendance) -> float:
        """The exact probability that everybody of a set comes back in one of the attempts."""
        return completion.chance(who)

    def completion_advice(self, who: Attendance, chance: float) -> str:
        """What the survey needs, and what loss it tolerates."""
        return completion.advice(who, chance)


EXPLICIT = Explicit()

"""The `explicit` topology: Algorithm 2 as printed. Everybody holds a share of everybody's vector.

    user   draws its vector and n - 1 uniform shares once, seals one to each other user                  -> S1, relayed
    user   tau_i(S) = R_i + sum over j in S of (s(j->i) - s(i->j)), under a fresh mask of its own          -> S1
           the seed of that mask, sealed to S2                                                           -> S1, relayed
    S1     all of S_a sent: claim, with the seeds. Somebody did not: S_(a+1) = those who did, and once more
    S2     says whose seeds open. All do: S1 hands over ONE sum. Some do not: once more, without their owners
    S2     takes the masks off, publishes. Over S the shares cancel: the sum of the tau_i is the sum of the R_i

The same shares serve every attempt, each under fresh masks. A pair whose shares do not open is left out by both.
"""

from faircount.core.errors import ParameterError
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.states import State
from faircount.protocol.survey.topology import Attendance, Size, Topology
from faircount.protocol.topologies.explicit.aggregator import S2
from faircount.protocol.topologies.explicit.completion import COMPLETION
from faircount.protocol.topologies.explicit.coordinator import S1
from faircount.protocol.topologies.explicit.messages import Complaint, ShareBundle, SumUpload
from faircount.protocol.topologies.explicit.user import ExplicitClient
from faircount.protocol.topologies.peers.messages import ENROLMENT_BYTES
from faircount.protocol.topologies.peers.vectors import runs
from faircount.protocol.wire.codec import Message, encode, size_with_blobs
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.sharing.packing import packed_size


def check(params: SurveyParameters) -> None:
    """Two users must be left to hide each other."""
    if params.n_max <= params.phi + 1:
        raise ParameterError(
            f"explicit: a sum needs at least {params.phi + 2} users, so that two are left to hide each other when "
            f"{params.phi} collude: invite more"
        )


def bytes_sent(mechanism: FieldMechanism) -> int:
    """Enrolment, a sealed row for everybody else, the sum and its sealed seed."""
    row = packed_size(mechanism.modulus, mechanism.N)
    bundle = size_with_blobs(ShareBundle(bytes(16), 0, bytes(32), ()), mechanism.n - 1, row + OVERHEAD)
    total = SumUpload(bytes(16), 0, bytes(32), 1, bytes(32), bytes(row), bytes(SEALED_SEED))
    return ENROLMENT_BYTES + bundle + len(encode(total))


def sizes(params: SurveyParameters) -> dict[type[Message], Size]:
    """A sealed row for everybody else; a vector and a sealed seed; everybody's place."""
    row = packed_size(params.q, params.N)
    return {
        ShareBundle: (params.n_max - 1, row + OVERHEAD),
        SumUpload: (0, max(row, SEALED_SEED)),
        Complaint: (params.n_max - 1, 0),
    }


def liars(who: Attendance) -> int:
    """All complain in the first attempt, then leave one by one, an attempt for each; one attempt must be left."""
    apart = (who.users - who.insiders - 1) // 2  # the set must hold together without the pairs that they complain of
    return max(0, min(who.users - who.minimum, apart, who.attempts - 2))


EXPLICIT = Topology(
    name="explicit",
    form="shares held by users",
    sees="every user one uniform share of each other one's vector, everybody the result",
    phases=(State.ENROLLING, State.SHARING, State.SUBMITTING),
    runs=runs,
    check=check,
    s1=S1,
    s2=S2,
    client=ExplicitClient(),
    bytes_sent=bytes_sent,
    sizes=sizes,
    completion=COMPLETION,
    liars=liars,
)

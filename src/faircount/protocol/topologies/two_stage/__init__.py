"""The two-stage topology: TSS (Algorithm 3) and TSS' (Algorithm 4).

    INDICATING   users send A_i and the key under which they report; at the deadline S1 fixes who may be elected, the
                 m_j and who is on the list of each item; S2 checks the keys, signs it all and reveals: the election
    SHARING      reporters send one bundle with the shares of all their items, all or nothing, under a number from S1
    SUBMITTING   elected users fetch the shares of their slots and add them up: the sums under a mask to S1, its seed
                 sealed to S2. All are there: claim, with the seeds. Somebody is missing: others take over its slots
    CLAIMED      S2 says whose seeds open. All do: S1 hands over ONE sum of each item. Some do not: others take over

A reporter that vanishes leaves all its items: the set shrinks, and every sum is made anew. An elected user that
vanishes is followed by the next of each item's order, and the reporters of these items send that slot's share, the same
one, once more; the other sums stay good as long as the set does. Who holds which slot is in `election`, who reports
what in `lists`, who leaves after complaints in `blame`.
"""

from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.two_stage import TSSPrime, reports_sets
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.states import State
from faircount.protocol.survey.topology import Attendance, Completion, Size, Topology
from faircount.protocol.topologies.peers.messages import ENROLMENT_BYTES
from faircount.protocol.topologies.two_stage.aggregator import S2
from faircount.protocol.topologies.two_stage.coordinator import S1
from faircount.protocol.topologies.two_stage.messages import Bundle, Indicator, SlotComplaint, SlotSums
from faircount.protocol.topologies.two_stage.user import TwoStageClient
from faircount.protocol.wire.codec import Message, encode, size_with_blobs
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.sharing.packing import packed_size

FRAGILE = (
    "fragile, and not computed: in one attempt every helper of every item must come; one who does not is replaced, and "
    "reporters who then do not come again leave; elect phi + 1 helpers only"
)


def runs(mechanism: FieldMechanism) -> FieldMechanism:
    """TSS and TSS': S1 sees sets of items, and sums per item are opened."""
    if mechanism.collected is not Collected.SETS:
        raise ParameterError(
            f"{mechanism.name} does not run as 'two-stage': choose 'servers', 'explicit' or 'masked', or 'shares'"
        )
    return mechanism


def check(params: SurveyParameters) -> None:
    """A two-stage mechanism, whose promise, helpers and commitment fit."""
    if params.phi and params.mechanism.insiders != params.phi:
        raise ParameterError("give insiders = phi: the promise must hold against as many users as the shares do")
    if params.minimum <= params.phi:
        raise ParameterError(f"the minimum must be above phi = {params.phi}: every item needs phi + 1 helpers")
    if params.k not in ({0, params.phi + 1} if params.phi else {0}):
        raise ParameterError("k is 0 for m'_j helpers, or phi + 1 for that many; only 0 without phi")
    if params.keys.s2_commitment == NO_COMMITMENT:
        raise ParameterError("two-stage surveys elect helpers: S2 must commit to a value")


def trial(users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
    """As many helpers as reporters, or in the variant phi + 1, so that somebody is left to step in."""
    alpha = (users - 1 - variant) / users
    return TSSPrime(items=users, users=users, p=1.0, alpha=alpha, phi=1), {"k": 2 * variant}


def bytes_sent(mechanism: FieldMechanism) -> int:
    """Of the average user: enrolment, its set, a sealed share for each helper of its items, sums of its own slots.

    An item has m_j reporters on average, and as many helpers, but at least phi + 1 and at most everybody.
    """
    staged = reports_sets(mechanism)
    helpers = min(staged.n, max(staged.least_helpers, round(staged.n * staged.reported / staged.N)))
    blob = packed_size(staged.modulus, 1) + OVERHEAD
    marks = bytes(-(-staged.N // 8))
    indicator = len(encode(Indicator(bytes(16), 0, bytes(32), marks, bytes(32), bytes(32))))
    bundle = size_with_blobs(Bundle(bytes(16), 0, bytes(32), 1, ()), staged.reported * helpers, blob)
    vector = bytes(packed_size(staged.modulus, round(staged.N * helpers / staged.n)))
    sums = len(encode(SlotSums(bytes(16), 0, bytes(32), 1, bytes(32), vector, bytes(SEALED_SEED))))
    return ENROLMENT_BYTES + indicator + bundle + sums


def sizes(params: SurveyParameters) -> dict[type[Message], Size]:
    """A bitmap over the items; a sealed element for each slot of the items reported; an element for each slot held."""
    staged, blob = reports_sets(params.mechanism), packed_size(params.q, 1) + OVERHEAD
    return {
        Indicator: (0, -(-params.N // 8)),
        Bundle: (staged.reported * params.n_max, blob),
        SlotSums: (0, max(packed_size(params.q, params.N), SEALED_SEED)),
        SlotComplaint: (params.n_max, 0),
    }


def _words(_: Attendance, __: float) -> str:
    return FRAGILE


def liars(who: Attendance) -> int:
    """Each costs three attempts, and at most phi are reckoned with; any two can make phi honest users leave."""
    most = max(1, who.insiders)
    borne = max(0, min(most, (who.attempts - 1) // 3))
    return max(c for c in range(borne + 1) if c + c * most // 2 * (c > 1) <= who.users - who.minimum)


TWO_STAGE = Topology(
    name="two-stage",
    form="elected helpers",
    sees="S1 which items a user reports, helpers uniform shares, S2 how many report an item, everybody the result",
    phases=(State.ENROLLING, State.INDICATING, State.SHARING, State.SUBMITTING),
    runs=runs,
    check=check,
    trial=trial,
    s1=S1,
    s2=S2,
    client=TwoStageClient(),
    bytes_sent=bytes_sent,
    sizes=sizes,
    completion=Completion("unknown", None, _words),
    liars=liars,
    reveals_with_roster=False,
    numbers_users=True,
)

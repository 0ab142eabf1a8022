"""The `two-stage` topology: TSS (Algorithm 3 of the paper) and TSS' (Algorithm 4).

In the first stage participants say which items they report, in the second they share one bit per
reported item with helpers who were elected for it.

    enrol        participants join the roster, which the aggregator confirms
    indicate     client i draws its coin, its set A_i of items and a bit for each, and sends A_i
                 with a fresh key under which it reports (Alg. 3, lines 2 to 9)  -> coordinator
    elect        the coordinator fixes who is eligible, the number m_j of reporters of every item j
                 and the list of them; the aggregator checks the keys, signs all of it and reveals
                 its committed value, from which everybody derives the helpers of each item
    share        a reporter splits each bit into m'_j shares and encrypts one to the holder of each
                 slot (lines 15 to 18), in one bundle under a number from the coordinator
    sum          a helper sums the shares of each slot that it holds (line 20), masks the sums, and
                 encrypts the seed to the aggregator. If all did: manifest, with the seeds. If
                 somebody is missing, other participants take over its slots
    accept       the aggregator names the seeds that it could decrypt. If all: the coordinator sends
                 one total per item, and the aggregator subtracts the masks and publishes

A reporter that vanishes leaves all its items: the set of reporters shrinks, and every sum is made
anew. A helper that vanishes is followed by the next in each item's order, and the reporters encrypt
the same share again to the successor; the other sums stay valid as long as the set does.

What each party sees: the coordinator sees A_i but no bit; helpers see uniform shares under a key
that does not identify the reporter; the aggregator sees how many report each item, seeds and
totals. It is safe because an item has at least phi + 1 helpers, so phi colluding ones miss a share,
and because an item's sum is over all its listed reporters who are present, or is not made at all
(`lists`). Who holds which slot is in `election`, who leaves after complaints in `blame`.
"""

from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.two_stage import TSSPrime, as_two_stage
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.topology import Attendance, Roles, Size, Topology
from faircount.protocol.wire.codec import Message, encode, size_with_encrypted_shares
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.sharing.packing import packed_size

FRAGILE = (
    "fragile, and not computed: in one attempt every helper of every item must come; one who does "
    "not is replaced, and reporters who then do not come again leave; elect phi + 1 helpers only"
)

ATTEMPTS_PER_MALICIOUS = 3
"""Attempts that a malicious client can cost: one as a helper, two as a reporter (`blame`)."""


class TwoStage(Topology):
    """TSS and TSS': elected helpers sum the shares of each item."""

    name = "two-stage"
    form = "elected helpers"
    sees = (
        "coordinator: which items a user reports; helpers: uniform shares; "
        "aggregator: how many report an item; everybody: the result"
    )
    phases = (Phase.ENROLLING, Phase.INDICATING, Phase.SHARING, Phase.SUBMITTING)
    needs_order_key = True
    reveals_with_roster = False

    def load_roles(self) -> Roles:
        """The rules of both servers and of the client."""
        from faircount.protocol.topologies.two_stage.aggregator import TwoStageAggregator
        from faircount.protocol.topologies.two_stage.coordinator import TwoStageCoordinator
        from faircount.protocol.topologies.two_stage.user import TwoStageClient

        return Roles(TwoStageCoordinator(), TwoStageAggregator(), TwoStageClient())

    def adapt_mechanism(self, mechanism: FieldMechanism) -> FieldMechanism:
        """TSS and TSS', whose coordinator sees sets of items and which publish a sum per item."""
        if mechanism.collected is not Collected.SETS:
            raise ParameterError(
                f"{mechanism.name} does not run as 'two-stage': choose 'servers', 'explicit' or "
                "'masked', or 'shares'"
            )
        return mechanism

    def check(self, params: SurveyParameters) -> None:
        """Refuse parameters in which insiders, helpers or the commitment do not fit together."""
        if params.phi and params.mechanism.insiders != params.phi:
            raise ParameterError(
                "give insiders = phi: the promise must hold against as many insiders as the "
                "shares do"
            )
        # Fewer reporters than phi + 1 could not hold that many slots.
        if params.minimum <= params.phi:
            raise ParameterError(
                f"the minimum must be above phi = {params.phi}: every item needs phi + 1 helpers"
            )
        # With fewer than phi + 1 helpers, phi colluding ones could hold all shares of a bit.
        if params.k not in ({0, params.phi + 1} if params.phi else {0}):
            raise ParameterError(
                "k is 0 for m'_j helpers, or phi + 1 for that many; only 0 without phi"
            )
        # Without a commitment the aggregator could choose the value, and so the helpers, late.
        if params.keys.aggregator_commitment == NO_COMMITMENT:
            raise ParameterError(
                "two-stage surveys elect helpers: the aggregator must commit to a value"
            )

    def example(self, users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
        """As many helpers as reporters; in the variant phi + 1, so that somebody can step in."""
        alpha = (users - 1 - variant) / users
        return TSSPrime(items=users, users=users, p=1.0, alpha=alpha, phi=1), {"k": 2 * variant}

    def bytes_sent(self, mechanism: FieldMechanism) -> int:
        """Bytes of the average client: enrolment, set, encrypted shares, sums of its slots.

        An item has m_j reporters on average, and as many helpers, but at least phi + 1 and at most
        everybody.
        """
        from faircount.protocol.peers.messages import ENROLMENT_BYTES
        from faircount.protocol.topologies.two_stage.messages import (
            Indicator,
            SlotBundle,
            SlotSums,
        )

        staged = as_two_stage(mechanism)
        reporters = round(staged.n * staged.reported_items / staged.N)
        helpers = min(staged.n, max(staged.least_helpers, reporters))
        bitmap = bytes(-(-staged.N // 8))
        indicator = Indicator(bytes(16), 0, bytes(32), bitmap, bytes(32), bytes(32))
        bundle_bytes = size_with_encrypted_shares(
            SlotBundle(bytes(16), 0, bytes(32), 1, ()),
            staged.reported_items * helpers,
            packed_size(staged.modulus, 1) + OVERHEAD,
        )
        # N items with that many slots each, over n participants.
        vector = bytes(packed_size(staged.modulus, round(staged.N * helpers / staged.n)))
        sums = SlotSums(bytes(16), 0, bytes(32), 1, bytes(32), vector, bytes(ENCRYPTED_SEED_BYTES))
        return ENROLMENT_BYTES + len(encode(indicator)) + bundle_bytes + len(encode(sums))

    def sizes(self, params: SurveyParameters) -> dict[type[Message], Size]:
        """A bitmap of items; a share for each slot of the reported items; a sum for each slot."""
        from faircount.protocol.topologies.two_stage.messages import (
            Indicator,
            SlotBundle,
            SlotComplaint,
            SlotSums,
        )

        reported = as_two_stage(params.mechanism).reported_items
        return {
            Indicator: (0, -(-params.N // 8)),
            SlotBundle: (reported * params.n_max, packed_size(params.q, 1) + OVERHEAD),
            SlotSums: (0, max(packed_size(params.q, params.N), ENCRYPTED_SEED_BYTES)),
            SlotComplaint: (params.n_max, 0),
        }

    def completion_advice(self, who: Attendance, chance: float) -> str:
        """Nobody has computed how likely completion is."""
        return FRAGILE

    def tolerated_malicious(self, who: Attendance) -> int:
        """How many malicious clients cannot stop the survey; at most phi are assumed.

        Each costs three attempts, and any two together can make phi honest participants leave.
        """
        assumed = max(1, who.insiders)
        affordable = max(0, min(assumed, (who.attempts - 1) // ATTEMPTS_PER_MALICIOUS))
        spare = who.users - who.minimum
        tolerated = 0
        for malicious in range(affordable + 1):
            honest_leaving = malicious * assumed // 2 if malicious > 1 else 0
            if malicious + honest_leaving <= spare:
                tolerated = malicious
        return tolerated


TWO_STAGE = TwoStage()

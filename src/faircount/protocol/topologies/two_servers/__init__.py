"""The `servers` topology: each participant sends one report, secret-shared between two servers.

    client        share1 = vector - expand(seed)                                  -> coordinator
                  the seed, encrypted to the aggregator and bound to the user id,
                  the key and a commitment to share1                              -> coordinator
    coordinator   freezes the batch manifest: per report the user id, the key, the
                  commitment and the hash of the encrypted share                  -> aggregator
    aggregator    records it and reserves the budget; the coordinator then sends
                  the encrypted shares; the aggregator decrypts them, fixes the
                  accepted reports for good and signs them                        -> coordinator
    coordinator   one aggregate share: the sum of share1 over the accepted reports -> aggregator
    aggregator    adds the sum of its expanded seeds, publishes the total with the
                  Merkle root of the accepted reports

What each party sees: the coordinator has share1, which is uniform because the seed's expansion is;
the aggregator has the seed, which is independent of the response. Privacy holds unless both server
operators collude. The set of accepted reports is fixed before anything is summed, and only one
aggregate share ever leaves the coordinator, so nobody can compare two sums.

The commitment has a salt that only the client and the coordinator know. A plain hash of share1
would reveal the response to the aggregator: it has the seed, a response has few possible values,
and it could try them all.

The shape is that of DAP with Prio (one upload, two aggregators); the sum over the shares is that of
Algorithm 2 of the paper with two servers that keep the shares. There is no roster and no position
in one: all clients draw noise of one distribution, and every key is salted with the digest of the
parameters. Reports may carry a proof of validity (`proofs`), which both servers check together.
"""

from dataclasses import replace
from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_joint import ServerJoint
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol.peers import vectors
from faircount.protocol.survey.parameters import SurveyParameters, questionnaire_of
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.server_secrets import check_commitments
from faircount.protocol.survey.topology import (
    TARGET_COMPLETION,
    Attendance,
    Roles,
    Topology,
    example_questionnaire,
    noiseless_mechanism,
)
from faircount.protocol.topologies.two_servers.reports import (
    describe_proof,
    report_layout_of,
    vector_size,
)
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.sharing.packing import packed_size


class TwoServers(Topology):
    """Participants split their report between two servers, in one visit."""

    name = "servers"
    form = "two servers"
    sees = "each server: one uniform share of every vector; everybody: the result"
    phases = (Phase.SUBMITTING,)
    completion_kind = "exact"
    attempts = 1
    supports_proofs = True

    def load_roles(self) -> Roles:
        """The rules of both servers and of the client."""
        from faircount.protocol.topologies.two_servers.aggregator import TwoServersAggregator
        from faircount.protocol.topologies.two_servers.coordinator import TwoServersCoordinator
        from faircount.protocol.topologies.two_servers.user import TwoServersClient

        return Roles(TwoServersCoordinator(), TwoServersAggregator(), TwoServersClient())

    def adapt_mechanism(self, mechanism: FieldMechanism) -> FieldMechanism:
        """A mechanism with proven reports, or one that sums vectors, with equal noise for all."""
        if mechanism.proven:
            # Raises ParameterError for a report that cannot be proven.
            report_layout_of(mechanism)
            return mechanism
        return vectors.check_sum_mechanism(mechanism).with_equal_noise()

    def check(self, params: SurveyParameters) -> None:
        """Refuse noise that depends on a position, and proofs without both commitments."""
        # Nobody has a position here, so nobody could be assigned more coins than others.
        if not params.mechanism.identical_for_all_users:
            raise ParameterError(
                "`servers` has no roster, so every user needs the same number of coins"
            )
        # Without commitments a server could choose its value when it has seen the reports.
        if params.proven:
            check_commitments(params)

    def bytes_sent(self, mechanism: FieldMechanism) -> int:
        """Bytes of one report, as it is encoded."""
        from faircount.protocol.topologies.two_servers.messages import SALT_BYTES, Report

        # A survey may run another form of a mechanism: two answers are a single bit there.
        if isinstance(mechanism, ServerJoint):
            labels = tuple(str(item) for item in range(mechanism.N))
            numbered = replace(mechanism, items=labels)
            mechanism = numbered.for_questionnaire(questionnaire_of(numbered, "Which one?"))
        # Every field has a fixed size in a survey, so zeros stand for the real bytes.
        report = Report(
            survey=bytes(16),
            access=bytes(32),
            public_key=bytes(32),
            mac=bytes(32),
            salt=bytes(SALT_BYTES),
            share=bytes(packed_size(mechanism.modulus, vector_size(mechanism))),
            encrypted_share=bytes(ENCRYPTED_SEED_BYTES),
            device_key=bytes(32),
        )
        return len(encode(report))

    def completion_chance(self, who: Attendance) -> float:
        """The exact probability that enough participants come to their one visit."""
        from scipy.stats import binom

        return float(1 - binom.cdf(who.minimum - 1, who.users, 1 - who.loss))

    def completion_advice(self, who: Attendance, chance: float) -> str:
        """One visit is all that this topology needs."""
        if chance >= TARGET_COMPLETION:
            return "one visit"
        return "too few come: plan with a larger dropout"

    def example(self, users: int, variant: int) -> tuple[FieldMechanism, dict[str, Any]]:
        """Proven sheets of three questions, or plain vectors in the odd variants.

        At so large an epsilon the noise is 0 except with probability 10^-8.
        """
        if variant % 2 == 1:
            return noiseless_mechanism(users), {}
        questionnaire = example_questionnaire(users)
        groups = split_epsilon(40.0, [range(len(questionnaire))])
        mechanism = ServerSheets(
            questionnaire=questionnaire, groups=groups, epsilon=40.0, users=users
        )
        return mechanism, {}

    def vector_size(self, mechanism: FieldMechanism) -> int:
        """Field elements that a client splits between the servers."""
        return vector_size(mechanism)

    def derived_parameters(self, mechanism: FieldMechanism) -> dict[str, Any]:
        """What the published parameters state about the proof."""
        return describe_proof(mechanism)


SERVERS = TwoServers()

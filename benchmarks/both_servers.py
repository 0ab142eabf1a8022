"""Both servers' work for one report, compared with the cryptography that they call for it.

A survey in memory, without network and database: from the bytes of a report to the result, as both
servers compute it. Beside it the primitives alone, each as often as a report needs it, called on
the same reports: hashes, MACs, X25519, HKDF, AES-GCM, the key stream with its field elements, and
the verifier shares of the proof. CPU times of one thread, in turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from time import process_time

from faircount.core.entropy import SystemEntropy
from faircount.core.questions import OneOf, Questionnaire
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SERVERS, encode, end_phase
from faircount.protocol.roles.coordinator import coordinator_step_for_many
from faircount.protocol.roles.limits import decode_client_message
from faircount.protocol.simulator import SurveySetup, exchange_messages, set_up
from faircount.protocol.survey.invitations import user_id, verify_entry_mac
from faircount.protocol.topologies.two_servers.messages import REPORTS_PER_PART, Report
from faircount.protocol.topologies.two_servers.proofs import Query, query_at, query_point
from faircount.protocol.topologies.two_servers.reports import (
    compute_verifier_shares,
    report_layout_of,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, respond, seed_info
from faircount.protocol.wire.digests import entry_leaves, merkle_root, tagged_hash
from faircount.server.run import search_less_for_garbage
from table import Row, markdown

USERS = REPORTS_PER_PART
ITEMS = 5
GROUP = 64  # reports that the coordinator writes and acknowledges together
TURNS = 15

# How often the coordinator computes its verifier shares: when it sends a part, and when it checks
# what the aggregator has found about it.
COMPUTED = 2


def rows() -> list[Row]:
    return [servers_row(questions) for questions in (1, 10)]


def servers_row(questions: int) -> Row:
    survey = Answered.of(questions)
    turns = [(survey.servers_seconds(), survey.primitives_seconds()) for _ in range(TURNS)]
    ours, alone = (median(spent) / USERS for spent in zip(*turns, strict=True))
    return Row(
        f"both servers per report, {questions} x one of {ITEMS}, n = {USERS:,}, in memory",
        ours,
        "the primitives that they call, alone",
        alone,
        f"CPU, medians of {TURNS} turns",
    )


@dataclass(frozen=True)
class Answered:
    """A survey, and what all its participants send."""

    survey: SurveySetup
    reports: list[Report]

    @classmethod
    def of(cls, questions: int) -> "Answered":
        entropy = SystemEntropy()
        labels = tuple(f"item {number}" for number in range(ITEMS))
        asked = tuple(OneOf(text=f"Question {n}?", items=labels) for n in range(questions))
        mechanism = ServerSheets(
            questionnaire=Questionnaire(asked),
            groups=split_epsilon(1.0, [range(questions)]),
            epsilon=1.0,
            users=USERS,
        )
        survey = set_up(mechanism, SERVERS, entropy)
        reports = []
        for place, invitation in enumerate(survey.invitations):
            sheet = tuple((place + number) % ITEMS for number in range(questions))
            reports.append(respond(survey.params, invitation, sheet, entropy).report)
        # As a server does when it starts.
        search_less_for_garbage()
        return cls(survey, reports)

    def servers_seconds(self) -> float:
        """CPU seconds of both servers, from the first report to the result."""
        s1 = self.survey.s1.copy()
        bodies = [encode(report) for report in self.reports]
        start = process_time()
        for first in range(0, USERS, GROUP):
            group = bodies[first : first + GROUP]
            reports = [decode_client_message(self.survey.params, body) for body in group]
            step, _ = coordinator_step_for_many(s1.state, reports, s1.rows)
            s1 = s1.write_step(step)
        s1, out = s1.make_step(end_phase)
        s1, _ = exchange_messages(s1, self.survey.s2.copy(), out)
        spent = process_time() - start
        assert s1.final is not None
        assert s1.final.message.included == USERS
        return spent

    def primitives_seconds(self) -> float:
        """CPU seconds of the primitives alone, for the same reports."""
        encoded = [encode(report) for report in self.reports]
        start = process_time()
        self._of_coordinator(encoded)
        self._of_aggregator()
        return process_time() - start

    def _of_coordinator(self, encoded: Sequence[bytes]) -> None:
        crypto = self.survey.s1.state.crypto
        key = self.survey.s1.state.key
        users = [user_id(report.access) for report in self.reports]
        for body in encoded:
            # The checksum of a message.
            sha256(body[:-8]).digest()
            # Stored, acknowledged as a leaf of its group's tree, and compared when it is read.
            tagged_hash(b"acknowledged", sha256(body).digest())
            sha256(body).digest()
        for first in range(0, USERS, GROUP):
            key.sign(merkle_root(sha256(body).digest() for body in encoded[first : first + GROUP]))
        for report in self.reports:
            crypto.commit(report.salt, report.share)
            sha256(report.encrypted_share).digest()
        for _ in range(COMPUTED):
            compute_verifier_shares(self.query, [report.share for report in self.reports])
        keys = [report.public_key for report in self.reports]
        merkle_root(entry_leaves(zip(users, keys, strict=True)))

    def _of_aggregator(self) -> None:
        params = self.survey.params
        s2 = self.survey.s2.state
        seeds = []
        infos = []
        for report, invitation in zip(self.reports, self.survey.invitations, strict=True):
            mac_key = invitation.enrolment_mac_key
            assert verify_entry_mac(mac_key, params.digest, report.public_key, report.mac)
            secret = s2.crypto.agree(s2.encryption_keys, report.public_key)
            commitment = s2.crypto.commit(report.salt, report.share)
            info = seed_info(params, invitation.user, report.public_key, commitment)
            sha256(report.encrypted_share).digest()
            seed = s2.crypto.decrypt(secret or b"", params.digest, info, report.encrypted_share)
            assert seed is not None
            seeds.append(seed)
            infos.append(expansion_info(params, invitation.user, report.public_key))
        size = SERVERS.vector_size(params.mechanism)
        shares = s2.crypto.expand_rows(seeds, params.digest, infos, params.q, size)
        self.query.verifier_shares(shares)
        entries = zip(
            (invitation.user for invitation in self.survey.invitations),
            (report.public_key for report in self.reports),
            strict=True,
        )
        merkle_root(entry_leaves(entries))

    @property
    def query(self) -> Query:
        layout = report_layout_of(self.survey.params.mechanism)
        assert layout is not None
        return query_at(layout, query_point(layout, bytes(32)))


if __name__ == "__main__":
    print(markdown(rows()))

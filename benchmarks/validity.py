"""Proofs that a report is one vote, compared with Prio3Histogram of the VDAF reference code.

That code is in no package registry. FAIRCOUNT_VDAF, or the first argument, is the `poc` folder of a
checkout of cfrg/draft-irtf-cfrg-vdaf. It needs Python 3.12 and pycryptodomex, so `make bench
PYTHON=python3.12` takes all rows. Without that code there are no rows about Prio3.

CPU times of one thread. Verifying is all that both servers do about the proof of one report:
unpacking or expanding the shares, computing the verifier shares, deciding. Bytes are what a client
sends for the two servers, before encryption.
"""

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, end_phase
from faircount.protocol.roles.coordinator import coordinator_step_for_many
from faircount.protocol.simulator import SurveySetup, exchange_messages, set_up
from faircount.protocol.topologies.two_servers.messages import Report
from faircount.protocol.topologies.two_servers.proofs import query_at, query_point
from faircount.protocol.topologies.two_servers.reports import (
    compute_verifier_shares,
    draw_vector,
    report_layout_of,
    vector_size,
)
from faircount.protocol.topologies.two_servers.user import respond
from faircount.sharing.expand import expand_rows
from faircount.sharing.field import subtract
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import pack, packed_size
from table import Row, ask_git, best_of, markdown

# Python that is written to be read: a fast Prio3 is in `prover`.
PRIO3 = "Prio3Histogram, VDAF reference code{} (Python, not written for speed)"
USERS = 1_000
MANY = 100_000
REPORTS = 4_096
GROUP = 100  # bodies that the coordinator writes and acknowledges together
TURNS = 5  # with proofs, without, with, ...: a machine that gets slower meanwhile does so for both


def rows() -> list[Row]:
    return [row for items in (30, 300) for row in proof_rows(items)] + [servers_row(MANY)]


def proof_rows(items: int) -> list[Row]:
    mechanism = ServerLaplace(items=items, users=USERS, epsilon=1.0)
    peer, other, about = prio3(items)
    prove = timed(lambda: draw_vector(mechanism, (7,), SystemEntropy()))
    verify = verification(mechanism)
    few, many = (bytes_of(items, users) for users in (USERS, MANY))
    said = f"row and seed {few:,} bytes, {many:,} for n = {MANY:,}{about}"
    return [
        Row(
            f"prove one of {items} items, n = {USERS:,}",
            prove,
            peer,
            other and timed(other.prove),
            said,
        ),
        Row(
            f"verify one of {items} items, both servers",
            verify,
            peer,
            other and timed(other.verify),
        ),
    ]


def timed(work: Callable[[], object]) -> float:
    return best_of(work, most=40, budget=3.0, clock=process_time)


def bytes_of(items: int, users: int) -> int:
    """Bytes of one report: the coordinator's share, packed, and the aggregator's seed."""
    mechanism = ServerLaplace(items=items, users=users, epsilon=1.0)
    return packed_size(mechanism.modulus, vector_size(mechanism)) + SEED_BYTES


def verification(mechanism: ServerLaplace) -> float:
    """Seconds per report, of many at once."""
    layout = report_layout_of(mechanism)
    assert layout is not None
    keys = [sha256(bytes([i & 255, i >> 8])).digest() for i in range(REPORTS)]
    second = expand_rows(keys, layout.q, layout.width)
    row = draw_vector(mechanism, (7,), SystemEntropy())
    shares = [pack(subtract(row, share, layout.q), layout.q) for share in second]
    asked = query_at(layout, query_point(layout, bytes(32)))

    def verify() -> None:
        mine = compute_verifier_shares(asked, shares)
        theirs = asked.verifier_shares(expand_rows(keys, layout.q, layout.width))
        if not asked.accepts(mine, theirs).all():
            raise RuntimeError("a valid report was refused")

    return timed(verify) / REPORTS


class Prio3:
    """One report of the reference code for two servers.

    Chunks have about the length of a square root, as its draft recommends.
    """

    def __init__(self, items: int, chunk: int | None = None) -> None:
        from vdaf_poc.vdaf_prio3 import Prio3Histogram

        self.vdaf = Prio3Histogram(2, items, chunk or max(1, round(items**0.5)))
        self.nonce, self.rand = (
            bytes(self.vdaf.NONCE_SIZE),
            bytes(range(256))[: self.vdaf.RAND_SIZE],
        )
        self.key, self.context = bytes(self.vdaf.VERIFY_KEY_SIZE), b"faircount"
        self.public, self.shares = self.prove()

    def prove(self) -> object:
        return self.vdaf.shard(self.context, 7, self.nonce, self.rand)

    def verify(self) -> None:
        begun = [
            self.vdaf.verify_init(
                self.key, self.context, at, None, self.nonce, self.public, self.shares[at]
            )
            for at in range(2)
        ]
        message = self.vdaf.verifier_shares_to_message(
            self.context, None, [share for _, share in begun]
        )
        for state, _ in begun:
            self.vdaf.verify_next(self.context, state, message)

    @property
    def bytes(self) -> int:
        shares = sum(len(self.vdaf.encode_input_share(share)) for share in self.shares)
        return shares + len(self.vdaf.encode_public_share(self.public))


def prio3(items: int) -> tuple[str, Prio3 | None, str]:
    """The reference code with its draft, if there is a path to it, and its bytes in words."""
    path = (
        sys.argv[1]
        if __name__ == "__main__" and len(sys.argv) > 1
        else os.environ.get("FAIRCOUNT_VDAF", "")
    )
    if not path:
        return PRIO3.format(""), None, "; Prio3 not measured: no FAIRCOUNT_VDAF"
    if sys.version_info < (3, 12):
        missing = "; Prio3 not measured: its reference code needs Python 3.12"
        return PRIO3.format(""), None, missing
    sys.path.insert(0, path)
    found = Prio3(items)
    best = min(Prio3(items, chunk).bytes for chunk in range(2, 2 * math.isqrt(items) + 2))
    draft = ask_git("describe", "--tags", "--always", folder=Path(path))
    about = f"; Prio3 {found.bytes:,}, {best:,} with its best chunks"
    return PRIO3.format(f" of {draft}"), found, about


def servers_row(users: int, items: int = 30) -> Row:
    """The work of both servers in a survey, from the first report to the result."""
    surveys = [
        Answered.of(kind(items=items, users=users, epsilon=1.0))
        for kind in (ServerLaplace, Laplace)
    ]
    turns = [[survey.servers_seconds() / users for survey in surveys] for _ in range(TURNS)]
    ours, without = (median(spent) for spent in zip(*turns, strict=True))
    note = f"{ours / without - 1:+.1%} with proofs, medians of {TURNS} turns"
    return Row(
        f"both servers per user, proven, n = {users:,}, N = {items}",
        ours,
        "without proofs",
        without,
        note,
    )


@dataclass(frozen=True)
class Answered:
    """A survey, and what all its users send."""

    survey: SurveySetup
    bodies: list[Report]

    @classmethod
    def of(cls, mechanism: FieldMechanism) -> "Answered":
        entropy = SystemEntropy()
        survey = set_up(mechanism, SERVERS, entropy)
        people = enumerate(survey.invitations)
        return cls(
            survey,
            [
                respond(survey.params, invitation, (at % mechanism.N,), entropy).report
                for at, invitation in people
            ],
        )

    def servers_seconds(self) -> float:
        """CPU seconds of both servers."""
        s1, start = self.survey.s1.copy(), process_time()
        for at in range(0, len(self.bodies), GROUP):
            step, _ = coordinator_step_for_many(s1.state, self.bodies[at : at + GROUP], s1.rows)
            s1 = s1.write_step(step)
        s1, out = s1.make_step(end_phase)
        s1, _ = exchange_messages(s1, self.survey.s2.copy(), out)
        spent = process_time() - start
        if s1.final is None or not np.any(getattr(s1.final.message, "counts", ())):
            raise RuntimeError("the survey has no result")
        return spent


if __name__ == "__main__":
    print(markdown([row for items in (30, 300) for row in proof_rows(items)]), flush=True)
    users = int(os.environ.get("FAIRCOUNT_BENCH_USERS", str(MANY)))
    print(markdown([servers_row(users)]))

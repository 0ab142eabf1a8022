"""The exact view of each server of a proven report, computed by running the real roles.

Servers are honest, curious or dishonest. In F_2 with the query in F_4 a report has 2^9 possible
shares of the aggregator and 2^2 blinds. A survey has one participant for every combination. Reports
are judged independently of each other, so counting over participants is counting over all outcomes.
About all reports together a server sees one sum. It is computed for both values of the other
server's noise, one fair bit that inverts both counts. The distribution of the view must be the same
whatever the participants answered. Clients and servers run their real functions on messages; the
cryptography is ideal.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256, sha512
from itertools import product
from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.proven import one_vote
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import (
    SERVERS,
    Aggregator,
    Coordinator,
    aggregator_step,
    coordinator_step,
    end_phase,
)
from faircount.protocol.roles.client import ClientState
from faircount.protocol.simulator import InMemory, set_up
from faircount.protocol.survey import acknowledgement
from faircount.protocol.topologies.two_servers import part_reports, reports
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.proofs import ReportLayout
from faircount.protocol.wire import signing
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.crypto import IdealCrypto
from faircount.protocol.wire.digests import bitmap, entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import Aborted, PartShares
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import pack, unpack

FORM = ReportLayout(2, 2, 0, one_vote(2), 2)
MASKS, BLINDS = (list(product(range(2), repeat=count)) for count in (FORM.width, FORM.degree))


@dataclass(frozen=True, kw_only=True)
class Tiny(ServerLaplace):
    """Sums modulo 2; a server's noise is one fair bit, which inverts both counts."""

    @property
    def modulus(self) -> int:
        return FORM.q

    def server_noise(self, entropy: Entropy) -> np.ndarray:
        return np.full(2, entropy.bytes(1)[0] & 1)

    def decode(self, total: np.ndarray, included: int) -> np.ndarray:
        return total.astype(np.int64)


class World(IdealCrypto):
    """A seed that is expanded for the first time gives `mask`; a commitment has only the salt."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = MASKS[0]
        self._expanded = dict[bytes, tuple[int, ...]]()

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> np.ndarray:
        return np.array(self._expanded.setdefault(info, self.mask), dtype=np.uint8)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        return sha256(b"commitment" + salt).digest()


class Drawn(Entropy):
    """Entropy with a given blind, and everything else the same in every run."""

    def __init__(self, name: int, blind: tuple[int, ...]) -> None:
        self._rest = SeededStream(name)
        self._blind = np.array(blind, dtype="<u2").view(np.uint8)

    def fill(self, out: np.ndarray) -> None:
        if out.size == self._blind.size:
            out[:] = self._blind
        else:
            self._rest.fill(out)


class FairBit(Entropy):
    """A stream in which all bytes are the given bit."""

    def __init__(self, bit: int) -> None:
        self._bit = bit

    def fill(self, out: np.ndarray) -> None:
        out[:] = self._bit


EXTRA = 3
OUTCOMES = [*product(MASKS, BLINDS), *((MASKS[0], BLINDS[0]) for _ in range(EXTRA))]
"""What user i draws: every outcome once.

The last three reports are never changed. They are the minimum, and make the votes odd.
"""

MASK_OF_USER = np.array([mask for mask, _ in OUTCOMES])


@pytest.fixture(scope="module")
def crowds() -> Iterator[dict[int, "Crowd"]]:
    """Signatures are hashes, a server's secret is its noise bit, and queries are in F_4."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            signing.SigningKey, "sign", lambda key, data: sha512(key.public + data).digest()
        )
        for place in (signing, acknowledgement):
            patch.setattr(
                place, "verify", lambda public, made, data: sha512(public + data).digest() == made
            )
        patch.setattr(reports, "report_layout", lambda *shape: FORM)
        patch.setattr(
            reports, "noise_stream", lambda params, server, secret, *what: FairBit(secret[0])
        )
        yield {answer: Crowd(answer) for answer in (0, 1)}


def as_it_is(what: Any, *_: Any) -> Any:
    return what


@dataclass(frozen=True)
class Deviation:
    """What a dishonest server changes.

    The coordinator changes its shares or its verifier shares, the aggregator its verifier shares
    and the accepted reports.
    """

    share: Callable[[bytes, int], bytes] = as_it_is
    batch: Callable[[PartShares], PartShares] = as_it_is
    judged: Callable[["Run"], "Run"] = as_it_is


HONEST = Deviation()


@dataclass(frozen=True)
class Collected:
    """One survey up to the coordinator's verifier shares."""

    s1: InMemory[Coordinator]
    s2: InMemory[Aggregator]
    manifest: BatchManifest
    batch: PartShares


@dataclass(frozen=True)
class Run:
    """One survey up to the accepted reports, with both values of the aggregator's noise."""

    s1: InMemory[Coordinator]
    s2: tuple[InMemory[Aggregator], InMemory[Aggregator]]
    manifest: BatchManifest
    batch: PartShares
    verified: VerifiedPart
    accepted: AcceptedReports
    deviation: Deviation

    def accepted_marks(self) -> np.ndarray:
        marks = np.zeros(len(OUTCOMES), dtype=np.uint8)
        marks[list(members_of(self.accepted.members, len(OUTCOMES)) or ())] = 1
        return marks

    def sum(self, bit: int) -> Any:
        """What the coordinator, whose noise is this bit, sends for the accepted reports."""
        s1 = self.s1.copy().replace_fields(noise_secret=bytes([bit]))
        accepted = replace(self.accepted, verified=hash_of_verified([self.verified]))
        with pytest.MonkeyPatch.context() as patch:
            if self.deviation.batch is not as_it_is:
                # A dishonest coordinator stands by the verifier shares that it has sent.
                own_shares = unpack_shares(self.batch.verifier_shares)
                patch.setattr(part_reports, "compute_verifier_shares", lambda *_: own_shares)
            s1, _ = s1.make_step(
                coordinator_step, sign(self.s2[0].key, Party.AGGREGATOR, self.verified)
            )
            _, out = s1.make_step(
                coordinator_step, sign(self.s2[0].key, Party.AGGREGATOR, accepted)
            )
        return parse(out[0].payload)

    def result(self, bit: int) -> Any:
        """The counts that the aggregator, whose noise is this bit, publishes."""
        sent = sign(self.s1.key, Party.COORDINATOR, self.sum(0))
        return parse(self.s2[bit].copy().make_step(aggregator_step, sent)[1][0].payload).counts


def unpack_shares(packed: bytes) -> np.ndarray:
    return unpack(packed, FORM.q, len(OUTCOMES) * FORM.verifier_size).reshape(
        -1, FORM.verifier_size
    )


def distribution(*columns: np.ndarray) -> Counter[bytes]:
    """How often every view of a report occurs, without the last three reports."""
    return Counter(map(bytes, np.hstack(columns).astype(np.uint8)[:-EXTRA]))


class Crowd:
    """A survey in which everybody gives the same answer, and user i draws the i-th outcome."""

    def __init__(self, answer: int) -> None:
        world = World()
        made = set_up(
            Tiny(items=2, users=len(OUTCOMES), epsilon=1.0),
            SERVERS,
            SeededStream(5),
            world,
            minimum=2,
        )
        self.s1 = made.s1
        self.s2 = made.s2
        self.reports = []
        people = sorted(made.invitations, key=lambda invitation: invitation.user)
        for number, (invitation, (mask, blind)) in enumerate(zip(people, OUTCOMES, strict=True)):
            world.mask = mask
            device = SERVERS.client.start(
                made.params, ClientState(invitation, (answer,)), world, Drawn(number, blind)
            )
            self.reports.append(device.waiting[0])

    @cached_property
    def with_unchanged_shares(self) -> Collected:
        """The survey up to the coordinator's verifier shares, if it changes no share."""
        return self.collect(as_it_is)

    def collect(self, share: Callable[[bytes, int], bytes]) -> Collected:
        """Run the roles from the first report to the coordinator's verifier shares."""
        s1 = self.s1.copy()
        for number, report in enumerate(self.reports):
            s1, _ = s1.make_step(
                coordinator_step, replace(report, share=share(report.share, number))
            )
        s1, (manifest,) = s1.make_step(end_phase)
        s2, (reservation,) = self.s2.copy().make_step(aggregator_step, manifest)
        s1, (batch,) = s1.make_step(coordinator_step, reservation)
        return Collected(s1, s2, parse(manifest.payload), parse(batch.payload))

    def run(self, deviation: Deviation = HONEST) -> Run:
        """Run the roles from the first report to the accepted reports."""
        if deviation.share is as_it_is:
            collected = self.with_unchanged_shares
        else:
            collected = self.collect(deviation.share)
        s1 = collected.s1.copy()
        s2 = collected.s2
        changed = deviation.batch(collected.batch)
        sent = sign(s1.key, Party.COORDINATOR, changed)
        (first, out), (second, _) = (
            s2.copy().replace_fields(noise_secret=bytes([bit])).make_step(aggregator_step, sent)
            for bit in (0, 1)
        )
        verified, accepted = (parse(statement.payload) for statement in out)
        run = Run(s1, (first, second), collected.manifest, changed, verified, accepted, deviation)
        return deviation.judged(run)

    def coordinator_view(self, deviation: Deviation = HONEST) -> tuple[Counter[bytes], set[object]]:
        """Views by report, and the results.

        A view is the share, the aggregator's verifier share, and whether the report is accepted.
        The results are those for both values of the aggregator's noise.
        """
        run = self.run(deviation)
        shares = np.array([unpack(report.share, FORM.q, FORM.width) for report in self.reports])
        views = distribution(
            shares, unpack_shares(run.verified.verifier_shares), run.accepted_marks()[:, np.newaxis]
        )
        return views, {run.result(bit) for bit in (0, 1)}

    def aggregator_view(self, deviation: Deviation = HONEST) -> tuple[Counter[bytes], set[object]]:
        """Views by report, and the sums.

        A view is the share and the coordinator's verifier share. The sums are those that the
        coordinator sends, if it does, for both values of its noise.
        """
        run = self.run(deviation)
        sent = set[object]()
        known = MASK_OF_USER[run.accepted_marks() == 1, :2].sum(axis=0)
        for message in (run.sum(0), run.sum(1)):
            is_sum = isinstance(message, AggregateShare)
            sent.add(tuple((unpack(message.total, 2, 2) + known) % 2) if is_sum else message)
        return distribution(MASK_OF_USER, unpack_shares(run.batch.verifier_shares)), sent


def shift_element(packed: bytes, at: int) -> bytes:
    """The verifier shares of all reports, with one element of every report changed."""
    found = unpack_shares(packed)
    found[:-EXTRA, at] ^= 1
    return pack(found.reshape(-1), FORM.q)


def shifting_coordinator(at: int) -> Deviation:
    return Deviation(
        batch=lambda batch: replace(batch, verifier_shares=shift_element(batch.verifier_shares, at))
    )


def shifting_aggregator(at: int) -> Deviation:
    """The aggregator accepts those reports that the coordinator must then find valid."""

    def accept_valid(run: Run) -> Run:
        theirs = shift_element(run.verified.verifier_shares, at)
        query = reports.derive_query(
            run.s1.params, FORM, (run.s1.committed_value, run.s2[0].committed_value)
        )
        valid = query.accepts(unpack_shares(run.batch.verifier_shares), unpack_shares(theirs))
        shifted = replace(run, verified=replace(run.verified, verifier_shares=theirs))
        return with_members(shifted, valid)

    return Deviation(judged=accept_valid)


def with_members(run: Run, marks: np.ndarray) -> Run:
    members = np.flatnonzero(marks).tolist()
    entries = [(run.manifest.entries[i].user, run.manifest.entries[i].public_key) for i in members]
    accepted = replace(
        run.accepted,
        members=bitmap(members, len(OUTCOMES)),
        root=merkle_root(entry_leaves(entries)),
    )
    return replace(run, accepted=accepted)


def changing_coordinator(at: int) -> Deviation:
    def share(packed: bytes, number: int) -> bytes:
        row = unpack(packed, FORM.q, FORM.width)
        row[at] ^= number < len(OUTCOMES) - EXTRA
        return pack(row, FORM.q)

    return Deviation(share=share)


ELEMENTS = [0, 2, 4]
"""An element of f(r), of h(r), and the sum."""


@pytest.mark.slow
def test_honest_and_curious_servers_see_the_same_whatever_the_answer_and_everybody_counts(
    crowds,
) -> None:
    for look in (Crowd.coordinator_view, Crowd.aggregator_view):
        (views, sums), other = (look(crowds[answer]) for answer in (0, 1))
        assert (views, sums) == other
        assert sums == {(0, 1), (1, 0)}
        assert sum(views.values()) == len(MASKS) * len(BLINDS)
    assert crowds[0].run().accepted_marks().all()


@pytest.mark.parametrize("at", ELEMENTS)
def test_a_coordinator_that_shifts_verifier_shares_sees_the_same(crowds, at) -> None:
    found = [crowds[answer].coordinator_view(shifting_coordinator(at)) for answer in (0, 1)]
    assert found[0] == found[1]


@pytest.mark.parametrize("at", ELEMENTS)
def test_an_aggregator_that_shifts_verifier_shares_sees_the_same(crowds, at) -> None:
    found = [crowds[answer].aggregator_view(shifting_aggregator(at)) for answer in (0, 1)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("at", "counted"), [(0, 0), (FORM.bits, 1), (FORM.width - 1, 0)], ids=["a bit", "s", "h"]
)
def test_a_coordinator_that_changes_its_shares_sees_the_same(crowds, at, counted) -> None:
    """Reports with another bit or another h are rejected; another s is not noticed here.

    Z(r) is 1 in this field, and f + 1 has the same h as f.
    """
    found = [crowds[answer].coordinator_view(changing_coordinator(at)) for answer in (0, 1)]
    assert found[0] == found[1]
    assert {view[-1] for view in found[0][0]} == {counted}


def test_an_aggregator_that_rejects_valid_reports_sees_the_same_and_gets_no_sum(crowds) -> None:
    half = Deviation(judged=lambda run: with_members(run, np.arange(len(OUTCOMES)) % 2))
    found = [crowds[answer].aggregator_view(half) for answer in (0, 1)]
    assert found[0] == found[1]
    assert all(isinstance(message, Aborted) for message in found[0][1])


def test_a_known_blind_or_missing_noise_is_seen(crowds) -> None:
    """Planted errors: a known blind, or a sum without noise, reveals the answers."""
    runs = [crowds[answer].run() for answer in (0, 1)]
    same = np.array([blind == BLINDS[0] for _, blind in OUTCOMES])[:-EXTRA]
    views = [
        np.hstack([MASK_OF_USER, unpack_shares(run.batch.verifier_shares)])[:-EXTRA][same]
        for run in runs
    ]
    assert Counter(map(bytes, views[0])) != Counter(map(bytes, views[1]))
    assert runs[0].sum(0) != runs[1].sum(0)
    assert runs[0].result(0) != runs[1].result(0)

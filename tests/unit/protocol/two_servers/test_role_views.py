"""What the coordinator and the aggregator see of a proven report, exactly, through the real roles: honest, curious and lying servers.

In F_2 with the question in F_4 a report has 2^9 possible shares of the aggregator and 2^2 blinds. A survey has a user for every one
of them: since each report is answered and judged apart from the others, counting over its users is counting over all
outcomes. What a server sees of all of them together is one sum; it is looked at with the other server's noise both
ways, one fair bit that turns both counts over. The law of what is seen must be the same whatever the users answered.
Everything is done by the client's and the servers' own functions, on messages; cryptography is ideal.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256, sha512
from itertools import product
from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, Aggregator, Coordinator, aggregate, coordinate, end_phase
from faircount.protocol.roles.client import ClientState
from faircount.protocol.simulator import InMemory, set_up
from faircount.protocol.survey import acknowledgement
from faircount.protocol.topologies.two_servers import reports
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    BatchManifest,
)
from faircount.protocol.topologies.two_servers.validity import ReportForm
from faircount.protocol.topologies.two_servers.verifier_shares import servers_state
from faircount.protocol.wire import signing
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.crypto import IdealCrypto
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Aborted, ShareBatch
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import pack, unpack

FORM = ReportForm(2, 2, 0, 2)
MASKS, BLINDS = (list(product(range(2), repeat=count)) for count in (FORM.width, FORM.degree))


@dataclass(frozen=True, kw_only=True)
class Tiny(ServerLaplace):
    """Sums modulo 2; a server's noise is one fair bit, which turns both counts over."""

    @property
    def modulus(self) -> int:
        return FORM.q

    def server_noise(self, entropy: Entropy) -> np.ndarray:
        return np.full(2, entropy.bytes(1)[0] & 1)

    def decode(self, total: np.ndarray, included: int) -> np.ndarray:
        return total.astype(np.int64)


class World(IdealCrypto):
    """A seed that is expanded for the first time gives `mask`; a commitment says nothing but its salt."""

    def __init__(self) -> None:
        super().__init__()
        self.mask, self._expanded = MASKS[0], dict[bytes, tuple[int, ...]]()

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> np.ndarray:
        return np.array(self._expanded.setdefault(info, self.mask), dtype=np.uint8)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        return sha256(b"commitment" + salt).digest()


class Drawn(Entropy):
    """The blind as it is to be, and everything else the same in every run."""

    def __init__(self, name: int, blind: tuple[int, ...]) -> None:
        self._rest, self._blind = SeededStream(name), np.array(blind, dtype="<u2").view(np.uint8)

    def fill(self, out: np.ndarray) -> None:
        if out.size == self._blind.size:
            out[:] = self._blind
        else:
            self._rest.fill(out)


class FairBit(Entropy):
    """A stream of which every bit is the same, and given."""

    def __init__(self, bit: int) -> None:
        self._bit = bit

    def fill(self, out: np.ndarray) -> None:
        out[:] = self._bit


EXTRA = 3
OUTCOMES = [*product(MASKS, BLINDS), *((MASKS[0], BLINDS[0]) for _ in range(EXTRA))]
"""What user i draws: everything once. About the last three nobody lies: they are a minimum, and make votes odd."""

MASK_OF_EACH = np.array([mask for mask, _ in OUTCOMES])


@pytest.fixture(scope="module")
def crowds() -> Iterator[dict[int, "Crowd"]]:
    """Signatures are hashes, a server's secret is the bit of its noise, and reports are proven in F_4."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            signing.SigningKey, "sign", lambda key, data: sha512(key.public + data).digest()
        )
        for place in (signing, acknowledgement):
            patch.setattr(
                place, "verify", lambda public, made, data: sha512(public + data).digest() == made
            )
        patch.setattr(reports, "report_form", lambda q, items, coins, users: FORM)
        patch.setattr(
            reports, "noise_stream", lambda params, server, secret, *what: FairBit(secret[0])
        )
        yield {answer: Crowd(answer) for answer in (0, 1)}


def as_it_is(what: Any, *_: Any) -> Any:
    return what


@dataclass(frozen=True)
class Lie:
    """What a server changes of its own: the coordinator its shares or its answers about them, the aggregator the set that it names."""

    share: Callable[[bytes, int], bytes] = as_it_is
    batch: Callable[[ShareBatch], ShareBatch] = as_it_is
    included: Callable[[AcceptedReports, "Run"], AcceptedReports] = as_it_is


HONEST = Lie()


@dataclass(frozen=True)
class Run:
    """One survey up to the aggregator's set: the coordinator, the aggregator with its noise both ways, and what they said."""

    s1: InMemory[Coordinator]
    s2: tuple[InMemory[Aggregator], InMemory[Aggregator]]
    manifest: BatchManifest
    batch: ShareBatch
    stated: AcceptedReports

    def accepted(self) -> np.ndarray:
        marks = np.zeros(len(OUTCOMES), dtype=np.uint8)
        marks[list(members_of(self.stated.members, len(OUTCOMES)) or ())] = 1
        return marks

    def sum(self, bit: int) -> Any:
        """What the coordinator, whose noise is this bit, sends when it is told the set."""
        s1 = self.s1.copy().changed(noise_secret=bytes([bit]))
        return parse(
            s1.do(coordinate, sign(self.s2[0].key, Party.AGGREGATOR, self.stated))[1][0].payload
        )

    def result(self, bit: int) -> Any:
        """What the aggregator, whose noise is this bit, says when it is sent the sum."""
        sent = sign(self.s1.key, Party.COORDINATOR, self.sum(0))
        return parse(self.s2[bit].copy().do(aggregate, sent)[1][0].payload).counts


def answers(packed: bytes) -> np.ndarray:
    return unpack(packed, FORM.q, len(OUTCOMES) * FORM.verifier_size).reshape(
        -1, FORM.verifier_size
    )


def law(*columns: np.ndarray) -> Counter[bytes]:
    """How often each view of a report comes, those of the last three not among them."""
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
        self.s1, self.s2, self.first_messages = made.s1, made.s2, []
        people = sorted(made.invitations, key=lambda each: each.user)
        for number, (each, (mask, blind)) in enumerate(zip(people, OUTCOMES, strict=True)):
            world.mask = mask
            device = SERVERS.client.start(
                made.params, ClientState(each, answer), world, Drawn(number, blind)
            )
            self.first_messages.append(device.waiting[0])

    def run(self, lie: Lie = HONEST) -> Run:
        """The roles from the first message to the aggregator's set."""
        s1 = self.s1.copy()
        for number, body in enumerate(self.first_messages):
            s1, _ = s1.do(coordinate, replace(body, share=lie.share(body.share, number)))
        s1, (manifest,) = s1.do(end_phase)
        s2, (reservation,) = self.s2.copy().do(aggregate, manifest)
        s1, (batch,) = s1.do(coordinate, reservation)
        told = lie.batch(parse(batch.payload))
        # A liar goes on with its lie.
        s1 = s1.changed(
            topology_state=replace(servers_state(s1), verifier_shares=(told.verifier_shares,))
        )
        sent = sign(s1.key, Party.COORDINATOR, told)
        (first, out), (second, _) = (
            s2.copy().changed(noise_secret=bytes([bit])).do(aggregate, sent) for bit in (0, 1)
        )
        run = Run(s1, (first, second), parse(manifest.payload), told, parse(out[0].payload))
        return replace(run, stated=lie.included(run.stated, run))

    def seen_by_s1(self, lie: Lie = HONEST) -> tuple[Counter[bytes], set[object]]:
        """By report: its share, the aggregator's answers, whether it counts. Of all: the result, with the aggregator's noise both ways."""
        run, shares = (
            self.run(lie),
            np.array([unpack(each.share, FORM.q, FORM.width) for each in self.first_messages]),
        )
        views = law(shares, answers(run.stated.verifier_shares), run.accepted()[:, np.newaxis])
        return views, {run.result(bit) for bit in (0, 1)}

    def seen_by_s2(self, lie: Lie = HONEST) -> tuple[Counter[bytes], set[object]]:
        """By report: its share, the coordinator's answers. Of all: the sum, if the coordinator sends one, with the coordinator's noise both ways."""
        run, sent = self.run(lie), set[object]()
        known = MASK_OF_EACH[run.accepted() == 1, :2].sum(axis=0)
        for message in (run.sum(0), run.sum(1)):
            is_sum = isinstance(message, AggregateShare)
            sent.add(tuple((unpack(message.total, 2, 2) + known) % 2) if is_sum else message)
        return law(MASK_OF_EACH, answers(run.batch.verifier_shares)), sent


def shifted(packed: bytes, at: int) -> bytes:
    """Answers about all reports, each with one element changed."""
    found = answers(packed)
    found[:-EXTRA, at] ^= 1
    return pack(found.reshape(-1), FORM.q)


def s1_shifts(at: int) -> Lie:
    return Lie(
        batch=lambda batch: replace(batch, verifier_shares=shifted(batch.verifier_shares, at))
    )


def s2_shifts(at: int) -> Lie:
    """It names those whom the coordinator must then find valid."""

    def included(stated: AcceptedReports, run: Run) -> AcceptedReports:
        theirs = shifted(stated.verifier_shares, at)
        asked = reports.derive_query(run.s1.params, FORM, (run.s1.committed, run.s2[0].committed))
        valid = asked.accepts(answers(run.batch.verifier_shares), answers(theirs))
        return named(replace(stated, verifier_shares=theirs), run, valid)

    return Lie(included=included)


def named(stated: AcceptedReports, run: Run, marks: np.ndarray) -> AcceptedReports:
    members = np.flatnonzero(marks).tolist()
    lines = [(run.manifest.entries[i].user, run.manifest.entries[i].public_key) for i in members]
    return replace(
        stated, members=bitmap(members, len(OUTCOMES)), root=merkle_root(roster_leaves(lines))
    )


def s1_changes(at: int) -> Lie:
    def share(packed: bytes, number: int) -> bytes:
        row = unpack(packed, FORM.q, FORM.width)
        row[at] ^= number < len(OUTCOMES) - EXTRA
        return pack(row, FORM.q)

    return Lie(share=share)


ANSWER = [0, 2, 4]
"""An element of f(r), of h(r), and the sum."""


def test_honest_and_curious_servers_see_the_same_whatever_the_answer_and_everybody_counts(
    crowds,
) -> None:
    for look in (Crowd.seen_by_s1, Crowd.seen_by_s2):
        (views, sums), other = (look(crowds[answer]) for answer in (0, 1))
        assert (views, sums) == other
        assert sums == {(0, 1), (1, 0)}
        assert sum(views.values()) == len(MASKS) * len(BLINDS)
    assert crowds[0].run().accepted().all()


@pytest.mark.parametrize("at", ANSWER)
def test_s1_that_shifts_its_answers_sees_the_same(crowds, at) -> None:
    found = [crowds[answer].seen_by_s1(s1_shifts(at)) for answer in (0, 1)]
    assert found[0] == found[1]


@pytest.mark.parametrize("at", ANSWER)
def test_s2_that_shifts_its_answers_sees_the_same(crowds, at) -> None:
    found = [crowds[answer].seen_by_s2(s2_shifts(at)) for answer in (0, 1)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("at", "counted"), [(0, 0), (FORM.bits, 1), (FORM.width - 1, 0)], ids=["a bit", "s", "h"]
)
def test_s1_that_changes_an_element_of_its_shares_sees_the_same(crowds, at, counted) -> None:
    """Reports with another bit or another h are refused. Z(r) is 1 in this field, and f + 1 has the same h as f."""
    found = [crowds[answer].seen_by_s1(s1_changes(at)) for answer in (0, 1)]
    assert found[0] == found[1]
    assert {view[-1] for view in found[0][0]} == {counted}


def test_s2_that_calls_valid_reports_invalid_sees_the_same_and_gets_no_sum(crowds) -> None:
    half = Lie(included=lambda stated, run: named(stated, run, np.arange(len(OUTCOMES)) % 2))
    found = [crowds[answer].seen_by_s2(half) for answer in (0, 1)]
    assert found[0] == found[1]
    assert all(isinstance(each, Aborted) for each in found[0][1])


def test_a_known_blind_or_missing_noise_is_seen(crowds) -> None:
    """The planted errors: of reports with the same blind the answers tell, and so does a sum without noise."""
    runs = [crowds[answer].run() for answer in (0, 1)]
    same = np.array([blind == BLINDS[0] for _, blind in OUTCOMES])[:-EXTRA]
    told = [
        np.hstack([MASK_OF_EACH, answers(run.batch.verifier_shares)])[:-EXTRA][same] for run in runs
    ]
    assert Counter(map(bytes, told[0])) != Counter(map(bytes, told[1]))
    assert runs[0].sum(0) != runs[1].sum(0)
    assert runs[0].result(0) != runs[1].result(0)

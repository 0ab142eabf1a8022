"""Algorithms 2 to 4, and two cheaper forms of the first, with a tally: what each party draws, adds, sends, receives.

`protocol.run` does the same without keeping the shares. Here they are all laid out, senders by receivers, so that they
can be counted; the opened sum must be the one that the mechanism itself computes.
"""

from collections import Counter

import numpy as np

from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import CorruptSumError
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.mechanisms.two_stage import TSS, TwoStageResponse
from faircount.sharing.additive import combine, split
from faircount.sharing.expand import expand
from faircount.sharing.field import subtract
from faircount.sharing.keys import SEED_BYTES, derive_key

USER, SERVER, S1, S2 = "user", "server", "S1", "S2"


class Tally:
    """Counts by party and kind; those of the users are of all users together."""

    def __init__(self, *, labelled: bool = False) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.rounds: Counter[str] = Counter()
        self._labelled = labelled  # whether every message of a user names the item it is about

    def note(self, party: str, kind: str, amount: int) -> None:
        """Add to a count."""
        self.counts[party, kind] += amount

    def begin_round(self, party: str) -> None:
        """The party is about to send: once for all users, who do it at the same time."""
        self.rounds[party] += 1

    def share(self, row: Residues, sender: int, receivers: Ints, q: int, entropy: Entropy) -> Residues:
        """A user's shares, one per receiver. All but the last are drawn; the last takes as many additions as draws."""
        shares = split(row, receivers.size, q, entropy)
        self.note(USER, "field elements drawn", shares[:-1].size)
        self.note(USER, "field additions", shares[:-1].size)
        self.note(USER, "field additions as reporter", shares[:-1].size)
        abroad = shares[receivers != sender]  # what stays at home is not sent
        self.note(USER, "field elements received", abroad.size)
        self.send(USER, abroad)
        return shares

    def pass_on(self, shares: Residues, q: int) -> Residues:
        """Shares (senders, receivers, ...) are added up by their receivers and sent on to a server."""
        sums = self.add(USER, shares, q)
        self.note(USER, "field additions as helper", shares[1:].size)
        self.send(USER, sums)
        return sums

    def add(self, party: str, rows: Residues, q: int) -> Residues:
        """The sum of the rows, made by a party."""
        self.note(party, "field additions", rows[1:].size)
        return combine(rows, q)

    def expand(self, party: str, seed: bytes, q: int, count: int) -> Residues:
        """A share from the seed that stands for it."""
        self.note(party, "field elements expanded", count)
        return expand(derive_key(seed, b"", b"costs"), q, count)

    def hide(self, row: Residues, seeds: list[bytes], q: int) -> Residues:
        """A user's row minus the shares that its seeds stand for."""
        for seed in seeds:
            row = subtract(row, self.expand(USER, seed, q, row.size), q)
            self.note(USER, "field additions", row.size)
        self.note(USER, "seeds drawn", len(seeds))
        return row

    def send(self, party: str, elements: Residues) -> None:
        """Elements on their way to another party."""
        self.note(party, "field elements sent", elements.size)
        if self._labelled:
            self.note(party, "item labels sent", elements.size)

    def per_party(self, users: int) -> dict[str, float]:
        """Counts by name, those of the users divided by their number; rounds are those of a party as a whole."""
        counts = {
            f"{party}: {kind}": count / (users if party == USER else 1) for (party, kind), count in self.counts.items()
        }
        return counts | {f"{party}: rounds": float(number) for party, number in self.rounds.items()}


def distributed_sampling(mechanism: SharedMechanism, answers: Ints, entropy: Entropy) -> dict[str, float]:
    """Algorithm 2: everybody shares with everybody."""
    n, q, tally = mechanism.n, mechanism.modulus, Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    everybody = np.arange(n)
    tally.begin_round(USER)
    shares = np.array([tally.share(row, i, everybody, q, entropy) for i, row in enumerate(responses)])
    tally.begin_round(USER)
    opened = tally.add(SERVER, tally.pass_on(shares, q), q)
    _check(opened, mechanism.total(responses))
    tally.note(SERVER, "real multiplications", opened.size)
    return tally.per_party(n)


def seeded_sampling(mechanism: SharedMechanism, answers: Ints, entropy: Entropy) -> dict[str, float]:
    """Algorithm 2 with seeds: a share is sent as the seed that expands to it; the one that is not stays at home."""
    n, q, tally = mechanism.n, mechanism.modulus, Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    seeds = [[entropy.bytes(SEED_BYTES) for _ in range(n - 1)] for _ in range(n)]
    held = [[tally.hide(row, mine, q)] for row, mine in zip(responses, seeds, strict=True)]
    tally.begin_round(USER)
    for sender, mine in enumerate(seeds):
        tally.note(USER, "seeds sent", len(mine))
        for receiver, seed in zip((each for each in range(n) if each != sender), mine, strict=True):
            held[receiver].append(tally.expand(USER, seed, q, mechanism.N))
    sums = np.array([tally.add(USER, np.array(mine), q) for mine in held])
    tally.begin_round(USER)
    tally.send(USER, sums)
    opened = tally.add(SERVER, sums, q)
    _check(opened, mechanism.total(responses))
    tally.note(SERVER, "real multiplications", opened.size)
    return tally.per_party(n)


def two_servers(mechanism: SharedMechanism, answers: Ints, entropy: Entropy) -> dict[str, float]:
    """The `servers` topology: a user's row minus an expanded seed goes to S1, the seed to S2; S1 sends one sum."""
    n, q, tally = mechanism.n, mechanism.modulus, Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    seeds = [entropy.bytes(SEED_BYTES) for _ in range(n)]
    hidden = np.array([tally.hide(row, [seed], q) for row, seed in zip(responses, seeds, strict=True)])
    tally.begin_round(USER)
    tally.send(USER, hidden)
    tally.note(USER, "seeds sent", len(seeds))
    first = tally.add(S1, hidden, q)
    tally.begin_round(S1)
    tally.send(S1, first)
    second = tally.add(S2, np.array([tally.expand(S2, seed, q, mechanism.N) for seed in seeds]), q)
    opened = tally.add(S2, np.array([first, second]), q)
    _check(opened, mechanism.total(responses))
    tally.note(S2, "real multiplications", opened.size)
    return tally.per_party(n)


FIXED = {"dpds": distributed_sampling, "seeded": seeded_sampling, "servers": two_servers}
"""Protocols whose counts do not depend on chance."""


def two_stage(mechanism: TSS, answers: Ints, entropy: Entropy, rng: np.random.Generator) -> dict[str, float]:
    """Algorithm 3: S1 elects as many helpers for an item as it has reporters, who share among them; S2 opens."""
    return _two_stage(mechanism, mechanism.respond(answers, entropy), 0, entropy, rng)


def added_by_more_helpers(
    mechanism: TSS, answers: Ints, entropy: Entropy, rng: np.random.Generator
) -> dict[str, float]:
    """What Algorithm 4, with phi + 1 helpers or more for every item, costs beyond Algorithm 3 for the same reports."""
    responses = mechanism.respond(answers, entropy)
    more, plain = (_two_stage(mechanism, responses, phi, entropy, rng) for phi in (mechanism.covered_colluders, 0))
    return {name: amount - plain.get(name, 0.0) for name, amount in more.items()}


def _two_stage(
    mechanism: TSS, responses: TwoStageResponse, phi: int, entropy: Entropy, rng: np.random.Generator
) -> dict[str, float]:
    n, items, tally = mechanism.n, mechanism.N, Tally(labelled=True)
    for kind, amount in (("Bernoulli draws", n), ("sets drawn", n), ("bits sent", responses.indicators.size)):
        tally.note(USER, kind, amount)
    for party in (USER, S1, USER, USER):  # sets to S1, helpers to everybody, shares to helpers, sums to S2
        tally.begin_round(party)
    tally.note(S1, "additions of counts", responses.indicators[1:].size)
    tally.note(S1, "item labels sent", (n + 1) * items)
    tally.note(S1, "numbers of reporters sent", (n + 1) * items if phi else 0)
    opened = np.zeros(items, dtype=responses.bits.dtype)
    for j in range(items):
        reporters = np.flatnonzero(responses.indicators[:, j])
        opened[j] = _item(responses.bits[:, j], reporters, phi, mechanism.modulus, tally, entropy, rng)
    _check(opened, mechanism.total(responses).sums)
    tally.note(S2, "real multiplications", items)
    return tally.per_party(n)


def _item(
    bits: Residues, reporters: Ints, phi: int, q: int, tally: Tally, entropy: Entropy, rng: np.random.Generator
) -> int:
    """One item's sum, as S2 opens it."""
    if not reporters.size:
        return 0
    helpers = rng.choice(bits.size, max(reporters.size, phi + 1), replace=False)
    tally.note(S1, "helpers drawn", helpers.size)
    tally.note(S1, "user labels sent", (bits.size + 1) * helpers.size)
    shares = np.array([tally.share(bits[i], i, helpers, q, entropy) for i in reporters])
    return int(tally.add(S2, tally.pass_on(shares, q), q))


def _check(opened: Residues, wanted: Residues) -> None:
    if not np.array_equal(opened, wanted):
        raise CorruptSumError("the parties' sum is not the mechanism's: the count of what they did means nothing")

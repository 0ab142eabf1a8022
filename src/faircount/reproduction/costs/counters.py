"""Algorithms 2 to 4 of the paper, and two cheaper forms of Algorithm 2, run with counters.

The simulator in `protocol` computes the same sums without keeping every share. Here all shares are
laid out as an array of senders by receivers, so that what every party draws, adds, sends and
receives can be counted. The revealed sum must equal the one that the mechanism itself computes:
otherwise something other than the protocol was counted.
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

USER = "user"
SERVER = "server"
S1 = "S1"
S2 = "S2"


class Tally:
    """Counts by party and kind; those of the users are for all users together.

    labels_items: whether every message of a user names the item that it is about
    """

    def __init__(self, *, labels_items: bool = False) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.rounds: Counter[str] = Counter()
        self._labels_items = labels_items

    def note(self, party: str, kind: str, amount: int) -> None:
        """Add to a count."""
        self.counts[party, kind] += amount

    def begin_round(self, party: str) -> None:
        """The party is about to send; users send at the same time, so they share a round."""
        self.rounds[party] += 1

    def share(
        self, row: Residues, sender: int, receivers: Ints, q: int, entropy: Entropy
    ) -> Residues:
        """Split a user's row into one share for every receiver."""
        shares = split(row, receivers.size, q, entropy)
        # All shares but the last are drawn; the last takes one addition for every draw.
        drawn = shares[:-1].size
        self.note(USER, "field elements drawn", drawn)
        self.note(USER, "field additions", drawn)
        self.note(USER, "field additions as reporter", drawn)
        # A share for the sender itself is not sent.
        sent = shares[receivers != sender]
        self.note(USER, "field elements received", sent.size)
        self.send(USER, sent)
        return shares

    def forward_sums(self, shares: Residues, q: int) -> Residues:
        """The receivers of shares (senders, receivers, ...) add them up and send the sums on."""
        sums = self.add(USER, shares, q)
        self.note(USER, "field additions as helper", shares[1:].size)
        self.send(USER, sums)
        return sums

    def add(self, party: str, rows: Residues, q: int) -> Residues:
        """The sum of the rows, computed by a party."""
        self.note(party, "field additions", rows[1:].size)
        return combine(rows, q)

    def expand(self, party: str, seed: bytes, q: int, count: int) -> Residues:
        """The share that a seed stands for."""
        self.note(party, "field elements expanded", count)
        return expand(derive_key(seed, b"", b"costs"), q, count)

    def mask(self, row: Residues, seeds: list[bytes], q: int) -> Residues:
        """A user's row minus the shares that its seeds stand for."""
        for seed in seeds:
            row = subtract(row, self.expand(USER, seed, q, row.size), q)
            self.note(USER, "field additions", row.size)
        self.note(USER, "seeds drawn", len(seeds))
        return row

    def send(self, party: str, elements: Residues) -> None:
        """Field elements on their way to another party."""
        self.note(party, "field elements sent", elements.size)
        if self._labels_items:
            self.note(party, "item labels sent", elements.size)

    def per_party(self, users: int) -> dict[str, float]:
        """Counts by name, for an average user and for every server; rounds of a party."""
        counts = {}
        for (party, kind), count in self.counts.items():
            # A server is one party; the counts of users are for all of them.
            members = users if party == USER else 1
            counts[f"{party}: {kind}"] = count / members
        for party, rounds in self.rounds.items():
            counts[f"{party}: rounds"] = float(rounds)
        return counts


def count_dpds(mechanism: SharedMechanism, answers: Ints, entropy: Entropy) -> dict[str, float]:
    """Algorithm 2 (DPDS): every user shares with every user."""
    n = mechanism.n
    q = mechanism.modulus
    tally = Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    everybody = np.arange(n)
    tally.begin_round(USER)
    # Round 1: shares to all other users, and one that stays.
    shares = [tally.share(row, user, everybody, q, entropy) for user, row in enumerate(responses)]
    tally.begin_round(USER)
    # Round 2: every user sends the sum of the shares that it holds.
    opened_sum = tally.add(SERVER, tally.forward_sums(np.array(shares), q), q)
    _require_sum(opened_sum, mechanism.total(responses))
    tally.note(SERVER, "real multiplications", opened_sum.size)
    return tally.per_party(n)


def count_seeded(mechanism: SharedMechanism, answers: Ints, entropy: Entropy) -> dict[str, float]:
    """Algorithm 2 with seeds: a share is sent as the seed that expands to it.

    One share of every row cannot be expanded from a seed. It stays with its user.
    """
    n = mechanism.n
    q = mechanism.modulus
    tally = Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    seeds = [[entropy.bytes(SEED_BYTES) for _ in range(n - 1)] for _ in range(n)]
    # What stays with a user is its row minus all shares that its seeds stand for.
    received = [[tally.mask(row, own, q)] for row, own in zip(responses, seeds, strict=True)]
    tally.begin_round(USER)
    for sender, own in enumerate(seeds):
        tally.note(USER, "seeds sent", len(own))
        others = [*range(sender), *range(sender + 1, n)]
        for receiver, seed in zip(others, own, strict=True):
            received[receiver].append(tally.expand(USER, seed, q, mechanism.N))
    # The sums have as many elements as in Algorithm 2: seeds save only in the first round.
    sums = np.array([tally.add(USER, np.array(shares), q) for shares in received])
    tally.begin_round(USER)
    tally.send(USER, sums)
    opened_sum = tally.add(SERVER, sums, q)
    _require_sum(opened_sum, mechanism.total(responses))
    tally.note(SERVER, "real multiplications", opened_sum.size)
    return tally.per_party(n)


def count_two_servers(
    mechanism: SharedMechanism, answers: Ints, entropy: Entropy
) -> dict[str, float]:
    """The `servers` topology: a masked row goes to S1, its seed to S2, one aggregate share to S2.

    The row is masked by subtracting the share that the seed expands to.
    """
    n = mechanism.n
    q = mechanism.modulus
    tally = Tally()
    responses = mechanism.respond(answers, entropy)
    tally.note(USER, "Bernoulli draws", n)
    seeds = [entropy.bytes(SEED_BYTES) for _ in range(n)]
    pairs = zip(responses, seeds, strict=True)
    masked = np.array([tally.mask(row, [seed], q) for row, seed in pairs])
    tally.begin_round(USER)
    tally.send(USER, masked)
    tally.note(USER, "seeds sent", len(seeds))
    # The only message of S1 is one row, however many users there are.
    share_of_s1 = tally.add(S1, masked, q)
    tally.begin_round(S1)
    tally.send(S1, share_of_s1)
    expanded = np.array([tally.expand(S2, seed, q, mechanism.N) for seed in seeds])
    share_of_s2 = tally.add(S2, expanded, q)
    opened_sum = tally.add(S2, np.array([share_of_s1, share_of_s2]), q)
    _require_sum(opened_sum, mechanism.total(responses))
    tally.note(S2, "real multiplications", opened_sum.size)
    return tally.per_party(n)


# Protocols whose counts do not depend on chance.
FIXED = {"dpds": count_dpds, "seeded": count_seeded, "servers": count_two_servers}


def count_tss(
    mechanism: TSS, answers: Ints, entropy: Entropy, rng: np.random.Generator
) -> dict[str, float]:
    """Algorithm 3 (TSS): S1 elects as many helpers for an item as it has reporters; S2 opens."""
    responses = mechanism.respond(answers, entropy)
    return count_two_stage(mechanism, responses, 0, entropy, rng)


def count_added_by_tss_prime(
    mechanism: TSS, answers: Ints, entropy: Entropy, rng: np.random.Generator
) -> dict[str, float]:
    """What Algorithm 4 (TSS') costs beyond Algorithm 3 for the same responses.

    It elects at least phi + 1 helpers for every item.
    """
    responses = mechanism.respond(answers, entropy)
    phi = mechanism.covered_colluders
    prime = count_two_stage(mechanism, responses, phi, entropy, rng)
    plain = count_two_stage(mechanism, responses, 0, entropy, rng)
    return {name: amount - plain.get(name, 0.0) for name, amount in prime.items()}


def count_two_stage(
    mechanism: TSS,
    responses: TwoStageResponse,
    phi: int,
    entropy: Entropy,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Both stages with at least phi + 1 helpers for every item; phi = 0 is Algorithm 3."""
    n = mechanism.n
    items = mechanism.N
    tally = Tally(labels_items=True)
    tally.note(USER, "Bernoulli draws", n)
    tally.note(USER, "sets drawn", n)
    tally.note(USER, "bits sent", responses.indicators.size)
    # Sets go to S1, lists of helpers to everybody, shares to the helpers, sums to S2.
    for party in (USER, S1, USER, USER):
        tally.begin_round(party)
    tally.note(S1, "additions of counts", responses.indicators[1:].size)
    # The lists of helpers go to n users and to S2: n + 1 receivers.
    tally.note(S1, "item labels sent", (n + 1) * items)
    tally.note(S1, "numbers of reporters sent", (n + 1) * items if phi else 0)
    opened_sum = np.zeros(items, dtype=responses.bits.dtype)
    for item in range(items):
        bits = responses.bits[:, item]
        reporters = np.flatnonzero(responses.indicators[:, item])
        opened_sum[item] = _open_item(bits, reporters, phi, mechanism.modulus, tally, entropy, rng)
    _require_sum(opened_sum, mechanism.total(responses).sums)
    tally.note(S2, "real multiplications", items)
    return tally.per_party(n)


def _open_item(
    bits: Residues,
    reporters: Ints,
    phi: int,
    q: int,
    tally: Tally,
    entropy: Entropy,
    rng: np.random.Generator,
) -> int:
    """The sum of one item, as S2 opens it."""
    # Nobody reports the item: nothing is shared, and its sum is 0.
    if not reporters.size:
        return 0
    # Any user may be elected, also one who does not report the item.
    helpers = rng.choice(bits.size, max(reporters.size, phi + 1), replace=False)
    tally.note(S1, "helpers drawn", helpers.size)
    tally.note(S1, "user labels sent", (bits.size + 1) * helpers.size)
    shares = [tally.share(bits[user], user, helpers, q, entropy) for user in reporters]
    return int(tally.add(S2, tally.forward_sums(np.array(shares), q), q))


def _require_sum(opened_sum: Residues, expected: Residues) -> None:
    if not np.array_equal(opened_sum, expected):
        raise CorruptSumError(
            "the sum that the parties revealed is not the mechanism's: their counts mean nothing"
        )

"""Mechanisms with validity proofs: every counted user adds exactly one sheet, and no more.

A report is M + m bits: M bits of the answers and m fair coins, where m may be 0. The sender proves
to both servers that all of them are bits, and that the bits of the answers satisfy public linear
constraints, such as "these N add up to 1": one vote. Neither server sees any of them. The servers
add up their shares of the bits of all reports and compute from them their shares of N weighted
sums, the cells: for one question with N answers, the bits themselves. The noise that hides the
answers must be such that no sender can bias it: noise of the servers (`server_noise.py`,
`server_sheets.py`), or coins of the users that are inverted and assigned to items by values which
nobody knew before (`placed_coins.py`).

    user      report_bits                     shared, with a proof
    servers   tally                           shares of the accepted reports added up, as cells
              add_up                          plus the coins, inverted and placed
              server_noise                    plus the server's own noise, if any
    revealed  the sum of both servers: counts and noise, distributed as in `channel`
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import Adversary, Guarantee
from faircount.core.arrays import Bools, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.questions import Constraint, Sheet
from faircount.core.validation import check_integer
from faircount.mechanisms.base import Mechanism, set_fields
from faircount.mechanisms.secret_shared import SharedMechanism, VectorMechanism, one_hot
from faircount.sharing.field import add, dtype_for, from_signed, subtract, sum_rows
from faircount.sharing.packing import packed_bits

# Entries computed at a time.
_BLOCK = 1 << 17

# Entries of the table of responses that an audit computes at a time.
_ENTRIES = 1 << 14


@dataclass(frozen=True, eq=False)
class Placement:
    """Which coins are used for which item; all tables have D rows and N columns.

    Row d, column j describes the d-th coin of item j.

    user: whose coin it is, as a place among the members; all D of an item are different
    coin: which of the m coins of that user; each is used at most once
    inverted: whether it is inverted, so that heads count as tails
    """

    user: Ints
    coin: Ints
    inverted: Bools

    @classmethod
    def none(cls, items: int) -> "Placement":
        """Return the placement for mechanisms in which users flip no coins."""
        empty = np.zeros((0, items), dtype=np.int64)
        return cls(empty, empty, empty.astype(np.bool_))


@dataclass(frozen=True, eq=False)
class Tally:
    """A server's shares of the members' reports: cells added up, coins one row per member."""

    cells: Residues
    coins: Residues


@dataclass(frozen=True, kw_only=True)
class ProvenMechanism(VectorMechanism):
    """Every user has one proven sheet of answers, and no user can bias the noise.

    `insiders` users may pool their knowledge with each other or with one server; `dropouts` users
    may be missing from the sum, or their reports be rejected.
    """

    proven: ClassVar[bool] = True
    error_power: ClassVar[float] = 1.0
    parameter_docs: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants, whose own coins do not protect",
        "dropouts": "dropout allowance: users who may be missing from the sum",
    }

    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            insiders=check_integer("insiders", self.insiders),
            dropouts=check_integer("dropouts", self.dropouts),
        )
        if self.users is not None and self.users <= self.dropouts:
            raise ParameterError(
                f"{self.name}: of {self.users} users {self.dropouts} may be missing, so that "
                "nobody is left: invite more users or expect fewer to be missing"
            )

    @property
    @abstractmethod
    def answer_bits(self) -> int:
        """M, the number of bits of the answers."""

    @property
    def coins_per_user(self) -> int:
        """m, the number of fair coins in a report."""
        return 0

    @property
    @abstractmethod
    def constraints(self) -> tuple[Constraint, ...]:
        """What the M bits of every valid report satisfy."""

    @abstractmethod
    def cells_from_bits(self, sums: Residues) -> Residues:
        """Return the cells, one for each of the N revealed sums, from sums of the M bits mod q."""

    @abstractmethod
    def report_bits(self, sheet: Sheet, entropy: Entropy, level: int = 0) -> Ints:
        """Return the M + m bits that one user shares and proves.

        level: the privacy level that the user chose, where the survey offers levels
        """

    @property
    def proven_bits(self) -> int:
        """M + m, the number of bits of a report."""
        return self.answer_bits + self.coins_per_user

    @property
    def min_field_size(self) -> int:
        """A proof needs one point of the field per bit, and constraints that do not wrap around."""
        # In a smaller field a false report could meet a constraint modulo q, without meeting it.
        needed = [constraint.least_modulus for constraint in self.constraints]
        return max(2, self.proven_bits, *needed)

    @property
    def response_bits(self) -> int:
        """Size of M + m packed field elements, without the proof."""
        return packed_bits(self.modulus, self.proven_bits)

    def check_adversary(self, adversary: object) -> Adversary:
        """Return the adversary; besides the usual ones, those with a stated guarantee."""
        # Each server with any number of participants is an adversary here, and not elsewhere.
        for known in self.adversaries:
            if known == adversary:
                return known
        return super().check_adversary(adversary)

    noise_tags: ClassVar[tuple[bytes, ...]] = (b"noise",)
    """Labels of the streams from which a server draws: one for every published table."""

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw what one server adds to its sum; zero where the noise comes from the users."""
        return np.zeros(self.N, dtype=np.int64)

    def noise_from(self, streams: Sequence[Entropy]) -> Ints:
        """Draw what one server adds to its sum, from a stream for each of `noise_tags`."""
        # One table, one stream; a mechanism that publishes two overrides this.
        (stream,) = streams
        return self.server_noise(stream)

    def check_members(self, members: int) -> int:
        """Return the number of members, or raise if their sum must not be revealed."""
        return self.check_included(members)

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the promised guarantee: it holds whoever is missing, or no sum is revealed."""
        # Raises where too few are left to make the noise, so that no sum is revealed without it.
        self.check_members(included)
        stated = self.promise[0] if epsilon is None else epsilon
        return self.guarantee(epsilon=stated, adversary=self.default_adversary)

    def place_coins(self, entropy: Entropy, members: int) -> Placement:
        """Decide which coins of the members are used for which item.

        `entropy` must be unpredictable for all members until their reports are fixed.
        """
        self.check_members(members)
        return Placement.none(self.N)

    def tally(self, blocks: Iterable[Residues]) -> Tally:
        """Add up shares of the members' reports, which come in blocks with one row per member.

        A row begins with the M + m bits; whatever follows them is ignored.
        """
        answers = self.answer_bits
        bits = self.proven_bits
        q = self.modulus
        kind = dtype_for(q)
        sums = np.zeros(answers, dtype=kind)
        coins = [np.zeros((0, bits - answers), dtype=kind)]
        for rows in blocks:
            sums = add(sums, sum_rows(rows[:, :answers], q), q)
            # A view instead of a copy would keep all rows of all blocks in memory.
            coins.append(rows[:, answers:bits].copy())
        return Tally(self.cells_from_bits(sums), np.concatenate(coins))

    def add_up(self, tally: Tally, placement: Placement, *, constants: bool) -> Residues:
        """Return one server's part of the revealed sum, without noise.

        An inverted coin b counts as 1 - b: both servers subtract their share of b, and only the one
        with `constants` adds the 1.
        """
        q = self.modulus
        coins = tally.coins[placement.user, placement.coin]
        # If both servers added the 1, a coin would count as 2 - b.
        inverted = subtract(np.full_like(coins, int(constants)), coins, q)
        placed = np.where(placement.inverted, inverted, coins)
        return add(tally.cells, sum_rows(placed, q), q)


@dataclass(frozen=True, kw_only=True)
class ProvenVotes(ProvenMechanism, SharedMechanism):
    """One question: the bits of a report are a one-hot answer, proven to be one vote, and coins."""

    @property
    def answer_bits(self) -> int:
        """A bit per item."""
        return self.N

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Exactly one of the N bits is 1."""
        return one_vote(self.N)

    def cells_from_bits(self, sums: Residues) -> Residues:
        """Return the sums themselves: they are the counts of the items."""
        return sums

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """Return the bits of these users' reports: one-hot answers, then m fair coins."""
        m = self.coins_per_user
        coins = fair_bits(users.size * m, entropy).reshape(users.size, m)
        return np.hstack([one_hot(answers, self.N), coins])

    def report_bits(self, sheet: Sheet, entropy: Entropy, level: int = 0) -> Ints:
        """Return the N + m bits that one user shares and proves."""
        check_no_level(level)
        place = np.zeros(1, dtype=np.int64)
        bits: Ints = self.contribute(self.position_of(sheet), place, entropy)[0]
        return bits

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Residues:
        """Return what every user adds to the sum, one row each, and two rows of server noise."""
        return self.respond_and_place(answers, entropy)[0]

    def respond_and_place(
        self, answers: NDArray[Any], entropy: Entropy
    ) -> tuple[Residues, Placement]:
        """Return these rows and the placement of the coins, which becomes public in the end."""
        positions = self.positions(answers)
        q = self.modulus
        rows = np.empty((self.n + 2, self.N), dtype=dtype_for(q))
        coins = np.empty((self.n, self.coins_per_user), dtype=dtype_for(q))
        blocks = 1 + self.n * self.proven_bits // _BLOCK
        for users in np.array_split(np.arange(self.n), blocks):
            bits = self._draw_residues(positions[users], users, entropy)
            rows[users] = bits[:, : self.N]
            coins[users] = bits[:, self.N :]
        # As in a survey: reports first, then the placement, then the noise of both servers.
        placement = self.place_coins(entropy, self.n)
        placed = coins[placement.user, placement.coin] ^ placement.inverted
        # A user has at most one coin per item, so no addition is lost by the fancy index.
        rows[placement.user, np.arange(self.N)] += placed
        for server in (self.n, self.n + 1):
            rows[server] = from_signed(self.server_noise(entropy), q)
        return rows, placement

    has_fast_simulation: ClassVar[bool] = True

    def simulate_views(
        self,
        answers: NDArray[Any],
        copies: int,
        adversaries: Sequence[Adversary],
        entropy: Entropy,
    ) -> list[Ints]:
        """Run `copies` surveys in batches and return every adversary's view of them.

        A batch is one wide survey in which every survey has users and two items of its own.
        """
        # The responses have n * block rows and 2 * block columns, so the block is a square root.
        block = max(1, math.isqrt(_ENTRIES // (2 * self.n)))
        wide = self
        views: list[list[Ints]] = [[] for _ in adversaries]
        for start in range(0, copies, block):
            size = min(block, copies - start)
            if wide.n != self.n * size:
                wide = replace(self, users=self.n * size, items=2 * size)
            positions = self.positions(answers)[:, None] + 2 * np.arange(size)
            batch = wide.view_batch(positions.ravel(), size, adversaries, entropy)
            for seen, view in zip(views, batch, strict=True):
                seen.append(view)
        return [np.concatenate(seen) for seen in views]

    @abstractmethod
    def view_batch(
        self, answers: Ints, copies: int, adversaries: Sequence[Adversary], entropy: Entropy
    ) -> list[Ints]:
        """Run a survey with two items for each of `copies` surveys, and return every view of it.

        The answers are ordered by user, `copies` in a row for the same user of all surveys.
        """


def one_vote(items: int) -> tuple[Constraint, ...]:
    """Return the constraint that exactly one of so many bits is 1."""
    return (Constraint(tuple((bit, 1) for bit in range(items)), 1),)


def check_no_level(level: int) -> None:
    """Refuse a privacy level in a survey that offers none."""
    if level != 0:
        raise ParameterError("this survey offers no privacy levels: answer without one")


def fair_bits(size: int, entropy: Entropy) -> Ints:
    """Draw `size` fair coins as 0 and 1."""
    # Eight coins per byte, the most significant bit first: other clients unpack in this order.
    return np.unpackbits(entropy.words(-(-size // 8), np.uint8), count=size).astype(np.int64)


def as_proven(mechanism: Mechanism) -> ProvenMechanism:
    """Return the mechanism with its type, or raise if its reports carry no proof."""
    if not isinstance(mechanism, ProvenMechanism):
        raise ParameterError(
            f"{mechanism.name} has no validity proofs: choose a mechanism whose reports are proven"
        )
    return mechanism

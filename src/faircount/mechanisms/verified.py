"""Mechanisms whose reports are proven: every counted user adds exactly one to exactly one item, and cannot add more.

A report is N + m bits: a one-hot answer and m fair coins (m may be 0). Its sender proves to both servers that these are
bits and that the answer is one vote; neither sees one of them. What hides the answers must then be something that no
sender can bias: noise that the servers make (`server_noise.py`), or coins of the users that values which nobody knew
before turn over and give to the items (`placed_coins.py`).

    user      report_bits                                       shared, and proven
    servers   tally their shares of the members' reports, add_up with coins turned over and placed, plus server_noise
    opened    the sum of both: counts and noise, of which `channel` is the exact law
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import Adversary, Guarantee
from faircount.core.arrays import Ints, Marks, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.mechanisms.base import Mechanism, keep
from faircount.mechanisms.secret_shared import SharedMechanism, one_hot
from faircount.sharing.field import add, dtype_for, from_signed, subtract, sum_rows
from faircount.sharing.packing import packed_bits

_BLOCK = 1 << 17  # entries made at a time


@dataclass(frozen=True, eq=False)
class Placement:
    """Which coins count, and how: row d, column j is the d-th coin of item j; every table has D rows and N columns.

    user:   whose coin it is, as a place among the members; all D of an item are different
    coin:   which of that user's m coins; each is used once at most
    turned: whether it is turned over, so that a head counts as a tail
    """

    user: Ints
    coin: Ints
    turned: Marks

    @classmethod
    def none(cls, items: int) -> "Placement":
        """Where users flip no coins."""
        nothing = np.zeros((0, items), dtype=np.int64)
        return cls(nothing, nothing, nothing.astype(np.bool_))


@dataclass(frozen=True, eq=False)
class Tally:
    """What a sum needs of a server's shares of the members' reports: answers added up, coins one row per member."""

    votes: Residues
    coins: Residues


@dataclass(frozen=True, kw_only=True)
class VerifiedMechanism(SharedMechanism):
    """Every user has one vote, proven; the noise cannot be biased by any user.

    `insiders` users may pool what they know with each other or with one server; `dropouts` users may be missing, or
    refused, in the sum.
    """

    proven: ClassVar[bool] = True
    error_power: ClassVar[float] = 1.0
    means: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants, whose own coins do not count",
        "dropouts": "users who may be missing in the sum",
    }

    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, insiders=integer("insiders", self.insiders), dropouts=integer("dropouts", self.dropouts))
        if self.users is not None and self.users <= self.dropouts:
            raise ParameterError(
                f"{self.name}: of {self.users} users {self.dropouts} may be missing, so that nobody is left: invite "
                "more users or expect fewer to be missing"
            )

    @property
    def coins_per_user(self) -> int:
        """m: fair coins in a user's report."""
        return 0

    @property
    def proven_bits(self) -> tuple[int, int]:
        """(N, m): a report is N bits of an answer, of which exactly one is 1, and m coins."""
        return self.N, self.coins_per_user

    @property
    def least_elements(self) -> int:
        """A proof has a point of the field for every bit."""
        return max(2, sum(self.proven_bits))

    @property
    def response_bits(self) -> int:
        """N + m packed field elements, without the proof."""
        return packed_bits(self.modulus, sum(self.proven_bits))

    def accounted(self, adversary: object) -> Adversary:
        """Those that it states guarantees against, besides all that are usual."""
        return next((each for each in self.adversaries if each == adversary), None) or super().accounted(adversary)

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """The bits of these users' reports: one-hot answers, then m fair coins each."""
        m = self.coins_per_user
        return np.hstack([one_hot(answers, self.N), fair_bits(users.size * m, entropy).reshape(users.size, m)])

    def report_bits(self, position: int, entropy: Entropy) -> Ints:
        """w, the N + m bits that one user shares and proves; `position` is its answer's place in the item list."""
        bits: Ints = self.contribute(self.positions(np.array([position]), 1), np.zeros(1, dtype=np.int64), entropy)[0]
        return bits

    def server_noise(self, entropy: Entropy) -> Ints:
        """What one server adds to its own sum: nothing where the users make the noise."""
        return np.zeros(self.N, dtype=np.int64)

    def enough(self, members: int) -> int:
        """So many members, refused if no sum of theirs may be opened."""
        return self.takes_part(members)

    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """As promised, whoever is missing, or no sum is opened."""
        self.enough(included)
        at = self.promise[0] if epsilon is None else epsilon
        return self.guarantee(epsilon=at, adversary=self.default_adversary)

    def turn_and_place(self, entropy: Entropy, members: int) -> Placement:
        """Which coins of so many members count for which item; `entropy` is what no member knew when it reported."""
        self.enough(members)
        return Placement.none(self.N)

    def tally(self, blocks: Iterable[Residues]) -> Tally:
        """From shares of the members' reports, some at a time, one row each; a row begins with the N + m bits."""
        answers, bits = self.N, sum(self.proven_bits)
        kind, q = dtype_for(self.modulus), self.modulus
        votes, coins = np.zeros(answers, dtype=kind), [np.zeros((0, bits - answers), dtype=kind)]
        for rows in blocks:
            votes = add(votes, sum_rows(rows[:, :answers], q), q)
            coins.append(rows[:, answers:bits].copy())  # without the copy all of the rows would stay in memory
        return Tally(votes, np.concatenate(coins))

    def add_up(self, tally: Tally, placement: Placement, *, constants: bool) -> Residues:
        """One server's part of the opened sum, without noise.

        A coin b that is turned over counts 1 - b: both servers take their share of b away, and the one with `constants`
        adds the 1.
        """
        q, coins = self.modulus, tally.coins[placement.user, placement.coin]
        turned = subtract(np.full_like(coins, int(constants)), coins, q)
        return add(tally.votes, sum_rows(np.where(placement.turned, turned, coins), q), q)

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Residues:
        """Row i is what user i adds to the opened sum, coins turned and placed; two more are what the servers add."""
        return self.respond_and_place(answers, entropy)[0]

    def respond_and_place(self, answers: NDArray[Any], entropy: Entropy) -> tuple[Residues, Placement]:
        """These rows, and where which coins went, which everybody knows in the end."""
        held, q = self.positions(answers), self.modulus
        rows = np.empty((self.n + 2, self.N), dtype=dtype_for(q))
        coins = np.empty((self.n, self.coins_per_user), dtype=dtype_for(q))
        for users in np.array_split(np.arange(self.n), 1 + self.n * sum(self.proven_bits) // _BLOCK):
            bits = self._vectors(held[users], users, entropy)
            rows[users], coins[users] = bits[:, : self.N], bits[:, self.N :]
        placement = self.turn_and_place(entropy, self.n)
        flipped = coins[placement.user, placement.coin] ^ placement.turned
        rows[placement.user, np.arange(self.N)] += flipped  # each user once per item at most, so that none is lost
        for server in (self.n, self.n + 1):
            rows[server] = from_signed(self.server_noise(entropy), q)
        return rows, placement


def fair_bits(size: int, entropy: Entropy) -> Ints:
    """`size` fair coins as 0 and 1."""
    return np.unpackbits(entropy.words(-(-size // 8), np.uint8), count=size).astype(np.int64)


def proves_reports(mechanism: Mechanism) -> VerifiedMechanism:
    """The mechanism as one whose reports are proven; refused if it is none."""
    if not isinstance(mechanism, VerifiedMechanism):
        raise ParameterError(f"{mechanism.name} proves nothing: choose a mechanism whose reports are proven")
    return mechanism

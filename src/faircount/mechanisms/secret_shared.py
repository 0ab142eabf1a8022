"""Mechanisms whose responses are vectors over a prime field: only their sum is ever opened.

respond: answer -> N whole numbers (one-hot vector times coin, or plus noise) -> residues mod q
total:   sum of the rows mod q, which is what additive shares of the rows add up to
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import COLLECTOR, Adversary, Guarantee, insiders
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import counts, integer
from faircount.mechanisms.base import Collected, FrequencyMechanism, Mechanism, Progress, check_range, keep
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.additive import combine, exchange
from faircount.sharing.field import check, dtype_for, from_signed, sum_rows, to_signed
from faircount.sharing.packing import packed_bits
from faircount.sharing.primes import smallest_prime_above

OVERFLOW_PROBABILITY = 2.0**-60
"""How often an honest sum may leave the range that `decode` accepts, over all items together."""

MOST_BITS = 62
"""Of the modulus: two elements must add up in 64 bits."""

EVERY_USER_UP_TO = 2000
"""Up to this many users everybody holds shares of everybody, unless told otherwise."""

AUDITED_USERS = 4
"""Honest users of an audited survey where the mechanism names no number: fewer are faster, and no easier to hide."""

_BLOCK = 1 << 17  # entries made at a time, so that randomness for a million users does not fill the memory


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows from a mechanism's settings, spelled out for clients that cannot compute it."""

    h: int | None = None  # users whose noise is counted on
    D: int | None = None  # fair coins per item
    p: float | None = None  # probability that a user is counted
    table: DrawTable | None = None  # of the noise in one entry


@dataclass(frozen=True, kw_only=True)
class FieldMechanism(FrequencyMechanism):
    """A mechanism whose sums are opened in a prime field F_q.

    With q just above the largest honest sum nearly every residue passes for one. `spare_bits` makes q so many bits
    larger: a sum that was spoiled at random then passes the range check of `decode` with probability 2^-spare_bits at
    most, for each spoiled item. It costs as many bits per share, and nothing else.
    """

    means: ClassVar[dict[str, str]] = {
        "spare_bits": "bits by which the field is made larger, so that a sum spoiled at random is noticed"
    }
    run_with: ClassVar[dict[str, str]] = {"insiders": "insiders", "dropouts": "dropouts", "q": "modulus"}
    spare_bits: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, spare_bits=integer("spare_bits", self.spare_bits, most=MOST_BITS))

    @property
    @abstractmethod
    def reach(self) -> int:
        """The largest minus the smallest honest sum of an item."""

    @property
    def lowest(self) -> int:
        """The smallest honest sum of an item."""
        return 0

    @property
    def least_elements(self) -> int:
        """Elements that the field must have, however small the sums are."""
        return 2

    @abstractmethod
    def respond_as(self, user: int, answer: int, entropy: Entropy) -> Any:
        """The response of the one user at place `user` of the roster: what a device computes on its own."""

    @abstractmethod
    def realized(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """The weakest guarantee left when only `included` users are in the sum, the planned insiders among them.

        Where users make unequal noise, `places` of the roster says who they are (without it, those who make least).
        """

    @property
    def derived(self) -> Derived:
        """What follows from the settings, of which each mechanism has some."""
        return Derived(**{each.name: getattr(self, each.name, None) for each in fields(Derived)})

    @property
    def steps_per_count(self) -> int:
        """By how much one holder raises an item's sum."""
        return 1

    @property
    def covered_colluders(self) -> int:
        """Colluding users whom the shares and the promise of a survey keep out."""
        return self.insiders

    def made_alike(self) -> Self:
        """The same protection with the same law for every user, for surveys without a roster."""
        return self

    def for_survey(self) -> Self:
        """As a survey between devices runs it: the promise covers as many colluding users as the shares do."""
        return self

    def as_included(self, places: Sequence[int]) -> Self:
        """As it ran when exactly the users at these places of the roster were in the sum."""
        return self

    @cached_property
    def modulus(self) -> int:
        """The prime q: the smallest that holds every honest sum, or 2^spare_bits times as many."""
        q = smallest_prime_above(max((self.reach + 1) << self.spare_bits, self.least_elements) - 1)
        if q.bit_length() > MOST_BITS:
            raise ParameterError(
                f"{self.name}: sums reach over {self.reach} values, and {self.spare_bits} spare bits make the field "
                f"larger than 2^{MOST_BITS}: ask for at most {MOST_BITS - 1 - self.reach.bit_length()} spare bits"
            )
        return q


@dataclass(frozen=True, kw_only=True)
class SharedMechanism(FieldMechanism):
    """A mechanism for additive sharing over F_q: Algorithm 2 and everything that differs in the vectors only."""

    collected: ClassVar[Collected] = Collected.SUM

    @abstractmethod
    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """The vectors, as signed integers, of the users at these places of the roster who hold these items."""

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Residues:
        """One row of N residues per user; `answers` are positions in the item list, one per user."""
        held = self.positions(answers)
        responses = np.empty((self.n, self.N), dtype=dtype_for(self.modulus))
        for users in np.array_split(np.arange(self.n), 1 + self.n * self.N // _BLOCK):
            responses[users[0] : users[-1] + 1] = self._vectors(held[users], users, entropy)
        return responses

    def respond_as(self, user: int, answer: int, entropy: Entropy) -> Residues:
        """The response of the one user at place `user` of the roster: what a device computes on its own."""
        place = integer("user", user, most=self.n - 1)
        row: Residues = self._vectors(self.positions(np.array([answer]), 1), np.array([place]), entropy)[0]
        return row

    def _vectors(self, held: Ints, users: Ints, entropy: Entropy) -> Residues:
        return from_signed(self.contribute(held, users, entropy), self.modulus)

    def total(self, responses: Residues) -> Residues:
        """The sum of the rows mod q."""
        if np.ndim(responses) != 2 or np.shape(responses)[1] != self.N:
            raise AnswerError(f"responses must be a table with {self.N} columns, one per item")
        check(responses, self.modulus)
        return sum_rows(responses, self.modulus)

    def collect(
        self, responses: Residues, parties: int | None, entropy: Entropy, progress: Progress | None = None
    ) -> tuple[Residues, dict[str, object]]:
        """The sum opened from additive shares of every response."""
        holders = share_holders(self.n, parties)
        sums = exchange(responses, holders, self.modulus, entropy, progress)
        return combine(sums, self.modulus), {"topology": "shares", "share holders": holders, "modulus": self.modulus}

    @property
    def response_bits(self) -> int:
        """A vector of N packed field elements."""
        return packed_bits(self.modulus, self.N)

    def opened(self, total: Residues) -> Residues:
        """An opened sum, refused unless it is one canonical residue per item."""
        if np.shape(total) != (self.N,):
            raise AnswerError(f"a sum must have {self.N} entries, one per item")
        check(total, self.modulus)
        return total

    def seen(self, responses: Residues, copies: int, insiders: int) -> Ints:
        """The opened sums of the first two items, as signed numbers."""
        users = responses.shape[0] // copies
        honest = responses[:, :2].reshape(users, copies * 2)[insiders:]
        return to_signed(sum_rows(honest, self.modulus), self.modulus, self.lowest).reshape(copies, 2)

    def takes_part(self, included: int) -> int:
        """A number of users who took part, refused unless it lies between 1 and n."""
        return integer("included", included, least=1, most=self.n)

    def present(self, held: NDArray[Any]) -> Ints:
        """Counts of the users who took part: one per item, at most n together."""
        clean = counts(held, items=self.N)
        if clean.sum() > self.n:
            raise AnswerError(f"counts add up to {clean.sum()}, but the mechanism was made for {self.n} users")
        return clean


@dataclass(frozen=True, kw_only=True)
class NoiseMechanism(SharedMechanism):
    """Every user counts and adds a little noise to every entry; the guarantee needs nothing of the data.

    `insiders` users may pool what they know (their own noise protects nobody) and `dropouts` may vanish before the sum
    is opened; the noise of the other h = n - insiders - dropouts is what the guarantee counts on. Zero-out means here
    that a user adds noise to the zero vector.
    """

    error_power: ClassVar[float] = 1.0
    means: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants, whose own noise does not count",
        "dropouts": "users who may vanish before the sum is opened",
    }
    run_with: ClassVar[dict[str, str]] = {"h": "h"}

    insiders: int = 1
    dropouts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, insiders=integer("insiders", self.insiders), dropouts=integer("dropouts", self.dropouts))
        missing = self.insiders + self.dropouts
        if self.users is not None and self.users <= missing:
            raise ParameterError(
                f"{self.name}: of {self.users} users, {self.insiders} may be insiders and {self.dropouts} may drop "
                f"out, so nobody's noise can be counted on: invite more than {missing} users or expect fewer of both"
            )

    @property
    def h(self) -> int:
        """Number of users whose noise is counted on."""
        return self.n - self.insiders - self.dropouts

    @property
    def count_step(self) -> float:
        """Every holder counts, so that the sum is the count and noise."""
        return 1.0

    @property
    def default_adversary(self) -> Adversary:
        """The insiders that the parameters were made for."""
        return insiders(self.insiders)

    def unknown(self, adversary: Adversary) -> int:
        """How many users' noise the adversary does not know, after all expected dropouts; 0 or less for none."""
        return 1 if adversary == COLLECTOR else self.n - adversary.insiders - self.dropouts

    def left(self, included: int) -> int:
        """How many included users are no insiders; refused if nobody is left."""
        present = self.takes_part(included)
        if present <= self.insiders:
            raise RefusedError(f"{present} users took part and {self.insiders} may collude: no noise is left")
        return present - self.insiders

    def honest_channel(self, insiders: int) -> Channel:
        """The law of one item's sum of all users but the first `insiders`, whose noise is known."""
        return self.channel(self.n - insiders)

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """Any data will do; the insiders come first, where the most noise is."""
        users, known = self.users or AUDITED_USERS + self.insiders + self.dropouts, 0 if reader else self.insiders
        small = replace(self, users=users, items=self.domain.labels[:2])
        return WorstPair.noisy(small, users, small.honest_channel(known), known)

    def _same_noise_of_each(self, copies: int) -> Self:
        """For so many times as many users, of whom the noise of as many as before is counted on."""
        users = self.n * copies
        return replace(self, users=users, insiders=users - self.dropouts - self.h)

    def stated(self, included: int | None = None) -> tuple[Guarantee, ...]:
        """As for all; if more users are missing than allowed for, from the noise that went in."""
        if included is None or self.users is None or self.users - included <= self.dropouts:
            return super().stated()
        return (self.realized(included, epsilon=1.0 if self.promise[0] is None else None),)


@dataclass(frozen=True, kw_only=True)
class BoundedNoise(SharedMechanism):
    """Noise that leaves its bounds once in 2^60 surveys: the range of a sum follows from them, in grid steps."""

    @abstractmethod
    def noise_reach(self, entries: int, tail: float) -> int:
        """B with P(|all noise in `entries` entries together| > B) <= tail."""

    @cached_property
    def bound(self) -> int:
        """B: a count's noise stays within +-B, for all items together but with probability 2^-60."""
        return self.noise_reach(1, OVERFLOW_PROBABILITY / self.N)

    @cached_property
    def total_bound(self) -> int:
        """The same for the noise of all items added up."""
        return self.noise_reach(self.N, OVERFLOW_PROBABILITY)

    @property
    def lowest(self) -> int:
        """-B."""
        return -self.bound

    @property
    def reach(self) -> int:
        """-B..n+B; a sum that wraps would cost accuracy, never privacy."""
        return self.n * self.steps_per_count + 2 * self.bound

    def decode(self, total: Residues, included: int) -> NDArray[Any]:
        """Noisy counts; refused outside what noise reaches but with probability 2^-60, per item and in total."""
        top, spread = self.takes_part(included) * self.steps_per_count, self.total_bound
        steps = to_signed(self.opened(total), self.modulus, self.lowest)
        return check_range(steps, -self.bound, top + self.bound, top - spread, top + spread)


@dataclass(frozen=True, kw_only=True)
class TableNoise(BoundedNoise, NoiseMechanism):
    """Every user draws its noise for every entry from one table."""

    @property
    @abstractmethod
    def table(self) -> DrawTable:
        """The law, in grid steps, that a user draws from for each entry; public, the same for all."""

    def contribute(self, answers: Ints, users: Ints, entropy: Entropy) -> Ints:
        """One-hot vectors plus a draw from the table in every entry."""
        noise = self.table.draw(users.size * self.N, entropy).reshape(users.size, self.N)
        return one_hot(answers, self.N, self.steps_per_count) + noise


def makes_shares(mechanism: Mechanism) -> FieldMechanism:
    """The mechanism as one that makes shares; refused if it is none."""
    if not isinstance(mechanism, FieldMechanism):
        raise ParameterError(f"{mechanism.name} makes no shares, so no protocol runs it: choose one that does")
    return mechanism


def share_holders(users: int, parties: int | None) -> int:
    """How many hold the shares of one response: as asked, else everybody in small crowds and two servers in others."""
    if parties is None:
        return users if 2 <= users <= EVERY_USER_UP_TO else 2
    return integer("parties", parties, least=2)


def one_hot(held: Ints, items: int, height: int = 1) -> Ints:
    """Row i has `height` at position held[i] and 0 elsewhere."""
    vectors = np.zeros((held.size, items), dtype=np.int64)
    vectors[np.arange(held.size), held] = height
    return vectors


def noise_bound(log_mgf: Callable[[Floats], Floats], reach: float, tail: float) -> int:
    """A bound B with P(|Z| > B) <= tail for symmetric Z: Chernoff, P(Z >= b) <= exp(K(t) - t b) for any 0 < t < reach.

    Every t gives a valid bound, so the grid costs tightness only (a few units), never safety.
    """
    t = reach * np.geomspace(1e-4, 1, 400)[:-1]
    return int(np.ceil(np.min((log_mgf(t) + np.log(2 / tail)) / t)))

"""Coins that users flip and cannot bias: proven to be coins, then turned over and placed by values nobody knew before.

Every report holds m coins. Once it is fixed whose reports count, values that the servers reveal only then decide for
each coin whether it is turned over (b counts as 1 - b) and which item it goes to. A sender who did not know the values
has a fair coin then, whatever it sent; and an honest one's coin stays secret, because only sums are opened.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import COLLECTOR, S1, S2, Adversary, insiders
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.decoys import CoinNoise, coin_noise
from faircount.mechanisms.verified import Placement, VerifiedMechanism, fair_bits
from faircount.mechanisms.worst_pair import WorstPair


@dataclass(frozen=True, kw_only=True)
class PlacedCoins(CoinNoise, VerifiedMechanism):
    """D fair coins per item, of D different users: unconditional, and no user can bias them.

    D = D0 + t: D0 coins protect enough, and t insiders know at most t of an item's coins, wherever they are placed and
    whoever is left out. A user's m = ceil(D N / n_min) coins are enough when n_min = users - dropouts remain; that
    needs n_min >= D. Variance of a count D/4, however many users take part.
    """

    name: ClassVar[str] = "placed-coins"
    run_with: ClassVar[dict[str, str]] = {"m": "coins_per_user"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users is not None and self.fewest < self.D:
            raise ParameterError(
                f"{self.name}: each of an item's {self.D} coins comes from another user, and {self.fewest} of "
                f"{self.users} users may be left: invite {self.D + self.dropouts} or more, or choose server-laplace"
            )

    def made_of(self, needed: int) -> int:
        """One more for every insider."""
        return needed + self.insiders

    @property
    def fewest(self) -> int:
        """n_min: users who are left when all expected dropouts are missing."""
        return self.n - self.dropouts

    @property
    def coins_per_user(self) -> int:
        """m: enough for D coins of every item from n_min users. At most N, because n_min is at least D."""
        return -(-self.D * self.N // self.fewest)

    def coins_between(self, included: int) -> tuple[int, int]:
        """D, whoever takes part."""
        self.takes_part(included)
        return self.D, self.D

    @property
    def default_adversary(self) -> Adversary:
        """The insiders that the parameters were made for."""
        return insiders(self.insiders)

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """The insiders, alone or with one server: a server's shares of the coins are uniform."""
        return self.default_adversary, replace(S1, insiders=self.insiders), replace(S2, insiders=self.insiders)

    def hidden(self, adversary: Adversary) -> int:
        """All but one per insider; who sees a user's own report needs no coins to read it."""
        return 0 if adversary == COLLECTOR else self.D - adversary.insiders

    def suffices(self, members: int) -> bool:
        """Whether the coins of so many members are enough: D different users for an item, and D N coins in all."""
        return members >= self.D and members * self.coins_per_user >= self.D * self.N

    def enough(self, members: int) -> int:
        """There must be coins enough for every item."""
        if not self.suffices(self.takes_part(members)):
            raise RefusedError(
                f"{members} users with {self.coins_per_user} coins each cannot give {self.D} coins of different users "
                f"to each of {self.N} items: wait for more users"
            )
        return members

    def turn_and_place(self, entropy: Entropy, members: int) -> Placement:
        """The members in random order, again and again, D of them for every item; half of the coins turned over.

        D members in a row are different because there are at least D; a member's next coin goes to a later item.
        """
        order = np.argsort(entropy.words(self.enough(members), np.uint64), kind="stable")
        slots = np.arange(self.D * self.N).reshape(self.N, self.D).T
        turned = fair_bits(slots.size, entropy).reshape(slots.shape).astype(np.bool_)
        return Placement(order[slots % members], slots // members, turned)

    def observed(self, answers: NDArray[Any], copies: int, insiders: int, entropy: Entropy) -> Ints:
        """Both sums without what the insiders added, and how they differ from what coins that are all alike would give.

        Which coins were turned over is known to all: it must not matter.
        """
        return np.stack([self._beside_turns(answers, insiders, entropy) for _ in range(copies)])

    def _beside_turns(self, answers: NDArray[Any], insiders: int, entropy: Entropy) -> Ints:
        rows, placement = self.respond_and_place(answers, entropy)
        sums = self.seen(rows, 1, insiders)[0]
        turned = (placement.turned & (placement.user >= insiders)).sum(axis=0)[:2]
        return np.concatenate([sums, sums - turned, sums + turned])  # if all were tails; if all were heads

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """Any data will do. With D users each has a coin at every item, insiders too."""
        known, small = (
            0 if reader else self.insiders,
            replace(self, users=self.D, dropouts=0, items=self.domain.labels[:2]),
        )
        return WorstPair.noisy(small, self.D, Channel(1.0, noise=coin_noise(self.D - known)), known)

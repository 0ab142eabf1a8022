"""Fair coins of the users that no user can bias: proven to be coins, then inverted and placed.

Every report contains m coins and a proof that they are bits. After the set of accepted reports is
fixed, the servers reveal random values that nobody knew before. These values decide for every coin
whether it is inverted (b counts as 1 - b) and for which item it is used. A sender who did not know
the values therefore contributes a fair coin whatever it sent, and the coin of an honest sender
stays secret, because only sums are opened.
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
    """D fair coins per item from D different users, which no user can bias; for any data.

    D = D0 + t: D0 coins protect enough, and t insiders know at most t of an item's coins, wherever
    they are placed and whoever drops out. Every user sends m = ceil(D N / n_min) coins, which is
    enough when n_min = users - dropouts remain; that needs n_min >= D. The variance of a count is
    D/4, however many users take part.

    >>> fc.PlacedCoins(items=3, users=400, epsilon=1.0, delta=1e-6).guarantee().delta <= 1e-6
    True
    """

    name: ClassVar[str] = "placed-coins"
    parameter_attributes: ClassVar[dict[str, str]] = {"m": "coins_per_user"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users is not None and self.min_included < self.D:
            raise ParameterError(
                f"{self.name}: each of an item's {self.D} coins comes from another user, and "
                f"{self.min_included} of {self.users} users may be left: "
                f"invite {self.D + self.dropouts} or more, or choose server-laplace"
            )

    def total_coins_for(self, needed: int) -> int:
        """Return one more coin for every insider."""
        return needed + self.insiders

    @property
    def min_included(self) -> int:
        """n_min, the number of users who remain when all expected dropouts are missing."""
        return self.n - self.dropouts

    @property
    def coins_per_user(self) -> int:
        """m = ceil(D N / n_min); at most N, because n_min is at least D."""
        return -(-self.D * self.N // self.min_included)

    def coin_range(self, included: int) -> tuple[int, int]:
        """Return D twice: the number of coins does not depend on who takes part."""
        self.check_included(included)
        return self.D, self.D

    @property
    def default_adversary(self) -> Adversary:
        """The insiders whom the parameters allow for."""
        return insiders(self.insiders)

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """The insiders, alone or with one server: a server's shares of the coins are uniform."""
        return (
            self.default_adversary,
            replace(S1, insiders=self.insiders),
            replace(S2, insiders=self.insiders),
        )

    def hidden_coins(self, adversary: Adversary) -> int:
        """Return all coins but one per insider; no coin hides a report from its collector."""
        return 0 if adversary == COLLECTOR else self.D - adversary.insiders

    def has_enough_coins(self, members: int) -> bool:
        """Whether this many members suffice: D different users per item, and D N coins in all."""
        return members >= self.D and members * self.coins_per_user >= self.D * self.N

    def check_members(self, members: int) -> int:
        """Return the number of members, or raise if they have too few coins."""
        if not self.has_enough_coins(self.check_included(members)):
            raise RefusedError(
                f"{members} users with {self.coins_per_user} coins each cannot give {self.D} coins "
                f"of different users to each of {self.N} items: wait for more users"
            )
        return members

    def place_coins(self, entropy: Entropy, members: int) -> Placement:
        """Assign D coins of different members to every item and invert half of them at random."""
        # The members stand in random order, again and again, and every item takes the next D of
        # them. D in a row are different because there are at least D members, and a member's next
        # coin goes to a later item. `slots // members` numbers the coins of a member.
        order = np.argsort(entropy.words(self.check_members(members), np.uint64), kind="stable")
        slots = np.arange(self.D * self.N).reshape(self.N, self.D).T
        inverted = fair_bits(slots.size, entropy).reshape(slots.shape).astype(np.bool_)
        return Placement(order[slots % members], slots // members, inverted)

    def simulate_views(
        self, answers: NDArray[Any], copies: int, insiders: int, entropy: Entropy
    ) -> Ints:
        """Return the honest users' sums of two items in every survey, with what inversion tells.

        Everybody knows which coins were inverted, and an honest coin must stay fair given that. The
        further columns compare the sums with what users who always send the same bit would produce.
        """
        views = []
        for _ in range(copies):
            rows, placement = self.respond_and_place(answers, entropy)
            sums = self.adversary_view(rows, 1, insiders)[0]
            inverted = (placement.inverted & (placement.user >= insiders)).sum(axis=0)[:2]
            # If all users sent tails, `sums - inverted` would be the bare counts; if all sent
            # heads, `sums + inverted` would be the counts plus a constant.
            views.append(np.concatenate([sums, sums - inverted, sums + inverted]))
        return np.stack(views)

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """Return any two neighbouring data sets: noise protects all of them equally."""
        known = 0 if reader else self.insiders
        # With exactly D users everyone, insiders included, has a coin at every item.
        small = replace(self, users=self.D, dropouts=0, items=self.domain.labels[:2])
        channel = Channel(1.0, noise=coin_noise(self.D - known))
        return WorstPair.for_added_noise(small, self.D, channel, known)

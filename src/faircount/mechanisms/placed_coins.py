"""Fair coins of the users that no user can bias: proven to be coins, then inverted and placed.

Every report contains m coins and a proof that they are bits. After the set of accepted reports is
fixed, the servers reveal random values that nobody knew before. These values decide for every coin
whether it is inverted (b counts as 1 - b) and for which item it is used. A sender who did not know
the values therefore contributes a fair coin whatever it sent, and the coin of an honest sender
stays secret, because only sums are revealed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import COLLECTOR, S1, S2, Adversary, insiders
from faircount.core.arrays import Bools, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.decoys import CoinNoise, coin_noise
from faircount.mechanisms.proven import Placement, ProvenVotes, fair_bits
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.field import add


@dataclass(frozen=True, kw_only=True)
class PlacedCoins(CoinNoise, ProvenVotes):
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

    def same_view(self, adversary: Adversary) -> Adversary:
        """Return the insiders alone: a server adds nothing, and its shares are uniform."""
        return self.default_adversary if adversary in self.adversaries else adversary

    simulation_cost: ClassVar[int] = 6

    def view_batch(
        self, answers: Ints, copies: int, adversaries: Sequence[Adversary], entropy: Entropy
    ) -> list[Ints]:
        """Place coins of the users of all surveys, and return every adversary's view."""
        rows, placement = self.respond_and_place(answers, entropy)
        return [self.view_of_rows(rows, placement, answers, adversary) for adversary in adversaries]

    def view_of_rows(
        self, rows: Residues, placement: Placement, answers: Ints, adversary: Adversary
    ) -> Ints:
        """Return the views of surveys with two items each, from the rows of their users."""
        items = np.arange(self.N)
        users = placement.user[: adversary.insiders]
        # What is left of a user's row without its vote is its coin.
        coins = rows[users, items].astype(np.int64) - (answers[users] == items)
        return _view_of_coins(self._signed_sums(rows), coins, placement.inverted)

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the published sums without what insiders know, and the inverted coins."""
        placement = log.placement or Placement.none(self.N)
        drawn = add(log.coins[True], log.coins[False], self.modulus)
        users = placement.user[: adversary.insiders]
        placed = drawn[users, placement.coin[: adversary.insiders]].astype(np.int64)
        coins = placed ^ placement.inverted[: adversary.insiders]
        view: Ints = _view_of_coins(sums, coins[:, :2], placement.inverted[:, :2])[0]
        return view

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return any two neighbouring data sets: noise protects all of them equally."""
        against = adversary or self.default_adversary
        # With exactly D users everyone, insiders included, has a coin at every item.
        small = replace(self, users=self.D, dropouts=0, items=self.domain.labels[:2])
        channel = Channel(1.0, noise=coin_noise(self.D - against.insiders))
        return WorstPair.for_added_noise(small, self.D, channel, against)


def _view_of_coins(sums: Ints, coins: Ints, inverted: Bools) -> Ints:
    """Return the sums of every two items without what insiders know, and the inverted coins.

    Every insider knows its vote for the first of the two items and one coin of either. These are
    the first `coins` of an item: which users they come from is random, so they may as well be the
    insiders. Everybody knows how many of the other coins were inverted, and an honest coin must
    stay fair given that.
    """
    known = len(coins)
    votes = np.where(np.arange(sums.size) % 2 == 0, known, 0)
    hidden = sums - coins.sum(axis=0) - votes
    return np.hstack([hidden.reshape(-1, 2), inverted[known:].sum(axis=0).reshape(-1, 2)])

"""Noise added by both servers, each of which adds the whole noise of a release.

Users prove that their report is one vote and add no noise. A server knows its own noise, so the
noise of the other one protects from it, and either of them protects from a reader of the result.
Because users have no part in the noise, the guarantee does not depend on how many of them collude,
cheat or drop out, and it holds for any number of accepted reports. The price is a variance twice
that of noise which the users add together.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.conditions import EITHER_NOISE, S1_NOISE, S2_NOISE, Condition
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary, AdversaryCode
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.decoys import CoinNoise, coin_noise, count_heads
from faircount.mechanisms.laplace import LaplaceNoise, laplace_bound, laplace_noise
from faircount.mechanisms.secret_shared import AUDITED_USERS
from faircount.mechanisms.verified import VerifiedMechanism
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.field import sum_rows, to_signed

S1_AND_USERS = Adversary(AdversaryCode.S1_AND_PARTICIPANTS)
S2_AND_USERS = Adversary(AdversaryCode.S2_AND_PARTICIPANTS)

# Entries of the table of responses that an audit computes at a time.
_ENTRIES = 1 << 16

# Adversary -> the assumption about the other server, whose noise protects from it.
_RELIED_ON = {S1: S2_NOISE, S1_AND_USERS: S2_NOISE, S2: S1_NOISE, S2_AND_USERS: S1_NOISE}


@dataclass(frozen=True, kw_only=True)
class ServerNoise(VerifiedMechanism):
    """Common base of both mechanisms: who protects from whom, and the view of an audit."""

    parameter_docs: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants; the guarantee does not depend on their number",
        "dropouts": "users who may be missing; the guarantee does not depend on their number",
    }

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Either server together with any number of users, and a reader of the result."""
        return S1_AND_USERS, S2_AND_USERS, OUTSIDER

    @property
    def default_adversary(self) -> Adversary:
        """A server, which knows its own noise; the other one has the same guarantee."""
        return S1_AND_USERS

    @property
    def participants(self) -> Adversary:
        """A reader: participants add no noise, so they know no more than the result."""
        return OUTSIDER

    def condition(self, adversary: Adversary) -> Condition | None:
        """Return the assumption about the server whose noise the guarantee relies on."""
        if adversary == COLLECTOR:
            return None
        return _RELIED_ON.get(adversary, EITHER_NOISE)

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """Return any two neighbouring data sets: noise protects all of them equally."""
        users = self.users or AUDITED_USERS
        small = replace(self, users=users, dropouts=0, items=self.domain.labels[:2])
        # A server knows its own noise; a reader knows neither.
        channel = small.channel(users) if reader else small.single_server_channel
        return WorstPair.for_added_noise(small, users, channel)

    @property
    @abstractmethod
    def single_server_channel(self) -> Channel:
        """The channel as seen by a server, which subtracts its own noise."""

    has_fast_simulation: ClassVar[bool] = True

    def simulate_views(
        self, answers: NDArray[Any], copies: int, insiders: int, entropy: Entropy
    ) -> Ints:
        """Run `copies` surveys in batches and return the adversary's view of every one.

        A batch is one wide survey in which every survey has two items of its own; the servers draw
        noise for every item anyway.
        """
        # The responses have n * block rows and 2 * block columns, so the block is a square root.
        block = max(1, math.isqrt(_ENTRIES // (2 * self.n)))
        views = []
        for start in range(0, copies, block):
            surveys = np.arange(min(block, copies - start))
            wide = replace(self, users=self.n * surveys.size, items=2 * surveys.size)
            positions = self.positions(answers)[:, None] + 2 * surveys
            responses = wide.respond(positions.ravel(), entropy)
            views.append(wide.adversary_view(responses, surveys.size, insiders))
        return np.concatenate(views)

    def adversary_view(self, responses: Residues, copies: int, insiders: int) -> Ints:
        """Return the sums of two items per survey as the coordinator (S1) sees them."""
        # The row after the users' rows is the coordinator's own noise, which it knows.
        others = np.delete(responses, self.n, axis=0)
        sums = to_signed(sum_rows(others, self.modulus), self.modulus, self.min_sum)
        return sums.reshape(copies, 2)


@dataclass(frozen=True, kw_only=True)
class ServerLaplace(LaplaceNoise, ServerNoise):
    """Both servers add discrete Laplace noise: pure epsilon against each of them.

    Each adds to every count a draw of the law (1-a)/(1+a) a^|z| with a = e^(-epsilon/2), up to
    about 2^-119 for the finite table. The variance of a count is 4a/(1-a)^2.

    >>> fc.ServerLaplace(items=3, users=100, epsilon=1.0).guarantee().epsilon
    1.0
    """

    name: ClassVar[str] = "server-laplace"

    @property
    def draws_per_entry(self) -> int:
        """One draw of one server is the whole noise."""
        return 1

    def hidden_draws(self, adversary: Adversary) -> int:
        """Return the draw of one server; no draw hides a report from its collector."""
        return 0 if adversary == COLLECTOR else 1

    def noise_multiple(self, included: int) -> float:
        """Return 2: both servers add all of the noise, for any number of users."""
        return 2

    def bound_noise(self, entries: int, tail: float) -> int:
        """Return the bound for the noise of both servers."""
        return laplace_bound(self.epsilon, 2 * entries, tail)

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw from the table for every item."""
        return self.table.draw(self.N, entropy)

    @property
    def single_server_channel(self) -> Channel:
        """The noise of one server."""
        return Channel(1.0, noise=laplace_noise(self.epsilon, 1))


@dataclass(frozen=True, kw_only=True)
class ServerCoins(CoinNoise, ServerNoise):
    """Both servers add the heads of D fair coins to every count.

    For many releases this adds less noise than `ServerLaplace`. Give epsilon and delta (D is then
    the smallest number that is enough against one server), or D itself as `coins` (with an epsilon,
    if the guarantee is to be stated there). The variance of a count is D/2.

    >>> fc.ServerCoins(items=3, users=100, epsilon=1.0, delta=1e-6).guarantee().delta <= 1e-6
    True
    """

    name: ClassVar[str] = "server-coins"
    parameter_docs: ClassVar[dict[str, str]] = {
        "coins": "D, the number of fair coins per item of each server, instead of delta"
    }

    def total_coins_for(self, needed: int) -> int:
        """Return the number itself: one server alone has to flip enough coins."""
        return needed

    def coin_range(self, included: int) -> tuple[int, int]:
        """Return 2 D twice: both servers flip D coins, whoever takes part."""
        self.check_included(included)
        return 2 * self.D, 2 * self.D

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw the heads of D coins for every item."""
        return count_heads(self.D, self.N, entropy)

    @property
    def single_server_channel(self) -> Channel:
        """The coins of one server."""
        return Channel(1.0, noise=coin_noise(self.D))

    def hidden_coins(self, adversary: Adversary) -> int:
        """Return the coins of one server; no coin hides a report from its collector."""
        return 0 if adversary == COLLECTOR else self.D

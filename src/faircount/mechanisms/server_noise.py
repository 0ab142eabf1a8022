"""Noise that both servers add, each the whole noise of one release; users prove their votes and make no noise at all.

A server knows its own noise, so what protects from it is the other one's; who only reads the result is protected by
either. Users have no part in the noise: however many collude, lie or vanish, the guarantee stays what it is, and no set
of users is too small for it. The price is a variance twice that of noise which users make together.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.mechanisms.count_law import Channel
from faircount.mechanisms.decoys import CoinNoise, coin_noise, heads
from faircount.mechanisms.laplace import (
    LaplaceNoise,
    laplace_bound,
    laplace_noise,
)
from faircount.mechanisms.secret_shared import AUDITED_USERS
from faircount.mechanisms.verified import VerifiedMechanism
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.field import sum_rows, to_signed

S1_AND_USERS = Adversary("S1, the coordinator, with any number of users, reading the result")
S2_AND_USERS = Adversary("S2, the aggregator, with any number of users, reading the result")

ADDS = "adds its noise and keeps it secret"

_ENTRIES = 1 << 16  # of the table of responses that an audit makes at a time

_RELIED_ON = {S1: "S2", S1_AND_USERS: "S2", S2: "S1", S2_AND_USERS: "S1"}
"""Which server protects from whom."""


@dataclass(frozen=True, kw_only=True)
class ServerNoise(VerifiedMechanism):
    """What both forms have in common: who protects whom, and what an audit looks at."""

    means: ClassVar[dict[str, str]] = {
        "insiders": "colluding participants; any number leaves the guarantee as it is",
        "dropouts": "users who may be missing in the sum; any number leaves the guarantee as it is",
    }

    @property
    def adversaries(self) -> tuple[Adversary, ...]:
        """Each server, with any number of users, and who reads the result."""
        return S1_AND_USERS, S2_AND_USERS, OUTSIDER

    @property
    def default_adversary(self) -> Adversary:
        """A server, who knows its own noise; both are alike."""
        return S1_AND_USERS

    @property
    def participants(self) -> Adversary:
        """A participant makes no noise, so it knows no more than who reads the result."""
        return OUTSIDER

    def condition(self, adversary: Adversary) -> str | None:
        """The server on which the guarantee relies."""
        return None if adversary == COLLECTOR else f"{_RELIED_ON.get(adversary, 'S1 or S2')} {ADDS}"

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """Any data will do. A server knows its own noise, a reader neither one's."""
        users = self.users or AUDITED_USERS
        small = replace(self, users=users, dropouts=0, items=self.domain.labels[:2])
        return WorstPair.noisy(small, users, small.channel(users) if reader else small.one_server)

    @property
    @abstractmethod
    def one_server(self) -> Channel:
        """The law of one item's sum for a server, who takes its own noise off."""

    observed_quickly: ClassVar[bool] = True

    def observed(self, answers: NDArray[Any], copies: int, insiders: int, entropy: Entropy) -> Ints:
        """Surveys side by side: each has two items of its own in a wide one, and servers draw for every item."""
        block, seen = max(1, math.isqrt(_ENTRIES // (2 * self.n))), []
        for start in range(0, copies, block):
            beside = np.arange(min(block, copies - start))
            wide = replace(self, users=self.n * beside.size, items=2 * beside.size)
            held = self.positions(answers)[:, None] + 2 * beside
            seen.append(wide.seen(wide.respond(held.ravel(), entropy), beside.size, insiders))
        return np.concatenate(seen)

    def seen(self, responses: Residues, copies: int, insiders: int) -> Ints:
        """The sums of each survey's two items as S1 sees them: without its own noise, the row after the users'."""
        others = np.delete(responses, self.n, axis=0)
        return to_signed(sum_rows(others, self.modulus), self.modulus, self.lowest).reshape(copies, 2)


@dataclass(frozen=True, kw_only=True)
class ServerLaplace(LaplaceNoise, ServerNoise):
    """Both servers add discrete Laplace noise: pure epsilon against each of them, up to about 2^-119 of a finite table.

    Each adds to every count a draw of law (1-a)/(1+a) a^|z|, a = e^(-epsilon/2). Variance of a count 4a/(1-a)^2.
    """

    name: ClassVar[str] = "server-laplace"

    @property
    def draws(self) -> int:
        """One of a server is enough."""
        return 1

    def hidden(self, adversary: Adversary) -> int:
        """That of one server; who sees a user's own report needs no noise to read it."""
        return 0 if adversary == COLLECTOR else 1

    def share(self, included: int) -> float:
        """Both servers make all of it, however many users took part."""
        return 2

    def noise_reach(self, entries: int, tail: float) -> int:
        """Of the noise of both servers."""
        return laplace_bound(self.epsilon, 2 * entries, tail)

    def server_noise(self, entropy: Entropy) -> Ints:
        """A draw from the table for every item."""
        return self.table.draw(self.N, entropy)

    @property
    def one_server(self) -> Channel:
        """The noise of one server alone."""
        return Channel(1.0, noise=laplace_noise(self.epsilon, 1))


@dataclass(frozen=True, kw_only=True)
class ServerCoins(CoinNoise, ServerNoise):
    """Both servers add the heads of D fair coins to every count: for many releases, where coins cost less than Laplace.

    Give epsilon and delta (D is then the smallest number that is enough against one server), or D itself as `coins`
    (with an epsilon, if the guarantee is to be stated there). Variance of a count D/2.
    """

    name: ClassVar[str] = "server-coins"
    means: ClassVar[dict[str, str]] = {"coins": "D, fair coins per item of each server, instead of delta"}

    def made_of(self, needed: int) -> int:
        """All that are needed come from one server."""
        return needed

    def coins_between(self, included: int) -> tuple[int, int]:
        """D of each server, whoever takes part."""
        self.takes_part(included)
        return 2 * self.D, 2 * self.D

    def server_noise(self, entropy: Entropy) -> Ints:
        """The heads of D coins for every item."""
        return heads(self.D, self.N, entropy)

    @property
    def one_server(self) -> Channel:
        """The coins of one server alone."""
        return Channel(1.0, noise=coin_noise(self.D))

    def hidden(self, adversary: Adversary) -> int:
        """Those of one server; who sees a user's own report needs no coins to read it."""
        return 0 if adversary == COLLECTOR else self.D

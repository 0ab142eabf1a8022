"""Noise added by both servers, each of which adds the whole noise of a release.

Users prove that their report is one vote and add no noise. A server knows its own noise, so the
noise of the other one protects from it, and either of them protects from a reader of the result.
Because users have no part in the noise, the guarantee does not depend on how many of them collude,
cheat or drop out, and it holds for any number of accepted reports. The price is a variance twice
that of noise which the users add together.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.conditions import EITHER_NOISE, S1_NOISE, S2_NOISE, Condition
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary, AdversaryCode
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.decoys import CoinNoise, coin_noise, count_heads
from faircount.mechanisms.laplace import LaplaceNoise, laplace_bound, laplace_noise
from faircount.mechanisms.proven import ProvenMechanism, ProvenVotes
from faircount.mechanisms.secret_shared import AUDITED_USERS
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import WorstPair

S1_AND_USERS = Adversary(AdversaryCode.S1_AND_PARTICIPANTS)
S2_AND_USERS = Adversary(AdversaryCode.S2_AND_PARTICIPANTS)

AGGREGATORS = (S2, S2_AND_USERS)
"""The aggregator as an adversary."""

# Adversary -> the assumption about the other server, whose noise protects from it.
_RELIED_ON = {S1: S2_NOISE, S1_AND_USERS: S2_NOISE, S2: S1_NOISE, S2_AND_USERS: S1_NOISE}


def is_server(adversary: Adversary) -> bool:
    """Whether the adversary is a server, which knows its own noise."""
    return adversary in _RELIED_ON


@dataclass(frozen=True, kw_only=True)
class NoiseOfServers(ProvenMechanism):
    """Who protects from whom where both servers add the whole noise."""

    servers_add_noise: ClassVar[bool] = True
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
        # A participant who reads the result knows one answer more than others, and no noise.
        return OUTSIDER

    def condition(self, adversary: Adversary) -> Condition | None:
        """Return the assumption about the server whose noise the guarantee relies on."""
        if adversary == COLLECTOR:
            return None
        return _RELIED_ON.get(adversary, EITHER_NOISE)


@dataclass(frozen=True, kw_only=True)
class ServerNoise(NoiseOfServers, ProvenVotes):
    """Common base of both mechanisms for one question: the view of an audit."""

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return any two neighbouring data sets: noise protects all of them equally."""
        against = adversary or self.default_adversary
        users = self.users or AUDITED_USERS
        # A changed answer moves two counts; the noise of all others is independent of them.
        small = replace(self, users=users, dropouts=0, items=self.domain.labels[:2])
        # A server knows its own noise; a reader knows neither.
        channel = small.single_server_channel if is_server(against) else small.channel(users)
        return WorstPair.for_added_noise(small, users, channel, against)

    @property
    @abstractmethod
    def single_server_channel(self) -> Channel:
        """The channel as seen by a server, which subtracts its own noise."""

    def view_batch(
        self, answers: Ints, copies: int, adversaries: Sequence[Adversary], entropy: Entropy
    ) -> list[Ints]:
        """Respond, and return every adversary's view of the surveys in this batch."""
        responses = self.respond(answers, entropy)
        return [
            self.adversary_view(responses, answers, copies, adversary) for adversary in adversaries
        ]

    def adversary_view(
        self, responses: Residues, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the sums of two items per survey; a server knows its own noise besides."""
        # The rows after those of the users are the noise of the coordinator and the aggregator.
        own = responses[self.n + int(adversary in AGGREGATORS)][None]
        sums = self._signed_sums(responses).reshape(copies, 2)
        return self.view_of_sums(sums, self._signed_sums(own).reshape(copies, 2), adversary)

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the published sums; a server knows its own noise besides."""
        known = log.noise[adversary not in AGGREGATORS][:2]
        view: Ints = self.view_of_sums(sums[None], known[None], adversary)[0]
        return view

    def view_of_sums(self, sums: Ints, known: Ints, adversary: Adversary) -> Ints:
        """Return what is left of the sums when a server subtracts its own noise, then that noise.

        The noise is part of the view: if that of the other server depends on it, the sums tell more
        than they should.
        """
        return np.hstack([sums - known, known]) if is_server(adversary) else sums


@dataclass(frozen=True, kw_only=True)
class ServerLaplace(LaplaceNoise, ServerNoise):
    """Both servers add discrete Laplace noise: pure epsilon against each of them.

    Each adds to every count a draw of the distribution (1-a)/(1+a) a^|z| with a = e^(-epsilon/2),
    up to about 2^-120 for the finite table. The variance of a count is 4a/(1-a)^2.

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
        # Twice the entries: each server adds a draw to each of them.
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
        # All coins are known to be flipped, so the mean that is subtracted is exact.
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

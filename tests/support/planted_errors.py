"""Errors planted in every mechanism: each has a name, its true privacy loss, and who can see it.

A `PlantedError` is a mechanism whose code is wrong while its guarantee is that of the sound one.
`true_epsilon` is the pure epsilon of the faulty code, and `true_delta` its delta at the epsilon of
the claim, against the adversary that sees it best. They are computed here from the distributions themselves
and without the package's accounting, except where a formula of the package is the distribution of the error
(fewer coins, another p). A loss of delta 1 means that the result reveals an answer for sure.

`DETECTABLE` are refuted by an audit with its default number of runs. `UNDETECTABLE` are not, for the
reason that each gives: a list of what a passed audit does not say.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

import faircount as fc
from faircount.accounting import exact
from faircount.accounting.guarantee import AdversaryCode
from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.decoys import count_heads
from faircount.mechanisms.exact_draws import ONE, DrawTable, flip_coins
from faircount.mechanisms.gaussian import gaussian_table
from faircount.mechanisms.laplace import laplace_table, pair_up
from faircount.mechanisms.local import Window
from faircount.mechanisms.proven import Placement
from faircount.mechanisms.secret_shared import one_hot
from faircount.mechanisms.two_stage import TwoStageResponse
from faircount.sharing.field import from_signed

READER = (AdversaryCode.READER,)
INSIDERS = (AdversaryCode.PARTICIPANTS,)
S1 = (AdversaryCode.S1,)
S2 = (AdversaryCode.S2,)
S1_SERVER = (AdversaryCode.S1_AND_PARTICIPANTS,)
S2_SERVER = (AdversaryCode.S2_AND_PARTICIPANTS,)
COLLECTOR = (AdversaryCode.COLLECTOR,)
SAMPLED_ONCE = (*READER, *INSIDERS)
BOTH_SERVERS = (*S1_SERVER, *S2_SERVER)


@dataclass(frozen=True)
class PlantedError:
    """A faulty mechanism.

    name: what is wrong
    mechanism: the faulty code, which claims the guarantee of the sound one
    seen_by: who can tell; an audit may end when the first of them has
    true_epsilon, true_delta: the true loss; one of them is given
    epsilon: epsilon of the claim where the mechanism promises none
    reason: why an audit cannot find it, if it cannot
    """

    name: str
    mechanism: Mechanism
    seen_by: tuple[AdversaryCode, ...]
    true_epsilon: float | None = None
    true_delta: float | None = None
    epsilon: float | None = None
    reason: str = ""


# --- true losses, from the distributions themselves ---------------------------------------------------------


def stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Delta at this epsilon between two distributions, the worse of the two directions."""
    growth = math.exp(epsilon)
    return float(max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum()))


def delta_of_noise(pmf: np.ndarray, epsilon: float, step: int = 1) -> float:
    """Delta when a vote moves from one item to another and both have this noise."""
    held = np.pad(pmf, (step, 0))
    free = np.pad(pmf, (0, step))
    return stick(np.outer(held, free), np.outer(free, held), epsilon)


def sum_of(pmf: np.ndarray, terms: int) -> np.ndarray:
    """The distribution of a sum of independent draws, without its negligible ends."""
    total = np.ones(1)
    for _ in range(terms):
        total = np.convolve(total, pmf)
    return total[total > 1e-18]


def distribution_of(table: DrawTable) -> np.ndarray:
    """The distribution of a table on its consecutive values, without the negligible ends."""
    pmf = table.probabilities
    return pmf[pmf > 1e-18]


def delta_of_samples(holders: int, own: tuple[float, float], epsilon: float) -> float:
    """Delta when k holders of each item are counted with its own probability, and so is the user."""
    distributions = []
    for p in own:
        without = np.append(binom.pmf(np.arange(holders + 1), holders, p), 0.0)
        distributions.append(
            (np.append(without[:-1], 0) * (1 - p) + np.append(0, without[:-1]) * p, without)
        )
    (with_0, without_0), (with_1, without_1) = distributions
    return stick(np.outer(with_0, without_1), np.outer(without_0, with_1), epsilon)


def fractions_of(shares: np.ndarray, entropy: Entropy) -> np.ndarray:
    """Coins that show 1 with a probability of their own each."""
    return entropy.words(shares.size, np.uint32).reshape(shares.shape) < shares * 2.0**32


def fractions(share: float, size: int, entropy: Entropy) -> np.ndarray:
    """Coins that show 1 with this probability."""
    return flip_coins(int(share * ONE), size, entropy).astype(np.int64)


# --- noise of the users ----------------------------------------------------------------------------


class WeakLaplace(fc.Laplace):
    """The noise has a fraction of its scale."""

    factor = 0.7

    def contribute(self, answers, users, entropy):
        weak = laplace_table(self.epsilon / self.factor, self.h)[0]
        noise = weak.draw(users.size * self.N, entropy).reshape(users.size, self.N)
        return one_hot(answers, self.N) + noise


class WeakPair(fc.Laplace):
    """Two items share a draw, which has a fraction of its scale."""

    def contribute(self, answers, users, entropy):
        weak = laplace_table(self.table_epsilon / 0.7, self.h)[0]
        return one_hot(answers, self.N) + pair_up(weak.draw(users.size, entropy)[:, None])


class SlightlyWeakLaplace(WeakLaplace):
    factor = 0.9


class HalfScaleLaplace(WeakLaplace):
    """A vote that moves changes two counts; this noise is made for a change in one."""

    factor = 0.5


class SilentLaplace(fc.Laplace):
    """The noise is drawn and lost."""

    def contribute(self, answers, users, entropy):
        super().contribute(answers, users, entropy)
        return one_hot(answers, self.N)


class NoiseFor:
    """Mixin: changes the noise of a mechanism in which users add noise."""

    def contribute(self, answers, users, entropy):
        votes = one_hot(answers, self.N, self.steps_per_count)
        noise = super().contribute(answers, users, entropy) - votes
        return votes + self.change(noise, answers, entropy)


class ForgetfulLaplace(NoiseFor, fc.Laplace):
    """Every user forgets its noise with probability 1/2."""

    def change(self, noise, answers, entropy):
        return noise * fractions(0.5, len(noise), entropy)[:, None]


class SameForAllItems(NoiseFor, fc.Laplace):
    def change(self, noise, answers, entropy):
        return np.repeat(noise[:, :1], noise.shape[1], axis=1)


class OneSidedLaplace(NoiseFor, fc.Laplace):
    def change(self, noise, answers, entropy):
        return np.abs(noise)


class EvenLaplace(NoiseFor, fc.Laplace):
    """Every draw is doubled: more noise, but the counts keep their parity."""

    def change(self, noise, answers, entropy):
        return 2 * noise


class ClippedLaplace(NoiseFor, fc.Laplace):
    def change(self, noise, answers, entropy):
        return np.clip(noise, -1, 1)


class OwnItemLaplace(NoiseFor, fc.Laplace):
    """Only the chosen item gets noise."""

    def change(self, noise, answers, entropy):
        return noise * one_hot(answers, noise.shape[1])


class OtherItemsLaplace(NoiseFor, fc.Laplace):
    """The chosen item gets no noise."""

    def change(self, noise, answers, entropy):
        return noise * (1 - one_hot(answers, noise.shape[1]))


class TwoVotes(fc.Laplace):
    """A vote counts twice, and the noise is that for one."""

    def contribute(self, answers, users, entropy):
        return super().contribute(answers, users, entropy) + one_hot(answers, self.N)


class InsidersCounted(fc.Laplace):
    """The noise is divided among all users, as if the insiders' noise were unknown too."""

    def contribute(self, answers, users, entropy):
        spread = laplace_table(self.epsilon, 5)[0]
        noise = spread.draw(users.size * self.N, entropy).reshape(users.size, self.N)
        return one_hot(answers, self.N) + noise


class ForgetfulDecoys(NoiseFor, fc.Decoys):
    """Every user forgets its coins with probability 1/2."""

    def change(self, noise, answers, entropy):
        return noise * fractions(0.5, len(noise), entropy)[:, None]


class OneCoinForAll(NoiseFor, fc.Decoys):
    def change(self, noise, answers, entropy):
        return np.repeat(noise[:, :1], noise.shape[1], axis=1)


class PairedDecoys(fc.Decoys):
    """Half as many coins are flipped, and each counts twice."""

    def contribute(self, answers, users, entropy):
        coins = int(self.allocation.max()) // 2
        drawn = count_heads(coins, users.size * self.N, entropy)
        return one_hot(answers, self.N) + 2 * drawn.reshape(users.size, self.N)


class BiasedDecoys(fc.Decoys):
    """Coins that show heads too often."""

    heads = 0.9

    def contribute(self, answers, users, entropy):
        votes = one_hot(answers, self.N)
        most = int(self.allocation.max())
        coins = fractions(self.heads, users.size * self.N * most, entropy)
        used = np.arange(most) < self.allocation[users][:, None, None]
        return votes + (coins.reshape(users.size, self.N, most) * used).sum(axis=2)


class SlightlyBiasedDecoys(BiasedDecoys):
    heads = 0.8


class FewDecoys(fc.Decoys):
    """A third of the coins is missing."""

    def contribute(self, answers, users, entropy):
        coins = int(self.allocation.max()) * 2 // 3
        drawn = count_heads(coins, users.size * self.N, entropy)
        return one_hot(answers, self.N) + drawn.reshape(users.size, self.N)


class WeakGaussian(fc.DPDG):
    """The standard deviation is 0.8 of what it should be."""

    factor = 0.8

    def contribute(self, answers, users, entropy):
        drawn = gaussian_table(self.factor * self.user_steps).draw(users.size * self.N, entropy)
        return one_hot(answers, self.N, self.steps_per_count) + drawn.reshape(users.size, self.N)


class SameGaussian(NoiseFor, fc.DPDG):
    def change(self, noise, answers, entropy):
        return np.repeat(noise[:, :1], noise.shape[1], axis=1)


class CoarseGaussian(NoiseFor, fc.DPDG):
    """The noise is rounded to a multiple of four counts."""

    def change(self, noise, answers, entropy):
        grid = 4 * self.steps_per_count
        return np.rint(noise / grid).astype(np.int64) * grid


class ForgetfulGaussian(NoiseFor, fc.DPDG):
    """Every user forgets its noise with probability 1/2."""

    def change(self, noise, answers, entropy):
        return noise * fractions(0.5, len(noise), entropy)[:, None]


# --- sampling --------------------------------------------------------------------------------------


class TwoCoins(fc.DPDS):
    """A user is counted if either of two coins says so."""

    def contribute(self, answers, users, entropy):
        return np.maximum(
            *(super(TwoCoins, self).contribute(answers, users, entropy) for _ in "12")
        )


class EverybodyCounted(fc.DPDS):
    def contribute(self, answers, users, entropy):
        return one_hot(answers, self.N)


class LikelyCoin(fc.DPDS):
    """The coin shows heads with probability 0.3 instead of 0.2."""

    def contribute(self, answers, users, entropy):
        return one_hot(answers, self.N) * fractions(0.3, users.size, entropy)[:, None]


class UnequalCoins(fc.DPDS):
    """Holders of the first item are counted with probability 0.5, all others with 0.2."""

    def contribute(self, answers, users, entropy):
        often = fractions(0.5, users.size, entropy)
        seldom = fractions(0.2, users.size, entropy)
        return one_hot(answers, self.N) * np.where(answers == 0, often, seldom)[:, None]


class LeakingZeros(fc.DPDS):
    """A user who is not counted adds a vote for the next item."""

    def contribute(self, answers, users, entropy):
        counted = super().contribute(answers, users, entropy)
        moved = one_hot((answers + 1) % self.N, self.N)
        return np.where(counted.any(axis=1)[:, None], counted, moved)


class TwoTries(fc.DPCS):
    """A record that was not sampled is tried again."""

    def respond(self, answers, entropy):
        first = super().respond(answers, entropy)
        return np.where(first < 0, super().respond(answers, entropy), first)


class EveryRecord(fc.DPCS):
    def respond(self, answers, entropy):
        return self.positions(answers)


# --- two stages ------------------------------------------------------------------------------------


class TwoStageSets:
    """Mixin: changes who reports the own item."""

    def _draw_sets(self, positions, active, inside, entropy):
        return super()._draw_sets(positions, *self.force(active, inside), entropy)


class InactiveTellTheirItem(TwoStageSets, fc.TSSPrime):
    """Inactive users always report their own item."""

    def force(self, active, inside):
        return np.ones_like(active), np.where(active, inside, True)


class InactiveHideTheirItem(TwoStageSets, fc.TSSPrime):
    """Inactive users never report their own item."""

    def force(self, active, inside):
        return np.ones_like(active), np.where(active, inside, False)


class ActiveTellTheirItem(TwoStageSets, fc.TSS):
    """Active users always report their own item, while gamma = 1 says that sets are uniform."""

    def force(self, active, inside):
        return active, np.ones_like(inside)


class EverybodyTells(TwoStageSets, fc.TSSPrime):
    """All users report their own item."""

    def force(self, active, inside):
        return np.ones_like(active), np.ones_like(inside)


class AdaptiveSets(fc.TSSPrime):
    """Sets of active users prefer their own item by gamma = 8, while gamma = 1 is claimed."""

    @property
    def _own_item(self):
        odds = 8 * self.reported_items
        return DrawTable.coin(odds / (odds + self.N - self.reported_items))


class NobodyInactive(fc.TSS):
    """The bit of a reported item does not depend on the first coin."""

    def _draw_responses(self, positions, entropy):
        drawn = super()._draw_responses(positions, entropy)
        rows = np.arange(positions.size)
        bits = np.zeros_like(drawn.bits)
        bits[rows, positions] = drawn.indicators[rows, positions]
        return TwoStageResponse(drawn.indicators, bits)


# --- local randomizers -----------------------------------------------------------------------------


class TruthfulGRR(fc.GRR):
    """The own item is reported as if epsilon were 1.2."""

    def respond(self, answers, entropy):
        return Window(self.N, 1, 1.2).draw(self.positions(answers), entropy)


class NextItemGRR(fc.GRR):
    """Whoever does not report its own item reports the next one."""

    def respond(self, answers, entropy):
        own = flip_coins(self.window.threshold, np.size(answers), entropy)
        return np.where(own, answers, (np.asarray(answers) + 1) % self.N)


class HonestSometimesGRR(fc.GRR):
    """One report in twenty is the truth."""

    def respond(self, answers, entropy):
        honest = fractions(0.05, np.size(answers), entropy) == 1
        return np.where(honest, answers, super().respond(answers, entropy))


class LikelyOwnBit(fc.OUE):
    """The own bit is set with probability 0.6 instead of 1/2."""

    def respond(self, answers, entropy):
        bits = super().respond(answers, entropy)
        bits[np.arange(len(bits)), answers] = fractions(0.6, len(bits), entropy)
        return bits


class RareOtherBits(fc.OUE):
    """The bits of other items are set with three quarters of their probability."""

    def respond(self, answers, entropy):
        bits = super().respond(answers, entropy)
        kept = bits & fractions(0.75, bits.size, entropy).reshape(bits.shape).astype(np.uint8)
        kept[np.arange(len(bits)), answers] = bits[np.arange(len(bits)), answers]
        return kept


class OneVoteOUE(fc.OUE):
    """Only the own bit is ever set."""

    def respond(self, answers, entropy):
        return super().respond(answers, entropy) & one_hot(np.asarray(answers), self.N).astype(
            np.uint8
        )


class LoudDuchi(fc.Duchi):
    """The window is that of epsilon 1.2."""

    def respond(self, answers, entropy):
        return Window(2, 1, 1.2).draw((np.asarray(answers) > 0).astype(np.int64), entropy)


class LoudPM(fc.PM):
    """Cells of the user's window are e^1.2 times likelier than others."""

    def respond(self, answers, entropy):
        sound = self.window
        loud = Window(sound.cells, sound.width, 1.2)
        starts = np.where(np.asarray(answers) > 0, self.steps, 0)
        return loud.draw(starts, entropy)


class NarrowPM(fc.PM):
    """A report outside the window is moved to its middle with probability 1/10."""

    def respond(self, answers, entropy):
        cells = super().respond(answers, entropy)
        starts = np.where(np.asarray(answers) > 0, self.steps, 0)
        moved = fractions(0.1, cells.size, entropy) == 1
        return np.where(moved, starts + self.window.width // 2, cells)


# --- noise of the servers --------------------------------------------------------------------------


class ServerRows:
    """Mixin: changes the two rows of server noise."""

    def respond(self, answers, entropy):
        rows = super().respond(answers, entropy)
        first, second = self.change(rows[-2].astype(np.int64), rows[-1].astype(np.int64), entropy)
        rows[-2] = from_signed(first, self.modulus)
        rows[-1] = from_signed(second, self.modulus)
        return rows


class SilentCoordinator(ServerRows):
    """S1 adds nothing."""

    def change(self, first, second, entropy):
        return 0 * first, second


class SilentAggregator(ServerRows):
    """S2 adds nothing."""

    def change(self, first, second, entropy):
        return first, 0 * second


class EqualNoise(ServerRows):
    """Both servers add the same noise."""

    def change(self, first, second, entropy):
        return first, first


class OppositeNoise(ServerRows):
    """S2 subtracts what S1 adds."""

    def change(self, first, second, entropy):
        return first, -first


class FollowingNoise(ServerRows):
    """The noise of S2 is that of S1 and one coin more."""

    def change(self, first, second, entropy):
        return first, first + fractions(0.5, first.size, entropy)


class ConstantNoise(ServerRows):
    """S1 adds the same noise in every survey."""

    def change(self, first, second, entropy):
        return np.resize([3, -2], first.size), second


class OneNoisyItem(ServerRows):
    """Both servers add noise to every second item only."""

    def change(self, first, second, entropy):
        is_noisy = np.arange(first.size) % 2 == 0
        return first * is_noisy, second * is_noisy


class SilentCoordinatorLaplace(SilentCoordinator, fc.ServerLaplace):
    pass


class SilentAggregatorLaplace(SilentAggregator, fc.ServerLaplace):
    pass


class EqualLaplace(EqualNoise, fc.ServerLaplace):
    pass


class OppositeLaplace(OppositeNoise, fc.ServerLaplace):
    pass


class FollowingLaplace(FollowingNoise, fc.ServerLaplace):
    pass


class ConstantLaplace(ConstantNoise, fc.ServerLaplace):
    pass


class OneNoisyLaplace(OneNoisyItem, fc.ServerLaplace):
    pass


class SilentCoordinatorVotes(SilentCoordinator, fc.ServerJoint):
    pass


class EqualVotes(EqualNoise, fc.ServerJoint):
    pass


class WeakVotes(fc.ServerJoint):
    """Both servers draw at twice the epsilon."""

    def server_noise(self, entropy):
        return fc.ServerJoint(items=self.items, epsilon=2 * self.epsilon).server_noise(entropy)


class WeakServers(fc.ServerLaplace):
    """Each server adds what would be enough together with the other's."""

    def server_noise(self, entropy):
        return laplace_table(2 * self.epsilon, 1)[0].draw(self.N, entropy)


class SilentCoordinatorCoins(SilentCoordinator, fc.ServerCoins):
    pass


class SilentAggregatorCoins(SilentAggregator, fc.ServerCoins):
    pass


class EqualCoins(EqualNoise, fc.ServerCoins):
    pass


class ComplementaryCoins(ServerRows, fc.ServerCoins):
    """The coins of S2 are those of S1, inverted: both together are always D."""

    def change(self, first, second, entropy):
        return first, self.D - first


class HalfOfTheCoins(fc.ServerCoins):
    def server_noise(self, entropy):
        return count_heads(self.D // 2, self.N, entropy)


# --- placed coins ----------------------------------------------------------------------------------


class UnfairPlaced(fc.PlacedCoins):
    """Honest coins that show heads too often; inverted at random their sum looks fair."""

    heads = 0.8

    def contribute(self, answers, users, entropy):
        bits = super().contribute(answers, users, entropy)
        coins = bits[:, self.N :]
        coins[:] = fractions(self.heads, coins.size, entropy).reshape(coins.shape)
        return bits


class UnfairPlaced85(UnfairPlaced):
    heads = 0.85


class UnfairPlaced90(UnfairPlaced):
    heads = 0.9


class KnownPlaced(UnfairPlaced):
    heads = 1.0


class FewPlaced(fc.PlacedCoins):
    """A quarter of the coins is placed."""

    def place_coins(self, entropy, members):
        whole = super().place_coins(entropy, members)
        few = self.D // 4
        return Placement(whole.user[:few], whole.coin[:few], whole.inverted[:few])


class SameSidePlaced(fc.PlacedCoins):
    """All coins of a user show the same side, and the coins of two items come from the same users."""

    def contribute(self, answers, users, entropy):
        bits = super().contribute(answers, users, entropy)
        bits[:, self.N :] = bits[:, self.N : self.N + 1]
        return bits

    def place_coins(self, entropy, members):
        placed = super().place_coins(entropy, members)
        user = np.repeat(placed.user[:, ::2], 2, axis=1)
        inverted = np.repeat(placed.inverted[:, ::2], 2, axis=1)
        return Placement(user, np.broadcast_to(np.arange(self.N) % 2, user.shape), inverted)


# --- too small, too rare, or out of sight ----------------------------------------------------------


class HardlyWeakLaplace(WeakLaplace):
    factor = 0.995


class OneDecoyLess(fc.Decoys):
    """The user at the last place flips one coin less."""

    def contribute(self, answers, users, entropy):
        votes = one_hot(answers, self.N)
        heads = super().contribute(answers, users, entropy) - votes
        is_last = users >= self.n - self.n // (H + 1)
        # A coin that was flipped and is taken away again shows heads as often as the others do.
        share = heads / np.maximum(1, self.allocation[users])[:, None]
        taken = is_last[:, None] & fractions_of(share, entropy)
        return votes + heads - taken


class RarelySilentLaplace(fc.Laplace):
    """The noise of a survey is lost once in a million times."""

    def contribute(self, answers, users, entropy):
        drawn = super().contribute(answers, users, entropy)
        if fractions(1e-6, 1, entropy)[0]:
            return one_hot(answers, self.N)
        return drawn


class SilentThirdItem(NoiseFor, fc.Laplace):
    """The third item and all after it get no noise."""

    def change(self, noise, answers, entropy):
        return noise * (np.arange(noise.shape[1]) < 2)


class ShortSeed(fc.Laplace):
    """All randomness of a batch of users comes from a seed of 16 bits."""

    def contribute(self, answers, users, entropy):
        seed = int(entropy.words(1, np.uint16)[0])
        return super().contribute(answers, users, SeededStream(seed))


# --- the list --------------------------------------------------------------------------------------

ITEMS = 3
H = 4  # users whose noise counts in an audited survey of five
LAPLACE = {"items": ITEMS, "epsilon": 1.0}
SMALL_DELTA = {"items": ITEMS, "epsilon": 1.0, "delta": 1e-6}
SAMPLED = {"items": ITEMS, "p": 0.2, "floor": 30}
STAGED = {"items": 4, "p": 0.6, "alpha": 0.5, "floor": 20}
LARGE_DELTA = {"items": ITEMS, "epsilon": 1.0, "delta": 1e-3}


def user_laplace() -> np.ndarray:
    return distribution_of(laplace_table(1.0, H)[0])


def forgetful(pmf: np.ndarray) -> np.ndarray:
    """The distribution of a draw that is forgotten with probability 1/2."""
    kept = 0.5 * pmf
    kept[pmf.size // 2] += 0.5
    return kept


def folded(pmf: np.ndarray) -> np.ndarray:
    middle = pmf.size // 2
    return np.append(pmf[middle], 2 * pmf[middle + 1 :])


def clipped(pmf: np.ndarray) -> np.ndarray:
    middle = pmf.size // 2
    beyond = pmf[middle + 1 :].sum()
    return np.array([beyond, pmf[middle], beyond])


def biased_delta(coins: int, heads: float, epsilon: float = 1.0) -> float:
    return delta_of_noise(binom.pmf(np.arange(coins + 1), coins, heads), epsilon)


def decoy_coins() -> int:
    """Coins that the insider does not know."""
    made = fc.Decoys(**SMALL_DELTA).bind(H + 1)
    return made.coin_range(H)[0]


def gaussian_delta(factor: float) -> float:
    """Delta of continuous Gaussian noise of this share of the calibrated deviation."""
    sigma = factor * fc.DPDG(**SMALL_DELTA).bind(H + 1).target_sigma
    shift = math.sqrt(2) / sigma
    return float(norm.cdf(shift / 2 - 1 / shift) - math.e * norm.cdf(-shift / 2 - 1 / shift))


def forgetful_coins_delta() -> float:
    made = fc.Decoys(**SMALL_DELTA).bind(H + 1)
    pmf = np.ones(1)
    for coins in made.allocation[1:]:
        own = 0.5 * binom.pmf(np.arange(coins + 1), coins, 0.5)
        own[0] += 0.5
        pmf = np.convolve(pmf, own)
    # All four forget their coins once in 16 times, for both items at once: then the counts are
    # exact. That alone is a loss, which the noise of the single items may exceed.
    return max(delta_of_noise(pmf, 1.0), 1 / 16)


def sets_delta(active: float, inactive: float, epsilon: float = 0.5) -> float:
    """Delta of the sets alone, when users report their own item with these probabilities.

    With N = 4 and M = 2: the set holds the own item and one other, or two of the other three.
    """
    own = 0.6 * active + 0.4 * inactive
    # Both items, only the own, only the other one, none of the two.
    first = np.array([own / 3, own * 2 / 3, (1 - own) * 2 / 3, (1 - own) / 3])
    return stick(first, first[[0, 2, 1, 3]], epsilon)


def ratio(own: float, other: float) -> float:
    return math.log(own / other)


MISS = 1 / (math.e + 1)
GRR_OWN = math.e / (math.e + ITEMS - 1)
FAIR_PLACED = fc.PlacedCoins(**SMALL_DELTA)

DETECTABLE = [
    PlantedError("laplace: noise times 0.7", WeakLaplace(**LAPLACE), INSIDERS, 1 / 0.7),
    PlantedError(
        "laplace: noise of a pair times 0.7", WeakPair(items=2, epsilon=1.0), INSIDERS, 1 / 0.7
    ),
    PlantedError("laplace: noise times 0.9", SlightlyWeakLaplace(**LAPLACE), INSIDERS, 1 / 0.9),
    PlantedError(
        "laplace: noise for one changed count", HalfScaleLaplace(**LAPLACE), INSIDERS, 2.0
    ),
    PlantedError("laplace: noise is lost", SilentLaplace(**LAPLACE), INSIDERS, true_delta=1.0),
    PlantedError(
        "laplace: every second draw is forgotten",
        ForgetfulLaplace(**LAPLACE),
        INSIDERS,
        true_delta=1 / 2**H,
    ),
    PlantedError(
        "laplace: same noise for all items", SameForAllItems(**LAPLACE), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "laplace: noise is never negative",
        OneSidedLaplace(**LAPLACE),
        INSIDERS,
        true_delta=delta_of_noise(sum_of(folded(user_laplace()), H), 1.0),
    ),
    PlantedError("laplace: noise is always even", EvenLaplace(**LAPLACE), INSIDERS, true_delta=1.0),
    PlantedError(
        "laplace: a user's noise is clipped to 1",
        ClippedLaplace(**LAPLACE),
        INSIDERS,
        true_delta=delta_of_noise(sum_of(clipped(user_laplace()), H), 1.0),
    ),
    PlantedError(
        "laplace: noise on the own item only", OwnItemLaplace(**LAPLACE), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "laplace: no noise on the own item",
        OtherItemsLaplace(**LAPLACE),
        INSIDERS,
        true_delta=1.0,
    ),
    PlantedError("laplace: a vote counts twice", TwoVotes(**LAPLACE), INSIDERS, 2.0),
    PlantedError(
        "laplace: insiders' noise is counted on",
        InsidersCounted(**LAPLACE),
        INSIDERS,
        exact.laplace_epsilon(1.0, H / (H + 1)),
    ),
    PlantedError(
        "decoys: every second user forgets its coins",
        ForgetfulDecoys(**SMALL_DELTA),
        INSIDERS,
        true_delta=forgetful_coins_delta(),
    ),
    PlantedError(
        "decoys: same coins for all items", OneCoinForAll(**SMALL_DELTA), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "decoys: every coin counts twice", PairedDecoys(**SMALL_DELTA), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "decoys: heads 0.9",
        BiasedDecoys(**SMALL_DELTA),
        INSIDERS,
        true_delta=biased_delta(decoy_coins(), 0.9),
    ),
    PlantedError(
        "decoys: heads 0.8",
        SlightlyBiasedDecoys(**SMALL_DELTA),
        INSIDERS,
        true_delta=biased_delta(decoy_coins(), 0.8),
    ),
    PlantedError(
        "decoys: a third of the coins is missing",
        FewDecoys(**SMALL_DELTA),
        INSIDERS,
        true_delta=exact.decoys_delta(decoy_coins() * 2 // 3, 1.0),
    ),
    PlantedError(
        "dpdg: deviation times 0.8",
        WeakGaussian(**SMALL_DELTA),
        INSIDERS,
        true_delta=gaussian_delta(0.8),
    ),
    PlantedError(
        "dpdg: same noise for all items", SameGaussian(**SMALL_DELTA), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "dpdg: noise in steps of four counts",
        CoarseGaussian(**SMALL_DELTA),
        INSIDERS,
        true_delta=1.0,
    ),
    PlantedError(
        "dpdg: every second draw is forgotten",
        ForgetfulGaussian(**SMALL_DELTA),
        INSIDERS,
        true_delta=1 / 2**H,
    ),
    PlantedError(
        "dpds: two coins instead of one",
        TwoCoins(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=delta_of_samples(30, (0.36, 0.36), 0.3),
        epsilon=0.3,
    ),
    PlantedError(
        "dpds: everybody is counted",
        EverybodyCounted(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=1.0,
        epsilon=0.3,
    ),
    PlantedError(
        "dpds: heads 0.3 instead of 0.2",
        LikelyCoin(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=delta_of_samples(30, (0.3, 0.3), 0.3),
        epsilon=0.3,
    ),
    PlantedError(
        "dpds: holders of one item are counted more often",
        UnequalCoins(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=delta_of_samples(30, (0.5, 0.2), 0.3),
        epsilon=0.3,
    ),
    PlantedError(
        "dpds: whoever is not counted votes for the next item",
        LeakingZeros(items=2, p=0.2, floor=30),
        SAMPLED_ONCE,
        # The two counts add up to the number of users: only one is random.
        true_delta=stick(
            np.convolve(
                np.convolve(binom.pmf(range(31), 30, 0.2), binom.pmf(range(31), 30, 0.8)),
                [0.8, 0.2],
            ),
            np.convolve(
                np.convolve(binom.pmf(range(31), 30, 0.2), binom.pmf(range(31), 30, 0.8)),
                [0.2, 0.8],
            ),
            0.3,
        ),
        epsilon=0.3,
    ),
    PlantedError(
        "dpcs: a record is tried twice",
        TwoTries(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=delta_of_samples(30, (0.36, 0.36), 0.3),
        epsilon=0.3,
    ),
    PlantedError(
        "dpcs: every record is sampled",
        EveryRecord(**SAMPLED),
        SAMPLED_ONCE,
        true_delta=1.0,
        epsilon=0.3,
    ),
    PlantedError(
        "tss-prime: inactive users report their own item",
        InactiveTellTheirItem(**STAGED),
        S1,
        true_delta=sets_delta(0.5, 1.0),
        epsilon=0.5,
    ),
    PlantedError(
        "tss-prime: inactive users hide their own item",
        InactiveHideTheirItem(**STAGED),
        S1,
        true_delta=sets_delta(0.5, 0.0),
        epsilon=0.5,
    ),
    PlantedError(
        "tss: active users report their own item",
        ActiveTellTheirItem(**STAGED),
        S1,
        true_delta=sets_delta(1.0, 0.5),
        epsilon=0.5,
    ),
    PlantedError(
        "tss-prime: all users report their own item",
        EverybodyTells(**STAGED),
        S1,
        true_delta=sets_delta(1.0, 1.0),
        epsilon=0.5,
    ),
    PlantedError(
        "tss-prime: gamma 8 where 1 is claimed",
        AdaptiveSets(**STAGED),
        S1,
        true_delta=sets_delta(8 / 9, 0.5),
        epsilon=0.5,
    ),
    PlantedError(
        "tss: the first coin is ignored",
        NobodyInactive(**STAGED),
        READER,
        true_delta=delta_of_samples(20, (0.5, 0.5), 0.5),
        epsilon=0.5,
    ),
    PlantedError("grr: epsilon 1.2", TruthfulGRR(**LAPLACE), COLLECTOR, 1.2),
    PlantedError(
        "grr: a lie is always the next item", NextItemGRR(**LAPLACE), COLLECTOR, true_delta=GRR_OWN
    ),
    PlantedError(
        "grr: one report in twenty is the truth",
        HonestSometimesGRR(**LAPLACE),
        COLLECTOR,
        ratio(0.05 + 0.95 * GRR_OWN, 0.95 * (1 - GRR_OWN) / (ITEMS - 1)),
    ),
    PlantedError(
        "oue: own bit 0.6",
        LikelyOwnBit(**LAPLACE),
        COLLECTOR,
        ratio(0.6, MISS) + ratio(1 - MISS, 0.4),
    ),
    PlantedError(
        "oue: other bits are too rare",
        RareOtherBits(**LAPLACE),
        COLLECTOR,
        ratio(0.5, 0.75 * MISS) + ratio(1 - 0.75 * MISS, 0.5),
    ),
    PlantedError("oue: other bits are never set", OneVoteOUE(**LAPLACE), COLLECTOR, true_delta=0.5),
    PlantedError("duchi: epsilon 1.2", LoudDuchi(epsilon=1.0), COLLECTOR, 1.2),
    PlantedError("pm: epsilon 1.2", LoudPM(epsilon=1.0), COLLECTOR, 1.2),
    PlantedError(
        "pm: one report in ten is the middle", NarrowPM(epsilon=1.0), COLLECTOR, true_delta=0.09
    ),
    PlantedError(
        "server-joint: S1 adds nothing",
        SilentCoordinatorVotes(**LAPLACE),
        S2_SERVER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-joint: both add the same", EqualVotes(**LAPLACE), BOTH_SERVERS, true_delta=1.0
    ),
    PlantedError("server-joint: twice the epsilon", WeakVotes(**LAPLACE), BOTH_SERVERS, 2.0),
    PlantedError(
        "server-laplace: S1 adds nothing",
        SilentCoordinatorLaplace(**LAPLACE),
        S2_SERVER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-laplace: S2 adds nothing",
        SilentAggregatorLaplace(**LAPLACE),
        S1_SERVER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-laplace: both add the same", EqualLaplace(**LAPLACE), BOTH_SERVERS, true_delta=1.0
    ),
    PlantedError(
        "server-laplace: S2 subtracts what S1 adds",
        OppositeLaplace(**LAPLACE),
        READER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-laplace: S2 adds S1's noise and a coin",
        FollowingLaplace(**LAPLACE),
        BOTH_SERVERS,
        true_delta=delta_of_noise(np.array([0.5, 0.5]), 1.0),
    ),
    PlantedError(
        "server-laplace: S1 adds a constant", ConstantLaplace(**LAPLACE), S2_SERVER, true_delta=1.0
    ),
    PlantedError(
        "server-laplace: only one item gets noise",
        OneNoisyLaplace(**LAPLACE),
        READER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-laplace: half of the scale each", WeakServers(**LAPLACE), BOTH_SERVERS, 2.0
    ),
    PlantedError(
        "server-coins: S1 adds nothing",
        SilentCoordinatorCoins(**SMALL_DELTA),
        S2_SERVER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-coins: S2 adds nothing",
        SilentAggregatorCoins(**SMALL_DELTA),
        S1_SERVER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-coins: both flip the same coins",
        EqualCoins(**SMALL_DELTA),
        BOTH_SERVERS,
        true_delta=1.0,
    ),
    PlantedError(
        "server-coins: S2 turns over the coins of S1",
        ComplementaryCoins(**SMALL_DELTA),
        READER,
        true_delta=1.0,
    ),
    PlantedError(
        "server-coins: half of the coins each",
        HalfOfTheCoins(**SMALL_DELTA),
        BOTH_SERVERS,
        true_delta=exact.decoys_delta(fc.ServerCoins(**SMALL_DELTA).D // 2, 1.0),
    ),
    PlantedError(
        "placed-coins: heads 0.8",
        UnfairPlaced(**SMALL_DELTA),
        INSIDERS,
        true_delta=biased_delta(FAIR_PLACED.D - 1, 0.8),
    ),
    PlantedError(
        "placed-coins: heads 0.85",
        UnfairPlaced85(**LARGE_DELTA),
        INSIDERS,
        true_delta=biased_delta(fc.PlacedCoins(**LARGE_DELTA).D - 1, 0.85),
    ),
    PlantedError(
        "placed-coins: heads 0.9",
        UnfairPlaced90(**LARGE_DELTA),
        INSIDERS,
        true_delta=biased_delta(fc.PlacedCoins(**LARGE_DELTA).D - 1, 0.9),
    ),
    PlantedError(
        "placed-coins: always heads", KnownPlaced(**LARGE_DELTA), INSIDERS, true_delta=1.0
    ),
    PlantedError(
        "placed-coins: a quarter is placed",
        FewPlaced(**LARGE_DELTA),
        INSIDERS,
        true_delta=exact.decoys_delta(fc.PlacedCoins(**LARGE_DELTA).D // 4 - 1, 1.0),
    ),
    PlantedError(
        "placed-coins: two items share their coins",
        SameSidePlaced(**LARGE_DELTA),
        INSIDERS,
        true_delta=1.0,
    ),
]

UNDETECTABLE = [
    PlantedError(
        "laplace: noise times 0.995",
        HardlyWeakLaplace(**LAPLACE),
        INSIDERS,
        1 / 0.995,
        reason="epsilon is 0.5% too large; 200,000 runs can tell 3%",
    ),
    PlantedError(
        "decoys: one coin is missing",
        OneDecoyLess(**SMALL_DELTA),
        INSIDERS,
        true_delta=exact.decoys_delta(decoy_coins() - 1, 1.0),
        reason="delta is 6% too large, and so is it at every other epsilon, or by less",
    ),
    PlantedError(
        "laplace: noise is lost once in a million surveys",
        RarelySilentLaplace(**LAPLACE),
        INSIDERS,
        true_delta=1e-6,
        reason="it happens in none of the runs",
    ),
    PlantedError(
        "laplace: no noise from the third item on",
        SilentThirdItem(**LAPLACE),
        INSIDERS,
        true_delta=1.0,
        reason="an audit runs a survey of two items",
    ),
    PlantedError(
        "laplace: a seed of 16 bits",
        ShortSeed(**LAPLACE),
        INSIDERS,
        true_delta=1.0,
        reason="the noise has its distribution; whoever tries all seeds finds it nevertheless",
    ),
]

"""The law of the weighted sum of several groups' estimates of one item, from its characteristic function.

    T = sum_g W_g psihat_g = sum_g a_g (s_g - c_g),    a_g = W_g / (n_g (hit_g - miss_g))

c_g is what s_g would be on average without holders. T takes far too many values to list, but the characteristic
function of every s_g is known in closed form, and that of T is a product. Three questions are answered: T for given
holders in every group; T when the holders of all groups together are a random set of users; T when users are drawn from
a population.

T is read with a little normal blur, on the safe side: a tail is never computed smaller than it is (up to 1e-6), and is
at most the true tail about 0.06 standard deviations nearer, plus one hundredth.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats
from faircount.mechanisms.count_law import Channel

EXACT_SPLIT_USERS = 20_000
"""Up to this many users a random split is computed exactly; above, holders and users are taken for independent."""

Complex = NDArray[np.complex128]

_CELLS = 1000  # length of the window over the standard deviation of the blur
_CUT = 4.5  # frequencies above _CUT / blur have been damped to e^-10
_REACH, _SHARE = 2.326347874, 0.99  # a normal variable stays below _REACH with probability _SHARE
_STEPS = math.ceil(_CUT * _CELLS / (2 * math.pi))
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Part:
    """A group: its weight, the law of its sums and its number of users."""

    weight: float
    channel: Channel
    users: int

    @cached_property
    def step(self) -> float:
        """By how much T grows when the group's sum grows by one."""
        return self.weight / (self.users * (self.channel.hit - self.channel.miss))

    @cached_property
    def per_holder(self) -> float:
        """By how much the variance of T grows when a user of the group becomes a holder (it may fall)."""
        hit, miss = self.channel.hit, self.channel.miss
        return self.step**2 * (hit * (1 - hit) - miss * (1 - miss))

    @cached_property
    def base_variance(self) -> float:
        """Variance of T that the group brings along without holders."""
        miss, noise = self.channel.miss, self.channel.noise
        return self.step**2 * (self.users * miss * (1 - miss) + (noise.variance if noise else 0.0))

    def coin(self, probability: float, frequencies: Floats) -> Complex:
        """Characteristic function of a step that is made with this probability."""
        return np.asarray(1 - probability + probability * np.exp(1j * frequencies * self.step))

    def noise(self, frequencies: Floats) -> Complex:
        """Of all that does not depend on holders: the noise, less its mean and that of the other coins."""
        law, shift = self.channel.noise, self.channel.miss * self.users
        if law is None:
            return np.asarray(np.exp(-1j * frequencies * self.step * shift))
        kept = np.flatnonzero(law.pmf > 1e-15)
        pmf, low = law.pmf[kept[0] : kept[-1] + 1], (law.low + int(kept[0])) / law.scale
        turn = np.exp(1j * frequencies * self.step / law.scale)
        return np.asarray(np.polyval(pmf[::-1], turn) * np.exp(1j * frequencies * self.step * (low - law.mean - shift)))


@dataclass(frozen=True, eq=False)
class Laws:
    """Laws of T, one per row: their characteristic functions at multiples of 2 pi / length, read around a centre."""

    values: Complex
    length: float
    centre: float

    def below(self, point: float) -> Floats:
        """P(T <= point), or a little more."""
        return np.minimum(self._upto(point + _REACH * self.length / _CELLS) / _SHARE, 1.0)

    def above(self, point: float) -> Floats:
        """P(T >= point), or a little more."""
        return np.minimum((1 - self._upto(point - _REACH * self.length / _CELLS)) / _SHARE, 1.0)

    def _upto(self, point: float) -> Floats:
        """P(T + blur <= point): the Fourier series of the density, integrated from the start of the window."""
        start = self.centre - self.length / 2
        from_start = min(max(point - start, 0.0), self.length)
        k, u = np.arange(1, _STEPS + 1), frequencies_of(self.length)[1:]
        blur = np.exp(-((u * self.length / _CELLS) ** 2) / 2)
        terms = 1j * blur / (math.pi * k) * np.exp(-1j * u * start) * (np.exp(-1j * u * from_start) - 1)
        return np.asarray(np.clip(from_start / self.length + (self.values[:, 1:] * terms).real.sum(axis=1), 0.0, 1.0))


def frequencies_of(length: float) -> Floats:
    """Where a law that is read on a window of this length is needed."""
    return np.asarray(2 * math.pi / length * np.arange(_STEPS + 1))


class WeightedSum:
    """T for given groups; what was computed once is kept."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.users = sum(part.users for part in parts)
        self._noise: dict[float, Complex] = {}
        self._coins: dict[float, tuple[Complex, Complex]] = {}
        self._joint: dict[int, Complex] = {}

    @cached_property
    def unlike(self) -> float:
        """sum W_g^2 / n_g - 1 / n: variance per psi (1 - psi) that weights away from the sizes cost."""
        return max(0.0, sum(part.weight**2 / part.users for part in self.parts) - 1 / self.users)

    def variance(self, holders: float) -> float:
        """Of T, for a random split of so many holders."""
        share = holders / self.users
        coins = sum(part.base_variance + share * part.users * part.per_holder for part in self.parts)
        return coins + self.unlike * share * (1 - share)

    def fixed(self, splits: NDArray[np.int64]) -> Laws:
        """T for each row of `splits`: the number of holders in every group."""
        held, sizes = splits.astype(np.float64), np.array([part.users for part in self.parts])
        spread = held @ [part.per_holder for part in self.parts] + sum(part.base_variance for part in self.parts)
        length = self._length(float(spread.max()))
        holder, other = self._logs(length)
        logs = sum(np.outer(held[:, g], holder[g]) + np.outer(n - held[:, g], other[g]) for g, n in enumerate(sizes))
        values = np.exp(logs) * self._noise_at(length)
        means = sum(part.weight / part.users * held[:, g] for g, part in enumerate(self.parts))
        return Laws(values, length, float(np.mean(means)))

    def random(self, holders: int) -> Laws:
        """T when the holders are a random set of all users."""
        block = _block(holders, self.users)
        theta = min(max((block[0] + block[-1]) / 2, 0.5), self.users - 0.5) / self.users
        length = self._length(self.variance(theta * self.users))
        if self.users > EXACT_SPLIT_USERS:
            values = self._as_if_independent(holders / self.users, length)
        else:
            if block.start not in self._joint:
                self._joint[block.start] = self._given_holders(block, theta, length)
            values = self._joint[block.start][holders - block.start]
        return Laws(values[None, :], length, holders / self.users)

    def population(self, shares: Floats) -> Laws:
        """T when every user of group g holds the item with probability shares[g], independently."""
        spread = sum(
            part.base_variance + part.users * (q * part.per_holder + q * (1 - q) * (part.weight / part.users) ** 2)
            for part, q in zip(self.parts, shares.tolist(), strict=True)
        )
        length = self._length(spread)
        u, values = frequencies_of(length), self._noise_at(length)
        for part, q in zip(self.parts, shares.tolist(), strict=True):
            heads = part.channel.miss + (part.channel.hit - part.channel.miss) * q
            values = values * power(part.coin(heads, u), part.users)
        mean = sum(part.weight * q for part, q in zip(self.parts, shares.tolist(), strict=True))
        return Laws(values[None, :], length, mean)

    def _given_holders(self, block: range, theta: float, length: float) -> Complex:
        """One row for each number of holders in the block.

        Let every user be a holder with probability theta, independently: given their number they are then a random set.
        The joint characteristic function of T and that number is a product over users; a Fourier transform in the
        second argument picks the number.
        """
        size = 2 * math.ceil(7 * math.sqrt(self.users * theta * (1 - theta)) + 12)
        turn, u = np.exp(2j * math.pi * np.arange(size) / size), frequencies_of(length)
        coins = [(part.coin(part.channel.hit, u), part.coin(part.channel.miss, u), part.users) for part in self.parts]
        noise = self._noise_at(length)
        most = np.abs(noise) * np.prod([(theta * abs(h) + (1 - theta) * abs(o)) ** m for h, o, m in coins], axis=0)
        seen = most * np.exp(-((u * length / _CELLS) ** 2) / 2) > _NEGLIGIBLE
        joint = np.repeat(noise[seen, None], size, axis=1)
        for holder, other, members in coins:
            joint *= power(theta * turn * holder[seen, None] + (1 - theta) * other[seen, None], members)
        counted = np.fft.fft(joint, axis=1)[:, np.array(block) % size].T
        values = np.zeros((len(block), u.size), dtype=np.complex128)
        values[:, seen] = counted / counted[:, :1]
        return values

    def _as_if_independent(self, theta: float, length: float) -> Complex:
        """As above, but instead of fixing the number of holders take its part in T away: same mean and variance."""
        u, values = frequencies_of(length), self._noise_at(length)
        away = np.exp(-1j * u / self.users)
        for part in self.parts:
            holder, other = part.coin(part.channel.hit, u), part.coin(part.channel.miss, u)
            values = values * power(theta * away * holder + (1 - theta) * other, part.users)
        return np.asarray(values * np.exp(1j * u * theta))

    def _length(self, variance: float) -> float:
        """Of a window that holds all of T; few different ones, so that what depends on it is computed once."""
        widest = max(part.step for part in self.parts)
        least = 20 * math.sqrt(variance) + 6 * widest
        return float(2.0 ** (math.ceil(4 * math.log2(least)) / 4))

    def _noise_at(self, length: float) -> Complex:
        if length not in self._noise:
            parts = [part.noise(frequencies_of(length)) for part in self.parts]
            self._noise[length] = np.asarray(np.prod(parts, axis=0))
        return self._noise[length]

    def _logs(self, length: float) -> tuple[Complex, Complex]:
        """Logarithms of both coins, one row per group."""
        if length not in self._coins:
            u = frequencies_of(length)
            self._coins[length] = (
                np.stack([_log(part.coin(part.channel.hit, u)) for part in self.parts]),
                np.stack([_log(part.coin(part.channel.miss, u)) for part in self.parts]),
            )
        return self._coins[length]


def _log(values: Complex) -> Complex:
    """Logarithm, finite where the value is 0."""
    return np.asarray(np.log(np.maximum(np.abs(values), 1e-300)) + 1j * np.angle(values))


def power(values: Complex, exponent: int) -> Complex:
    """By repeated squaring: ten times as fast as complex powers."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        values, exponent = values * values, exponent >> 1
    return result


def _block(holders: int, users: int) -> range:
    """Numbers of holders that are computed together: about two standard deviations of a random number of holders."""
    few = min(holders, users - holders)
    first = math.isqrt(few) ** 2
    last = min(first + 2 * math.isqrt(few), users // 2)
    return range(first, last + 1) if holders == few else range(users - last, users - first + 1)

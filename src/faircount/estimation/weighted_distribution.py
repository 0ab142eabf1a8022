"""The distribution of the weighted sum of several groups' estimates of one item.

    T = sum_g W_g psihat_g = sum_g a_g (s_g - c_g),    a_g = W_g / (n_g (hit_g - miss_g))

c_g is what s_g would be on average without holders. T takes far too many values to list, but the
characteristic function of every s_g is known in closed form, and that of T is a product. Three
cases are computed: T for given holders in every group; T when the holders of all groups together
are a random set of users; T when users are drawn from a population.

The distribution is inverted with a little normal blur, on the safe side: a tail is never computed
smaller than it is (up to 1e-6), and is at most the true tail about 0.06 standard deviations nearer,
plus one hundredth.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats
from faircount.mechanisms.count_distribution import Channel

EXACT_SPLIT_USERS = 20_000
"""Up to this many users a random split is computed exactly.

Above, holders and users are treated as independent.
"""

Complex = NDArray[np.complex128]

# Length of the window over the standard deviation of the blur.
_CELLS = 1000

# Frequencies above _CUT / blur are damped to e^-10 and left out.
_CUT = 4.5
_STEPS = math.ceil(_CUT * _CELLS / (2 * math.pi))

# The Fourier coefficients of the blur, integrated; the length of the window cancels out.
_NUMBERS = np.arange(1, _STEPS + 1)
_INTEGRATED_BLUR = 1j * np.exp(-((2 * math.pi * _NUMBERS / _CELLS) ** 2) / 2) / (math.pi * _NUMBERS)

# A standard normal variable stays below _REACH with probability _SHARE.
_REACH = 2.326347874
_SHARE = 0.99

# How many terms of a polynomial are summed at once.
_TERMS = 32

# A damped characteristic function below this does not count.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class WeightedGroup:
    """A group: its weight, the distribution of its sums and its number of users."""

    weight: float
    channel: Channel
    users: int

    @cached_property
    def step(self) -> float:
        """By how much T grows when the group's sum grows by one."""
        return self.weight / (self.users * (self.channel.hit - self.channel.miss))

    @cached_property
    def per_holder(self) -> float:
        """By how much the variance of T grows when a user of the group becomes a holder.

        It is negative where misses are noisier than hits.
        """
        hit = self.channel.hit
        miss = self.channel.miss
        return self.step**2 * (hit * (1 - hit) - miss * (1 - miss))

    @cached_property
    def base_variance(self) -> float:
        """Variance of T that the group adds without any holders."""
        miss = self.channel.miss
        noise = self.channel.noise
        return self.step**2 * (self.users * miss * (1 - miss) + (noise.variance if noise else 0.0))

    def coin(self, probability: float, frequencies: Floats) -> Complex:
        """Return the characteristic function of one step that is made with this probability."""
        return np.asarray(1 - probability + probability * np.exp(1j * frequencies * self.step))

    def noise(self, frequencies: Floats) -> Complex:
        """Return the characteristic function of what does not depend on holders.

        That is the noise, less its mean and that of the other users' coins.
        """
        distribution = self.channel.noise
        shift = self.channel.miss * self.users
        if distribution is None:
            return np.asarray(np.exp(-1j * frequencies * self.step * shift))
        # A polynomial in e^(i u step / scale), with the probabilities as coefficients. The tails
        # that are cut off weigh less than the blur can show.
        kept = np.flatnonzero(distribution.pmf > 1e-15)
        pmf = distribution.pmf[kept[0] : kept[-1] + 1]
        low = (distribution.low + int(kept[0])) / distribution.scale
        turn = np.exp(1j * frequencies * self.step / distribution.scale)
        centred = np.exp(1j * frequencies * self.step * (low - distribution.mean - shift))
        return np.asarray(_polynomial(pmf, turn) * centred)


@dataclass(frozen=True, eq=False)
class Distributions:
    """Distributions of T, one per row, on a window of this length around a centre.

    `values` are their characteristic functions at multiples of 2 pi / length.
    """

    values: Complex
    length: float
    centre: float

    # The blur is a normal variable with standard deviation length / _CELLS. It exceeds _REACH of
    # these with probability 1 - _SHARE, so P(T <= x) <= P(T + blur <= x + reach) / _SHARE.

    def below(self, point: float) -> Floats:
        """Return P(T <= point), or a little more."""
        return np.minimum(self._blurred_below(point + self._blur_reach) / _SHARE, 1.0)

    def above(self, point: float) -> Floats:
        """Return P(T >= point), or a little more."""
        return np.minimum((1 - self._blurred_below(point - self._blur_reach)) / _SHARE, 1.0)

    @property
    def _blur_reach(self) -> float:
        return _REACH * self.length / _CELLS

    def _blurred_below(self, point: float) -> Floats:
        """Return P(T + blur <= point)."""
        start = self.centre - self.length / 2
        from_start = min(max(point - start, 0.0), self.length)
        # The Fourier series of the density, integrated term by term from the start of the window.
        u = frequencies_of(self.length)[1:]
        terms = np.exp(-1j * u * (start + from_start)) - np.exp(-1j * u * start)
        series = (self.values[:, 1:] @ (_INTEGRATED_BLUR * terms)).real
        return np.asarray(np.clip(from_start / self.length + series, 0.0, 1.0))


def frequencies_of(length: float) -> Floats:
    """Return the frequencies at which the distribution on a window of this length is needed."""
    return np.asarray(2 * math.pi / length * np.arange(_STEPS + 1))


class WeightedSum:
    """T for given groups; intermediate results are cached."""

    def __init__(self, groups: tuple[WeightedGroup, ...]) -> None:
        self.groups = groups
        self.users = sum(group.users for group in groups)
        self._noise_by_length: dict[float, Complex] = {}
        self._logs_by_length: dict[float, tuple[Complex, Complex]] = {}
        self._coins_by_length: dict[float, tuple[Complex, Complex]] = {}
        self._rows_by_block: dict[int, Complex] = {}

    @cached_property
    def excess_variance(self) -> float:
        """sum W_g^2 / n_g - 1 / n: what weights unlike the sizes cost, per psi (1 - psi)."""
        squares = sum(group.weight**2 / group.users for group in self.groups)
        return max(0.0, squares - 1 / self.users)

    def variance(self, holders: float) -> float:
        """Return the variance of T for a random split of so many holders."""
        share = holders / self.users
        coins = sum(
            group.base_variance + share * group.users * group.per_holder for group in self.groups
        )
        return coins + self.excess_variance * share * (1 - share)

    def given_splits(self, splits: NDArray[np.int64]) -> Distributions:
        """Return the distribution of T for every row of `splits`: the holders in every group."""
        held = splits.astype(np.float64)
        base_variance = sum(group.base_variance for group in self.groups)
        variances = held @ [group.per_holder for group in self.groups] + base_variance
        length = self._window_length(float(variances.max()))
        holder, other = self._log_coins(length)
        # Powers of characteristic functions are products of logarithms, for all splits at once.
        sizes = np.array([group.users for group in self.groups])
        values = np.exp(held @ holder + (sizes - held) @ other) * self._noise(length)
        means = held @ [group.weight / group.users for group in self.groups]
        return Distributions(values, length, float(np.mean(means)))

    def random_split(self, holders: int) -> Distributions:
        """Return the distribution of T when the holders are a random set of all users."""
        block = _block(holders, self.users)
        # One theta serves a whole block of numbers of holders, which are likely with it. It must
        # not be 0 or 1, where only one number is possible.
        theta = min(max((block[0] + block[-1]) / 2, 0.5), self.users - 0.5) / self.users
        length = self._window_length(self.variance(theta * self.users))
        if self.users > EXACT_SPLIT_USERS:
            values = self._as_if_independent(holders / self.users, length)
        else:
            if block.start not in self._rows_by_block:
                self._rows_by_block[block.start] = self._given_holders(block, theta, length)
            values = self._rows_by_block[block.start][holders - block.start]
        return Distributions(values[None, :], length, holders / self.users)

    def population(self, shares: Floats) -> Distributions:
        """Return the distribution of T if users of group g hold the item with chance shares[g]."""
        pairs = list(zip(self.groups, shares.tolist(), strict=True))
        variance = sum(
            group.base_variance
            + group.users * (q * group.per_holder + q * (1 - q) * (group.weight / group.users) ** 2)
            for group, q in pairs
        )
        length = self._window_length(variance)
        u = frequencies_of(length)
        values = self._noise(length)
        for group, q in pairs:
            heads = group.channel.miss + (group.channel.hit - group.channel.miss) * q
            values = values * power(group.coin(heads, u), group.users)
        mean = sum(group.weight * q for group, q in pairs)
        return Distributions(values[None, :], length, mean)

    def drawn_users(self, holders: Floats, others: Floats) -> Distributions:
        """Return the distribution of T for weights by size, when every user is drawn alone.

        A user is a holder in group g with probability holders[g] and somebody else there with
        probability others[g], so the sizes of the groups are random.
        """
        # With weights by size a group's step does not depend on how many users are in it.
        mean = float(holders.sum()) / self.users
        second_moment = 0.0
        noise_variance = 0.0
        shift = 0.0
        for group, held, other in zip(self.groups, holders.tolist(), others.tolist(), strict=True):
            hit = group.channel.hit
            miss = group.channel.miss
            second_moment += group.step**2 * held * (hit * (1 - hit) + (hit - miss) ** 2)
            second_moment += group.step**2 * other * miss * (1 - miss)
            if group.channel.noise is not None:
                noise_variance += group.step**2 * group.channel.noise.variance
            shift += group.step * miss * group.users
        variance = max(0.0, self.users * (second_moment - mean**2)) + noise_variance
        length = self._window_length(variance)
        u = frequencies_of(length)
        of_holder, of_other = self._centred_coins(length)
        one_user = holders @ of_holder + others @ of_other
        # The noise is that of the groups as they are; the shift in it belongs to their users.
        noise = self._noise(length) * np.exp(1j * u * shift)
        return Distributions(
            (noise * power(one_user, self.users))[None, :], length, mean * self.users
        )

    def _given_holders(self, block: range, theta: float, length: float) -> Complex:
        """Return the characteristic functions for every number of holders in the block.

        Let every user be a holder with probability theta, independently: given their number they
        are then a random set. The joint characteristic function of T and that number is a product
        over users; a Fourier transform in the second argument picks the number.
        """
        # The number of holders stays within 7 standard deviations; the transform wraps around.
        size = 2 * math.ceil(7 * math.sqrt(self.users * theta * (1 - theta)) + 12)
        turn = np.exp(2j * math.pi * np.arange(size) / size)
        u = frequencies_of(length)
        noise = self._noise(length)
        coins = []
        bounds = []
        for group in self.groups:
            holder = group.coin(group.channel.hit, u)
            other = group.coin(group.channel.miss, u)
            coins.append((holder, other, group.users))
            bounds.append((theta * abs(holder) + (1 - theta) * abs(other)) ** group.users)

        # Frequencies at which nothing is left after the blur are skipped.
        largest = np.abs(noise) * np.prod(bounds, axis=0)
        needed = largest * np.exp(-((u * length / _CELLS) ** 2) / 2) > _NEGLIGIBLE
        joint = np.repeat(noise[needed, None], size, axis=1)
        for holder, other, users in coins:
            mixture = theta * turn * holder[needed, None] + (1 - theta) * other[needed, None]
            joint *= power(mixture, users)
        counted = np.fft.fft(joint, axis=1)[:, np.array(block) % size].T
        values = np.zeros((len(block), u.size), dtype=np.complex128)
        # At frequency 0 stands the probability of the number itself, which is divided out.
        values[:, needed] = counted / counted[:, :1]
        return values

    def _as_if_independent(self, theta: float, length: float) -> Complex:
        """Return the characteristic function with independent holders.

        Instead of fixing the number of holders, its contribution to T is subtracted, which leaves
        mean and variance right.
        """
        u = frequencies_of(length)
        values = self._noise(length)
        away = np.exp(-1j * u / self.users)
        for group in self.groups:
            holder = group.coin(group.channel.hit, u)
            other = group.coin(group.channel.miss, u)
            values = values * power(theta * away * holder + (1 - theta) * other, group.users)
        return np.asarray(values * np.exp(1j * u * theta))

    def _window_length(self, variance: float) -> float:
        """Return the length of a window that holds all of T."""
        widest = max(group.step for group in self.groups)
        least = 20 * math.sqrt(variance) + 6 * widest
        # Rounded up to a power of 2^(1/4), so that few lengths occur and the caches are hit.
        return float(2.0 ** (math.ceil(4 * math.log2(least)) / 4))

    def _noise(self, length: float) -> Complex:
        if length not in self._noise_by_length:
            factors = [group.noise(frequencies_of(length)) for group in self.groups]
            self._noise_by_length[length] = np.asarray(np.prod(factors, axis=0))
        return self._noise_by_length[length]

    def _centred_coins(self, length: float) -> tuple[Complex, Complex]:
        """Return the coins of holders and of others, less what others add on average.

        There is one row per group.
        """
        if length not in self._coins_by_length:
            u = frequencies_of(length)
            holders = []
            others = []
            for group in self.groups:
                away = np.exp(-1j * u * group.step * group.channel.miss)
                holders.append(group.coin(group.channel.hit, u) * away)
                others.append(group.coin(group.channel.miss, u) * away)
            self._coins_by_length[length] = np.stack(holders), np.stack(others)
        return self._coins_by_length[length]

    def _log_coins(self, length: float) -> tuple[Complex, Complex]:
        """Return the logarithms of the coins of holders and of others, one row per group."""
        if length not in self._logs_by_length:
            u = frequencies_of(length)
            self._logs_by_length[length] = (
                np.stack([_log(group.coin(group.channel.hit, u)) for group in self.groups]),
                np.stack([_log(group.coin(group.channel.miss, u)) for group in self.groups]),
            )
        return self._logs_by_length[length]


def _log(values: Complex) -> Complex:
    """Return logarithms that are finite where the value is 0."""
    return np.asarray(np.log(np.maximum(np.abs(values), 1e-300)) + 1j * np.angle(values))


def _polynomial(coefficients: Floats, points: Complex) -> Complex:
    """Return the value of a polynomial at every point; the constant coefficient is the first.

    Horner's scheme in powers of x^32: what stands between two of them is one product of matrices.
    """
    rows = -(-coefficients.size // _TERMS)
    padded = np.zeros(rows * _TERMS)
    padded[: coefficients.size] = coefficients
    powers = np.empty((_TERMS, points.size), dtype=np.complex128)
    powers[0] = 1
    for exponent in range(1, _TERMS):
        powers[exponent] = powers[exponent - 1] * points
    parts = padded.reshape(rows, _TERMS) @ powers
    highest = powers[-1] * points
    value = parts[-1]
    for part in parts[-2::-1]:
        value = value * highest + part
    return np.asarray(value)


def power(values: Complex, exponent: int) -> Complex:
    """Raise to a power by repeated squaring, which is ten times as fast as complex powers."""
    result = None
    while exponent:
        if exponent & 1:
            result = values if result is None else result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return np.ones_like(values) if result is None else result


def _block(holders: int, users: int) -> range:
    """Return the numbers of holders that are computed together with this one.

    They span about two standard deviations of a random number of holders.
    """
    # Blocks run from one square number to the next, mirrored in the upper half of the users, so
    # that their width grows like a standard deviation.
    few = min(holders, users - holders)
    first = math.isqrt(few) ** 2
    last = min(first + 2 * math.isqrt(few), users // 2)
    if holders == few:
        return range(first, last + 1)
    return range(users - last, users - first + 1)

"""Measures how often the intervals hold and how wide they are, and writes
docs/explanation/coverage.md.

python docs/generate/make_coverage.py                   writes the page
python docs/generate/make_coverage.py --check           fails if a part of its lines differs from what is measured
python docs/generate/make_coverage.py --check --whole   fails if any of its lines does: minutes
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from coverage_of_groups import section as group_section
from coverage_of_levels import section as level_section
from exact_coverage import Performance, performance, ratio_performance
from numpy.typing import NDArray
from page import Line, numbers_of, write
from scipy.stats import binom, nbinom, norm

from faircount.estimation.intervals import interval
from faircount.estimation.mean_intervals import two_point_interval
from faircount.estimation.result import MeanResult
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.local_mean import PM, ReportSums

USERS = (50, 300, 1000, 5000)
ITEMS = 12
RUNS = 10_000

_ZIPF = 1 / np.arange(1, ITEMS + 1) ** 1.2
UNIFORM = 1 / ITEMS
SKEWED = (
    *(_ZIPF / _ZIPF.sum())[[0, 3, 11]].tolist(),
    0.0,
)  # ranks 1, 4 and 12, and an item that nobody holds

Floats = NDArray[np.float64]


def laplace(epsilon: float, share: float = 1.0) -> Channel:
    """NB(share) - NB(share) with ratio e^(-epsilon / 2): the noise of share * h users."""
    a = np.exp(-epsilon / 2)
    one = nbinom.pmf(np.arange(int(60 / -np.log(a))), share, 1 - a)
    pmf = np.convolve(one, one[::-1])
    return Channel(1.0, noise=NoiseDistribution(1 - one.size, pmf / pmf.sum()))


def decoys(coins: int, p: float = 1.0) -> Channel:
    """Bin(coins, 1/2), with or without sampling."""
    return Channel(p, noise=NoiseDistribution(0, binom.pmf(np.arange(coins + 1), coins, 0.5)))


def gaussian(variance: float, scale: int = 2) -> Channel:
    """A normal distribution rounded to multiples of 1 / scale."""
    edge = int(10 * np.sqrt(variance) * scale)
    pmf = norm.pdf(np.arange(-edge, edge + 1) / scale, scale=np.sqrt(variance))
    return Channel(1.0, noise=NoiseDistribution(-edge, pmf / pmf.sum(), scale))


def fitted(channel: Channel) -> Channel:
    """The channel of one of all items, fitted to the known total.

    Its noise is (ITEMS - 1) / ITEMS of its own minus 1 / ITEMS of every other item's, by plain
    convolution.
    """
    noise = channel.noise
    assert noise is not None
    kept = np.flatnonzero(noise.pmf > 1e-18)
    low, one = noise.low + int(kept[0]), noise.pmf[kept[0] : kept[-1] + 1]
    spaced = np.zeros((ITEMS - 1) * (one.size - 1) + 1)
    spaced[:: ITEMS - 1] = one
    pmf = spaced
    for _ in range(ITEMS - 1):
        pmf = np.convolve(pmf, one[::-1])
    first = (ITEMS - 1) * (low - (low + one.size - 1))
    # Too unlikely to change a digit on this page.
    kept = np.flatnonzero(pmf > 1e-18)
    pmf = pmf[kept[0] : kept[-1] + 1]
    distribution = NoiseDistribution(first + int(kept[0]), pmf / pmf.sum(), ITEMS * noise.scale)
    return Channel(1.0, noise=distribution, independent=False)


def grr(epsilon: float) -> Channel:
    whole = np.exp(epsilon) + ITEMS - 1
    return Channel(float(np.exp(epsilon) / whole), float(1 / whole), independent=False)


def oue(epsilon: float) -> Channel:
    return Channel(0.5, float(1 / (np.exp(epsilon) + 1)))


CHANNELS: dict[str, Channel] = {
    "DPDS, p = 0.2": Channel(0.2),
    "DPDS, p = 0.393": Channel(0.393),
    "DPDS, p = 0.632": Channel(0.632),
    "DPDS, p = 0.9": Channel(0.9),
    "TSS, p = 0.632, alpha = 0.4": Channel(0.632 * 0.4),
    "Laplace, eps = 1": fitted(laplace(1)),
    "Laplace, eps = 1, raw": laplace(1),
    "Laplace, eps = 0.5, n'/h = 1.25": fitted(laplace(0.5, 1.25)),
    "Laplace, eps = 0.5, n'/h = 1.25, raw": laplace(0.5, 1.25),
    "server Laplace, eps = 1": fitted(laplace(1, 2)),
    "decoys, D = 115": fitted(decoys(115)),
    "decoys, D = 115, raw": decoys(115),
    "decoys, D = 40, and p = 0.5": decoys(40, 0.5),
    "DPDG, variance 27.8": fitted(gaussian(27.8)),
    "DPDG, variance 27.8, raw": gaussian(27.8),
    "GRR, eps = 1": grr(1),
    "GRR, eps = 4": grr(4),
    "OUE, eps = 1": oue(1),
    "OUE, eps = 4": oue(4),
}

FITTED = {name for name, channel in CHANNELS.items() if channel.noise and not channel.independent}
# With more users the many sums of a fitted item take minutes to enumerate for a population.
LARGEST_FITTED = 1000


PAIRS: dict[str, tuple[Channel, Channel]] = {
    "DPDS, p = 0.393 and 0.451": (Channel(0.393), Channel(0.451)),
    "DPDS, p = 0.095 and 0.865": (Channel(0.095), Channel(0.865)),
    "TSS, p alpha = 0.25 and 0.4": (Channel(0.25), Channel(0.4)),
    "Laplace, eps = 1 and 2": (laplace(1), laplace(2)),
    "decoys, D = 36 and 12": (decoys(36), decoys(12)),
    "DPDG, variance 8 and 2": (gaussian(8), gaussian(2)),
    "GRR, eps = 2 and 4": (grr(2), grr(4)),
    "OUE, eps = 2 and 4": (oue(2), oue(4)),
    "Laplace, eps = 1, and DPDS, p = 0.632": (laplace(1), Channel(0.632)),
}


Measure = Callable[[int, str], list[Performance]]
"""From a number of users and what is covered: an item of the uniform data first, then those of the skewed data."""

RATIOS = (0.2, 0.393, 0.9)
TRUTHS = (UNIFORM, *SKEWED)


def measures() -> dict[str, Measure]:
    """All but PM by enumeration."""
    frequencies: dict[str, Measure] = {
        name: partial(_frequency, channel) for name, channel in CHANNELS.items()
    }
    ratios: dict[str, Measure] = {
        f"DPDS, ratio given S = {p:g} n": partial(_ratio, p) for p in RATIOS
    }
    means: dict[str, Measure] = {
        f"{kind}, eps = {epsilon:g}": partial(_mean, one, epsilon)
        for epsilon in (1.0, 4.0)
        for kind, one in (("Duchi", _duchi), ("PM", _pm))
    }
    return {**frequencies, **ratios, **means}


def _frequency(channel: Channel, n: int, covers: str) -> list[Performance]:
    return performance(channel, n, TRUTHS, covers=covers)


def _ratio(p: float, n: int, covers: str) -> list[Performance]:
    return ratio_performance(n, round(p * n), TRUTHS, covers=covers)


def _mean(
    one: "Callable[[float, Floats, str], Performance]", epsilon: float, n: int, covers: str
) -> list[Performance]:
    return [one(epsilon, make(n), covers) for make in VALUES.values()]


def lines(covers: str) -> list[Line]:
    """A line for every mechanism and n. Of those for one mechanism and cover, `--check` computes
    one again.

    It is that of another n for the next mechanism and for the other cover.
    """
    made = []
    for i, (name, measure) in enumerate(measures().items()):
        sizes = USERS
        if covers == "population" and name in FITTED:
            sizes = tuple(n for n in USERS if n <= LARGEST_FITTED)
        for k, n in enumerate(sizes):
            made.append(
                Line(
                    "explanation/coverage.md",
                    f'covers="{covers}"',
                    f"| {name} | {n} | ",
                    partial(_numbers, measure, n, covers),
                    again=(i + k + 2 * (covers == "users")) % len(sizes) == 0,
                )
            )
    return made


def _numbers(measure: Measure, n: int, covers: str) -> str:
    """Worst coverage over the items, widths of an item of the uniform data, and width ratios."""
    found = measure(n, covers)
    first, rest = found[0], [one for one in found[1:] if one.oracle_width]
    skewed = sum(one.width for one in rest) / sum(one.oracle_width for one in rest)
    ratio = first.width / first.oracle_width
    worst = min(one.coverage for one in found)
    return (
        f"{worst:.4f} | {first.width:.4f} | {first.oracle_width:.4f} | {ratio:.3f} | {skewed:.3f} |"
    )


VALUES: dict[str, Callable[[int], Floats]] = {
    "all 0": lambda n: np.zeros(n),
    "all 0.9": lambda n: np.full(n, 0.9),
    "half -1, half 1": lambda n: np.where(np.arange(n) % 2 == 0, -1.0, 1.0),
}


def _duchi(epsilon: float, values: Floats, covers: str) -> Performance:
    """The number of + reports is a sum of binomials, one for each distinct value; a single one for
    a population.
    """
    size, n = float((np.exp(epsilon) + 1) / (np.exp(epsilon) - 1)), values.size
    distribution = np.ones(1)
    for value, users in _crowds(values if covers == "users" else np.full(n, values.mean())):
        distribution = np.convolve(
            distribution, binom.pmf(np.arange(users + 1), users, (1 + value / size) / 2)
        )
    seen = np.flatnonzero(distribution > 1e-13)
    estimates = (2 * seen / n - 1) * size
    made = np.array([two_point_interval(float(estimate), size, n) for estimate in estimates])
    noise = (size**2 - (values**2).mean()) / n
    return _mean_performance(
        values, estimates, made, distribution[seen] / distribution[seen].sum(), noise, covers
    )


def _pm(epsilon: float, values: Floats, covers: str) -> Performance:
    """By simulation, since its interval depends on two sums. A run costs the same for any n: cells
    are multinomial.
    """
    rng = np.random.default_rng(7)
    mechanism, n = PM(epsilon=epsilon, cells=64, users=values.size), values.size
    distributions = [
        (users, _cell_distribution(mechanism, value)) for value, users in _crowds(values)
    ]
    if covers == "population":
        distributions = [
            (n, np.asarray(sum(users / n * distribution for users, distribution in distributions)))
        ]
    reports, cells = (
        sum(
            rng.multinomial(users, distribution, size=RUNS) for users, distribution in distributions
        ),
        np.arange(64),
    )
    opened = [
        ReportSums(int(a), int(b)) for a, b in zip(reports @ cells, reports @ cells**2, strict=True)
    ]
    estimates = np.array([mechanism.estimate(sums, n) for sums in opened])
    made = np.array([_pm_interval(mechanism, sums, n, covers) for sums in opened])
    noise = mechanism.variance(values)
    return _mean_performance(values, estimates, made, np.full(RUNS, 1 / RUNS), noise, covers)


def _pm_interval(mechanism: PM, opened: ReportSums, n: int, covers: str) -> tuple[float, float]:
    """As an analyst gets it: noise and spread of the values both estimated from the reports."""
    return MeanResult(mechanism, opened, n).interval(covers=covers)


def _crowds(values: Floats) -> list[tuple[float, int]]:
    distinct, users = np.unique(values, return_counts=True)
    return list(zip(distinct.tolist(), users.tolist(), strict=True))


def _cell_distribution(mechanism: PM, value: float) -> Floats:
    window, place = mechanism.window, (value + 1) / 2 * mechanism.steps
    start, distribution = (
        int(np.floor(place)),
        np.full(mechanism.window.cells, float(mechanism.window.other)),
    )
    for at, weight in ((start, 1 - (place - start)), (start + 1, place - start)):
        distribution[at : at + window.width] += weight * float(window.excess)
    return np.asarray(distribution / distribution.sum())


def _mean_performance(
    values: Floats, center: Floats, made: Floats, weight: Floats, noise: float, covers: str
) -> Performance:
    """Beside an oracle that knows the variance of the estimate."""
    drawn = (covers == "population") * values.var() / values.size
    truth, half = float(values.mean()), 1.959964 * np.sqrt(noise + drawn)
    oracle = np.clip(np.stack([center - half, center + half], axis=1), -1, 1)
    held, by_oracle = (
        weight @ ((m[:, 0] <= truth + 1e-12) & (truth <= m[:, 1] + 1e-12)) for m in (made, oracle)
    )
    wide, by = (weight @ (m[:, 1] - m[:, 0]) for m in (made, oracle))
    return Performance(truth, float(held), float(wide), float(by_oracle), float(by))


def blaker_lines() -> Iterator[str]:
    """Expected width in users of the equal-tailed interval and of the one in use."""
    for n, p in ((50, 0.393), (50, 0.9), (300, 0.393), (300, 0.9), (1000, 0.393)):
        every = np.arange(n + 1)
        below, above = (
            tail(every, every[:, None], p)
            for tail in (binom.cdf, lambda x, m, q: binom.sf(x - 1, m, q))
        )
        accepted = (below > 0.025) & (above > 0.025)
        tails = n - accepted[::-1].argmax(axis=0) - accepted.argmax(axis=0)
        used = interval(every, Channel(p), n).width * n
        distribution = [binom.pmf(every, round(share * n), p) for share in (0.02, UNIFORM, 0.3)]
        cells = " | ".join(f"{pmf @ tails:.2f} -> {pmf @ used:.2f}" for pmf in distribution)
        yield f"| {n} | {p} | {cells} |"


def render() -> str:
    """The page."""
    tables = {covers: [line.text() for line in lines(covers)] for covers in TITLES}
    shown = [line for covers, texts in tables.items() for line in _table(covers, texts)]
    groups = [*group_section(PAIRS, ITEMS), *level_section()]
    return "\n".join([*_head(tables), *shown, *_means(), *groups, *_orderings()]) + "\n"


def _head(tables: dict[str, list[str]]) -> list[str]:
    rows = [
        (line.split(" | ")[0].strip("| "), covers, numbers_of(line))
        for covers in tables
        for line in tables[covers]
    ]
    mechanism, covers, (n, coverage, *_) = min(rows, key=lambda row: row[2][1])
    large = [numbers[4] for _, _, numbers in rows if numbers[0] >= 1000]
    found = (
        f"Worst coverage on this page: **{coverage:.4f}** ({mechanism}, n = {n:g}, {covers}). "
        f"Width of the uniform item over the oracle's from n = 1000 on: **{min(large):.2f} to {max(large):.2f}**."
    )
    return [
        "# Coverage and width of the intervals",
        "",
        "Made by `python docs/generate/make_coverage.py`. `make test` recomputes some of the lines and fails if one differs:",
        "every mechanism at one n in each of the next two tables, every n for some mechanism, and two in three pairs of groups with",
        "one kind of weights. `make coverage` recomputes all of them.",
        "",
        f"Nominal level 95%, {ITEMS} items. Coverage is computed by enumerating every sum that can be revealed, not",
        f"simulated. (PM alone, whose interval depends on two sums, is: {RUNS:,} runs, standard error 0.0023.)",
        "`coverage` is the worst over an item of uniform data (1/12), three of skewed data (Zipf 1.2: ranks 1, 4, 12)",
        "and one that nobody holds. The oracle knows the variance at the truth and uses estimate +- 1.96 standard",
        "deviations, cut to [0, 1] in the same way; it need not hold 95% of the time itself. `ratio` is expected width",
        "over the oracle's.",
        "",
        f"Where all items have noise of their own, counts are fitted to the known number of users, here with {ITEMS} items;",
        "`raw` ones are not. Two items of Laplace share one draw and are not fitted: they have the distribution of `raw` at twice epsilon.",
        "",
        found,
        "",
        "Below 1 means narrower than the oracle: holders are whole numbers, which a normal interval does not use.",
        "Far above 1 occurs where a handful of users is counted: there the oracle's own normal distribution does not hold.",
    ]


TITLES = {
    "users": "What these users hold: privacy noise alone",
    "population": "The population they come from",
}


def _table(covers: str, texts: list[str]) -> list[str]:
    return [
        "",
        f'## {TITLES[covers]} (`covers="{covers}"`)',
        "",
        "| mechanism | n | coverage | width, uniform item | oracle | ratio, uniform | ratio, skewed |",
        "|---|---|---|---|---|---|---|",
        *texts,
    ]


def _means() -> list[str]:
    return [
        "",
        "Duchi and PM: a mean in [-1, 1] where everybody has 0 (`uniform`), or everybody 0.9, or one half -1 and the",
        "other 1 (`skewed`, both). Duchi's reports cannot tell these cases apart, so its interval serves the worst of",
        "them, and given users who are all at an end of the range pay for it.",
    ]


def _orderings() -> list[str]:
    return [
        "",
        "## Why Blaker's ordering for sampling",
        "",
        "Expected width in users, equal-tailed -> Blaker, both exact and conservative, for an item held by 2%, 1/12",
        "and 30% of the users (what these users hold). For a population the gain stays below 5%, so Clopper-Pearson is",
        "kept there.",
        "",
        "| n | p | 2% | 1/12 | 30% |",
        "|---|---|---|---|---|",
        *blaker_lines(),
    ]


if __name__ == "__main__":
    write("explanation/coverage.md", render())

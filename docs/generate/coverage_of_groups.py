"""The part of docs/explanation/coverage.md about groups that are put together with weights."""

from collections.abc import Mapping
from functools import partial
from itertools import product

from exact_coverage import Performance
from exact_coverage_of_groups import GroupCoverage, is_even, splits_of
from page import Line, numbers_of

from faircount.estimation.weighted_distribution import WeightedGroup
from faircount.estimation.weighting import group_variance, total_variance, uwa
from faircount.mechanisms.count_distribution import Channel

SIZES = (20, 60)
HOLDERS = (1, 7, 24)  # a single holder, 1/12 and 30% of the users
EXAMPLE = "DPDS, levels 0.5 and 0.6"


HEADING = "Groups put together with weights"


def group_lines(pairs: Mapping[str, tuple[Channel, Channel]], items: int) -> list[Line]:
    """Every pair of channels with both kinds of weights; `--check` computes one of them for two
    pairs in three.
    """
    return [
        Line(
            "explanation/coverage.md",
            HEADING,
            f"| {name} | {weights} | ",
            partial(_numbers, weights, channels, items),
            again=i % 3 == k,
        )
        for (i, (name, channels)), (k, weights) in product(
            enumerate(pairs.items()), enumerate(("uwa", "total"))
        )
    ]


def _numbers(weights: str, channels: tuple[Channel, Channel], items: int) -> str:
    """The worst coverage over numbers of holders and ways to divide them; widths as a random set of
    all users.
    """
    spread = [group_variance(channel, items, n) for channel, n in zip(channels, SIZES, strict=True)]
    shares = uwa(SIZES) if weights == "uwa" else total_variance(SIZES, spread, 1 - 1 / items)
    parts = tuple(
        WeightedGroup(w, c, n) for w, c, n in zip(shares.tolist(), channels, SIZES, strict=True)
    )
    made = GroupCoverage(parts, splits_of(parts, HOLDERS))
    found = [made.random(holders) for holders in HOLDERS]
    held_for = [split for split in made.splits if weights == "uwa" or is_even(parts, split)]
    worst = min(one.coverage for one in (*found, *map(made.given, held_for)))
    ratios = " | ".join(f"{one.width / one.oracle_width:.2f}" for one in found)
    return f"{worst:.4f} | {found[1].width:.4f} | {found[1].oracle_width:.4f} | {ratios} |"


def example() -> Performance:
    """12 of 400 users in each of two groups hold the item."""
    channels, sizes = (Channel(0.3935), Channel(0.4512)), (400, 400)
    weights = total_variance(
        sizes, [group_variance(channel, 3, 400) for channel in channels], 0.43
    ).tolist()
    parts = tuple(WeightedGroup(w, c, 400) for w, c in zip(weights, channels, strict=True))
    return GroupCoverage(parts, [(12, 12)]).given((12, 12))


def section(pairs: Mapping[str, tuple[Channel, Channel]], items: int) -> list[str]:
    """The section of the page."""
    texts = [line.text() for line in group_lines(pairs, items)]
    rows = [(line.strip("| ").split(" | "), numbers_of(line)) for line in texts]
    (mechanism, weights, *_), (coverage, *_) = min(rows, key=lambda row: row[1][0])
    wide, one = max(numbers[4] for _, numbers in rows), example()
    return [
        "",
        f"## {HEADING}",
        "",
        f"Two groups of {SIZES[0]} and {SIZES[1]} users, the first with the stricter privacy. Weights: `uwa`, as the",
        "sizes, or `total`, by total variance. Every pair of sums is enumerated. `coverage` is the worst over an item",
        f"with {HOLDERS[0]}, {HOLDERS[1]} and {HOLDERS[2]} holders, who are a random set of all users, and over the ways",
        "to divide them among the groups: for `uwa` every way, for `total`, which assumes that the groups are similar,",
        "those that are as even as whole numbers allow. The oracle knows the variance of the weighted estimate for such",
        f"a random set. Worst coverage: **{coverage:.4f}** ({mechanism}, {weights}); widest for",
        f"{HOLDERS[1]} holders: **{wide:.2f}** times the oracle's.",
        "",
        "| mechanisms | weights | coverage | width, 7 holders | oracle | ratio, 1 holder | 7 holders | 24 holders |",
        "|---|---|---|---|---|---|---|---|",
        *texts,
        "",
        "Wide is `uwa` where sampling probabilities are far apart: it pays for the possibility that all holders are in",
        "the group that is sampled least. A single holder is below what an oracle with a normal distribution can describe.",
        "",
        "`run --groups` shows `uwa`, and `total` beside it under its condition. Where the choice of a group depends on",
        "the answer, `total` covers less than 20% in the settings of `tests/statistical/test_group_intervals.py`. A test",
        "whether the groups differ rejects in 25 to 100% of these runs, so an interval that it selects fails as well;",
        "`uwa` covers 95%. Hence the test informs and chooses nothing.",
        "",
        f"Two groups of 400, {EXAMPLE}, 12 holders in each: coverage {one.coverage:.4f}, {one.width / one.oracle_width:.2f} times as",
        "wide as the oracle. (Version 0.1 took the variance at the estimate itself and held 0.55 of the time.)",
    ]

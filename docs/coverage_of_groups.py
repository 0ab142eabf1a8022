"""The part of docs/coverage.md about groups that are put together with weights."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from faircount.estimation.coverage import Performance
from faircount.estimation.group_coverage import GroupCoverage, is_even, splits_of
from faircount.estimation.weighted_law import Part
from faircount.estimation.weighting import group_variance, total_variance, uwa
from faircount.mechanisms.count_law import Channel

SIZES = (20, 60)
HOLDERS = (1, 7, 24)  # a single holder, 1/12 and 30% of the users
EXAMPLE = "DPDS, levels 0.5 and 0.6"


@dataclass(frozen=True)
class GroupRow:
    """One pair of mechanisms with one kind of weights."""

    mechanism: str
    weights: str
    coverage: float  # the worst over numbers of holders and ways to divide them
    found: tuple[Performance, ...]  # as a random set of all users, for each number of holders

    @property
    def ratios(self) -> tuple[float, ...]:
        """Expected width over the oracle's."""
        return tuple(each.width / each.oracle_width for each in self.found)


def group_rows(pairs: Mapping[str, tuple[Channel, Channel]], items: int) -> Iterator[GroupRow]:
    """Every pair of channels with both kinds of weights, by enumeration."""
    for name, channels in pairs.items():
        spread = [group_variance(each, items, n) for each, n in zip(channels, SIZES, strict=True)]
        yield _row(name, "uwa", channels, uwa(SIZES).tolist())
        yield _row(name, "total", channels, total_variance(SIZES, spread, 1 - 1 / items).tolist())


def _row(name: str, weights: str, channels: tuple[Channel, Channel], each: list[float]) -> GroupRow:
    parts = tuple(Part(w, c, n) for w, c, n in zip(each, channels, SIZES, strict=True))
    made = GroupCoverage(parts, splits_of(parts, HOLDERS))
    found = tuple(made.random(holders) for holders in HOLDERS)
    held_for = [split for split in made.splits if weights == "uwa" or is_even(parts, split)]
    worst = min(one.coverage for one in (*found, *map(made.given, held_for)))
    return GroupRow(name, weights, worst, found)


def example() -> GroupRow:
    """12 of 400 users in each of two groups hold the item."""
    channels, sizes = (Channel(0.3935), Channel(0.4512)), (400, 400)
    weights = total_variance(sizes, [group_variance(each, 3, 400) for each in channels], 0.43).tolist()
    parts = tuple(Part(w, c, 400) for w, c in zip(weights, channels, strict=True))
    given = GroupCoverage(parts, [(12, 12)]).given((12, 12))
    return GroupRow(EXAMPLE, "total", given.coverage, (given,))


def lines(rows: list[GroupRow]) -> list[str]:
    """The section of the page."""
    worst, wide = min(rows, key=lambda row: row.coverage), max(row.ratios[1] for row in rows)
    one = example()
    return [
        "",
        "## Groups put together with weights",
        "",
        f"Two groups of {SIZES[0]} and {SIZES[1]} users, the first with the stricter privacy. Weights: `uwa`, as the",
        "sizes, or `total`, by total variance. Every pair of sums is enumerated. `coverage` is the worst over an item",
        f"with {HOLDERS[0]}, {HOLDERS[1]} and {HOLDERS[2]} holders, who are a random set of all users, and over the ways",
        "to divide them among the groups: for `uwa` every way, for `total`, which supposes that the groups are alike,",
        "those that are as even as whole numbers allow. The oracle knows the variance of the weighted estimate for such",
        f"a random set. Worst coverage: **{worst.coverage:.4f}** ({worst.mechanism}, {worst.weights}); widest for",
        f"{HOLDERS[1]} holders: **{wide:.2f}** times the oracle's.",
        "",
        "| mechanisms | weights | coverage | width, 7 holders | oracle | ratio, 1 holder | 7 holders | 24 holders |",
        "|---|---|---|---|---|---|---|---|",
        *map(_line, rows),
        "",
        "Wide is `uwa` where sampling probabilities are far apart: it pays for the possibility that all holders are in",
        "the group that is sampled least. A single holder is below what an oracle with a normal law can describe.",
        "",
        "Where a test chooses between the two weights (`run --groups`), `total` has four fifths of the error and the",
        "fall-back to `uwa` one fifth, so that the choice costs no confidence: about 5% and 30% wider than here.",
        "",
        f"Two groups of 400, {one.mechanism}, 12 holders in each: coverage {one.coverage:.4f}, {one.ratios[0]:.2f} times as",
        "wide as the oracle. (Version 0.1 took the variance at the estimate itself and held 0.55 of the time.)",
    ]


def _line(row: GroupRow) -> str:
    seven = row.found[1]
    single, few, many = row.ratios
    numbers = (
        f"{row.coverage:.4f} | {seven.width:.4f} | {seven.oracle_width:.4f} | {single:.2f} | {few:.2f} | {many:.2f}"
    )
    return f"| {row.mechanism} | {row.weights} | {numbers} |"

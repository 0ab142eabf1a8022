"""The part of docs/explanation/coverage.md about public levels of a survey whose choice depends on
the answer.
"""

from functools import partial

import numpy as np
from page import Line

from faircount.core.entropy import SeededStream
from faircount.core.questions import OneOf, Questionnaire
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.owner.combined_result import CombinedResult, combine_results

HEADING = "Public levels whose choice depends on the answer"
PEOPLE = 1000
ITEMS = 10
HELD = 0.1  # share of the item that the page is about
RUNS = 400

# Epsilons, and how many percent of the holders and of all others choose each level.
SETTINGS: tuple[tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ((0.1, 0.4, 0.7, 1.0), (25, 25, 25, 25), (25, 25, 25, 25)),
    ((0.1, 0.4, 0.7, 1.0), (55, 25, 10, 10), (25, 25, 25, 25)),
    ((0.1, 0.4, 0.7, 1.0), (85, 5, 5, 5), (25, 25, 25, 25)),
    ((0.25, 0.5, 1.0), (50, 30, 20), (10, 30, 60)),
    ((0.5, 1.0, 2.0, 4.0), (30, 30, 25, 15), (10, 20, 50, 20)),
    ((0.1, 1.0), (10, 90), (3, 97)),
)

QUESTION = Questionnaire((OneOf(text="Which one?", items=tuple(map(str, range(ITEMS)))),))


def level_lines() -> list[Line]:
    """A line for every setting; `make coverage` computes them, `make test` none: they take a minute each."""
    lines = []
    for number, (epsilons, holders, others) in enumerate(SETTINGS):
        names = " | ".join("/".join(f"{value:g}" for value in row) for row in (epsilons, holders))
        start = f"| {names} | {'/'.join(map(str, others))} | "
        numbers = partial(_numbers, number, epsilons, holders, others)
        lines.append(Line("explanation/coverage.md", HEADING, start, numbers, again=False))
    return lines


def _numbers(
    seed: int, epsilons: tuple[float, ...], holders: tuple[int, ...], others: tuple[int, ...]
) -> str:
    """How often each interval of the item holds, how wide the headline is, and how far off the other."""
    rng, stream = np.random.default_rng(seed), SeededStream(seed)
    held = {"uwa": 0, "total": 0, "vwa": 0}
    all_items, rejected, width, off = 0, 0, 0.0, 0.0
    for _ in range(RUNS):
        truth, result = _survey(rng, stream, epsilons, holders, others)
        rows = result[1].shares
        held["uwa"] += rows[0].low <= truth[0] <= rows[0].high
        all_items += sum(
            row.low <= value <= row.high for row, value in zip(rows, truth, strict=True)
        )
        width += (rows[0].high - rows[0].low) / RUNS
        counted = result.counts(0)
        assert counted is not None
        rejected += counted.test.rejected
        for way in ("total", "vwa"):
            weighted = counted.weigh(way)
            bounds = weighted.interval()
            held[way] += bounds.low[0] <= truth[0] <= bounds.high[0]
            off += (float(weighted.estimates[0]) - truth[0]) / RUNS if way == "total" else 0.0
    shares = [held["uwa"], all_items / ITEMS, held["total"], held["vwa"], rejected]
    hits = [f"{share / RUNS:.3f}" for share in shares]
    return f"{hits[0]} | {hits[1]} | {100 * width:.1f} | {hits[2]} | {hits[3]} | {100 * off:+.1f} | {hits[4]} |"


def _survey(
    rng: np.random.Generator,
    stream: SeededStream,
    epsilons: tuple[float, ...],
    holders: tuple[int, ...],
    others: tuple[int, ...],
) -> tuple[list[float], CombinedResult]:
    """The shares of all answers among everybody, and the combined result of all levels."""
    have = int(PEOPLE * HELD)
    inside = rng.multinomial(have, np.array(holders) / 100)
    outside = rng.multinomial(PEOPLE - have, np.array(others) / 100)
    parts, whole = {}, np.zeros(ITEMS)
    for epsilon, mine, theirs in zip(epsilons, inside.tolist(), outside.tolist(), strict=True):
        rest = rng.multinomial(theirs, np.full(ITEMS - 1, 1 / (ITEMS - 1)))
        counts = np.array([mine, *rest])
        whole += counts
        groups = split_epsilon(epsilon, [[0]])
        people = max(mine + theirs, 2)
        noise = ServerSheets(questionnaire=QUESTION, groups=groups, epsilon=epsilon, users=people)
        sums = counts + noise.server_noise(stream) + noise.server_noise(stream)
        parts[f"{epsilon:g}"] = QuestionnaireResult(QUESTION, noise, sums, people)
    return (whole / PEOPLE).tolist(), combine_results(parts, "level")


def section() -> list[str]:
    """The section of the page."""
    return [
        "",
        f"## {HEADING}",
        "",
        f"{PEOPLE:,} people and {ITEMS} answers, of which one is given by {HELD:.0%}: its holders choose their level with other",
        "probabilities than everybody else (in percent, the strongest level first). One survey for each level with the noise of",
        f"both servers (`server-joint`), combined as `faircount survey result` combines them; {RUNS} simulated surveys for each",
        "line, so that a coverage of 0.95 has a standard error of 0.011. `uwa` is the headline, of the one answer and of all ten;",
        '`total` and `vwa` stand beside it under the words "only if the levels answer alike", which is true in the first line',
        "alone. Width and bias (of `total`) are in percentage points.",
        "",
        "| levels | holders choose | others choose | uwa | uwa, all answers | width | total | vwa | bias | test rejects |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(line.text() for line in level_lines()),
        "",
        "The headline's interval is exact whatever the choice depends on: its noise does not depend on who is in which level.",
        "The weighted ones fail, and the test notices it in a part of the surveys only. That is why they have a condition, and",
        "why nothing is chosen by the test.",
    ]

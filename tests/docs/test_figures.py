"""Figures that pages state in words are those that the code computes today."""

from itertools import product
from pathlib import Path

import pytest

import faircount as fc
from faircount.accounting.composition import sampling_pair
from faircount.accounting.divergence import binomial_window, hockey_stick
from faircount.accounting.exact import shift_pair
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.accuracy import users_needed
from faircount.planning.completion import completion
from faircount.planning.request import PlanRequest
from faircount.protocol import EXPLICIT
from faircount.protocol.topologies.two_servers.reports import vector_size
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import packed_size

ROOT = Path(__file__).parents[2]
TARGET = 0.02


def words_of(name: str) -> str:
    """A page without its line breaks."""
    return " ".join((ROOT / name).read_text("utf-8").split())


def users_now(mechanism: str, items: int) -> int | None:
    kind = frequency_mechanisms()[mechanism]
    return users_needed(kind, PlanRequest(800, items, 1.0, 1e-6), TARGET)


def users_before(mechanism: str) -> int:
    """The users needed when every item had its own noise and the known total was not used."""
    kind = frequency_mechanisms()[mechanism]
    for users in range(100, 1000):
        # With three items noise is independent; without the total the others do not matter.
        made = kind.calibrate(PlanRequest(users, 3, 1.0, 1e-6).requirements).mechanism
        if made.channel(users).expected_errors(3, users)[1] <= TARGET * (1 + 1e-12):
            return users
    raise AssertionError("more than 1,000 users are needed")


def test_the_headline_has_the_users_that_are_needed() -> None:
    # A survey runs what `plan` recommends for it; its errors are those of the people who respond.
    survey, table = "server-joint", "laplace"
    for purpose, name in (("survey", survey), ("table", table)):
        best = fc.plan(800, 5, 1.0, purpose=purpose).recommended
        assert best is not None
        assert best.name == name
    assert (
        f"a survey needs {users_now(survey, 2)} responses to a yes/no question and "
        f"{users_now(survey, 5)} to one with five answers; a table of yours needs "
        f"{users_now(table, 2)} and {users_now(table, 5)} rows."
    ) in words_of("README.md")


def test_the_record_about_the_known_total_has_the_users_needed_before_and_now() -> None:
    page = words_of("docs/adr/0012-known-total.md")
    names = ("laplace", "server-laplace", "decoys")
    before = {name: users_before(name) for name in names}
    for items in (2, 5, 12):
        cells = [f"{before[name]}, {users_now(name, items)}" for name in names]
        assert f"| {items} | {' | '.join(cells)} |" in page
    assert f"(30 items of `Decoys`: {before['decoys']}, {users_now('decoys', 30)})" in page


def test_pairs_of_coins_are_never_better() -> None:
    """One shifted binomial for a pair, two for independent coins."""
    page = words_of("docs/adr/0012-known-total.md")
    needed = []
    for counts in (1, 2):
        coins = 1
        while True:
            pair = shift_pair(binomial_window(coins, 0.5)[1])
            if hockey_stick((pair, pair.swap())[:counts], 1.0) <= 1e-6:
                break
            coins += 1
        needed.append(coins)
    assert f"{needed[0]} of them are enough at (1, 1e-6)" in page
    assert f"independent coins need {needed[1]} per item" in page
    # A fitted count of two items is half the difference of both.
    assert f"{needed[1]} fitted ones have a variance of {needed[1]}/8 = {needed[1] / 8:g}" in page
    assert f"{needed[0]} pairs one of {needed[0]}/4 = {needed[0] / 4:g}" in page


def test_the_price_of_a_dropout_allowance() -> None:
    page = words_of("docs/explanation/topologies.md")
    grown = []
    for kind, more in ((fc.Laplace, {}), (fc.Decoys, {"delta": 1e-6})):
        without, allowed = (
            kind(items=5, users=400, epsilon=1.0, dropouts=dropouts, **more).channel(400)
            for dropouts in (0, 20)
        )
        grown.append(allowed.noise.variance / without.noise.variance - 1)
    assert (
        f"the variance then grows by {grown[0]:.0%} with `Laplace` and {grown[1]:.0%} with `Decoys`"
    ) in page


def test_how_often_explicit_surveys_complete() -> None:
    chances = {}
    for users in (100, 200, 500):
        chances[users] = f"{completion(EXPLICIT, users, round(0.7 * users), 0.01):.0%}"
    assert (
        f"100 participants complete in {chances[100]} of the surveys and 200 in {chances[200]}; "
        f"500 in {chances[500]}."
    ) in words_of("docs/explanation/topologies.md")


@pytest.mark.parametrize(
    ("floor", "insiders", "p", "epsilon", "shown"),
    [
        (5, 1, 0.2, 1.5, "With one insider the bound is at most {:.1f} times the truth"),
        (300, 150, 0.5, 0.7, "up to {:.0f} times where half of a floor of 300 may collude"),
    ],
)
def test_how_far_the_bound_for_insiders_is_from_the_truth(
    floor: int, insiders: int, p: float, epsilon: float, shown: str
) -> None:
    """The worst of a grid of floors up to 300, probabilities and deltas from 1e-10 to 1e-2."""

    def delta_of(up: int, down: int) -> float:
        return hockey_stick((sampling_pair(up, p), sampling_pair(down, p).swap()), epsilon)

    stated = fc.privacy("dpds", p=p, floor=floor, epsilon=epsilon, insiders=insiders).delta
    assert stated is not None
    # Each insider holds one of the two answers that are compared.
    splits = range(insiders + 1)
    truth = max(delta_of(floor - first, floor - insiders + first) for first in splits)
    assert shown.format(stated / truth) in words_of("docs/explanation/privacy.md")


def test_the_bytes_of_a_proven_report() -> None:
    """The coordinator's share, packed, and the aggregator's seed."""
    sizes = {}
    for items, users in product((30, 300), (1000, 100_000)):
        made = fc.ServerLaplace(items=items, users=users, epsilon=1.0)
        sizes[items, users] = packed_size(made.modulus, vector_size(made)) + SEED_BYTES
    page = words_of("docs/explanation/protocol.md")
    assert f"{sizes[30, 1000]} bytes including the aggregator's seed" in page
    assert f"{sizes[300, 1000]} instead of 6,512 for 300 items" in page
    many = f"{sizes[30, 100_000]} and {sizes[300, 100_000]:,} bytes"
    assert f"For 100,000 users it is {many}" in page

"""Plans of hidden levels: what is sure first, what needs an assumption, and when to leave it."""

import json

import pytest
from click.testing import CliRunner, Result

from faircount.accounting.levels import Levels
from faircount.cli import main
from faircount.core.errors import ParameterError
from faircount.planning.levels import LevelsPlan, level_cautions, plan_levels


def make_plan(epsilons, shares, users: int = 1000, items: int = 10) -> LevelsPlan:
    levels = Levels.of({f"level {number}": value for number, value in enumerate(epsilons)})
    return plan_levels(levels, shares, users, items)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["plan", *map(str, arguments)])


def test_known_numbers() -> None:
    plan = make_plan((0.25, 0.5, 1.0), (0.1, 0.3, 0.6))
    assert plan.again == pytest.approx(100 * 0 + 300 * 0.331604 + 600, abs=0.1)
    assert plan.base_error == 0.029
    # 0.8044 points of standard error with one weight for all items, a little less with its own.
    assert plan.alike_error == pytest.approx(1.96 * 0.0079, abs=2e-4)
    # In steps of 1% of the logarithm, one level of 0.44 has the error of 0.8044 points.
    assert 0.43 < plan.equal_epsilon < 0.47
    assert plan.narrowing == 0


@pytest.mark.parametrize(("items", "narrowing"), [(3, 104 - 31), (10, 144 - 48), (30, 158 - 75)])
def test_known_widths_without_assumption(items, narrowing) -> None:
    assert make_plan((0.1, 1.0), (0.03, 0.97), items=items).narrowing == narrowing


def test_one_level_for_all_is_named_first() -> None:
    plan = make_plan((0.25, 0.5, 1.0), (0.1, 0.3, 0.6))
    assert plan.sentences[0].startswith("One level of 0.45 for all would give ±1.5 points")
    assert "everybody has the error of the strongest: ±2.9 points" in plan.sentences[1]
    assert plan.sentences[2] == "Without that assumption the levels gain nothing."
    helped = make_plan((0.1, 1.0), (0.03, 0.97))
    assert "fewer than 96 people are expected to be counted once only" in helped.sentences[2]
    # The larger epsilon of all has the smaller error.
    at_equal = make_plan((plan.equal_epsilon, 2.0), (1.0, 0.0)).base_error
    assert at_equal == pytest.approx(plan.alike_error, abs=0.002)


def test_cautions() -> None:
    costly = level_cautions(Levels.of({"a": 0.5, "b": 2.0}))
    assert "learns epsilon 1.25, more than twice the 0.5 that they chose" in costly[0]
    assert "Offer at most 1.5" in costly[0]
    assert level_cautions(Levels.of({"a": 0.5, "b": 1.5})) == []
    # Nobody chooses a weaker level, and the second table is nothing but noise.
    useless = make_plan((1.0, 2.0), (1.0, 0.0))
    assert "smaller by a factor of 1.00 only" in useless.notes[-1]
    assert useless.gain == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("shares", [(0.5,), (0.5, 0.6), (1.5, -0.5)])
def test_shares_are_one_per_level(shares) -> None:
    with pytest.raises(ParameterError, match="2 shares that add up to 1"):
        make_plan((0.5, 1.0), shares)


def test_the_command_says_it_in_words_and_numbers() -> None:
    options = ("--users", 1000, "--items", 10, "--levels", ".25,.5,1", "--shares", ".1,.3,.6")
    done = run(*options)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert text.index("One level of 0.45 for all") < text.index("±2.9 points")
    assert "charged 1, the weakest level" in text
    plain = json.loads(run(*options, "--json").stdout)
    assert [level["name"] for level in plain["levels"]] == ["very strong", "strong", "normal"]
    assert plain["charged_epsilon"] == 1.0
    two = json.loads(run("--users", 500, "--items", 2, "--levels", "a=1,b=2", "--json").stdout)
    assert [level["share"] for level in two["levels"]] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--levels", "1,2", "--epsilon", 1), "leave --epsilon"),
        (("--shares", "1"), "--shares are those of --levels"),
        (("--levels", "a,b"), "no list of numbers"),
        (("--levels", "1,2,3,4"), "2 or 3 hidden levels"),
        (("--levels", "2,1", "--shares", ".9,.1"), "begin with the strongest"),
        (("--levels", "weak=2,firm=1"), "begin with the strongest"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, why) -> None:
    refused = run("--users", 100, "--items", 3, *options)
    assert refused.exit_code != 0
    assert why in " ".join(refused.output.split())

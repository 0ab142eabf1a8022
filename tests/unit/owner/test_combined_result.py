"""Combined results: every person counts once, and weights by variance stand beside with a condition."""

import numpy as np
import pytest
from scipy.stats import binom

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.core.questions import AnyOf, OneOf, Question, Questionnaire, YesNo
from faircount.estimation.pooled_noise import PooledNoise
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.owner.combined_result import combine_results, largest_vote

ITEMS = tuple("abcdefghij")
ONE = Questionnaire((OneOf(text="Which one?", items=ITEMS),))


def sheets(asked: Questionnaire, epsilon: float, users: int) -> ServerSheets:
    groups = split_epsilon(epsilon, [range(len(asked))])
    return ServerSheets(questionnaire=asked, groups=groups, epsilon=epsilon, users=users)


def release(counts: np.ndarray, epsilon: float, stream: SeededStream) -> QuestionnaireResult:
    noise = sheets(ONE, epsilon, int(counts.sum()))
    drawn = noise.server_noise(stream) + noise.server_noise(stream)
    return QuestionnaireResult(ONE, noise, counts + drawn, noise.n)


def test_sampled_levels_are_combined_with_the_weights_of_the_paper() -> None:
    asked = Questionnaire((OneOf(text="Which one?", items=("a", "b", "c")),))
    cells = {"strong": (0.1, 60, (2, 4, 1)), "weak": (1.0, 120, (30, 20, 25))}
    parts = {}
    # Sampling states no epsilon without a signed promise, so the strictest is given first.
    for name, (epsilon, users, sums) in cells.items():
        mechanism = DPDS(items=("a", "b", "c"), p=1 - np.exp(-epsilon), users=users)
        parts[name] = QuestionnaireResult(asked, mechanism, np.array(sums), users)
    result = combine_results(parts, "tier")
    assert result.included == 180
    counted = result.counts(0)
    assert counted is not None
    p = {name: 1 - np.exp(-epsilon) for name, (epsilon, _, _) in cells.items()}
    # UWA: estimated holders of all levels over all people.
    holders = sum(np.array(sums) / p[name] for name, (_, _, sums) in cells.items())
    np.testing.assert_allclose([row.estimate for row in result[1].shares], holders / 180)
    # VWA: W_g ~ n_g / V_g with V_g = (1 - p) / p = 1 / (e^epsilon - 1).
    wanted = {name: users * np.expm1(epsilon) for name, (epsilon, users, _) in cells.items()}
    total = sum(wanted.values())
    found = dict(zip(result.parts, result.if_alike(0)["vwa"].weights, strict=True))
    assert found == pytest.approx({name: weight / total for name, weight in wanted.items()})
    votes = largest_vote(result.if_alike(0)["vwa"])
    assert votes == pytest.approx(wanted["weak"] / total * 180 / 120)
    # One survey of everybody at the smallest epsilon: the variance of the paper, per item.
    expected = np.sqrt(1 / np.expm1(0.1) / 180 / 3)
    assert result.error_of_one_level(0) == pytest.approx(expected)


def test_the_noise_of_several_questionnaires_adds_up() -> None:
    questions: tuple[Question, ...] = (YesNo(text="Tea?"), AnyOf(text="With?", items=("m", "s")))
    asked = Questionnaire(questions)
    parts = [sheets(asked, 0.5, 40), sheets(asked, 2.0, 60)]
    pooled = PooledNoise(parts)
    for number in range(2):
        distribution = pooled.distribution(number)
        distributions = [part.distribution(number) for part in parts]
        assert distribution.variance == pytest.approx(sum(one.variance for one in distributions))
        by_hand = np.convolve(distributions[0].pmf, distributions[1].pmf)
        middle = distributions[0].low + distributions[1].low
        assert distribution.pmf[0 - distribution.low] == pytest.approx(by_hand[0 - middle])
    assert pooled.answer_epsilon(0) == parts[1].answer_epsilon(0)
    with pytest.raises(ParameterError, match="different questions"):
        PooledNoise([parts[0], sheets(ONE, 1.0, 30)])


def test_mechanisms_may_differ() -> None:
    """A question with two answers is one cell with joint noise, and two counts with Laplace."""
    asked = Questionnaire((YesNo(text="Tea?"),))
    items = asked.questions[0].answers if isinstance(asked.questions[0], YesNo) else ()
    joint = QuestionnaireResult(asked, sheets(asked, 40.0, 30), np.array([12]), 30)
    laplace = Laplace(items=items, epsilon=40.0, users=50)
    counts = QuestionnaireResult(asked, laplace, np.array([10, 40]), 50)
    result = combine_results({"joint": joint, "laplace": counts}, "survey")
    assert [row.estimate for row in result[1].shares] == pytest.approx([28 / 80, 52 / 80])
    assert result.name == "server-joint+laplace"


def test_different_questions_are_not_combined() -> None:
    other = Questionnaire((OneOf(text="Which other?", items=ITEMS),))
    parts = {
        "a": release(np.full(10, 5), 1.0, SeededStream(1)),
        "b": QuestionnaireResult(other, sheets(other, 1.0, 50), np.full(10, 5), 50),
    }
    with pytest.raises(ParameterError, match="asked different questions"):
        combine_results(parts, "survey")
    with pytest.raises(ParameterError, match="at least 2 results"):
        combine_results({"a": parts["a"]}, "survey")


@pytest.mark.slow
def test_the_headline_holds_where_the_choice_depends_on_the_answer() -> None:
    """80 surveys; 16 or more misses of 95% intervals have a probability of 2e-6."""
    runs, most = 80, 16
    assert binom.sf(most - 1, runs, 0.05) < 1e-5
    rng, stream = np.random.default_rng(4), SeededStream(4)
    missed = {"uwa": 0, "total": 0}
    for _ in range(runs):
        whole, parts = np.zeros(10), {}
        # Holders of the first item want to be hidden: 85% of them choose the strongest level.
        for epsilon, holders, others in ((0.1, 85, 225), (0.4, 5, 225), (1.0, 10, 450)):
            counts = np.array([holders, *rng.multinomial(others, np.full(9, 1 / 9))])
            whole += counts
            parts[f"{epsilon:g}"] = release(counts, epsilon, stream)
        result = combine_results(parts, "tier")
        truth = whole[0] / whole.sum()
        row = result[1].shares[0]
        missed["uwa"] += not row.low <= truth <= row.high
        bounds = result.if_alike(0)["total"].interval()
        missed["total"] += not bounds.low[0] <= truth <= bounds.high[0]
    assert missed["uwa"] < most
    # The weighted estimate is wrong here, which is why it stands under a condition.
    assert missed["total"] > runs / 2

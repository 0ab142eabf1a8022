"""Users' Laplace noise on sheets: its privacy by enumeration, its distributions, and whole surveys."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.composition import compose_randomized_response, laplace_shift
from faircount.accounting.exact import laplace_log_pmf, laplace_shift_loss
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation, insiders
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.questions import (
    AnyOf,
    Branch,
    MostOf,
    Number,
    OneOf,
    Question,
    QuestionGroup,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace import laplace_table
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.sheets import extreme_sheets
from faircount.mechanisms.split_noise import SplitNoise, step_loss
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.simulator import play, set_up
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.sharing.field import from_signed, to_signed

QUESTIONS = (
    OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
    YesNo(text="Would you recommend us?"),
    AnyOf(text="What do you use?", items=("a", "b", "c"), skip=True),
    MostOf(text="What matters most?", items=("a", "b", "c", "d"), most=2),
    ScaleCounts(text="How satisfied?", items=("low", "middle", "high")),
    ScaleMean(text="How tired?", items=("low", "middle", "high"), only_if=Branch(1, (1,))),
    Number(text="Years?", low=Fraction(0), high=Fraction(5), skip=True),
    OneOf(text="Since when?", items=("this year", "before"), only_if=Branch(0, (0,))),
    Table(text="Site?", columns_text="Shift?", rows=("N", "S"), columns=("early", "late")),
)


def make_mechanism(questions=QUESTIONS, epsilon=1.0, shares=None, **fields) -> LaplaceSheets:
    numbers = [[number] for number in range(len(questions))]
    return LaplaceSheets(
        questionnaire=Questionnaire(tuple(questions)),
        groups=split_epsilon(epsilon, numbers, shares),
        epsilon=epsilon,
        **fields,
    )


def make_sheets(count: int, seed: int) -> list[tuple[object, ...]]:
    draw = np.random.default_rng(seed)
    some = ((), (0,), (0, 2), None)
    sheets = []
    for _ in range(count):
        site, advises = (int(draw.integers(size)) for size in (4, 2))
        sheets.append(
            (
                site,
                advises,
                some[draw.integers(4)],
                some[draw.integers(3)],
                int(draw.integers(3)),
                int(draw.integers(3)) if advises else None,
                (None, 0, 3, 5)[draw.integers(4)],
                int(draw.integers(2)) if site == 0 else 2,
                int(draw.integers(4)),
            )
        )
    return sheets


def sheets_of(questionnaire: Questionnaire) -> list[tuple[int, ...]]:
    """The cells of all valid sheets."""
    patterns = product(range(2), repeat=questionnaire.bits)
    return sorted(
        {questionnaire.cells_from_bits(bits) for bits in patterns if questionnaire.is_valid(bits)}
    )


# --- whole surveys


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED, SERVERS], ids=str)
def test_a_survey_without_noise_counts_every_kind_exactly(topology) -> None:
    """With so large an epsilon every cell loses 25 per step, and its noise is 0 but for 10^-10."""
    sheets = make_sheets(12, seed=3)
    result = play(sheets, make_mechanism(epsilon=2000.0), topology, entropy=SeededStream(1))
    mechanism = result.mechanism
    assert result.cells.tolist() == sum(map(mechanism.cells_of, sheets)).tolist()
    assert result.included == 12


def test_a_survey_with_noise_states_one_guarantee_for_all_answers() -> None:
    result = play(make_sheets(30, 4), make_mechanism(), EXPLICIT, entropy=SeededStream(2))
    assert result.guarantee.epsilon == 1.0
    assert result.guarantee.delta < 1e-20
    assert "for all answers of a person together" in str(result)
    shares = [question.epsilon for question in result.questions]
    assert sum(shares) == pytest.approx(1.0)
    for question in result.questions:
        # Counts are fitted to the number of people, so that shares of a choice add up to 1.
        assert question.unusual_sum is None


def test_published_parameters_give_the_same_mechanism() -> None:
    mechanism = make_mechanism(users=50, spare_bits=3, shares=range(1, 10), insiders=2)
    params = set_up(mechanism, MASKED, SeededStream(1)).params
    assert SurveyParameters.parse(params.published) == params
    assert params.single_epsilon == pytest.approx(9 / 45)


def test_the_two_stage_topology_says_that_it_cannot_carry_sheets() -> None:
    with pytest.raises(ParameterError, match="laplace-sheets does not run as 'two-stage'"):
        set_up(make_mechanism(users=20), TWO_STAGE, SeededStream(1))


# --- privacy, by complete enumeration

TINY = {
    "yes": (YesNo(text="a"), YesNo(text="b"), YesNo(text="c")),
    "one": (OneOf(text="a", items=("1", "2", "3")), YesNo(text="b")),
    "skip": (OneOf(text="a", items=("1", "2"), skip=True), YesNo(text="b", skip=True)),
    "any": (AnyOf(text="a", items=("1", "2"), skip=True), YesNo(text="b")),
    "most": (MostOf(text="a", items=("1", "2", "3"), most=2), YesNo(text="b")),
    "few": (MostOf(text="a", items=("1", "2", "3"), most=1, skip=True),),
    "number": (Number(text="a", low=0, high=2), YesNo(text="b")),
    "branch": (YesNo(text="a"), Number(text="b", low=0, high=2, only_if=Branch(0, (1,)))),
    "mean": (ScaleMean(text="a", items=("1", "2", "3"), skip=True), YesNo(text="b")),
    "table": (Table(text="a", columns_text="b", rows=("1", "2"), columns=("1", "2")),),
}


def tiny_distribution(mechanism: LaplaceSheets, cell: int) -> np.ndarray:
    """The exact distribution of what one user draws for a cell, from its table."""
    loss = mechanism._losses[cell]
    return laplace_table(2 * loss, 1)[0].probabilities


@pytest.mark.parametrize("name", TINY)
def test_the_largest_loss_of_every_pair_of_sheets_is_epsilon(name) -> None:
    """All sheets against all others, on all outcomes near 0: exactly epsilon, and nothing more."""
    epsilon = 1.5
    mechanism = make_mechanism(TINY[name], epsilon=epsilon, users=2)
    assert mechanism.h == 1
    window = 4
    logs = []
    for cell in range(mechanism.N):
        distribution = tiny_distribution(mechanism, cell)
        middle = distribution.size // 2
        logs.append(np.log(distribution[middle - 2 * window : middle + 2 * window + 1]))
    outcomes = np.array(list(product(range(-window, window + 1), repeat=mechanism.N)))

    def log_likelihood(cells: tuple[int, ...]) -> np.ndarray:
        moved = outcomes - np.array(cells) + 2 * window
        return sum(logs[cell][moved[:, cell]] for cell in range(mechanism.N))

    likelihoods = [log_likelihood(cells) for cells in sheets_of(mechanism.questionnaire)]
    largest = max(float((one - other).max()) for one, other in product(likelihoods, repeat=2))
    assert largest == pytest.approx(epsilon, abs=1e-9)
    # The pair that an audit plays is such a pair.
    first, second = map(mechanism.cells_of, extreme_sheets(mechanism.questionnaire))
    played = log_likelihood(tuple(first)) - log_likelihood(tuple(second))
    assert float(np.abs(played).max()) == pytest.approx(epsilon, abs=1e-9)


def test_shares_are_rounded_down_so_that_no_question_exceeds_its_own() -> None:
    questions = (MostOf(text="a", items=tuple("abcdefg"), most=3), Number(text="b", low=0, high=7))
    for thousandths in range(100, 1100, 7):
        share = Fraction(thousandths, 1000)
        for question in questions:
            spent = Fraction(step_loss(question, share)) * question.moves * question.blocks[0].reach
            assert share * (1 - Fraction(1, 10**15)) < spent <= share


def test_a_question_in_one_group_with_another_is_refused() -> None:
    """Both of them would spend the whole share of the group."""
    form = Questionnaire(TINY["yes"])
    for groups in ([[0, 1], [2]], [[0, 1, 2]]):
        with pytest.raises(ParameterError, match="a group holds one question"):
            LaplaceSheets(questionnaire=form, groups=split_epsilon(1.0, groups), epsilon=1.0)
    with pytest.raises(ParameterError, match="more than epsilon"):
        LaplaceSheets(
            questionnaire=form,
            groups=tuple(QuestionGroup.of(1.0, [number]) for number in range(3)),
            epsilon=1.0,
        )
    with pytest.raises(ParameterError, match="exactly one group"):
        LaplaceSheets(questionnaire=form, groups=split_epsilon(1.0, [[0], [2]]), epsilon=1.0)


def test_exact_delta_below_epsilon_is_that_of_randomized_responses() -> None:
    mechanism = make_mechanism([YesNo(text=str(number)) for number in range(8)], users=10)
    assert mechanism.h == 9
    for epsilon in (0.1, 0.5, 0.9):
        exact = compose_randomized_response(1 / 8, 8, epsilon=epsilon)
        found = mechanism.delta_at(epsilon, insiders(1), Relation.REPLACE_ONE)
        assert exact <= found <= exact * (1 + 1e-3) + 1e-12
    assert mechanism.delta_at(1.0, insiders(1), Relation.REPLACE_ONE) < 1e-20
    # From its collector only the user's own piece of the noise protects.
    assert mechanism.delta_at(1.0, COLLECTOR, Relation.REPLACE_ONE) > 0.5
    # A reader knows no piece, so that there is more noise than needed.
    assert mechanism.delta_at(0.5, OUTSIDER, Relation.REPLACE_ONE) <= mechanism.delta_at(
        0.5, insiders(1), Relation.REPLACE_ONE
    )


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_number_that_moves_by_several_steps_loses_what_its_distribution_says(
    steps, epsilon
) -> None:
    pmf = np.exp(laplace_log_pmf(math.exp(-0.4), 1.0))
    moved = np.pad(pmf, (steps, 0))
    still = np.pad(pmf, (0, steps))
    brute = float(np.maximum(still - math.exp(epsilon) * moved, 0).sum())
    pair = laplace_shift(0.4, steps)
    gain = np.exp(pair.log_p) - math.exp(epsilon) * np.exp(pair.log_q)
    assert float(np.maximum(gain, 0).sum()) == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_a_fraction_of_the_noise_loses_most_in_the_middle(share) -> None:
    """All points of the distribution: nowhere does a shift lose more than between 0 and the shift."""
    logs = laplace_log_pmf(math.exp(-0.7), share)
    for steps in (1, 3, 8):
        # Without the ends, where the distribution is below 1e-60 and was cut off.
        inner = logs[logs > -140]
        largest = float(np.abs(inner[steps:] - inner[:-steps]).max())
        assert laplace_shift_loss(0.7, share, steps) == pytest.approx(largest, rel=1e-9)


def test_what_remains_when_more_people_drop_out_than_were_allowed_for() -> None:
    mechanism = make_mechanism(users=40, dropouts=4, insiders=2)
    assert mechanism.remaining_guarantee(36).epsilon == 1.0
    fewer = [mechanism.remaining_guarantee(left).epsilon for left in (35, 20, 5)]
    assert 1.0 < fewer[0] < fewer[1] < fewer[2]
    with pytest.raises(RefusedError, match="no noise is left"):
        mechanism.remaining_guarantee(2)
    # Every piece of a half of the noise: the losses of the moved cells add up.
    losses = [laplace_shift_loss(mechanism._losses[cell], 18 / 34, 1) for cell in (0, 1)]
    assert sum(losses) < mechanism.remaining_guarantee(20).epsilon


# --- noise and its distributions


def test_the_noise_of_all_users_has_the_distribution_of_every_cell() -> None:
    """Six standard errors of a variance: about one false alarm in 10^7 over all cells."""
    mechanism = make_mechanism(users=5, epsilon=6.0)
    noise = mechanism.noise_in(5)
    runs = 3000
    drawn = mechanism.draw_noise(5 * runs, SeededStream(7)).reshape(runs, 5, -1).sum(axis=1)
    for cell, (number, block, _) in enumerate(mechanism.layout):
        distribution = noise.raw_distribution(number, block)
        fourth = float((distribution.pmf * distribution.values**4).sum())
        slack = 6 * math.sqrt((fourth - distribution.variance**2) / runs)
        assert abs(float((drawn[:, cell] ** 2).mean()) - distribution.variance) < slack
    # Cells are independent of each other.
    correlation = np.corrcoef(drawn.T) - np.eye(mechanism.N)
    assert np.abs(correlation).max() < 6 / math.sqrt(runs)


@pytest.mark.parametrize(
    ("question", "deviation"),
    [
        (YesNo(text="a"), 1.0),
        (OneOf(text="a", items=tuple("abcde")), 2.0),
        (AnyOf(text="a", items=tuple("abcdef")), 6.0),
        (MostOf(text="a", items=tuple("abcdefghij"), most=3), 6.0),
        (Number(text="a", low=0, high=50), 50.0),
    ],
    ids=["yes", "one", "any", "most", "number"],
)
def test_known_standard_deviations_at_epsilon_1(question: Question, deviation: float) -> None:
    """A continuous Laplace distribution of the same scale has sqrt(2) times it; two servers twice that."""
    mechanism = make_mechanism((question,), users=101)
    found = math.sqrt(mechanism.noise_in(100).raw_distribution(0).variance)
    assert found == pytest.approx(math.sqrt(2) * deviation, rel=0.05)


def test_fitted_distributions_are_those_of_all_combinations() -> None:
    """The noise in one and in two of three fitted counts, summed over all outcomes."""
    mechanism = make_mechanism((OneOf(text="a", items=("1", "2", "3")),), epsilon=3.0, users=4)
    noise = mechanism.noise_in(3)
    raw = noise.raw_distribution(0)
    kept = np.flatnonzero(raw.pmf > 1e-11)
    values = (raw.values[kept]).astype(int)
    for terms in (1, 2):
        distribution = noise.distribution_of_sum(0, terms)
        sums: dict[int, float] = {}
        for places in product(range(kept.size), repeat=3):
            fitted = noise.fit(0, [int(values[place]) + 1 for place in places], 3)
            point = round(3 * (sum(fitted[:terms]) - terms))
            chance = math.prod(float(raw.pmf[kept[place]]) for place in places)
            sums[point] = sums.get(point, 0.0) + chance
        step = 3 // distribution.scale
        exact = {round(step * (distribution.low + at)): p for at, p in enumerate(distribution.pmf)}
        for point, chance in sums.items():
            if chance > 1e-8:
                assert exact[point] == pytest.approx(chance, rel=1e-3)
    assert noise.distribution(0).variance == pytest.approx(raw.variance * 2 / 3)


def test_scores_are_counted_from_the_middle_of_the_scale() -> None:
    """From scores 1 to 5 the variance would be 5.5 times as large."""
    question = ScaleCounts(text="a", items=tuple("12345"))
    noise = make_mechanism((question,), users=101).noise_in(100)
    distribution = noise.distribution_of_scores(0, [-4, -2, 0, 2, 4])
    assert distribution is not None
    raw = noise.raw_distribution(0).variance
    assert distribution.variance / 4 == pytest.approx(10 * raw)
    assert 5.5 * distribution.variance / 4 == pytest.approx(
        raw * sum(score**2 for score in range(1, 6))
    )
    # Fitted counts add up to the people, so that their origin does not matter any more.
    for scores in (np.arange(5) - 2.0, np.arange(5) + 1.0):
        assert noise.contrast_variance(0, scores) == pytest.approx(10 * raw)


# --- sums


def test_cells_and_totals_outside_their_range_are_corrupt() -> None:
    mechanism = make_mechanism(
        (OneOf(text="a", items=("x", "y", "z")), Number(text="b", low=0, high=9)), users=20
    )
    reach = mechanism.reaches

    def decode(*cells: int) -> list[int]:
        return mechanism.decode(from_signed(np.array(cells), mechanism.modulus), 20).tolist()

    assert decode(20 + reach[0], 0, 0, 9) == [20 + reach[0], 0, 0, 9]
    for cells in ((21 + reach[0], 0, 0, 9), (0, 0, -1 - reach[2], 9)):
        with pytest.raises(CorruptSumError, match="outside its range"):
            decode(*cells)
    with pytest.raises(CorruptSumError, match="too far from the 20 users"):
        decode(*[20 + reach[0]] * 3, 9)


def test_sheets_of_another_length_or_number_are_refused() -> None:
    mechanism = make_mechanism(users=5)
    good = make_sheets(1, seed=1)[0]
    for bad in (good[:-1], (9, *good[1:]), ((0,), *good[1:])):
        with pytest.raises(AnswerError):
            mechanism.respond_as(0, bad, SeededStream(1))
    with pytest.raises(AnswerError, match="sheets of 5 users"):
        mechanism.respond([good] * 4, SeededStream(1))


def test_responses_add_up_to_what_the_clients_send() -> None:
    mechanism = make_mechanism(users=6, epsilon=2000.0)
    sheets = make_sheets(6, seed=9)
    total = mechanism.total(mechanism.respond(sheets, SeededStream(1)))
    cells = to_signed(total, mechanism.modulus, mechanism.min_sum)
    assert cells.tolist() == sum(map(mechanism.cells_of, sheets)).tolist()
    drawn = mechanism.draw(cells, np.random.default_rng(1))
    assert drawn.tolist() == cells.tolist()


@pytest.mark.parametrize(
    ("questions", "epsilon", "words"),
    [
        ((Number(text="a", low=0, high=5000),), 1.0, "choose a larger step"),
        ((Number(text="a", low=0, high=1500, skip=True),), 1.0, "at least 1.5"),
        ([YesNo(text="a")] * 20, 0.009, "ask fewer questions"),
    ],
    ids=["steps", "skip", "many"],
)
def test_tables_of_noise_that_would_be_too_long_are_refused(questions, epsilon, words) -> None:
    with pytest.raises(ParameterError, match=f"rows; .*{words}|{words}.*rows"):
        make_mechanism(questions, epsilon=epsilon, users=20)


def test_tables_that_are_too_many_are_refused() -> None:
    questions = [YesNo(text=str(number)) for number in range(40)]
    with pytest.raises(ParameterError, match="which share a table then"):
        make_mechanism(questions, epsilon=0.2, shares=range(100, 140), users=20)
    # Questions with the same share have one table.
    same = make_mechanism(questions, epsilon=0.2, users=20)
    assert len(same._tables) == 1


# --- audit


class NoNoiseInOne(LaplaceSheets):
    """The second question is published as it is."""

    def draw_noise(self, users: int, entropy: Entropy) -> np.ndarray:
        noise = super().draw_noise(users, entropy)
        noise[:, self.questionnaire.cell_slices[1]] = 0
        return noise


class WholeEpsilonEach(LaplaceSheets):
    """Epsilon is counted once: every question has noise for all of it."""

    def draw_noise(self, users: int, entropy: Entropy) -> np.ndarray:
        times = 2 * len(self.questionnaire)
        tables = [laplace_table(times * loss, self.h)[0] for loss in self._losses]
        return np.stack([table.draw(users, entropy) for table in tables], axis=1)


class OneStep(LaplaceSheets):
    """The noise of a number hides a change by one."""

    def draw_noise(self, users: int, entropy: Entropy) -> np.ndarray:
        drawn = []
        for (_, _, block), loss in zip(self.layout, self._losses, strict=True):
            table = laplace_table(2 * loss * block.reach, self.h)[0]
            drawn.append(table.draw(users, entropy))
        return np.stack(drawn, axis=1)


class SameForAllCells(LaplaceSheets):
    """One draw serves all cells of a user, as if their noise were joint."""

    def draw_noise(self, users: int, entropy: Entropy) -> np.ndarray:
        noise = super().draw_noise(users, entropy)
        return np.repeat(noise[:, :1], self.N, axis=1)


AUDITED = (YesNo(text="a"), YesNo(text="b"), Number(text="c", low=0, high=3))


def audited(kind: type[LaplaceSheets]) -> LaplaceSheets:
    form = Questionnaire(AUDITED)
    groups = split_epsilon(1.5, [[number] for number in range(3)])
    return kind(questionnaire=form, groups=groups, epsilon=1.5, users=4)


def test_an_audit_does_not_refute_the_noise() -> None:
    report = fc.audit(audited(LaplaceSheets), runs=20_000, entropy=SeededStream(1))
    assert not report.refuted
    assert report.mechanism == "laplace-sheets"
    assert report.lower_bound > 0.5


@pytest.mark.parametrize(
    "kind",
    [NoNoiseInOne, WholeEpsilonEach, OneStep, SameForAllCells],
    ids=lambda kind: kind.__name__,
)
def test_planted_errors_are_refuted(kind) -> None:
    report = fc.audit(audited(kind), runs=20_000, entropy=SeededStream(1))
    assert report.refuted


@pytest.mark.parametrize("kind", [LaplaceSheets, NoNoiseInOne])
def test_whole_surveys_can_be_audited(kind) -> None:
    report = fc.audit(audited(kind), through="explicit", runs=100, entropy=SeededStream(1))
    assert report.refuted == (kind is NoNoiseInOne)


def test_the_loss_of_a_survey_is_composed_with_others() -> None:
    mechanism = make_mechanism([YesNo(text=str(number)) for number in range(10)], users=50)
    losses = mechanism.losses(mechanism.default_adversary)
    assert losses is not None
    assert len(losses.pairs) == 10
    assert mechanism.losses(insiders(2)) is None
    whole = SplitNoise(mechanism.questionnaire, mechanism.groups)
    assert whole.loss(3) == mechanism._losses[3]

"""Hidden levels on proven sheets: bits, constraints, both tables, and whole surveys."""

import json
from dataclasses import replace

import numpy as np
import pytest

from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation
from faircount.accounting.levels import ALWAYS, Levels
from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, FaircountError, ParameterError
from faircount.core.questions import AnyOf, Branch, OneOf, Questionnaire, ScaleCounts, YesNo
from faircount.demo.invalid_reports import HALF_INSIDE, invalid_kinds
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.server_noise import S1_AND_USERS
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import EXPLICIT, MASKED, SERVERS
from faircount.protocol.simulator import play, set_up
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.proofs import query_at, query_point
from faircount.protocol.topologies.two_servers.reports import draw_vector, report_layout_of
from faircount.sharing.field import add, from_signed
from support.scripted_entropy import ScriptedEntropy

QUESTIONS = (
    OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
    YesNo(text="Would you stay?"),
    OneOf(text="Why?", items=("pay", "people"), only_if=Branch(1, (1,))),
)
LEVELS = {"very strong": 0.25, "strong": 0.5, "normal": 1.0}
# Noise of 0 in both tables, except with probability 10^-9.
SILENT = {"strong": 100.0, "weak": 300.0}


def make_mechanism(questions=QUESTIONS, levels=LEVELS, groups=None, **fields) -> ServerLevels:
    offered = Levels.of(levels)
    numbers = [range(len(questions))] if groups is None else groups
    return ServerLevels(
        questionnaire=Questionnaire(questions),
        groups=split_epsilon(offered.base, numbers),
        epsilon=offered.most,
        levels=offered,
        **fields,
    )


def make_people(count: int, seed: int) -> tuple[list[tuple[int, ...]], list[int]]:
    draw = np.random.default_rng(seed)
    sheets = []
    for _ in range(count):
        stays = int(draw.integers(2))
        sheets.append((int(draw.integers(4)), stays, int(draw.integers(2)) if stays else 2))
    return sheets, draw.integers(2, size=count).tolist()


@pytest.mark.parametrize("groups", [[[0], [1], [2]], [[2], [0, 1]]])
def test_a_survey_without_noise_counts_everybody_once_and_those_inside_again(groups) -> None:
    mechanism = make_mechanism(levels=SILENT, groups=groups)
    sheets, levels = make_people(40, seed=1)
    result = play(sheets, mechanism, SERVERS, entropy=SeededStream(1), levels=levels)
    pairs = zip(sheets, levels, strict=True)
    assert result.cells.tolist() == sum(mechanism.cells_of(*pair) for pair in pairs).tolist()
    sites = np.array([sheet[0] for sheet in sheets])
    inside = np.array(levels) == 1
    assert result.cells[:4].tolist() == np.bincount(sites, minlength=4).tolist()
    again = result.cells[mechanism.second_slices[0]]
    assert again.tolist() == np.bincount(sites[inside], minlength=4).tolist()


def test_the_answers_of_a_base_survey_do_not_depend_on_levels() -> None:
    """The first table is that of a survey without levels at the strongest epsilon, draw for draw."""
    mechanism = make_mechanism(users=9)
    plain = ServerSheets(
        questionnaire=mechanism.questionnaire, groups=mechanism.groups, epsilon=0.25, users=9
    )
    streams = (SeededStream(1), SeededStream(2))
    noise = mechanism.noise_from(streams)
    assert noise[: mechanism.base_cells].tolist() == plain.server_noise(SeededStream(1)).tolist()
    assert noise.size == mechanism.N == plain.N + 4 + 2 + 3
    other = mechanism.noise_from((SeededStream(1), SeededStream(3)))
    assert (other[plain.N :] != noise[plain.N :]).any()


def test_the_second_table_has_no_known_total() -> None:
    mechanism = make_mechanism(users=9)
    source = SeededStream(5)
    draws = np.array([mechanism.server_noise(source) for _ in range(600)])
    for number, where in enumerate(mechanism.second_slices):
        cells = draws[:, where]
        half = mechanism.scaled_halves[number] / 2**128
        a = np.exp(-half)
        variance = 2 * a / (1 - a) ** 2
        assert mechanism.second_distribution(number).variance == pytest.approx(
            2 * variance, rel=1e-9
        )
        # Six standard errors of the variance of 600 sums: about one false alarm in 10^8.
        spread = cells.sum(axis=1).var() / (cells.shape[1] * variance)
        assert abs(spread - 1) < 6 * np.sqrt(5 / 600)
    # In the first table the noise of the first question adds up to 0.
    assert not draws[:, :4].sum(axis=1).any()


def test_halves_add_up_to_no_more_than_a_vote_may_cost() -> None:
    for groups in ([range(3)], [[0], [1], [2]], [[0, 2], [1]]):
        mechanism = make_mechanism(groups=groups)
        assert 0 <= mechanism.levels.scaled_half - sum(mechanism.scaled_halves) < 10
    shared = make_mechanism(groups=[[0, 2], [1]])
    assert shared.scaled_halves[1] == pytest.approx(2 * shared.scaled_halves[0])


@pytest.mark.parametrize("level", range(3))
def test_a_report_draws_its_coin_first_and_once(level) -> None:
    mechanism = make_mechanism(users=5)
    coin = mechanism.levels.coins[level]
    for drawn in {0, max(coin - 1, 0), min(coin, ALWAYS - 1), ALWAYS - 1}:
        entropy = ScriptedEntropy(drawn.to_bytes(16, "big"))
        bits = mechanism.report_bits((3, 1, 0), entropy, level)
        assert entropy.data == b""
        assert bits.tolist() == mechanism.place_sheet((3, 1, 0), is_inside=drawn < coin).tolist()
        assert bits.sum() == 3
        assert all(constraint.is_met(bits) for constraint in mechanism.constraints)


def test_reports_of_all_levels_have_the_same_size() -> None:
    mechanism = make_mechanism(users=5)
    sizes = set()
    for level in range(3):
        source = SeededStream(1)
        sizes.add((draw_vector(mechanism, (0, 1, 0), source, level).size, source.bytes(8)))
    # The same number of elements, and the same place in the stream of randomness.
    assert len(sizes) == 1


def test_a_level_that_nobody_offers_is_refused() -> None:
    with pytest.raises(ParameterError, match="choose one of the levels"):
        make_mechanism(users=5).report_bits((0, 0, 2), SeededStream(1), 3)
    with pytest.raises(ParameterError, match="offers no privacy levels"):
        ServerSheets.example(5, 3).report_bits((0, 0), SeededStream(1), 1)


def test_only_honest_patterns_satisfy_the_constraints() -> None:
    """All 2^10 patterns of two questions: 3 x 2 answers, inside or outside."""
    questions = (OneOf(text="a", items=("x", "y", "z")), YesNo(text="b"))
    mechanism = make_mechanism(questions, users=5)
    valid = []
    for pattern in range(1 << mechanism.answer_bits):
        bits = [pattern >> bit & 1 for bit in range(mechanism.answer_bits)]
        if all(constraint.is_met(bits) for constraint in mechanism.constraints):
            valid.append(bits)
    honest = []
    for is_inside in (False, True):
        for first in range(3):
            honest += [mechanism.place_sheet((first, b), is_inside=is_inside) for b in range(2)]
    assert sorted(valid) == sorted(bits.tolist() for bits in honest)


def test_forged_reports_do_not_pass() -> None:
    mechanism = make_mechanism(users=5)
    layout = report_layout_of(mechanism)
    kinds = invalid_kinds(layout)
    assert HALF_INSIDE in kinds
    query = query_at(layout, query_point(layout, bytes(32)))
    nothing = np.zeros_like(query.verifier_shares(np.zeros((1, layout.width), dtype=np.uint64)))
    honest = draw_vector(mechanism, (0, 0, 2), SeededStream(1), 2)[None]
    assert query.accepts(query.verifier_shares(honest), nothing).tolist() == [True]
    for forge in kinds.values():
        report = forge(layout, SeededStream(2))[None]
        assert query.accepts(query.verifier_shares(report), nothing).tolist() == [False]


def test_cells_outside_their_range_are_corrupt() -> None:
    mechanism = make_mechanism((OneOf(text="a", items=("x", "y", "z")),), users=20)
    reach = mechanism.reaches[3]
    fine = np.array([25, -9, 4, 20 + reach, -reach, 0])
    q = mechanism.modulus
    assert mechanism.decode(from_signed(fine, q), 20).tolist() == fine.tolist()
    for spoiled, why in (
        ([25, -9, 4, 21 + reach, 0, 0], "outside its range"),
        ([25, -9, 4, 0, -reach - 1, 0], "outside its range"),
        ([25, -9, 5, 0, 0, 0], "do not add up"),
    ):
        with pytest.raises(CorruptSumError, match=why):
            mechanism.decode(from_signed(np.array(spoiled), q), 20)
    # The second table adds up to anything.
    assert mechanism.decode(from_signed(np.array([20, 0, 0, 9, 9, 9]), q), 20)[3:].sum() == 27
    assert add(from_signed(fine, q), from_signed(-fine, q), q).sum() == 0


def test_each_server_draws_each_table_from_a_stream_of_its_own(monkeypatch) -> None:
    drawn = []
    original = ServerLevels.noise_from

    def noise_from(self, streams):
        drawn.extend(stream.bytes(16) for stream in streams)
        return original(self, streams)

    monkeypatch.setattr(ServerLevels, "noise_from", noise_from)
    sheets, levels = make_people(12, seed=3)
    play(sheets, make_mechanism(), SERVERS, entropy=SeededStream(4), levels=levels)
    # Two tables of two servers, and no two of the streams are the same.
    assert len(drawn) >= 4
    assert len(set(drawn)) == 4


# --- parameters


def test_published_parameters_give_the_same_mechanism() -> None:
    mechanism = make_mechanism(users=50, spare_bits=3)
    params = set_up(mechanism, SERVERS, SeededStream(1)).params
    assert SurveyParameters.parse(params.published) == params
    plain = json.loads(params.published)
    assert plain["settings"]["levels"][1] == {"epsilon": str(1 << 127), "name": "strong"}
    assert plain["derived"]["coins"] == [str(coin) for coin in mechanism.levels.coins]
    assert params.epsilon == 1.0


@pytest.mark.parametrize(
    "spoil",
    [
        # A larger coin would cost the level more than it promises.
        lambda plain: plain["derived"]["coins"].__setitem__(1, str(ALWAYS // 2)),
        lambda plain: plain["derived"]["coins"].__setitem__(0, "1"),
        lambda plain: plain["derived"]["coins"].__setitem__(2, str(ALWAYS - 1)),
        # A weaker level under a stronger name, or another promise.
        lambda plain: plain["settings"]["levels"][2].__setitem__("epsilon", str(2 << 128)),
        lambda plain: plain["settings"]["levels"][0].__setitem__("epsilon", str(1 << 125)),
        lambda plain: plain["settings"]["levels"].reverse(),
        lambda plain: plain["settings"]["levels"][0].__setitem__("coin", "0"),
        lambda plain: plain["settings"].pop("levels"),
        lambda plain: plain["settings"].__setitem__("epsilon", str(1 << 126)),
    ],
)
def test_parameters_that_do_not_follow_from_each_other_are_refused(spoil) -> None:
    from faircount.protocol.wire import canonical_json

    params = set_up(make_mechanism(users=20), SERVERS, SeededStream(1)).params
    plain = json.loads(params.published)
    spoil(plain)
    with pytest.raises(FaircountError):
        SurveyParameters.parse(canonical_json.encode(plain))


def test_the_promise_is_that_of_the_weakest_level() -> None:
    mechanism = make_mechanism(users=20)
    with pytest.raises(ParameterError, match="that of the weakest level"):
        replace(mechanism, epsilon=0.25)
    with pytest.raises(ParameterError, match="more than epsilon"):
        replace(mechanism, groups=split_epsilon(0.5, [range(3)]))
    params = set_up(mechanism, SERVERS, SeededStream(1)).params
    assert (params.epsilon, params.mechanism.remaining_guarantee(12).epsilon) == (1.0, 1.0)
    # Of three questions that share a radius, one answer loses the base and a third of the rest.
    assert params.single_epsilon == pytest.approx(0.25 + 0.25)


@pytest.mark.parametrize(
    "question",
    [
        AnyOf(text="What?", items=("a", "b", "c")),
        ScaleCounts(text="How?", items=("low", "middle", "high")),
    ],
)
def test_other_kinds_of_questions_are_refused_in_words(question) -> None:
    with pytest.raises(ParameterError, match=r"question 2 is of the kind .* with hidden levels"):
        make_mechanism((QUESTIONS[0], question))


def test_long_lists_and_small_differences_are_refused() -> None:
    long = tuple(OneOf(text=str(k), items=tuple(map(str, range(290)))) for k in range(5))
    with pytest.raises(ParameterError, match="2,900 bits together"):
        make_mechanism(long)
    with pytest.raises(ParameterError, match=r"between 0\.001"):
        make_mechanism(levels={"a": 0.5, "b": 0.501})


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED])
def test_topologies_without_proofs_refuse_levels(topology) -> None:
    with pytest.raises(ParameterError, match="servers"):
        set_up(make_mechanism(users=20), topology, SeededStream(1))


# --- guarantees


def test_every_level_has_its_own_guarantee() -> None:
    mechanism = make_mechanism(users=20)
    found = mechanism.level_guarantees()
    assert [level.name for level in found] == list(LEVELS)
    assert [level.answer.epsilon for level in found] == list(LEVELS.values())
    together = [level.with_level.epsilon for level in found]
    assert together == pytest.approx([0.625, 0.765524, 1.0], abs=1e-6)
    assert all(level.answer.delta < 1e-25 for level in found)
    assert found[0].answer.adversary == S1_AND_USERS
    assert found[0].to_dict()["with_level"]["epsilon"] == together[0]


def test_delta_covers_the_weakest_level() -> None:
    mechanism = make_mechanism((QUESTIONS[0],), users=20)
    assert mechanism.delta_at(1.0, OUTSIDER, Relation.REPLACE_ONE) < 1e-25
    # At the strongest level's epsilon the weakest level is not covered.
    assert 0.05 < mechanism.delta_at(0.25, OUTSIDER, Relation.REPLACE_ONE) < 0.5
    assert mechanism.delta_at(1.0, COLLECTOR, Relation.REPLACE_ONE) == 1
    assert mechanism.delta_at(1.0, OUTSIDER, Relation.ZERO_OUT) == 1
    pairs = [mechanism.losses_at(level, OUTSIDER).pairs for level in range(3)]
    worst = [sum(float(pair.losses()[1].max()) for pair in level) for level in pairs]
    assert worst == pytest.approx([0.25, 0.5, 1.0], abs=1e-9)
    assert mechanism.losses(COLLECTOR) is None

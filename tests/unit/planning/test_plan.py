"""The plan against answers known beforehand, and against brute force."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from completion_runs import played
from hypothesis import given, settings
from hypothesis import strategies as st

import faircount as fc
from faircount.accounting import exact
from faircount.accounting.composition import compose, sampling_pair
from faircount.accounting.guarantee import S1, insiders
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.mechanisms.sampling import count_hidden_holders, required_floor
from faircount.planning.accuracy import curves, half_width, users_needed
from faircount.planning.advice import TIE_FACTOR
from faircount.planning.completion import dropout_needed
from faircount.planning.costs import cost, paper_form_bytes
from faircount.planning.option import format_percent
from faircount.planning.plan import Plan, compare_mechanisms
from faircount.planning.request import PlanRequest
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, encode
from faircount.protocol.survey.topology import TARGET_COMPLETION
from faircount.protocol.wire.messages import OutcomeRequest, PollRequest

KEYS = {
    "name",
    "sound",
    "reason",
    "parameters",
    "epsilon",
    "delta",
    "standard_error",
    "half_width_95",
    "users_needed",
    "condition",
    "bytes_per_user",
    "bytes_per_user_paper_form",
    "visits",
    "form",
    "sees",
    "topology",
    "servers",
    "proven",
}


def option_named(made: Plan, name: str) -> Any:
    return next(option for option in made.options if option.name == name)


def test_all_thirteen_mechanisms_are_listed_with_the_promised_keys() -> None:
    said = compare_mechanisms(800, 12, 1.0, 1e-6).to_dict()
    assert {option["name"] for option in said["mechanisms"]} == {
        "dpcs", "dpds", "tss", "tss-prime", "dpdg", "laplace", "decoys", "grr", "oue",
        "server-joint", "server-laplace", "server-coins", "placed-coins",
    }  # fmt: skip
    assert all(set(option) == KEYS for option in said["mechanisms"])
    assert said["recommended"] == "laplace"


def test_284_users_are_enough_for_two_percent_with_laplace() -> None:
    """The noise's own quantile; local differential privacy needs a hundred times more."""
    made = compare_mechanisms(800, 12, 1.0, 1e-6, target_error=0.02)
    assert option_named(made, "laplace").users_needed == 284
    assert 30_000 < option_named(made, "oue").users_needed < 40_000


def test_coins_are_those_of_the_table_and_one_for_the_insider() -> None:
    """D0 = 399, 115, 36 at delta 1e-5 for epsilon 0.5, 1, 2; one insider costs one coin."""
    for epsilon, needed in ((0.5, 399), (1.0, 115), (2.0, 36)):
        assert (
            option_named(compare_mechanisms(1000, 12, epsilon, 1e-5), "decoys").parameters["D"]
            == needed + 1
        )
    many = option_named(compare_mechanisms(1000, 12, 1.0, 1e-5, colluding=0.1), "decoys")
    assert many.parameters["D"] == 115 + 100
    assert many.parameters["insiders"] == 100


def test_29_percent_of_100_users_are_29_insiders() -> None:
    """Rounding must not lose an insider.

    Floating point makes 28.99... of 29; made for 28, Laplace would have delta 5.4e-3 against 29.
    """
    made = compare_mechanisms(100, 12, 1.0, 1e-6, colluding=0.29)
    assert made.request.insiders == 29
    laplace = option_named(made, "laplace").mechanism
    assert laplace.guarantee(epsilon=1.0, adversary=insiders(29)).delta <= 1e-6
    one_short = replace(laplace, insiders=28)
    assert one_short.guarantee(epsilon=1.0, adversary=insiders(29)).delta > 5e-3
    assert compare_mechanisms(100, 12, 1.0, 1e-6, dropout=0.29).request.staying == 71


@pytest.mark.parametrize("name", ["grr", "oue"])
@pytest.mark.parametrize(("items", "releases", "delta"), [(12, 52, 1e-6), (100, 12, 1e-2)])
def test_local_mechanisms_spend_the_whole_budget_over_releases(
    name: str, items: int, releases: int, delta: float
) -> None:
    made = option_named(compare_mechanisms(1000, items, 1.0, delta, releases=releases), name)
    assert made.delta == made.mechanism.compose_reports(releases, epsilon=1.0)
    assert 0.999 * delta < made.delta <= delta
    more = replace(made.mechanism, epsilon=made.mechanism.epsilon * 1.001)
    assert more.compose_reports(releases, epsilon=1.0) > delta


def test_grr_passes_oue_once_both_are_accounted_for_by_their_own_distributions() -> None:
    """With 12 items and 52 releases, taken for randomized response, GRR looked 1.3 times worse."""
    made = compare_mechanisms(1000, 12, 1.0, 1e-6, releases=52)
    assert option_named(made, "grr").standard_error < option_named(made, "oue").standard_error


def test_variances_over_releases_are_those_of_the_table() -> None:
    """Variances in squared counts for many users, at a total of (1, 1e-6).

    Laplace: 7.84, 31.8, 128; decoys: 37, 72, 143, 428.5. The known total of 12 items leaves 11/12.
    """
    n = 10**5  # so that one insider does not show
    for releases, laplace, decoys in ((1, 7.84, 37), (2, 31.8, 72), (4, 128, 143)):
        made = compare_mechanisms(n, 12, 1.0, 1e-6, releases=releases)
        assert (option_named(made, "laplace").standard_error * n) ** 2 == pytest.approx(
            laplace * 11 / 12, rel=0.005
        )
        assert option_named(made, "decoys").parameters["D"] - 1 == pytest.approx(
            4 * decoys, rel=0.002
        )  # 1 for the insider
    twelve = compare_mechanisms(n, 12, 1.0, 1e-6, releases=12)
    assert option_named(twelve, "decoys").parameters["D"] - 1 == 4 * 428.5
    assert twelve.recommended is not None
    assert twelve.recommended.name == "decoys"


def test_an_exact_p_beats_the_papers() -> None:
    """For n = 1000, N = 5, floor 150 and (0.5, 1e-5), p is 0.585, and less with an insider."""
    made = option_named(compare_mechanisms(1000, 5, 0.5, 1e-5, floor=150), "dpds")
    assert made.parameters["p"] == pytest.approx(exact.sampling_probability(149, 0.5, 1e-5))
    assert 0.57 < made.parameters["p"] < 0.585
    assert str(made.condition).startswith("every item has at least 150 holders")


@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        (fc.Laplace(items=5, users=30, epsilon=1.0), SERVERS),
        (fc.Laplace(items=5, users=30, epsilon=1.0), EXPLICIT),
        (fc.Laplace(items=5, users=70, epsilon=1.0), MASKED),
        (fc.TSSPrime(items=6, users=30, p=0.5, alpha=1 / 2, gamma=1.0, phi=1), TWO_STAGE),
    ],
)
def test_stated_bytes_are_those_that_users_send(mechanism, topology) -> None:
    """Compared with surveys that are played message by message.

    Polling is not counted. Two-stage users send different amounts, so their average is compared.
    """
    sent = []

    def meter(user, asked, answer) -> None:
        if not isinstance(asked, (PollRequest, OutcomeRequest)):
            sent.append(len(encode(asked)))

    played(topology, mechanism.n, mechanism.n, mechanism=mechanism, meter=meter)
    assert sum(sent) / mechanism.n == pytest.approx(
        topology.bytes_sent(mechanism), rel=0.15 if topology is TWO_STAGE else 0
    )


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"floor": 40},
        {"floor": 60, "releases": 3},
        {"releases": 12},
        {"dropout": 0.02, "colluding": 0.01, "floor": 60},
    ],
    ids=str,
)
def test_whoever_is_sound_spends_no_more_than_the_budget(known: dict[str, Any]) -> None:
    """Each mechanism, asked by itself: R times its own composed delta stays within the total."""
    made = compare_mechanisms(800, 12, 1.0, 1e-6, **known)
    for option in (one for one in made.options if one.sound):
        assert option.epsilon == 1.0
        assert option.delta <= 1e-6 * (1 + 1e-9)
        if made.request.releases == 1:
            against = (
                insiders(made.request.insiders) if hasattr(option.mechanism, "insiders") else None
            )
            assert option.mechanism.guarantee(epsilon=1.0, adversary=against).delta <= 1e-6 * (
                1 + 1e-9
            )


def test_a_slightly_larger_p_would_break_the_budget_over_releases() -> None:
    p = option_named(
        compare_mechanisms(800, 12, 1.0, 1e-6, floor=60, releases=3), "dpds"
    ).parameters["p"]
    pair = sampling_pair(59, p * 1.001)
    assert compose([[pair, pair.swap()]] * 3, epsilon=1.0) > 1e-6


def test_two_stage_sampling_is_made_for_s1_who_reads_the_result() -> None:
    made = option_named(compare_mechanisms(800, 12, 1.0, 1e-6, floor=40), "tss-prime").mechanism
    assert made.guarantee(epsilon=1.0, adversary=S1).delta <= 1e-6
    larger = replace(made, p=made.p * 1.006)
    assert larger.guarantee(epsilon=1.0, adversary=S1).delta > 1e-6


def test_without_a_floor_sampling_is_refused_and_says_which_floor_it_needs() -> None:
    made = compare_mechanisms(800, 12, 1.0, 1e-6)
    needed = exact.sampling_floor(-math.expm1(-1.0), 1.0, 1e-6) + 1
    for name in ("dpds", "dpcs", "tss-prime"):
        assert not option_named(made, name).sound
        assert option_named(made, name).reason.startswith(
            f"needs a floor of {needed} holders per item"
        )
    assert not option_named(made, "tss").sound


@pytest.mark.parametrize("users", [30, 100, 800, 2000])
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.3])
def test_no_refusal_recommends_a_floor_that_the_users_cannot_give(
    users: int, dropout: float
) -> None:
    made = compare_mechanisms(users, 12, 1.0, 1e-6, dropout=dropout)
    for name in ("dpds", "dpcs", "tss-prime"):
        advised = re.search(r"--floor (\d+)", option_named(made, name).reason)
        if advised is None:
            assert "ask more users" in option_named(made, name).reason
            continue
        floor = int(advised[1])
        again = compare_mechanisms(users, 12, 1.0, 1e-6, dropout=dropout, floor=floor)
        assert option_named(again, name).sound


def test_a_floor_that_the_users_cannot_give_is_refused() -> None:
    with pytest.raises(ParameterError, match="12 items more than 66 other holders"):
        compare_mechanisms(800, 12, 1.0, 1e-6, floor=67)
    with pytest.raises(RefusedError, match="66 at most"):
        count_hidden_holders(PlanRequest(800, 12, 1.0, 1e-6, floor=67).requirements)
    assert count_hidden_holders(PlanRequest(800, 12, 1.0, 1e-6, floor=66).requirements) == 65


def test_the_floor_named_in_a_refusal_is_the_smallest_that_serves_the_papers_p() -> None:
    k = required_floor(1.0, 1e-5, lost=1) - 1
    p = -math.expm1(-1.0)
    assert exact.sampling_delta(k, p, 1.0) <= 1e-5 < exact.sampling_delta(k - 1, p, 1.0)


def test_the_first_option_is_the_smallest_error_up_to_one_percent() -> None:
    for releases in (1, 2, 5, 12):
        made = compare_mechanisms(800, 12, 1.0, 1e-6, releases=releases)
        least = min(option.standard_error for option in made.options if option.sound)
        assert made.recommended is not None
        assert made.recommended.standard_error <= TIE_FACTOR * least


def test_errors_are_what_the_mechanism_itself_says() -> None:
    request = PlanRequest(800, 12, 1.0, 1e-6, floor=40)
    uniform = np.full(12, 1 / 12)
    for kind in frequency_mechanisms().values():
        try:
            made = kind.calibrate(request.requirements).mechanism
        except RefusedError:
            continue
        error, half = made.expected_errors(request.staying)
        assert error == pytest.approx(math.sqrt(made.variance(uniform).mean()), rel=1e-4)
        assert 1.5 * error < half < 2.3 * error


def assert_smallest(name: str, request: PlanRequest, target: float, most: int) -> None:
    kind = frequency_mechanisms()[name]
    widths = {n: half_width(kind, request, n) for n in range(2, most)}
    enough = [n for n, width in widths.items() if width is not None and width <= target]
    found = users_needed(kind, request, target)
    assert found == enough[0] if enough else found is None or found >= most


@pytest.mark.parametrize(
    ("epsilon", "items", "target"), [(5.0, 2, 0.05), (3.0, 4, 0.05), (5.0, 12, 0.02)]
)
def test_users_needed_of_reports_that_are_seldom_false(
    epsilon: float, items: int, target: float
) -> None:
    """With few users nearly every report is true, so that the error grows before it falls."""
    for name in ("grr", "oue"):
        assert_smallest(name, PlanRequest(300, items, epsilon, 1e-6), target, 160)


@pytest.mark.parametrize("name", ["laplace", "decoys", "dpdg", "dpds", "oue"])
@pytest.mark.parametrize(
    ("known", "target"),
    [
        ({"floor": 7}, 0.08),
        ({"dropout": 0.3}, 0.1),
        ({"dropout": 0.35, "delta": 1e-3}, 0.1),
        ({"dropout": 0.1, "colluding": 0.2}, 0.07),
        ({"floor": 40, "colluding": 0.05}, 0.1),
    ],
    ids=str,
)
def test_users_needed_is_the_smallest_number_that_is_enough(
    name: str, known: dict[str, Any], target: float
) -> None:
    """Compared with a search of every number of users.

    With dropouts the error of decoys rises by up to a third before it falls again.
    """
    request = PlanRequest(**{"users": 300, "items": 4, "epsilon": 1.0, "delta": 1e-6, **known})
    assert_smallest(name, request, target, 450)


@pytest.mark.parametrize(("epsilon", "dropout", "target"), [(2.0, 0.25, 0.096), (1.0, 0.5, 0.123)])
def test_users_needed_of_decoys_where_bisection_was_wrong(
    epsilon: float, dropout: float, target: float
) -> None:
    """A binary search said 69 where 55 were enough, and 89 where 90 were not."""
    request = PlanRequest(200, 12, epsilon, 0.01, dropout=dropout)
    assert_smallest("decoys", request, target, 140)
    found = users_needed(frequency_mechanisms()["decoys"], request, target)
    widths = [
        half_width(frequency_mechanisms()["decoys"], request, n) or 1.0
        for n in range(found or 0, 140)
    ]
    assert (
        widths[0] <= target < max(widths)
    )  # the smallest number that is enough, and not: from here on all are


def test_more_users_are_not_always_enough_and_bisection_would_be_misled() -> None:
    kind = frequency_mechanisms()["decoys"]
    request = PlanRequest(300, 4, 1.0, 1e-3, dropout=0.35)
    enough = [(half_width(kind, request, n) or 1) <= 0.11 for n in range(2, 450)]
    assert enough != sorted(enough)


def test_users_needed_above_a_thousand_has_three_digits_and_is_enough() -> None:
    kind = frequency_mechanisms()["oue"]
    request = PlanRequest(800, 12, 1.0, 1e-6, dropout=0.1)
    found = users_needed(kind, request, 0.02)
    assert found is not None
    assert found > 1000
    assert found % 100 == 0
    assert (
        (half_width(kind, request, found) or 1)
        <= 0.02
        < (half_width(kind, request, found - 100) or 0)
    )


def test_a_target_that_is_never_reached_has_no_number() -> None:
    assert (
        users_needed(frequency_mechanisms()["grr"], PlanRequest(2 * 10**8, 2, 0.1, 1e-6), 1e-6)
        is None
    )
    assert (
        users_needed(
            frequency_mechanisms()["dpds"],
            PlanRequest(800, 12, 1.0, 1e-6, floor=60, dropout=0.1),
            0.02,
        )
        is None
    )


def test_curves_fall_with_the_users_and_have_gaps_where_refused() -> None:
    found = curves(PlanRequest(800, 12, 1.0, 1e-6, floor=40), [100, 1000, 10_000])
    assert found["dpds"][0] is None
    for values in found.values():
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=True)


@pytest.mark.slow
def test_hopeless_questions_are_told_so() -> None:
    made = compare_mechanisms(50, 300, 0.3, 1e-6)
    assert not made.worthwhile
    assert made.verdict.startswith("do not run this")
    assert compare_mechanisms(800, 12, 1.0, 1e-6).verdict.startswith("run laplace")


def test_an_epsilon_that_nobody_serves_is_a_refusal_and_not_a_crash() -> None:
    made = compare_mechanisms(800, 12, 1e-7, 1e-12)
    assert made.to_dict()["verdict"].startswith(
        "do not run this: no mechanism meets the budget; allow a larger"
    )


def test_a_plan_that_too_few_stay_for_names_the_smallest_dropout_that_serves() -> None:
    made = compare_mechanisms(800, 12, 1.0, 1e-6, loss=0.2, dropout=0.1)
    assert not made.worthwhile
    assert made.to_dict()["worthwhile"] is False
    assert "plan with --minimum 608" in made.verdict
    for dropout, enough in ((0.23, False), (0.24, True)):
        other = compare_mechanisms(800, 12, 1.0, 1e-6, loss=0.2, dropout=dropout)
        assert (other.completions[0].chance >= TARGET_COMPLETION) == other.worthwhile == enough
    assert dropout_needed(PlanRequest(3, 2, 1.0, 1e-6), 0.9) is None
    assert "ask more users" in compare_mechanisms(40, 2, 8.0, 1e-6, loss=0.99).verdict


def test_a_plan_prints_short_and_readably() -> None:
    made = compare_mechanisms(800, 12, 1.0, 1e-6)
    lines = str(made).splitlines()
    assert lines[0] == "800 users, 12 items, epsilon 1, delta 1e-06"
    assert lines[1] == made.verdict
    assert lines[2] == "  laplace            95% error ±0.70%, standard error 0.34%"
    assert "  decoys in servers  95% error  ±3.3%, standard error  1.7%" in lines
    assert "dpds" not in str(made)
    assert len(repr(made)) < 250
    assert "note: an epsilon of 20" in str(compare_mechanisms(800, 12, 20.0, 1e-6))


@pytest.mark.parametrize(
    ("invited", "rate", "expected"),
    [(2000, 0.4, 800), (100, 0.29, 29), (999, 0.5, 499), (800, 1.0, 800)],
)
def test_a_response_rate_plans_for_those_who_answer(
    invited: int, rate: float, expected: int
) -> None:
    """Rounded down, and not put off by floating point.

    Everything else is as if only they had been asked.
    """
    made = compare_mechanisms(invited, 4, 1.0, 1e-6, response_rate=rate)
    alone = compare_mechanisms(expected, 4, 1.0, 1e-6)
    assert made.options == alone.options
    said = made.to_dict()
    assert (said["invited"], said["users"]) == (invited, expected)
    assert alone.to_dict() == said | {"invited": expected}
    assert str(made).startswith(f"{expected} users who answer, of {invited:,} invited, 4 items")


def test_a_recommendation_that_servers_run_otherwise_says_so() -> None:
    made = compare_mechanisms(800, 12, 1.0, 1e-6, releases=12)
    assert made.recommended is option_named(made, "decoys")
    assert made.verdict.endswith(
        "; this is with topology masked, and in servers its standard error is 2.9%"
    )


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"response_rate": 0.0}, "share of the invited users who answer"),
        ({"response_rate": 1.1}, "share of the invited users who answer"),
        ({"response_rate": 0.001}, "users must be at least 1"),
        ({"users": 0}, "users must be at least 1"),
        ({"users": 1}, "too few"),
        ({"items": 1}, "items must be at least 2"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": math.inf}, "finite"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"floor": -1}, "floor"),
        ({"releases": 0}, "releases"),
        ({"dropout": 1.0}, "share of the users"),
        ({"colluding": 0.6, "dropout": 0.5}, "too few"),
        ({"target_error": 0.0}, "target error"),
    ],
    ids=str,
)
def test_bad_questions_are_refused_in_words(known: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        compare_mechanisms(**({"users": 800, "items": 12, "epsilon": 1.0, "delta": 1e-6} | known))


@settings(max_examples=15)
@given(
    users=st.integers(2, 5000),
    items=st.integers(2, 40),
    epsilon=st.floats(0.05, 8),
    floor=st.integers(0, 50),
    dropout=st.floats(0, 0.4),
    colluding=st.floats(0, 0.4),
)
def test_any_question_gets_an_answer_or_a_plain_refusal(
    users: int, items: int, epsilon: float, floor: int, dropout: float, colluding: float
) -> None:
    try:
        made = compare_mechanisms(
            users, items, epsilon, 1e-6, floor=floor, dropout=dropout, colluding=colluding
        )
    except FaircountError:
        return
    for option in made.options:
        assert option.sound == (option.standard_error is not None)
        assert not option.sound or (option.delta <= 1e-6 * (1 + 1e-9) and option.half_width_95 >= 0)


def test_percentages_have_two_digits() -> None:
    assert [format_percent(share) for share in (0.0035, 0.02, 0.137, 1.66, 2.8e-6, 0.0, 1e-20)] == [
        "0.35%", "2.0%", "14%", "166%", "0.00028%", "0%", "below 0.0001%",
    ]  # fmt: skip
    assert format_percent(0.02, "±") == "±2.0%"
    assert format_percent(1e-20, "±") == "below ±0.0001%"


def test_bytes_are_those_of_the_encoded_messages() -> None:
    laplace = fc.Laplace(items=12, users=800, epsilon=1.0)
    assert cost(laplace).bytes_sent == 237
    assert cost(laplace).visits == 1
    row = math.ceil(12 * (laplace.modulus - 1).bit_length() / 8)
    assert 799 * (row + 28) < paper_form_bytes(laplace) < 1.2 * 800 * (row + 28)
    assert paper_form_bytes(fc.Laplace(items=12, users=10**8, epsilon=1.0)) > 10**9
    assert cost(fc.OUE(items=12, users=800, epsilon=1.0)).bytes_sent == 2
    assert cost(fc.GRR(items=300, users=800, epsilon=1.0)).bytes_sent == 2
    assert "clear" in cost(fc.DPCS(items=12, users=800, p=0.1)).sees
    staged = cost(fc.TSSPrime(items=12, users=800, p=0.1, alpha=0.5, phi=1))
    assert (staged.topology, staged.visits) == ("two-stage", 4)
    assert staged.bytes_sent > 10_000


@pytest.mark.parametrize(
    "known",
    [
        {"users": 5, "items": 2, "epsilon": 0.05, "delta": 1e-10, "releases": 5},
        {"users": 800, "items": 12, "epsilon": 1.0, "delta": 1e-6, "releases": 12, "floor": 60},
        {"users": 800, "items": 12, "epsilon": 1.0, "delta": 1e-40},
    ],
    ids=str,
)
def test_nothing_sound_spends_more_than_the_budget(known: dict[str, Any]) -> None:
    for option in compare_mechanisms(**known).options:
        assert not option.sound or option.delta <= known["delta"], option.name
    if known["delta"] == 1e-40:  # smaller than what Laplace's table costs
        assert (
            "cannot be brought below"
            in next(o for o in compare_mechanisms(**known).options if o.name == "laplace").reason
        )


@pytest.mark.parametrize(
    ("delta", "cautioned"), [(1e-6, False), (1e-3, False), (0.3, True), (0.9, True)]
)
def test_a_large_delta_gets_a_caution_like_a_large_epsilon(delta: float, cautioned: bool) -> None:
    made = compare_mechanisms(800, 12, 1.0, delta)
    assert (
        any(note.startswith(f"a delta of {delta:g} is large") for note in made.notes) == cautioned
    )
    assert bool(made.to_dict()["notes"]) == cautioned
    assert len(compare_mechanisms(800, 12, 20.0, 0.3).notes) == 2


def test_close_errors_are_compared_in_percent() -> None:
    made = compare_mechanisms(800, 12, 1.0, 1e-6)
    best, second = [option for option in made.options if not option.proven][:2]
    for factor, words in (
        (1.02, "2% below"),
        (1.4, "29% below"),
        (3.2, "less than a third of that of"),
    ):
        closer = replace(second, standard_error=factor * (best.standard_error or 0.0))
        verdict = Plan(made.request, (best, closer)).verdict
        assert words in verdict


@pytest.mark.parametrize("name", ["laplace", "decoys", "dpdg", "oue"])
@pytest.mark.parametrize("users", [40, 60, 97])
def test_an_error_that_is_reached_exactly_needs_nobody_more(name: str, users: int) -> None:
    """6 of 40 users are 15%, but as floats a little more: 41 were asked for."""
    kind = frequency_mechanisms()[name]
    request = PlanRequest(5000, 2, 1.0, 1e-6)
    reached = half_width(kind, request, users)
    assert reached is not None
    needed = users_needed(kind, request, reached * (1 - 1e-15))
    assert needed is not None
    assert needed <= users


def test_a_target_that_is_not_met_is_in_the_verdict_with_the_users_it_takes() -> None:
    missed = compare_mechanisms(100, 4, 1.0, 1e-6, target_error=0.001)
    best = missed.recommended
    assert best is not None
    assert best.users_needed is not None
    needed = f"{best.users_needed:,}"
    assert f"the target error of ±0.10% is not met: it takes {needed} users" in missed.verdict
    assert f"users needed {needed}" in str(missed)
    assert f">{needed}<" in missed._repr_html_()
    met = compare_mechanisms(800, 12, 1.0, 1e-6, target_error=0.02)
    assert met.verdict.endswith("; the target error of ±2.0% is met")
    survey = fc.plan(800, 12, 1.0, target_error=0.02)
    assert survey.verdict.endswith("; the target error of ±2.0% is met with 760 responses")
    assert "target" not in compare_mechanisms(800, 12, 1.0, 1e-6).verdict
    assert "users needed" not in str(compare_mechanisms(800, 12, 1.0, 1e-6))


def test_items_may_be_given_themselves() -> None:
    assert compare_mechanisms(users=800, items=["a", "b", "c"], epsilon=1.0) == compare_mechanisms(
        800, 3, 1.0
    )
    with pytest.raises(ParameterError, match="distinct"):
        compare_mechanisms(users=800, items=["a", "a"], epsilon=1.0)


def test_unknown_arguments_are_named_with_their_equivalent() -> None:
    with pytest.raises(ParameterError, match=r"plan has no eps \(use epsilon\)"):
        fc.plan(800, 12, eps=1.0)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=r'plan has no dropout \(use minimum="95%"\)'):
        fc.plan(800, 12, 1.0, dropout=0.1)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=r"'epsilon'; call it as in fc\.plan\(users=800"):
        fc.plan(800, 12)  # type: ignore[call-arg]

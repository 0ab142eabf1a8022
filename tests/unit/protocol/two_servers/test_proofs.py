"""The proof itself: exhaustive counts in tiny fields, and known answers in larger ones."""

import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.questions import AnyOf, Constraint, MostOf, Number, OneOf, Questionnaire, YesNo
from faircount.estimation.validity import FAILURE_BITS
from faircount.mechanisms.proven import one_vote
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol.topologies.two_servers.proofs import (
    ReportLayout,
    prove,
    query_at,
    query_point,
    report_layout,
)
from faircount.protocol.topologies.two_servers.reports import (
    ELEMENTS_AT_ONCE,
    report_layout_of,
    row_blocks,
)
from faircount.sharing.additive import split
from faircount.sharing.expand import expand
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import packed_size
from faircount.sharing.products import matrix_product

KNOWN = json.loads((Path(__file__).parents[4] / "test_vectors" / "validity.json").read_bytes())[
    "cases"
]


def votes_layout(q, items, coins, degree):
    return ReportLayout(q, items, coins, one_vote(items), degree)


def sheet_layout(q, degree, *questions):
    form = Questionnaire(questions)
    form.check_modulus(q)
    return ReportLayout(q, form.bits, 0, form.constraints, degree)


TINY = [
    votes_layout(2, 1, 0, 2), votes_layout(2, 1, 1, 2), votes_layout(2, 2, 0, 3), votes_layout(3, 1, 0, 2),
    votes_layout(3, 2, 0, 2), votes_layout(3, 2, 1, 2), votes_layout(3, 3, 0, 3), votes_layout(5, 2, 0, 2),
    votes_layout(5, 3, 2, 2), votes_layout(7, 2, 1, 2),
    # Sheets: without a constraint, with two of them, with slack, and with negative weights.
    sheet_layout(3, 2, YesNo(text="a"), YesNo(text="b")),
    sheet_layout(5, 2, AnyOf(text="a", items=("x", "y"))),
    sheet_layout(5, 2, MostOf(text="a", items=("x", "y", "z"), most=1)),
    sheet_layout(5, 2, YesNo(text="a"), OneOf(text="b", items=("x", "y", "z"))),
    sheet_layout(5, 2, Number(text="a", low=Fraction(0), high=Fraction(1), skip=True)),
    sheet_layout(5, 2, Number(text="a", low=Fraction(0), high=Fraction(3))),
]  # fmt: skip
"""With q = M, q = 2, N = 1 and k = 3 among them."""


def every(q, count):
    return np.array(list(itertools.product(range(q), repeat=count)), dtype=np.uint8).reshape(
        -1, count
    )


def valid_bits(layout):
    return [bits for bits in every(2, layout.bits) if is_valid(layout, bits)]


def is_valid(layout, bits):
    numbers = [int(bit) for bit in bits]
    return max(numbers) <= 1 and all(rule.is_met(numbers) for rule in layout.constraints)


def points(layout):
    return [r for r in itertools.product(range(layout.q), repeat=layout.degree) if any(r[1:])]


def check_rows(layout, r, rows):
    query = query_at(layout, r)
    answers = query.verifier_shares(rows)
    return query.accepts(answers, np.zeros_like(answers))


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: f"q{case['q']}")
def test_known_answers(case):
    layout = votes_layout(case["q"], case["N"], case["m"], case["k"])
    pairs = zip(case["bits"], case["s"], strict=True)
    rows = np.array(
        [prove(layout, np.array(bits, np.uint64), np.array(s, np.uint64)) for bits, s in pairs]
    )
    query = query_at(layout, tuple(case["r"]))
    k = layout.degree
    answers = query.verifier_shares(rows)
    assert list(layout.field.modulus) == case["modulus"]
    assert rows[:, layout.bits + k :].tolist() == case["h"]
    assert answers[:, :k].tolist() == case["f_at_r"]
    assert answers[:, k : 2 * k].tolist() == case["h_at_r"]
    assert answers[:, -1].tolist() == case["answer_sum"]
    assert query.vanishing[0].tolist() == case["Z_at_r"]
    assert check_rows(layout, tuple(case["r"]), rows).all()


@pytest.mark.parametrize("layout", TINY, ids=str)
def test_every_valid_report_is_accepted_at_every_point(layout):
    pairs = itertools.product(valid_bits(layout), every(layout.q, layout.degree))
    rows = np.array([prove(layout, bits, s) for bits, s in pairs])
    assert all(check_rows(layout, r, rows).all() for r in points(layout))


def test_shares_of_a_valid_report_are_accepted_and_shifted_ones_are_not():
    layout = report_layout(1153, 30, 5, one_vote(30), 1000)
    bits = np.zeros(35, np.uint64)
    bits[[7, 31, 34]] = 1
    row = prove(layout, bits, expand(b"\1" * 32, layout.q, layout.degree))
    first, second = split(row, 2, layout.q, SystemEntropy())
    query = query_at(layout, query_point(layout, b"\2" * 32))
    assert query.accepts(
        query.verifier_shares(first[None]), query.verifier_shares(second[None])
    ).tolist() == [True]
    other = query.verifier_shares(second[None])
    # A shift of any element of a verifier share makes the report invalid.
    for at in range(layout.verifier_size):
        shifted = other.copy()
        shifted[0, at] = (int(other[0, at]) + 1) % layout.q
        assert not query.accepts(query.verifier_shares(first[None]), shifted).any()


# --- soundness ------------------------------------------------------------------------------------


def test_no_invalid_report_passes_at_more_points_than_the_bound():
    """Exhaustive: all 5^9 rows (w, s, h) at q = 5, N = 2, k = 2; at most 6 of the 20 points accept.

    (w, s) and h are enumerated separately, since verifier shares are linear: a pair is accepted
    where both sides are equal.
    """
    layout = votes_layout(5, 2, 0, 2)
    bound = 6
    pairs = itertools.product(every(5, 2), every(5, 2))
    left = np.array([[*w, *s, *[0] * 5] for w, s in pairs], np.uint8)
    right = np.array([[*[0] * 4, *h] for h in every(5, 5)], np.uint8)
    counts = np.zeros((len(left), len(right)), np.uint8)
    rng = np.random.default_rng(1)
    for r in points(layout):
        query = query_at(layout, r)
        weights = np.array([1, 5], np.uint64)
        first = query.verifier_shares(left)
        second = query.verifier_shares(right)
        f = first[:, :2].astype(np.uint64)
        product = (
            layout.field.multiply(f, (f + np.array([4, 0], np.uint64)) % np.uint64(5)) @ weights
        )
        wanted = matrix_product(second[:, 2:4], query.vanishing, 5) @ weights
        accepted = (product[:, None] == wanted[None]) & (first[:, 4] == 1)[:, None]
        counts += accepted
        some = rng.integers(0, len(left), 3000), rng.integers(0, len(right), 3000)
        assert (query.accepts(first[some[0]], second[some[1]]) == accepted[some]).all()
    valid = np.array([is_valid(layout, row[:2]) for row in left])
    assert counts[~valid].max() == bound
    # With the right h it is accepted at every point.
    assert (counts[valid] == 20).any(axis=1).all()


SHEETS = [layout for layout in TINY if layout.constraints != one_vote(layout.answer_bits)]


@pytest.mark.parametrize("layout", [*SHEETS, votes_layout(5, 3, 1, 2)], ids=str)
def test_exactly_the_valid_sheets_pass(layout):
    """Every pattern of bits, every blind, every point."""
    for bits in every(2, layout.bits):
        rows = np.array([prove(layout, bits, s) for s in every(layout.q, layout.degree)])
        accepted = [check_rows(layout, r, rows) for r in points(layout)]
        assert np.all(accepted) if is_valid(layout, bits) else not np.any(accepted)


@pytest.mark.slow
def test_numbers_that_are_no_bits_pass_at_few_points_of_a_sheet():
    """All 5^4 values of the bits of two questions, each with the best proof for it."""
    layout = sheet_layout(5, 2, YesNo(text="a"), OneOf(text="b", items=("x", "y", "z")))
    bound = 2 * (layout.bits + layout.degree - 1)
    for values in every(5, layout.bits):
        if max(values) > 1:
            rows = np.array([prove(layout, values, s) for s in every(5, 2)])
            passed = sum(check_rows(layout, r, rows).astype(int) for r in points(layout))
            assert passed.max() <= bound


def test_planted_holes_in_constraints_let_false_sheets_pass():
    # Weights that wrap around: 2a + 3b + 4c = 2 has one solution in bits, modulo 7 another one.
    wrapping = Constraint(((0, 2), (1, 3), (2, 4)), 2)
    with pytest.raises(ParameterError, match="wrap around"):
        report_layout(7, 3, 0, (wrapping,), 2)
    planted = ReportLayout(7, 3, 0, (wrapping,), 2)
    passing = [
        tuple(bits.tolist())
        for bits in every(2, 3)
        if check_rows(planted, (0, 1), prove(planted, bits, np.zeros(2, np.uint8))[None])[0]
    ]
    assert passing == [(1, 0, 0), (1, 1, 1)]
    # Slack of 0 to 3 for "at most 2 of 3", with the public value 3: three items pass.
    loose = Constraint(((0, 1), (1, 1), (2, 1), (3, 1), (4, 2)), 3)
    planted = ReportLayout(7, 5, 0, (loose,), 2)
    three = prove(planted, np.array([1, 1, 1, 0, 0], np.uint8), np.zeros(2, np.uint8))
    assert check_rows(planted, (0, 1), three[None])[0]
    # Without the constraint two answers to a one-of question pass.
    planted = ReportLayout(5, 3, 0, (), 2)
    two = prove(planted, np.array([1, 1, 0], np.uint8), np.zeros(2, np.uint8))
    assert check_rows(planted, (0, 1), two[None])[0]


def test_the_degree_is_chosen_for_the_whole_survey():
    for q, items, coins, users in [(1153, 30, 5, 1000), (100_549, 30, 0, 100_000), (23, 3, 2, 8)]:
        layout = report_layout(q, items, coins, one_vote(items), users)
        failing = users * 2 * (layout.bits + layout.degree - 1) / (q**layout.degree - q)
        assert failing <= 2.0**-FAILURE_BITS


@pytest.mark.parametrize(
    ("users", "items", "size", "prio3", "part"),
    [
        (1000, 30, 120, 1040, 6),
        (1000, 300, 822, 6512, 6),
        (100_000, 30, 171, 1040, 5),
        (100_000, 300, 1296, 6512, 5),
    ],
)
def test_row_and_seed_are_a_small_part_of_prio3s_shares(users, items, size, prio3, part):
    """`prio3` is what benchmarks/validity.py measures for Prio3Histogram of the VDAF reference."""
    layout = report_layout_of(ServerLaplace(items=items, users=users, epsilon=1.0))
    assert packed_size(layout.q, layout.width) + SEED_BYTES == size <= prio3 / part


# --- zero knowledge -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", TINY, ids=str)
def test_verifier_shares_have_one_distribution_for_all_valid_reports(layout):
    """Exact: over all blinds f(r) takes every value of F_{q^k} once, whatever the bits are."""
    rows = {
        tuple(bits): np.array([prove(layout, bits, s) for s in every(layout.q, layout.degree)])
        for bits in valid_bits(layout)
    }
    for r in points(layout):
        query = query_at(layout, r)
        distributions = {
            bits: Counter(map(tuple, query.verifier_shares(made).tolist()))
            for bits, made in rows.items()
        }
        first = next(iter(distributions.values()))
        assert all(distribution == first for distribution in distributions.values())
        assert len({view[: layout.degree] for view in first}) == layout.q**layout.degree


def test_a_known_blind_is_noticed():
    """With a blind that the server knows (drawn from its seed) f(r) reveals the bits."""
    layout = votes_layout(5, 2, 0, 2)
    query = query_at(layout, (0, 1))
    known = {
        tuple(query.verifier_shares(prove(layout, bits, np.zeros(2, np.uint8))[None])[0])
        for bits in valid_bits(layout)
    }
    assert len(known) == len(valid_bits(layout))


def test_a_second_query_would_reveal_the_answer():
    """Two points together have another distribution for another response."""
    layout = votes_layout(3, 2, 0, 2)
    distributions = []
    for bits in valid_bits(layout):
        rows = np.array([prove(layout, bits, s) for s in every(3, 2)])
        both = np.hstack([query_at(layout, r).verifier_shares(rows) for r in ((0, 1), (1, 1))])
        distributions.append(Counter(map(tuple, both.tolist())))
    assert distributions[0] != distributions[1]


@pytest.mark.parametrize(
    "layout",
    [
        votes_layout(3, 2, 0, 2),
        sheet_layout(3, 2, YesNo(text="a"), YesNo(text="b")),
        sheet_layout(3, 2, OneOf(text="a", items=("x", "y", "z"))),
    ],
    ids=str,
)
def test_a_server_that_shifts_verifier_shares_learns_nothing(layout):
    """Exhaustive over all shifts: (f(r), accepted) has one distribution for all responses."""
    for r in points(layout):
        query = query_at(layout, r)
        answers = [
            query.verifier_shares(np.array([prove(layout, w, s) for s in every(3, 2)]))
            for w in valid_bits(layout)
        ]
        for shift in every(3, layout.verifier_size):
            distributions = []
            for mine in answers:
                accepted = query.accepts(mine, np.broadcast_to(shift, mine.shape))
                distributions.append(
                    Counter(zip(map(tuple, mine.tolist()), accepted.tolist(), strict=True))
                )
            assert all(distribution == distributions[0] for distribution in distributions)


# --- what is refused ------------------------------------------------------------------------------


def test_a_point_inside_the_field_of_shares_is_refused():
    layout = votes_layout(3, 2, 0, 2)
    with pytest.raises(ParameterError, match="outside the field"):
        query_at(layout, (2, 0))


def test_the_point_is_the_first_outside_the_field_of_shares():
    """If the first k elements lie in F_q, the next ones are tried; such keys are among the 64."""
    layout = votes_layout(2, 1, 0, 2)
    skipped = 0
    for number in range(64):
        key = number.to_bytes(32, "big")
        stream = expand(key, 2, 40).reshape(-1, 2).tolist()
        wanted = next(tuple(point) for point in stream if point[1])
        skipped += stream[0] != list(wanted)
        assert query_point(layout, key) == wanted
    assert skipped


def test_points_are_uniform_outside_the_field_of_shares():
    """Chi-square over the 6 points of F_9 outside F_3, for 6,000 keys.

    The false alarm rate is 1e-6 (5 degrees of freedom: 37.3).
    """
    layout = votes_layout(3, 2, 0, 2)
    drawn = Counter(query_point(layout, number.to_bytes(32, "big")) for number in range(6000))
    assert set(drawn) == set(points(layout))
    assert sum((count - 1000) ** 2 / 1000 for count in drawn.values()) < 37.3
    planted = (2000, 800, 800, 800, 800, 800)
    assert sum((count - 1000) ** 2 / 1000 for count in planted) > 37.3


def test_too_many_bits_are_refused_with_advice():
    with pytest.raises(ParameterError, match="fewer answers"):
        report_layout(100_003, 2601, 0, one_vote(2601), 1000)
    with pytest.raises(ParameterError, match="field of at least 35 elements"):
        report_layout(31, 30, 5, one_vote(30), 20)


@pytest.mark.parametrize(
    ("count", "width"), [(0, 74), (10, 74), (5000, 74), (300, 5213), (3, 10**6)]
)
def test_rows_come_in_blocks_of_bounded_size_and_each_once(count, width):
    rows = np.arange(count)
    found = [rows[block] for block in row_blocks(count, width)]
    assert list(itertools.chain.from_iterable(found)) == rows.tolist()
    assert all(len(block) * width <= max(width, ELEMENTS_AT_ONCE) for block in found)

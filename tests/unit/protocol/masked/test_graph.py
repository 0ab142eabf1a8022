"""The graph of neighbours: a ring that nobody chose, its degree, and what dropouts leave of it."""

import math
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from faircount.core.errors import ParameterError
from faircount.protocol.topologies.masked.aggregator import find_uncancelled
from faircount.protocol.topologies.masked.graph import (
    _log_below,
    check_degree,
    draw_graph,
    least_degree,
    plan_graph,
)

VALUE, DIGEST = sha256(b"value").digest(), sha256(b"roster").digest()


def ring(n: int, k: int):
    return draw_graph(VALUE, DIGEST, n, k)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (7, 4), (7, 6), (8, 7), (8, 20), (50, 6), (51, 12)])
def test_everybody_has_k_neighbours_and_is_theirs(n, k) -> None:
    graph = ring(n, k)
    assert graph.degree == min(k, n - 1)
    for i in range(n):
        near = graph.neighbours_of(i)
        assert near == sorted(set(near) - {i}) == graph.neighbours[i].tolist()
        assert len(near) == graph.degree
        assert all(
            graph.neighbours[j, at] == i for j, at in zip(near, graph.reverse_index[i], strict=True)
        )


def test_neighbours_stand_beside_each_other_on_the_ring() -> None:
    graph = ring(50, 6)
    for at, i in enumerate(graph.order):
        assert set(graph.neighbours_of(int(i))) == {
            int(graph.order[(at + step) % 50]) for step in (-3, -2, -1, 1, 2, 3)
        }


def test_known_order() -> None:
    """A known answer: ring order of ten, value SHA-256("value"), digest SHA-256("roster")."""
    assert ring(10, 4).key.hex()[:16] == "8fe52d03337497e1"
    assert ring(10, 4).order.tolist() == [8, 3, 4, 1, 7, 6, 0, 2, 9, 5]


def test_the_order_depends_on_value_and_roster_and_on_nothing_else() -> None:
    one = draw_graph(VALUE, DIGEST, 40, 4).order.tolist()
    assert one == draw_graph(VALUE, DIGEST, 40, 8).order.tolist()
    assert one != draw_graph(DIGEST, VALUE, 40, 4).order.tolist()
    assert one != draw_graph(VALUE, sha256(b"another roster").digest(), 40, 4).order.tolist()


def test_a_ring_needs_an_even_number_of_neighbours() -> None:
    with pytest.raises(ParameterError, match="even"):
        draw_graph(VALUE, DIGEST, 10, 3)


@pytest.mark.parametrize(
    ("n", "k", "t"), [(10, 3, 2), (10, 4, 5), (10, 4, 1), (10, 10, 2), (2, 1, 1)]
)
def test_degrees_that_no_survey_can_have(n, k, t) -> None:
    with pytest.raises(ParameterError):
        check_degree(n, k, t)


@pytest.mark.parametrize(("n", "k", "t"), [(10, 9, 9), (10, 4, 4), (3, 2, 2)])
def test_degrees_that_a_survey_can_have(n, k, t) -> None:
    check_degree(n, k, t)


@pytest.mark.parametrize(("n", "k"), [(10**4, 44), (10**5, 48), (10**6, 54)])
def test_degrees_of_the_design_page(n, k) -> None:
    assert least_degree(n, 0.05, 0.30) == k


@pytest.mark.parametrize(
    ("n", "k", "t"), [(100, 28, 6), (1000, 76, 25), (5000, 88, 29), (10**5, 102, 33)]
)
def test_degrees_and_thresholds_of_the_design_page(n, k, t) -> None:
    """2^-40 is for both ways to lose privacy together, half for each; colluders may not unmask."""
    assert plan_graph(n, 0.05, 0.30) == (k, t)


@pytest.mark.parametrize("n", [65, 100, 1000, 5000, 10**4])
def test_a_plan_keeps_what_it_says_and_nothing_smaller_does(n) -> None:
    k, t = plan_graph(n)
    bad, lost = -(-n * 5 // 100), -(-n * 30 // 100)  # rounded up: those users are not relied on

    def fails(k: int, t: int) -> tuple[float, float, float]:
        apart = (
            n
            * (n - k - 1)
            / 2
            * math.exp(sum(math.log((bad + lost - i) / (n - i)) for i in range(k)))
        )
        return (
            apart,
            n * hypergeom.sf(t - 1, n - 1, bad, k),
            n * hypergeom.cdf(t - 1, n - 1, n - 1 - lost - bad, k),
        )

    def holds(k: int, t: int) -> bool:
        apart, exposed, gone = fails(k, t)
        return apart <= 2**-41 and exposed <= 2**-41 and gone <= 2**-20

    assert holds(k, t) or k > bad + lost
    assert not any(holds(k - 2, t) for t in range(2, k - 1))


@pytest.mark.parametrize("n", [6, 10, 64])
def test_small_groups_are_complete(n) -> None:
    k, t = plan_graph(n)
    assert k == n - 1
    assert t == max(2, -(-n * 5 // 100) + 1)


def test_more_colluders_or_dropouts_need_more_neighbours() -> None:
    assert (
        plan_graph(5000, 0.01, 0.1)[0]
        < plan_graph(5000, 0.05, 0.1)[0]
        < plan_graph(5000, 0.05, 0.3)[0]
    )


@pytest.mark.parametrize(
    ("n", "colluding", "dropout"),
    [(2, 0.0, 0.0), (3, 0.05, 0.3), (5, 0.05, 0.3), (20, 0.5, 0.6), (20, 1.0, 0.0), (20, -0.1, 0)],
)
def test_plans_that_cannot_be(n, colluding, dropout) -> None:
    with pytest.raises(ParameterError):
        plan_graph(n, colluding, dropout)


def test_tails_are_those_of_drawing_without_replacement() -> None:
    for population, marked, drawn in ((99, 70, 26), (9999, 7000, 80), (20, 20, 5), (20, 0, 5)):
        for least in range(drawn + 2):
            exact = hypergeom.logcdf(least - 1, population, marked, drawn)
            assert _log_below(population, marked, drawn, least) == pytest.approx(
                exact, rel=1e-6, abs=1e-9
            )


def test_the_bound_is_above_the_exact_chance_of_falling_apart() -> None:
    """All ways to lose 5 of 11 members on a ring, and what the bound says about them."""
    n = 11
    k = 4
    lost = 5
    graph = ring(n, k)
    ways = list(combinations(range(n), lost))
    apart = sum(not graph.is_connected(~graph.marks(gone)) for gone in ways) / len(ways)
    bound = n * (n - k - 1) / 2 * math.comb(n - k, lost - k) / math.comb(n, lost)
    assert 0 < apart <= bound


lives = st.lists(st.booleans(), min_size=14, max_size=14).map(
    lambda marks: np.array(marks, dtype=bool)
)


def parts(graph, alive) -> list[set[int]]:
    """Connected parts, the slow way."""
    left, found = set(np.flatnonzero(alive).tolist()), []
    while left:
        part, new = set(), {min(left)}
        while new:
            part |= new
            new = {j for i in new for j in graph.neighbours_of(i)} & left - part
        found.append(part)
        left -= part
    return found


@given(alive=lives, k=st.sampled_from((2, 4, 12, 13)))
def test_the_largest_part_is_the_largest(alive, k) -> None:
    graph = ring(14, k)
    found = parts(graph, alive)
    largest = set(np.flatnonzero(graph.largest_component(alive)).tolist())
    assert len(largest) == max(map(len, found), default=0)
    assert largest == next((part for part in found if len(part) == len(largest)), set())
    assert graph.is_connected(alive) == (len(found) == 1)


@given(alive=lives, least=st.integers(0, 4))
def test_settled_users_have_enough_neighbours_and_hang_together(alive, least) -> None:
    graph = ring(14, 4)
    inside = graph.stable_component(alive, least)
    assert not (inside & ~alive).any()
    assert (graph.count_neighbours(inside)[inside] >= least).all()
    assert not inside.any() or graph.is_connected(inside)


@given(alive=lives, k=st.sampled_from((2, 4, 12, 13)))
def test_counts_of_neighbours(alive, k) -> None:
    graph, members = ring(14, k), set(np.flatnonzero(alive).tolist())
    assert graph.count_neighbours(alive).tolist() == [
        len(members & set(graph.neighbours_of(i))) for i in range(14)
    ]
    assert graph.marks(sorted(members)).tolist() == alive.tolist()


def completes(graph, t: int, rng) -> bool:
    """The coordinator's decisions when every visit is missed with probability 5%, independently."""

    def here():
        return rng.random(graph.n) >= 0.05

    inside = graph.stable_component(here(), t)
    included = graph.largest_component(inside & here())
    gone = find_uncancelled(graph, inside, included)
    enough = [
        (graph.count_neighbours(holders)[gone] >= t).all()
        for holders in (included, included & here())
    ]
    return bool(all(enough) and 2 * included.sum() >= graph.n)


@pytest.mark.parametrize("n", [100, 1000, 5000])
def test_surveys_complete_with_5_percent_loss_at_every_visit(n) -> None:
    """The plan promises 1 - 2^-20 at far greater losses, so no run may fail."""
    (k, t), rng = plan_graph(n), np.random.default_rng(n)
    graph = ring(n, k)
    assert all(completes(graph, t, rng) for _ in range(100))
    assert not any(completes(graph, k, rng) for _ in range(10))  # without slack nobody would


@pytest.mark.slow
def test_many_colluding_users_need_many_neighbours_or_are_refused() -> None:
    n = 10**6
    bad = 300_000
    missing = 600_000
    k, t = plan_graph(n, 0.3, 0.3)
    assert hypergeom.sf(t - 1, n - 1, bad, k) * n <= 2.0**-41
    assert hypergeom.cdf(t - 1, n - 1, n - 1 - missing, k) * n <= 2.0**-20
    with pytest.raises(ParameterError, match="at most 10,000 neighbours"):
        plan_graph(n, 0.4, 0.3)

"""Table I: every corrected formula is what running code counts."""

import json

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime
from faircount.reproduction.costs import counters
from faircount.reproduction.costs.formulas import CELLS, Cell, Size
from faircount.reproduction.costs.table import CostTable, count_costs


@pytest.fixture(scope="module")
def table() -> CostTable:
    return count_costs(24, 6, alpha=0.5, gamma=4.0, runs=200, entropy=SeededStream(8))


def find_cell(protocol: str, counter: str) -> Cell:
    return next(cell for cell in CELLS[protocol] if cell.counter == counter)


def paper_value(protocol: str, counter: str, size: Size) -> float:
    formula = find_cell(protocol, counter).paper
    assert formula is not None
    return formula(size)


@pytest.mark.parametrize("protocol", ["dpds", "seeded", "servers"])
@pytest.mark.parametrize(("users", "items", "alpha"), [(2, 2, 0.5), (7, 3, 1 / 3), (24, 6, 0.5)])
def test_costs_that_are_not_random_are_counted_exactly(
    protocol: str, users: int, items: int, alpha: float
) -> None:
    table = count_costs(users, items, alpha=alpha, runs=1, entropy=SeededStream(8))
    counted = table.counted[protocol]
    for cell in CELLS[protocol]:
        assert counted.get(cell.counter, 0.0) == cell.ours(table.size), cell.counter
    # Additions are also counted by role, which only the list of TSS' shows.
    unlisted = set(counted) - {cell.counter for cell in CELLS[protocol]}
    assert unlisted <= {"user: field additions as reporter", "user: field additions as helper"}


def test_two_stage_costs_are_counted_as_corrected(table: CostTable) -> None:
    """Averages of 200 surveys; the spread from survey to survey is a few percent."""
    for cell in CELLS["tss"]:
        counted = table.counted["tss"].get(cell.counter, 0.0)
        assert counted == pytest.approx(cell.ours(table.size), rel=0.01), cell.counter


def test_what_tss_prime_adds_is_counted_as_corrected() -> None:
    """Averages of 200 surveys, compared at five standard errors of 3%."""
    table = count_costs(24, 6, alpha=0.5, phi=13, runs=200, entropy=SeededStream(8))
    counted = table.counted["tss_prime"]
    for cell in CELLS["tss_prime"]:
        assert counted[cell.counter] == pytest.approx(cell.ours(table.size), rel=0.15), cell.counter
    # The paper counts more additions for a helper than there are shares to add.
    counter = "user: field additions as helper"
    assert paper_value("tss_prime", counter, table.size) > 1.2 * counted[counter]


def test_helpers_beyond_the_reporters_are_exactly_those_missing() -> None:
    """One survey, item by item: phi + 1 - m_j more helpers, each of whom adds up m_j shares."""
    prime = TSSPrime(items=4, users=12, p=0.5, alpha=0.5, phi=8)
    responses = prime.respond(np.arange(12) % 4, SeededStream(3))
    m = responses.indicators.sum(axis=0)
    missing = np.maximum(0, 9 - m)
    assert missing.any()

    def count(phi: int) -> dict[str, float]:
        rng = np.random.default_rng(5)
        return counters.count_two_stage(prime, responses, phi, SeededStream(4), rng)

    plain = count(0)
    added = {name: amount - plain[name] for name, amount in count(8).items()}
    assert added["S1: helpers drawn"] == missing.sum()
    assert added["S2: field additions"] == missing.sum()
    reporters = (m * missing).sum() / 12
    helpers = ((m - 1) * missing).sum() / 12
    assert added["user: field additions as reporter"] == pytest.approx(reporters)
    assert added["user: field additions as helper"] == pytest.approx(helpers)
    assert added["S1: numbers of reporters sent"] == 13 * 4
    # More helpers need no more rounds.
    assert added["user: rounds"] == 0
    assert added["S1: rounds"] == 0


def test_rounds_and_zero_cells_of_the_table(table: CostTable) -> None:
    dpds = table.counted["dpds"]
    tss = table.counted["tss"]
    assert dpds["user: rounds"] == 2
    assert tss["user: rounds"] == 3
    assert tss["S1: rounds"] == 1
    # The server of DPDS and S2 only receive.
    assert "server: rounds" not in dpds
    assert "S2: rounds" not in tss
    zeros = {name: [cell.counter for cell in CELLS[name] if cell.printed == "0"] for name in CELLS}
    assert zeros["dpds"] == ["server: field elements sent"]
    assert zeros["tss"] == ["S2: field elements sent"]


def test_the_papers_formulas_are_off_where_corrected(table: CostTable) -> None:
    sent = "user: field elements sent"
    assert paper_value("dpds", sent, table.size) == (2 * 24 + 1) * 6
    # To n - 1 other users and to the server.
    assert table.counted["dpds"][sent] == 24 * 6
    drawn = "user: field elements drawn"
    assert paper_value("tss", drawn, table.size) > 1.3 * table.counted["tss"][drawn]


def test_uniform_sets_have_the_closed_form() -> None:
    size = count_costs(24, 6, alpha=0.5, runs=1).size
    assert size.pairs == pytest.approx(24 * 23 * 0.25)


def test_two_servers_need_the_fewest_bytes(table: CostTable) -> None:
    # With 6 elements of 5 bits a row is shorter than a 16-byte seed, so seeds do not pay off.
    assert table.bytes_sent("servers") == 6 * 5 / 8 + 16
    assert table.bytes_sent("dpds") == 24 * 6 * 5 / 8
    assert table.bytes_sent("servers") < table.bytes_sent("dpds") < table.bytes_sent("seeded")


def test_json_has_formulas_and_counts(table: CostTable) -> None:
    values = json.loads(json.dumps(table.to_dict()))
    assert set(values["protocols"]) == {"dpds", "tss", "tss_prime", "seeded", "servers"}
    row = values["protocols"]["dpds"][5]
    assert row["printed"] == "2nN+N"
    assert (row["printed_value"], row["corrected_value"], row["counted"]) == (294, 144, 144)


def test_too_large_and_too_small_are_refused() -> None:
    with pytest.raises(ParameterError, match="ask for fewer users"):
        count_costs(10_000, 10)
    with pytest.raises(ParameterError, match="users must be at least 2"):
        count_costs(1, 10)
    with pytest.raises(ParameterError, match="whole number of items"):
        count_costs(10, 7, alpha=0.4)
    # The default fits any number of items.
    assert count_costs(10, 7, runs=1).size.alpha == 3 / 7


def test_a_protocol_that_opens_another_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted error: S2 expands to other shares than the users did."""
    expand = counters.Tally.expand

    def wrong(tally: counters.Tally, party: str, seed: bytes, q: int, count: int) -> object:
        other = seed[::-1] if party == counters.S2 else seed
        return expand(tally, party, other, q, count)

    monkeypatch.setattr(counters.Tally, "expand", wrong)
    with pytest.raises(CorruptSumError):
        counters.count_two_servers(DPDS(items=3, users=5, p=0.5), np.arange(5) % 3, SeededStream(1))

"""Table I: every corrected formula is what running code counts."""

import json

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError
from faircount.experiments import cost_counters
from faircount.experiments.costs import CELLS, CostTable, Size, costs
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime


@pytest.fixture(scope="module")
def table() -> CostTable:
    return costs(24, 6, alpha=0.5, gamma=4.0, runs=200, entropy=SeededStream(8))


@pytest.mark.parametrize("protocol", ["dpds", "seeded", "servers"])
@pytest.mark.parametrize("size", [(2, 2), (7, 3), (24, 6)])
def test_what_does_not_depend_on_chance_is_counted_exactly(protocol: str, size: tuple[int, int]) -> None:
    made = costs(*size, alpha={2: 0.5, 3: 1 / 3, 6: 0.5}[size[1]], runs=1, entropy=SeededStream(8))
    counted = made.counted[protocol]
    expected = {cell.counter: cell.ours(made.size) for cell in CELLS[protocol]}
    assert {name: counted.get(name, 0.0) for name in expected} == expected
    unlisted = {name for name in counted if name not in expected}
    assert unlisted <= {"user: field additions as reporter", "user: field additions as helper"}


def test_two_stage_costs_are_counted_as_corrected(table: CostTable) -> None:
    """Averages of 200 surveys; the spread from survey to survey is a few percent."""
    for cell in CELLS["tss"]:
        assert table.counted["tss"].get(cell.counter, 0.0) == pytest.approx(cell.ours(table.size), rel=0.01), (
            cell.counter
        )


def test_what_more_helpers_cost_is_counted_as_corrected() -> None:
    """TSS' beyond TSS; averages of 200 surveys, compared at five standard errors (3% each)."""
    made = costs(24, 6, alpha=0.5, phi=13, runs=200, entropy=SeededStream(8))
    for cell in CELLS["tss_prime"]:
        assert made.counted["tss_prime"][cell.counter] == pytest.approx(cell.ours(made.size), rel=0.15), cell.counter
    helper = next(cell for cell in CELLS["tss_prime"] if cell.counter == "user: field additions as helper")
    assert helper.paper is not None
    assert helper.paper(made.size) > 1.2 * made.counted["tss_prime"][helper.counter]


def test_helpers_beyond_the_reporters_are_exactly_those_missing() -> None:
    """One survey, item by item: phi + 1 - m_j more helpers, each of whom adds up m_j shares."""
    prime = TSSPrime(items=4, users=12, p=0.5, alpha=0.5, phi=8)
    responses = prime.respond(np.arange(12) % 4, SeededStream(3))
    m = responses.indicators.sum(axis=0)
    missing = np.maximum(0, 9 - m)
    assert missing.any()
    more, plain = (
        cost_counters._two_stage(prime, responses, phi, SeededStream(4), np.random.default_rng(5)) for phi in (8, 0)
    )
    added = {name: more[name] - plain[name] for name in more}
    assert added["S1: helpers drawn"] == added["S2: field additions"] == missing.sum()
    assert added["user: field additions as reporter"] == pytest.approx((m * missing).sum() / 12)
    assert added["user: field additions as helper"] == pytest.approx(((m - 1) * missing).sum() / 12)
    assert added["S1: numbers of reporters sent"] == 13 * 4
    assert added["user: rounds"] == added["S1: rounds"] == 0


def test_rounds_and_zero_cells_of_the_table(table: CostTable) -> None:
    assert table.counted["dpds"]["user: rounds"] == 2
    assert (table.counted["tss"]["user: rounds"], table.counted["tss"]["S1: rounds"]) == (3, 1)
    assert "server: rounds" not in table.counted["dpds"]
    assert "S2: rounds" not in table.counted["tss"]
    zeros = {name: [cell.counter for cell in cells if cell.printed == "0"] for name, cells in CELLS.items()}
    assert zeros["dpds"] == ["server: field elements sent"]
    assert zeros["tss"] == ["S2: field elements sent"]


def test_the_papers_formulas_are_off_where_corrected(table: CostTable) -> None:
    cell = next(cell for cell in CELLS["dpds"] if cell.counter == "user: field elements sent")
    assert cell.paper is not None
    assert cell.paper(table.size) == (2 * 24 + 1) * 6
    assert table.counted["dpds"][cell.counter] == 24 * 6
    drawn = next(cell for cell in CELLS["tss"] if cell.counter == "user: field elements drawn")
    assert drawn.paper is not None
    assert drawn.paper(table.size) > 1.3 * table.counted["tss"][drawn.counter]


def test_uniform_sets_have_the_closed_form() -> None:
    size = costs(24, 6, alpha=0.5, runs=1).size
    assert size.pairs == pytest.approx(24 * 23 * 0.25)
    assert isinstance(size, Size)


def test_bytes_favour_two_servers(table: CostTable) -> None:
    sent = {name: table.bytes_sent(name) for name in CELLS if name != "tss_prime"}
    assert sent["servers"] < sent["dpds"] < sent["seeded"]  # a row of 6 elements is shorter than a seed
    assert sent["servers"] == 6 * 5 / 8 + 16
    assert sent["dpds"] == 24 * 6 * 5 / 8


def test_json_has_formulas_and_counts(table: CostTable) -> None:
    said = json.loads(json.dumps(table.to_dict()))
    assert set(said["protocols"]) == {"dpds", "tss", "tss_prime", "seeded", "servers"}
    row = said["protocols"]["dpds"][5]
    assert row["printed"] == "2nN+N"
    assert (row["printed_value"], row["corrected_value"], row["counted"]) == (294, 144, 144)


def test_too_large_and_too_small_are_refused() -> None:
    with pytest.raises(ParameterError, match="ask for fewer users"):
        costs(10_000, 10)
    with pytest.raises(ParameterError, match="users must be at least 2"):
        costs(1, 10)
    with pytest.raises(ParameterError, match="whole number of items"):
        costs(10, 7, alpha=0.4)
    assert costs(10, 7, runs=1).size.alpha == 3 / 7  # the default fits any number of items


def test_a_protocol_that_opens_another_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted error: S2 expands to other shares than the users did."""
    real = cost_counters.Tally.expand

    def wrong(self: cost_counters.Tally, party: str, key: bytes, q: int, count: int) -> np.ndarray:  # type: ignore[type-arg]
        return real(self, party, key[::-1] if party == cost_counters.S2 else key, q, count)

    monkeypatch.setattr(cost_counters.Tally, "expand", wrong)
    with pytest.raises(CorruptSumError):
        cost_counters.two_servers(DPDS(items=3, users=5, p=0.5), np.arange(5) % 3, SeededStream(1))


def test_a_cost_table_is_a_table_in_pandas_and_in_a_notebook() -> None:
    made = costs(users=6, items=4, runs=1)
    frame, rows = made.to_frame(), made.to_dict()["protocols"]
    assert len(frame) == sum(map(len, rows.values()))
    assert list(frame.loc["dpds", "counted"]) == [row["counted"] for row in rows["dpds"]]
    assert frame.attrs["users"] == 6
    assert made._repr_html_().count("<tr>") == len(frame) + 1

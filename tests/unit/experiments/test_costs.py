"""Table I: every corrected formula is what running code counts."""

import json

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError
from faircount.experiments import cost_counters
from faircount.experiments.costs import CELLS, CostTable, Size, costs
from faircount.mechanisms.sampling import DPDS


@pytest.fixture(scope="module")
def table() -> CostTable:
    return costs(24, 6, alpha=0.5, gamma=4.0, runs=200, entropy=SeededStream(8))


@pytest.mark.parametrize("protocol", ["dpds", "seeded", "servers"])
@pytest.mark.parametrize("size", [(2, 2), (7, 3), (24, 6)])
def test_what_does_not_depend_on_chance_is_counted_exactly(protocol: str, size: tuple[int, int]) -> None:
    made = costs(*size, alpha={2: 0.5, 3: 1 / 3, 6: 0.5}[size[1]], runs=1, entropy=SeededStream(8))
    counted = made.counted[protocol]
    assert {cell.counter: cell.ours(made.size) for cell in CELLS[protocol]} == counted


def test_two_stage_costs_are_counted_as_corrected(table: CostTable) -> None:
    """Averages of 200 surveys; the spread from survey to survey is a few percent."""
    for cell in CELLS["tss"]:
        assert table.counted["tss"][cell.counter] == pytest.approx(cell.ours(table.size), rel=0.01), cell.counter


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
    sent = {name: table.bytes_sent(name) for name in CELLS}
    assert sent["servers"] < sent["dpds"] < sent["seeded"]  # a row of 6 elements is shorter than a seed
    assert sent["servers"] == 6 * 5 / 8 + 32
    assert sent["dpds"] == 24 * 6 * 5 / 8


def test_json_has_formulas_and_counts(table: CostTable) -> None:
    said = json.loads(json.dumps(table.to_dict()))
    assert set(said["protocols"]) == {"dpds", "tss", "seeded", "servers"}
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

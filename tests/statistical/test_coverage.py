"""Every interval at every n: coverage by enumeration, and width against an oracle."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "make_coverage.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_coverage", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_coverage"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["make_coverage"]


@pytest.fixture(scope="module")
def rows(script):
    return [*script.frequency_rows(), *script.mean_rows()]


@pytest.mark.slow
def test_every_interval_covers(rows):
    assert min(row.coverage for row in rows) >= 0.94
    exact = [row for row in rows if not row.mechanism.startswith("PM")]
    assert min(row.coverage for row in exact) >= 0.95 - 1e-9
    assert {row.n for row in rows} == {50, 300, 1000, 5000}
    assert {row.covers for row in rows} == {"users", "population"}


@pytest.mark.slow
def test_coverage_is_not_bought_with_width(rows):
    """Within 10% of an oracle that knows the variance from n = 1000 on; 3% at n = 5000, but for Laplace's steps."""
    frequency = [row for row in rows if not row.mechanism.startswith(("PM", "Duchi"))]
    assert max(row.uniform for row in frequency if row.n >= 1000) < 1.10
    smooth = [row for row in frequency if row.n == 5000 and not row.mechanism.startswith("Laplace")]
    assert max(row.uniform for row in smooth) < 1.03


@pytest.mark.slow
def test_intervals_of_groups_cover_and_are_not_bought_with_width(script):
    """A single holder, 1/12 and 30% of 80 users in two groups; the page has the other mechanisms."""
    names = ("DPDS, p = 0.393 and 0.451", "DPDS, p = 0.095 and 0.865", "GRR, eps = 2 and 4", "OUE, eps = 2 and 4")
    rows = list(script.group_rows({name: script.PAIRS[name] for name in names}, script.ITEMS))
    assert min(row.coverage for row in rows) >= 0.95
    alike = [row for row in rows if row.weights == "total"]
    assert max(row.ratios[1] for row in alike) < 1.25
    assert max(row.ratios[2] for row in rows) < 1.15

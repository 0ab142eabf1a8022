"""Figure 4 and Table II through whole surveys: one cell with few people, on real servers."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.errors import ParameterError
from faircount.reproduction.network.runs import METHODS, run_network
from faircount.reproduction.report.network_section import render_network
from faircount.reproduction.studies.study import find_line
from faircount.reproduction.studies.table2 import WEIGHTS


@pytest.mark.slow
def test_a_cell_runs_through_five_surveys_and_has_the_weights_of_the_paper() -> None:
    runs = run_network(12, 1, ("s4",), {"table2": (("uniform",), 0.0)})
    assert runs.surveys == 5
    assert {line.method for line in runs.lines} == set(METHODS)
    # The weights depend on the epsilons alone, so that those of few people are the paper's. The
    # epsilons of s4 do not ascend, as the parts of a combined result do.
    np.testing.assert_allclose(runs.weights["s4"], WEIGHTS["s4"], atol=0.6e-4)
    # An error cannot be 0: the estimates are multiples of 1 / (3 p), the truth is not.
    assert all(line.mean > 0 for line in runs.lines)
    found = find_line(list(runs.lines), method="vwa", against="noise")
    assert found.expected.mean == pytest.approx(
        sum(w**2 / np.expm1(e) / 3 for w, e in zip(WEIGHTS["s4"], (0.1, 0.8, 0.7, 1), strict=True)),
        rel=1e-3,
    )
    assert all(check.is_consistent for check in runs.checks)
    for line, counted in zip(runs.lines, runs.count_level, strict=True):
        assert counted == pytest.approx(line.expected.mean, rel=0.5)
    page = "".join(render_network(runs))
    assert "12 users in four levels" in page
    assert "5 surveys, seed 1" in page
    # Errors that are wrong by a factor are noticed also in a single run.
    wrong = [replace(line, mean=100 * line.mean) for line in runs.lines]
    assert not all(check.is_consistent for check in replace(runs, lines=tuple(wrong)).checks)


def test_levels_of_different_sizes_are_refused() -> None:
    with pytest.raises(ParameterError, match="a multiple of 4 users, at least 12, not 50"):
        run_network(50)

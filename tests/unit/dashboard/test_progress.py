"""Where a survey stands, and whether too few will have answered."""

from datetime import UTC, datetime, timedelta

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.dashboard.progress import phase_index, phases_of, predict_too_few, waits_for
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import MASKED, SERVERS, Topology
from faircount.protocol.simulator import set_up

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def parameters(topology: Topology):
    return set_up(Laplace(items=2, users=12, epsilon=1.0), topology, SystemEntropy()).params


def test_phases_of_one_visit_and_of_several() -> None:
    assert phases_of(parameters(SERVERS)) == ["draft", "submitting", "counting", "published"]
    several = parameters(MASKED)
    assert phases_of(several) == [
        "draft",
        "enrolling",
        "sharing",
        "submitting",
        "counting",
        "unmasking",
        "published",
    ]
    assert [
        phase_index(several, phase)
        for phase in ("draft", "confirmed", "unmasking", "aggregated", "published")
    ] == [
        0,
        1,
        5,
        5,
        6,
    ]
    assert phase_index(several, "aborted") == -1


@pytest.mark.parametrize(
    ("phase", "since", "whom"),
    [
        ("draft", None, "owner"),
        ("submitting", None, "people"),
        ("submitting", "2026-01-01T00:00:00Z", "aggregator"),
        ("counting", "2026-01-01T00:00:00Z", "aggregator"),
        ("counting", None, "coordinator"),
        ("published", None, "nobody"),
        ("aborted", None, "nobody"),
    ],
)
def test_whom_a_survey_waits_for(phase, since, whom) -> None:
    assert waits_for(parameters(SERVERS), {"phase": phase, "waiting_since": since}) == whom


def test_too_few_is_warned_in_time() -> None:
    status = {"phase": "submitting", "responses": 10, "minimum": 50, "held_since": None}

    def at(share: float, **change) -> dict[str, int] | None:
        opened = NOW - timedelta(hours=10 * share)
        times = {
            "opened_at": opened.isoformat(),
            "closes_at": (opened + timedelta(hours=10)).isoformat(),
        }
        return predict_too_few({**status, **times, **change}, NOW)

    assert at(0.5) == {"expected": 20, "minimum": 50}
    assert at(0.5, responses=0) == {"expected": 0, "minimum": 50}
    assert at(0.5, responses=30) is None  # 60 at the end
    assert at(0.05) is None  # too early to tell
    assert at(0.9, responses=50) is None
    assert at(1.5) == {
        "expected": 10,
        "minimum": 50,
    }  # The coordinator is late to close it: never fewer than are there
    assert at(0.5, phase="published") is None
    assert at(0.5, held_since=NOW.isoformat()) is None  # the page says that it is held open
    assert at(0.5, closes_at=None) is None

"""Metrics, as Prometheus reads them."""

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from faircount.server.common.metrics import SECONDS, Metrics


def test_calls_are_counted_by_name_status_and_time() -> None:
    metrics = Metrics.create()
    # A time on a bound belongs to it, one above all bounds to none.
    for seconds in (0.0001, 0.001, 0.0011, 0.2, 31.0):
        metrics.calls.note("message", 200, seconds)
    metrics.calls.note("message", 409, 0.3)
    metrics.calls.note("none", 404, 0.01)

    text = generate_latest(metrics.registry).decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["faircount_requests_total", "message", "200"] == 5
    assert found["faircount_requests_total", "message", "409"] == 1
    assert found["faircount_requests_total", "none", "404"] == 1
    up_to = [
        found["faircount_request_seconds_bucket", "message", str(float(bound))] for bound in SECONDS
    ]
    assert up_to == [2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5]
    assert found["faircount_request_seconds_bucket", "message", "+Inf"] == 6
    assert found["faircount_request_seconds_count", "message"] == 6
    total = found["faircount_request_seconds_sum", "message"]
    assert total == pytest.approx(0.0001 + 0.001 + 0.0011 + 0.2 + 31.0 + 0.3)

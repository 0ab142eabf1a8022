"""What the OpenAPI descriptions of S1 and S2 say of each call."""

from typing import Any, cast

from openapi_description import ANYBODY, JSON, OPERATOR, SIGNED, Call, description

from faircount import __version__
from faircount.service import aggregator_app as s2
from faircount.service import coordinator_app as s1
from faircount.service.aggregator import AggregatorService
from faircount.service.coordinator import CoordinatorService
from faircount.service.web import BYTES

SURVEY, POPULATION = "/v1/surveys/{survey}", "/v1/populations/{population}"
MADE = {200: JSON, 201: JSON}

COORDINATOR: dict[tuple[str, str], Call] = {
    ("POST", "/v1/offers"): Call(answers={201: JSON}),
    ("GET", "/v1/receipts"): Call(query=("population",)),
    ("PUT", SURVEY): Call(body=JSON, answers=MADE),
    ("DELETE", SURVEY): Call(answers={204: ""}),
    ("GET", f"{SURVEY}/params"): Call(ANYBODY, answers={200: JSON, 304: ""}),
    ("POST", f"{SURVEY}/messages"): Call(ANYBODY, BYTES, {200: BYTES}),
    ("GET", f"{SURVEY}/status"): Call(ANYBODY),
    ("GET", f"{SURVEY}/events"): Call(ANYBODY, answers={200: "text/event-stream"}),
    ("GET", f"{SURVEY}/result"): Call(ANYBODY, answers={200: f"{JSON}, {BYTES}"}),
    ("PUT", f"{SURVEY}/invited/{{part}}"): Call(body=BYTES),
    ("POST", f"{SURVEY}/open"): Call(body=s1.OpenWish),
    ("POST", f"{SURVEY}/close"): Call(body=s1.CloseWish),
    ("POST", f"{SURVEY}/extend"): Call(body=s1.ExtendWish),
    ("POST", f"{SURVEY}/abort"): Call(body=s1.AbortWish),
    ("POST", f"{SURVEY}/reissue"): Call(body=BYTES),
    ("GET", f"{SURVEY}/answered"): Call(answers={200: BYTES}),
}

AGGREGATOR: dict[tuple[str, str], Call] = {
    ("POST", "/v1/offers"): Call(answers={201: JSON}),
    ("PUT", POPULATION): Call(body=s2.Budget, answers=MADE),
    ("GET", POPULATION): Call(),
    ("POST", f"{POPULATION}/receipts"): Call(OPERATOR, s2.ShownReceipts),
    ("PUT", SURVEY): Call(body=JSON, answers=MADE),
    ("DELETE", SURVEY): Call(answers={204: ""}),
    ("PUT", f"{SURVEY}/guests/{{part}}"): Call(body=BYTES),
    ("GET", f"{SURVEY}/status"): Call(),
    ("POST", f"{SURVEY}/messages"): Call(SIGNED, BYTES, {200: BYTES, 202: ""}),
    ("PUT", f"{SURVEY}/messages/{{message}}/{{part}}"): Call(SIGNED, BYTES, {204: ""}),
}


def descriptions() -> dict[str, dict[str, Any]]:
    """The description of each server, by role. The routes are looked at and never called."""
    nothing: Any = None
    first = s1.coordinator_app(cast(CoordinatorService, nothing))
    second = s2.aggregator_app(cast(AggregatorService, nothing))
    return {
        "coordinator": description(first, "faircount S1, the coordinator", __version__, COORDINATOR),
        "aggregator": description(second, "faircount S2, the aggregator", __version__, AGGREGATOR),
    }

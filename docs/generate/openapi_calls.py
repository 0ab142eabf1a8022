"""What the OpenAPI descriptions of both servers say about each call."""

from typing import Any, cast

from openapi_description import ANYBODY, JSON, OPERATOR, SIGNED, Call, description

from faircount import __version__
from faircount.server.aggregator import app as s2
from faircount.server.aggregator.service import AggregatorService, AggregatorStatus
from faircount.server.common.http import BYTES
from faircount.server.common.operator_calls import HandOverRequest, StopRequest
from faircount.server.coordinator import app as s1
from faircount.server.coordinator.service import CoordinatorService
from faircount.server.coordinator.status import CoordinatorStatus

SURVEY, POPULATION = "/v1/surveys/{survey}", "/v1/populations/{population}"
STATUS = {200: CoordinatorStatus}

OPERATED = "/v1/operator/surveys/{survey}"
OPERATORS: dict[tuple[str, str], Call] = {
    ("GET", "/v1/operator/surveys"): Call(OPERATOR),
    ("POST", f"{OPERATED}/stop"): Call(OPERATOR, StopRequest, {204: ""}),
    ("POST", f"{OPERATED}/owner"): Call(OPERATOR, HandOverRequest, {204: ""}),
    ("DELETE", OPERATED): Call(OPERATOR, answers={204: ""}),
    ("POST", f"{SURVEY}/owner"): Call(body=HandOverRequest, answers={204: ""}),
}

COORDINATOR: dict[tuple[str, str], Call] = {
    ("GET", "/v1/operator"): Call(ANYBODY),
    ("GET", f"{SURVEY}/operators"): Call(ANYBODY),
    ("PUT", f"{SURVEY}/operators"): Call(body=BYTES, answers=STATUS),
    ("POST", "/v1/survey-keys"): Call(answers={201: JSON}),
    ("GET", "/v1/reservations"): Call(query=("population",)),
    ("PUT", SURVEY): Call(body=JSON, answers={200: CoordinatorStatus, 201: CoordinatorStatus}),
    ("DELETE", SURVEY): Call(answers={204: ""}),
    ("GET", f"{SURVEY}/params"): Call(ANYBODY, answers={200: JSON, 304: ""}),
    ("POST", f"{SURVEY}/messages"): Call(ANYBODY, BYTES, {200: BYTES}),
    ("GET", f"{SURVEY}/status"): Call(ANYBODY, answers=STATUS),
    ("GET", f"{SURVEY}/events"): Call(ANYBODY, answers={200: "text/event-stream"}),
    ("GET", f"{SURVEY}/result"): Call(ANYBODY, answers={200: f"{JSON}, {BYTES}"}),
    ("PUT", f"{SURVEY}/invited/{{part}}"): Call(body=BYTES),
    ("POST", f"{SURVEY}/open"): Call(body=s1.OpenRequest, answers=STATUS),
    ("POST", f"{SURVEY}/close"): Call(body=s1.CloseRequest, answers=STATUS),
    ("POST", f"{SURVEY}/extend"): Call(body=s1.ExtendRequest, answers=STATUS),
    ("POST", f"{SURVEY}/abort"): Call(body=s1.AbortRequest, answers=STATUS),
    ("POST", f"{SURVEY}/reissue"): Call(body=BYTES, answers=STATUS),
    ("GET", f"{SURVEY}/answered"): Call(answers={200: BYTES}),
    ("GET", "/v1/operator/reservations"): Call(OPERATOR, query=("population",)),
    **OPERATORS,
}

AGGREGATOR: dict[tuple[str, str], Call] = {
    ("GET", "/v1/operator"): Call(ANYBODY),
    ("POST", "/v1/survey-keys"): Call(answers={201: JSON}),
    ("PUT", POPULATION): Call(body=s2.Budget, answers={200: JSON, 201: JSON}),
    ("GET", POPULATION): Call(),
    ("POST", f"{POPULATION}/reservations"): Call(OPERATOR, s2.ShownReservations),
    ("PUT", SURVEY): Call(body=JSON, answers={200: AggregatorStatus, 201: AggregatorStatus}),
    ("DELETE", SURVEY): Call(answers={204: ""}),
    ("PUT", f"{SURVEY}/invited/{{part}}"): Call(body=BYTES),
    ("GET", f"{SURVEY}/status"): Call(answers={200: AggregatorStatus}),
    ("POST", f"{SURVEY}/messages"): Call(SIGNED, BYTES, {200: BYTES, 202: ""}),
    **OPERATORS,
}


def descriptions() -> dict[str, dict[str, Any]]:
    """The description of each server, by role. The routes are looked at and never called."""
    nothing: Any = None
    first = s1.coordinator_app(cast(CoordinatorService, nothing))
    second = s2.aggregator_app(cast(AggregatorService, nothing))
    return {
        "coordinator": description(first, "faircount coordinator (S1)", __version__, COORDINATOR),
        "aggregator": description(second, "faircount aggregator (S2)", __version__, AGGREGATOR),
    }

"""Every call is described in OpenAPI, and no request that the description allows causes a 5xx."""

import json
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import Pair, in_process
from openapi_calls import AGGREGATOR, COORDINATOR, descriptions
from trial_survey import TrialSurvey, begin_client, require_success, set_up, visit_once

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.owner.server_replies import AGGREGATOR_STATUS, COORDINATOR_STATUS
from faircount.protocol import SERVERS, encode
from faircount.protocol.wire.codec import (
    FieldCodec,
    FixedBytes,
    Integer,
    ListOf,
    Message,
    Party,
    Record,
    VariableBytes,
    codec_for,
)
from faircount.protocol.wire.signing import ChainLink, SigningKey, sign
from faircount.server.aggregator.service import AggregatorStatus
from faircount.server.common.signed_requests import signed_headers
from faircount.server.common.tokens import Scope, add_token
from faircount.server.coordinator.status import CoordinatorStatus

FEW = settings(max_examples=60, suppress_health_check=list(HealthCheck), derandomize=True)


class Stage:
    """Both servers with an open survey, called from synchronous tests."""

    def __init__(self, portal: Any, pair: Pair, survey: TrialSurvey, key: SigningKey) -> None:
        self.portal = portal
        self.pair = pair
        self.survey = survey
        self.key = key

    def call(self, role: str, method: str, path: str, **more: Any) -> httpx.Response:
        client = self.pair.to_s1 if role == "coordinator" else self.pair.to_s2
        if path.endswith("/events"):
            return httpx.Response(200)  # a stream without an end
        return self.portal.call(lambda: client.request(method, path, **more))  # type: ignore[no-any-return]  # a portal is typed for functions


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    entropy = SeededStream(3)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(in_process(folder)) as pair,
    ):

        async def open_survey() -> tuple[TrialSurvey, SigningKey]:
            mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            await visit_once(pair.to_s1, survey, begin_client(survey, 0, 1, entropy), entropy)
            for server in (pair.s1.server, pair.s2.server):
                async with server.database.write() as tx:
                    await add_token(tx, "operator", Scope.OPERATOR)
            s1 = await pair.s1.pending_messages(survey.params.survey)
            assert s1 is not None
            return survey, s1.key

        yield Stage(portal, pair, *portal.call(open_survey))


def test_every_call_is_described_and_every_description_is_of_a_call() -> None:
    for role, known in (("coordinator", COORDINATOR), ("aggregator", AGGREGATOR)):
        made = descriptions()[role]
        described = set()
        for path, methods in made["paths"].items():
            for method, operation in methods.items():
                described.add((method.upper(), path))
                assert operation["summary"].endswith(".")
        assert described == set(known)
        json.dumps(made)


@pytest.mark.parametrize("role", ["coordinator", "aggregator"])
def test_nothing_that_the_description_allows_makes_a_server_fail(role: str, stage: Stage) -> None:
    schema = schemathesis.openapi.from_dict(descriptions()[role])
    operations = [operation.ok() for operation in schema.get_all_operations()]
    seen = Counter[int]()

    @FEW
    @given(
        case=st.one_of([operation.as_strategy() for operation in operations]),
        known=st.booleans(),
        operator=st.booleans(),
    )
    def send(case: Any, known: bool, operator: bool) -> None:
        if known and "survey" in (case.path_parameters or {}):
            case.path_parameters["survey"] = stage.survey.params.survey.hex()
        content = case.body
        if content is not None and not isinstance(content, bytes):
            content = json.dumps(content, default=str).encode()
        headers = {"Authorization": "Bearer operator"} if operator else {}
        answer = stage.call(
            role,
            case.method,
            case.formatted_path,
            params=dict(case.query or {}),
            content=content,
            headers=headers,
        )
        seen[answer.status_code] += 1
        assert answer.status_code < 500, (case.method, case.formatted_path, answer.text)

    send()
    assert len(seen) >= 3


def values(kind: FieldCodec) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a message field."""
    if isinstance(kind, FixedBytes):
        return st.binary(min_size=kind.size, max_size=kind.size)
    if isinstance(kind, Integer):
        bits = 8 * struct.calcsize(kind.form.format)
        is_signed = kind.form.format.endswith("q")
        return st.integers(0, 2 ** (bits - is_signed) - 1)
    if isinstance(kind, VariableBytes):
        return st.binary(max_size=80)
    if isinstance(kind, ListOf):
        return st.lists(values(kind.element), max_size=3).map(tuple)
    assert isinstance(kind, Record)
    return st.builds(kind.kind, **{name: values(part) for name, part in kind.parts})


def messages(kind: type[Message], survey: TrialSurvey) -> st.SearchStrategy[Message]:
    """Return a strategy for messages of a class, about this survey and from invited people."""
    known: dict[str, st.SearchStrategy[Any]] = {
        "survey": st.just(survey.params.survey),
        "access": st.sampled_from([invitation.access for invitation in survey.invitations]),
        "digest": st.just(survey.params.digest),
    }
    record = Record.of(kind, codec_for)
    return st.builds(kind, **{name: known.get(name, values(part)) for name, part in record.parts})


def test_no_message_of_a_participant_makes_the_coordinator_fail(stage: Stage) -> None:
    kinds = list(SERVERS.coordinator.user_handlers())
    seen = Counter[int]()

    @FEW
    @given(message=st.one_of([messages(kind, stage.survey) for kind in kinds]))
    def send(message: Message) -> None:
        answer = stage.call(
            "coordinator", "POST", f"{stage.survey.path}/messages", content=encode(message)
        )
        seen[answer.status_code] += 1
        assert answer.status_code < 500

    send()
    assert 200 in seen  # some messages are accepted, so that what follows is tested too


def test_no_signed_message_makes_the_aggregator_fail(stage: Stage) -> None:
    kinds = list(SERVERS.aggregator.handlers())
    seen = Counter[int]()
    path = f"{stage.survey.path}/messages"
    id_ = stage.survey.params.survey

    @FEW
    @given(message=st.one_of([messages(kind, stage.survey) for kind in kinds]))
    def send(message: Message) -> None:
        body = encode(sign(stage.key, Party.COORDINATOR, message, ChainLink()))
        headers = signed_headers(stage.key, id_, "POST", path, body, stage.pair.s2.server.clock())
        seen[stage.call("aggregator", "POST", path, content=body, headers=headers).status_code] += 1

    send()
    assert set(seen) == {200}  # also for refusals, which are signed statements


def test_bodies_that_are_too_long_are_refused_unread(stage: Stage) -> None:
    for path in ("messages", "open", "invited/0"):
        method = "PUT" if path.startswith("invited") else "POST"
        answer = stage.call(
            "coordinator", method, f"{stage.survey.path}/{path}", content=bytes(2 << 20)
        )
        assert answer.status_code == 413


def test_whatever_an_owner_reads_of_a_status_is_described() -> None:
    assert set(COORDINATOR_STATUS) <= set(CoordinatorStatus.__struct_fields__)
    assert set(AGGREGATOR_STATUS) <= set(AggregatorStatus.__struct_fields__)
    for role, name in (("coordinator", "CoordinatorStatus"), ("aggregator", "AggregatorStatus")):
        described = descriptions()[role]["components"]["schemas"][name]["properties"]
        assert all(field["description"].endswith(".") for field in described.values())

"""Every call is described, and nothing that the description allows makes a server fail."""

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
from trial_survey import TrialSurvey, begun, done, set_up, visited

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.roles.aggregator import FROM_S1
from faircount.protocol.roles.coordinate import FROM_USERS
from faircount.protocol.wire.codec import (
    FieldKind,
    FixedBytes,
    Integer,
    ListOf,
    Message,
    Party,
    Record,
    VariableBytes,
    kind_of,
)
from faircount.protocol.wire.signing import Link, SigningKey, sign
from faircount.service.signed_requests import signed_headers
from faircount.service.tokens import Scope, add_token

FEW = settings(max_examples=60, suppress_health_check=list(HealthCheck), derandomize=True)


class Stage:
    """Both servers with a survey that is open, called from a test that does not wait."""

    def __init__(self, portal: Any, pair: Pair, survey: TrialSurvey, key: SigningKey) -> None:
        self.portal, self.pair, self.survey, self.key = portal, pair, survey, key

    def call(self, role: str, method: str, path: str, **more: Any) -> httpx.Response:
        client = self.pair.to_s1 if role == "coordinator" else self.pair.to_s2
        if path.endswith("/events"):
            return httpx.Response(200)  # a stream without an end
        return self.portal.call(lambda: client.request(method, path, **more))  # type: ignore[no-any-return]  # a portal is typed for functions


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, entropy = tmp_path_factory.mktemp("stage"), SeededStream(3)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(in_process(folder)) as pair:

        async def prepared() -> tuple[TrialSurvey, SigningKey]:
            mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
            done(await pair.to_s1.post(f"{survey.path}/open"))
            await visited(pair.to_s1, survey, begun(survey, 0, 1, entropy), entropy)
            for server in (pair.s1.server, pair.s2.server):
                async with server.database.write() as tx:
                    await add_token(tx, "operator", Scope.OPERATOR)
            s1 = await pair.s1.to_say(survey.params.survey)
            assert s1 is not None
            return survey, s1.key

        yield Stage(portal, pair, *portal.call(prepared))


def test_every_call_is_described_and_every_description_is_of_a_call() -> None:
    for role, known in (("coordinator", COORDINATOR), ("aggregator", AGGREGATOR)):
        made = descriptions()[role]
        told = {(method.upper(), path) for path, methods in made["paths"].items() for method in methods}
        assert told == set(known)
        for methods in made["paths"].values():
            assert all(each["summary"].endswith((".", "bytes each.")) for each in methods.values())
        json.dumps(made)


@pytest.mark.parametrize("role", ["coordinator", "aggregator"])
def test_nothing_that_the_description_allows_makes_a_server_fail(role: str, stage: Stage) -> None:
    schema = schemathesis.openapi.from_dict(descriptions()[role])
    operations = [each.ok() for each in schema.get_all_operations()]
    seen = Counter[int]()

    @FEW
    @given(case=st.one_of([each.as_strategy() for each in operations]), known=st.booleans(), operator=st.booleans())
    def tried(case: Any, known: bool, operator: bool) -> None:
        if known and "survey" in (case.path_parameters or {}):
            case.path_parameters["survey"] = stage.survey.params.survey.hex()
        body = case.body
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body, default=str).encode()
        headers = {"Authorization": "Bearer operator"} if operator else {}
        answer = stage.call(
            role, case.method, case.formatted_path, params=dict(case.query or {}), content=content, headers=headers
        )
        seen[answer.status_code] += 1
        assert answer.status_code < 500, (case.method, case.formatted_path, answer.text)

    tried()
    assert len(seen) >= 3


def values(kind: FieldKind) -> st.SearchStrategy[Any]:
    """Values of a field of a message."""
    if isinstance(kind, FixedBytes):
        return st.binary(min_size=kind.size, max_size=kind.size)
    if isinstance(kind, Integer):
        most = 2 ** (8 * struct.calcsize(kind.form.format)) // (2 if kind.form.format.endswith("q") else 1) - 1
        return st.integers(0, most)
    if isinstance(kind, VariableBytes):
        return st.binary(max_size=80)
    if isinstance(kind, ListOf):
        return st.lists(values(kind.each), max_size=3).map(tuple)
    assert isinstance(kind, Record)
    return st.builds(kind.kind, **{name: values(part) for name, part in kind.parts})


def messages(kind: type[Message], survey: TrialSurvey) -> st.SearchStrategy[Message]:
    """Messages of a class for this survey, often of somebody who is invited."""
    known: dict[str, st.SearchStrategy[Any]] = {
        "survey": st.just(survey.params.survey),
        "access": st.sampled_from([each.access for each in survey.invitations]),
        "digest": st.just(survey.params.digest),
    }
    record = Record.of(kind, kind_of)
    return st.builds(kind, **{name: known.get(name, values(part)) for name, part in record.parts})


def test_no_encoded_message_of_a_user_makes_s1_fail(stage: Stage) -> None:
    kinds = [*SERVERS.s1.users, *FROM_USERS]
    seen = Counter[int]()

    @FEW
    @given(message=st.one_of([messages(each, stage.survey) for each in kinds]))
    def tried(message: Message) -> None:
        answer = stage.call("coordinator", "POST", f"{stage.survey.path}/messages", content=encode(message))
        seen[answer.status_code] += 1
        assert answer.status_code < 500

    tried()
    assert 200 in seen  # not everything is refused at the door


def test_no_signed_message_makes_s2_fail(stage: Stage) -> None:
    kinds = [*SERVERS.s2, *FROM_S1]
    seen, path, id_ = Counter[int](), f"{stage.survey.path}/messages", stage.survey.params.survey

    @FEW
    @given(message=st.one_of([messages(each, stage.survey) for each in kinds]))
    def tried(message: Message) -> None:
        body = encode(sign(stage.key, Party.S1, message, Link()))
        headers = signed_headers(stage.key, id_, "POST", path, body, stage.pair.s2.server.clock())
        seen[stage.call("aggregator", "POST", path, content=body, headers=headers).status_code] += 1

    tried()
    assert set(seen) == {200}  # S2's refusals are signed statements


def test_bodies_that_are_too_long_are_refused_unread(stage: Stage) -> None:
    for path in ("messages", "open", "invited/0"):
        method = "PUT" if path.startswith("invited") else "POST"
        answer = stage.call("coordinator", method, f"{stage.survey.path}/{path}", content=bytes(2 << 20))
        assert answer.status_code == 413

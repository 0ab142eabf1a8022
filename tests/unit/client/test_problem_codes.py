"""A rejection of a server reaches the owner as a cause with numbers, for pages to translate."""

from typing import Any

import httpx
import pytest

from faircount.client.calls import MAX_DETAIL_CHARACTERS, RemoteServer
from faircount.core.errors import RemoteError
from faircount.server.common.problems import ProblemError, conflict, not_found


def rejection(status: int, body: Any) -> RemoteError:
    """The error that a caller of the coordinator gets for this answer."""
    transport = httpx.MockTransport(lambda request: httpx.Response(status, json=body))
    server = RemoteServer("http://s1", name="S1", http=httpx.Client(transport=transport))
    with pytest.raises(RemoteError) as caught:
        server.call("GET", "/")
    return caught.value


def test_a_coded_problem_has_its_cause_and_its_numbers() -> None:
    problem = conflict("The coordinator knows 3 people").with_code(
        "too_few_people", known=3, minimum=5
    )
    error = rejection(409, problem.body())
    assert (error.code, error.status) == ("remote", 409)
    assert error.values == {"cause": "too_few_people", "known": 3, "minimum": 5, "server": "S1"}


def test_without_a_code_the_type_is_the_cause() -> None:
    assert "code" not in not_found("survey").body()
    assert rejection(404, not_found("survey").body()).values["cause"] == "unknown"
    no_token = ProblemError(401, "no-token", "who?").body()
    assert rejection(401, no_token).values["cause"] == "no_token"


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"type": 7},
        {"code": "x" * 10_000, "values": [1]},
        {"values": {"server": "S2", "known": 1}},
        {"values": {"server": 2, "code": 3, "self": 4, "cause": 5}},
    ],
)
def test_a_dishonest_server_cannot_pass_for_another_one(body: Any) -> None:
    error = rejection(409, body)
    assert error.values["server"] == "S1"
    assert len(str(error.values["cause"])) <= MAX_DETAIL_CHARACTERS


def test_a_server_cannot_put_texts_into_the_sentences_of_a_page() -> None:
    error = rejection(409, {"values": {"known": "<b>", "people": True}})
    assert error.values == {"cause": "", "server": "S1"}

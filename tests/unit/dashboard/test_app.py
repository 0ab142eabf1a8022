"""Whom the dashboard answers, and that no path leads out of the owner's surveys."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from faircount.core.errors import FaircountError, ParameterError
from faircount.dashboard.app import dashboard_app
from faircount.dashboard.surveys import Surveys
from faircount.owner.survey import Survey

KEY = "key-of-this-test"
HOST = "127.0.0.1:8463"
RIGHT = {"Authorization": f"Bearer {KEY}", "Host": HOST}


def ask(folder: Path, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    """The status with which the dashboard answers."""

    async def send() -> int:
        app = dashboard_app(Surveys(folder, folder / "servers.json"), KEY, HOST)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            method = "GET" if body is None else "POST"
            return (await client.request(method, path, headers=headers, content=body)).status_code

    return asyncio.run(send())


def test_who_has_the_key_at_the_right_host_is_answered(tmp_path: Path) -> None:
    assert ask(tmp_path, "/api/surveys", RIGHT) == 200
    assert ask(tmp_path, "/", {"Host": HOST}) == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:8463", ""])
def test_another_host_is_refused(tmp_path: Path, host: str) -> None:
    assert ask(tmp_path, "/api/surveys", {**RIGHT, "Host": host}) == 403


@pytest.mark.parametrize("path", ["/", "/main.js"])
def test_the_page_is_not_shown_under_another_name(tmp_path: Path, path: str) -> None:
    assert ask(tmp_path, path, {"Host": "evil.example"}) == 403


@pytest.mark.parametrize("sent", ["", "Bearer ", "Bearer x", f"Bearer {KEY}x", f"Basic {KEY}"])
def test_without_the_key_nothing_is_answered(tmp_path: Path, sent: str) -> None:
    assert ask(tmp_path, "/api/surveys", {**RIGHT, "Authorization": sent}) == 403


@pytest.mark.parametrize("body", [b"[]", b"{", b'"x"', b"a=1", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(tmp_path: Path, body: bytes) -> None:
    assert ask(tmp_path, "/api/surveys", RIGHT, body) == 409


class OneSurvey(Surveys):
    """The dashboard of an owner with one survey, which notes what the servers are asked."""

    def survey(self, name: str) -> Survey:
        return FakeSurvey()  # type: ignore[return-value]  # what these tests use of it


class FakeSurvey:
    """Three people were invited."""

    params = None

    def __init__(self) -> None:
        self.servers = self

    def invitees(self) -> list[Any]:
        return [object()] * 3

    def request(self, *arguments: Any, **values: Any) -> None:
        pytest.fail(f"the coordinator is asked: {arguments[1:]} {values}")

    @property
    def folder(self) -> Any:
        return type("Folder", (), {"invitations_file": None, "printable_file": None})

    def result(self) -> None:
        pytest.fail("a result is exported")


@pytest.mark.parametrize("what", ["reissue", "owner", "erase", "../abort", ""])
def test_only_the_requests_of_the_page_reach_the_coordinator(tmp_path: Path, what: str) -> None:
    with pytest.raises(ParameterError, match="the requests for a survey are"):
        OneSurvey(tmp_path, tmp_path).request("survey", what, {})


@pytest.mark.parametrize("position", ["-1", "3", "x", "", "1.0"])
def test_a_position_that_is_none_shows_nobodys_invitation(tmp_path: Path, position: str) -> None:
    with pytest.raises(FaircountError, match="there are 3 invitations"):
        OneSurvey(tmp_path, tmp_path).invitation("survey", position)


@pytest.mark.parametrize("kind", ["owner.json", "../owner.json", "result.exe", "people.json"])
def test_other_files_are_not_read(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ParameterError, match="a result can be saved as"):
        OneSurvey(tmp_path, tmp_path).file("survey", kind)

"""Tokens are listed, replaced and revoked; operators stop, hand over and erase surveys."""

import asyncio
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from database_copies import SqliteCopies
from in_process import server_in
from whole_survey import answer_all, close

from faircount.cli import main
from faircount.client.calls import RemoteServer
from faircount.core.errors import RefusedError, RemoteError
from faircount.owner.survey import Survey
from faircount.protocol import SERVERS
from faircount.protocol.survey.endings import EndCode
from faircount.server.aggregator.service import AggregatorService
from faircount.server.aggregator.steps import ledger_of
from faircount.server.common.problems import ProblemError
from faircount.server.common.tokens import (
    Scope,
    TokenInfo,
    add_token,
    list_tokens,
    revoke_tokens,
    rotate_token,
)

Serving = Callable[..., Any]
OPERATOR = "token-of-the-operator"
SUCCESSOR = "token-of-the-successor"


@pytest.fixture
def copies(tmp_path: Path) -> SqliteCopies:
    urls = tuple(f"sqlite:///{tmp_path}/{name}.sqlite" for name in ("s1", "s2"))
    return SqliteCopies(tmp_path / "servers", urls)  # type: ignore[arg-type]  # two of them


async def _add(tx: Any, _: Any) -> dict[str, str]:
    """Add an operator and a second owner; the ids of all holders by name."""
    await add_token(tx, OPERATOR, Scope.OPERATOR, name="operator")
    await add_token(tx, SUCCESSOR, Scope.OWNER, name="successor")
    return {token.name: token.id for token in await list_tokens(tx)}


def call(name: str, token: str, method: str, path: str, body: Any = None) -> Any:
    server = RemoteServer(f"http://{name}", token=token)
    return server.call(method, path, json_body=body)


@pytest.fixture
def running(serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: SqliteCopies) -> Any:
    """Both servers with an open survey of six people; survey, and ids by name at each server."""
    with serving(tmp_path, copies.urls) as both:
        survey = almost_noiseless(tmp_path, SERVERS, 6)
        pair = both.pair
        ids = {name: asyncio.run(_change(copies, _add, name)) for name in ("s1", "s2")}
        yield survey, ids, pair


async def _change(copies: SqliteCopies, work: Any, name: str = "s2") -> Any:
    """Do something with the database of a running server, through a connection of its own."""
    server = await server_in(copies.folder / name, copies.url(name), name)
    async with server.database.write() as tx:
        done = await work(tx, server.anchor)
    await server.database.close()
    return done


def revoke(copies: SqliteCopies, holder: str) -> TokenInfo:
    """Revoke at the aggregator, as another process than the one that serves does."""
    done: TokenInfo = asyncio.run(_change(copies, lambda tx, a: revoke_tokens(tx, a, holder)))
    return done


def test_a_revoked_token_is_refused_at_once(running: Any, copies: SqliteCopies) -> None:
    _, ids, _ = running
    path = "/v1/populations/people"
    with pytest.raises(RemoteError, match="no budget here"):
        call("s2", SUCCESSOR, "GET", path)
    assert revoke(copies, ids["s2"]["successor"]).name == "successor"
    with pytest.raises(RemoteError, match="was revoked"):
        call("s2", SUCCESSOR, "GET", path)
    with pytest.raises(RefusedError, match="there is no token 00ff"):
        revoke(copies, "00ff")


def test_a_restored_backup_does_not_bring_a_revoked_token_back(
    serving: Serving, running: Any, copies: SqliteCopies, tmp_path: Path
) -> None:
    _, ids, _ = running
    copies.copy("s2", tmp_path / "copy")
    revoke(copies, ids["s2"]["successor"])
    copies.restore("s2", tmp_path / "copy")
    with (
        serving(tmp_path, copies.urls),
        pytest.raises(RemoteError, match="was revoked"),
    ):
        call("s2", SUCCESSOR, "GET", "/v1/populations/people")


def test_a_lost_anchor_does_not_bring_a_revoked_token_back(
    serving: Serving, running: Any, copies: SqliteCopies, tmp_path: Path
) -> None:
    _, ids, _ = running
    revoke(copies, ids["s2"]["successor"])
    copies.copy("s2", tmp_path / "copy")
    shutil.rmtree(copies.folder / "s2" / "anchor")
    copies.restore("s2", tmp_path / "copy", has_new_anchor=True)
    with (
        serving(tmp_path, copies.urls),
        pytest.raises(RemoteError, match="was revoked"),
    ):
        call("s2", SUCCESSOR, "GET", "/v1/populations/people")


def test_a_replaced_token_opens_the_same_surveys_and_budgets(
    running: Any, copies: SqliteCopies
) -> None:
    survey, _, pair = running
    (owner,) = asyncio.run(_change(copies, lambda tx, _: _owners_with_surveys(tx)))
    assert (owner.surveys, owner.populations, owner.scope) == (1, 1, Scope.OWNER)
    fresh = asyncio.run(_change(copies, lambda tx, a: rotate_token(tx, a, owner.id)))
    path = "/v1/populations/people"
    assert call("s2", fresh, "GET", path).json()["population"] == "people"
    with pytest.raises(RemoteError, match="not known here"):
        call("s2", pair.owner_tokens[1], "GET", path)
    status = call("s2", fresh, "GET", f"/v1/surveys/{survey.params.survey.hex()}/status").json()
    assert status["invited"] == 6


async def _owners_with_surveys(tx: Any) -> list[TokenInfo]:
    return [token for token in await list_tokens(tx) if token.surveys]


def test_a_survey_is_handed_to_another_owner(running: Any) -> None:
    survey, ids, pair = running
    path = f"/v1/surveys/{survey.params.survey.hex()}"
    with pytest.raises(RemoteError, match="no owner here has this id"):
        survey.hand_over(coordinator=ids["s1"]["operator"])
    with pytest.raises(RemoteError, match="hexadecimal"):
        survey.hand_over(coordinator="nobody")
    with pytest.raises(RemoteError, match="no such survey"):
        call("s1", SUCCESSOR, "POST", f"{path}/owner", {"to": ids["s1"]["successor"]})
    survey.hand_over(coordinator=ids["s1"]["successor"], aggregator=ids["s2"]["successor"])
    for name, token in zip(("s1", "s2"), pair.owner_tokens, strict=True):
        with pytest.raises(RemoteError, match="no such survey"):
            call(name, token, "DELETE", path)
    assert call("s2", SUCCESSOR, "GET", f"{path}/status").json()["invited"] == 6
    # The budget stays with the one who opened it.
    with pytest.raises(RemoteError, match="no budget here"):
        call("s2", SUCCESSOR, "GET", "/v1/populations/people")


def test_the_new_owner_continues_with_its_own_tokens(running: Any, tmp_path: Path) -> None:
    survey, ids, _ = running
    survey.hand_over(coordinator=ids["s1"]["successor"], aggregator=ids["s2"]["successor"])
    answer_all(survey, tmp_path)
    servers = tmp_path / "successor.json"
    servers.write_text(
        f'{{"s1": {{"address": "http://s1", "token": "{SUCCESSOR}"}}, '
        f'"s2": {{"address": "http://s2", "token": "{SUCCESSOR}"}}}}'
    )
    with pytest.raises(RemoteError, match="no such survey"):
        close(survey)
    survey.use_tokens(servers)
    again = Survey.at(survey.folder.path)
    close(again)
    assert again.ending(wait=True) is not None
    assert len(again.servers.reservations(again.params)) == 1


def operate(name: str, survey: Survey, method: str, action: str = "", body: Any = None) -> Any:
    path = f"/v1/operator/surveys/{survey.params.survey.hex()}{action}"
    return call(name, OPERATOR, method, path, body)


def test_an_owner_is_no_operator(running: Any) -> None:
    survey, _, pair = running
    path = f"/v1/operator/surveys/{survey.params.survey.hex()}"
    for method, action, body in (
        ("POST", "/stop", {}),
        ("DELETE", "", None),
        ("POST", "/owner", {"to": "00"}),
    ):
        with pytest.raises(RemoteError, match="for the operator"):
            call("s2", pair.owner_tokens[1], method, f"{path}{action}", body)
    (listed,) = call("s2", OPERATOR, "GET", "/v1/operator/surveys").json()["surveys"]
    assert (listed["survey"], listed["phase"]) == (survey.params.survey.hex(), "enrolling")


@pytest.mark.parametrize("name", ["s1", "s2"])
def test_an_operator_stops_a_survey_and_erases_it(running: Any, tmp_path: Path, name: str) -> None:
    """Before its manifest nothing is reserved, and the stopped survey costs nothing."""
    survey, _, pair = running
    answer_all(survey, tmp_path)
    with pytest.raises(RemoteError, match="end it before you delete it"):
        operate(name, survey, "DELETE")
    operate(name, survey, "POST", "/stop", {"reason": "a court order"})
    if name == "s2":
        close(survey)
    ending = survey.ending(wait=True)
    assert (ending.code, ending.detail, ending.spent) == (EndCode.OPERATOR, b"a court order", 0)
    operate("s2", survey, "DELETE")
    operate("s1", survey, "DELETE")
    assert call("s1", OPERATOR, "GET", "/v1/operator/surveys").json() == {"surveys": []}
    assert not list(pair.s2.server.keys.path.glob("survey-*.key"))


def test_what_a_stopped_survey_has_reserved_stays_spent(
    running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey, _, _ = running
    answer_all(survey, tmp_path)
    receive = AggregatorService.receive

    async def receive_until_reserved(s2: AggregatorService, *arguments: Any) -> Any:
        """Nothing more reaches the aggregator once it has reserved."""
        async with s2.server.database.read() as tx:
            if (await ledger_of(tx, "people", for_update=False)).charges:
                raise ProblemError(503, "not-now", "later")
        return await receive(s2, *arguments)

    monkeypatch.setattr(AggregatorService, "receive", receive_until_reserved)
    close(survey)
    wait_for_reservation(survey)
    operate("s2", survey, "POST", "/stop", {})
    budget = survey.servers.budget("people")
    assert [charge["status"] for charge in budget["surveys"]] == ["spent"]
    operate("s2", survey, "POST", "/stop", {})
    operate("s2", survey, "DELETE")
    assert survey.servers.budget("people") == budget


def wait_for_reservation(survey: Survey) -> None:
    for _ in range(600):
        if survey.servers.budget("people")["surveys"]:
            return
        time.sleep(0.05)
    pytest.fail("nothing was reserved")


def test_reservations_of_erased_surveys_still_reopen_a_population(
    running: Any, tmp_path: Path
) -> None:
    survey, _, _ = running
    answer_all(survey, tmp_path)
    close(survey)
    survey.ending(wait=True)
    kept = survey.servers.reservations(survey.params)
    survey.delete()
    assert survey.servers.reservations(survey.params) == kept
    path = "/v1/operator/reservations?population=people"
    assert call("s1", OPERATOR, "GET", path).json() == {"reservations": kept}


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["token", *arguments, "--data", str(tmp_path / "data")])
        return done.exit_code, done.output

    code, token = run("add", "aggregator", "owner", "--name", "Ada", "--days", "3")
    assert (code, re.fullmatch(r"[\w-]{43}\n", token) is not None) == (0, True)
    assert run("add", "aggregator", "owner", "--name", "Ben")[0] == 0
    code, table = run("list", "aggregator")
    assert code == 0
    assert token.strip() not in table
    ids = dict(re.findall(r"([0-9a-f]{16}) +(Ada|Ben)", table))
    assert sorted(ids.values()) == ["Ada", "Ben"]
    assert "valid until" in table
    ada, ben = sorted(ids, key=lambda holder: ids[holder])
    assert run("revoke", "aggregator", ada) == (
        0,
        "The token of Ada is refused from now on.\n",
    )
    code, fresh = run("rotate", "aggregator", ben)
    assert (code, re.fullmatch(r"[\w-]{43}\n", fresh) is not None) == (0, True)
    code, table = run("list", "aggregator")
    assert (table.count("revoked"), table.count("Ben")) == (1, 1)
    code, output = run("revoke", "aggregator", "nobody")
    assert (code, "there is no token nobody here" in output) == (2, True)

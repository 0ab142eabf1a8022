"""Backups and restores of both servers: nothing is counted twice, and what may have been said counts as spent."""

import asyncio
import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from database_copies import Copies
from in_process import in_process, server_in
from trial_survey import TrialSurvey, begin_client, require_success, send_message, set_up

from faircount.cli import main
from faircount.client.calls import RemoteServer
from faircount.client.participation import Participation, connect
from faircount.client.participation_status import Stage
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ParameterError, RefusedError, RemoteError
from faircount.mechanisms.laplace import Laplace
from faircount.owner.survey import Survey
from faircount.protocol import SERVERS, Message, decode, encode
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.messages import Reason, Rejection, Reservation, Signed
from faircount.server.common.tokens import Scope, add_token
from faircount.server.restore import (
    RestoreOutcome,
    back_up,
    restore_coordinator,
    restore_database,
    sqlite_file,
)

Serving = Callable[..., Any]
OPERATOR = "operator-at-s2"


def url(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / 'servers' / name}.sqlite"


def begun(survey: Survey, folder: Path, answers: int) -> list[Participation]:
    links = [invitee.code.link(survey.owner.public_address) for invitee in survey.invitees()]
    parts = [connect(link, state=folder / f"{number}.device") for number, link in enumerate(links)]
    for number, part in enumerate(parts[:answers]):
        part.answer(part.items[number])
    return parts


def end_phase(survey: Survey) -> None:
    now = survey.servers.status(survey.params)
    survey.servers.request(survey.params, "close", phase=now["phase"], attempt=now["attempt"])


def test_s1_restored_from_before_some_answers(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    """People who answered since come back with the same bytes; each is counted once."""
    copy = tmp_path / "copy"
    with serving(tmp_path, copies.urls):
        survey = almost_noiseless(tmp_path, SERVERS, 6)
        parts = begun(survey, tmp_path / "devices", 2)
        copies.copy("s1", copy)
        for number, part in enumerate(parts[2:], 2):
            part.answer(part.items[number])
    assert copies.restore("s1", copy) == RestoreOutcome(resumed=(survey.params.survey,))
    with serving(tmp_path, copies.urls):
        assert survey.servers.status(survey.params)["responses"] == 2
        for part in parts:
            assert part.visit().stage is Stage.SENT
        end_phase(survey)
        last = survey.servers.final_statement(survey.params) if survey.ending(wait=True) else None
        assert last is not None
        assert list(last.message.counts) == [1] * 6
        assert parts[5].visit().stage is Stage.COUNTED
    assert copy.stat().st_mode & 0o077 == 0


def test_s2_restored_ends_what_was_live_and_charges_it(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    copy = tmp_path / "copy"
    with serving(tmp_path, copies.urls):
        survey = almost_noiseless(tmp_path, SERVERS, 6)
        parts = begun(survey, tmp_path / "devices", 6)
        copies.copy("s2", copy)
    assert copies.restore("s2", copy) == RestoreOutcome(
        ended=(survey.params.survey,), closed=("people",)
    )
    with serving(tmp_path, copies.urls):
        end_phase(survey)
        ended = survey.ending(wait=True)
        assert ended.code == EndCode.AGGREGATOR_RESTORED
        assert ended.spent
        assert parts[0].visit().stage is Stage.NO_RESULT
        budget = survey.servers.s2.call("GET", "/v1/populations/people").json()
        assert budget["closed"]
        assert budget["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)


def test_a_step_that_was_half_done_in_the_backup_hinders_nobody(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    """The aggregator notes a step before it makes it; restored, it has ended the survey of that step under another key."""
    copy = tmp_path / "copy"
    with serving(tmp_path, copies.urls):
        survey = almost_noiseless(tmp_path, SERVERS, 6)
    copies.execute(
        "s2", "INSERT INTO started_steps VALUES ('people', ?, ?)", survey.params.survey, bytes(40)
    )
    copies.copy("s2", copy)
    copies.restore("s2", copy)
    assert copies.execute("s2", "SELECT population FROM started_steps") == []


def ended_after_the_backup(
    serving: Serving, made: Any, folder: Path, copies: Copies
) -> tuple[Survey, Any, RestoreOutcome]:
    """A survey that everybody had answered when the aggregator was copied, and that ended then; its end, and what the aggregator restored."""
    copy = folder / "copy"
    with serving(folder, copies.urls):
        survey = made(folder, SERVERS, 6)
        begun(survey, folder / "devices", 6)
        copies.copy("s2", copy)
        end_phase(survey)
        end = survey.ending(wait=True)
    return survey, end, copies.restore("s2", copy)


def test_s2_restored_to_before_a_result_does_not_give_another(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    """The survey's key was destroyed with its last word: nothing of it can be read again, and it stays charged."""
    survey, first, done = ended_after_the_backup(serving, almost_noiseless, tmp_path, copies)
    assert done == RestoreOutcome(lost=(survey.params.survey,), closed=("people",))
    with serving(tmp_path, copies.urls):
        assert survey.ending(wait=True) == first
        budget = survey.servers.s2.call("GET", "/v1/populations/people").json()
        assert budget["closed"]
        assert budget["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)
        assert len(survey.servers.reservations(survey.params)) == 1


async def with_operator(copies: Copies, token: str) -> None:
    """Have the aggregator admit an operator."""
    s2 = await server_in(copies.folder / "s2", copies.url("s2"), "s2")
    async with s2.database.write() as tx:
        await add_token(tx, token, Scope.OPERATOR)
    await s2.database.close()


def _changed(reservation: bytes) -> bytes:
    """A receipt that says another number than the one which the aggregator signed."""
    signed = decode(reservation)
    assert isinstance(signed, Signed)
    said = parse(signed.payload)
    assert isinstance(said, Reservation)
    return encode(replace(signed, payload=encode(replace(said, epsilon=b"5"))))


def test_receipts_shown_over_http_open_the_population_again(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    """What the coordinator has kept is what the aggregator signed: shown by the operator, and only by the operator, it is counted again."""
    survey, _, _ = ended_after_the_backup(serving, almost_noiseless, tmp_path, copies)
    asyncio.run(with_operator(copies, OPERATOR))
    with serving(tmp_path, copies.urls):
        kept, path = (
            survey.servers.reservations(survey.params),
            "/v1/populations/people/reservations",
        )
        operator = RemoteServer("http://s2", name="S2", token=OPERATOR)
        forged = [b64encode(_changed(b64decode(receipt))).decode() for receipt in kept]
        for shown, told in (
            ([], "show the newest reservation"),
            (["AAAA"], "refuses"),
            (forged, "refuses"),
        ):
            with pytest.raises(RemoteError, match=told):
                operator.call("POST", path, json_body={"reservations": shown})
        with pytest.raises(RemoteError, match="for the operator"):
            survey.servers.s2.call("POST", path, json_body={"reservations": kept})
        assert survey.servers.s2.call("GET", "/v1/populations/people").json()["closed"]
        opened_again = operator.call("POST", path, json_body={"reservations": kept}).json()
        assert (opened_again["closed"], opened_again["reservations"]) == (False, 1)
        assert opened_again["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)


def test_a_database_is_not_put_back_under_a_server_that_runs(
    serving: Serving, tmp_path: Path
) -> None:
    with serving(tmp_path):
        pass
    copy = tmp_path / "copy.sqlite"
    back_up(url(tmp_path, "s1"), copy)
    with socket.socket() as running:
        running.bind(("127.0.0.1", 0))
        running.listen()
        settings = tmp_path / "coordinator.toml"
        settings.write_text(
            f'database = "{url(tmp_path, "s1")}"\nport = {running.getsockname()[1]}\n'
        )
        before = sqlite_file(url(tmp_path, "s1")).read_bytes()
        tried = CliRunner().invoke(
            main, ["restore", "coordinator", str(copy), "--settings", str(settings)]
        )
        assert (tried.exit_code, "stop the coordinator first" in tried.output) == (2, True)
        assert sqlite_file(url(tmp_path, "s1")).read_bytes() == before


def make_withdrawal(survey: TrialSurvey, place: int) -> Message:
    client = begin_client(survey, place, 0, SystemEntropy())
    return SERVERS.client.withdraw(client).waiting[0]


def test_a_worker_that_was_forgotten_notices_that_its_database_was_put_back(tmp_path: Path) -> None:
    """What it has in memory is of another past, although as many changes were written in it."""
    address, copy = f"sqlite:///{tmp_path}/s1.sqlite", tmp_path / "copy.sqlite"

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            mechanism = Laplace(items=3, epsilon=20.0, users=6, dropouts=2)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            back_up(address, copy)
            require_success(await pair.to_s1.post(f"{survey.path}/abort"))
            before = await send_message(pair.to_s1, survey, make_withdrawal(survey, 0))
            assert isinstance(before, Rejection)
            assert before.why is Reason.LATE
            restore_database(address, copy, "coordinator")
            other = await server_in(tmp_path / "s1", address, "s1")
            await restore_coordinator(other)
            await other.database.close()
            answer = await send_message(pair.to_s1, survey, make_withdrawal(survey, 1))
            assert isinstance(answer, Rejection)
            assert answer.why is Reason.EARLY  # it asks the aggregator first what stands

    asyncio.run(work())


def test_what_is_no_backup_of_this_server_is_refused(serving: Serving, tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    copy, other = tmp_path / "copy.sqlite", tmp_path / "other.sqlite"
    back_up(url(tmp_path, "s1"), copy)
    with pytest.raises(RefusedError, match="is there already"):
        back_up(url(tmp_path, "s1"), copy)
    with pytest.raises(RefusedError, match="another server than the aggregator"):
        restore_database(url(tmp_path, "s2"), copy, "aggregator")
    other.write_bytes(b"hello" * 1000)
    with pytest.raises(RefusedError, match="is no backup of faircount"):
        restore_database(url(tmp_path, "s1"), other, "coordinator")
    # One page of it cannot be read, and not the one with its role.
    sound = copy.read_bytes()
    copy.write_bytes(sound[:-4096] + b"\xff" * 4096)
    with pytest.raises(RefusedError, match="malformed"):
        restore_database(url(tmp_path, "s1"), copy, "coordinator")
    with pytest.raises(ParameterError, match="there is no backup"):
        restore_database(url(tmp_path, "s1"), tmp_path / "none", "coordinator")
    with pytest.raises(RefusedError, match="pg_dump and pg_restore"):
        sqlite_file("postgresql://a/b")


def test_the_file_of_servers_is_kept(serving: Serving, tmp_path: Path) -> None:
    """Restarting the servers of these tests keeps their owner: else nothing here would be tested."""
    with serving(tmp_path):
        first = json.loads((tmp_path / "servers.json").read_text())
    with serving(tmp_path):
        assert json.loads((tmp_path / "servers.json").read_text()) == first


def test_both_servers_are_restored_at_once(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: Copies
) -> None:
    with serving(tmp_path, copies.urls):
        survey = almost_noiseless(tmp_path, SERVERS, 6)
        for name in ("s1", "s2"):
            copies.copy(name, tmp_path / name)
        begun(survey, tmp_path / "devices", 6)
    assert [copies.restore(name, tmp_path / name) for name in ("s1", "s2")] == [
        RestoreOutcome(resumed=(survey.params.survey,)),
        RestoreOutcome(ended=(survey.params.survey,), closed=("people",)),
    ]
    with serving(tmp_path, copies.urls):
        ended = survey.ending(wait=True)
        assert ended.code == EndCode.AGGREGATOR_RESTORED

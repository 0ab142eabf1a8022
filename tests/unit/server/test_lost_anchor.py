"""The aggregator's anchor is lost: only what it signed itself shows what was spent."""

import asyncio
import json
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from database_copies import SqliteCopies
from in_process import server_in
from whole_survey import answer_all, close

from faircount.cli import main
from faircount.client.calls import RemoteServer
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError, RemoteError
from faircount.demo.processes import free_port
from faircount.owner.survey import Survey
from faircount.protocol import SERVERS, Ledger, decode, encode
from faircount.protocol.roles.anchor import ledger_name
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import Charge
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.reservations import reservation_for
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.messages import Reservation, Signed
from faircount.protocol.wire.signing import SigningKey, sign
from faircount.server.common.logs import JsonLines
from faircount.server.common.tokens import Scope, add_token
from faircount.server.restore import RestoreOutcome

Serving = Callable[..., Any]
OPERATOR = "operator-at-s2"
PATH = "/v1/populations/people/reservations"


@pytest.fixture
def copies(tmp_path: Path) -> SqliteCopies:
    urls = tuple(f"sqlite:///{tmp_path}/{name}.sqlite" for name in ("s1", "s2"))
    return SqliteCopies(tmp_path / "servers", urls)  # type: ignore[arg-type]  # two of them


def make_up_reservation(epsilon: float, survey: bytes | None = None) -> str:
    """A reservation that anybody can make: whole and chained, but with a key of their own."""
    survey = survey or SystemEntropy().bytes(16)
    ledger = Ledger("people", 41.0, 0.5).reserve(Charge(survey, epsilon, 0.0))
    content = reservation_for(ledger, survey, bytes(32), bytes(32))
    key = SigningKey.generate(SystemEntropy())
    return b64encode(encode(sign(key, Party.AGGREGATOR, content))).decode()


def change(reservation: str) -> str:
    """A reservation of the aggregator that somebody has changed, with its old signature."""
    signed = decode(b64decode(reservation))
    assert isinstance(signed, Signed)
    said = parse(signed.payload)
    assert isinstance(said, Reservation)
    return b64encode(encode(replace(signed, payload=encode(replace(said, epsilon=b"5"))))).decode()


def publish_after_backup(
    serving: Serving, made: Any, folder: Path, copies: SqliteCopies
) -> tuple[Survey, list[str]]:
    """A survey that reserves and publishes after the backup; and the coordinator's reservations."""
    with serving(folder, copies.urls):
        survey = made(folder, SERVERS, 6)
        copies.copy("s2", folder / "copy")
        answer_all(survey, folder)
        close(survey)
        survey.ending(wait=True)
        kept = survey.servers.reservations(survey.params)
    asyncio.run(_add_operator(copies))
    return survey, kept


async def _add_operator(copies: SqliteCopies) -> None:
    s2 = await server_in(copies.folder / "s2", copies.url("s2"), "s2")
    async with s2.database.write() as tx:
        await add_token(tx, OPERATOR, Scope.OPERATOR)
    await s2.database.close()


def lose_anchor(copies: SqliteCopies) -> None:
    shutil.rmtree(copies.folder / "s2" / "anchor")


@pytest.fixture
def ended(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: SqliteCopies
) -> tuple[Survey, list[str]]:
    return publish_after_backup(serving, almost_noiseless, tmp_path, copies)


def restore_with_new_anchor(copies: SqliteCopies, folder: Path) -> RestoreOutcome:
    lose_anchor(copies)
    outcome = copies.restore("s2", folder / "copy", has_new_anchor=True)
    asyncio.run(_add_operator(copies))
    return outcome


def show(reservations: list[str], newest: int | None = None, path: str = PATH) -> dict[str, Any]:
    """What the operator shows to the aggregator; the budget, if it opens the population."""
    operator = RemoteServer("http://s2", name="S2", token=OPERATOR)
    body: dict[str, Any] = {"reservations": reservations}
    if newest is not None:
        body["newest"] = newest
    budget: dict[str, Any] = operator.call("POST", path, json_body=body).json()
    return budget


def test_a_reservation_of_anybodys_making_opens_nothing(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    survey, kept = ended
    restore_with_new_anchor(copies, tmp_path)
    with serving(tmp_path, copies.urls):
        with pytest.raises(RemoteError, match="signing key this aggregator does not know"):
            show([make_up_reservation(1e-6)], newest=1)
        # Made up about a survey that the aggregator has had.
        for made_up in (make_up_reservation(1e-6, survey=survey.params.survey), change(kept[0])):
            with pytest.raises(RemoteError, match="not one that this aggregator has signed"):
                show([made_up], newest=1)
        assert survey.servers.s2.call("GET", "/v1/populations/people").json()["closed"]


def test_a_server_without_its_anchor_does_not_start(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    lose_anchor(copies)
    with (
        pytest.raises(RefusedError, match="restore aggregator --new-anchor"),
        serving(tmp_path, copies.urls),
    ):
        pass
    # The anchor of another server is no better than none.
    shutil.rmtree(copies.folder / "s2" / "anchor")
    shutil.copytree(copies.folder / "s1" / "anchor", copies.folder / "s2" / "anchor")
    with pytest.raises(RefusedError, match="not the anchor of this database"):
        copies.restore("s2", tmp_path / "copy")


def test_an_anchor_that_is_not_lost_is_not_replaced(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    with pytest.raises(RefusedError, match="nothing is lost"):
        copies.restore("s2", tmp_path / "copy", has_new_anchor=True)


def test_the_operator_states_the_newest_reservation_if_the_anchor_is_lost(
    serving: Serving,
    ended: tuple[Survey, list[str]],
    tmp_path: Path,
    copies: SqliteCopies,
) -> None:
    survey, kept = ended
    done = restore_with_new_anchor(copies, tmp_path)
    assert (done.closed, done.removed_keys) == (("people",), 0)
    with serving(tmp_path, copies.urls) as both:
        for stated in (None, 2):
            with pytest.raises(RemoteError, match="number 1 is the newest of those shown"):
                show(kept, newest=stated)
        budget = show(kept, newest=1)
        assert (budget["closed"], budget["reservations"]) == (False, 1)
        assert budget["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)
        # From now on the anchor knows it.
        head = both.pair.s2.server.anchor.current_value(ledger_name("people"))
        ledger = asyncio.run(stored_ledger_of(copies))
        assert (head, ledger.closed) == (ledger.heads[0], False)


async def stored_ledger_of(copies: SqliteCopies) -> Ledger:
    s2 = await server_in(copies.folder / "s2", copies.url("s2"), "s2")
    async with s2.database.read() as tx:
        row = await tx.fetch_one("SELECT ledger FROM populations WHERE name = 'people'")
    await s2.database.close()
    assert row is not None
    return stored_ledger.decode(bytes(row["ledger"]))


def test_withheld_reservations_do_not_open_a_population_that_the_anchor_knows(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    """Whatever the operator states: the anchor knows better."""
    _, kept = ended
    copies.restore("s2", tmp_path / "copy")
    asyncio.run(_add_operator(copies))
    with serving(tmp_path, copies.urls) as both:
        anchor = both.pair.s2.server.anchor
        name = ledger_name("people")
        assert anchor.advance(name, anchor.current_value(name), b"\1" * 32)
        with pytest.raises(RemoteError, match="knows a newer reservation"):
            show(kept, newest=1)


def test_the_reservations_of_another_owner_open_nothing(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    """A second owner opens a population of the same name after the first one's was forgotten."""
    _, kept = ended
    restore_with_new_anchor(copies, tmp_path)
    copies.execute("s2", "UPDATE populations SET owner = ?", b"another owner")
    with (
        serving(tmp_path, copies.urls),
        pytest.raises(RemoteError, match="not one that this aggregator has signed"),
    ):
        show(kept, newest=1)


def budget_of(survey: Survey) -> dict[str, Any]:
    epsilon, delta = survey.owner.budget
    return {"epsilon": epsilon, "delta": delta}


def test_a_population_that_the_database_forgot_does_not_get_a_larger_budget(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    """The reservations, which all are shown, do not tell how large the budget was."""
    survey, kept = ended
    copies.restore("s2", tmp_path / "copy")
    asyncio.run(_add_operator(copies))
    copies.execute("s2", "DELETE FROM populations")
    known = budget_of(survey)
    others = (
        {**known, "epsilon": 2 * known["epsilon"]},
        {**known, "delta": (1 + known["delta"]) / 2},
        {**known, "adaptive": False},
    )
    with serving(tmp_path, copies.urls):
        for other in others:
            with pytest.raises(RemoteError, match="a budget is not raised"):
                survey.servers.s2.call("PUT", "/v1/populations/people", json_body=other)
        survey.servers.s2.call("PUT", "/v1/populations/people", json_body=known)
        assert show(kept)["epsilon"] == known["epsilon"]


def test_nobody_else_takes_the_name_of_a_population_that_the_database_forgot(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    survey, _ = ended
    copies.execute("s2", "DELETE FROM populations")
    copies.execute("s2", "UPDATE tokens SET holder = ? WHERE scope = 'owner'", b"stranger")
    with serving(tmp_path, copies.urls), pytest.raises(RemoteError, match="not raised"):
        survey.servers.s2.call("PUT", "/v1/populations/people", json_body=budget_of(survey))


@pytest.mark.parametrize("what_remains", ["anchor", "keys"])
def test_a_population_that_the_database_forgot_is_opened_closed(
    serving: Serving,
    ended: tuple[Survey, list[str]],
    tmp_path: Path,
    copies: SqliteCopies,
    what_remains: str,
) -> None:
    """Its budget was spent after the backup, which does not even have its name."""
    survey, kept = ended
    if what_remains == "keys":
        restore_with_new_anchor(copies, tmp_path)
    else:
        for record in (copies.folder / "s2" / "keys").glob("*.signer"):
            record.unlink()
    copies.execute("s2", "DELETE FROM populations")
    with serving(tmp_path, copies.urls):
        budget = survey.servers.s2.call(
            "PUT", "/v1/populations/people", json_body=budget_of(survey)
        ).json()
        assert (budget["closed"], budget["spent"]["epsilon"]) == (True, 0)
        other = survey.servers.s2.call(
            "PUT", "/v1/populations/others", json_body={"epsilon": 50.0, "delta": 0.5}
        ).json()
        assert not other["closed"]
        shown = show(kept, newest=1)
        assert (shown["closed"], shown["reservations"]) == (False, 1)
        assert shown["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)


def test_the_aggregator_knows_its_keys_without_its_database(
    serving: Serving, ended: tuple[Survey, list[str]], tmp_path: Path, copies: SqliteCopies
) -> None:
    """Of a survey that was created after the backup only the folder of keys knows the signer."""
    _, kept = ended
    restore_with_new_anchor(copies, tmp_path)
    copies.execute("s2", "DELETE FROM survey_keys")
    with serving(tmp_path, copies.urls):
        assert not show(kept, newest=1)["closed"]
    for record in (copies.folder / "s2" / "keys").glob("*.signer"):
        record.unlink()
    with (
        serving(tmp_path, copies.urls),
        pytest.raises(RemoteError, match="the folder of keys is lost"),
    ):
        show(kept, newest=1)


def test_a_coordinator_without_its_anchor_ends_what_was_running(
    serving: Serving, almost_noiseless: Any, tmp_path: Path, copies: SqliteCopies
) -> None:
    """It may have sent its one sum, and would not know."""
    with serving(tmp_path, copies.urls):
        survey = almost_noiseless(tmp_path, SERVERS, 6)
        answer_all(survey, tmp_path)
        survey.servers.survey_keys()
        copies.copy("s1", tmp_path / "copy")
    shutil.rmtree(copies.folder / "s1" / "anchor")
    done = copies.restore("s1", tmp_path / "copy", has_new_anchor=True)
    assert done == RestoreOutcome(ended=(survey.params.survey,), removed_keys=1)
    assert not list((copies.folder / "s1" / "keys").glob("unused-*"))
    assert copies.execute("s1", "SELECT id FROM survey_keys WHERE used_by IS NULL") == []
    with serving(tmp_path, copies.urls):
        # Nothing is left to close: otherwise there would be a result.
        with suppress(RemoteError):
            close(survey)
        assert survey.ending(wait=True).code == EndCode.COORDINATOR_RESTORED


def test_an_operator_states_on_the_command_line_that_the_anchor_is_lost(tmp_path: Path) -> None:
    settings = tmp_path / "aggregator.toml"
    settings.write_text(f'data = "{tmp_path}/data"\nport = {free_port()}\n')

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*arguments, "--settings", str(settings)])
        return done.exit_code, " ".join(done.output.split())

    assert run("token", "list", "aggregator")[0] == 0
    shutil.rmtree(tmp_path / "data" / "anchor")
    for command in (("token", "list", "aggregator"), ("restore", "aggregator")):
        code, output = run(*command)
        assert (code, "faircount restore aggregator --new-anchor" in output) == (2, True)
    code, output = run("restore", "aggregator", "--new-anchor")
    assert (code, "Nobody can know from it which reservation" in output) == (0, True)
    assert "which tokens were revoked" in output
    assert run("token", "list", "aggregator")[0] == 0
    code, output = run("restore", "aggregator", "--new-anchor")
    assert (code, "nothing is lost" in output) == (2, True)


def test_the_log_names_every_reservation(
    serving: Serving,
    almost_noiseless: Any,
    tmp_path: Path,
    copies: SqliteCopies,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "faircount.aggregator")
    publish_after_backup(serving, almost_noiseless, tmp_path, copies)
    (line,) = (
        json.loads(JsonLines().format(record))
        for record in caplog.records
        if record.message == "reserved"
    )
    assert (line["population"], line["number"]) == ("people", 1)

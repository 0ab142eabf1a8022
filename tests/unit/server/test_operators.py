"""Who runs the servers, over their calls: nobody but an operator can state its name."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from in_process import Pair, in_process, rename_operator
from trial_survey import (
    BUDGET,
    fetch_survey_keys,
    open_trial,
    register_parameters,
    require_success,
    set_up,
)

from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError
from faircount.mechanisms.laplace import Laplace
from faircount.owner.survey import Survey
from faircount.protocol import SERVERS, SurveyParameters, propose
from faircount.protocol.survey.operators import format_fingerprint
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.signing import SigningKey
from faircount.storage.keys import KeyFolder

ACME = ("Acme marketing", "Acme marketing")


def run(folder: Path, test: Callable[[Pair], Awaitable[None]], names: Any = ACME) -> None:
    async def play() -> None:
        async with in_process(folder, operators=names) as pair:
            await test(pair)

    asyncio.run(play())


async def parameters(pair: Pair, **change: str) -> SurveyParameters:
    keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
    require_success(await pair.to_s2.put("/v1/populations/people", json=BUDGET))
    names = {"s1_operator": ACME[0], "s2_operator": ACME[1], **change}
    mechanism = Laplace(items=["a", "b"], epsilon=20.0, users=6, dropouts=2)
    terms = {"survey": SystemEntropy().bytes(16), "topology": SERVERS, "population": "people"}
    return propose(mechanism, keys, **terms, **names)


async def put(client: httpx.AsyncClient, params: SurveyParameters) -> httpx.Response:
    return await client.put(f"/v1/surveys/{params.survey.hex()}", content=params.published)


@pytest.mark.parametrize("server", ["s1", "s2"])
def test_a_server_refuses_parameters_that_name_another_operator(
    tmp_path: Path, server: str
) -> None:
    """The attack: Acme's servers, and parameters that name the university."""

    async def attack(pair: Pair) -> None:
        client = {"s1": pair.to_s1, "s2": pair.to_s2}[server]
        false = await parameters(pair, **{f"{server}_operator": "University of Aldmoor"})
        answer = await put(client, false)
        assert (answer.status_code, answer.json()["code"]) == (409, "other_operator")
        assert "run by Acme marketing" in answer.json()["detail"]
        true = await parameters(pair)
        key = SigningKey(b"\1" * 32).public
        for other in ({f"{server}_operator_key": key}, {f"{server}_operator_key": bytes(32)}):
            answer = await put(client, replace(true, keys=replace(true.keys, **other)))
            assert answer.json()["code"] == "other_operator"
        assert (await put(client, true)).status_code == 201

    run(tmp_path, attack)


def test_both_signatures_are_shown_to_anybody(tmp_path: Path) -> None:
    async def play(pair: Pair) -> None:
        params = await parameters(pair)
        await register_parameters(pair.to_s1, pair.to_s2, params)
        path = f"/v1/surveys/{params.survey.hex()}/operators"
        stranger = httpx.AsyncClient(transport=pair.to_s1._transport, base_url="http://s1")
        signed = (await stranger.get(path)).json()
        assert [len(bytes.fromhex(signed[name])) for name in ("s1", "s2")] == [64, 64]
        assert (await stranger.put(path, content=bytes(64))).status_code == 401
        missing = f"/v1/surveys/{bytes(16).hex()}/operators"
        assert (await stranger.get(missing)).status_code == 404
        for client in (pair.to_s1, pair.to_s2):
            shown = (await client.get("/v1/operator", headers={"Authorization": ""})).json()
            key = bytes.fromhex(shown["operator_key"])
            assert shown["operator"] == "Acme marketing"
            assert shown["fingerprint"] == format_fingerprint(key)

    run(tmp_path, play)


def test_the_coordinator_takes_no_signature_but_that_of_the_aggregators_operator(
    tmp_path: Path,
) -> None:
    async def attack(pair: Pair) -> None:
        params = await parameters(pair)
        await put(pair.to_s2, params)
        require_success(await put(pair.to_s1, params))
        path = f"/v1/surveys/{params.survey.hex()}"
        own = bytes.fromhex((await pair.to_s1.get(f"{path}/operators")).json()["s1"])
        for signature in (own, bytes(64), b""):
            answer = await pair.to_s1.put(f"{path}/operators", content=signature)
            assert answer.status_code == 400
        assert (await pair.to_s1.get(f"{path}/operators")).json()["s2"] is None

    run(tmp_path, attack)


def test_a_survey_without_the_aggregators_signature_is_not_opened(tmp_path: Path) -> None:
    async def play(pair: Pair) -> None:
        params = await parameters(pair)
        require_success(await put(pair.to_s1, params))
        path = f"/v1/surveys/{params.survey.hex()}"
        people = os.urandom(32 * 6)
        require_success(await pair.to_s1.put(f"{path}/invited/0", content=people))
        answer = await pair.to_s1.post(f"{path}/open", json={})
        assert (answer.status_code, answer.json()["code"]) == (409, "operator_unsigned")

    run(tmp_path, play)


def test_a_renamed_operator_keeps_what_it_has_signed(tmp_path: Path) -> None:
    async def play(pair: Pair) -> None:
        survey = await set_up(
            pair.to_s1,
            pair.to_s2,
            Laplace(items=["a", "b"], epsilon=20.0, users=6, dropouts=2),
            SERVERS,
            SystemEntropy(),
            s1_operator=ACME[0],
            s2_operator=ACME[1],
        )
        before = (await pair.to_s1.get(f"{survey.path}/operators")).json()
        rename_operator(pair.s1.server, "Acme insights", SigningKey(b"\5" * 32))
        await register_parameters(pair.to_s1, pair.to_s2, survey.params)
        assert (await pair.to_s1.get(f"{survey.path}/operators")).json() == before

    run(tmp_path, play)


def test_an_unnamed_operator_signs_too(tmp_path: Path) -> None:
    async def play(pair: Pair) -> None:
        survey = await open_trial(pair.to_s1, pair.to_s2)
        signed = (await pair.to_s1.get(f"{survey.path}/operators")).json()
        assert [len(signed[name]) for name in ("s1", "s2")] == [128, 128]

    run(tmp_path, play, ("", ""))


def test_the_key_is_made_once_by_whoever_comes_first(tmp_path: Path) -> None:
    first = KeyFolder(tmp_path).operator_secret()
    assert first == KeyFolder(tmp_path).operator_secret()
    assert [file.name for file in tmp_path.iterdir()] == ["operator.key"]
    assert (tmp_path / "operator.key").stat().st_mode & 0o77 == 0


def test_of_two_workers_that_start_at_once_both_use_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = KeyFolder(tmp_path)
    link = os.link

    def late(source: Path, target: Path) -> None:
        # The other worker finishes in between.
        monkeypatch.setattr(os, "link", link)
        other.append(KeyFolder(tmp_path).operator_secret())
        link(source, target)

    other: list[bytes] = []
    monkeypatch.setattr(os, "link", late)
    assert [folder.operator_secret()] == other


@pytest.mark.parametrize("role", ["coordinator", "aggregator"])
def test_a_command_prints_what_an_organization_publishes(tmp_path: Path, role: str) -> None:
    arguments = [role, "--data", str(tmp_path), "--operator", "University of Aldmoor"]
    done = CliRunner().invoke(main, [*arguments, "--show-operator"], catch_exceptions=False)
    key = SigningKey(KeyFolder(tmp_path / "keys").operator_secret()).public
    assert done.output.splitlines() == [
        "operator: University of Aldmoor",
        f"operator_key: {key.hex()}",
        f"fingerprint: {format_fingerprint(key)}",
    ]


def make_survey(both_apps: Any, **more: Any) -> Survey:
    terms = {"question": "Tea?", "items": ["tea", "coffee"], "users": 12, "epsilon": 8.0}
    folder = both_apps.folder / "survey"
    return Survey.create(folder, servers=both_apps.servers_file, anyway=True, **{**terms, **more})


def link_of(survey: Survey) -> str:
    survey.invite()
    survey.open()
    return survey.invitees()[0].code.link(survey.owner.public_address)


def test_an_owner_takes_the_names_that_the_servers_state(both_apps: Any) -> None:
    survey = make_survey(both_apps)
    assert (survey.params.s1_operator, survey.params.s2_operator) == ("One", "Two")


@pytest.mark.parametrize("server", ["s1", "s2"])
def test_an_owner_cannot_state_another_name(both_apps: Any, server: str) -> None:
    with pytest.raises(RefusedError, match="runs it, not University of Aldmoor"):
        make_survey(both_apps, **{f"{server}_operator": "University of Aldmoor"})
    assert not (both_apps.folder / "survey").exists()


def test_a_participant_answers_where_both_operators_signed(both_apps: Any, tmp_path: Path) -> None:
    link = link_of(make_survey(both_apps))
    assert connect(link, state=tmp_path / "device").answer("tea").description


@pytest.mark.parametrize("shown", [None, {}, [], {"s1": None, "s2": None}, {"s1": 7, "s2": "zz"}])
def test_a_coordinator_that_shows_no_signatures_gets_no_answer(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: object
) -> None:
    link = link_of(make_survey(both_apps))
    assert_refused(both_apps, tmp_path, monkeypatch, link, lambda signed: shown)


@pytest.mark.parametrize("server", ["s1", "s2"])
def test_a_swapped_server_gets_no_answer(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """Another operator took over a server, and signs the parameters with its own key."""
    survey = make_survey(both_apps)
    link = link_of(survey)
    served = {"s1": both_apps.pair.s1, "s2": both_apps.pair.s2}[server].server
    other = replace(served.operator, key=SigningKey(b"\6" * 32))
    roles = {"s1": Party.COORDINATOR, "s2": Party.AGGREGATOR}
    signature = other.sign(survey.params, roles[server]).hex()
    assert_refused(
        both_apps, tmp_path, monkeypatch, link, lambda signed: {**signed, server: signature}
    )


def assert_refused(
    both_apps: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    link: str,
    change: Callable[[Any], object],
) -> None:
    """A participant sees what the coordinator shows after a change, and sends nothing."""
    part = connect(link, state=tmp_path / "device")
    call = part.server.call
    sent: list[str] = []

    class Changed:
        def __init__(self, content: object) -> None:
            self.content = content

        def json(self) -> object:
            return self.content

    def calls(method: str, path: str, *given: Any, **more: Any) -> Any:
        sent.append(method)
        reply = call(method, path, *given, **more)
        return Changed(change(reply.json())) if path.endswith("/operators") else reply

    monkeypatch.setattr(part.server, "call", calls, raising=False)
    with pytest.raises(RefusedError, match=r"has not signed that .* runs it"):
        part.answer("tea")
    assert set(sent) == {"GET"}
    assert not (tmp_path / "device").exists()

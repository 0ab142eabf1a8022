"""What one owner cannot do to another, and what no owner can change once a survey has begun."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import Pair, in_process
from trial_survey import (
    BUDGET,
    TrialSurvey,
    begin_client,
    fetch_survey_keys,
    open_trial,
    register_parameters,
    require_success,
    visit_once,
)

from faircount.core.entropy import SeededStream, SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Keys, MemoryRows, SurveyParameters, propose
from faircount.protocol.roles.anchor import UNSET
from faircount.protocol.topologies.two_servers import messages
from faircount.server.aggregator import steps
from faircount.server.aggregator.reservations import reopen_population
from faircount.server.common.problems import ProblemError
from faircount.server.common.tokens import Scope, add_token
from faircount.server.restore import restore_aggregator
from faircount.storage import states

OTHER = {"Authorization": "Bearer another-owner"}
USERS = 8
Work = Callable[[Pair], Awaitable[None]]


def run(folder: Path, work: Work) -> None:
    """Do this with both servers, at which a second owner has tokens too."""

    async def with_both() -> None:
        async with in_process(folder) as pair:
            for server in (pair.s1.server, pair.s2.server):
                async with server.database.write() as tx:
                    await add_token(tx, "another-owner", Scope.OWNER)
            await work(pair)

    asyncio.run(with_both())


def parameters(keys: Keys, population: str = "trial") -> SurveyParameters:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=USERS, dropouts=2)
    survey = SystemEntropy().bytes(16)
    return propose(mechanism, keys, survey=survey, topology=SERVERS, population=population)


def path_of(params: SurveyParameters) -> str:
    return f"/v1/surveys/{params.survey.hex()}"


def problem_of(answer: httpx.Response) -> tuple[int, Any]:
    """The status, and the code of the problem or the last word of its type."""
    problem = answer.json()
    return answer.status_code, problem.get("code") or problem["type"].split(":")[-1]


async def answer_survey(pair: Pair, **terms: Any) -> TrialSurvey:
    """A survey that everybody has answered."""
    entropy = SeededStream(3)
    survey = await open_trial(pair.to_s1, pair.to_s2, USERS, **terms)
    for place in range(USERS):
        device = begin_client(survey, place, place % 3, entropy)
        await visit_once(pair.to_s1, survey, device, entropy)
    return survey


async def close_survey(pair: Pair, survey: TrialSurvey) -> dict[str, Any]:
    """Close a survey, let the servers finish it, and return how it ended."""
    require_success(await pair.to_s1.post(f"{survey.path}/close"))
    await pair.scheduler.run_once()
    ended: dict[str, Any] = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
    return ended


async def count_survey(pair: Pair, **terms: Any) -> TrialSurvey:
    """A survey that everybody has answered and that has its result."""
    survey = await answer_survey(pair, **terms)
    assert (await close_survey(pair, survey))["phase"] == "published"
    return survey


# --- another owner --------------------------------------------------------------------------------


def test_the_budget_of_another_owner_is_neither_shown_nor_spent(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        shown = await pair.to_s2.get("/v1/populations/trial", headers=OTHER)
        assert problem_of(shown) == (409, "no-population")
        opened = await pair.to_s2.put("/v1/populations/trial", json=BUDGET, headers=OTHER)
        assert problem_of(opened) == (409, "other_budget")
        pair.to_s1.headers.update(OTHER)
        pair.to_s2.headers.update(OTHER)
        params = parameters(await fetch_survey_keys(pair.to_s1, pair.to_s2))
        created = await pair.to_s2.put(path_of(params), content=params.published)
        assert problem_of(created) == (409, "no-population")

    run(tmp_path, work)


def test_a_budget_is_never_raised(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        for name in BUDGET:
            raised = {**BUDGET, name: 1.05 * BUDGET[name]}
            answer = await pair.to_s2.put("/v1/populations/trial", json=raised)
            assert problem_of(answer) == (409, "other_budget")

    run(tmp_path, work)


def test_survey_keys_of_another_owner_are_not_used(tmp_path: Path) -> None:
    """Public keys are in published parameters, where everybody reads them."""

    async def work(pair: Pair) -> None:
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        theirs = await pair.to_s2.put("/v1/populations/theirs", json=BUDGET, headers=OTHER)
        require_success(theirs)
        keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
        stolen = parameters(keys, "theirs")
        for server in (pair.to_s1, pair.to_s2):
            answer = await server.put(path_of(stolen), content=stolen.published, headers=OTHER)
            assert problem_of(answer) == (409, "no-survey-keys")
        params = parameters(keys)
        for server in (pair.to_s1, pair.to_s2):
            require_success(await server.put(path_of(params), content=params.published))

    run(tmp_path, work)


def test_reservations_are_shown_to_the_owner_of_the_surveys_only(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        await count_survey(pair)
        path = "/v1/reservations?population=trial"
        own = require_success(await pair.to_s1.get(path)).json()
        assert len(own["reservations"]) == 1
        theirs = require_success(await pair.to_s1.get(path, headers=OTHER)).json()
        assert theirs == {"reservations": []}

    run(tmp_path, work)


# --- once a survey has begun ----------------------------------------------------------------------


def test_the_encryption_key_in_the_parameters_is_the_aggregators(tmp_path: Path) -> None:
    """Otherwise whoever has the other key could read the second share of every report."""

    async def work(pair: Pair) -> None:
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
        others = await fetch_survey_keys(pair.to_s1, pair.to_s2)
        params = parameters(replace(keys, encryption_key=others.encryption_key))
        answer = await pair.to_s2.put(path_of(params), content=params.published)
        assert answer.status_code == 409
        assert "another encryption key" in answer.text
        right = parameters(keys)
        require_success(await pair.to_s2.put(path_of(right), content=right.published))

    run(tmp_path, work)


def test_a_list_of_people_is_fixed_when_its_survey_has_begun(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        require_success(await pair.to_s2.put("/v1/populations/trial", json=BUDGET))
        params = parameters(await fetch_survey_keys(pair.to_s1, pair.to_s2))
        path = path_of(params)
        await register_parameters(pair.to_s1, pair.to_s2, params)
        few = bytes(range(64))
        require_success(await pair.to_s1.put(f"{path}/invited/0", content=few))
        other_bytes = await pair.to_s1.put(f"{path}/invited/0", content=few[::-1])
        assert other_bytes.status_code == 409
        assert problem_of(await pair.to_s1.post(f"{path}/open")) == (409, "too_few_people")
        enough = b"".join(bytes([place]) * 32 for place in range(params.minimum - 2))
        require_success(await pair.to_s1.put(f"{path}/invited/1", content=enough))
        require_success(await pair.to_s1.post(f"{path}/open"))
        # There would be room for one more.
        one_more = await pair.to_s1.put(f"{path}/invited/2", content=bytes([99]) * 32)
        assert params.minimum < params.n_max
        assert problem_of(one_more) == (409, "list_fixed")
        # The same part again changes nothing, and is fine.
        again = require_success(await pair.to_s1.put(f"{path}/invited/0", content=few))
        assert again.json() == {"invited": params.minimum}

    run(tmp_path, work)


def test_the_aggregators_list_is_fixed_by_its_first_statement(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        survey = await open_trial(pair.to_s1, pair.to_s2, USERS)
        before = await pair.to_s2.put(f"{survey.path}/invited/7", content=bytes(48))
        assert before.json() == {"invited": USERS + 1}
        counted = await count_survey(pair)
        after = await pair.to_s2.put(f"{counted.path}/invited/7", content=bytes(48))
        assert problem_of(after) == (409, "list_fixed")

    run(tmp_path, work)


# --- what a server has forgotten, or not seen -----------------------------------------------------


def test_a_coordinator_that_forgot_its_aggregate_share_sends_no_other(tmp_path: Path) -> None:
    async def work(pair: Pair) -> None:
        survey = await answer_survey(pair)
        # Before its database was rolled back it had sent another one.
        sent = bytes([7]) * 32
        assert pair.s1.server.anchor.advance(b"s1/" + survey.params.survey, UNSET, sent)
        ended = await close_survey(pair, survey)
        assert ended["phase"] == "aborted"
        assert ended["ending"]["code"] == "coordinator_restored"

    run(tmp_path, work)


def test_a_step_is_made_again_if_the_survey_has_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step of a part of a manifest signs nothing: it is checked only when it is written."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 3)
    make_in_thread = steps._make_in_thread
    made = []

    async def change(pair: Pair, survey: bytes) -> None:
        async with pair.s2.server.database.write() as tx:
            row = await states.find(tx, survey, for_update=True)
            assert row is not None
            await states.update(tx, survey, version=row.version + 100)

    async def work(pair: Pair) -> None:
        loop = asyncio.get_running_loop()

        def make(snapshot: steps.Snapshot, body: bytes, computed: MemoryRows) -> Any:
            step = make_in_thread(snapshot, body, computed)
            made.append(snapshot.row.version)
            if len(made) == 1:
                changed = change(pair, snapshot.row.id)
                asyncio.run_coroutine_threadsafe(changed, loop).result(10)
            return step

        monkeypatch.setattr(steps, "_make_in_thread", make)
        survey = await count_survey(pair)
        assert made[1] == made[0] + 100
        async with pair.s2.server.database.read() as tx:
            row = await states.find(tx, survey.params.survey)
        assert row is not None
        assert row.version > 100

    run(tmp_path, work)


def test_a_restored_population_is_closed_although_no_survey_was_running(tmp_path: Path) -> None:
    """A survey may have been created and counted since the backup."""

    async def work(pair: Pair) -> None:
        for name in ("one", "two"):
            require_success(await pair.to_s2.put(f"/v1/populations/{name}", json=BUDGET))
        outcome = await restore_aggregator(pair.s2.server)
        assert outcome.closed == ("one", "two")
        for name in ("one", "two"):
            shown = require_success(await pair.to_s2.get(f"/v1/populations/{name}")).json()
            assert shown["closed"]

    run(tmp_path, work)


def test_the_reservations_of_one_population_do_not_open_another(tmp_path: Path) -> None:
    """The operator hears that, and not that two histories were signed."""

    async def work(pair: Pair) -> None:
        for name in ("first", "second"):
            require_success(await pair.to_s2.put(f"/v1/populations/{name}", json=BUDGET))
        await count_survey(pair, population="first")
        async with pair.s1.server.database.read() as tx:
            found = await tx.fetch_all("SELECT signed FROM reservations")
        shown = [bytes(record["signed"]) for record in found]
        await restore_aggregator(pair.s2.server)
        with pytest.raises(ProblemError, match="reservations of this population"):
            await reopen_population(pair.s2.server, "second", shown)
        closed = require_success(await pair.to_s2.get("/v1/populations/second")).json()
        assert (closed["closed"], closed["reservations"]) == (True, 0)
        reopened = await reopen_population(pair.s2.server, "first", shown)
        assert not reopened.closed

    run(tmp_path, work)

"""A survey with too few answers is held open, and nothing that an owner does by habit ends it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    begin_client,
    open_trial,
    require_success,
    set_up,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import EXPLICIT, ClientState

SECONDS = 60
GRACE = 600
ENTROPY = SystemEntropy()
USERS = 6
MINIMUM = 4


class Time:
    """A clock that stands still unless it is moved."""

    now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: int) -> None:
        self.now += 1000 * seconds


async def status(pair: Pair, survey: TrialSurvey) -> dict[str, Any]:
    found: dict[str, Any] = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
    return found


async def answer(pair: Pair, survey: TrialSurvey, *places: int) -> ClientState:
    """People at these places answer; the client of the last one."""
    for place in places:
        client = begin_client(survey, place, place % 3, ENTROPY)
        client = await visit_once(pair.to_s1, survey, client, ENTROPY)
    return client


async def finish(pair: Pair, survey: TrialSurvey) -> dict[str, Any]:
    """The status once nobody has anything to do."""
    while await pair.scheduler.run_once():
        pass
    return await status(pair, survey)


def play(
    folder: Path, script: Callable[[Pair, TrialSurvey, Time], Awaitable[None]], grace: int = GRACE
) -> None:
    """Play a script in a survey of six people, four of whom must answer."""
    time = Time()

    async def work() -> None:
        async with in_process(folder, time) as pair:
            survey = await open_trial(
                pair.to_s1, pair.to_s2, users=USERS, phase_seconds=(SECONDS,), grace=grace
            )
            assert survey.params.minimum == MINIMUM
            await script(pair, survey, time)

    asyncio.run(work())


def test_an_owner_who_closes_with_too_few_answers_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """The survey ended for ever: 240 of 400 answers were destroyed."""

    async def script(pair: Pair, survey: TrialSurvey, _: Time) -> None:
        await answer(pair, survey, 0, 1, 2)
        before = await status(pair, survey)
        refused = await pair.to_s1.post(f"{survey.path}/close", json={"phase": "submitting"})
        assert refused.status_code == 409
        assert refused.json()["code"] == "too_few_answers"
        assert refused.json()["values"] == {"answers": 3, "minimum": 4}
        assert "3 have answered, and 4 are needed" in refused.json()["detail"]
        assert await status(pair, survey) == before
        await answer(pair, survey, 3)
        require_success(await pair.to_s1.post(f"{survey.path}/close"))
        assert (await finish(pair, survey))["phase"] == "published"

    play(tmp_path, script)


def test_closing_is_refused_without_a_grace_period_too(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, _: Time) -> None:
        assert (await pair.to_s1.post(f"{survey.path}/close")).status_code == 409
        assert (await status(pair, survey))["phase"] == "submitting"

    play(tmp_path, script, grace=0)


def test_a_deadline_with_too_few_answers_holds_the_survey_open(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0, 1)
        assert (await status(pair, survey))["held_since"] is None
        time.pass_seconds(SECONDS)
        held = await finish(pair, survey)
        assert (held["phase"], held["responses"]) == ("submitting", 2)
        assert held["held_since"] is not None
        assert held["waits_for"].startswith("2 more answers; it was held open")
        # Late answers count, and the owner closes when there are enough.
        await answer(pair, survey, 2)
        assert (await status(pair, survey))["waits_for"].startswith("one more answer; ")
        await answer(pair, survey, 3)
        assert "who can close it now" in (await status(pair, survey))["waits_for"]
        require_success(await pair.to_s1.post(f"{survey.path}/close"))
        assert (await finish(pair, survey))["phase"] == "published"
        result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
        assert result["included"] == 4

    play(tmp_path, script)


def test_after_the_grace_period_it_ends(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0, 1, 2)
        time.pass_seconds(SECONDS)
        await finish(pair, survey)
        time.pass_seconds(GRACE - 1)
        assert (await finish(pair, survey))["phase"] == "submitting"
        time.pass_seconds(1)
        assert (await finish(pair, survey))["phase"] == "aborted"

    play(tmp_path, script)


def test_after_the_grace_period_enough_answers_are_counted(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0, 1, 2)
        time.pass_seconds(SECONDS)
        await finish(pair, survey)
        await answer(pair, survey, 3, 4)
        time.pass_seconds(GRACE)
        assert (await finish(pair, survey))["phase"] == "published"

    play(tmp_path, script)


def test_without_a_grace_period_it_ends_at_the_deadline(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0)
        time.pass_seconds(SECONDS)
        assert (await finish(pair, survey))["phase"] == "aborted"

    play(tmp_path, script, grace=0)


def test_the_owner_extends_a_held_survey_from_now_on(tmp_path: Path) -> None:
    """It can be held once more at the new deadline."""

    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0)
        time.pass_seconds(SECONDS)
        await finish(pair, survey)
        time.pass_seconds(10)
        seconds = {"seconds": SECONDS}
        extended = require_success(await pair.to_s1.post(f"{survey.path}/extend", json=seconds))
        assert extended.json()["held_since"] is None
        assert extended.json()["waits_for"].startswith("participants, until the closing time")
        time.pass_seconds(SECONDS - 1)
        assert (await finish(pair, survey))["held_since"] is None
        time.pass_seconds(1)
        assert (await finish(pair, survey))["held_since"] is not None

    play(tmp_path, script)


def test_the_owner_ends_a_held_survey(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        time.pass_seconds(SECONDS)
        await finish(pair, survey)
        require_success(await pair.to_s1.post(f"{survey.path}/abort", json={"reason": ""}))
        assert (await finish(pair, survey))["phase"] == "aborted"

    play(tmp_path, script)


def test_a_server_that_was_down_takes_no_grace_away(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0)
        time.pass_seconds(SECONDS + 2 * GRACE)
        assert (await finish(pair, survey))["held_since"] is not None
        time.pass_seconds(GRACE - 1)
        assert (await finish(pair, survey))["phase"] == "submitting"

    play(tmp_path, script)


def test_nothing_reaches_the_aggregator_while_a_survey_is_held(tmp_path: Path) -> None:
    async def script(pair: Pair, survey: TrialSurvey, time: Time) -> None:
        await answer(pair, survey, 0, 1)
        path = f"{survey.path}/status"
        before = require_success(await pair.to_s2.get(path)).json()
        time.pass_seconds(SECONDS)
        held = await finish(pair, survey)
        assert held["tries_again_at"] is None
        assert require_success(await pair.to_s2.get(path)).json() == before

    play(tmp_path, script)


def test_withdrawn_answers_do_not_count_as_answered(tmp_path: Path) -> None:
    """Five answered, two of them withdrew, and the status still said five."""

    async def script(pair: Pair, survey: TrialSurvey, _: Time) -> None:
        role = survey.params.topology.client
        await answer(pair, survey, 0, 1, 2)
        for place in (3, 4):
            client = await answer(pair, survey, place)
            for _ in range(2):  # also if the withdrawal is sent twice
                await visit_once(pair.to_s1, survey, role.withdraw(client), ENTROPY)
        # Somebody who never answered may withdraw, too.
        silent = begin_client(survey, 5, 0, ENTROPY)
        await visit_once(pair.to_s1, survey, role.withdraw(silent), ENTROPY)
        found = await status(pair, survey)
        assert (found["responses"], found["withdrawn"]) == (3, 2)
        refused = await pair.to_s1.post(f"{survey.path}/close")
        assert refused.json()["values"] == {"answers": 3, "minimum": 4}

    play(tmp_path, script)


def test_later_visits_are_held_too(tmp_path: Path) -> None:
    """Everybody enrolled and nobody came back in time: that ended the survey."""
    time = Time()
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=USERS, dropouts=2)

    async def work() -> None:
        async with in_process(tmp_path, time) as pair:
            phase_seconds = (SECONDS,) * len(EXPLICIT.phases)
            terms = {"phase_seconds": phase_seconds, "grace": GRACE}
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, EXPLICIT, ENTROPY, **terms)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            clients = []
            for place in range(USERS):
                client = begin_client(survey, place, place % 3, ENTROPY)
                clients.append(await visit_once(pair.to_s1, survey, client, ENTROPY))
            time.pass_seconds(SECONDS)
            assert (await finish(pair, survey))["phase"] == "sharing"
            time.pass_seconds(SECONDS)
            held = await finish(pair, survey)
            assert (held["phase"], held["responses"]) == ("sharing", USERS)
            assert held["waits_for"].startswith("participants who have to return; it was held")
            for client in clients:
                # They ask for the roster, and send what the phase needs.
                for _ in range(4):
                    client = await visit_once(pair.to_s1, survey, client, ENTROPY)
            time.pass_seconds(GRACE)
            going_on = await finish(pair, survey)
            assert (going_on["phase"], going_on["held_since"]) == ("submitting", None)

    asyncio.run(work())

"""An owner has every invitation and no server: what people have answered stays as they answered.

The owner makes a client of their own from the invitation of somebody who has answered, and tries to
withdraw that answer, to answer again, and to ask about it.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    ask_for_outcome,
    begin_client,
    require_success,
    send_message,
    set_up,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    ClientState,
    Invitation,
    Message,
    Topology,
)
from faircount.protocol.roles.client import has_progressed
from faircount.protocol.survey.devices import Notice
from faircount.protocol.wire.messages import NotReady, Reason, Rejection

TOPOLOGIES = (SERVERS, EXPLICIT, MASKED, TWO_STAGE)
PEOPLE = 8
MAX_PHASES = 12
MAX_EXCHANGES = 6


async def open_survey(pair: Pair, topology: Topology) -> TrialSurvey:
    """A survey of two items and eight people, almost without noise, open to them."""
    # The noise is 0 except with probability 1e-8.
    mechanism: FrequencyMechanism = Laplace(items=2, users=PEOPLE, epsilon=20.0, dropouts=2)
    terms: dict[str, Any] = {"minimum": 6, "population": "own"}
    budget = {"epsilon": 1000.0, "delta": 1 - 1e-12}
    require_success(await pair.to_s2.put("/v1/populations/own", json=budget))
    if topology is TWO_STAGE:
        # It samples everybody, and so promises almost nothing.
        almost = {"p": 1 - 1e-7, "alpha": 0.5, "gamma": 1e15}
        mechanism = TSSPrime(items=2, users=PEOPLE, floor=3, phi=1, dropouts=2, **almost)
        terms |= {"epsilon": 1.0, "k": 2}
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, topology, SystemEntropy(), **terms)
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    return survey


async def visit(pair: Pair, survey: TrialSurvey, client: ClientState) -> ClientState:
    """The client after it has sent all that it can send now."""
    for _ in range(MAX_EXCHANGES):
        after = await visit_once(pair.to_s1, survey, client, SystemEntropy())
        if not has_progressed(client, after):
            return after
        client = after
    return client


async def play_to_the_end(
    pair: Pair, survey: TrialSurvey, clients: Sequence[ClientState]
) -> list[ClientState]:
    """Everybody returns in every phase until there is a result; the clients after that."""
    people = list(clients)
    for _ in range(MAX_PHASES):
        people = [await visit(pair, survey, client) for client in people]
        found = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
        if found["phase"] == "published":
            return people
        seen = {"phase": found["phase"], "attempt": found["attempt"]}
        require_success(await pair.to_s1.post(f"{survey.path}/close", json=seen))
        await pair.scheduler.run_once()
    raise AssertionError("the survey does not end")


def owners_messages(survey: TrialSurvey, place: int) -> list[Message]:
    """What an owner can make from the invitation of somebody else alone."""
    role = survey.params.topology.client
    owned = begin_client(survey, place, 1, SystemEntropy())
    withdrawing = role.withdraw(owned)
    return [withdrawing.waiting[0], owned.waiting[0], role.outcome_request(owned)]


async def published_counts(pair: Pair, survey: TrialSurvey) -> list[int]:
    result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
    return [round(entry["count"]) for entry in result["counts"]]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_an_owner_changes_no_answer_and_the_first_device_is_told(
    topology: Topology, tmp_path: Path
) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_survey(pair, topology)
            people = [begin_client(survey, at, at % 2, SystemEntropy()) for at in range(PEOPLE)]
            people = [await visit(pair, survey, client) for client in people]
            refused = list[Message]()
            for place in (0, 1):
                for message in owners_messages(survey, place):
                    refused.append(await send_message(pair.to_s1, survey, message))
            reasons = [answer.why for answer in refused if isinstance(answer, Rejection)]
            assert reasons == [Reason.INVITATION_USED] * 6
            people = await play_to_the_end(pair, survey, people)
            assert await published_counts(pair, survey) == [PEOPLE // 2] * 2
            told = [
                await ask_for_outcome(pair.to_s1, survey, client, SystemEntropy())
                for client in people
            ]
            assert [client.notices for client in told[:3]] == [
                Notice.OTHER_DEVICE,
                Notice.OTHER_DEVICE,
                Notice(0),
            ]

    asyncio.run(work())


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_the_device_that_answered_can_withdraw_and_repeat_itself(
    topology: Topology, tmp_path: Path
) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_survey(pair, topology)
            role = topology.client
            client = begin_client(survey, 0, 0, SystemEntropy())
            first = client.waiting[0]
            client = await visit(pair, survey, client)
            again = await send_message(pair.to_s1, survey, first)
            assert not isinstance(again, Rejection)
            client = role.withdraw(client)
            withdrawal = client.waiting[0]
            client = await visit(pair, survey, client)
            assert (client.waiting, len(client.acknowledgements)) == ((), 2)
            repeated = await send_message(pair.to_s1, survey, withdrawal)
            assert not isinstance(repeated, Rejection)
            # The owner cannot answer in the place of somebody who has withdrawn.
            for message in owners_messages(survey, 0):
                answer = await send_message(pair.to_s1, survey, message)
                assert isinstance(answer, Rejection)
                assert answer.why is Reason.INVITATION_USED

    asyncio.run(work())


def test_an_owner_who_withdraws_first_does_not_stay_unnoticed(tmp_path: Path) -> None:
    """It remains possible, and whoever comes second is told."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_survey(pair, SERVERS)
            withdrawal, *_ = owners_messages(survey, 0)
            assert not isinstance(await send_message(pair.to_s1, survey, withdrawal), Rejection)
            late = begin_client(survey, 0, 0, SystemEntropy())
            answer = await send_message(pair.to_s1, survey, late.waiting[0])
            assert isinstance(answer, Rejection)
            assert answer.why is Reason.INVITATION_USED
            assert b"somebody else" in answer.detail

    asyncio.run(work())


def test_a_replaced_invitation_says_so_and_a_refused_replacement_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_survey(pair, SERVERS)
            old = survey.invitations[0]
            new = Invitation.issue(survey.params.digest, SystemEntropy())
            exchange = f"{survey.path}/reissue"
            require_success(await pair.to_s1.post(exchange, content=old.access + new.access))
            late = begin_client(survey, 0, 0, SystemEntropy())
            answer = await send_message(pair.to_s1, survey, late.waiting[0])
            assert isinstance(answer, Rejection)
            assert answer.why is Reason.INVITATION_REPLACED

            client = await visit(pair, survey, begin_client(survey, 1, 0, SystemEntropy()))
            used = survey.invitations[1]
            refused = await pair.to_s1.post(exchange, content=used.access + bytes(32))
            assert (refused.status_code, refused.json()["title"]) == (409, "refused")
            told = await send_message(pair.to_s1, survey, SERVERS.client.outcome_request(client))
            assert isinstance(told, NotReady)
            assert Notice(told.notices) is Notice.REISSUE_REFUSED

    asyncio.run(work())


def test_six_people_said_the_first_item_and_it_stays_six(tmp_path: Path) -> None:
    """The owner wanted to publish 4 and 4: two withdrawn, four absent people answered for.

    Answering for absent people remains possible; taking back what people said does not.
    """

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            mechanism = Laplace(items=2, epsilon=20.0, users=10, dropouts=4)
            survey = await set_up(
                pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy(), phase_seconds=(60,)
            )
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            people = [begin_client(survey, at, 0, SystemEntropy()) for at in range(6)]
            people = [await visit(pair, survey, client) for client in people]
            for place in (0, 1):
                await send_message(pair.to_s1, survey, owners_messages(survey, place)[0])
            for place in range(6, 10):
                await visit(pair, survey, begin_client(survey, place, 1, SystemEntropy()))
            people = await play_to_the_end(pair, survey, people)
            assert await published_counts(pair, survey) == [6, 4]

    asyncio.run(work())

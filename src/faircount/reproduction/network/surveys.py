"""One survey over loopback with a given mechanism, as the paper's experiments need it.

`faircount survey create` calibrates a mechanism for a promise. The paper takes the p of its Theorem
1, which keeps no such promise (errata.md), so these surveys state a delta of almost 1: they promise
nothing, and nobody real takes part.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError
from faircount.demo.crowd import Crowd, CrowdPlan, Person
from faircount.demo.trial import Trial
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.sampling import DPDS
from faircount.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.owner.people import People
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.protocol import propose, topology_named

NO_PROMISE = 1 - 1e-10
"""Delta of a survey that promises nothing."""

MAX_SECONDS = 600.0


def ask(
    running: Trial,
    folder: Path,
    mechanism: DPDS,
    epsilon: float,
    answers: Sequence[int],
    topology: str = "explicit",
) -> QuestionnaireResult:
    """Run one survey among as many people as there are answers, and return its verified result.

    folder: where the owner and all clients keep their files
    epsilon: stated in the parameters; the mechanism brings its own noise
    answers: the place of everybody's item
    """
    users = len(answers)
    s1, s2 = read_servers(running.servers_file)
    # Everything may be spent: it is a population of its own.
    owner = OwnerFile(s1, s2, s1.address, (epsilon, 1 - 1e-12))
    servers = BothServers.of(owner)
    fresh = servers.survey_keys()
    survey_id = SystemEntropy().bytes(16)
    params = propose(
        replace(mechanism.bind(users), dropouts=0),
        fresh.keys,
        survey=survey_id,
        topology=topology_named(topology),
        epsilon=epsilon,
        delta=NO_PROMISE,
        minimum=users,
        population=f"survey {survey_id.hex()}",
        s1_operator=fresh.s1_operator,
        s2_operator=fresh.s2_operator,
    )
    place = SurveyFolder(folder / survey_id.hex())
    names = People.from_names([f"person {number}" for number in range(users)])
    place.create(params, owner, names)
    survey = Survey(place, params, owner, servers)
    invitees = survey.invite()
    survey.open()
    people = []
    for invitee, answer in zip(invitees, answers, strict=True):
        people.append(Person(invitee.code.link(owner.public_address), (int(answer),)))
    devices = place.path / "devices"
    devices.mkdir()
    plan = CrowdPlan(running.address, survey_id.hex(), str(devices), tuple(people))
    _play(survey, Crowd(plan))
    return survey.result(wait=True)


def _play(survey: Survey, crowd: Crowd) -> None:
    """Let every client visit every phase, and close each when all have been there."""
    deadline = time.monotonic() + MAX_SECONDS
    progress = crowd.play_round()
    closed = None
    while not progress["over"]:
        if time.monotonic() > deadline:
            raise FaircountError(f"the survey has not ended after {MAX_SECONDS:.0f} seconds")
        phase, attempt = progress["phase"]
        is_open = phase in survey.params.topology.phases
        if is_open and (phase, attempt) != closed:
            # Closed once per phase and attempt: a second call could close the next one too early.
            survey.servers.request(survey.params, "close", phase=phase, attempt=attempt)
            closed = (phase, attempt)
        time.sleep(0.05)
        progress = crowd.play_round()

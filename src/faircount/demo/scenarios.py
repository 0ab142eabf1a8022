"""The surveys of the demonstration: simulated people, of whom some leave and one is malicious."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from faircount.client.calls import RemoteServer
from faircount.client.participation import connect
from faircount.demo.crowd import Person
from faircount.demo.trial import Trial
from faircount.owner.advice import SurveyRequirements
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.invitations import numbered_people
from faircount.owner.survey import Survey, SurveyDescription, create
from faircount.protocol import EXPLICIT


@dataclass(frozen=True)
class Scenario:
    """A survey to be played.

    requirements: what its owner requires
    question: what is asked
    answers: how many people will give each answer
    leaving: how many people leave before the end
    crowds: number of processes with clients
    kills: how many of these processes are killed
    kills_coordinator: whether the coordinator is killed too
    malicious: number of malicious clients
    """

    requirements: SurveyRequirements
    question: str
    answers: Mapping[str, int]
    leaving: int
    crowds: int
    kills: int
    kills_coordinator: bool = False
    malicious: int = 0


CITIES = {
    "Aldmoor": 88,
    "Brackwater": 71,
    "Carrow": 56,
    "Dunholm": 41,
    "Eastmere": 28,
    "Fennick": 16,
}

# Two servers, one visit and proven reports, as a survey is planned by default; 15% leave.
SERVERS_SURVEY = Scenario(
    SurveyRequirements(tuple(CITIES), 300, 1.0, 1e-6, minimum=240),
    "Which city do you live in?",
    CITIES,
    leaving=45,
    crowds=3,
    kills=2,
    kills_coordinator=True,
    malicious=1,
)

VOTES = {"Yes": 25, "No": 20, "Not sure": 15}

# Algorithm 2 of the paper: 60 people hold each other's shares, and visit three times.
PEERS_SURVEY = Scenario(
    SurveyRequirements(
        tuple(VOTES), 60, 2.0, 1e-3, mechanism="dpds", topology=EXPLICIT, minimum=54, floor=14
    ),
    "Shall we move?",
    VOTES,
    leaving=3,
    crowds=2,
    kills=1,
)

DRINKS = {"Tea": 17, "Coffee": 16, "Water": 7}

# The last of these 40 people is whoever watches the demonstration.
YOUR_SURVEY = Scenario(
    SurveyRequirements(tuple(DRINKS), 40, 2.0),
    "What do you drink first in the morning?",
    DRINKS,
    leaving=0,
    crowds=1,
    kills=0,
)


def prepare(trial: Trial, scenario: Scenario, name: str) -> Survey:
    """Create the survey as an owner would, invite everybody and open it."""
    requirements = scenario.requirements
    s1, s2 = read_servers(trial.servers_file)
    # The population's budget is exactly what this survey spends.
    owner = OwnerFile(s1, s2, s1.address, (requirements.epsilon, requirements.delta))
    description = SurveyDescription(
        scenario.question,
        owner="a made-up company",
        purpose="a demonstration",
        seconds=3600,
    )
    survey, _ = create(Path(trial.folder) / name, requirements, description, owner)
    survey.invite(numbered_people(requirements.users))
    survey.servers.request(survey.params, "open", invited=requirements.users)
    return survey


def people_of(survey: Survey, scenario: Scenario) -> list[Person]:
    """Everybody with an invitation and an answer, in random order."""
    # A fixed seed: the same people leave in every demonstration.
    draw = np.random.default_rng(7)
    items = draw.permutation(np.repeat(list(scenario.answers), list(scenario.answers.values())))
    kinds = _draw_kinds(scenario, draw)
    people = []
    for place, (invitee, item) in enumerate(zip(survey.invitees(), items, strict=True)):
        link = invitee.code.link(survey.owner.public_address)
        make_person = kinds.get(place, Person)
        people.append(make_person(link, str(item)))
    return people


def _draw_kinds(scenario: Scenario, draw: np.random.Generator) -> dict[int, Callable[..., Person]]:
    """Who is malicious and who leaves, by place: all others are ordinary people."""
    is_one_visit = len(scenario.requirements.topology.phases) == 1
    ways_to_leave: tuple[Callable[..., Person], ...] = (
        partial(Person, visits=0),  # never visits
        partial(Person, never_sends=True),
        partial(Person, visits=0 if is_one_visit else 1),  # leaves between two visits
    )
    chosen = draw.permutation(scenario.requirements.users)[: scenario.leaving + scenario.malicious]
    kinds: dict[int, Callable[..., Person]] = {}
    for number, place in enumerate(chosen):
        if number < scenario.malicious:
            kinds[int(place)] = partial(Person, is_malicious=True)
        else:
            way = (number - scenario.malicious) % len(ways_to_leave)
            kinds[int(place)] = ways_to_leave[way]
    return kinds


def answer_for_all_but_one(survey: Survey, folder: Path) -> str:
    """Let everybody but the last person answer `YOUR_SURVEY`; the link of the last one."""
    *others, last = people_of(survey, YOUR_SURVEY)
    server = RemoteServer(survey.owner.public_address)
    for number, person in enumerate(others):
        participation = connect(person.link, state=folder / f"device-{number}", connection=server)
        participation.answer(person.item)
    server.close()
    return last.link

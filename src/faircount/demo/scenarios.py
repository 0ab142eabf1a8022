"""The surveys of the demonstration: simulated people, of whom some leave and one is malicious."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from faircount.client.calls import RemoteServer
from faircount.client.participation import connect
from faircount.core.errors import RefusedError
from faircount.core.questions import Sheet
from faircount.demo.crowd import Person
from faircount.demo.invalid_reports import FIFTY_VOTES, LARGE_NUMBER, MORE_TICKS
from faircount.demo.questions import working_here
from faircount.demo.simulated_answers import draw_sheets
from faircount.demo.trial import Trial
from faircount.owner.advice import SurveyRequirements
from faircount.owner.creation import SurveyDescription, create
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.invitations import numbered_people
from faircount.owner.questions import one_question
from faircount.owner.survey import Survey
from faircount.protocol import EXPLICIT

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Scenario:
    """A survey to be played.

    requirements: what is asked, and what its owner requires
    votes: how many people will give each answer to the only question; None to draw all answers
    leaving: how many people leave before the end
    crowds: number of processes with clients
    kills: how many of these processes are killed
    kills_coordinator: whether the coordinator is killed too
    lies: what the malicious clients send, one entry for each of them
    """

    requirements: SurveyRequirements
    votes: Mapping[str, int] | None
    leaving: int
    crowds: int
    kills: int
    kills_coordinator: bool = False
    lies: tuple[str, ...] = ()

    def draw_sheets(self, draw: np.random.Generator) -> list[Sheet]:
        """The answers of all people, in random order."""
        if self.votes is None:
            return draw_sheets(self.requirements.questionnaire, self.requirements.users, draw)
        # Exactly as many as stated: the demonstration compares estimates with a known truth.
        positions = np.repeat(range(len(self.votes)), list(self.votes.values()))
        return [(int(position),) for position in draw.permutation(positions)]


# Two servers, one visit and proven sheets, as a survey is planned by default; 15% leave.
SERVERS_SURVEY = Scenario(
    SurveyRequirements(working_here(), 300, 1.0, 1e-6, minimum=240),
    None,
    leaving=45,
    crowds=3,
    kills=2,
    kills_coordinator=True,
    lies=(FIFTY_VOTES, MORE_TICKS, LARGE_NUMBER),
)

VOTES = {"Yes": 25, "No": 20, "Not sure": 15}

# Algorithm 2 of the paper: 60 people hold each other's shares, and visit three times.
PEERS_SURVEY = Scenario(
    SurveyRequirements(
        one_question("Shall we move?", VOTES),
        60,
        2.0,
        1e-3,
        mechanism="dpds",
        topology=EXPLICIT,
        minimum=54,
        floor=14,
    ),
    VOTES,
    leaving=3,
    crowds=2,
    kills=1,
)

# The last of these 120 people is whoever watches the demonstration.
YOUR_SURVEY = Scenario(
    SurveyRequirements(working_here(), 120, 2.0),
    None,
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
    sheets = scenario.draw_sheets(draw)
    kinds = _draw_kinds(scenario, draw)
    people = []
    for place, (invitee, sheet) in enumerate(zip(survey.invitees(), sheets, strict=True)):
        link = invitee.code.link(survey.owner.public_address)
        make_person = kinds.get(place, Person)
        people.append(make_person(link, sheet))
    return people


def _draw_kinds(scenario: Scenario, draw: np.random.Generator) -> dict[int, Callable[..., Person]]:
    """Who is malicious and who leaves, by place: all others are ordinary people."""
    is_one_visit = len(scenario.requirements.topology.phases) == 1
    ways_to_leave: tuple[Callable[..., Person], ...] = (
        partial(Person, visits=0),  # never visits
        partial(Person, never_sends=True),
        partial(Person, visits=0 if is_one_visit else 1),  # leaves between two visits
    )
    liars = len(scenario.lies)
    chosen = draw.permutation(scenario.requirements.users)[: scenario.leaving + liars]
    kinds: dict[int, Callable[..., Person]] = {}
    for number, place in enumerate(chosen):
        if number < liars:
            kinds[int(place)] = partial(Person, lie=scenario.lies[number])
        else:
            kinds[int(place)] = ways_to_leave[(number - liars) % len(ways_to_leave)]
    return kinds


def answer_as_crowd(survey: Survey, folder: Path) -> int:
    """Let simulated people answer a survey of a trial in place of all who have not; how many.

    folder: where their devices keep their state
    """
    for access in (survey.owner.s1, survey.owner.s2):
        if urlsplit(access.address).hostname not in LOOPBACK:
            raise RefusedError(
                "a simulated crowd answers only where both servers run on this machine: real "
                "people would lose their invitations"
            )
    if len(survey.params.topology.phases) > 1:
        raise RefusedError("a simulated crowd visits once: create the survey in servers")
    draw = np.random.default_rng(7)
    # Only unused invitations: whoever tries the demonstration may have answered with one.
    missing = survey.pending_invitees()
    server = RemoteServer(survey.owner.public_address)
    sheets = draw_sheets(survey.params.questionnaire, len(missing), draw)
    for number, (invitee, sheet) in enumerate(zip(missing, sheets, strict=True)):
        link = invitee.code.link(survey.owner.public_address)
        participation = connect(link, state=folder / f"device-{number}", connection=server)
        # Where there are levels, simulated people choose all of them equally often.
        levels = participation.levels
        chosen = 0 if levels is None else int(draw.integers(len(levels)))
        participation.submit(sheet, chosen)
    server.close()
    return len(missing)


def answer_for_all_but_one(survey: Survey, folder: Path) -> str:
    """Let everybody but the last person answer `YOUR_SURVEY`; the link of the last one."""
    *others, last = people_of(survey, YOUR_SURVEY)
    server = RemoteServer(survey.owner.public_address)
    for number, person in enumerate(others):
        participation = connect(person.link, state=folder / f"device-{number}", connection=server)
        participation.submit(person.sheet)
    server.close()
    return last.link

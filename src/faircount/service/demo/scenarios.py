"""What is demonstrated: made-up people, some of whom vanish, in two surveys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from faircount.protocol import EXPLICIT
from faircount.service.demo.crowd import Person
from faircount.service.owner.advice import Wishes
from faircount.service.owner.folder import OwnerFile, read_servers
from faircount.service.owner.invitations import numbered
from faircount.service.owner.survey import Facts, Survey, create
from faircount.service.trial import OPERATOR, Trial


@dataclass(frozen=True)
class Scenario:
    """A survey to be played: what is asked, what people will answer, how many of them vanish or lie.

    `crowds` is the number of processes with devices; `kills` of them are killed, and S1 too if `kills_s1`.
    """

    wishes: Wishes
    question: str
    answers: Mapping[str, int]
    vanish: int
    crowds: int
    kills: int
    kills_s1: bool = False
    lies: int = 0


CITIES = {"Aldmoor": 88, "Brackwater": 71, "Carrow": 56, "Dunholm": 41, "Eastmere": 28, "Fennick": 16}
SERVERS_SURVEY = Scenario(
    Wishes(tuple(CITIES), 300, 1.0, 1e-6, absent=0.2), "Which city do you live in?", CITIES,
    vanish=45, crowds=3, kills=2, kills_s1=True, lies=1,
)  # fmt: skip
"""300 people and two servers, one visit, reports that are proven, as every survey of servers is planned; 15% vanish."""

VOTES = {"Yes": 25, "No": 20, "Not sure": 15}
PEERS_SURVEY = Scenario(
    Wishes(tuple(VOTES), 60, 2.0, 1e-3, mechanism="dpds", topology=EXPLICIT, absent=0.1, floor=14),
    "Shall we move?", VOTES, vanish=3, crowds=2, kills=1,
)  # fmt: skip
"""Algorithm 2 of the paper: 60 people hold each other's shares, and come three times."""


def prepare(trial: Trial, scenario: Scenario, name: str) -> Survey:
    """Create the survey as an owner would, invite everybody and open it."""
    s1, s2 = read_servers(trial.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (scenario.wishes.epsilon, scenario.wishes.delta))
    facts = Facts(
        scenario.question, owner="a made-up company", purpose="a demonstration", s1_operator=OPERATOR,
        s2_operator=OPERATOR, seconds=3600,
    )  # fmt: skip
    survey, _ = create(Path(trial.folder) / name, scenario.wishes, facts, owner)
    survey.invite(numbered(scenario.wishes.users))
    survey.servers.wish(survey.params, "open", people=scenario.wishes.users)
    return survey


def people_of(survey: Survey, scenario: Scenario) -> list[Person]:
    """Everybody with an answer, in no order; some vanish before they come, before they send, or between two visits."""
    draw = np.random.default_rng(7)
    items = draw.permutation(np.repeat(list(scenario.answers), list(scenario.answers.values())))
    links = [each.code.link(survey.owner.public_address) for each in survey.invited()]
    special = _special(scenario, draw)
    return [
        special.get(place, ordinary)(link, str(item))
        for place, (link, item) in enumerate(zip(links, items, strict=True))
    ]


Kind = Callable[[str, str], Person]
"""(link, item) -> a person of a kind."""


def ordinary(link: str, item: str) -> Person:
    """A person who comes, and comes back."""
    return Person(link, item)


def _special(scenario: Scenario, draw: np.random.Generator) -> dict[int, Kind]:
    """Places of those who vanish: one never comes, one is switched off, one leaves after a visit; and who lies."""
    one_visit = len(scenario.wishes.topology.phases) == 1
    ways: tuple[Kind, ...] = (
        partial(Person, visits=0),
        partial(Person, unsent=True),
        partial(Person, visits=0 if one_visit else 1),
    )
    places = [int(each) for each in draw.permutation(scenario.wishes.users)[: scenario.vanish + scenario.lies]]
    found: dict[int, Kind] = {place: ways[number % len(ways)] for number, place in enumerate(places[scenario.lies :])}
    return found | dict.fromkeys(places[: scenario.lies], partial(Person, lies=True))

"""What is demonstrated: made-up people, some of whom vanish, in two surveys."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faircount.protocol import EXPLICIT, SERVERS
from faircount.service.demo.crowd import Person
from faircount.service.owner.advice import Wishes
from faircount.service.owner.folder import OwnerFile, read_servers
from faircount.service.owner.invitations import numbered
from faircount.service.owner.survey import Facts, Survey, create
from faircount.service.trial import OPERATOR, Trial


@dataclass(frozen=True)
class Scenario:
    """A survey to be played: what is asked, what people will answer, how many of them vanish."""

    wishes: Wishes
    question: str
    answers: Mapping[str, int]
    vanish: int
    crowds: int
    kills: int


CITIES = {"Aldmoor": 88, "Brackwater": 71, "Carrow": 56, "Dunholm": 41, "Eastmere": 28, "Fennick": 16}
SERVERS_SURVEY = Scenario(
    Wishes(tuple(CITIES), 300, 1.0, 1e-6, absent=0.2), "Which city do you live in?", CITIES, 45, 4, 2
)
"""300 people and two servers, one visit; 15% vanish."""

VOTES = {"Yes": 25, "No": 20, "Not sure": 15}
PEERS_SURVEY = Scenario(
    Wishes(tuple(VOTES), 60, 2.0, 1e-3, mechanism="dpds", topology=EXPLICIT, absent=0.1, floor=14),
    "Shall we move?", VOTES, 3, 3, 1,
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
    gone = _vanishing(scenario, draw)
    return [
        Person(
            link, str(item), visits=gone[place][0] if place in gone else None, unsent=place in gone and gone[place][1]
        )
        for place, (link, item) in enumerate(zip(links, items, strict=True))
    ]


def _vanishing(scenario: Scenario, draw: np.random.Generator) -> dict[int, tuple[int, bool]]:
    """Who vanishes, after how many visits, and whether it is switched off before its first visit sends anything."""
    one_visit = scenario.wishes.topology is SERVERS
    ways = ((0, False), (1, True), (0 if one_visit else 1, False))
    places = draw.choice(scenario.wishes.users, scenario.vanish, replace=False)
    return {int(place): ways[number % len(ways)] for number, place in enumerate(places)}

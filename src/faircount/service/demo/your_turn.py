"""A survey with one place left: everybody else has answered, and the last link opens the page in a browser."""

from pathlib import Path

from faircount.service.calls import RemoteServer
from faircount.service.client import connect
from faircount.service.demo.scenarios import Scenario, people_of
from faircount.service.owner.advice import Wishes
from faircount.service.owner.survey import Survey

DRINKS = {"Tea": 17, "Coffee": 16, "Water": 7}
YOUR_SURVEY = Scenario(Wishes(tuple(DRINKS), 40, 2.0), "What do you drink first in the morning?", DRINKS, 0, 1, 0)
"""40 people, of whom the last one is whoever watches."""


def all_but_one(survey: Survey, folder: Path) -> str:
    """Everybody but the last person answers; the link of the last one."""
    *others, last = people_of(survey, YOUR_SURVEY)
    server = RemoteServer(survey.owner.public_address)
    for number, person in enumerate(others):
        connect(person.link, state=folder / f"device-{number}", connection=server).answer(person.item)
    server.close()
    return last.link

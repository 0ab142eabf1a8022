"""Everybody answers a survey of its owner, and the owner closes it, against running servers."""

from pathlib import Path

from faircount.client.participation import connect
from faircount.owner.survey import Survey


def answer_all(survey: Survey, folder: Path) -> None:
    """Answer the first item in the name of everybody who is invited; devices are in the folder."""
    links = [person.code.link(survey.owner.public_address) for person in survey.invitees()]
    for number, link in enumerate(links):
        part = connect(link, state=folder / f"{number}.device")
        part.answer(part.items[0])


def close(survey: Survey) -> None:
    """End the phase that the survey is in."""
    now = survey.servers.status(survey.params)
    survey.servers.request(survey.params, "close", phase=now["phase"], attempt=now["attempt"])

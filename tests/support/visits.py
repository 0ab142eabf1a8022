"""Participants who come back until their survey is over."""

import time

from faircount.client.participation import Participation
from faircount.owner.survey import Survey


def visit_until_over(survey: Survey, participations: list[Participation]) -> None:
    """Everybody visits and the owner closes the phase, until the survey is over."""
    end = time.monotonic() + 180
    while True:
        now = survey.servers.status(survey.params)
        for participation in participations:
            participation.visit()
        if all(participation.status().is_over for participation in participations):
            return
        assert time.monotonic() < end, now
        if now["phase"] in survey.params.topology.phases and "participants" in now["waits_for"]:
            phase = {"phase": now["phase"], "attempt": now["attempt"]}
            survey.servers.request(survey.params, "close", **phase)
        else:
            time.sleep(0.05)

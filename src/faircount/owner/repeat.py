"""The next survey among the same people, charged to the same budget."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from faircount.core.durations import parse_duration
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError, RemoteError
from faircount.owner.folder import SurveyFolder
from faircount.owner.people import People
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.protocol.survey.budget import Status, fits_budget

NO_POPULATION = "no_population"
MOST_NUMBERS = 1000


def repeat(
    survey: Survey,
    folder: str | os.PathLike[str] | None = None,
    question: str | None = None,
    open_for: str | None = None,
) -> Survey:
    """Make a survey with the same parameters and people, but with its own keys."""
    params = survey.params
    target = SurveyFolder(next_folder(survey.folder.path) if folder is None else Path(folder))
    target.check_is_free()
    people = people_of(survey)
    check_budget(survey.servers, params.population, params.epsilon, params.delta)
    phase_seconds = params.phase_seconds
    if open_for is not None:
        phase_seconds = (parse_duration("--open-for", open_for),) * len(params.topology.phases)
    # Keys are never used for two surveys, so a signature of one survey says nothing in another.
    fresh = survey.servers.survey_keys()
    again = replace(
        params,
        keys=fresh.keys,
        s1_operator=fresh.s1_operator,
        s2_operator=fresh.s2_operator,
        survey=SystemEntropy().bytes(16),
        question=params.question if question is None else question,
        phase_seconds=phase_seconds,
    )
    target.create(again, survey.owner, people)
    return Survey(target, again, survey.owner, survey.servers)


def people_of(survey: Survey) -> People | None:
    """The people of a survey: those who are invited, or else those who were listed."""
    if not survey.folder.invitations_file.exists():
        return survey.folder.people()
    invitees = survey.invitees()
    header = tuple(title for title, _ in invitees[0].columns)
    names = tuple(invitee.person for invitee in invitees)
    return People(names, header, tuple(invitee.cells for invitee in invitees))


def next_folder(path: Path) -> Path:
    """A folder beside this one with the next number that is free: cities, cities-2, cities-3."""
    path = path.resolve()
    found = re.fullmatch(r"(.+)-(\d{1,3})", path.name)
    stem = path.name if found is None else found[1]
    first = 2 if found is None else int(found[2]) + 1
    for number in range(first, first + MOST_NUMBERS):
        candidate = path.with_name(f"{stem}-{number}")
        if not candidate.exists():
            return candidate
    raise RefusedError("there are too many surveys of this name: name the folder of the new one")


def check_budget(servers: BothServers, population: str, epsilon: float, delta: float) -> None:
    """Refuse a survey that the budget of its population does not allow any more."""
    try:
        ledger = servers.budget(population)
    except RemoteError as problem:
        # Nobody was invited yet, so the aggregator does not know the population.
        if problem.values.get("cause") == NO_POPULATION:
            return
        raise
    costs = spent_costs(ledger)
    total = (ledger["epsilon"], ledger["delta"])
    if ledger["closed"] or not fits_budget([*costs, (epsilon, delta)], *total, ledger["adaptive"]):
        spent = ledger["spent"]["epsilon"]
        raise RefusedError(
            f"the budget of these people does not allow another survey of epsilon {epsilon:.4g}: "
            f"epsilon {spent:.4g} of {total[0]:.4g} is spent. To ask the same people several "
            "times, create the first survey with --population NAME and a larger --budget"
        ).with_code("budget_spent", spent=spent, total=total[0], epsilon=epsilon)


def spent_costs(ledger: dict[str, Any]) -> list[tuple[float, float]]:
    """(epsilon, delta) of every charge of a population that counts."""
    counting = [charge for charge in ledger["surveys"] if charge["status"] != Status.CANCELLED]
    return [(charge["epsilon"], charge["delta"]) for charge in counting]

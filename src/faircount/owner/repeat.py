"""The next survey among the same people, charged to the same budget."""

import os
import re
from dataclasses import replace
from pathlib import Path

from faircount.core.durations import parse_duration
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Questionnaire, Table
from faircount.mechanisms.sheets import SheetMechanism
from faircount.owner.budget import check_budget
from faircount.owner.folder import SurveyFolder
from faircount.owner.people import People
from faircount.owner.questions import check_question
from faircount.owner.survey import Survey

MAX_NUMBERS = 1000


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
    cost = (params.epsilon, params.delta)
    check_budget(survey.servers, params.population, survey.owner.budget, cost)
    phase_seconds = params.phase_seconds
    if open_for is not None:
        phase_seconds = (parse_duration("--open-for", open_for),) * len(params.topology.phases)
    # Keys are never used for two surveys, so a signature of one survey says nothing in another.
    fresh = survey.servers.survey_keys()
    questionnaire = _reword(params.questionnaire, question)
    mechanism = params.mechanism
    if isinstance(mechanism, SheetMechanism):
        # It knows its questions; another wording changes nothing about the noise.
        mechanism = replace(mechanism, questionnaire=questionnaire)
    again = replace(
        params,
        mechanism=mechanism,
        keys=fresh.keys,
        s1_operator=fresh.s1_operator,
        s2_operator=fresh.s2_operator,
        survey=SystemEntropy().bytes(16),
        questionnaire=questionnaire,
        phase_seconds=phase_seconds,
    )
    # A closing time was that of the first survey; the next one is open for as long as that was.
    owner = replace(survey.owner, closes_at="")
    target.create(again, owner, people)
    return Survey(target, again, owner, survey.servers)


def _reword(questionnaire: Questionnaire, text: str | None) -> Questionnaire:
    """The same questions; a single one may have another wording."""
    if text is None:
        return questionnaire
    if len(questionnaire) > 1 or isinstance(questionnaire.questions[0], Table):
        raise ParameterError(
            "only a survey with one question can be repeated with another wording: leave "
            "--question out, or create a new survey"
        )
    if questionnaire.translations:
        raise ParameterError(
            "the question is translated: leave --question out, or create a new survey"
        )
    first = replace(questionnaire.questions[0], text=check_question(text))
    return replace(questionnaire, questions=(first,))


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
    for number in range(first, first + MAX_NUMBERS):
        candidate = path.with_name(f"{stem}-{number}")
        if not candidate.exists():
            return candidate
    message = "there are too many surveys of this name: name the folder of the new one"
    raise RefusedError(message).with_code("too_many_of_name")

"""Combine finished surveys of disjoint people who were asked the same questions."""

from collections.abc import Sequence

from faircount.core.errors import ParameterError, RefusedError, RemoteError
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.server_levels import ServerLevels
from faircount.owner.combined_result import CombinedResult, combine_results
from faircount.owner.invitations import numbered_people
from faircount.owner.survey import Survey
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.wire.messages import Aborted, Reason

SURVEYS = "survey"
"""What the parts of such a result are called."""


def combine_surveys(surveys: Sequence[Survey], *, disjoint: bool = False) -> CombinedResult:
    """Combine the results of finished surveys of different people.

    Every person counts the same in the estimates, and their intervals hold whatever the surveys
    differ in. Beside them are estimates with weights by variance, for people who answer alike.

    surveys: at least two, with the same questions, among different people
    disjoint: whether you declare that nobody was in two of them; needed, and believed, only where
        the folders do not say who was invited
    returns: the combined result

    >>> try:
    ...     fc.combine_surveys([fc.survey("north"), fc.survey("south")])
    ... except fc.FaircountError as problem:
    ...     print(problem)
    there is no north/owner.json: make a survey there first, with faircount survey create
    """
    if len(surveys) < 2:
        message = "give at least 2 surveys to combine"
        raise ParameterError(message).with_code("too_few_results")
    names = _name_surveys(surveys)
    asked = surveys[0].params.questionnaire
    for name, survey in zip(names[1:], surveys[1:], strict=True):
        # Before any result is read: a refusal must not depend on what people answered.
        if survey.params.questionnaire != asked:
            raise RefusedError(
                f"{name} asks other questions than {names[0]}, or offers other answers: only "
                "surveys that ask the same, word by word and in the same order, are combined"
            ).with_code("different_questions", survey=name)
    _check_people(names, surveys, disjoint)
    parts = {}
    for name, survey in zip(names, surveys, strict=True):
        parts[name] = finished_result(name, survey, "combine")
    return combine_results(parts, SURVEYS)


def _name_surveys(surveys: Sequence[Survey]) -> list[str]:
    """The names of their folders; with more of the path where two are alike."""
    paths = [survey.folder.path.resolve() for survey in surveys]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    return names


def _check_people(names: Sequence[str], surveys: Sequence[Survey], disjoint: bool) -> None:
    """Refuse surveys that have people in common, or of which nobody knows it."""
    ids: dict[bytes, str] = {}
    populations: dict[str, str] = {}
    people: dict[str, str] = {}
    unknown = []
    for name, survey in zip(names, surveys, strict=True):
        params = survey.params
        if params.survey in ids:
            message = f"{name} and {ids[params.survey]} are the same survey: give each once"
            raise RefusedError(message).with_code("same_survey")
        ids[params.survey] = name
        if isinstance(params.mechanism, ServerLevels):
            raise RefusedError(
                f"{name} has hidden privacy levels, and so two tables of which one is not about "
                "everybody: results of such surveys are not combined"
            ).with_code("hidden_levels", survey=name)
        # One population is the same people, whose losses add up: they would count twice.
        if params.population in populations:
            raise RefusedError(
                f"{name} and {populations[params.population]} ask the same population, "
                f"{params.population!r:.60}: only surveys of different people are combined"
            ).with_code("same_population", population=params.population)
        populations[params.population] = name
        listed = _people_of(survey)
        unknown += [] if listed else [name]
        for person in listed:
            # check: disjoint-people - somebody in two surveys counts twice, and loses twice
            if people.setdefault(person, name) != name:
                raise RefusedError(
                    f"{person!r:.80} is invited in {people[person]} and in {name}: only surveys "
                    "of different people are combined"
                ).with_code("same_person")
    if unknown and not disjoint:
        raise RefusedError(
            f"{', '.join(unknown)}: the folder does not say who was invited, so nobody can check "
            "that the surveys asked different people. If you know that nobody was in two of them, "
            "declare it with --disjoint (disjoint=True in Python)"
        ).with_code("people_unknown")


def _people_of(survey: Survey) -> tuple[str, ...]:
    """The invited people in a form to compare; empty where they are only numbered."""
    if not survey.folder.invitations_file.exists():
        return ()
    invited = tuple(invitee.person for invitee in survey.invitees())
    numbered = numbered_people(survey.params.n_max, survey.owner.language)
    # "Person 1" of two surveys are different people, or the same: nobody can tell from numbers.
    if set(invited) <= set(numbered):
        return ()
    # As tables of people are compared: a second spelling of an address is the same person.
    return tuple(person.strip().casefold() for person in invited)


def finished_result(name: str, survey: Survey, purpose: str) -> QuestionnaireResult:
    """The result of a survey that is to be combined or compared; an error names the survey."""
    try:
        ending = survey.latest_ending()
    except RemoteError as problem:
        if problem.reason != Reason.EARLY:
            raise
        message = f"{name} is not over yet: close it, or wait for its result, and {purpose} then"
        raise RefusedError(message).with_code("part_missing", part=name) from None
    if isinstance(ending, Aborted):
        message = f"{name} ended without a result: {describe_abort(ending)}"
        raise RefusedError(message).with_code("part_missing", part=name)
    return ending

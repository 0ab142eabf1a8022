"""Public groups: one survey for each group of people whose membership the owner knows.

    FOLDER/groups.json       which column of the table of people makes the groups, and their folders
    FOLDER/lab/              the survey of one group, like any other survey

Everybody is in one group, so each survey has the whole epsilon, or the epsilon of its privacy level
where the groups are levels (levels.py); the results of levels are also combined. Which groups there
are, how many people each has and how many of them answer is public; participants read it before
they answer. What people answered is not: every group's result has the noise of a survey of its own,
which is large for a small group. Nothing is shown where it is too large to tell anything.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, ParameterError, RefusedError, RemoteError
from faircount.core.files import make_private_folder, read_file, write_durably
from faircount.core.questions.form import Form
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.owner.budget import existing_budget
from faircount.owner.combined_result import CombinedResult
from faircount.owner.creation import people_given
from faircount.owner.folder import COMMAND_RETRY, SurveyFolder, read_servers
from faircount.owner.group_results import MAX_ERROR, GroupResult, GroupResults, error_of
from faircount.owner.invitation_texts import ENGLISH
from faircount.owner.invitations import Invitee
from faircount.owner.level_forecast import LevelForecast, forecast_levels
from faircount.owner.levels import check_levels, describe_level, split_by_level
from faircount.owner.membership import describe_group, split_people
from faircount.owner.people import People
from faircount.owner.questions import Questions, read_questions
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.planning.questionnaire import make_plan
from faircount.protocol.wire.messages import Aborted, Reason

LONGEST_NAME = 60
VERSION = 2
"""Of groups.json."""


@dataclass(frozen=True)
class Group:
    """One group, and the survey among its people."""

    name: str
    survey: Survey


@dataclass(frozen=True)
class GroupedSurvey:
    """A survey in groups, in one folder.

    path: its folder
    column: the column of the table of people that names the groups
    groups: one survey each, in the order of the table; levels the strongest first
    levels: epsilon of every group, where the groups are privacy levels; None where they are not
    forecast: what to expect of levels together; only right after they were created

    >>> terms = {"question": "Tea?", "items": ["yes", "no"], "people": "people.csv"}
    >>> try:
    ...     fc.GroupedSurvey.create("tea", "site", servers="servers.json", **terms).invite()
    ... except fc.FaircountError as problem:
    ...     print(str(problem).partition(":")[0])
    there is no people.csv
    """

    path: Path
    column: str
    groups: tuple[Group, ...]
    levels: Mapping[str, float] | None = None
    forecast: LevelForecast | None = field(default=None, compare=False)

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> "GroupedSurvey":
        """Open the survey in groups in a folder."""
        path = Path(folder)
        listed = _read_names(path)
        groups = [Group(name, Survey.at(path / place)) for name, place in listed.places.items()]
        return cls(path, listed.column, tuple(groups), listed.levels)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        group_column: str,
        *,
        people: str | os.PathLike[str] | People,
        levels: Mapping[str, float] | None = None,
        address_column: str | None = None,
        question: str | None = None,
        items: Sequence[str] | None = None,
        questionnaire: Questions | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        minimum: int | str | None = None,
        language: str = ENGLISH,
        anyway: bool = False,
        population: str = "",
        purpose: str = "",
        **options: Any,
    ) -> "GroupedSurvey":
        """Plan and write one survey for each group of a table of people.

        Running it again after an interruption makes the surveys that are missing.

        folder: where the surveys go, each in a folder of its own
        group_column: column of the table that names everybody's group, or privacy level
        levels: epsilon of every privacy level, the strongest first, by its name in the column;
            without them the groups are no levels, and all have `epsilon`
        people, address_column: the table, and its column that tells people apart
        question, items, questionnaire: what is asked of everybody
        epsilon, delta: privacy loss of everybody, in the survey of their group
        minimum: minimum number of responses in every group, or a rate such as "40%"
        anyway: create it even if some groups are too small to show anything
        population: name of all these people; every group has a budget of its own
        purpose: what the result is for; a sentence about the group is added
        options: all others, as in `Survey.create`
        """
        form = read_questions(question, items, questionnaire)
        listed = people_given(people, address_column)
        if listed is None:
            raise ParameterError("groups come from a table of people: give --people")
        forecast = None
        given = {"delta": delta, "minimum": minimum, **options}
        if levels is None:
            members = split_people(listed, group_column)
            if not anyway:
                _check_sizes(form, {name: len(found) for name, found in members.items()}, epsilon)
        else:
            levels = check_levels(levels)
            members = split_by_level(listed, group_column, levels)
            sizes = {name: (len(found), levels[name]) for name, found in members.items()}
            # Before anything is written or a server is asked: no level can fail after another.
            forecast = forecast_levels(form, sizes, **given)
            forecast.check(anyway)
        _check_whole(options.get("servers"), population)
        path = Path(folder)
        places = _name_folders(members)
        _write_names(path, _Names(group_column, places, levels))
        groups = []
        for name, found in members.items():
            sentence = describe_group(language, group_column, name, len(found))
            if levels is not None:
                sentence = describe_level(language, name, len(found), levels)
            made = _create_missing(
                path / places[name],
                found,
                name,
                questionnaire=form,
                epsilon=epsilon if levels is None else levels[name],
                delta=delta,
                minimum=minimum,
                language=language,
                # Without a name every survey is a population of its own anyway.
                population=f"{population}, {places[name]}" if population else "",
                purpose=f"{purpose.rstrip('. ')}. {sentence}" if purpose.strip() else sentence,
                **options,
            )
            groups.append(Group(name, made))
        return cls(path, group_column, tuple(groups), levels, forecast)

    def describe(self) -> list[dict[str, Any]]:
        """Every group: its size, its folder, and the errors if everybody in it answers."""
        found = []
        for group in self.groups:
            params = group.survey.params
            numbers = range(len(params.questionnaire))
            errors = [error_of(params.mechanism, number, params.n_max) for number in numbers]
            found.append(
                {
                    "name": group.name,
                    "folder": str(group.survey.folder.path),
                    "survey": params.survey.hex(),
                    "users": params.n_max,
                    "minimum": params.minimum,
                    "epsilon": params.epsilon,
                    "delta": params.delta,
                    "mechanism": params.mechanism.name,
                    "half_widths": errors,
                }
            )
        return found

    def invite(self) -> dict[str, tuple[Invitee, ...]]:
        """Make the invitations of all groups and register them; those that exist are used again."""
        return {group.name: group.survey.invite() for group in self.groups}

    def open(self) -> dict[str, dict[str, Any]]:
        """Let the invited people of all groups answer from now on; the status of every group."""
        return {group.name: group.survey.open() for group in self.groups}

    def status(self) -> dict[str, dict[str, Any]]:
        """The phase of every group's survey, as the coordinator reports it."""
        return {group.name: group.survey.status() for group in self.groups}

    def close(self) -> dict[str, dict[str, Any]]:
        """Accept no more answers in any group; the status of every group."""
        return {group.name: group.survey.close() for group in self.groups}

    def result(self, *, wait: bool = False) -> GroupResults:
        """The results of all groups side by side; a group without one says why.

        wait: until all groups have ended
        """
        found = []
        for group in self.groups:
            invited = group.survey.params.n_max
            found.append(GroupResult(group.name, invited, _ending_of(group.survey, wait)))
        return GroupResults(self.column, tuple(found), self.groups[0].survey.owner.language)

    def combined_result(self, *, wait: bool = False) -> CombinedResult:
        """The combined result of all levels; refused unless every level has a result.

        wait: until all levels have ended
        """
        if self.levels is None:
            message = "groups that are no privacy levels are shown side by side: see result()"
            raise ParameterError(message).with_code("no_levels")
        return self.result(wait=wait).combine()


def is_grouped(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds the surveys of several groups."""
    return SurveyFolder(Path(folder)).groups_file.exists()


def _check_whole(servers: str | os.PathLike[str] | None, population: str) -> None:
    """Refuse a population that was asked as a whole: its groups have budgets of their own."""
    # A file of servers that is missing is refused where the first survey is made.
    if not population or servers is None:
        return
    s1, s2 = read_servers(Path(servers))
    both = BothServers(s1.server("S1", COMMAND_RETRY), s2.server("S2", COMMAND_RETRY))
    # check: whole-and-groups - people lose in two places, and neither budget says so
    if existing_budget(both, population) is not None:
        raise RefusedError(
            f"{population!r:.60} has a budget for surveys of everybody, and groups have budgets of "
            "their own: nobody would add up what people lose in both. Name another population if "
            "these are other people, or ask everybody in one survey"
        ).with_code("population_as_a_whole", population=population)


def _check_sizes(form: Form, sizes: dict[str, int], epsilon: float) -> None:
    """Refuse groups of which no question could be shown, even if everybody answered."""
    hopeless = []
    for name, count in sizes.items():
        # If everybody answers; two servers add noise.
        errors = [line.half_width for line in make_plan(form, count, epsilon, draws=2).lines]
        if min(errors) > MAX_ERROR:
            hopeless.append(f"{name} ({count:,} people, at best ±{min(errors):.0f} points)")
    if hopeless:
        raise RefusedError(
            "these groups are too small to show anything: "
            f"{', '.join(hopeless)}. Merge them with others in the table, ask fewer questions or "
            "allow a larger epsilon, or create the survey nevertheless with --anyway"
        ).with_code("groups_too_small")


def _name_folders(members: dict[str, People]) -> dict[str, str]:
    """A folder's name for every group: letters and digits, and no two alike."""
    places: dict[str, str] = {}
    for name in members:
        # Nothing else: a name with a slash or dots would lead out of the owner's folder.
        plain = re.sub(r"[^\w]+", "-", name.casefold()).strip("-_")[:LONGEST_NAME] or "group"
        place = plain
        number = 1
        while place in places.values():
            number += 1
            place = f"{plain}-{number}"
        places[name] = place
    return places


@dataclass(frozen=True)
class _Names:
    """What groups.json says: the column, the folder of every group, and the epsilons of levels."""

    column: str
    places: dict[str, str]
    levels: Mapping[str, float] | None


def _write_names(path: Path, names: _Names) -> None:
    """Write which groups there are; a folder that holds others already is not changed."""
    make_private_folder(path)
    SurveyFolder(path).check_is_free()
    if is_grouped(path):
        if _read_names(path) != names:
            message = f"{path} already contains a survey in other groups: choose another folder"
            raise RefusedError(message).with_code("survey_exists")
        return
    # Before the surveys: running the command again finds the same groups, and continues.
    content = {
        "version": VERSION,
        "column": names.column,
        "groups": names.places,
        "levels": names.levels,
    }
    data = json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n"
    write_durably(SurveyFolder(path).groups_file, data)


def _read_names(path: Path) -> _Names:
    """What groups.json says; refused if it is not what `_write_names` writes."""
    data = read_file(SurveyFolder(path).groups_file, "make a survey in groups there first")
    try:
        content: dict[str, Any] = json.loads(data)
        places = {str(name): str(place) for name, place in content["groups"].items()}
        # Another version may mean other things by the same keys: refused, and not guessed.
        if content["version"] != VERSION or not places or any(map(_leads_out, places.values())):
            raise ValueError("not what was written")
        levels = content["levels"]
        if levels is not None:
            levels = check_levels({name: float(levels[name]) for name in places})
        return _Names(str(content["column"]), places, levels)
    except (ValueError, KeyError, TypeError, AttributeError):
        message = "groups.json is damaged: restore it from a copy"
        raise FaircountError(message).with_code("file_damaged", file="groups.json") from None


def _leads_out(place: str) -> bool:
    # check: group-folder - a changed groups.json makes a command act on a folder elsewhere
    return re.fullmatch(r"[\w-]+", place) is None


def _create_missing(path: Path, people: People, name: str, **options: Any) -> Survey:
    """The survey of one group; one that an interrupted command has made is kept."""
    folder = SurveyFolder(path)
    if folder.parameters_file.exists():
        made = Survey.at(path)
        # Compared by what people were promised: a kept survey must be the one that is asked for.
        is_same = made.params.questionnaire == options["questionnaire"].questionnaire
        if not is_same or folder.people() != people or made.params.epsilon != options["epsilon"]:
            message = f"{path} already contains another survey: choose another folder"
            raise RefusedError(message).with_code("survey_exists")
        return made
    try:
        # Whether a group is large enough was decided for all groups before.
        return Survey.create(path, people=people, anyway=True, **options)
    except (ParameterError, RefusedError) as problem:
        raise type(problem)(f"group {name!r:.60}: {problem}") from None


def _ending_of(survey: Survey, wait: bool) -> QuestionnaireResult | Aborted | None:
    """How the survey of a group ended; None while it is running."""
    try:
        return survey.latest_ending(wait=wait)
    except RemoteError as problem:
        if problem.reason != Reason.EARLY:
            raise
        return None

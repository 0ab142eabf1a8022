"""How a survey comes into being: planned, given keys by both servers, and written into a folder."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from faircount.accounting.levels import Levels
from faircount.client.invitation_codes import server_address
from faircount.core.durations import parse_closing_time, parse_duration, seconds_until
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions.form import Form
from faircount.owner.advice import Advice, SurveyRequirements, advise
from faircount.owner.budget import check_budget, existing_budget
from faircount.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.owner.invitation_texts import printed_words
from faircount.owner.invitations import too_many_invited
from faircount.owner.people import People, read_people
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.planning.minimum import parse_minimum, parse_response_rate
from faircount.protocol import SurveyParameters, propose, topology_named

TEXTS = ("owner", "purpose", "contact", "s1_operator", "s2_operator", "population")
"""What participants read besides the questions, and the population whose budget is charged."""
DAY = 86400
GRACE = 30 * DAY
"""Seconds for which a survey with too few answers is held open, unless the owner says otherwise."""


@dataclass(frozen=True)
class SurveyDescription:
    """What participants read before they answer, and how long every phase is open, in seconds.

    s1_operator, s2_operator: names that the servers must state; empty takes whatever they state
    grace: how much longer a phase is held open if there are too few answers at its deadline
    """

    owner: str = ""
    purpose: str = ""
    contact: str = ""
    s1_operator: str = ""
    s2_operator: str = ""
    population: str = ""
    seconds: int = 3 * DAY
    grace: int = GRACE


@dataclass(frozen=True, kw_only=True)
class SurveyOptions:
    """How a survey is run, as an owner writes it: see `Survey.create`."""

    servers: str | os.PathLike[str]
    people: str | os.PathLike[str] | People | Sequence[str] | None
    address_column: str | None
    users: int | None
    open_for: str
    closes: str | None
    grace: str
    minimum: int | str | None
    response_rate: float | str | None
    budget: tuple[float, float] | None
    topology: str
    address: str | None
    page: str | None
    language: str
    anyway: bool
    epsilon: float
    delta: float
    mechanism: str
    floor: int
    colluding: float
    levels: Levels | None = None

    def require(self, form: Form, users: int) -> SurveyRequirements:
        """What the planner must know."""
        rate = self.response_rate
        return SurveyRequirements(
            form,
            users,
            self.epsilon,
            self.delta,
            self.mechanism,
            topology_named(self.topology),
            None if self.minimum is None else parse_minimum(str(self.minimum), users),
            self.floor,
            self.colluding,
            None if rate is None else parse_response_rate(rate),
            self.levels,
        )

    def time_to_answer(self) -> tuple[int, str]:
        """Seconds of each visit, and the closing time if the owner named one."""
        if self.closes is None:
            return parse_duration("--open-for", self.open_for), ""
        # People who visit several times need time for each visit: one time cannot end them all.
        if len(topology_named(self.topology).phases) > 1:
            message = "--closes is for surveys with one visit: give --open-for, the time for"
            raise ParameterError(f"{message} each visit")
        return closing_time("--closes", self.closes)

    def owner_file(self, population: str, closes: str) -> OwnerFile:
        """Access to both servers, and the budget of the population."""
        s1, s2 = read_servers(Path(self.servers))
        budget = self.budget
        if budget is None:
            # A population that was asked before has its budget; it is not raised.
            both = BothServers(s1.server("S1"), s2.server("S2"))
            budget = existing_budget(both, population) or (self.epsilon, self.delta)
        return OwnerFile(
            s1,
            s2,
            # Participants may reach the coordinator under another address than the owner.
            s1.address if self.address is None else server_address(self.address),
            budget,
            printed_words(self.language).language,
            "" if self.page is None else server_address(self.page),
            closes,
        )


def create_survey(
    folder: str | os.PathLike[str], form: Form, options: SurveyOptions, texts: dict[str, str]
) -> Survey:
    """Plan and write a survey as an owner describes it (see `Survey.create`).

    texts: what participants read, and the population
    """
    unknown = sorted(set(texts) - set(TEXTS))
    if unknown:
        raise ParameterError(f"a survey has no {unknown[0]!r}: it has {', '.join(TEXTS)}")
    listed = people_given(options.people, options.address_column)
    users = options.users
    if users is None:
        if listed is None:
            message = "say whom you invite: --people FILE, or their number with --users"
            raise ParameterError(f"{message} (people= or users= in Python)")
        users = len(listed)
    requirements = options.require(form, users)
    seconds, closes = options.time_to_answer()
    description = SurveyDescription(
        seconds=seconds,
        grace=parse_duration("--grace", options.grace),
        **texts,
    )
    owner = options.owner_file(description.population, closes)
    made, advice = create(
        Path(folder), requirements, description, owner, people=listed, anyway=options.anyway
    )
    return replace(made, advice=advice)


def closing_time(name: str, given: str) -> tuple[int, str]:
    """Seconds until a closing time that the owner writes, and that time as ISO 8601."""
    now = datetime.now(tz=UTC)
    closes = parse_closing_time(name, given, now)
    return seconds_until(closes, now), closes.isoformat()


def people_given(
    people: str | os.PathLike[str] | People | Sequence[str] | None, column: str | None
) -> People | None:
    """The people of a file, of a list of names, or as they are; None if nobody is listed."""
    if isinstance(people, str | os.PathLike):
        return read_people(Path(people), column)
    if people is None or isinstance(people, People):
        return people
    return People.from_names(people)


def create(
    path: Path,
    requirements: SurveyRequirements,
    description: SurveyDescription,
    owner: OwnerFile,
    *,
    people: People | None = None,
    anyway: bool = False,
) -> tuple[Survey, Advice]:
    """Plan a survey and write it into a new folder; the servers do not know it yet."""
    # Noticed now, and not when the survey exists and cannot be changed any more.
    if people is not None and len(people) > requirements.users:
        raise too_many_invited(requirements.users, len(people))
    advice = advise(requirements)
    if not advice.is_informative and not anyway:
        raise _not_worthwhile(advice)
    if advice.expected is not None and not advice.expects_enough and not anyway:
        raise RefusedError(
            f"do not run this survey: {advice.too_few_expected}, or create the survey nevertheless "
            "with --anyway"
        ).with_code("expects_too_few", expected=advice.expected, minimum=advice.minimum)
    folder = SurveyFolder(path)
    # Before the servers make keys, which nobody would use.
    folder.check_is_free()
    servers = BothServers.of(owner)
    # Before anybody is invited: the aggregator would refuse only when the answers are there.
    cost = (requirements.epsilon, requirements.delta)
    check_budget(servers, description.population, owner.budget, cost)
    params = make_parameters(advice, description, servers)
    folder.create(params, owner, people)
    return Survey(folder, params, owner, servers), advice


def _not_worthwhile(advice: Advice) -> RefusedError:
    """The error to raise for a survey from which nothing would be learned."""
    problem = (
        f"{advice.mechanism.name}, the best mechanism, has a 95% error of {advice.error_text}, "
        "more than an average item's frequency; ask more people, offer fewer items or allow a "
        "larger epsilon"
    )
    if advice.sheet is not None:
        problem = advice.sheet.objection
    message = f"do not run this survey: {problem}, or create the survey nevertheless with --anyway"
    return RefusedError(message).with_code("not_worthwhile")


def make_parameters(
    advice: Advice, description: SurveyDescription, servers: BothServers
) -> SurveyParameters:
    """The survey's public parameters, with fresh keys of both servers."""
    requirements = advice.requirements
    # Keys are never used for two surveys, so a signature of one survey says nothing in another.
    survey_keys = servers.survey_keys()
    survey = SystemEntropy().bytes(16)
    return propose(
        advice.mechanism,
        survey_keys.keys,
        survey=survey,
        topology=requirements.topology,
        epsilon=requirements.epsilon,
        delta=requirements.delta,
        minimum=advice.minimum,
        phase_seconds=(description.seconds,) * len(requirements.topology.phases),
        grace=description.grace,
        # Without a name, a survey is a population of its own and shares no budget.
        population=description.population or f"survey {survey.hex()}",
        questionnaire=requirements.questionnaire,
        owner=description.owner,
        purpose=description.purpose,
        contact=description.contact,
        s1_operator=_operator_name("coordinator", description.s1_operator, survey_keys.s1_operator),
        s2_operator=_operator_name("aggregator", description.s2_operator, survey_keys.s2_operator),
    )


def _operator_name(server: str, expected: str, stated: str) -> str:
    """The name that a server states; refused if the owner expects another."""
    if expected and expected != stated:
        raise RefusedError(
            f"the {server} says that {stated or 'nobody with a name'} runs it, not {expected}: "
            "check the address in the servers file, or ask its operator for its name"
        ).with_code("operator_differs", server=server)
    return stated

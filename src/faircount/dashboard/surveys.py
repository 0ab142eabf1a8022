"""What the dashboard shows and does, as plain values: the surveys in one folder, through the owner's own functions."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, ParameterError, RefusedError, RemoteError
from faircount.core.files import read_file
from faircount.dashboard import form
from faircount.dashboard.budgets import steps_of
from faircount.dashboard.exports import exported, plain_result
from faircount.dashboard.progress import phase_of, phases_of, too_few, waits_for
from faircount.dashboard.said import said
from faircount.protocol.wire.messages import Aborted
from faircount.service.calls import Patience
from faircount.service.owner.folder import OwnerFile, read_servers
from faircount.service.owner.invitations import as_table, numbered, qr_rows
from faircount.service.owner.remote import BothServers
from faircount.service.owner.survey import Survey, create

WISHES = ("open", "close", "extend", "abort")
NO_INVITATIONS = "make the invitations first"
HURRIED = Patience(tries=2)
"""A page that is looked at says at once that a server is away, and asks again by itself."""

AT_ONCE = 8
"""So many surveys are asked after at the same time."""


@dataclass(frozen=True)
class Surveys:
    """The surveys of one owner: a folder with a folder for each, and the file with both servers' tokens."""

    folder: Path
    servers: Path
    _read: dict[tuple[str, int], Survey] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> list[str]:
        """Of all surveys in the folder."""
        return sorted(each.parent.name for each in self.folder.glob("*/parameters.json"))

    def all(self) -> list[dict[str, Any]]:
        """Every survey with where it stands, by name."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(self._listed, self.names()))

    def _listed(self, name: str) -> dict[str, Any]:
        try:
            return self.one(name)
        except FaircountError as problem:
            return {"name": name, "question": "", "status": None, "too_few": None, "problem": said(problem)}

    def survey(self, name: str) -> Survey:
        """The survey of this name, read once; a name that would lead out of the folder is refused."""
        path = self.folder / form.plain_name(name)
        file = path / "parameters.json"
        known = name, file.stat().st_mtime_ns if file.exists() else 0
        if known not in self._read:
            self._read[known] = Survey.at(path, HURRIED)
        return self._read[known]

    def one(self, name: str) -> dict[str, Any]:
        """One survey: what was asked, where it stands at S1, and whether too few will have answered."""
        survey = self.survey(name)
        params = survey.params
        facts = {
            "name": name, "question": params.question, "items": [str(each) for each in params.mechanism.domain.labels],
            "mechanism": params.mechanism.name, "proven": params.proven,
            "epsilon": params.epsilon, "delta": params.delta,
            "minimum": params.minimum, "n_max": params.n_max, "s1": params.s1_operator, "s2": params.s2_operator,
            "population": "" if params.population == f"survey {params.survey.hex()}" else params.population,
            "invited": survey.folder.invitations_file.exists(), "phases": phases_of(params),
            "status": None, "too_few": None, "problem": None,
        }  # fmt: skip
        return {**facts, **_standing(survey)} if facts["invited"] else facts

    def advice(self, given: form.Given) -> dict[str, Any]:
        """What to expect of a survey that is being written down, and what its population has left."""
        population = str(given.get("population", "")).strip()
        advice = form.advice(given)
        return {**advice, "budget": self._budget(population)} if population else advice

    def _budget(self, population: str) -> dict[str, Any] | None:
        """What a population has spent; None for one that S2 does not know, or does not tell of now."""
        _, s2 = read_servers(self.servers)
        server = s2.server("S2", HURRIED)
        try:
            return BothServers(server, server).budget(population)
        except FaircountError:
            return None

    def create(self, given: form.Given) -> dict[str, Any]:
        """Make a survey and its invitations; it is opened by a wish of its own."""
        wishes, name = form.wishes_of(given), form.plain_name(str(given.get("name", "")))
        s1, s2 = read_servers(self.servers)
        facts = form.facts_of(given)
        known = _known_budget(BothServers(s1.server("S1"), s2.server("S2")), facts.population)
        budget, language = known or form.budget_of(given, wishes), form.language_of(given)
        owner = OwnerFile(s1, s2, s1.address, budget, language)
        create(self.folder / name, wishes, facts, owner)[0].invite(form.people_of(given))
        return self.one(name)

    def wish(self, name: str, what: str, given: dict[str, Any]) -> dict[str, Any]:
        """Invite, open, close, extend or abort; where the survey stands then."""
        survey = self.survey(name)
        if what == "invite":
            survey.invite([] if survey.folder.invitations_file.exists() else _unnamed(survey))
        elif what in WISHES:
            told = {"people": len(survey.invited())} if what == "open" else given
            survey.servers.wish(survey.params, what, **told)
        else:
            raise ParameterError(f"a survey can be told to invite, {', '.join(WISHES)}")
        return self.one(name)

    def people(self, name: str) -> list[str]:
        """What the owner calls the people who are invited, in the order of the invitations."""
        return [each.person for each in self.survey(name).invited()]

    def invitation(self, name: str, position: str) -> dict[str, Any]:
        """One invitation, with its QR code row by row."""
        survey = self.survey(name)
        invited = survey.invited()
        if not position.isdecimal() or int(position) >= len(invited):
            raise ParameterError(f"there are {len(invited)} invitations, counted from 0")
        chosen = invited[int(position)]
        link = chosen.code.link(survey.owner.public_address)
        return {"person": chosen.person, "link": link, "code": chosen.code.grouped, "qr": qr_rows(link)}

    def result(self, name: str) -> dict[str, Any]:
        """Estimates raw and consistent, what was promised and what holds; or how the survey ended without a result."""
        survey = self.survey(name)
        found = survey.result()
        if isinstance(found, Aborted):
            return {"ended": found.reason.decode(errors="replace"), "spent": bool(found.spent)}
        plain = plain_result(found)
        survey.keep_result(plain)
        return plain

    def second(self, name: str) -> dict[str, Any]:
        """What S2 says: where the survey stands there, and the budget. Apart from S1, so that neither waits."""
        survey = self.survey(name)
        try:
            return {"at_s2": survey.servers.status_at_s2(survey.params), "budget": self.budget(name)}
        except FaircountError as problem:
            return {"at_s2": {"problem": said(problem)}, "budget": None}

    def budget(self, name: str) -> dict[str, Any]:
        """What the population of a survey has spent, survey after survey."""
        survey = self.survey(name)
        found = survey.servers.budget(survey.params.population)
        others = {self.survey(each).params.survey.hex(): each for each in self.names()}
        mine = {each["survey"]: others[each["survey"]] for each in found["surveys"] if each["survey"] in others}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return steps_of(found, dict(zip(mine, pool.map(self._named, mine.values()), strict=True)))

    def _named(self, name: str) -> dict[str, Any]:
        survey = self.survey(name)
        try:
            return {"name": name, "opened_at": survey.servers.status(survey.params)["opened_at"]}
        except FaircountError:
            return {"name": name}

    def file(self, name: str, kind: str) -> bytes:
        """A file to keep: invitations as CSV or to print, who has not answered yet, the result."""
        survey = self.survey(name)
        made = {"invitations.csv": survey.folder.invitations_file, "invitations.html": survey.folder.printable_file}
        if kind in made:
            return read_file(made[kind], NO_INVITATIONS)
        if kind == "reminders.csv":
            return as_table(survey.not_answered(), survey.owner.public_address)
        found = survey.result()
        if isinstance(found, Aborted):
            raise RefusedError("this survey ended without a result").coded("no_result")
        return exported(found, kind)


def _unnamed(survey: Survey) -> list[str]:
    return numbered(survey.params.n_max, survey.owner.language)


def _known_budget(servers: BothServers, population: str) -> tuple[float, float] | None:
    """The total of a population that S2 knows already: it is not changed."""
    if not population:
        return None
    try:
        found = servers.budget(population)
    except RemoteError:  # a new one
        return None
    return found["epsilon"], found["delta"]


def _standing(survey: Survey) -> dict[str, Any]:
    """Where a survey stands at S1, if it tells."""
    params = survey.params
    try:
        status = survey.servers.status(params)
    except FaircountError as problem:
        return {"problem": said(problem)}
    stands = {"phase": phase_of(params, status["state"]), "waits_for": waits_for(params, status)}
    return {"status": {**status, **stands}, "too_few": too_few(status)}

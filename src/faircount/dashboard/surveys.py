"""The surveys in one folder, as the dashboard shows them: plain values for JSON.

Every call reads the folder and asks the servers again; only parsed parameters are cached. Most
values come from the coordinator (S1). The aggregator (S2) is asked in calls of its own, so that one
slow server does not delay the news of the other.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.client.calls import RetryPolicy
from faircount.core.errors import FaircountError, ParameterError, RemoteError
from faircount.core.files import read_file
from faircount.dashboard import form as forms
from faircount.dashboard.budgets import steps_of
from faircount.dashboard.error_payload import error_payload
from faircount.dashboard.progress import phase_index, phases_of, predict_too_few, waits_for
from faircount.owner.exports import KINDS, export_result, plain_result
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.invitations import invitations_csv, qr_rows
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey, create
from faircount.protocol.survey.endings import ending_of
from faircount.protocol.survey.operators import (
    ROLES,
    format_fingerprint,
    has_one_operator,
    operator_of,
)
from faircount.protocol.wire.messages import Aborted

REQUESTS = ("open", "close", "extend", "abort")
NO_INVITATIONS = "make the invitations first"
IMPATIENT = RetryPolicy(attempts=2)
"""A page tells at once that a server does not respond, and asks again a few seconds later."""

MOST_AT_ONCE = 8
"""How many surveys are asked for their status at the same time."""


@dataclass(frozen=True)
class Surveys:
    """The surveys of one owner: one folder per survey, and the file with both servers' tokens."""

    folder: Path
    servers: Path
    _cache: dict[tuple[str, int], Survey] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> list[str]:
        """The names of all surveys in the folder."""
        return sorted(path.parent.name for path in self.folder.glob("*/parameters.json"))

    def all(self) -> list[dict[str, Any]]:
        """Every survey with its status, by name."""
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            return list(pool.map(self._one_or_problem, self.names()))

    def _one_or_problem(self, name: str) -> dict[str, Any]:
        # A damaged folder must not hide the other surveys.
        try:
            return self.one(name)
        except FaircountError as problem:
            nothing = {"name": name, "question": "", "status": None, "too_few": None}
            return {**nothing, "problem": error_payload(problem)}

    def survey(self, name: str) -> Survey:
        """The survey of this name; parsed again only if its parameters have changed."""
        path = self.folder / forms.check_name(name)
        file = path / "parameters.json"
        # The time of change is part of the key, so that a restored folder is read again.
        changed = file.stat().st_mtime_ns if file.exists() else 0
        if (name, changed) not in self._cache:
            self._cache[name, changed] = Survey.at(path, IMPATIENT)
        return self._cache[name, changed]

    def one(self, name: str) -> dict[str, Any]:
        """One survey: its parameters, and its status at the coordinator."""
        survey = self.survey(name)
        params = survey.params
        is_unnamed = params.population == f"survey {params.survey.hex()}"
        facts: dict[str, Any] = {
            "name": name,
            "question": params.question,
            "items": [str(label) for label in params.mechanism.domain.labels],
            "mechanism": params.mechanism.name,
            "proven": params.proven,
            "epsilon": params.epsilon,
            "delta": params.delta,
            "minimum": params.minimum,
            "n_max": params.n_max,
            "s1": params.s1_operator,
            "s2": params.s2_operator,
            "fingerprints": [format_fingerprint(operator_of(params, role)[1]) for role in ROLES],
            "one_operator": has_one_operator(params),
            "population": "" if is_unnamed else params.population,
            "invited": survey.folder.invitations_file.exists(),
            "phases": phases_of(params),
            "status": None,
            "too_few": None,
            "problem": None,
        }
        # Before anybody is invited, the coordinator does not know the survey.
        if facts["invited"]:
            facts.update(_coordinator_status(survey))
        return facts

    def advice(self, form: forms.Form) -> dict[str, Any]:
        """The planner's advice on a form, and the budget that its population has left."""
        population = str(form.get("population", "")).strip()
        advice = forms.advice(form)
        # Without a name the survey gets a new budget of its own: there is nothing to ask for.
        if population:
            advice["budget"] = self._budget_of(population)
        return advice

    def _budget_of(self, population: str) -> dict[str, Any] | None:
        """The budget of a population; None if the aggregator does not know it or respond."""
        _, aggregator = read_servers(self.servers)
        # The aggregator alone keeps budgets, so it may stand in the coordinator's place here.
        server = aggregator.server("S2", IMPATIENT)
        try:
            return BothServers(server, server).budget(population)
        except FaircountError:
            return None

    def create(self, form: forms.Form) -> dict[str, Any]:
        """Create a survey with its invitations; opening it is a separate request."""
        wishes = forms.wishes_of(form)
        name = forms.check_name(str(form.get("name", "")))
        s1, s2 = read_servers(self.servers)
        facts = forms.facts_of(form)
        servers = BothServers(s1.server("S1"), s2.server("S2"))
        # A population's budget is never changed, whatever the form says.
        budget = _existing_budget(servers, facts.population) or forms.budget_of(form, wishes)
        # Participants open the page at the coordinator, so its address goes into the links.
        owner = OwnerFile(s1, s2, s1.address, budget, forms.language_of(form))
        survey, *_ = create(self.folder / name, wishes, facts, owner)
        survey.invite(forms.people_of(form))
        return self.one(name)

    def request(self, name: str, what: str, values: dict[str, Any]) -> dict[str, Any]:
        """Invite, open, close, extend or abort; returns the survey afterwards."""
        survey = self.survey(name)
        # check: dashboard-request - any call of the owner's at the coordinator is made by its name
        if what not in ("invite", *REQUESTS):
            message = f"the requests for a survey are invite, {', '.join(REQUESTS)}"
            raise ParameterError(message).with_code("bad_call")
        if what == "invite":
            # Repeating it is safe: existing invitations are only sent to the servers again.
            survey.invite()
        else:
            # The coordinator opens only if it knows everybody whom this folder invites.
            sent = {"invited": len(survey.invitees())} if what == "open" else values
            survey.servers.request(survey.params, what, **sent)
        return self.one(name)

    def people(self, name: str) -> list[str]:
        """The owner's names of the people invited, in the order of the invitations."""
        return [invited.person for invited in self.survey(name).invitees()]

    def invitation(self, name: str, position: str) -> dict[str, Any]:
        """One invitation, with its QR code row by row."""
        survey = self.survey(name)
        invited = survey.invitees()
        # The position comes from a URL: negative numbers would count from the end of the list.
        # check: dashboard-position - the invitation of another person than the one who is named
        if not position.isdecimal() or int(position) >= len(invited):
            message = f"there are {len(invited)} invitations, counted from 0"
            raise ParameterError(message).with_code("no_such_invitation", invited=len(invited))
        chosen = invited[int(position)]
        link = chosen.code.link(survey.owner.link_address)
        return {
            "person": chosen.person,
            "link": link,
            "code": chosen.code.grouped_text,
            "qr": qr_rows(link),
        }

    def result(self, name: str) -> dict[str, Any]:
        """The result with its guarantee, or how the survey ended without one."""
        survey = self.survey(name)
        found = survey.latest_ending()
        if isinstance(found, Aborted):
            return {"ended": ending_of(found).to_dict(), "spent": bool(found.spent)}
        return plain_result(found)

    def aggregator_status(self, name: str) -> dict[str, Any]:
        """The status at the aggregator, and the budget, or why they are not known right now."""
        survey = self.survey(name)
        try:
            status = survey.servers.aggregator_status(survey.params)
            return {"aggregator": status, "budget": self.budget(name)}
        except FaircountError as problem:
            return {"aggregator": {"problem": error_payload(problem)}, "budget": None}

    def budget(self, name: str) -> dict[str, Any]:
        """What the population of a survey has spent, survey by survey."""
        survey = self.survey(name)
        found = survey.servers.budget(survey.params.population)
        # The aggregator knows surveys by id only; names and times come from this folder.
        names = {self.survey(other).params.survey.hex(): other for other in self.names()}
        known = [charge["survey"] for charge in found["surveys"] if charge["survey"] in names]
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            facts = pool.map(self._name_and_time, [names[survey_id] for survey_id in known])
            return steps_of(found, dict(zip(known, facts, strict=True)))

    def _name_and_time(self, name: str) -> dict[str, Any]:
        survey = self.survey(name)
        try:
            return {"name": name, "opened_at": survey.servers.status(survey.params)["opened_at"]}
        except FaircountError:
            # The time is a detail: without it the budget is still shown.
            return {"name": name}

    def file(self, name: str, kind: str) -> bytes:
        """A file to download: invitations, reminders, or the result."""
        survey = self.survey(name)
        stored = {
            "invitations.csv": survey.folder.invitations_file,
            "invitations.html": survey.folder.printable_file,
        }
        if kind in stored:
            return read_file(stored[kind], NO_INVITATIONS)
        if kind == "reminders.csv":
            return invitations_csv(survey.pending_invitees(), survey.owner.link_address)
        # check: dashboard-file - a file of another kind is read from the owner's folder
        if kind not in (f"result.{suffix}" for suffix in KINDS):
            names = ", ".join(KINDS)
            message = f"a result can be saved as {names}"
            raise ParameterError(message).with_code("unknown_file", names=names)
        # `result` verifies the aggregator's signature before anything is exported.
        return export_result(survey.result(), kind.removeprefix("result."))


def _existing_budget(servers: BothServers, population: str) -> tuple[float, float] | None:
    """The budget of a population that the aggregator knows already."""
    if not population:
        return None
    try:
        found = servers.budget(population)
    except RemoteError:  # a new population
        return None
    return found["epsilon"], found["delta"]


def _coordinator_status(survey: Survey) -> dict[str, Any]:
    """The status of a survey at the coordinator, or why it is not known right now."""
    params = survey.params
    try:
        status = survey.servers.status(params)
    except FaircountError as problem:
        return {"problem": error_payload(problem)}
    added = {
        "phase_index": phase_index(params, status["phase"]),
        "waits_for": waits_for(params, status),
    }
    return {"status": {**status, **added}, "too_few": predict_too_few(status)}

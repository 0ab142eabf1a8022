"""The surveys in one folder, as the dashboard shows them: plain values for JSON.

Every call reads the folder and asks the servers again; only parsed parameters are cached. Most
values come from the coordinator (S1). The aggregator (S2) is asked in calls of its own, so that one
slow server does not delay the news of the other.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.client.calls import RetryPolicy
from faircount.core.errors import (
    FaircountError,
    ParameterError,
    RefusedError,
    UnreachableError,
)
from faircount.core.files import read_file
from faircount.core.questions import Question, Table
from faircount.dashboard import form as forms
from faircount.dashboard.budgets import steps_of
from faircount.dashboard.error_payload import error_payload
from faircount.dashboard.last_status import last_status, remember_status
from faircount.dashboard.levels import describe_levels, describe_tables, levels_of
from faircount.dashboard.mailings import MailJobs, preview_mail, sent_mails
from faircount.dashboard.progress import phase_index, phases_of, predict_too_few, waits_for
from faircount.dashboard.question_results import describe_changes, describe_result
from faircount.estimation.trend import match_questions
from faircount.owner.budget import check_budget, existing_budget
from faircount.owner.creation import create
from faircount.owner.exports import KINDS, export_result, plain_result
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.invitations import invitations_csv, qr_rows
from faircount.owner.label import PrivacyLabel
from faircount.owner.mail import Mailing
from faircount.owner.mail_server import MailSettings
from faircount.owner.people import People, is_email
from faircount.owner.remote import BothServers
from faircount.owner.repeat import next_folder, people_of
from faircount.owner.survey import Survey
from faircount.protocol.survey.endings import ending_of
from faircount.protocol.survey.operators import (
    ROLES,
    format_fingerprint,
    has_one_operator,
    operator_of,
)
from faircount.protocol.wire.messages import Aborted

REQUESTS = ("invite", "open", "close", "extend", "abort", "repeat", "delete")
LABELS = ("label.html", "label.json", "label.yaml")
UNKNOWN = "unknown"
"""The cause that a server names if it does not know a survey."""
NO_INVITATIONS = "make the invitations first"
IMPATIENT = RetryPolicy(attempts=2)
"""A page tells at once that a server does not respond, and asks again a few seconds later."""

MAX_AT_ONCE = 8
"""How many surveys are asked for their status at the same time."""


@dataclass(frozen=True)
class Surveys:
    """The surveys of one owner: one folder per survey, and the file with both servers' tokens."""

    folder: Path
    servers: Path
    mail_settings: MailSettings = field(default_factory=MailSettings)
    _mail_jobs: MailJobs = field(default_factory=MailJobs, compare=False, repr=False)
    _cache: dict[tuple[str, int], Survey] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> list[str]:
        """The names of all surveys in the folder."""
        return sorted(path.parent.name for path in self.folder.glob("*/parameters.json"))

    def all(self) -> list[dict[str, Any]]:
        """Every survey with its status, by name."""
        with ThreadPoolExecutor(MAX_AT_ONCE) as pool:
            return list(pool.map(self._one_or_problem, self.names()))

    def _one_or_problem(self, name: str) -> dict[str, Any]:
        # A damaged folder must not hide the other surveys.
        try:
            return self.one(name)
        except FaircountError as problem:
            nothing = {"name": name, "question": "", "status": None, "last": None, "too_few": None}
            known = {"questions": [], "deleted": False}
            return {**nothing, **known, "problem": error_payload(problem)}

    def survey(self, name: str) -> Survey:
        """The survey of this name; parsed again only if its parameters have changed."""
        path = self.folder / forms.check_name(name)
        file = path / "parameters.json"
        # The time of change is part of the key, so that a restored folder is read again.
        changed = file.stat().st_mtime_ns if file.exists() else 0
        if (name, changed) not in self._cache:
            self._cache[name, changed] = Survey.at(path, IMPATIENT)
        return self._cache[name, changed]

    def _readable_surveys(self) -> list[Survey]:
        """All surveys; a damaged folder must not hide what the others tell."""
        found = []
        for name in self.names():
            with suppress(FaircountError):
                found.append(self.survey(name))
        return found

    def one(self, name: str) -> dict[str, Any]:
        """One survey: its parameters, and its status at the coordinator."""
        survey = self.survey(name)
        params = survey.params
        is_unnamed = params.population == f"survey {params.survey.hex()}"
        facts: dict[str, Any] = {
            "name": name,
            "question": params.questionnaire.text,
            "questions": [_text_of(question) for question in params.questionnaire.questions],
            "single_epsilon": params.single_epsilon or params.epsilon,
            "levels": describe_levels(levels_of(params)),
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
            "last": None,
            "deleted": False,
            # The folder keeps a result that was read, whatever the servers do.
            "ended": survey.folder.statement_file.exists(),
            "interrupted": False,
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
            advice |= self._budget_of(population, advice)
        return advice

    def _budget_of(self, population: str, advice: dict[str, Any]) -> dict[str, Any]:
        """The budget of a population, and why it does not allow the survey, if so.

        Both are None if the aggregator does not know the population or does not respond.
        """
        _, aggregator = read_servers(self.servers)
        # The aggregator alone keeps budgets, so it may stand in the coordinator's place here.
        server = aggregator.server("S2", IMPATIENT)
        servers = BothServers(server, server)
        budget = None
        problem = None
        try:
            budget = servers.budget(population)
            if "problem" not in advice:
                total = (budget["epsilon"], budget["delta"])
                check_budget(servers, population, total, (advice["epsilon"], advice["delta"]))
        except RefusedError as refusal:
            problem = error_payload(refusal)
        except FaircountError:
            pass
        return {"budget": budget, "budget_problem": problem}

    def create(self, form: forms.Form) -> dict[str, Any]:
        """Create a survey with its invitations; opening it is a separate request."""
        people = self._people(form)
        if people is not None:
            form = {**form, "users": len(people), "people": ""}
        requirements = forms.requirements_of(form)
        name = forms.check_name(str(form.get("name", "")))
        s1, s2 = read_servers(self.servers)
        facts = forms.facts_of(form)
        servers = BothServers(s1.server("S1"), s2.server("S2"))
        # A population's budget is never changed, whatever the form says.
        budget = existing_budget(servers, facts.population) or forms.budget_of(form, requirements)
        # Participants open the page at the coordinator, so its address goes into the links.
        language = forms.language_of(form)
        closes_at = forms.closing_time_of(form)
        owner = OwnerFile(s1, s2, s1.address, budget, language, closes_at=closes_at)
        anyway = forms.is_wanted_anyway(form)
        survey, *_ = create(
            self.folder / name, requirements, facts, owner, people=people, anyway=anyway
        )
        # If a server goes away now, the page offers to continue: the survey exists already, and
        # creating it once more would be refused.
        with suppress(UnreachableError):
            survey.invite()
        return self.one(name)

    def _people(self, form: forms.Form) -> People | None:
        """Whom a form invites: the people of another survey, or those that it names."""
        other = str(form.get("people_from", ""))
        return people_of(self.survey(other)) if other else forms.people_of(form)

    def form(self, name: str) -> dict[str, Any]:
        """The form of a new survey that is like this one, among the same people."""
        survey = self.survey(name)
        form = forms.form_of(survey.params, survey.owner)
        form["name"] = next_folder(survey.folder.path).name
        people = survey.folder.people()
        # People who were only numbered have no table to take over.
        if people is not None:
            about = {"count": len(people), "columns": [], "problem": None}
            form["chosen"] = {"people_from": name, "about": about}
        return form

    def request(self, name: str, what: str, values: dict[str, Any]) -> dict[str, Any]:
        """Invite, open, close, extend, abort, repeat or delete; returns the survey afterwards."""
        survey = self.survey(name)
        # check: dashboard-request - any call of the owner's at the coordinator is made by its name
        if what not in REQUESTS:
            message = f"the requests for a survey are {', '.join(REQUESTS)}"
            raise ParameterError(message).with_code("bad_call")
        if what == "invite":
            # Repeating it is safe: existing invitations are only sent to the servers again.
            if not survey.folder.invitations_file.exists():
                _check_budget_of(survey)
            survey.invite()
        elif what == "open":
            survey.open()
        elif what == "repeat":
            name = survey.repeat().folder.path.name
        elif what == "delete":
            # Read first: the folder keeps how the survey ended when the servers have forgotten it.
            survey.latest_ending()
            survey.delete()
        else:
            survey.servers.request(survey.params, what, **values)
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

    def reissue(self, name: str, position: str) -> dict[str, Any]:
        """Replace the invitation of somebody who has lost it; the new one."""
        survey = self.survey(name)
        survey.reissue(self.invitation(name, position)["person"])
        return self.invitation(name, position)

    def mail_status(self, name: str) -> dict[str, Any]:
        """Who sends mails through which server, and how far it is; never the password."""
        survey = self.survey(name)
        server = self.mail_settings.server
        sent: dict[str, int] = {}
        # While a mailing goes on, its own report tells more.
        if not self._mail_jobs.is_running(name):
            sent = sent_mails(survey)
        return {
            "sender": self.mail_settings.sender,
            "host": "" if server is None else server.host,
            "has_addresses": all(is_email(invitee.person) for invitee in survey.invitees()),
            "sent": sent,
            "job": self._mail_jobs.describe(name),
        }

    def mail(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Show a mail, send mails in the background, or stop that; the status after it."""
        action = values.get("action")
        if action == "stop":
            self._mail_jobs.stop(name)
            return self.mail_status(name)
        sender = str(values.get("sender", "")) or self.mail_settings.sender
        mailing = Mailing(self.survey(name), sender, remind=values.get("remind") is True)
        if action == "preview":
            return preview_mail(mailing)
        if action != "send":
            message = "mails are shown, sent or stopped"
            raise ParameterError(message).with_code("bad_call")
        server = self.mail_settings.server
        if server is None:
            message = "name your mail server in FAIRCOUNT_SMTP_HOST, and start the dashboard again"
            raise RefusedError(message).with_code("mail_no_server")
        options = {name: values.get(name) is True for name in ("retry_unsure", "again")}
        self._mail_jobs.start(name, mailing, server, rate=self.mail_settings.rate, **options)
        return self.mail_status(name)

    def result(self, name: str) -> dict[str, Any]:
        """The result with its guarantee, or how the survey ended without one."""
        survey = self.survey(name)
        found = survey.latest_ending()
        if isinstance(found, Aborted):
            return {"ended": ending_of(found).to_dict(), "spent": bool(found.spent)}
        charts = describe_result(found)
        return {**plain_result(found), "charts": charts, "second": describe_tables(found)}

    def trend(self, name: str) -> dict[str, Any]:
        """How the result differs from the one before it; empty if there is none.

        The earlier survey must have asked the same people for the same answers.
        """
        survey = self.survey(name)
        earlier = [other for other in self._readable_surveys() if _can_compare(other, survey)]
        opened = _opening_time(survey)
        before = [other for other in earlier if _opening_time(other) < opened]
        if not before:
            return {}
        last = max(before, key=_opening_time)
        changes = describe_changes(last.trend(survey))
        return {"before": last.folder.path.name, "questions": changes}

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
        readable = self._readable_surveys()
        names = {other.params.survey.hex(): other.folder.path.name for other in readable}
        known = [charge["survey"] for charge in found["surveys"] if charge["survey"] in names]
        with ThreadPoolExecutor(MAX_AT_ONCE) as pool:
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
        if kind in LABELS:
            return _label_file(survey.label(), kind)
        # check: dashboard-file - a file of another kind is read from the owner's folder
        if kind not in (f"result.{suffix}" for suffix in KINDS):
            names = ", ".join(KINDS)
            message = f"a result can be saved as {names}"
            raise ParameterError(message).with_code("unknown_file", names=names)
        # `result` verifies the aggregator's signature before anything is exported.
        return export_result(survey.result(), kind.removeprefix("result."))


def _text_of(question: Question) -> str:
    """What a question asks, in one line."""
    if isinstance(question, Table):
        return f"{question.text} / {question.columns_text}"
    return question.text


def _can_compare(earlier: Survey, later: Survey) -> bool:
    """Whether two surveys asked the same people for the same answers, and both have a result."""
    if earlier.params.survey == later.params.survey:
        return False
    if earlier.params.population != later.params.population:
        return False
    if not match_questions(earlier.params.questionnaire, later.params.questionnaire):
        return False
    # Only results that are kept here: asking the servers for each would take long.
    folders = (earlier.folder, later.folder)
    return all(folder.result_file.exists() for folder in folders)


def _opening_time(survey: Survey) -> str:
    record = survey.result().record
    # Times of the coordinator are in one zone and of one form, so their order is that of the texts.
    return "" if record is None else record.opened or ""


def _label_file(label: PrivacyLabel, kind: str) -> bytes:
    if kind == "label.html":
        return label.to_html()
    return label.to_json() if kind == "label.json" else label.to_yaml()


def _check_budget_of(survey: Survey) -> None:
    """Refuse to invite people to a survey that their budget does not allow."""
    params = survey.params
    cost = (params.epsilon, params.delta)
    check_budget(survey.servers, params.population, survey.owner.budget, cost)


def _coordinator_status(survey: Survey) -> dict[str, Any]:
    """The status of a survey at the coordinator, or why it is not known right now."""
    params = survey.params
    last = last_status(survey.folder)
    try:
        status = survey.servers.status(params)
    except FaircountError as problem:
        if problem.values.get("cause") == UNKNOWN:
            # The owner has deleted it there, and the folder keeps how it ended; or inviting was
            # interrupted before the coordinator knew of it, and can be repeated.
            if survey.folder.statement_file.exists():
                return {"deleted": True, "last": last}
            return {"invited": False, "interrupted": True}
        return {"problem": error_payload(problem), "last": last}
    added = {
        "phase_index": phase_index(params, status["phase"]),
        "waits_for": waits_for(params, status),
    }
    remember_status(survey.folder, {**status, **added})
    return {"status": {**status, **added}, "too_few": predict_too_few(status)}

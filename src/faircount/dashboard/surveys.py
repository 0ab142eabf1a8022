"""What the dashboard shows and does, as plain values: the surveys in one folder, through the owner's own functions."""

import csv
import io
import json
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.drawing import result_file
from faircount.estimation.result import Result
from faircount.planning.question import cautions
from faircount.protocol.wire.canonical_json import unscaled
from faircount.protocol.wire.messages import Aborted, Published
from faircount.service.owner.advice import Wishes, advise
from faircount.service.owner.folder import OwnerFile, read_servers
from faircount.service.owner.invitations import numbered
from faircount.service.owner.survey import Facts, Survey, create

WISHES = ("open", "close", "extend", "abort")
LEVEL = 0.95


@dataclass(frozen=True)
class Surveys:
    """The surveys of one owner: a folder with a folder for each, and the file with both servers' tokens."""

    folder: Path
    servers: Path

    def all(self) -> list[dict[str, Any]]:
        """Every survey with where it stands, by name."""
        names = sorted(each.parent.name for each in self.folder.glob("*/parameters.json"))
        return [self.one(name) for name in names]

    def survey(self, name: str) -> Survey:
        """The survey of this name; one that would lead out of the folder is refused."""
        return Survey.at(self.folder / _plain_name(name))

    def one(self, name: str) -> dict[str, Any]:
        """One survey: what was asked, where it stands, and whether too few will have answered."""
        survey = self.survey(name)
        params = survey.params
        facts = {
            "name": name, "question": params.question, "items": [str(each) for each in params.mechanism.domain.labels],
            "mechanism": params.mechanism.name, "epsilon": params.epsilon, "delta": params.delta,
            "minimum": params.minimum, "n_max": params.n_max, "population": params.population,
            "invited": survey.folder.invitations_file.exists(),
        }  # fmt: skip
        if not facts["invited"]:
            return {**facts, "status": None, "warning": ""}
        try:
            status = survey.servers.status(params)
        except FaircountError as problem:
            return {**facts, "status": None, "warning": str(problem)}
        return {**facts, "status": status, "warning": too_few(status)}

    def create(self, wished: dict[str, Any]) -> dict[str, Any]:
        """Make a survey and its invitations; it is opened by a wish of its own."""
        wishes, name = _wishes(wished), _plain_name(str(wished.get("name", "")))
        s1, s2 = read_servers(self.servers)
        owner = OwnerFile(s1, s2, s1.address, (wishes.epsilon, wishes.delta))
        texts = {each: str(wished.get(each, "")) for each in ("question", "owner", "purpose", "contact", "population")}
        facts = Facts(seconds=_whole(wished, "hours") * 3600, **texts)
        survey, _ = create(self.folder / name, wishes, facts, owner)
        survey.invite(numbered(wishes.users))
        return self.one(name)

    def wish(self, name: str, what: str, given: dict[str, Any]) -> dict[str, Any]:
        """Open, close, extend or abort a survey; where it stands then."""
        if what not in WISHES:
            raise ParameterError(f"a survey can be told to {', '.join(WISHES)}")
        survey = self.survey(name)
        survey.servers.wish(survey.params, what, **given)
        return self.one(name)

    def result(self, name: str) -> dict[str, Any]:
        """Estimates raw and consistent, what was promised and what holds; or how the survey ended without a result."""
        survey = self.survey(name)
        found = survey.result()
        if isinstance(found, Aborted):
            return {"ended": found.reason.decode(errors="replace"), "spent": bool(found.spent)}
        said = found.to_dict(LEVEL)
        survey.keep_result(said)
        return {**said, "promised": _promised(found)}

    def budget(self, name: str) -> dict[str, Any]:
        """What the population of a survey has spent, survey after survey, as S2 keeps it."""
        survey = self.survey(name)
        population = quote(survey.params.population, safe="")
        found: dict[str, Any] = survey.servers.s2.call("GET", f"/v1/populations/{population}").json()
        return found

    def file(self, name: str, kind: str) -> bytes:
        """A file to keep: invitations as CSV or to print, the result as CSV, JSON, PNG or SVG."""
        survey = self.survey(name)
        made = {"invitations.csv": survey.folder.invitations_file, "invitations.html": survey.folder.printable_file}
        if kind in made:
            return made[kind].read_bytes()
        found = survey.result()
        if isinstance(found, Aborted):
            raise RefusedError("this survey ended without a result")
        return exported(found, kind)


def advice(wished: dict[str, Any]) -> dict[str, Any]:
    """What to expect of a survey that is being written down: the planner's advice, or why there is none."""
    try:
        wishes = _wishes(wished)
        found = advise(wishes)
    except FaircountError as problem:
        return {"refused": str(problem)}
    share = 1 / len(wishes.items)
    return {
        "mechanism": found.mechanism.name, "words": found.words, "worthwhile": found.tells_something,
        "half_width_95": found.half_width_95, "cautions": list(cautions(wishes.epsilon, wishes.delta)),
        "example": [{"item": each, "share": share, "half": found.half_width_95} for each in wishes.items],
    }  # fmt: skip


def too_few(status: dict[str, Any]) -> str:
    """A warning, in time, where at the pace of now fewer than the minimum will have answered; else nothing."""
    if status["state"] != "submitting" or not status["closes_at"] or status["users"] >= status["minimum"]:
        return ""
    opened, closes = (datetime.fromisoformat(status[each]) for each in ("opened_at", "closes_at"))
    passed = (datetime.now(tz=opened.tzinfo) - opened) / (closes - opened)
    expected = status["users"] / max(passed, 1e-9)
    if passed < 0.1 or expected >= status["minimum"]:
        return ""
    return (
        f"at this pace {int(expected)} people will have answered, and at least {status['minimum']} must: remind them, "
        "or give more time"
    )


def exported(result: Result, kind: str) -> bytes:
    """The result as a file, the guarantee in it."""
    if kind == "result.csv":
        return _table(result)
    if kind == "result.json":
        return json.dumps(result.to_dict(LEVEL), indent=2, allow_nan=False).encode() + b"\n"
    if kind not in ("result.png", "result.svg"):
        raise ParameterError("a result is kept as result.csv, result.json, result.png or result.svg")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, kind)
        result_file(result, path, LEVEL, "users")
        return path.read_bytes()


def _table(result: Result) -> bytes:
    out, said = io.StringIO(), result.to_dict(LEVEL)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("item", "estimate", "low", "high", "consistent", "guarantee"))
    for row, consistent in zip(said["estimates"], said["consistent"], strict=True):
        writer.writerow((row["item"], row["estimate"], row["low"], row["high"], consistent, str(result.guarantee)))
    return out.getvalue().encode()


def _promised(result: Result) -> dict[str, float]:
    said = result.facts["published"]
    if not isinstance(said, Published):
        return {}
    names = ("epsilon", "delta", "realized_epsilon", "realized_delta")
    return {each: unscaled(getattr(said, each).decode()) for each in names}


def _wishes(wished: dict[str, Any]) -> Wishes:
    items = tuple(dict.fromkeys(each.strip() for each in str(wished.get("items", "")).splitlines() if each.strip()))
    if len(items) < 2:
        raise ParameterError("write at least two answers, one a line")
    return Wishes(
        items, _whole(wished, "users"), _real(wished, "epsilon"), _real(wished, "delta"), absent=_real(wished, "absent")
    )


def _whole(wished: dict[str, Any], name: str) -> int:
    value = _real(wished, name)
    if value != int(value) or value < 1:
        raise ParameterError(f"{name} must be a whole number above 0")
    return int(value)


def _real(wished: dict[str, Any], name: str) -> float:
    try:
        return float(wished[name])
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"{name} must be a number") from None


def _plain_name(name: str) -> str:
    if not name or not all(each.isalnum() or each in "-_" for each in name) or len(name) > 60:
        raise ParameterError("the name of a survey is made of letters, digits, - and _")
    return name

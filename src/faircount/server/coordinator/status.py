"""Where a survey stands at the coordinator, for anybody: what it waits for, since when, and what
comes next.
"""

from base64 import b64encode
from typing import Any

from faircount.protocol import Coordinator, SurveyParameters, encode
from faircount.protocol.survey.endings import describe_abort, ending_of
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.survey.validity import validity_of
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.messages import Aborted, Published, Signed
from faircount.server.common.base import DRAFT, parse_parameters
from faircount.server.common.clock import format_time
from faircount.server.common.problems import ProblemError, not_found
from faircount.server.common.tokens import Caller
from faircount.server.coordinator.service import CoordinatorService
from faircount.storage import states
from faircount.storage.database import Record
from faircount.storage.states import SurveyRow


async def status(s1: CoordinatorService, survey: bytes) -> dict[str, Any]:
    """The phase, times and counts, without anything about one person."""
    async with s1.server.database.read() as tx:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        waiting = await tx.fetch_one(
            "SELECT since, next_at, tries, problem FROM outbox WHERE survey = ?", survey
        )
        refused = await s1.server.count_rejections(tx, survey)
    return _plain(row, parse_parameters(row.params), waiting, refused)


def _plain(
    row: SurveyRow, params: SurveyParameters, waiting: Record | None, refused: dict[str, int]
) -> dict[str, Any]:
    words, following = _waits_for(row, params, waiting)
    return {
        "survey": row.id.hex(),
        "digest": params.digest.hex(),
        "topology": str(params.topology),
        "state": row.state,
        "attempt": row.attempt,
        "users": row.users,
        "people": row.people,
        "minimum": params.minimum,
        "n_max": params.n_max,
        "opened_at": format_time(row.opened_at),
        "since": format_time(row.since),
        "closes_at": format_time(row.due_at),
        "extended_seconds": row.extended,
        "waits_for": words,
        "next": following,
        "tries": 0 if waiting is None else int(waiting["tries"]),
        "tries_again_at": None if waiting is None else format_time(waiting["next_at"]),
        "problem": "" if waiting is None else str(waiting["problem"]),
        "rejections": refused,
    }


def _waits_for(row: SurveyRow, params: SurveyParameters, waiting: Record | None) -> tuple[str, str]:
    """What a survey waits for, and what comes next, in words."""
    if row.state in FINAL:
        return "nothing: the survey is over", "nothing"
    if row.state == DRAFT:
        return "its owner, who opens it", "users answer"
    if waiting is not None:
        return "an answer of the aggregator", "the next phase, or the result"
    if row.state in params.topology.phases:
        until = (
            "its owner, who closes it"
            if row.due_at is None
            else f"the closing time {format_time(row.due_at)}"
        )
        return (
            f"users, until {until}",
            "The coordinator closes this phase and turns to the aggregator",
        )
    return "The coordinator, which is about to turn to the aggregator", "the result"


async def last_word(s1: CoordinatorService, survey: bytes) -> Signed:
    """What the aggregator signed when the survey ended; refused while it goes on."""
    return (await _ended(s1, survey))[1]


async def _ended(s1: CoordinatorService, survey: bytes) -> tuple[Coordinator, Signed]:
    """The state of a survey that is over, without its rows, and the last word."""
    async with s1.server.database.read() as tx:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        if row.state not in FINAL:
            raise ProblemError(
                425,
                "early",
                "this survey is not over yet: ask for its status",
                6,
                {"Retry-After": "5"},
            )
        state = (await s1.states.load(tx, row, wanted=())).state
    if state.final is None:
        raise not_found("result")
    return state, state.final.signed


async def result(s1: CoordinatorService, survey: bytes) -> dict[str, Any]:
    """The result, or how the survey ended without one, with the aggregator's signed words beside
    it.
    """
    state, signed = await _ended(s1, survey)
    params = state.params
    plain = {"survey": survey.hex(), "signed": b64encode(encode(signed)).decode()}
    said = _said(signed)
    if isinstance(said, Aborted):
        why = {"reason": describe_abort(said), "ending": ending_of(said).to_dict()}
        return {**plain, "state": "aborted", **why, "spent": bool(said.spent)}
    labels = params.mechanism.domain.labels
    scale = params.mechanism.steps_per_count
    return {
        **plain,
        "state": "published",
        "included": said.included,
        "counts": [
            {"item": item, "count": step / scale}
            for item, step in zip(labels, said.counts, strict=True)
        ],
        "promised": {"epsilon": _amount(said.epsilon), "delta": _amount(said.delta)},
        "realized": {
            "epsilon": _amount(said.realized_epsilon),
            "delta": _amount(said.realized_delta),
        },
        "validity": validity_of(params, said).to_dict(),
        "places": []
        if params.mechanism.identical_for_all_users
        else list(state.rules.included_places(state)),
    }


def _said(signed: Signed) -> Published | Aborted:
    said = parse(signed.payload)
    if not isinstance(said, Published | Aborted):
        raise not_found("result")
    return said


def _amount(text: bytes) -> float:
    return parse_real(text.decode())


async def reservations(s1: CoordinatorService, caller: Caller, population: str) -> list[str]:
    """The aggregator's receipts of this owner's surveys of a population that the coordinator has
    heard, in base64, the first one first.
    """
    async with s1.server.database.read() as tx:
        found = await tx.fetch_all(
            "SELECT reservations.signed FROM reservations JOIN surveys ON surveys.id = "
            "reservations.survey "
            "WHERE reservations.population = ? AND surveys.owner = ? ORDER BY reservations.number",
            population, caller.id,
        )  # fmt: skip
    return [b64encode(bytes(each["signed"])).decode() for each in found]

"""The public status of a survey at the coordinator, and its result.

The status says what the survey waits for, since when the aggregator has not answered, and what
comes next. It contains nothing about a single participant. The result comes with the aggregator's
signed statement, so that nobody has to trust the coordinator for it.
"""

from base64 import b64encode
from typing import Annotated, Any

from msgspec import Meta, Struct

from faircount.core.questions.choices import ChoiceQuestion
from faircount.mechanisms.server_levels import ServerLevels
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


class CoordinatorStatus(Struct, frozen=True):
    """What everybody may read about a survey at the coordinator. Times are in UTC (RFC 3339)."""

    survey: Annotated[str, Meta(description="Id of the survey.")]
    digest: Annotated[str, Meta(description="Hash of its parameters.")]
    topology: Annotated[str, Meta(description="How shares travel.")]
    phase: Annotated[str, Meta(description="The phase, such as `submitting`.")]
    attempt: Annotated[
        int, Meta(description="Number of the attempt to form a sum; 0 before the first.")
    ]
    responses: Annotated[
        int, Meta(description="People who have enrolled or responded, without those who withdrew.")
    ]
    withdrawn: Annotated[int, Meta(description="People who have withdrawn their response.")]
    invited: Annotated[int, Meta(description="People invited.")]
    minimum: Annotated[int, Meta(description="Responses without which there is no result.")]
    n_max: Annotated[int, Meta(description="Places: the most responses that are accepted.")]
    opened_at: Annotated[str | None, Meta(description="When the survey was opened.")]
    since: Annotated[str, Meta(description="When the phase began.")]
    closes_at: Annotated[
        str | None, Meta(description="When the phase ends, if it has a closing time.")
    ]
    held_since: Annotated[
        str | None,
        Meta(description="Since when the phase is held open, for want of responses."),
    ]
    extended_seconds: Annotated[
        int, Meta(description="By how much the owner has extended this phase.")
    ]
    waits_for: Annotated[str, Meta(description="What the survey waits for, in words.")]
    next: Annotated[str, Meta(description="What comes next, in words.")]
    waiting_since: Annotated[
        str | None, Meta(description="Since when the aggregator has not answered.")
    ]
    tries: Annotated[
        int, Meta(description="How often the coordinator has asked the aggregator since.")
    ]
    tries_again_at: Annotated[str | None, Meta(description="When the coordinator asks it again.")]
    problem: Annotated[
        str, Meta(description="Why the last request to the aggregator failed; may be empty.")
    ]
    rejections: Annotated[dict[str, int], Meta(description="Rejected messages, by reason.")]


async def status(s1: CoordinatorService, survey: bytes) -> CoordinatorStatus:
    """The phase of a survey, its times and its counts."""
    async with s1.server.database.read() as tx:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        waiting = await tx.fetch_one(
            "SELECT since, next_at, tries, problem FROM outbox WHERE survey = ?", survey
        )
        rejections = await s1.server.count_rejections(tx, survey)
    return _make_status(row, parse_parameters(row.params), waiting, rejections)


def _make_status(
    row: SurveyRow, params: SurveyParameters, waiting: Record | None, rejections: dict[str, int]
) -> CoordinatorStatus:
    """The status of a survey.

    waiting: the row of the outbox, if the aggregator has not answered yet
    """
    waits_for, following = _describe_progress(row, params, waiting)
    tries = 0
    waiting_since = None
    tries_again_at = None
    problem = ""
    if waiting is not None:
        tries = int(waiting["tries"])
        waiting_since = format_time(waiting["since"])
        tries_again_at = format_time(waiting["next_at"])
        problem = str(waiting["problem"])
    return CoordinatorStatus(
        survey=row.id.hex(),
        digest=params.digest.hex(),
        topology=str(params.topology),
        phase=row.phase,
        attempt=row.attempt,
        responses=row.responses,
        withdrawn=row.withdrawn,
        invited=row.invited,
        minimum=params.minimum,
        n_max=params.n_max,
        opened_at=format_time(row.opened_at),
        since=format_time(row.since),
        closes_at=format_time(row.due_at),
        held_since=format_time(row.held_since),
        extended_seconds=row.extended,
        waits_for=waits_for,
        next=following,
        waiting_since=waiting_since,
        tries=tries,
        tries_again_at=tries_again_at,
        problem=problem,
        rejections=rejections,
    )


def _describe_progress(
    row: SurveyRow, params: SurveyParameters, waiting: Record | None
) -> tuple[str, str]:
    """What a survey waits for, and what comes next."""
    if row.phase in FINAL:
        return "nothing: the survey is over", "nothing"
    if row.phase == DRAFT:
        return "its owner, who opens it", "participants respond"
    # A row of the outbox stays until the aggregator has answered.
    if waiting is not None:
        return "an answer from the aggregator", "the next phase, or the result"
    if row.held_since is not None:
        return _describe_hold(row, params)
    if row.phase in params.topology.phases:
        until = "its owner closes it"
        if row.due_at is not None:
            until = f"the closing time {format_time(row.due_at)}"
        return (
            f"participants, until {until}",
            "the coordinator closes this phase and writes to the aggregator",
        )
    return "the coordinator, which is about to write to the aggregator", "the result"


def _describe_hold(row: SurveyRow, params: SurveyParameters) -> tuple[str, str]:
    """What a phase waits for that had too few participants at its deadline."""
    last = format_time(row.due_at)
    needed = "participants who have to return"
    # In later phases the participants of the first one are counted, not those who came back.
    if row.phase == params.topology.phases[0]:
        missing = max(0, params.minimum - row.responses)
        needed = "its owner, who can close it now: enough people have answered"
        if missing:
            needed = f"{missing:,} more answers" if missing > 1 else "one more answer"
    following = (
        f"its owner extends, closes or aborts it; on {last} it ends by itself, without a result if "
        "there are still too few answers"
    )
    held = "it was held open at its closing time, because there were too few answers"
    return f"{needed}; {held}", following


async def final_statement(s1: CoordinatorService, survey: bytes) -> Signed:
    """The final statement, as the aggregator signed it; refused before the end."""
    _, signed = await _load_ended(s1, survey)
    return signed


async def _load_ended(s1: CoordinatorService, survey: bytes) -> tuple[Coordinator, Signed]:
    """The state of a survey that is over, without its rows, and the final statement."""
    async with s1.server.database.read() as tx:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        if row.phase not in FINAL:
            raise ProblemError(
                425,
                "early",
                "this survey is not over yet: ask for its status",
                6,
                {"Retry-After": "5"},
            )
        # The statement is in the state: no rows are needed.
        loaded = await s1.states.load(tx, row, found=())
    state = loaded.state
    if state.final is None:
        raise not_found("result")
    return state, state.final.signed


async def result(s1: CoordinatorService, survey: bytes) -> dict[str, Any]:
    """The result, or why there is none, with the aggregator's signed statement."""
    state, signed = await _load_ended(s1, survey)
    common = {"survey": survey.hex(), "signed": b64encode(encode(signed)).decode()}
    final = parse(signed.payload)
    if isinstance(final, Aborted):
        return {
            **common,
            "phase": "aborted",
            "reason": describe_abort(final),
            "ending": ending_of(final).to_dict(),
            "spent": bool(final.spent),
        }
    if isinstance(final, Published):
        return {**common, "phase": "published", **_result_dict(state, final)}
    raise not_found("result")


def _result_dict(state: Coordinator, published: Published) -> dict[str, Any]:
    """A published result as JSON values."""
    params = state.params
    mechanism = params.mechanism
    # Counts travel as integers, in steps of the mechanism's resolution.
    counts = [steps / mechanism.steps_per_count for steps in published.counts]
    # Where everybody adds noise of one distribution, it does not matter for the guarantee who is
    # included.
    places = () if mechanism.identical_for_all_users else state.rules.included_places(state)
    return {
        "included": published.included,
        "questions": _counts_by_question(params, counts),
        **_counts_by_item(params, _count_of_everybody(params, counts), published.included),
        "promised": _amounts(published.epsilon, published.delta),
        "realized": _amounts(published.realized_epsilon, published.realized_delta),
        "validity": validity_of(params, published).to_dict(),
        "places": list(places),
    }


def _counts_by_question(params: SurveyParameters, counts: list[float]) -> list[dict[str, Any]]:
    """The published sums of every question, in the order of its answers or cells.

    With privacy levels, those of the people who were counted a second time stand beside them.
    """
    questions = params.questionnaire.questions
    slices = params.questionnaire.cell_slices
    everybody = _count_of_everybody(params, counts)
    # A mechanism for one question counts every answer, also the first of two.
    if len(questions) == 1:
        slices = (slice(None),)
    found: list[dict[str, Any]] = [
        {"question": question.text, "counts": everybody[where]}
        for question, where in zip(questions, slices, strict=True)
    ]
    if isinstance(params.mechanism, ServerLevels):
        for question, where in zip(found, params.mechanism.second_slices, strict=True):
            question["counted_again"] = counts[where]
    return found


def _count_of_everybody(params: SurveyParameters, counts: list[float]) -> list[float]:
    """The table in which everybody is counted once: all there is, without privacy levels."""
    if isinstance(params.mechanism, ServerLevels):
        return counts[: params.mechanism.base_cells]
    return counts


def _counts_by_item(
    params: SurveyParameters, counts: list[float], included: int
) -> dict[str, list[dict[str, Any]]]:
    """The count of every answer, for a survey with one question that has exactly one answer."""
    question = params.questionnaire.questions[0]
    if len(params.questionnaire) > 1 or not isinstance(question, ChoiceQuestion):
        return {}
    # Of two answers joint noise publishes the second alone, since both add up to everybody.
    if len(counts) == 1:
        counts = [included - counts[0], counts[0]]
    pairs = zip(question.answers, counts, strict=True)
    return {"counts": [{"item": item, "count": count} for item, count in pairs]}


def _amounts(epsilon: bytes, delta: bytes) -> dict[str, float]:
    return {"epsilon": parse_real(epsilon.decode()), "delta": parse_real(delta.decode())}


async def reservations(s1: CoordinatorService, caller: Caller, population: str) -> list[str]:
    """The aggregator's reservations for this owner's surveys of a population, in base64, in order.

    A restored aggregator is shown them (`faircount reopen`).
    """
    async with s1.server.database.read() as tx:
        # check: reservations-owner - an owner reads what other owners have spent
        found = await tx.fetch_all(
            "SELECT signed FROM reservations WHERE population = ? AND owner = ? ORDER BY number",
            population, caller.id,
        )  # fmt: skip
    return [b64encode(bytes(record["signed"])).decode() for record in found]


async def all_reservations(s1: CoordinatorService, population: str) -> list[str]:
    """The aggregator's reservations for all surveys of a population, also handed over or erased."""
    async with s1.server.database.read() as tx:
        found = await tx.fetch_all(
            "SELECT signed FROM reservations WHERE population = ? ORDER BY number", population
        )
    return [b64encode(bytes(record["signed"])).decode() for record in found]

"""How a survey is set up at the coordinator: create, list the invited, open.

    create        store the parameters, which must name this operator and this owner's survey keys
    add_operator  store the signature of the aggregator's operator, which participants check
    add_people    store a part of the list of access values, encrypted; repeatable
    open_survey   make the first state and a row for everybody on the list, in one transaction

Before it is opened a survey has no state, and clients are told to come back later.
"""

import asyncio
from collections.abc import Sequence

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Coordinator
from faircount.protocol.roles.coordinator import invitation_rows
from faircount.protocol.survey.operators import SIGNATURE_BYTES, is_signed_by_operator
from faircount.protocol.wire.codec import Party
from faircount.server.common import survey_keys
from faircount.server.common.base import (
    check_people,
    draft_row,
    find_owned_survey,
    is_known_survey,
    parameters_for,
    parse_parameters,
    record_part,
    sign_as_operator,
)
from faircount.server.common.problems import ProblemError, conflict, not_found
from faircount.server.common.tokens import Caller
from faircount.server.coordinator.service import CoordinatorService, due_at
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name, wrapping_key_name
from faircount.storage.states import SurveyRow

ACCESS = 32
"""Bytes of an access value, the part of an invitation that the coordinator knows."""


async def create(s1: CoordinatorService, caller: Caller, survey: bytes, published: bytes) -> bool:
    """Create a survey with these parameters; return whether it is new."""
    params = parameters_for(survey, published)
    async with s1.server.database.write() as tx:
        if await is_known_survey(tx, params, caller):
            return False
        signature = sign_as_operator(s1.server, params, Party.COORDINATOR)
        found = await tx.fetch_one(
            "SELECT owner FROM survey_keys WHERE id = ? AND used_by IS NULL",
            params.keys.coordinator,
        )
        if (
            found is None
            # check: own-survey-keys - a stranger takes the place of the owner who asked for them
            or bytes(found["owner"]) != caller.id
        ):
            raise ProblemError(
                409,
                "no-survey-keys",
                "these parameters name survey keys that this server has not made for you: "
                "ask for new ones",
            )
        await states.insert(tx, draft_row(s1.server, caller, params, signature))
    return True


async def add_operator(
    s1: CoordinatorService, caller: Caller, survey: bytes, signature: bytes
) -> None:
    """Store the signature with which the aggregator's operator signed the parameters."""
    async with s1.server.database.write() as tx:
        row = await find_owned_survey(tx, survey, caller)
        # check: operator-relayed - everybody would come to a survey that their clients refuse
        if not is_signed_by_operator(parse_parameters(row.params), Party.AGGREGATOR, signature):
            raise ProblemError(
                400, "malformed", "the operator of the aggregator has not signed these parameters"
            )
        operators = row.operators[:SIGNATURE_BYTES] + signature
        await states.update(tx, survey, operators=operators, version=row.version + 1)


async def list_operators(s1: CoordinatorService, survey: bytes) -> dict[str, str | None]:
    """Return with which signatures both operators have signed the parameters."""
    async with s1.server.database.read() as tx:
        row = await states.find(tx, survey)
    if row is None:
        raise not_found("survey")
    first = row.operators[:SIGNATURE_BYTES]
    second = row.operators[SIGNATURE_BYTES:]
    return {"s1": first.hex(), "s2": second.hex() or None}


async def add_people(
    s1: CoordinatorService, caller: Caller, survey: bytes, part: int, access_values: Sequence[bytes]
) -> int:
    """Store a part of the list of the invited; return how many are known now.

    The owner may repeat a part. Another list under the same number is refused.
    """
    if len(set(access_values)) != len(access_values):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    data = b"".join(access_values)
    async with s1.server.database.write() as tx:
        row = await find_owned_survey(tx, survey, caller)
        # A repeated part of an open survey is fine, a new one is refused: `record_part` tells them
        # apart by their hashes.
        is_open = row.has_state
        encrypted = None
        if not is_open:
            key = s1.server.keys.create(state_key_name(survey, 0))
            encrypted = key.encrypt(_part_place(survey, part), data)
        if not await record_part(tx, survey, part, data, encrypted):
            return row.invited
        # check: list-fixed-when-open - people are added once it is known who answered
        if is_open:
            raise conflict(
                "this survey is open: its list of people cannot be changed any more"
            ).with_code("list_fixed")
        invited = row.invited + len(access_values)
        check_people(invited, parse_parameters(row.params).n_max)
        await states.update(tx, survey, invited=invited, version=row.version + 1)
    return invited


async def open_survey(
    s1: CoordinatorService,
    caller: Caller,
    survey: bytes,
    invited: int | None = None,
    seconds: int | None = None,
) -> None:
    """Let participants respond. A survey that is open already stays as it is.

    invited: how many the owner has listed; refused if the coordinator knows another number
    seconds: until the closing time, if the owner wants it earlier than the parameters allow
    """
    async with s1.server.database.write() as tx:
        row = await find_owned_survey(tx, survey, caller)
        if row.has_state:
            return
        params = parse_parameters(row.params)
        # check: open-signed - participants could not tell who runs the aggregator
        if len(row.operators) != 2 * SIGNATURE_BYTES:
            detail = (
                "The operator of the aggregator has not signed this survey: invite the people "
                "again, which hands its signature over"
            )
            raise conflict(detail).with_code("operator_unsigned")
        # A part of the list got lost: opening now would shut out the people on it.
        if invited not in (None, row.invited):
            detail = (
                f"The coordinator knows {row.invited} of {invited} people: send the missing parts "
                "of the list first"
            )
            raise conflict(detail).with_code("people_missing", known=row.invited, people=invited)
        # check: open-minimum - a few people answer a survey that can have no result
        if row.invited < params.minimum:
            detail = (
                f"The coordinator knows {row.invited} people, and {params.minimum} are needed: "
                "invite more"
            )
            raise conflict(detail).with_code(
                "too_few_people", known=row.invited, minimum=params.minimum
            )
        await _begin(tx, s1, caller, row, seconds)
    # The survey keys are part of the state now. Their wrapping key goes after the commit: a crash
    # before it would leave keys that nobody can read.
    await asyncio.to_thread(s1.server.keys.destroy, wrapping_key_name(params.keys.coordinator))
    s1.changed.set()


async def _begin(
    tx: Transaction, s1: CoordinatorService, caller: Caller, row: SurveyRow, seconds: int | None
) -> None:
    """Write the first state, and a row for everybody on the list."""
    params = parse_parameters(row.params)
    used_keys = await survey_keys.use(tx, s1.server.keys, caller, params, params.keys.coordinator)
    state = Coordinator.begin(
        params,
        used_keys.key,
        committed_value=used_keys.value,
        order_key=SystemEntropy().bytes(32) if params.topology.needs_order_key else b"",
        noise_secret=SystemEntropy().bytes(32) if params.proven else b"",
    )
    # The anchor is outside of the transaction: it advances before anything is committed.
    await s1.server.use_value(params, Party.COORDINATOR)
    await s1.states.begin(tx, row, state)
    await _write_invited(tx, s1, row)
    now = s1.server.clock()
    due = due_at(state, now)
    # Never later than the parameters say, which participants read: only extending does that, and
    # everybody can see it.
    if seconds is not None and due is not None:
        due = min(due, now + 1000 * seconds)
    await states.update(tx, row.id, opened_at=now, since=now, due_at=due)


async def _write_invited(tx: Transaction, s1: CoordinatorService, row: SurveyRow) -> None:
    """Make a row for everybody on the list, part by part, and empty the parts."""
    key = s1.server.keys.get(state_key_name(row.id, 0))
    # One part in memory at a time. An emptied part still has its hash, for repeated calls.
    while (part := await tx.fetch_one(_PART, row.id)) is not None:
        listed = key.decrypt(_part_place(row.id, part["part"]), part["encrypted"])
        access_values = (listed[at : at + ACCESS] for at in range(0, len(listed), ACCESS))
        await s1.states.add(tx, row, invitation_rows(access_values))
        await tx.execute(
            "UPDATE parts SET encrypted = NULL WHERE survey = ? AND part = ?", row.id, part["part"]
        )


_PART = (
    "SELECT part, encrypted FROM parts WHERE survey = ? AND encrypted IS NOT NULL ORDER BY part "
    "LIMIT 1"
)


def _part_place(survey: bytes, part: int) -> bytes:
    return b"part" + survey + part.to_bytes(4, "big")

"""How a survey comes to the coordinator: parameters for keys that the coordinator has offered,
the list of people in parts, and the opening.
"""

import asyncio
from collections.abc import Sequence

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Coordinator
from faircount.protocol.roles.coordinator import invitation_rows
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
)
from faircount.server.common.problems import ProblemError, conflict
from faircount.server.common.tokens import Caller
from faircount.server.coordinator.service import CoordinatorService, due_at
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name, wrapping_key_name
from faircount.storage.states import SurveyRow

ACCESS = 32
"""Bytes of what the coordinator knows of an invitation."""


async def create(s1: CoordinatorService, caller: Caller, survey: bytes, published: bytes) -> bool:
    """A survey with these parameters, not open yet; whether it is new."""
    params = parameters_for(survey, published)
    async with s1.server.database.write() as tx:
        if await is_known_survey(tx, params, caller):
            return False
        found = await tx.fetch_one(
            "SELECT owner FROM survey_keys WHERE id = ? AND used_by IS NULL", params.keys.s1
        )
        if found is None or bytes(found["owner"]) != caller.id:
            raise ProblemError(
                409,
                "no-survey-keys",
                "these parameters name keys that this server has not offered to you",
            )
        await states.insert(tx, draft_row(s1.server, caller, params))
    return True


async def add_people(
    s1: CoordinatorService, caller: Caller, survey: bytes, part: int, lines: Sequence[bytes]
) -> int:
    """A part of the list of invited people, each by its access value; how many are known now."""
    data = b"".join(lines)
    if len(set(lines)) != len(lines):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    async with s1.server.database.write() as tx:
        row = await find_owned_survey(tx, survey, caller)
        key = s1.server.keys.create(state_key_name(survey, 0)) if row.head_nonce is None else None
        encrypted = None if key is None else key.encrypt(_part_place(survey, part), data)
        if not await record_part(tx, survey, part, data, encrypted):
            return row.people
        if row.head_nonce is not None:
            raise conflict(
                "this survey is open: its list of people cannot be changed any more"
            ).with_code("list_fixed")
        people = row.people + len(lines)
        check_people(people, parse_parameters(row.params).n_max)
        await states.update(tx, survey, people=people, version=row.version + 1)
    return people


async def open_survey(
    s1: CoordinatorService, caller: Caller, survey: bytes, people: int | None = None
) -> None:
    """Let users in.

    `people` is how many the owner has told the coordinator of: if the coordinator knows another
    number, nothing happens.
    """
    async with s1.server.database.write() as tx:
        row = await find_owned_survey(tx, survey, caller)
        if row.head_nonce is not None:
            return
        if people not in (None, row.people):
            words = (
                f"The coordinator knows {row.people} of {people} people: send the missing parts of "
                "the list first"
            )
            raise conflict(words).with_code("people_missing", known=row.people, people=people)
        if row.people < parse_parameters(row.params).minimum:
            minimum = parse_parameters(row.params).minimum
            words = (
                f"The coordinator knows {row.people} people, and {minimum} are needed: invite more"
            )
            raise conflict(words).with_code("too_few_people", known=row.people, minimum=minimum)
        await _begin(tx, s1, caller, row)
    await asyncio.to_thread(
        s1.server.keys.destroy, wrapping_key_name(parse_parameters(row.params).keys.s1)
    )
    s1.changed.set()


async def _begin(tx: Transaction, s1: CoordinatorService, caller: Caller, row: SurveyRow) -> None:
    """The first state, and everybody on the list; the list itself and the offer are needed no
    more.
    """
    params = parse_parameters(row.params)
    mine = await survey_keys.use(tx, s1.server.keys, caller, params, params.keys.s1)
    order_key = SystemEntropy().bytes(32) if params.topology.needs_order_key else b""
    noise = SystemEntropy().bytes(32) if params.proven else b""
    begun = Coordinator.begin(
        params, mine.key, committed=mine.value, order_key=order_key, noise_secret=noise
    )
    await s1.server.use_value(params, Party.COORDINATOR)
    await s1.states.begin(tx, row, begun)
    await _admit(tx, s1, row)
    now = s1.server.clock()
    await states.update(tx, row.id, opened_at=now, since=now, due_at=due_at(begun, now))


async def _admit(tx: Transaction, s1: CoordinatorService, row: SurveyRow) -> None:
    """Everybody on the list, in a row of the state each; a part of the list after the other,
    which is emptied.
    """
    key = s1.server.keys.get(state_key_name(row.id, 0))
    while (part := await tx.fetch_one(_PART, row.id)) is not None:
        listed = key.decrypt(_part_place(row.id, part["part"]), part["encrypted"])
        people = (listed[at : at + ACCESS] for at in range(0, len(listed), ACCESS))
        await s1.states.add(tx, row, invitation_rows(people))
        await tx.execute(
            "UPDATE parts SET encrypted = NULL WHERE survey = ? AND part = ?", row.id, part["part"]
        )


_PART = (
    "SELECT part, encrypted FROM parts WHERE survey = ? AND encrypted IS NOT NULL ORDER BY part "
    "LIMIT 1"
)


def _part_place(survey: bytes, part: int) -> bytes:
    return b"part" + survey + part.to_bytes(4, "big")

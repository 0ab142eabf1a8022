"""How a survey comes to S1: parameters for keys that S1 has offered, the list of people in parts, and the opening."""

import asyncio
from collections.abc import Sequence

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Coordinator, Row
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.wire.codec import Party
from faircount.service import offers
from faircount.service.coordinator import CoordinatorService, due_at
from faircount.service.problems import ProblemError, conflict
from faircount.service.server import new_part, new_row, own_survey, parameters_for, parsed, same_survey
from faircount.service.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import offer_key, survey_key
from faircount.storage.states import SurveyRow

ACCESS = 32
"""Bytes of what S1 knows of an invitation."""


async def offer(s1: CoordinatorService, caller: Caller) -> offers.Offer:
    """Fresh keys for a survey to come."""
    async with s1.server.database.write() as tx:
        return await offers.make(tx, s1.server.keys, caller)


async def create(s1: CoordinatorService, caller: Caller, survey: bytes, published: bytes) -> bool:
    """A survey with these parameters, not open yet; whether it is new."""
    params = parameters_for(survey, published)
    async with s1.server.database.write() as tx:
        if await same_survey(tx, params, caller):
            return False
        found = await tx.one("SELECT owner FROM offers WHERE id = ? AND used_by IS NULL", params.keys.s1)
        if found is None or bytes(found["owner"]) != caller.id:
            raise ProblemError(409, "no-offer", "these parameters name keys that this server has not offered to you")
        await states.insert(tx, new_row(s1.server, caller, params))
    return True


async def add_people(s1: CoordinatorService, caller: Caller, survey: bytes, part: int, lines: Sequence[bytes]) -> int:
    """A part of the list of invited people, each by its access value; how many are known now."""
    data = b"".join(lines)
    if len(set(lines)) != len(lines):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    async with s1.server.database.write() as tx:
        row = await own_survey(tx, survey, caller)
        key = s1.server.keys.create(survey_key(survey, 0)) if row.sealed is None else None
        sealed = None if key is None else key.seal(_part_place(survey, part), data)
        if not await new_part(tx, survey, part, data, sealed):
            return row.people
        if row.sealed is not None:
            raise conflict("this survey is open: its list of people cannot be changed any more")
        people = row.people + len(lines)
        await states.update(tx, survey, people=people, version=row.version + 1)
    return people


async def open_survey(s1: CoordinatorService, caller: Caller, survey: bytes, people: int | None = None) -> None:
    """Let users in. `people` is how many the owner has told S1 of: if S1 knows another number, nothing happens."""
    async with s1.server.database.write() as tx:
        row = await own_survey(tx, survey, caller)
        if row.sealed is not None:
            return
        if people not in (None, row.people):
            raise conflict(f"S1 knows {row.people} of {people} people: send the missing parts of the list first")
        if row.people < parsed(row.params).minimum:
            raise conflict(f"S1 knows {row.people} people, and {parsed(row.params).minimum} are needed: invite more")
        await _begin(tx, s1, caller, row)
    await asyncio.to_thread(s1.server.keys.destroy, offer_key(parsed(row.params).keys.s1))
    s1.changed.set()


async def _begin(tx: Transaction, s1: CoordinatorService, caller: Caller, row: SurveyRow) -> None:
    """The first state, and everybody on the list; the list itself and the offer are needed no more."""
    params = parsed(row.params)
    mine = await offers.take(tx, s1.server.keys, caller, params, params.keys.s1)
    order_key = SystemEntropy().bytes(32) if params.topology.numbers_users else b""
    noise = SystemEntropy().bytes(32) if params.proven else b""
    begun = Coordinator.begin(params, mine.key, committed=mine.value, order_key=order_key, noise_secret=noise)
    await s1.server.use_value(params, Party.S1)
    await s1.states.begin(tx, row, begun)
    await _admit(tx, s1, row)
    now = s1.server.clock()
    await states.update(tx, row.id, opened_at=now, since=now, due_at=due_at(begun, now))


async def _admit(tx: Transaction, s1: CoordinatorService, row: SurveyRow) -> None:
    """Everybody on the list, in a row of the state each; a part of the list after the other, which is emptied."""
    key = s1.server.keys.get(survey_key(row.id, 0))
    while (part := await tx.one(_PART, row.id)) is not None:
        listed = key.open(_part_place(row.id, part["part"]), part["sealed"])
        people = (listed[at : at + ACCESS] for at in range(0, len(listed), ACCESS))
        await s1.states.add(tx, row, (Row("invited", user_id(each), each) for each in people))
        await tx.run("UPDATE parts SET sealed = NULL WHERE survey = ? AND part = ?", row.id, part["part"])


_PART = "SELECT part, sealed FROM parts WHERE survey = ? AND sealed IS NOT NULL ORDER BY part LIMIT 1"


def _part_place(survey: bytes, part: int) -> bytes:
    return b"part" + survey + part.to_bytes(4, "big")

"""What S1 and S2 have in common: database, keys, anchor and clock; parameters; rejections; surveys of one owner."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from faircount.core.errors import ProtocolError
from faircount.protocol import SurveyParameters
from faircount.protocol.roles.anchor import Anchor, use_value
from faircount.protocol.survey.parameters import NO_COMMITMENT
from faircount.protocol.survey.server_secrets import commitment_of
from faircount.protocol.survey.states import FINAL
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason
from faircount.service.clock import Clock, now
from faircount.service.problems import ProblemError, conflict, unknown
from faircount.service.tokens import Caller, Doorkeeper
from faircount.storage import states
from faircount.storage.database import Database, Transaction
from faircount.storage.keys import KeyFolder, offer_key, survey_key
from faircount.storage.states import SurveyRow

DRAFT = "draft"
"""The state of a survey that has parameters, and no head yet."""


MOST_KNOWN = 64
"""Surveys whose parameters are kept in memory."""


@dataclass(frozen=True)
class Server:
    """One server's surroundings."""

    database: Database
    keys: KeyFolder
    anchor: Anchor
    clock: Clock = now
    operator: str = ""
    rejections: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    known: dict[bytes, SurveyParameters] = field(default_factory=dict)
    on_rejection: Callable[[str], None] = field(default=lambda reason: None)

    @property
    def door(self) -> Doorkeeper:
        """Who may call."""
        return Doorkeeper(self.database, self.clock)

    async def params(self, survey: bytes) -> SurveyParameters:
        """The parameters of a survey: they never change, so each is read once."""
        if survey in self.known:
            return self.known[survey]
        async with self.database.read() as tx:
            found = await tx.one("SELECT params FROM surveys WHERE id = ?", survey)
        if found is None:
            raise unknown("survey")
        while len(self.known) >= MOST_KNOWN:
            self.known.pop(next(iter(self.known)))
        return self.known.setdefault(survey, parsed(bytes(found["params"])))

    async def use_value(self, params: SurveyParameters, role: Party) -> None:
        """Note outside every backup that this server's committed value serves this survey, and no other."""
        if commitment_of(params, role) == NO_COMMITMENT:
            return
        try:
            await asyncio.to_thread(use_value, self.anchor, params, role)
        except ProtocolError as problem:
            raise conflict(str(problem)) from None

    def note_rejection(self, survey: bytes, why: Reason) -> None:
        """Count a message that was not used; `flush_rejections` writes the counts."""
        self.rejections[survey, why.name.lower()] += 1
        self.on_rejection(why.name.lower())

    async def flush_rejections(self) -> None:
        """Add what was counted to what is stored."""
        counted = dict(self.rejections)
        if not counted:
            return
        async with self.database.write() as tx:
            await tx.run_many(_ADD_REJECTIONS, [(*key, count) for key, count in counted.items()])
        self.rejections.subtract(counted)
        for key in [key for key, count in self.rejections.items() if not count]:
            del self.rejections[key]

    async def rejected(self, tx: Transaction, survey: bytes) -> dict[str, int]:
        """How many messages were not used, by reason."""
        found = await tx.all("SELECT reason, count FROM rejections WHERE survey = ?", survey)
        counts = Counter({each["reason"]: int(each["count"]) for each in found})
        counts.update({reason: count for (of, reason), count in self.rejections.items() if of == survey})
        return dict(sorted(counts.items()))

    async def destroy_used_keys(self) -> None:
        """After a crash: destroy keys whose survey is over, and those of offers that have become surveys."""
        async with self.database.read() as tx:
            over = await tx.all("SELECT id FROM surveys WHERE generation = 1")
            used = await tx.all("SELECT id FROM offers WHERE used_by IS NOT NULL")
        there = set(self.keys.names())
        names = [survey_key(each["id"], 0) for each in over] + [offer_key(each["id"]) for each in used]
        for name in there.intersection(names):
            await asyncio.to_thread(self.keys.destroy, name)


_ADD_REJECTIONS = (
    "INSERT INTO rejections (survey, reason, count) VALUES (?, ?, ?) "
    "ON CONFLICT (survey, reason) DO UPDATE SET count = rejections.count + excluded.count"
)


@lru_cache(maxsize=64)
def parsed(published: bytes) -> SurveyParameters:
    """Cached: parsing computes every derived number again."""
    return SurveyParameters.parse(published)


def parameters_for(survey: bytes, published: bytes) -> SurveyParameters:
    """Parameters that an owner brings, which must be those of the survey in the path."""
    params = parsed(published)
    if params.survey != survey:
        raise ProblemError(400, "malformed", "these are the parameters of another survey than the path says")
    return params


def new_row(server: Server, caller: Caller, params: SurveyParameters) -> SurveyRow:
    """The line of a survey that an owner has just brought."""
    return SurveyRow(
        id=params.survey, params=params.published, owner=caller.id, sealed=None, generation=0, version=0,
        head_version=0, state=DRAFT, attempt=0, users=0, people=0, opened_at=None, due_at=None, since=server.clock(),
        extended=0,
    )  # fmt: skip


async def own_survey(tx: Transaction, survey: bytes, caller: Caller) -> SurveyRow:
    """A survey of this owner, to be changed; that of somebody else is as unknown as one that is not there."""
    row = await states.find(tx, survey, change=True)
    if row is None or row.owner != caller.id:
        raise unknown("survey")
    return row


async def delete_survey(server: Server, caller: Caller, survey: bytes) -> None:
    """Remove all that a server keeps of a survey which is over or was never opened; its keys first become useless.

    What it has spent stays in the ledger, and its offer stays used: it cannot begin again.
    """
    server.known.pop(survey, None)
    async with server.database.write() as tx:
        row = await own_survey(tx, survey, caller)
        if row.state not in FINAL and row.state != DRAFT:
            raise conflict(f"this survey is {row.state}: end it before you delete it")
        for table in ("state_rows", "parts", "rejections", "outbox", "incoming", "begun"):
            await tx.run(f"DELETE FROM {table} WHERE survey = ?", survey)  # noqa: S608 - names of our own tables
        await tx.run("DELETE FROM surveys WHERE id = ?", survey)
    for generation in (0, 1):
        await asyncio.to_thread(server.keys.destroy, survey_key(survey, generation))


async def same_survey(tx: Transaction, params: SurveyParameters, caller: Caller) -> bool:
    """Whether the owner has brought these parameters before; refused if something else stands under this id."""
    row = await states.find(tx, params.survey, change=True)
    if row is None:
        return False
    if row.owner != caller.id or row.params != params.published:
        raise conflict("there is another survey of this id")
    return True


async def new_part(tx: Transaction, survey: bytes, part: int, data: bytes, sealed: bytes | None) -> bool:
    """Note a part of the list of people; whether it is new. The same again is fine, other bytes are refused."""
    digest = sha256(data).digest()
    found = await tx.one("SELECT hash FROM parts WHERE survey = ? AND part = ?", survey, part)
    if found is not None:
        if bytes(found["hash"]) != digest:
            raise conflict("this part was given before with other bytes; the first stands")
        return False
    await tx.run("INSERT INTO parts (survey, part, hash, sealed) VALUES (?, ?, ?, ?)", survey, part, digest, sealed)
    return True

"""Shared by the coordinator and the aggregator: their resources, and the surveys of an owner.

A `Server` bundles what a running server works with: database, key folder, anchor and clock. The
functions below create, find and delete surveys; each runs inside a transaction of the caller, so
that a survey and the rows that belong to it are written together.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from faircount.core.errors import ProtocolError
from faircount.protocol import SurveyParameters
from faircount.protocol.roles.anchor import Anchor, record_value_use
from faircount.protocol.survey.operators import Operator, format_fingerprint
from faircount.protocol.survey.parameters import NO_COMMITMENT
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.survey.server_secrets import commitment_of
from faircount.protocol.survey.topology import load_all_roles
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason
from faircount.server.common.clock import Clock, now
from faircount.server.common.problems import ProblemError, conflict, not_found
from faircount.server.common.tokens import Authenticator, Caller, is_owner
from faircount.storage import states
from faircount.storage.database import Database, Transaction
from faircount.storage.keys import KeyFolder, state_key_name, wrapping_key_name
from faircount.storage.states import SurveyRow

SPARE_INVITATIONS = 100
"""Exchanged invitations for which a survey of any size has room."""

TABLES_OF_SURVEY = (
    "state_rows",
    "worker_counts",
    "parts",
    "rejections",
    "outbox",
    "started_steps",
)
"""Tables with rows of a survey, apart from its own row."""

DRAFT = "draft"
"""The phase of a survey that has parameters but no protocol state yet."""

MAX_CACHED_PARAMETERS = 64
"""How many surveys' parameters are kept in memory."""


@dataclass(frozen=True)
class Server:
    """The resources of one running server, its operator, and what it counts."""

    database: Database
    keys: KeyFolder
    anchor: Anchor
    operator: Operator
    clock: Clock = now
    rejections: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    parameter_cache: dict[bytes, SurveyParameters] = field(default_factory=dict)
    on_rejection: Callable[[str], None] = field(default=lambda reason: None)

    def __post_init__(self) -> None:
        # Now, and not with the first survey: a package that is upgraded while the server runs must
        # not mix modules of two versions in it.
        load_all_roles()

    @property
    def authenticator(self) -> Authenticator:
        """Identifies the callers of this server by their tokens."""
        return Authenticator(self.database, self.clock, self.anchor)

    async def params(self, survey: bytes) -> SurveyParameters:
        """Return the parameters of a survey. They never change, so they are cached."""
        if survey in self.parameter_cache:
            return self.parameter_cache[survey]
        async with self.database.read() as tx:
            row = await tx.fetch_one("SELECT params FROM surveys WHERE id = ?", survey)
        if row is None:
            raise not_found("survey")
        # The oldest entry goes first: dictionaries keep the order of insertion.
        while len(self.parameter_cache) >= MAX_CACHED_PARAMETERS:
            self.parameter_cache.pop(next(iter(self.parameter_cache)))
        return self.parameter_cache.setdefault(survey, parse_parameters(bytes(row["params"])))

    async def stored_params(self, survey: bytes) -> SurveyParameters:
        """Return the parameters of a survey that is stored now.

        Another worker may have erased it since this one has cached its parameters, and an owner may
        have made another survey with the same id.
        """
        async with self.database.read() as tx:
            row = await tx.fetch_one("SELECT params FROM surveys WHERE id = ?", survey)
        known = self.parameter_cache.get(survey)
        if known is not None and (row is None or bytes(row["params"]) != known.published):
            self.parameter_cache.pop(survey, None)
        return await self.params(survey)

    async def use_value(self, params: SurveyParameters, role: Party) -> None:
        """Record in the anchor that this server's committed value serves this survey only.

        The anchor is outside every backup: a restored server cannot reveal the same value for a
        second survey.
        """
        if commitment_of(params, role) == NO_COMMITMENT:
            return
        # In a thread: the anchor waits for a file lock and for the disk.
        try:
            await asyncio.to_thread(record_value_use, self.anchor, params, role)
        except ProtocolError as problem:
            raise conflict(str(problem)) from None

    def note_rejection(self, survey: bytes, why: Reason) -> None:
        """Count a rejected message in memory; `flush_rejections` stores the counts."""
        self.rejections[survey, why.name.lower()] += 1
        self.on_rejection(why.name.lower())

    async def flush_rejections(self) -> None:
        """Add the counts in memory to those in the database."""
        counted = dict(self.rejections)
        if not counted:
            return
        async with self.database.write() as tx:
            present = set[bytes]()
            # In one order at all workers: otherwise two of them could wait for each other.
            for survey in sorted({survey for survey, _ in counted}):
                # Locked: an erased survey must not get its counts back from another worker. Shared:
                # workers that take reports of it need not wait.
                await tx.share(survey, survey + b"rejections")
                # check: erased-counts - erasing a survey would leave what arrives at that moment
                if await states.find(tx, survey) is not None:
                    present.add(survey)
            rows = [(*key, count) for key, count in sorted(counted.items()) if key[0] in present]
            await tx.execute_many(_ADD_REJECTIONS, rows)
        # Subtracted only after the commit, and not cleared: others may have counted meanwhile.
        # What was counted for a survey that is erased by now is forgotten with it.
        self.rejections.subtract(counted)
        for key in counted:
            if not self.rejections[key]:
                del self.rejections[key]

    async def count_rejections(self, tx: Transaction, survey: bytes) -> dict[str, int]:
        """Return how many messages of a survey were rejected, by reason."""
        rows = await tx.fetch_all("SELECT reason, count FROM rejections WHERE survey = ?", survey)
        counts = Counter({row["reason"]: int(row["count"]) for row in rows})
        for (rejected_in, reason), count in self.rejections.items():
            if rejected_in == survey:
                counts[reason] += count
        return dict(sorted(counts.items()))

    async def destroy_used_keys(self) -> None:
        """At the start: destroy keys that a crash has left behind after their last use.

        These are the keys of surveys that are over, and the wrapping keys of survey keys that
        belong to a survey by now.
        """
        async with self.database.read() as tx:
            finished = await tx.fetch_all("SELECT id FROM surveys WHERE generation = 1")
            used = await tx.fetch_all("SELECT id FROM survey_keys WHERE used_by IS NOT NULL")
        names = {state_key_name(row["id"], 0) for row in finished}
        names.update(wrapping_key_name(row["id"]) for row in used)
        for name in names.intersection(self.keys.names()):
            await asyncio.to_thread(self.keys.destroy, name)


_ADD_REJECTIONS = (
    "INSERT INTO rejections (survey, reason, count) VALUES (?, ?, ?) "
    "ON CONFLICT (survey, reason) DO UPDATE SET count = rejections.count + excluded.count"
)


@lru_cache(maxsize=64)
def parse_parameters(published: bytes) -> SurveyParameters:
    """Parse published parameters. Cached, because parsing recomputes every derived number."""
    return SurveyParameters.parse(published)


def parameters_for(survey: bytes, published: bytes) -> SurveyParameters:
    """Parse parameters from an owner, which must be those of the survey in the path."""
    params = parse_parameters(published)
    if params.survey != survey:
        raise ProblemError(
            400, "malformed", "these parameters belong to another survey than the one in the path"
        )
    return params


def describe_operator(operator: Operator) -> dict[str, str]:
    """Return who runs a server, with the key that its organization should publish."""
    key = operator.key.public
    fingerprint = format_fingerprint(key)
    return {"operator": operator.name, "operator_key": key.hex(), "fingerprint": fingerprint}


def sign_as_operator(server: Server, params: SurveyParameters, role: Party) -> bytes:
    """Sign parameters with the operator's key; refused if they name somebody else."""
    # check: operator-own - an owner shows participants an organization that runs no server
    if not server.operator.runs(params, role):
        name = server.operator.name or "an operator without a name"
        raise conflict(
            f"this server is run by {name}, and these parameters name another operator or "
            "another key: make the survey again"
        ).with_code("other_operator")
    return server.operator.sign(params, role)


def draft_row(
    server: Server, caller: Caller, params: SurveyParameters, signature: bytes
) -> SurveyRow:
    """Build the row of a survey that its owner has just created.

    signature: of the parameters, by this server's operator
    """
    return SurveyRow(
        id=params.survey,
        params=params.published,
        owner=caller.id,
        operators=signature,
        main_nonce=None,
        generation=0,
        version=0,
        main_version=0,
        phase=DRAFT,
        attempt=0,
        participants=0,
        withdrawn=0,
        invited=0,
        opened_at=None,
        due_at=None,
        held_since=None,
        since=server.clock(),
        extended=0,
    )


async def find_owned_survey(tx: Transaction, survey: bytes, caller: Caller) -> SurveyRow:
    """Return a survey of this owner and lock its row.

    For other owners the survey does not exist, so that nobody can probe for ids.
    """
    row = await find_survey(tx, survey)
    if row.owner != caller.id:
        raise not_found("survey")
    return row


async def find_survey(tx: Transaction, survey: bytes) -> SurveyRow:
    """Return a survey of any owner and lock its row."""
    row = await states.find(tx, survey, for_update=True)
    if row is None:
        raise not_found("survey")
    return row


async def delete_survey(server: Server, caller: Caller | None, survey: bytes) -> None:
    """Delete everything about a survey that is over or was never opened.

    What it has spent stays in the ledger, and its survey keys stay used: it cannot start again.
    The coordinator keeps the aggregator's reservations, the aggregator which key it signed with.

    caller: the owner; None for the operator, who may delete any survey
    """
    # Also if the transaction fails: then the parameters are simply read again.
    server.parameter_cache.pop(survey, None)
    async with server.database.write() as tx:
        if caller is None:
            row = await find_survey(tx, survey)
        else:
            row = await find_owned_survey(tx, survey, caller)
        # The other server would wait for this one in a survey that is still running.
        # check: erased-when-over - an operator erases the reports of a survey that people answer
        if row.phase not in FINAL and row.phase != DRAFT:
            detail = f"this survey is {row.phase}: end it before you delete it"
            raise conflict(detail).with_code("survey_running")
        for table in TABLES_OF_SURVEY:
            statement = f"DELETE FROM {table} WHERE survey = ?"  # noqa: S608 - our own tables
            await tx.execute(statement, survey)
        await tx.execute("DELETE FROM surveys WHERE id = ?", survey)
    # After the commit: a failed deletion must not leave rows that nobody can read.
    await _destroy_state_keys(server, survey)


async def _destroy_state_keys(server: Server, survey: bytes) -> None:
    """Destroy the keys of an erased survey, unless its owner has made it again meanwhile."""
    async with server.database.write() as tx:
        # Whoever creates a survey takes the same lock, so none begins to use these keys now.
        await tx.lock(survey)
        # check: keys-used-again - the list of a survey that was made again could not be read
        if await states.find(tx, survey) is not None:
            return
        for generation in (0, 1):
            await asyncio.to_thread(server.keys.destroy, state_key_name(survey, generation))


async def hand_over_survey(server: Server, caller: Caller | None, survey: bytes, to: str) -> None:
    """Give a survey to another owner; its population stays with the owner who opened it.

    caller: the owner who gives it away; None for the operator
    to: the id of the holder of another owner's token
    """
    try:
        receiver = bytes.fromhex(to)
    except ValueError:
        raise ProblemError(400, "malformed", "the id of an owner is hexadecimal") from None
    async with server.database.write() as tx:
        if caller is None:
            row = await find_survey(tx, survey)
        else:
            row = await find_owned_survey(tx, survey, caller)
        # check: hand-over-owner - a survey goes to nobody, or to an operator
        if not await is_owner(tx, receiver):
            raise conflict("no owner here has this id: ask the operator for it")
        await states.update(tx, survey, owner=receiver, version=row.version + 1)
        # The coordinator uses the survey keys only when the survey is opened, by its new owner.
        await tx.execute(
            "UPDATE survey_keys SET owner = ? WHERE id = ? AND used_by IS NULL",
            receiver,
            parse_parameters(row.params).keys.coordinator,
        )


async def is_known_survey(tx: Transaction, params: SurveyParameters, caller: Caller) -> bool:
    """Whether the owner has created this survey before, with the same parameters.

    Other parameters, or another owner, under the same id are a conflict. If it is not known, nobody
    else creates it before this transaction ends.
    """
    # There is no row yet that could be locked, and a repeated call may be at another worker.
    await tx.lock(params.survey)
    row = await states.find(tx, params.survey, for_update=True)
    if row is None:
        return False
    if row.owner != caller.id or row.params != params.published:
        raise conflict("there is another survey with this id").with_code("other_survey")
    return True


def check_people(people: int, most: int) -> None:
    """Refuse a list with more people than the survey was made for."""
    # check: people-invited - an owner stores any number of people for a survey of a few
    if people > most:
        detail = f"this survey has room for {most} invitations, and these would be {people}"
        raise conflict(detail).with_code("too_many_people", people=people, most=most)


def max_listed(n_max: int) -> int:
    """Return how many entries the list of a survey may have: a reissued invitation is a new one.

    Everybody may lose an invitation once.
    """
    return 2 * n_max + SPARE_INVITATIONS


async def record_part(
    tx: Transaction, survey: bytes, part: int, data: bytes, encrypted: bytes | None
) -> bool:
    """Record a part of the list of people and return whether it is new.

    The same part may be sent again, with the same bytes: a request may be repeated after a timeout.
    """
    # The list itself is erased once it was used; its hash still detects other bytes.
    digest = sha256(data).digest()
    row = await tx.fetch_one("SELECT hash FROM parts WHERE survey = ? AND part = ?", survey, part)
    if row is not None:
        # check: list-part-hash - the people of a part would differ between the two servers
        if bytes(row["hash"]) != digest:
            raise conflict("this part was sent before with other bytes; the first version is kept")
        return False
    await tx.execute(
        "INSERT INTO parts (survey, part, hash, encrypted) VALUES (?, ?, ?, ?)",
        survey,
        part,
        digest,
        encrypted,
    )
    return True

"""The tables of both servers.

The coordinator and the aggregator have a database each, with the same tables; `meta` says whose it
is. Columns called `encrypted` contain AES-256-GCM ciphertexts under keys that are never in the
database (`keys`). `docs/reference/data-model.md` follows a report through the tables.
"""

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, PrimaryKeyConstraint, Table, Text

TABLES = MetaData()


def _bytes(name: str, *, null: bool = False) -> "Column[bytes]":
    return Column(name, LargeBinary, nullable=null)


def _number(name: str, *, null: bool = False) -> "Column[int]":
    return Column(name, BigInteger, nullable=null)


def _text(name: str) -> "Column[str]":
    return Column(name, Text, nullable=False)


Table("meta", TABLES, _text("name"), _text("value"), PrimaryKeyConstraint("name"))

Table(
    "surveys",
    TABLES,
    _bytes("id"),
    _bytes("params"),
    # The holder of the owner's token.
    _bytes("owner"),
    # This server's signature of the parameters with its operator's key. The coordinator adds that
    # of the aggregator, which its owner hands over.
    _bytes("operators"),
    # The nonce of the encrypted main row in `state_rows`: whoever has it in memory need not read
    # it again. The coordinator has none before the owner opens the survey.
    _bytes("main_nonce", null=True),
    # Which key the rows are encrypted under: 0 while the survey runs, 1 after its final statement.
    _number("generation"),
    # Counts changes of anything but reports that are taken under the shared lock, and changes of
    # only the main row.
    _number("version"),
    _number("main_version"),
    _text("phase"),
    _number("attempt"),
    # Participants who have sent their first message (with those in `worker_counts`), those of them
    # who have withdrawn, and people the owner has invited.
    _number("participants"),
    _number("withdrawn"),
    _number("invited"),
    _number("opened_at", null=True),
    _number("due_at", null=True),
    # Since when the current phase is held open, because too few had taken part at its deadline.
    _number("held_since", null=True),
    _number("since"),
    _number("extended"),
    PrimaryKeyConstraint("id"),
)

Table(
    "state_rows",
    TABLES,
    _bytes("survey"),
    _text("store"),
    _bytes("key"),
    _bytes("hash"),
    # What stays when the message is deleted, encrypted under the survey's second key.
    _bytes("kept", null=True),
    _bytes("encrypted", null=True),
    PrimaryKeyConstraint("survey", "store", "key"),
)

# Coordinator: participants whom a worker has let in under the shared lock. Those of the
# survey are these and `surveys.participants`.
Table(
    "worker_counts",
    TABLES,
    _bytes("survey"),
    _bytes("worker"),
    _number("participants"),
    PrimaryKeyConstraint("survey", "worker"),
)

# The owner's list of people arrives in parts. The coordinator keeps them until it opens the survey.
Table(
    "parts",
    TABLES,
    _bytes("survey"),
    _number("part"),
    _bytes("hash"),
    _bytes("encrypted", null=True),
    PrimaryKeyConstraint("survey", "part"),
)

# Keys made for a survey whose parameters do not exist yet.
Table(
    "survey_keys",
    TABLES,
    _bytes("id"),
    _bytes("owner"),
    _bytes("encrypted", null=True),
    _bytes("used_by", null=True),
    PrimaryKeyConstraint("id"),
)

Table(
    "tokens",
    TABLES,
    _bytes("hash"),
    # Whose token it is: the owner of surveys and budgets, also after the token was replaced.
    _bytes("holder"),
    _text("scope"),
    _text("name"),
    _number("created_at"),
    _number("expires_at", null=True),
    _number("revoked_at", null=True),
    PrimaryKeyConstraint("hash"),
)

Table(
    "rejections",
    TABLES,
    _bytes("survey"),
    _text("reason"),
    _number("count"),
    PrimaryKeyConstraint("survey", "reason"),
)

# Coordinator: surveys with messages for the aggregator.
Table(
    "outbox",
    TABLES,
    _bytes("survey"),
    _number("since"),
    _number("next_at"),
    _number("tries"),
    _number("lease_until"),
    _bytes("lease"),
    _text("problem"),
    PrimaryKeyConstraint("survey"),
)

# Coordinator: the aggregator's signed reservations, which it needs after a restore. The survey is
# part of the key: an aggregator that was rolled back may give the same number out again.
Table(
    "reservations",
    TABLES,
    _text("population"),
    _number("number"),
    _bytes("survey"),
    # Who had the survey then: the reservation stays when the survey is deleted.
    _bytes("owner"),
    _bytes("signed"),
    PrimaryKeyConstraint("population", "number", "survey"),
)

# Aggregator: privacy budgets.
Table(
    "populations",
    TABLES,
    _text("name"),
    _bytes("owner"),
    _bytes("ledger"),
    PrimaryKeyConstraint("name"),
)

# Aggregator: the message whose step is about to be anchored, repeated after a crash.
Table(
    "started_steps",
    TABLES,
    _text("population"),
    _bytes("survey"),
    _bytes("encrypted"),
    PrimaryKeyConstraint("population"),
)

# Aggregator: nonces of the coordinator's requests, so that none of them is carried out twice.
Table("nonces", TABLES, _bytes("nonce"), _number("expires_at"), PrimaryKeyConstraint("nonce"))

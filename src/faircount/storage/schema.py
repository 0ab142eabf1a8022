"""The tables of both servers. S1 and S2 have a database each, with the same tables; `meta` says whose it is.

Columns called `sealed` are AES-256-GCM under a key of the folder of keys (`keys`), never in the database.
`docs/data-model.md` tells a report's journey through them.
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
    "surveys", TABLES,
    _bytes("id"), _bytes("params"), _bytes("owner"),  # the hash of the token that made it
    _bytes("sealed", null=True),  # nonce of the state's head in `state_rows`; none before S1's owner opens the survey
    _number("generation"),  # which key its rows are sealed under: 1 once the last word is said
    _number("version"), _number("head_version"),  # changes of anything, and of the head alone
    _text("state"), _number("attempt"), _number("users"),  # users who have sent their first message
    _number("people"),  # invitations that the owner has told this server of
    _number("opened_at", null=True), _number("due_at", null=True), _number("since"), _number("extended"),
    PrimaryKeyConstraint("id"),
)  # fmt: skip

Table(
    "state_rows", TABLES,
    _bytes("survey"), _text("store"), _bytes("key"), _bytes("hash"), _bytes("sealed", null=True),
    PrimaryKeyConstraint("survey", "store", "key"),
)  # fmt: skip

Table(
    "parts", TABLES,  # of the owner's list of people; S1 keeps them until it opens the survey
    _bytes("survey"), _number("part"), _bytes("hash"), _bytes("sealed", null=True),
    PrimaryKeyConstraint("survey", "part"),
)  # fmt: skip

Table(
    "offers", TABLES,  # keys made for a survey to come
    _bytes("id"), _bytes("owner"), _bytes("sealed", null=True), _bytes("used_by", null=True),
    PrimaryKeyConstraint("id"),
)  # fmt: skip

Table(
    "tokens", TABLES,
    _bytes("hash"), _text("scope"), _text("label"), _number("expires_at", null=True),
    PrimaryKeyConstraint("hash"),
)  # fmt: skip

Table(
    "rejections", TABLES,
    _bytes("survey"), _text("reason"), _number("count"),
    PrimaryKeyConstraint("survey", "reason"),
)  # fmt: skip

Table(
    "outbox", TABLES,  # S1: surveys with something to say to S2
    _bytes("survey"), _number("since"), _number("next_at"), _number("tries"), _number("lease_until"), _bytes("lease"),
    _text("problem"),
    PrimaryKeyConstraint("survey"),
)  # fmt: skip

Table(
    "receipts", TABLES,  # S1: what S2 has signed about budgets, for the day on which S2 is restored
    _text("population"), _number("number"), _bytes("survey"), _bytes("signed"),
    PrimaryKeyConstraint("population", "number", "survey"),
)  # fmt: skip

Table(
    "populations", TABLES,  # S2: budgets
    _text("name"), _bytes("owner"), _bytes("ledger"),
    PrimaryKeyConstraint("name"),
)  # fmt: skip

Table(
    "incoming", TABLES,  # S2: parts of long messages from S1
    _bytes("survey"), _bytes("message"), _number("part"), _bytes("sealed"),
    PrimaryKeyConstraint("survey", "message", "part"),
)  # fmt: skip

Table(
    "begun", TABLES,  # S2: the message whose step is about to be anchored
    _text("population"), _bytes("survey"), _bytes("sealed"),
    PrimaryKeyConstraint("population"),
)  # fmt: skip

Table("nonces", TABLES, _bytes("nonce"), _number("expires_at"), PrimaryKeyConstraint("nonce"))

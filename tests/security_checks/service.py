"""Checks of the service: what callers, the other server and owners can make a server do."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes, replacing

CALLS = "tests/unit/transport/test_bounded_calls.py"
SLOW = "tests/unit/server/test_slow_callers.py"
ADDRESSES = "tests/unit/server/test_addresses.py"
HELD = "tests/unit/server/test_held_open.py"
CLOSING = "tests/unit/server/test_closing_time.py"
STORAGE = "tests/unit/server/test_strangers_storage.py"
STRANGE = "tests/unit/server/test_strange_answers.py"
FILES = "tests/unit/server/test_private_files.py"
LOST = "tests/unit/server/test_lost_anchor.py"
TOKENS = "tests/unit/server/test_tokens.py"
RACES = "tests/unit/server/test_racing_workers.py"
SHARING = "tests/unit/server/test_sharing_workers.py"
APART = "tests/unit/server/test_owners_apart.py"
OPERATORS = "tests/unit/server/test_operators.py"
BUNDLE = "tests/unit/server/test_page_files.py"
SIGNED_BY = "tests/unit/protocol/survey/test_operators.py"
# The query that returns an owner's reservations, and the same without its condition.
OWNED = "SELECT signed FROM reservations WHERE population = ? AND owner = ? ORDER BY number"
OF_ANYBODY = OWNED.replace("owner = ?", "(owner = ? OR 1 = 1)")

MUTANTS = (
    Mutant("compressed-answer", NEVER, CALLS + " -k compressed"),
    Mutant("answer-size", NEVER, CALLS + " -k without_an_end"),
    Mutant("answer-time", replacing("asyncio.timeout(seconds)", "asyncio.timeout(None)"), CALLS),
    Mutant("call-time", becomes("None"), CALLS + " -k byte_by_byte"),
    Mutant("deadlines-apart", REMOVED, CLOSING),
    Mutant("closing-time", NEVER, CLOSING),
    Mutant("held-once", replacing("row.held_since is None", "True"), HELD + " -k after_the_grace"),
    Mutant("slow-headers", NEVER, SLOW + " -k nothing"),
    Mutant("slow-body", replacing("ends_at", "None"), SLOW + " -k 408"),
    Mutant(
        "stream-time",
        becomes("last.get('state') not in FINAL"),
        SLOW + " -k stream",
    ),
    Mutant("connections-in-total", NEVER, SLOW + " -k descriptors_for"),
    Mutant("connections-per-address", NEVER, SLOW + " -k keep_the_others"),
    Mutant("log-lines", NEVER, "tests/unit/server/test_logs.py"),
    Mutant("every-proxy", NEVER, ADDRESSES + " -k everybody"),
    Mutant("right-most-hop", NEVER, ADDRESSES),
    Mutant("redirect-host", REMOVED, ADDRESSES + " -k names_the_host"),
    Mutant("aggregator-clock", NEVER, STRANGE + " -k strange_time"),
    Mutant("public-problem", becomes("isinstance(problem, FaircountError)"), STRANGE),
    Mutant("people-invited", NEVER, STORAGE),
    Mutant("population-name", NEVER, STORAGE + " -k terminal"),
    Mutant("exchanged-invitations", REMOVED, STORAGE + " -k without_end"),
    Mutant("stored-parts", NEVER, STORAGE),
    Mutant("message-size", becomes("MAX_MESSAGE"), STORAGE),
    Mutant("unused-keys", becomes("[]"), STORAGE),
    Mutant("private-file", REMOVED, FILES),
    Mutant(
        "running-server",
        replacing(
            "lock_file(settings.lock_path, shared=settings.has_workers)",
            "contextmanager(iter)([None])",
        ),
        FILES,
    ),
    Mutant("unsigned-ending", REMOVED, STRANGE + " -k unsigned_ending"),
    Mutant("plain-http", NEVER, "tests/unit/server/test_settings.py -k another_machine"),
    Mutant("budget-owner", REMOVED, APART),
    Mutant("population-owner", REMOVED, APART),
    Mutant("budget-raised", REMOVED, APART),
    Mutant("own-survey-keys", REMOVED, APART),
    Mutant("used-keys-own", REMOVED, APART),
    Mutant("reservations-owner", replacing(repr(OWNED), repr(OF_ANYBODY)), APART),
    Mutant("encryption-key-own", NEVER, APART),
    Mutant("list-part-hash", NEVER, APART),
    Mutant("open-minimum", NEVER, APART),
    Mutant("list-fixed-when-open", NEVER, APART),
    Mutant("list-fixed-by-statement", NEVER, APART),
    Mutant("coordinator-anchor", becomes("step"), APART),
    Mutant("step-unchanged", NEVER, APART),
    Mutant("restored-population-closed", becomes("ledger"), APART),
    Mutant("shown-population", REMOVED, APART),
    Mutant("anchor-identity", NEVER, LOST + " -k does_not_start"),
    Mutant("anchored-newest", NEVER, LOST + " -k withheld"),
    Mutant("stated-newest", NEVER, LOST + " -k states_the_newest"),
    Mutant("reservation-signed", REMOVED, LOST + " -k anybodys"),
    Mutant("reservation-owner", REMOVED, LOST + " -k another_owner"),
    Mutant("forgotten-budget", NEVER, LOST + " -k larger_budget"),
    Mutant("forgotten-population", becomes("False"), LOST + " -k opened_closed"),
    Mutant("lost-anchor-ends", NEVER, LOST + " -k ends_what_was_running"),
    Mutant("lost-anchor-keys", REMOVED, LOST + " -k ends_what_was_running"),
    Mutant("revoked-token", NEVER, TOKENS + " -k lost_anchor"),
    Mutant("revoked-in-anchor", REMOVED, TOKENS + " -k restored_backup"),
    Mutant("hand-over-owner", NEVER, TOKENS + " -k handed"),
    Mutant("operator-only", REMOVED, TOKENS + " -k no_operator"),
    Mutant("erased-when-over", NEVER, TOKENS + " -k erases"),
    Mutant("tokens-one-by-one", REMOVED, RACES + " -k at_most_one"),
    Mutant("revoked-meanwhile", NEVER, RACES + " -k body_arrives"),
    Mutant("erased-everywhere", NEVER, RACES + " -k stays_erased"),
    Mutant("erased-counts", becomes("True"), RACES + " -k stays_erased"),
    Mutant("survey-lock", REMOVED, SHARING + " -k closes"),
    Mutant("alone-lock", REMOVED, SHARING + " -k withdrawal"),
    Mutant("shared-lock", REMOVED, SHARING + " -k closes"),
    Mutant("shared-writes", NEVER, SHARING + " -k only_new"),
    Mutant("shared-reports", NEVER, SHARING + " -k of_two_reports"),
    Mutant("counted-worker", becomes("True"), SHARING + " -k forgotten"),
    Mutant("places-in-flight", becomes("row"), SHARING + " -k no_more_people"),
    Mutant("keys-used-again", NEVER, RACES + " -k loses_no_list"),
    Mutant("stop-spends", becomes("False"), TOKENS + " -k stays_spent"),
    Mutant("operator-own", NEVER, OPERATORS + " -k another_operator"),
    Mutant("operator-relayed", NEVER, OPERATORS + " -k takes_no_signature"),
    Mutant("open-signed", NEVER, OPERATORS + " -k not_opened"),
    Mutant("operator-signature", NEVER, SIGNED_BY),
    Mutant("operator-named", NEVER, SIGNED_BY + " -k without_a_key"),
    Mutant("bundle-integrity", becomes("{}"), BUNDLE + " -k has_its_hash"),
    Mutant("bundle-address", becomes("True"), BUNDLE + " -k no_address"),
    Mutant("one-operator-key", becomes("False"), SIGNED_BY + " -k one_operator"),
)

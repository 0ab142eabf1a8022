"""Checks of the service: what callers, the other server and owners can make a server do."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes, replacing

CALLS = "tests/unit/transport/test_bounded_calls.py"
SLOW = "tests/unit/server/test_slow_callers.py"
ADDRESSES = "tests/unit/server/test_addresses.py"
CLOSING = "tests/unit/server/test_closing_time.py"
STORAGE = "tests/unit/server/test_strangers_storage.py"
STRANGE = "tests/unit/server/test_strange_answers.py"
FILES = "tests/unit/server/test_private_files.py"

MUTANTS = (
    Mutant("compressed-answer", NEVER, CALLS + " -k compressed"),
    Mutant("answer-size", NEVER, CALLS + " -k without_an_end"),
    Mutant("answer-time", replacing("asyncio.timeout(seconds)", "asyncio.timeout(None)"), CALLS),
    Mutant("call-time", becomes("None"), CALLS + " -k byte_by_byte"),
    Mutant("deadlines-apart", REMOVED, CLOSING),
    Mutant("closing-time", NEVER, CLOSING),
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
    Mutant("stored-parts", NEVER, STORAGE),
    Mutant("message-size", becomes("MAX_MESSAGE"), STORAGE),
    Mutant("unused-keys", becomes("[]"), STORAGE),
    Mutant("private-file", REMOVED, FILES),
    Mutant(
        "running-server",
        replacing("lock_file(settings.lock_path, shared=True)", "contextmanager(iter)([None])"),
        FILES,
    ),
)

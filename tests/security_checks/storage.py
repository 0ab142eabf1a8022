"""Checks of what is stored: databases, ledgers, anchors and tokens that are not what they seem."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED

DATABASE = "tests/unit/storage/test_database.py"
KEYS = "tests/unit/storage/test_keys.py"
CREDENTIALS = "tests/unit/server/test_credentials.py"
RESTORE = "tests/unit/server/test_restore.py -k no_backup_of"

MUTANTS = (
    Mutant("key-overwritten", REMOVED, KEYS),
    Mutant("zeroed-key", NEVER, KEYS + " -k zeros"),
    Mutant("stored-anchor-compares", NEVER, f"{KEYS} -k anchor"),
    Mutant("damaged-anchor", NEVER, f"{KEYS} -k damaged"),
    Mutant("schema-version", NEVER, f"{DATABASE} -k 'unknown_schema and sqlite'"),
    Mutant("database-role", NEVER, f"{DATABASE} -k 'another_role and sqlite'"),
    Mutant("backup-role", REMOVED, RESTORE),
    Mutant("survey-keys-once", NEVER, f"{CREDENTIALS} -k used_once"),
    Mutant("token-expires", NEVER, f"{CREDENTIALS} -k right_token"),
    Mutant("token-scope", NEVER, f"{CREDENTIALS} -k right_token"),
)

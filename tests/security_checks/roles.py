"""Checks of the roles in every topology, and of the servers.

Anchors, reservations, withdrawal, acknowledgements, and what is decoded.
"""

from security_checks.mutant import Mutant
from security_checks.operations import ALWAYS, NEVER, REMOVED, becomes, preceded_by, replacing

DISHONEST_AGGREGATOR = "tests/unit/protocol/two_servers/test_dishonest_aggregator.py"
ANCHOR = "tests/unit/protocol/roles/test_anchor.py"
LIMITS = "tests/unit/protocol/roles/test_limits.py"
COSTS = "tests/unit/protocol/roles/test_decoding_costs.py"
CLIENT = "tests/unit/protocol/roles/test_client.py"
LEDGER = "tests/unit/protocol/survey/test_budget.py"
REQUESTS = "tests/unit/server/test_signed_requests.py"
EXPLICIT = "tests/unit/protocol/explicit/test_explicit.py"
ENDINGS = "tests/unit/protocol/survey/test_endings.py"
RESTORES = "tests/unit/protocol/explicit/test_restores.py"

MUTANTS = (
    Mutant("aggregator-is-behind", NEVER, DISHONEST_AGGREGATOR),
    Mutant("encryption-key-destroyed", REMOVED, DISHONEST_AGGREGATOR),
    Mutant("anchor-compares", NEVER, ANCHOR),
    Mutant("aggregate-share-anchored", ALWAYS, ANCHOR),
    Mutant("aggregator-step-anchored", ALWAYS, ANCHOR),
    Mutant("upload-length", NEVER, LIMITS),
    Mutant("inclusion-size", REMOVED, "tests/unit/protocol/two_servers/test_two_servers.py"),
    Mutant(
        "committed-value-once",
        NEVER,
        "tests/unit/protocol/two_servers/test_dishonest_with_proofs.py -k one_survey",
    ),
    Mutant("ledger-anchored", REMOVED, ANCHOR),
    Mutant("reservation-chain", REMOVED, LEDGER),
    Mutant(
        "chain-population", replacing("population.encode()", "b''"), LEDGER + " -k another_history"
    ),
    Mutant("reservation-amount", becomes("True"), LEDGER),
    Mutant("newest-reservation", REMOVED, LEDGER),
    Mutant("stale-ledger", NEVER, LEDGER),
    Mutant("closed-population", NEVER, LEDGER),
    Mutant("charged-before-restore", NEVER, "tests/unit/protocol/two_servers/test_restores.py"),
    Mutant("upload-after-withdrawal", NEVER, CLIENT),
    Mutant("report-after-withdrawal", NEVER, CLIENT),
    Mutant("late-withdrawal", NEVER, CLIENT),
    Mutant("withdrawn-report-deleted", REMOVED, CLIENT),
    Mutant("withdrawn-upload-ignored", NEVER, CLIENT),
    Mutant("withdrawal-before-sync", NEVER, CLIENT),
    Mutant("ending-controls", becomes("self.detail"), ENDINGS + " -k terminal"),
    Mutant("roster-device", NEVER, RESTORES + " -k whose_devices"),
    Mutant("answering-device", NEVER, CLIENT + " -k device_that_answered"),
    Mutant("device-signature", NEVER, CLIENT + " -k device_that_answered"),
    Mutant("user-credential", REMOVED, EXPLICIT + " -k credential"),
    Mutant("access-value", ALWAYS, CLIENT + " -k told_nothing"),
    Mutant(
        "exchanged-invitation",
        becomes("user in rows.invited"),
        "tests/unit/protocol/roles/test_sync.py -k exchanged",
    ),
    Mutant("used-invitation", NEVER, "tests/unit/server/test_survey_in_process.py -k exchanged"),
    Mutant("acknowledged-report", NEVER, CLIENT),
    Mutant("acknowledgement-signed", becomes("True"), CLIENT),
    Mutant("one-result", REMOVED, CLIENT),
    Mutant("statements-chained", REMOVED, DISHONEST_AGGREGATOR),
    Mutant("manifest-has-reservation", ALWAYS, DISHONEST_AGGREGATOR),
    Mutant("other-history", NEVER, DISHONEST_AGGREGATOR),
    Mutant("set-before-shares", NEVER, DISHONEST_AGGREGATOR),
    Mutant("for-participants", REMOVED, COSTS + " -k for_users"),
    Mutant("signed-only", ALWAYS, COSTS + " -k between_servers"),
    Mutant("signature-first", preceded_by("parse(signed.payload)"), COSTS + " -k between_servers"),
    Mutant("request-signature", NEVER, REQUESTS),
    Mutant("request-nonce", NEVER, REQUESTS),
    Mutant("reservation-population", REMOVED, REQUESTS),
)

"""Checks in `servers`, and of proven reports."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes, replaced

LYING = "tests/unit/protocol/two_servers/test_lying_s2.py"
PARTS = "tests/unit/protocol/two_servers/test_parts.py"
SURVEYS = "tests/unit/protocol/two_servers/test_proven_surveys.py"
PROVEN = "tests/unit/protocol/two_servers/test_proven_lies.py " + SURVEYS
VALIDITY = "tests/unit/protocol/two_servers/test_validity.py -k 'never_pass or more_points'"

MUTANTS = (
    Mutant("sum-minimum", NEVER, LYING),
    Mutant("set-root", NEVER, LYING),
    Mutant("second-set", NEVER, LYING),
    Mutant("second-manifest", NEVER, LYING),
    Mutant("result-of-set", NEVER, LYING),
    Mutant("set-before-receipt", REMOVED, LYING),
    Mutant("shares-deleted", REMOVED, LYING),
    Mutant("user-once", replaced("one.user < two.user", "one.user <= two.user"), PARTS),
    Mutant("restored-manifest-chain", becomes("()"), PARTS),
    Mutant("manifest-parts-in-order", REMOVED, PARTS),
    Mutant("manifest-part-size", REMOVED, PARTS),
    Mutant("manifest-complete", REMOVED, PARTS),
    Mutant("refused-manifest-rolled-back", NEVER, PARTS),
    Mutant("shares-after-end", REMOVED, PARTS),
    Mutant("parts-in-order", NEVER, PARTS),
    Mutant("part-size", REMOVED, PARTS),
    Mutant("order-across-parts", REMOVED, PARTS),
    Mutant("manifest-size", NEVER, PARTS),
    Mutant("distinct-keys", NEVER, PARTS),
    Mutant("shares-of-this-part", NEVER, PARTS),
    Mutant("shares-before-receipt", NEVER, PARTS),
    Mutant("later-share-lost", NEVER, PARTS),
    Mutant("accepted-were-opened", REMOVED, PROVEN),
    Mutant("no-extra-answers", becomes("True"), PROVEN),
    Mutant("aggregator-value", NEVER, PROVEN),
    Mutant("coordinator-value", NEVER, PROVEN),
    Mutant("set-judged", NEVER, PROVEN),
    Mutant("invalid-reports", becomes("True"), PROVEN),
    Mutant("no-roster", REMOVED, PROVEN),
    Mutant("result-of-set", replaced("message.refused", "wanted[2]"), PROVEN),
    Mutant("noise-secret-deleted", REMOVED, PROVEN),
    Mutant("one-vote", REMOVED, VALIDITY),
    Mutant("only-bits", REMOVED, VALIDITY),
    Mutant("distinct-commitments", REMOVED, SURVEYS + " -k commitment"),
    Mutant("own-commitment", NEVER, SURVEYS + " -k begins_only"),
    Mutant("separate-noise-secret", REMOVED, SURVEYS + " -k begins_only"),
    Mutant(
        "inquiry-invited",
        becomes("user_id(message.access)"),
        "tests/unit/protocol/roles/test_client.py -k told_nothing",
    ),
)

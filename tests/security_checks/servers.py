"""Checks of `servers`, with and without proofs."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes, replacing

DISHONEST_AGGREGATOR = "tests/unit/protocol/two_servers/test_dishonest_aggregator.py"
PARTS = "tests/unit/protocol/two_servers/test_parts.py"
VERIFIED_PARTS = "tests/unit/protocol/two_servers/test_verified_parts.py"
SURVEYS = "tests/unit/protocol/two_servers/test_proven_surveys.py"
AGGREGATOR = "tests/unit/protocol/two_servers/test_aggregator.py"
PROOFS = "tests/unit/protocol/two_servers/test_dishonest_with_proofs.py " + SURVEYS
VALIDITY = "tests/unit/protocol/two_servers/test_proofs.py -k 'never_pass or more_points'"

REPORTS = "tests/unit/protocol/two_servers/test_two_servers.py"
DISHONEST_COORDINATOR = "tests/unit/protocol/two_servers/test_dishonest_coordinator.py"

MUTANTS = (
    Mutant("accepted-minimum", NEVER, DISHONEST_COORDINATOR + " -k not_added_up"),
    Mutant("participants-admitted", NEVER, DISHONEST_COORDINATOR + " -k no_more_people"),
    Mutant("sum-minimum", NEVER, DISHONEST_AGGREGATOR),
    Mutant("set-root", NEVER, DISHONEST_AGGREGATOR),
    Mutant("second-set", NEVER, DISHONEST_AGGREGATOR),
    Mutant("second-manifest", NEVER, DISHONEST_AGGREGATOR),
    Mutant("result-of-set", NEVER, DISHONEST_AGGREGATOR),
    Mutant("set-before-reservation", REMOVED, DISHONEST_AGGREGATOR),
    Mutant("shares-deleted", REMOVED, DISHONEST_AGGREGATOR),
    Mutant("user-once", replacing("one.user < two.user", "one.user <= two.user"), PARTS),
    Mutant("restored-manifest-chain", becomes("()"), PARTS),
    Mutant("part-asked-for", becomes("True"), PARTS + " -k nobody_asked"),
    Mutant("recorded-part-number", REMOVED, PARTS + " -k nobody_asked"),
    Mutant("recorded-part-size", REMOVED, PARTS + " -k nobody_asked"),
    Mutant("manifest-parts-in-order", REMOVED, PARTS),
    Mutant("manifest-part-size", REMOVED, PARTS),
    Mutant("manifest-complete", REMOVED, PARTS),
    Mutant("refused-manifest-rolled-back", NEVER, PARTS),
    Mutant("shares-after-end", REMOVED, VERIFIED_PARTS + " -k part_shares"),
    Mutant("parts-in-order", NEVER, PARTS),
    Mutant("parts-in-order", replacing("manifest.number", "recorded"), PARTS),
    Mutant("parts-in-order", replacing("manifest.previous_hash", "before"), PARTS),
    Mutant("part-follows", replacing("is_next", "True"), PARTS),
    Mutant("part-follows", replacing("names_before", "True"), PARTS),
    Mutant("part-follows", replacing("in_order", "True"), PARTS),
    Mutant("part-follows", replacing("before.has_more == 1", "True"), PARTS),
    Mutant(
        "replaced-part-uncounted",
        replacing("self.authentic_entries[:number]", "self.authentic_entries"),
        PARTS,
    ),
    Mutant("part-size", REMOVED, PARTS),
    Mutant("seed-bound", replacing("user + public_key + commitment", "public_key"), REPORTS),
    Mutant("seed-bound", replacing("user + public_key", "public_key"), REPORTS),
    Mutant("seed-bound", replacing("user + public_key", "user"), REPORTS),
    Mutant("order-across-parts", REMOVED, PARTS),
    Mutant("manifest-size", NEVER, PARTS),
    Mutant("shares-before-reservation", REMOVED, VERIFIED_PARTS + " -k part_shares"),
    Mutant("later-share-lost", NEVER, PARTS),
    Mutant("copy-intact", becomes("isinstance(copy, PartReports)"), PARTS),
    Mutant("report-of-manifest", REMOVED, PARTS),
    Mutant("sum-of-manifest", NEVER, PARTS),
    Mutant("authentic-entries", becomes("range(len(entries))"), PARTS + " " + AGGREGATOR),
    Mutant("part-verified-once", NEVER, VERIFIED_PARTS),
    Mutant(
        "part-verified-once",
        replacing("_progress(s).is_verified(batch.number)", "False"),
        VERIFIED_PARTS,
    ),
    Mutant("ahead-of-other-value", REMOVED, VERIFIED_PARTS + " -k ahead"),
    Mutant("ahead-of-other-shares", REMOVED, VERIFIED_PARTS + " -k no_work"),
    Mutant("verified-part-exists", REMOVED, VERIFIED_PARTS),
    Mutant("verified-part-size", NEVER, VERIFIED_PARTS + " -k too_long"),
    Mutant("verified-parts-signed", NEVER, VERIFIED_PARTS),
    Mutant("accepted-were-decrypted", REMOVED, PROOFS),
    Mutant("aggregator-value", NEVER, PROOFS),
    Mutant("coordinator-value", NEVER, PROOFS),
    Mutant("set-verified", NEVER, PROOFS),
    Mutant("invalid-reports", becomes("True"), PROOFS),
    Mutant("no-roster", REMOVED, PROOFS),
    Mutant("result-of-set", replacing("message.rejected", "wanted[2]"), PROOFS),
    Mutant("noise-secret-deleted", REMOVED, PROOFS),
    Mutant("constraints", REMOVED, VALIDITY),
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

"""Checks in `two-stage`: rules 12 to 14."""

from security_checks.mutant import Mutant
from security_checks.operations import ALWAYS, NEVER, REMOVED, becomes

LIES = "tests/unit/protocol/two_stage/test_liars.py"
LIARS = LIES + " tests/unit/protocol/two_stage/test_refusals.py"
DRAWN = "tests/unit/protocol/two_stage/test_election.py"

MUTANTS = (
    Mutant(
        "manifest-attempts",
        NEVER,
        LIES + " -k 'there_are_not and (change1 or change2 or change3)'",
    ),
    Mutant("shares-of-set", REMOVED, LIARS),
    Mutant("all-shares-present", REMOVED, LIARS),
    Mutant("list-committed", becomes("True"), LIARS),
    Mutant("list-length", REMOVED, LIARS),
    Mutant("reporter-on-lists", REMOVED, LIARS),
    Mutant("helper-minimum", NEVER, LIARS),
    Mutant("one-call-per-attempt", becomes("True"), LIARS),
    Mutant("reporter-invited", NEVER, LIARS),
    Mutant(
        "reporting-key-purpose",
        becomes(
            "verify_entry_mac(key, s.params.digest, each.public_key, each.mac, REPORTING_LABEL)"
            " or verify_entry_mac(key, s.params.digest, each.public_key, each.mac)"
        ),
        LIARS,
    ),
    Mutant("election-as-asked", NEVER, LIARS),
    Mutant("two-stage-second-manifest", NEVER, LIARS),
    Mutant("replaced-helper-sums-deleted", REMOVED, LIARS),
    Mutant("request-announced", REMOVED, LIARS),
    Mutant("election-spends", REMOVED, LIARS),
    Mutant("reporting-key-fresh", REMOVED, LIARS),
    Mutant("elected-once", REMOVED, LIARS),
    Mutant("election-minimum", NEVER, LIARS),
    Mutant("counts-fit", NEVER, DRAWN + " " + LIARS),
    Mutant("election-value", NEVER, DRAWN + " " + LIARS),
    Mutant("one-election", NEVER, LIARS),
    Mutant("vanished-list-grows", NEVER, LIARS),
    Mutant(
        "vanished-length",
        NEVER,
        "tests/unit/protocol/roles/test_decoding_costs.py -k true_messages",
    ),
    Mutant("set-shrinks", NEVER, LIARS),
    Mutant("complaint-too-long", ALWAYS, LIARS),
    Mutant("complaints-in-two-attempts", REMOVED, LIARS),
    Mutant("complaining-helper-replaced", becomes("(set(), leave)"), LIARS),
    Mutant("announced-before-restore", NEVER, LIARS),
    Mutant(
        "reporting-key-own",
        becomes("True"),
        "tests/unit/protocol/two_stage/test_restores.py -k one_reporter",
    ),
)

"""Checks of `two-stage`: the election, the lists of reporters, sums and complaints."""

from security_checks.mutant import Mutant
from security_checks.operations import ALWAYS, NEVER, REMOVED, becomes

DISHONEST = "tests/unit/protocol/two_stage/test_dishonest_parties.py"
REFUSALS = DISHONEST + " tests/unit/protocol/two_stage/test_refusals.py"
ELECTION = "tests/unit/protocol/two_stage/test_election.py"

MUTANTS = (
    Mutant(
        "manifest-attempts",
        NEVER,
        DISHONEST + " -k 'there_are_not and (change1 or change2 or change3)'",
    ),
    Mutant("shares-of-set", REMOVED, REFUSALS),
    Mutant("all-shares-present", REMOVED, REFUSALS),
    Mutant("list-committed", becomes("True"), REFUSALS),
    Mutant("list-length", REMOVED, REFUSALS),
    Mutant("reporter-on-lists", REMOVED, REFUSALS),
    Mutant("helper-minimum", NEVER, REFUSALS),
    Mutant("one-call-per-attempt", becomes("True"), REFUSALS),
    Mutant("reporter-invited", NEVER, REFUSALS),
    Mutant(
        "reporting-key-purpose",
        becomes(
            "verify_entry_mac(key, s.params.digest, entry.public_key, entry.mac, REPORTING_LABEL)"
            " or verify_entry_mac(key, s.params.digest, entry.public_key, entry.mac)"
        ),
        REFUSALS,
    ),
    Mutant("election-as-asked", NEVER, REFUSALS),
    Mutant("two-stage-second-manifest", NEVER, REFUSALS),
    Mutant("replaced-helper-sums-deleted", REMOVED, REFUSALS),
    Mutant("request-announced", REMOVED, REFUSALS),
    Mutant("election-spends", REMOVED, REFUSALS),
    Mutant("reporting-key-fresh", REMOVED, REFUSALS),
    Mutant("elected-once", REMOVED, REFUSALS),
    Mutant("election-minimum", NEVER, REFUSALS),
    Mutant("counts-fit", NEVER, ELECTION + " " + REFUSALS),
    Mutant("election-value", NEVER, ELECTION + " " + REFUSALS),
    Mutant("one-election", NEVER, REFUSALS),
    Mutant("vanished-list-grows", NEVER, REFUSALS),
    Mutant(
        "vanished-length",
        NEVER,
        "tests/unit/protocol/roles/test_decoding_costs.py -k true_messages",
    ),
    Mutant("set-shrinks", NEVER, REFUSALS),
    Mutant("complaint-too-long", ALWAYS, REFUSALS),
    Mutant("complaints-in-two-attempts", REMOVED, REFUSALS),
    Mutant("complaining-helper-replaced", becomes("(set(), leave)"), REFUSALS),
    Mutant("announced-before-restore", NEVER, REFUSALS),
    Mutant(
        "reporting-key-own",
        becomes("True"),
        "tests/unit/protocol/two_stage/test_restores.py -k one_reporter",
    ),
)

"""Checks of the page: what a participant's browser believes of the servers."""

from security_checks.mutant import ScriptMutant

ATTACKS = "tests/browser/test_page_attacks.py"
CHECKS = "tests/browser/test_script_checks.py"
SIGNED = (
    "page-statement-party",
    "page-statement-signature",
    "page-acknowledged-message",
    "page-path-index",
    "page-path-end",
    "page-message-kind",
    "page-message-intact",
    "page-message-end",
    "page-key-canonical",
    "page-outcome-survey",
    "page-outcome-parameters",
)
"""What the servers sign and send; each check is attacked under its own name."""

PARAMETERS = (
    "page-parameter-names",
    "page-insiders",
    "page-minimum",
    "page-distinct-items",
    "page-moved-translation",
    "page-question-groups",
    "page-group-epsilon",
    "page-level-kinds",
    "page-base-epsilon",
    "page-weakest-level",
    "page-level-coins",
    "page-usual-names",
    "page-drawable-noise",
    "page-key-size",
    "page-derived-names",
    "page-promise",
    "page-derived",
    "page-modulus",
    "page-proof-form",
    "page-commitments",
    "page-canonical",
)
"""What the owner and the coordinator publish."""

MUTANTS = (
    ScriptMutant("page-inclusion-size", "tests/browser/test_client.py -k another_size"),
    ScriptMutant("page-invited-parameters", f"{CHECKS} -k invitations"),
    *(ScriptMutant(slug, f"{CHECKS} -k {slug}") for slug in SIGNED),
    # The longer name of another check contains this one, so all of them run.
    *(ScriptMutant(slug, f"{CHECKS} -k promise_too_much") for slug in PARAMETERS),
    ScriptMutant("page-taken-over", f"{ATTACKS} -k taken_over"),
    ScriptMutant("page-operators", f"{ATTACKS} -k have_not_signed"),
    ScriptMutant("page-one-operator", f"{ATTACKS} -k one_key_for_both"),
)

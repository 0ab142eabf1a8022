"""Checks of the page: what a participant's browser believes of the servers."""

from security_checks.mutant import ScriptMutant

ATTACKS = "tests/browser/test_page_attacks.py"

MUTANTS = (
    ScriptMutant("page-inclusion-size", "tests/browser/test_client.py -k another_size"),
    ScriptMutant("page-taken-over", f"{ATTACKS} -k taken_over"),
    ScriptMutant("page-operators", f"{ATTACKS} -k have_not_signed"),
    ScriptMutant("page-one-operator", f"{ATTACKS} -k one_key_for_both"),
)

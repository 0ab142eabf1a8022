"""Checks of the page: what a participant's browser believes of the servers."""

from security_checks.mutant import ScriptMutant

MUTANTS = (
    ScriptMutant("page-inclusion-size", "tests/browser/test_client.py -k another_size"),
    ScriptMutant("page-taken-over", "tests/browser/test_page_attacks.py -k taken_over"),
)

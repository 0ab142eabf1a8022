"""Checks of the dashboard: who may act for the owner, and with what."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED

APP = "tests/unit/dashboard/test_app.py"

MUTANTS = (
    Mutant("dashboard-host", REMOVED, f"{APP} -k another_host"),
    Mutant("dashboard-key", REMOVED, f"{APP} -k without_the_key"),
    Mutant("dashboard-page-host", NEVER, f"{APP} -k another_name"),
    Mutant("dashboard-body", NEVER, f"{APP} -k json_object"),
    Mutant("dashboard-folder", NEVER, "tests/unit/dashboard/test_form.py -k elsewhere"),
    Mutant("dashboard-request", NEVER, f"{APP} -k requests_of_the_page"),
    Mutant("dashboard-position", NEVER, f"{APP} -k position"),
    Mutant("dashboard-file", NEVER, f"{APP} -k other_files"),
)

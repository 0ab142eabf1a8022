"""Checks on the owner's machine: what is written into tables and mails."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER

MUTANTS = (Mutant("formula-cell", NEVER, "tests/unit/core/test_csv_cells.py"),)

"""Checks on the owner's machine: what is written into tables and mails."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes

LABEL = "tests/unit/owner/test_label.py -k numbers"
GROUPS = "tests/unit/owner/test_groups.py"
MAIL = "tests/unit/owner/test_mail.py"
PEOPLE = "tests/unit/owner/test_people.py"

RESULT = "tests/unit/owner/test_final_statement.py"

MUTANTS = (
    Mutant("owner-result-signed", REMOVED, RESULT),
    Mutant("owner-result-survey", REMOVED, f"{RESULT} -k another_survey"),
    Mutant("formula-cell", NEVER, "tests/unit/core/test_csv_cells.py"),
    Mutant("quoted-line-ends", becomes('"\\n"'), "tests/unit/core/test_csv_cells.py"),
    Mutant("formula-sheet", REMOVED, "tests/unit/owner/test_exports.py -k formula"),
    Mutant("label-promise", NEVER, LABEL),
    Mutant("label-result", NEVER, LABEL),
    Mutant("label-budget", NEVER, LABEL),
    Mutant("link-in-body", NEVER, f"{MAIL} -k template"),
    Mutant("no-plain-password", NEVER, f"{MAIL} -k plainly"),
    Mutant("sheet-unpacked", NEVER, f"{PEOPLE} -k unpacks"),
    Mutant("sheet-cells", NEVER, f"{PEOPLE} -k many_cells"),
    Mutant("group-folder", becomes("False"), f"{GROUPS} -k damaged"),
    Mutant("one-group", NEVER, f"{GROUPS} -k twice"),
    Mutant("whole-and-groups", NEVER, f"{GROUPS} -k as_a_whole"),
    Mutant("disjoint-people", NEVER, "tests/unit/owner/test_levels.py -k finished"),
    Mutant("unsure-mail", NEVER, f"{MAIL} -k silently"),
)

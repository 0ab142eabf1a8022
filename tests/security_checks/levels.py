"""Checks of hidden privacy levels: their coins, both tables, and what is promised."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, REMOVED, becomes, replacing

LEVELS = "tests/unit/accounting/test_levels.py"
MECHANISM = "tests/unit/mechanisms/test_server_levels.py"
ESTIMATES = "tests/unit/estimation/test_leveled.py"
SURVEYS = "tests/unit/owner/test_hidden_levels.py"

# The last cell of the second table makes up for all others.
ZERO_SUM = "[*(cells := [drawn_by.draw(second)[0][0] for _ in range(size - 1)]), -sum(cells)]"

MUTANTS = (
    Mutant("ascending-levels", NEVER, f"{LEVELS} -k 'in_order or mean_nothing'"),
    Mutant("promised-level", NEVER, f"{MECHANISM} -k promise_is"),
    Mutant("base-epsilon", REMOVED, f"{MECHANISM} -k promise_is"),
    Mutant("one-side", REMOVED, f"{MECHANISM} -k honest_patterns"),
    Mutant("own-cell-noise", becomes(ZERO_SUM), f"{MECHANISM} -k no_known_total"),
    Mutant(
        "weakest-losses", replacing("len(self.levels) - 1", "0"), f"{MECHANISM} -k delta_covers"
    ),
    Mutant("weakest-epsilon", NEVER, f"{MECHANISM} -k delta_covers"),
    Mutant("level-kinds", NEVER, f"{MECHANISM} -k other_kinds"),
    Mutant(
        "noise-per-table",
        replacing("tag", "self.mechanism.noise_tags[0]"),
        f"{MECHANISM} -k stream_of_its_own",
    ),
    Mutant("liar-votes", REMOVED, f"{ESTIMATES} -k 'liar or known_variances'"),
    Mutant(
        "one-level",
        replacing("level not in (None, client.level)", "False"),
        f"{SURVEYS} -k nobody_learns",
    ),
)

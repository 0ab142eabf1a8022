"""Checks of questionnaires: their groups, their constraints and their noise."""

from security_checks.mutant import Mutant
from security_checks.operations import NEVER, becomes, replacing

QUESTIONS = "tests/unit/core/test_questions.py"
NOISE = "tests/unit/mechanisms/test_joint_noise.py"
PUBLISHED = "tests/unit/core/test_published_questions.py"
SERVERS = "tests/unit/mechanisms/test_server_sheets.py"
PEERS = "tests/unit/mechanisms/test_laplace_sheets.py"

MUTANTS = (
    Mutant("question-groups", NEVER, f"{QUESTIONS} -k groups"),
    Mutant("group-epsilon", NEVER, f"{QUESTIONS} -k groups"),
    Mutant("constraint-modulus", NEVER, f"{QUESTIONS} -k modulus"),
    Mutant("one-radius", replacing("radius", "table.draw(entropy)"), f"{NOISE} -k drawn_noise"),
    Mutant("sheet-total", NEVER, f"{NOISE} -k spoiled"),
    Mutant("question-keys", NEVER, f"{PUBLISHED} -k keys"),
    Mutant("moved-translation", NEVER, f"{PUBLISHED} -k means_another_answer"),
    Mutant("cell-range", NEVER, f"{SERVERS} -k outside_its_range"),
    Mutant("promise-below-groups", NEVER, f"{SERVERS} -k promise_below"),
    Mutant("usual-names", NEVER, "tests/unit/accounting/test_levels.py -k mean_nothing"),
    Mutant("drawable-noise", NEVER, f"{NOISE} -k cannot_be_drawn"),
    Mutant("split-groups", NEVER, f"{PEERS} -k one_group"),
    Mutant("cell-moves", replacing("question.moves", "1"), f"{PEERS} -k every_pair"),
    Mutant("noise-of-cells", replacing("users", "users * 0"), f"{PEERS} -k noise_of_all_users"),
    Mutant("radius-precision", becomes("512"), f"{NOISE} -k mpmath"),
)

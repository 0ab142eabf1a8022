"""The list of mutants fits the code, and a few of them are tried: `make mutants` tries all."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
spec = spec_from_file_location("mutants", ROOT / "tests" / "mutants.py")
assert spec is not None
assert spec.loader is not None
mutants = module_from_spec(spec)
sys.modules["mutants"] = mutants  # a dataclass looks its own module up
spec.loader.exec_module(mutants)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda each: each.name)
def test_every_mutant_changes_one_place(mutant) -> None:
    text = (ROOT / "src" / mutants.PROTOCOL / mutant.file).read_text()
    changed = mutants.mutated(text, mutant)
    assert changed != text
    compile(changed, mutant.file, "exec")


@pytest.mark.slow
def test_a_removed_check_is_found_and_a_comment_survives() -> None:
    first = mutants.MUTANTS[0]
    assert not mutants.survives(first)
    harmless = mutants.Mutant("nothing", first.file, first.text, first.text + "  ", first.tests)
    assert mutants.survives(harmless)

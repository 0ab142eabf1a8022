"""Tags and mutants fit together, operations do what they say, and one mutant is tried.

`make mutants` tries all of them.
"""

import ast
import builtins
import sys
from collections import Counter
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from security_checks.mutant import Mutant, ScriptMutant
from security_checks.operations import (
    ALWAYS,
    NEVER,
    REMOVED,
    Operation,
    becomes,
    preceded_by,
    replacing,
)
from security_checks.tags import TagError, files_by_slug

ROOT = Path(__file__).parent.parent.parent
spec = spec_from_file_location("mutants", ROOT / "tests" / "mutants.py")
assert spec is not None
assert spec.loader is not None
mutants = module_from_spec(spec)
sys.modules["mutants"] = mutants  # a dataclass looks its own module up
spec.loader.exec_module(mutants)

FILES = files_by_slug(mutants.SOURCE)
IN_PYTHON = [mutant for mutant in mutants.MUTANTS if isinstance(mutant, Mutant)]
IN_SCRIPTS = [mutant for mutant in mutants.MUTANTS if isinstance(mutant, ScriptMutant)]


@cache  # many mutants change the same file
def names_in(code: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return names | attributes | imported | functions | arguments


@cache
def dump_of(code: str) -> str:
    return ast.dump(ast.parse(code))


def test_every_tag_is_unique_and_has_a_mutant() -> None:
    assert {slug: files for slug, files in FILES.items() if len(files) > 1} == {}
    assert set(FILES) == {mutant.slug for mutant in mutants.MUTANTS}


def test_everything_that_looks_like_a_tag_is_one() -> None:
    comments = Counter[Path]()
    for kind, mark in (("*.py", "# check:"), ("*.js", "// check:")):
        for path in mutants.SOURCE.rglob(kind):
            comments[path] = path.read_text().lower().count(mark)
    tags = Counter(path for files in FILES.values() for path in files)
    assert +comments == tags


def test_no_two_mutants_are_the_same() -> None:
    assert [name for name, n in Counter(m.name for m in mutants.MUTANTS).items() if n > 1] == []


@pytest.mark.parametrize("mutant", IN_PYTHON, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_the_tagged_code(mutant: Mutant) -> None:
    text = (mutants.SOURCE / mutants.find_file(mutant.slug)).read_text()
    changed = ast.parse(mutant.apply(text))
    assert ast.dump(changed) != dump_of(text)
    compile(changed, mutant.slug, "exec")


@pytest.mark.parametrize("mutant", IN_SCRIPTS, ids=lambda mutant: mutant.name)
def test_every_script_loses_the_line_below_its_tag(mutant: ScriptMutant) -> None:
    lines = (mutants.SOURCE / mutants.find_file(mutant.slug)).read_text().split("\n")
    changed = mutant.apply("\n".join(lines)).split("\n")
    (at,) = (number for number, line in enumerate(lines) if f"check: {mutant.slug} " in line)
    assert changed == lines[: at + 1] + lines[at + 2 :]
    half = "// check: here - an attack\nif (a &&\n  b) return;\n"
    with pytest.raises(TagError):
        ScriptMutant("here", "").apply(half)


@pytest.mark.parametrize("mutant", IN_PYTHON, ids=lambda mutant: mutant.name)
def test_a_mutant_uses_names_of_its_file_only(mutant: Mutant) -> None:
    """Else tests fail because a name is unknown, and not because they notice the check."""
    text = (mutants.SOURCE / mutants.find_file(mutant.slug)).read_text()
    code = ast.walk(ast.parse(mutant.operation.code))
    own = {node.id for node in code if isinstance(getattr(node, "ctx", None), ast.Store)}
    known = names_in(text) | own | set(dir(builtins))
    assert names_in(mutant.operation.code) <= known


STATEMENT = """
def f(a, b):
    # check: here - an attack
    # that takes two lines to describe
    {}
"""


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        (NEVER, "if a or b: return a", "if False: return a"),
        (NEVER, "return [x for x in a if x]", "return [x for x in a if False]"),
        (ALWAYS, "if a: return a", "if True: return a"),
        (ALWAYS, "return a, b if a else 0", "return a, b if True else 0"),
        (REMOVED, "a(b)", "pass"),
        (REMOVED, "if a: return b", "pass"),
        (becomes("a"), "if b: return a", "if a: return a"),
        (becomes("True"), "return a == b", "return True"),
        (becomes("()"), "c = a(b)", "c = ()"),
        (replacing("a < b", "a <= b"), "return all(a < b)", "return all(a <= b)"),
        (replacing("a.x", "0"), "if a.x < b: return a.x", "if 0 < b: return a.x"),
        (preceded_by("a(b)"), "if a: return b", "a(b)\n    if a: return b"),
    ],
)
def test_operations_on_a_statement(operation: Operation, before: str, after: str) -> None:
    changed = Mutant("here", operation, "").apply(STATEMENT.format(before))
    assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(STATEMENT.format(after)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if (a\n  # check: here\n  or b\n  or c): d", "if a or c: d"),
        ("if (\n  # check: here\n  a or b): c", "if b: c"),
        ("if (a\n  # check: here\n  or b and c): d", "if a: d"),
        ("if (a\n  # check: here\n  or (b and c) or d): e", "if a or d: e"),
        ("a = f(\n  # check: here\n  (b == 1)\n  & c)", "a = f(c)"),
        ("a = f(b\n  # check: here\n  & (c | d).any())", "a = f(b)"),
        ("a = f(b,\n  # check: here\n  c=d or e, g=h)", "a = f(b, g=h)"),
        ("a = f(b, g(\n  # check: here\n  c, d), e)", "a = f(b, g(d), e)"),
        ("a = (\n  # check: here\n  (b, c),\n  (d, e))", "a = ((d, e),)"),
        ("a = {\n  # check: here\n  b: c or d,\n  e: f}", "a = {e: f}"),
        ("a = {b for b in c if d\n  # check: here\n  or e}", "a = {b for b in c if d}"),
        ("if a:\n  # check: here\n  b()\n  c()", "if a:\n  pass\n  c()"),
        ("for a in b:\n  # check: here\n  c(a)\nd", "for a in b:\n  pass\nd"),
    ],
)
def test_removed_takes_what_begins_after_the_tag(before: str, after: str) -> None:
    changed = Mutant("here", REMOVED, "").apply(before)
    assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(after))


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (NEVER, "# check: there\nif a: b"),
        (NEVER, "# check: here\nif a: b\n# check: here\nif c: d"),
        (NEVER, "a\n# check: here"),
        (NEVER, "# check: here\nreturn_value = a"),
        (NEVER, "# check: here\na = (b if c else d) if e else f"),
        (NEVER, "if (\n  # check: here\n  a or b): c"),
        (REMOVED, "a = (\n  # check: here\n  b + c)"),
        (becomes("a"), "# check: here\npass"),
        (replacing("a", "b"), "# check: here\nc = a + a"),
        (replacing("a", "b"), "# check: here\nif c: a"),
    ],
)
def test_a_tag_at_the_wrong_place_is_an_error(operation: Operation, text: str) -> None:
    with pytest.raises(TagError, match="here"):
        Mutant("here", operation, "").apply(text)


@pytest.mark.slow
def test_a_disabled_check_is_found_and_a_harmless_change_survives() -> None:
    first = mutants.MUTANTS[0]
    assert not mutants.survives(first)
    assert mutants.survives(Mutant(first.slug, preceded_by("pass"), first.tests))

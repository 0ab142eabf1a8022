"""Rules of style that no linter checks, over the syntax trees of `src`.

CONTRIBUTING.md states them: loop variables are named after what they run over, a comprehension has
one `for`, unrelated values are assigned on two lines, conditional expressions are not nested,
functions are verbs, and decisions are explained by comments.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import faircount

SOURCE = Path(faircount.__file__).parent

NOT_YET_CLEAN: tuple[str, ...] = ()
"""Folders and files whose style is not checked yet, relative to `src/faircount`."""

PARTICIPLES = re.compile(
    "added|adopted|answered|batched|begun|believed|bounded|changed|connected|decoded|drawn|encoded|"
    "ended|filled|found|framed|given|handled|heard|held|joined|kept|labelled|made|marked|noted|"
    "opened|owed|padded|paged|parsed|refused|released|repeated|reissued|restored|said|sealed|sent|shared|shown|"
    "signed|stepped|stored|summed|taken|told|unchanged|wanted|written"
)
"""Names that say what has happened to a value, where a function should say what it does."""

FEWEST_COMMENTS = 0.04
"""Comment lines of their own among all lines of the source."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Problems = Iterator[tuple[ast.expr | ast.stmt | ast.arg, str]]


def is_clean(path: Path) -> bool:
    """Whether the rules hold for this file already."""
    name = path.relative_to(SOURCE).as_posix()
    return not any(name == folder or name.startswith(f"{folder}/") for folder in NOT_YET_CLEAN)


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if is_clean(path)]


PROJECT = Path(__file__).parents[2]
ALL_FILES = [
    *(PROJECT / "src").rglob("*.py"),
    *(PROJECT / "tests").rglob("*.py"),
    *(PROJECT / "benchmarks").rglob("*.py"),
]


def variables_named_each(tree: ast.AST) -> Problems:
    """`each` says nothing about what it is one of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "each" and isinstance(node.ctx, ast.Store):
            yield node, "name the variable after what it runs over"
        elif isinstance(node, ast.arg) and node.arg == "each":
            yield node, "name the parameter after what it is"


def nested_comprehensions(tree: ast.AST) -> Problems:
    """Two loops in one expression have to be read from the middle outwards."""
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1:
            yield node, "one `for` per comprehension"


def parallel_assignments(tree: ast.AST) -> Problems:
    """`a, b = x, y` hides two statements in one, unless it exchanges values."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        if isinstance(node.targets[0], ast.Tuple) and not is_exchange(node.targets[0], node.value):
            yield node, "two values are assigned on two lines"


def is_exchange(targets: ast.Tuple, values: ast.Tuple) -> bool:
    """Whether an assigned value depends on a target that changes: `a, b = b, a + b`."""
    assigned = {ast.unparse(target) for target in targets.elts}
    read = {ast.unparse(node) for node in ast.walk(values)}
    return bool(assigned & read)


def nested_conditionals(tree: ast.AST) -> Problems:
    """A conditional expression inside another one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            parts = (node.test, node.body, node.orelse)
            if any(isinstance(part, ast.IfExp) for part in parts):
                yield node, "conditional expressions are not nested"


def participle_functions(tree: ast.AST) -> Problems:
    """A function that is named by a participle alone; properties are values and may be."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if PARTICIPLES.fullmatch(node.name.lstrip("_")) and not is_property(node):
            yield node, f"{node.name} is no verb"


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method is read like a field."""
    names = {ast.unparse(decorator) for decorator in node.decorator_list}
    return bool(names & {"property", "cached_property", "functools.cached_property"})


RULES = (
    variables_named_each,
    nested_comprehensions,
    parallel_assignments,
    nested_conditionals,
    participle_functions,
)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.AST]:
    """The syntax trees of the source by name, which every rule goes through."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in FILES
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_follows_the_rule(
    rule: Callable[[ast.AST], Problems], trees: dict[str, ast.AST]
) -> None:
    problems = list[str]()
    for name, tree in trees.items():
        found = rule(tree)
        problems += [f"{name}:{node.lineno}: {problem}" for node, problem in found]
    assert problems == []


def test_no_variable_is_named_each_in_tests_and_benchmarks_either() -> None:
    problems = list[str]()
    for path in ALL_FILES:
        found = variables_named_each(ast.parse(path.read_text(encoding="utf-8")))
        problems += [f"{path.name}:{node.lineno}: {problem}" for node, problem in found]
    assert problems == []


def count_comments(text: str) -> int:
    """Count the lines that hold a comment and nothing else."""
    return sum(line.lstrip().startswith("#") for line in text.splitlines())


def where_comments_lack(texts: Mapping[str, str]) -> list[str]:
    """Name the files that lack most comments, and how many; empty if all together have enough."""
    lack = {}
    for name, text in texts.items():
        lack[name] = FEWEST_COMMENTS * len(text.splitlines()) - count_comments(text)
    if sum(lack.values()) <= 0:
        return []
    worst = sorted(lack, key=lambda name: -lack[name])[:10]
    return [f"{name}: {lack[name]:.0f} more comments" for name in worst]


def test_decisions_are_explained_by_comments() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in FILES}
    missing = where_comments_lack(texts)
    advice = "fewer than 4% of the lines are comments; say which attack, bound or order in"
    assert not missing, "\n".join([advice, *missing])


def test_missing_comments_are_found_where_they_lack() -> None:
    silent = "x = 1\n" * 100
    spoken = "    # why\n" * 4 + "x = 1  # what\n" * 96
    assert where_comments_lack({"silent": silent, "spoken": spoken}) == [
        "silent: 4 more comments",
        "spoken: 0 more comments",
    ]
    assert where_comments_lack({"spoken": spoken}) == []


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (variables_named_each, "for each in users: pass"),
        (variables_named_each, "lambda each: each.user"),
        (nested_comprehensions, "[user for group in groups for user in group]"),
        (parallel_assignments, "size, name = 3, 'x'"),
        (nested_conditionals, "1 if a else 2 if b else 3"),
        (participle_functions, "def _opened(s): return s"),
    ],
)
def test_a_violation_is_found(rule: Callable[[ast.AST], Problems], code: str) -> None:
    assert len(list(rule(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (parallel_assignments, "first, second = second, first"),
        (parallel_assignments, "low, high = high, low + high"),
        (parallel_assignments, "name, size = split(text)"),
        (nested_conditionals, "(1 if a else 2) + (3 if b else 4)"),
        (participle_functions, "class A:\n    @property\n    def stored(self): return 1"),
    ],
)
def test_what_reads_well_is_no_violation(rule: Callable[[ast.AST], Problems], code: str) -> None:
    assert list(rule(ast.parse(code))) == []


def test_the_folders_that_are_not_checked_exist() -> None:
    """The list only shrinks: an entry for a folder that is gone must go, too."""
    assert [name for name in NOT_YET_CLEAN if not (SOURCE / name).exists()] == []
    assert len(FILES) > 100

"""What can be done to a tagged check. Operations work on the syntax tree, not on the text.

So they survive another layout, other names and other code around the check. The result is written
from the tree, without comments: nobody reads it, it is only run.
"""

import ast
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from security_checks.tags import TagError, Target


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of the tagged code, by name; `code` is what it puts into the file, if anything."""

    name: str
    change: Callable[[Target], None]
    code: str = ""

    def __call__(self, target: Target) -> str:
        """Return the text of the whole file after the change."""
        self.change(target)
        return ast.unparse(ast.fix_missing_locations(target.tree)) + "\n"


def becomes(code: str) -> Operation:
    """Give the tagged `if`, `return` or assignment another condition or value."""

    def change(target: Target) -> None:
        statement = target.statement
        field = "test" if isinstance(statement, ast.If | ast.While) else "value"
        if target.is_inside or getattr(statement, field, None) is None:
            raise TagError(f"{target.slug}: only an if, a return or an assignment becomes another")
        setattr(statement, field, _expression(code))

    return Operation(f"becomes {code}", change, code)


def replacing(old: str, new: str) -> Operation:
    """Replace an expression that occurs once in the tagged statement: the last resort."""

    def change(target: Target) -> None:
        wanted = ast.dump(_expression(old))
        places = [place for place in _places(target.statement) if ast.dump(place.node) == wanted]
        if len(places) != 1:
            raise TagError(f"{target.slug}: {old!r} occurs {len(places)} times in the statement")
        places[0].put(_expression(new))

    return Operation(f"{old} replaced by {new}", change, new)


def preceded_by(code: str) -> Operation:
    """Do something before the tagged statement that it should have prevented."""

    def change(target: Target) -> None:
        statements, index = _block(target)
        statements[index:index] = ast.parse(code).body

    return Operation(f"preceded by {code}", change, code)


def _decide(target: Target, outcome: bool) -> None:
    """Give the only condition of the tagged statement a fixed outcome.

    That is the condition of an `if`. A statement without one may have a conditional expression, or
    a comprehension with a filter.
    """
    if target.is_inside:
        raise TagError(f"{target.slug}: the tag of a condition must be above its statement")
    constant = ast.Constant(outcome)
    if isinstance(target.statement, ast.If | ast.While):
        target.statement.test = constant
        return
    nodes = list(ast.walk(target.statement))
    conditionals = [node for node in nodes if isinstance(node, ast.IfExp)]
    filters = [node.ifs for node in nodes if isinstance(node, ast.comprehension) and node.ifs]
    if len(conditionals) + len(filters) != 1:
        raise TagError(f"{target.slug}: the statement must have one condition")
    for conditional in conditionals:
        conditional.test = constant
    for conditions in filters:
        conditions[:] = [constant]


def _remove(target: Target) -> None:
    """Remove the tagged statement, operand or element."""
    if target.is_inside:
        _remove_part(target)
        return
    statements, index = _block(target)
    statements[index] = ast.Pass()


NEVER = Operation("never", lambda target: _decide(target, False))
"""The condition never holds, so the check refuses nothing."""

ALWAYS = Operation("always", lambda target: _decide(target, True))
"""The condition always holds, so the check lets everything pass."""

REMOVED = Operation("removed", _remove)
"""The tagged statement, operand of `and`, `or` or `&`, or element is gone."""


# --- parts of a statement ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """An expression, and where it hangs in the tree."""

    node: ast.expr
    put: Callable[[ast.expr], None]


def _places(root: ast.AST) -> Iterator[_Place]:
    """All expressions of a statement, without those of its body, the outer ones first."""
    # Breadth first, so that an outer expression comes before the ones inside it.
    waiting = deque([root])
    while waiting:
        parent = waiting.popleft()
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr):
                yield _Place(value, partial(setattr, parent, field))
            for index, item in enumerate(value if isinstance(value, list) else ()):
                if isinstance(item, ast.expr):
                    yield _Place(item, partial(value.__setitem__, index))
        children = ast.iter_child_nodes(parent)
        waiting.extend(child for child in children if not isinstance(child, ast.stmt))


def _remove_part(target: Target) -> None:
    """Remove the operand or element directly after a tag inside a statement.

    Above `or a and b` a tag means all of `a and b`: of the operands that begin there, the outermost
    goes. Where no operand begins, an element goes, from the innermost brackets around the tag.
    """
    places = list(_places(target.statement))
    for place in places:
        if _remove_operand(target, place):
            return
    for place in reversed(places):
        if target.contains_tag(place.node) and _remove_element(target, place.node):
            return
    raise TagError(f"{target.slug}: no operand or element begins after the tag")


def _next_index(target: Target, nodes: Sequence[ast.expr | ast.keyword | None]) -> int | None:
    """The index of the node directly after the tag."""
    for index, node in enumerate(nodes):
        if node is not None and target.is_next(node):
            return index
    return None


def _remove_operand(target: Target, place: _Place) -> bool:
    """Remove the tagged operand of this expression; False if it has none."""
    node = place.node
    operands: list[ast.expr] = []
    if isinstance(node, ast.BoolOp):
        operands = node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        operands = [node.left, node.right]
    index = _next_index(target, operands)
    if index is None:
        return False
    del operands[index]
    # An operation with one operand left is that operand.
    if len(operands) == 1:
        place.put(operands[0])
    return True


def _remove_element(target: Target, node: ast.expr) -> bool:
    """Remove the tagged argument or item of this expression; False if it has none."""
    parallel: list[tuple[list[Any], ...]] = []
    if isinstance(node, ast.Call):
        parallel = [(node.args,), (node.keywords,)]
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        parallel = [(node.elts,)]
    elif isinstance(node, ast.Dict):
        parallel = [(node.keys, node.values)]
    for sequences in parallel:
        index = _next_index(target, sequences[0])
        if index is not None:
            for sequence in sequences:
                del sequence[index]
            return True
    return False


def _block(target: Target) -> tuple[list[ast.stmt], int]:
    """The list of statements that contains the tagged one, and its index there."""
    if target.is_inside:
        raise TagError(f"{target.slug}: the tag must be above the statement")
    for node in ast.walk(target.tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and target.statement in value:
                return value, value.index(target.statement)
    raise TagError(f"{target.slug}: the statement is in no block")


def _expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body

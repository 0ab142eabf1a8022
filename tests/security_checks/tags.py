"""Tags of security checks in the source: `# check: slug - which attack it refuses`.

A tag is a comment on a line of its own. Above a statement it tags that statement; inside an
expression it tags what begins next: an operand of `and`, `or`, `&`, or an element of a call, a
tuple, a list, a set or a dictionary. More comment lines may follow between tag and code. In
JavaScript a tag begins with `//`, and tags the statement on the next line.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

TAG = re.compile(
    r"^[ \t]*(?:#|//) check: (?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)(?: - \S.*)?$", re.MULTILINE
)
BETWEEN = re.compile(r"(?:\s|\(|and\b|or\b|&|#[^\n]*\n)*")
"""What may come between a tag and the operand or element that it tags."""


class TagError(Exception):
    """A tag is missing, occurs twice, or is where its operation has nothing to change."""


@dataclass(frozen=True, slots=True)
class Target:
    """The tagged code: the file's text and tree, the statement, and the line of the tag."""

    slug: str
    text: str
    tree: ast.Module
    statement: ast.stmt
    line: int

    @property
    def is_inside(self) -> bool:
        """Whether the tag is inside the statement, at an operand or an element."""
        return self.statement.lineno < self.line

    def is_next(self, node: ast.expr | ast.keyword) -> bool:
        """Whether this is what begins directly after the tag."""
        if node.lineno <= self.line:
            return False
        lines = self.text.split("\n")
        before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        between = "\n".join([*lines[self.line : node.lineno - 1], before])
        return BETWEEN.fullmatch(between) is not None

    def contains_tag(self, node: ast.expr) -> bool:
        """Whether the tag is between the first and the last line of this expression."""
        return node.lineno < self.line <= (node.end_lineno or 0)


def slugs_in(text: str) -> list[str]:
    """Return the slugs of all tags of a file, in order."""
    return [match["slug"] for match in TAG.finditer(text)]


def files_by_slug(source: Path) -> dict[str, list[Path]]:
    """Return, for every slug under a directory, the file of each of its tags."""
    found: dict[str, list[Path]] = {}
    for path in sorted((*source.rglob("*.py"), *source.rglob("*.js"))):
        for slug in slugs_in(path.read_text()):
            found.setdefault(slug, []).append(path)
    return found


def find_target(text: str, slug: str) -> Target:
    """Return the code that a tag of this file belongs to."""
    matches = [match for match in TAG.finditer(text) if match["slug"] == slug]
    if len(matches) != 1:
        raise TagError(f"{slug}: {len(matches)} tags in one file, and there must be one")
    line = text.count("\n", 0, matches[0].start()) + 1
    tree = ast.parse(text)
    return Target(slug, text, tree, _statement_at(tree, slug, line), line)


def _statement_at(tree: ast.Module, slug: str, line: int) -> ast.stmt:
    """Return the statement whose expression the tag is in, or else the one that begins next."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno < line <= _end_of_header(node)]
    if around:
        return max(around, key=lambda node: node.lineno)
    after = [node for node in statements if node.lineno > line]
    if not after:
        raise TagError(f"{slug}: no code follows the tag")
    return min(after, key=lambda node: node.lineno)


def _end_of_header(statement: ast.stmt) -> int:
    """Return the last line before the body of a compound statement; of a simple one, its end."""
    body = getattr(statement, "body", None)
    if body is None:
        return statement.end_lineno or statement.lineno
    expressions = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
    return max((node.end_lineno or 0 for node in expressions), default=statement.lineno)

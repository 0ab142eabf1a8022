"""One mutant: a tagged check of the source, what is done to it, and the tests that must notice."""

from dataclasses import dataclass

from security_checks.operations import Operation
from security_checks.tags import TAG, TagError, find_target


@dataclass(frozen=True, slots=True)
class Mutant:
    """A check by the slug of its tag, the operation that disables it, and the tests to run."""

    slug: str
    operation: Operation
    tests: str

    @property
    def name(self) -> str:
        """Slug and operation, since one check may have several mutants."""
        return f"{self.slug}: {self.operation.name}"

    def apply(self, text: str) -> str:
        """Return a source file, which has the tag, without the check."""
        return self.operation(find_target(text, self.slug))


@dataclass(frozen=True, slots=True)
class ScriptMutant:
    """A check in JavaScript, a statement on one line below its tag, which is removed."""

    slug: str
    tests: str

    @property
    def name(self) -> str:
        """Slug and what is done to the check."""
        return f"{self.slug}: line removed"

    def apply(self, text: str) -> str:
        """Return a script, which has the tag, without the check."""
        (tag,) = (match for match in TAG.finditer(text) if match["slug"] == self.slug)
        before = text[: tag.end() + 1]
        line, _, rest = text[tag.end() + 1 :].partition("\n")
        # Half of a statement would make a script that cannot be run, which any test notices.
        if not line.endswith(";"):
            raise TagError(f"{self.slug}: the line below the tag is no whole statement")
        return before + rest

"""One mutant: a tagged check of the source, what is done to it, and the tests that must notice."""

from dataclasses import dataclass

from security_checks.operations import Operation
from security_checks.tags import find_target


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

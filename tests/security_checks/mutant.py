"""One check that is removed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A check, by name; its text in a file of the protocol, what stands there without it, and the tests to ask."""

    name: str
    file: str
    text: str
    without: str
    tests: str

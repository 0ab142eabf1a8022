"""Writes docs/reference/api.md from the signatures and docstrings of the public names.

A docstring says what a name is for; then lines of the form `parameter: meaning`, a line `returns:
what`, and an example as in a Python session (`>>>`), which a test runs. `--check` fails if the page
is out of date.
"""

import doctest
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_overloads

from page import write

import faircount as fc
from faircount.analysis.groups import GroupedHistogram
from faircount.analysis.histogram import Histogram
from faircount.auditing.report import AuditReport, Verdict
from faircount.auditing.statistics import Claim, Finding
from faircount.client.participation import Participation
from faircount.client.participation_status import ParticipationStatus
from faircount.estimation.intervals import Intervals
from faircount.estimation.question_estimates import QuestionEstimates
from faircount.estimation.result import MeanResult
from faircount.estimation.sheet_estimates import Estimate
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.planning.option import Option
from faircount.planning.plan import Plan
from faircount.planning.statement import Statement

HEAD = """# The Python interface

Made by `python docs/generate/make_api.py` from signatures and docstrings; a test fails when this
page is out of date. Another test runs every example. Import the package as `fc`:

```python
import faircount as fc
```

[Your first histogram](../tutorials/first-histogram.md) and [Analyse a
table](../how-to/analyse-a-table.md) show these names in use. Every subcommand of [`faircount
survey`](cli.md#faircount-survey) is a method of [`Survey`](#survey); a test compares them. You do
not call the names under "What they return" yourself. What is not on this page
may change without notice.
"""

SECTIONS: dict[str, list[str]] = {
    "Ask, run, check": ["plan", "histogram", "questionnaire", "run", "privacy", "audit"],
    "Mechanisms": [
        "Laplace",
        "Decoys",
        "ServerJoint",
        "ServerLaplace",
        "ServerCoins",
        "PlacedCoins",
        "DPDG",
        "DPDS",
        "DPCS",
        "TSS",
        "TSSPrime",
        "GRR",
        "OUE",
        "Duchi",
        "PM",
        "register",
    ],
    "Privacy": ["Guarantee", "compose", "LedgerFile"],
    "Running a survey": ["Survey", "survey"],
    "Taking part in a survey": ["connect"],
    "Randomness and errors": ["SeededStream", "FaircountError"],
}
ABOUT = {
    "Mechanisms": """
Every mechanism has the same verbs: `respond` (what a client makes of its answer), `decode` (the
revealed sum as numbers), `estimate` (frequencies from them), `variance` (of the estimates, in
theory), `guarantee` (its exact privacy) and `draw` (an outcome from counts alone, for simulations:
10^8 users in milliseconds). `fc.run` calls them in order. [Privacy and
mechanisms](../explanation/privacy.md) compares them.
"""
}
RETURNED = (
    fc.Result,
    Histogram,
    GroupedHistogram,
    MeanResult,
    QuestionnaireResult,
    QuestionEstimates,
    Estimate,
    Intervals,
    Plan,
    Option,
    Statement,
    AuditReport,
    Verdict,
    Finding,
    Claim,
    Participation,
    ParticipationStatus,
)


def render() -> str:
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts += [
            f"## {title}\n{ABOUT.get(title, '')}",
            *(entry(name, getattr(fc, name)) for name in names),
        ]
    rest = sorted(
        set(fc.__all__) - {name for names in SECTIONS.values() for name in names} - {"Result"}
    )
    parts += ["## More\n", *(entry(name, getattr(fc, name)) for name in rest)] if rest else []
    parts += ["## What they return\n", *(entry(kind.__name__, kind) for kind in RETURNED)]
    return "\n".join(parts)


@dataclass
class Documentation:
    """A docstring in its parts."""

    words: list[str] = field(default_factory=list)
    parameters: list[tuple[str, str]] = field(default_factory=list)
    returns: str = ""
    example: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What stands before the parameters."""
        return "\n".join(self.words).strip()


def read_docstring(value: Any) -> Documentation:
    """Take the docstring of a public name apart."""
    found = Documentation()
    source = inspect.getdoc(value) or ""
    examples = set()
    for example in doctest.DocTestParser().get_examples(source):
        count = len((example.source + example.want).splitlines())
        examples |= set(range(example.lineno, example.lineno + count))
    for number, line in enumerate(source.splitlines()):
        head, colon, rest = line.partition(":")
        if number in examples:
            found.example.append(line)
        elif line.startswith("    ") and (found.parameters or found.returns):
            _continue_line(found, line.strip())
        elif colon and rest[:1] in (" ", "") and _are_names(head):
            _add_line(found, head, rest.strip())
        else:
            found.words.append(line)
    return found


def _are_names(head: str) -> bool:
    return bool(head) and all(part.isidentifier() for part in head.split(", "))


def _add_line(found: Documentation, head: str, rest: str) -> None:
    if head == "returns":
        found.returns = rest
    else:
        found.parameters.append((head, rest))


def _continue_line(found: Documentation, words: str) -> None:
    """A line that continues the one before."""
    if found.returns:
        found.returns += f" {words}"
    else:
        name, before = found.parameters[-1]
        found.parameters[-1] = (name, f"{before} {words}")


def entry(name: str, value: Any) -> str:
    """A heading, the signature, the docstring, what is returned, an example; of a class its public
    attributes.
    """
    known = read_docstring(value)
    parts = [f"### {heading(name, value)}", f"```python\n{signature(name, value)}\n```", known.text]
    if known.parameters:
        parts.append("\n".join(f"- `{names}`: {words}" for names, words in known.parameters))
    if not isinstance(value, type):
        parts.append(returned(value, known.returns))
    if known.example:
        parts.append("```pycon\n" + "\n".join(known.example) + "\n```")
    if value in RETURNED or value is fc.Survey:
        parts.append("\n".join(f"- `{title}`: {words}" for title, words in attributes(value)))
    return "\n\n".join(part for part in parts if part) + "\n"


def heading(name: str, value: Any) -> str:
    """A class that only comes back from functions is named as one: `Plan` and `plan` need two
    places on the page.
    """
    return f"class {name}" if value in RETURNED and value is not fc.Result else name


def returned(value: Any, words: str) -> str:
    """What a function returns: its type, with a link where the type is on this page, and the
    docstring's words.
    """
    annotation = inspect.signature(value).return_annotation
    shown = " or ".join(_linked(part) for part in type_name(annotation).split(" | "))
    return f"**Returns** {shown}" + (f": {words}" if words else "")


def _linked(kind: str) -> str:
    places = {known.__name__: heading(known.__name__, known) for known in RETURNED}
    places |= {name: name for names in SECTIONS.values() for name in names}
    if kind not in places:
        return f"`{kind}`"
    return f"[`{kind}`](#{places[kind].lower().replace(' ', '-')})"


def signature(name: str, value: Any) -> str:
    """With types; one parameter a line where it is long."""
    if value is fc.FaircountError:
        return f"class {name}(Exception)"
    given = [
        parameter
        for parameter in inspect.signature(value).parameters.values()
        if not parameter.name.startswith("_")
    ]
    shown = [show_parameter(parameter) for parameter in given]
    stars = [
        place for place, parameter in enumerate(given) if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if stars and not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in given):
        shown.insert(stars[0], "*")
    end = (
        ")"
        if isinstance(value, type)
        else f") -> {type_name(inspect.signature(value).return_annotation)}"
    )
    line = f"{name}({', '.join(shown)}{end}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + end


def show_parameter(given: inspect.Parameter) -> str:
    """Name, type and default as one would write them."""
    stars = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
    text = f"{stars}{given.name}"
    if given.annotation is not given.empty:
        text += f": {type_name(given.annotation)}"
    if given.default is given.empty:
        return text
    equals = " = " if ":" in text else "="
    return f"{text}{equals}{default(given.default)}"


def type_name(annotation: Any) -> str:
    """A type as one would write it, without the modules in which it is defined."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text.replace("~", ""))


def default(value: object) -> str:
    """A default as one would write it; `...` for a function or a fresh value."""
    is_factory = type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
    return "..." if is_factory or inspect.isroutine(value) else repr(value)


def attributes(kind: Any) -> Iterator[tuple[str, str]]:
    """Public methods and properties, with their types and the first paragraph of their docstring."""
    for name in sorted(name for name in dir(kind) if not name.startswith("_")):
        member = inspect.getattr_static(kind, name)
        words = inspect.getdoc(member) if hasattr(member, "__doc__") else None
        is_lazy = hasattr(member, "attrname")
        if words and (inspect.isroutine(member) or isinstance(member, property) or is_lazy):
            yield member_title(name, member), " ".join(words.split("\n\n")[0].split())


def member_title(name: str, member: Any) -> str:
    """A method with its parameters, or a property with its type."""
    function = getattr(member, "fget", None) or getattr(member, "func", None)
    if function is not None:
        annotation = inspect.signature(function).return_annotation
        return f"{name}: {type_name(annotation)}"
    function = getattr(member, "__func__", member)
    first = get_overloads(function)
    shape = inspect.signature(first[0] if first else function)
    given = [
        show_parameter(parameter)
        for parameter in shape.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return f"{name}({', '.join(given)}) -> {type_name(shape.return_annotation)}"


if __name__ == "__main__":
    write("reference/api.md", render())

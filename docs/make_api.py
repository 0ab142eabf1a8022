"""Writes docs/api.md from the docstrings of the public names. `--check` fails if the page is out of date."""

import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from page import write

import faircount as fc
from faircount.analysis.groups import GroupedHistogram
from faircount.analysis.histogram import Histogram
from faircount.auditing.runs import AuditReport
from faircount.estimation.intervals import Intervals
from faircount.estimation.result import MeanResult
from faircount.planning.option import Option
from faircount.planning.plan import Plan
from faircount.planning.statement import Statement
from faircount.service.client import Participation
from faircount.service.standing import Standing

HEAD = """# The Python interface

Made by `python docs/make_api.py` from the docstrings; a test fails when this page is out of date. `import faircount as fc` is
all that is needed; the [guide](guide.md) shows the names at work, and [every command](cli.md) has a function here.

Names under "What they return" are not called by hand. What is not on this page may change without notice.
"""

SECTIONS: dict[str, list[str]] = {
    "Ask, run, check": ["plan", "histogram", "run", "privacy", "audit", "costs"],
    "Mechanisms": [
        "Laplace",
        "Decoys",
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
    "Taking part in a survey": ["connect"],
    "Randomness and errors": ["SeededStream", "FaircountError"],
}
ABOUT = {
    "Mechanisms": """
Every mechanism has the same verbs: `respond` (what a user's device makes of its answer), `decode` (the opened sum as numbers),
`estimate` (frequencies from them), `variance` (of the estimates, in theory), `guarantee` (its exact privacy) and `draw` (an outcome
from counts alone, for simulations). `fc.run` calls them in order.
"""
}
RETURNED = (
    fc.Result,
    Histogram,
    GroupedHistogram,
    MeanResult,
    Intervals,
    Plan,
    Option,
    Statement,
    AuditReport,
    Participation,
    Standing,
)
FORMER = {"statement"}  # names that still work


def render() -> str:
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts += [f"## {title}\n{ABOUT.get(title, '')}", *(entry(name, getattr(fc, name)) for name in names)]
    rest = sorted(set(fc.__all__) - {name for names in SECTIONS.values() for name in names} - FORMER - {"Result"})
    parts += ["## More\n", *(entry(name, getattr(fc, name)) for name in rest)] if rest else []
    parts += ["## What they return\n", *(entry(each.__name__, each) for each in RETURNED)]
    return "\n".join(parts)


def entry(name: str, value: Any) -> str:
    """A heading, the signature, the docstring, and the public attributes of a class."""
    lines = [f"### {name}\n", f"```text\n{signature(name, value)}\n```\n", f"{documented(value)}\n"]
    if value in RETURNED:
        lines += [f"- `{title}`: {words}" for title, words in attributes(value)]
        lines.append("")
    return "\n".join(lines)


def signature(name: str, value: Any) -> str:
    """One parameter a line where it is long; types are left to the source."""
    if value is fc.FaircountError:
        return f"class {name}(Exception)"
    given = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(value).parameters.values()
        if not each.name.startswith("_")
    ]
    shown = [f"{each}" if each.default is each.empty else f"{each.name}={default(each.default)}" for each in given]
    stars = [i for i, each in enumerate(given) if each.kind is each.KEYWORD_ONLY]
    if stars and not any(each.kind is each.VAR_POSITIONAL for each in given):
        shown.insert(stars[0], "*")
    line = f"{name}({', '.join(shown)})"
    return (
        line if len(line) <= 100 else f"{name}(\n    {textwrap.fill(', '.join(shown), 96, subsequent_indent='    ')}\n)"
    )


def default(value: object) -> str:
    """A default as one would write it."""
    return "..." if type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else repr(value)


def documented(value: Any) -> str:
    """The docstring; lines of the form `name: words` become a list."""
    words, found = [], []
    for line in (inspect.getdoc(value) or "").splitlines():
        head, colon, rest = line.partition(":")
        if colon and rest[:1] in (" ", "") and head and all(part.isidentifier() for part in head.split(", ")):
            found.append(f"- `{head}`: {rest.strip()}")
        elif found and line.startswith("    "):
            found[-1] += f" {line.strip()}"
        else:
            words.append(line)
    text = "\n".join(words).strip()
    return f"{text}\n\n" + "\n".join(found) if found else text


def attributes(kind: Any) -> Iterator[tuple[str, str]]:
    """Public methods and properties with the first line of their docstring."""
    for name in sorted(name for name in dir(kind) if not name.startswith("_")):
        member = inspect.getattr_static(kind, name)
        words = inspect.getdoc(member) if hasattr(member, "__doc__") else None
        if words and (inspect.isroutine(member) or isinstance(member, property) or hasattr(member, "attrname")):
            call = "()" if inspect.isroutine(member) else ""
            yield f"{name}{call}", " ".join(words.split("\n\n")[0].split())


if __name__ == "__main__":
    write("api.md", render())

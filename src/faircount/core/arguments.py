"""Explain calls whose arguments do not fit, with an example of a call that does.

The same thing has another name on the command line and in other libraries: `--simulate-seed` and
`random_state` are `entropy` here. The error names the equivalent.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from faircount.core.errors import ParameterError

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")

# A seed protects nobody, so the hint says what it is for.
_SEEDED = ("entropy", "entropy=fc.SeededStream(1), for simulations only")

# Names from the command line and other libraries: the parameter that does the same, and its use.
_EQUIVALENTS = {
    "seed": _SEEDED,
    "random_state": _SEEDED,
    "simulate_seed": _SEEDED,
    "levels": ("groups", 'epsilon={"a": 0.5, "b": 2.0} with groups'),
    "claim_epsilon": ("epsilon", "epsilon"),
    "claim_delta": ("delta", "delta"),
    "eps": ("epsilon", "epsilon"),
    "dropout": ("minimum", 'minimum="95%"'),
}


def describe_unknown(unknown: Iterable[str], known: Iterable[str]) -> str:
    """The unknown names as a phrase, each with the parameter that was probably meant."""
    parameters = list(known)
    return ", ".join(f"{name}{_suggest(name, parameters)}" for name in unknown)


def _suggest(name: str, known: list[str]) -> str:
    """A hint in parentheses, or nothing."""
    parameter, usage = _EQUIVALENTS.get(name, ("", ""))
    if parameter in known:
        return f" (use {usage})"
    similar = get_close_matches(name, known, n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""


def describe_value(value: object) -> str:
    """A value of the wrong type, as an error message repeats it: text as such, else its type."""
    if isinstance(value, str):
        return f"the text {value!r:.40}"
    return f"an object of type {type(value).__name__}"


def explain_arguments(
    example: str,
) -> Callable[[Callable[_Given, _Returned]], Callable[_Given, _Returned]]:
    """Make a function say which arguments are missing or unknown; `example` is a call of it."""

    def decorate(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
        form = signature(function)

        @wraps(function)
        def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
            try:
                form.bind(*args, **kwargs)
            except TypeError as problem:
                # Python's own message names what is missing, or says that there is too much.
                fault = f": {problem}"
                unknown = [name for name in kwargs if name not in form.parameters]
                if unknown:
                    fault = f" has no {describe_unknown(unknown, form.parameters)}"
                raise ParameterError(
                    f"{function.__name__}{fault}; call it as in {example}"
                ) from None
            return function(*args, **kwargs)

        return call

    return decorate

"""The guarantee of a mechanism of a user's own, by what it says of itself."""

from dataclasses import fields
from typing import Any

from faircount.accounting.guarantee import Relation
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.registry import mechanism
from faircount.planning.compose import compose
from faircount.planning.statement import Statement


def of_mechanism(made: Mechanism, *, epsilon: float | None, delta: float | None, releases: int = 1) -> Statement:
    """Of any mechanism, by what it says of itself: at its own promise where neither epsilon nor delta is given."""
    if (epsilon, delta) == (None, None):
        epsilon = made.stated()[0].epsilon if releases == 1 else releases * made.stated()[0].epsilon
    if integer("releases", releases, least=1) > 1:
        said, zero = compose(*[made] * releases, epsilon=epsilon, delta=delta), None
    else:
        said = made.guarantee(epsilon=epsilon, delta=delta)
        zero = made.guarantee(epsilon=said.epsilon, relation=Relation.ZERO_OUT).delta
    more = {
        each.name: getattr(made, each.name) for each in fields(made) if each.name not in ("items", "epsilon", "delta")
    }
    return Statement(made.name, said.epsilon, said.delta, zero, said.adversary, said.condition, releases, more=more)


USUAL = {"items": 2, "users": 1000}
"""Of a registered mechanism, where nothing else is given: neither matters for the privacy of most."""


def registered(name: str, parameters: dict[str, Any]) -> Statement:
    """A mechanism of a user's own: its fields are its parameters, epsilon and delta are asked for where it has none."""
    kind = mechanism(name)
    own = {each.name for each in fields(kind)}
    strange = [each for each in parameters if each not in (*own, "epsilon", "delta", "releases")]
    if strange:
        raise ParameterError(f"{name} has no {', '.join(strange)}; it takes {', '.join(sorted(own))} and releases")
    known = {key: value for key, value in {**USUAL, **parameters}.items() if key in own}
    asked = {key: None if key in own else parameters.get(key) for key in ("epsilon", "delta")}
    try:
        made = kind(**known)
    except TypeError as problem:
        raise ParameterError(f"{name}: {str(problem).split('() ')[-1]}") from None
    return of_mechanism(made, releases=parameters.get("releases", 1), **asked)

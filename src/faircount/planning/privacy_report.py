"""The guarantee of given parameters, exact or a bound, with what the paper says beside it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from inspect import signature
from typing import Any

from faircount.accounting.guarantee import Relation
from faircount.core.arguments import describe_unknown, describe_value, explain_arguments
from faircount.core.errors import ParameterError
from faircount.core.validation import check_integer
from faircount.mechanisms.registry import mechanism as kind_named
from faircount.mechanisms.registry import names
from faircount.planning.compose import compose as compose_mechanisms
from faircount.planning.one_question import JOINT, SHEETS
from faircount.planning.paper_statements import MAKERS
from faircount.planning.sheet_privacy import state_sheets
from faircount.planning.statement import Statement

# Defaults for mechanisms that state their own guarantee; neither matters for most of them.
DEFAULTS = {"items": 2, "users": 1000}


def state_own(name: str, parameters: dict[str, Any]) -> Statement:
    """A mechanism that states its own guarantee; its fields are its parameters.

    Epsilon or delta is a question about it, if they are not fields. Without either the guarantee is
    that which the mechanism was built for.
    """
    kind = kind_named(name)
    releases = check_integer("releases", parameters.get("releases", 1), least=1)
    own = [field.name for field in fields(kind)]
    unknown = set(parameters).difference(own, ("epsilon", "delta", "releases"))
    if unknown:
        raise ParameterError(
            f"{name} has no {describe_unknown(sorted(unknown), own)}; it takes "
            f"{', '.join(sorted(own))} and releases"
        )
    known = {key: value for key, value in {**DEFAULTS, **parameters}.items() if key in own}
    try:
        made = kind(**known)
    # Python's own message names the parameter that is missing.
    except TypeError as problem:
        raise ParameterError(f"{name}: {str(problem).split('() ')[-1]}") from None
    # A field is a property of the mechanism; only what is not a field is a question about it.
    epsilon = None if "epsilon" in own else parameters.get("epsilon")
    delta = None if "delta" in own else parameters.get("delta")
    if (epsilon, delta) == (None, None):
        # What was built for, as often as it is released: the composition at it gives the delta.
        epsilon = releases * made.stated_guarantees()[0].epsilon
    if releases > 1:
        stated = compose_mechanisms(*[made] * releases, epsilon=epsilon, delta=delta)
        zero = None
    else:
        stated = made.guarantee(epsilon=epsilon, delta=delta)
        zero = made.guarantee(epsilon=stated.epsilon, relation=Relation.ZERO_OUT).delta
    shown = [field for field in own if field not in ("items", "epsilon", "delta")]
    more = {field: getattr(made, field) for field in shown}
    return Statement(
        name,
        stated.epsilon,
        stated.delta,
        zero,
        stated.adversary,
        stated.condition,
        releases,
        more=more,
    )


@explain_arguments('fc.privacy("laplace", epsilon=1.0)')
def privacy(mechanism: str, **parameters: Any) -> Statement:
    """The guarantee of a mechanism with given parameters, and what the paper prints for it.

    For example `privacy("dpds", p=0.2, floor=30, epsilon=0.3)`. Give delta instead of epsilon to
    have epsilon computed. `floor` is the k of the formula. Delta is exact, or `is_bound` says that
    it is an upper bound: for dpds and dpcs with insiders or dropouts.

    mechanism: its name, in small letters
    parameters: those that `faircount privacy --help` lists for it; an error says which one is
        missing. A mechanism that is not in the paper, or one of your own (`register`), takes its
        own fields
    returns: the guarantee, and the paper's values where it has a theorem

    >>> round(fc.privacy("dpds", p=0.2, floor=30, epsilon=0.3).delta, 6)
    0.000651
    """
    if not isinstance(mechanism, str):
        raise ParameterError(
            'privacy takes the name of a mechanism, as in fc.privacy("laplace", epsilon=1.0), not '
            f"{describe_value(mechanism)}; a mechanism itself has the method guarantee()"
        )
    if mechanism == SHEETS or "questionnaire" in parameters:
        return _state_questionnaire(mechanism, parameters)
    if mechanism not in MAKERS and mechanism in names():
        return state_own(mechanism, parameters)
    _check(mechanism, parameters)
    return replace(MAKERS[mechanism](**parameters), mechanism=mechanism)


def _state_questionnaire(mechanism: str, parameters: Mapping[str, Any]) -> Statement:
    """The guarantee of a mechanism that counts whole questionnaires."""
    if mechanism not in (JOINT, SHEETS):
        raise ParameterError(f"a questionnaire is counted by {JOINT} and {SHEETS}")
    takes = list(signature(state_sheets).parameters)[1:]
    strange = [name for name in parameters if name not in takes]
    if strange or not {"questionnaire", "epsilon"} <= set(parameters):
        raise ParameterError(
            f"privacy of {mechanism} needs questionnaire and epsilon; it takes {', '.join(takes)}"
        )
    return state_sheets(mechanism, **parameters)


def _check(mechanism: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a mechanism without its parameters, or with those of another."""
    if mechanism not in MAKERS:
        raise ParameterError(f"mechanism must be one of {', '.join((*names(), 'gaussian'))}")
    takes = {**signature(MAKERS[mechanism]).parameters}
    takes["releases"] = takes.pop("releases")  # goes with every mechanism, and is named last
    lacking = [
        name
        for name, parameter in takes.items()
        if parameter.default is parameter.empty and name not in parameters
    ]
    strange = [name for name in parameters if name not in takes]
    faults = []
    if strange:
        faults.append(f"has no {describe_unknown(strange, takes)}")
    if lacking:
        faults.append(f"needs {', '.join(lacking)}")
    if faults:
        fault = " and ".join(faults)
        raise ParameterError(f"privacy of {mechanism} {fault}; it takes {', '.join(takes)}")

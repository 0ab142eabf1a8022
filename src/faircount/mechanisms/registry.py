"""All mechanisms by the name that the command line and published parameters use.

A mechanism of the package is one line in a table below. A mechanism of your own is registered where
it is defined:

    @register
    @dataclass(frozen=True, kw_only=True)
    class Mine(Laplace):
        name = "mine"

It can then be planned, audited and run like any other, and, if it makes shares, its published
parameters can be parsed. The tables contain strings, so that the command line can list the names
without importing any mechanism.
"""

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.mechanisms.base import FrequencyMechanism, Mechanism
    from faircount.mechanisms.secret_shared import FieldMechanism

# Name -> module and class. The planner breaks ties between equal errors in this order.
FREQUENCY = {
    "laplace": ("laplace", "Laplace"),
    "decoys": ("decoys", "Decoys"),
    "server-joint": ("server_joint", "ServerJoint"),
    "server-laplace": ("server_noise", "ServerLaplace"),
    "server-coins": ("server_noise", "ServerCoins"),
    "placed-coins": ("placed_coins", "PlacedCoins"),
    "dpdg": ("gaussian", "DPDG"),
    "dpds": ("sampling", "DPDS"),
    "tss-prime": ("two_stage", "TSSPrime"),
    "tss": ("two_stage", "TSS"),
    "dpcs": ("sampling", "DPCS"),
    "oue": ("local_frequency", "OUE"),
    "grr": ("local_frequency", "GRR"),
}

# Mechanisms that count whole questionnaires. Surveys run them in place of another class of the same
# name, if there is one.
SURVEY = {
    "server-joint": ("server_sheets", "ServerSheets"),
    "server-levels": ("server_levels", "ServerLevels"),
    "laplace-sheets": ("laplace_sheets", "LaplaceSheets"),
}

# The same for mechanisms that estimate a mean.
MEAN = {"duchi": ("local_mean", "Duchi"), "pm": ("local_mean", "PM")}

_registered: "dict[str, type[Mechanism]]" = {}

Kind = TypeVar("Kind", bound="type[Mechanism]")


def register(kind: Kind) -> Kind:
    """Register a mechanism of your own (a class decorator).

    kind: a concrete subclass of a mechanism with a `name` that is not in use
    returns: the class itself

    >>> from dataclasses import dataclass
    >>> @fc.register
    ... @dataclass(frozen=True, kw_only=True)
    ... class Renamed(fc.Laplace):
    ...     "Laplace noise under a name of your own."
    ...     name = "renamed"
    >>> fc.privacy("renamed", epsilon=1.0).epsilon
    1.0
    """
    from faircount.mechanisms.base import Mechanism

    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        raise ParameterError("only a subclass of a mechanism can be registered")
    # An inherited name does not count: it belongs to the base class.
    name = kind.__dict__.get("name")
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{kind.__name__}: give it a name of its own, as in name = 'mine'")
    # The same class may be registered again, as when a notebook cell is run twice.
    if name in names() and not _is_redefinition(name, kind):
        raise ParameterError(f"the name {name!r} is taken by another mechanism: choose another one")
    _registered[name] = kind
    return kind


def _is_redefinition(name: str, kind: "type[Mechanism]") -> bool:
    """Whether the class registered under this name has the same module and qualified name."""
    before = _registered.get(name)
    if before is None:
        return False
    return before.__module__ == kind.__module__ and before.__qualname__ == kind.__qualname__


def names() -> tuple[str, ...]:
    """Return the names of all mechanisms without importing one."""
    return (*FREQUENCY, *MEAN, *_registered)


def frequency_names() -> tuple[str, ...]:
    """Return the names of the frequency mechanisms in the planner's order of preference."""
    # Only frequency mechanisms have `calibrate`; the base class is not imported to find out.
    own = (name for name, kind in _registered.items() if hasattr(kind, "calibrate"))
    return (*FREQUENCY, *own)


def mechanism(name: str) -> "type[Mechanism]":
    """Return the class of the mechanism with this name."""
    if name in _registered:
        return _registered[name]
    if name not in names():
        raise ParameterError(f"mechanism must be one of {', '.join(names())}, not {name!r:.40}")
    return _load({**FREQUENCY, **MEAN}[name])


def _load(place: tuple[str, str]) -> "type[Mechanism]":
    module, attribute = place
    found: type[Mechanism] = getattr(import_module(f"faircount.mechanisms.{module}"), attribute)
    return found


def frequency_mechanisms() -> "dict[str, type[FrequencyMechanism]]":
    """Return the classes of the frequency mechanisms in the planner's order of preference."""
    from faircount.mechanisms.base import FrequencyMechanism

    classes = ((name, mechanism(name)) for name in frequency_names())
    return {name: kind for name, kind in classes if issubclass(kind, FrequencyMechanism)}


def shared_mechanisms() -> "dict[str, type[FieldMechanism]]":
    """Return the mechanisms that make shares, which are those that a survey can run."""
    from faircount.mechanisms.secret_shared import FieldMechanism

    classes = {name: mechanism(name) for name in frequency_names()}
    classes |= {name: _load(place) for name, place in SURVEY.items()}
    return {name: kind for name, kind in classes.items() if issubclass(kind, FieldMechanism)}

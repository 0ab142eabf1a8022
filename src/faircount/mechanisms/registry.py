"""The one list of mechanisms, by the name used on the command line and in published parameters.

A mechanism of the package is a line of a table below; one of a user's own is registered where it is defined:

    @register
    @dataclass(frozen=True, kw_only=True)
    class Mine(Laplace):
        name = "mine"

It is then planned, audited, run and, if it makes shares, published and parsed like any other. The tables hold text, so
that the command line can offer the names without loading a mechanism.
"""

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.mechanisms.base import FrequencyMechanism, Mechanism
    from faircount.mechanisms.secret_shared import FieldMechanism

FREQUENCY = {
    "laplace": ("laplace", "Laplace"),
    "decoys": ("decoys", "Decoys"),
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
"""Name -> module and class, in the order in which the planner prefers equal errors."""

MEAN = {"duchi": ("local_mean", "Duchi"), "pm": ("local_mean", "PM")}
"""The same for mechanisms that estimate a mean."""

_registered: "dict[str, type[Mechanism]]" = {}

Kind = TypeVar("Kind", bound="type[Mechanism]")


def register(kind: Kind) -> Kind:
    """Add a mechanism of your own (a decorator).

    kind: a concrete subclass of a mechanism with a `name` that is not taken
    """
    from faircount.mechanisms.base import Mechanism

    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        raise ParameterError("only a subclass of a mechanism can be registered")
    name = kind.__dict__.get("name")
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{kind.__name__}: give it a name of its own, as in name = 'mine'")
    before = _registered.get(name)
    again = before is not None and (before.__module__, before.__qualname__) == (kind.__module__, kind.__qualname__)
    if name in names() and not again:  # the same class again is a notebook cell that runs a second time
        raise ParameterError(f"the name {name!r} is taken by another mechanism: choose another one")
    _registered[name] = kind
    return kind


def names() -> tuple[str, ...]:
    """Every mechanism's name; nothing is loaded."""
    return (*FREQUENCY, *MEAN, *_registered)


def frequency_names() -> tuple[str, ...]:
    """Those for frequencies, in the order in which the planner prefers equal errors."""
    own = (name for name, kind in _registered.items() if hasattr(kind, "calibrated"))
    return (*FREQUENCY, *own)


def mechanism(name: str) -> "type[Mechanism]":
    """The class of this name."""
    if name in _registered:
        return _registered[name]
    if name not in names():
        raise ParameterError(f"mechanism must be one of {', '.join(names())}, not {name!r:.40}")
    module, attribute = {**FREQUENCY, **MEAN}[name]
    found: type[Mechanism] = getattr(import_module(f"faircount.mechanisms.{module}"), attribute)
    return found


def frequency_mechanisms() -> "dict[str, type[FrequencyMechanism]]":
    """Every mechanism for frequencies, in the order in which the planner prefers equal errors."""
    from faircount.mechanisms.base import FrequencyMechanism

    every = ((name, mechanism(name)) for name in frequency_names())
    return {name: kind for name, kind in every if issubclass(kind, FrequencyMechanism)}


def shared_mechanisms() -> "dict[str, type[FieldMechanism]]":
    """Those that make shares: a survey between devices runs them, and its published parameters name them."""
    from faircount.mechanisms.secret_shared import FieldMechanism

    return {name: kind for name, kind in frequency_mechanisms().items() if issubclass(kind, FieldMechanism)}

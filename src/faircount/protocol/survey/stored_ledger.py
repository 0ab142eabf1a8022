"""A ledger as bytes: canonical JSON with a version and a checksum, which people can read as well.

Real numbers are written as Python prints them, which is exact for every float. Bytes of another
version, damaged bytes and any other bytes are refused: a ledger that reads as less than was spent
would be worse than none. The checksum is a SHA-256: it detects corruption and is not a MAC.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeVar

from faircount.core.errors import InputError, MalformedError, ProtocolError
from faircount.protocol.survey.budget import Charge, Ledger, Status
from faircount.protocol.wire import canonical_json

VERSION = 1
KIND = "faircount ledger"
T = TypeVar("T")


def encode(ledger: Ledger) -> bytes:
    """The stored form of a ledger."""
    plain = {
        "kind": KIND,
        "version": VERSION,
        "population": ledger.population,
        "epsilon": repr(ledger.epsilon),
        "delta": repr(ledger.delta),
        "adaptive": ledger.adaptive,
        "charges": [_charge_to_plain(charge) for charge in ledger.charges],
        "changes": ledger.version,
        "heads": [head.hex() for head in ledger.heads],
        "closed": ledger.closed,
    }
    data = canonical_json.encode({**plain, "check": _checksum(plain)})
    # Refused here, before it is stored: `decode` could not read it back.
    if len(data) > canonical_json.MAX_BYTES:
        raise ProtocolError("this ledger has too many charges to be stored: open a new population")
    return data


def decode(data: bytes) -> Ledger:
    """The ledger that these bytes encode; any other bytes are refused."""
    plain = canonical_json.decode(data)
    if not isinstance(plain, dict) or plain.get("kind") != KIND:
        raise MalformedError("these bytes are no ledger of faircount")
    if plain.get("version") != VERSION:
        raise MalformedError(
            f"this ledger has version {plain.get('version')}, and this faircount reads {VERSION}"
        )
    if plain.pop("check", None) != _checksum(plain):
        raise MalformedError(
            "this ledger was changed or damaged: restore it from a copy, and charge what is missing"
        )
    try:
        # A matching checksum proves nothing about who wrote it: every field is checked as well.
        ledger = _ledger_from_plain(plain)
        # Encoding again finds unknown fields, and numbers that are not written in their one form.
        is_whole = encode(ledger) == data
    except (KeyError, TypeError, ValueError, AttributeError, InputError):
        is_whole = False
    if not is_whole:
        raise MalformedError("this ledger lacks a field, or has one that means nothing")
    return ledger


def _checksum(plain: Mapping[str, Any]) -> str:
    return sha256(canonical_json.encode(plain)).hexdigest()


def _charge_to_plain(charge: Charge) -> dict[str, Any]:
    return {
        "survey": charge.survey.hex(),
        "epsilon": repr(charge.epsilon),
        "delta": repr(charge.delta),
        "status": str(charge.status),
        "label": charge.label,
        "reservation": charge.reservation,
    }


def _ledger_from_plain(plain: Mapping[str, Any]) -> Ledger:
    return Ledger(
        _require_type(str, plain["population"]),
        float(plain["epsilon"]),
        float(plain["delta"]),
        _require_type(bool, plain["adaptive"]),
        tuple(map(_charge_from_plain, plain["charges"])),
        _require_type(int, plain["changes"]),
        tuple(map(bytes.fromhex, plain["heads"])),
        _require_type(bool, plain["closed"]),
    )


def _require_type(kind: type[T], value: object) -> T:
    """The value, which must be of exactly this type: in Python, True is an integer as well."""
    if type(value) is not kind:
        raise TypeError
    return value


def _charge_from_plain(plain: Mapping[str, Any]) -> Charge:
    return Charge(
        bytes.fromhex(plain["survey"]),
        float(plain["epsilon"]),
        float(plain["delta"]),
        Status(plain["status"]),
        _require_type(str, plain["label"]),
        _require_type(int, plain["reservation"]),
    )

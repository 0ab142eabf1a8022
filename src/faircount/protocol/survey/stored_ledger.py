"""A ledger as bytes, in exactly one way: canonical JSON with a version and a check, that a person can read too.

Numbers are written as Python prints them, which is exact for every float. Bytes of another version, bytes that were
changed and bytes that are no ledger are refused: a ledger that reads as less than was spent would be worse than none.
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
    """The stored form."""
    body = {
        "kind": KIND,
        "version": VERSION,
        "population": ledger.population,
        "epsilon": repr(ledger.epsilon),
        "delta": repr(ledger.delta),
        "adaptive": ledger.adaptive,
        "charges": [_charge(each) for each in ledger.charges],
        "changes": ledger.version,
        "heads": [each.hex() for each in ledger.heads],
        "closed": ledger.closed,
    }
    data = canonical_json.encode({**body, "check": _check(body)})
    if len(data) > canonical_json.MOST_BYTES:
        raise ProtocolError("this ledger has too many charges to be stored: open a new population")
    return data


def decode(data: bytes) -> Ledger:
    """The ledger behind these bytes; any others are refused."""
    body = canonical_json.decode(data)
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise MalformedError("these bytes are no ledger of faircount")
    if body.get("version") != VERSION:
        raise MalformedError(f"this ledger has version {body.get('version')}, and this faircount reads {VERSION}")
    if body.pop("check", None) != _check(body):
        raise MalformedError("this ledger was changed or damaged: restore it from a copy, and charge what is missing")
    try:
        found = _ledger(body)
        whole = encode(found) == data
    except (KeyError, TypeError, ValueError, AttributeError, InputError):
        whole = False
    if not whole:
        raise MalformedError("this ledger lacks a field, or has one that means nothing")
    return found


def _check(body: Mapping[str, Any]) -> str:
    return sha256(canonical_json.encode(body)).hexdigest()


def _charge(charge: Charge) -> dict[str, Any]:
    return {
        "survey": charge.survey.hex(),
        "epsilon": repr(charge.epsilon),
        "delta": repr(charge.delta),
        "status": str(charge.status),
        "label": charge.label,
        "receipt": charge.receipt,
    }


def _ledger(body: Mapping[str, Any]) -> Ledger:
    return Ledger(
        _kept(str, body["population"]),
        float(body["epsilon"]),
        float(body["delta"]),
        _kept(bool, body["adaptive"]),
        tuple(_charged(each) for each in body["charges"]),
        _kept(int, body["changes"]),
        tuple(bytes.fromhex(each) for each in body["heads"]),
        _kept(bool, body["closed"]),
    )


def _kept(kind: type[T], value: object) -> T:
    """The value, which must be of exactly this kind: to JSON true is no number."""
    if type(value) is not kind:
        raise TypeError
    return value


def _charged(each: Mapping[str, Any]) -> Charge:
    return Charge(
        bytes.fromhex(each["survey"]),
        float(each["epsilon"]),
        float(each["delta"]),
        Status(each["status"]),
        _kept(str, each["label"]),
        _kept(int, each["receipt"]),
    )

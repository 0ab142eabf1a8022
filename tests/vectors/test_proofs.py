"""Validity proofs, replayed by a second implementation in lists of whole numbers.

It was written from test_vectors/README.md alone and shares no code with the library.
"""

import hmac
import json
from hashlib import sha256
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

FOLDER = Path(__file__).parents[2] / "test_vectors"


def cases(name: str) -> list:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def tagged_hash(purpose: str, *parts: bytes) -> bytes:
    return sha256(b"faircount/1/" + purpose.encode() + b"\0" + b"".join(parts)).digest()


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, ikm, "sha256"), info + b"\1", "sha256")


def stream(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def expand(key: bytes, q: int, wanted: int) -> list[int]:
    data = stream(key, 64 + 4 * wanted)
    words = (int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))
    return [word % q for word in words if word < (1 << 16) // q * q][:wanted]


def unpack(data: bytes, q: int, wanted: int) -> list[int]:
    together = next(g for g in range(1, 54) if q ** (g + 1) > 1 << 53)
    bits = (q**together - 1).bit_length()
    whole = int.from_bytes(data, "little")
    elements: list[int] = []
    for position in range(-(-wanted // together)):
        group = whole >> position * bits & ((1 << bits) - 1)
        elements += [group // q**digit % q for digit in range(together)]
    return elements[:wanted]


# Polynomials over F_q are lists of coefficients, lowest first.


def product(a: list[int], b: list[int], q: int) -> list[int]:
    found = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] = (found[i + j] + x * y) % q
    return found


def divide(high: list[int], low: list[int], q: int) -> tuple[list[int], list[int]]:
    """Quotient and remainder; the highest coefficient of the divisor is 1."""
    rest = list(high)
    quotient = []
    while len(rest) >= len(low):
        top = rest[-1]
        quotient.append(top)
        for i, coefficient in enumerate(reversed(low)):
            rest[-1 - i] = (rest[-1 - i] - top * coefficient) % q
        rest.pop()
    return quotient[::-1], rest


def vanishing_polynomial(size: int, q: int) -> list[int]:
    z = [1]
    for point in range(size):
        z = product(z, [-point % q, 1], q)
    return z


def interpolate(values: list[int], q: int) -> list[int]:
    """The polynomial of least degree with these values at 0, 1, ..."""
    total = [0] * len(values)
    for i, value in enumerate(values):
        basis = [1]
        scale = 1
        for j in range(len(values)):
            if j != i:
                basis = product(basis, [-j % q, 1], q)
                scale = scale * (i - j) % q
        factor = value * pow(scale, -1, q)
        total = [(t + factor * c) % q for t, c in zip(total, basis, strict=True)]
    return total


def at_point(polynomial: list[int], case: dict) -> list[int]:
    """A polynomial's value in the extension, by Horner's rule."""
    q = case["q"]
    value = [0] * case["degree"]
    for coefficient in reversed(polynomial):
        value = divide(product(value, case["point"], q), case["modulus"], q)[1]
        value[0] = (value[0] + coefficient) % q
    return value


def split_row(row: list[int], case: dict) -> tuple[list[int], list[int]]:
    """f and h of a row, or of a share of one."""
    q = case["q"]
    size = case["bits"] + case["coins"]
    k = case["degree"]
    masked = product(vanishing_polynomial(size, q), row[size : size + k], q)
    plain = interpolate(row[:size], q) + [0] * k
    return [(a + b) % q for a, b in zip(plain, masked, strict=True)], row[size + k :]


def verifier_share(row: list[int], case: dict) -> list[int]:
    f, h = split_row(row, case)
    sums = [
        sum(weight * row[bit] for bit, weight in constraint["weights"]) % case["q"]
        for constraint in case["constraints"]
    ]
    return [*at_point(f, case), *at_point(h, case), *sums]


def is_accepted(case: dict, first: list[int], second: list[int]) -> bool:
    q = case["q"]
    k = case["degree"]
    modulus = case["modulus"]
    whole = [(a + b) % q for a, b in zip(first, second, strict=True)]
    f = whole[:k]
    h = whole[k : 2 * k]
    z = at_point(vanishing_polynomial(case["bits"] + case["coins"], q), case)
    left = divide(product(f, [(f[0] - 1) % q, *f[1:]], q), modulus, q)[1]
    values = [constraint["value"] % q for constraint in case["constraints"]]
    return left == divide(product(z, h, q), modulus, q)[1] and whole[2 * k :] == values


def replay(case: dict, report: dict) -> None:
    """Check shares, verifier shares and decision of a report."""
    q = case["q"]
    row = report["row"]
    second = expand(bytes.fromhex(report["key"]), q, len(row))
    first = unpack(bytes.fromhex(report["share"]), q, len(row))
    assert [(a + b) % q for a, b in zip(first, second, strict=True)] == row
    assert verifier_share(first, case) == report["verifier_share_1"]
    assert verifier_share(second, case) == report["verifier_share_2"]
    assert (
        is_accepted(case, report["verifier_share_1"], report["verifier_share_2"])
        == report["accepted"]
    )


def digest_of(case: dict) -> bytes:
    return tagged_hash("params", case["published"].encode())


@pytest.mark.parametrize(
    "case", cases("proven_reports"), ids=lambda case: f"{case['bits']} bits, {case['coins']} coins"
)
def test_proven_reports(case) -> None:
    key = hkdf(bytes.fromhex(case["v1"] + case["v2"]), digest_of(case), tagged_hash("query"))
    k = case["degree"]
    elements = expand(key, case["q"], 10 * k)
    candidates = (elements[number * k : number * k + k] for number in count())
    # A point of the base field would make the query weaker: it is skipped.
    assert next(point for point in candidates if any(point[1:])) == case["point"]
    published = json.loads(case["published"])
    assert published["derived"]["proof"]["degree"] == k
    assert published["derived"]["proof"]["modulus"] == case["modulus"]
    assert (
        published["keys"]["coordinator_commitment"] == sha256(bytes.fromhex(case["v1"])).hexdigest()
    )
    assert (
        published["keys"]["aggregator_commitment"] == sha256(bytes.fromhex(case["v2"])).hexdigest()
    )
    for report in case["reports"]:
        f, h = split_row(report["row"], case)
        square = product(f, [(f[0] - 1) % case["q"], *f[1:]], case["q"])
        whole, rest = divide(
            square, vanishing_polynomial(case["bits"] + case["coins"], case["q"]), case["q"]
        )
        assert whole == h
        assert not any(rest)
        replay(case, report)
        assert report["accepted"]


def test_sheets() -> None:
    """Every sheet satisfies the constraints, and its cells are the weighted sums of its bits."""
    (case,) = cases("sheets")
    for sheet in case["sheets"]:
        bits = sheet["bits"]
        assert set(bits) <= {0, 1}
        for constraint in case["constraints"]:
            total = sum(weight * bits[bit] for bit, weight in constraint["weights"])
            assert total == constraint["value"]
        cells = [
            sum(weight * bits[bit] for bit, weight in opening["weights"])
            for opening in case["openings"]
        ]
        assert cells == sheet["cells"]


@pytest.mark.parametrize("case", cases("bad_reports"), ids=lambda case: case["why"])
def test_bad_reports(case) -> None:
    replay(case, case)
    assert not case["accepted"]


def test_placed_coins() -> None:
    (case,) = cases("placed_coins")
    members = bytes.fromhex(case["members"])
    n = sum(byte.bit_count() for byte in members)
    published = json.loads(case["published"])
    info = tagged_hash("coins", bytes.fromhex(case["manifest_hash"]), members)
    key = hkdf(bytes.fromhex(case["v1"] + case["v2"]), digest_of(case), info)
    rows = published["derived"]["D"]
    items = len(published["questions"][0]["items"])
    data = stream(key, 8 * n + rows * items)
    tags = [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(n)]
    order = sorted(range(n), key=tags.__getitem__)
    slots = np.arange(rows)[:, np.newaxis] + rows * np.arange(items)
    assert np.array(order)[slots % n].tolist() == case["user"]
    assert (slots // n).tolist() == case["coin"]
    bits = np.unpackbits(np.frombuffer(data[8 * n :], dtype=np.uint8))
    assert bits[: rows * items].reshape(rows, items).tolist() == case["turned"]
    # The coins of one item are of different clients, and no coin counts twice.
    assert all(len(set(column)) == rows for column in zip(*case["user"], strict=True))
    users = np.ravel(case["user"]).tolist()
    coins = np.ravel(case["coin"]).tolist()
    assert len(set(zip(users, coins, strict=True))) == len(users)

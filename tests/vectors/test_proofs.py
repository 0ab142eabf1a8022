"""Proven reports, replayed by a second implementation in lists of whole numbers, written from the vectors' README."""

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


def labelled(purpose: str, *parts: bytes) -> bytes:
    return sha256(b"faircount/1/" + purpose.encode() + b"\0" + b"".join(parts)).digest()


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, ikm, "sha256"), info + b"\1", "sha256")


def stream(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def expanded(key: bytes, q: int, wanted: int) -> list[int]:
    data = stream(key, 64 + 4 * wanted)
    words = (int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))
    return [word % q for word in words if word < (1 << 16) // q * q][:wanted]


def unpacked(data: bytes, q: int, wanted: int) -> list[int]:
    together = next(g for g in range(1, 54) if q ** (g + 1) > 1 << 53)
    bits, whole = (q**together - 1).bit_length(), int.from_bytes(data, "little")
    groups = [whole >> at * bits & ((1 << bits) - 1) for at in range(-(-wanted // together))]
    return [group // q**at % q for group in groups for at in range(together)][:wanted]


# polynomials over F_q are lists, lowest coefficient first


def product(a: list[int], b: list[int], q: int) -> list[int]:
    found = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] = (found[i + j] + x * y) % q
    return found


def divided(high: list[int], low: list[int], q: int) -> tuple[list[int], list[int]]:
    """Quotient and remainder; the highest coefficient of the divisor is 1."""
    rest, found = list(high), []
    while len(rest) >= len(low):
        top = rest[-1]
        found.append(top)
        for i, each in enumerate(reversed(low)):
            rest[-1 - i] = (rest[-1 - i] - top * each) % q
        rest.pop()
    return found[::-1], rest


def vanishing(size: int, q: int) -> list[int]:
    z = [1]
    for point in range(size):
        z = product(z, [-point % q, 1], q)
    return z


def through(values: list[int], q: int) -> list[int]:
    """The polynomial of least degree with these values at 0, 1, ..."""
    total = [0] * len(values)
    for i, value in enumerate(values):
        one, scale = [1], 1
        for j in range(len(values)):
            if j != i:
                one, scale = product(one, [-j % q, 1], q), scale * (i - j) % q
        total = [(t + value * pow(scale, -1, q) * c) % q for t, c in zip(total, one, strict=True)]
    return total


def at_point(polynomial: list[int], case: dict) -> list[int]:
    """A polynomial's value in the extension, by Horner's rule."""
    q, modulus, value = case["q"], case["modulus"], [0] * case["degree"]
    for each in reversed(polynomial):
        value = divided(product(value, case["point"], q), modulus, q)[1]
        value[0] = (value[0] + each) % q
    return value


def parts(row: list[int], case: dict) -> tuple[list[int], list[int]]:
    """f and h of a row, or of a share of one."""
    q, size, k = case["q"], case["items"] + case["coins"], case["degree"]
    masked = product(vanishing(size, q), row[size : size + k], q)
    plain = through(row[:size], q) + [0] * k
    return [(a + b) % q for a, b in zip(plain, masked, strict=True)], row[size + k :]


def answers(row: list[int], case: dict) -> list[int]:
    f, h = parts(row, case)
    return [*at_point(f, case), *at_point(h, case), sum(row[: case["items"]]) % case["q"]]


def accepted(case: dict, first: list[int], second: list[int]) -> bool:
    q, k, modulus = case["q"], case["degree"], case["modulus"]
    whole = [(a + b) % q for a, b in zip(first, second, strict=True)]
    f, h = whole[:k], whole[k : 2 * k]
    z = at_point(vanishing(case["items"] + case["coins"], q), case)
    left = divided(product(f, [(f[0] - 1) % q, *f[1:]], q), modulus, q)[1]
    return left == divided(product(z, h, q), modulus, q)[1] and whole[-1] == 1


def replayed(case: dict, report: dict) -> None:
    """Shares, answers and decision of a report."""
    q, row = case["q"], report["row"]
    second = expanded(bytes.fromhex(report["key"]), q, len(row))
    first = unpacked(bytes.fromhex(report["share"]), q, len(row))
    assert [(a + b) % q for a, b in zip(first, second, strict=True)] == row
    assert answers(first, case) == report["answers_1"]
    assert answers(second, case) == report["answers_2"]
    assert accepted(case, report["answers_1"], report["answers_2"]) == report["accepted"]


def digest_of(case: dict) -> bytes:
    return labelled("params", case["published"].encode())


@pytest.mark.parametrize("case", cases("proven_reports"), ids=lambda case: f"{case['coins']} coins")
def test_proven_reports(case) -> None:
    key = hkdf(bytes.fromhex(case["v1"] + case["v2"]), digest_of(case), labelled("question"))
    k, elements = case["degree"], expanded(key, case["q"], 10 * case["degree"])
    points = (elements[at * k : at * k + k] for at in count())
    assert next(each for each in points if any(each[1:])) == case["point"]
    published = json.loads(case["published"])
    assert published["derived"]["proof"]["degree"] == k
    assert published["derived"]["proof"]["modulus"] == case["modulus"]
    assert published["keys"]["s1_commitment"] == sha256(bytes.fromhex(case["v1"])).hexdigest()
    assert published["keys"]["s2_commitment"] == sha256(bytes.fromhex(case["v2"])).hexdigest()
    for report in case["reports"]:
        f, h = parts(report["row"], case)
        square = product(f, [(f[0] - 1) % case["q"], *f[1:]], case["q"])
        whole, rest = divided(square, vanishing(case["items"] + case["coins"], case["q"]), case["q"])
        assert whole == h
        assert not any(rest)
        replayed(case, report)
        assert report["accepted"]


@pytest.mark.parametrize("case", cases("bad_reports"), ids=lambda case: case["why"])
def test_bad_reports(case) -> None:
    replayed(case, case)
    assert not case["accepted"]


def test_placed_coins() -> None:
    (case,) = cases("placed_coins")
    members = bytes.fromhex(case["members"])
    n, published = sum(each.bit_count() for each in members), json.loads(case["published"])
    info = labelled("coins", bytes.fromhex(case["claim_hash"]), members)
    key = hkdf(bytes.fromhex(case["v1"] + case["v2"]), digest_of(case), info)
    rows, items = published["derived"]["D"], len(published["items"])
    data = stream(key, 8 * n + rows * items)
    tags = [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(n)]
    order = sorted(range(n), key=tags.__getitem__)
    slots = np.array([[i * rows + d for i in range(items)] for d in range(rows)])
    assert [[order[slot % n] for slot in row] for row in slots] == case["user"]
    assert (slots // n).tolist() == case["coin"]
    bits = [each >> at & 1 for each in data[8 * n :] for at in range(7, -1, -1)]
    assert np.array(bits[: rows * items]).reshape(rows, items).tolist() == case["turned"]
    assert all(len(set(column)) == rows for column in zip(*case["user"], strict=True))  # of different users
    used = [(u, c) for us, cs in zip(case["user"], case["coin"], strict=True) for u, c in zip(us, cs, strict=True)]
    assert len(set(used)) == len(used)  # each once

"""Test vectors of keys, field elements, packed bytes, ciphertexts, key shares and draws.

Random bytes are 00, 01, 02, ... in the order in which they are used.
"""

from hashlib import sha256
from typing import Any

import numpy as np

from faircount.core.entropy import Entropy
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.laplace import Laplace
from faircount.protocol.survey.parameters import table_digest
from faircount.protocol.wire.crypto import KeyPair, StandardCrypto
from faircount.sharing.expand import expand
from faircount.sharing.keys import S2_INDEX, Purpose, agree, derive_key, key_info, public_key
from faircount.sharing.packing import pack
from faircount.sharing.shamir import split_key

SURVEY = bytes(range(16))
Case = dict[str, Any]


def secret(number: int) -> bytes:
    """The secret key with this number: the bytes 32 number + 1, 32 number + 2, ... modulo 256."""
    return bytes((32 * number + 1 + place) % 256 for place in range(32))


class Listed(Entropy):
    """The bytes 00, 01, 02, ... as a source of randomness."""

    def __init__(self) -> None:
        self._next = 0

    def fill(self, out: Any) -> None:
        """The next bytes."""
        out[:] = (np.arange(out.size) + self._next) % 256
        self._next += out.size


class Prepared(Entropy):
    """These bytes as a source of randomness; there are no others."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def fill(self, out: Any) -> None:
        """The next bytes."""
        taken, self._left = self._left[: out.size], self._left[out.size :]
        out[:] = np.frombuffer(taken, dtype=np.uint8)


def pair(number: int) -> KeyPair:
    """The key pair with this number."""
    return StandardCrypto().keypair_from(secret(number))


def _text(row: Any) -> list[str]:
    """Elements as decimal text: many readers of JSON do not keep 64 bits."""
    return [str(int(element)) for element in row]


# --- keys, elements, bytes


def known_answer() -> list[Case]:
    """Both parties derive the key of a mask, expand it and pack the elements."""
    salt = sha256(b"roster").digest()
    context = sha256(b"set").digest()
    info = key_info(Purpose.MASK, SURVEY, 1, 0, 1, context)
    key = derive_key(agree(pair(0).private, pair(1).public), salt, info)
    common = {
        "secret_a": secret(0),
        "secret_b": secret(1),
        "salt": salt,
        "info": info,
        "key": key,
        "count": 1000,
    }
    found = [(q, expand(key, q, 1000)) for q in (1009, 100003, (1 << 61) - 1)]
    return [
        common
        | {"q": str(q), "first": _text(row[:4]), "packed_sha256": sha256(pack(row, q)).digest()}
        for q, row in found
    ]


def key_derivation() -> list[Case]:
    """A key for every purpose."""
    made = []
    for purpose in Purpose:
        receiver = (
            7 if purpose in (Purpose.MASK, Purpose.EXPLICIT_SHARE, Purpose.TSS_SHARE) else S2_INDEX
        )
        fields = {
            "purpose": int(purpose),
            "survey": SURVEY,
            "attempt": 3,
            "sender": 5,
            "receiver": receiver,
        }
        salt = sha256(b"salt").digest()
        context = sha256(purpose.name.encode()).digest()
        info = key_info(purpose, SURVEY, 3, 5, receiver, context)
        key = derive_key(agree(pair(2).private, pair(3).public), salt, info)
        made.append(
            {
                "secret": secret(2),
                "public": public_key(secret(3)),
                "salt": salt,
                **fields,
                "context": context,
            }
        )
        made[-1] |= {"info": info, "key": key}
    return made


def bad_keys() -> list[Case]:
    """Public keys that must be refused: not canonical, of small order, or of a wrong length."""
    prime = (1 << 255) - 19
    # Points of small order, as in RFC 7748: they make every shared secret zero.
    low = [0, 1, 325606250916557431795983626356110631294008115727848805560023387167927233504]
    cases = [("all-zero shared secret", value) for value in low] + [
        ("not canonical", prime),
        ("not canonical", prime + 9),
    ]
    made = [
        {"why": why, "secret": secret(2), "public": value.to_bytes(32, "little")}
        for why, value in cases
    ]
    high = public_key(secret(3))
    made.append(
        {
            "why": "not canonical",
            "secret": secret(2),
            "public": high[:31] + bytes([high[31] | 0x80]),
        }
    )
    return [*made, {"why": "31 bytes", "secret": secret(2), "public": high[:31]}]


def expansion() -> list[Case]:
    """Keys expanded to elements; 40,009 rejects 39% of words, the last modulus is the largest."""
    made = []
    for number, (q, count) in enumerate(
        [(2, 40), (1009, 30), (40009, 30), (65537, 20), ((1 << 62) - 57, 10)]
    ):
        row = expand(secret(number), q, count)
        made.append(
            {"key": secret(number), "q": str(q), "elements": _text(row), "packed": pack(row, q)}
        )
    return made


def packing() -> list[Case]:
    """Elements packed to bytes: part of a group, one group, several; small and large moduli."""
    rows = [
        (2, [1, 0, 0, 1, 1, 1, 0, 1, 1]),
        (7, [6, 5, 4, 3, 2, 1, 0]),
        (1009, [1008, 0, 1, 512]),
        (256, [255, 1]),
    ]
    rows += [((1 << 61) - 1, [(1 << 61) - 2, 1 << 60, 3]), (5, [])]
    rows += [
        (1009, [1008, 0, 1, 512, 7]),
        (1009, [5, 4, 3, 2, 1, 0, 1008]),
        (100237, [100236, 1, 2, 3, 100235, 0, 9]),
    ]
    rows += [(7, [place % 7 for place in range(40)]), (2, [place % 3 // 2 for place in range(110)])]
    rows += [
        ((1 << 31) - 1, [(1 << 31) - 2, 5]),
        (94906265, [94906264, 0, 7]),
        ((1 << 53) + 5, [1 << 53, 9]),
    ]
    return [
        {"q": str(q), "elements": _text(row), "packed": pack(np.array(row, dtype=np.uint64), q)}
        for q, row in rows
    ]


def bad_packing() -> list[Case]:
    """Bytes that are not the packed form of any elements."""
    fine = pack([1008, 0, 1], 1009)  # 30 bits in 4 bytes
    cases = [
        ("one byte too many", 3, fine + b"\0"),
        ("one byte missing", 3, fine[:-1]),
        ("padding", 3, bytes([*fine[:-1], fine[-1] | 0x80])),
        ("a last group of q^3", 3, (1009**3).to_bytes(4, "little")),
        ("a last group with all bits", 3, ((1 << 30) - 1).to_bytes(4, "little")),
        ("a full group of q^5", 5, (1009**5).to_bytes(7, "little")),
        ("a full group of q^5 before another", 6, (1009**5 + (1 << 50)).to_bytes(8, "little")),
        ("a last group of q", 6, (1009 << 50).to_bytes(8, "little")),
    ]
    return [{"why": why, "q": "1009", "count": count, "packed": data} for why, count, data in cases]


def encryption() -> list[Case]:
    """Ciphertexts with a given nonce."""
    salt = sha256(b"salt").digest()
    info = key_info(Purpose.SEED, SURVEY, 1, 4, S2_INDEX, bytes(32))
    shared = StandardCrypto().agree(pair(4), public_key(secret(5))) or b""
    made = []
    for text in (b"", b"eleven byte", bytes(range(60))):
        encrypted_share = StandardCrypto().encrypt(shared, salt, info, text, Listed())
        made.append(
            {
                "secret": secret(4),
                "public": public_key(secret(5)),
                "shared": shared,
                "salt": salt,
                "info": info,
            }
        )
        made[-1] |= {
            "nonce": encrypted_share[:12],
            "plaintext": text,
            "encrypted_share": encrypted_share,
        }
    return made


def bad_encryption() -> list[Case]:
    """Ciphertexts that must not decrypt."""
    good = encryption()[1]
    encrypted_share = good["encrypted_share"]
    other = key_info(Purpose.SEED, SURVEY, 2, 4, S2_INDEX, bytes(32))
    changed = {
        "tag": encrypted_share[:-1] + bytes([encrypted_share[-1] ^ 1]),
        "nonce": b"\xff" + encrypted_share[1:],
        "short": encrypted_share[:27],
    }
    base = {name: good[name] for name in ("shared", "salt", "info")}
    made = [base | {"why": why, "encrypted_share": data} for why, data in changed.items()]
    return [
        *made,
        base
        | {"why": "made for another attempt", "info": other, "encrypted_share": encrypted_share},
    ]


def shamir() -> list[Case]:
    """Shares of a key; the polynomial's other coefficients come from the bytes 00, 01, ..."""
    made = []
    for threshold, count in ((2, 3), (3, 5)):
        shares = split_key(secret(6), threshold, count, Listed())
        made.append(
            {
                "secret": secret(6),
                "threshold": threshold,
                "shares": [share.to_bytes() for share in shares],
            }
        )
    return made


def bad_shamir() -> list[Case]:
    """Shares that give no key."""
    good = [share.to_bytes() for share in split_key(secret(6), 3, 5, Listed())]
    other = [share.to_bytes() for share in split_key(secret(7), 3, 5, Listed())]
    moved = other[3][:4] + bytes(8) + other[3][12:]
    cases = [
        ("too few", good[:2]),
        ("one of them twice", [good[0], good[1], good[1]]),
        ("of two dealings", [good[0], good[1], moved]),
        ("beyond the threshold and on another polynomial", [*good[:3], other[3]]),
        ("44 bytes", [*good[:2], good[2][:-1]]),
        ("value not below the prime", [*good[:2], good[2][:12] + b"\2" + bytes(32)]),
    ]
    return [{"why": why, "threshold": 3, "shares": shares} for why, shares in cases]


def _table_text(table: DrawTable) -> str:
    """A table as published parameters hash it: a line per outcome."""
    rows = zip(table.values, table.cumulative, strict=True)
    return "".join(f"{value} {cumulative}\n" for value, cumulative in rows)


def draws() -> list[Case]:
    """128 random bits draw a coin or noise from a table of cumulative probabilities."""
    noise = Laplace(items=3, users=10, epsilon=1.0, insiders=1)
    pair = Laplace(items=2, users=10, epsilon=1.0, insiders=1)
    tables = [
        ("coin 1/4", DrawTable.coin(0.25)),
        ("coin 0.1", DrawTable.coin(0.1)),
        ("laplace", noise.table),
        ("laplace, two items", pair.table),
    ]
    made = []
    for name, table in tables:
        bits = [
            0,
            1 << 126,
            (1 << 126) - 1,
            (1 << 128) - 1,
            table.cumulative[0],
            max(0, table.cumulative[0] - 1),
        ]
        hashes = [sha256(bytes([number])).digest() for number in range(4)]
        bits += [int.from_bytes(digest[:16], "big") for digest in hashes]
        values = [int(table.draw(1, _Bits(drawn))[0]) for drawn in bits]
        made.append(
            {
                "table": name,
                "digest": table_digest(_table_text(table)),
                "outcomes": len(table.values),
            }
        )
        made[-1] |= {"bits": list(map(str, bits)), "values": values}
        if len(table.values) < 100:
            made[-1] |= {
                "table_values": list(table.values),
                "cumulative": list(map(str, table.cumulative)),
            }
    return made


class _Bits(Entropy):
    """A source of randomness that gives 128 chosen bits."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def fill(self, out: Any) -> None:
        """Fill with the upper 64 bits, then the lower ones, each as a machine word."""
        words = [self._bits >> 64, self._bits & ((1 << 64) - 1)]
        out[:] = np.array(words, dtype=np.uint64).view(np.uint8)

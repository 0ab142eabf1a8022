"""Test vectors, replayed byte for byte.

A second implementation, written from test_vectors/README.md alone, replays the valid cases; the
library refuses those that must be refused.
"""

import hmac
import json
import struct
import subprocess
import sys
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.errors import FaircountError, RefusedError, ShareError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import decode
from faircount.protocol.survey.acknowledgement import verify_acknowledgement
from faircount.protocol.survey.devices import is_signed_by_device
from faircount.protocol.survey.operators import check_operators
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import Rejection
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.signing import verify_message
from faircount.sharing.keys import agree
from faircount.sharing.packing import unpack
from faircount.sharing.shamir import KeyShare, combine_key

FOLDER = Path(__file__).parents[2] / "test_vectors"
S2 = 0xFFFFFFFF


def cases(name: str) -> list:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def h(text: str) -> bytes:
    return bytes.fromhex(text)


# --- the second implementation


def tagged_hash(purpose: str, *parts: bytes) -> bytes:
    return sha256(b"faircount/1/" + purpose.encode() + b"\0" + b"".join(parts)).digest()


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, ikm, "sha256"), info + b"\1", "sha256")


def x25519(secret: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).exchange(
        X25519PublicKey.from_public_bytes(public)
    )


def public_of(secret: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def info_of(
    purpose: int, survey: bytes, attempt: int, sender: int, receiver: int, context: bytes
) -> bytes:
    return (
        b"faircount/1\0"
        + bytes([purpose])
        + survey
        + struct.pack(">III", attempt, sender, receiver)
        + context
    )


def stream(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def expand(key: bytes, q: int, count: int) -> list[int]:
    width = next(size for size, limit in ((2, 16), (4, 32), (8, 62)) if q < 1 << limit)
    top = (1 << 8 * width) // q * q
    data = stream(key, width * (20 * count + 100))
    words = [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
    return [word % q for word in words if word < top][:count]


def pack(elements: list[int], q: int) -> bytes:
    together = next(g for g in range(1, 54) if q ** (g + 1) > 1 << 53)
    groups = [elements[at : at + together] for at in range(0, len(elements), together)]
    whole = bits = 0
    for group in groups:
        whole |= sum(element * q**digit for digit, element in enumerate(group)) << bits
        bits += (q ** len(group) - 1).bit_length()
    return whole.to_bytes((bits + 7) // 8, "little")


def root_of(leaves: list[bytes]) -> bytes:
    while len(leaves) > 1:
        pairs = [
            sha256(b"\1" + leaves[i] + leaves[i + 1]).digest() for i in range(0, len(leaves) - 1, 2)
        ]
        leaves = pairs + (leaves[-1:] if len(leaves) % 2 else [])
    return leaves[0]


def bits_of(members: list[int], n: int) -> bytes:
    return sum(1 << i for i in members).to_bytes((n + 7) // 8, "little")


def with_length(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def with_checksum(body: bytes) -> bytes:
    """A message: its bytes and the first 8 of their SHA-256."""
    return body + sha256(body).digest()[:8]


# --- replayed


def test_the_files_are_what_the_library_makes_today() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "make.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_speaks_of_every_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in FOLDER.glob("*.json") if f"`{file.name}`" not in page] == []


def test_the_pages_known_answer() -> None:
    begins = {
        "1009": "9b2a2c88a270891c",
        "100003": "556b601651202a2b",
        str((1 << 61) - 1): "752200968399932c",
    }
    for case in cases("known_answer"):
        info = info_of(1, bytes(range(16)), 1, 0, 1, sha256(b"set").digest())
        key = hkdf(
            x25519(h(case["secret_b"]), public_of(h(case["secret_a"]))),
            sha256(b"roster").digest(),
            info,
        )
        assert (info, key) == (h(case["info"]), h(case["key"]))
        row = expand(key, int(case["q"]), case["count"])
        assert list(map(str, row[:4])) == case["first"]
        assert sha256(pack(row, int(case["q"]))).hexdigest() == case["packed_sha256"]
        # The page on the protocol packs these elements one by one, without groups.
        bits = (int(case["q"]) - 1).bit_length()
        whole = sum(element << bits * place for place, element in enumerate(row))
        alone = sha256(whole.to_bytes((case["count"] * bits + 7) // 8, "little")).hexdigest()
        assert alone.startswith(begins[case["q"]])


def test_keys() -> None:
    for case in cases("key_derivation"):
        fields = [case[name] for name in ("attempt", "sender", "receiver")]
        info = info_of(case["purpose"], h(case["survey"]), *fields, h(case["context"]))
        assert info.hex() == case["info"]
        assert (
            hkdf(x25519(h(case["secret"]), h(case["public"])), h(case["salt"]), info).hex()
            == case["key"]
        )


def test_expansion_and_packing() -> None:
    for case in cases("expansion"):
        row = expand(h(case["key"]), int(case["q"]), len(case["elements"]))
        assert list(map(str, row)) == case["elements"]
    for case in (*cases("expansion"), *cases("packing")):
        row = list(map(int, case["elements"]))
        assert pack(row, int(case["q"])).hex() == case["packed"]
        assert unpack(h(case["packed"]), int(case["q"]), len(row)).tolist() == row


def test_encryption() -> None:
    for case in cases("encryption"):
        shared = x25519(h(case["secret"]), h(case["public"]))
        box = AESGCM(hkdf(shared, h(case["salt"]), h(case["info"])))
        assert shared.hex() == case["shared"]
        assert (
            case["nonce"] + box.encrypt(h(case["nonce"]), h(case["plaintext"]), None).hex()
            == case["encrypted_share"]
        )
        plaintext = StandardCrypto().decrypt(
            shared, h(case["salt"]), h(case["info"]), h(case["encrypted_share"])
        )
        assert plaintext == h(case["plaintext"])


def test_key_shares() -> None:
    prime = (1 << 256) + 297
    for case in cases("shamir"):
        points = [(int(share[:4], 16), int(share[24:], 16)) for share in case["shares"]]
        assert {int(share[4:8], 16) for share in case["shares"]} == {case["threshold"]}
        for some in combinations(points, case["threshold"]):
            whole = 0
            for x, y in some:
                others = (other for other, _ in some if other != x)
                for other in others:
                    y = y * other * pow(other - x, -1, prime) % prime
                whole += y
            assert (whole % prime).to_bytes(32, "big").hex() == case["secret"]


def test_draws() -> None:
    for case in cases("draws"):
        if case["table"].startswith("laplace"):
            items = 2 if case["table"].endswith("two items") else 3
            table = Laplace(items=items, users=10, epsilon=1.0, insiders=1).table
            values = table.values
            tops = table.cumulative
        else:
            values = case["table_values"]
            tops = list(map(int, case["cumulative"]))
        rows = "".join(f"{value} {top}\n" for value, top in zip(values, tops, strict=True))
        assert tagged_hash("table", rows.encode()).hex() == case["digest"]
        for bits, drawn in zip(case["bits"], case["values"], strict=True):
            assert (
                next(value for value, top in zip(values, tops, strict=True) if int(bits) < top)
                == drawn
            )


def test_parameters() -> None:
    for case in cases("params"):
        text = case["published"]
        again = json.dumps(
            json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        assert again == text
        assert tagged_hash("params", text.encode()).hex() == case["digest"]
        assert SurveyParameters.parse(text.encode()).digest.hex() == case["digest"]


def test_rosters_and_sets() -> None:
    for case in cases("rosters"):
        lines = [(h(user), h(key)) for user, key in case["lines"]]
        leaves = [
            sha256(b"\0" + struct.pack(">I", i) + user + key).digest()
            for i, (user, key) in enumerate(lines)
        ]
        assert [leaf.hex() for leaf in leaves] == case["leaves"]
        assert root_of(leaves).hex() == case["root"]
        parts = h(case["params_digest"]), struct.pack(">I", len(lines)), h(case["root"])
        assert tagged_hash("roster", *parts).hex() == case["digest"]
        node = leaves[-1]
        at = len(leaves) - 1
        width = len(leaves)
        path = list(map(h, case["proof_of_last"]))
        while width > 1:
            if at ^ 1 < width:
                beside = path.pop(0)
                node = sha256(b"\1" + (beside + node if at % 2 else node + beside)).digest()
            at //= 2
            width = (width + 1) // 2
        assert (node, path) == (h(case["root"]), [])
    for case in cases("sets"):
        edges = b"".join(struct.pack(">II", *edge) for edge in case["removed"])
        head = struct.pack(">II", case["attempt"], case["n"]) + bits_of(case["members"], case["n"])
        made = tagged_hash(
            "set", h(case["digest"]), head, struct.pack(">I", len(case["removed"])), edges
        )
        assert made.hex() == case["set_digest"]


def test_invitations() -> None:
    for case in cases("invitations"):
        access = sha256(b"s1" + h(case["token"])).digest()
        enrolment_mac_key = hkdf(h(case["token"]), bytes(32), b"s2")
        mac = hmac.digest(
            enrolment_mac_key, h(case["params_digest"]) + h(case["public_key"]), "sha256"
        )
        found = access, tagged_hash("user", access)[:16], enrolment_mac_key, mac
        assert [value.hex() for value in found] == [
            case[name] for name in ("access", "user", "enrolment_mac_key", "mac")
        ]


def test_graphs_and_elections() -> None:
    ring, helpers = cases("graphs")
    tags = stream(tagged_hash("graph", h(ring["revealed"]), h(ring["digest"])), 16 * ring["n"])
    order = sorted(range(ring["n"]), key=lambda i: tags[16 * i : 16 * i + 16])
    for i, near in enumerate(ring["neighbours"]):
        at = order.index(i)
        half = ring["k"] // 2
        steps = [step for step in range(-half, half + 1) if step]
        assert sorted(order[(at + step) % ring["n"]] for step in steps) == near
    for item, row in enumerate(helpers["orders"]):
        parts = h(helpers["revealed"]), h(helpers["digest"]), struct.pack(">I", item)
        tags = stream(tagged_hash("election", *parts), 16 * (max(helpers["eligible"]) + 1))
        assert (
            sorted(helpers["eligible"], key=lambda i, tags=tags: tags[16 * i : 16 * i + 16]) == row
        )


@pytest.mark.parametrize(
    "case", cases("servers_upload"), ids=lambda case: json.loads(case["published"])["mechanism"]
)
def test_a_report_in_the_servers_topology(case) -> None:
    plain = json.loads(case["published"])
    digest = tagged_hash("params", case["published"].encode())
    q = int(plain["derived"]["q"])
    survey = h(plain["survey"])
    token = h(case["token"])
    public = public_of(h(case["secret"]))
    access = sha256(b"s1" + token).digest()
    user = tagged_hash("user", access)[:16]
    seeded = hkdf(
        h(case["seed"]), digest, info_of(8, survey, 0, 0, S2, sha256(user + public).digest())
    )
    mask = expand(seeded, q, len(case["response"]))
    share = pack(
        [(value - other) % q for value, other in zip(case["response"], mask, strict=True)], q
    )
    commitment = tagged_hash("commitment", h(case["salt"]), share)
    info = info_of(4, survey, 0, 0, S2, sha256(user + public + commitment).digest())
    for shared in (
        x25519(h(case["secret"]), h(plain["keys"]["encryption_key"])),
        x25519(h(case["s2_secret"]), public),
    ):
        nonce = bytes(range(16, 28))  # after the 16 bytes of the salt
        encrypted_share = nonce + AESGCM(hkdf(shared, digest, info)).encrypt(
            nonce, h(case["seed"]), None
        )
        assert encrypted_share.hex() == case["encrypted_share"]
    mac = hmac.digest(hkdf(token, bytes(32), b"s2"), digest + public, "sha256")
    body = (
        b"\2\x10"
        + survey
        + access
        + public
        + mac
        + h(case["salt"])
        + with_length(share)
        + with_length(encrypted_share)
        # The secret key of the device is the 32 bytes after the nonce.
        + Ed25519PrivateKey.from_private_bytes(bytes(range(28, 60))).public_key().public_bytes_raw()
    )
    assert (share.hex(), commitment.hex(), with_checksum(body).hex()) == (
        case["share"],
        case["commitment"],
        case["body"],
    )


def test_masks() -> None:
    (case,) = cases("masks")
    q = int(case["q"])
    secrets = list(map(h, case["mask_secrets"]))

    def mask_of_pair(i: int, j: int) -> list[int]:
        info = info_of(
            1, h(case["survey"]), case["attempt"], min(i, j), max(i, j), h(case["set_digest"])
        )
        row = expand(
            hkdf(x25519(secrets[i], public_of(secrets[j])), h(case["digest"]), info),
            q,
            case["items"],
        )
        return row if i < j else [-element for element in row]

    assert mask_of_pair(0, 1) == case["mask_0_1"]
    for i, total in enumerate(case["sums"]):
        rows = [mask_of_pair(i, j) for j in range(3) if j != i]
        assert [sum(column) % q for column in zip(*rows, strict=True)] == total
    assert [sum(column) % q for column in zip(*case["sums"], strict=True)] == [0] * case["items"]


def test_bundles_of_the_explicit_topology() -> None:
    for case in cases("explicit_users"):
        q = int(case["q"])
        i = case["index"]
        encrypted_shares: list[bytes] = []
        for j, (_, key) in enumerate(case["roster"]):
            if j != i:
                nonce = bytes(range(12 * len(encrypted_shares), 12 * len(encrypted_shares) + 12))
                info = info_of(2, h(case["survey"]), 0, i, j, bytes(32))
                box = AESGCM(hkdf(x25519(h(case["secret"]), h(key)), h(case["digest"]), info))
                encrypted_shares.append(
                    nonce + box.encrypt(nonce, pack(case["shares"][j], q), None)
                )
        head = b"\2\x30" + h(case["survey"]) + struct.pack(">I", i) + h(case["credential"])
        body = (
            head
            + struct.pack(">I", len(encrypted_shares))
            + b"".join(map(with_length, encrypted_shares))
        )
        assert with_checksum(body).hex() == case["bundle"]


def test_messages() -> None:
    for case in cases("messages"):
        data = h(case["bytes"])
        found = decode(data)
        assert (type(found).__name__, data[:2], encode(found)) == (
            case["name"],
            bytes([2, case["tag"]]),
            data,
        )
    (visit,) = (case for case in cases("messages") if case["name"] == "PollRequest")
    fields = bytes(range(16)) + struct.pack(">I", 7) + sha256(b"1").digest()
    assert h(visit["bytes"]) == with_checksum(b"\2\x0a" + fields)


def test_signatures() -> None:
    request, statement = cases("requests")
    parts = [
        b"faircount/1/s1-s2\0",
        with_length(request["method"].encode()),
        with_length(request["path"].encode()),
    ]
    parts += [
        sha256(h(request["body"])).digest(),
        struct.pack(">Q", request["milliseconds"]),
        h(request["nonce"]),
    ]
    signed = b"".join([*parts, with_length(request["key_id"].encode())])
    assert signed.hex() == request["signed"]
    chained = (
        b"faircount/1/statement\0"
        + struct.pack(">II", statement["by"], 0)
        + bytes(32)
        + h(statement["payload"])
    )
    for case, data in ((request, signed), (statement, chained)):
        assert (
            Ed25519PrivateKey.from_private_bytes(h(case["secret"])).sign(data).hex()
            == case["signature"]
        )
        Ed25519PublicKey.from_public_bytes(h(case["public"])).verify(h(case["signature"]), data)


# --- refused


def bad(name: str) -> pytest.MarkDecorator:
    found = cases(name)
    return pytest.mark.parametrize(
        "case", found, ids=[f"{i} {case['why']}" for i, case in enumerate(found)]
    )


@bad("bad_keys")
def test_bad_keys(case) -> None:
    with pytest.raises(ShareError):
        agree(StandardCrypto().keypair_from(h(case["secret"])).private, h(case["public"]))
    assert (
        StandardCrypto().agree(StandardCrypto().keypair_from(h(case["secret"])), h(case["public"]))
        is None
    )


@bad("bad_packing")
def test_bad_packing(case) -> None:
    with pytest.raises(ShareError):
        unpack(h(case["packed"]), int(case["q"]), case["count"])
    assert not is_vector(h(case["packed"]), int(case["q"]), case["count"])


@bad("bad_encryption")
def test_bad_encryption(case) -> None:
    assert (
        StandardCrypto().decrypt(
            h(case["shared"]), h(case["salt"]), h(case["info"]), h(case["encrypted_share"])
        )
        is None
    )


@bad("bad_shamir")
def test_bad_key_shares(case) -> None:
    with pytest.raises(ShareError):
        combine_key([KeyShare.from_bytes(h(share)) for share in case["shares"]], case["threshold"])


@bad("bad_params")
def test_bad_parameters(case) -> None:
    with pytest.raises(FaircountError):
        SurveyParameters.parse(case["published"].encode())


@bad("bad_messages")
def test_bad_messages(case) -> None:
    assert isinstance(decode(h(case["bytes"])), Rejection)


@bad("bad_requests")
def test_bad_statements(case) -> None:
    statement = decode(h(case["statement"]))
    assert verify_message(h(case["public"]), Party.AGGREGATOR, statement) is None


def acknowledged_root(case: dict) -> bytes:
    """What the coordinator signed, from message, index and path; empty if the path does not fit."""
    accepted = h(case["accepted"])
    body = h(case["body"])
    survey = accepted[2:18]
    message_hash = accepted[18:50]
    index, size, count = struct.unpack(">3I", accepted[50:62])
    path = [accepted[62 + 32 * i : 94 + 32 * i] for i in range(count)]
    if message_hash != sha256(body).digest() or index >= size:
        return b""
    node = tagged_hash("acknowledged", message_hash)
    at = index
    width = size
    while width > 1:
        if at ^ 1 < width:
            if not path:
                return b""
            other = path.pop(0)
            node = sha256(b"\1" + (other + node if at & 1 else node + other)).digest()
        at >>= 1
        width = (width + 1) >> 1
    if path:
        return b""
    return b"faircount/1/acknowledgement\0" + survey + struct.pack(">I", size) + node


@pytest.mark.parametrize("case", cases("acknowledgements"))
def test_acknowledgements(case) -> None:
    key = Ed25519PublicKey.from_public_bytes(h(case["s1"]))
    key.verify(h(case["accepted"])[-72:-8], acknowledged_root(case))


@pytest.mark.parametrize("case", cases("device_messages"))
def test_device_messages(case) -> None:
    body = h(case["body"])
    params_digest = tagged_hash("params", case["published"].encode())
    public = Ed25519PrivateKey.from_private_bytes(h(case["secret"])).public_key()
    assert public.public_bytes_raw().hex() == case["public"]
    # Version and tag, then survey, access, key of the device, signature and checksum.
    assert body[18:50] + body[50:82] == h(case["access"]) + h(case["public"])
    unsigned = with_checksum(body[:82] + bytes(64))
    public.verify(body[82:146], b"faircount/1/device\0" + params_digest + unsigned)


@bad("bad_device_messages")
def test_bad_device_messages(case) -> None:
    params = SurveyParameters.parse(case["published"].encode())
    assert not is_signed_by_device(params, decode(h(case["body"])))


@bad("bad_acknowledgements")
def test_bad_acknowledgements(case) -> None:
    accepted = decode(h(case["accepted"]))
    assert not verify_acknowledgement(
        SurveyParameters.parse(cases("params")[0]["published"].encode()),
        accepted,
        decode(h(case["body"])),
    )


def operator_data(published: bytes, server: str) -> bytes:
    """What the operator of a server signs."""
    plain = json.loads(published)
    name = plain[f"{server}_operator"].encode()
    role = struct.pack(">I", {"s1": S2 - 1, "s2": S2}[server])
    place = role + h(plain["survey"]) + tagged_hash("params", published)
    return b"faircount/1/operator\0" + place + struct.pack(">I", len(name)) + name


@pytest.mark.parametrize("case", cases("operators"))
def test_operators(case) -> None:
    published = case["published"].encode()
    for server, fingerprint in zip(("s1", "s2"), case["fingerprints"], strict=True):
        key = h(json.loads(published)["keys"][f"{server}_operator_key"])
        data = operator_data(published, server)
        Ed25519PublicKey.from_public_bytes(key).verify(h(case[server]), data)
        digits = tagged_hash("operator-key", key).hex()[:32]
        assert fingerprint.replace(" ", "") == digits
    params = SurveyParameters.parse(published)
    check_operators(params, (h(case["s1"]), h(case["s2"])))


@bad("bad_operators")
def test_bad_operators(case) -> None:
    params = SurveyParameters.parse(case["published"].encode())
    # What is not hexadecimal is no signature.
    signatures = [
        h(case[name]) if set(case[name] or "z") <= set("0123456789abcdef") else b""
        for name in ("s1", "s2")
    ]
    with pytest.raises(RefusedError):
        check_operators(params, (signatures[0], signatures[1]))

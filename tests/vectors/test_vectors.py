"""Known answers, replayed byte for byte: by a second implementation, written from test_vectors/README.md alone, and,
where something must be refused, by the library."""

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

from faircount.core.errors import FaircountError, ShareError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import decode
from faircount.protocol.survey.acknowledgement import acknowledges
from faircount.protocol.survey.parameters import SurveyParameters, table_digest
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import Rejected
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.sealing import RealSealing
from faircount.protocol.wire.signing import unwrap
from faircount.sharing.keys import agree
from faircount.sharing.packing import unpack
from faircount.sharing.shamir import KeyShare, combine_key

FOLDER = Path(__file__).parents[2] / "test_vectors"
S2 = 0xFFFFFFFF


def cases(name: str) -> list:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def h(text: str) -> bytes:
    return bytes.fromhex(text)


# --- the second implementation ------------------------------------------------------------------------------------


def labelled(purpose: str, *parts: bytes) -> bytes:
    return sha256(b"faircount/1/" + purpose.encode() + b"\0" + b"".join(parts)).digest()


def hkdf(ikm: bytes, salt: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, ikm, "sha256"), info + b"\1", "sha256")


def x25519(secret: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))


def public_of(secret: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def info_of(purpose: int, survey: bytes, attempt: int, sender: int, receiver: int, context: bytes) -> bytes:
    return b"faircount/1\0" + bytes([purpose]) + survey + struct.pack(">III", attempt, sender, receiver) + context


def stream(key: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def expanded(key: bytes, q: int, count: int) -> list[int]:
    width = 2 if q < 1 << 16 else 4 if q < 1 << 32 else 8
    top = (1 << 8 * width) // q * q
    data = stream(key, width * (20 * count + 100))
    words = [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
    return [word % q for word in words if word < top][:count]


def packed(elements: list[int], q: int) -> bytes:
    together = next(g for g in range(1, 54) if q ** (g + 1) > 1 << 53)
    groups = [elements[at : at + together] for at in range(0, len(elements), together)]
    whole = bits = 0
    for group in groups:
        whole |= sum(each * q**at for at, each in enumerate(group)) << bits
        bits += (q ** len(group) - 1).bit_length()
    return whole.to_bytes((bits + 7) // 8, "little")


def root_of(leaves: list[bytes]) -> bytes:
    while len(leaves) > 1:
        pairs = [sha256(b"\1" + leaves[i] + leaves[i + 1]).digest() for i in range(0, len(leaves) - 1, 2)]
        leaves = pairs + (leaves[-1:] if len(leaves) % 2 else [])
    return leaves[0]


def bits_of(members: list[int], n: int) -> bytes:
    return sum(1 << i for i in members).to_bytes((n + 7) // 8, "little")


def prefixed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def checked(body: bytes) -> bytes:
    """A message: its bytes and the first 8 of their SHA-256."""
    return body + sha256(body).digest()[:8]


# --- replayed -----------------------------------------------------------------------------------------------------


def test_the_files_are_what_the_library_makes_today() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "make.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_speaks_of_every_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [each.name for each in FOLDER.glob("*.json") if f"`{each.name}`" not in page] == []


def test_the_pages_known_answer() -> None:
    begins = {"1009": "9b2a2c88a270891c", "100003": "556b601651202a2b", str((1 << 61) - 1): "752200968399932c"}
    for case in cases("known_answer"):
        info = info_of(1, bytes(range(16)), 1, 0, 1, sha256(b"set").digest())
        key = hkdf(x25519(h(case["secret_b"]), public_of(h(case["secret_a"]))), sha256(b"roster").digest(), info)
        assert (info, key) == (h(case["info"]), h(case["key"]))
        row = expanded(key, int(case["q"]), case["count"])
        assert [str(each) for each in row[:4]] == case["first"]
        assert sha256(packed(row, int(case["q"]))).hexdigest() == case["packed_sha256"]
        bits = (int(case["q"]) - 1).bit_length()  # that page packed elements one by one
        whole = sum(each << bits * at for at, each in enumerate(row))
        alone = sha256(whole.to_bytes((case["count"] * bits + 7) // 8, "little")).hexdigest()
        assert alone.startswith(begins[case["q"]])


def test_keys() -> None:
    for case in cases("key_derivation"):
        fields = [case[name] for name in ("attempt", "sender", "receiver")]
        info = info_of(case["purpose"], h(case["survey"]), *fields, h(case["context"]))
        assert info.hex() == case["info"]
        assert hkdf(x25519(h(case["secret"]), h(case["public"])), h(case["salt"]), info).hex() == case["key"]


def test_expansion_and_packing() -> None:
    for case in cases("expansion"):
        row = expanded(h(case["key"]), int(case["q"]), len(case["elements"]))
        assert [str(each) for each in row] == case["elements"]
    for case in (*cases("expansion"), *cases("packing")):
        row = [int(each) for each in case["elements"]]
        assert packed(row, int(case["q"])).hex() == case["packed"]
        assert unpack(h(case["packed"]), int(case["q"]), len(row)).tolist() == row


def test_sealing() -> None:
    for case in cases("sealing"):
        shared = x25519(h(case["secret"]), h(case["public"]))
        box = AESGCM(hkdf(shared, h(case["salt"]), h(case["info"])))
        assert shared.hex() == case["shared"]
        assert case["nonce"] + box.encrypt(h(case["nonce"]), h(case["plaintext"]), None).hex() == case["blob"]
        opened = RealSealing().open(shared, h(case["salt"]), h(case["info"]), h(case["blob"]))
        assert opened == h(case["plaintext"])


def test_key_shares() -> None:
    prime = (1 << 256) + 297
    for case in cases("shamir"):
        points = [(int(each[:4], 16), int(each[24:], 16)) for each in case["shares"]]
        assert {int(each[4:8], 16) for each in case["shares"]} == {case["threshold"]}
        for some in combinations(points, case["threshold"]):
            whole = 0
            for x, y in some:
                for other, _ in some:
                    y = y * other * pow(other - x, -1, prime) % prime if other != x else y
                whole += y
            assert (whole % prime).to_bytes(32, "big").hex() == case["secret"]


def test_draws() -> None:
    for case in cases("draws"):
        if case["table"] == "laplace":
            table = Laplace(items=2, users=10, epsilon=1.0, insiders=1).table
            values, tops = table.values, table.cumulative
            assert table_digest(table).hex() == case["digest"]
        else:
            values, tops = case["table_values"], [int(each) for each in case["cumulative"]]
        rows = "".join(f"{value} {top}\n" for value, top in zip(values, tops, strict=True))
        assert labelled("table", rows.encode()).hex() == case["digest"]
        for bits, drawn in zip(case["bits"], case["values"], strict=True):
            assert next(value for value, top in zip(values, tops, strict=True) if int(bits) < top) == drawn


def test_parameters() -> None:
    for case in cases("params"):
        text = case["published"]
        again = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert again == text
        assert labelled("params", text.encode()).hex() == case["digest"]
        assert SurveyParameters.parse(text.encode()).digest.hex() == case["digest"]


def test_rosters_and_sets() -> None:
    for case in cases("rosters"):
        lines = [(h(user), h(key)) for user, key in case["lines"]]
        leaves = [sha256(b"\0" + struct.pack(">I", i) + user + key).digest() for i, (user, key) in enumerate(lines)]
        assert [each.hex() for each in leaves] == case["leaves"]
        assert root_of(leaves).hex() == case["root"]
        parts = h(case["params_digest"]), struct.pack(">I", len(lines)), h(case["root"])
        assert labelled("roster", *parts).hex() == case["digest"]
        node, at, width, path = leaves[-1], len(leaves) - 1, len(leaves), [h(each) for each in case["proof_of_last"]]
        while width > 1:
            if at ^ 1 < width:
                beside = path.pop(0)
                node = sha256(b"\1" + (beside + node if at % 2 else node + beside)).digest()
            at, width = at // 2, (width + 1) // 2
        assert (node, path) == (h(case["root"]), [])
    for case in cases("sets"):
        edges = b"".join(struct.pack(">II", *edge) for edge in case["removed"])
        head = struct.pack(">II", case["attempt"], case["n"]) + bits_of(case["members"], case["n"])
        made = labelled("set", h(case["digest"]), head, struct.pack(">I", len(case["removed"])), edges)
        assert made.hex() == case["set_digest"]


def test_invitations() -> None:
    for case in cases("invitations"):
        access = sha256(b"s1" + h(case["token"])).digest()
        sealing_key = hkdf(h(case["token"]), bytes(32), b"s2")
        mac = hmac.digest(sealing_key, h(case["params_digest"]) + h(case["public_key"]), "sha256")
        found = access, labelled("user", access)[:16], sealing_key, mac
        assert [each.hex() for each in found] == [case[name] for name in ("access", "user", "sealing_key", "mac")]


def test_graphs_and_elections() -> None:
    ring, helpers = cases("graphs")
    tags = stream(labelled("graph", h(ring["revealed"]), h(ring["digest"])), 16 * ring["n"])
    order = sorted(range(ring["n"]), key=lambda i: tags[16 * i : 16 * i + 16])
    for i, near in enumerate(ring["neighbours"]):
        at, half = order.index(i), ring["k"] // 2
        steps = [step for step in range(-half, half + 1) if step]
        assert sorted(order[(at + step) % ring["n"]] for step in steps) == near
    for item, row in enumerate(helpers["orders"]):
        parts = h(helpers["revealed"]), h(helpers["digest"]), struct.pack(">I", item)
        tags = stream(labelled("election", *parts), 16 * (max(helpers["eligible"]) + 1))
        assert sorted(helpers["eligible"], key=lambda i, tags=tags: tags[16 * i : 16 * i + 16]) == row


@pytest.mark.parametrize("case", cases("servers_upload"), ids=lambda case: json.loads(case["published"])["mechanism"])
def test_a_users_body_in_the_servers_topology(case) -> None:
    plain = json.loads(case["published"])
    digest, q, survey = labelled("params", case["published"].encode()), int(plain["derived"]["q"]), h(plain["survey"])
    token, public = h(case["token"]), public_of(h(case["secret"]))
    access = sha256(b"s1" + token).digest()
    user = labelled("user", access)[:16]
    seeded = hkdf(h(case["seed"]), digest, info_of(8, survey, 0, 0, S2, sha256(user + public).digest()))
    mask = expanded(seeded, q, len(case["response"]))
    share = packed([(value - other) % q for value, other in zip(case["response"], mask, strict=True)], q)
    commitment = labelled("commitment", h(case["salt"]), share)
    info = info_of(4, survey, 0, 0, S2, sha256(user + public + commitment).digest())
    for shared in (x25519(h(case["secret"]), h(plain["keys"]["box"])), x25519(h(case["s2_secret"]), public)):
        nonce = bytes(range(16, 28))  # after the 16 bytes of the salt
        blob = nonce + AESGCM(hkdf(shared, digest, info)).encrypt(nonce, h(case["seed"]), None)
        assert blob.hex() == case["blob"]
    mac = hmac.digest(hkdf(token, bytes(32), b"s2"), digest + public, "sha256")
    body = b"\2\x10" + survey + access + public + mac + h(case["salt"]) + prefixed(share) + prefixed(blob)
    assert (share.hex(), commitment.hex(), checked(body).hex()) == (case["share"], case["commitment"], case["body"])


def test_masks() -> None:
    (case,) = cases("masks")
    q, secrets = int(case["q"]), [h(each) for each in case["mask_secrets"]]

    def between(i: int, j: int) -> list[int]:
        info = info_of(1, h(case["survey"]), case["attempt"], min(i, j), max(i, j), h(case["set_digest"]))
        row = expanded(hkdf(x25519(secrets[i], public_of(secrets[j])), h(case["digest"]), info), q, case["items"])
        return row if i < j else [-each for each in row]

    assert between(0, 1) == case["mask_0_1"]
    for i, total in enumerate(case["sums"]):
        rows = [between(i, j) for j in range(3) if j != i]
        assert [sum(column) % q for column in zip(*rows, strict=True)] == total
    assert [sum(column) % q for column in zip(*case["sums"], strict=True)] == [0] * case["items"]


def test_bundles_of_the_explicit_form() -> None:
    for case in cases("explicit_users"):
        q, i, blobs = int(case["q"]), case["index"], []
        for j, (_, key) in enumerate(case["roster"]):
            if j != i:
                nonce = bytes(range(12 * len(blobs), 12 * len(blobs) + 12))
                info = info_of(2, h(case["survey"]), 0, i, j, bytes(32))
                box = AESGCM(hkdf(x25519(h(case["secret"]), h(key)), h(case["digest"]), info))
                blobs.append(nonce + box.encrypt(nonce, packed(case["shares"][j], q), None))
        head = b"\2\x30" + h(case["survey"]) + struct.pack(">I", i) + h(case["credential"])
        body = head + struct.pack(">I", len(blobs)) + b"".join(prefixed(each) for each in blobs)
        assert checked(body).hex() == case["bundle"]


def test_messages() -> None:
    for case in cases("messages"):
        data = h(case["bytes"])
        found = decode(data)
        assert (type(found).__name__, data[:2], encode(found)) == (case["name"], bytes([2, case["tag"]]), data)
    (visit,) = (case for case in cases("messages") if case["name"] == "Visit")
    fields = bytes(range(16)) + struct.pack(">I", 7) + sha256(b"1").digest()
    assert h(visit["bytes"]) == checked(b"\2\x0a" + fields)


def test_signatures() -> None:
    request, statement = cases("requests")
    parts = [b"faircount/1/s1-s2\0", prefixed(request["method"].encode()), prefixed(request["path"].encode())]
    parts += [sha256(h(request["body"])).digest(), struct.pack(">Q", request["milliseconds"]), h(request["nonce"])]
    signed = b"".join([*parts, prefixed(request["key_id"].encode())])
    assert signed.hex() == request["signed"]
    said = b"faircount/1/statement\0" + struct.pack(">II", statement["by"], 0) + bytes(32) + h(statement["payload"])
    for case, data in ((request, signed), (statement, said)):
        assert Ed25519PrivateKey.from_private_bytes(h(case["secret"])).sign(data).hex() == case["signature"]
        Ed25519PublicKey.from_public_bytes(h(case["public"])).verify(h(case["signature"]), data)


# --- refused ------------------------------------------------------------------------------------------------------


def bad(name: str) -> pytest.MarkDecorator:
    found = cases(name)
    return pytest.mark.parametrize("case", found, ids=[f"{i} {each['why']}" for i, each in enumerate(found)])


@bad("bad_keys")
def test_bad_keys(case) -> None:
    with pytest.raises(ShareError):
        agree(RealSealing().keypair_of(h(case["secret"])).private, h(case["public"]))
    assert RealSealing().agree(RealSealing().keypair_of(h(case["secret"])), h(case["public"])) is None


@bad("bad_packing")
def test_bad_packing(case) -> None:
    with pytest.raises(ShareError):
        unpack(h(case["packed"]), int(case["q"]), case["count"])
    assert not is_vector(h(case["packed"]), int(case["q"]), case["count"])


@bad("bad_sealing")
def test_bad_blobs(case) -> None:
    assert RealSealing().open(h(case["shared"]), h(case["salt"]), h(case["info"]), h(case["blob"])) is None


@bad("bad_shamir")
def test_bad_key_shares(case) -> None:
    with pytest.raises(ShareError):
        combine_key([KeyShare.from_bytes(h(each)) for each in case["shares"]], case["threshold"])


@bad("bad_params")
def test_bad_parameters(case) -> None:
    with pytest.raises(FaircountError):
        SurveyParameters.parse(case["published"].encode())


@bad("bad_messages")
def test_bad_messages(case) -> None:
    assert isinstance(decode(h(case["bytes"])), Rejected)


@bad("bad_requests")
def test_bad_statements(case) -> None:
    statement = decode(h(case["statement"]))
    assert unwrap(h(case["public"]), Party.S2, statement) is None


def acknowledged_root(case: dict) -> bytes:
    """What S1 signed, from body, place and path; empty for a path that does not fit."""
    accepted, body = h(case["accepted"]), h(case["body"])
    survey, body_hash, (index, size, count) = accepted[2:18], accepted[18:50], struct.unpack(">3I", accepted[50:62])
    path = [accepted[62 + 32 * i : 94 + 32 * i] for i in range(count)]
    if body_hash != sha256(body).digest() or index >= size:
        return b""
    node = labelled("acknowledged", body_hash)
    at, width = index, size
    while width > 1:
        if at ^ 1 < width:
            if not path:
                return b""
            other = path.pop(0)
            node = sha256(b"\1" + (other + node if at & 1 else node + other)).digest()
        at, width = at >> 1, (width + 1) >> 1
    return b"" if path else b"faircount/1/acknowledgement\0" + survey + struct.pack(">I", size) + node


@pytest.mark.parametrize("case", cases("acknowledgements"))
def test_acknowledgements(case) -> None:
    key = Ed25519PublicKey.from_public_bytes(h(case["s1"]))
    key.verify(h(case["accepted"])[-72:-8], acknowledged_root(case))


@bad("bad_acknowledgements")
def test_bad_acknowledgements(case) -> None:
    accepted = decode(h(case["accepted"]))
    assert not acknowledges(
        SurveyParameters.parse(cases("params")[0]["published"].encode()), accepted, decode(h(case["body"]))
    )

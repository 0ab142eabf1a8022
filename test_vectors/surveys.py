"""Test vectors of parameters, rosters, sets, clients' uploads, messages and signatures."""

import json
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
from basics import SURVEY, Case, Listed, pair, secret

from faircount.accounting.levels import Levels
from faircount.core.arrays import Residues
from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Sheet,
    Table,
    YesNo,
)
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, Topology
from faircount.protocol.peers import member as user
from faircount.protocol.peers.messages import PeerKey
from faircount.protocol.peers.self_mask import AttemptContext, mask_vector
from faircount.protocol.survey.acknowledgement import sign_together, unsigned_acknowledgement
from faircount.protocol.survey.devices import sign_for_device
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.operators import Operator, format_fingerprint, operator_of
from faircount.protocol.survey.parameters import NO_KEY, Keys, SurveyParameters, propose
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import Complaint, PeerSum
from faircount.protocol.topologies.masked import graph
from faircount.protocol.topologies.masked.masks import mask_secrets, masks_of
from faircount.protocol.topologies.masked.messages import KeyBundle, MaskedSum, UnmaskShares
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.reports import draw_vector
from faircount.protocol.topologies.two_stage import election
from faircount.protocol.topologies.two_stage.messages import Indicator, SlotBundle, SlotSums
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.codec import Party, add_checksum, encode
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.digests import (
    build_tree,
    entry_leaves,
    merkle_root,
    prove,
    roster_digest,
    set_digest,
)
from faircount.protocol.wire.messages import (
    OutcomeRequest,
    PollRequest,
    Published,
    Signed,
    Withdrawal,
)
from faircount.protocol.wire.signing import SigningKey, request_bytes, sign
from faircount.sharing.keys import SEED_BYTES, public_key

ITEMS = ("tea", "coffee", "water")


QUESTIONNAIRE = Questionnaire(
    (
        OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
        YesNo(text="Would you recommend us?"),
        AnyOf(text="What do you drink?", items=("tea", "coffee", "water"), skip=True),
        MostOf(text="What matters most?", items=("taste", "price", "time", "place"), most=2),
        ScaleCounts(text="How satisfied are you?", items=("not", "rather", "very")),
        Number(
            text="Cups a day?", low=Fraction(0), high=Fraction(5), step=Fraction(1, 2), skip=True
        ),
        ScaleMean(text="How likely?", items=("never", "maybe", "surely"), only_if=Branch(1, (1,))),
        Bands(
            text="Minutes?",
            edges=(Fraction(0), Fraction(5, 2), Fraction(10)),
            only_if=Branch(0, (0, 2)),
        ),
        Table(
            text="Season?", columns_text="Time?", rows=("summer", "winter"), columns=("am", "pm")
        ),
    ),
    "Drinks at work",
    "en",
)
"""Questions of every kind, with branches and "prefer not to say"."""

SHEETS: tuple[Sheet, ...] = (
    (0, 1, (0, 2), (), 0, 10, 2, 1, 3),
    (1, 0, None, (1,), 1, 0, None, 2, 0),
    (2, 1, (), (0, 3), 2, None, 0, 0, 1),
    (3, 0, (0, 1, 2), (2, 3), 0, 7, None, 2, 2),
)


def parameters(topology: Topology = SERVERS, **terms: Any) -> SurveyParameters:
    """A small survey.

    Its keys are number 100 (the coordinator), 101 (the aggregator's signatures), 102 (the
    aggregator's encryption), 105 and 106 (the operators of the coordinator and the aggregator).
    Devices of participants have the keys 107 and 108.
    """
    keys = Keys(
        SigningKey(secret(100)).public,
        SigningKey(secret(101)).public,
        pair(102).public,
        sha256(secret(104)).digest(),
        sha256(secret(103)).digest(),
        SigningKey(secret(105)).public,
        SigningKey(secret(106)).public,
    )
    mechanism = terms.pop("mechanism", None) or DPDS(items=ITEMS, users=100, p=0.25, floor=20)
    people = {
        "owner": "Tea House",
        "purpose": "to order the right drinks",
        "contact": "tea@example.org",
    }
    servers = {"s1_operator": "Tea House", "s2_operator": "Count & Sons"}
    agreed = {
        "question": "What do you drink?",
        **people,
        **servers,
        "epsilon": 1.0,
        "delta": 0.5,
        "minimum": 80,
        **terms,
    }
    return propose(mechanism, keys, survey=SURVEY, topology=topology, **agreed)


def _first_sheet(params: SurveyParameters) -> Sheet:
    """The second answer to a single question, or the first sheet of the questionnaire."""
    questions = len(params.questionnaire)
    return (1,) if questions == 1 else SHEETS[0][:questions]


def leveled_survey() -> SurveyParameters:
    """The first two questions of the questionnaire, with three hidden privacy levels."""
    return parameters(
        mechanism=ServerLevels(
            questionnaire=Questionnaire(QUESTIONNAIRE.questions[:2], "Drinks at work", "en"),
            groups=split_epsilon(0.25, [[1], [0]], [1.0, 2.0]),
            levels=Levels.of({"very strong": 0.25, "strong": 0.5, "normal": 1.0}),
            epsilon=1.0,
            users=10,
        ),
        delta=1e-6,
        minimum=2,
    )


def proven_surveys() -> tuple[SurveyParameters, ...]:
    """Surveys with validity proofs: noise from both servers, joint, with levels, Laplace or coins,
    or placed coins.
    """
    return (
        parameters(
            mechanism=ServerSheets(
                questionnaire=QUESTIONNAIRE,
                groups=split_epsilon(1.0, [[0, 1, 2, 3, 4, 6, 7, 8], [5]], [3.0, 1.0]),
                epsilon=1.0,
                users=10,
            ),
            delta=1e-6,
            minimum=2,
        ),
        parameters(
            mechanism=ServerLaplace(items=ITEMS, users=10, epsilon=1.0), delta=1e-6, minimum=2
        ),
        parameters(
            mechanism=ServerCoins(items=ITEMS, users=10, epsilon=1.0, delta=1e-6),
            delta=1e-6,
            minimum=2,
        ),
        leveled_survey(),
        parameters(mechanism=PlacedCoins(items=ITEMS, users=10, epsilon=1.0, coins=8), minimum=10),
    )


# --- parameters, rosters, sets


def params() -> list[Case]:
    """Published parameters of every topology, and their digest."""
    found = [
        parameters(),
        parameters(
            mechanism=Laplace(items=ITEMS, users=10, epsilon=1.0, insiders=1),
            delta=1e-6,
            minimum=10,
        ),
        parameters(EXPLICIT, attempts=5, phase_seconds=(3600, 3600, 600), population="staff"),
        parameters(MASKED, k=26, t=6, attempts=2),
        parameters(
            TWO_STAGE,
            mechanism=TSSPrime(items=ITEMS, users=9, p=0.25, alpha=1 / 3, phi=1),
            minimum=9,
        ),
        *proven_surveys(),
    ]
    return [{"published": survey.published.decode(), "digest": survey.digest} for survey in found]


def bad_params() -> list[Case]:
    """Bytes that are not the published form of any parameters."""
    good = parameters().published.decode()
    plain = json.loads(good)
    proven = json.loads(proven_surveys()[1].published)

    def other(**change: Any) -> str:
        return canonical.encode({**plain, **change}).decode()

    def other_proof(**change: Any) -> str:
        derived = proven["derived"]
        return canonical.encode(
            {**proven, "derived": {**derived, "proof": {**derived["proof"], **change}}}
        ).decode()

    coins = json.loads(proven_surveys()[2].published)

    def other_settings(survey: dict[str, Any], **change: Any) -> str:
        settings = {**survey["settings"], **change}
        return canonical.encode({**survey, "settings": settings}).decode()

    leveled = json.loads(leveled_survey().published)
    strongest, strong, weakest = leveled["settings"]["levels"]
    often = {**leveled["derived"], "coins": ["0", str(1 << 127), str(1 << 128)]}

    cases = {
        "a float": good.replace('"minimum":80', '"minimum":80.0'),
        "an exponent": good.replace('"minimum":80', '"minimum":8e1'),
        "above 2^53 - 1": good.replace('"minimum":80', '"minimum":9007199254740992'),
        "a key twice": good.replace('"minimum":80', '"minimum":80,"minimum":80'),
        "an unknown key": other(zero=0),
        "a missing key": canonical.encode(
            {name: plain[name] for name in plain if name != "phi"}
        ).decode(),
        "a space": good.replace('"minimum":80', '"minimum": 80'),
        "keys not sorted": good.replace('{"attempts":1,', "{", 1)[:-1] + ',"attempts":1}',
        "an escape that is not needed": good.replace("drink", "dr\\u0069nk"),
        "q does not follow from the rest": other(derived={**plain["derived"], "q": "103"}),
        "phi does not follow from the rest": other(phi=2),
        "leading zeros": other(epsilon="0" + plain["epsilon"]),
        "an upper-case survey id": other(survey=SURVEY.hex().upper()),
        "a promise that does not hold": other(delta="1"),
        "the first version": other(version=1),
        "the second version": other(version=2),
        "a version to come": other(version=4),
        "not JSON": good[:-1],
        "no attempt": other(attempts=0),
        "too many attempts": other(attempts=(1 << 16) + 1),
        "two phases where there is one": other(phase_seconds=[60, 60]),
        "a real number between two doubles": other(epsilon=str(int(plain["epsilon"]) + 1)),
        "more spare bits than a field has": other_settings(plain, spare_bits=63),
        "more holders than participants": other_settings(plain, floor=1 << 31),
        "a delta that is no number": other_settings(plain, delta="a little"),
        "everybody may be missing": other_settings(proven, dropouts=10),
        "coins given twice": other_settings(coins, coins=148),
        "coins from nothing": other_settings(coins, delta=None),
        "more coins than epsilon and delta need": canonical.encode(
            {**coins, "derived": {**coins["derived"], "D": coins["derived"]["D"] + 1}}
        ).decode(),
        "a coin that counts people again too often": canonical.encode(
            {**leveled, "derived": often}
        ).decode(),
        "levels that do not ascend": other_settings(leveled, levels=[strong, strongest, weakest]),
        "two levels of one name": other_settings(
            leveled, levels=[strongest, {**strong, "name": strongest["name"]}, weakest]
        ),
        "a single level": other_settings(leveled, levels=[weakest]),
        "a promise of the strongest level only": canonical.encode(
            {**leveled, "epsilon": strongest["epsilon"]}
        ).decode(),
        "a weakest level that loses more than is said": other_settings(
            leveled, epsilon=strong["epsilon"]
        ),
        "questions that spend more than the strongest level": other_settings(
            leveled,
            groups=[{"epsilon": strong["epsilon"], "questions": [0, 1]}],
        ),
        "a question of a lower degree": other_proof(degree=5),
        "another modulus of the question's field": other_proof(modulus=[5, 1, 0, 0, 0, 0, 0, 1]),
        "noise of somebody else": other_proof(noise="users"),
        "coins that nobody flips": other_proof(coins=1),
        "both servers committed to one value": canonical.encode(
            {
                **proven,
                "keys": {
                    **proven["keys"],
                    "aggregator_commitment": proven["keys"]["coordinator_commitment"],
                },
            }
        ).decode(),
        "a server committed to nothing": canonical.encode(
            {**proven, "keys": {**proven["keys"], "coordinator_commitment": "00" * 32}}
        ).decode(),
        "a proof that is not there": canonical.encode(
            {
                **proven,
                "derived": {
                    name: value for name, value in proven["derived"].items() if name != "proof"
                },
            }
        ).decode(),
    }
    return [{"why": why, "published": text} for why, text in cases.items()]


def rosters() -> list[Case]:
    """Leaves, root and digest of rosters, and the audit path of the last entry."""
    made = []
    for n in (1, 2, 3, 7):
        lines = [(sha256(bytes([i])).digest()[:16], public_key(secret(i))) for i in range(n)]
        leaves = list(entry_leaves(lines))
        digest = parameters().digest
        root = merkle_root(leaves)
        proof = prove(build_tree(leaves), n - 1)
        made.append(
            {
                "lines": list(map(list, lines)),
                "leaves": leaves,
                "root": root,
                "params_digest": digest,
            }
        )
        made[-1] |= {"digest": roster_digest(digest, n, root), "proof_of_last": list(proof.path)}
    return made


def sets() -> list[Case]:
    """Digest of the members of an attempt."""
    digest = sha256(b"roster").digest()
    cases = [
        (1, [0, 1, 2], 3, []),
        (2, [0, 8, 9], 10, [(0, 9)]),
        (1, [1, 3, 4, 6], 7, [(1, 3), (3, 6)]),
    ]
    return [
        {
            "digest": digest,
            "attempt": attempt,
            "members": members,
            "n": n,
            "removed": list(map(list, removed)),
        }
        | {"set_digest": set_digest(digest, attempt, members, n, removed)}
        for attempt, members, n, removed in cases
    ]


def invitations() -> list[Case]:
    """What is derived from the token of an invitation."""
    digest = parameters().digest
    guest = Invitation(secret(10), digest)
    key = public_key(secret(11))
    names = {
        "access": guest.access,
        "user": guest.user,
        "enrolment_mac_key": guest.enrolment_mac_key,
    }
    return [
        {
            "token": secret(10),
            "params_digest": digest,
            "public_key": key,
            **names,
            "mac": guest.authenticate_key(key),
        }
    ]


def graphs() -> list[Case]:
    """Neighbours in `masked`, and the order of helpers in `two-stage`."""
    digest = sha256(b"roster").digest()
    revealed = secret(103)
    ring = graph.draw_graph(revealed, digest, 12, 4)
    orders = election.draw_orders(revealed, digest, 3, (0, 2, 3, 5, 6))
    common = {"digest": digest, "revealed": revealed}
    return [
        common | {"n": 12, "k": 4, "neighbours": [ring.neighbours_of(i) for i in range(12)]},
        common | {"items": 3, "eligible": [0, 2, 3, 5, 6], "orders": orders.tolist()},
    ]


# --- clients


def servers_upload() -> list[Case]:
    """Reports of one client, without and with proofs; salt, nonce and the secret key of the device
    are the bytes 00, 01, ...
    """
    with_proofs = [
        _upload(params, draw_vector(params.mechanism, _first_sheet(params), Listed()))
        for params in proven_surveys()
    ]
    return [_upload(parameters(), np.array([0, 1, 0], dtype=np.uint8)), *with_proofs]


def _upload(params: SurveyParameters, response: Residues) -> Case:
    guest = Invitation(secret(10), params.digest)
    seed = secret(12)[:SEED_BYTES]
    body = servers_user.make_report(
        params, guest, response, seed, pair(11), Listed(), StandardCrypto()
    ).report
    return (
        {
            "published": params.published.decode(),
            "token": secret(10),
            "secret": secret(11),
            "seed": seed,
        }
        | {
            "response": response.tolist(),
            "salt": body.salt,
            "share": body.share,
            "encrypted_share": body.encrypted_share,
        }
        | {
            "body": encode(body),
            "commitment": StandardCrypto().commit(body.salt, body.share),
            "s2_secret": secret(102),
        }
    )


def masks() -> list[Case]:
    """Three clients that add masks: the mask of a pair, and sums of masks, which cancel."""
    params = parameters(MASKED, k=26, t=6)
    digest = sha256(b"roster").digest()
    binding = set_digest(digest, 1, [0, 1, 2], 3)
    now = AttemptContext(params, digest, 1, binding)
    keys = {i: pair(20 + i).public for i in range(3)}
    own = [
        masks_of(
            StandardCrypto(),
            now,
            i,
            mask_secrets(StandardCrypto(), pair(20 + i), {j: keys[j] for j in keys if j != i}),
        )
        for i in range(3)
    ]
    one = masks_of(StandardCrypto(), now, 0, mask_secrets(StandardCrypto(), pair(20), {1: keys[1]}))
    return [
        {
            "survey": SURVEY,
            "q": str(params.q),
            "items": params.N,
            "digest": digest,
            "attempt": 1,
            "set_digest": binding,
        }
        | {
            "mask_secrets": [secret(20 + i) for i in range(3)],
            "mask_0_1": one.tolist(),
            "sums": [row.tolist() for row in own],
        }
    ]


def explicit_users() -> list[Case]:
    """Three clients of one roster: bundles of shares, and a masked sum with its encrypted seed."""
    params = parameters(EXPLICIT, minimum=80, attempts=2)
    guests = sorted(
        (Invitation(secret(30 + i), params.digest) for i in range(3)), key=lambda guest: guest.user
    )
    members = [user.enrol(params, guest, Listed()) for guest in guests]
    members = [replace(member, keys=pair(40 + i)) for i, member in enumerate(members)]
    roster = tuple(PeerKey(member.user, member.keys.public) for member in members)
    root = merkle_root(entry_leaves((peer.user, peer.public_key) for peer in roster))
    digest = roster_digest(params.digest, 3, root)
    made = []
    for i, member in enumerate(members):
        shares = np.arange(9, dtype=np.uint8).reshape(3, 3) + 10 * i
        placed = replace(member, roster=roster, digest=digest, index=i)
        sharer = explicit_user.make_report(
            placed, np.array([1, 0, 0], dtype=np.uint8), shares, Listed()
        )
        made.append(
            {
                "secret": secret(40 + i),
                "index": i,
                "credential": member.credential,
                "shares": shares.tolist(),
            }
        )
        made[-1] |= {
            "survey": SURVEY,
            "digest": digest,
            "roster": [[p.user, p.public_key] for p in roster],
        }
        now = AttemptContext(params, digest, 1, set_digest(digest, 1, [0, 1, 2], 3))
        vector, encrypted_seed = mask_vector(
            placed, now, np.array([1, 2, 3], dtype=np.uint8), Listed()
        )
        made[-1] |= {"q": str(params.q), "bundle": encode(sharer.bundle), "s2_secret": secret(102)}
        made[-1] |= {
            "sum": [1, 2, 3],
            "set_digest": now.set_digest,
            "masked_sum": vector,
            "encrypted_seed": encrypted_seed,
        }
    return made


# --- messages and signatures


def messages() -> list[Case]:
    """Messages that clients send or check, field by field in the order of their bytes."""
    one = sha256(b"1").digest()
    two = sha256(b"2").digest()
    examples = [
        PollRequest(SURVEY, 7, one),
        sign_for_device(Withdrawal, parameters(), one, SigningKey(secret(107))),
        Complaint(SURVEY, 7, one, 2, (1, 258)),
        KeyBundle(SURVEY, 7, one, two, (b"encrypted_share", b"")),
        PeerSum(SURVEY, 7, one, 1, two, b"vector", b"encrypted_share"),
        MaskedSum(SURVEY, 7, one, 1, two, one, b"vector", b"encrypted_share"),
        UnmaskShares(SURVEY, 7, one, two, b"encrypted_share"),
        Indicator(SURVEY, 7, one, b"\x05", two, one),
        SlotBundle(SURVEY, 7, one, 1, (b"a", b"bc")),
        SlotSums(SURVEY, 7, one, 1, two, b"vector", b"encrypted_share"),
        Published(SURVEY, one, two, one, 3, (-1, 0, 1 << 40), b"1", b"2", b"3", b"4"),
        make_aborted(
            SURVEY, Ending(EndCode.TOO_FEW_RESPONSES, (3, 258)), Party.COORDINATOR, spent=True
        ),
        make_aborted(SURVEY, Ending(EndCode.OWNER, (), "zu früh"), Party.COORDINATOR, spent=False),
        sign(SigningKey(secret(101)), Party.AGGREGATOR, PollRequest(SURVEY, 7, one)),
    ]
    return [
        {"name": type(example).__name__, "tag": example.tag, "bytes": encode(example)}
        for example in examples
    ]


def bad_messages() -> list[Case]:
    """Bytes that are no message."""
    good = encode(Complaint(SURVEY, 7, bytes(32), 2, (1, 258)))
    cases = [
        ("cut off", good[:-1]),
        ("a byte left over", good + b"\0"),
        ("the first version", b"\1" + good[1:]),
    ]
    cases += [("a changed byte", good[:20] + b"\7" + good[21:]), ("empty", b"")]
    body = good[:-8]
    made = [("unknown tag", b"\2\xff" + body[2:]), ("a list of 2^32 - 1", body[:-12] + b"\xff" * 4)]
    made += [("a byte left over, checked", body + b"\0"), ("cut off, checked", body[:-1])]
    cases += [(why, add_checksum(data)) for why, data in made]
    return [{"why": why, "bytes": data} for why, data in cases]


def requests() -> list[Case]:
    """Ed25519: a request of the coordinator to the aggregator, and a statement."""
    key = SigningKey(secret(100))
    nonce = bytes(range(16))
    method = "POST"
    path = "/surveys/00/claim"
    body = b"body"
    milliseconds = 1_700_000_000_000
    key_id = "s1-2026"
    signed = request_bytes(method, path, sha256(body).digest(), milliseconds, nonce, key_id)
    request = {
        "secret": key.secret,
        "public": key.public,
        "method": method,
        "path": path,
        "body": body,
    }
    request |= {"milliseconds": milliseconds, "nonce": nonce, "key_id": key_id}
    stated = sign(SigningKey(secret(101)), Party.AGGREGATOR, PollRequest(SURVEY, 7, bytes(32)))
    statement = {
        "secret": secret(101),
        "public": SigningKey(secret(101)).public,
        "by": int(Party.AGGREGATOR),
    }
    return [
        request | {"signed": signed, "signature": key.sign(signed)},
        statement | {"payload": stated.payload, "signature": stated.signature},
    ]


def acknowledgements() -> list[Case]:
    """The coordinator's acknowledgements of one, two and five messages, with one signature."""
    params = parameters()
    key = SigningKey(secret(100))
    device = SigningKey(secret(107))
    access_values = [sha256(bytes([i])).digest() for i in range(5)]
    first_messages = [
        sign_for_device(Withdrawal, params, access, device) for access in access_values
    ]
    made = []
    for count in (1, 2, 5):
        written = [
            unsigned_acknowledgement(SURVEY, sha256(encode(body)).digest())
            for body in first_messages[:count]
        ]
        signed = sign_together(key, written)
        pairs = zip(first_messages, signed, strict=False)
        made += [
            {
                "s1": params.keys.coordinator,
                "body": encode(body),
                "accepted": encode(acknowledgement),
            }
            for body, acknowledgement in pairs
        ]
    return made


def device_messages() -> list[Case]:
    """What the device that answered signs with its own key: a withdrawal, and a question."""
    params = parameters()
    device = SigningKey(secret(107))
    access = sha256(b"access").digest()
    examples = [
        sign_for_device(Withdrawal, params, access, device),
        sign_for_device(OutcomeRequest, params, access, device),
    ]
    return [
        {"name": type(example).__name__, "published": params.published.decode(), "access": access}
        | {"secret": device.secret, "public": device.public, "body": encode(example)}
        for example in examples
    ]


def bad_device_messages() -> list[Case]:
    """Messages that the device which answered has not signed."""
    params = parameters()
    device = SigningKey(secret(107))
    other = SigningKey(secret(108))
    access = sha256(b"access").digest()
    good = sign_for_device(Withdrawal, params, access, device)
    asked = sign_for_device(OutcomeRequest, params, access, device)
    elsewhere = sign_for_device(
        Withdrawal, replace(params, purpose="another purpose"), access, device
    )
    cases = [
        ("the signature of a question", replace(good, signature=asked.signature)),
        ("of another invitation", replace(good, access=bytes(32))),
        ("the key of another device", replace(good, device_key=other.public)),
        ("for other parameters", elsewhere),
        ("no signature", replace(good, signature=bytes(64))),
    ]
    return [
        {"why": why, "published": params.published.decode(), "body": encode(wrong)}
        for why, wrong in cases
    ]


def bad_acknowledgements() -> list[Case]:
    """Acknowledgements that a client must refuse."""
    key = SigningKey(secret(100))
    body = sign_for_device(Withdrawal, parameters(), bytes(32), SigningKey(secret(107)))
    hashes = [sha256(encode(body)).digest(), bytes(32)]
    good = sign_together(key, [unsigned_acknowledgement(SURVEY, digest) for digest in hashes])[0]
    cases = [
        ("of another body", replace(good, message_hash=bytes(32))),
        ("another place", replace(good, index=1)),
        ("another number of bodies", replace(good, size=3)),
        ("a path that is too long", replace(good, path=(*good.path, bytes(32)))),
        ("no path", replace(good, path=())),
        ("another survey", replace(good, survey=bytes(16))),
        (
            "signed by the aggregator",
            sign_together(SigningKey(secret(101)), [unsigned_acknowledgement(SURVEY, hashes[0])])[
                0
            ],
        ),
    ]
    return [
        {"why": why, "s1": key.public, "body": encode(body), "accepted": encode(wrong)}
        for why, wrong in cases
    ]


def bad_requests() -> list[Case]:
    """Statements whose signature must be refused."""
    good = sign(SigningKey(secret(101)), Party.AGGREGATOR, PollRequest(SURVEY, 7, bytes(32)))
    public = SigningKey(secret(101)).public
    cases = [
        ("another signer", replace(good, by=int(Party.COORDINATOR))),
        ("a changed message", replace(good, payload=good.payload[:-1] + b"\1")),
        (
            "a changed signature",
            replace(good, signature=bytes([good.signature[0] ^ 1]) + good.signature[1:]),
        ),
        (
            "no message inside",
            Signed(int(Party.AGGREGATOR), b"x", SigningKey(secret(101)).sign(b"x")),
        ),
    ]
    return [{"why": why, "public": public, "statement": encode(wrong)} for why, wrong in cases]


# --- operators


def operators() -> list[Case]:
    """Signatures of both operators under the parameters, and the fingerprints of their keys."""
    params = proven_surveys()[0]
    return [_signed_operators(params)]


def bad_operators() -> list[Case]:
    """Signatures that show a client nothing about who runs the servers."""
    params = proven_surveys()[0]
    good = _signed_operators(params)
    others = Operator(params.s1_operator, SigningKey(secret(107)))
    other_survey = _signed_operators(replace(params, survey=bytes(16)))
    cases = [
        ("no signature", {"s1": None}),
        ("not hexadecimal", {"s2": "zz" * 64}),
        ("too long", {"s1": good["s1"].hex() + "00"}),
        ("the roles exchanged", {"s1": good["s2"], "s2": good["s1"]}),
        ("signed by another key", {"s1": others.sign(params, Party.COORDINATOR)}),
        ("signed for another survey", {"s1": other_survey["s1"], "s2": other_survey["s2"]}),
        (
            "another name",
            {"published": replace(params, s2_operator="Acme").published.decode()},
        ),
        (
            "no key",
            {
                "published": replace(
                    params, keys=replace(params.keys, s1_operator_key=NO_KEY)
                ).published.decode()
            },
        ),
    ]
    return [{"why": why, **good, **change} for why, change in cases]


def _signed_operators(params: SurveyParameters) -> Case:
    first, key_1 = operator_of(params, Party.COORDINATOR)
    second, key_2 = operator_of(params, Party.AGGREGATOR)
    return {
        "published": params.published.decode(),
        "s1": Operator(first, SigningKey(secret(105))).sign(params, Party.COORDINATOR),
        "s2": Operator(second, SigningKey(secret(106))).sign(params, Party.AGGREGATOR),
        "fingerprints": [format_fingerprint(key_1), format_fingerprint(key_2)],
    }

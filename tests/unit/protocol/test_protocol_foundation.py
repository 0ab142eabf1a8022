"""States, canonical values, digests, signatures, invitations, first writes and packed matrices."""

import json
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import IllegalTransitionError, InputError, MalformedError, ParameterError, ProtocolError
from faircount.protocol.roles.write_once import Acknowledged, WriteOnce
from faircount.protocol.survey.invitations import Invitation, entry_holds, user_id
from faircount.protocol.survey.states import FINAL, TRANSITIONS, State, advance
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set, shrunk
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import (
    InclusionProof,
    bitmap,
    leaf,
    members_of,
    merkle_root,
    prove,
    proves,
    roster_digest,
    set_digest,
    tree,
)
from faircount.protocol.wire.messages import Rejected, Signed, SyncRequest
from faircount.protocol.wire.packed_rows import is_vector, pack_rows, sum_packed, unpack_rows
from faircount.protocol.wire.signing import SigningKey, request_bytes, sign, unwrap, verify
from faircount.sharing.field import uniform
from faircount.sharing.keys import canonical_key
from faircount.sharing.packing import pack, unpack

# --- states


def test_the_straight_way_and_both_detours() -> None:
    straight = [State.ENROLLING, State.SEALED, State.SUBMITTING, State.CLAIMED, State.OPENED, State.PUBLISHED]
    assert advance(State.DRAFT, *straight) is State.PUBLISHED
    assert advance(State.SEALED, State.SHARING, State.SUBMITTING, State.CLAIMED, State.RECOVERING, State.OPENED)
    assert advance(State.CLAIMED, State.SUBMITTING, State.CLAIMED) is State.CLAIMED


def test_every_step_that_is_not_in_the_table_raises() -> None:
    for before in State:
        for after in State:
            if after in TRANSITIONS[before]:
                assert advance(before, after) is after
            else:
                with pytest.raises(IllegalTransitionError, match=f"a survey that is {before} cannot become {after}"):
                    advance(before, after)


def test_everything_may_abort_but_what_is_over() -> None:
    assert {State.PUBLISHED, State.ABORTED} == FINAL
    assert all((State.ABORTED in after) == (state not in FINAL) for state, after in TRANSITIONS.items())
    assert issubclass(IllegalTransitionError, ProtocolError)


# --- canonical values

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-canonical.LARGEST, canonical.LARGEST) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_values_survive_their_bytes(value) -> None:
    try:
        data = canonical.encode(value)
    except MalformedError:
        return  # an unpaired surrogate, or nested too deep
    assert canonical.decode(data) == value


@given(plain, st.booleans())
def test_other_spellings_are_refused(value, indent) -> None:
    spelled = json.dumps(
        value, ensure_ascii=False, indent=1 if indent else None, separators=None if indent else (", ", ": ")
    )
    try:
        data, exact = spelled.encode(), canonical.encode(value)
    except (UnicodeEncodeError, MalformedError):
        return
    if data != exact:
        with pytest.raises(MalformedError):
            canonical.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"1.5",
        b"1e3",
        b"NaN",
        b"Infinity",
        b"9007199254740992",
        b"-9007199254740992",
        b"1" * 5000,
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b' {"a":1}',
        b"01",
        b"-0",
        b'"\\u0041"',
        b'"\\/"',
        b"\xff",
        b"\xef\xbb\xbf1",
        b'"\\ud800"',
        b"[" * 2000 + b"]" * 2000,
        b"[" * 200_000,
        b"[[[[[[[[[[[1]]]]]]]]]]]",
    ],
)
def test_bytes_that_are_nobodys_encoding(data) -> None:
    with pytest.raises(MalformedError):
        canonical.decode(data)


@pytest.mark.parametrize("value", [1.5, 1 << 53, {1: 2}, b"x", {"a": {1, 2}}, "\ud800"])
def test_values_that_cannot_be_published(value) -> None:
    with pytest.raises(MalformedError):
        canonical.encode(value)


@given(st.floats(2.0**-75, 1e6))
def test_real_numbers_are_exact(value) -> None:
    assert canonical.unscaled(canonical.scaled(value)) == value
    assert Fraction(int(canonical.scaled(value)), canonical.UNIT) == Fraction(value)


def test_real_numbers_too_fine_to_publish_are_rounded_up_or_refused() -> None:
    with pytest.raises(MalformedError):
        canonical.scaled(2.0**-130)
    assert canonical.scaled_up(2.0**-130) == "1"
    assert canonical.scaled_up(0.0) == "0"
    for text in ("+1", "01", "", "-", "1.0", "--1", "\u0661", 3, None):
        with pytest.raises(MalformedError):
            canonical.big(text)
    assert canonical.big("-12") == -12
    assert issubclass(MalformedError, InputError)


# --- digests


@given(st.integers(0, 70), st.data())
def test_inclusion_proofs(size, data) -> None:
    leaves = [sha256(bytes([i])).digest() for i in range(size)]
    root = merkle_root(leaves)
    if not size:
        assert root == sha256(b"").digest()
        return
    index = data.draw(st.integers(0, size - 1))
    proof = prove(tree(leaves), index)
    assert proves(proof, leaves[index], root)
    assert not proves(proof, sha256(b"other").digest(), root)
    assert not proves(InclusionProof(index, size, (*proof.path, bytes(32))), leaves[index], root)
    assert not proves(InclusionProof(size, size, proof.path), leaves[index], root)
    if proof.path:
        assert not proves(InclusionProof(index, size, proof.path[:-1]), leaves[index], root)


def test_known_trees() -> None:
    """RFC 6962: leaves of three, left to right; the last moves up."""
    a, b, c = (sha256(bytes([0, i])).digest() for i in range(3))
    assert merkle_root([a]) == a
    ab = sha256(b"\1" + a + b).digest()
    assert merkle_root([a, b, c]) == sha256(b"\1" + ab + c).digest()
    assert leaf(1, bytes(16), bytes(32)) == sha256(b"\0\0\0\0\1" + bytes(48)).digest()


def test_digests_bind_everything() -> None:
    base = (bytes(32), 1, (0, 2), 5)
    one = set_digest(*base)
    others = [
        set_digest(b"\1" * 32, 1, (0, 2), 5),
        set_digest(bytes(32), 2, (0, 2), 5),
        set_digest(bytes(32), 1, (0, 1), 5),
        set_digest(bytes(32), 1, (0, 2), 6),
        set_digest(*base, [(0, 2)]),
        roster_digest(bytes(32), 5, bytes(32)),
    ]
    assert len({one, *others}) == 7
    assert set_digest(*base, [(1, 2), (0, 2)]) == set_digest(*base, [(0, 2), (1, 2)])


@given(st.sets(st.integers(0, 40)), st.integers(41, 60))
def test_bitmaps(members, n) -> None:
    bits = bitmap(members, n)
    assert members_of(bits, n) == tuple(sorted(members))
    assert members_of(bits + b"\0", n) is None
    if n % 8:
        assert members_of(bits[:-1] + bytes([bits[-1] | 0x80]), n) is None


# --- sets


@given(st.integers(2, 7), st.integers(0, 3), st.data())
def test_sets_that_hold_together_do_without_any_phi_users(n, phi, data) -> None:
    from itertools import combinations

    pairs = list(combinations(range(n), 2))
    removed = data.draw(st.sets(st.sampled_from(pairs)))
    if holds_together(range(n), removed, phi):
        for gone in combinations(range(n), min(phi, n - 1)):
            left = [i for i in range(n) if i not in gone]
            reached, todo = {left[0]}, [left[0]]
            while todo:
                i = todo.pop()
                near = {j for j in left if j not in reached and (min(i, j), max(i, j)) not in removed}
                reached |= near
                todo += near
            assert reached == set(left)
            assert len(left) >= 2


@given(st.integers(2, 8), st.integers(0, 2), st.data())
def test_shrunk_sets_hold_together_or_vanish(n, phi, data) -> None:
    from itertools import combinations

    removed = data.draw(st.sets(st.sampled_from(list(combinations(range(n), 2)))))
    members, pairs = shrunk(range(n), removed, phi)
    assert not pairs or holds_together(members, pairs, phi)
    assert all(i in members and j in members for i, j in pairs)
    if not removed:
        assert members == tuple(range(n))


def test_sets_have_one_description() -> None:
    wanted = PeerSet(bytes(32), 1, 5, (0, 2, 3), frozenset({(0, 3)}))
    assert peer_set(bytes(32), 1, 5, wanted.bits, wanted.edges) == wanted
    assert peer_set(bytes(32), 1, 5, wanted.bits, wanted.edges * 2) is None
    assert peer_set(bytes(32), 1, 5, b"\xff", ()) is None


# --- signatures and invitations


def test_statements_are_bound_to_their_signer() -> None:
    key, other = SigningKey.generate(SeededStream(1)), SigningKey.generate(SeededStream(2))
    signed = sign(key, Party.S1, SyncRequest(bytes(16)))
    assert unwrap(key.public, Party.S1, signed) == SyncRequest(bytes(16))
    assert unwrap(other.public, Party.S1, signed) is None
    assert unwrap(key.public, Party.S2, signed) is None
    assert unwrap(key.public, Party.S2, Signed(Party.S2, signed.payload, signed.signature)) is None
    assert unwrap(key.public, Party.S1, Signed(Party.S1, b"junk", key.sign(b"junk"))) is None
    assert sign(key, Party.S1, SyncRequest(bytes(16))) == signed


def test_requests_are_bound_to_every_field() -> None:
    base = ("POST", "/claims", b"body", 5, bytes(16), "k1")
    key = SigningKey.generate(SeededStream(1))
    signature = key.sign(request_bytes(*base))
    assert verify(key.public, signature, request_bytes(*base))
    for at, other in enumerate(("GET", "/claim", b"bod", 6, b"\1" * 16, "k2")):
        changed = (*base[:at], other, *base[at + 1 :])
        assert not verify(key.public, signature, request_bytes(*changed))
    assert not verify(b"short", signature, request_bytes(*base))
    with pytest.raises(MalformedError):
        request_bytes("POST", "/", b"", 0, b"", "k")


def test_known_request_bytes() -> None:
    got = request_bytes("POST", "/a", b"", 258, bytes(range(16)), "k")
    want = b"faircount/1/s1-s2\0" + b"\0\0\0\4POST" + b"\0\0\0\2/a" + sha256(b"").digest()
    assert got == want + b"\0\0\0\0\0\0\1\2" + bytes(range(16)) + b"\0\0\0\1k"


def test_an_invitation_gives_each_server_its_part() -> None:
    entropy = SeededStream(1)
    mine, other = Invitation.issue(bytes(32), entropy), Invitation.issue(bytes(32), entropy)
    key = b"\2" * 31 + b"\0"
    assert mine.access == sha256(b"s1" + mine.token).digest()
    assert mine.user == user_id(mine.access)
    assert entry_holds(mine.sealing_key, bytes(32), key, mine.seal(key))
    assert not entry_holds(other.sealing_key, bytes(32), key, mine.seal(key))
    assert not entry_holds(mine.sealing_key, b"\1" * 32, key, mine.seal(key))
    assert not entry_holds(mine.sealing_key, bytes(32), b"\3" * 31 + b"\0", mine.seal(key))
    assert not entry_holds(None, bytes(32), key, mine.seal(key))
    assert mine.token.hex() not in repr(mine)
    assert repr(mine.token)[2:-1] not in repr(mine)
    with pytest.raises(ParameterError):
        Invitation(b"short", bytes(32))


def test_public_keys_have_one_encoding() -> None:
    prime = (1 << 255) - 19
    assert canonical_key((prime - 1).to_bytes(32, "little"))
    assert not canonical_key(prime.to_bytes(32, "little"))
    assert not canonical_key(b"\xff" * 32)
    assert not canonical_key(bytes(31))


# --- first writes


def test_first_writes_stand() -> None:
    store: WriteOnce[int, str] = WriteOnce()
    assert store.put(1, "a")
    assert store.put(1, "a")
    backup = store.copy()
    assert not store.fits(1, "b")
    assert not store.put(1, "b")
    assert store.put(2, "b")
    assert (store[1], store.get(3), len(store), store.keys(), 2 in store) == ("a", None, 2, [1, 2], True)
    assert len(backup) == 1
    assert store != backup
    assert "a" not in repr(store)


def test_spoiled_bytes_are_noticed_and_mended_by_the_same_message_again() -> None:
    store: Acknowledged[int] = Acknowledged()
    first, other = Rejected(1, b"first"), Rejected(2, b"other")
    assert store.put(1, first)
    assert store.intact(1) == first
    assert store.intact(2) is None
    assert not store.put(1, other)
    assert not store.fits(1, other)
    store._written[1] = other  # a disk does this
    assert store.intact(1) is None
    assert store.copy().intact(1) is None
    assert not store.put(1, other)  # what stands is what was acknowledged
    assert store.put(1, first)
    assert store.intact(1) == first
    assert store.hash_of(1) == sha256(encode(first)).digest()


# --- packed matrices


@given(
    st.sampled_from([2, 7, 251, 257, 1009, 65537, 100003, 2**31 - 1, 2**61 - 1]), st.integers(1, 9), st.integers(0, 5)
)
def test_rows_are_packed_as_single_vectors_are(q, count, rows) -> None:
    matrix = uniform(q, (rows, count), SeededStream(q + count))
    packed = pack_rows(matrix, q)
    assert packed == [pack(row, q) for row in matrix]
    back, fine = unpack_rows(packed, q, count)
    assert fine.all()
    assert np.array_equal(back, matrix)
    total = sum(matrix.astype(object)) % q if rows else np.zeros(count)
    assert sum_packed(packed, q, count).tolist() == list(total)


@given(st.binary(max_size=8), st.sampled_from([5, 7, 251, 1009]), st.integers(1, 5))
def test_bad_rows_are_found_as_single_vectors_are(data, q, count) -> None:
    try:
        wanted = unpack(data, q, count)
    except InputError:
        wanted = None
    rows, fine = unpack_rows([data], q, count)
    assert bool(fine[0]) == (wanted is not None) == is_vector(data, q, count)
    assert rows[0].tolist() == (wanted.tolist() if wanted is not None else [0] * count)

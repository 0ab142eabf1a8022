"""Digests, Merkle trees and bitmaps."""

from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.protocol.wire.digests import (
    MerkleProof,
    audit_path,
    audit_paths,
    bitmap,
    build_tree,
    leaf,
    members_of,
    merkle_root,
    multiproof,
    prove,
    root_from_multiproof,
    root_of_proof,
    roster_digest,
    set_digest,
    verify_proof,
)


@settings(max_examples=60)
@given(size=st.integers(1, 40), data=st.data())
def test_some_leaves_and_the_hashes_beside_them_give_the_root(size, data) -> None:
    leaves = [sha256(bytes([i])).digest() for i in range(size)]
    places = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    levels = build_tree(leaves)
    hashes = multiproof(levels, places)
    known = {at: leaves[at] for at in places}
    assert levels[-1][0] == merkle_root(leaves) == root_from_multiproof(size, known, hashes)
    assert root_from_multiproof(size, known, (*hashes, bytes(32))) is None
    if hashes:
        assert root_from_multiproof(size, known, hashes[1:]) is None
        assert root_from_multiproof(size, known, (bytes(32), *hashes[1:])) != levels[-1][0]
    wrong = {**known, min(places): bytes(32)}
    assert root_from_multiproof(size, wrong, hashes) != levels[-1][0]


def test_one_path_is_a_multiproof_of_one_leaf() -> None:
    for size in range(1, 20):
        leaves = [sha256(bytes([i])).digest() for i in range(size)]
        levels = build_tree(leaves)
        paths = [audit_path(levels, at) for at in range(size)]
        assert paths == audit_paths(levels) == [multiproof(levels, [at]) for at in range(size)]
        for at, path in enumerate(paths):
            assert root_of_proof(MerkleProof(at, size, path), leaves[at]) == merkle_root(leaves)
            assert root_of_proof(MerkleProof(at, size, (*path, bytes(32))), leaves[at]) is None
            if path:
                assert root_of_proof(MerkleProof(at, size, path[1:]), leaves[at]) is None


def test_all_leaves_need_nothing_beside_them() -> None:
    leaves = [sha256(bytes([i])).digest() for i in range(13)]
    assert multiproof(build_tree(leaves), range(13)) == ()


@given(n=st.integers(1, 70), data=st.data())
def test_bitmaps(n, data) -> None:
    members = data.draw(st.sets(st.integers(0, n - 1)))
    bits = bitmap(members, n)
    assert [bits[i >> 3] >> (i & 7) & 1 for i in range(n)] == [i in members for i in range(n)]
    assert members_of(bits, n) == tuple(sorted(members))


@given(st.integers(0, 70), st.data())
def test_inclusion_proofs(size, data) -> None:
    leaves = [sha256(bytes([i])).digest() for i in range(size)]
    root = merkle_root(leaves)
    if not size:
        assert root == sha256(b"").digest()
        return
    index = data.draw(st.integers(0, size - 1))
    proof = prove(build_tree(leaves), index)
    assert verify_proof(proof, leaves[index], root)
    assert not verify_proof(proof, sha256(b"other").digest(), root)
    assert not verify_proof(MerkleProof(index, size, (*proof.path, bytes(32))), leaves[index], root)
    assert not verify_proof(MerkleProof(size, size, proof.path), leaves[index], root)
    if proof.path:
        assert not verify_proof(MerkleProof(index, size, proof.path[:-1]), leaves[index], root)


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
def test_bitmaps_have_one_spelling(members, n) -> None:
    bits = bitmap(members, n)
    assert members_of(bits, n) == tuple(sorted(members))
    assert members_of(bits + b"\0", n) is None
    if n % 8:
        assert members_of(bits[:-1] + bytes([bits[-1] | 0x80]), n) is None

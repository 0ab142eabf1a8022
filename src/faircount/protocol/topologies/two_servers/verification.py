"""Which reports of a manifest part the aggregator accepts, and the sum of its shares of those.

    decrypt   the seeds of all entries with a valid enrolment MAC
    expand    the seeds into the aggregator's shares, a block of rows at a time
    check     where reports are proven: the verifier shares of both servers say which are valid
    sum       the shares of the accepted reports: all that decrypt, or all that are valid

The shares themselves are forgotten with their block. What the aggregator stores about a part is a
`PartVerification` message: bitmaps, its verifier shares, and its shares of the coins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.mechanisms.verified import Tally, as_verified
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.two_servers.messages import ManifestEntry, PartVerification
from faircount.protocol.topologies.two_servers.reports import (
    derive_query,
    pack_verifier_shares,
    report_layout_of,
    row_blocks,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, seed_info
from faircount.protocol.topologies.two_servers.validity import Query
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import ShareBatch
from faircount.protocol.wire.packed_rows import sum_batches
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import pack


@dataclass(frozen=True, slots=True)
class DecryptedSeed:
    """The seed of one report, and the entry's position in its part of the manifest."""

    position: int
    entry: ManifestEntry
    seed: bytes


def verify_part(
    s: Aggregator,
    rows: StepRows,
    entries: Sequence[ManifestEntry],
    batch: ShareBatch,
    coordinator_shares: Residues | None,
) -> tuple[PartVerification, Residues]:
    """What is stored about a part, and the aggregator's sum over its accepted reports.

    `coordinator_shares` are the coordinator's verifier shares of all entries, one row each; None
    where reports are not proven.
    """
    seeds = _decrypt_seeds(s, rows, entries, batch.encrypted_shares)
    positions = [seed.position for seed in seeds]
    decrypted = bitmap(positions, len(entries))
    layout = report_layout_of(s.params.mechanism)
    # Without proofs every report that decrypts counts, and nothing else is stored.
    if layout is None or coordinator_shares is None:
        return PartVerification(b"", decrypted, b"", b""), _sum_shares(s, seeds)
    # From both values: either server alone would know the point while clients still send.
    query = derive_query(s.params, layout, (batch.revealed, s.committed_value))
    own_shares, is_valid, tally = _check_proofs(s, query, seeds, coordinator_shares[positions])
    accepted = bitmap(np.array(positions, dtype=np.int64)[is_valid], len(entries))
    coins = pack(tally.coins.reshape(-1), s.params.q)
    verification = PartVerification(
        decrypted, accepted, pack_verifier_shares(own_shares, layout), coins
    )
    return verification, tally.cells


def _decrypt_seeds(
    s: Aggregator,
    rows: StepRows,
    entries: Sequence[ManifestEntry],
    encrypted_shares: Sequence[bytes],
) -> list[DecryptedSeed]:
    """The seeds of all reports that have a valid enrolment MAC and can be decrypted."""
    seeds = list[DecryptedSeed]()
    for position, entry in enumerate(entries):
        seed = _decrypt_seed(s, rows, entry, encrypted_shares[position])
        if seed is not None:
            seeds.append(DecryptedSeed(position, entry, seed))
    return seeds


def _decrypt_seed(
    s: Aggregator, rows: StepRows, entry: ManifestEntry, encrypted_share: bytes
) -> bytes | None:
    # The MAC comes from the invitation: the coordinator cannot make up participants.
    if not aggregator.has_valid_mac(s, rows, entry):
        return None
    secret = s.crypto.agree(s.encryption_keys, entry.public_key)
    if secret is None:
        return None
    # Bound to the commitment to share1: the halves of two reports cannot be combined.
    info = seed_info(s.params, entry.user, entry.public_key, entry.commitment)
    seed = s.crypto.decrypt(secret, s.params.digest, info, encrypted_share)
    if seed is None or len(seed) != SEED_BYTES:
        return None
    return seed


def _expand_shares(s: Aggregator, seeds: Sequence[DecryptedSeed]) -> Residues:
    """The aggregator's shares of these reports, one row each."""
    infos = [expansion_info(s.params, seed.entry.user, seed.entry.public_key) for seed in seeds]
    return s.crypto.expand_rows(
        [seed.seed for seed in seeds],
        s.params.digest,
        infos,
        s.params.q,
        s.params.vector_size,
    )


def _sum_shares(s: Aggregator, seeds: Sequence[DecryptedSeed]) -> Residues:
    blocks = row_blocks(len(seeds), s.params.N)
    # Block by block: the expanded shares of a large part would not fit into memory.
    shares = (_expand_shares(s, seeds[block]) for block in blocks)
    return sum_batches(shares, s.params.q, s.params.N)


def _check_proofs(
    s: Aggregator, query: Query, seeds: Sequence[DecryptedSeed], coordinator_shares: Residues
) -> tuple[Residues, Bools, Tally]:
    """The aggregator's verifier shares, which reports are valid, and the tally of those."""
    own_shares = np.empty((len(seeds), query.layout.verifier_size), dtype=dtype_for(s.params.q))
    # Filled while the tally consumes the shares, so that each is expanded once.
    is_valid = np.empty(len(seeds), dtype=np.bool_)

    def valid_shares() -> Iterator[Residues]:
        for block in row_blocks(len(seeds), query.layout.width):
            shares = _expand_shares(s, seeds[block])
            own_shares[block] = query.verifier_shares(shares)
            # check: invalid-reports - a malicious client would skew the result
            is_valid[block] = query.accepts(coordinator_shares[block], own_shares[block])
            yield shares[is_valid[block]]

    tally = as_verified(s.params.mechanism).tally(valid_shares())
    return own_shares, is_valid, tally

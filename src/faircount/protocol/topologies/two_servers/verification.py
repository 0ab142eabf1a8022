"""Which reports of a manifest part the aggregator accepts, and the sum of its shares of those.

    decrypt   the seeds of all entries with a valid enrolment MAC
    expand    the seeds into the aggregator's shares, a block of rows at a time
    check     where reports are proven: the verifier shares of both servers say which are valid
    sum       the shares of the accepted reports: all that decrypt, or all that are valid

The shares themselves are forgotten with their block. What the aggregator stores about a part is a
`StoredVerification` message: bitmaps, its verifier shares, its sum, and its shares of the coins.

Nothing here depends on other parts or on what was stored since the reservation. So several parts
are verified at a time, in other processes, before their steps are made (`PartWork`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ProtocolError
from faircount.mechanisms.proven import Tally, as_proven
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import MemoryRows, RowWrite, part_key
from faircount.protocol.roles.stored import parse_parameters
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.messages import (
    BatchManifest,
    ManifestEntry,
    StoredVerification,
)
from faircount.protocol.topologies.two_servers.proofs import Query
from faircount.protocol.topologies.two_servers.reports import (
    derive_query,
    pack_verifier_shares,
    report_layout_of,
    row_blocks,
    unpack_verifier_shares,
)
from faircount.protocol.topologies.two_servers.user import expansion_info, seed_info
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair, StandardCrypto
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import PartShares
from faircount.protocol.wire.packed_rows import sum_batches
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import pack


@dataclass(frozen=True, slots=True)
class PartVerifier:
    """What the aggregator needs to verify any part: of its state, only what never changes."""

    params: SurveyParameters
    encryption_keys: KeyPair = field(repr=False)
    committed_value: bytes = field(repr=False)
    crypto: CryptoSuite

    @classmethod
    def of(cls, s: Aggregator) -> "PartVerifier":
        """The verifier of a survey."""
        return cls(s.params, s.encryption_keys, s.committed_value, s.crypto)

    def verify(
        self, entries: Sequence[ManifestEntry], authentic: bytes, batch: PartShares
    ) -> StoredVerification | None:
        """What is stored about a part; None if the coordinator's verifier shares are malformed.

        authentic: bitmap over the entries: which of them have a valid enrolment MAC
        """
        # check: authentic-entries - the coordinator makes up participants
        checked = members_of(authentic, len(entries)) or ()
        seeds = self._decrypt_seeds(entries, checked, batch.encrypted_shares)
        positions = [seed.position for seed in seeds]
        decrypted = bitmap(positions, len(entries))
        shares_hash = sha256(encode(batch)).digest()
        layout = report_layout_of(self.params.mechanism)
        # Without proofs every report that decrypts counts, and nothing else is stored.
        if layout is None:
            total = pack(self._sum_shares(seeds), self.params.q)
            return StoredVerification(shares_hash, b"", decrypted, b"", total, b"")
        coordinator_shares = unpack_verifier_shares(batch.verifier_shares, layout, len(entries))
        if coordinator_shares is None:
            return None
        # From both values: either server alone would know the point while clients still send.
        query = derive_query(self.params, layout, (batch.revealed, self.committed_value))
        own_shares, is_valid, tally = self._check_proofs(
            query, seeds, coordinator_shares[positions]
        )
        accepted = bitmap(np.array(positions, dtype=np.int64)[is_valid], len(entries))
        return StoredVerification(
            shares_hash,
            decrypted,
            accepted,
            pack_verifier_shares(own_shares, layout),
            pack(tally.cells, self.params.q),
            pack(tally.coins.reshape(-1), self.params.q),
        )

    def _decrypt_seeds(
        self,
        entries: Sequence[ManifestEntry],
        positions: Sequence[int],
        encrypted_shares: Sequence[bytes],
    ) -> "list[DecryptedSeed]":
        """The seeds of the reports at these positions, as far as they can be decrypted."""
        seeds = list[DecryptedSeed]()
        # Decoded in one go: looking up one after the other takes longer.
        shares = list(encrypted_shares)
        for position in positions:
            entry = entries[position]
            seed = self._decrypt_seed(entry, shares[position])
            if seed is not None:
                seeds.append(DecryptedSeed(position, entry, seed))
        return seeds

    def _decrypt_seed(self, entry: ManifestEntry, encrypted_share: bytes) -> bytes | None:
        secret = self.crypto.agree(self.encryption_keys, entry.public_key)
        if secret is None:
            return None
        # Bound to the commitment to share1: the halves of two reports cannot be combined.
        info = seed_info(self.params, entry.user, entry.public_key, entry.commitment)
        seed = self.crypto.decrypt(secret, self.params.digest, info, encrypted_share)
        if seed is None or len(seed) != SEED_BYTES:
            return None
        return seed

    def _expand_shares(self, seeds: "Sequence[DecryptedSeed]") -> Residues:
        """The aggregator's shares of these reports, one row each."""
        params = self.params
        infos = [expansion_info(params, seed.entry.user, seed.entry.public_key) for seed in seeds]
        return self.crypto.expand_rows(
            [seed.seed for seed in seeds], params.digest, infos, params.q, params.vector_size
        )

    def _sum_shares(self, seeds: "Sequence[DecryptedSeed]") -> Residues:
        blocks = row_blocks(len(seeds), self.params.N)
        # Block by block: the expanded shares of a large part would not fit into memory.
        shares = (self._expand_shares(seeds[block]) for block in blocks)
        return sum_batches(shares, self.params.q, self.params.N)

    def _check_proofs(
        self, query: Query, seeds: "Sequence[DecryptedSeed]", coordinator_shares: Residues
    ) -> tuple[Residues, Bools, Tally]:
        """The aggregator's verifier shares, which reports are valid, and the tally of those."""
        kind = dtype_for(self.params.q)
        own_shares = np.empty((len(seeds), query.layout.verifier_size), dtype=kind)
        # Filled while the tally consumes the shares, so that each is expanded once.
        is_valid = np.empty(len(seeds), dtype=np.bool_)

        def valid_shares() -> Iterator[Residues]:
            for block in row_blocks(len(seeds), query.layout.width):
                shares = self._expand_shares(seeds[block])
                own_shares[block] = query.verifier_shares(shares)
                # check: invalid-reports - a malicious client would skew the result
                is_valid[block] = query.accepts(coordinator_shares[block], own_shares[block])
                yield shares[is_valid[block]]

        tally = as_proven(self.params.mechanism).tally(valid_shares())
        return own_shares, is_valid, tally


class DecryptedSeed(NamedTuple):
    """The seed of one report, and the entry's position in its part of the manifest."""

    position: int
    entry: ManifestEntry
    seed: bytes


@dataclass(frozen=True, slots=True)
class PartWork:
    """The verification of one part, as bytes that can be sent to another process."""

    published: bytes
    encryption_secret: bytes = field(repr=False)
    committed_value: bytes = field(repr=False)
    part: bytes
    authentic: bytes
    batch: bytes

    @classmethod
    def of(
        cls, s: Aggregator, part: BatchManifest, authentic: bytes, batch: PartShares
    ) -> "PartWork":
        """The work of verifying this batch."""
        return cls(
            s.params.published,
            s.encryption_keys.secret,
            s.committed_value,
            encode(part),
            authentic,
            encode(batch),
        )

    def run(self) -> bytes:
        """The encoded `StoredVerification`; nothing if there is none."""
        crypto = StandardCrypto()
        keys = crypto.keypair_from(self.encryption_secret)
        params = parse_parameters(self.published)
        verifier = PartVerifier(params, keys, self.committed_value, crypto)
        part = parse(self.part)
        batch = parse(self.batch)
        if not isinstance(part, BatchManifest) or not isinstance(batch, PartShares):
            raise ProtocolError("expected a BatchManifest and a PartShares")
        verification = verifier.verify(tuple(part.entries), self.authentic, batch)
        return b"" if verification is None else encode(verification)

    def rows(self, result: bytes) -> MemoryRows:
        """The rows that the step reads in place of doing this work."""
        if not result:
            return MemoryRows()
        batch = parse(self.batch)
        number = batch.number if isinstance(batch, PartShares) else 0
        return MemoryRows([RowWrite("part_verifications", part_key(number), parse(result))])

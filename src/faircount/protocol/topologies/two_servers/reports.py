"""What clients secret-share in `servers`, and what each server computes from its shares.

Without proofs a client shares the vector that its mechanism draws, and the servers sum the shares.
With proofs it shares a report of bits together with a proof that it is one sheet (`proofs`), and

    each server   computes its verifier share of every report, from the survey's one query
                  sums its shares of the valid reports, places the coins, adds noise

Query and placement of the coins are derived from two values, v1 of the coordinator and v2 of the
aggregator. Both committed to theirs before anybody responded, and reveal them once all reports are
fixed: neither a client nor one server alone can aim for a particular query. The two derivations
have different labels, so that one says nothing about the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy, KeyStream
from faircount.core.errors import ShareError
from faircount.core.questions import Sheet
from faircount.estimation.validity import FAILURE_BITS
from faircount.mechanisms.proven import (
    Placement,
    ProvenMechanism,
    Tally,
    as_proven,
    check_no_level,
)
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.server_secrets import commitment_of, noise_stream
from faircount.protocol.topologies.two_servers.proofs import (
    Query,
    ReportLayout,
    prove,
    query_at,
    query_point,
    report_layout,
)
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import tagged_hash
from faircount.protocol.wire.packed_rows import split_into_batches, unpack_rows
from faircount.sharing.field import add, dtype_for, from_signed, uniform
from faircount.sharing.keys import derive_key
from faircount.sharing.packing import pack, unpack

ELEMENTS_AT_ONCE = 1 << 17
"""Field elements of whole reports in memory at a time, however many reports and items there are."""

T = TypeVar("T")
RevealedValues = tuple[bytes, bytes]
"""v1 and v2, the revealed values of the coordinator and the aggregator."""


def report_layout_of(mechanism: FieldMechanism) -> ReportLayout | None:
    """The layout of a proven report; None where vectors are only summed."""
    if not mechanism.proven:
        return None
    proven = as_proven(mechanism)
    return report_layout(
        proven.modulus, proven.answer_bits, proven.coins_per_user, proven.constraints, proven.n
    )


def vector_size(mechanism: FieldMechanism) -> int:
    """Field elements that a client splits between the servers."""
    layout = report_layout_of(mechanism)
    return mechanism.N if layout is None else layout.width


def describe_proof(mechanism: FieldMechanism) -> dict[str, object]:
    """What the published parameters state about the proof."""
    layout = report_layout_of(mechanism)
    if layout is None:
        return {}
    proof = {
        "bits": layout.answer_bits,
        "coins": layout.coins,
        "constraints": len(layout.constraints),
        "cells": mechanism.N,
        "degree": layout.degree,
        "modulus": list(layout.field.modulus),
        "failure_bits": FAILURE_BITS,
        "noise": "users" if layout.coins else "servers",
    }
    return {"proof": proof}


def draw_vector(
    mechanism: FieldMechanism, sheet: Sheet, entropy: Entropy, level: int = 0
) -> Residues:
    """Draw what one client shares: its vector, or its report with the proof.

    level: the privacy level that the person chose, where the survey offers levels
    """
    layout = report_layout_of(mechanism)
    if layout is None:
        check_no_level(level)
        vector: Residues = mechanism.respond_as(0, sheet, entropy)
        return vector
    bits = as_proven(mechanism).report_bits(sheet, entropy, level).astype(dtype_for(layout.q))
    # The blind comes from the client's entropy, never from the seed that the aggregator gets.
    return prove(layout, bits, uniform(layout.q, layout.degree, entropy))


def _rows_at_once(width: int) -> int:
    return max(1, ELEMENTS_AT_ONCE // width)


def row_blocks(count: int, width: int) -> Iterator[slice]:
    """Slices over `count` rows of this width, each of at most `ELEMENTS_AT_ONCE` elements."""
    step = _rows_at_once(width)
    return (slice(start, start + step) for start in range(0, count, step))


def batch_rows(values: Iterable[T], width: int) -> Iterator[list[T]]:
    """Lists of consecutive rows, each of at most `ELEMENTS_AT_ONCE` elements."""
    return split_into_batches(values, _rows_at_once(width))


# --- proofs ---------------------------------------------------------------------------------------


def opens_commitment(params: SurveyParameters, server: Party, value: bytes) -> bool:
    """Whether this is the value that a server has committed to in the parameters."""
    return commitment_of(params, server) == sha256(value).digest()


def derive_query(params: SurveyParameters, layout: ReportLayout, values: RevealedValues) -> Query:
    """The one query of the survey, from both servers' values.

    A second query about the same report would reveal more than its validity.
    """
    # Neither value alone decides the key, and the label keeps it apart from the coins' placement.
    key = derive_key(b"".join(values), params.digest, tagged_hash(b"query"))
    return query_at(layout, query_point(layout, key))


def pack_verifier_shares(verifier_shares: Residues, layout: ReportLayout) -> bytes:
    """Pack the verifier shares of many reports for sending."""
    return pack(verifier_shares.reshape(-1), layout.q)


def unpack_verifier_shares(packed: bytes, layout: ReportLayout, count: int) -> Residues | None:
    """The verifier shares of `count` reports, one row each; None if the bytes are malformed."""
    # The bytes come from the other server: they may be anything.
    try:
        elements = unpack(packed, layout.q, count * layout.verifier_size)
    except ShareError:
        return None
    return elements.reshape(count, layout.verifier_size)


def compute_verifier_shares(query: Query, packed_shares: Iterable[bytes]) -> Residues:
    """The coordinator's verifier shares, from its shares as clients sent them."""
    layout = query.layout
    # The empty first block gives the result its shape if there are no reports.
    blocks = [np.empty((0, layout.verifier_size), dtype=dtype_for(layout.q))]
    for packed in batch_rows(packed_shares, layout.width):
        shares, _ = unpack_rows(packed, layout.q, layout.width)
        blocks.append(query.verifier_shares(shares))
    return np.concatenate(blocks)


# --- the aggregate --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateContext:
    """What the one aggregate of a survey with proven reports is derived from.

    Both servers' values, the manifest and the accepted reports fix everything random in it.
    `members` is the set of accepted reports as a bitmap over the manifest.
    """

    params: SurveyParameters
    mechanism: ProvenMechanism
    values: RevealedValues
    manifest_hash: bytes
    members: bytes

    @classmethod
    def of(
        cls, params: SurveyParameters, values: RevealedValues, manifest_hash: bytes, members: bytes
    ) -> "AggregateContext":
        """The context of a survey whose mechanism has proven reports."""
        return cls(params, as_proven(params.mechanism), values, manifest_hash, members)

    def aggregate_share(self, server: Party, secret: bytes, tally: Tally) -> Residues:
        """A server's aggregate share: its tally, the coins inverted and placed, its noise.

        Only the coordinator adds the constant 1 of each inverted coin: both together would add it
        twice. Computed again, the share is the same, so a retry releases nothing new.
        """
        total = self.mechanism.add_up(
            tally, self.placement(len(tally.coins)), constants=server is Party.COORDINATOR
        )
        # The stream is bound to manifest and set: another set would get other noise, so that the
        # difference of two aggregate shares would not show one report without noise.
        # check: noise-per-table - equal noise in two tables cancels in their difference
        streams = [
            noise_stream(self.params, server, secret, self.manifest_hash, self.members, tag)
            for tag in self.mechanism.noise_tags
        ]
        noise = self.mechanism.noise_from(streams)
        return add(total, from_signed(noise, self.params.q), self.params.q)

    def placement(self, members: int) -> Placement:
        """Which coins of the accepted reports count for which item, and which are inverted."""
        # Nobody knows this key when the coins are flipped: a client cannot aim them at an item.
        info = tagged_hash(b"coins", self.manifest_hash, self.members)
        stream = KeyStream(derive_key(b"".join(self.values), self.params.digest, info))
        return self.mechanism.place_coins(stream, members)

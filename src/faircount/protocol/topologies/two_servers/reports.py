"""What users share in `servers`: a vector that is just added up, or a report with a proof that it is one vote.

What each server makes of its shares of proven reports stands here: answers to the one question, and its part of the
sum. Question and placement of coins come from the values of both servers, v1 and v2, which are revealed when all
reports are fixed; under different labels, so that one says nothing about the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy, KeyStream
from faircount.core.errors import ShareError
from faircount.estimation.validity import FAILURE_BITS
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.verified import Placement, Tally, VerifiedMechanism, proves_reports
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.server_secrets import commitment_of, noise_stream
from faircount.protocol.topologies.two_servers.validity import (
    Question,
    ReportForm,
    point_of,
    prove,
    question,
    report_form,
)
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import labelled
from faircount.protocol.wire.packed_rows import in_parts, unpack_rows
from faircount.sharing.field import add, dtype_for, from_signed, uniform
from faircount.sharing.keys import derive_key
from faircount.sharing.packing import pack, packed_size, unpack

ELEMENTS_AT_ONCE = 1 << 17
"""So many elements of whole rows are in memory at a time, however many users and items there are."""

T = TypeVar("T")
Values = tuple[bytes, bytes]
"""v1 and v2, the revealed values of S1 and S2."""


def form_of(mechanism: FieldMechanism) -> ReportForm | None:
    """The form of a proven report; None where vectors are just added up."""
    if not mechanism.proven:
        return None
    proven = proves_reports(mechanism)
    return report_form(proven.modulus, *proven.proven_bits, proven.n)


def vector_size(mechanism: FieldMechanism) -> int:
    """Field elements that a user splits between the servers."""
    form = form_of(mechanism)
    return mechanism.N if form is None else form.width


def derived(mechanism: FieldMechanism) -> dict[str, object]:
    """What the parameters say about the proof."""
    form = form_of(mechanism)
    if form is None:
        return {}
    proof = {
        "coins": form.coins,
        "degree": form.degree,
        "modulus": list(form.field.modulus),
        "failure_bits": FAILURE_BITS,
        "noise": "users" if form.coins else "servers",
    }
    return {"proof": proof}


def vector_of(mechanism: FieldMechanism, answer: int, entropy: Entropy) -> Residues:
    """What one user shares: its vector, or its report with the proof."""
    form = form_of(mechanism)
    if form is None:
        vector: Residues = mechanism.respond_as(0, answer, entropy)
        return vector
    bits = proves_reports(mechanism).report_bits(answer, entropy).astype(dtype_for(form.q))
    return prove(form, bits, uniform(form.q, form.degree, entropy))


def _rows_at_once(width: int) -> int:
    return max(1, ELEMENTS_AT_ONCE // width)


def blocks(count: int, width: int) -> Iterator[slice]:
    """The places of so many rows, in parts of `ELEMENTS_AT_ONCE` elements."""
    step = _rows_at_once(width)
    return (slice(start, start + step) for start in range(0, count, step))


def in_blocks(values: Iterable[T], width: int) -> Iterator[list[T]]:
    """The same for rows that come one after the other."""
    return in_parts(values, _rows_at_once(width))


def holds(params: SurveyParameters, server: Party, value: bytes) -> bool:
    """Whether this is the value that a server has committed to."""
    return commitment_of(params, server) == sha256(value).digest()


def question_of(params: SurveyParameters, form: ReportForm, values: Values) -> Question:
    """The one question of the survey."""
    return question(form, point_of(form, derive_key(b"".join(values), params.digest, labelled(b"question"))))


def pack_answers(answers: Residues, form: ReportForm) -> bytes:
    """Answers about many reports, as they travel."""
    return pack(answers.reshape(-1), form.q)


def packed_answers(form: ReportForm, count: int) -> int:
    """Bytes of the answers about so many reports."""
    return packed_size(form.q, count * form.answers)


def unpack_answers(packed: bytes, form: ReportForm, count: int) -> Residues | None:
    """Answers about so many reports; None if these bytes are none."""
    try:
        return unpack(packed, form.q, count * form.answers).reshape(count, form.answers)
    except ShareError:
        return None


def answers_of_packed(asked: Question, shares: Iterable[bytes]) -> Residues:
    """S1's answers about its shares, as users sent them."""
    form = asked.form
    rows = (unpack_rows(some, form.q, form.width)[0] for some in in_blocks(shares, form.width))
    none = np.empty((0, form.answers), dtype=dtype_for(form.q))
    return np.concatenate([none, *(asked.answers(some) for some in rows)])


@dataclass(frozen=True, slots=True)
class Release:
    """The one sum of a survey with proven reports: values, claim and set, from which all that is random in it follows.

    `members` is the set as a bitmap over the claim.
    """

    params: SurveyParameters
    mechanism: VerifiedMechanism
    values: Values
    claim_hash: bytes
    members: bytes

    @classmethod
    def of(cls, params: SurveyParameters, values: Values, claim_hash: bytes, members: bytes) -> "Release":
        """The sum of a survey."""
        return cls(params, proves_reports(params.mechanism), values, claim_hash, members)

    def part(self, server: Party, secret: bytes, tally: Tally) -> Residues:
        """A server's part, from its shares of the members' reports: coins turned over and placed, its noise added.

        S1 adds the ones of coins that are turned over. Made again, it is the same.
        """
        total = self.mechanism.add_up(tally, self.placement(len(tally.coins)), constants=server is Party.S1)
        noise = self.mechanism.server_noise(noise_stream(self.params, server, secret, self.claim_hash, self.members))
        return add(total, from_signed(noise, self.params.q), self.params.q)

    def placement(self, members: int) -> Placement:
        """Which coins of so many members count for which item, and which of them are turned over."""
        info = labelled(b"coins", self.claim_hash, self.members)
        stream = KeyStream(derive_key(b"".join(self.values), self.params.digest, info))
        return self.mechanism.turn_and_place(stream, members)

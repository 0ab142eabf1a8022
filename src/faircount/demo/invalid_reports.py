"""Reports of malicious clients: not one vote, or with a proof that does not belong to them.

Every forgery is the best of its kind. Where a bit is invalid, h is the quotient of f (f - 1) by Z
without its remainder, the closest that there is to a proof.
"""

from collections.abc import Callable, Mapping

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.protocol.topologies.two_servers.validity import ReportLayout, prove
from faircount.sharing.field import dtype_for, from_signed, uniform

# (layout, randomness) -> the field elements of a report with its proof
Forgery = Callable[[ReportLayout, Entropy], Residues]


def _forge_bits(*answer: int, coins: int = 0) -> Forgery:
    """A report that begins with these numbers and has equal coins, with the best proof for it."""

    def forge(layout: ReportLayout, entropy: Entropy) -> Residues:
        bits = np.zeros(layout.bits, dtype=np.int64)
        bits[: len(answer)] = answer
        # The coins of a report follow its answers.
        bits[layout.answer_bits :] = coins
        return prove(layout, from_signed(bits, layout.q), uniform(layout.q, layout.degree, entropy))

    return forge


def _forge_halves(layout: ReportLayout, entropy: Entropy) -> Residues:
    # Modulo q there is a number whose double is 1, so the sum of this report is one vote.
    half = (layout.q + 1) // 2
    return _forge_bits(half, half)(layout, entropy)


def _forge_without_proof(layout: ReportLayout, entropy: Entropy) -> Residues:
    row = _forge_bits(1)(layout, entropy)
    row[layout.bits + layout.degree :] = 0
    return row


def _forge_proof_of_another(layout: ReportLayout, entropy: Entropy) -> Residues:
    row = _forge_bits(1)(layout, entropy)
    other = _forge_bits(0, 1)(layout, entropy)
    row[layout.bits + layout.degree :] = other[layout.bits + layout.degree :]
    return row


def _forge_off_by_one(place: Callable[[ReportLayout], int]) -> Forgery:
    """A valid report with one of its elements raised by one."""

    def forge(layout: ReportLayout, entropy: Entropy) -> Residues:
        row = _forge_bits(1)(layout, entropy)
        position = place(layout)
        row[position] = (int(row[position]) + 1) % layout.q
        return row

    return forge


INVALID: Mapping[str, Forgery] = {
    "fifty votes and minus forty-nine": _forge_bits(50, -49),
    "two votes": _forge_bits(1, 1),
    "no vote": _forge_bits(0),
    "a vote less": _forge_bits(-1),
    "two and minus one": _forge_bits(2, -1),
    "half a vote twice": _forge_halves,
    "a coin of two": _forge_bits(1, coins=2),
    "without a proof": _forge_without_proof,
    "the proof of another report": _forge_proof_of_another,
    "another blind": _forge_off_by_one(lambda layout: layout.bits),
    "a proof that is off by one": _forge_off_by_one(lambda layout: layout.width - 1),
    "a vote added to a proven report": _forge_off_by_one(lambda _: 1),
    "random elements": lambda layout, entropy: uniform(layout.q, layout.width, entropy),
    "nothing but zeros": lambda layout, _: np.zeros(layout.width, dtype=dtype_for(layout.q)),
}


def invalid_kinds(layout: ReportLayout) -> Mapping[str, Forgery]:
    """The forgeries that are invalid for reports of this layout."""
    kinds = dict(INVALID)
    # Without coins this one is a valid report.
    if layout.answer_bits == layout.bits:
        del kinds["a coin of two"]
    return kinds

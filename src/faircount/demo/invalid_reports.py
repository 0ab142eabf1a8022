"""Reports of malicious clients: not one vote, or with a proof that does not belong to them.

Every forgery is the best of its kind. Where a bit is invalid, h is the quotient of f (f - 1) by Z
without its remainder, the closest that there is to a proof.
"""

from collections.abc import Callable, Mapping

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.protocol.topologies.two_servers.validity import ReportForm, prove
from faircount.sharing.field import dtype_for, from_signed, uniform

# (form, randomness) -> the field elements of a report with its proof
Forgery = Callable[[ReportForm, Entropy], Residues]


def _forge_bits(*answer: int, coins: int = 0) -> Forgery:
    """A report that begins with these numbers and has equal coins, with the best proof for it."""

    def forge(form: ReportForm, entropy: Entropy) -> Residues:
        bits = np.zeros(form.bits, dtype=np.int64)
        bits[: len(answer)] = answer
        # The coins of a report follow its votes.
        bits[form.items :] = coins
        return prove(form, from_signed(bits, form.q), uniform(form.q, form.degree, entropy))

    return forge


def _forge_halves(form: ReportForm, entropy: Entropy) -> Residues:
    # Modulo q there is a number whose double is 1, so the sum of this report is one vote.
    half = (form.q + 1) // 2
    return _forge_bits(half, half)(form, entropy)


def _forge_without_proof(form: ReportForm, entropy: Entropy) -> Residues:
    row = _forge_bits(1)(form, entropy)
    row[form.bits + form.degree :] = 0
    return row


def _forge_proof_of_another(form: ReportForm, entropy: Entropy) -> Residues:
    row = _forge_bits(1)(form, entropy)
    other = _forge_bits(0, 1)(form, entropy)
    row[form.bits + form.degree :] = other[form.bits + form.degree :]
    return row


def _forge_off_by_one(place: Callable[[ReportForm], int]) -> Forgery:
    """A valid report with one of its elements raised by one."""

    def forge(form: ReportForm, entropy: Entropy) -> Residues:
        row = _forge_bits(1)(form, entropy)
        position = place(form)
        row[position] = (int(row[position]) + 1) % form.q
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
    "another blind": _forge_off_by_one(lambda form: form.bits),
    "a proof that is off by one": _forge_off_by_one(lambda form: form.width - 1),
    "a vote added to a proven report": _forge_off_by_one(lambda _: 1),
    "random elements": lambda form, entropy: uniform(form.q, form.width, entropy),
    "nothing but zeros": lambda form, _: np.zeros(form.width, dtype=dtype_for(form.q)),
}


def invalid_kinds(form: ReportForm) -> Mapping[str, Forgery]:
    """The forgeries that are invalid for reports of this form."""
    kinds = dict(INVALID)
    # Without coins this one is a valid report.
    if not form.coins:
        del kinds["a coin of two"]
    return kinds

"""Reports that are not one vote, or whose proof is not theirs: what a client that lies may split between the servers.

Each is the best that its kind can do: where bits are invalid, h is the quotient of f (f - 1) by Z, without remainder.
"""

from collections.abc import Callable, Mapping

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.protocol.topologies.two_servers.validity import ReportForm, prove
from faircount.sharing.field import dtype_for, from_signed, uniform

Forgery = Callable[[ReportForm, Entropy], Residues]
"""(form, randomness) -> a row."""


def _bits(form: ReportForm, *answer: int, coins: int = 0) -> Residues:
    """A report that begins with these numbers, modulo q; its coins are all the same."""
    whole = np.zeros(form.bits, dtype=np.int64)
    whole[: len(answer)], whole[form.items :] = answer, coins
    return from_signed(whole, form.q)


def _proven(*answer: int, coins: int = 0) -> Forgery:
    """A row for these numbers with the best h there is."""
    return lambda form, entropy: prove(form, _bits(form, *answer, coins=coins), uniform(form.q, form.degree, entropy))


def _halves(form: ReportForm, entropy: Entropy) -> Residues:
    half = (form.q + 1) // 2
    return _proven(half, half)(form, entropy)


def _without_proof(form: ReportForm, entropy: Entropy) -> Residues:
    row = _proven(1)(form, entropy)
    row[form.bits + form.degree :] = 0
    return row


def _proof_of_another(form: ReportForm, entropy: Entropy) -> Residues:
    row, other = _proven(1)(form, entropy), _proven(0, 1)(form, entropy)
    row[form.bits + form.degree :] = other[form.bits + form.degree :]
    return row


def _off_by_one(place: Callable[[ReportForm], int]) -> Forgery:
    """A valid row, of which one element is raised."""

    def forged(form: ReportForm, entropy: Entropy) -> Residues:
        row, at = _proven(1)(form, entropy), place(form)
        row[at] = (int(row[at]) + 1) % form.q
        return row

    return forged


INVALID: Mapping[str, Forgery] = {
    "fifty votes and minus forty-nine": _proven(50, -49),
    "two votes": _proven(1, 1),
    "no vote": _proven(0),
    "a vote less": _proven(-1),
    "two and minus one": _proven(2, -1),
    "half a vote twice": _halves,
    "a coin of two": _proven(1, coins=2),
    "without a proof": _without_proof,
    "the proof of another report": _proof_of_another,
    "another blind": _off_by_one(lambda form: form.bits),
    "a proof that is off by one": _off_by_one(lambda form: form.width - 1),
    "a vote added to a proven report": _off_by_one(lambda _: 1),
    "random elements": lambda form, entropy: uniform(form.q, form.width, entropy),
    "nothing but zeros": lambda form, _: np.zeros(form.width, dtype=dtype_for(form.q)),
}
"""By name; "a coin of two" is valid where there are no coins."""


def invalid_kinds(form: ReportForm) -> Mapping[str, Forgery]:
    """Those that are invalid for reports of this form."""
    return {name: made for name, made in INVALID.items() if form.coins or name != "a coin of two"}

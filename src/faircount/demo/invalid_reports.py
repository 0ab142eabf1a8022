"""Reports of malicious clients: no sheet of answers, or with a proof that does not belong to them.

Every forgery is the best of its kind: all questions but one have valid answers, and where a bit is
invalid, h is the quotient of f (f - 1) by Z without its remainder, the closest that there is to a
proof.
"""

from collections.abc import Callable, Mapping

import numpy as np

from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.questions import Constraint
from faircount.protocol.topologies.two_servers.proofs import ReportLayout, prove
from faircount.sharing.field import dtype_for, from_signed, uniform

# (layout, randomness) -> the field elements of a report with its proof
Forgery = Callable[[ReportLayout, Entropy], Residues]


def valid_bits(layout: ReportLayout) -> Ints:
    """Bits of a sheet that satisfies all constraints: the first answer, or a refusal to say."""
    bits = np.zeros(layout.bits, dtype=np.int64)
    for constraint in layout.constraints:
        left = constraint.value
        # Largest first: the weights of a number are such that this always ends at 0.
        for bit, weight in sorted(constraint.weights, key=lambda entry: (-entry[1], entry[0])):
            if 0 < weight <= left:
                bits[bit] = 1
                left -= weight
    return bits


def _has_votes(layout: ReportLayout) -> bool:
    """Whether there is a question of which the bits add up to 1."""
    return any(_is_vote(constraint) for constraint in layout.constraints)


def _is_vote(constraint: Constraint) -> bool:
    return constraint.value == 1 and all(weight == 1 for _, weight in constraint.weights)


def _find_votes(layout: ReportLayout) -> list[int]:
    """The bits of the first question with exactly one answer; all of them if there is none."""
    for constraint in layout.constraints:
        if _is_vote(constraint):
            return [bit for bit, _ in constraint.weights]
    return list(range(layout.answer_bits))


def _prove_bits(layout: ReportLayout, bits: Ints, entropy: Entropy) -> Residues:
    return prove(layout, from_signed(bits, layout.q), uniform(layout.q, layout.degree, entropy))


def _forge_bits(*answer: int, coins: int = 0) -> Forgery:
    """A report with these numbers as votes and with equal coins, with the best proof for it."""

    def forge(layout: ReportLayout, entropy: Entropy) -> Residues:
        bits = valid_bits(layout)
        votes = _find_votes(layout)
        bits[votes] = 0
        bits[votes[: len(answer)]] = answer[: len(votes)]
        # The coins of a report follow its answers.
        bits[layout.answer_bits :] = coins
        return _prove_bits(layout, bits, entropy)

    return forge


def _find_limited(layout: ReportLayout) -> Constraint | None:
    """The constraint of the first question with several items and a limit."""
    return next((found for found in layout.constraints if found.value > 1), None)


def _forge_ticks(layout: ReportLayout, entropy: Entropy) -> Residues:
    """One item more than is allowed; the items are the first bits of their question."""
    limited = _find_limited(layout)
    bits = valid_bits(layout)
    if limited is not None:
        places = sorted(bit for bit, _ in limited.weights)
        bits[places] = 0
        bits[places[: limited.value + 1]] = 1
    return _prove_bits(layout, bits, entropy)


def _find_tied(layout: ReportLayout) -> Constraint | None:
    """The constraint of the first number that may be missing."""
    return next((found for found in layout.constraints if found.value == 0), None)


def _forge_silent_number(layout: ReportLayout, entropy: Entropy) -> Residues:
    """A number above 0 of somebody who is not counted among those who answered."""
    tied = _find_tied(layout)
    bits = valid_bits(layout)
    if tied is not None:
        bits[min(bit for bit, _ in tied.weights)] = 1
    return _prove_bits(layout, bits, entropy)


def _find_free(layout: ReportLayout) -> list[int]:
    """Bits in no constraint, such as those of a number that everybody gives."""
    bound: set[int] = set()
    for constraint in layout.constraints:
        bound |= {bit for bit, _ in constraint.weights}
    return [bit for bit in range(layout.answer_bits) if bit not in bound]


def _forge_large_number(layout: ReportLayout, entropy: Entropy) -> Residues:
    """Every bit of a number is set, and its last one twice."""
    bits = valid_bits(layout)
    free = _find_free(layout)
    bits[free] = 1
    bits[free[-1:]] = 2
    return _prove_bits(layout, bits, entropy)


def _find_side(layout: ReportLayout) -> list[int]:
    """The bits outside of a later question, where all must be inside or all outside; else none."""
    votes = set(_find_votes(layout))
    for constraint in layout.constraints[1:]:
        bits = [bit for bit, _ in constraint.weights]
        own = [bit for bit in bits if bit not in votes]
        if _is_vote(constraint) and own and len(own) < len(bits):
            return own
    return []


def _forge_half_inside(layout: ReportLayout, entropy: Entropy) -> Residues:
    """A sheet that is counted a second time for some questions and not for others."""
    bits = valid_bits(layout)
    outside = _find_side(layout)
    for constraint in layout.constraints[1:]:
        question = [bit for bit, _ in constraint.weights]
        # The constraint that names all bits of the question, inside and outside.
        if outside and set(outside) < set(question) and 0 not in question:
            bits[question] = 0
            bits[outside[0]] = 1
    return _prove_bits(layout, bits, entropy)


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


FIFTY_VOTES = "fifty votes and minus forty-nine"
MORE_TICKS = "more ticks than are allowed"
LARGE_NUMBER = "a number above its range"
HALF_INSIDE = "counted again for some questions"

# Of questionnaires: each needs a question of its kind.
INVALID_SHEETS: Mapping[str, Forgery] = {
    MORE_TICKS: _forge_ticks,
    "a number without an answer": _forge_silent_number,
    LARGE_NUMBER: _forge_large_number,
    HALF_INSIDE: _forge_half_inside,
}


def invalid_kinds(layout: ReportLayout) -> Mapping[str, Forgery]:
    """The forgeries that are invalid for reports of this layout."""
    kinds = {**INVALID, **INVALID_SHEETS}
    # Without a question of its kind, each of these is a valid report.
    missing = {
        "a coin of two": layout.answer_bits == layout.bits,
        "two votes": not _has_votes(layout),
        "no vote": not _has_votes(layout),
        "nothing but zeros": not any(found.value for found in layout.constraints),
        MORE_TICKS: _find_limited(layout) is None,
        "a number without an answer": _find_tied(layout) is None,
        LARGE_NUMBER: not _find_free(layout),
        HALF_INSIDE: not _find_side(layout),
    }
    for name, is_missing in missing.items():
        if is_missing:
            del kinds[name]
    return kinds

"""A zero-knowledge proof that a secret-shared report is one sheet of answers.

Two servers check it together. A report is M bits w: those of all answers, then those of coins. The
answers' bits satisfy t public linear constraints, such as "these five bits add up to 1". Over F_q,
with Z = X (X - 1) ... (X - M + 1):

    client     draws a blind s, a uniform polynomial of degree < k
               f = the polynomial of degree < M with f(i) = w_i, plus Z s;  h = f (f - 1) / Z
               shares (w, s, h), 2M + 3k - 1 elements, between the servers like any vector
    query      one point r of F_{q^k} outside F_q for the whole survey, derived from a value of
               each server; both committed before anybody responded, and reveal when all shares
               are fixed
    server     its verifier share: its shares of f(r), of h(r) and of the weighted sum of bits of
               every constraint, 2k + t elements, linear in its share of the report
    accepted   f(r) (f(r) - 1) = Z(r) h(r), and every sum has its public value

It belongs to the fully linear proofs (FLP) of VDAF. Unlike Prio3 it has one query for the whole
batch, and a point of an extension field in place of several repetitions.

Sound: if some w_i is no bit, then f (f - 1) - h Z is not zero and has degree at most
2 (M + k - 1), so it vanishes at no more than that many of the q^k - q points. Given bits, a
constraint that holds modulo q holds for whole numbers, because q is larger than its sums can
differ. Each is revealed by itself: a random combination of them would save a few bytes and add
another chance to fail. Zero knowledge: k is prime and r outside F_q, so s(r) is uniform on F_{q^k};
Z(r) is not 0, so f(r) is uniform whatever w is, and h(r) follows from it. The sums of the
constraints are public values for every valid report. A second query about the same report would
reveal more, so there is never one. No independent security review yet.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ParameterError
from faircount.core.questions import Constraint
from faircount.estimation.validity import FAILURE_BITS
from faircount.sharing.expand import expand
from faircount.sharing.extension_field import ExtensionField, extension_field, smallest_degree
from faircount.sharing.field import add, dtype_for, reduce_mod, subtract
from faircount.sharing.interpolation import (
    divide_by_vanishing,
    lagrange_basis,
    lagrange_basis_at,
    vanishing_polynomial,
)
from faircount.sharing.products import Words, matrix_product, polynomial_product

MAX_BITS = 2600
"""Beyond this size, proofs with square-root gadgets (as in Prio3) are smaller than these."""


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """The layout of a proven report over F_q, with a query of degree k.

    answer_bits: bits of the answers
    coins:       bits of coins, which follow them
    constraints: what the bits of the answers satisfy
    """

    q: int
    answer_bits: int
    coins: int
    constraints: tuple[Constraint, ...]
    degree: int

    @property
    def bits(self) -> int:
        """M, the number of bits that are proven."""
        return self.answer_bits + self.coins

    @property
    def width(self) -> int:
        """Elements of a report with its proof: w, s and h."""
        return 2 * self.bits + 3 * self.degree - 1

    @property
    def verifier_size(self) -> int:
        """Elements of a verifier share of one report."""
        return 2 * self.degree + len(self.constraints)

    @property
    def field(self) -> ExtensionField:
        """F_{q^k}, the field of the query."""
        return extension_field(self.q, self.degree)


@lru_cache(maxsize=64)
def report_layout(
    q: int, answer_bits: int, coins: int, constraints: tuple[Constraint, ...], users: int
) -> ReportLayout:
    """The layout in which an invalid report of `users` passes with probability 2^-40 at most.

    Raises:
        ParameterError: too many bits, fewer field elements than bits, or a constraint that a false
            report could satisfy modulo q
    """
    bits = answer_bits + coins
    if bits > MAX_BITS:
        raise ParameterError(
            f"a report has {bits} bits, and reports of at most {MAX_BITS} are proven here: offer "
            "fewer answers, or use a mechanism without proofs"
        )
    # Each bit needs a point of F_q of its own.
    if q < bits:
        raise ParameterError(
            f"a proof about {bits} bits needs a field of at least {bits} elements, and this one "
            f"has {q}"
        )
    for constraint in constraints:
        constraint.check_modulus(q)
    degree = smallest_degree(q, 2 * (bits - 1), users << FAILURE_BITS)
    return ReportLayout(q, answer_bits, coins, constraints, degree)


def prove(layout: ReportLayout, bits: Residues, blind: Residues) -> Residues:
    """A report with its proof: the bits, the blind s of k uniform elements, and h.

    The blind must be independent of the aggregator's seed. Otherwise the aggregator would know s,
    and read the response from f(r).
    """
    q = layout.q
    size = layout.bits
    # Most bits are 0: only the rows of the basis with a 1 are added.
    ones = np.flatnonzero(bits)
    f = np.zeros(size + layout.degree, dtype=np.uint64)
    f[:size] = matrix_product(bits[ones], lagrange_basis(q, size)[ones], q)
    f = reduce_mod(f + polynomial_product(vanishing_polynomial(q, size), blind, q), q)
    f_minus_one = f.copy()
    f_minus_one[0] = (int(f[0]) - 1) % q
    h = divide_by_vanishing(polynomial_product(f, f_minus_one, q), q, size)
    return np.concatenate([bits, blind, h]).astype(dtype_for(q))


@dataclass(frozen=True, slots=True)
class Query:
    """The query at one point: the matrix from reports to verifier shares, and Z(r) as a matrix."""

    layout: ReportLayout
    matrix: Words
    vanishing: Words

    def verifier_shares(self, shares: Residues) -> Residues:
        """A server's verifier shares, from its shares of reports with proofs, one row each."""
        return matrix_product(shares, self.matrix, self.layout.q).astype(dtype_for(self.layout.q))

    def accepts(self, first: Residues, second: Residues) -> Bools:
        """Which reports are valid, from the verifier shares of both servers."""
        layout = self.layout
        k = layout.degree
        verifier = add(first, second, layout.q)
        f = verifier[:, :k]
        h = verifier[:, k : 2 * k]
        sums = verifier[:, 2 * k :]
        values = np.array(
            [constraint.value % layout.q for constraint in layout.constraints], dtype=sums.dtype
        )
        one = np.broadcast_to(layout.field.element(1).astype(f.dtype), f.shape)
        left = layout.field.multiply(f, subtract(f, one, layout.q))
        right = matrix_product(h, self.vanishing, layout.q)
        return np.asarray(
            # check: constraints - a malicious client chooses several answers in one report
            (sums == values).all(axis=1)
            # check: only-bits - a malicious client adds a large or negative number to a count
            & (left == right).all(axis=1)
        )


@lru_cache(maxsize=16)
def query_at(layout: ReportLayout, point: tuple[int, ...]) -> Query:
    """The query at a point of F_{q^k} outside F_q; computed once for a survey."""
    field = layout.field
    k = layout.degree
    size = layout.bits
    # A point of F_q would show a bit itself, f(i) = w_i, and not a blinded value.
    in_range = all(0 <= element < layout.q for element in point)
    if len(point) != k or not any(point[1:]) or not in_range:
        raise ParameterError("a query is made at a point outside the field of the shares")
    r = np.array(point, dtype=np.uint64)
    basis, z = lagrange_basis_at(field, r, size)
    powers = field.powers(r, size + 2 * k - 1)
    # Linear in the report: f(r) = sum of w_i L_i(r) + Z(r) s(r), and h(r) by powers of r.
    # Rows: w, s, h. Columns: f(r), h(r), the weighted sum of bits of every constraint.
    matrix = np.zeros((layout.width, layout.verifier_size), dtype=np.uint64)
    matrix[:size, :k] = basis
    matrix[size : size + k, :k] = field.multiply(powers[:k], z)
    matrix[size + k :, k : 2 * k] = powers
    for column, constraint in enumerate(layout.constraints, 2 * k):
        for bit, weight in constraint.weights:
            matrix[bit, column] = weight % layout.q
    return Query(layout, matrix, field.multiplication_matrix(z))


def query_point(layout: ReportLayout, key: bytes) -> tuple[int, ...]:
    """Derive the point from a key: the first k elements of its expansion, or the next k elements if
    these represent a point in F_q.
    """
    k = layout.degree
    # All but a fraction q^(1-k) of the points lie outside F_q, so the first try nearly always does.
    for tried in count(1):
        found = expand(key, layout.q, tried * k)[-k:].tolist()
        if any(found[1:]):
            break
    return tuple(found)

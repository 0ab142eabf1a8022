"""That a report is exactly one vote, proven to both servers together and shown to neither.

A report is M = N + m bits w: a one-hot answer and m coins. Over F_q, with Z = X (X - 1) ... (X - M + 1):

    user      s uniform of degree < k;  f = the polynomial with f(i) = w_i and degree < M, plus Z s;  h = f (f - 1) / Z
              row = (w, s, h), 2M + 3k - 1 elements, split between the servers like any vector
    r         one point of F_{q^k} outside F_q for the whole survey, from a value of each server, both committed before
              anybody answered and revealed when all shares are fixed
    a server  its shares of f(r), h(r) and of the sum of the answer's bits: 2k + 1 elements, linear in its share
    accepted  f(r) (f(r) - 1) = Z(r) h(r), and the sum is 1

Sound: if some w_i is no bit, f (f - 1) - h Z is not zero and has degree at most 2 (M + k - 1); it vanishes at no more
of the q^k - q points. Zero knowledge: k is prime and r outside F_q, so s(r) is uniform on F_{q^k}, Z(r) is not 0, f(r)
is uniform whatever w is, and h(r) follows from it. A second question about the same report would show more: there is
none, ever. Not reviewed outside.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.core.errors import ParameterError
from faircount.estimation.validity import FAILURE_BITS
from faircount.sharing.expand import expand
from faircount.sharing.extension_field import ExtensionField, extension_field, smallest_degree
from faircount.sharing.field import add, dtype_for, reduced, subtract
from faircount.sharing.interpolation import basis, basis_at, quotient, vanishing
from faircount.sharing.products import Words, matrix_product, polynomial_product

MOST_BITS = 2600
"""Beyond, proofs by square roots (as in Prio3) are smaller than these."""


@dataclass(frozen=True, slots=True)
class ReportForm:
    """What a proven report consists of: N answer bits and m coins over F_q, and the degree k of the question."""

    q: int
    items: int
    coins: int
    degree: int

    @property
    def bits(self) -> int:
        """M, the bits that are proven."""
        return self.items + self.coins

    @property
    def width(self) -> int:
        """Elements of a whole row."""
        return 2 * self.bits + 3 * self.degree - 1

    @property
    def answers(self) -> int:
        """Elements of a server's answer about one report."""
        return 2 * self.degree + 1

    @property
    def field(self) -> ExtensionField:
        """Where the question lies."""
        return extension_field(self.q, self.degree)


@lru_cache(maxsize=64)
def report_form(q: int, items: int, coins: int, users: int) -> ReportForm:
    """The form whose proofs let an invalid report of so many users pass with probability 2^-40 at most."""
    bits = items + coins
    if bits > MOST_BITS:
        raise ParameterError(
            f"{items} items and {coins} coins are {bits} bits, and reports of at most {MOST_BITS} are proven here: ask "
            "about fewer items, or use a mechanism without proofs"
        )
    if q < bits:
        raise ParameterError(f"{bits} bits are proven in a field of at least as many elements, not {q}")
    return ReportForm(q, items, coins, smallest_degree(q, 2 * (bits - 1), users << FAILURE_BITS))


def prove(form: ReportForm, bits: Residues, blind: Residues) -> Residues:
    """The row of a report: the bits, the blind s of k uniform elements, and h.

    The blind must be drawn apart from S2's seed: S2 would read the answer from f(r) otherwise.
    """
    q, size, heads = form.q, form.bits, np.flatnonzero(bits)  # most bits are 0
    f = np.zeros(size + form.degree, dtype=np.uint64)
    f[:size] = matrix_product(bits[heads], basis(q, size)[heads], q)
    f = reduced(f + polynomial_product(vanishing(q, size), blind, q), q)
    less_one = f.copy()
    less_one[0] = (int(f[0]) - 1) % q
    h = quotient(polynomial_product(f, less_one, q), q, size)
    return np.concatenate([bits, blind, h]).astype(dtype_for(q))


@dataclass(frozen=True, slots=True)
class Question:
    """The question at one point: the matrix from rows to answers, and Z(r) as a matrix."""

    form: ReportForm
    matrix: Words
    vanishing: Words

    def answers(self, rows: Residues) -> Residues:
        """A server's answers about its shares, one row each."""
        return matrix_product(rows, self.matrix, self.form.q).astype(dtype_for(self.form.q))

    def accepts(self, first: Residues, second: Residues) -> Marks:
        """Which reports are valid, from both servers' answers."""
        form, k = self.form, self.form.degree
        whole = add(first, second, form.q)
        f, h, votes = whole[:, :k], whole[:, k : 2 * k], whole[:, 2 * k]
        one = np.broadcast_to(form.field.element(1).astype(f.dtype), f.shape)
        left = form.field.multiply(f, subtract(f, one, form.q))
        right = matrix_product(h, self.vanishing, form.q)
        return np.asarray((votes == 1) & (left == right).all(axis=1))


@lru_cache(maxsize=16)
def question(form: ReportForm, point: tuple[int, ...]) -> Question:
    """The question at this point of F_{q^k} outside F_q; made once for a survey."""
    field, k, size = form.field, form.degree, form.bits
    if len(point) != k or not any(point[1:]) or not all(0 <= each < form.q for each in point):
        raise ParameterError("a question is asked at a point outside the field of the shares")
    r = np.array(point, dtype=np.uint64)
    values, z = basis_at(field, r, size)
    powers = field.powers(r, size + 2 * k - 1)
    matrix = np.zeros((form.width, form.answers), dtype=np.uint64)
    matrix[:size, :k] = values
    matrix[size : size + k, :k] = field.multiply(powers[:k], z)
    matrix[size + k :, k : 2 * k] = powers
    matrix[: form.items, 2 * k] = 1
    return Question(form, matrix, field.multiplied_by(z))


def point_of(form: ReportForm, key: bytes) -> tuple[int, ...]:
    """The point from a key: the first k elements of its expansion that do not lie in F_q."""
    k = form.degree
    for tried in count(1):
        found = expand(key, form.q, tried * k)[-k:].tolist()
        if any(found[1:]):
            break
    return tuple(found)

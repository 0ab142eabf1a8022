"""The formulas of Table I: what the paper prints, and a corrected formula where that is wrong.

Costs of a user are averages over all users. The paper has p_chi n helpers per item in the user's
column of TSS. Even with adaptive sets an item has alpha n reporters on average, so p_chi should be
alpha there. Two cheaper forms of DPDS that the paper does not have are listed as well: seeded
shares, and two servers. What TSS' costs beyond TSS has a list of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from faircount.mechanisms.two_stage import TSS


@dataclass(frozen=True, slots=True)
class Size:
    """What the formulas depend on.

    pairs: expected number of ordered pairs of users who report the same item; for uniform sets
        n (n-1) alpha^2
    phi: number of colluding users that TSS' protects against
    """

    n: int
    N: int
    alpha: float
    p_chi: float
    pairs: float
    phi: int = 0

    @classmethod
    def of(cls, mechanism: TSS) -> "Size":
        """For a mechanism and users of whom equally many choose every item."""
        n = mechanism.n
        N = mechanism.N
        M = mechanism.reported_items
        # Probabilities that a user reports its own item, and another given one.
        own = (1 - mechanism.rate) * M / N + mechanism.rate * mechanism.p_chi
        other = (1 - mechanism.rate) * M / N + mechanism.rate * (M - mechanism.p_chi) / (N - 1)
        squares = n / N * own**2 + (n - n / N) * other**2
        pairs = (M / N * n) ** 2 - squares
        return cls(n, N, M / N, mechanism.p_chi, pairs, mechanism.covered_colluders)

    @property
    def shares(self) -> float:
        """Shares that a user sends to other users: E[m_j^2] N / n, without those for itself."""
        return (self.pairs + self.alpha * self.n) * (1 - 1 / self.n) * self.N / self.n

    def sum_missing(self, weight: Callable[[int], float]) -> float:
        """Expected sum over the items of weight(m) (phi + 1 - m)+ for m reporters; uniform sets."""
        terms = []
        for m in range(1, self.phi + 1):
            probability = _binomial_probability(m, self.n, self.alpha)
            terms.append(probability * weight(m) * (self.phi + 1 - m))
        return self.N * math.fsum(terms)


def _binomial_probability(m: int, n: int, p: float) -> float:
    # By logarithms: the binomial coefficients of a few hundred users overflow a float.
    log_ways = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
    return math.exp(log_ways + m * math.log(p) + (n - m) * math.log1p(-p))


Formula = Callable[[Size], float]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cost: the paper's formula and ours, as text and as functions.

    printed, paper: empty and None where the paper prints nothing
    is_random: whether the count differs from survey to survey; `ours` is then its average
    """

    counter: str
    printed: str
    paper: Formula | None
    corrected: str
    ours: Formula
    is_random: bool = False

    def record(self, size: Size) -> dict[str, Any]:
        """Both formulas and their values at a size."""
        return {
            "cost": self.counter,
            "printed": self.printed or None,
            "printed_value": self.paper(size) if self.paper else None,
            "corrected": self.corrected,
            "corrected_value": self.ours(size),
        }


def _correct(counter: str, text: str, formula: Formula) -> Cell:
    """A cost for which the paper's formula is right."""
    return Cell(counter, text, formula, text, formula)


def _new(counter: str, text: str, formula: Formula) -> Cell:
    """A cost that the paper does not list."""
    return Cell(counter, "", None, text, formula)


def _random(cell: Cell) -> Cell:
    return replace(cell, is_random=True)


def _zero(counter: str) -> Cell:
    return _correct(counter, "0", lambda _: 0)


def _rounds(counter: str, number: int) -> Cell:
    plural = "s" if number > 1 else ""
    return _correct(counter, f"in {number} round{plural}", lambda _: number)


def _all_but_one(s: Size) -> float:
    return (s.n - 1) * s.N


# Algorithm 2. The paper counts 2nN + N elements sent by a user: it is (n-1)N to other users and N
# to the server.
_DPDS = (
    _correct("server: field additions", "(n-1)N", _all_but_one),
    _correct("server: real multiplications", "N", lambda s: s.N),
    _correct("user: field additions", "2(n-1)N", lambda s: 2 * (s.n - 1) * s.N),
    _correct("user: Bernoulli draws", "1", lambda _: 1),
    _correct("user: field elements drawn", "(n-1)N", _all_but_one),
    Cell(
        "user: field elements sent",
        "2nN+N",
        lambda s: (2 * s.n + 1) * s.N,
        "(n-1)N + N",
        lambda s: s.n * s.N,
    ),
    _rounds("user: rounds", 2),
    _zero("server: field elements sent"),
    _new("user: field elements received", "(n-1)N", _all_but_one),
)


def _sent_in_tss(counter: str) -> Cell:
    """Field elements and item labels of TSS: every element is sent with the label of its item."""
    return Cell(
        counter,
        "αN(1+p_χ n)",
        lambda s: s.alpha * s.N * (1 + s.p_chi * s.n),
        "αN + α(αn+1-α)(1-1/n)N",
        lambda s: s.alpha * s.N + s.shares,
        is_random=True,
    )


# Algorithm 3. The corrected formulas in alpha are exact for uniform sets.
_TSS = (
    _correct("S1: additions of counts", "(n-1)N", _all_but_one),
    _correct("S1: helpers drawn", "αnN", lambda s: s.alpha * s.n * s.N),
    _correct("S1: user labels sent", "αnN(n+1)", lambda s: s.alpha * s.n * s.N * (s.n + 1)),
    _correct("S1: item labels sent", "(n+1)N", lambda s: (s.n + 1) * s.N),
    _correct("S2: field additions", "(αn-1)N", lambda s: (s.alpha * s.n - 1) * s.N),
    _correct("S2: real multiplications", "N", lambda s: s.N),
    Cell(
        "user: field additions",
        "(p_χ n-1)(p_χ+α)N",
        lambda s: (s.p_chi * s.n - 1) * (s.p_chi + s.alpha) * s.N,
        "2α²(n-1)N",
        lambda s: 2 * s.pairs * s.N / s.n,
        is_random=True,
    ),
    _correct("user: Bernoulli draws", "1", lambda _: 1),
    _correct("user: sets drawn", "1", lambda _: 1),
    Cell(
        "user: field elements drawn",
        "(p_χ n-1)αN",
        lambda s: (s.p_chi * s.n - 1) * s.alpha * s.N,
        "α²(n-1)N",
        lambda s: s.pairs * s.N / s.n,
        is_random=True,
    ),
    _correct("user: bits sent", "N", lambda s: s.N),
    _sent_in_tss("user: field elements sent"),
    _sent_in_tss("user: item labels sent"),
    _rounds("user: rounds", 3),
    _rounds("S1: rounds", 1),
    _zero("S2: field elements sent"),
    _random(_new("user: field elements received", "α(αn+1-α)(1-1/n)N", lambda s: s.shares)),
)

# Algorithm 4, what it costs beyond Algorithm 3 over all items: d_j = (phi + 1 - m_j)+ additional
# helpers for an item with m_j reporters. The paper has no table for it; what its text says "for any
# j" is summed here.
_ADDED_SHARES = "Σ m_j d_j / n"


def _added_shares(s: Size) -> float:
    return s.sum_missing(lambda m: m) / s.n


def _added_helpers(s: Size) -> float:
    return s.sum_missing(lambda _: 1)


_TSS_PRIME = (
    _random(_correct("S1: helpers drawn", "Σ d_j", _added_helpers)),
    _random(_new("S1: user labels sent", "(n+1) Σ d_j", lambda s: (s.n + 1) * _added_helpers(s))),
    # S1 sends the number of reporters for every item, not only for those with more helpers.
    Cell(
        "S1: numbers of reporters sent",
        "(n+1) for every j with d_j > 0",
        lambda s: (s.n + 1) * s.sum_missing(lambda m: 1 / (s.phi + 1 - m)),
        "(n+1)N",
        lambda s: (s.n + 1) * s.N,
    ),
    _random(_correct("S2: field additions", "Σ d_j", _added_helpers)),
    _random(_correct("user: field elements drawn", _ADDED_SHARES, _added_shares)),
    _random(_correct("user: field additions as reporter", _ADDED_SHARES, _added_shares)),
    # A helper of TSS' adds up as many shares as one of TSS; there are only more helpers.
    Cell(
        "user: field additions as helper",
        "Σ (phi+1) d_j / n",
        lambda s: (s.phi + 1) * _added_helpers(s) / s.n,
        "Σ (m_j-1) d_j / n",
        lambda s: s.sum_missing(lambda m: m - 1) / s.n,
        is_random=True,
    ),
    Cell(
        "user: field elements sent",
        _ADDED_SHARES,
        _added_shares,
        "Σ (m_j (1-1/n) + 1) d_j / n",
        lambda s: s.sum_missing(lambda m: m * (1 - 1 / s.n) + 1) / s.n,
        is_random=True,
    ),
)

# Algorithm 2 with seeds in place of shares; not in the paper.
_SEEDED = (
    _new("server: field additions", "(n-1)N", _all_but_one),
    _new("server: real multiplications", "N", lambda s: s.N),
    _new("user: field additions", "2(n-1)N", lambda s: 2 * (s.n - 1) * s.N),
    _new("user: Bernoulli draws", "1", lambda _: 1),
    _new("user: seeds drawn", "n-1", lambda s: s.n - 1),
    _new("user: field elements expanded", "2(n-1)N", lambda s: 2 * (s.n - 1) * s.N),
    _new("user: seeds sent", "n-1", lambda s: s.n - 1),
    _new("user: field elements sent", "N", lambda s: s.N),
    _new("user: rounds", "2", lambda _: 2),
)

# Algorithm 2 between two servers; not in the paper.
_SERVERS = (
    _new("S1: field additions", "(n-1)N", _all_but_one),
    _new("S1: field elements sent", "N", lambda s: s.N),
    _new("S2: field elements expanded", "nN", lambda s: s.n * s.N),
    _new("S2: field additions", "nN", lambda s: s.n * s.N),
    _new("S2: real multiplications", "N", lambda s: s.N),
    _new("user: field additions", "N", lambda s: s.N),
    _new("user: Bernoulli draws", "1", lambda _: 1),
    _new("user: seeds drawn", "1", lambda _: 1),
    _new("user: field elements expanded", "N", lambda s: s.N),
    _new("user: seeds sent", "1", lambda _: 1),
    _new("user: field elements sent", "N", lambda s: s.N),
    _new("user: rounds", "1", lambda _: 1),
    _new("S1: rounds", "1", lambda _: 1),
)

CELLS = {
    "dpds": _DPDS,
    "tss": _TSS,
    "tss_prime": _TSS_PRIME,
    "seeded": _SEEDED,
    "servers": _SERVERS,
}

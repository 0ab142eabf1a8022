"""Table I, costs of DPDS and TSS: the paper's formulas, corrected ones, and counters of running code side by side.

Costs of a user are averages over the users. With A_i chosen adaptively an item still has alpha n reporters on average,
so p_chi, which the paper has in the user's column of TSS, should be alpha. Two cheaper forms of DPDS, which the paper
does not have, stand beside: seeded shares, and two servers. What TSS' adds to TSS is counted on its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faircount.core import plain as table_of
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.experiments.cost_counters import FIXED, added_by_more_helpers, two_stage
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS, TSSPrime, usual_alpha
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import packed_bits

P = 0.5  # the sampling probability of the counted runs; what they cost does not depend on it where sets are uniform
MOST_SHARES = 2 * 10**7  # n n N: more shares than this are not laid out to be counted


@dataclass(frozen=True, slots=True)
class Size:
    """What the formulas depend on."""

    n: int
    N: int
    alpha: float
    p_chi: float
    pairs: float
    """Expected number of ordered pairs of users who report the same item: n (n-1) alpha^2 for uniform sets."""
    phi: int = 0
    """Colluding users that TSS' is made for."""

    @classmethod
    def of(cls, mechanism: TSS) -> "Size":
        """For a mechanism whose items have equally many holders."""
        n, N, M = mechanism.n, mechanism.N, mechanism.reported
        own = (1 - mechanism.rate) * M / N + mechanism.rate * mechanism.p_chi
        other = (1 - mechanism.rate) * M / N + mechanism.rate * (M - mechanism.p_chi) / (N - 1)
        squares = n / N * own**2 + (n - n / N) * other**2
        return cls(n, N, M / N, mechanism.p_chi, (M / N * n) ** 2 - squares, mechanism.covered_colluders)

    @property
    def shares(self) -> float:
        """Shares that a user sends to others, and receives: E[m_j^2] N / n, without those that stay at home."""
        return (self.pairs + self.alpha * self.n) * (1 - 1 / self.n) * self.N / self.n

    def missing(self, weight: Callable[[int], float]) -> float:
        """Expected sum over the items of weight(m) (phi + 1 - m)+, for m reporters of an item; uniform sets."""
        return self.N * math.fsum(
            _binomial(m, self.n, self.alpha) * weight(m) * (self.phi + 1 - m) for m in range(1, self.phi + 1)
        )


def _binomial(m: int, n: int, chance: float) -> float:
    ways = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
    return math.exp(ways + m * math.log(chance) + (n - m) * math.log1p(-chance))


Formula = Callable[[Size], float]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cost: the paper's formula and ours, in words and as functions; `paper` is None where it prints none."""

    counter: str
    printed: str
    paper: Formula | None
    corrected: str
    ours: Formula
    by_chance: bool = False
    """Whether the count differs from survey to survey; `ours` is then its average."""

    def record(self, size: Size) -> dict[str, Any]:
        """Both formulas, and their values at a size."""
        return {
            "cost": self.counter,
            "printed": self.printed or None,
            "printed_value": self.paper(size) if self.paper else None,
            "corrected": self.corrected,
            "corrected_value": self.ours(size),
        }


def _right(counter: str, words: str, formula: Formula) -> Cell:
    """A cost that the paper has right."""
    return Cell(counter, words, formula, words, formula)


def _new(counter: str, words: str, formula: Formula) -> Cell:
    """A cost that the paper does not have."""
    return Cell(counter, "", None, words, formula)


def _all_but_one(s: Size) -> float:
    return (s.n - 1) * s.N


def _zero(counter: str) -> Cell:
    return _right(counter, "0", lambda _: 0)


def _rounds(counter: str, number: int) -> Cell:
    return _right(counter, f"in {number} round{'s' if number > 1 else ''}", lambda _: number)


_DPDS = (
    _right("server: field additions", "(n-1)N", _all_but_one),
    _right("server: real multiplications", "N", lambda s: s.N),
    _right("user: field additions", "2(n-1)N", lambda s: 2 * (s.n - 1) * s.N),
    _right("user: Bernoulli draws", "1", lambda _: 1),
    _right("user: field elements drawn", "(n-1)N", _all_but_one),
    Cell("user: field elements sent", "2nN+N", lambda s: (2 * s.n + 1) * s.N, "(n-1)N + N", lambda s: s.n * s.N),
    _rounds("user: rounds", 2),
    _zero("server: field elements sent"),
    _new("user: field elements received", "(n-1)N", _all_but_one),
)

_SENT = "αN + α(αn+1-α)(1-1/n)N"

_TSS = (
    _right("S1: additions of counts", "(n-1)N", _all_but_one),
    _right("S1: helpers drawn", "αnN", lambda s: s.alpha * s.n * s.N),
    _right("S1: user labels sent", "αnN(n+1)", lambda s: s.alpha * s.n * s.N * (s.n + 1)),
    _right("S1: item labels sent", "(n+1)N", lambda s: (s.n + 1) * s.N),
    _right("S2: field additions", "(αn-1)N", lambda s: (s.alpha * s.n - 1) * s.N),
    _right("S2: real multiplications", "N", lambda s: s.N),
    Cell(
        "user: field additions",
        "(p_χ n-1)(p_χ+α)N",
        lambda s: (s.p_chi * s.n - 1) * (s.p_chi + s.alpha) * s.N,
        "2α²(n-1)N",
        lambda s: 2 * s.pairs * s.N / s.n,
        by_chance=True,
    ),
    _right("user: Bernoulli draws", "1", lambda _: 1),
    _right("user: sets drawn", "1", lambda _: 1),
    Cell(
        "user: field elements drawn",
        "(p_χ n-1)αN",
        lambda s: (s.p_chi * s.n - 1) * s.alpha * s.N,
        "α²(n-1)N",
        lambda s: s.pairs * s.N / s.n,
        by_chance=True,
    ),
    _right("user: bits sent", "N", lambda s: s.N),
    *(
        Cell(
            f"user: {what} sent",
            "αN(1+p_χ n)",
            lambda s: s.alpha * s.N * (1 + s.p_chi * s.n),
            _SENT,
            lambda s: s.alpha * s.N + s.shares,
            by_chance=True,
        )
        for what in ("field elements", "item labels")
    ),
    _rounds("user: rounds", 3),
    _rounds("S1: rounds", 1),
    _zero("S2: field elements sent"),
    replace(_new("user: field elements received", "α(αn+1-α)(1-1/n)N", lambda s: s.shares), by_chance=True),
)

# What TSS' costs beyond TSS, over all items: d_j = (phi + 1 - m_j)+ helpers more for an item with m_j reporters. The
# paper's text has no table for it; what it says "for any j" is summed here.
_MORE_SHARES = "Σ m_j d_j / n"


def _more_shares(s: Size) -> float:
    return s.missing(lambda m: m) / s.n


_TSS_PRIME = tuple(
    replace(cell, by_chance=cell.counter != "S1: numbers of reporters sent")
    for cell in (
        _right("S1: helpers drawn", "Σ d_j", lambda s: s.missing(lambda _: 1)),
        _new("S1: user labels sent", "(n+1) Σ d_j", lambda s: (s.n + 1) * s.missing(lambda _: 1)),
        Cell(
            "S1: numbers of reporters sent",
            "(n+1) for every j with d_j > 0",
            lambda s: (s.n + 1) * s.missing(lambda m: 1 / (s.phi + 1 - m)),
            "(n+1)N",
            lambda s: (s.n + 1) * s.N,
        ),
        _right("S2: field additions", "Σ d_j", lambda s: s.missing(lambda _: 1)),
        _right("user: field elements drawn", _MORE_SHARES, _more_shares),
        _right("user: field additions as reporter", _MORE_SHARES, _more_shares),
        Cell(
            "user: field additions as helper",
            "Σ (phi+1) d_j / n",
            lambda s: (s.phi + 1) * s.missing(lambda _: 1) / s.n,
            "Σ (m_j-1) d_j / n",
            lambda s: s.missing(lambda m: m - 1) / s.n,
        ),
        Cell(
            "user: field elements sent",
            _MORE_SHARES,
            _more_shares,
            "Σ (m_j (1-1/n) + 1) d_j / n",
            lambda s: s.missing(lambda m: m * (1 - 1 / s.n) + 1) / s.n,
        ),
    )
)

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

CELLS = {"dpds": _DPDS, "tss": _TSS, "tss_prime": _TSS_PRIME, "seeded": _SEEDED, "servers": _SERVERS}
"""By protocol: Algorithm 2, Algorithm 3, what Algorithm 4 adds to it, Algorithm 2 with seeds for shares, and the same
between two servers."""


@dataclass(frozen=True)
class CostTable:
    """Formulas at one size beside what was counted, by protocol; counts are averages over the runs."""

    size: Size
    gamma: float
    modulus: int
    counted: dict[str, dict[str, float]]

    def bytes_sent(self, protocol: str) -> float:
        """Payload that a user sends, elements packed one by one: what the forms differ in."""
        found = self.counted[protocol]
        bits = found["user: field elements sent"] * packed_bits(self.modulus, 1) + found.get("user: bits sent", 0)
        return bits / 8 + found.get("user: seeds sent", 0) * SEED_BYTES

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = {
            name: [cell.record(self.size) | {"counted": self.counted[name].get(cell.counter, 0.0)} for cell in cells]
            for name, cells in CELLS.items()
        }
        known = {"users": self.size.n, "items": self.size.N, "alpha": self.size.alpha, "gamma": self.gamma}
        known |= {"phi": self.size.phi}
        sent = {name: self.bytes_sent(name) for name in CELLS if name != "tss_prime"}
        return {**table_of.JSON_VERSION, **known, "q": self.modulus, "protocols": rows, "bytes_sent_per_user": sent}

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per protocol and cost; its `attrs` hold the size."""
        rows = self._rows()
        said = {key: value for key, value in self.to_dict().items() if key != "protocols"}
        columns = {key: [row[key] for _, row in rows] for key in rows[0][1]}
        return table_of.frame(columns, [name for name, _ in rows], "protocol", said)

    def _repr_html_(self) -> str:
        heads = ["protocol", "cost", "printed", "corrected", "formula", "counted"]
        words, values = ("cost", "printed", "corrected"), ("corrected_value", "counted")
        rows = [
            [name, *(table_of.text(row[key] or "-") for key in words), *(f"{row[key]:,.4g}" for key in values)]
            for name, row in self._rows()
        ]
        return table_of.table(heads, rows)

    def _rows(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, row) for name, rows in self.to_dict()["protocols"].items() for row in rows]


def costs(
    users: int = 60,
    items: int = 10,
    *,
    alpha: float | None = None,
    gamma: float = 1.0,
    phi: int | None = None,
    runs: int = 20,
    seed: int = 1,
    entropy: Entropy | None = None,
) -> CostTable:
    """Table I at this size: every formula, and what the parties of running surveys drew, added and sent.

    Only TSS and TSS' depend on chance; their counts are averages of `runs` surveys whose items have equally many
    holders. What TSS' adds is counted for uniform sets, whatever `gamma`.

    users, items: size of the survey
    alpha: share of the items that a user of TSS reports; 0.4, to whole items, if not given
    gamma: how much likelier a reported set holds the own item
    phi: colluding users that TSS' is made for; a few more than an item usually has reporters, if not given
    runs: surveys of TSS and TSS' that are averaged
    seed: of the users' sets and helpers
    entropy: randomness of the responses
    """
    n, N = integer("users", users, least=2), integer("items", items, least=2)
    if n * n * N > MOST_SHARES:
        raise ParameterError(f"{n} users and {N} items make {n * n * N:,} shares to lay out: ask for fewer users")
    source, rng = SystemEntropy() if entropy is None else entropy, np.random.default_rng(seed)
    share = usual_alpha(N) if alpha is None else alpha
    plain, staged = DPDS(items=N, users=n, p=P), TSS(items=N, users=n, p=P, alpha=share, gamma=gamma)
    bound = usual_phi(n, share) if phi is None else phi
    prime = TSSPrime(items=N, users=n, p=P, alpha=share, phi=bound)
    answers, surveys = np.arange(n) % N, range(integer("runs", runs, least=1))
    counted = {name: count(plain, answers, source) for name, count in FIXED.items()}
    counted["tss"] = _average([two_stage(staged, rng.permutation(answers), source, rng) for _ in surveys])
    added = [added_by_more_helpers(prime, rng.permutation(answers), source, rng) for _ in surveys]
    counted["tss_prime"] = _average(added)
    return CostTable(replace(Size.of(staged), phi=bound), gamma, plain.modulus, counted)


def usual_phi(users: int, alpha: float) -> int:
    """A bound on colluding users that makes TSS' elect more helpers than TSS would for most items."""
    return max(1, min(users - 1, round(alpha * users) + 5))


def _average(surveys: list[dict[str, float]]) -> dict[str, float]:
    names = {name for survey in surveys for name in survey}
    return {name: float(np.mean([survey.get(name, 0.0) for survey in surveys])) for name in sorted(names)}

"""Table I at a chosen size: the formulas beside the counts of running code."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.plain import JSON_VERSION
from faircount.core.validation import check_integer
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS, TSSPrime, default_alpha
from faircount.reproduction.costs.counters import FIXED, count_added_by_tss_prime, count_tss
from faircount.reproduction.costs.formulas import CELLS, Size
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import packed_bits

# Sampling probability of the counted runs. With uniform sets the costs do not depend on it.
P = 0.5

# DPDS has n n N shares, which are kept in memory to be counted: 160 MB at 8 bytes each.
MAX_SHARES = 2 * 10**7


@dataclass(frozen=True)
class CostTable:
    """Formulas at one size beside what was counted; random counts are averages over the runs."""

    size: Size
    gamma: float
    modulus: int
    counted: dict[str, dict[str, float]]

    def bytes_sent(self, protocol: str) -> float:
        """Payload that a user sends in a protocol, field elements packed one by one."""
        counts = self.counted[protocol]
        bits = counts["user: field elements sent"] * packed_bits(self.modulus, 1)
        bits += counts.get("user: bits sent", 0)
        return bits / 8 + counts.get("user: seeds sent", 0) * SEED_BYTES

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        protocols: dict[str, list[dict[str, Any]]] = {}
        for name, cells in CELLS.items():
            protocols[name] = []
            for cell in cells:
                counted = self.counted[name].get(cell.counter, 0.0)
                protocols[name].append(cell.record(self.size) | {"counted": counted})
        # TSS' is counted as what it adds to TSS, which is no message of its own.
        sent = {name: self.bytes_sent(name) for name in CELLS if name != "tss_prime"}
        return {
            **JSON_VERSION,
            "users": self.size.n,
            "items": self.size.N,
            "alpha": self.size.alpha,
            "gamma": self.gamma,
            "phi": self.size.phi,
            "q": self.modulus,
            "protocols": protocols,
            "bytes_sent_per_user": sent,
        }


def count_costs(
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
    """Table I at this size: every formula, and what the parties drew, added and sent.

    Only the counts of TSS and TSS' are random. They are averages of `runs` surveys in which equally
    many users choose every item. What TSS' adds is counted for uniform sets, whatever `gamma` is.

    users, items: size of the survey
    alpha: share of the items that a user of TSS reports; by default 0.4, rounded to whole items
    gamma: how much likelier a reported set contains the user's own item
    phi: number of colluding users that TSS' protects against; by default a few more than an item
        usually has reporters
    runs: surveys of TSS and TSS' that are averaged
    seed: for the users' sets and helpers
    entropy: randomness of the responses
    """
    n = check_integer("users", users, least=2)
    N = check_integer("items", items, least=2)
    surveys = check_integer("runs", runs, least=1)
    if n * n * N > MAX_SHARES:
        raise ParameterError(
            f"{n} users and {N} items make {n * n * N:,} shares to count: ask for fewer users"
        )
    source = SystemEntropy() if entropy is None else entropy
    rng = np.random.default_rng(seed)
    share = default_alpha(N) if alpha is None else alpha
    bound = default_phi(n, share) if phi is None else phi
    # All have the same size and sampling probability: only the protocol differs.
    dpds = DPDS(items=N, users=n, p=P)
    tss = TSS(items=N, users=n, p=P, alpha=share, gamma=gamma)
    prime = TSSPrime(items=N, users=n, p=P, alpha=share, phi=bound)

    # The order of these draws is part of what `seed` means.
    answers = np.arange(n) % N
    counted = {name: count(dpds, answers, source) for name, count in FIXED.items()}
    tss_counts = [count_tss(tss, rng.permutation(answers), source, rng) for _ in range(surveys)]
    prime_counts = []
    for _ in range(surveys):
        shuffled = rng.permutation(answers)
        prime_counts.append(count_added_by_tss_prime(prime, shuffled, source, rng))
    counted["tss"] = _average(tss_counts)
    counted["tss_prime"] = _average(prime_counts)
    return CostTable(replace(Size.of(tss), phi=bound), gamma, dpds.modulus, counted)


def default_phi(users: int, alpha: float) -> int:
    """A number of colluding users for which TSS' elects more helpers than TSS for most items."""
    return max(1, min(users - 1, round(alpha * users) + 5))


def _average(surveys: list[dict[str, float]]) -> dict[str, float]:
    # A counter that a survey did not touch is 0 there.
    names = sorted(set().union(*surveys))
    return {name: float(np.mean([counts.get(name, 0.0) for counts in surveys])) for name in names}

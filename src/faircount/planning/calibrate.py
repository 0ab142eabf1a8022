"""Every mechanism at one exact budget: the parameters that spend it, and nothing more.

A family turns a question into a mechanism that is ready to run. The budget (epsilon, delta) is the total over all
releases to the same users, against the insiders of the question; a family that cannot meet it says why.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from faircount.accounting import composition, exact, gaussian
from faircount.accounting.divergence import LossPair, binomial_window, largest_within
from faircount.accounting.guarantee import S1
from faircount.core.errors import RefusedError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.decoys import Decoys, total_coins
from faircount.mechanisms.gaussian import DPDG, sum_law
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local_frequency import GRR, OUE
from faircount.mechanisms.sampling import DPCS, DPDS, no_crowd
from faircount.mechanisms.two_stage import TSS, TSSPrime, usual_alpha
from faircount.planning.question import Question

WIDEST = 1024.0
"""Standard deviation of one user's Gaussian noise, in counts, that a plan still looks at."""


@dataclass(frozen=True)
class Made:
    """A mechanism for one release; `spent` is the delta of all releases together at the epsilon asked for."""

    mechanism: FrequencyMechanism
    spent: Callable[[], float]


Family = Callable[[Question], Made]


def _promise(q: Question) -> dict[str, Any]:
    """What a single release promises; of several, each alone promises nothing that was asked for."""
    return {"epsilon": q.epsilon, "delta": q.delta} if q.releases == 1 else {}


def _crowd(q: Question) -> dict[str, Any]:
    """Who takes part and whom not to count on."""
    return {"items": q.items, "users": q.users, "insiders": q.insiders, "dropouts": q.lost}


def _composed(pair: LossPair, q: Question) -> float:
    """Delta of all releases, one count up and another one down in each, from the privacy loss distribution."""
    return composition.compose([[pair, pair.swapped()]] * q.releases, epsilon=q.epsilon)


def laplace(q: Question) -> Made:
    """Two-sided geometric noise; over R releases exactly a 2R-fold randomized response."""
    each = q.epsilon if q.releases == 1 else _laplace_each(q.epsilon, q.delta * (1 - 1e-9), q.releases)
    made = Laplace(**_crowd(q), epsilon=each)

    def spent() -> float:
        ideal = composition.compose_randomized_response(each / 2, 2 * q.releases, epsilon=q.epsilon)
        return ideal + table_delta(made, q.epsilon, q.releases)

    return Made(made, spent)


def table_delta(made: Laplace, epsilon: float, releases: int) -> float:
    """What the finite tables of all releases cost at the total epsilon: (1 + e^epsilon) times their distance."""
    return releases * made.delta_r * (1 + math.exp(min(epsilon, 700.0))) / (1 + math.exp(made.epsilon))


def decoys(q: Question) -> Made:
    """Fair coins, as many as the composed privacy loss asks for."""
    needed = _decoys_needed(q.epsilon, q.delta, q.releases)
    coins = {} if q.releases == 1 else {"coins": total_coins(needed, q.users, q.staying - q.insiders)}
    made = Decoys(**_crowd(q), **_promise(q), **coins)
    return Made(made, lambda: _decoys_spent(needed, q.epsilon, q.releases))


def dpdg(q: Question) -> Made:
    """Discretized Gaussian; R releases are accounted by the privacy loss distribution of what is drawn."""
    each, delta = q.epsilon, q.delta
    if q.releases > 1:  # the epsilon of one release whose noise is the composed one's
        sigma = gaussian.analytic_sigma(q.epsilon, q.delta * 0.999, math.sqrt(2 * q.releases))
        delta = q.delta / q.releases
        each = exact.epsilon_for(lambda eps: gaussian.analytic_delta(sigma, eps), delta)
    made = DPDG(**_crowd(q), epsilon=each, delta=delta)
    if made.planned / math.sqrt(made.h) > WIDEST:
        raise RefusedError("so much noise for so few users needs a table that is too large: allow a larger epsilon")

    def spent() -> float:
        if q.releases == 1:
            return made.guarantee().delta
        return _composed(exact.shift_pair(sum_law(made.user_steps, made.h), made.steps_per_count), q)

    return Made(made, spent)


def _sampling(kind: type[DPCS] | type[DPDS], q: Question) -> Made:
    crowd = hidden_by_floor(q)
    p = _sampling_p(crowd, q.epsilon, q.delta, q.releases)
    made = kind(**_crowd(q), **_promise(q), p=p, floor=q.floor)
    return Made(made, lambda: _sampling_spent(crowd, p, q.epsilon, q.releases))


def hidden_by_floor(q: Question) -> int:
    """k - t - d: other holders of every item who neither collude nor drop out; refused where none are left."""
    crowd, room = q.floor - q.insiders - q.lost, (q.users - 1) // q.items
    if q.floor > room:
        raise RefusedError(
            f"{q.users} users cannot give each of {q.items} items {q.floor} other holders: {room} at most"
        )
    if crowd < 1:
        raise no_crowd(q.epsilon / q.releases, q.delta / q.releases, q.insiders + q.lost)
    return crowd


def dpcs(q: Question) -> Made:
    """Centralized sampling: as DPDS, for whoever has a trusted server."""
    return _sampling(DPCS, q)


def dpds(q: Question) -> Made:
    """Distributed sampling with the largest p that the floor allows."""
    return _sampling(DPDS, q)


def tss(q: Question) -> Made:
    """Never sound: a lone helper sees a bit in the clear."""
    raise RefusedError("an item that one user reports has one helper, who sees that user's bit: use tss-prime")


def tss_prime(q: Question) -> Made:
    """Uniform second stage; p as large as S1, who knows the sets and reads the result, allows. Releases add up."""
    crowd = hidden_by_floor(q)
    alpha = usual_alpha(q.items)
    each, delta = q.epsilon / q.releases, q.delta / q.releases
    p = _two_stage_p(q.items, alpha, q.floor - q.lost, crowd, each, delta)
    made = TSSPrime(**_crowd(q), **_promise(q), p=p, alpha=alpha, floor=q.floor, phi=q.insiders)
    return Made(made, lambda: q.releases * max(one.delta for one in made.guarantees(epsilon=each)))


def _local(kind: type[GRR] | type[OUE], q: Question) -> Made:
    """Reports of the mechanism's own law compose exactly; one report needs no delta."""
    each = q.epsilon if q.releases == 1 else _local_each(kind, q.items, q.epsilon, q.delta, q.releases)
    made = kind(items=q.items, users=q.users, epsilon=each)
    return Made(made, lambda: made.composed(q.releases, epsilon=q.epsilon))


def grr(q: Question) -> Made:
    """Generalized randomized response."""
    return _local(GRR, q)


def oue(q: Question) -> Made:
    """Optimized unary encoding."""
    return _local(OUE, q)


FAMILIES: dict[str, Family] = {
    "laplace": laplace,
    "decoys": decoys,
    "dpdg": dpdg,
    "dpds": dpds,
    "tss-prime": tss_prime,
    "tss": tss,
    "dpcs": dpcs,
    "oue": oue,
    "grr": grr,
}
"""In the order in which equal errors are preferred."""


# What does not depend on the number of users is computed once, however many sizes a plan looks at.

_laplace_each = lru_cache(64)(composition.laplace_epsilon_for_releases)
_decoys_needed = lru_cache(64)(composition.decoys_for_releases)
_sampling_p = lru_cache(64)(composition.sampling_probability_for_releases)


@lru_cache(64)
def _decoys_spent(coins: int, epsilon: float, releases: int) -> float:
    pair = exact.shift_pair(binomial_window(coins, 0.5)[1])
    one = exact.decoys_delta(coins, epsilon)
    return one if releases == 1 else composition.compose([[pair, pair.swapped()]] * releases, epsilon=epsilon)


@lru_cache(64)
def _sampling_spent(crowd: int, p: float, epsilon: float, releases: int) -> float:
    pair = composition.sampling_pair(crowd, p)
    one = exact.sampling_delta(crowd, p, epsilon)
    return one if releases == 1 else composition.compose([[pair, pair.swapped()]] * releases, epsilon=epsilon)


@lru_cache(64)
def _local_each(kind: type[GRR] | type[OUE], items: int, epsilon: float, delta: float, releases: int) -> float:
    """The largest epsilon of each report; a report for a smaller one could be made of it, so delta rises with it."""

    def composed(each: float) -> float:
        return kind(items=items, epsilon=each).composed(releases, epsilon=epsilon)

    return largest_within(composed, delta, 2 * epsilon + 8 + math.log(items))


@lru_cache(64)
def _two_stage_p(items: int, alpha: float, floor: int, crowd: int, epsilon: float, delta: float) -> float:
    """A p at which S1 (no participant: the whole floor hides a user) and the insiders meet the budget.

    Within 0.5% of the largest, on the safe side: S1's view is the slowest to account.
    """
    most = exact.sampling_probability(crowd, epsilon, delta)

    def sound(p: float) -> bool:
        made = TSS(items=items, p=p, alpha=alpha, floor=floor)
        return made.guarantee(epsilon=epsilon, adversary=S1).delta <= delta

    if sound(most):
        return most
    safe = most
    while not sound(safe):
        most, safe = safe, safe / 2
    while most / safe > 1.005:
        middle = math.sqrt(safe * most)
        safe, most = (middle, most) if sound(middle) else (safe, middle)
    return safe

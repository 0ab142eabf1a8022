"""What the mechanisms of the paper guarantee with given parameters, and what the paper says.

Nothing is calibrated here: a floor is the k of the formula, and coins are those that the adversary
does not know. Give epsilon, and delta is computed, or the other way round. Several releases are
composed by their privacy loss distributions.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from faircount.accounting import exact, gaussian, paper
from faircount.accounting import two_stage as sets
from faircount.accounting.composition import compose, compose_randomized_response, sampling_pair
from faircount.accounting.conditions import NOBODY_LEFT_OUT, floor_condition, joint_condition
from faircount.accounting.divergence import LossPair, binomial_window, epsilon_for
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary, Relation
from faircount.accounting.guarantee import insiders as colluding
from faircount.core.errors import ParameterError
from faircount.core.validation import check_integer
from faircount.mechanisms.gaussian import DPDG, sum_distribution
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local import LocalMechanism
from faircount.mechanisms.local_frequency import GRR, OUE
from faircount.mechanisms.local_mean import PM, Duchi
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSS
from faircount.planning.statement import Statement

# A p so little above the theorem's is the theorem's own, typed with three digits.
ROUNDED = 1.005


def _check_one_given(epsilon: float | None, delta: float | None) -> None:
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")


def _solve(
    delta_at: Callable[[float], float], epsilon: float | None, delta: float | None
) -> tuple[float, float]:
    """(epsilon, delta) from either."""
    _check_one_given(epsilon, delta)
    known = epsilon or 0.0
    if epsilon is None and delta is not None:
        known = epsilon_for(delta_at, delta)
    # Delta is computed in both cases: what really holds may be less than what was asked for.
    return known, delta_at(known)


def _compose_pairs(
    pair: LossPair, releases: int, epsilon: float | None, delta: float | None
) -> tuple[float, float, float]:
    """(epsilon, delta, delta for zero-out) of several releases.

    In each of them one count moves as in the pair, and another one back.
    """
    _check_one_given(epsilon, delta)
    # A replaced answer takes one from a count and gives one to another.
    both = [[pair, pair.swap()]] * releases
    # Composed as whole distributions of losses: adding epsilons would be true as well, and about
    # twice as large for many releases.
    known = compose(both, delta=delta) if epsilon is None else epsilon
    return known, compose(both, epsilon=known), compose([[pair]] * releases, epsilon=known)


def sampling(
    p: float,
    floor: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    users: int | None = None,
    items: int | None = None,
    releases: int = 1,
    insiders: int = 0,
    dropouts: int = 0,
) -> Statement:
    """DPDS and DPCS, where every item has at least `floor` other holders.

    Of these, `insiders` and `dropouts` do not count.
    """
    made = DPDS(items=items or 3, users=users, p=p, floor=floor, dropouts=dropouts)
    who = colluding(insiders)
    found = _sampling_at(made, who, check_integer("releases", releases, least=1), epsilon, delta)
    one = _sampling_at(made, colluding(insiders + 1), releases, found[0], None)
    more = {
        "p": p,
        "floor": floor,
        "insiders": insiders,
        "dropouts": dropouts,
        "delta_one_more_insider": one[1],
    }
    # The theorems speak of one release.
    printed: dict[str, float | None] = dict.fromkeys(("theorem1_delta", "theorem2_delta"))
    if releases == 1:
        printed = _theorems(p, floor, found[0], users, items)
    remark = _why_bound(made, who, releases)
    return Statement(
        "dpds",
        *found,
        who,
        made.condition(who),
        releases,
        printed,
        more,
        is_bound=remark is not None,
        remarks=() if remark is None else (remark,),
    )


def _why_bound(made: DPDS, who: Adversary, releases: int) -> str | None:
    """Why delta is an upper bound; None where it is exact."""
    if who.insiders or made.dropouts:
        return (
            "delta is an upper bound: insiders and dropouts are taken from the floor of both "
            "answers that are compared, although nobody holds two"
        )
    users = made.users
    # Without a number of users the worst one is meant, with which both items are at the floor.
    if made.N != 2 or users is None or users == 2 * made.floor + 1:
        return None
    if releases > 1 or users > exact.ENUMERATED_USERS:
        return (
            "delta is an upper bound: of two items only one can be at the floor unless there are "
            f"{2 * made.floor + 1:,} users"
        )
    return None


def _sampling_at(
    made: DPDS, who: Adversary, releases: int, epsilon: float | None, delta: float | None
) -> tuple[float, float, float]:
    # With rate 1 everybody is counted and nothing is hidden, so there is nothing to compose.
    if releases > 1 and made.rate < 1:
        return _compose_pairs(
            sampling_pair(made.hidden_holders(who), made.rate), releases, epsilon, delta
        )
    stated = made.guarantee(epsilon=epsilon, delta=delta, adversary=who)
    return (
        stated.epsilon,
        stated.delta,
        made.guarantee(epsilon=stated.epsilon, adversary=who, relation=Relation.ZERO_OUT).delta,
    )


def _theorems(
    p: float, floor: int, epsilon: float, users: int | None, items: int | None
) -> dict[str, float | None]:
    """Deltas of Theorems 1 and 2, where they apply to this p.

    Theorem 1 applies up to 1 - e^-epsilon, and Theorem 2 to 1 - e^-(z + epsilon) with z > 0.
    """
    first = second = None
    if users is not None and items is not None and epsilon > 0:
        if p <= paper.theorem1_p(epsilon) * ROUNDED:
            first = paper.theorem1_delta(users, items, floor, epsilon)
        # The z for which this p is the theorem's; log1p keeps the digits of a small p.
        z = math.inf if p == 1 else -math.log1p(-p) - epsilon
        if 0 < z < math.inf:
            second = paper.theorem2_delta(users, items, floor, epsilon, z)
    return {"theorem1_delta": first, "theorem2_delta": second}


def decoys(
    decoys: int, *, epsilon: float | None = None, delta: float | None = None, releases: int = 1
) -> Statement:
    """Fair coins per item that the adversary knows nothing about, whatever the data."""
    if check_integer("releases", releases, least=1) > 1:
        found = _compose_pairs(
            exact.shift_pair(binomial_window(decoys, 0.5)[1]), releases, epsilon, delta
        )
    else:
        eps, value = _solve(lambda one: exact.decoys_delta(decoys, one), epsilon, delta)
        found = eps, value, exact.decoys_delta(decoys, eps, Relation.ZERO_OUT)
    return Statement("decoys", *found, OUTSIDER, releases=releases, more={"decoys": decoys})


def laplace(
    epsilon: float,
    *,
    items: int | None = None,
    delta: float | None = None,
    users: int = 1000,
    releases: int = 1,
    insiders: int = 1,
    dropouts: int = 0,
) -> Statement:
    """Laplace noise for `epsilon` in each release; with a delta, the smaller epsilon at it.

    Three items or more are alike; two share one draw and have an exact total. What the finite noise
    table may add to delta depends on the number of users and is never 0.
    """
    made = Laplace(
        items=3 if items is None else items,
        users=users,
        epsilon=epsilon,
        insiders=insiders,
        dropouts=dropouts,
    )
    lost = made.table_delta(check_integer("releases", releases, least=1))
    # The finite tables cost this much even if nothing else did.
    if delta is not None and delta <= lost:
        raise ParameterError(
            f"delta must be above {lost:.2g}, what the noise tables alone may cost"
        )

    # A replaced answer moves two counts. Noise on each is (epsilon / 2)-DP, which composes no worse
    # than randomized response with epsilon / 2. Two items alone have one draw for all of epsilon.
    draws = made.moved_draws

    def ideal(count: int, eps: float) -> float:
        return compose_randomized_response(epsilon / draws, count, epsilon=eps)

    total = releases * epsilon
    if delta is not None:
        total = epsilon_for(lambda eps: ideal(draws * releases, eps), delta - lost)
    more = {"users": users, "insiders": insiders, "dropouts": dropouts, "epsilon_each": epsilon}
    # With the exact total of two items a zeroed response is seen for certain.
    zero_out = 1.0 if draws == 1 else ideal(releases, total) + lost
    spent = ideal(draws * releases, total) + lost
    return Statement(
        "laplace",
        total,
        spent,
        zero_out,
        made.default_adversary,
        releases=releases,
        more=more,
        remarks=(_EXACT_TOTAL,) if draws == 1 else (),
    )


_EXACT_TOTAL = (
    "the two counts add up to exactly the number of users, so under zero-out a missing answer is "
    "seen for certain; replaced answers are protected"
)


def two_stage(
    p: float,
    alpha: float,
    *,
    gamma: float = 1.0,
    floor: int = 0,
    items: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    releases: int = 1,
    dropouts: int = 0,
) -> Statement:
    """TSS, by adversary; what the coordinator learns with the result depends on the number of
    items.

    Releases add up: epsilon and delta are divided evenly among them.
    """
    made = None
    if items is not None:
        made = TSS(items=items, p=p, alpha=alpha, gamma=gamma, floor=floor, dropouts=dropouts)
        alpha = made.alpha  # rounded to a whole number of items
    more: dict[str, Any] = {
        "s1_epsilon": sets.coordinator_epsilon(p, alpha, gamma),
        "s1_epsilon_paper": sets.coordinator_epsilon_paper(gamma),
        **dict.fromkeys(("s1_delta", "s2_delta", "reader_delta")),
        "p": p,
        "alpha": alpha,
        "gamma": gamma,
        "floor": floor,
    }
    # Without both there is no guarantee to compute, but the coordinator's view of the sets needs
    # neither.
    if epsilon is None and delta is None:
        return Statement("tss", None, None, None, S1, releases=releases, more=more)
    count = check_integer("releases", releases, least=1)
    crowd = max(0, floor - check_integer("dropouts", dropouts))

    def delta_at(one_epsilon: float, relation: Relation = Relation.REPLACE_ONE) -> float:
        """Against the coordinator, who knows most; without the number of items, the bound for
        the aggregator.
        """
        if made is None:
            return exact.sampling_delta(crowd, p, one_epsilon, relation)
        return made.guarantee(epsilon=one_epsilon, adversary=S1, relation=relation).delta

    one, value = _solve(delta_at, epsilon and epsilon / count, delta and delta / count)

    def add_up(one_delta: float) -> float:
        return min(1.0, count * one_delta)

    # The probability that a user's set contains the user's own item, which has gamma times the odds
    # of any other one.
    p_chi = alpha * gamma / (alpha * gamma + 1 - alpha)
    more["s1_delta"] = None if made is None else add_up(value)
    more["s2_delta"] = add_up(exact.sampling_delta(crowd, p, one))
    # A reader sees counts of those who were sampled and whose set contains their own item.
    more["reader_delta"] = add_up(exact.sampling_delta(crowd, p * p_chi, one))
    if made is not None:
        who = S1
        condition = made.condition(S1)
    else:
        who = S2
        everybody = NOBODY_LEFT_OUT if dropouts else None
        condition = joint_condition((floor_condition(floor, dropouts=dropouts), everybody))
    zero = add_up(delta_at(one, Relation.ZERO_OUT))
    return Statement("tss", count * one, add_up(value), zero, who, condition, count, more=more)


def gaussian_noise(
    sigma: float, *, epsilon: float | None = None, delta: float | None = None, releases: int = 1
) -> Statement:
    """Continuous Gaussian noise with standard deviation `sigma` (analytic, Balle & Wang 2018)."""
    root = math.sqrt(check_integer("releases", releases, least=1))
    # A replaced answer moves two counts by one each, a distance of sqrt(2); independent releases
    # add up as squares do.
    eps, value = _solve(
        lambda one: gaussian.analytic_delta(sigma, one, root * math.sqrt(2)), epsilon, delta
    )
    zero = gaussian.analytic_delta(sigma, eps, root)
    printed = {"classical_sigma": _classical(eps, value)}
    return Statement(
        "gaussian",
        eps,
        value,
        zero,
        OUTSIDER,
        releases=releases,
        paper=printed,
        more={"sigma": sigma},
    )


def _classical(epsilon: float, delta: float) -> float | None:
    """The paper's standard deviation of a count, which is proven for epsilon < 1 only."""
    if epsilon <= 0 or not 0 < delta < 1:
        return None
    return math.sqrt(2) * gaussian.classical_sigma(epsilon, delta)


def dpdg(
    users: int,
    epsilon: float,
    delta: float,
    *,
    releases: int = 1,
    insiders: int = 1,
    dropouts: int = 0,
) -> Statement:
    """The discretized Gaussian for (epsilon, delta) in each release.

    For several releases epsilon is computed at delta.
    """
    known: dict[str, Any] = {
        "items": 2,
        "users": users,
        "epsilon": epsilon,
        "delta": delta,
        "insiders": insiders,
        "dropouts": dropouts,
    }
    made = DPDG(**known)
    # The same with the share of noise per user that the paper prints.
    printed = DPDG(**known, share="printed")
    if check_integer("releases", releases, least=1) > 1:
        found = _compose_pairs(
            exact.shift_pair(sum_distribution(made.user_steps, made.h), made.steps_per_count),
            releases,
            None,
            delta,
        )
    else:
        zero = made.guarantee(relation=Relation.ZERO_OUT)
        found = epsilon, made.guarantee().delta, zero.delta
    beside = {
        "classical_sigma": _classical(epsilon, delta),
        "printed_share_delta": printed.guarantee().delta,
    }
    more = {
        "users": users,
        "insiders": insiders,
        "dropouts": dropouts,
        "sigma": made.target_sigma,
        "q": made.modulus,
    }
    return Statement(
        "dpdg", *found, made.default_adversary, releases=releases, paper=beside, more=more
    )


LOCAL = {"grr": GRR, "oue": OUE, "duchi": Duchi, "pm": PM}


def local(
    name: str, epsilon: float, *, items: int = 2, delta: float | None = None, releases: int = 1
) -> Statement:
    """A local mechanism; no zero-out, because the collector sees who sends a report."""
    about: dict[str, Any] = {"items": items} if name in ("grr", "oue") else {}
    made: LocalMechanism = LOCAL[name](epsilon=epsilon, **about)
    count = check_integer("releases", releases, least=1)
    total = count * epsilon
    # One report has the mechanism's own distribution, which is exact; several are composed.
    if count == 1:
        if delta is not None:
            total = made.guarantee(delta=delta).epsilon
        value = made.guarantee(epsilon=total).delta
    else:
        if delta is not None:
            total = made.compose_reports(count, delta=delta)
        value = made.compose_reports(count, epsilon=total)
    return Statement(
        name, total, value, None, COLLECTOR, releases=count, more={"epsilon_each": epsilon, **about}
    )


def local_mean(
    name: str, epsilon: float, *, delta: float | None = None, releases: int = 1
) -> Statement:
    """The same where there are no items."""
    return local(name, epsilon, delta=delta, releases=releases)


# Mechanisms about which the paper says something; all others state their own guarantee.
MAKERS: Mapping[str, Callable[..., Statement]] = {
    "dpds": sampling,
    "dpcs": sampling,
    "tss": two_stage,
    "tss-prime": two_stage,
    "decoys": decoys,
    "laplace": laplace,
    "gaussian": gaussian_noise,
    "dpdg": dpdg,
    "grr": partial(local, "grr"),
    "oue": partial(local, "oue"),
    "duchi": partial(local_mean, "duchi"),
    "pm": partial(local_mean, "pm"),
}

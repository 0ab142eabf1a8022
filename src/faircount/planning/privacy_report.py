"""The exact guarantee of given parameters, with what the paper says beside it.

Nothing is calibrated here: a floor is the k of the formula, coins are those unknown to the adversary. Give epsilon and
delta is computed, or delta and epsilon is. Several releases are composed by their privacy loss distribution.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from typing import Any

from faircount.accounting import exact, gaussian, paper
from faircount.accounting import two_stage as sets
from faircount.accounting.composition import compose, compose_randomized_response, sampling_pair
from faircount.accounting.divergence import LossPair, binomial_window, epsilon_for
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, Adversary, Relation
from faircount.accounting.guarantee import insiders as colluding
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.mechanisms.gaussian import DPDG, sum_law
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local import LocalMechanism
from faircount.mechanisms.local_frequency import GRR, OUE
from faircount.mechanisms.local_mean import PM, Duchi
from faircount.mechanisms.registry import mechanism as kind_named
from faircount.mechanisms.registry import names
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import NOBODY_LEFT_OUT, TSS
from faircount.planning.compose import compose as composed
from faircount.planning.statement import Statement

ROUNDED = 1.005
"""A p this much above the theorem's counts as the theorem's own, typed with three digits."""


def _either(epsilon: float | None, delta: float | None) -> None:
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")


def _solved(delta_at: Callable[[float], float], epsilon: float | None, delta: float | None) -> tuple[float, float]:
    """(epsilon, delta) from either."""
    _either(epsilon, delta)
    known = epsilon_for(delta_at, delta) if epsilon is None and delta is not None else epsilon or 0.0
    return known, delta_at(known)


def _composed(pair: LossPair, releases: int, epsilon: float | None, delta: float | None) -> tuple[float, float, float]:
    """(epsilon, delta, delta for zero-out) of releases in which one count moves as in the pair and another one back."""
    _either(epsilon, delta)
    both = [[pair, pair.swapped()]] * releases
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
    """DPDS and DPCS: every item has at least `floor` other holders, of whom `insiders` and `dropouts` do not count."""
    made = DPDS(items=items or 3, users=users, p=p, floor=floor, dropouts=dropouts)
    who = colluding(insiders)
    found = _sampling_at(made, who, integer("releases", releases, least=1), epsilon, delta)
    one = _sampling_at(made, colluding(insiders + 1), releases, found[0], None)
    more = {"p": p, "floor": floor, "insiders": insiders, "dropouts": dropouts, "delta_one_more_insider": one[1]}
    printed = _theorems(p, floor, found[0], users, items) if releases == 1 else _theorems(p, floor, 0.0, None, None)
    return Statement("dpds", *found, who, made.condition(who), releases, printed, more)


def _sampling_at(
    made: DPDS, who: Adversary, releases: int, epsilon: float | None, delta: float | None
) -> tuple[float, float, float]:
    if releases > 1 and made.rate < 1:
        return _composed(sampling_pair(made.crowd(who), made.rate), releases, epsilon, delta)
    said = made.guarantee(epsilon=epsilon, delta=delta, adversary=who)
    return (
        said.epsilon,
        said.delta,
        made.guarantee(epsilon=said.epsilon, adversary=who, relation=Relation.ZERO_OUT).delta,
    )


def _theorems(p: float, floor: int, epsilon: float, users: int | None, items: int | None) -> dict[str, float | None]:
    """Theorems 1 and 2 where they speak of this p: up to 1 - e^-epsilon, and 1 - e^-(z + epsilon) with its z > 0."""
    first = second = None
    if users is not None and items is not None and epsilon > 0:
        if p <= paper.theorem1_p(epsilon) * ROUNDED:
            first = paper.theorem1_delta(users, items, floor, epsilon)
        z = math.inf if p == 1 else -math.log1p(-p) - epsilon
        if 0 < z < math.inf:
            second = paper.theorem2_delta(users, items, floor, epsilon, z)
    return {"theorem1_delta": first, "theorem2_delta": second}


def decoys(decoys: int, *, epsilon: float | None = None, delta: float | None = None, releases: int = 1) -> Statement:
    """Fair coins per item that the adversary knows nothing about, whatever the data."""
    if integer("releases", releases, least=1) > 1:
        found = _composed(exact.shift_pair(binomial_window(decoys, 0.5)[1]), releases, epsilon, delta)
    else:
        eps, value = _solved(lambda each: exact.decoys_delta(decoys, each), epsilon, delta)
        found = eps, value, exact.decoys_delta(decoys, eps, Relation.ZERO_OUT)
    return Statement("decoys", *found, OUTSIDER, releases=releases, more={"decoys": decoys})


def laplace(
    epsilon: float,
    *,
    delta: float | None = None,
    users: int = 1000,
    releases: int = 1,
    insiders: int = 1,
    dropouts: int = 0,
) -> Statement:
    """Laplace noise made for `epsilon` in each release; with a delta, the smaller epsilon that holds up to it.

    What the finite noise table may add to delta depends on the number of users and is part of it, never 0.
    """
    made = Laplace(items=2, users=users, epsilon=epsilon, insiders=insiders, dropouts=dropouts)
    lost = made.table_delta(integer("releases", releases, least=1) * epsilon, releases)
    if delta is not None and delta <= lost:
        raise ParameterError(f"delta must be above {lost:.2g}, what the noise tables alone may cost")

    def ideal(count: int, eps: float) -> float:
        return compose_randomized_response(epsilon / 2, count, epsilon=eps)

    total = releases * epsilon if delta is None else epsilon_for(lambda eps: ideal(2 * releases, eps), delta - lost)
    more = {"users": users, "insiders": insiders, "dropouts": dropouts, "epsilon_each": epsilon}
    deltas = (ideal(2 * releases, total) + lost, ideal(releases, total) + lost)
    return Statement("laplace", total, *deltas, made.default_adversary, releases=releases, more=more)


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
    """TSS, adversary by adversary; what S1 learns together with the result needs the number of items.

    Releases add up: epsilon and delta are shared out evenly among them.
    """
    made = None if items is None else TSS(items=items, p=p, alpha=alpha, gamma=gamma, floor=floor, dropouts=dropouts)
    alpha = alpha if made is None else made.alpha
    more: dict[str, Any] = {
        "s1_epsilon": sets.s1_epsilon(p, alpha, gamma),
        "s1_epsilon_paper": sets.s1_epsilon_paper(gamma),
        **dict.fromkeys(("s1_delta", "s2_delta", "reader_delta")),
        "p": p,
        "alpha": alpha,
        "gamma": gamma,
        "floor": floor,
    }
    if epsilon is None and delta is None:
        return Statement("tss", None, None, None, S1, releases=releases, more=more)
    count, crowd = integer("releases", releases, least=1), max(0, floor - integer("dropouts", dropouts))

    def at(each: float, relation: Relation = Relation.REPLACE_ONE) -> float:
        """S1 knows most; without the number of items, S2's bound."""
        if made is None:
            return exact.sampling_delta(crowd, p, each, relation)
        return made.guarantee(epsilon=each, adversary=S1, relation=relation).delta

    each, value = _solved(at, epsilon and epsilon / count, delta and delta / count)

    def all_of(one: float) -> float:
        return min(1.0, count * one)

    p_chi = alpha * gamma / (alpha * gamma + 1 - alpha)
    more["s1_delta"] = None if made is None else all_of(value)
    more["s2_delta"] = all_of(exact.sampling_delta(crowd, p, each))
    more["reader_delta"] = all_of(exact.sampling_delta(crowd, p * p_chi, each))
    alone = f"every item has at least {floor} other holders" + f" and {NOBODY_LEFT_OUT}" * (dropouts > 0)
    who, condition = (S1, made.condition(S1)) if made else (_S2_BOUND, alone)
    zero = all_of(at(each, Relation.ZERO_OUT))
    return Statement("tss", count * each, all_of(value), zero, who, condition, count, more=more)


_S2_BOUND = Adversary("S2, the aggregator, reading the result (for S1 give the number of items)")


def gaussian_noise(
    sigma: float, *, epsilon: float | None = None, delta: float | None = None, releases: int = 1
) -> Statement:
    """Continuous Gaussian noise with standard deviation `sigma` on every count (analytic, Balle & Wang 2018)."""
    root = math.sqrt(integer("releases", releases, least=1))
    eps, value = _solved(lambda each: gaussian.analytic_delta(sigma, each, root * math.sqrt(2)), epsilon, delta)
    zero = gaussian.analytic_delta(sigma, eps, root)
    printed = {"classical_sigma": _classical(eps, value)}
    return Statement("gaussian", eps, value, zero, OUTSIDER, releases=releases, paper=printed, more={"sigma": sigma})


def _classical(epsilon: float, delta: float) -> float | None:
    """The paper's standard deviation of a count for (epsilon, delta); proven for epsilon < 1 only."""
    return math.sqrt(2) * gaussian.classical_sigma(epsilon, delta) if epsilon > 0 and 0 < delta < 1 else None


def dpdg(
    users: int, epsilon: float, delta: float, *, releases: int = 1, insiders: int = 1, dropouts: int = 0
) -> Statement:
    """What the discretized Gaussian made for (epsilon, delta) in each release guarantees; several: epsilon at delta."""
    known: dict[str, Any] = {
        "items": 2,
        "users": users,
        "epsilon": epsilon,
        "delta": delta,
        "insiders": insiders,
        "dropouts": dropouts,
    }
    made, printed = DPDG(**known), DPDG(**known, share="printed")
    if integer("releases", releases, least=1) > 1:
        found = _composed(
            exact.shift_pair(sum_law(made.user_steps, made.h), made.steps_per_count), releases, None, delta
        )
    else:
        zero = made.guarantee(relation=Relation.ZERO_OUT)
        found = epsilon, made.guarantee().delta, zero.delta
    beside = {"classical_sigma": _classical(epsilon, delta), "printed_share_delta": printed.guarantee().delta}
    more = {"users": users, "insiders": insiders, "dropouts": dropouts, "sigma": made.planned, "q": made.modulus}
    return Statement("dpdg", *found, made.default_adversary, releases=releases, paper=beside, more=more)


LOCAL = {"grr": GRR, "oue": OUE, "duchi": Duchi, "pm": PM}


def local(name: str, epsilon: float, *, items: int = 2, delta: float | None = None, releases: int = 1) -> Statement:
    """A local mechanism's report; there is no zero-out, because whoever collects reports sees who sent one."""
    about: dict[str, Any] = {"items": items} if name in ("grr", "oue") else {}
    made: LocalMechanism = LOCAL[name](epsilon=epsilon, **about)
    count = integer("releases", releases, least=1)
    total = count * epsilon
    if delta is not None:
        total = made.guarantee(delta=delta).epsilon if count == 1 else made.composed(count, delta=delta)
    value = made.guarantee(epsilon=total).delta if count == 1 else made.composed(count, epsilon=total)
    return Statement(name, total, value, None, COLLECTOR, releases=count, more={"epsilon_each": epsilon, **about})


def local_mean(name: str, epsilon: float, *, delta: float | None = None, releases: int = 1) -> Statement:
    """The same where there are no items."""
    return local(name, epsilon, delta=delta, releases=releases)


MAKERS: Mapping[str, Callable[..., Statement]] = {
    "dpds": sampling,
    "dpcs": sampling,
    "tss": two_stage,
    "tss-prime": two_stage,
    "decoys": decoys,
    "laplace": laplace,
    "gaussian": gaussian_noise,
    "dpdg": dpdg,
    **{name: partial(local, name) for name in ("grr", "oue")},
    **{name: partial(local_mean, name) for name in ("duchi", "pm")},
}
"""Mechanisms that the paper has something to say about; all others say everything of themselves."""


USUAL = {"items": 2, "users": 1000}
"""Of a mechanism that says everything of itself, where nothing else is given: neither matters for most."""


def registered(name: str, parameters: dict[str, Any]) -> Statement:
    """A mechanism by what it says of itself: its fields are its parameters, else epsilon and delta are asked for.

    At its own promise where neither epsilon nor delta is given.
    """
    kind, releases = kind_named(name), integer("releases", parameters.get("releases", 1), least=1)
    own = [each.name for each in fields(kind)]
    strange = [each for each in parameters if each not in (*own, "epsilon", "delta", "releases")]
    if strange:
        raise ParameterError(f"{name} has no {', '.join(strange)}; it takes {', '.join(sorted(own))} and releases")
    known = {key: value for key, value in {**USUAL, **parameters}.items() if key in own}
    try:
        made = kind(**known)
    except TypeError as problem:
        raise ParameterError(f"{name}: {str(problem).split('() ')[-1]}") from None
    epsilon, delta = (None if key in own else parameters.get(key) for key in ("epsilon", "delta"))
    if (epsilon, delta) == (None, None):
        epsilon = releases * made.stated()[0].epsilon
    if releases > 1:
        said, zero = composed(*[made] * releases, epsilon=epsilon, delta=delta), None
    else:
        said = made.guarantee(epsilon=epsilon, delta=delta)
        zero = made.guarantee(epsilon=said.epsilon, relation=Relation.ZERO_OUT).delta
    more = {each: getattr(made, each) for each in own if each not in ("items", "epsilon", "delta")}
    return Statement(name, said.epsilon, said.delta, zero, said.adversary, said.condition, releases, more=more)


def privacy(mechanism: str, **parameters: Any) -> Statement:
    """The exact guarantee of a mechanism with given parameters, and what the paper prints for it.

    `privacy("dpds", p=0.2, floor=30, epsilon=0.3)`; give delta instead of epsilon to have epsilon computed. `floor`
    is the k of the formula.

    mechanism: its name, in small letters
    parameters: those that `faircount privacy --help` lists for it; the error says which one is missing. A mechanism
        that the paper does not have, also one of your own (`register`), takes its own fields
    """
    if mechanism not in MAKERS and mechanism in names():
        return registered(mechanism, parameters)
    _check(mechanism, parameters)
    return replace(MAKERS[mechanism](**parameters), mechanism=mechanism)


statement = privacy
"""The name until 0.1."""


def _check(mechanism: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a mechanism without its parameters, or with those of another."""
    if mechanism not in MAKERS:
        raise ParameterError(f"mechanism must be one of {', '.join((*names(), 'gaussian'))}")
    takes = {**signature(MAKERS[mechanism]).parameters}
    takes["releases"] = takes.pop("releases")  # goes with every mechanism, and is named last
    lacking = [name for name, each in takes.items() if each.default is each.empty and name not in parameters]
    strange = [name for name in parameters if name not in takes]
    if lacking or strange:
        need = f"needs {', '.join(lacking)}" if lacking else f"has no {', '.join(strange)}"
        raise ParameterError(f"privacy of {mechanism} {need}; it takes {', '.join(takes)}")

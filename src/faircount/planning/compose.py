"""The guarantee of several releases about the same people together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from faircount.accounting import composition
from faircount.accounting.composition import (
    Losses,
    adds_up_to,
    dominating_pair,
    sum_epsilons,
)
from faircount.accounting.divergence import LARGEST_EPSILON, epsilon_for
from faircount.accounting.guarantee import Guarantee, Relation
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import check_epsilon, check_real
from faircount.mechanisms.base import Mechanism


def compose(
    *parts: Mechanism | Guarantee,
    epsilon: float | None = None,
    delta: float | None = None,
    adaptive: bool = False,
) -> Guarantee:
    """The guarantee of all releases together: delta at `epsilon`, or epsilon at `delta`.

    parts: mechanisms, which compose by their exact distributions, and guarantees, which compose as
        the worst mechanism that has them; each counts as one release about the same people
    epsilon, delta: give one of them, the other one is computed
    adaptive: releases are chosen after earlier results are known; then epsilons and deltas add up,
        and neither is given
    returns: one guarantee for all of them

    >>> monthly = fc.Laplace(items=6, users=800, epsilon=0.1)
    >>> round(fc.compose(*[monthly] * 12, delta=1e-6).epsilon, 2)
    0.97
    """
    stated = [_guarantee_of(part) for part in parts]
    total = sum_epsilons(stated)
    if adaptive:
        # Adding up has no free parameter: both numbers follow.
        if (epsilon, delta) != (None, None):
            raise ParameterError("adaptive releases add up: leave epsilon and delta out")
        return total
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")
    # The exact pairs are of replaced answers; another relation would need other pairs.
    if total.relation is not Relation.REPLACE_ONE:
        raise RefusedError(
            "only replace-one guarantees compose exactly: state them so, or add them up "
            "(adaptive=True)"
        )
    losses = [_losses_of(part, guarantee) for part, guarantee in zip(parts, stated, strict=True)]
    # Relation, adversary and condition are those of the sum; only the two numbers get smaller.
    if epsilon is not None:
        wanted, found = _delta_at(losses, stated, epsilon)
        return replace(total, epsilon=wanted, delta=found)
    found, wanted = _epsilon_at(losses, stated, delta)
    return replace(total, epsilon=found, delta=wanted)


def _guarantee_of(part: Mechanism | Guarantee) -> Guarantee:
    if isinstance(part, Guarantee):
        return part
    if isinstance(part, Mechanism):
        return part.stated_guarantees()[0]
    raise ParameterError("compose takes mechanisms and guarantees, such as result.guarantee")


def _losses_of(part: Mechanism | Guarantee, stated: Guarantee) -> Losses | None:
    """The privacy loss of a part; None if its epsilon is too large to be composed exactly."""
    exact = part.losses(stated.adversary) if isinstance(part, Mechanism) else None
    if exact is None and stated.epsilon <= LARGEST_EPSILON:
        return Losses((dominating_pair(stated.epsilon, stated.delta),))
    return exact


def _delta_at(
    losses: Sequence[Losses | None], stated: Sequence[Guarantee], epsilon: float
) -> tuple[float, float]:
    """Delta at this epsilon: the smaller one of exact composition and of adding up."""
    wanted = check_epsilon(epsilon)
    known = [loss for loss in losses if loss is not None]
    delta = 1.0
    if len(known) == len(losses):
        delta = min(1.0, _delta_curve(known, stated)(wanted) + _table_delta(known))
    # Adding up is better where a few releases have small deltas: exact composition rounds up.
    if adds_up_to([part.epsilon for part in stated], wanted):
        delta = min(delta, math.fsum(part.delta for part in stated))
    return wanted, delta


def _epsilon_at(
    losses: Sequence[Losses | None], stated: Sequence[Guarantee], delta: float | None
) -> tuple[float, float]:
    """Epsilon at this delta: the smaller one of exact composition and of adding up."""
    wanted = check_real("delta", delta)
    summed = math.fsum(part.epsilon for part in stated)
    sum_fits = adds_up_to([part.delta for part in stated], wanted)
    known = [loss for loss in losses if loss is not None]
    try:
        if len(known) < len(losses) or wanted <= _table_delta(known):
            raise RefusedError(
                f"delta = {wanted:g} is too small for these releases: ask for a larger one"
            )
        composed = epsilon_for(_delta_curve(known, stated), wanted - _table_delta(known))
    except RefusedError:
        if not sum_fits:
            raise
        return summed, wanted
    return (min(composed, summed) if sum_fits else composed), wanted


def _table_delta(losses: Sequence[Losses]) -> float:
    """What finite tables of noise, which are not quite exact, add to delta."""
    return math.fsum(loss.table_delta for loss in losses)


def _delta_curve(losses: Sequence[Losses], stated: Sequence[Guarantee]) -> Callable[[float], float]:
    step = composition.grid_step(part.epsilon for part in stated)
    return composition.delta_curve([loss.pairs for loss in losses], step=step)

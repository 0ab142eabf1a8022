"""What several releases to the same people cost them together."""

import math
from collections.abc import Sequence

from faircount.accounting import composition
from faircount.accounting.composition import Losses, dominating_pair, sum_epsilons
from faircount.accounting.divergence import LARGEST_EPSILON
from faircount.accounting.guarantee import Guarantee, Relation
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import real
from faircount.mechanisms.base import Mechanism

_ROUNDING = 1 + 1e-12  # ten times 0.1 is 1


def compose(
    *parts: Mechanism | Guarantee, epsilon: float | None = None, delta: float | None = None, adaptive: bool = False
) -> Guarantee:
    """The guarantee of all these releases together: the delta at `epsilon`, or the epsilon at `delta`.

    parts: mechanisms, which compose by their exact laws, and guarantees, which compose as the worst mechanism that has
        them; each counts as one release to the same people
    epsilon, delta: give one of them, the other one is computed
    adaptive: releases are chosen after earlier results are known: then epsilons and deltas add up, and nothing is given
    """
    stated = [_stated(each) for each in parts]
    total = sum_epsilons(stated)
    if adaptive:
        if (epsilon, delta) != (None, None):
            raise ParameterError("adaptive releases add up: leave epsilon and delta out")
        return total
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")
    if total.relation is not Relation.REPLACE_ONE:
        raise RefusedError("only replace-one guarantees compose exactly: state them so, or add them up (adaptive=True)")
    losses = [_losses(part, said) for part, said in zip(parts, stated, strict=True)]
    found = _delta_at(losses, stated, epsilon) if epsilon is not None else _epsilon_at(losses, stated, delta)
    return Guarantee(*found, total.relation, total.adversary, total.condition, total.void)


def _stated(part: Mechanism | Guarantee) -> Guarantee:
    if isinstance(part, Guarantee):
        return part
    if isinstance(part, Mechanism):
        return part.stated()[0]
    raise ParameterError("compose takes mechanisms and guarantees, such as result.guarantee")


def _losses(part: Mechanism | Guarantee, said: Guarantee) -> Losses | None:
    """None for an epsilon that is too large to be composed: such a release only adds up."""
    exact = part.losses(said.adversary) if isinstance(part, Mechanism) else None
    if exact is None and said.epsilon <= LARGEST_EPSILON:
        return Losses((dominating_pair(said.epsilon, said.delta),))
    return exact


def _delta_at(losses: Sequence[Losses | None], stated: Sequence[Guarantee], epsilon: float) -> tuple[float, float]:
    """The smaller of what the laws give and, where the epsilons fit, of what adding up gives."""
    wanted, found = checked_epsilon(epsilon), 1.0
    if all(each is not None for each in losses):
        known = [each for each in losses if each is not None]
        apart = sum(each.distance for each in known) * (1 + math.exp(min(wanted, 700.0)))
        found = min(1.0, _composed(known, stated, epsilon=wanted) + apart)
    if math.fsum(each.epsilon for each in stated) <= wanted * _ROUNDING:
        found = min(found, math.fsum(each.delta for each in stated))
    return wanted, found


def _epsilon_at(
    losses: Sequence[Losses | None], stated: Sequence[Guarantee], delta: float | None
) -> tuple[float, float]:
    """The smaller of both, as above; what tables cost is taken off the delta beforehand, at the largest epsilon."""
    wanted, most = real("delta", delta), math.fsum(each.epsilon for each in stated)
    fits = math.fsum(each.delta for each in stated) <= wanted
    known = [each for each in losses if each is not None]
    left = wanted - sum(each.distance for each in known) * (1 + math.exp(min(most, 700.0)))
    try:
        if len(known) < len(losses) or left <= 0:
            raise RefusedError(f"delta = {wanted:g} is too small for these releases: ask for a larger one")
        found = _composed(known, stated, delta=left)
    except RefusedError:
        if not fits:
            raise
        found = most
    return (min(found, most) if fits else found), wanted


def _composed(losses: Sequence[Losses], stated: Sequence[Guarantee], **asked: float) -> float:
    step = composition.grid_step(each.epsilon for each in stated)
    return composition.compose([each.pairs for each in losses], step=step, **asked)

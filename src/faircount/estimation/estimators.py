"""Estimates of frequencies from opened sums, and their squared error in theory and as measured.

Horvitz-Thompson (the paper's) works for every mechanism. The ratio s_j / sum(s) is for sampling alone: unbiased given
that anybody was sampled, with about (1 - psi_j) times the variance. It is biased when the coin differs between users or
when dropping out depends on the item.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import frequencies, integer, numbers, probability
from faircount.estimation.intervals import COVERS, ESTIMATORS, require_sampling
from faircount.estimation.laws import binomial_rows
from faircount.mechanisms.count_law import Channel


@dataclass(frozen=True, slots=True)
class SquaredError:
    """Mean squared error of estimated frequencies: averaged over the items, and their sum.

    The paper defines it with 1/N but prints sums over the items.
    """

    per_item: float
    summed: float


def horvitz_thompson(sums: ArrayLike, channel: Channel, included: int) -> Floats:
    """Unbiased frequencies among `included` users; s_j / (p n) for sampling (Algorithms 1 to 3)."""
    values = numbers("sums", sums)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise AnswerError("sums must be a non-empty list of finite numbers, one per item")
    return channel.estimate(values, integer("included", included, least=1))


def ratio(sums: ArrayLike, channel: Channel | None = None) -> Floats:
    """s_j / sum(s) along the last axis; give the channel to have the wrong mechanisms refused.

    With nobody sampled there is no estimate: that is an AnswerError, because any number would be an invention.
    """
    if channel is not None:
        require_sampling(channel)
    values = numbers("sums", sums)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)) or values.min() < 0:
        raise AnswerError("sums must be sampled counts, not negative: the ratio estimator is for sampling mechanisms")
    total = values.sum(axis=-1, keepdims=True)
    if np.any(total == 0):
        raise AnswerError(
            "nobody was sampled, so there is nothing to take a ratio of: use the Horvitz-Thompson estimate"
        )
    return np.asarray(values / total)


def ratio_variance(psi: ArrayLike, n: int, p: float) -> Floats:
    """Variance of the ratio given that somebody was sampled: psi (1 - psi) n / (n - 1) (E[1/S | S > 0] - 1/n)."""
    truth, users = numbers("frequencies", psi), integer("n", n, least=1)
    if not np.all((truth >= 0) & (truth <= 1)):
        raise AnswerError("frequencies must lie between 0 and 1")
    if users == 1:
        return np.zeros_like(truth)  # who is sampled is everybody
    inverse = mean_inverse(users, probability("p", p))
    return np.asarray(truth * (1 - truth) * users / (users - 1) * max(inverse - 1 / users, 0.0))


def mean_inverse(n: int, p: float) -> float:
    """E[1/S | S > 0] for S ~ Bin(n, p), summed exactly."""
    law = binomial_rows(np.array([n]), np.array([p]))
    size, weight = law.start[0] + np.arange(law.pmf.shape[1]), law.pmf[0]
    some = size > 0
    return float((weight[some] / size[some]).sum() / weight[some].sum())


def expected_mse(
    channel: Channel, psi: ArrayLike, n: int, *, estimator: str = "ht", against: str = "users"
) -> SquaredError:
    """Theory: squared error of the estimate of `psi` from n users, both ways of counting.

    `against="users"`: what these users hold, privacy noise alone, as the paper. `against="population"`: the users are
    drawn from a population with frequencies psi; adds psi (1 - psi) / n.
    """
    truth, users = frequencies(psi), integer("n", n, least=1)
    if estimator not in ESTIMATORS or against not in COVERS:
        raise ParameterError(f"estimator must be one of {ESTIMATORS} and against one of {COVERS}")
    if estimator == "ratio":
        require_sampling(channel)
        if against == "population":
            variance = truth * (1 - truth) * mean_inverse(users, channel.hit)
        else:
            variance = ratio_variance(truth, users, channel.hit)
    else:
        variance = channel.variance(truth, users) + (against == "population") * truth * (1 - truth) / users
    return SquaredError(float(variance.mean()), float(variance.sum()))


def mse_summed(estimates: ArrayLike, truth: ArrayLike) -> float:
    """Measured: squared error summed over the items (last axis), averaged over runs."""
    made, held = numbers("estimates", estimates), numbers("truth", truth)
    if made.ndim == 0 or made.size == 0 or held.shape not in (made.shape, made.shape[-1:]):
        raise AnswerError("estimates must be rows of one number per item, and truth one such row or as many")
    error = made - held
    return float((error**2).sum(axis=-1).mean())


def mse_per_item(estimates: ArrayLike, truth: ArrayLike) -> float:
    """Measured: squared error averaged over the items (last axis) and over runs."""
    return mse_summed(estimates, truth) / int(np.shape(estimates)[-1])

"""What a survey promises its participants, in the words of the page on which they answer.

The page computes the same in JavaScript (`web/page/certainty.js`); a
test compares both. Owners read it before they invite anybody, and one rule decides for the page,
the dashboard and the command line when a promise is weak.
"""

import math

from faircount.accounting.guarantee import attacker_certainty
from faircount.accounting.levels import Levels

WEAK_CERTAINTY = 95.0
"""Percent: beyond this certainty of an attacker hardly anything is left of privacy."""

WEAK_DELTA = 0.001
"""Above this delta chance alone exposes people: a mechanism that publishes all answers once in a
thousand times has such a delta."""

NEGLIGIBLE_DELTA = 1e-12
"""Probabilities up to this are not mentioned to participants."""


def is_weak_epsilon(epsilon: float) -> bool:
    """Whether so large an epsilon hardly protects anybody."""
    return attacker_certainty(epsilon) > WEAK_CERTAINTY


def is_weak_delta(delta: float) -> bool:
    """Whether so large a delta leaves it to chance whether anybody is protected."""
    return delta > WEAK_DELTA


def promise_to_participants(
    epsilon: float, delta: float, single: float | None = None, levels: Levels | None = None
) -> str:
    """The sentences about privacy that participants read before they answer.

    single: epsilon of a single answer, where there are several questions
    levels: hidden privacy levels that they choose from
    """
    if levels is not None:
        return _promise_of_levels(levels, single)
    certainty = attacker_certainty(epsilon)
    first = (
        "Imagine somebody who thinks that two answers are equally likely to be yours. Even after "
        f"seeing the result, this person can be at most {certainty:g} % sure which one you chose."
    )
    sentences = [first]
    if single is not None:
        sentences = [_promise_of_several(certainty, attacker_certainty(single))]
    if is_weak_epsilon(epsilon) or is_weak_delta(delta):
        known = "your answer" if single is None else "your answers"
        sentences.append(f"That is hardly any protection. Answer only if anybody may know {known}.")
    if delta > NEGLIGIBLE_DELTA:
        sentences.append(
            f"With a probability of at most 1 in {_one_in(delta)}, more than that could be learned."
        )
    return " ".join(sentences)


def _promise_of_several(certainty: float, single: float) -> str:
    """The promise of all answers together, and the number for a single one."""
    first = (
        "Imagine somebody who thinks that two ways to answer all these questions are equally "
        "likely to be yours. Even after seeing the results, this person can be at most "
        f"{certainty:g} % sure which one it is. This covers all your answers together."
    )
    # All questions in one group: a single answer may lose as much as all of them together.
    if single >= certainty:
        return f"{first} About a single answer of yours, this person cannot be any surer."
    return f"{first} About a single answer of yours, this person can be at most {single:g} % sure."


def _promise_of_levels(levels: Levels, single: float | None) -> str:
    """What participants read where they choose how well their answer is hidden."""
    first = (
        "Imagine somebody who thinks that two answers are equally likely to be yours. How sure "
        "this person can be after seeing the result depends on the level that you choose:"
    )
    sentences = [first]
    for number, name in enumerate(levels.names):
        answer, both = (attacker_certainty(loss) for loss in levels.stated_losses(number))
        sentences.append(
            f"{name}: at most {answer:g} % sure which one you chose, and at most {both:g} % sure "
            "of your answer and your level together."
        )
    sentences.append("What others choose changes nothing about it.")
    if single is not None:
        sentences.append(
            f"About a single answer of yours, this person can be at most "
            f"{attacker_certainty(single):g} % sure, at any level."
        )
    return " ".join(sentences)


def _one_in(delta: float) -> str:
    """x in "1 in x", with three digits, rounded so that the probability is not understated."""
    whole = math.floor(1 / delta)
    unit = 10 ** max(0, len(str(whole)) - 3)
    return f"{whole // unit * unit:,}"

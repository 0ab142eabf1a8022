"""Every mechanism at one exact budget: what the registry knows, asked by the planner's question."""

from collections.abc import Callable

from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.calibration import Calibrated
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.question import Question

Family = Callable[[Question], Calibrated]
"""Turns a question into a mechanism that is ready to run, or refuses and says why."""


def families() -> dict[str, Family]:
    """By name, in the order in which equal errors are preferred."""
    return {name: _family(kind) for name, kind in frequency_mechanisms().items()}


def _family(kind: type[FrequencyMechanism]) -> Family:
    return lambda question: kind.calibrated(question.requirements)

"""Whole surveys for an audit: every message is sent, and everything that is drawn is written down.

The published result comes from the protocol itself. What an adversary knows besides, its own noise
or the sets that it was sent, is what the methods of the mechanism returned while the survey ran.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.questions import Sheet
from faircount.mechanisms.proven import Placement, Tally
from faircount.mechanisms.secret_shared import FieldMechanism, as_field_mechanism
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import WorstPair
from faircount.protocol import topology_named
from faircount.protocol.simulator import play

RunSurveys = Callable[[list[WorstPair], NDArray[Any], int, Entropy], list[Ints]]


def make_survey_runner(name: str, epsilon: float) -> RunSurveys:
    """A function that runs whole surveys and returns every adversary's view of them."""
    topology = topology_named(name)

    def run_surveys(
        pairs: list[WorstPair], answers: NDArray[Any], copies: int, entropy: Entropy
    ) -> list[Ints]:
        mechanism = as_field_mechanism(pairs[0].mechanism)
        published = mechanism.promise[0]
        if published is None:
            published = epsilon
        views: list[list[Ints]] = [[] for _ in pairs]
        # One mechanism for all surveys: what follows from its parameters is computed once. Another
        # one would be equal to none before it, since its class is another.
        log = SurveyLog()
        recording = record_draws(mechanism, log)
        for _ in range(copies):
            log.clear()
            result = play(answers, recording, topology, entropy=entropy, epsilon=published)
            sums = mechanism.audited_sums(result.cells)
            for seen, pair in zip(views, pairs, strict=True):
                seen.append(mechanism.survey_view(sums, log, answers, pair.adversary))
        return [np.array(seen) for seen in views]

    return run_surveys


def record_draws(mechanism: FieldMechanism, log: SurveyLog) -> FieldMechanism:
    """The same mechanism, which also writes down what its methods draw for users and servers."""
    kind: Any = type(mechanism)

    class Recording(kind):  # type: ignore[misc]
        """The audited mechanism; every method returns what it returns there."""

        def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> Any:
            response = super().respond_as(user, sheet, entropy)
            log.responses.append(response)
            return response

        def add_up(self, tally: Tally, placement: Placement, *, constants: bool) -> Residues:
            # Only the coordinator adds the constants, and a server draws its noise right after it
            # has added up its shares.
            log.coins[constants] = tally.coins
            log.placement = placement
            log.adding = constants
            total: Residues = super().add_up(tally, placement, constants=constants)
            return total

        def noise_from(self, streams: Sequence[Entropy]) -> Ints:
            noise: Ints = super().noise_from(streams)
            log.noise[log.adding] = noise
            return noise

    given = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    recording: FieldMechanism = Recording(**given)
    return recording

"""Joint noise for one question beside independent noise: never a larger deviation, same budget."""

import math

import pytest

from faircount.accounting.composition import compose
from faircount.core.errors import ParameterError
from faircount.core.questions import OneOf, Questionnaire
from faircount.mechanisms.calibration import Requirements
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_joint import ServerJoint
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets

USERS = 1000


@pytest.mark.parametrize("items", [2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize(
    ("epsilon", "releases"), [(0.1, 1), (1.0, 1), (10.0, 1), (1.0, 10), (10.0, 100)]
)
def test_its_deviation_is_never_larger_than_that_of_independent_noise(
    items: int, epsilon: float, releases: int
) -> None:
    wanted = Requirements(USERS, items, epsilon, 1e-6, releases=releases)
    votes = ServerJoint.calibrate(wanted).mechanism
    laplace = ServerLaplace.calibrate(wanted).mechanism
    own = votes.channel(USERS).noise
    other = laplace.channel(USERS).fitted_to_total(items).noise
    assert own is not None
    assert other is not None
    assert own.variance < other.variance


@pytest.mark.parametrize(("items", "releases"), [(2, 5), (3, 5), (5, 40), (30, 40)])
def test_several_releases_together_keep_the_budget(items: int, releases: int) -> None:
    wanted = Requirements(USERS, items, 2.0, 1e-6, releases=releases)
    found = ServerJoint.calibrate(wanted)
    losses = found.mechanism.losses(found.mechanism.default_adversary)
    assert losses is not None
    # By another way: privacy loss distributions, which are rounded up.
    together = compose([losses.pairs] * releases, epsilon=2.0)
    assert together + releases * losses.table_delta <= 1.01e-6
    assert together > 0.9e-6
    # As if something were lost in every outcome, each release would get less.
    least = Requirements(USERS, 2, 2.0, 1e-6, releases=releases)
    smaller = ServerJoint.calibrate(least).mechanism.epsilon
    assert found.mechanism.epsilon >= smaller
    assert (found.mechanism.epsilon > smaller) == (items > 2)


def test_noise_that_cannot_be_drawn_is_refused_before_anybody_answers() -> None:
    """The radius lies near N / epsilon, and tables of N columns and so many rows have a limit."""
    with pytest.raises(ParameterError, match="100 answers needs a larger epsilon"):
        ServerJoint(items=100, users=USERS, epsilon=0.02)
    form = Questionnaire((OneOf(text="q", items=tuple(map(str, range(100)))),))
    with pytest.raises(ParameterError, match="100 answers needs a larger epsilon"):
        ServerSheets(questionnaire=form, groups=split_epsilon(0.02, [[0]]), epsilon=0.02)
    assert math.isclose(ServerJoint(items=100, users=USERS, epsilon=0.03).epsilon, 0.03)

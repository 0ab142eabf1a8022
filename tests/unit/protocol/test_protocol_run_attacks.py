"""What a run is given from outside: refused in words that repeat no answer."""

import numpy as np
import pytest

import faircount as fc
from faircount.core.errors import AnswerError, ParameterError


@pytest.mark.parametrize("answers", [["secret", "secret"], [[1, 2], [3]], [{}], [10**400], [1j]], ids=range(5))
def test_answers_to_a_mean_that_are_no_numbers(answers: object) -> None:
    with pytest.raises(AnswerError) as caught:
        fc.run(answers, fc.Duchi(epsilon=1.0))  # type: ignore[call-overload] # that is the point
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("source", [7, "seed", np.random.default_rng(1)], ids=["number", "word", "generator"])
def test_a_source_of_randomness_is_an_entropy(source: object) -> None:
    with pytest.raises(ParameterError, match="entropy"):
        fc.run([0, 1, 2], fc.GRR(items=3, epsilon=1.0), entropy=source)  # type: ignore[call-overload] # that is the point

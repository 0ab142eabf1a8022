"""Invalid reports among honest ones, while messages are lost and servers crash or are restored."""

import numpy as np
import pytest

from faircount.demo.invalid_reports import INVALID
from faircount.protocol import SERVERS
from faircount.protocol.topologies.two_servers import validity
from simulation.faults import Kind, Op, Outcome, play

ROUND, DEADLINE, CONVERSE = Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CONVERSE)


EVERY_LIE = tuple(Op(Kind.INVALID, user, user) for user in range(1, 4))
"""Three of six users send invalid reports, each of another kind."""

PROVEN = {
    "three invalid reports": (*EVERY_LIE, ROUND, DEADLINE, CONVERSE),
    "The coordinator is restored to before its claim": (*EVERY_LIE, ROUND, DEADLINE, Op(Kind.RESTORE_S1, -2), CONVERSE),
    "The coordinator is restored to before the receipt": (
        *EVERY_LIE, ROUND, DEADLINE, Op(Kind.CARRY), Op(Kind.CARRY), Op(Kind.RESTORE_S1, -2), CONVERSE,
    ),
    "both crash at every message": (*EVERY_LIE, ROUND, DEADLINE, *(Op(Kind.CARRY, 0, 1 + i % 2) for i in range(6))),
}  # fmt: skip
"""Schedules of a survey whose reports are proven: the invalid ones are refused, everybody else is counted once."""


def everything_is_valid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        validity.Query,
        "accepts",
        lambda asked, first, second: np.ones(len(first), dtype=np.bool_),
    )


@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
def test_invalid_reports_are_refused_whatever_fails(
    name: str, real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(SERVERS, PROVEN[name], seed=0, real=real) == Outcome("published", ())
    everything_is_valid(monkeypatch)
    assert play(SERVERS, PROVEN[name], seed=0, real=real).problems  # the planted hole


@pytest.mark.parametrize("how", range(len(INVALID) - 1))
def test_every_kind_is_refused_among_honest_users(how: int) -> None:
    ops = (Op(Kind.INVALID, 2, how), ROUND, DEADLINE, CONVERSE)
    assert play(SERVERS, ops, users=4, seed=0) == Outcome("published", ())

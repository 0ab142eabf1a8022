"""Invalid reports among honest ones, while messages are lost and servers crash or are restored."""

import numpy as np
import pytest

from faircount.demo.invalid_reports import INVALID
from faircount.protocol import SERVERS
from faircount.protocol.topologies.two_servers import proofs
from simulation.faults import Kind, Op, Outcome, run_schedule

ROUND = Op(Kind.ROUND)
DEADLINE = Op(Kind.DEADLINE)
EXCHANGE = Op(Kind.EXCHANGE)

INVALID_REPORTS = tuple(Op(Kind.INVALID, user, user) for user in range(1, 4))
"""Three of six participants send invalid reports, each of another kind."""

RESPONDED = (*INVALID_REPORTS, ROUND, DEADLINE)

SCHEDULES = {
    "three invalid reports": (*RESPONDED, EXCHANGE),
    "The coordinator is restored to before its manifest": (
        *RESPONDED,
        Op(Kind.RESTORE_S1, -2),
        EXCHANGE,
    ),
    "The coordinator is restored to before the reservation": (
        *RESPONDED,
        Op(Kind.CARRY),
        Op(Kind.CARRY),
        Op(Kind.RESTORE_S1, -2),
        EXCHANGE,
    ),
    "both crash at every message": (
        *RESPONDED,
        *(Op(Kind.CARRY, 0, 1 + i % 2) for i in range(6)),
    ),
}
"""Surveys with proofs: the invalid reports are refused, and everybody else is counted once."""


def accept_every_proof(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        proofs.Query,
        "accepts",
        lambda query, first, second: np.ones(len(first), dtype=np.bool_),
    )


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("real", [False, True], ids=["ideal", "real"])
def test_invalid_reports_are_refused_whatever_fails(
    name: str, real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_schedule(SERVERS, SCHEDULES[name], seed=0, real=real) == Outcome("published", ())
    accept_every_proof(monkeypatch)
    # Without the check the invalid reports are counted, which the monitor must notice.
    assert run_schedule(SERVERS, SCHEDULES[name], seed=0, real=real).problems


@pytest.mark.parametrize("how", range(len(INVALID) - 1))
def test_every_kind_is_refused_among_honest_users(how: int) -> None:
    ops = (Op(Kind.INVALID, 2, how), ROUND, DEADLINE, EXCHANGE)
    assert run_schedule(SERVERS, ops, users=4, seed=0) == Outcome("published", ())

"""The privacy budget of a survey's population, checked before anybody is invited.

The aggregator refuses a survey beyond the budget too, but only when the answers are there.
"""

from typing import Any

from faircount.core.errors import RefusedError, RemoteError
from faircount.owner.remote import BothServers
from faircount.protocol.survey.budget import Status, fits_budget

NO_POPULATION = "no_population"


def existing_budget(servers: BothServers, population: str) -> tuple[float, float] | None:
    """Epsilon and delta of a population that the aggregator knows; None for a new one."""
    ledger = _ledger_of(servers, population)
    return None if ledger is None else (ledger["epsilon"], ledger["delta"])


def check_budget(
    servers: BothServers, population: str, total: tuple[float, float], cost: tuple[float, float]
) -> None:
    """Refuse a survey that the budget of its population does not allow.

    population: its name; empty for a survey with a budget of its own
    total: the budget that the owner wants it to have
    cost: epsilon and delta of the survey
    """
    ledger = _ledger_of(servers, population)
    if ledger is None:
        if not fits_budget([cost], *total, adaptive=True):
            raise RefusedError(
                f"the budget of epsilon {total[0]:.4g} and delta {total[1]:.4g} is too small for "
                f"a survey of epsilon {cost[0]:.4g} and delta {cost[1]:.4g}: give a larger one"
            ).with_code("budget_too_small", total=total[0], epsilon=cost[0])
        return
    known = (ledger["epsilon"], ledger["delta"])
    costs = [*_spent_costs(ledger), cost]
    if ledger["closed"] or not fits_budget(costs, *known, ledger["adaptive"]):
        spent = ledger["spent"]["epsilon"]
        raise RefusedError(
            f"the budget of these people does not allow another survey of epsilon {cost[0]:.4g}: "
            f"epsilon {spent:.4g} of {known[0]:.4g} is spent. To ask the same people several "
            "times, create the first survey with --population NAME and a larger --budget"
        ).with_code("budget_spent", spent=spent, total=known[0], epsilon=cost[0])
    if known != tuple(total):
        raise RefusedError(
            f"{population} has a budget of epsilon {known[0]:.4g} and delta {known[1]:.4g} at the "
            "aggregator, which is never changed: leave --budget out, or name another population"
        ).with_code("budget_differs", total=known[0])


def _ledger_of(servers: BothServers, population: str) -> dict[str, Any] | None:
    """The aggregator's ledger; None for a population that it does not know."""
    # Without a name every survey is a population of its own.
    if not population:
        return None
    try:
        return servers.budget(population)
    except RemoteError as problem:
        if problem.values.get("cause") == NO_POPULATION:
            return None
        # Only aggregators have budgets, and the owner may have interchanged the servers.
        servers.check_roles()
        raise


def _spent_costs(ledger: dict[str, Any]) -> list[tuple[float, float]]:
    """(epsilon, delta) of every charge of a population that counts."""
    counting = [charge for charge in ledger["surveys"] if charge["status"] != Status.CANCELLED]
    return [(charge["epsilon"], charge["delta"]) for charge in counting]

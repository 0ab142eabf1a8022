"""Exact accounting compared with dp_accounting: time, and whether the values agree.

dp_accounting gets the same pair of distributions as two probability mass functions, with its
default grid of 1e-4. It rounds losses up, so its delta must be equal to ours or a little larger.
"""

from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld

from faircount.accounting import composition, exact
from faircount.accounting.divergence import epsilon_for
from table import Row, best_of

P, DELTA = 0.5, 1e-6
OTHER = "dp_accounting"


def theirs(floor: int, p: float, times: int = 1) -> Any:
    """Replace-one sampling in dp_accounting: one count up, another one down, `times` releases."""
    pair = composition.sampling_pair(floor, p)
    up, down = dict(enumerate(pair.log_p)), dict(enumerate(pair.log_q))
    parts = [
        pld.from_two_probability_mass_functions(q, p, symmetric=False)
        for p, q in ((up, down), (down, up))
    ]
    once = parts[0].compose(parts[1])
    return once if times == 1 else once.self_compose(times)


def rows() -> list[Row]:
    """Deltas, epsilons and calibrations."""
    return [
        *(delta_row(floor, eps) for floor, eps in ((100, 0.5), (1000, 0.15), (10**6, 0.005))),
        *(epsilon_row(floor) for floor in (100, 1000)),
        probability_row(1000, 0.15),
        alone(
            "p for (0.005, 1e-6), k = 1,000,000",
            lambda: exact.sampling_probability(10**6, 0.005, DELTA),
        ),
        alone("coins for (1, 1e-5)", lambda: exact.decoys_needed.__wrapped__(1.0, 1e-5)),
        composed_row(1000, 10, 0.5),
        alone(
            "coins for (1, 1e-6) over 52 releases",
            # A replaced answer moves two counts in each release.
            lambda: composition.coins_for_moves.__wrapped__(1.0, DELTA, 2 * 52),
        ),
        alone("p for (1, 1e-6) over 12 releases, k = 150", per_release),
    ]


def per_release() -> float:
    """Without the answers that the library remembers."""
    return composition.sampling_probability_for_releases.__wrapped__(150, 1.0, DELTA, 12)


def alone(what: str, ours: Any) -> Row:
    """A calibration that the other library does not offer."""
    return Row(what, best_of(ours), "-", None, f"{ours():.6g}")


def agreement(ours: float, other: float) -> str:
    """Both values; theirs may exceed ours by the rounding of its grid, never fall below."""
    assert ours * (1 - 1e-6) <= other <= ours * 1.5, (ours, other)
    return f"{ours:.6g} exactly; {OTHER} {other:.6g} (+{other / ours - 1:.2%})"


def delta_row(floor: int, epsilon: float) -> Row:
    def ours() -> float:
        return exact.sampling_delta(floor, P, epsilon)

    def other() -> float:
        return float(theirs(floor, P).get_delta_for_epsilon(epsilon))

    what = f"delta at epsilon = {epsilon:g}, k = {floor:,}, p = {P:g}"
    return Row(what, best_of(ours), OTHER, best_of(other), agreement(ours(), other()))


def epsilon_row(floor: int) -> Row:
    def ours() -> float:
        return epsilon_for(lambda epsilon: exact.sampling_delta(floor, P, epsilon), DELTA)

    def other() -> float:
        return float(theirs(floor, P).get_epsilon_for_delta(DELTA))

    what = f"epsilon at delta = {DELTA:g}, k = {floor:,}, p = {P:g}"
    return Row(what, best_of(ours), OTHER, best_of(other), agreement(ours(), other()))


def probability_row(floor: int, epsilon: float) -> Row:
    """The largest p: theirs by bisection to three digits, ours to twelve."""

    def ours() -> float:
        return exact.sampling_probability(floor, epsilon, DELTA)

    def other() -> float:
        low, high = 0.0, 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            fits = theirs(floor, middle).get_delta_for_epsilon(epsilon) <= DELTA
            low, high = (middle, high) if fits else (low, middle)
        return low

    what = f"p for ({epsilon:g}, {DELTA:g}), k = {floor:,}"
    return Row(
        what,
        best_of(ours),
        f"{OTHER}, bisection",
        best_of(other),
        f"{ours():.6g}; bisection {other():.3g}",
    )


def composed_row(floor: int, times: int, epsilon: float) -> Row:
    pair = composition.sampling_pair(floor, P)

    def ours() -> float:
        return composition.compose([[pair, pair.swap()]] * times, epsilon=epsilon)

    def other() -> float:
        return float(theirs(floor, P, times).get_delta_for_epsilon(epsilon))

    what = f"{times} releases, delta at epsilon = {epsilon:g}, k = {floor:,}, p = {P:g}"
    value, rounded = ours(), other()
    assert value <= rounded
    note = (
        f"{value:.6g}; {OTHER} {rounded:.6g} (+{rounded / value - 1:.1%}, it rounds every loss up)"
    )
    return Row(what, best_of(ours), OTHER, best_of(other), note)


if __name__ == "__main__":
    for row in rows():
        print(row)

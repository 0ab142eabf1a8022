"""Exponentials in whole numbers: every program gets the same digits from the same epsilon."""

from faircount.core.questions.questionnaire import EPSILON_BITS


def exp_enclosure(scaled: int, bits: int) -> int:
    """Return floor(2^bits exp(-scaled / 2^128)) for a positive argument, exactly.

    The series of exp is summed at an argument below 2^-9 and squared back, in fixed point with all
    roundings downwards. If the error bound leaves two possible results, there are more digits.
    """
    guard = 64
    while True:
        low, high = _exp_bounds(scaled, bits + guard)
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


def _exp_bounds(scaled: int, bits: int) -> tuple[int, int]:
    """Return integers around 2^bits exp(-scaled / 2^128)."""
    halvings = max(0, scaled.bit_length() - EPSILON_BITS + 9)
    work = bits + 2 * halvings + 64
    one = 1 << work
    argument = (scaled << work) >> (EPSILON_BITS + halvings)
    # exp(x) for x > 0, whose terms are all positive: every floor makes the sum smaller.
    total = one
    term = one
    count = 0
    while term:
        count += 1
        term = (term * argument >> work) // count
        total += term
    # The argument is too small by less than 1, every term by less than 3, and the terms that are
    # left out add up to less than 1.
    above = total + 3 * count + 4
    # exp(-x) = 1 / exp(x), then squared as often as the argument was halved.
    low = (one << work) // above
    high = -((-one << work) // total)
    for _ in range(halvings):
        low = low * low >> work
        high = -(-(high * high) >> work)
    shift = work - bits
    return low >> shift, -(-high >> shift)

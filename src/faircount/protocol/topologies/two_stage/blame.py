"""Who leaves a two-stage survey when shares are said not to open: rules under which one liar can stop nothing.

At most phi users lie. So who names more reporters than that lies, and a reporter of whom more helpers than that
complain has lied. Else nobody can tell, and the helper is replaced: its successor gets the same share, sealed anew. A
reporter of whom complaints come in two attempts leaves. One liar can cost three attempts: one as a helper, who is
replaced, and two as a reporter, who leaves.
"""

from collections import Counter
from collections.abc import Sequence

Said = tuple[int, int, Sequence[int]]
"""A complaint: the attempt, the helper, the numbers of the reporters whose shares do not open."""


def blamed(said: Sequence[Said], attempt: int, phi: int) -> tuple[set[int], set[int]]:
    """Helpers who lose their slots, and reporters, by number, who leave, after all complaints up to an attempt."""
    most = max(1, phi)
    believed = [each for each in said if len(each[2]) <= most]
    times = Counter(number for _, number in {(when, number) for when, _, numbers in believed for number in numbers})
    now = [(helper, numbers) for when, helper, numbers in believed if when == attempt]
    votes = Counter(number for _, numbers in now for number in numbers)
    leave = {number for number, count in votes.items() if count > most or times[number] > 1}
    kept = {helper for helper, numbers in now if set(numbers) <= leave}
    return {helper for when, helper, _ in said if when == attempt} - kept, leave

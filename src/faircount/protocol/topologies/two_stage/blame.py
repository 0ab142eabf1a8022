"""Who leaves a two-stage survey when shares cannot be decrypted.

Either the reporter or the helper who complains is malicious, and nobody can see which. The rules
below keep a few malicious clients from stopping a survey by complaints or by wrong shares.

At most phi clients are malicious. So a helper that names more reporters than that is malicious, and
a reporter about whom more helpers than that complain is. Otherwise nobody can tell, and the helper
is replaced: its successor gets the same share, encrypted anew. A reporter about whom complaints
come in two attempts leaves. One malicious client can therefore cost three attempts: one as a
helper, who is replaced, and two as a reporter, who leaves.
"""

from collections import Counter
from collections.abc import Sequence

ComplaintRecord = tuple[int, int, Sequence[int]]
"""A complaint: the attempt, the helper, and the numbers of the reporters that it names."""


def assign_blame(
    complaints: Sequence[ComplaintRecord], attempt: int, phi: int
) -> tuple[set[int], set[int]]:
    """Decide who leaves, from all complaints up to an attempt.

    Returns:
        helpers who lose their slots, and reporters, by number, who leave
    """
    # Even where nobody is assumed malicious, a helper may name one reporter.
    most = max(1, phi)
    # check: complaint-too-long - a dishonest helper names everybody and empties the set
    believed = [complaint for complaint in complaints if len(complaint[2]) <= most]
    # Several complaints of one attempt count once: only a second attempt proves something.
    named = set[tuple[int, int]]()
    for when, _, numbers in believed:
        named.update((when, number) for number in numbers)
    attempts_of = Counter(number for _, number in named)

    now = [(helper, numbers) for when, helper, numbers in believed if when == attempt]
    votes = Counter[int]()
    for _, numbers in now:
        votes.update(numbers)
    leave = {
        number
        for number, count in votes.items()
        if count > most
        # check: complaints-in-two-attempts - a dishonest reporter spoils every attempt
        or attempts_of[number] > 1
    }
    # A helper all of whose complaints were upheld keeps its slots.
    kept = {helper for helper, numbers in now if set(numbers) <= leave}
    # check: complaining-helper-replaced - a dishonest helper spoils every attempt
    return {helper for when, helper, _ in complaints if when == attempt} - kept, leave

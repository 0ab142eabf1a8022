"""The sentences of a plan that compare mechanisms.

A malicious client can send any vector. Where reports are not proven, one such client moves any
count by any amount; where they are proven, it has one vote like everybody else. A plan assumes
either honest or malicious clients, and says what the other assumption would cost.
"""

from collections.abc import Sequence

from faircount.planning.option import Option, percent

# Errors within this factor of the smallest count as equal: then the order of mechanisms decides.
TIE_FACTOR = 1.01

# Errors closer than this are compared in percent: "1 times below" would say nothing.
TWICE = 1.95

# An error that is so many times smaller than the next one is not compared more closely.
COMPARE_LIMIT = 1000


def best_of(options: Sequence[Option], proven: bool) -> Option | None:
    """The most accurate sound option among those with, or among those without, proven reports."""
    fit = [option for option in options if option.sound and option.proven == proven]
    return min(fit, key=error_of, default=None)


def error_of(option: Option) -> float:
    """The standard error of an option; 0 where it is not known."""
    return option.standard_error or 0.0


def describe_alternative(options: Sequence[Option], malicious_clients: bool) -> str:
    """What to run under the other assumption about clients, with its error and bytes."""
    head = "if clients may be malicious"
    reports = " with reports that are proven to be one vote"
    proven = ", whose reports are proven to be one vote,"
    hint = "; --malicious-clients (malicious_clients=True in Python) plans for it"
    # Under the other assumption proofs are a cost without use, so they are not mentioned.
    if malicious_clients:
        head = "if clients follow the protocol"
        reports = proven = hint = ""
    other = best_of(options, proven=not malicious_clients)
    if other is None:
        return f"{head}: nothing meets the budget{reports}"

    here = best_of(options, proven=malicious_clients)
    error = percent(error_of(other))
    if here is not None and error_of(here) and error_of(other):
        error += f" ({error_of(other) / error_of(here) - 1:+.0%})"
    sent = f" and takes {other.cost.bytes_sent:,} bytes from a user" if other.cost else ""
    return f"{head}: {other.name}{proven} has a standard error of {error}{sent}{hint}"


def compare_with_next(best: Option, options: Sequence[Option]) -> str:
    """How the error of the best option compares with the next one, as a phrase."""
    # A trusted server would see every answer, and proofs change what is assumed: neither is an
    # alternative under the same terms.
    others = [
        option
        for option in options
        if option is not best
        and option.mechanism is not None
        and not option.needs_trust
        and option.proven == best.proven
    ]
    if not others:
        return "the smallest"
    second = min(others, key=error_of)
    # An error of 0, at a very large epsilon, would divide by zero.
    factor = error_of(second) / (best.standard_error or 1.0)
    if factor < TIE_FACTOR:
        return f"as small as that of {second.name}"
    if factor < TWICE:
        return f"{1 - 1 / factor:.0%} below {second.name}, the next"
    times = f"{factor:.2g}" if factor < COMPARE_LIMIT else f"more than {COMPARE_LIMIT:,}"
    return f"{times} times below {second.name}, the next"


def describe_servers(best: Option) -> str:
    """What changes if the best option runs with two servers, where something does."""
    if best.servers is None:
        return ""
    effect = "it does not run there"
    if best.servers.standard_error is not None:
        effect = f"its standard error is {percent(best.servers.standard_error)}"
    return f"; this is with topology {best.topology}, and in servers {effect}"

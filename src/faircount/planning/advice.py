"""The sentences of a plan that compare mechanisms.

A malicious client can send any vector. Where reports are not proven, one such client moves any
count by any amount; where they are proven, it has one vote like everybody else. A plan assumes
either honest or malicious clients, and says what the other assumption would cost.
"""

from collections.abc import Sequence

from faircount.mechanisms.registry import frequency_names
from faircount.planning.option import Option, format_percent

# Errors within this factor of the smallest count as equal: then the order of mechanisms decides.
TIE_FACTOR = 1.01

# An error that is more than so many times smaller than the second best is put in words, and not
# compared more closely than that. Closer ones are compared in percent.
FRACTIONS = {
    1000: "a thousandth of that",
    100: "a hundredth of that",
    10: "a tenth of that",
    4: "a quarter of that",
    3: "a third of that",
    2: "half that",
}


def suits(option: Option, malicious_clients: bool) -> bool:
    """Whether an option may be recommended under this assumption about the clients.

    Options with proven reports may be recommended under both assumptions.
    """
    # A trusted server would see every answer, and a mechanism without costs travels nowhere.
    runs = option.sound and option.is_carried and not option.needs_trust
    return runs and (option.proven or not malicious_clients)


def rank(options: Sequence[Option], malicious_clients: bool) -> tuple[Option, ...]:
    """Return the options that suit by error, then the other sound ones by error, then the rest."""
    known = frequency_names()
    in_order = sorted(options, key=lambda option: known.index(option.name))
    suitable = [option for option in in_order if suits(option, malicious_clients)]
    others = [option for option in in_order if option.sound and option not in suitable]
    unusable = [option for option in in_order if not option.sound]
    by_error = sorted(suitable, key=error_of)
    # Differences of a percent are not worth a more complicated mechanism: among equals the order
    # of the registry decides, from simple to complicated.
    for option in suitable:
        if error_of(option) <= TIE_FACTOR * error_of(by_error[0]):
            by_error.remove(option)
            by_error.insert(0, option)
            break
    return (*by_error, *sorted(others, key=error_of), *unusable)


def best_of(options: Sequence[Option], malicious_clients: bool) -> Option | None:
    """The option to recommend under this assumption about the clients."""
    first = next(iter(rank(options, malicious_clients)), None)
    return first if first is not None and suits(first, malicious_clients) else None


def error_of(option: Option) -> float:
    """The standard error of an option; 0 where it is not known."""
    return option.standard_error or 0.0


def describe_alternative(options: Sequence[Option], malicious_clients: bool) -> str:
    """What to run under the other assumption about clients, with its error and bytes."""
    heading = "if clients may be malicious"
    reports = " with reports that are proven to be one vote"
    proven = ", whose reports are proven to be one vote,"
    hint = "; --malicious-clients (malicious_clients=True in Python) plans for it"
    # Under the other assumption proofs are a cost without use, so they are not mentioned.
    if malicious_clients:
        heading = "if clients follow the protocol"
        reports = proven = hint = ""
    here = best_of(options, malicious_clients)
    other = best_of(options, not malicious_clients)
    if other is None:
        return f"{heading}: nothing meets the budget{reports}"
    if other is here:
        return f"{heading}: {other.name}{proven} is the recommendation, too"

    error = format_percent(error_of(other))
    if here is not None and error_of(here) and error_of(other):
        error += f" ({error_of(other) / error_of(here) - 1:+.0%})"
    sent = f", and each user sends {other.cost.bytes_sent:,} bytes" if other.cost else ""
    of = "" if error.startswith("below") else "of "
    return f"{heading}: {other.name}{proven} has a standard error {of}{error}{sent}{hint}"


def compare_with_next(options: Sequence[Option], malicious_clients: bool) -> str:
    """How the error of the first option compares with the second best that suits, as a phrase."""
    best, *others = (option for option in options if suits(option, malicious_clients))
    if not others:
        return "the smallest"
    second = min(others, key=error_of)
    # An error of 0, at a very large epsilon, would divide by zero.
    factor = error_of(second) / (best.standard_error or 1.0)
    if factor < TIE_FACTOR:
        return f"as small as that of {second.name}"
    following = f"{second.name}, {_name_terms(second, options, malicious_clients)}"
    for times, fraction in FRACTIONS.items():
        if factor > times:
            return f"less than {fraction} of {following}"
    return f"{1 - 1 / factor:.0%} below that of {following}"


def _name_terms(second: Option, options: Sequence[Option], malicious_clients: bool) -> str:
    """ "the second best", with its terms where the table has a smaller error on other terms."""
    smaller = [
        option
        for option in options
        if option.sound
        and not suits(option, malicious_clients)
        and error_of(option) <= error_of(second)
    ]
    if not smaller:
        return "the second best"
    if malicious_clients:
        return "the second best with proven reports"
    return "the second best that no server has to be trusted for"


def describe_servers(best: Option) -> str:
    """What changes if the best option runs with two servers, where something does."""
    if best.servers is None:
        return ""
    effect = "it does not run there"
    if best.servers.standard_error is not None:
        effect = f"its standard error is {format_percent(best.servers.standard_error)}"
    return f"; this is with topology {best.topology}, and in servers {effect}"

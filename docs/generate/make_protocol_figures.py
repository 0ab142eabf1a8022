"""Writes docs/explanation/protocol-figures.md: every number in it is computed here, none is pasted.
`--check` fails if it is out of date; it plays the large surveys of the table of costs, and most of
the surveys with losses, only with `--whole`, as `make coverage` does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from completion_runs import completes, played
from page import Line, is_partial_check, write

from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.planning.completion import completion
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, Topology
from faircount.protocol.survey.topology import ATTEMPTS
from faircount.protocol.topologies.explicit.messages import PeerSum, ShareBundle, SumRequest
from faircount.protocol.topologies.masked.graph import plan_graph
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.topologies.two_stage.messages import SlotBundle, SlotSumRequest
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.messages import Published

PAGE = "explanation/protocol-figures.md"
ITEMS, ALPHA = 30, 0.4
SIZES, LOSS, SHARE, RUNS, PLAYED = (100, 1000, 5000), 0.05, 0.7, 2000, 10
PLAYED_AGAIN = 2


def simulated() -> str:
    lines = ["| users invited | servers | masked | explicit |", "|---|---|---|---|"]
    for users in SIZES:
        cells = []
        for topology in (SERVERS, MASKED, EXPLICIT):
            rng = np.random.default_rng(users)
            cells.append(
                sum(
                    completes(topology, users, round(SHARE * users), LOSS, rng) for _ in range(RUNS)
                )
            )
        lines.append(f"| {users} | " + " | ".join(f"{done} of {RUNS}" for done in cells) + " |")
    return "\n".join(lines)


def explicit() -> str:
    losses = (0.005, 0.01, 0.02, 0.05, 0.1)
    lines = [
        "| users invited | " + " | ".join(f"{loss:.1%}" for loss in losses) + " |",
        "|---" * (len(losses) + 1) + "|",
    ]
    for users in (5, 10, 20, 50, 100, 200, 500):
        chances = [
            completion(EXPLICIT, users, max(2, round(SHARE * users)), loss) for loss in losses
        ]
        lines.append(f"| {users} | " + " | ".join(f"{chance:.1%}" for chance in chances) + " |")
    return "\n".join(lines)


def for_real() -> str:
    parts = []
    for topology in (SERVERS, MASKED):
        # Tests play four others to the end, and compare 25 small ones with the model.
        seeds = range(PLAYED_AGAIN if is_partial_check() else PLAYED)
        ends = [played(topology, 100, 70, LOSS, seed) for seed in seeds]
        failed = sum(not isinstance(end, Published) for end in ends)
        parts.append(f"{topology} {PLAYED - failed} of {PLAYED}")
    return ", ".join(parts)


def words() -> str:
    ends = (played(EXPLICIT, 40, 28, LOSS, seed) for seed in range(100))
    return next(end for end in ends if isinstance(end, str))


def elements(message: Message, items: int) -> int:
    """Field elements that a message of a user, or to a user, carries for other users or from them."""
    if isinstance(message, (ShareBundle, SumRequest)):
        return items * len(message.encrypted_shares)
    if isinstance(message, SlotBundle):
        return len(message.encrypted_shares)
    return (
        sum(len(task.encrypted_shares) for task in message.tasks)
        if isinstance(message, SlotSumRequest)
        else 0
    )


def to_sum(message: Message, items: int) -> int:
    """Field elements for the sum: a masked vector, or the sum of every slot of which a user is
    called.
    """
    if isinstance(message, (PeerSum, MaskedSum)):
        return items
    return len(message.tasks) if isinstance(message, SlotSumRequest) else 0


def traffic(topology: Topology, mechanism: FrequencyMechanism, **terms: int) -> list[str]:
    """Averages over the users of a survey without losses: elements to users, from users, for the
    sum; bytes out and in.
    """
    seen = np.zeros(5)

    def meter(_: int, asked: Message, answer: Message) -> None:
        there, back = (elements(message, mechanism.N) for message in (asked, answer))
        summed = to_sum(asked, mechanism.N) + to_sum(answer, mechanism.N)
        seen[:] += there, back, summed, len(encode(asked)), len(encode(answer))

    users = mechanism.n
    played(topology, users, users, mechanism=mechanism, meter=meter, **terms)
    return [
        f"{average:,.0f}" if average == round(average) else f"{average:,.1f}"
        for average in (seen / users).tolist()
    ]


def in_servers(terms: dict[str, Any]) -> tuple[FrequencyMechanism, ...]:
    """What surveys of two servers run: without proofs on request, and the forms that are proven."""
    coins = {**terms, "delta": 1e-6}
    return Laplace(**terms), ServerLaplace(**terms), ServerCoins(**coins), PlacedCoins(**coins)


def cost(start: str, runs: Callable[[], list[str]], *, again: bool = True) -> str:
    """A line of the table of costs. Larger surveys of the same messages are played by `--whole`."""
    line = Line(PAGE, "What a client sends", start, lambda: f"{' | '.join(runs())} |", again)
    return line.text()


def costs() -> str:
    lines = [
        "| survey | elements to users | from users | for the sum | bytes sent | bytes received |",
        "|---|---|---|---|---|---|",
    ]
    for users in (20, 40, 80):
        play = partial(traffic, EXPLICIT, DPDS(items=ITEMS, users=users, p=0.5))
        start = f"| explicit, n = {users}: (n-1)N = {(users - 1) * ITEMS:,} | "
        lines.append(cost(start, play, again=users < 80))
    for mechanism in in_servers({"items": ITEMS, "users": 1000, "epsilon": 1.0, "dropouts": 200}):
        proven = "each report proven" if mechanism.proven else "without proofs"
        start = f"| servers, n = 1,000, {mechanism.name}: {proven} | "
        lines.append(cost(start, partial(traffic, SERVERS, mechanism)))
    for users in (100, 400, 800):
        k, t = plan_graph(users)
        play = partial(traffic, MASKED, DPDS(items=ITEMS, users=users, p=0.5), k=k, t=t)
        lines.append(cost(f"| masked, n = {users:,}, k = {k} | ", play, again=users == 100))
    for users in (40, 80):
        staged = TSSPrime(items=ITEMS, users=users, p=0.5, alpha=ALPHA, phi=1)
        formula = ALPHA * ITEMS * (ALPHA * users + 1 - ALPHA)
        head = f"two-stage, n = {users}: αN(αn+1-α) = {formula:,.1f}, αN = {ALPHA * ITEMS:g} for the sum"
        few = f"| the same, n = {users}, two helpers for each item: 2αN = {2 * ALPHA * ITEMS:g} | "
        lines.append(cost(f"| {head} | ", partial(traffic, TWO_STAGE, staged), again=users == 40))
        lines.append(cost(few, partial(traffic, TWO_STAGE, staged, k=2), again=users == 40))
    return "\n".join(lines)


def page() -> str:
    from scipy.stats import binom

    servers = binom.cdf(69, 100, 1 - LOSS)
    least = {n: completion(MASKED, n, round(SHARE * n), LOSS) for n in SIZES}
    bounds = ", ".join(
        f"{n:,} users fail with probability {1 - chance:.1g} at most" for n, chance in least.items()
    )
    return f"""# The protocol in figures

Written by `docs/generate/make_protocol_figures.py`: every number is computed by the code of this
repository.

## Which surveys complete

In every phase each client misses its visit with the same probability, independently of the others,
and may come to the next one. The minimum is {SHARE:.0%} of the users invited, and there are at most
{ATTEMPTS} attempts. With {LOSS:.0%} loss at every visit:

{simulated()}

These runs follow the coordinator's rules and the real graphs, without cryptography
(`docs/generate/completion_runs.py`); tests compare them with the whole protocol, run by run. The
whole protocol with 100 users: {for_real()}. If all of {RUNS} runs complete, the true share is above
{0.05 ** (1 / RUNS):.2%} with 95% confidence. `servers` is exact: with 100 users it fails with
probability {servers:.1g}. For `masked` there is a bound: {bounds}.

`servers` needs one visit. `masked` tolerates losses at every visit: a client that vanishes after
sharing its mask key is dropped, and its neighbours help to remove its masks. In `explicit`
everybody of the set must come back in the same attempt.

### When `explicit` gives up

The exact probability that a survey completes (`faircount.planning.completion.completion`), by the
loss at every visit; `faircount plan --loss` prints it for a given survey:

{explicit()}

When it gives up, it says why: "{words()}". Nothing is revealed: no encrypted share has left the
coordinator.

## What a client sends and receives

Counted message by message in surveys without losses, on average over the users, with {ITEMS} items.
Bytes are those of whole messages, with keys, credentials, MACs, lengths and the requests in
between. Field elements are counted where they travel between clients and where they become part of
the sum.

{costs()}

`explicit` grows with n, as in the paper's Algorithm 2; its Table I has 2nN + N for what is (n-1)N +
N. `masked` sends what its k neighbours need, and nothing that grows with n but one bit per user in
the set. `two-stage` follows Table I with αn + 1 - α in place of its p_χ n (see
[errata.md](errata.md)).
"""


if __name__ == "__main__":
    write(PAGE, page())

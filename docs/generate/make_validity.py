"""Writes docs/explanation/validity.md and its figure: every number is computed here. `--check`
fails if the page is out of date.
"""

import sys

import numpy as np
from page import DOCS, write
from scipy.stats import binom

import faircount as fc
from faircount.accounting.exact import decoys_delta, shift_delta
from faircount.mechanisms.base import FrequencyMechanism
from faircount.planning.costs import cost
from faircount.reproduction.report.figure_style import picture_style
from faircount.reproduction.report.figures import draw_poisoning
from faircount.reproduction.studies import poisoning
from faircount.reproduction.studies.registry import measure
from faircount.reproduction.studies.study import COUNT_LEVEL, Line, find_line

USERS, ITEMS, EPSILON, DELTA = 1000, 30, 1.0, 1e-6
SHOWN = (0, 10, 20, 50, 100, 200)
RUNS, SEED = 200, 1

PAGE = """# Validity: every report is one sheet of answers

**No independent security review yet.** Made by `python docs/generate/make_validity.py`; every
number on this page is computed.

Participants can change the program on their own device. In a survey that only adds up shares,
nobody can tell a vote from the vector (+50, -49): one such client among {users:,} moves two
frequencies by {points} points each, and no check notices. A mechanism whose reports are **proven**
counts exactly one vote per accepted report, or one sheet of answers to several questions, without
anybody seeing it.

## What is proven

A report is a row of bits: those of the answers and m coins (m may be 0). The bits of an answer
satisfy a public constraint: for one of N answers, exactly one of N bits is 1. The client splits the bits and a proof between the coordinator (S1) and the aggregator (S2). When all
shares are fixed, both servers make one query about all reports that nobody could predict: a point r
that follows from a value of each server, committed in the parameters. Each server computes verifier
shares from its own shares. Both together show that every bit is 0 or 1 and that all constraints
hold, and nothing else. [The protocol](protocol.md#proofs) has the kinds of questions and the
formulas.

| for whom | what holds | assumption |
|---|---|---|
| the owner and every reader | each accepted report added one answer to every question: one to exactly one item, at most c of N, or a number within its range; each dishonest participant can change a count by at most one, and any frequency by at most 1/n', before estimates are made consistent. This fails with probability below 2^-40 per survey | both servers follow the protocol, and no client learned both servers' values before the manifest |
| a participant | the proof reveals to neither server which item was chosen: what a server sees has the same distribution for every valid report | the two servers do not collude |

Nothing else changes for a client: one visit, one message. A refused report counts as missing.

## Who adds the noise

Such a proof cannot bound noise that clients add: "noise" would be another way to cheat. So there
are two kinds of mechanism.

**Both servers add noise** (`server-joint`, which adds the least; `server-laplace` for lists of more than 300 items; `server-coins` for many releases). Each server adds the
whole noise of one release to its own aggregate share, so that knowing its own noise does not help
it. Clients have no part in it: the guarantee stays the same however many participants collude,
cheat or vanish, and for a set of any size.

**Clients flip coins, which are then inverted and placed** (`PlacedCoins`). Once the accepted
reports are fixed, the servers' values (under another label than the query's) decide for every coin
whether it is inverted and which item it belongs to: D coins for every item, from D different
participants. So a coin is fair whatever its client chose, and an honest one stays secret because
only sums are revealed. D = D0 + t, where D0 coins are enough and t participants may collude: with D0
coins alone and 100 of 1,000 participants colluding, delta could be {short:.1e} instead of
{delta:g}. m = ceil(D N / n_min) coins per participant suffice when n_min remain; n_min must be at
least D.

For {users:,} users, {items} items, epsilon {epsilon:g} and, where one is needed, delta {delta:g}:

{noise}

`plan --for table` recommends the smallest error, which is `Laplace` here; `plan` recommends the best
proven mechanism. Rows of a table cannot cheat, so `run` uses the smallest error; participants can,
so **surveys in `servers` use proven reports unless their owner chooses
otherwise** (`faircount survey create`, `faircount dashboard`). The guarantee of each mechanism
names the server it relies on:

{guarantees}

## What malicious clients can change

{users:,} users; the malicious clients hold other items and push the rarest one. Without proofs each
claims up to {votes} votes; a local report is sent without randomization. Error of that item's
frequency in percentage points, root mean square over {runs} runs (theory in parentheses):

{moved}

![Error of the pushed item's frequency against the share of malicious clients: proven reports follow the bound](../images/poisoning.svg)

Proven reports follow the bound c/n. One report of GRR counts like {grr:.1f} votes here and one of
OUE like {oue:.1f}; a vector without a proof counts like any number of votes. The study is
`reproduction/studies/poisoning.py`.

## How it was attacked

Somebody who had not written it attacked it with programs; tests keep what they found.

| attack | outcome |
|---|---|
| thirteen kinds of reports that are not one vote (fourteen with coins), in whole surveys, also while servers crash | refused; everybody else counted exactly once |
| every possible row in a field of 5 elements | accepted at 6 of 20 points at most, as the bound says |
| the largest numbers in every product, modulo primes up to 2^32 | exact |
| another participant's report sent again, also under a key with the same secret | does not decrypt |
| a server that shifts its verifier shares, changes shares, or calls valid reports invalid | sees the same distribution whatever the answer was |
| a second query, a second sum or different noise after a crash or a restore | the same query, verifier shares, noise and sum |
| a committed value that was used before, in a server rolled back to an old database | **was accepted** if the server had also stopped before it destroyed the survey's keys; now the anchor refuses it |
| the aggregator sends a reservation before there is a manifest | **was kept** by the coordinator, which then knew both values while people answered; now it resynchronizes instead |
| reports with many items from many people | **took memory for all bits at once**; now for a few reports at a time |
| honest coins that are not fair, hidden by inverting them | the published sums look right, but whoever knows which coins were inverted sees a delta of {eight:.1e} with heads of 0.8 and {nine:.1e} with heads of 0.9, instead of {delta:g}; an audit looks at what was inverted |

## What is not covered

- **A dishonest server** can change the result or leave anybody out. It cannot read an answer: what
  it sees is covered by the guarantee above, which relies on the other server where servers add the
  noise. Nobody can tell whether a server has added its noise.
- **Too many refused reports** end a survey with its budget spent: more than the dropout allowance.
- **Both servers together** can read everything.
- **Invented people** count as people: whom to invite is the owner's decision.
- **A vote for the wrong item** is a vote.
- Whoever knows both servers' values before all reports are fixed can forge proofs and choose coins.
- `masked`, `explicit` and `two-stage` have no proofs, nor have `Laplace`, `Decoys`, `DPDG` and
  `DPDS` in `servers`, where they run on request. Results, plans and the advice for a survey say
  which assumption was made.
- Reports of more than 2,600 bits are refused: other proofs are shorter there.
- We know no published source for exactly this construction.
"""


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows))


def mechanisms() -> dict[str, FrequencyMechanism]:
    """At the same privacy."""
    common = {"items": ITEMS, "users": USERS, "epsilon": EPSILON}
    return {
        "Laplace, drawn by clients": fc.Laplace(**common),
        "ServerLaplace": fc.ServerLaplace(**common),
        "ServerCoins": fc.ServerCoins(**common, delta=DELTA),
        "PlacedCoins": fc.PlacedCoins(**common, delta=DELTA),
    }


def noise() -> str:
    """Error and bytes of each."""
    rows = []
    for name, made in mechanisms().items():
        deviation = USERS * float(made.variance(np.full(ITEMS, 1 / ITEMS))[0]) ** 0.5
        sent = cost(made)
        more = "at most its vote" if made.proven else "anything"
        needs = "insiders, dropouts" if made.condition(made.participants) is None else "one server"
        size = "-" if sent is None else f"{sent.bytes_sent:,}"
        rows.append([name, f"{deviation:.2f}", more, size, needs])
    heads = [
        "noise",
        "standard deviation of a count",
        "a malicious client adds",
        "bytes per report",
        "the guarantee depends on",
    ]
    return table(heads, rows)


def unfair_delta(heads: float) -> float:
    """The delta of an item's coins if all show heads so often and each is inverted or not.

    For somebody who knows which: given their number, the heads of both kinds are binomial.
    """
    coins = fc.PlacedCoins(items=ITEMS, users=USERS, epsilon=EPSILON, delta=DELTA).D - 1
    deltas = []
    for turned in range(coins + 1):
        kept = coins - turned
        one = binom.pmf(np.arange(kept + 1), kept, heads)
        other = binom.pmf(np.arange(turned + 1), turned, 1 - heads)
        deltas.append(shift_delta(np.log(np.convolve(one, other)), EPSILON))
    return float(binom.pmf(np.arange(coins + 1), coins, 0.5) @ np.array(deltas))


def guarantees() -> str:
    """Who relies on whom."""
    rows = []
    for name, made in mechanisms().items():
        if made.proven:
            rows += [
                [name, str(guarantee.adversary), str(guarantee.condition or "-")]
                for guarantee in made.guarantees()
            ]
    return table(["mechanism", "against", "provided that"], rows)


def moved(lines: list[Line]) -> str:
    """Measured and expected errors."""
    rows = []
    for method in poisoning.METHODS:
        found = [find_line(lines, method=method, liars=liars, how=COUNT_LEVEL) for liars in SHOWN]
        rows.append(
            [
                method,
                *(f"{100 * f.mean**0.5:.1f} ({100 * f.expected.mean**0.5:.1f})" for f in found),
            ]
        )
    rows.append(
        [
            "bound for proven reports, without noise",
            *(f"{100 * liars / USERS:.1f}" for liars in SHOWN),
        ]
    )
    return table(["malicious clients", *(f"{liars / USERS:.0%}" for liars in SHOWN)], rows)


def main() -> None:
    lines = measure([poisoning.STUDY], RUNS, seed=SEED, workers=1)["poisoning"]
    if "--check" not in sys.argv[1:]:
        with picture_style():
            picture = draw_poisoning(lines)
            picture.figure.savefig(DOCS / "images" / "poisoning.svg", metadata={"Date": None})
    votes = {
        method: poisoning.expected_shift(method, 10) * USERS / 10 for method in poisoning.LOCAL
    }
    text = PAGE.format(
        users=USERS, items=ITEMS, epsilon=EPSILON, delta=DELTA, runs=RUNS, votes=poisoning.FORGED_VOTES, **votes,
        points=100 * poisoning.FORGED_VOTES // USERS, short=decoys_delta(fc.PlacedCoins(items=2, coins=148).D - 100, EPSILON),
        noise=noise(), guarantees=guarantees(), moved=moved(lines), eight=unfair_delta(0.8), nine=unfair_delta(0.9),
    )  # fmt: skip
    write("explanation/validity.md", text)


if __name__ == "__main__":
    main()

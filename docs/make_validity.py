"""Writes docs/validity.md and its figure: every number is computed here. `--check` fails if the page is out of date."""

import sys

import numpy as np
from page import HERE, write

import faircount as fc
from faircount.accounting.exact import decoys_delta
from faircount.experiments.report.figure_style import style
from faircount.experiments.report.figures import draw_poisoning
from faircount.experiments.studies import poisoning
from faircount.experiments.studies.registry import measure
from faircount.experiments.studies.study import COUNTS, Line, one
from faircount.mechanisms.base import FrequencyMechanism
from faircount.planning.costs import cost

USERS, ITEMS, EPSILON, DELTA = 1000, 30, 1.0, 1e-6
SHOWN = (0, 10, 20, 50, 100, 200)
RUNS, SEED = 200, 1

PAGE = """# Reports that are one vote each, and noise that no client can bias

*Not reviewed outside.* Made by `python docs/make_validity.py`; every number on this page is computed.

A person can change the program on its own device. Where a survey only adds up shares, nobody can tell a vote from the vector
(+50, -49): one such client of {users:,} moves two frequencies by {points} points each, and no check notices. A mechanism whose reports are
**proven** counts exactly one vote of every counted client, without anybody seeing it.

## What is proven

A report is N + m bits: the answer, of which exactly one bit is 1, and m coins (m may be 0). Its sender splits the bits and a
proof between S1 and S2. When all shares are fixed, the servers ask one question about all reports, which nobody knew before: a point r, made from
a value of each server that was committed in the parameters. Each server answers from its own shares. Both answers together
show that every bit is 0 or 1 and that the answer's bits add up to 1, and nothing else.

| to whom | what | under which assumption |
|---|---|---|
| the owner and every reader | each counted report added exactly one to exactly one item; c lying clients move any count by at most c, any frequency by at most c/n', before fitting to sum 1; this fails with probability below 2^-40 in a survey | both servers follow the protocol, and no client learned the values of both before the claim |
| a client | its proof tells no server which item it holds: the answers that a server sees follow the same law for every valid report | the two servers do not work together |

Nothing else changes for a client: one visit, one message. What is refused counts as missing.

## Who makes the noise

Noise that clients make cannot be bounded by such a proof: a liar's "noise" is another way to lie. So there are two kinds.

**Both servers add noise** (`ServerLaplace`; `ServerCoins` for many releases). Each adds the whole noise of one release to its own sum, so that
the other's knowledge of its own noise does not help it. Users have no part in it: the guarantee is the same however many
collude, lie or vanish, and for a set of any size.

**Users' coins, turned over and placed** (`PlacedCoins`). When it is fixed whose reports count, the servers' values (with another
label than for the question) decide for every coin whether it is turned over and which item it goes to: D coins for every item, of D
different users. A coin is fair then whatever its sender chose, and an honest one stays secret because only sums are opened. D = D0 + t, where
D0 coins are enough and t users may collude: with D0 coins alone and 100 of 1,000 users colluding, delta could be {short:.1e} instead of
{delta:g}. A user's m = ceil(D N / n_min) coins suffice when n_min users remain; n_min must be at least D.

For {users:,} users, {items} items, epsilon {epsilon:g} and, where one is needed, delta {delta:g}:

{noise}

"Laplace" is what `plan` recommends for clients who follow the protocol; `plan --liars` recommends the best of the proven ones.
Rows of a table cannot lie, so `run` takes the smallest error; people's devices can, so **surveys between devices in `servers` are proven unless their owner asks for something else**
(`faircount survey create`, `faircount dashboard`). The guarantee of each mechanism names the server that it relies on:

{guarantees}

## What lying clients move

{users:,} users; the liars hold other items and push the rarest one. Without proofs each claims up to {votes} votes; a local report is
sent without flipping its coins (manipulation of local privacy). Error of that item's frequency in percentage points, root mean square over {runs} runs (theory):

{moved}

![Error of the pushed item's frequency against the share of lying clients: proven reports follow the bound](images/poisoning.svg)

Proven reports follow the bound c/n. One report of GRR counts like {grr:.1f} votes here and one of OUE like {oue:.1f}; a vector without a proof counts
like any number of votes. The study is `experiments/studies/poisoning.py`.

## What was tried against it

By somebody who had not written it, with programs; tests keep what was found.

| attack | what happened |
|---|---|
| fourteen kinds of reports that are not one vote, in whole surveys, also while servers crash | refused; everybody else counted exactly once |
| every row there is, in a field of 5 elements | accepted at 6 of 20 points at most, as the bound says |
| the largest numbers in every product, modulo primes up to 2^32 | exact |
| another person's report sent again, also under a key with the same secret | does not open |
| a server that shifts its answers, changes shares, or calls valid reports invalid, through the servers' own functions | sees the same, as often, whatever the answer was |
| a second question, a second sum or other noise after a crash or a restore | the same question, answers, noise and sum |
| a value that was used before, in a server taken back to an old database | **was accepted** if the server had also stopped before it destroyed the key of its offer; now the anchor refuses it |
| S2 sends a receipt before there is a claim | **was kept** by S1, which then held both values while people answered; now it asks S2 what stands |
| reports with many items from many people | **took memory for all bits at once**; now for a few reports at a time |
| honest coins that are not fair, which turning over hides from whoever does not know the turns | an audit knows the turns and refutes it |

## What is not covered

- **A lying server** can change the result, or leave out anybody. It cannot read an answer: what it gets is covered by the guarantee above, which
  relies on the other server where servers make the noise. Nobody can tell whether a server has added its noise.
- **Too many refused reports** end a survey, with its budget spent: as many as may be missing, and one more.
- **Both servers together** read everything.
- **Invented people** count as people: who is invited is the owner's matter.
- **A vote for the wrong item** is a vote.
- Whoever knows the values of both servers before all reports are fixed can forge proofs, and choose coins.
- `masked`, `explicit` and `two-stage` have no proofs; neither have `Laplace`, `Decoys`, `DPDG` and `DPDS` in `servers`, where they run on request. Results, plans and the advice for a survey say which was supposed.
- More than 2,600 bits in a report are refused: other proofs are shorter there.
- The composition of these parts has no known source, and nobody outside has reviewed it.
"""


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows))


def mechanisms() -> dict[str, FrequencyMechanism]:
    """At the same privacy."""
    common = {"items": ITEMS, "users": USERS, "epsilon": EPSILON}
    return {
        "Laplace, pieces of the users": fc.Laplace(**common),
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
        more = "its vote and nothing else" if made.proven else "anything"
        needs = "insiders, dropouts" if made.condition(made.participants) is None else "one server"
        size = "-" if sent is None else f"{sent.bytes_sent:,}"
        rows.append([name, f"{deviation:.2f}", more, size, needs])
    heads = ["noise", "standard deviation of a count", "a liar adds", "bytes of a client", "the guarantee depends on"]
    return table(heads, rows)


def guarantees() -> str:
    """Who relies on whom."""
    rows = []
    for name, made in mechanisms().items():
        if made.proven:
            rows += [[name, str(each.adversary), each.condition or "-"] for each in made.guarantees()]
    return table(["mechanism", "against", "provided that"], rows)


def moved(lines: list[Line]) -> str:
    """Measured and expected errors."""
    rows = []
    for method in poisoning.METHODS:
        found = [one(lines, method=method, liars=liars, how=COUNTS) for liars in SHOWN]
        rows.append([method, *(f"{100 * f.mean**0.5:.1f} ({100 * f.expected.mean**0.5:.1f})" for f in found)])
    rows.append(["bound for proven reports, without noise", *(f"{100 * liars / USERS:.1f}" for liars in SHOWN)])
    return table(["lying clients", *(f"{liars / USERS:.0%}" for liars in SHOWN)], rows)


def main() -> None:
    lines = measure([poisoning.STUDY], RUNS, seed=SEED, workers=1)["poisoning"]
    if "--check" not in sys.argv[1:]:
        with style():
            picture = draw_poisoning(lines)
            picture.figure.savefig(HERE / "images" / "poisoning.svg", metadata={"Date": None})
    votes = {method: poisoning.shift(method, 10) * USERS / 10 for method in poisoning.LOCAL}
    text = PAGE.format(
        users=USERS, items=ITEMS, epsilon=EPSILON, delta=DELTA, runs=RUNS, votes=poisoning.VOTES, **votes,
        points=100 * poisoning.VOTES // USERS, short=decoys_delta(fc.PlacedCoins(items=2, coins=148).D - 100, EPSILON),
        noise=noise(), guarantees=guarantees(), moved=moved(lines),
    )  # fmt: skip
    write("validity.md", text)


if __name__ == "__main__":
    main()

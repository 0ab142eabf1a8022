"""What is known of the reports behind a result: proven to be one vote each, or taken as they came."""

from dataclasses import dataclass
from typing import Any

FAILURE_BITS = 40
"""Where reports are proven, one that is invalid is counted with probability 2^-40 at most, in the whole survey."""


SUPPOSED = {
    False: "clients follow the protocol; no report is proven to be one vote, so one that lies may count for many",
    True: "clients may lie; only reports that are proven to be one vote are counted",
}
"""What a plan or a result supposes of the clients, by whether reports are proven."""


@dataclass(frozen=True, slots=True)
class Validity:
    """How much clients who lie can have moved a result.

    proven:  whether every counted report was proven to be one vote
    counted: reports in the sums
    refused: reports that came and are not counted: they did not open or, where that is proven, are not valid
    coins:   whether clients also made the noise, of coins that they could not choose
    """

    proven: bool
    counted: int
    refused: int
    coins: bool = False

    def frequency_bound(self, liars: int) -> float:
        """By how much so many lying clients can move any frequency at most; 1 where nothing is proven."""
        return min(1.0, liars / self.counted) if self.proven and self.counted else float(liars > 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; without proofs there is no bound."""
        return {
            "proven": self.proven,
            "counted": self.counted,
            "refused": self.refused,
            "count_per_liar": 1 if self.proven else None,
            "frequency_per_liar": self.frequency_bound(1) if self.proven else None,
            "fails_with_probability": 2.0**-FAILURE_BITS if self.proven else None,
            "statement": str(self),
        }

    def __str__(self) -> str:
        reports = f"{self.counted} reports counted, {self.refused} refused."
        if not self.proven:
            return f"{reports} They were not proven: a client that lies can move any count by any amount."
        coins = ", and coins that its sender could not choose" if self.coins else ""
        return (
            f"{reports} Every counted report added exactly one to exactly one item{coins}. c lying clients among them "
            f"move any count by at most c, any frequency by at most c/{self.counted}, before fitting to sum 1. This "
            f"fails with probability below 2^-{FAILURE_BITS} in this survey, if both servers followed the protocol and "
            "no client learned the values of both before the claim. A lying server can change the result and leave out "
            "anybody; invented people count as people. Not reviewed outside."
        )

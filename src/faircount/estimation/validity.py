"""What is known about the reports behind a result: proven to be one vote each, or unchecked."""

from dataclasses import dataclass
from typing import Any

FAILURE_BITS = 40
"""Where reports are proven, an invalid one is counted with probability 2^-40 at most.

This holds for the whole survey, not for a single report.
"""

ASSUMPTIONS = {
    False: (
        "clients follow the protocol; no report is proven to be one vote, "
        "so a malicious one may count for many"
    ),
    True: "clients may be malicious; only reports that are proven to be one vote are counted",
}
"""What a plan or a result assumes about the clients, by whether reports are proven."""


# Numbers and not sentences: the page and the dashboard say the same in other languages.
@dataclass(frozen=True, slots=True)
class Validity:
    """How much dishonest participants can have changed a result.

    proven:  whether every counted report was proven to be one vote
    counted: reports in the sums
    refused: reports that arrived and are not counted: they could not be decrypted or, where reports
             are proven, are not valid
    coins:   whether clients also made the noise, of coins that they could not choose
    """

    proven: bool
    counted: int
    refused: int
    coins: bool = False

    def frequency_bound(self, dishonest: int) -> float:
        """Return by how much so many dishonest participants can change a frequency at most."""
        if self.proven and self.counted:
            return min(1.0, dishonest / self.counted)
        return float(dishonest > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; without proofs there is no bound."""
        bounds: dict[str, Any] = {
            "count_per_liar": None,
            "frequency_per_liar": None,
            "fails_with_probability": None,
        }
        if self.proven:
            bounds = {
                "count_per_liar": 1,
                "frequency_per_liar": self.frequency_bound(1),
                "fails_with_probability": 2.0**-FAILURE_BITS,
            }
        return {
            "proven": self.proven,
            "counted": self.counted,
            "refused": self.refused,
            **bounds,
            "statement": str(self),
        }

    def __str__(self) -> str:
        reports = f"{self.counted} reports counted, {self.refused} refused."
        if not self.proven:
            return (
                f"{reports} They were not proven: "
                "a malicious client can change any count by any amount."
            )
        coins = ", and coins that its sender could not choose" if self.coins else ""
        return (
            f"{reports} Every counted report added exactly one to exactly one item{coins}. "
            "Each dishonest participant can change a count by at most one and a frequency by at "
            f"most 1/{self.counted}, before frequencies are made consistent. This fails with "
            f"probability below 2^-{FAILURE_BITS} in this survey, if both servers followed the "
            "protocol and no client learned the secret values of both before the batch manifest "
            "was fixed. A dishonest server can change the result and leave out anybody; invented "
            "people count as people. No independent security review yet."
        )

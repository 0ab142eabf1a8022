"""What the owner tells both servers, and asks them. S1 gets access values, S2 sealing keys, and neither a token.

Every call may be repeated: the same bytes again change nothing. So a command that was interrupted is simply run again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from faircount.core.errors import RefusedError
from faircount.protocol import Invitation, Keys, SurveyParameters
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.signing import Statement, verified
from faircount.service.calls import BYTES, Patience, RemoteServer
from faircount.service.owner.folder import PATIENT, OwnerFile

USER = 16
"""Bytes of the id by which both servers know a person."""

PEOPLE_PER_PART = 5000
"""How many people one call tells of: a part stays far below what a server takes at once."""


@dataclass(frozen=True, slots=True)
class Offers:
    """What both servers offer for one survey: their keys, and the names of their operators."""

    keys: Keys
    s1_operator: str
    s2_operator: str


@dataclass(frozen=True)
class BothServers:
    """S1 and S2, as their owner calls them."""

    s1: RemoteServer
    s2: RemoteServer

    @classmethod
    def of(cls, owner: OwnerFile, patience: Patience = PATIENT) -> "BothServers":
        """With the owner's tokens."""
        return cls(owner.s1.server("S1", patience), owner.s2.server("S2", patience))

    def offers(self) -> "Offers":
        """Fresh keys and committed values of both servers, for one survey, and who runs them."""
        first, second = (each.call("POST", "/v1/offers", given={}).json() for each in (self.s1, self.s2))
        keys = Keys(
            s1=bytes.fromhex(first["signing_key"]),
            s2=bytes.fromhex(second["signing_key"]),
            box=bytes.fromhex(second["box_key"]),
            s1_commitment=bytes.fromhex(first["commitment"]),
            s2_commitment=bytes.fromhex(second["commitment"]),
        )
        return Offers(keys, str(first.get("operator", "")), str(second.get("operator", "")))

    def set_up(self, params: SurveyParameters, budget: tuple[float, float]) -> None:
        """Bring the parameters to both servers, and the budget of the population to S2."""
        epsilon, delta = budget
        name = quote(params.population, safe="")
        self.s2.call("PUT", f"/v1/populations/{name}", given={"epsilon": epsilon, "delta": delta})
        self.s2.call("PUT", path_of(params), params.published)
        self.s1.call("PUT", path_of(params), params.published)

    def admit(self, params: SurveyParameters, invitations: Sequence[Invitation]) -> None:
        """Tell S2 the sealing keys and S1 the access values; both sorted, so that no order says who is who."""
        guests = sorted(each.user + each.sealing_key for each in invitations)
        for number, part in _parts(guests):
            self.s2.call("PUT", f"{path_of(params)}/guests/{number}", part)
        for number, part in _parts(sorted(each.access for each in invitations)):
            self.s1.call("PUT", f"{path_of(params)}/invited/{number}", part)

    def exchange(self, params: SurveyParameters, old: Invitation, new: Invitation, part: int) -> None:
        """Admit one invitation instead of another one that was not used; S2 first, who alone can do nothing with it."""
        self.s2.call("PUT", f"{path_of(params)}/guests/{part}", new.user + new.sealing_key)
        self.s1.call("POST", f"{path_of(params)}/reissue", old.access + new.access)

    def answered(self, params: SurveyParameters) -> frozenset[bytes]:
        """Ids of the people who have used their invitation."""
        data = self.s1.call("GET", f"{path_of(params)}/answered").body
        return frozenset(data[start : start + USER] for start in range(0, len(data), USER))

    def status(self, params: SurveyParameters) -> dict[str, Any]:
        """Where the survey stands at S1."""
        found: dict[str, Any] = self.s1.call("GET", f"{path_of(params)}/status").json()
        return found

    def wish(self, params: SurveyParameters, what: str, **given: Any) -> dict[str, Any]:
        """Tell S1 to open, close, extend or abort; where the survey stands then."""
        found: dict[str, Any] = self.s1.call("POST", f"{path_of(params)}/{what}", given=given).json()
        return found

    def status_at_s2(self, params: SurveyParameters) -> dict[str, Any]:
        """Where the survey stands at S2."""
        found: dict[str, Any] = self.s2.call("GET", f"{path_of(params)}/status").json()
        return found

    def budget(self, population: str) -> dict[str, Any]:
        """What a population has spent, survey after survey, as S2 keeps it."""
        found: dict[str, Any] = self.s2.call("GET", f"/v1/populations/{quote(population, safe='')}").json()
        return found

    def places(self, params: SurveyParameters) -> list[int]:
        """Places in the roster of those whom the result counts, as S1 says: needed where they do not all draw alike."""
        return list(self.s1.call("GET", f"{path_of(params)}/result").json()["places"])

    def receipts(self, params: SurveyParameters) -> list[str]:
        """What S2 has signed about the budget of the population, as S1 has kept it, in base64."""
        name = quote(params.population, safe="")
        return list(self.s1.call("GET", f"/v1/receipts?population={name}").json()["receipts"])

    def delete(self, params: SurveyParameters) -> None:
        """Have both servers remove a survey that is over; S2 first, because S1 can still tell people how it ended."""
        for each in (self.s2, self.s1):
            each.call("DELETE", path_of(params))

    def last_word(self, params: SurveyParameters) -> Statement:
        """What S2 signed when the survey ended; believed because of the signature, whoever relays it."""
        data = self.s1.call("GET", f"{path_of(params)}/result", accept=BYTES).body
        signed = decode_signed(data)
        found = verified(params.keys.s2, Party.S2, signed) if isinstance(signed, Signed) else None
        if found is None or getattr(found.says, "survey", None) != params.survey:
            raise RefusedError(
                "S1 shows a result that S2 has not signed for this survey: do not use it, ask both operators"
            ).coded("unsigned_result")
        return found


def path_of(params: SurveyParameters) -> str:
    """Where a survey is, at either server."""
    return f"/v1/surveys/{params.survey.hex()}"


def _parts(lines: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, start in enumerate(range(0, len(lines), PEOPLE_PER_PART)):
        yield number, b"".join(lines[start : start + PEOPLE_PER_PART])

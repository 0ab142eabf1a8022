"""What every topology costs a questionnaire in errors, bytes and visits; which cannot carry it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions.form import Form
from faircount.planning.forecast import Forecast, forecast_sheet
from faircount.planning.one_question import JOINT, REASONS, SHEETS, TOPOLOGY_REASONS
from faircount.protocol import EXPLICIT, MASKED, SERVERS, Topology

# All pairs of a topology and a mechanism that carry sheets, best protected first.
_WAYS = ((SERVERS, JOINT), (SERVERS, SHEETS), (EXPLICIT, SHEETS), (MASKED, SHEETS))


@dataclass(frozen=True)
class SheetWay:
    """One topology and mechanism for a questionnaire.

    expected: what to expect of it; None if it cannot run
    reason:   why it cannot
    """

    topology: Topology
    mechanism: str
    expected: Forecast | None
    reason: str = ""

    @property
    def errors(self) -> tuple[float, ...]:
        """95% half-widths of all questions, in percentage points."""
        if self.expected is None or self.expected.sheet is None:
            return ()
        return tuple(line.half_width for line in self.expected.sheet.lines)

    @property
    def bytes_sent(self) -> int | None:
        """Bytes that a participant sends."""
        if self.expected is None:
            return None
        return self.topology.bytes_sent(self.expected.mechanism)

    @property
    def proven(self) -> bool:
        """Whether a report is proven to be one sheet of possible answers."""
        return self.mechanism == JOINT

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "topology": str(self.topology),
            "mechanism": self.mechanism,
            "half_widths": list(self.errors),
            "bytes_per_user": self.bytes_sent,
            "visits": len(self.topology.phases),
            "proven": self.proven,
            "reason": self.reason or None,
        }


def compare_ways(form: Form, **terms: Any) -> tuple[SheetWay, ...]:
    """All ways to ask these questions; `terms` are those of `forecast_sheet`."""
    found: list[SheetWay] = []
    for topology, mechanism in _WAYS:
        # What participants draw is the same everywhere, so it is planned once.
        same = next((way for way in found if way.mechanism == mechanism), None)
        if same is not None:
            known = same.expected and replace(same.expected, topology=topology)
            found.append(SheetWay(topology, mechanism, known, same.reason))
            continue
        try:
            expected = forecast_sheet(form, topology=topology, proven=mechanism == JOINT, **terms)
        # A refusal is a result, too: the table shows why.
        except (ParameterError, RefusedError) as refusal:
            found.append(SheetWay(topology, mechanism, None, str(refusal)))
        else:
            found.append(SheetWay(topology, mechanism, expected))
    return tuple(found)


def refused_mechanisms() -> dict[str, list[str]]:
    """Reason -> the mechanisms, and the topology, that cannot carry sheets because of it."""
    found: dict[str, list[str]] = {}
    for name, reason in (*REASONS.items(), *TOPOLOGY_REASONS.items()):
        found.setdefault(reason, []).append(name)
    return found


def describe_costs(ways: Sequence[SheetWay]) -> str:
    """In a sentence, how much larger errors are where participants draw the noise; or nothing."""
    first, *others = ways
    # Not compared with itself in `servers`: there the owner has a better choice.
    other = next((way for way in others if way.topology is not first.topology and way.errors), None)
    if not first.errors or other is None:
        return ""
    pairs = zip(other.errors, first.errors, strict=True)
    ratios = [split / joint for split, joint in pairs if joint > 0]
    if not ratios:
        return ""
    ends = dict.fromkeys(f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
    times = " to ".join(ends)
    return (
        f"In {EXPLICIT} and {MASKED}, where participants draw the noise and epsilon is split over "
        f"the questions, errors are {times} times as large, and no report is proven."
    )

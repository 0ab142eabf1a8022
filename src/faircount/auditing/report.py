"""What an audit found: a verdict per adversary, and the report of all of them."""

from dataclasses import dataclass
from typing import Any

from faircount.accounting.guarantee import Adversary, format_delta
from faircount.auditing.statistics import CHANCE, Finding
from faircount.core import plain
from faircount.core.figures import create_axes

# The default view: what `respond` makes of the answers, without a protocol.
DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit found when it played one adversary.

    adversaries: the adversary; several if they see the same
    findings: the claim and what the runs showed about it, then the same for points of the
              mechanism's own guarantee
    refutable: the largest epsilon that such an audit refutes with probability 95% if the
               mechanism follows its own distributions; None if there is none above 0
    """

    adversaries: tuple[Adversary, ...]
    findings: tuple[Finding, ...]
    refutable: float | None

    @property
    def decisive(self) -> Finding:
        """The finding on the claim, or that on the most refuted point if only such are refuted."""
        claimed = self.findings[0]
        worst = max(self.findings, key=lambda finding: finding.epsilon - finding.claim.epsilon)
        return worst if worst.refuted and not claimed.refuted else claimed

    @property
    def refuted(self) -> bool:
        """Whether the claim, or the guarantee at another point, is wrong for this adversary."""
        return self.decisive.refuted

    @property
    def played(self) -> str:
        """The adversary in words."""
        return "; ".join(str(adversary) for adversary in self.adversaries)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        tested = [
            {
                "epsilon": finding.claim.epsilon,
                "delta": finding.claim.delta,
                "lower_bound": finding.epsilon,
                "refuted": finding.refuted,
            }
            for finding in self.findings
        ]
        return {
            "adversary": self.played,
            "codes": [str(adversary.code) for adversary in self.adversaries],
            "refuted": self.refuted,
            "refutable": {"epsilon": self.refutable, "probability": CHANCE},
            "tested": tested,
        }


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """Claim, measurement and verdict.

    mechanism:      name of the mechanism
    runs:           runs on each of the two data sets that were made
    planned_runs:   runs that would have been made if nothing had been refuted before
    confidence:     a sound claim survives with at least this probability, whichever adversaries,
                    points and events were tried
    verdicts:       one for every adversary that was played
    through:        what was looked at: "devices", or whole surveys of a topology
    """

    mechanism: str
    runs: int
    planned_runs: int
    confidence: float
    verdicts: tuple[Verdict, ...]
    through: str = DEVICES

    @property
    def decisive(self) -> Verdict:
        """The verdict that the report is about: the most refuted, else that of the first played."""
        refuted = [verdict for verdict in self.verdicts if verdict.refuted]
        if not refuted:
            return self.verdicts[0]
        # The one that is furthest from its claim: the clearest evidence comes first.
        return max(
            refuted,
            key=lambda verdict: verdict.decisive.epsilon - verdict.decisive.claim.epsilon,
        )

    @property
    def epsilon(self) -> float:
        """Epsilon of the claim that the verdict is about."""
        return self.decisive.decisive.claim.epsilon

    @property
    def delta(self) -> float:
        """Delta of the claim that the verdict is about."""
        return self.decisive.decisive.claim.delta

    @property
    def lower_bound(self) -> float:
        """With the stated confidence the true epsilon at `delta` is at least this."""
        return self.decisive.decisive.epsilon

    @property
    def is_own_point(self) -> bool:
        """Whether the verdict is about the mechanism's guarantee at another epsilon than asked."""
        # The claim itself is always the first finding; the others are points of the mechanism's
        # curve.
        return self.decisive.decisive is not self.decisive.findings[0]

    @property
    def refutable(self) -> float | None:
        """The largest epsilon that such an audit refutes with probability 95%, if there is one.

        This assumes that the mechanism follows its own distributions.
        """
        return self.decisive.refutable

    @property
    def adversary(self) -> str:
        """Who was played when the verdict was reached."""
        return self.decisive.played

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong at the stated confidence."""
        # One adversary is enough: a guarantee is for all whom it names.
        return any(verdict.refuted for verdict in self.verdicts)

    @property
    def verdict(self) -> str:
        """`REFUTED` or `not refuted`."""
        return "REFUTED" if self.refuted else "not refuted"

    @property
    def power(self) -> str:
        """A phrase that says which claims such an audit would refute."""
        if self.refutable is None:
            return "no claim about this mechanism for sure: make more runs"
        return (
            f"a claim of epsilon {self.refutable:.4g} or less about this mechanism, with "
            f"probability {CHANCE:.0%}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **plain.JSON_VERSION,
            "mechanism": self.mechanism,
            "claim": {"epsilon": self.epsilon, "delta": self.delta},
            "refuted": self.refuted,
            "lower_bound": self.lower_bound,
            "refutable": {"epsilon": self.refutable, "probability": CHANCE},
            "adversary": self.adversary,
            "adversaries": [verdict.to_dict() for verdict in self.verdicts],
            "through": self.through,
            "runs": self.runs,
            "planned_runs": self.planned_runs,
            "confidence": self.confidence,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame of one row; its `attrs` hold what `to_dict` returns."""
        names = ("epsilon", "delta", "lower_bound", "refutable", "refuted")
        columns = {name: [getattr(self, name)] for name in names}
        return plain.data_frame(columns, [self.mechanism], "mechanism", self.to_dict())

    def plot(self, *, ax: Any = None) -> Any:
        """Draw claimed and measured epsilon on matplotlib axes, and return the axes.

        A claim that lies left of the bar's end is refuted.
        """
        target = create_axes(7, 1.8) if ax is None else ax
        colour = "#c8553d" if self.refuted else "#8fb8ad"
        # A lower bound may be negative, when the runs show nothing.
        target.barh([0], [max(self.lower_bound, 0.0)], color=colour, height=0.5)
        target.axvline(self.epsilon, color="black", lw=1.4)
        target.annotate(
            "claim",
            (self.epsilon, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            size=8,
        )
        target.set_yticks([0], [self.mechanism])
        target.set_xlim(0, 1.15 * max(self.epsilon, self.lower_bound, 1e-9))
        target.set_xlabel(
            "epsilon: the true one is at least as large as the bar, with confidence "
            f"{self.confidence:g}"
        )
        target.set_title(self.verdict, size=10, loc="left")
        target.spines[["top", "right"]].set_visible(False)
        return target

    def _repr_html_(self) -> str:
        return plain.html_paragraph(self, strong=self.refuted)

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        delta = format_delta(self.delta)
        claim = "its own guarantee" if self.is_own_point else "claim"
        return (
            f"{self.mechanism}: {claim} ({self.epsilon:g}, {delta})-DP is {self.verdict}; "
            f"epsilon is at least {self.lower_bound:.4g} against {self.adversary}, "
            f"with confidence {self.confidence:g} from {self.runs} runs on each of two data sets"
            f"{self._others}; such an audit refutes {self.power}"
        )

    @property
    def _others(self) -> str:
        """The adversaries besides, who did not refute anything if the decisive one did not."""
        others = [verdict.played for verdict in self.verdicts if verdict is not self.decisive]
        if not others:
            return ""
        return f" (also played: {'; '.join(others)})"

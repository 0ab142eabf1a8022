"""An audit as a figure: the epsilon that was claimed beside the one that was measured."""

from typing import Any

from faircount.core.figures import shown_axes


def audit_axes(mechanism: str, claimed: float, measured: float, confidence: float, axes: Any = None) -> Any:
    """Draw on the axes given, or on those of a new figure: a claim below the bar's end is refuted."""
    target = shown_axes(7, 1.8) if axes is None else axes
    refuted = measured > claimed
    target.barh([0], [max(measured, 0.0)], color="#c8553d" if refuted else "#8fb8ad", height=0.5)
    target.axvline(claimed, color="black", lw=1.4)
    place = {"textcoords": "offset points", "va": "top", "size": 8}
    target.annotate("claim", (claimed, 1), (4, -2), xycoords=("data", "axes fraction"), **place)
    target.set_yticks([0], [mechanism])
    target.set_xlim(0, 1.15 * max(claimed, measured, 1e-9))
    target.set_xlabel(f"epsilon: the true one is at least as large as the bar, with confidence {confidence:g}")
    target.set_title("REFUTED" if refuted else "not refuted", size=10, loc="left")
    target.spines[["top", "right"]].set_visible(False)
    return target

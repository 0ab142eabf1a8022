"""A result as files to download (CSV, JSON, PNG, SVG). Every file states the guarantee."""

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError
from faircount.estimation.drawing import save_frequencies
from faircount.estimation.result import Result
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.messages import Published

LEVEL = 0.95
KINDS = ("result.csv", "result.json", "result.png", "result.svg")
COLUMNS = (
    "item",
    "estimate",
    "low",
    "high",
    "consistent",
    "guarantee",
    "promised_epsilon",
    "promised_delta",
)


def plain_result(result: Result) -> dict[str, Any]:
    """Estimates and consistent ones, with the promised and the achieved privacy.

    The privacy is the one that the aggregator signed.
    """
    guarantee = {"in_words": str(result.guarantee), "codes": result.guarantee.codes}
    return {**result.to_dict(LEVEL), "promised": _signed_privacy(result), **guarantee}


def _signed_privacy(result: Result) -> dict[str, float]:
    published = result.facts["published"]
    # A result that was computed without servers has no signed statement.
    if not isinstance(published, Published):
        return {}
    names = ("epsilon", "delta", "realized_epsilon", "realized_delta")
    return {name: parse_real(getattr(published, name).decode()) for name in names}


def export_result(result: Result, kind: str) -> bytes:
    """The content of a file of this kind."""
    if kind == "result.csv":
        return _csv_table(plain_result(result))
    if kind == "result.json":
        # JSON has no NaN: a file with one would break the programs that read it.
        return json.dumps(plain_result(result), indent=2, allow_nan=False).encode() + b"\n"
    if kind not in KINDS:
        names = ", ".join(KINDS)
        message = f"a result can be saved as {names}"
        raise ParameterError(message).with_code("unknown_file", names=names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, kind)
        save_frequencies(result, path, LEVEL, "users")
        return path.read_bytes()


def _csv_table(plain: dict[str, Any]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    promised = plain["promised"]
    # The guarantee is in every row, so that it survives when somebody copies rows.
    privacy = (plain["in_words"], promised.get("epsilon"), promised.get("delta"))
    for row, consistent in zip(plain["estimates"], plain["consistent"], strict=True):
        numbers = (row["estimate"], row["low"], row["high"], consistent)
        writer.writerow((row["item"], *numbers, *privacy))
    return out.getvalue().encode()

"""A result as files to keep, the guarantee in each: CSV, JSON, PNG, SVG."""

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError
from faircount.dashboard.said import guarantee_codes
from faircount.estimation.drawing import result_file
from faircount.estimation.result import Result
from faircount.protocol.wire.canonical_json import unscaled
from faircount.protocol.wire.messages import Published

LEVEL = 0.95
KINDS = ("result.csv", "result.json", "result.png", "result.svg")
COLUMNS = ("item", "estimate", "low", "high", "consistent", "guarantee", "promised_epsilon", "promised_delta")


def plain_result(result: Result) -> dict[str, Any]:
    """Estimates raw and consistent, what was promised before and what holds, as S2 signed it."""
    words = {"in_words": str(result.guarantee), "codes": guarantee_codes(result.guarantee)}
    return {**result.to_dict(LEVEL), "promised": _promised(result), **words}


def _promised(result: Result) -> dict[str, float]:
    said = result.facts["published"]
    if not isinstance(said, Published):
        return {}
    names = ("epsilon", "delta", "realized_epsilon", "realized_delta")
    return {each: unscaled(getattr(said, each).decode()) for each in names}


def exported(result: Result, kind: str) -> bytes:
    """The result as a file of this kind."""
    if kind == "result.csv":
        return _table(plain_result(result))
    if kind == "result.json":
        return json.dumps(plain_result(result), indent=2, allow_nan=False).encode() + b"\n"
    if kind not in KINDS:
        raise ParameterError(f"a result is kept as {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, kind)
        result_file(result, path, LEVEL, "users")
        return path.read_bytes()


def _table(said: dict[str, Any]) -> bytes:
    out, promised = io.StringIO(), said["promised"]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    end = (said["in_words"], promised.get("epsilon"), promised.get("delta"))
    for row, consistent in zip(said["estimates"], said["consistent"], strict=True):
        writer.writerow((row["item"], row["estimate"], row["low"], row["high"], consistent, *end))
    return out.getvalue().encode()

"""Errors as JSON: a code with values for the page to translate, and the English message."""

from typing import Any

from faircount.core.errors import FaircountError


def error_payload(problem: FaircountError) -> dict[str, Any]:
    """The payload of an error; without a code the page shows the English message."""
    return {"message": str(problem), "code": problem.code, "values": dict(problem.values)}

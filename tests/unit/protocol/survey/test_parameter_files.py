"""Parameter files from anybody: every one is read or refused with a reason, whatever its fields contain."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import FaircountError
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import MASKED, SERVERS
from faircount.protocol.simulator import set_up
from faircount.protocol.survey.parameters import SurveyParameters

STRANGE = (0, -1, 1 << 53, "9" * 400, "", None, [])

FILES = {
    "laplace in masked": (Laplace(items=3, epsilon=1.0, users=50), MASKED, {}),
    "dpdg in servers": (
        DPDG(items=3, users=50, epsilon=1.0, delta=1e-6),
        SERVERS,
        {"epsilon": 1.0, "delta": 1e-5},
    ),
}


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all single values."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if inside is None:
        yield before
    else:
        for key, inner in inside:
            yield from places(inner, (*before, key))


def changed(published: bytes, place: tuple[Any, ...], new: Any) -> bytes:
    whole = at = json.loads(published)
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = new
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("name", FILES)
def test_whatever_stands_in_a_field_the_file_is_read_or_refused_in_words(name: str) -> None:
    mechanism, topology, terms = FILES[name]
    published = set_up(mechanism, topology, SeededStream(0), **terms).params.published
    refused = 0
    for place in places(json.loads(published)):
        for new in STRANGE:
            try:
                SurveyParameters.parse(changed(published, place, new))
            except FaircountError as problem:
                refused += bool(str(problem))
    assert refused > 100

"""Who runs the servers: what an operator signs, and how people compare keys and names."""

from dataclasses import replace

import pytest

from faircount.core.errors import RefusedError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Keys, SurveyParameters, propose
from faircount.protocol.survey.operators import (
    Operator,
    check_operators,
    format_fingerprint,
    has_one_operator,
    is_signed_by_operator,
    normalize_operator,
)
from faircount.protocol.survey.parameters import NO_KEY
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.signing import SigningKey

UNIVERSITY = Operator("University of Aldmoor", SigningKey(b"\1" * 32))
AUTHORITY = Operator("Data Protection Authority", SigningKey(b"\2" * 32))
ACME = Operator("Acme marketing", SigningKey(b"\3" * 32))


def params_of(first: Operator, second: Operator, **change: object) -> SurveyParameters:
    keys = Keys(
        *(bytes([at]) * 32 for at in range(4, 9)),
        s1_operator_key=first.key.public,
        s2_operator_key=second.key.public,
    )
    names = {"s1_operator": first.name, "s2_operator": second.name}
    mechanism = Laplace(items=["a", "b"], epsilon=2.0, users=10)
    terms = {"survey": b"\7" * 16, "topology": SERVERS, **names, **change}
    return propose(mechanism, keys, **terms)


def sign_both(params: SurveyParameters, first: Operator, second: Operator) -> tuple[bytes, bytes]:
    return first.sign(params, Party.COORDINATOR), second.sign(params, Party.AGGREGATOR)


def test_a_survey_that_both_operators_signed_is_taken() -> None:
    params = params_of(UNIVERSITY, AUTHORITY)
    check_operators(params, sign_both(params, UNIVERSITY, AUTHORITY))
    assert UNIVERSITY.runs(params, Party.COORDINATOR)
    assert not UNIVERSITY.runs(params, Party.AGGREGATOR)


def test_an_owner_cannot_write_down_who_runs_the_servers() -> None:
    """Both servers are Acme's, and the owner names two organizations with the keys they publish."""
    params = params_of(UNIVERSITY, AUTHORITY)
    with pytest.raises(RefusedError, match="coordinator has not signed that University of Aldmoor"):
        check_operators(params, sign_both(params, ACME, ACME))
    first = UNIVERSITY.sign(params, Party.COORDINATOR)
    with pytest.raises(RefusedError, match="aggregator has not signed that Data Protection"):
        check_operators(params, (first, ACME.sign(params, Party.AGGREGATOR)))


def test_a_name_without_its_key_is_refused() -> None:
    """The owner keeps Acme's keys, which sign, but under Acme's name."""
    params = params_of(ACME, ACME)
    signed = sign_both(params, ACME, ACME)
    named = replace(params, s1_operator="University of Aldmoor")
    with pytest.raises(RefusedError, match="University of Aldmoor runs it"):
        check_operators(named, signed)


@pytest.mark.parametrize(
    "change", [{"survey": b"\10" * 16}, {"purpose": "Another?"}, {"s1_operator": "Someone"}]
)
def test_a_signature_is_for_one_survey_with_all_its_parameters(change: dict[str, object]) -> None:
    signed = UNIVERSITY.sign(params_of(UNIVERSITY, AUTHORITY), Party.COORDINATOR)
    other = params_of(UNIVERSITY, AUTHORITY, **change)
    assert not is_signed_by_operator(other, Party.COORDINATOR, signed)


def test_a_signature_is_for_one_role() -> None:
    params = params_of(ACME, ACME)
    first, second = sign_both(params, ACME, ACME)
    assert first != second
    with pytest.raises(RefusedError, match="coordinator"):
        check_operators(params, (second, first))


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_signature_is_refused(missing: int) -> None:
    params = params_of(UNIVERSITY, AUTHORITY)
    signed = list(sign_both(params, UNIVERSITY, AUTHORITY))
    signed[missing] = b""
    with pytest.raises(RefusedError, match="do not answer"):
        check_operators(params, (signed[0], signed[1]))


def test_no_signature_counts_without_a_key() -> None:
    """Under the key of zeros, a point of small order, signatures can be made without a secret."""
    params = params_of(UNIVERSITY, AUTHORITY)
    keys = replace(params.keys, s1_operator_key=NO_KEY)
    params = replace(params, keys=keys)
    forged = (bytes([last]) + bytes(30) + bytes([sign]) for last in range(2) for sign in (0, 128))
    names = (f"name {number}" for number in range(64))
    candidates = [replace(params, s1_operator=name) for name in names]
    for start in (*forged, NO_KEY):
        for named in candidates:
            assert not is_signed_by_operator(named, Party.COORDINATOR, start + bytes(32))


def test_fingerprints_are_short_enough_to_compare() -> None:
    fingerprint = format_fingerprint(UNIVERSITY.key.public)
    assert [len(group) for group in fingerprint.split(" ")] == [4] * 8
    assert fingerprint != format_fingerprint(AUTHORITY.key.public)


NAMES = [
    ("Acme, Inc.", "acme inc", True),
    ("Acme\u200b Inc", "ACME INC", True),
    ("\uff21cme", "Acme", True),
    ("Straße 1", "strasse 1", False),
    ("Université", "Universite\u0301", True),
    ("कि", "का", False),
    ("Acme 1", "Acme 2", False),
    ("", " ", True),
]


@pytest.mark.parametrize(("one", "other", "same"), NAMES)
def test_names_are_compared_without_case_spaces_and_signs(one: str, other: str, same: bool) -> None:
    assert (normalize_operator(one) == normalize_operator(other)) is same


def test_two_servers_of_one_operator_are_noticed() -> None:
    assert not has_one_operator(params_of(UNIVERSITY, AUTHORITY))
    assert has_one_operator(params_of(ACME, replace(AUTHORITY, name="ACME  Marketing")))
    # Two names for one key.
    assert has_one_operator(params_of(UNIVERSITY, replace(AUTHORITY, key=UNIVERSITY.key)))
    unknown = replace(params_of(UNIVERSITY, AUTHORITY), keys=Keys(*[b"\4" * 32] * 3))
    assert not has_one_operator(unknown)

"""Parameters: one digest for everything that matters, believed only if it follows from itself."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from faircount.accounting.exact import decoys_delta
from faircount.accounting.guarantee import Relation
from faircount.core.errors import FaircountError, MalformedError, ParameterError, RefusedError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local_frequency import GRR
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.protocol import EXPLICIT, SERVERS, TWO_STAGE
from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose, table_digest
from faircount.protocol.survey.parameters import settings as own_settings
from faircount.protocol.survey.remaining_privacy import (
    keeps_promise,
    minimum_responses,
    remaining_guarantee,
)
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.digests import params_digest

KEYS = Keys(b"\1" * 32, b"\2" * 32, b"\3" * 32, b"\4" * 32, b"\5" * 32)
ID = bytes(range(16))

MECHANISMS = [
    Laplace(items=5, users=100, epsilon=1.0, dropouts=20),
    Decoys(items=["red", "blue", "grün"], users=100, epsilon=1.0, delta=1e-6, dropouts=20),
    DPDG(items=5, users=100, epsilon=1.0, delta=1e-6, dropouts=20),
    DPDS(items=5, users=600, p=0.3, floor=100, dropouts=20),
    TSS(items=5, users=600, p=0.3, alpha=0.4, gamma=1.5, floor=100, dropouts=20),
    TSSPrime(items=5, users=600, p=0.3, alpha=0.4, floor=100, dropouts=20, phi=2),
]

PROVEN = [
    ServerLaplace(items=5, users=100, epsilon=1.0, dropouts=20),
    ServerCoins(items=5, users=100, epsilon=1.0, delta=1e-6, dropouts=20),
    PlacedCoins(items=["red", "blue", "grün"], users=300, epsilon=1.0, delta=1e-6, dropouts=20),
]


def proposed(mechanism, topology=None, **terms):
    place = TWO_STAGE if isinstance(mechanism, TSS) else (topology or SERVERS)
    promise = {} if mechanism.promise[0] else {"epsilon": 1.0}
    return propose(mechanism, KEYS, survey=ID, topology=place, **{**promise, **terms})


@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        *((mechanism, place) for mechanism in MECHANISMS for place in (SERVERS, EXPLICIT)),
        *((mechanism, SERVERS) for mechanism in PROVEN),
    ],
    ids=str,
)
def test_published_bytes_give_the_same_parameters(mechanism, topology) -> None:
    params = proposed(mechanism, topology, question="Which one?", attempts=3, population="all")
    read = SurveyParameters.parse(params.published)
    assert read == params
    assert read.published == params.published
    assert read.digest == params.digest == params_digest(params.published)
    assert read.mechanism.n == mechanism.n


@pytest.mark.parametrize("name", shared_mechanisms())
def test_every_mechanism_that_makes_shares_is_published_and_parsed(name) -> None:
    """The example that a mechanism gives of itself: one that is added needs nothing here."""
    params = proposed(shared_mechanisms()[name].example(100, 5), minimum=100)
    assert SurveyParameters.parse(params.published) == params


def changed(params, **change) -> bytes:
    return canonical.encode({**json.loads(params.published), **change})


def test_everything_is_under_the_digest() -> None:
    params = proposed(MECHANISMS[0], EXPLICIT)
    others = [
        replace(params, survey=bytes(16)),
        replace(params, questionnaire=replace(params.questionnaire, title="?")),
        replace(params, mechanism=replace(params.mechanism, epsilon=0.5), delta=0.25),
        replace(params, minimum=params.minimum + 1),
        replace(params, delta=0.5),
        replace(params, keys=replace(KEYS, encryption_key=bytes(32))),
        replace(params, keys=replace(KEYS, aggregator_commitment=bytes(32))),
        replace(params, k=4),
        replace(params, t=3),
        replace(params, attempts=2),
        replace(params, phase_seconds=(1, 2, 3)),
        replace(params, population="p"),
        replace(params, topology=SERVERS),
    ]
    assert len({published.digest for published in (params, *others)}) == len(others) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"version": 1},
        {"n_max": 101},
        {"phi": 0},
        {"minimum": 3},
        {"mechanism": "nothing"},
        {"settings": {}},
        {"topology": "bus"},
        {"relation": "zero-out"},
        {"epsilon": "1"},
        {"epsilon": 1},
        {"keys": {}},
        {"keys": {"s1": "00"}},
        {"survey": "00"},
        {"survey": 5},
        {"items": ["a", "a"]},
        {"items": 5},
        {"attempts": 0},
        {"phase_seconds": [1, 2]},
        {"phase_seconds": 3},
        {"k": True},
    ],
)
def test_parameters_that_do_not_follow_are_refused(change) -> None:
    params = proposed(MECHANISMS[0])
    with pytest.raises(FaircountError):
        SurveyParameters.parse(changed(params, **change))


@pytest.mark.parametrize("name", ["q", "h", "D", "p", "tables", "scale", "allocation"])
def test_derived_numbers_are_computed_not_believed(name) -> None:
    params = proposed(MECHANISMS[0])
    derived = {**json.loads(params.published)["derived"], name: "1"}
    with pytest.raises(MalformedError, match="do not follow"):
        SurveyParameters.parse(changed(params, derived=derived))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"survey":{}}'])
def test_other_bytes_are_refused(data) -> None:
    with pytest.raises(MalformedError):
        SurveyParameters.parse(data)


def test_noise_tables_are_bound_by_their_hash() -> None:
    one, other = (
        Laplace(items=2, users=50, epsilon=1.0).noise_tables,
        Laplace(items=2, users=51, epsilon=1.0).noise_tables,
    )
    assert table_digest(one) != table_digest(other)
    assert table_digest(DPDS(items=2, users=50, p=0.5).noise_tables) == bytes(32)


def test_refused_proposals_say_why() -> None:
    laplace = MECHANISMS[0]
    with pytest.raises(ParameterError, match="give epsilon"):
        propose(MECHANISMS[3], KEYS, survey=ID, topology=SERVERS)
    with pytest.raises(RefusedError, match="minimum must be at least"):
        proposed(laplace, minimum=40)
    with pytest.raises(RefusedError, match="even if all"):
        proposed(laplace, epsilon=0.5, delta=1e-9)
    with pytest.raises(ParameterError, match="no protocol runs"):
        propose(GRR(items=5, users=10, epsilon=1.0), KEYS, survey=ID, topology=SERVERS)
    with pytest.raises(ParameterError, match="two-stage"):
        propose(MECHANISMS[5], KEYS, survey=ID, topology=SERVERS, epsilon=1.0)
    with pytest.raises(ParameterError, match="16 bytes"):
        propose(laplace, KEYS, survey=b"", topology=SERVERS)
    with pytest.raises(ParameterError, match="32 bytes"):
        Keys(b"", b"", b"")
    with pytest.raises(ParameterError, match="replace-one"):
        proposed(laplace, relation=Relation.ZERO_OUT)
    with pytest.raises(ParameterError, match="no roster"):
        replace(proposed(MECHANISMS[1], EXPLICIT), topology=SERVERS)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_the_minimum_is_the_smallest_set_that_keeps_the_promise(mechanism) -> None:
    params = proposed(mechanism)
    runs, least = (
        params.mechanism,
        minimum_responses(params.mechanism, params.epsilon, params.delta),
    )
    assert keeps_promise(runs, least, params.epsilon, params.delta)
    assert not keeps_promise(runs, least - 1, params.epsilon, params.delta)
    assert keeps_promise(runs, runs.n, params.epsilon, params.delta)
    assert least <= params.minimum == runs.n - 20


def test_laplace_needs_exactly_who_it_expects_to_stay() -> None:
    params = proposed(MECHANISMS[0])
    assert minimum_responses(params.mechanism, params.epsilon, params.delta) == 80


def test_decoys_of_servers_are_the_same_for_everybody() -> None:
    """c = ceil(D0 / (minimum - phi)) coins each: without phi of the minimum set, still at least D0."""
    mechanism = MECHANISMS[1]
    alike = mechanism.with_equal_noise()
    assert set(alike.allocation.tolist()) == {2}
    left = 2 * (80 - 1)
    assert decoys_delta(left, 1.0) <= 1e-6
    assert remaining_guarantee(alike, 80, 1.0).delta == decoys_delta(left, 1.0)


def test_decoys_of_peers_count_the_coins_that_went_in() -> None:
    mechanism = MECHANISMS[1]
    lucky, unlucky = tuple(range(80)), tuple(range(20, 100))
    assert mechanism.coins_of(np.array(lucky)) > mechanism.coins_of(np.array(unlucky))
    assert (
        remaining_guarantee(mechanism, 80, 1.0, lucky).delta
        < remaining_guarantee(mechanism, 80, 1.0, unlucky).delta
    )
    assert remaining_guarantee(mechanism, 80, 1.0) == remaining_guarantee(
        mechanism, 80, 1.0, unlucky
    )


def test_sampling_loses_the_missing_and_the_insiders_from_its_floor() -> None:
    mechanism = MECHANISMS[3]
    left = remaining_guarantee(mechanism, 580, 1.0)
    direct = replace(mechanism, floor=100 - 20 - 1, dropouts=0, insiders=0)
    assert left.delta == direct.guarantee(epsilon=1.0).delta


HOSTILE = [
    {"users": 1 << 31, "share": "printed", "epsilon": 400.0},  # a shift of 2^37 grid steps
    {
        "users": 1 << 31,
        "scale": 1000,
        "calibration": "classical",
    },  # a sum whose distribution has 10^6 points, 31 times
    {"users": 1 << 31, "epsilon": 0.001},
    {"users": 2, "insiders": 0, "epsilon": 0.001, "delta": 0.5, "scale": 1000},  # the largest table
]


READS_FILES = """
import resource, sys
from faircount.core.errors import FaircountError
from faircount.protocol import SurveyParameters

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = peak()
for line in sys.stdin:
    try:
        SurveyParameters.parse(line.encode().strip())
    except FaircountError:
        print(peak() - before)
"""


def hostile(settings) -> bytes:
    mechanism = replace(MECHANISMS[2], **{"dropouts": 0, **settings})
    plain = {
        "settings": own_settings(mechanism),
        "n_max": mechanism.n,
        "phi": mechanism.insiders,
        "minimum": 2,
    }
    return changed(proposed(MECHANISMS[2]), **plain)


def test_a_small_file_of_dpdg_does_not_fill_the_memory() -> None:
    """1 KB of parameters once took 40 seconds and 517 MB. All are refused, by a process that does nothing else."""
    files = b"\n".join(hostile(file) for file in HOSTILE)
    done = subprocess.run(
        [sys.executable, "-c", READS_FILES], input=files, capture_output=True, check=True
    )
    grown = [int(bytes_) for bytes_ in done.stdout.split()]
    assert len(grown) == len(HOSTILE)
    assert max(grown) < 100e6


def test_a_real_number_beyond_floating_point_is_malformed() -> None:
    honest = proposed(MECHANISMS[2])
    huge = "1" + "0" * 399
    with pytest.raises(MalformedError, match="larger than floating point"):
        SurveyParameters.parse(changed(honest, epsilon=huge))
    settings = {**json.loads(honest.published)["settings"], "epsilon": huge}
    with pytest.raises(MalformedError, match="larger than floating point"):
        SurveyParameters.parse(changed(honest, settings=settings))

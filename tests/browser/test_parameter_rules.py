"""The browser's client refuses the parameters that the Python client refuses, and no others.

A participant relies on these rules: parameters that only one client accepts would promise something
that the other has found not to hold. Parameters are mutated at random places and judged by both.
"""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import faircount
from faircount.accounting.levels import Levels
from faircount.core.entropy import SeededStream
from faircount.core.errors import FaircountError, MalformedError, ParameterError
from faircount.core.questions import (
    Branch,
    MostOf,
    Number,
    OneOf,
    Questionnaire,
    YesNo,
)
from faircount.core.questions.translations import Translation, texts_of
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.joint_noise.radius import MAX_TABLE_BITS
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SERVERS, SurveyParameters
from faircount.protocol.simulator import set_up
from faircount.protocol.wire import canonical_json as canonical

HERE = Path(__file__).parent
ITEMS = ("tea", "coffee", "water")
QUESTIONS = (
    OneOf(text="Drink?", items=ITEMS, skip=True),
    Number(text="Cups?", low=Fraction(0), high=Fraction(5), only_if=Branch(0, (0, 1))),
    MostOf(text="With?", items=("milk", "sugar", "lemon"), most=2),
    YesNo(text="Again?"),
)
GERMAN = Translation("de", "", tuple(texts_of(question) for question in QUESTIONS))
SHEET = Questionnaire(QUESTIONS, "Drinks", "en", (GERMAN,))
TOGETHER = split_epsilon(1.0, [[0, 1, 2, 3]])
APART = split_epsilon(1.0, [[2, 0], [3, 1]])
MUTATIONS = 3000
REPLACEMENTS = [
    0, 1, 2, 3, -1, 7, 64, 100, 1 << 16, (1 << 16) + 1, 1 << 31, (1 << 31) + 1, (1 << 53) - 1,
    None, True, False, [], {}, [1], ["a", "b"], "", "0", "1", "-1", "x", "servers", "masked",
    "alike", "first more", "dpds", "laplace", "\u202e", "00" * 32, "00" * 16,
    *(str(1 << bits) for bits in (61, 127, 128, 200)),
]  # fmt: skip


def surveys() -> list[Any]:
    """Published parameters of every mechanism that the page supports, as plain values."""
    mechanisms = [
        DPDS(items=ITEMS, users=100, epsilon=1.0, p=0.25, floor=20),
        DPDS(items=("a", "b"), users=60, epsilon=1.0, p=0.25, floor=20),
        Laplace(items=ITEMS, users=10, epsilon=1.0),
        Decoys(items=ITEMS, users=12, epsilon=1.0, delta=1e-3),
        ServerLaplace(items=ITEMS, users=10, epsilon=1.0),
        ServerCoins(items=ITEMS, users=10, epsilon=1.0, delta=1e-6),
        PlacedCoins(items=ITEMS, users=10, epsilon=1.0, coins=8, dropouts=1),
        ServerSheets(questionnaire=SHEET, groups=TOGETHER, epsilon=1.0, users=20),
        ServerSheets(questionnaire=SHEET, groups=APART, epsilon=1.0, users=20),
        ServerLevels(
            questionnaire=Questionnaire((QUESTIONS[0], QUESTIONS[3])),
            groups=split_epsilon(0.25, [[1], [0]]),
            levels=Levels.of({"very strong": 0.25, "strong": 0.5, "normal": 1.0}),
            epsilon=1.0,
            users=20,
        ),
    ]
    entropy = SeededStream(1)
    made = (set_up(mechanism, SERVERS, entropy).params for mechanism in mechanisms)
    return [json.loads(params.published) for params in made]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    keys = range(len(value)) if isinstance(value, list) else value
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def mutate(rng: random.Random, survey: Any) -> Any:
    """A copy in which one or two places hold something else."""
    changed = json.loads(json.dumps(survey))
    for _ in range(rng.choice((1, 1, 2))):
        container, key = rng.choice(list(places(changed)))
        container[key] = mutated_value(rng, container[key])
        if rng.random() < 0.1:
            del container[key]
    return changed


def mutated_value(rng: random.Random, value: Any) -> Any:
    """Another value: close to the old one or of another kind."""
    is_close = rng.random() < 0.5
    if is_close and type(value) is int:
        return value + rng.choice((-2, -1, 1, 2, 10))
    if is_close and isinstance(value, str) and value.isdigit():
        return str(max(0, int(value) + rng.choice((-1, 1, -(1 << 100), 1 << 100))))
    if is_close and isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + rng.choice("0123456789abcdef") + value[at + 1 :]
    return rng.choice(REPLACEMENTS)


def is_accepted_by_python(published: str) -> bool:
    try:
        SurveyParameters.parse(published.encode())
    except FaircountError:
        return False
    return True


def accepted_by_javascript(published: list[str]) -> list[bool]:
    """The verdicts; anything but a `Refusal` fails in Node."""
    done = subprocess.run(
        ["node", str(HERE / "judge_parameters.mjs")],
        input=json.dumps(published),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_both_clients_judge_mutated_parameters_alike() -> None:
    rng = random.Random(28)  # noqa: S311 - which mutations are tried is no secret
    originals = surveys()
    texts = [canonical.encode(survey).decode() for survey in originals]
    assert accepted_by_javascript(texts) == [True] * len(texts)
    while len(texts) < MUTATIONS:
        try:
            texts.append(canonical.encode(mutate(rng, rng.choice(originals))).decode())
        except MalformedError:
            continue  # no published form at all
    python = [is_accepted_by_python(text) for text in texts]
    javascript = accepted_by_javascript(texts)
    differences = [
        text for text, one, other in zip(texts, python, javascript, strict=True) if one != other
    ]
    assert differences == []
    assert 50 < sum(python) < MUTATIONS / 2  # both verdicts were met often


def test_a_floor_that_cannot_be_is_refused_at_once() -> None:
    """It used to keep the page busy for 20 s, with an array of 2^31 numbers."""
    survey = surveys()[0]
    survey["settings"]["floor"] = 1 << 31
    survey["n_max"] = 1 << 31
    assert accepted_by_javascript([canonical.encode(survey).decode()]) == [False]


def test_a_promise_below_what_the_groups_spend_is_refused_by_both() -> None:
    """Python used to accept it with a large delta."""
    published = []
    for survey in surveys()[-2:]:  # sheets, and sheets with levels
        survey["epsilon"] = canonical.format_real(0.9)
        survey["delta"] = canonical.format_real(0.5)
        published.append(canonical.encode(survey).decode())
    assert [is_accepted_by_python(text) for text in published] == [False, False]
    assert accepted_by_javascript(published) == [False, False]


def test_both_clients_compute_tables_up_to_the_same_size() -> None:
    """A longer one would keep a phone busy for minutes; mutated parameters rarely have one."""
    script = Path(faircount.__file__).parent / "web" / "client" / "radius.js"
    (power,) = re.findall(r"^const MAX_TABLE_BITS = 2 \*\* (\d+);", script.read_text(), re.M)
    assert 2 ** int(power) == MAX_TABLE_BITS


def test_a_lone_number_has_the_largest_epsilon_of_all_groups() -> None:
    """Python looked at the epsilon of a step alone, a half of 80, and the page refused 80."""
    number = Questionnaire((Number(text="Cups?", low=Fraction(0), high=Fraction(2)),))
    terms = {"questionnaire": number, "users": 10}
    with pytest.raises(ParameterError, match=r"must lie between 0\.001 and 50, not 80"):
        ServerSheets(groups=split_epsilon(80.0, [[0]]), epsilon=80.0, **terms)
    largest = ServerSheets(groups=split_epsilon(50.0, [[0]]), epsilon=50.0, **terms)
    published = set_up(largest, SERVERS, SeededStream(1)).params.published.decode()
    assert accepted_by_javascript([published]) == [True]

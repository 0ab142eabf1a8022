"""Every check of the browser's client refuses its attack: one by one, in Node.

`tests/mutants.py` removes the checks from a copy of the scripts; so the scripts that are installed
are attacked here, and not those of this folder.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import faircount
from faircount.accounting.levels import Levels
from faircount.core.entropy import SeededStream
from faircount.core.questions import MostOf, OneOf, Questionnaire, YesNo
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SERVERS
from faircount.protocol.simulator import set_up
from faircount.protocol.survey.parameters import table_digest
from faircount.protocol.wire import canonical_json as canonical
from security_checks import page

SCRIPTS = Path(faircount.__file__).parent / "web"
ATTACKS = Path(__file__).parent / "script_checks.mjs"


def succeeds(attack: str, **given: Any) -> bool:
    """Whether the client falls for an attack."""
    done = subprocess.run(
        ["node", str(ATTACKS), SCRIPTS.as_uri(), attack],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return bool(json.loads(done.stdout))


def published(mechanism: Any) -> dict[str, Any]:
    params = set_up(mechanism, SERVERS, SeededStream(4)).params
    plain: dict[str, Any] = json.loads(params.published)
    return plain


def encode(plain: dict[str, Any]) -> str:
    return canonical.encode(plain).decode()


NOISE_OF_SERVERS = published(ServerLaplace(items=("a", "b", "c"), users=10, epsilon=1.0))
NOISE_OF_CLIENTS = published(Laplace(items=("a", "b", "c"), users=10, epsilon=1.0))
SHEET = ServerSheets(
    questionnaire=Questionnaire((YesNo(text="Tea?"), YesNo(text="Milk?"))),
    groups=split_epsilon(1.0, [[0], [1]]),
    epsilon=1.0,
    users=10,
)
NOISE_OF_SHEETS = published(SHEET)
LEVELED = published(
    ServerLevels(
        questionnaire=Questionnaire((OneOf(text="Tea?", items=("a", "b", "c")),)),
        groups=split_epsilon(0.5, [[0]]),
        levels=Levels.of({"strong": 0.5, "middle": 1.0, "weak": 1.5}),
        epsilon=1.5,
        users=10,
    )
)


def changed(plain: dict[str, Any], inside: str = "", **values: Any) -> str:
    """Published parameters with other values, at the top or in one of their objects."""
    if not inside:
        return encode({**plain, **values})
    return encode({**plain, inside: {**plain[inside], **values}})


def without_the_second_group() -> str:
    """Everything follows from the first group alone, and the second question gets no noise."""
    tables, _, _ = SHEET.noise_tables.partition("group 1\n")
    settings = NOISE_OF_SHEETS["settings"]
    first = {**settings, "groups": settings["groups"][:1]}
    derived = {**NOISE_OF_SHEETS["derived"], "tables": table_digest(tables).hex()}
    return changed(NOISE_OF_SHEETS, settings=first, derived=derived)


def with_a_stronger_level() -> str:
    """All levels promise 0.25 less, and the noise, which the differences decide, stays the same."""
    lower = 1 << 126
    levels = [
        {**level, "epsilon": str(int(level["epsilon"]) - lower)}
        for level in LEVELED["settings"]["levels"]
    ]
    weakest = levels[-1]["epsilon"]
    settings = {**LEVELED["settings"], "levels": levels, "epsilon": weakest}
    return changed(LEVELED, settings=settings, epsilon=weakest)


def with_names_of_stronger_levels() -> str:
    """The weakest level has the name of the strongest, and the strongest that of a weak one."""
    levels = LEVELED["settings"]["levels"]
    names = ["normal", "strong", "very strong"][3 - len(levels) :]
    named = [{**level, "name": name} for level, name in zip(levels, names, strict=True)]
    return changed(LEVELED, "settings", levels=named)


def as_a_scale() -> str:
    """The only question as one of another kind, which has the same noise."""
    (question,) = LEVELED["questions"]
    return changed(LEVELED, questions=[{**question, "kind": "scale", "open": "counts"}])


def with_noise_that_nobody_can_draw() -> str:
    """All values follow from each other; only the tables of a draw would need gigabytes."""
    items = tuple(str(item) for item in range(40))
    questionnaire = Questionnaire((MostOf(text="Which?", items=items, most=20),))
    groups = split_epsilon(0.1, [[0]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faircount.mechanisms.joint_noise.balls.MAX_ENTRIES", 1 << 40)
        return encode(
            published(
                ServerSheets(questionnaire=questionnaire, groups=groups, epsilon=0.1, users=10)
            )
        )


def with_items(plain: dict[str, Any], items: list[str]) -> str:
    (question,) = plain["questions"]
    return changed(plain, questions=[{**question, "items": items}])


def with_moved_translation(plain: dict[str, Any]) -> str:
    """The same answers in another language, in another order."""
    (question,) = plain["questions"]
    moved = {"text": question["text"], "items": question["items"][::-1]}
    translations = {"de": {"title": "", "questions": [moved]}}
    return changed(plain, language="en", translations=translations)


def smaller(epsilon: str) -> str:
    return canonical.format_real(canonical.parse_real(epsilon) * 0.999)


def test_what_is_true_is_believed() -> None:
    assert succeeds("nothing")
    for plain in (NOISE_OF_SERVERS, NOISE_OF_CLIENTS, NOISE_OF_SHEETS, LEVELED):
        assert succeeds("parameters", published=encode(plain))
        assert succeeds("page-invited-parameters", published=encode(plain), weaker=encode(plain))


@pytest.mark.parametrize("attack", page.SIGNED)
def test_a_false_message_is_not_believed(attack: str) -> None:
    assert not succeeds(attack)


def test_other_parameters_than_the_invitations_are_not_believed() -> None:
    weaker = changed(NOISE_OF_SERVERS, title="another title")
    assert succeeds("parameters", published=weaker)
    assert not succeeds(
        "page-invited-parameters", published=encode(NOISE_OF_SERVERS), weaker=weaker
    )


WEAKER: dict[str, str | Callable[[], str]] = {
    "page-parameter-names": changed(NOISE_OF_SERVERS, spare=1),
    "page-insiders": changed(NOISE_OF_SERVERS, phi=NOISE_OF_SERVERS["phi"] + 1),
    "page-minimum": changed(NOISE_OF_SERVERS, minimum=1),
    "page-distinct-items": with_items(NOISE_OF_SERVERS, ["a", "a", "b"]),
    "page-moved-translation": with_moved_translation(NOISE_OF_SERVERS),
    "page-question-groups": without_the_second_group(),
    "page-group-epsilon": changed(
        NOISE_OF_SHEETS, "settings", epsilon=smaller(NOISE_OF_SHEETS["epsilon"])
    ),
    "page-level-kinds": as_a_scale(),
    "page-base-epsilon": with_a_stronger_level(),
    "page-weakest-level": changed(LEVELED, "settings", epsilon=smaller(LEVELED["epsilon"])),
    "page-usual-names": with_names_of_stronger_levels(),
    "page-level-coins": changed(LEVELED, "derived", coins=["0", str(1 << 127), str(1 << 128)]),
    "page-drawable-noise": with_noise_that_nobody_can_draw,  # a second: when the test runs
    "page-key-size": changed(NOISE_OF_SERVERS, "keys", coordinator="00" * 31),
    "page-derived-names": changed(NOISE_OF_CLIENTS, "derived", proof=1),
    "page-promise": changed(NOISE_OF_SERVERS, epsilon=smaller(NOISE_OF_SERVERS["epsilon"])),
    "page-derived": changed(NOISE_OF_CLIENTS, "derived", tables="00" * 32),
    "page-modulus": changed(NOISE_OF_CLIENTS, "derived", q="1009"),
    "page-proof-form": changed(NOISE_OF_SERVERS, "derived", proof={"degree": 1}),
    "page-commitments": changed(
        NOISE_OF_SERVERS,
        "keys",
        coordinator_commitment=NOISE_OF_SERVERS["keys"]["aggregator_commitment"],
    ),
    "page-canonical": encode(NOISE_OF_SERVERS).replace('"minimum":', '"minimum": '),
}
"""Parameters that promise too much, by the check that refuses them."""


def test_every_check_of_parameters_is_attacked() -> None:
    assert set(WEAKER) == set(page.PARAMETERS)


@pytest.mark.parametrize("slug", page.PARAMETERS)
def test_parameters_that_promise_too_much_are_refused(slug: str) -> None:
    weaker = WEAKER[slug]
    text = weaker if isinstance(weaker, str) else weaker()
    assert not succeeds("parameters", published=text)

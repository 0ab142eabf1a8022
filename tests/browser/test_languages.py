"""Sentences of both pages: the same in every language, none missing, none idle."""

import re
from pathlib import Path

import pytest

from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.wire.messages import Reason

SOURCES = Path(__file__).parents[2] / "src" / "faircount"
PAGE, DASHBOARD = SOURCES / "web" / "page", SOURCES / "dashboard" / "web"


def sentences(folder: Path) -> dict[str, dict[str, str]]:
    """By language, then by name."""
    text = (folder / "strings.js").read_text(encoding="utf-8")
    parts = re.findall(r"^const (\w+) = \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    return {name: dict(re.findall(r'^  (\w+): "(.*)",$', body, re.MULTILINE)) for name, body in parts}


def code_of(*folders: Path) -> str:
    files = (each for folder in folders for each in folder.glob("*.js") if each.name != "strings.js")
    return "".join(each.read_text(encoding="utf-8") for each in files)


@pytest.mark.parametrize("folder", [PAGE, DASHBOARD], ids=["page", "dashboard"])
def test_every_language_says_everything(folder) -> None:
    first, *others = (
        [(name, sorted(re.findall(r"\{\w+\}", words))) for name, words in each.items()]
        for each in sentences(folder).values()
    )
    assert len(first) > 80
    assert others == [first]
    german = sentences(folder)["de"]
    same = {name for name, words in sentences(folder)["en"].items() if words == german[name] and " " in words}
    assert all(not re.search(r"[a-z]{3}", re.sub(r"\{\w+\}", "", german[name])) for name in same)


def test_no_sentence_of_the_page_is_missing_or_idle() -> None:
    defined = set(sentences(PAGE)["en"]) - {"language", "direction"}
    stages = ("waiting", "sent", "refused", "leaving", "withdrawn", "counted", "uncounted", "ended")
    made = {f"{stage}{part}" for stage in stages for part in ("Title", "Words")}
    used = set(re.findall(r'"(\w+)"', code_of(PAGE))) | made
    assert {name for name in defined if name not in used and not name.startswith("refusal_")} == set()
    codes = "".join(each.read_text(encoding="utf-8") for each in PAGE.parent.glob("*/*.js"))
    thrown = set(re.findall(r'(?:Refusal\(|, )"(\w+)", ["`]', codes)) & {name[8:] for name in defined}
    assert thrown >= {"digest", "promise", "derived", "malformed", "code", "mistyped", "browser", "insecure", "storage"}


def test_no_sentence_of_the_dashboard_is_missing_or_idle() -> None:
    defined, code = set(sentences(DASHBOARD)["en"]) - {"language", "direction"}, code_of(DASHBOARD, PAGE)
    fields = set(re.findall(r"^    (\w+): \{", code, re.MULTILINE)) | {
        "owner",
        "purpose",
        "contact",
        "population",
        "name",
    }
    made = {f"state_{each}" for each in State} | {f"charge_{each}" for each in Status}
    made |= {f"reason_{each.name.lower()}" for each in Reason} | {
        f"{each}{end}" for each in ("close", "abort") for end in ("Sure", "Yes")
    }
    made |= {f"waits_{each}" for each in ("nobody", "owner", "s1", "s2")} | {"s2_published", "s2_aborted"}
    assert made <= defined
    labels = {name for name in defined if name.startswith(("field_", "hint_"))}
    assert {name.partition("_")[2] for name in labels} <= fields
    used = set(re.findall(r'"(\w+)"', code)) | set(re.findall(r"^  (\w+): \{", code, re.MULTILINE))
    assert defined - made - labels - used == set()

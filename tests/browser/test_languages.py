"""Sentences of both pages: the same in every language, none missing, none idle; and what is left in English."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircount.dashboard.said import CODES
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.wire.messages import Reason
from faircount.service.owner.printed_words import LANGUAGES

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
    made = {f"{stage}{part}" for stage in stages for part in ("Title", "Words")} | {"ending_owner", "ending_tooFew"}
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
    assert {name.partition("_")[2] for name in defined if name.startswith(("problem_", "about_"))} == codes()
    made = {f"state_{each}" for each in State} | {f"charge_{each}" for each in Status}
    made |= {f"reason_{each.name.lower()}" for each in Reason} | {
        f"{each}{end}" for each in ("close", "abort") for end in ("Sure", "Yes")
    }
    made |= {f"waits_{each}" for each in ("nobody", "owner", "s1", "s2")} | {"s2_published", "s2_aborted"}
    assert made <= defined
    made |= CODES | {f"{kind}_{code}" for kind in ("problem", "about") for code in codes()} & defined
    labels = {name for name in defined if name.startswith(("field_", "hint_"))}
    assert {name.partition("_")[2] for name in labels} <= fields
    used = set(re.findall(r'"(\w+)"', code)) | set(re.findall(r"^  (\w+): \{", code, re.MULTILINE))
    assert defined - made - labels - used == set()


# What the dashboard's program refuses comes from these files.
REFUSING = [*SOURCES.glob("dashboard/*.py"), *SOURCES.glob("service/owner/*.py"), SOURCES / "service" / "calls.py"]


def codes() -> set[str]:
    """Every code of an error that the dashboard can show."""
    text = "".join(each.read_text(encoding="utf-8") for each in REFUSING)
    return set(re.findall(r'\.coded\(\s*"(\w+)"', text)) | {"not_inside", "not_share", "notRunning"}


def words_of(node: ast.expr) -> str:
    """A text of the source, with 7 for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(each) for each in node.values)
    if isinstance(node, ast.BinOp):
        return words_of(node.left) + words_of(node.right)
    return str(node.value) if isinstance(node, ast.Constant) else "7"


def test_the_refusals_that_are_left_in_english_are_these() -> None:
    """They are about files that somebody has changed, calls that the page does not make, and a wrong installation."""
    trees = [ast.parse(each.read_text(encoding="utf-8")) for each in REFUSING]
    raised = [each.exc for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Raise)]
    plain = [each for each in raised if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.args]
    left = {words_of(each.args[0]) for each in plain}
    assert left == LEFT_IN_ENGLISH


LEFT_IN_ENGLISH = {
    "7 has invitations for other people, which may be on their way: make another survey for these",
    "7 is damaged: look into invitations.csv, then remove it",
    "7 is no file of certificates: it holds them as PEM",
    '7 must be JSON: {"s1": {"address": ..., "token": ...}, "s2": ...}',
    "7 was changed: restore it from a copy",
    "QR codes need more: pip install 'faircount[service]'",
    "a call gives one JSON object, or nothing",
    "a result is kept as 7",
    "a survey can be told to invite, 7",
    "invitations are printed in one of 7, not 7",
    "mechanism must be 7 or one of 7, not 7",
    "nobody of this name is invited: give the person as invitations.csv has it",
    "owner.json is damaged: restore it from a copy",
    "owner.json was written by another version of faircount: use that one",
    "surveys over a network need more: pip install 'faircount[service]'",
    "the server's answer is not JSON: is this the address of a faircount server?",
    "there are 7 invitations, counted from 0",
}

# Reasons for which both servers end a survey, and which the pages show as they were signed, marked as English.
SIGNED_IN_ENGLISH = {
    "7",
    "S1 revealed another value than the one that it had committed to",
    "S1 was restored and lost who reports which item",
    "S1 was taken back to before the one sum that it has sent",
    "S2 does not hold the value that it has committed to",
    "S2 does not know what it had signed",
    "S2 held another election than S1 asked for",
    "S2 named a set that is none of the claim",
    "S2 named one set and signed the root of another",
    "S2 named a set to add up before it had come so far",
    "S2 named two sets for one claim",
    "S2 named two sets to add up",
    "S2 names another claim than the one that S1 has added up",
    "S2 names another claim than the one that it gave a receipt for",
    "S2 refused: 7",
    "S2 revealed another value than the one that it had committed to",
    "a blob of the claimed batch was damaged or lost",
    "a dropped user's key could not be recovered, and there is no further attempt",
    "a vector was damaged or lost after the claim",
    "another election was announced before S1 was restored",
    "blobs of the claimed batch were lost in a restore",
    "corrupt",
    "elected users were missing in each of 7 attempts",
    "no invitation vouches for anybody who enrolled",
    "nobody is left who could take over a slot: elect phi + 1 helpers only",
    "somebody was missing in each of 7 attempts: try `masked`",
    "sums were damaged or lost after the claim",
}


def reasons() -> Iterator[str]:
    """Every reason in the source of the protocol."""
    for file in (SOURCES / "protocol").glob("**/*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
            if name in ("give_up", "abort", "end_alone") and len(call.args) > 1:
                yield words_of(call.args[1])


CLASSIFY = """import { ending } from "%s";
const all = JSON.parse(process.argv[1]);
console.log(JSON.stringify(all.map((each) => [each, ending(each)])));"""


def test_the_endings_that_are_left_in_english_are_these() -> None:
    program = CLASSIFY % (PAGE / "endings.js").as_uri()
    owners = ["S1: owner: ", "S1: owner: its owner has ended it", "S1: owner: abgesagt"]
    command = ["node", "--input-type=module", "-e", program, json.dumps([*reasons(), *owners])]
    found = dict(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    assert [found.pop(each) for each in owners] == [
        {"name": "ending_owner", "values": {}},
        {"name": "ending_owner", "values": {}},
        {"words": "abgesagt", "english": False},
    ]
    assert found["7 users answered, 7 are needed"]["values"] == {"users": "7", "minimum": "7"}
    names = {said["name"] for said in found.values() if "name" in said} | {"ending_owner"}
    for folder in (PAGE, DASHBOARD):
        assert {name for name in sentences(folder)["en"] if name.startswith("ending_")} == names
    assert {said["words"] for said in found.values() if said.get("english")} == SIGNED_IN_ENGLISH


def test_invitations_are_printed_in_every_language_of_the_pages() -> None:
    assert list(LANGUAGES) == list(sentences(PAGE)) == list(sentences(DASHBOARD))

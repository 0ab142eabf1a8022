"""The texts of both pages: complete in every language, none missing and none unused."""

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faircount.accounting.conditions import ConditionCode
from faircount.accounting.guarantee import AdversaryCode, Void
from faircount.estimation.intervals import Intervals
from faircount.estimation.presentation import decimals_for
from faircount.owner.invitation_texts import LANGUAGES
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import NUMBERS, EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.wire.messages import Reason

SOURCES = Path(__file__).parents[2] / "src" / "faircount"
PAGE, DASHBOARD = SOURCES / "web" / "page", SOURCES / "dashboard" / "web"
GUARANTEE_SENTENCES = {
    "condition_always",
    *(f"condition_{code}" for code in ConditionCode),
    *(f"against_{code}" for code in AdversaryCode),
    *(f"void_{code}" for code in Void),
}
ENDING_SENTENCES = {"ending_unknown", *(f"ending_{code.name.lower()}" for code in EndCode)}


CONFIRMED = ("close", "abort", "mailInvite", "mailRemind")


def run_module(script: str) -> Any:
    """What a JavaScript module prints, as JSON."""
    command = ["node", "--input-type=module", "-e", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@cache
def sentences(folder: Path) -> dict[str, dict[str, str]]:
    """By language, then by name."""
    module = (folder / "strings.js").as_uri()
    return run_module(
        f'import {{ LANGUAGES }} from "{module}"; console.log(JSON.stringify(LANGUAGES));'
    )


def code_of(*folders: Path) -> str:
    files = (
        script
        for folder in folders
        for script in folder.glob("*.js")
        if script.name != "strings.js"
    )
    return "".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("folder", [PAGE, DASHBOARD], ids=["page", "dashboard"])
def test_every_language_says_everything(folder) -> None:
    first, *others = (
        [(name, sorted(re.findall(r"\{\w+\}", words))) for name, words in texts.items()]
        for texts in sentences(folder).values()
    )
    assert len(first) > 80
    assert others == [first]
    german = sentences(folder)["de"]
    same = {
        name
        for name, words in sentences(folder)["en"].items()
        if words == german[name] and " " in words
    }
    assert all(not re.search(r"[a-z]{3}", re.sub(r"\{\w+\}", "", german[name])) for name in same)


def test_sentences_for_several_questions_stand_in_for_others_in_every_language() -> None:
    module = (PAGE / "several_strings.js").as_uri()
    several = run_module(
        f'import {{ SEVERAL }} from "{module}"; console.log(JSON.stringify(SEVERAL));'
    )
    assert list(several) == list(sentences(PAGE))
    assert list(several["en"]) == list(several["de"])
    for language, texts in several.items():
        for name, words in texts.items():
            usual = sentences(PAGE)[language][name]
            holes = [sorted(re.findall(r"\{\w+\}", text)) for text in (words, usual)]
            assert holes[0] == holes[1], name
            assert words != usual or name in ("withdrawYes", "withdrawNo"), name


def test_no_sentence_of_the_page_is_missing_or_idle() -> None:
    defined = set(sentences(PAGE)["en"]) - {"language", "direction"}
    stages = (
        "waiting",
        "sent",
        "refused",
        "withdrawing",
        "withdrawn",
        "counted",
        "uncounted",
        "ended",
    )
    made = {f"{stage}{part}" for stage in stages for part in ("Title", "Text")} | ENDING_SENTENCES
    made |= {f"level_{name}" for name in ("very_strong", "strong", "normal")}
    used = set(re.findall(r'"(\w+)"', code_of(PAGE))) | made
    assert {
        name for name in defined if name not in used and not name.startswith("refusal_")
    } == set()
    codes = "".join(script.read_text(encoding="utf-8") for script in PAGE.parent.glob("*/*.js"))
    thrown = set(re.findall(r'(?:Refusal\(|, )"(\w+)", ["`]', codes)) & {
        name[8:] for name in defined
    }
    assert thrown >= {
        "digest",
        "promise",
        "derived",
        "malformed",
        "code",
        "mistyped",
        "browser",
        "insecure",
        "storage",
    }


# Kinds of questions in the form, and what can be done with one of several.
KINDS = ("one", "yes", "any", "most", "scale", "mean", "number", "bands", "table")
MOVES = ("up", "down", "remove")


def test_no_sentence_of_the_dashboard_is_missing_or_idle() -> None:
    defined, code = (
        set(sentences(DASHBOARD)["en"]) - {"language", "direction"},
        code_of(DASHBOARD, PAGE),
    )
    fields = set(re.findall(r"^    (\w+): \{", code, re.MULTILINE)) | {
        "owner",
        "purpose",
        "contact",
        "population",
        "name",
        "open_for",
        # Of a question, where the kind decides which of them there are.
        *("kind", "skip", "branch", "title", "items", "most", "low", "high", "step", "bands"),
        "rows_text",
    }
    assert {
        name.partition("_")[2] for name in defined if name.startswith(("problem_", "about_"))
    } == codes()
    made = {f"phase_{phase}" for phase in Phase} | {f"charge_{status}" for status in Status}
    made |= {f"reason_{reason.name.lower()}" for reason in Reason} | {
        f"{action}{end}" for action in CONFIRMED for end in ("Sure", "Yes")
    }
    made |= {f"waits_{party}" for party in ("nobody", "owner", "coordinator", "aggregator")} | {
        "aggregator_published",
        "aggregator_aborted",
        "aggregatorAway_people",
        "aggregatorAway_owner",
        "unit_days",
        "unit_hours",
    }
    made |= {f"kind_{kind}" for kind in KINDS}
    made |= {f"protection_{who}" for who in ("one", "levels")} | {"level_name", "level_epsilon"}
    made |= {f"question_{move}" for move in MOVES} | {f"{move}Label" for move in MOVES}
    made |= ENDING_SENTENCES | GUARANTEE_SENTENCES
    assert made <= defined
    made |= {f"{kind}_{code}" for kind in ("problem", "about") for code in codes()} & defined
    remote = {name for name in defined if name.startswith("remote_")}
    assert {name.removeprefix("remote_") for name in remote} <= causes()
    assert coded_causes() <= {name.removeprefix("remote_") for name in remote}
    made |= remote
    labels = {name for name in defined if name.startswith(("field_", "hint_"))}
    assert {name.partition("_")[2] for name in labels} <= fields
    used = set(re.findall(r'"(\w+)"', code)) | set(re.findall(r"^  (\w+): \{", code, re.MULTILINE))
    assert defined - made - labels - used == set()


# The owner's own templates of mails, and pages for other sites, are for the command line and Python.
NOT_ON_THE_DASHBOARD = {"mail_texts", "page_export"}

# What the dashboard's program refuses comes from these files.
REFUSING = [
    *SOURCES.glob("dashboard/*.py"),
    *(path for path in SOURCES.glob("owner/*.py") if path.stem not in NOT_ON_THE_DASHBOARD),
    SOURCES / "client" / "calls.py",
    SOURCES / "planning" / "minimum.py",
    SOURCES / "planning" / "forecast.py",
]

# Functions that make an error with its code, or one that is caught where it is raised.
CODED = {
    *("_too_large", "too_many_invited", "write_error", "ValueError"),
    *("_not_worthwhile", "_only_one_question"),
}

# Their arguments come from Python or the command line, and never from the dashboard.
FOR_PROGRAMS = {
    *("create", "create_survey", "read_questions", "_read_questionnaire", "_reword"),
    "time_to_answer",
    "parse_target_error",
}


def codes() -> set[str]:
    """Every code of an error that the dashboard can show."""
    text = "".join(path.read_text(encoding="utf-8") for path in REFUSING)
    return set(re.findall(r'\.with_code\(\s*"(\w+)"', text)) | {
        "not_inside",
        "notRunning",
        "closing_time_form",
    }


def servers_source() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (SOURCES / "server").rglob("*.py"))


def coded_causes() -> set[str]:
    """Causes that a server names because the kind of the problem does not tell them."""
    return set(re.findall(r'conflict\([^)]*\)\.with_code\(\s*"(\w+)"', servers_source()))


def causes() -> set[str]:
    """Every cause that a server can give for a rejection: a code, or the kind of its problem."""
    kinds = re.findall(r'ProblemError\(\s*\d+,\s*"([\w-]+)"', servers_source())
    return coded_causes() | {kind.replace("-", "_") for kind in kinds}


def test_every_refusal_that_the_dashboard_can_show_has_a_code() -> None:
    trees = [without_python_create(path) for path in REFUSING]
    raised = [node.exc for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    calls = [error for error in raised if isinstance(error, ast.Call)]
    assert len(calls) > 30
    named = [call for call in calls if isinstance(call.func, ast.Name)]
    assert [ast.unparse(call) for call in named if call.func.id not in CODED] == []


def without_python_create(path: Path) -> ast.Module:
    """A module without what is called only by Python programs and the command line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.stem == "creation":
        # `create` here is the function that the dashboard calls, too.
        return _without(tree, FOR_PROGRAMS - {"create"})
    return _without(tree, FOR_PROGRAMS)


def _without(tree: ast.Module, names: set[str]) -> ast.Module:
    for node in [tree, *(part for part in tree.body if isinstance(part, ast.ClassDef))]:
        node.body = [member for member in node.body if getattr(member, "name", "") not in names]
    return tree


ROUNDED = """import { decimalsFor, formatPercent } from "%s";
const widths = [0, 0.9, 0.1, 0.02, 0.019, 0.002, 1e-5, 1e-9];
const shares = [0.03, 0.121, -0.00001, 1].map((share) => formatPercent(share));
console.log(JSON.stringify([widths.map((high) => decimalsFor([{ low: 0, high }])), shares]));
"""


def test_pages_round_percentages_as_files_do() -> None:
    decimals, shares = run_module(ROUNDED % (PAGE / "language.js").as_uri())
    widths = [0, 0.9, 0.1, 0.02, 0.019, 0.002, 1e-5, 1e-9]
    wanted = []
    for high in widths:
        bounds = Intervals(np.zeros(1), np.array([high]), 0.95, "users", False, "exact")
        wanted.append(decimals_for(bounds))
    assert decimals == wanted
    assert shares == ["3.0", "12.1", "0.0", "100.0"]


DUMP = """import { ENDINGS, describeEnding } from "%s";
const few = { code: 2, numbers: [3, 5] };
const unknown = [{ code: 77, numbers: [] }, { code: 2, numbers: [1] }];
console.log(JSON.stringify([ENDINGS, unknown.map(describeEnding), describeEnding(few)]));"""


def test_the_page_reads_the_codes_of_endings_as_python_writes_them() -> None:
    known, unknown, few = run_module(DUMP % (PAGE / "endings.js").as_uri())
    assert known == {
        str(int(code)): [code.name.lower(), *NUMBERS.get(code, ())] for code in EndCode
    }
    assert unknown == [{"code": "unknown", "values": {}}] * 2
    assert few == {"code": "too_few_responses", "values": {"responses": 3, "minimum": 5}}


@pytest.mark.parametrize("folder", [PAGE, DASHBOARD], ids=["page", "dashboard"])
def test_every_ending_has_a_sentence_with_its_numbers(folder) -> None:
    found = {
        name: words for name, words in sentences(folder)["en"].items() if name.startswith("ending_")
    }
    assert set(found) == ENDING_SENTENCES
    for code in EndCode:
        values = set(re.findall(r"\{(\w+)\}", found[f"ending_{code.name.lower()}"]))
        # Participants know the servers by the names of their operators.
        assert values - {"s1", "s2"} == set(NUMBERS.get(code, ()))


def test_invitations_are_printed_in_every_language_of_the_pages() -> None:
    assert list(LANGUAGES) == list(sentences(PAGE)) == list(sentences(DASHBOARD))

"""The owner's dashboard in a real browser: from the form to the result, and what can fail."""

import csv
import io
import re
import shutil
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from quick_python import quick_python

from faircount.core.errors import FaircountError, UnreachableError
from faircount.dashboard.surveys import Surveys
from faircount.owner.advice import SurveyRequirements
from faircount.owner.creation import SurveyDescription, create
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.questions import one_question
from faircount.owner.remote import BothServers

AWAY = {"message": "away", "code": "", "values": {}}


def fill(page: Page, values: dict[str, str]) -> None:
    for label, text in values.items():
        page.get_by_label(label).fill(text)


def saved(page: Page, name: str) -> bytes:
    """The file that a button lets the browser save."""
    with page.expect_download() as saving:
        page.get_by_role("button", name=name, exact=True).click()
    return saving.value.path().read_bytes()


def waits(page: Page, words: str) -> None:
    expect(page.locator(".waits")).to_contain_text(words)


def test_a_survey_from_the_form_to_the_result(trial, owner, owner_page) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    expect(
        page.get_by_label("Epsilon for all")
    ).to_be_hidden()  # asked for where people have a name
    fill(
        page,
        {
            "Question": "What do you drink?",
            "Possible answers": "Tea\nCoffee\nWater",
            "Who is asking": "Tea House",
        },
    )
    fill(
        page,
        {
            "Number of people": "8",
            "Minimum number of responses": "4",
            "Epsilon: how": "40",
            "Short name": "drinks",
        },
    )
    fill(page, {"Name of this group": "guests", "Epsilon for all": "100"})
    expect(page.get_by_text("95\u00a0% error: ±")).to_be_visible()
    expect(page.get_by_text("Mechanism: server-joint.")).to_be_visible()
    expect(page.get_by_text("Every response is proven to be exactly one vote")).to_be_visible()
    expect(page.get_by_text("this is hardly any protection")).to_be_visible()
    page.get_by_role("button", name="Create survey and invitations").click()
    waits(page, "The survey is ready.")
    page.get_by_role("button", name="Open the survey").click()
    waits(page, "People can answer until")
    waits(
        page,
        "The aggregator knows who is invited and is waiting for the coordinator.",
    )
    rows = list(csv.DictReader(io.StringIO(saved(page, "Table of invitations (CSV)").decode())))
    assert saved(page, "Print version with QR codes").count(b"<svg") == len(rows) == 8
    trial.answers([row["link"] for row in rows[:3]], "Coffee")
    expect(page.get_by_text("3 of 8 people have answered")).to_be_visible()
    expect(
        page.get_by_text("At least 4 are needed (the mark on the bar): 1 to go.")
    ).to_be_visible()
    trial.answers([row["link"] for row in rows[3:5]], "Coffee")
    left = list(
        csv.DictReader(io.StringIO(saved(page, "People who have not answered yet (CSV)").decode()))
    )
    assert [row["person"] for row in left] == [row["person"] for row in rows[5:]]
    page.get_by_role("button", name="Close now").click()
    page.get_by_role("button", name="No", exact=True).click()
    assert owner.surveys.one("drinks")["status"]["phase"] == "submitting"
    page.get_by_role("button", name="Close now").click()
    page.get_by_role("button", name="Yes, close it").click()
    waits(page, "The coordinator has been waiting for the aggregator since")
    trial.settle()
    expect(page.get_by_role("row", name=re.compile("^Coffee"))).to_have_text(
        "Coffee100.0\u00a0%100.0 to 100.0\u00a0%100.0\u00a0%"
    )
    expect(
        page.get_by_text("Responses counted: 5, each proven to be exactly one vote. Rejected: 0.")
    ).to_be_visible()
    page.get_by_text("Details of the guarantee").click()
    expect(page.get_by_role("row", name=re.compile("^Planned"))).to_contain_text("401e-6")
    expect(page.get_by_role("row", name=re.compile("^Achieved"))).to_contain_text("40")
    expect(page.get_by_text("Spent: epsilon 40 of 100")).to_be_visible()
    begins = {"CSV": b"number,question", "JSON": b"{", "PNG": b"\x89PNG", "SVG": b"<?xml"}
    assert {
        kind: saved(page, kind).startswith(start) for kind, start in begins.items()
    } == dict.fromkeys(begins, True)
    page.get_by_role("button", name="Your surveys").click()
    expect(page.get_by_role("listitem").filter(has_text="drinks")).to_contain_text(
        "Result published5 of 8 answered"
    )


def test_the_budget_of_a_population_is_drawn_survey_after_survey(owner, owner_page) -> None:
    for name, epsilon in (("spring", "30"), ("autumn", "45")):
        links = owner.creates(
            name, epsilon=epsilon, population="tenants", budget_epsilon="100", budget_delta="1e-3"
        )
        owner.trial.answers(links[:4], "By bus")
        owner.ends(name)
    page = owner_page()
    page.get_by_role("button", name="autumn").click()
    expect(page.get_by_text("Spent: epsilon 75 of 100")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^spring"))).to_contain_text(
        re.compile("3030Spent$")
    )
    expect(page.get_by_role("row", name=re.compile("^autumn"))).to_contain_text(
        re.compile("4575Spent$")
    )
    steps = page.locator("svg:has(.frame) .bar").evaluate_all(
        "bars => bars.map((bar) => ['x', 'width'].map((name) => Number(bar.getAttribute(name))))"
    )
    assert steps == [[0, 0], [0, 30], [0, 30], [30, 45]]
    page.get_by_role("button", name="Your surveys").click()
    page.get_by_role("button", name="New survey").click()
    fill(page, {"Name of this group": "tenants", "Possible answers": "a\nb"})
    expect(page.get_by_text("epsilon 100 in total, 75 spent, 25 left")).to_be_visible()


def test_a_repeated_survey_shows_what_has_changed(owner, owner_page) -> None:
    terms = {"population": "patients", "budget_epsilon": "100", "budget_delta": "1e-3"}
    for name, items in (("before", ("By bus", "By bus")), ("after", ("By bus", "On foot"))):
        links = owner.creates(name, **terms)
        owner.trial.answers(links[:4], items[0])
        owner.trial.answers(links[4:8], items[1])
        owner.ends(name)
    page = owner_page()
    page.get_by_role("button", name="before").click()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.get_by_role("heading", name="Changes since")).to_have_count(0)
    page.get_by_role("button", name="Your surveys").click()
    page.get_by_role("button", name="after").click()
    expect(page.get_by_role("heading", name="Changes since before")).to_be_visible()
    changes = page.get_by_role("region", name="in percentage points").get_by_role("row")
    expect(changes.filter(has_text="By bus")).to_have_text(
        re.compile(r"^By bus-50\.0-50\.0 to -50\.0changed$")
    )
    expect(changes.filter(has_text="By bicycle")).to_contain_text("may be noise")


def test_a_survey_whose_budget_is_spent_is_refused_before_anybody_is_invited(
    owner, owner_page
) -> None:
    terms = {"population": "readers", "budget_epsilon": "50", "budget_delta": "1e-3"}
    owner.trial.answers(owner.creates("first", **terms)[:4], "By bus")
    owner.ends("first")
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    fill(page, {"Question": "Again?", "Possible answers": "a\nb", "Short name": "second"})
    fill(page, {"Name of this group": "readers", "Epsilon: how": "11"})
    spent = "does not allow another survey of epsilon 11: 40 of 50 is spent."
    expect(page.get_by_role("status").filter(has_text=spent)).to_be_visible()
    page.get_by_role("button", name="Create survey and invitations").click()
    expect(page.get_by_role("alert").filter(has_text=spent)).to_be_visible()
    assert not (owner.surveys.folder / "second").exists()
    page.get_by_label("Epsilon: how").fill("10")
    expect(page.get_by_text(spent)).to_have_count(1)  # only where it was refused before
    page.get_by_role("button", name="Create survey and invitations").click()
    waits(page, "The survey is ready.")


@pytest.mark.parametrize(("epsilon", "weak"), [("2.9", 0), ("3", 1)])
def test_weak_protection_is_judged_as_participants_will_read_it(
    owner, owner_page, visitor, epsilon, weak
) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    fill(page, {"Possible answers": "a\nb", "Epsilon: how": epsilon})
    quoted = page.locator("blockquote p")
    expect(quoted.first).to_contain_text("% sure which one you chose")
    expect(page.get_by_text("Participants will be warned")).to_have_count(weak)
    told = quoted.all_inner_texts()
    link, *_ = owner.creates(f"weak{weak}", epsilon=epsilon, users="60")
    theirs = visitor().new_page()
    theirs.goto(link)
    theirs.get_by_role("button", name="Continue").wait_for()
    expect(theirs.get_by_text("hardly any protection")).to_have_count(weak)
    for sentence in told:
        expect(theirs.get_by_text(sentence)).to_be_visible()


PEOPLE = "First name;Private;Work\n" + "".join(
    f"Person {number};p{number}@home.example;p{number}@work.example\n" for number in range(1, 9)
)


def test_people_come_from_a_spreadsheet(owner, owner_page, look_at) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": PEOPLE.encode()}
    page.get_by_label("Table of people").set_input_files(file)
    asked = page.get_by_text("Choose the column that tells people apart")
    expect(asked.first).to_be_visible()
    look_at(page, "dashboard-form-people")
    page.get_by_label("Column that tells people apart").select_option("Work")
    expect(page.get_by_text("8 people in people.csv.")).to_be_visible()
    expect(page.get_by_text("They begin with: p1@work.example, p2@work.example")).to_be_visible()
    expect(page.get_by_label("Number of people invited")).to_be_hidden()
    fill(page, {"Question": "Why?", "Possible answers": "a\nb", "Short name": "sheet"})
    fill(page, {"Epsilon: how": "40", "Minimum number of responses": "4"})
    page.get_by_role("banner").get_by_label("Language").select_option("de")
    expect(page.get_by_text("8 Personen in people.csv.")).to_be_visible()  # it is still there
    page.get_by_role("button", name="Umfrage und Einladungen anlegen").click()
    waits(page, "Die Umfrage ist bereit.")
    table = owner.surveys.file("sheet", "invitations.csv").decode()
    first = next(csv.DictReader(io.StringIO(table)))
    assert (first["person"], first["First name"]) == ("p1@work.example", "Person 1")


def test_a_lost_invitation_is_replaced_and_a_used_one_is_not(trial, owner, owner_page) -> None:
    links = owner.creates("lost", people="\n".join(f"person {letter}" for letter in "abcdefgh"))
    page = owner_page()
    page.get_by_role("button", name="lost").click()
    page.get_by_text("Show one invitation").click()
    page.get_by_label("Person").select_option("person b")
    expect(page.get_by_text(links[1])).to_be_visible()
    page.get_by_role("button", name="Replace a lost invitation").click()
    page.get_by_role("button", name="Yes, replace it").click()
    expect(page.get_by_text("This is the new invitation")).to_be_visible()
    expect(page.get_by_text(links[1])).to_have_count(0)
    new = owner.surveys.invitation("lost", "1")["link"]
    expect(page.get_by_text(new)).to_be_visible()
    trial.answers([new], "By bus")
    page.get_by_role("button", name="Replace a lost invitation").click()
    page.get_by_role("button", name="Yes, replace it").click()
    expect(page.get_by_text("this invitation was used")).to_be_visible()


def test_a_survey_is_repeated_copied_and_deleted(owner, owner_page) -> None:
    terms = {"population": "members", "budget_epsilon": "90", "budget_delta": "1e-3"}
    names = "\n".join(f"person {letter}" for letter in "abcdefgh")
    owner.trial.answers(owner.creates("yearly", people=names, **terms)[:4], "By bus")
    owner.ends("yearly")
    page = owner_page()
    page.get_by_role("button", name="yearly").click()
    page.get_by_role("heading", name="Result").wait_for()
    page.get_by_role("button", name="Ask the same people again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("yearly-2")
    page.get_by_role("button", name="Create the invitations").click()
    waits(page, "The survey is ready.")
    assert owner.surveys.people("yearly-2") == names.split("\n")
    page.get_by_role("button", name="Copy as a new survey").click()
    expect(page.get_by_label("Question")).to_have_value("How do you come to work?")
    expect(page.get_by_label("Short name")).to_have_value("yearly-3")
    expect(page.get_by_text("The same 8 people as in yearly-2.")).to_be_visible()
    page.get_by_label("Question").fill("How do you go home?")
    page.get_by_role("button", name="Create survey and invitations").click()
    waits(page, "The survey is ready.")
    assert owner.surveys.people("yearly-3") == names.split("\n")
    page.get_by_role("button", name="Your surveys").click()
    page.get_by_role("button", name="yearly", exact=True).click()
    page.get_by_role("button", name="Delete from both servers").click()
    page.get_by_role("button", name="Yes, delete it").click()
    expect(page.get_by_text("was deleted from both servers")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^By bus"))).to_contain_text("100")
    page.reload()
    card = page.get_by_role("listitem").filter(
        has=page.get_by_role("button", name="yearly", exact=True)
    )
    expect(card).to_contain_text("Deleted from both servers4 of 8 answered")
    page.get_by_role("button", name="yearly", exact=True).click()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    assert saved(page, "XLSX").startswith(b"PK")


def test_the_privacy_label_is_a_page_and_a_document(owner, owner_page) -> None:
    owner.creates("labelled")
    page = owner_page()
    page.get_by_role("button", name="labelled").click()
    expect(page.locator("blockquote")).to_contain_text("% sure which one you chose")
    assert b"How well is my answer protected?" in saved(page, "Privacy label (HTML)")
    document = saved(page, "Label for programs (JSON)")
    assert b'"kind": "faircount privacy label"' in document
    assert b'kind: "faircount privacy label"' in saved(page, "Label for programs (YAML)")


def test_a_survey_that_the_planner_advises_against_is_created_anyway(owner, owner_page) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    anyway = page.get_by_label("Create it anyway")
    expect(anyway).to_be_hidden()
    fill(page, {"Question": "Why?", "Possible answers": "a\nb", "Short name": "anyway"})
    fill(page, {"Number of people": "4", "Minimum number": "2"})
    expect(page.get_by_text("This survey would tell you nothing")).to_be_visible()
    page.get_by_role("button", name="Create survey and invitations").click()
    expect(page.get_by_role("alert").filter(has_text="would tell you nothing")).to_be_visible()
    anyway.check()
    page.get_by_role("button", name="Create survey and invitations").click()
    waits(page, "The survey is ready.")


def test_too_few_refusals_and_a_silent_second_server_are_told(
    owner, owner_page, monkeypatch
) -> None:
    owner.creates("slow")
    true = Surveys.one
    second = {
        "aggregator": {"phase": "counting", "rejections": {"wrong_shares": 7}},
        "budget": None,
    }

    def later(self, name):
        found = true(self, name)
        found["too_few"] = {"expected": 3, "minimum": 4}
        found["status"] |= {
            "rejections": {"conflict": 2, "late": 1},
            "waits_for": "aggregator",
            "tries": 5,
        }
        found["status"] |= {
            "waiting_since": "2026-11-17T13:05:00Z",
            "tries_again_at": found["status"]["since"],
            "problem": "The aggregator cannot be reached (refused)",
        }
        return found

    page = owner_page()
    page.get_by_role("button", name="slow").click()
    expect(page.get_by_text("No message was rejected.")).to_be_visible()
    monkeypatch.setattr(Surveys, "one", later)
    monkeypatch.setattr(Surveys, "aggregator_status", lambda self, name: second)
    expect(page.get_by_role("alert")).to_contain_text(
        "At this pace only 3 people will have answered"
    )
    # Not since the phase began, which was when the survey opened.
    waits(page, "waiting for the aggregator since November 17, 2026")
    waits(page, "Attempts so far: 5. The next one is on")
    waits(page, "The aggregator cannot be reached (refused)")
    for words in (
        "The same device sent something else before20",
        "Too late10",
        "Shares that do not match the coordinator's list07",
    ):
        expect(page.get_by_role("row").filter(has_text=re.compile(f"^{words}$"))).to_be_visible()


def test_without_its_coordinator_an_open_survey_is_not_called_prepared(
    trial, owner, owner_page, monkeypatch
) -> None:
    links = owner.creates("alone")
    trial.answers(links[:2], "By bus")
    page = owner_page()
    page.get_by_role("button", name="alone").click()
    expect(page.get_by_text("2 of 8 people have answered")).to_be_visible()
    monkeypatch.setattr(BothServers, "status", unreachable)
    expect(page.get_by_role("alert")).to_contain_text("The coordinator cannot be reached")
    step = page.get_by_role("listitem").filter(has_text="last known")
    expect(step).to_have_text("People answerlast known")
    expect(page.get_by_text("People answer; 2 of 8 people had answered.")).to_be_visible()
    page.get_by_role("button", name="Your surveys").click()
    expect(page.get_by_role("listitem").filter(has_text="alone")).to_contain_text(
        "Last known: People answer2 of 8 answered"
    )
    # What was last known is in the folder; without it nothing is claimed.
    owner.surveys.survey("alone").folder.status_file.unlink()
    page.get_by_role("button", name="alone").click()
    expect(page.get_by_text("Nothing is known yet")).to_be_visible()
    expect(page.locator(".phases .now")).to_have_count(0)


def unreachable(*_) -> dict[str, object]:
    raise UnreachableError("no answer").with_code("unreachable", server="S1")


def test_a_second_server_that_hangs_holds_up_nothing(trial, owner, owner_page, monkeypatch) -> None:
    links, answered = owner.creates("hanging"), threading.Event()
    true = Surveys.aggregator_status
    monkeypatch.setattr(
        Surveys, "aggregator_status", lambda self, name: answered.wait(30) and true(self, name)
    )
    page = owner_page()
    page.get_by_role("button", name="hanging").click()
    waits(page, "Asking the aggregator for its status")
    trial.answers(links[:1], "By bus")
    expect(page.get_by_text("1 of 8 people have answered")).to_be_visible()
    answered.set()
    waits(page, "The aggregator knows who is invited")
    monkeypatch.setattr(
        Surveys,
        "aggregator_status",
        lambda self, name: {"aggregator": {"problem": AWAY}, "budget": None},
    )
    waits(page, "The aggregator does not tell its status right now:away")


def test_a_live_page_leaves_the_keyboard_where_it_is(trial, owner, owner_page) -> None:
    links = owner.creates("focus")
    page = owner_page()
    page.get_by_role("button", name="focus").focus()
    trial.answers(links[:1], "By bus")
    expect(page.get_by_role("listitem").filter(has_text="focus")).to_contain_text("1 of 8 answered")
    expect(page.get_by_role("button", name="focus")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    extend = page.get_by_role("button", name="Extend by one day")
    extend.focus()
    trial.answers(links[1:2], "By bus")
    expect(page.get_by_text("2 of 8 people have answered")).to_be_visible()
    expect(extend).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # end without a result: asked first
    expect(page.get_by_role("button", name="No", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="End without a result")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your surveys")


def test_a_survey_that_is_ended_says_so(trial, owner, owner_page) -> None:
    owner.creates("stopped")
    page = owner_page()
    page.get_by_role("button", name="stopped").click()
    page.get_by_role("button", name="End without a result").click()
    page.get_by_role("button", name="Yes, end it").click()
    waits(page, "waiting for the aggregator")
    trial.settle()
    expect(page.get_by_text("The survey ended without a result. The reason:")).to_be_visible()
    expect(page.get_by_text("The owner of the survey ended it.")).to_be_visible()
    expect(page.get_by_text("No privacy budget was spent.")).to_be_visible()


def test_a_refusal_leaves_the_form_as_it_is(owner_page) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    fill(
        page,
        {
            "Question": "Why?",
            "Possible answers": "a\nb",
            "Number of people": "2",
            "Short name": "tiny",
        },
    )
    page.get_by_role("button", name="Create survey and invitations").click()
    expect(page.get_by_role("alert").filter(has_text="Invite more people")).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value("Why?")
    page.get_by_role("banner").get_by_label("Language").select_option("de")
    expect(page.get_by_label("Frage", exact=True)).to_have_value("Why?")


def test_invitations_of_a_survey_from_the_command_line_are_made_here(owner) -> None:
    s1, s2 = read_servers(owner.surveys.servers)
    requirements = SurveyRequirements(one_question("Why?", ("a", "b")), 8, 40.0, minimum=4)
    create(
        owner.surveys.folder / "bare",
        requirements,
        SurveyDescription(),
        OwnerFile(s1, s2, s1.address, (40.0, 1e-6)),
    )
    before = owner.surveys.one("bare")
    assert (before["invited"], before["status"], before["population"]) == (False, None, "")
    after = owner.surveys.request("bare", "invite", {})
    assert (after["invited"], after["status"]["invited"], after["status"]["waits_for"]) == (
        True,
        8,
        "owner",
    )
    assert (
        owner.surveys.request("bare", "invite", {})["status"]["invited"] == 8
    )  # again: nothing new
    assert len(owner.surveys.people("bare")) == 8
    with pytest.raises(FaircountError, match="there are 8 invitations, counted from 0"):
        owner.surveys.invitation("bare", "8")
    with pytest.raises(FaircountError, match="the requests for a survey are"):
        owner.surveys.request("bare", "vanish", {})


def test_a_folder_that_is_damaged_or_a_server_that_is_away_hides_no_other_survey(
    owner, tmp_path
) -> None:
    surveys = Surveys(tmp_path, owner.surveys.servers)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "parameters.json").write_bytes(b"{}")
    (found,) = surveys.all()
    assert (found["name"], found["status"]) == ("broken", None)
    assert found["problem"]
    with pytest.raises(FaircountError):
        surveys.file("broken", "invitations.csv")
    shutil.copytree(tmp_path / "broken", owner.surveys.folder / "broken")
    owner.creates("beside-broken")
    assert owner.surveys.budget("beside-broken")["surveys"] == []
    shutil.rmtree(owner.surveys.folder / "broken")


def test_the_command_prints_an_address_that_works(owner, tmp_path: Path) -> None:
    command = [quick_python(), "-m", "faircount", "dashboard", str(tmp_path / "new"), "--port", "0"]
    running = subprocess.Popen(
        [*command, "--servers", str(owner.surveys.servers)], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    try:
        address, _, key = next(line.strip() for line in running.stdout if "http" in line).partition(
            "/#"
        )
        found = httpx.get(
            f"{address}/api/surveys", headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
        assert (found.status_code, found.json()) == (200, {"surveys": []})
    finally:
        running.terminate()
        running.communicate(timeout=30)

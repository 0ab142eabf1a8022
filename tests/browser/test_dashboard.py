"""The owner's dashboard: a survey from the form to the result, and who may open it."""

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from faircount.core.errors import FaircountError
from faircount.dashboard.app import dashboard_app
from faircount.dashboard.surveys import Surveys, advice, too_few
from faircount.service.aggregator_app import aggregator_app

KEY = "key-of-this-test"
SHOTS = os.environ.get("FAIRCOUNT_SCREENSHOTS")


@pytest.fixture(scope="module")
def surveys(trial, tmp_path_factory) -> Surveys:
    folder = tmp_path_factory.mktemp("owner")
    addresses = trial.address, trial.serve(aggregator_app(trial.pair.s2))
    known = [{"address": at, "token": token} for at, token in zip(addresses, trial.pair.owner_tokens, strict=True)]
    (folder / "servers.json").write_text(json.dumps(dict(zip(("s1", "s2"), known, strict=True))))
    return Surveys(folder / "surveys", folder / "servers.json")


@pytest.fixture(scope="module")
def address(trial, surveys) -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    trial.serve(dashboard_app(surveys, KEY, f"127.0.0.1:{port}"), port)
    return f"http://127.0.0.1:{port}"


def survey_id(surveys: Surveys) -> str:
    return surveys.survey("drinks").params.survey.hex()


def checked(page, name: str) -> None:
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found] == []
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"dashboard-{name}.png"))


def test_a_survey_from_the_form_to_the_result(trial, surveys, address, visitor) -> None:
    page = visitor(viewport={"width": 1200, "height": 1250}).new_page()
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{address}/#{KEY}")
    page.get_by_role("button", name="New survey").click()
    for label, text in {
        "Name of the survey": "drinks",
        "Question": "What do you drink?",
        "Answers, one a line": "Tea\nCoffee\nWater",
        "People invited": "8",
        "Epsilon": "40",
        "Who asks": "Tea House",
        "Share of the invited": "0.5",
    }.items():
        page.get_by_label(label).fill(text)
    expect(page.get_by_text("95% error ±")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("an epsilon of 40 protects next to nothing")).to_be_visible()
    checked(page, "form")
    page.get_by_role("button", name="Create and invite").click()
    expect(page.get_by_role("heading", name="State: draft")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="State: submitting")).to_be_visible()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Table of invitations").click()
    rows = list(csv.DictReader(io.StringIO(saving.value.path().read_text(encoding="utf-8"))))
    trial.answers([row["link"] for row in rows[:5]], "Coffee")
    expect(page.get_by_text("5 of 8 people have answered")).to_be_visible(timeout=30_000)
    checked(page, "running")
    page.get_by_role("button", name="Close now").click()  # the question is answered with no
    assert trial.does(trial.pair.to_s1.get(f"/v1/surveys/{survey_id(surveys)}/status")).json()["state"] == "submitting"
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Close now").click()
    expect(page.get_by_role("heading", name="State: claimed")).to_be_visible()
    trial.settle()
    expect(page.get_by_role("heading", name="Result")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("row", name=re.compile("^Coffee"))).to_contain_text("100 %")
    expect(page.get_by_text("Promised: epsilon 40")).to_be_visible()
    expect(page.get_by_role("heading", name="Budget of these people")).to_be_visible()
    checked(page, "result")
    page.get_by_role("button", name="Your surveys").click()
    expect(page.get_by_role("row", name=re.compile("drinks"))).to_contain_text("published")
    assert all(url.startswith(address) and KEY not in url for url in urls[1:])
    for kind, begins in {"csv": b"item,estimate", "json": b"{", "svg": b"<?xml", "png": b"\x89PNG"}.items():
        made = surveys.file("drinks", f"result.{kind}")
        assert made.startswith(begins)
    assert b"(40, " in surveys.file("drinks", "result.csv")
    assert b"epsilon" in surveys.file("drinks", "result.json")


def test_only_who_knows_the_key_and_the_host_is_served(address) -> None:
    right = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client() as client:
        assert client.get(f"{address}/api/surveys", headers=right).status_code == 200
        assert client.get(f"{address}/api/surveys").status_code == 403
        assert client.get(f"{address}/api/surveys", headers={"Authorization": "Bearer x"}).status_code == 403
        assert client.get(f"{address}/api/surveys", headers={**right, "Host": "evil.example"}).status_code == 403
        assert client.get(f"{address}/", headers={"Host": "evil.example"}).status_code == 403
        found = client.get(f"{address}/")
        assert "default-src 'none'" in found.headers["content-security-policy"]


def test_the_command_prints_an_address_that_works(surveys, tmp_path) -> None:
    command = [sys.executable, "-m", "faircount", "dashboard", str(tmp_path / "new"), "--port", "0"]
    running = subprocess.Popen([*command, "--servers", str(surveys.servers)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        address, _, key = next(line.strip() for line in running.stdout if "http" in line).partition("/#")
        found = httpx.get(f"{address}/api/surveys", headers={"Authorization": f"Bearer {key}"}, timeout=30)
        assert (found.status_code, found.json()) == (200, {"surveys": []})
    finally:
        running.terminate()
        running.communicate(timeout=30)


@pytest.mark.parametrize("name", ["..", "a/b", "", "a b", "x" * 61])
def test_a_name_that_leads_elsewhere_is_refused(surveys, name) -> None:
    with pytest.raises(FaircountError, match="made of letters"):
        surveys.survey(name)


def test_advice_says_what_is_missing() -> None:
    good = {"items": "a\nb", "users": "300", "epsilon": "1", "delta": "1e-6", "absent": "0.2"}
    assert advice(good)["worthwhile"]
    assert advice({**good, "items": "a"})["refused"] == "write at least two answers, one a line"
    assert advice({**good, "users": "many"})["refused"] == "users must be a number"
    assert not advice({**good, "users": "6", "epsilon": "0.1"}).get("worthwhile", False)


def test_too_few_is_warned_in_time() -> None:
    now = datetime.now(tz=UTC)
    status = {"state": "submitting", "users": 10, "minimum": 50}

    def at(share: float, **change) -> str:
        opened = now - timedelta(hours=10 * share)
        times = {"opened_at": opened.isoformat(), "closes_at": (opened + timedelta(hours=10)).isoformat()}
        return too_few({**status, **times, **change})

    assert "at this pace" in at(0.5)  # 20 at the end
    assert at(0.5, users=30) == ""  # 60 at the end
    assert at(0.05) == ""  # too early to tell
    assert at(0.9, users=50) == ""
    assert at(0.5, state="published") == ""

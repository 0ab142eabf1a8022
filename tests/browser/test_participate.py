"""The module for a company's own page: another origin, which the coordinator must allow."""

from pathlib import Path

import pytest
from playwright.sync_api import Error, Page
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from faircount.core.errors import ParameterError
from faircount.server.common.settings import CoordinatorSettings
from faircount.server.coordinator.app import coordinator_app

FOLDER = Path(__file__).parents[2] / "src" / "faircount" / "web"
TAKE_PART = """async ([server, code, sheet]) => {
  const { participate } = await import('/participate.js');
  const part = await participate(server, code);
  const before = part.stage;
  const stage = await part.send(await part.makeReport(sheet));
  const again = await participate(server, code);
  const [{ text }] = part.params.questionnaire.questions;
  return [text, before, stage, again.stage, await again.withdraw()];
}"""


@pytest.fixture(scope="module")
def company(trial) -> str:
    """The origin of a company that serves the module itself."""
    return trial.serve(Starlette(routes=[Mount("/", StaticFiles(directory=FOLDER, html=True))]))


@pytest.fixture
def company_page(company, visitor) -> Page:
    page = visitor().new_page()
    page.goto(f"{company}/style.css")  # any address of this origin does
    return page


def take_part(page: Page, server: str, link: str) -> list[str]:
    return page.evaluate(TAKE_PART, [f"{server}/", link, [1]])


def test_a_companys_page_takes_part_from_an_origin_that_is_allowed(
    trial, company, company_page
) -> None:
    (link, *_) = trial.create()
    server = trial.serve(coordinator_app(trial.pair.s1, origins=[company]))
    said = take_part(company_page, server, link)
    assert said == ["Where do you live?", "new", "sent", "sent", "withdrawn"]
    owners_call = """([url]) =>
      fetch(url, {method: 'POST', headers: {Authorization: 'Bearer x'}}).then(() => 1, () => 0)"""
    assert (
        company_page.evaluate(owners_call, [f"{server}{trial.path}/close"]) == 0
    )  # its scripts make no owner's call


def test_an_origin_that_is_not_allowed_can_send_nothing(trial, company_page) -> None:
    (link, *_) = trial.create()
    server = trial.serve(coordinator_app(trial.pair.s1, origins=["https://other.example"]))
    for address in (server, trial.address):
        with pytest.raises(Error, match="no connection"):
            take_part(company_page, address, link)
    assert trial.status()["responses"] == 0


@pytest.mark.parametrize("text", ["*", "https://a.example/path", "a.example", "https://*.example"])
def test_what_is_no_origin_is_refused(text) -> None:
    with pytest.raises(ParameterError, match="an origin looks like"):
        _ = CoordinatorSettings(allowed_origins=text).origins
    assert CoordinatorSettings(allowed_origins="https://a.example, http://b:81").origins == (
        "https://a.example",
        "http://b:81",
    )

"""Hidden privacy levels on the participant's page: chosen, confirmed, and never sent."""

import re
from typing import Any

from playwright.sync_api import Page, Request, expect

from faircount.accounting.levels import Levels
from faircount.core.questions import OneOf, Questionnaire, YesNo
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels

DRINKS = OneOf(text="What do you drink?", items=("tea", "coffee", "water"), skip=True)
AGAIN = YesNo(text="Would you come again?")
WORDS = {"very strong": 0.25, "strong": 0.5, "normal": 1.0}
SEEN = {
    "very strong": ("56.3", "65.2"),
    "strong": ("62.3", "68.3"),
    "normal": ("73.2", "73.2"),
}
"""How sure anybody can become of the answer, and of answer and level together, in percent."""


NOISELESS = {"all": 40.0, "none": 80.0}
"""The base at 40 and a second table at 40: both have next to no noise."""


def leveled(
    levels: dict[str, float], users: int = 6, questions: tuple[Any, ...] = (DRINKS,)
) -> ServerLevels:
    return ServerLevels(
        questionnaire=Questionnaire(questions),
        groups=split_epsilon(min(levels.values()), [range(len(questions))]),
        levels=Levels.of(levels),
        epsilon=max(levels.values()),
        users=users,
        dropouts=users - 2,
    )


def opened(context: Any, link: str) -> Page:
    page = context.new_page()
    page.goto(link)
    return page


def sees(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def proceed(page: Page) -> None:
    page.get_by_role("button", name="Continue").click()


def test_levels_are_offered_with_what_they_mean(trial, visitor, look_at) -> None:
    links = trial.create(6, mechanism=leveled(WORDS))
    page = opened(visitor(), links[0])
    group = page.get_by_role("group", name="How well should your answer be hidden?")
    expect(group).to_contain_text("Nobody learns what you choose here.")
    for name, (sure, both) in SEEN.items():
        choice = group.get_by_role("radio", name=name, exact=True)
        expect(choice).to_have_accessible_description(
            re.compile(rf"(more than|At most) {sure}\s% sure")
        )
        expect(choice).to_have_accessible_description(re.compile(rf"at most {both}\s% sure"))
    # Nobody gives protection up by overlooking the question.
    expect(group.get_by_role("radio", name="very strong", exact=True)).to_be_checked()
    promise = page.locator("section", has=page.get_by_role("heading", name="How your answer"))
    expect(promise).to_contain_text("strong: at most 62.3 % sure which one you chose")
    expect(promise).to_contain_text("epsilon = 0.25, 0.5, and 1;")
    expect(promise).to_contain_text("too, 0.625, 0.7655, and 1.")
    look_at(page, "levels")


def test_a_level_is_chosen_with_the_keyboard_and_confirmed(trial, visitor, look_at) -> None:
    links = trial.create(6, mechanism=leveled(WORDS, questions=(DRINKS, AGAIN)))
    page = opened(visitor(), links[0])
    page.get_by_role("group", name=re.compile("What do you")).get_by_label("coffee").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio", name="very strong", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    sees(page, "Send these answers?")
    main = page.get_by_role("main")
    expect(main).to_contain_text("Your level, which stays on this device, too:")
    expect(main.locator("p.answer")).to_have_text("strong")
    look_at(page, "levels-confirm")
    # The choice is still there after a step back, and in another language.
    page.get_by_role("button", name="Back").click()
    page.locator("#language").select_option("de")
    expect(page.get_by_role("radio", name="stark", exact=True)).to_be_checked()
    main = page.get_by_role("main")
    expect(main).to_contain_text("Niemand erfährt, was Sie hier wählen.")
    expect(main).to_contain_text("Höchstens zu 62,3 % sicher.")
    expect(main).to_contain_text("sehr stark: höchstens zu 56,3 % sicher, auf welche")


def posted(page: Page) -> list[Request]:
    """The requests of a page that carry a message, as they are made."""
    found: list[Request] = []
    page.on("request", lambda request: found.append(request) if request.method == "POST" else None)
    return found


def test_every_level_sends_as_much_and_as_often(trial, visitor) -> None:
    """Names of levels that are the owner's words are text, and never part of a page."""
    levels = {"<b>a</b>": 40.0, "b": 60.0, "c": 80.0}
    links = trial.create(6, mechanism=leveled(levels))
    sent = []
    for link, name in zip(links, levels, strict=False):
        page = opened(visitor(), link)
        requests = posted(page)
        page.get_by_label("water").check()
        page.get_by_role("radio", name=name, exact=True).check()
        proceed(page)
        expect(page.get_by_role("main").locator("p.answer")).to_have_text(["water", name])
        page.get_by_text("Show what leaves this device").click()
        shown = page.locator(".bytes").first.inner_text().replace(" ", "")
        page.get_by_role("button", name="Send").click()
        sees(page, "Thank you! Your answer has arrived")
        expect(page.get_by_role("main")).to_contain_text("It does not keep your level, either.")
        first = requests[0].post_data_buffer or b""
        # What was shown is what left: nothing is drawn again between both.
        assert bytes.fromhex(shown) in first
        sent.append((len(first), [request.url for request in requests[:2]]))
        stored = page.evaluate(
            """async () => {
                const { loadAll } = await import("/page/store.js");
                return loadAll();
            }"""
        )
        (record,) = stored
        assert record["report"] == first.hex()
        # What the device keeps does not say the level, either.
        sent[-1] = (*sent[-1], sorted(record), len(str(sorted(record.values(), key=str))))
    assert len({str(seen) for seen in sent}) == 1


def test_the_result_shows_everybody_first(trial, visitor, look_at) -> None:
    links = trial.create(12, mechanism=leveled(NOISELESS, 12))
    pages = []
    for link, (answer, level) in zip(
        links, [("tea", "none"), ("tea", "all"), ("water", "none")], strict=False
    ):
        page = opened(visitor(), link)
        page.get_by_label(answer).check()
        page.get_by_role("radio", name=level, exact=True).check()
        proceed(page)
        page.get_by_role("button", name="Send").click()
        sees(page, "Thank you! Your answer has arrived")
        pages.append(page)
    closed = trial.close()
    # Everybody once: tea twice and water once; then those counted again: tea and water.
    (told,) = closed["questions"]
    assert told["counts"] == [2, 0, 1, 0]
    assert told["counted_again"] == [1, 0, 1, 0]
    # Two of three are counted twice: a vote among them weighs more.
    assert closed["validity"]["votes_per_liar_if_alike"] > 1
    page = pages[0]
    page.get_by_role("button", name="Was my answer counted?").click()
    sees(page, "Your answer was counted")
    first, *_, second = page.locator("section.result table").all()
    expect(first.locator("caption")).to_contain_text("among the 3 people who were counted")
    expect(first.locator("tbody tr").first).to_contain_text("66.7 %")
    # The condition is part of what the table is called, also for screen readers.
    expect(second.locator("caption")).to_have_text(
        "Estimated shares, if people who chose weaker protection answer like everybody"
    )
    result = page.locator("section.result")
    expect(result).to_contain_text("About 2 of 3 people were counted a second time (±0).")
    expect(result).to_contain_text("The table above counts everybody once.")
    look_at(page, "levels-result")


def test_a_level_that_is_not_offered_is_refused(trial, visitor) -> None:
    """`participate.js` takes a level from a company's own page: it must be one of the survey's."""
    page = opened(visitor(), trial.address)
    offered = {"mechanism": leveled(WORDS)}
    for survey, levels in ((offered, [3, -1, "0", None]), ({}, [1])):
        code = trial.create(6, **survey)[0].rpartition("#")[2]
        refused = page.evaluate(
            """async ({ code, levels }) => {
                const { participate } = await import("/participate.js");
                const part = await participate(location.origin + "/", code);
                const tries = [0, ...levels].map((level) =>
                    part.makeReport([0], level).then(() => null, (problem) => problem.code),
                );
                return Promise.all(tries);
            }""",
            {"code": code, "levels": levels},
        )
        assert refused == [None, *["answer"] * len(levels)]

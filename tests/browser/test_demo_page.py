"""`make demo PAGE=1`: the link that it prints opens the page of the running trial."""

import re
import subprocess

from playwright.sync_api import expect
from quick_python import quick_python


def test_the_demos_link_opens_the_page_and_the_answer_is_counted(visitor) -> None:
    demo = subprocess.Popen(
        [quick_python(), "-m", "faircount", "demo", "--page"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdin is not None
    assert demo.stdout is not None
    try:
        link = next(line.strip() for line in demo.stdout if line.startswith("http"))
        page = visitor().new_page()
        page.goto(link)
        for chosen in ("North", "yes", "very", "canteen", "quiet rooms"):
            page.get_by_label(chosen, exact=True).check()
        page.get_by_role("textbox", name=re.compile("How many years")).fill("7")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Thank you")
        demo.stdin.write("\n")
        demo.stdin.flush()
        assert any("120 people are counted" in line for line in demo.stdout)
        page.get_by_role("button", name="Were my answers counted?").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your answers were counted")
        # The mean of a scale from 1 to 5 and of a number from 0 to 40: one number of decimals each.
        means = [
            row.inner_text() for row in page.get_by_role("row", name=re.compile("^mean")).all()
        ]
        decimals = [re.findall(r"\d+\.(\d+)", text) for text in means]
        assert [set(map(len, found)) for found in decimals] == [{2}, {1}]
        demo.communicate("\n", timeout=60)
        assert demo.returncode == 0
    finally:
        if demo.poll() is None:  # without further input it stops its servers, and ends
            demo.communicate(timeout=60)

"""The prover of the participant's page: in Node beside @divviup/prio3, and in a slowed Chromium.

FAIRCOUNT_PRIO3, or the first argument, is a folder in which `npm install @divviup/prio3@0.8.0` was
run. Without it there are no times of Prio3. The rows about Node (`prover.mjs`) are CPU times of a
process that does nothing else, and "first" is its first report, made before anything is warm.

The row about Chromium needs that browser and playwright; without them it is left out. It is the
first proof on a new page while the browser slows its processor down 6 times, as developers do to
imitate a phone: CPU time of the page's main thread, including what the slowing takes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from faircount.mechanisms.server_noise import ServerLaplace
from table import Row, markdown, seconds

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "src" / "faircount" / "web"
USERS = 1_000
SHEET = 400  # bits of a long questionnaire
SLOWED = 6
PAGES = 7
ORIGIN = "http://localhost:9"  # nothing listens there: every request is answered from the files
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

PREPARE = """async ({ items, modulus, users }) => {
  const { PROVEN } = await import("/client/proven_mechanisms.js");
  const { reportLayout } = await import("/client/proof.js");
  const { systemRandom } = await import("/client/random.js");
  const weights = Array.from({ length: items }, (_, bit) => [bit, 1]);
  const form = { bits: items, coins: 0, constraints: [{ weights, value: 1 }], cells: items };
  const params = { drawn: { layout: reportLayout(BigInt(modulus), form, users) }, answers: items };
  window.prove = () => PROVEN["server-laplace"].vector(params, [7], systemRandom);
}"""
# Returns the milliseconds that pass.
PROVE = """() => {
  const start = performance.now();
  window.prove();
  return performance.now() - start;
}"""


def rows() -> list[Row]:
    found = [row for items in (30, 300, SHEET) for row in node_rows(items)]
    return found + ([phone_row(SHEET)] if has_browser() else [])


def node_rows(items: int) -> list[Row]:
    """A proof alone, and a report with both shares."""
    folder = prio3_folder()
    spent = run_node(items, folder)
    ours = spent["ours"]
    theirs = spent.get("theirs", {"proof": None, "report": None})
    peer = f"@divviup/prio3 {prio3_version(folder)}" if folder else "@divviup/prio3"
    first = f"first report {seconds(ours['first'])}"
    if folder:
        first += f", Prio3 {seconds(theirs['first'])}"
    node = f"Node {spent['node']}"
    return [
        Row(
            f"prove {items} bits in JavaScript, n = {USERS:,}",
            ours["proof"],
            f"{peer}, proof alone",
            theirs["proof"],
            node,
        ),
        Row(
            f"report of {items} bits in JavaScript, n = {USERS:,}: proven and split",
            ours["report"],
            f"{peer}, shard",
            theirs["report"],
            f"{first}; {node}",
        ),
    ]


def prio3_folder() -> str:
    named = sys.argv[1:2] if __name__ == "__main__" else []
    return named[0] if named else os.environ.get("FAIRCOUNT_PRIO3", "")


def prio3_version(folder: str) -> str:
    package = Path(folder, "node_modules", "@divviup", "prio3", "package.json")
    return str(json.loads(package.read_text(encoding="utf-8"))["version"])


def modulus_of(items: int) -> int:
    return ServerLaplace(items=items, users=USERS, epsilon=1.0).modulus


def run_node(items: int, folder: str) -> dict[str, Any]:
    given = [str(number) for number in (items, modulus_of(items), USERS)]
    command = ["node", str(HERE / "prover.mjs"), *given, *([folder] if folder else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def has_browser() -> bool:
    return find_spec("playwright") is not None and browser_path() is not None


def browser_path() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def phone_row(items: int) -> Row:
    """The first proof on each of a few new pages."""
    given = {"items": items, "modulus": modulus_of(items), "users": USERS}
    with launched_browser() as browser:
        version = browser.version
        spent = [first_proof(browser, given) for _ in range(PAGES)]
    cpu = [cpu_seconds for cpu_seconds, _ in spent]
    passed = median(wall_seconds for _, wall_seconds in spent)
    return Row(
        f"prove {items} bits in Chromium slowed {SLOWED} times, first proof on a page",
        min(cpu),
        "-",
        None,
        f"of {PAGES} pages the median {seconds(median(cpu))}, the slowest {seconds(max(cpu))}, "
        f"median wall time {seconds(passed)}; Chromium {version}",
    )


@contextmanager
def launched_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = browser_path()
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def first_proof(browser: Any, given: dict[str, int]) -> tuple[float, float]:
    """CPU seconds of the main thread and wall seconds, on a new page."""
    page = browser.new_context().new_page()
    page.route("**/*", answer_from_disk)
    page.goto(ORIGIN)
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.evaluate(PREPARE, given)
    before = thread_seconds(session)
    wall_seconds = page.evaluate(PROVE) / 1e3
    cpu_seconds = thread_seconds(session) - before
    page.context.close()
    return cpu_seconds, wall_seconds


def thread_seconds(session: Any) -> float:
    """CPU time that the main thread of a page has spent on tasks."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    found = {metric["name"]: metric["value"] for metric in metrics}
    return float(found["TaskDuration"])


def answer_from_disk(route: Any) -> None:
    path = route.request.url.removeprefix(ORIGIN).lstrip("/")
    body = (SCRIPTS / path).read_bytes() if path else b"<!doctype html><title>empty</title>"
    route.fulfill(body=body, headers={"content-type": "text/javascript" if path else "text/html"})


if __name__ == "__main__":
    print(markdown(rows()))

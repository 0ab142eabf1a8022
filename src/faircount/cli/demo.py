"""`faircount demo`: the main job, start to end, on made-up answers."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.service.demo.scenarios import Scenario
    from faircount.service.owner.survey import Survey
    from faircount.service.trial import Trial

CITIES = {
    "Aldmoor": 176, "Brackwater": 143, "Carrow": 118, "Dunholm": 96, "Eastmere": 74, "Fennick": 58,
    "Garside": 44, "Hollin": 33, "Ivybridge": 24, "Jarrow End": 17, "Kestrel Bay": 11, "Lowtide": 6,
}  # fmt: skip


@click.command()
@click.option("--in-memory", is_flag=True, help="Without servers: 800 users in this process, beside a local mechanism.")
@click.option("--page", is_flag=True, help="A survey of 40 in which the last answer is yours, in a browser.")
@click.option("--epsilon", default=1.0, show_default=True, help="Privacy loss of the survey in memory.")
def demo(in_memory: bool, page: bool, epsilon: float) -> None:
    """A survey of made-up people over a network on this machine, start to end.

    Two servers and 300 devices run as processes; some vanish, some are killed and come back. Then 60 people count
    without trusting servers with shares, as in the paper.
    """
    if in_memory:
        _in_memory(epsilon)
    elif page:
        _your_turn()
    else:
        _over_the_network()


def _over_the_network() -> None:
    import time
    from tempfile import TemporaryDirectory

    from faircount.cli.show import busy, console
    from faircount.service.demo.scenarios import PEERS_SURVEY, SERVERS_SURVEY
    from faircount.service.trial import trial

    out, began = console(), time.monotonic()
    with TemporaryDirectory(prefix="faircount-demo-") as folder, trial(Path(folder)) as running:
        out.print("S1 and S2 run: two processes, two databases. Every person has a device with a file of its own.\n")
        out.print("[bold]300 people, one visit: answer and leave[/bold]")
        _play(out, running, SERVERS_SURVEY, "cities")
        out.print("\n[bold]60 people hold each other's shares: Algorithm 2 of the paper[/bold]")
        _play(out, running, PEERS_SURVEY, "move")
        with busy("both servers stop ..."):
            running.stop()
    out.print(f"\nAll of it took {time.monotonic() - began:.0f} seconds.")
    out.print("A trial: whoever runs both servers can put shares together. faircount serve FOLDER starts your own.")


def _your_turn() -> None:
    """Everybody but one has answered; the last link opens the page."""
    from tempfile import TemporaryDirectory

    from faircount.cli.show import console
    from faircount.service.demo.scenarios import prepare
    from faircount.service.demo.your_turn import YOUR_SURVEY, all_but_one
    from faircount.service.trial import trial

    out = console()
    with TemporaryDirectory(prefix="faircount-demo-") as folder, trial(Path(folder)) as running:
        survey = prepare(running, YOUR_SURVEY, "drinks")
        link = all_but_one(survey, Path(folder))
        out.print(
            f"{survey.params.n_max - 1} made-up people have answered. The last answer is yours, in a browser here:\n"
        )
        click.echo(link)
        click.prompt("\nPress Enter when you have answered", default="", show_default=False)
        survey.servers.wish(survey.params, "close", state="submitting")
        _result(out, survey)
        click.prompt(
            "\nThe page shows the result too. Press Enter to stop both servers", default="", show_default=False
        )


def _play(out: "Console", running: "Trial", scenario: "Scenario", name: str) -> None:
    from faircount.cli.show import busy, progress
    from faircount.service.demo.scenarios import people_of, prepare
    from faircount.service.demo.stage import play

    with busy("the owner plans, invites and opens ..."):
        survey = prepare(running, scenario, name)
    _announce(out, survey, scenario)
    with progress("people have come", scenario.wishes.users) as done:
        played = play(running, survey, people_of(survey, scenario), scenario, lambda now: done(now["users"]))
    s1 = " and S1" if scenario.kills_s1 else ""
    out.print(f"Killed on the way and started again: {scenario.kills} of {scenario.crowds} processes with devices{s1}.")
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(played.stages.items(), key=lambda each: -each[1]))
    out.print(f"What the devices know at the end: {stages}.\n")
    _result(out, survey, [played.counted[str(item)] for item in survey.params.mechanism.domain.labels])


def _announce(out: "Console", survey: "Survey", scenario: "Scenario") -> None:
    from faircount.accounting.guarantee import delta_in_words

    params, visits = survey.params, len(survey.params.topology.phases)
    comes = "once" if visits == 1 else f"{visits} times"
    liars = f", {scenario.lies} lies (fifty votes for one city, minus 49 for another)" if scenario.lies else ""
    out.print(
        f"{params.question} {params.n_max} are invited and come {comes}; {scenario.vanish} vanish at some moment"
        f"{liars}. No result with fewer than {params.minimum}. {params.mechanism.name} in {params.topology} promises "
        f"epsilon {params.epsilon:g} and delta {delta_in_words(params.delta)}{_floor(params.mechanism.floor)}.",
        markup=False,
    )


def _floor(holders: int) -> str:
    """What the promise rests on, in words; nothing where it rests on nothing that is known of the answers."""
    return f", if it is known for sure that every answer has {holders} other holders: its floor" if holders else ""


def _result(out: "Console", survey: "Survey", truth: list[int] | None = None) -> None:
    import numpy as np

    from faircount.cli.show import bars
    from faircount.protocol.wire.messages import Aborted

    found = survey.result(wait=True)
    if isinstance(found, Aborted):
        out.print(f"No result: {found.reason.decode(errors='replace')}", markup=False)
        return
    bars(out, found, truth=None if truth is None else np.array(truth) / sum(truth))
    known = "" if truth is None else " The truth is theirs, known here because they are made up."
    out.print(f"\n{found.included} people are counted.{known}")
    if found.validity is not None and found.validity.proven:
        out.print(f"Reports: {found.validity}", markup=False)
    out.print(f"Privacy: {found.guarantee}.", markup=False)


def _in_memory(epsilon: float) -> None:
    """800 users in this process."""
    import numpy as np

    import faircount as fc
    from faircount.cli.show import bars, console, notes
    from faircount.estimation.presentation import AGAIN
    from faircount.planning.question import cautions

    cities = list(CITIES)
    answers = np.random.default_rng(7).permutation(np.repeat(cities, list(CITIES.values())))
    truth = np.array(list(CITIES.values())) / answers.size
    ours, local = fc.Laplace(items=cities, epsilon=epsilon), fc.OUE(items=cities, epsilon=epsilon)
    out = console()
    out.print(
        f"A company asks {answers.size} users for their city. Nobody sees an answer; no single server is trusted.\n"
    )
    with out.status("every user adds noise nobody else knows, and splits its row between two servers ..."):
        result = fc.run(answers, ours)
    bars(out, result, truth=truth)
    out.print(f"\nPrivacy: {result.guarantee}.")
    out.print(f"Again: {AGAIN}.")
    out.print(
        f"Every answer travelled as two shares over F_{result.facts['modulus']}, each of them random by itself, "
        "sealed; the servers added them up and opened one sum."
    )
    both = (result, fc.run(answers, local))
    here, there = (float(np.sqrt(np.mean((each.estimates - truth) ** 2))) for each in both)
    out.print(
        f"Root mean squared error: {here:.4f} here, {there:.4f} with local differential privacy (OUE) at the same "
        f"epsilon on the same users."
    )
    notes(out, cautions(epsilon))

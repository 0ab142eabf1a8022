"""`faircount demo`: watch a survey of simulated people from start to end."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from faircount.cli.options import SURVEY_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from faircount.core.questions import Sheet
    from faircount.demo.scenarios import Scenario
    from faircount.demo.trial import Trial
    from faircount.owner.survey import Survey

# The answers of the survey in memory: how many people live in each city.
CITIES = {
    "Aldmoor": 176, "Brackwater": 143, "Carrow": 118, "Dunholm": 96, "Eastmere": 74, "Fennick": 58,
    "Garside": 44, "Hollin": 33, "Ivybridge": 24, "Jarrow End": 17, "Kestrel Bay": 11, "Lowtide": 6,
}  # fmt: skip


@click.command()
@click.option(
    "--in-memory",
    is_flag=True,
    help="Survey 800 users in this process, without servers, and compare with a local mechanism.",
)
@click.option(
    "--page",
    is_flag=True,
    help="Answer five questions yourself, in your browser, among 120 people.",
)
@click.option(
    "--crowd",
    "survey_folder",
    type=SURVEY_FOLDER,
    help="Let simulated people answer the survey in this folder, in a trial on this machine.",
)
@click.option(
    "--epsilon", default=1.0, show_default=True, help="Privacy loss of the survey in memory."
)
def demo(in_memory: bool, page: bool, survey_folder: Path | None, epsilon: float) -> None:
    """Watch a survey of simulated people over a network on this machine.

    Two servers and 300 devices run as processes. People answer five questions of different kinds.
    Some devices never come back, three lie, and some are killed and restarted. Then 60 people are
    counted without servers that hold shares, as in the paper.
    """
    if in_memory:
        _survey_in_memory(epsilon)
    elif page:
        _survey_with_page()
    elif survey_folder is not None:
        _answer_as_crowd(survey_folder)
    else:
        _survey_over_network()


def _survey_over_network() -> None:
    from faircount.cli.show import console, spinner
    from faircount.demo.scenarios import PEERS_SURVEY, SERVERS_SURVEY
    from faircount.demo.trial import trial

    out = console()
    began = time.monotonic()
    with TemporaryDirectory(prefix="faircount-demo-") as folder, trial(Path(folder)) as running:
        out.print(
            "The coordinator (S1) and the aggregator (S2) are running: two processes, two "
            "databases. Every person has a device with a file of its own.\n"
        )
        out.print("[bold]300 people visit once: they answer five questions and leave[/bold]")
        _play(out, running, SERVERS_SURVEY, "staff")
        out.print("\n[bold]60 people hold each other's shares: Algorithm 2 of the paper[/bold]")
        _play(out, running, PEERS_SURVEY, "move")
        with spinner("stopping both servers ..."):
            running.stop()
    out.print(f"\nAll of this took {time.monotonic() - began:.0f} seconds.")
    out.print(
        "This was a trial: whoever runs both servers can combine the shares. Start your own with "
        "faircount serve FOLDER."
    )


def _answer_as_crowd(survey_folder: Path) -> None:
    from faircount.cli.show import spinner
    from faircount.demo.scenarios import answer_as_crowd
    from faircount.owner.survey import Survey

    survey = Survey.at(survey_folder)
    with (
        TemporaryDirectory(prefix="faircount-demo-") as folder,
        spinner("simulated people answer ..."),
    ):
        answered = answer_as_crowd(survey, Path(folder))
    click.echo(f"{answered} simulated people have answered.")


def _survey_with_page() -> None:
    """All simulated people have answered; the link of the last one opens the page."""
    from faircount.cli.show import console
    from faircount.demo.scenarios import YOUR_SURVEY, answer_for_all_but_one, prepare
    from faircount.demo.trial import trial

    out = console()
    with TemporaryDirectory(prefix="faircount-demo-") as folder, trial(Path(folder)) as running:
        survey = prepare(running, YOUR_SURVEY, "working-here")
        link = answer_for_all_but_one(survey, Path(folder))
        out.print(
            f"{survey.params.n_max - 1} simulated people have answered. The last answer is yours: "
            "open this link in a browser on this machine.\n"
        )
        click.echo(link)
        click.prompt("\nPress Enter when you have answered", default="", show_default=False)
        # Closed by the owner: nobody wants to wait for the deadline of a demonstration.
        survey.servers.request(survey.params, "close", phase="submitting")
        _show_result(out, survey)
        click.prompt(
            "\nThe page shows the result, too. Press Enter to stop both servers",
            default="",
            show_default=False,
        )


def _play(out: "Console", running: "Trial", scenario: "Scenario", name: str) -> None:
    from faircount.cli.show import progress_bar, spinner
    from faircount.demo.scenarios import people_of, prepare
    from faircount.demo.stage import play

    with spinner("the owner plans the survey, invites people and opens it ..."):
        survey = prepare(running, scenario, name)
    _announce(out, survey, scenario)
    people = people_of(survey, scenario)
    with progress_bar("people have answered", scenario.requirements.users) as update:
        played = play(running, survey, people, scenario, lambda status: update(status["responses"]))
    coordinator = " and the coordinator" if scenario.kills_coordinator else ""
    out.print(
        f"Killed and restarted on the way: {scenario.kills} of {scenario.crowds} processes with "
        f"devices{coordinator}."
    )
    # The most frequent first; a handful of devices that were killed come last.
    stages = []
    for stage, count in sorted(played.stages.items(), key=lambda entry: -entry[1]):
        stages.append(f"{count} {stage}")
    out.print(f"What the devices know at the end: {', '.join(stages)}.\n")
    _show_result(out, survey, played.counted)


def _announce(out: "Console", survey: "Survey", scenario: "Scenario") -> None:
    from faircount.accounting.guarantee import format_delta

    params = survey.params
    visits = len(params.topology.phases)
    times = "once" if visits == 1 else f"{visits} times"
    dishonest = ""
    if scenario.lies:
        # Said beforehand, so that refused reports are no surprise.
        lies = ", ".join(scenario.lies)
        dishonest = f", {len(scenario.lies)} are dishonest (they send {lies})"
    floor = ""
    if scenario.requirements.floor:
        floor = (
            f", if at least {scenario.requirements.floor} other people are known to choose each "
            "answer (its floor)"
        )
    questions = len(params.questionnaire)
    asked = params.questionnaire.text
    together = ""
    if questions > 1:
        asked += f": {questions} questions."
        together = " for all answers of a person together"
    out.print(
        f"{asked} {params.n_max} are invited and visit {times}; {scenario.leaving} drop out at "
        f"some moment{dishonest}. There is no result with fewer than {params.minimum}. "
        f"{params.mechanism.name} in {params.topology} promises epsilon {params.epsilon:g} and "
        f"delta {format_delta(params.delta)}{together}{floor}.",
        markup=False,
    )


def _show_result(out: "Console", survey: "Survey", counted: "Sequence[Sheet]" = ()) -> None:
    """Show the result and, where the answers of those who were counted are known, the truth."""
    from faircount.cli.show_questions import print_questions
    from faircount.demo.stage import find_truth
    from faircount.estimation.sheet_texts import sheet_words_of
    from faircount.protocol.survey.endings import describe_abort
    from faircount.protocol.wire.messages import Aborted

    result = survey.ending(wait=True)
    if isinstance(result, Aborted):
        out.print(f"No result: {describe_abort(result)}", markup=False)
        return
    known = find_truth(result, counted) if counted else None
    several = len(result.questions) > 1
    print_questions(out, result.questions, sheet_words_of(result), is_named=several, truth=known)
    source = " The truth is known here because they are simulated." if counted else ""
    out.print(f"\n{result.included} people are counted.{source}")
    if result.validity is not None and result.validity.proven:
        out.print(f"Reports: {result.validity}", markup=False)
    out.print(f"Privacy: {result.guarantee}.", markup=False)


def _survey_in_memory(epsilon: float) -> None:
    import numpy as np

    import faircount as fc
    from faircount.cli.show import console, print_bars, print_notes
    from faircount.estimation.presentation import REPETITION
    from faircount.planning.request import privacy_warnings

    cities = list(CITIES)
    # The order of the answers is fixed, so that only the noise differs between two calls.
    answers = np.random.default_rng(7).permutation(np.repeat(cities, list(CITIES.values())))
    truth = np.array(list(CITIES.values())) / answers.size
    # Both mechanisms are made first, so that a wrong epsilon is refused before anything is shown.
    distributed = fc.Laplace(items=cities, epsilon=epsilon)
    local = fc.OUE(items=cities, epsilon=epsilon)
    out = console()
    out.print(
        f"A company asks {answers.size} users for their city. Nobody sees an answer, and no single "
        "server is trusted.\n"
    )
    with out.status("every user adds noise and splits its answer between two servers ..."):
        result = fc.run(answers, distributed)
    print_bars(out, result, truth=truth)
    out.print(f"\nPrivacy: {result.guarantee}.")
    out.print(f"Running again: {REPETITION}.")
    out.print(
        f"Every answer travelled as two encrypted shares over F_{result.facts['modulus']}, each of "
        "them random by itself; the servers added them up and revealed one sum."
    )
    distributed_error = np.sqrt(np.mean((result.estimates - truth) ** 2))
    local_error = np.sqrt(np.mean((fc.run(answers, local).estimates - truth) ** 2))
    out.print(
        f"Root mean squared error: {distributed_error:.4f} here, {local_error:.4f} with local "
        "differential privacy (OUE) at the same epsilon on the same users."
    )
    print_notes(out, privacy_warnings(epsilon))

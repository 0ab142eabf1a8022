"""A survey played over loopback: its owner, both servers, and crowds of clients in processes.

The owner polls the coordinator. Once a third of the people have answered, processes are killed one
after the other and started again. When every crowd has reported that its clients visited a phase,
the owner closes that phase, until every crowd has reported how the survey ended.
"""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from faircount.core.errors import FaircountError
from faircount.core.files import make_private_folder
from faircount.core.questions import Sheet
from faircount.demo.crowd import CrowdPlan, Person
from faircount.demo.processes import Process
from faircount.demo.scenarios import Scenario
from faircount.demo.trial import Trial
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.sheets import SheetMechanism
from faircount.owner.survey import Survey

# Called with the coordinator's status of the survey, several times a second.
OnStatus = Callable[[dict[str, Any]], None]

# Seconds after which a demonstration has failed.
MAX_SECONDS = 300.0


@dataclass
class CrowdProcess:
    """A process with some of the people, and its latest report.

    plan: the people
    process: the process that plays them
    lines: what it has printed and nobody has read yet
    visited_phase: the phase that all of its clients have visited
    summary: how the survey ended for its clients, once it is over
    """

    plan: CrowdPlan
    process: Process
    lines: "queue.Queue[dict[str, Any]]" = field(default_factory=queue.Queue)
    visited_phase: list[Any] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(cls, plan: CrowdPlan, folder: Path) -> "CrowdProcess":
        """Start a process for these people."""
        make_private_folder(folder)
        plan.write(folder / "plan.json")
        arguments = ("faircount.demo.crowd", str(folder / "plan.json"))
        crowd = cls(plan, Process.start(arguments, folder / "messages.log", pipe=True))
        crowd._start_reader()
        return crowd

    def _start_reader(self) -> None:
        output = self.process.running.stdout
        threading.Thread(target=self._read_lines, args=(output,), daemon=True).start()

    def _read_lines(self, output: Any) -> None:
        """Read until the process ends."""
        with output:
            for line in output:
                # A process that is killed may leave half a line.
                if line.endswith(b"\n"):
                    self.lines.put(json.loads(line))

    def crash(self) -> None:
        """Kill it in the middle of whatever it does, and start it again."""
        self.process.kill()
        self.process = self.process.start_again()
        # Its clients continue from their files, and have to report the phase once more.
        self.visited_phase = []
        self._start_reader()

    def update(self) -> None:
        """Take in all that it has printed since the last call."""
        while not self.lines.empty():
            progress = self.lines.get()
            self.visited_phase = progress["phase"]
            if "counted" in progress:
                self.summary = progress
        if not self.process.is_alive and not self.summary and self.lines.empty():
            time.sleep(0.2)  # its last line may still be on its way
            if self.lines.empty():
                message = self.process.last_message()
                raise FaircountError(f"a crowd of devices has ended early: {message}")


@dataclass(frozen=True)
class DemoOutcome:
    """How a survey ended: people by stage, and the answers of those who were counted."""

    stages: dict[str, int]
    counted: tuple[Sheet, ...]


def find_truth(result: QuestionnaireResult, counted: Sequence[Sheet]) -> dict[int, list[float]]:
    """What a result without noise would say, as numbers of questions and their estimates."""
    questionnaire = result.questionnaire
    if isinstance(result.mechanism, SheetMechanism):
        opened = [questionnaire.cells_from_bits(questionnaire.encode(sheet)) for sheet in counted]
        exact = replace(result, cells=np.array(opened).sum(axis=0), included=len(counted))
        return {
            question.number: [row.estimate for row in question.estimates]
            for question in exact.questions
        }
    # Other mechanisms count the answers to one question.
    votes = Counter(sheet[0] for sheet in counted)
    positions = range(len(result.cells))
    return {1: [votes[position] / len(counted) for position in positions]}


def play(
    trial: Trial, survey: Survey, people: Sequence[Person], scenario: Scenario, on_status: OnStatus
) -> DemoOutcome:
    """Play all people in processes, of which some are killed, while the owner closes the phases."""
    crowds = _start_crowds(trial, survey, people, scenario.crowds)
    crashes = [crowds[number % len(crowds)].crash for number in range(scenario.kills)]
    if scenario.kills_coordinator:
        crashes.append(trial.crash_coordinator)
    # However the survey ends, no process stays behind.
    try:
        _run_to_the_end(survey, crowds, crashes, on_status)
    finally:
        for crowd in crowds:
            crowd.process.stop()

    stages = Counter[str]()
    counted: list[Sheet] = []
    for crowd in crowds:
        stages.update(crowd.summary["stages"])
        counted += [crowd.plan.people[number].sheet for number in crowd.summary["counted"]]
    return DemoOutcome(dict(stages), tuple(counted))


def _start_crowds(
    trial: Trial, survey: Survey, people: Sequence[Person], number_of_crowds: int
) -> list[CrowdProcess]:
    survey_id = survey.params.survey.hex()
    crowds = []
    for number in range(number_of_crowds):
        folder = trial.folder / f"devices-{survey_id[:8]}-{number}"
        members = tuple(people[number::number_of_crowds])
        plan = CrowdPlan(trial.address, survey_id, str(folder), members)
        crowds.append(CrowdProcess.start(plan, folder))
    return crowds


def _run_to_the_end(
    survey: Survey,
    crowds: Sequence[CrowdProcess],
    crashes: list[Callable[[], None]],
    on_status: OnStatus,
) -> None:
    """The owner's loop."""
    deadline = time.monotonic() + MAX_SECONDS
    closed_phase: list[Any] = []
    while not all(crowd.summary for crowd in crowds):
        if time.monotonic() > deadline:
            raise FaircountError(f"the survey has not ended after {MAX_SECONDS:.0f} seconds")
        status = survey.servers.status(survey.params)
        on_status(status)
        for crowd in crowds:
            crowd.update()

        phase = [status["phase"], status["attempt"]]
        # Crashes come before the phase can close, so that the processes have work to resume.
        if crashes and status["responses"] * 3 >= status["invited"]:
            crash = crashes.pop(0)
            crash()
        elif phase != closed_phase and _has_everybody_visited(survey, crowds, phase):
            name, attempt = phase
            survey.servers.request(survey.params, "close", phase=name, attempt=attempt)
            closed_phase = phase
        time.sleep(0.1)


def _has_everybody_visited(
    survey: Survey, crowds: Sequence[CrowdProcess], phase: list[Any]
) -> bool:
    is_open = phase[0] in survey.params.topology.phases
    return is_open and all(crowd.visited_phase == phase for crowd in crowds)

"""A survey played over loopback: its owner, both servers, and crowds of devices in processes, some of them killed."""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError
from faircount.core.files import private_folder
from faircount.service.demo.crowd import CrowdPlan, Person
from faircount.service.demo.scenarios import Scenario
from faircount.service.owner.survey import Survey
from faircount.service.processes import Process
from faircount.service.trial import Trial

Told = Callable[[dict[str, Any]], None]
"""Is told where the survey stands, as S1 says it."""

LONGEST = 300.0
"""Seconds after which a demonstration has failed."""


@dataclass
class CrowdProcess:
    """A process with some of the people, and what it said last."""

    plan: CrowdPlan
    process: Process
    heard: "queue.Queue[dict[str, Any]]" = field(default_factory=queue.Queue)
    seen: list[Any] = field(default_factory=list)  # the phase that all of its devices have seen
    ended: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(cls, plan: CrowdPlan, folder: Path) -> "CrowdProcess":
        """Start it with its people."""
        private_folder(folder)
        plan.write(folder / "plan.json")
        arguments = ("faircount.service.demo.crowd", str(folder / "plan.json"))
        return cls(plan, Process.start(arguments, folder / "messages.log", pipe=True))._listening()

    def _listening(self) -> "CrowdProcess":
        threading.Thread(target=self._listen, args=(self.process.running,), daemon=True).start()
        return self

    def _listen(self, running: Any) -> None:
        """Until the process ends; a line that it was killed in is none."""
        with running.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self.heard.put(json.loads(line))

    def killed_and_started_again(self) -> None:
        """End it in the middle of whatever it does; its devices go on from their files."""
        self.process.kill()
        self.process, self.seen = self.process.again(), []
        self._listening()

    def listen(self) -> None:
        """Take in what it has said since."""
        while not self.heard.empty():
            said = self.heard.get()
            self.seen = said["phase"]
            if "counted" in said:
                self.ended = said
        if not self.process.alive and not self.ended and self.heard.empty():
            time.sleep(0.2)  # its last line may still be on its way
            if self.heard.empty():
                raise FaircountError(f"a crowd of devices has ended early: {self.process.last_words()}")


@dataclass(frozen=True)
class Played:
    """How a survey went: what became of everybody, and the answers of those who saw that they were counted."""

    stages: dict[str, int]
    counted: Counter[str]


def play(trial: Trial, survey: Survey, people: Sequence[Person], scenario: Scenario, told: Told) -> Played:
    """All people in processes of which some are killed on the way, while the owner closes every visit."""
    running = _started(trial, survey, people, scenario.crowds)
    accidents = _accidents(trial, running, scenario)
    try:
        _to_the_end(survey, running, accidents, told)
        return _played(running)
    finally:
        for each in running:
            each.process.stop()


def _accidents(trial: Trial, running: Sequence[CrowdProcess], scenario: Scenario) -> list[Callable[[], None]]:
    """What is killed, and started again, once a third of the people have come: one after the other."""
    crowds = [running[number % len(running)].killed_and_started_again for number in range(scenario.kills)]
    return [*crowds, trial.kill_s1] if scenario.kills_s1 else crowds


def _started(trial: Trial, survey: Survey, people: Sequence[Person], crowds: int) -> list[CrowdProcess]:
    name = survey.params.survey.hex()
    running = []
    for number in range(crowds):
        folder = trial.folder / f"devices-{name[:8]}-{number}"
        plan = CrowdPlan(trial.address, name, str(folder), tuple(people[number::crowds]))
        running.append(CrowdProcess.start(plan, folder))
    return running


def _to_the_end(survey: Survey, running: list[CrowdProcess], accidents: list[Callable[[], None]], told: Told) -> None:
    """The owner's loop: when every device has seen a phase it is closed, until everybody knows how it ended."""
    end, closed = time.monotonic() + LONGEST, list[Any]()
    while not all(each.ended for each in running):
        if time.monotonic() > end:
            raise FaircountError(f"the survey has not ended after {LONGEST:.0f} seconds")
        now = survey.servers.status(survey.params)
        phase = [now["state"], now["attempt"]]
        told(now)
        for each in running:
            each.listen()
        if accidents and now["users"] * 3 >= now["people"]:
            accidents.pop(0)()
        elif _all_have_seen(survey, running, phase) and phase != closed:
            survey.servers.wish(survey.params, "close", state=now["state"], attempt=now["attempt"])
            closed = phase
        time.sleep(0.1)


def _all_have_seen(survey: Survey, running: Sequence[CrowdProcess], phase: list[Any]) -> bool:
    return phase[0] in survey.params.topology.phases and all(each.seen == phase for each in running)


def _played(running: Sequence[CrowdProcess]) -> Played:
    stages, counted = Counter[str](), Counter[str]()
    for each in running:
        stages.update(each.ended["stages"])
        counted.update(each.plan.people[number].item for number in each.ended["counted"])
    return Played(dict(stages), counted)

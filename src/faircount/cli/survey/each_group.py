"""Commands on the folder of a survey in groups: they act on every group, one after the other."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any

import click

from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError, ParameterError


def each_group(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes the FOLDER of a survey act on all groups, if there are several.

    With --json there is one document, with what the command says about every group. A group in
    which the command fails does not keep it from the others.
    """

    @wraps(command)
    def run(folder: Path, **options: Any) -> None:
        from faircount.owner.groups import GroupedSurvey, is_grouped

        if not is_grouped(folder):
            command(folder=folder, **options)
            return
        # A second table could move people between groups, whose invitations exist.
        if options.get("people") is not None:
            raise ParameterError("the people of every group are known: leave --people out")
        if options.get("out") is not None:
            raise ParameterError("--out names one file, and there are several groups: leave it out")
        grouped = GroupedSurvey.at(folder)
        # Owners are reminded wherever they look that levels are public, and of what each means.
        remarks = {}
        for name, epsilon in (grouped.levels or {}).items():
            remarks[name] = f" (public level, epsilon {epsilon:g})"
        runs = _Runs(command, grouped.column, remarks, bool(options.get("as_json")))
        for group in grouped.groups:
            runs.run(group.name, group.survey.folder.path, options)
        runs.finish()

    return run


class _Runs:
    """The runs of one command, and what they ended with."""

    def __init__(
        self, command: Callable[..., None], column: str, remarks: dict[str, str], as_json: bool
    ) -> None:
        self.command = command
        self.column = column
        self.remarks = remarks
        self.as_json = as_json
        self.documents: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.code = 0

    def run(self, name: str, folder: Path, options: dict[str, Any]) -> None:
        """Run the command in the folder of one group."""
        printed = StringIO()
        try:
            if self.as_json:
                # The command prints its own document, which becomes one entry of the document of
                # all groups.
                with redirect_stdout(printed):
                    self.command(folder=folder, **options)
            else:
                remark = self.remarks.get(name, "")
                click.echo(f"\n{escape_controls(self.column)}: {escape_controls(name)}{remark}")
                self.command(folder=folder, **options)
        # The largest code of all groups, so that a script notices the worst of them.
        except click.exceptions.Exit as ending:
            self.code = max(self.code, ending.exit_code)
        except FaircountError as problem:
            self.failed[name] = str(problem)
            if not self.as_json:
                click.echo(f"Not done: {escape_controls(str(problem))}")
        if printed.getvalue():
            self.documents[name] = json.loads(printed.getvalue())

    def finish(self) -> None:
        """Print the JSON of all groups, and fail if the command failed in one."""
        if self.as_json:
            from faircount.cli.show import print_json

            print_json({"column": self.column, "groups": self.documents, "failed": self.failed})
        if self.failed:
            names = ", ".join(self.failed)
            raise FaircountError(f"not done in {len(self.failed)} groups: {names}")
        if self.code:
            raise click.exceptions.Exit(self.code)

"""The command line: one file per command, loaded only when that command is called."""

from importlib import import_module
from typing import IO, Any, ClassVar

import click

COMMANDS = {
    "plan": "What is possible with so many users: every mechanism at equal privacy.",
    "run": "A private histogram of a column of a table, every row acting as a user.",
    "budget": "A budget in a file, which runs on the same people share: create it, show it.",
    "survey": "Run a survey over the network: plan, invite, watch, read the result.",
    "dashboard": "Create and watch surveys in a browser, on the owner's own machine.",
    "answer": "Take part in a survey: the other end of an invitation.",
    "coordinator": "Run S1, the server that people's answers go to.",
    "aggregator": "Run S2, the other server: it keeps budgets and opens one sum.",
    "serve": "Both servers on this machine, for a trial.",
    "backup": "Copy the database of a server while it runs.",
    "restore": "Put a backup of a server in its place, and make it ask what it has missed.",
    "reopen": "Show S2 its receipts after a restore, so that it goes on.",
    "privacy": "The exact guarantee of given parameters, the paper's bounds beside it.",
    "audit": "Run a mechanism's own code and try to refute its privacy claim.",
    "costs": "Table I of the paper: formulas beside counters of running code.",
    "reproduce": "The figures and tables of the paper, made again.",
    "demo": "A survey of made-up people over a network on this machine, start to end.",
}
"""In the order in which a newcomer needs them."""

OTHER_NAMES = {"histogram": "run"}
"""What is called otherwise in Python has that name too."""


class PlainError(click.ClickException):
    """One line on standard error and exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line, and nothing about usage."""
        from faircount.core.domain import shown

        click.echo(f"faircount: {shown(self.message)}", file=file, err=file is None)


class LazyGroup(click.Group):
    """Lists commands without importing them, so that --help answers at once."""

    words: ClassVar[dict[str, str]]
    """The line of help of every command, in the order in which a newcomer needs them."""

    def place(self, name: str) -> tuple[str, str]:
        """The module of a command, and what it is called there."""
        return f"faircount.cli.{name}", name

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in that order."""
        return list(self.words)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of the command asked for."""
        if cmd_name not in self.words:
            return None
        module, name = self.place(cmd_name)
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands and their one-line help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.words.items()))


class Commands(LazyGroup):
    """All commands, also under the names that they have in Python."""

    words = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """By either name."""
        return super().get_command(ctx, OTHER_NAMES.get(cmd_name, cmd_name))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Every call begins here, that for help too."""
        from faircount.cli.terminal import ready

        ready()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Errors of ours become one plain line and exit code 2; anything else is a bug and keeps its trace."""
        from faircount.core.errors import FaircountError

        try:
            return super().invoke(ctx)
        except FaircountError as error:
            raise PlainError(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="faircount")
def main() -> None:
    """Frequencies of a few hundred users without seeing one answer.

    Users' devices add secret shares; only a differentially private total is opened, its privacy computed exactly.
    """

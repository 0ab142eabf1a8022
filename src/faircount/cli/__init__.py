"""The command line.

Commands are loaded only when they are called, so that `faircount --help` and shell completion
answer at once. Numerical and plotting libraries are imported inside the commands for the same
reason.
"""

import atexit
import gc
import os
import sys
from collections import Counter
from importlib import import_module
from typing import IO, Any, ClassVar, NamedTuple

import click


class CommandEntry(NamedTuple):
    """Where a command is implemented, and its line in the list of commands."""

    module: str
    summary: str


# In the order in which a newcomer needs them.
COMMANDS = {
    "plan": CommandEntry("plan", "Say how accurate a survey will be, and what it needs."),
    "run": CommandEntry("run", "Estimate a private histogram of a column of a table."),
    "budget": CommandEntry("budget", "Create or show a privacy budget that several runs share."),
    "survey": CommandEntry("survey", "Create and run a survey over the network."),
    "dashboard": CommandEntry("dashboard", "Create and watch surveys in a browser."),
    "answer": CommandEntry("answer", "Take part in a survey that you were invited to."),
    "page": CommandEntry("page", "Write the participant's page for your own web server."),
    "coordinator": CommandEntry("servers", "Run the coordinator (S1), which collects reports."),
    "aggregator": CommandEntry("servers", "Run the aggregator (S2), which keeps the budgets."),
    "serve": CommandEntry("servers", "Run both servers on this machine, for a trial."),
    "token": CommandEntry("tokens", "List, add, replace and revoke tokens of a server."),
    "operator": CommandEntry("operator", "Stop, hand over or erase surveys on your server."),
    "backup": CommandEntry("recovery", "Copy the database of a running server."),
    "restore": CommandEntry("recovery", "Restore a server from a backup and resynchronize it."),
    "reopen": CommandEntry("recovery", "Open a budget of the aggregator again after a restore."),
    "privacy": CommandEntry("privacy", "Compute the guarantee of given parameters."),
    "audit": CommandEntry("audit", "Try to refute a mechanism's privacy claim by running it."),
    "costs": CommandEntry("costs", "Compare Table I of the paper with measured costs."),
    "reproduce": CommandEntry("reproduce", "Reproduce the figures and tables of the paper."),
    "demo": CommandEntry("demo", "Watch a survey of simulated people from start to end."),
}

# Commands that multiply no large matrices. NumPy's threads for that would only wait for each other,
# with a quarter of the CPU time of a plan.
ONE_THREAD = frozenset({"plan", "run", "privacy"})

# `faircount histogram` is `faircount run`, because that is its name in Python.
ALIASES = {"histogram": "run"}


class PlainError(click.ClickException):
    """An error that is shown as one line on standard error, with exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message without click's usage line."""
        from faircount.core.domain import escape_controls

        # `shown` escapes control characters: a message may quote a column name from a file.
        click.echo(f"faircount: {escape_controls(self.message)}", file=file, err=file is None)


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    package: ClassVar[str]
    entries: ClassVar[dict[str, CommandEntry]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that was called."""
        # For None click itself reports the unknown command, with its usual advice.
        if cmd_name not in self.entries:
            return None
        module = import_module(f"{self.package}.{self.entries[cmd_name].module}")
        command: click.Command = getattr(module, self.function_name(cmd_name))
        return command

    def function_name(self, cmd_name: str) -> str:
        """The name of a command in its module."""
        return cmd_name

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse an option that is given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        # Shell completion resolves commands that are still being typed.
        if command is not None and not ctx.resilient_parsing:
            _check_repeated(click.Context(command, ctx, name, resilient_parsing=True), rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and their summaries, which need no import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


def _check_repeated(ctx: click.Context, args: list[str]) -> None:
    """Refuse an option with one value that is given twice; click takes the last one silently."""
    _, _, given = ctx.command.make_parser(ctx).parse_args(list(args))
    for option, times in Counter(given).items():
        if not isinstance(option, click.Option) or option.multiple or option.is_flag:
            continue
        if times > 1:
            message = f"{option.opts[0]} is given {times} times: give it once"
            raise click.UsageError(message, ctx)


class Commands(LazyGroup):
    """All commands of faircount."""

    package = "faircount.cli"
    entries = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command by its name or its alias."""
        name = ALIASES.get(cmd_name, cmd_name)
        # OpenBLAS reads this when NumPy is loaded, which only commands do.
        if name in ONE_THREAD and "numpy" not in sys.modules:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return super().get_command(ctx, name)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Prepare the output streams, before click writes help or an error to them."""
        from faircount.cli.terminal import prepare_streams

        # Before a process ends, Python searches all its objects for cycles, several times. The
        # memory goes back anyway, and the search would be a tenth of the time of a plan.
        atexit.register(gc.freeze)
        prepare_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Show our own errors as one line; any other exception is a bug and keeps its traceback."""
        from faircount.core.errors import FaircountError

        try:
            return super().invoke(ctx)
        except click.NoSuchOption as problem:
            raise _suggest_option(problem) from None
        except FaircountError as error:
            raise PlainError(str(error)) from error


# Names that people try first, and the option that does what they mean.
MEANT_OPTIONS = {
    "--seed": "--simulate-seed",
    "--random-state": "--simulate-seed",
    "--dropout": "--minimum",
}


def _suggest_option(problem: click.NoSuchOption) -> click.NoSuchOption:
    """Suggest what an unknown option probably means, where similar spellings mislead."""
    meant = MEANT_OPTIONS.get(problem.option_name)
    parameters = problem.ctx.command.params if problem.ctx is not None else []
    if meant is None or not any(meant in parameter.opts for parameter in parameters):
        return problem
    message = f"No such option {problem.option_name!r}. Did you mean {meant!r}?"
    return click.NoSuchOption(problem.option_name, message, ctx=problem.ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="faircount")
def main() -> None:
    """Count answers without seeing any of them, with differential privacy.

    Every response is split into secret shares between two servers. Only a noisy total is revealed,
    and its privacy guarantee is computed from the noise itself.
    """

"""`faircount survey`: the owner's commands, each in a file of its own or beside its like."""

from importlib import import_module

import click

SUBCOMMANDS = {
    "create": ("create", "Plan a survey, get keys from both servers, write its folder."),
    "invite": ("people", "Make the invitations, and tell both servers whom to admit."),
    "open": ("control", "Let people answer, from now on."),
    "status": ("outcome", "Where the survey stands, and what it waits for."),
    "remind": ("people", "A table of those who have not answered yet."),
    "reissue": ("people", "A new invitation for somebody who has lost theirs unused."),
    "extend": ("control", "Give people more time."),
    "close": ("control", "Take no more answers: count those that are there."),
    "result": ("outcome", "The result, checked against the parameters in the folder."),
    "abort": ("control", "End the survey without a result."),
    "receipts": ("outcome", "What S2 has signed about the budget, for its operator after a restore."),
    "delete": ("control", "Remove a survey that is over from both servers."),
}
"""In the order in which an owner needs them: the file, and the line of help."""


class LazySubcommands(click.Group):
    """Lists commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which an owner needs them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of the command asked for."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module = import_module(f"faircount.cli.survey.{SUBCOMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands and their one-line help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in SUBCOMMANDS.items()])


@click.group(cls=LazySubcommands)
def survey() -> None:
    """Run a survey: plan it, invite people, watch it, read its result.

    Everything about a survey is in one folder on your machine: the parameters that everybody can read, the invitations
    and your access to both servers, which nobody else may read. Invitation tokens reach neither server.
    """

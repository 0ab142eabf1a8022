"""`faircount survey`: the owner's commands, each in a file of its own or beside its like."""

import click

from faircount.cli import LazyGroup

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


class Subcommands(LazyGroup):
    """The owner's commands."""

    words = {name: words for name, (_, words) in SUBCOMMANDS.items()}  # noqa: RUF012 - a table, never changed

    def place(self, name: str) -> tuple[str, str]:
        """Several stand in one file."""
        return f"faircount.cli.survey.{SUBCOMMANDS[name][0]}", f"{name}_command"


@click.group(cls=Subcommands)
def survey() -> None:
    """Run a survey: plan it, invite people, watch it, read its result.

    Everything about a survey is in one folder on your machine: the parameters that everybody can read, the invitations
    and your access to both servers, which nobody else may read. Invitation tokens reach neither server.
    """

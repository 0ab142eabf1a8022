"""`faircount survey`: the owner's commands."""

import click

from faircount.cli import CommandEntry, LazyGroup

# In the order in which an owner needs them.
SUBCOMMANDS = {
    "create": CommandEntry("create", "Plan a survey and get its keys from both servers."),
    "invite": CommandEntry("people", "Make the invitations, and register them with both servers."),
    "open": CommandEntry("control", "Let the invited people answer from now on."),
    "mail": CommandEntry("mail", "Send invitations or reminders by mail."),
    "status": CommandEntry("outcome", "Show the phase of the survey and what it waits for."),
    "remind": CommandEntry("people", "List the people who have not answered yet."),
    "reissue": CommandEntry("people", "Replace an unused invitation that was lost."),
    "extend": CommandEntry("control", "Give people more time to answer."),
    "close": CommandEntry("control", "Accept no more answers and count those received."),
    "result": CommandEntry("outcome", "Verify the result and show it."),
    "combine": CommandEntry("combined_result", "Combine surveys of different people."),
    "repeat": CommandEntry("series", "Make the next survey among the same people."),
    "trend": CommandEntry("series", "Compare the results of several surveys over time."),
    "label": CommandEntry("label", "Write what the survey promises, for people and programs."),
    "abort": CommandEntry("control", "End the survey without a result."),
    "receipts": CommandEntry(
        "outcome", "Save the reservations that the aggregator needs to reopen."
    ),
    "hand-over": CommandEntry("control", "Give the survey to another owner."),
    "use-tokens": CommandEntry("control", "Use new tokens for the survey from now on."),
    "delete": CommandEntry("control", "Delete a finished survey from both servers."),
}


class Subcommands(LazyGroup):
    """The owner's commands."""

    package = "faircount.cli.survey"
    entries = SUBCOMMANDS

    def function_name(self, cmd_name: str) -> str:
        """`open_command` and the like, because `open` is a builtin."""
        return f"{cmd_name.replace('-', '_')}_command"


@click.group(cls=Subcommands)
def survey() -> None:
    """Create a survey, invite people, watch it and read its result.

    A survey is a folder on your machine. It holds the parameters, which everybody can read, and the
    invitations and your access to both servers, which you must keep secret. The invitation codes
    never reach a server.
    """

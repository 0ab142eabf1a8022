"""Writes docs/reference/cli.md from the help of every command. `--check` fails if the page is out
of date.
"""

import click
from page import write

from faircount.cli import COMMANDS, main
from faircount.cli.survey import SUBCOMMANDS

HEAD = """# The command line

Made by `python docs/generate/make_cli.py` from the commands' own help; a test fails when this page
is out of date. [Analyse a table](../how-to/analyse-a-table.md) and [Your first
survey](../tutorials/first-survey.md) show the commands in use.

With `--json` a command prints one JSON object on standard output and nothing else. Errors go to
standard error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | `audit` refuted a claim; the runs of `reproduce` contradict the theory |
| 2 | an error; `answer`: the server did not accept the report, for example because the invitation was used |
| 3 | `plan` advises against the survey; `answer` has stored the report on this device, but the server does not have it yet; `survey mail` has left somebody without a mail |
| 4 | `survey result`: the survey ended without a result |

## Completion in the shell

Add one line to your shell's start-up file to complete commands and options:

```sh
eval "$(_FAIRCOUNT_COMPLETE=bash_source faircount)"           # in ~/.bashrc
eval "$(_FAIRCOUNT_COMPLETE=zsh_source faircount)"            # in ~/.zshrc
_FAIRCOUNT_COMPLETE=fish_source faircount | source            # in ~/.config/fish/config.fish
```
"""


def helped(*names: str) -> str:
    """The help text as a terminal of 80 columns shows it."""
    wide = {"terminal_width": 80, "max_content_width": 80, "help_option_names": ["-h", "--help"]}
    command: click.Command = main
    context = click.Context(main, info_name="faircount", **wide)
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context, **wide)
    return command.get_help(context)


def render() -> str:
    parts = [HEAD, f"```text\n{helped()}\n```\n"]
    for name in COMMANDS:
        parts.append(f"## faircount {name}\n\n```text\n{helped(name)}\n```\n")
        if name == "survey":
            parts += [
                f"### faircount {name} {subcommand}\n\n```text\n{helped(name, subcommand)}\n```\n"
                for subcommand in SUBCOMMANDS
            ]
    return "\n".join(parts)


if __name__ == "__main__":
    write("reference/cli.md", render())

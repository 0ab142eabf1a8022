"""Writes docs/cli.md from the help of every command. `--check` fails if the page is out of date."""

import click
from page import write

from faircount.cli import COMMANDS, main
from faircount.cli.survey import SUBCOMMANDS

HEAD = """# The command line

Made by `python docs/make_cli.py` from the commands' own help; a test fails when this page is out of date. The
[guide](guide.md) shows them at work.

With `--json` a command prints one JSON object on standard output and nothing else. Errors are told on standard error,
with exit code 2; `audit` exits with 1 when it refutes a claim, `reproduce` when its runs contradict the theory, `plan`
with 3 when it says not to run it, `answer` with 3 while the answer is kept on the device and not yet with the server, `survey result`
with 4 when the survey ended without one.

## Completion in the shell

The shell completes commands and options after one line in its start-up file:

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
            parts += [f"### faircount {name} {each}\n\n```text\n{helped(name, each)}\n```\n" for each in SUBCOMMANDS]
    return "\n".join(parts)


if __name__ == "__main__":
    write("cli.md", render())

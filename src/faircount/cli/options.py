"""Options that several commands share, so that the same option means the same everywhere."""

import csv
import os
import re
from pathlib import Path

import click

from faircount.core.errors import ParameterError

# Whether a file exists is checked by the commands themselves, which can say what the file is for.
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
SURVEY_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)

JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
CERTIFICATES = click.option(
    "--certificates",
    metavar="FILE",
    help="Certificates to trust, for a server whose certificate is signed by a private authority.",
)
CONFIDENCE = click.option(
    "--confidence", default=0.95, show_default=True, help="Confidence of the intervals."
)
COVERS = click.option(
    "--covers",
    type=click.Choice(["users", "population"]),
    default="users",
    show_default=True,
    help="Whether intervals are about those who responded, or about the population that they are a "
    "sample of.",
)
PEOPLE = click.option(
    "--people",
    type=FILE,
    help="Table of the people to invite (.csv, .xlsx) with a header, or a file with one person a "
    "line.  [default: people are numbered]",
)
ADDRESS_COLUMN = click.option(
    "--address-column",
    metavar="TITLE",
    help="Column of --people that tells people apart.  [default: the only one with e-mail "
    "addresses]",
)

# Texts that several commands use for the same option.
DELTA = "Probability that the privacy loss exceeds epsilon"
FLOOR = "Minimum number of other people known to choose each item"
COLLUDING = "Share of the users who may collude; at least one always counts as an insider"


# What is more likely the name of a file than an item.
_FILE_NAME = re.compile(r".*[/\\].*|.*\.(txt|csv|tsv|list|lst|dat)", re.IGNORECASE)


def parse_rate_option(_: click.Context, __: click.Parameter, given: str | None) -> float | None:
    """The expected response rate, given as 60% or 0.6."""
    from faircount.planning.minimum import parse_response_rate

    return None if given is None else parse_response_rate(given)


def parse_error_option(_: click.Context, __: click.Parameter, given: str | None) -> float | None:
    """The target error, given as 2% or 0.02."""
    from faircount.planning.minimum import parse_target_error

    return None if given is None else parse_target_error(given)


def parse_items(option: str, given: str) -> list[str]:
    """The items of an option, as `parse_list` reads them."""
    items = parse_list(option, "a,b,c", given)
    # One item is never a list, so the lines of the file were meant. Path.is_file raises for texts
    # that are too long for a name.
    if len(items) == 1 and os.path.isfile(given):  # noqa: PTH113
        raise ParameterError(f"{option} {given} is the name of a file: did you mean @{given}?")
    if len(items) == 1 and _FILE_NAME.fullmatch(given):
        raise ParameterError(
            f"{option} {given} is a single item, and a list has at least 2: if it is the name of a "
            f"file with one item a line, write @{given}"
        )
    return items


def parse_levels(option: str, given: str) -> dict[str, float]:
    """The privacy levels of an option, as their names with their epsilons, in the order given."""
    found: dict[str, float] = {}
    for entry in parse_list(option, "strong=0.5,normal=2", given):
        # The last sign counts, because the name of a level may contain "=" itself.
        name, _, number = entry.rpartition("=")
        try:
            epsilon = float(number)
        except ValueError:
            raise ParameterError(f"{option}: {entry!r} is not of the form level=epsilon") from None
        # Two epsilons of one level are a typing error, and the last one would win in silence.
        if name.strip() in found:
            raise ParameterError(f"{option} names the level {name.strip()!r} twice")
        found[name.strip()] = epsilon
    return found


def parse_list(option: str, example: str, given: str) -> list[str]:
    """The entries of an option: separated by commas, or the lines of @FILE.

    An entry that contains a comma is written in double quotes.
    """
    from faircount.analysis.prepare import read_lines

    try:
        # The sign that curl uses for files; a list of items rarely begins with it.
        if given.startswith("@"):
            entries = read_lines(Path(given[1:]))
        else:
            entries = next(csv.reader([given], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise ParameterError(f"{option}: a quote is opened and not closed") from None
    found = [entry.strip() for entry in entries if entry.strip()]
    if not found:
        raise ParameterError(
            f"{option} lists nothing: write {option} {example}, or name a file with one entry a "
            "line"
        )
    return found

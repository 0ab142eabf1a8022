"""`faircount survey label`: what a survey promises, for participants and for programs."""

from pathlib import Path

import click

from faircount.cli.options import FILE, JSON, SURVEY_FOLDER


@click.command("label")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--html", type=FILE, help="Write a page for participants.")
@click.option("--yaml", type=FILE, help="Write a document for programs, as YAML.")
@click.option("--out", type=FILE, help="Write a document for programs, as JSON.")
@click.option("--language", help="Of the page: en or de.  [default: of the invitations]")
@JSON
def label_command(
    folder: Path,
    html: Path | None,
    yaml: Path | None,
    out: Path | None,
    language: str | None,
    as_json: bool,
) -> None:
    """Write the privacy label of the survey in FOLDER: what is promised, to whom, and what is not.

    All numbers are computed again from the parameters, the signed result and the ledger of the
    aggregator; a label whose numbers do not hold is refused. Without an option it is printed as
    JSON.
    """
    from faircount.core.files import write_durably
    from faircount.owner.folder import PUBLIC
    from faircount.owner.survey import Survey

    label = Survey.at(folder).label()
    written = []
    if html is not None:
        write_durably(html, label.to_html(language), PUBLIC)
        written.append(html)
    if yaml is not None:
        write_durably(yaml, label.to_yaml(), PUBLIC)
        written.append(yaml)
    if out is not None:
        write_durably(out, label.to_json(), PUBLIC)
        written.append(out)
    if as_json or not written:
        click.echo(label.to_json().decode(), nl=False)
        return
    for path in written:
        click.echo(f"Written to {path}")

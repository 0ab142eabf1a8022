"""`faircount page`: the participant's page for another origin than the coordinator's."""

from pathlib import Path

import click

from faircount.cli.options import FOLDER, JSON


@click.group()
def page() -> None:
    """Serve the participant's page from a place that the coordinator cannot change."""


@page.command("export")
@click.argument("folder", type=FOLDER)
@click.option(
    "--coordinator",
    metavar="URL",
    required=True,
    help="Address of the coordinator (S1) as participants reach it.",
)
@JSON
def export(folder: Path, coordinator: str, as_json: bool) -> None:
    """Write the page into a new FOLDER, as static files for any web server.

    The page calls the coordinator for data only: no script comes from there. Ask the operator of
    the coordinator to add the origin of your site to allowed_origins, and give the address of the
    page to faircount survey create --page. The same version of faircount writes the same bytes for
    everybody, so that anybody can compare the hash.
    """
    from faircount.cli.show import print_json
    from faircount.owner.page_export import export_page

    bundle_hash = export_page(folder, coordinator)
    if as_json:
        print_json({"folder": str(folder), "coordinator": coordinator, "hash": bundle_hash})
        return
    click.echo(f"The page for {coordinator} is in {folder}.\nIts hash: {bundle_hash}")

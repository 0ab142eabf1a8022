"""`faircount survey create`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, FILE, JSON, listed, seconds

if TYPE_CHECKING:
    from faircount.service.owner.advice import Advice
    from faircount.service.owner.folder import OwnerFile
    from faircount.service.owner.survey import Survey


@click.command("create")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--servers", type=FILE, required=True, help="File with address and token of both servers: see serve.")
@click.option("--question", required=True, help="What people are asked.")
@click.option(
    "--items",
    metavar="a,b,c|@FILE",
    required=True,
    help="The answers to choose from: here (one with a comma in double quotes), or in a file, one a line.",
)
@click.option("--users", type=int, required=True, help="How many people will be invited, at most.")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Privacy loss of the survey.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help=f"{DELTA}.")
@click.option(
    "--absent",
    type=float,
    help="Share of the invited who may be missing: with fewer answers the survey ends without a result.  "
    "[default: 5%, at least one]",
)
@click.option("--open-for", default="3d", show_default=True, help="Time for each visit: 90s, 30m, 12h, 3d.")
@click.option("--owner", default="", help="Who asks.")
@click.option("--purpose", default="", help="What the result is for.")
@click.option("--contact", default="", help="Where people can ask back.")
@click.option("--s1-operator", default="", help="Who runs S1.")
@click.option("--s2-operator", default="", help="Who runs S2: another organization than S1's.")
@click.option(
    "--population",
    default="",
    help="Name of the people who share a budget over several surveys; without it this survey has one of its own.",
)
@click.option(
    "--budget",
    type=(float, float),
    metavar="EPSILON DELTA",
    help="What the population may lose in all its surveys.  [default: what this survey costs]",
)
@click.option(
    "--mechanism",
    default="auto",
    show_default=True,
    help="auto takes the best one for the topology; in servers, of those whose reports are proven to be one vote.",
)
@click.option("--topology", default="servers", show_default=True, help="How shares travel: servers needs one visit.")
@click.option("--floor", default=0, show_default=True, help="Other holders every item has for sure: dpds, tss-prime.")
@click.option("--colluding", default=0.0, show_default=True, help="Share of the people who may pool what they know.")
@click.option("--address", help="Address of S1 in invitations, where a proxy gives it another one.")
@click.option("--language", default="en", show_default=True, help="Language of the printed invitations: en or de.")
@click.option("--anyway", is_flag=True, help="Make it although the error would swamp the answers.")
@JSON
def create_command(folder: Path, servers: Path, items: str, open_for: str, as_json: bool, **given: Any) -> None:
    """Plan a survey, get keys from both servers, and write its FOLDER.

    Nobody is invited yet, and nothing can be changed afterwards: what is asked, of whom and with which privacy is under
    the hash in every invitation.
    """
    from faircount.cli.show import busy
    from faircount.protocol import topology_named
    from faircount.service.owner.advice import Wishes
    from faircount.service.owner.survey import Facts, create

    budget, anyway = given.pop("budget"), given.pop("anyway")
    printed = given.pop("address"), given.pop("language")
    wished = ("users", "epsilon", "delta", "absent", "mechanism", "floor", "colluding")
    wishes = Wishes(
        tuple(listed("--items a,b,c", items)),
        topology=topology_named(given.pop("topology")),
        **{name: given.pop(name) for name in wished},
    )
    facts = Facts(seconds=seconds("--open-for", open_for), **given)
    owner = _owner(servers, *printed, budget or (wishes.epsilon, wishes.delta))
    with busy("every mechanism, and keys from both servers ..."):
        made, advice = create(folder, wishes, facts, owner, anyway=anyway)
    _show(made, advice, as_json, own_budget=not facts.population)


def _owner(servers: Path, address: str | None, language: str, budget: tuple[float, float]) -> "OwnerFile":
    from faircount.service.codes import server_address
    from faircount.service.owner.folder import OwnerFile, read_servers
    from faircount.service.owner.printed_words import printed_words

    s1, s2 = read_servers(servers)
    public = s1.address if address is None else server_address(address)
    return OwnerFile(s1, s2, public, budget, printed_words(language).language)


def _show(made: "Survey", advice: "Advice", as_json: bool, own_budget: bool) -> None:
    from faircount.cli.show import console, notes, print_json
    from faircount.planning.question import cautions

    params = made.params
    words = [*cautions(params.epsilon, params.delta), *_about_servers(made), *_about_lies(made)]
    if own_budget:
        words.append("this survey has a budget of its own; name a --population if the same people are asked again")
    if as_json:
        facts = {
            "survey": params.survey.hex(), "parameters": params.digest.hex(), "folder": str(made.folder.path),
            "mechanism": params.mechanism.name, "topology": str(params.topology), "users": params.n_max,
            "minimum": params.minimum, "epsilon": params.epsilon, "delta": params.delta,
            "half_width_95": advice.half_width_95, "standard_error": advice.standard_error,
            "proven": advice.proven, "supposed": advice.supposed, "notes": words,
        }  # fmt: skip
        print_json(facts)
        return
    out = console()
    out.print(f"{advice.words}.", markup=False)
    notes(out, words)
    out.print(f"\nWritten to {made.folder.path}. Next: faircount survey invite {made.folder.path}", markup=False)


def _about_servers(made: "Survey") -> list[str]:
    """What people should know about who runs the servers, and cannot read."""
    params = made.params
    if not params.s1_operator or not params.s2_operator:
        return ["people are not told who runs the servers: give --s1-operator and --s2-operator"]
    if params.s1_operator.strip().lower() == params.s2_operator.strip().lower():
        return ["one organization runs both servers: it could put the shares together, so this is a trial"]
    return []


def _about_lies(made: "Survey") -> list[str]:
    """That one client can spoil a result, where nothing is proven and everything could be."""
    if made.params.proven or not made.params.topology.takes_proofs:
        return []
    return ["without proofs a client that lies can move any count; --mechanism auto has every report proven"]
